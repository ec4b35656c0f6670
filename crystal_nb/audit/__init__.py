"""Audits: where an import was blind, wasteful or wrong, with evidence, on a database and the histories behind it.

`audit` asks all questions. Each one is a function of its own: `stale_skips`, `wasted_work`, `identity`,
`hash_power`, `integrity`, `non_determinism`, `drift`, `scan_cost` and `coverage`. What several of them
need is made once by `read_store` (one pass over the rows) and `reparse` (each candidate parsed twice).
They are imported by ``from crystal_nb.audit import …``, since ``crystal_nb.audit`` itself is the function.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import replace

from crystal_nb import importer
from crystal_nb._loop import twins
from crystal_nb.adapters import for_profile
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.audit.costs import scan_cost, scan_cost_async
from crystal_nb.audit.drifts import drift
from crystal_nb.audit.findings import KINDS, QUESTIONS, Answer, Finding, Question, checked_questions
from crystal_nb.audit.ids import identity
from crystal_nb.audit.moves import non_determinism
from crystal_nb.audit.places import coverage
from crystal_nb.audit.power import hash_power
from crystal_nb.audit.reparse import Reparses, reparse, reparse_async
from crystal_nb.audit.report import AuditReport
from crystal_nb.audit.rows import integrity
from crystal_nb.audit.skips import stale_skips, upper_bound, wasted_work
from crystal_nb.audit.stored import StoredFacts, read_store, sources_in
from crystal_nb.candidates import Candidates, as_candidates
from crystal_nb.config import Config, checked
from crystal_nb.errors import ConfigError
from crystal_nb.policy import Policy
from crystal_nb.records import Candidate
from crystal_nb.store import Store
from crystal_nb.store_open import open_store

__all__ = [
    "KINDS",
    "QUESTIONS",
    "Answer",
    "AuditReport",
    "Finding",
    "Reparses",
    "audit",
    "audit_async",
    "coverage",
    "drift",
    "hash_power",
    "identity",
    "integrity",
    "non_determinism",
    "read_store",
    "reparse",
    "reparse_async",
    "scan_cost",
    "scan_cost_async",
    "stale_skips",
    "upper_bound",
    "wasted_work",
]


async def _audit(
    store: Store | str | os.PathLike[str],
    candidates: Candidates | None = None,
    *,
    config: Config | None = None,
    sample: int | None = None,
    profile: str | Policy | None = None,
    adapters: Iterable[SourceAdapter] = (),
    questions: Iterable[str] | None = None,
    progress: bool | None = None,
) -> AuditReport:
    """Ask where an import was blind, wasteful or wrong; nothing is written.

    Parameters
    ----------
    store
        A store, or the path of a database: this package's or ChatCrystal's, which may be in use. Of a
        path, a copy is read; "~" is the home folder.
    candidates
        The histories behind it: a frame made by `scan`, or records. Default: all that the enabled
        adapters find. ``[]``: the store alone, and nothing is parsed.
    config
        Folders and settings; the one that the scan had.
    sample
        Parse as many candidates only, drawn by chance, with a stated confidence.
    profile
        ``chatcrystal``, ``careful`` or a `Policy` whose next import is foreseen; default: the store's own.
    adapters
        Adapters to use beside the enabled ones, and before registered ones of the same name.
    questions
        Which to ask: ``stale skips``, ``wasted work``, ``identity``, ``hash power``, ``integrity``,
        ``non-determinism``, ``drift``, ``scan cost``, ``coverage``; default: all. They are a tuple, too,
        which ``from crystal_nb.audit import QUESTIONS`` imports (``cnb.audit`` itself is this function).
    progress
        Whether to show a progress bar; default: in notebooks and on terminals.

    Returns
    -------
    AuditReport
        Findings as a frame, a table of counts per question, a summary in sentences.

    Raises
    ------
    StoreError
        If there is no such database, or it can't be read.
    ConfigError
        If a setting is wrong.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> with cnb.Store.in_memory(cnb.PINNED, config) as store:
    ...     report = cnb.import_all(store, config=config)
    ...     cnb.audit(store, config=config).ok
    False
    """
    config, asked, given = checked(config), checked_questions(questions), importer.checked_adapters(adapters)
    if not isinstance(store, Store):
        if not isinstance(store, (str, os.PathLike)):
            raise ConfigError(f"audit takes a store or the path of one, not {type(store).__name__}")
        with open_store(Path(store), read_only=True, config=config) as opened:
            return await _audit(
                opened,
                candidates,
                config=config,
                sample=sample,
                profile=profile,
                adapters=given,
                questions=asked,
                progress=progress,
            )
    rules, own = _rules(store.policy(profile)), _rules(store.policy(None))
    using = _adapters(rules, given, config)
    chosen, seen = (candidates, None) if candidates is not None else await _list(using, config, asked)
    listed = as_candidates(chosen, for_store=True)
    parsed = await reparse_async(
        store,
        listed,
        profile=profile,
        adapters=given,
        config=config,
        sample=sample,
        newest="drift" in asked,
        progress=progress,
    )
    parsed = replace(parsed, scanned=seen if rules == own else None)
    facts = read_store(store) if set(asked) & {"identity", "hash power", "integrity"} else StoredFacts(())
    met = dict.fromkeys([*sources_in(store), *(c.source for c in listed)])
    if candidates is not None:
        using = [adapter for adapter in using if adapter.name in met]
    ask: dict[Question, Callable[[], Answer]] = {
        "stale skips": lambda: stale_skips(store, parsed),
        "wasted work": lambda: wasted_work(store, parsed),
        "identity": lambda: identity(store, parsed, facts=facts),
        "hash power": lambda: hash_power(store, parsed, facts=facts),
        "integrity": lambda: integrity(store, facts=facts),
        "non-determinism": lambda: non_determinism(store, parsed),
        "drift": lambda: drift(store, parsed),
        "coverage": lambda: coverage(dict.fromkeys([*(a.name for a in using), *met]), config=config),
    }
    answers = []
    for question in asked:
        if question == "scan cost":
            scanned = using if listed or candidates is None else []
            answers.append(await scan_cost_async(parsed, config=config, adapters=scanned, only=True))
        else:
            answers.append(ask[question]())
    return AuditReport(tuple(answers), str(store.path or "in memory"), len(listed), len(parsed.parsed))


def _rules(policy: Policy) -> str:
    return "careful" if policy.parsers == "newest" else "chatcrystal"


def _adapters(rules: str, given: list[SourceAdapter], config: Config) -> list[SourceAdapter]:
    importer.check_folders(config, given)
    enabled = {name: a for name, a in for_profile(rules).items() if name in config.enabled_sources}
    return list({**enabled, **{a.name: a for a in given}}.values())


async def _list(
    using: Iterable[SourceAdapter], config: Config, asked: tuple[Question, ...]
) -> tuple[list[Candidate], tuple[str, ...]]:
    """Candidates of all sources, and which these are.

    One that fails is left to the question about scan cost, where that is asked.
    """
    found: list[Candidate] = []
    scanned: list[str] = []
    for adapter in using:
        try:
            found += await importer.collect(adapter, config)
            scanned.append(adapter.name)
        except Exception:
            if "scan cost" not in asked:
                raise
    return found, tuple(scanned)


audit, audit_async = twins(_audit)
