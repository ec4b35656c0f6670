"""Looking, listing and parsing: one async core, blocking twins derived from it.

Source: ``pinned-importer.md`` sections 2 and 3, up to the point where anything would be stored.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from crystal_nb._hasher import Hasher
from crystal_nb._loop import twins
from crystal_nb.adapters import get_adapter, registered
from crystal_nb.adapters.base import Parsed, SourceAdapter
from crystal_nb.candidates import Candidates, as_candidates, candidate_row
from crystal_nb.config import PROFILES, Config, Profile, checked
from crystal_nb.corpus import Corpus, Failure, ParsedConversation
from crystal_nb.errors import AdapterError, ConfigError, CrystalError, ParseError, ScanError
from crystal_nb.records import Candidate, SourceInfo

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "check_folders",
    "collect",
    "detect_all_sources",
    "detect_all_sources_async",
    "find_candidates",
    "find_candidates_async",
    "parse",
    "parse_async",
    "scan",
    "scan_async",
    "source_rows",
    "source_rows_async",
    "sources",
    "sources_async",
    "unregistered",
]

OnProgress: TypeAlias = Callable[[int, int, Candidate], None]

_UNREGISTERED: dict[str, SourceAdapter] = {}
"""Adapters that were scanned without being registered, so that `parse` finds them by name."""


async def _detect_all_sources(
    *, adapters: Iterable[SourceAdapter] | None = None, config: Config | None = None
) -> list[SourceInfo]:
    """Ask every adapter at once whether its tool is there.

    Parameters
    ----------
    adapters
        Whom to ask; default: the registered ones.
    config
        Folders and settings.

    Returns
    -------
    list of SourceInfo
        Those that are, in the adapters' order.

    Raises
    ------
    CrystalError
        The first failure: as pinned, the answer fails as a whole when one adapter fails.
        `sources` collects the outcomes instead.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> [s.name for s in cnb.detect_all_sources(config=cnb.samples.config())]
    ['claude-code', 'codex', 'cursor', 'trae', 'copilot']
    """
    config = checked(config)
    asked = registered().values() if adapters is None else adapters
    found = await asyncio.gather(*(a.detect(config) for a in asked))
    return [info for info in found if info is not None]


async def _sources(*, config: Config | None = None) -> pl.DataFrame:
    """Look which tools have histories here.

    Returns
    -------
    polars.DataFrame
        One row per registered adapter: found, absent or failed; columns: ``frames.SOURCES``.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> cnb.sources(config=cnb.samples.config()).shape
    (5, 8)
    """
    from crystal_nb import frames

    return frames.to_frame(frames.SOURCES, await _source_rows(config=config))


async def _source_rows(*, config: Config | None = None) -> list[dict[str, Any]]:
    """`sources` with rows instead of a frame."""
    config = checked(config)
    known = list(registered().values())
    outcomes = await asyncio.gather(*(a.detect(config) for a in known), return_exceptions=True)
    return [_source_row(adapter, outcome, config) for adapter, outcome in zip(known, outcomes, strict=True)]


def _source_row(adapter: SourceAdapter, outcome: SourceInfo | BaseException | None, config: Config) -> dict[str, Any]:
    row = {
        "source": adapter.name,
        "display_name": adapter.display_name,
        "status": "absent",
        "folder": _folder(adapter, config),
        "parser_version": adapter.parser_version,
        "conversations": None,
        "error": None,
        "note": None,
    }
    if isinstance(outcome, SourceInfo):
        return {**row, "status": "found", "conversations": outcome.conversation_count, "folder": outcome.data_dir}
    if isinstance(outcome, BaseException):
        return {**row, "status": "failed", "error": f"{type(outcome).__name__}: {outcome}"}
    if row["folder"] is not None and os.path.exists(row["folder"]):
        return {**row, "note": "the folder is there, but the tool's rule finds nothing in it, or an error"}
    return row


def _folder(adapter: SourceAdapter, config: Config) -> str | None:
    try:
        root = getattr(adapter, "root", None)
        return None if root is None else str(root(config))
    except CrystalError:
        return None


async def _scan(
    *adapters: str | SourceAdapter, profile: Profile = "chatcrystal", config: Config | None = None
) -> pl.DataFrame:
    """List the conversations that are there, without parsing any.

    Parameters
    ----------
    adapters
        Names or adapter values; an adapter need not be registered. Default: the registered ones that
        the configuration enables.
    profile
        Set of rules; ``chatcrystal`` is the pinned importer's.
    config
        Folders and settings.

    Returns
    -------
    polars.DataFrame
        One row per candidate, source after source; columns: ``frames.CANDIDATES``. Filter it with
        ordinary polars and hand it to `parse`.

    Raises
    ------
    UnknownAdapterError
        If a name is not registered.
    ScanError, DetectError
        If one source fails; as pinned, the whole scan then fails.
    ConfigError
        If a configured folder is missing.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> cands = cnb.scan("codex", config=cnb.samples.config())
    >>> cands.columns
    ['source', 'id', 'project_dir', 'file_size', 'file_mtime', 'file_mtime_text', 'file_path']
    """
    from crystal_nb import frames

    found = await _find_candidates(*adapters, profile=profile, config=config)
    return frames.to_frame(frames.CANDIDATES, map(candidate_row, found))


async def _find_candidates(
    *adapters: str | SourceAdapter, profile: Profile = "chatcrystal", config: Config | None = None
) -> list[Candidate]:
    """`scan` with records instead of a frame."""
    if profile not in PROFILES:
        raise ConfigError(f"unknown profile {profile!r}; allowed: {', '.join(PROFILES)}")
    config = checked(config)
    found: list[Candidate] = []
    for adapter in _chosen(adapters, config):
        found += await collect(adapter, config)
    return found


async def collect(adapter: SourceAdapter, config: Config) -> list[Candidate]:
    """Detect and scan one source; raises what they raise."""
    return await _scan_one(adapter, config) if await adapter.detect(config) is not None else []


def unregistered() -> Mapping[str, SourceAdapter]:
    """Adapters that were scanned in this session without being registered."""
    return MappingProxyType(_UNREGISTERED)


async def _scan_one(adapter: SourceAdapter, config: Config) -> list[Candidate]:
    try:
        found = await adapter.scan(config)
        if all(isinstance(c, Candidate) for c in found):
            return list(found)
        reason = "scan gave something else than candidates"
    except CrystalError:
        raise
    except Exception as error:  # an adapter from elsewhere may raise anything
        reason = f"{type(error).__name__}: {error}"
    raise ScanError(reason, source=adapter.name, path=_folder(adapter, config))


def _chosen(wanted: Sequence[str | SourceAdapter], config: Config) -> list[SourceAdapter]:
    check_folders(config, [a for a in wanted if isinstance(a, SourceAdapter)])
    if not wanted:
        enabled = {name: get_adapter(name) for name in config.enabled_sources}
        return [adapter for name, adapter in registered().items() if name in enabled]
    chosen = [get_adapter(a) if isinstance(a, str) else _remember(a) for a in wanted]
    return list({adapter.name: adapter for adapter in chosen}.values())


def check_folders(config: Config, given: Iterable[SourceAdapter] = ()) -> None:
    """Refuse folders of adapters that nobody knows, which are slips of the pen.

    Raises
    ------
    ConfigError
        With the names.
    """
    known = {a.name for a in given} | set(registered()) | set(_UNREGISTERED)
    if unknown := set(config.folders) - known:
        raise ConfigError(f"folders: no adapter named {', '.join(sorted(unknown))}; known: {', '.join(registered())}")


def _remember(adapter: SourceAdapter) -> SourceAdapter:
    if not isinstance(adapter, SourceAdapter):
        hint = {list: '; write scan("codex", "cursor")', Config: "; write scan(config=…)"}.get(type(adapter), "")
        raise AdapterError(f"scan takes adapters or their names, not {type(adapter).__name__}{hint}")
    _UNREGISTERED[adapter.name] = adapter
    return adapter


async def _parse(
    candidates: Candidates,
    *,
    adapters: Iterable[SourceAdapter] = (),
    config: Config | None = None,
    on_progress: OnProgress | None = None,
) -> Corpus:
    """Parse candidates; one that fails becomes a row of ``failures`` and the others go on.

    Parameters
    ----------
    candidates
        A frame made by `scan`, filtered as you like, or `Candidate` records.
    adapters
        Adapters to use before registered ones of the same name. Unregistered ones that were scanned
        in this session are found by themselves.
    config
        The configuration that the scan had.
    on_progress
        Called after each candidate with the number done, the total and the candidate.

    Returns
    -------
    Corpus
        Conversations, messages, fates of raw records and failures.

    Raises
    ------
    ConfigError
        If the frame lacks a column that a candidate needs.
    UnknownAdapterError
        If a candidate's source has no adapter.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> corpus = cnb.parse(cnb.scan("claude-code", config=config), config=config)
    >>> corpus.messages.select("type", "has_tool_use").columns
    ['type', 'has_tool_use']
    """
    config = checked(config)
    listed = as_candidates(candidates)
    by_name = _adapters_for({c.source for c in listed}, adapters)
    done: list[tuple[Candidate, Parsed, Callable[[], str]]] = []
    failures: list[Failure] = []
    paused = time.monotonic()
    with ThreadPoolExecutor(1) as helper:
        hasher = Hasher(helper)
        for number, candidate in enumerate(listed, 1):
            try:
                result = await by_name[candidate.source].parse(candidate, config)
                if not (isinstance(result, Parsed) and isinstance(result.fates, tuple)):
                    raise AdapterError("parse gave no Parsed with a tuple of fates")
                done.append((candidate, result, hasher.start(result.conversation)))
            except Exception as error:  # the pinned per-candidate guard: whatever one parse raises, the others go on
                failures.append(_failure(candidate, error))
            if on_progress is not None:
                on_progress(number, len(listed), candidate)
            if time.monotonic() - paused > _PAUSE_SECONDS:
                await asyncio.sleep(0)  # where a cancellation can come in
                paused = time.monotonic()
    parsed = [
        ParsedConversation(
            candidate, result.conversation, result.fates, digest(), by_name[candidate.source].parser_version
        )
        for candidate, result, digest in done
    ]
    return Corpus(parsed, failures)


_PAUSE_SECONDS = 0.05


def _failure(candidate: Candidate, error: Exception) -> Failure:
    line, offset = (error.line, error.offset) if isinstance(error, ParseError) else (None, None)
    return Failure(candidate, type(error).__name__, str(error) or type(error).__name__, line, offset)


def _adapters_for(names: set[str], given: Iterable[SourceAdapter]) -> Mapping[str, SourceAdapter]:
    if isinstance(given, str) or not all(isinstance(a, SourceAdapter) for a in given):
        raise AdapterError("adapters must be a list of adapters; registered ones are found by themselves")
    known = {**_UNREGISTERED, **registered(), **{a.name: a for a in given}}
    return {name: known[name] if name in known else get_adapter(name) for name in names}


detect_all_sources, detect_all_sources_async = twins(_detect_all_sources)
sources, sources_async = twins(_sources)
source_rows, source_rows_async = twins(_source_rows)
scan, scan_async = twins(_scan)
find_candidates, find_candidates_async = twins(_find_candidates)
parse, parse_async = twins(_parse)
