"""A rehearsal equals the import row for row, over the histories of the machines that model the import."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from typing import Any

import test_reimport_model as model
from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule

import crystal_nb as cnb
from crystal_nb.importer import find_candidates

UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Rows = dict[tuple[Any, ...], dict[str, Any]]


def tables(connection: sqlite3.Connection) -> dict[str, tuple[Rows, Counter[tuple[Any, ...]]]]:
    """Rows of each table by primary key, or counted where it has none."""
    found = {}
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'migrations'"
    for (name,) in connection.execute(query).fetchall():
        info = connection.execute(f"PRAGMA table_info({name})").fetchall()
        keys = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
        rows = [
            dict(zip((c[1] for c in info), row, strict=True)) for row in connection.execute(f"SELECT * FROM {name}")
        ]
        by_key = {tuple(row[k] for k in keys): row for row in rows} if keys else {}
        found[name] = (by_key, Counter() if keys else Counter(tuple(row.values()) for row in rows))
    return found


def seen(table: str, change: str, key: tuple[Any, ...], origin: Any = None) -> tuple[Any, ...]:
    """A change as it is compared: random ids are one like the other."""
    text = ":".join("" if part is None else str(part) for part in key)
    return table, change, UUID.sub("random", text), origin


def differences(before: Any, after: Any, owner: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """What an import changed, worked out from the rows themselves."""
    found: Counter[tuple[Any, ...]] = Counter()
    for table, (new, new_bag) in after.items():
        old, old_bag = before[table]
        found.update(seen(table, "added", key) for key in new.keys() - old.keys())
        found.update(seen(table, "removed", key) for key in old.keys() - new.keys())
        found.update({seen(table, "added", row): n for row, n in (new_bag - old_bag).items()})
        found.update({seen(table, "removed", row): n for row, n in (old_bag - new_bag).items()})
        for key in new.keys() & old.keys():
            if new[key] != old[key]:
                moved = table == "messages" and any(new[key][name] != old[key][name] for name in owner)
                origin = old[key]["conversation_id"] if moved else None
                found[seen(table, "stolen" if moved else "changed", key, origin)] += 1
    return found


class Rehearsed:
    """One more rule for a machine: rehearse, import, compare."""

    @rule()
    def rehearse_then_import(self: Any) -> None:
        before, dump = tables(self.looking), list(self.looking.iterdump())
        candidates = find_candidates(*self.adapters.values(), config=self.config)
        given = {"profile": self.policy, "adapters": self.adapters.values(), "config": self.config}
        rehearsal = cnb.rehearse(candidates, self.store, **given)
        assert list(self.looking.iterdump()) == dump
        self.forget()
        report = self.run()
        self.check(self.listed(), report)
        origins = ((c, c.from_conversation if c.change == "stolen" else None) for c in rehearsal.changed)
        told = Counter(seen(c.table, c.change, (c.key,), origin) for c, origin in origins)
        assert told == differences(before, tables(self.looking), self.store.layout.owner)
        assert [o.decision.path for o in rehearsal.report.outcomes] == [o.decision.path for o in report.outcomes]


class PinnedRehearsals(Rehearsed, model.PinnedImports):
    pass


class CarefulRehearsals(Rehearsed, model.CarefulImports):
    pass


TestPinned, TestCareful = PinnedRehearsals.TestCase, CarefulRehearsals.TestCase
TestPinned.settings = TestCareful.settings = settings(
    max_examples=60, stateful_step_count=20, suppress_health_check=list(HealthCheck), deadline=None
)
