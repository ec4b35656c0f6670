"""Opening and creating stores: what a file is, and what may be done with it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

from crystal_nb import ecma, store_schema
from crystal_nb.adapters import vscdb
from crystal_nb.config import Config, checked
from crystal_nb.errors import StoreError
from crystal_nb.policy import Policy, policy_of
from crystal_nb.store import Store
from crystal_nb.store_copy import connect, reported
from crystal_nb.store_schema import Layout

__all__ = ["open_store"]

_SQLITE_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100


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
        A database of this package, a ChatCrystal database, or a file that is not there yet.
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
    path, config = Path(path), checked(config)
    policy = policy_of(profile)
    kind = _kind(path)
    if kind == "other" or (kind == "own" and read_only):
        return _open_copy(path, config)
    if read_only:
        raise StoreError("there is no such database", path=path)
    return Store(path, _open_own(path, Layout.of(policy), config), config=config)


def _kind(path: Path) -> str:
    """``new``, ``own`` or ``other``, by the file's header."""
    try:
        header = vscdb.header(path, _HEADER_BYTES)
    except FileNotFoundError:
        return "new"
    except OSError as error:
        raise StoreError(error.strerror or str(error), path=path) from error
    if not header:
        return "new"
    if not header.startswith(_SQLITE_MAGIC):
        raise StoreError("this is no SQLite database", path=path)
    return "own" if int.from_bytes(header[68:72], "big") == store_schema.APPLICATION_ID else "other"


def _open_own(path: Path, wanted: Layout, config: Config) -> sqlite3.Connection:
    """Open or create a database; also one whose creation was cut short is laid out as wanted."""
    with reported(path):
        connection = connect(str(path))
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version > store_schema.VERSION:
                known = store_schema.VERSION
                raise StoreError(f"its version is {version}, newer than {known}, the last one known here", path=path)
            layout = Layout.found_in(connection) if store_schema.columns_of(connection, "messages") else wanted
            store_schema.migrate(connection, layout, ecma.iso_time(config.clock()))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection


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
    for table in ("conversations", "messages"):
        if not {"id", "source" if table == "conversations" else "conversation_id"} <= set(
            store_schema.columns_of(connection, table)
        ):
            raise StoreError(f"this is no database of imported conversations: no fitting table {table}", path=path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == store_schema.APPLICATION_ID and version > store_schema.VERSION:
        raise StoreError(
            f"its version is {version}, newer than {store_schema.VERSION}, the last one known here", path=path
        )
