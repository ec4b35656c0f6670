"""What an import would do to a store, row by row, tried on a copy in memory; and how policies compare.

Source: ``pinned-importer.md`` section 3, whose write semantics the copy has: one key for all message
ids, insert-or-replace, ids that drift, cascades that stop.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from crystal_nb import charts, importer, reimport
from crystal_nb._loop import twins
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.candidates import Candidates, as_candidates
from crystal_nb.config import Config, checked
from crystal_nb.errors import ConfigError
from crystal_nb.policy import Policy, policy_of
from crystal_nb.report import ImportReport, Outcome
from crystal_nb.runs import new_run, outcomes
from crystal_nb.store import Store
from crystal_nb.store_changes import Change, changes_since, remember

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Rehearsal", "compare_policies", "compare_policies_async", "rehearse", "rehearse_async"]


class Rehearsal(Struct, frozen=True):
    """What an import would do.

    Attributes
    ----------
    report : ImportReport
        Decisions, as the import itself would report them.
    changed : tuple[Change, ...]
        Every row that would be added, changed, removed or taken from another conversation.
    """

    report: ImportReport
    changed: tuple[Change, ...]

    @property
    def decisions(self) -> pl.DataFrame:
        """One row per candidate; columns: ``decision_frames.DECISIONS``."""
        return self.report.decisions

    @property
    def changes(self) -> pl.DataFrame:
        """One row per row that would change; columns: ``decision_frames.CHANGES``."""
        from crystal_nb import decision_frames

        return decision_frames.changes(self.changed)

    def counts(self) -> Counter[tuple[str, str]]:
        """Rows per table and kind of change."""
        return Counter((c.table, c.change) for c in self.changed)

    def __repr__(self) -> str:
        lines = [f"Rehearsal: {self.report.headline()}"]
        lines += [
            f"  {table:<22} {change:<8} {number:>8,}" for (table, change), number in sorted(self.counts().items())
        ]
        return "\n".join(lines if self.changed else [*lines, "  no row would change"])

    def _repr_html_(self) -> str:
        rows = [{"table": t, "change": change, "rows": n} for (t, change), n in sorted(self.counts().items())]
        changed = (
            charts.bars("Rows that would change", rows, "rows").to_html() if rows else "<p>No row would change.</p>"
        )
        return f"<p><b>Rehearsal: {escape(self.report.headline())}</b></p>{self.report.chart().to_html()}{changed}"


async def _rehearse(
    candidates: Candidates,
    store: Store,
    *,
    profile: str | Policy | None = None,
    adapters: Iterable[SourceAdapter] = (),
    config: Config | None = None,
    on_progress: reimport.OnDecision | None = None,
) -> Rehearsal:
    """Import into a copy of the store in memory and give the differences; the store stays as it is.

    Rows that an import adds and then takes from one conversation for another are new in ``changes``;
    ``report.stolen`` has them all.

    Parameters
    ----------
    candidates
        A frame made by `scan`, or records.
    store
        What is stored already; a ChatCrystal database will do.
    profile
        ``chatcrystal``, ``careful`` or a `Policy`; default: what the store was made for. The copy is
        laid out as it needs it.
    adapters
        Adapters to use before registered ones of the same name.
    config
        The configuration that the scan had.
    on_progress
        As for `import_all`.

    Examples
    --------
    >>> import crystal_nb as cnb, tempfile
    >>> config = cnb.samples.config()
    >>> with tempfile.TemporaryDirectory() as folder, cnb.open_store(f"{folder}/imports.db") as store:
    ...     rehearsal = cnb.rehearse(cnb.scan("trae", config=config), store, config=config)
    ...     rehearsal.counts()["conversations", "added"] == rehearsal.report.imported, store.conversations().height
    (True, 0)
    """
    if not isinstance(store, Store):
        raise ConfigError(f"rehearse takes candidates, then a store that open_store made; not {type(store).__name__}")
    policy, given = store.policy(profile), importer.checked_adapters(adapters)
    with store.copy(policy) as copy:
        with store.reported():
            remember(copy.connection)
        report = await reimport.import_into(
            copy, as_candidates(candidates, for_store=True), policy, given, checked(config), on_progress=on_progress
        )
        with store.reported():
            return Rehearsal(report, tuple(changes_since(copy.connection, copy.layout)))


async def _compare_policies(
    candidates: Candidates,
    store: Store,
    policies: Iterable[str | Policy] = ("chatcrystal", "careful"),
    *,
    adapters: Iterable[SourceAdapter] = (),
    config: Config | None = None,
) -> pl.DataFrame:
    """Rehearse the same import by several policies and count what each wastes, misses and breaks.

    Parameters
    ----------
    candidates, store, adapters, config
        As for `rehearse`.
    policies
        Profiles or `Policy` values.

    Returns
    -------
    polars.DataFrame
        One row per policy; columns: ``decision_frames.POLICY_SCORES``.

    Examples
    --------
    >>> import crystal_nb as cnb, tempfile
    >>> config = cnb.samples.config()
    >>> with tempfile.TemporaryDirectory() as folder, cnb.open_store(f"{folder}/imports.db") as store:
    ...     cnb.compare_policies(cnb.scan("codex", config=config), store, config=config)["policy"].to_list()
    ['pinned', 'careful']
    """
    from crystal_nb import decision_frames

    listed, config = as_candidates(candidates, for_store=True), checked(config)
    given = importer.checked_adapters(adapters)
    rules = [policy_of(policy) for policy in policies]
    truths = {p.parsers: await _true_hashes(listed, given, config, p.parsers) for p in rules}
    rows = [await _score(listed, store, p, given, config, truths[p.parsers]) for p in rules]
    return decision_frames.policy_scores(rows)


_Key = tuple[str, str]


async def _true_hashes(
    listed: list[Any], given: list[SourceAdapter], config: Config, parsers: Literal["registered", "newest"]
) -> dict[_Key, str]:
    """What a parse of every candidate gives, the messages forgotten at once."""
    found: dict[_Key, str] = {}
    everything = Policy(name="", parsers=parsers, trust_size_and_time=False, min_messages=0)
    run = new_run(everything, config, given)
    async for outcome in outcomes(run, listed, lambda outcome: outcome):
        d = outcome.decision
        if d.content_hash is not None:
            found[d.source, d.candidate_id] = d.content_hash
    return found


async def _score(
    listed: list[Any],
    store: Store,
    policy: Policy,
    given: list[SourceAdapter],
    config: Config,
    truth: dict[_Key, str],
) -> dict[str, Any]:
    states = store.states()
    stored = {(c.source, c.id): found for c in listed if (found := states.find(c, policy)) is not None}
    with store.copy(policy) as copy:
        held = {}

        def watch(outcome: Outcome) -> None:
            if outcome.decision.action == "replace":
                held[outcome.decision.source, outcome.decision.candidate_id] = copy.rehash(
                    outcome.decision.source, outcome.decision.id or ""
                )

        report = await reimport.import_into(copy, listed, policy, given, config, on_outcome=watch)
        with store.reported():
            duplicates, incomplete = _faults(copy.connection, copy.layout.owner)
    decisions = [o.decision for o in report.outcomes]
    skipped = [(d.source, d.candidate_id) for d in decisions if d.action == "skip"]
    replaced = [d for d in decisions if d.action == "replace"]
    return {
        "policy": policy.name,
        "candidates": len(decisions),
        "parses": sum(d.message_count is not None for d in decisions),
        "needless_parses": sum(
            d.message_count is not None and d.action not in ("insert", "replace") for d in decisions
        ),
        "false_skips": sum(truth.get(key) not in (None, stored[key].content_hash) for key in skipped if key in stored),
        "replaces": len(replaced),
        "needless_replaces": sum(d.content_hash in held[d.source, d.candidate_id] for d in replaced),
        "errors": report.errors,
        "rows_stolen": sum(len(o.applied.stolen) for o in report.outcomes),
        "incomplete": incomplete,
        "duplicates": duplicates,
    }


def _faults(connection: sqlite3.Connection, owner: tuple[str, ...]) -> Iterator[int]:
    """Conversations that hold what another one of their source holds, and those that lack messages."""
    (distinct,) = connection.execute(
        "SELECT count(content_hash) - count(DISTINCT source || ' ' || content_hash) FROM conversations"
    ).fetchone()
    match = " AND ".join(f"m.{name} = c.{'source' if name == 'source' else 'id'}" for name in owner)
    (incomplete,) = connection.execute(
        f"SELECT count(*) FROM conversations c WHERE message_count <> (SELECT count(*) FROM messages m WHERE {match})"
    ).fetchone()
    return iter((distinct, incomplete))


rehearse, rehearse_async = twins(_rehearse)
compare_policies, compare_policies_async = twins(_compare_policies)
