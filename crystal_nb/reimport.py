"""Planning and importing: decisions about all candidates, written into a store or not.

Source: ``pinned-importer.md`` sections 3 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from crystal_nb import decide, importer
from crystal_nb._loop import twins
from crystal_nb.adapters import registered
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.candidates import Candidates, as_candidates
from crystal_nb.config import Config, checked
from crystal_nb.decisions import Decision
from crystal_nb.errors import ConfigError, StoreError
from crystal_nb.policy import Policy
from crystal_nb.progress import shown
from crystal_nb.records import Candidate
from crystal_nb.report import ImportReport, Outcome, SourceFailure, decisions_frame
from crystal_nb.runs import Parsers, Run, decide_anew, outcomes, reason_of
from crystal_nb.store import Store
from crystal_nb.store_writes import Applied

if TYPE_CHECKING:
    import polars as pl

__all__ = ["OnDecision", "import_all", "import_all_async", "import_into", "plan", "plan_async"]

OnDecision: TypeAlias = Callable[[int, int, Candidate, Decision], None]


async def _plan(
    candidates: Candidates,
    store: Store,
    *,
    profile: str | Policy | None = None,
    adapters: Iterable[SourceAdapter] = (),
    config: Config | None = None,
    on_progress: OnDecision | None = None,
) -> pl.DataFrame:
    """Say what an import would do with each candidate; nothing is written anywhere.

    Parameters
    ----------
    candidates
        A frame made by `scan`, or records.
    store
        What is stored already; a ChatCrystal database will do.
    profile
        ``chatcrystal``, ``careful`` or a `Policy`; default: what the store was made for.
    adapters
        Adapters to use before registered ones of the same name.
    config
        The configuration that the scan had.
    on_progress
        Called after each candidate with the number done, the total, the candidate and the decision.

    Returns
    -------
    polars.DataFrame
        One row per candidate; columns: ``decision_frames.DECISIONS``. Each decision counts on those before it.

    Examples
    --------
    >>> import crystal_nb as cnb, tempfile
    >>> config = cnb.samples.config()
    >>> with tempfile.TemporaryDirectory() as folder, cnb.open_store(f"{folder}/imports.db") as store:
    ...     cnb.plan(cnb.scan("trae", config=config), store, config=config)["action"].unique().to_list()
    ['insert']
    """
    config, listed = checked(config), as_candidates(candidates, for_store=True)
    if not isinstance(store, Store):
        raise ConfigError(f"plan takes candidates, then a store that open_store made; not {type(store).__name__}")
    policy = store.policy(profile)
    run = Run(policy, store.states(), config, Parsers(policy, adapters))
    found = []
    async for outcome in outcomes(run, listed, lambda outcome: _foreseen(store, run, outcome)):
        found.append(outcome.without_parsed())
        if on_progress is not None:
            on_progress(len(found), len(listed), outcome.candidate, outcome.decision)
    return decisions_frame(found)


def _foreseen(store: Store, run: Run, outcome: Outcome) -> Outcome:
    """The outcome, or what foreign keys make of it: messages of a conversation without a row are refused."""
    d = outcome.decision
    if (
        d.action != "replace"
        or run.states.owner(d.source, d.id or "", run.policy) is not None
        or not store.foreign_keys
    ):
        return outcome
    return Outcome(outcome.candidate, decide.failed(d, "FOREIGN KEY constraint failed"))


async def _import_all(
    store: Store,
    candidates: Candidates | None = None,
    *,
    profile: str | Policy | None = None,
    adapters: Iterable[SourceAdapter] = (),
    config: Config | None = None,
    on_progress: OnDecision | None = None,
    on_outcome: Callable[[Outcome], None] | None = None,
    progress: bool | None = None,
) -> ImportReport:
    """Import into a store, one conversation per transaction.

    Interrupted, it stops between two conversations, and running it again goes on: by the careful
    profile what was written stays; by the pinned one the file changes only at the end of a run, so
    a run that does not end leaves nothing.

    Parameters
    ----------
    store
        A store that `open_store` made with the same profile.
    candidates
        What to import; default: all that the enabled adapters find.
    profile
        ``chatcrystal``, ``careful`` or a `Policy`; default: what the store was made for.
    adapters
        Adapters to use beside the enabled ones, and before registered ones of the same name.
    config
        Folders and settings.
    on_progress
        Called after each candidate with the number done, the total, the candidate and the decision.
    on_outcome
        Called with each `report.Outcome` before it is written, the parse's result included.
    progress
        Whether to show a progress bar; default: in notebooks and on terminals.

    Returns
    -------
    ImportReport
        Counts, id lists, and the decisions as a frame.

    Raises
    ------
    DetectError, ScanError
        If a source fails and the policy ends the import there, as the pinned one does.
    StoreError
        If the store can't be written: a copy to look at, locked by another program, or full in a way
        that the policy does not survive.
    ConfigError
        If the store keeps its rows in another way than the policy needs.

    Examples
    --------
    >>> import crystal_nb as cnb, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, cnb.open_store(f"{folder}/imports.db") as store:
    ...     report = cnb.import_all(store, config=cnb.samples.config())
    ...     again = cnb.import_all(store, config=cnb.samples.config())
    >>> report.imported > 5, again.imported
    (True, 0)
    """
    if not isinstance(store, Store):
        raise ConfigError(f"import_all takes the store first, then candidates; not {type(store).__name__}")
    config, policy, given = checked(config), store.policy(profile), importer.checked_adapters(adapters)
    store.check_policy(policy)
    failures: list[SourceFailure] = []
    listed = (
        await _collect(policy, given, config, failures)
        if candidates is None
        else as_candidates(candidates, for_store=True)
    )
    return await import_into(
        store,
        listed,
        policy,
        given,
        config,
        failures=failures,
        on_progress=on_progress,
        on_outcome=on_outcome,
        progress=progress,
    )


async def import_into(
    store: Store,
    listed: list[Candidate],
    policy: Policy,
    adapters: Iterable[SourceAdapter],
    config: Config,
    *,
    failures: Iterable[SourceFailure] = (),
    on_progress: OnDecision | None = None,
    on_outcome: Callable[[Outcome], None] | None = None,
    progress: bool | None = False,
) -> ImportReport:
    """Step 3: decide about each candidate and write what was decided."""
    parsers = Parsers(policy, adapters)
    done: list[Outcome] = []
    with store.batch(policy), shown(len(listed), "Importing", progress) as step:
        run = Run(policy, store.states(), config, parsers)

        def write(outcome: Outcome) -> Outcome:
            if on_outcome is not None:
                on_outcome(outcome)
            return _write(store, run, outcome)

        async for outcome in outcomes(run, listed, write):
            done.append(outcome.without_parsed())
            step()
            if on_progress is not None:
                on_progress(len(done), len(listed), outcome.candidate, outcome.decision)
    return ImportReport(policy.name, tuple(done), tuple(failures))


async def _collect(
    policy: Policy, given: list[SourceAdapter], config: Config, failures: list[SourceFailure]
) -> list[Candidate]:
    """Steps 1 and 2: detect and scan, one source after the other."""
    importer.check_folders(config, given)
    known = Parsers(policy).known
    enabled = {name: known[name] for name in registered() if name in config.enabled_sources}
    found: list[Candidate] = []
    for adapter in {**enabled, **{a.name: a for a in given}}.values():
        try:
            found += await importer.collect(adapter, config)
        except Exception as error:
            if policy.failing_source == "abort":
                raise
            failures.append(SourceFailure(adapter.name, type(error).__name__, reason_of(error)))
    return found


def _write(store: Store, run: Run, outcome: Outcome) -> Outcome:
    """Write one decision; a failure becomes the decision ``error``, with a row in the import log."""
    if outcome.decision.action != "skip" and store.changed_elsewhere():
        run.states = store.states()
        outcome = decide_anew(run, outcome)
    applied = Applied()
    if outcome.decision.action != "error":
        try:
            applied = _apply(store, run, outcome)
        except Exception as error:
            if isinstance(error, StoreError) and (error.is_locked or store.batch_lost):
                raise
            outcome = Outcome(outcome.candidate, decide.failed(outcome.decision, reason_of(error)))
    if outcome.decision.action == "error":
        try:
            store.log_error(outcome.candidate.file_path, outcome.decision.reason)
        except StoreError as error:
            if error.is_locked or not run.policy.guard_log:
                raise
    return Outcome(outcome.candidate, outcome.decision, outcome.parsed, applied)


def _apply(store: Store, run: Run, outcome: Outcome) -> Applied:
    conversation = None if outcome.parsed is None else outcome.parsed.conversation
    return store.apply(outcome.decision, outcome.candidate, conversation, run.policy)


plan, plan_async = twins(_plan)
import_all, import_all_async = twins(_import_all)
