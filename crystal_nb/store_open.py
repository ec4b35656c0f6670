"""Opening and creating stores: what a file is, and what may be done with it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path

from crystal_nb import ecma, store_schema
from crystal_nb.adapters import vscdb
from crystal_nb.config import Config, checked
from crystal_nb.errors import StoreError
from crystal_nb.policy import Policy, policy_of
from crystal_nb.store import Store
from crystal_nb.store_copy import connect, reported
from crystal_nb.store_schema import Layout

__all__ = ["expanded", "open_store"]

_SQLITE_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_ATTEMPTS, _PAUSE_SECONDS = 100, 0.05


def open_store(
    path: str | os.PathLike[str],
    *,
    profile: str | Policy = "chatcrystal",
    read_only: bool = False,
    config: Config | None = None,
) -> Store:
    """Open a store, or create it.

    Parameters
    ----------
    path
        A database of this package, a ChatCrystal database, or a file that is not there yet; "~" is the home folder.
    profile
        Whose rules a new store's rows follow; an existing one keeps its own layout.
    read_only
        Open a copy of what is there. A ChatCrystal database is always opened like that: it is read as
        it is now, with its write-ahead log, and never altered or locked.
    config
        Its clock gives the times that are written.

    Returns
    -------
    Store
        To be closed, or used in a ``with`` block.

    Raises
    ------
    StoreError
        If the file is no database, one of another kind, of a newer version, damaged or locked.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open_store(Path(folder, "imports.db")) as store:
    ...     store.conversations().height, store.read_only
    (0, False)
    """
    path, config = expanded(path), checked(config)
    policy = policy_of(profile)
    kind = _kind(path)
    if kind == "other" or (kind == "own" and read_only):
        return _open_copy(path, config)
    if read_only:
        raise StoreError("there is no such database", path=path)
    return Store(path, _open_own(path, Layout.of(policy), config), config=config)


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path whose ``~`` is the home folder, where there is one to tell.

    >>> expanded("imports.db").name
    'imports.db'
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _kind(path: Path) -> str:
    """``new``, ``own`` or ``other``, by the file's header."""
    try:
        header = vscdb.header(path, _HEADER_BYTES)
    except FileNotFoundError:
        return "new"
    except (OSError, ValueError) as error:  # a ValueError: NUL in the path
        raise StoreError(getattr(error, "strerror", None) or str(error), path=path) from error
    if not header:
        return "new"
    if not header.startswith(_SQLITE_MAGIC):
        raise StoreError("this is no SQLite database", path=path)
    return "own" if int.from_bytes(header[68:72], "big") == store_schema.APPLICATION_ID else "other"


def _open_own(path: Path, wanted: Layout, config: Config) -> sqlite3.Connection:
    """Open or create a database; also one whose creation was cut short is laid out as wanted."""
    with reported(path):
        connection = connect(os.path.abspath(path))
        try:
            _check_version(connection, path)
            layout = Layout.found_in(connection) if store_schema.columns_of(connection, "messages") else wanted
            store_schema.migrate(connection, layout, ecma.iso_time(config.clock()))
            _write_ahead(connection)
            _check_tables(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; SQLite does not wait by itself when another process does the same."""
    for attempt in range(_ATTEMPTS, 0, -1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if attempt == 1:
                raise
            time.sleep(_PAUSE_SECONDS)
    connection.execute("PRAGMA synchronous = FULL")


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    version, known = store_schema.version_of(connection), store_schema.VERSION
    if version > known:
        raise StoreError(f"its version is {version}, newer than {known}, the last one known here", path=path)
    if version < 0:
        raise StoreError(f"its version is {version}, which is none", path=path)


def _open_copy(path: Path, config: Config) -> Store:
    """Copy a database as it is now to a private folder and open that."""
    folder = tempfile.mkdtemp(prefix="crystal-nb-")
    try:
        with reported(path):
            connection = connect(str(Path(folder, "copy.db")))
            try:
                vscdb.read(path, lambda there: there.backup(connection), wal=True)
                _check_tables(connection, path)
                connection.execute("PRAGMA query_only = 1")
            except BaseException:
                connection.close()
                raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Store(path, connection, config=config, read_only=True, folder=folder)


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database without the two tables that everything else is about."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for table, columns in (("conversations", {"id", "source"}), ("messages", {"id", "conversation_id"})):
        if table not in tables or not columns <= set(store_schema.columns_of(connection, table)):
            raise StoreError(f"this is no database of imported conversations: no fitting table {table}", path=path)
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == store_schema.APPLICATION_ID:
        _check_version(connection, path)
