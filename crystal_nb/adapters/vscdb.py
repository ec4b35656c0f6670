"""Read-only access to the SQLite databases of VS Code-like tools, which disturbs nobody.

Nothing is created, locked or changed beside the tool's file. Two views of a database:

- without its write-ahead log, what the pinned importer sees: opened as immutable, so SQLite takes no
  lock and leaves no ``-wal`` and ``-shm`` behind;
- with it, what the tool itself sees: main file and log are copied to a private folder and opened there.

Source: ``formats/cursor.md`` rules P1, P2 and section 5.1.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from crystal_nb.adapters.base import open_file

__all__ = ["Fingerprint", "decode", "fingerprint", "header", "read", "utf8"]

T = TypeVar("T")
StrPath = str | os.PathLike[str]
Query = Callable[["Connection"], T]

RETRY_SECONDS = 0.5
"""How long to wait before the one retry of a failed read (rule P2)."""
_ATTEMPTS = 3
_COPY_ATTEMPTS = 20
_PAUSE_SECONDS = 0.02
_IN_PLACE = "mode=ro&immutable=1"
_BOM = b"\xef\xbb\xbf"
_TABLES = ("itemtable", "cursordiskkv", "composerheaders", "blobs", "meta")
on_connect: Callable[[sqlite3.Connection], None] | None = None
"""Called with each new connection; an audit counts queries by it."""


class Fingerprint(NamedTuple):
    """Changes when the main file does: SQLite's own counter catches what the clock is too coarse for."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    change_counter: bytes


class Connection(sqlite3.Connection):
    """A connection that knows which state of the file it reads."""

    mark: Fingerprint | None = None
    """The file's fingerprint before it was opened; what is kept under it is right if the read is accepted."""


def fingerprint(path: StrPath) -> Fingerprint:
    """Fingerprint of a database's main file.

    Raises
    ------
    OSError
        If it is missing, no regular file, or unreadable.
    """
    with open_file(path) as file:
        status = os.fstat(file.fileno())
        return Fingerprint(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, file.read(28)[24:])


def header(path: StrPath, size: int) -> bytes:
    """First bytes of a file; raises as `fingerprint`."""
    with open_file(path) as file:
        return file.read(size) or b""


def read(path: StrPath, query: Query[T], *, wal: bool = False) -> T:
    """Run a query and return what it returns.

    The query may run several times, since it is repeated when the file changes meanwhile; text comes
    to it as ``bytes`` (see `utf8` and `decode`).

    Parameters
    ----------
    path
        The database's main file.
    query
        Takes the connection and returns finished results, nothing that still reads from it.
    wal
        Whether to see what is still in the write-ahead log, and to roll back what a journal says.

    Raises
    ------
    OSError
        If a file is missing or can't be read, also half a second later.
    sqlite3.DatabaseError
        If it is no sound database or lacks what the query asks for; an empty file counts as a
        database without tables.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "state.vscdb")
    ...     with closing(sqlite3.connect(file)) as connection:
    ...         _ = connection.execute("CREATE TABLE ItemTable (key TEXT, value BLOB)")
    ...     read(file, lambda c: c.execute("SELECT count(*) FROM ItemTable").fetchone())
    (0,)
    """
    view = _read_with_log if wal else _read_main
    try:
        return view(path, query)
    except OSError:
        time.sleep(RETRY_SECONDS)
        return view(path, query)


def _read_main(path: StrPath, query: Query[T]) -> T:
    for _ in range(_ATTEMPTS - 1):
        before = fingerprint(path)
        for result in _ask_unchanged(path, query, before, before, fingerprint):
            return result
        time.sleep(_PAUSE_SECONDS)
    fingerprint(path)
    return _ask(_uri(path, _IN_PLACE), query)  # a torn read is what the pinned importer would have, too


