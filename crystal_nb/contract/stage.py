"""Where the checks of the contract happen: copies of the sample home, and ways to read them."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from crystal_nb import adapters, ecma
from crystal_nb._loop import twins
from crystal_nb.adapters.base import Parsed, SourceAdapter
from crystal_nb.adapters.jsonl import node_line_bounds
from crystal_nb.config import Config
from crystal_nb.errors import ParseError
from crystal_nb.hashing import content_hash
from crystal_nb.records import Candidate, Fate, SourceInfo

__all__ = [
    "CannotCheck",
    "Check",
    "Failed",
    "Sampled",
    "Stage",
    "all_lines",
    "are_lines",
    "check",
    "copy_home",
    "digest",
    "lines_told",
    "some",
]

CLOCK_MS = 1_800_000_000_000
_FILE_TIME_NS = 1_767_225_600_123_400_000
_SHOWN = 4


class Failed(Exception):
    """A check does not hold.

    Parameters
    ----------
    text
        What was seen, up to a colon before the items.
    items
        Each thing that is wrong, where there can be several.
    """

    def __init__(self, text: str, items: Iterable[str] = ()) -> None:
        self.items = tuple(items) or (text,)
        super().__init__(f"{text}: {some(list(self.items))}" if items else text)


class CannotCheck(Exception):
    """A check can't be made here; the text says why."""


@dataclass(frozen=True)
class Check:
    """One check: its function returns what it looked at, or raises."""

    group: str
    name: str
    run: Callable[[Stage], str]


def check(group: str, name: str) -> Callable[[Callable[[Stage], str]], Check]:
    """Name a function as a check; its docstring states the relation that has to hold."""
    return lambda run: Check(group, name, run)


async def _detect(adapter: SourceAdapter, config: Config) -> SourceInfo | None:
    return await adapter.detect(config)


async def _scan(adapter: SourceAdapter, config: Config) -> list[Candidate]:
    return await adapter.scan(config)


async def _parse(adapter: SourceAdapter, candidate: Candidate, config: Config) -> Parsed:
    return await adapter.parse(candidate, config)


detect_now = twins(_detect)[0]
scan_now = twins(_scan)[0]
parse_now = twins(_parse)[0]


@dataclass(frozen=True)
class Sampled:
    """A candidate of the sample home and what its parse gives; None where it fails."""

    candidate: Candidate
    parsed: Parsed | None
    error: str | None = None

    @property
    def id(self) -> str:
        """The candidate's id as text."""
        return ecma.to_text(self.candidate.id)


@dataclass
class Stage:
    """An adapter and a copy of the author's samples.

    Parameters
    ----------
    adapter
        The adapter under test.
    home
        A copy of the sample home, which nothing changes on purpose.
    author_home
        The author's own files, which nothing may change.
    base
        Settings to start from.
    """

    adapter: SourceAdapter
    home: Path
    author_home: Path
    base: Config
    author_state: dict[str, Any] = field(default_factory=dict)

    def config(self, home: Path | None = None, **changes: Any) -> Config:
        """Settings that read a home and nothing else, by a fixed clock and without caches."""
        home = home or self.home
        folders = {name: _moved(Path(path), self.author_home, home) for name, path in self.base.folders.items()}
        settings = {"home": home, "folders": folders, "cache_seconds": 0, "clock": lambda: CLOCK_MS, **changes}
        return replace(self.base, **settings)

    @cached_property
    def samples(self) -> list[Sampled]:
        """Every candidate of the sample home, parsed.

        Raises
        ------
        CannotCheck
            If there is none, which the check of what is found says.
        """
        config = self.config()
        found = [self._sampled(c, config) for c in scan_now(self.adapter, config)]
        if not found:
            raise CannotCheck("the scan finds no conversation in the sample home")
        return found

    def _sampled(self, candidate: Candidate, config: Config) -> Sampled:
        try:
            return Sampled(candidate, parse_now(self.adapter, candidate, config))
        except ParseError as error:
            return Sampled(candidate, None, str(error))

    @property
    def parsed(self) -> list[tuple[Candidate, Parsed]]:
        """The candidates whose parse gives something.

        Raises
        ------
        CannotCheck
            If there is none, which the check that samples parse says.
        """
        found = [(s.candidate, s.parsed) for s in self.samples if s.parsed is not None]
        if not found:
            raise CannotCheck(f"no sample can be parsed: {self.samples[0].error}")
        return found

    def line_files(self, limit: int = 3) -> list[tuple[Candidate, Parsed, bytes]]:
        """Samples that are files of JSON lines, with their bytes; those with the most kinds of records first.

        No text that a tool wrote for people, no compressed file and no document on one line is one.

        Raises
        ------
        CannotCheck
            If there is none.
        """
        found = [(c, p, Path(c.file_path).read_bytes()) for c, p in self.parsed if are_lines(c, p)]
        found = [one for one in found if _JSON_LINE.search(one[2])]
        if not found:
            raise CannotCheck("the samples are no files of JSON lines")
        found.sort(key=lambda item: (-len({(f.kind, f.status) for f in item[1].fates}), len(item[2])))
        return found[:limit]

    @contextmanager
    def mutant(self, candidate: Candidate, data: bytes) -> Iterator[tuple[Candidate, Config]]:
        """A home of its own in which the candidate's file holds other bytes."""
        with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
            home = Path(folder, "home")
            copy_home(self.home, home, link=True)
            path = _moved(Path(candidate.file_path), self.home, home)
            path.unlink()
            path.write_bytes(data)
            os.utime(path, ns=(_FILE_TIME_NS, _FILE_TIME_NS))
            yield msgspec.structs.replace(candidate, file_path=str(path), file_size=len(data)), self.config(home)

    @contextmanager
    def registered(self) -> Iterator[None]:
        """Have the adapter in the registry for a while, in the place of others of its name."""
        adapters.registered()
        before = dict(adapters._REGISTRY)
        adapters._REGISTRY[self.adapter.name] = self.adapter
        try:
            yield
        finally:
            adapters._REGISTRY.clear()
            adapters._REGISTRY.update(before)

    def parse_bytes(self, candidate: Candidate, data: bytes) -> Parsed:
        """What the parse makes of other bytes in the candidate's file."""
        with self.mutant(candidate, data) as (changed, config):
            return parse_now(self.adapter, changed, config)


