"""Connections to stores, and copies of them in memory, laid out anew where another policy needs that."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crystal_nb.errors import StoreError
from crystal_nb.store_schema import Layout, columns_of, complete, migrate

__all__ = ["connect", "copy_database", "new_database", "reported"]

_BUSY_SECONDS = 5.0
_TABLES = ("conversations", "messages", "notes", "note_tags", "import_log", "vector_cleanup_tasks", "short_candidates")


def connect(database: str) -> sqlite3.Connection:
    """Open a database with foreign keys on; bad UTF-8 comes as U+FFFD."""
    connection = sqlite3.connect(database, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


@contextmanager
def reported(path: Path | str) -> Iterator[None]:
    """Turn SQLite's errors into `StoreError`."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(str(error), path=path) from error
    except UnicodeError as error:  # SQLite quotes a damaged schema as it is
        raise StoreError("malformed database schema", path=path) from error


def new_database(layout: Layout, now: str) -> sqlite3.Connection:
    """An empty database in memory."""
    connection = connect(":memory:")
    migrate(connection, layout, now)
    return connection


def copy_database(origin: sqlite3.Connection, layout: Layout | None, now: str) -> sqlite3.Connection:
    """Copy a database into memory.

    Without a change of layout everything comes along, also tables that only another program knows.
    """
    if layout is None or layout == Layout.found_in(origin):
        copy = connect(":memory:")
        origin.backup(copy)
        complete(copy)
    else:
        copy = new_database(layout, now)
        copy.execute("PRAGMA foreign_keys = OFF")
        for table in _TABLES:
            _copy_rows(origin, copy, table)
    (cascading,) = origin.execute("PRAGMA foreign_keys").fetchone()
    copy.execute(f"PRAGMA foreign_keys = {cascading}")
    return copy


def _copy_rows(origin: sqlite3.Connection, copy: sqlite3.Connection, table: str) -> None:
    """Copy the columns that both have; rows that meet in the new layout's key: the last one stays."""
    known = columns_of(origin, table)
    shared = [name for name in columns_of(copy, table) if name in known]
    if not shared:
        return
    fields = [f"t.{name}" for name in shared]
    from_ = f"{table} t"
    if "conversation_id" in known and "source" in columns_of(copy, table) and "source" not in known:
        shared, fields = [*shared, "source"], [*fields, "c.source"]
        from_ += " LEFT JOIN conversations c ON c.id = t.conversation_id"
    order = "ORDER BY t.rowid" if _has_rowid(origin, table) else ""
    rows = origin.execute(f"SELECT {', '.join(fields)} FROM {from_} {order}")
    marks = ", ".join("?" * len(shared))
    with copy:
        copy.execute("BEGIN")
        copy.executemany(f"INSERT OR REPLACE INTO {table} ({', '.join(shared)}) VALUES ({marks})", rows)


def _has_rowid(connection: sqlite3.Connection, table: str) -> bool:
    try:
        connection.execute(f"SELECT rowid FROM {table} LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True
