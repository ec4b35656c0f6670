"""Counting what an adapter does to files and databases: a layer that is switched on for a measurement.

Opened files, listed folders and copies are seen by Python's audit events, bytes by a counting file
type in ``adapters.base.open_file``, queries by SQLite's own callbacks on each connection of
``adapters.vscdb``. (Sizes and times of files are looked at without an event, so they are not counted.)
"""

from __future__ import annotations

import io
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from crystal_nb.adapters import base, vscdb
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.config import Config
from crystal_nb.discovery import data_folder

__all__ = ["Counts", "counted", "watched_places"]

_CODE = (".py", ".pyc", ".so", ".pyd", ".dll")
_STEPS = 1000


class Counts(Struct):
    """What was done so far.

    Attributes
    ----------
    conversations : int
        Conversations counted, listed or parsed.
    seconds : float
        Wall-clock time.
    files_opened, bytes_read, folders_listed : int
        Below the folders that are watched; bytes by reading and copying.
    databases_opened, queries, steps : int
        SQLite connections, statements, and thousands of its machine's steps.
    """

    conversations: int = 0
    seconds: float = 0.0
    files_opened: int = 0
    bytes_read: int = 0
    folders_listed: int = 0
    databases_opened: int = 0
    queries: int = 0
    steps: int = 0


class _Watch:
    counts: Counts | None = None
    places: tuple[str, ...] = ()
    is_installed = False


_watch = _Watch()
_one_at_a_time = threading.Lock()


@contextmanager
def counted(counts: Counts, places: Iterable[str | os.PathLike[str]]) -> Iterator[Counts]:
    """Count while the block runs; what goes on in other threads below the same folders counts, too.

    Parameters
    ----------
    counts
        Where to add.
    places
        Folders that are watched.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"12345")
    ...     file.flush()
    ...     with counted(Counts(), [tempfile.gettempdir()]) as counts:
    ...         _ = base.read_file(file.name)
    >>> counts.files_opened, counts.bytes_read
    (1, 5)
    """
    with _one_at_a_time:
        if not _watch.is_installed:
            sys.addaudithook(_hear)  # can't be taken out again, so it asks a flag
            _watch.is_installed = True
        _watch.places = tuple({look(place) for place in places for look in (os.path.abspath, os.path.realpath)})
        before = base.file_type, vscdb.on_connect
        base.file_type, vscdb.on_connect = _CountingFile, _connected
        started = time.perf_counter()
        _watch.counts = counts
        try:
            yield counts
        finally:
            _watch.counts = None
            counts.seconds += time.perf_counter() - started
            base.file_type, vscdb.on_connect = before


def watched_places(adapter: SourceAdapter, config: Config) -> list[str]:
    """Folders of an adapter and the home.

    >>> from crystal_nb.adapters import get_adapter
    >>> len(watched_places(get_adapter("codex"), Config(home="/tmp")))
    2
    """
    folder = data_folder(adapter, config)
    return [str(config.home_path), *([folder] if folder else [])]


def _hear(event: str, args: tuple[Any, ...]) -> None:
    counts = _watch.counts
    if counts is None:
        return
    if event == "open":
        counts.files_opened += _is_watched(args[0])
    elif event in ("os.listdir", "os.scandir"):
        counts.folders_listed += _is_watched(args[0])
    elif event == "shutil.copyfile" and _is_watched(args[0]):
        _watch.counts = None  # getsize must not be heard
        try:
            counts.bytes_read += os.path.getsize(args[0])
        except OSError:
            pass
        finally:
            _watch.counts = counts


def _is_watched(path: Any) -> bool:
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    name = os.path.abspath(os.fsdecode(path))
    return name.startswith(_watch.places) and not name.endswith(_CODE)


class _CountingFile(io.FileIO):
    def read(self, size: int | None = -1, /) -> Any:
        return _counted(super().read(-1 if size is None else size))

    def readall(self) -> Any:
        return _counted(super().readall())

    def readinto(self, buffer: Any, /) -> Any:
        got = super().readinto(buffer)
        if _watch.counts is not None:
            _watch.counts.bytes_read += got or 0
        return got


def _counted(data: bytes | None) -> bytes | None:
    if _watch.counts is not None:
        _watch.counts.bytes_read += len(data or b"")
    return data


def _connected(connection: sqlite3.Connection) -> None:
    counts = _watch.counts
    if counts is not None:
        counts.databases_opened += 1
        connection.set_trace_callback(lambda _: _add(counts, "queries"))
        connection.set_progress_handler(lambda: _add(counts, "steps"), _STEPS)


def _add(counts: Counts, name: str) -> int:
    setattr(counts, name, getattr(counts, name) + 1)
    return 0
