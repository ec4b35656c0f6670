"""What an adapter is, and the pieces that all of them share."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import re
import stat
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.config import Config
from crystal_nb.errors import CrystalError, DetectError, ParseError, ScanError, SourceError
from crystal_nb.records import Candidate, Conversation, Fate, FateStatus, Message, SourceInfo, said

__all__ = ["Adapter", "Parsed", "Rules", "SourceAdapter"]

T = TypeVar("T")


class Parsed(Struct, frozen=True):
    """Result of one parse: the conversation and the fate of every raw record, in reading order."""

    conversation: Conversation
    fates: tuple[Fate, ...]


class Rules(Struct, frozen=True):
    """A released set of parsing rules; adapters may add fields, code asks fields and never the version."""

    version: str
    """Such as ``codex@1``."""


@runtime_checkable
class SourceAdapter(Protocol):
    """What the importer needs of an adapter. `Adapter` is the ready-made one."""

    @property
    def name(self) -> str: ...
    @property
    def display_name(self) -> str: ...
    @property
    def parser_version(self) -> str: ...
    async def detect(self, config: Config) -> SourceInfo | None: ...
    async def scan(self, config: Config) -> list[Candidate]: ...
    async def parse(self, candidate: Candidate, config: Config) -> Parsed: ...


@dataclass(frozen=True)
class Adapter:
    """An adapter made of plain functions.

    `detect` and `scan` run them in a worker thread, so that several adapters look at once; `parse`
    runs in place, and the importer keeps it off anybody's event loop.

    Parameters
    ----------
    name, display_name
        Name in frames and hashes, and for people.
    root
        Gives the data folder for a configuration.
    count
        Conversations for `detect`; 0 means that the tool is not there. An ``OSError`` means the same:
        the pinned rules answer "nothing" to any error here.
    candidates
        Lists the candidates; an ``OSError`` or ``ValueError`` fails the scan as a whole.
    read
        Parses one candidate; an ``OSError`` becomes a `ParseError`.
    rules
        The parsing rules in force.
    document
        Gives, for a file and the rules, the value that the JSON pointers of its fates lead into; None: the
        file's own JSON.
    """

    name: str
    display_name: str
    root: Callable[[Config], Path]
    count: Callable[[Path, Config], int]
    candidates: Callable[[Path, Config], list[Candidate]]
    read: Callable[[Candidate, Any, Config], Parsed]
    rules: Rules
    document: Callable[[Path, Any], Any] | None = field(default=None, kw_only=True)

    @property
    def parser_version(self) -> str:
        """Version of the rules, such as ``codex@1``."""
        return self.rules.version

    async def detect(self, config: Config) -> SourceInfo | None:
        """Look whether the tool's folder holds conversations; None when not."""
        return await asyncio.to_thread(self._detect, config)

    async def scan(self, config: Config) -> list[Candidate]:
        """List the candidates; raises `ScanError` as a whole."""
        return await asyncio.to_thread(self._scan, config)

    async def parse(self, candidate: Candidate, config: Config) -> Parsed:
        """Parse one candidate; raises nothing but `ParseError`."""
        return self._parse(candidate, config)

    def _folder(self, config: Config, problem: type[SourceError]) -> Path:
        """The data folder; whatever the function for it raises or gives instead is told by the adapter's name."""
        try:
            return Path(self.root(config))
        except CrystalError:
            raise
        except (Exception, SystemExit) as error:
            reason = f"root gives none: {type(error).__name__}: {said(error)}"
            raise problem(reason, source=self.name, path="the data folder") from error

    def _detect(self, config: Config) -> SourceInfo | None:
        root = self._folder(config, DetectError)
        try:
            count = self.count(root, config)
        except OSError:
            return None
        except SourceError as error:
            raise DetectError(error.reason, source=self.name, path=error.path) from error
        except CrystalError as error:
            raise DetectError(str(error), source=self.name, path=root) from error
        return SourceInfo(self.name, self.display_name, str(root), count) if count else None

    def _scan(self, config: Config) -> list[Candidate]:
        root = self._folder(config, ScanError)
        try:
            return self.candidates(root, config)
        except (OSError, ValueError, RecursionError) as error:
            raise ScanError(_reason(error), source=self.name, path=getattr(error, "filename", None) or root) from error

    def _parse(self, candidate: Candidate, config: Config) -> Parsed:
        if not isinstance(candidate.file_path, str):
            raise ParseError("the candidate names no file", source=self.name, path=candidate.file_path)
        try:
            return self.read(candidate, self.rules, config)
        except (OSError, ValueError) as error:  # a ValueError: NUL in a path
            raise ParseError(_reason(error), source=self.name, path=candidate.file_path) from error
        except RecursionError as error:
            reason = "a value is nested deeper than Python can follow"
            raise ParseError(reason, source=self.name, path=candidate.file_path) from error


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class TimedCache(Generic[T]):
    """Keeps the last result per key for some seconds, counted from its completion.

    As pinned: a call in flight is not shared, so two callers at once both do the work.
    """

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[float, T]] = {}

    def get(
        self, key: Hashable, seconds: float, make: Callable[[], T], *, keep: Callable[[T], bool] | None = None
    ) -> T:
        """Return the kept result, or make one; ``keep`` can refuse to store it."""
        entry = self._entries.get(key)
        if entry is not None and time.monotonic() - entry[0] < seconds:
            return entry[1]
        value = make()
        if seconds > 0 and (keep is None or keep(value)):
            self._entries[key] = (time.monotonic(), value)
        return value

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()


