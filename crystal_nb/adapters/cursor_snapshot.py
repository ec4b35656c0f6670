"""Reading one of Cursor's databases with its write-ahead log, many times at the cost of one copy.

`vscdb.read` copies a database that has a log for each question. For a file of gigabytes that is too
much, so what the careful rules read of it goes once into a private file, which answers until the
state of the original changes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from crystal_nb.adapters import vscdb
from crystal_nb.config import Config

__all__ = ["Mark", "ask", "last_change_ns", "mark_of", "total_size"]

T = TypeVar("T")
Query = Callable[[vscdb.Connection], T]

_SALTS = 32


class Mark(NamedTuple):
    """Changes when a database does, its logs included."""

    path: str
    main: vscdb.Fingerprint
    log: tuple[int, int, bytes] | None
    journal: tuple[int, int] | None


def mark_of(path: str | os.PathLike[str], *, logs: bool = True) -> Mark:
    """The state that a database is in; raises ``OSError`` as `vscdb.fingerprint`."""
    main = Path(path).resolve()
    log = _stat(Path(f"{main}-wal")) if logs else None
    journal = _stat(Path(f"{main}-journal")) if logs else None
    start = vscdb.header(f"{main}-wal", _SALTS) if log else b""
    return Mark(str(main), vscdb.fingerprint(main), log and (*log, start), journal)


def _stat(path: Path) -> tuple[int, int] | None:
    """Size and time of a file; None when there is none, or an empty one."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return (status.st_size, status.st_mtime_ns) if status.st_size else None


def total_size(mark: Mark) -> int:
    """Bytes of the database and its write-ahead log."""
    return mark.main.size + (mark.log[0] if mark.log else 0)


def last_change_ns(mark: Mark) -> int:
    """When the database or its log was written last."""
    return max(mark.main.mtime_ns, mark.log[1] if mark.log else 0)


class _Extract:
    """A private file with what was read of a database; gone when nobody holds it any more."""

    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        folder = tempfile.mkdtemp(prefix="crystal-nb-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.file = Path(folder, "extract.vscdb")
        vscdb.read(mark.path, lambda connection: _copy_into(connection, self.file), wal=True)
        self.made = time.monotonic()


_last: _Extract | None = None
_lock = threading.Lock()


def ask(path: str | os.PathLike[str], query: Query[T], config: Config, *, logs: bool = True) -> T:
    """`vscdb.read` with the log, or without it.

    Raises
    ------
    OSError, sqlite3.DatabaseError
        As `vscdb.read`.
    """
    mark = mark_of(path, logs=logs)
    if mark.log is None and mark.journal is None:
        return vscdb.read(path, query, wal=logs)
    extract = _extract(mark, config)  # held, as it lives no longer
    return vscdb.read(extract.file, query)


def _extract(mark: Mark, config: Config) -> _Extract:
    """The private file for a state; a writer at work makes a new one every ``cache_seconds`` at most."""
    global _last
    with _lock:
        if _last is None or not _last.file.exists() or not _serves(_last, mark, config):
            _last = _Extract(mark)
        return _last


def _serves(known: _Extract, mark: Mark, config: Config) -> bool:
    is_young = time.monotonic() - known.made < config.cache_seconds
    return known.mark == mark or (known.mark.path == mark.path and is_young)


_VALUES = ("composerData:", "bubbleId:", "messageRequestContext:")


def _copy_into(connection: vscdb.Connection, file: Path) -> None:
    """Copy what the careful rules read; of other families the keys alone, of file contents nothing."""
    file.unlink(missing_ok=True)
    tables = {name.decode() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.execute("PRAGMA query_only=0")  # only the private file is written
    connection.execute("ATTACH ? AS extract", (str(file),))
    try:
        connection.execute("PRAGMA extract.journal_mode=OFF")
        connection.execute("PRAGMA extract.synchronous=OFF")
        for table in tables & {"ItemTable", "composerHeaders"}:
            connection.execute(f"CREATE TABLE extract.{table} AS SELECT * FROM main.{table}")
        if "cursorDiskKV" in tables:
            _copy_rows(connection)
    finally:
        connection.execute("DETACH extract")
        connection.execute("PRAGMA query_only=1")


def _copy_rows(connection: vscdb.Connection) -> None:
    wanted = " OR ".join("(key >= ? AND key < ?)" for _ in _VALUES)
    ranges: list[Any] = [edge for prefix in _VALUES for edge in (prefix, prefix[:-1] + ";")]
    connection.execute("CREATE TABLE extract.cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    connection.execute(
        f"""
        INSERT INTO extract.cursorDiskKV (rowid, key, value)
        SELECT rowid, key, CASE WHEN {wanted} THEN value END FROM main.cursorDiskKV
        WHERE NOT (key >= 'agentKv:blob:' AND key < 'agentKv:blob;')
        """,
        ranges,
    )
