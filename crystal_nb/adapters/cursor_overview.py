"""What a Cursor database holds, conversation by conversation, from one pass over its indexed keys.

Source: ``formats/cursor.md`` sections 2, 2.1 and 2.2.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, NamedTuple

from msgspec import Raw, Struct, field

from crystal_nb.adapters import vscdb
from crystal_nb.adapters.cursor_places import workspace_place
from crystal_nb.adapters.cursor_rules import CursorRules
from crystal_nb.adapters.cursor_snapshot import Mark, ask, mark_of
from crystal_nb.adapters.cursor_values import dicts, json_of, list_of, members, raw_of, string, time_of
from crystal_nb.adapters.typed import TypedDecoder, raw_bytes
from crystal_nb.adapters.vscode import item
from crystal_nb.config import Config

__all__ = ["Composer", "Overview", "key_ranges", "overview"]

_EMPTY = (b"", b"[]", b"{}", b"null")
_MANY_KEYS = ("composer.content.", "inlineDiffs-")
"""Families whose keys have no colon: one range each, as every key would count as a family."""


class Composer(Struct):
    """What is known of a conversation without its bodies."""

    title: str | None = None
    created: Any = None
    updated: Any = None
    workspace_id: str | None = None
    project: str = ""
    has_row: bool = False
    has_body: bool = False
    parent: str | None = None
    evidence: str = ""
    is_subagent: bool | None = None


class Overview(NamedTuple):
    """All conversations of the global database."""

    composers: dict[str, Composer]
    """By id: those that the headers name, then the others in key order."""
    families: tuple[str, ...]
    """What stands before the first colon of the keys."""


class _Row(Struct, gc=False, rename="camel"):
    name: Any = None
    created_at: Any = None
    last_updated_at: Any = None
    conversation: Raw = field(default_factory=Raw)
    conversation_map: Raw = field(default_factory=Raw)
    tabs: Raw = field(default_factory=Raw)
    subagent_composer_ids: Any = None
    sub_composer_ids: Any = None
    subagent_info: Any = None
    workspace_identifier: Any = None


_ROWS = TypedDecoder(_Row)
_last: tuple[Mark, float, Overview] | None = None
_lock = threading.Lock()


def overview(path: str | os.PathLike[str], rules: CursorRules, config: Config) -> Overview:
    """Overview of the global database; the last one serves until the database changes, and ``cache_seconds`` at least.

    Raises
    ------
    OSError, sqlite3.DatabaseError
        If it can't be read.
    """
    global _last
    mark = mark_of(path, logs=rules.read_log)
    with _lock:
        known = _last
    if known is not None and known[0].path == mark.path:
        is_young = time.monotonic() - known[1] < config.cache_seconds
        if known[0] == mark or is_young:
            return known[2]
    found = ask(path, _look, config, logs=rules.read_log)
    with _lock:
        _last = mark, time.monotonic(), found
    return found


def key_ranges(prefix: str) -> tuple[str, str]:
    """Lowest key that begins with a prefix, and the one behind the last.

    >>> key_ranges("bubbleId:")
    ('bubbleId:', 'bubbleId;')
    """
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _look(connection: vscdb.Connection) -> Overview:
    composers: dict[str, Composer] = {}
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if b"composerHeaders" in tables:
        _read_headers_table(connection, composers)
    if b"ItemTable" in tables:
        _read_heads(connection, composers)
    if b"cursorDiskKV" not in tables:
        return Overview(composers, ())
    rows: dict[str, _Row] = {}
    query = "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key"
    for key, value in connection.execute(query, key_ranges("composerData:")):
        rows[_tail(key)] = _row(value)
    for id, row in rows.items():
        _add_row(composers.setdefault(id, Composer()), row)
    for id in _bubble_owners(connection):
        composers.setdefault(id, Composer()).has_body = True
    for id, row in rows.items():
        _add_children(composers, id, row)
    return Overview(composers, _families(connection))


def _tail(key: bytes) -> str:
    return key.partition(b":")[2].decode("utf-8", "replace")


def _row(value: Any) -> _Row:
    try:
        row = _ROWS.decode(raw_of(value))
    except ValueError:
        return _Row()
    return row if isinstance(row, _Row) else _Row()


def _add_row(composer: Composer, row: _Row) -> None:
    composer.has_row = True
    composer.title = string(composer.title, row.name)
    composer.created = time_of(composer.created, row.created_at)
    composer.updated = time_of(composer.updated, row.last_updated_at)
    composer.project = composer.project or workspace_place(row.workspace_identifier)
    composer.has_body = any(raw_bytes(v) not in _EMPTY for v in (row.conversation, row.conversation_map, row.tabs))
    if parent := string(members(row.subagent_info).get("parentComposerId")):
        composer.parent, composer.evidence = parent, "composerData.subagentInfo.parentComposerId"


def _add_children(composers: dict[str, Composer], id: str, row: _Row) -> None:
    for name, value in (("subagentComposerIds", row.subagent_composer_ids), ("subComposerIds", row.sub_composer_ids)):
        for child in list_of(value):
            known = composers.get(child) if isinstance(child, str) and child != id else None
            if known is not None and known.parent is None:
                known.parent, known.evidence = id, f"composerData.{name} of the parent"


def _read_headers_table(connection: vscdb.Connection, composers: dict[str, Composer]) -> None:
    """The table of Cursor 3; its columns differ between builds."""
    cursor = connection.execute("SELECT * FROM composerHeaders ORDER BY rowid")
    names = [column[0] for column in cursor.description]
    for values in cursor:
        row = dict(zip(names, values, strict=True))
        if id := _text(row.get("composerId")):
            _add_head(composers.setdefault(id, Composer()), _object(row.get("value")))
            known = composers[id]
            known.workspace_id = known.workspace_id or _text(row.get("workspaceId"))
            known.created = time_of(row.get("createdAt"), known.created)
            known.updated = time_of(row.get("lastUpdatedAt"), known.updated)
            known.is_subagent = True if row.get("isSubagent") == 1 else known.is_subagent


def _read_heads(connection: vscdb.Connection, composers: dict[str, Composer]) -> None:
    """The list in the global ``ItemTable``: recent tabs only."""
    row = item(connection, "composer.composerHeaders")
    for head in dicts(_object(row[1] if row else None).get("allComposers")):
        if id := string(head.get("composerId")):
            _add_head(composers.setdefault(id, Composer()), head)


def _add_head(composer: Composer, head: dict[str, Any]) -> None:
    composer.title = string(composer.title, head.get("name"))
    composer.created = time_of(composer.created, head.get("createdAt"))
    composer.updated = time_of(composer.updated, head.get("lastUpdatedAt"))
    composer.project = composer.project or workspace_place(head.get("workspaceIdentifier"))
    composer.workspace_id = string(composer.workspace_id, members(head.get("workspaceIdentifier")).get("id"))
    if parent := string(members(head.get("subagentInfo")).get("parentComposerId")):
        composer.parent, composer.evidence = parent, "composerHeaders.subagentInfo.parentComposerId"


def _text(value: Any) -> str | None:
    return string(value.decode("utf-8", "replace") if isinstance(value, bytes) else value)


def _object(value: Any) -> dict[str, Any]:
    try:
        return members(json_of(raw_of(value)))
    except ValueError:
        return {}


def _bubble_owners(connection: vscdb.Connection) -> list[str]:
    """Ids that have bubbles with a value: one look-up in the key's index per conversation, none per bubble."""
    found, low = [], b"bubbleId:"
    while row := connection.execute(_NEXT, (low, b"bubbleId;")).fetchone():
        own, colon, _ = row[0][len(b"bubbleId:") :].partition(b":")
        first, low = b"bubbleId:" + own + b":", b"bubbleId:" + own + b";" if colon else row[0] + b"\0"
        if colon and connection.execute(_HAS_VALUE, (first, low)).fetchone():
            found.append(own.decode("utf-8", "replace"))
    return found


_RANGE = "key >= CAST(? AS TEXT) AND key < CAST(? AS TEXT)"
_HAS_VALUE = f"SELECT 1 FROM cursorDiskKV WHERE {_RANGE} AND value IS NOT NULL LIMIT 1"
_NEXT = f"SELECT key FROM cursorDiskKV WHERE {_RANGE} ORDER BY key LIMIT 1"


def _families(connection: vscdb.Connection) -> tuple[str, ...]:
    found, low = [], b""
    while row := connection.execute(_NEXT, (low, b"\xff")).fetchone():
        family, colon, _ = row[0].partition(b":")
        if colon:
            found.append(family.decode("utf-8", "replace"))
        many = next((p.encode() for p in _MANY_KEYS if row[0].startswith(p.encode())), None)
        low = family + b";" if colon else many[:-1] + bytes([many[-1] + 1]) if many else row[0] + b"\0"
    return tuple(dict.fromkeys(found))
