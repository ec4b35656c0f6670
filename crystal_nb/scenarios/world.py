"""The stage of a scenario: a temporary home with real files, a store, and adapters that can be made to fail."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import reimport
from crystal_nb.adapters import get_adapter
from crystal_nb.adapters.base import Parsed, SourceAdapter
from crystal_nb.config import Config
from crystal_nb.decisions import Decision
from crystal_nb.errors import CrystalError, DetectError, ParseError, ScanError
from crystal_nb.policy import Policy
from crystal_nb.records import Candidate, SourceInfo
from crystal_nb.scenarios.subjects import Subject, Variant, subject_for
from crystal_nb.store_open import open_store

__all__ = ["Scene", "Staged", "World", "staged"]

_START_NS = 1_767_600_000_000_000_000
_SECOND_NS = 1_000_000_000
_ROOM = 40
"""Characters of a message in the rows of a scene."""


class Scene(Struct, frozen=True):
    """One act of a scenario and what was seen after it."""

    name: str
    text: str
    """What was done."""
    decided: str
    """Decisions and their paths, or what was answered."""
    stored: str
    """What the database holds."""
    decisions: tuple[Decision, ...] = ()
    rows: dict[str, list[dict[str, Any]]] = {}
    """Rows of the store's tables, for people to look at."""

    def __repr__(self) -> str:
        decided = self.decided.replace(" | ", "\n           ")
        rows = ", ".join(f"{name} {len(found)}" for name, found in self.rows.items()) or "none"
        return f"Scene {self.name!r}: {self.text}\n  decided  {decided}\n  stored   {self.stored}\n  .rows    {rows}\n"


class Staged(Struct):
    """An adapter that does what another one does, until it is told to fail."""

    inner: SourceAdapter
    version: int = 1
    failing: str = ""
    failing_id: str = ""

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def display_name(self) -> str:
        return self.inner.display_name

    @property
    def parser_version(self) -> str:
        return f"{self.inner.name}@{self.version}"

    async def detect(self, config: Config) -> SourceInfo | None:
        if self.failing == "detect":
            raise DetectError("told to fail", source=self.name, path=config.home_path)
        return await self.inner.detect(config)

    async def scan(self, config: Config) -> list[Candidate]:
        if self.failing == "scan":
            raise ScanError("told to fail", source=self.name, path=config.home_path)
        return await self.inner.scan(config)

    async def parse(self, candidate: Candidate, config: Config) -> Parsed:
        if self.failing == "parse" and candidate.id == self.failing_id:
            raise ParseError("told to fail", source=self.name, path=candidate.file_path)
        return await self.inner.parse(candidate, config)


class Crash(BaseException):
    """The end of a process, as far as one can have it without ending one."""


