"""Where Cursor's bubbles are: one pass over the keys answers ``LIKE 'bubbleId:<id>:%'`` for every conversation.

The pinned importer scans the whole table for each conversation, which takes square time in all.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from crystal_nb.adapters import vscdb

__all__ = ["BubbleIndex", "bubble_index", "bubble_rows"]

_PLAIN_NAME = re.compile(r"[A-Za-z0-9 .@#+-]{0,200}")
"""Ids for which ``LIKE`` is a comparison of ASCII letters without case, so that the index answers."""
_PREFIX = len("bubbleId:")


class BubbleIndex(NamedTuple):
    """Where the bubbles of each conversation are, read from the keys alone."""

    names: list[str]
    """Ids as the pinned statement cuts them out, distinct, in key order (rule 9)."""
    groups: dict[bytes, array[int]]
    """Row ids by id in lower case."""

    def rowids(self, connection: sqlite3.Connection, name: str) -> list[int]:
        """Rows whose key is ``LIKE 'bubbleId:<name>:%'``, ascending.

        Raises
        ------
        ValueError
            If the id breaks the pinned parser's statement, into which it goes unquoted.
        """
        if _PLAIN_NAME.fullmatch(name):
            return sorted(self.groups.get(name.encode().lower(), ()))
        if "'" in name.replace("''", "") or "\0" in name:
            raise ValueError(f"the id {name!r} breaks the pinned parser's SQL statement")
        pattern = ("bubbleId:" + name.replace("''", "'") + ":%").encode("utf-8", "surrogatepass")
        query = "SELECT rowid FROM cursorDiskKV WHERE key LIKE CAST(? AS TEXT) ORDER BY rowid"
        return [rowid for (rowid,) in connection.execute(query, (pattern,))]


_last_index: tuple[Any, BubbleIndex] | None = None
_index_lock = threading.Lock()


def bubble_index(connection: vscdb.Connection, path: Path | str) -> BubbleIndex:
    """Index of a database; the last one is kept until the file changes, so that parsing all is linear.

    It is kept under the fingerprint from before the connection was opened: if the file is replaced
    meanwhile, the read is repeated with another one.
    """
    if connection.mark is None:
        return _index_bubbles(connection)
    global _last_index
    with _index_lock:
        mark = (str(path), connection.mark)
        if _last_index is None or _last_index[0] != mark:
            _last_index = (mark, _index_bubbles(connection))
        return _last_index[1]


def _index_bubbles(connection: sqlite3.Connection) -> BubbleIndex:
    names: dict[bytes, None] = {}
    groups: dict[bytes, array[int]] = {}
    for rowid, key in _bubble_keys(connection):
        name, colon, _ = vscdb.utf8(key)[_PREFIX:].partition(b":")
        names.setdefault(name if colon else b":")  # without a second colon SQLite cuts out the first one
        if colon:
            groups.setdefault(name.lower(), array("q")).append(rowid)
    return BubbleIndex([vscdb.decode(name) for name in names], groups)


def _bubble_keys(connection: sqlite3.Connection) -> Iterator[tuple[int, bytes]]:
    """Row id and key of every bubble in key order, from the key's index; the ranges keep ``agentKv`` out."""
    query = "SELECT rowid, key FROM cursorDiskKV WHERE key >= ? AND key < ? AND key LIKE 'bubbleId:%' ORDER BY key"
    for low, high in ("BC", "bc"):
        yield from connection.execute(query, (low, high))


def bubble_rows(connection: sqlite3.Connection, rowids: list[int]) -> Iterator[tuple[bytes, str, Any]]:
    """Key, SQLite type and value of rows, in row order."""
    query = """
        SELECT key, typeof(value), value FROM cursorDiskKV
        WHERE rowid IN (SELECT value FROM json_each(?)) ORDER BY rowid
    """
    for key, type, value in connection.execute(query, (json.dumps(rowids),)):
        yield key, type.decode(), value
