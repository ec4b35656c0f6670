"""The content hash of what a store's rows hold, to compare with the hash that stands beside them.

SQLite knows no missing values: a message whose parser gives no ``thinking`` or ``role`` at all is
stored as null, so rows of another program can stand for several texts. This package's own rows say
in a column ``exact`` what the others can't.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import product
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.errors import UnknownConversationError
from crystal_nb.hashing import content_hash
from crystal_nb.records import Conversation, Message
from crystal_nb.store_schema import Layout, columns_of

__all__ = ["message_of", "rehash", "stored_conversation", "whole_conversation"]

_FIELDS = "type, role, content, has_tool_use, has_code, thinking, id, parent_uuid, timestamp"
_NAMES = ("type", "role", "content", "has_tool_use", "has_code", "thinking", "id", "parent_uuid", "timestamp")
_FACTS = ("slug", "project_dir", "project_name", "cwd", "git_branch", "first_message_at", "last_message_at")


def stored_conversation(connection: sqlite3.Connection, layout: Layout, source: str, id: str) -> Conversation:
    """A conversation as its rows have it, in their order.

    >>> from crystal_nb.store_schema import migrate
    >>> connection, layout = sqlite3.connect(":memory:", isolation_level=None), Layout(False, False)
    >>> migrate(connection, layout, "")
    >>> stored_conversation(connection, layout, "codex", "7").messages
    ()
    """
    where = " AND ".join(f"{name} = ?" for name in layout.owner)
    owner = (source, id) if layout.by_source else (id,)
    exact = "exact" if "exact" in columns_of(connection, "messages") else "NULL"
    rows = connection.execute(f"SELECT {_FIELDS}, {exact} FROM messages WHERE {where} ORDER BY sort_order", owner)
    return Conversation(source, id, tuple(map(message_of, rows)))


def whole_conversation(connection: sqlite3.Connection, layout: Layout, source: str, id: str) -> Conversation:
    """The same with title, project and times; nulls are read so that it has the stored hash, if they can be.

    Raises
    ------
    UnknownConversationError
        If it has no row.

    >>> from crystal_nb.store_schema import migrate
    >>> connection, layout = sqlite3.connect(":memory:", isolation_level=None), Layout(False, False)
    >>> migrate(connection, layout, "")
    >>> _ = connection.execute("INSERT INTO conversations (source, id, slug) VALUES ('codex', '7', 'Pears')")
    >>> whole_conversation(connection, layout, "codex", "7").slug
    'Pears'
    """
    known = columns_of(connection, "conversations")
    fields = [name if name in known else "NULL" for name in ("content_hash", *_FACTS)]
    query = f"SELECT {', '.join(fields)} FROM conversations WHERE id = ? AND source IS ?"
    row = connection.execute(query, (id, source or None)).fetchone()
    if row is None:
        raise UnknownConversationError(f"no conversation {(source, id)!r} in this store; see store.conversations()")
    digest, *values = (v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in row)
    facts = dict(zip(_FACTS, values, strict=True))
    facts |= {name: facts[name] or "" for name in ("project_dir", "project_name")}
    found = replace(stored_conversation(connection, layout, source, id), **facts)
    return next((c for c in _readings(found) if content_hash(c) == digest), found)


def message_of(row: tuple[Any, ...]) -> Message:
    """A message as the columns of its row and ``exact`` have it: `_FIELDS`, then ``exact``.

    >>> message_of(("user", None, "hi", 0, 1, None, "a", None, None, None)).has_code
    True
    """
    *columns, exact = (v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in row)
    values = dict(zip(_NAMES, columns, strict=True))
    values |= {"content": values["content"] or "", "has_tool_use": bool(values["has_tool_use"])}
    values["has_code"] = bool(values["has_code"])
    known = ecma.parse_json(exact) if exact else {}
    missing = known.pop("missing", ())
    return Message(**{**values, **known, **dict.fromkeys(missing, UNSET)})


def rehash(conversation: Conversation) -> frozenset[str]:
    """The hashes that rows can stand for: nulls of ``role`` and of ``thinking`` taken as null or as missing.

    >>> len(rehash(Conversation("codex", "7", (Message("user", "hi"),))))
    4
    """
    return frozenset(map(content_hash, _readings(conversation)))


def _readings(conversation: Conversation) -> Iterator[Conversation]:
    for role, thinking in product((None, UNSET), repeat=2):
        messages = tuple(
            replace(
                m,
                role=role if m.role is None else m.role,
                thinking=thinking if m.thinking is None else m.thinking,
            )
            for m in conversation.messages
        )
        yield replace(conversation, messages=messages)