class World:
    """What a scenario acts on.

    Parameters
    ----------
    home
        An empty folder.
    policy
        The rules.
    adapter
        The adapter under test.
    subject
        What it imports.
    """

    def __init__(self, home: Path, policy: Policy, adapter: SourceAdapter, subject: Subject) -> None:
        self.home, self.policy, self.subject = home, policy, subject
        self.adapter = Staged(adapter)
        other = get_adapter("codex" if adapter.name == "claude-code" else "claude-code")
        self.other, self.other_subject = Staged(other), subject_for(other)
        self.ticks = 0
        self.listed: dict[tuple[str, str], Candidate] = {}
        """What the last import that ended listed."""
        self.config = Config(home=home, platform="linux", enabled_sources=(), cache_seconds=0, clock=self._clock)
        self.store = open_store(home / "imports.db", profile=policy, config=self.config)

    def _clock(self) -> int:
        return _START_NS // 1_000_000 + self.ticks * 1000

    def put(
        self,
        variant: Variant = "base",
        *,
        id: str | None = None,
        shared: bool = False,
        keep_time: bool = False,
        of_other: bool = False,
    ) -> Path:
        """Write a variant, a second later than the last one unless its time is to stay."""
        path = (self.other_subject if of_other else self.subject).put(self.home, variant, id=id, shared=shared)
        if not keep_time:
            self.ticks += 1
        self.set_time(path)
        return path

    def touch(self, path: Path) -> None:
        """Give a file another time."""
        self.ticks += 1
        self.set_time(path)

    def set_time(self, path: Path) -> None:
        """Give a file the world's time."""
        ns = _START_NS + self.ticks * _SECOND_NS
        os.utime(path, ns=(ns, ns))

    def load(self, *, crash_after: int = 0, registered: tuple[str, ...] = ()) -> Scene:
        """Import everything, or with registered adapters instead of the staged ones; a scene without a name yet."""
        decisions: list[Decision] = []

        def watch(done: int, total: int, candidate: Candidate, decision: Decision) -> None:
            if done == crash_after:
                raise Crash
            decisions.append(decision)

        try:
            report = reimport.import_all(
                self.store,
                profile=self.policy,
                adapters=[] if registered else [self.adapter, self.other],
                config=dataclasses.replace(self.config, enabled_sources=registered),
                on_progress=watch,
                progress=False,
            )
            decided = [f"{f.source} failed: {f.error}" for f in report.source_failures]
            decisions = [outcome.decision for outcome in report.outcomes]
            self.listed = {(o.candidate.source, o.decision.candidate_id): o.candidate for o in report.outcomes}
        except CrystalError as error:
            decided, decisions = [f"the import ended: {type(error).__name__}"], []
        except Crash:
            decided, decisions = ["crash"], []
        decided += [describe(decision) for decision in decisions]
        return self.scene(" | ".join(decided), tuple(decisions))

    def scene(self, decided: str, decisions: tuple[Decision, ...] = ()) -> Scene:
        """What there is to see now."""
        return Scene("", "", decided or "nothing", self.facts(), decisions, self.rows())

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement on the database, as another program would."""
        with closing(sqlite3.connect(self.store.path or "", isolation_level=None)) as connection:
            return connection.execute(statement, values).fetchall()

    def sql_rows(self, query: str) -> list[dict[str, Any]]:
        """Rows of a query with their columns' names."""
        with closing(sqlite3.connect(self.store.path or "", isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query)]

    def facts(self) -> str:
        """The database in a line: rows per table, statuses, and what the import log says."""
        counts = self.sql(
            "SELECT 'conversations ' || count(*) FROM conversations"
            " UNION ALL SELECT 'messages ' || count(*) FROM messages"
            " UNION ALL SELECT 'notes ' || count(*) FROM notes UNION ALL SELECT 'tags ' || count(*) FROM note_tags"
            " UNION ALL SELECT 'tasks ' || count(*) FROM vector_cleanup_tasks"
        )
        parts = [text for (text,) in counts if not text.endswith(" 0")]
        log = Counter(status for (status,) in self.sql("SELECT status FROM import_log ORDER BY id"))
        parts += [f"log {number} {status}" for status, number in log.items()]
        statuses = "SELECT DISTINCT status FROM conversations WHERE status <> 'imported' ORDER BY 1"
        parts += [status for (status,) in self.sql(statuses)]
        parts += [f"note of {id}" for (id,) in self.sql("SELECT conversation_id FROM notes ORDER BY 1")]
        return ", ".join((*parts, *self._oddities())) or "empty"

    def _oddities(self) -> Iterator[str]:
        """What is unusual about a row: other rules, a judgement kept, file data of before, messages that don't fit."""
        query = (
            "SELECT source, id, parser_version, experience_score, source_conversation_id, file_size, file_mtime,"
            " content_hash FROM conversations ORDER BY source, id"
        )
        for source, id, version, score, candidate_id, size, mtime, digest in self.sql(query):
            if not version.endswith("@1"):
                yield f"parser @{version.rpartition('@')[2]}"
            if score is not None:
                yield "score kept"
            listed = self.listed.get((source, candidate_id))
            if listed is not None and (listed.file_size, listed.file_mtime) != (size, mtime):
                yield "old file data"
            if digest not in self.store.rehash(source, id):
                yield f"messages of {id} don't fit its hash"

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Rows as people look at them; a long text is cut, and its digest tells it from another one."""
        return {
            "conversations": self.sql_rows(
                "SELECT source, id, message_count, status, file_size, file_mtime, substr(content_hash, 1, 8) AS hash,"
                " parser_version FROM conversations ORDER BY source, id"
            ),
            "messages": [
                row | {"content": _cut(row["content"])}
                for row in self.sql_rows(
                    "SELECT conversation_id, sort_order, type, content FROM messages ORDER BY 1, 2"
                )
            ],
            "import_log": self.sql_rows(
                "SELECT id, status, substr(message, 1, 80) AS message FROM import_log ORDER BY id"
            ),
        }

    def reopen(self) -> None:
        """Close the store and open it again, as a new process would."""
        self.store.close()
        self.store = open_store(self.home / "imports.db", profile=self.policy, config=self.config)


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= _ROOM:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:_ROOM]}… {len(text):,} characters, {digest[:8]}"


def describe(decision: Decision) -> str:
    """A decision and its path in a line."""
    return f"{decision.action} ({decision.path})"


@contextmanager
def staged(policy: Policy, adapter: SourceAdapter, subject: Subject) -> Iterator[World]:
    """A world in a temporary home, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        world = World(Path(folder), policy, adapter, subject)
        try:
            yield world
        finally:
            world.store.close()


Act = Callable[[World], Iterator[Scene]]


def named(scene: Scene, name: str, text: str) -> Scene:
    """The scene with its name and what was done."""
    return replace(scene, name=name, text=text)
