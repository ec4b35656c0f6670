"""Scan cost: what detect, scan and parse of each source really do, and what the short cache saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace as with_settings
from typing import Any

from msgspec.structs import asdict

from crystal_nb import importer
from crystal_nb._loop import twins
from crystal_nb.adapters import for_profile
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.audit.counting import Counts, counted, watched_places
from crystal_nb.audit.findings import Answer, Finding, error_text, finding
from crystal_nb.audit.reparse import Reparses
from crystal_nb.config import Config, checked
from crystal_nb.records import counted as told

__all__ = ["scan_cost", "scan_cost_async"]


async def _scan_cost(
    candidates: Reparses | None = None,
    *,
    config: Config | None = None,
    profile: str = "chatcrystal",
    adapters: Iterable[SourceAdapter] = (),
    only: bool = False,
) -> Answer:
    """Run detect and scan of each source with every open, read and query counted; then scan again with the cache.

    Parameters
    ----------
    candidates
        What `reparse` gave: the first parse of each was counted. Default: no parse is shown.
    config
        Folders and settings; its ``cache_seconds`` are those of the second scan.
    profile
        Set of rules, as for `scan`.
    adapters
        Adapters to use beside the enabled ones.
    only
        Use no others.

    Returns
    -------
    Answer
        Its table is ``costs``.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> scan_cost(config=cnb.samples.config()).tables["costs"].filter(source="codex")["phase"].to_list()
    ['detect', 'scan', 'scan again']
    """
    from crystal_nb.audit.tables import table

    config = checked(config)
    given = {a.name: a for a in importer.checked_adapters(adapters)}
    enabled = {} if only else {n: a for n, a in for_profile(profile).items() if n in config.enabled_sources}
    rows: list[dict[str, Any]] = []
    findings: list[Finding] = []
    for adapter in {**enabled, **given}.values():
        phases: dict[str, Counts] = {}
        try:
            phases = await _measured(adapter, config)
        except Exception as error:  # a source that fails is a finding
            findings.append(finding("source-fails", adapter.name, None, error_text(error)))
        if candidates is not None and adapter.name in candidates.costs:
            phases["parse"] = candidates.costs[adapter.name]
        rows += [{"source": adapter.name, "phase": phase, **asdict(counts)} for phase, counts in phases.items()]
        findings += _found(adapter.name, phases)
    if candidates is not None:
        findings += _read_again(candidates)
    scans, again = (_total(rows, phase) for phase in ("scan", "scan again"))
    sentence = (
        f"Scan cost: the scans open {_words(scans)}; again within {config.cache_seconds:g} seconds {_words(again)}."
    )
    if not rows:
        sentence = "Scan cost: not known, as nothing was scanned."
    return Answer("scan cost", sentence, tuple(findings), {"costs": table("costs", rows)})


def _words(c: Counts) -> str:
    return f"{_opened(c)}, read {told(c.bytes_read, 'byte')} of files and run {told(c.queries, 'query')}"


def _opened(c: Counts) -> str:
    return f"{told(c.files_opened, 'file')} and {told(c.databases_opened, 'database')}"


async def _measured(adapter: SourceAdapter, config: Config) -> dict[str, Counts]:
    places, bare = watched_places(adapter, config), with_settings(config, cache_seconds=0)
    found = {phase: Counts() for phase in ("detect", "scan", "scan again")}
    with counted(found["detect"], places):
        there = await adapter.detect(bare)
    if there is None:
        return {}
    found["detect"].conversations = there.conversation_count
    with counted(found["scan"], places):
        found["scan"].conversations = len(list(await adapter.scan(bare)))
    await adapter.scan(config)
    with counted(found["scan again"], places):
        found["scan again"].conversations = len(list(await adapter.scan(config)))
    return found


def _total(rows: Iterable[Mapping[str, Any]], phase: str) -> Counts:
    total = Counts()
    for row in rows:
        if row["phase"] == phase:
            for name in ("files_opened", "databases_opened", "bytes_read", "queries"):
                setattr(total, name, getattr(total, name) + row[name])
    return total


def _found(source: str, phases: Mapping[str, Counts]) -> Iterator[Finding]:
    for phase in ("detect", "scan"):
        c = phases.get(phase)
        if c is not None and c.files_opened + c.databases_opened:
            evidence = (
                f"{told(c.conversations, 'conversation')}: {_opened(c)} opened,"
                f" {told(c.bytes_read, 'byte')} of files read, {told(c.queries, 'query')}"
            )
            yield finding(f"{phase}-reads", source, None, evidence, c.files_opened + c.databases_opened)


def _read_again(candidates: Reparses) -> Iterator[Finding]:
    files: dict[str, Counter[str]] = {}
    for r in candidates.parsed:
        files.setdefault(r.candidate.source, Counter())[r.candidate.file_path] += 1
    for source, counts in files.items():
        cost = candidates.costs.get(source)
        shared = {path: n for path, n in counts.items() if n > 1}
        if shared and cost is not None and cost.files_opened + cost.databases_opened >= counts.total():
            evidence = (
                f"{sum(shared.values()):,} conversations of {told(len(shared), 'shared file')};"
                f" {_opened(cost)} opened to parse {counts.total():,}"
            )
            yield finding("read-again", source, None, evidence, sum(shared.values()))


scan_cost, scan_cost_async = twins(_scan_cost)
