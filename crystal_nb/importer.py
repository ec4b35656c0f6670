"""Listing and parsing: one async core, blocking twins derived from it.

Source: ``pinned-importer.md`` sections 2 and 3, up to the point where anything would be stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from crystal_nb import foreign
from crystal_nb._hasher import Hasher
from crystal_nb._loop import twins
from crystal_nb.adapters import for_profile, get_adapter, registered, versions
from crystal_nb.adapters.base import Parsed, SourceAdapter
from crystal_nb.adapters.usable import looks_like_adapter, usable
from crystal_nb.candidates import Candidates, as_candidates, candidate_row
from crystal_nb.config import PROFILES, Config, checked
from crystal_nb.corpus import Corpus, Failure, ParsedConversation
from crystal_nb.errors import AdapterError, ConfigError, ParseError
from crystal_nb.records import Candidate

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "check_folders",
    "checked_adapters",
    "collect",
    "find_candidates",
    "find_candidates_async",
    "parse",
    "parse_async",
    "scan",
    "scan_async",
    "unregistered",
]

OnProgress: TypeAlias = Callable[[int, int, Candidate], None]

_UNREGISTERED: dict[str, SourceAdapter] = {}
"""Adapters that were scanned without being registered, so that `parse` finds them by name."""


async def _scan(
    *adapters: str | SourceAdapter, profile: str = "chatcrystal", config: Config | None = None
) -> pl.DataFrame:
    """List the conversations that are there, without parsing any.

    Parameters
    ----------
    adapters
        Names or adapter values; an adapter need not be registered. Default: the registered ones that
        the configuration enables.
    profile
        Set of rules: ``chatcrystal`` is the pinned importer's, ``careful`` has the newest of each source.
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
    ['source', 'id', 'project_dir', 'file_size', 'file_mtime', 'file_mtime_text', 'file_path', 'parser_version']
    """
    from crystal_nb import frames

    found = await _find_candidates(*adapters, profile=profile, config=config)
    return frames.to_frame(frames.CANDIDATES, map(candidate_row, found))


async def _find_candidates(
    *adapters: str | SourceAdapter, profile: str = "chatcrystal", config: Config | None = None
) -> list[Candidate]:
    """`scan` with records instead of a frame."""
    if profile not in PROFILES:
        raise ConfigError(f"unknown profile {profile!r}; allowed: {', '.join(PROFILES)}")
    config = checked(config)
    found: list[Candidate] = []
    for adapter in _chosen(adapters, profile, config):
        found += await collect(adapter, config)
    return found


async def collect(adapter: SourceAdapter, config: Config) -> list[Candidate]:
    """Detect and scan one source; raises `DetectError`, `ScanError`, or another of the package's own errors."""
    return await foreign.scan(adapter, config) if await foreign.detect(adapter, config) is not None else []


def unregistered() -> Mapping[str, SourceAdapter]:
    """Adapters that were scanned in this session without being registered."""
    return MappingProxyType(_UNREGISTERED)


def _chosen(wanted: Sequence[str | SourceAdapter], profile: str, config: Config) -> list[SourceAdapter]:
    check_folders(config, [usable(a) for a in wanted if looks_like_adapter(a)])
    if not wanted:
        enabled = {name: get_adapter(name) for name in config.enabled_sources}
        return [adapter for name, adapter in for_profile(profile).items() if name in enabled]
    by_name = for_profile(profile)
    chosen = [(by_name.get(a) or get_adapter(a)) if isinstance(a, str) else _remember(a) for a in wanted]
    return list({adapter.name: adapter for adapter in chosen}.values())


def checked_adapters(given: Iterable[SourceAdapter]) -> list[SourceAdapter]:
    """The adapters as a list.

    Raises
    ------
    AdapterError
        If they are something else.
    """
    listed = [] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if (not listed and given not in ([], ())) or not all(map(looks_like_adapter, listed)):
        raise AdapterError("adapters must be a list of adapters; registered ones are found by themselves")
    return [usable(adapter) for adapter in listed]


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
    if not looks_like_adapter(adapter):
        hint = {list: '; write scan("codex", "cursor")', Config: "; write scan(config=…)"}.get(type(adapter), "")
        raise AdapterError(f"scan takes adapters or their names, not {type(adapter).__name__}{hint}")
    _UNREGISTERED[usable(adapter).name] = adapter
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
        Adapters to use before others of the same name. The ones that the scan used are found by
        themselves, unregistered ones and released versions such as ``codex@2`` too.
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
    adapter_of = _adapters_for(listed, adapters)
    done: list[tuple[Candidate, Parsed, Callable[[], str]]] = []
    failures: list[Failure] = []
    paused = time.monotonic()
    with ThreadPoolExecutor(1) as helper:
        hasher = Hasher(helper)
        for number, candidate in enumerate(listed, 1):
            try:
                adapter = adapter_of(candidate)
                result = foreign.checked_parsed(adapter, await adapter.parse(candidate, config))
                done.append((candidate, result, hasher.start(result.conversation)))
            except (
                Exception,
                SystemExit,
            ) as error:  # the pinned per-candidate guard: whatever one parse raises, the others go on
                failures.append(_failure(candidate, error))
            if on_progress is not None:
                on_progress(number, len(listed), candidate)
            if time.monotonic() - paused > _PAUSE_SECONDS:
                await asyncio.sleep(0)  # where a cancellation can come in
                paused = time.monotonic()
    parsed = [
        ParsedConversation(candidate, result.conversation, result.fates, digest(), adapter_of(candidate).parser_version)
        for candidate, result, digest in done
    ]
    return Corpus(parsed, failures)


_PAUSE_SECONDS = 0.05


def _failure(candidate: Candidate, error: BaseException) -> Failure:
    line, offset = (error.line, error.offset) if isinstance(error, ParseError) else (None, None)
    return Failure(candidate, type(error).__name__, foreign.error_text(error), line, offset)


def _adapters_for(
    candidates: Iterable[Candidate], given: Iterable[SourceAdapter]
) -> Callable[[Candidate], SourceAdapter]:
    """Who parses a candidate: one that was given, the released version that listed it, the registered one."""
    chosen, usual = {a.name: a for a in checked_adapters(given)}, {**_UNREGISTERED, **registered()}

    def find(source: str, version: str | None) -> SourceAdapter:
        adapter = chosen.get(source) or usual.get(source) or get_adapter(source)
        if source in chosen or version in (None, adapter.parser_version):
            return adapter
        released = versions().get(version or "")
        return released if released is not None and released.name == source else adapter

    found = {key: find(*key) for key in {(c.source, c.parser_version) for c in candidates}}
    return lambda candidate: found[candidate.source, candidate.parser_version]


scan, scan_async = twins(_scan)
find_candidates, find_candidates_async = twins(_find_candidates)
parse, parse_async = twins(_parse)
