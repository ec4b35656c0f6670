"""The content hash of what a store's rows hold, to compare with the hash that stands beside them.

SQLite knows no missing values: a message whose parser gives no ``thinking`` or ``role`` at all is
stored as null, so rows can stand for several texts.
"""

from __future__ import annotations

import sqlite3
from itertools import product

from msgspec import UNSET
from msgspec.structs import replace

from crystal_nb.hashing import content_hash
from crystal_nb.records import Conversation, Message
from crystal_nb.store_schema import Layout

__all__ = ["rehash", "stored_conversation"]

_FIELDS = "type, role, content, has_tool_use, has_code, thinking, id, parent_uuid, timestamp"


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
    rows = connection.execute(f"SELECT {_FIELDS} FROM messages WHERE {where} ORDER BY sort_order", owner)
    messages = (
        Message(type, content or "", role, bool(tool), bool(code), thinking, message_id, parent, timestamp)
        for type, role, content, tool, code, thinking, message_id, parent, timestamp in rows
    )
    return Conversation(source, id, tuple(messages))


def rehash(conversation: Conversation) -> frozenset[str]:
    """The hashes that rows can stand for: nulls of ``role`` and of ``thinking`` taken as null or as missing.

    >>> len(rehash(Conversation("codex", "7", (Message("user", "hi"),))))
    4
    """
    found = set()
    for role, thinking in product((None, UNSET), repeat=2):
        messages = tuple(
            replace(
                m,
                role=role if m.role is None else m.role,
                thinking=thinking if m.thinking is None else m.thinking,
            )
            for m in conversation.messages
        )
        found.add(content_hash(replace(conversation, messages=messages)))
    return frozenset(found)