def _moved(path: Path, old: Path, new: Path) -> Path:
    try:
        return new / path.relative_to(old)
    except ValueError:
        return path


def all_lines(fates: tuple[Fate, ...]) -> bool:
    """Tell whether each fate is that of a line of a text file.

    >>> all_lines((Fate("kept", "x", line=1, offset=0, size=3),)), all_lines(())
    (True, False)
    """
    return bool(fates) and all(f.line is not None and f.offset is not None and f.size is not None for f in fates)


_JSON_LINE = re.compile(rb"^\s*\{", re.MULTILINE)
_PACKED = (b"\x28\xb5\x2f\xfd", b"\x1f\x8b")
"""How zstd's and gzip's data begins."""


def are_lines(candidate: Candidate, parsed: Parsed) -> bool:
    """Tell whether the fates are those of the lines of the candidate's file as it stands."""
    if not all_lines(parsed.fates) or candidate.file_path.endswith(".json"):
        return False
    return not Path(candidate.file_path).read_bytes().startswith(_PACKED)


def lines_told(fates: tuple[Fate, ...], data: bytes) -> int:
    r"""How many records of lines the fates tell of; one fate can stand for a run of lines.

    >>> run = Fate("metadata", "other lines", line=2, offset=2, size=4)
    >>> lines_told((Fate("kept", "x", line=1, offset=0, size=2), run), b"a\nb\nc\n")
    3
    """
    starts = node_line_bounds(data)[0]
    spans = [(f.offset or 0, (f.offset or 0) + (f.size or 0)) for f in fates]
    return sum(max(1, bisect_left(starts, stop) - bisect_left(starts, start)) for start, stop in spans)


def digest(parsed: Parsed) -> str:
    """Content hash of what was parsed."""
    return content_hash(parsed.conversation)


def some(items: list[str]) -> str:
    """The first few of a list as text, and how many more there are.

    >>> some(["a", "b", "c", "d", "e"])
    'a, b, c, d and 1 more'
    """
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more


def copy_home(source: Path, target: Path, *, link: bool = False, backwards: bool = False) -> None:
    """Copy a home folder with its file times; as hard links where only one file is to change.

    Backwards, files and folders are made in the opposite order, which some file systems list them in.
    """
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(os.scandir(source), key=lambda e: e.name, reverse=backwards):
        path = target / entry.name
        if entry.is_dir():
            copy_home(Path(entry.path), path, link=link, backwards=backwards)
        elif link:
            _link(entry.path, path)
        elif entry.is_file():
            shutil.copy2(entry.path, path)


def _link(source: str, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