file_type: type[io.FileIO] = io.FileIO
"""What `open_file` makes; an audit puts one that counts in its place."""


def open_file(path: str | os.PathLike[str]) -> io.FileIO:
    """Open a regular file for reading, unbuffered; a pipe in its place would wait for a writer.

    Raises
    ------
    OSError
        If it is missing, unreadable, or no regular file.
    """
    file = file_type(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)))
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISREG(mode):
        return file
    file.close()
    code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    raise OSError(code, os.strerror(code) if code == errno.EISDIR else "not a regular file", str(path))


def read_file(path: str | os.PathLike[str]) -> bytes:
    """All bytes of a regular file; raises as `open_file`."""
    with open_file(path) as file:
        return file.readall()


def list_names(folder: Path | str) -> list[str]:
    """Names in a folder in byte order, as Node lists them.

    A name that is no UTF-8 comes with U+FFFD, as in Node, and so is not found afterwards.
    """
    names = sorted(os.fsencode(name) for name in os.listdir(folder))
    return [name.decode("utf-8", "replace") for name in names]


def file_candidate(source: str, id: str, path: Path | str, stat: os.stat_result, project_dir: str) -> Candidate:
    """A candidate whose size and time are the file's own."""
    mtime = ecma.iso_time(ecma.file_time_ms(stat.st_mtime_ns))
    return Candidate(source, id, str(path), stat.st_size, mtime, project_dir)


FENCE = "```"


def has_fence(text: str) -> bool:
    """Tell whether a text holds three backticks; most hold none at all, which shows faster.

    >>> has_fence("a `b`"), has_fence("```")
    (False, True)
    """
    return "`" in text and FENCE in text


_SLASHES = re.compile(r"[\\/]+")


def last_path_part(project_dir: str) -> str:
    r"""Last non-empty part of a path with either slash, or the text itself when there is none.

    >>> last_path_part("C:\\w\\app\\"), last_path_part("/"), last_path_part("")
    ('app', '/', '')
    """
    parts = [part for part in _SLASHES.split(project_dir) if part]
    return parts[-1] if parts else project_dir


Outcome = tuple[FateStatus, str, str | None, int | None]
"""What a rule made of one record: status, kind, reason and message position of its `Fate`."""


@dataclass
class Draft:
    """Messages and fates in reading order, until they are put into the order of time."""

    config: Config
    messages: list[Message] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)

    def now(self) -> str:
        """The clock's time as ISO text, for a record that has none."""
        return ecma.iso_time(self.config.clock())

    def by_time(self) -> tuple[Message, ...]:
        """Sort the messages stably by time; fates follow their messages."""
        order = ecma.date_order([m.timestamp for m in self.messages])
        if order is None:
            return tuple(self.messages)
        place = {old: new for new, old in enumerate(order)}
        self.fates = [
            f if f.message_index is None else replace(f, message_index=place[f.message_index]) for f in self.fates
        ]
        return tuple(self.messages[old] for old in order)

    def span(self, messages: tuple[Message, ...]) -> tuple[Any, Any]:
        """Times of the first and the last message, the clock's when there is none."""
        if not messages:
            return self.now(), self.now()
        return messages[0].timestamp, messages[-1].timestamp
