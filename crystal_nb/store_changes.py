"""Which rows of a database changed since it was remembered, found by the database itself."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from crystal_nb.store_schema import Layout

__all__ = ["Change", "changes_since", "remember"]

_PREFIX = "crystal_nb_before_"


class Change(Struct, frozen=True):
    """One row that differs."""

    table: str
    """Name of the table."""
    change: Literal["added", "changed", "removed", "stolen"]
    """``stolen``: a message that belonged to another conversation."""
    key: str
    """What identifies the row."""
    source: str | None
    """Source of the conversation that it belongs to, where the table says it."""
    conversation_id: str | None
    """Conversation that it belongs to; of a removed row, belonged to."""
    from_conversation: str | None = None
    """Conversation that a stolen message belonged to."""
    columns: tuple[str, ...] = ()
    """Columns with other values, of a row that changed."""


def _tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'"
        " AND upper(substr(ltrim(sql), 1, 14)) <> 'CREATE VIRTUAL'"
    )
    return [name for (name,) in found if name != "migrations"]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def remember(connection: sqlite3.Connection) -> None:
    """Keep every table's rows aside, in temporary tables.

    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
    >>> remember(connection)
    >>> _ = connection.execute("INSERT INTO t VALUES (1, 'x')")
    >>> [(c.table, c.change, c.key) for c in changes_since(connection, Layout(False, False))]
    [('t', 'added', '1')]
    """
    connection.execute("PRAGMA temp_store = MEMORY")
    for table in _tables(connection):
        connection.execute(f"CREATE TEMP TABLE {_quoted(_PREFIX + table)} AS SELECT * FROM {_quoted(table)}")


def changes_since(connection: sqlite3.Connection, layout: Layout) -> Iterator[Change]:
    """Compare with what `remember` kept, table after table."""
    for table in _tables(connection):
        info = connection.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
        keys = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
        now, before = _quoted(table), f"temp.{_quoted(_PREFIX + table)}"
        if keys:
            new, old = (_by_key(_only_in(connection, *pair), keys) for pair in ((now, before), (before, now)))
            for key in new.keys() | old.keys():
                yield _change(table, key, old.get(key), new.get(key), layout)
        else:
            yield from _changes_of_bag(table, connection, now, before, layout)


def _only_in(connection: sqlite3.Connection, one: str, other: str) -> sqlite3.Cursor:
    return connection.execute(f"SELECT * FROM {one} EXCEPT SELECT * FROM {other}")


def _changes_of_bag(
    table: str, connection: sqlite3.Connection, now: str, before: str, layout: Layout
) -> Iterator[Change]:
    """Rows without a key can stand there several times."""
    cursor = connection.execute(f"SELECT * FROM {now}")
    names, new = _names(cursor), Counter(cursor)
    old = Counter(connection.execute(f"SELECT * FROM {before}"))
    for values, number in ((new - old) | (old - new)).items():
        row = dict(zip(names, values, strict=True))
        was, is_ = (None, row) if new[values] > old[values] else (row, None)
        yield from (_change(table, values, was, is_, layout) for _ in range(number))


def _names(cursor: sqlite3.Cursor) -> list[str]:
    return [column[0] for column in cursor.description]


_Row = dict[str, Any]


def _by_key(rows: sqlite3.Cursor, keys: list[str]) -> dict[tuple[Any, ...], _Row]:
    """Rows by primary key; by all their values where null is in it."""
    found, columns = {}, _names(rows)
    for values in rows:
        row = dict(zip(columns, values, strict=True))
        key = tuple(row[name] for name in keys)
        found[values if None in key else key] = row
    return found


def _change(table: str, key: tuple[Any, ...], old: _Row | None, new: _Row | None, layout: Layout) -> Change:
    row = new or old or {}
    text = ":".join("" if part is None else str(part) for part in key)
    owner = row.get("conversation_id", row.get("id") if table == "conversations" else None)
    if old is None or new is None:
        return Change(table, "added" if old is None else "removed", text, row.get("source"), owner)
    differing = tuple(name for name in new if new[name] != old[name])
    if table == "messages" and any(name in differing for name in layout.owner):
        return Change(table, "stolen", text, row.get("source"), owner, old["conversation_id"], differing)
    return Change(table, "changed", text, row.get("source"), owner, None, differing)