def _read_with_log(path: StrPath, query: Query[T]) -> T:
    fingerprint(path)
    main = Path(path).resolve()  # SQLite too looks for the logs beside what a link points to
    for _ in range(_COPY_ATTEMPTS):
        before = _state(main)
        if before.log is None and before.journal is None:
            for result in _ask_unchanged(main, query, before.main, before, _state):
                return result
        else:
            with _copied(main, before) as copy:
                if copy is not None:
                    return _ask(_uri(copy, "mode=rw"), query)
        time.sleep(_PAUSE_SECONDS)
    raise sqlite3.OperationalError("the database changed during every attempt to copy it")


def _ask_unchanged(
    path: StrPath, query: Query[T], mark: Fingerprint, before: object, look: Callable[[StrPath], object]
) -> list[T]:
    """The one result, or none when the file looks different afterwards, whatever came of the query."""
    try:
        result = _ask(_uri(path, _IN_PLACE), query, mark)
    except sqlite3.DatabaseError:
        if look(path) == before:
            raise
        return []
    return [result] if look(path) == before else []


class _State(NamedTuple):
    main: Fingerprint
    log: bytes | None
    """Header of the write-ahead log, whose salts change when it starts over; None: no log."""
    journal: tuple[int, int] | None
    """Size and time of the rollback journal; None: none, or an empty one."""


def _state(main: StrPath) -> _State:
    return _State(fingerprint(main), _log_header(main), _journal_mark(main))


def _log_header(main: StrPath) -> bytes | None:
    try:
        with open_file(f"{main}-wal") as file:
            return file.read(32) or None
    except FileNotFoundError:
        return None


def _journal_mark(main: StrPath) -> tuple[int, int] | None:
    try:
        status = os.stat(f"{main}-journal")
    except FileNotFoundError:
        return None
    return (status.st_size, status.st_mtime_ns) if status.st_size else None


@contextmanager
def _copied(main: Path, before: _State) -> Iterator[Path | None]:
    """Copy a database with its log or journal to a private folder; None when the copy may be torn.

    While a write-ahead log does not start over, all that moves from it into the main file stays in it
    too, so main file first, then log, fit together however busy the writer is. A journal gives no
    such warranty: there nothing may have changed.
    """
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        copy = Path(folder, "state.vscdb")
        try:
            shutil.copyfile(main, copy)
            for suffix, present in (("-wal", before.log), ("-journal", before.journal)):
                if present is not None:
                    shutil.copyfile(f"{main}{suffix}", f"{copy}{suffix}")
            sound = _log_header(copy) == before.log if before.journal is None else _state(main) == before
        except FileNotFoundError:
            sound = False
        yield copy if sound else None


def _uri(path: StrPath, options: str) -> str:
    return f"{Path(path).resolve().as_uri()}?{options}"


def _ask(uri: str, query: Query[T], mark: Fingerprint | None = None) -> T:
    connecting = sqlite3.connect(uri, uri=True, timeout=5, isolation_level=None, factory=Connection)
    with closing(connecting) as connection:
        connection.mark = mark
        connection.text_factory = bytes
        _refuse_views(connection)
        if on_connect is not None:
            on_connect(connection)
        connection.execute("PRAGMA query_only=1")
        return query(connection)


def _refuse_views(connection: sqlite3.Connection) -> None:
    """A view in place of a table could make a query run for ever."""
    names = ", ".join(f"'{name}'" for name in _TABLES)
    query = f"SELECT name FROM sqlite_master WHERE type = 'view' AND lower(name) IN ({names})"
    for (name,) in connection.execute(query):
        raise sqlite3.DatabaseError(f"{name.decode('utf-8', 'replace')} is a view, where a table is expected")


def utf8(text: bytes) -> bytes:
    r"""Bytes of a text as the pinned importer's SQLite hands them out: cut at NUL, without a leading BOM.

    >>> utf8(b"\xef\xbb\xbfab\x00c")
    b'ab'
    """
    return text.partition(b"\0")[0].removeprefix(_BOM)


def decode(text: bytes) -> str:
    r"""Text as the pinned importer's SQLite gives it; bad bytes become U+FFFD.

    >>> decode(b"a\xff\x00c")
    'a\ufffd'
    """
    return utf8(text).decode("utf-8", "replace")
