"""All that the questions need of a store, gathered in one pass over its rows.

Conversations and messages are read once each, in the messages' own order, and no text is kept: 50,000
conversations come down to a record each.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, product
from operator import itemgetter
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.hashing import HASH_FIELDS, canonical_into, digest
from crystal_nb.records import Conversation, Message
from crystal_nb.rehash import message_of
from crystal_nb.store import Store
from crystal_nb.store_schema import columns_of

__all__ = [
    "EXCLUDED",
    "HEADERS",
    "Stored",
    "StoredFacts",
    "as_facts",
    "excluded_marks",
    "hash_keys",
    "read_store",
    "sources_in",
]

HEADERS = ("slug", "project_dir", "project_name", "cwd", "git_branch", "first_message_at", "last_message_at")
"""Fields of a conversation that are not hashed."""
EXCLUDED = (*HEADERS, "message id", "parent_uuid", "timestamp")
"""All fields that are not hashed and that both a store and a parse have."""

_CONVERSATION = (
    "source",
    "id",
    "source_conversation_id",
    "parsed_id",
    "parser_version",
    "content_hash",
    "message_count",
    "file_path",
    "updated_at",
    *HEADERS,
)
_MESSAGE = (
    "type",
    "role",
    "content",
    "has_tool_use",
    "has_code",
    "thinking",
    "id",
    "parent_uuid",
    "timestamp",
    "exact",
)
_MANY = 2**40
_VARIANTS = tuple(product((None, UNSET), repeat=2))


class Stored(Struct, frozen=True):
    """What a store has of one conversation, without its text.

    Attributes
    ----------
    source, id : str
        Key of the row.
    candidate_id, parsed_id, parser_version, content_hash, file_path, updated_at : str | None
        As stored.
    message_count : int | None
        Messages that it says it has.
    rows : int
        Messages that are there.
    is_sound : bool | None
        Whether the rows hash to the stored hash; None: there is none.
    keys : tuple[int, ...]
        Of what is hashed, and of that without each of `HASH_FIELDS`; equal within one process if equal.
    marks : tuple[int, ...]
        Of each field of `EXCLUDED`, likewise.
    """

    source: str
    id: str
    candidate_id: str | None
    parsed_id: str | None
    parser_version: str | None
    content_hash: str | None
    file_path: str | None
    updated_at: str | None
    message_count: int | None
    rows: int
    is_sound: bool | None
    keys: tuple[int, ...]
    marks: tuple[int, ...]


class StoredFacts(Struct, frozen=True):
    """What a store has, without its text."""

    conversations: tuple[Stored, ...]
    orphans: int = 0
    """Messages whose conversation has no row."""

    def by_key(self) -> dict[tuple[str, str], Stored]:
        """The conversations by source and id."""
        return {(c.source, c.id): c for c in self.conversations}


def read_store(store: Store) -> StoredFacts:
    """Read a store once from end to end.

    >>> from crystal_nb.config import Config
    >>> from crystal_nb.policy import PINNED
    >>> read_store(Store.in_memory(PINNED, Config())).conversations
    ()
    """
    with store.reported():
        by_source, reader = store.layout.by_source, _Reader()
        heads = {_key(row, by_source): row for row in _heads(store.connection)}
        found, orphans = [], 0
        for key, rows in _messages(store):
            head = None if key[-1] is None else heads.pop(key, None)
            if head is None:
                orphans += len(rows)
            else:
                found.append(reader.facts(head, rows))
        found += [reader.facts(head, []) for head in heads.values()]
    return StoredFacts(tuple(sorted(found, key=lambda c: (c.source, c.id))), orphans)


def sources_in(store: Store) -> list[str]:
    """Names of the sources that a store has conversations of.

    >>> from crystal_nb.config import Config
    >>> from crystal_nb.policy import PINNED
    >>> sources_in(Store.in_memory(PINNED, Config()))
    []
    """
    with store.reported():
        rows = store.connection.execute("SELECT DISTINCT source FROM conversations")
        return sorted({_stored_text(source) or "" for (source,) in rows})


def as_facts(store: Store | StoredFacts) -> StoredFacts:
    """What was read already, or what `read_store` gives.

    >>> as_facts(StoredFacts(())).orphans
    0
    """
    return store if isinstance(store, StoredFacts) else read_store(store)


def _key(head: Sequence[Any], by_source: bool) -> tuple[Any, ...]:
    return (head[0], head[1]) if by_source else (head[1],)


def _fields(connection: sqlite3.Connection, table: str, wanted: Iterable[str]) -> str:
    known = columns_of(connection, table)
    return ", ".join(name if name in known else f"NULL AS {name}" for name in wanted)


def _heads(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    fields = _fields(connection, "conversations", _CONVERSATION)
    return iter(connection.execute(f"SELECT {fields} FROM conversations"))


def _messages(store: Store) -> Iterator[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    owner = store.layout.owner
    fields = _fields(store.connection, "messages", (*owner, *_MESSAGE))
    order = ", ".join((*owner, "sort_order"))
    rows = store.connection.execute(f"SELECT {fields} FROM messages ORDER BY {order}")
    width = len(owner)
    for key, group in groupby(rows, key=itemgetter(*range(width))):
        yield key if width > 1 else (key,), [row[width:] for row in group]


class _Reader:
    """Makes facts of rows; keeps a buffer and which way of reading nulls fitted last."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._usual: dict[str, tuple[Any, ...]] = {}

    def facts(self, head: Sequence[Any], rows: Sequence[tuple[Any, ...]]) -> Stored:
        source, id, candidate_id, parsed_id, version, stored_hash = map(_stored_text, head[:6])
        count, path, updated = head[6], _stored_text(head[7]), _stored_text(head[8])
        messages = tuple(map(_message, rows))
        return Stored(
            source=source or "",
            id=id or "",
            candidate_id=candidate_id,
            parsed_id=parsed_id,
            parser_version=version,
            content_hash=stored_hash,
            file_path=path,
            updated_at=updated,
            message_count=max(-_MANY, min(count, _MANY)) if isinstance(count, int) else None,
            rows=len(rows),
            is_sound=None if stored_hash is None else self._is_sound(source or "", messages, stored_hash),
            keys=hash_keys(source or "", messages),
            marks=excluded_marks(head[9:], messages),
        )

    def _is_sound(self, source: str, messages: tuple[Message, ...], wanted: str) -> bool:
        nulls = any(m.role is None or m.thinking is None for m in messages)
        usual = self._usual.get(source, _VARIANTS[0])
        ways = [usual, *(v for v in _VARIANTS if v != usual)] if nulls else [_VARIANTS[0]]
        for way in ways:
            if self._hash(source, messages, *way) == wanted:
                self._usual[source] = way
                return True
        return False

    def _hash(self, source: str, messages: tuple[Message, ...], role: Any, thinking: Any) -> str:
        if role is UNSET or thinking is UNSET:
            messages = tuple(
                replace(
                    m,
                    role=role if m.role is None else m.role,
                    thinking=thinking if m.thinking is None else m.thinking,
                )
                for m in messages
            )
        canonical_into(Conversation(source, "", messages), self._buffer)
        return digest(self._buffer)


def _message(row: tuple[Any, ...]) -> Message:
    kind, role, content, tool, code, thinking, id, parent, time, exact = row
    if exact is None and type(content) is str and type(kind) is str:
        return Message(kind, content, role, bool(tool), bool(code), thinking, id, parent, time)
    columns = (kind, role, content, tool, code, thinking, id, parent, time)
    try:
        return message_of((*columns, exact))
    except (ValueError, TypeError, AttributeError, RecursionError):  # another program's column of that name
        return message_of((*columns, None))


_hashed = itemgetter(*range(6))
_without = {
    "source": _hashed,
    "index": _hashed,
    "type": itemgetter(1, 2, 3, 4, 5),
    "role": itemgetter(0, 2, 3, 4, 5),
    "content": itemgetter(0, 1, 3, 4, 5),
    "hasToolUse": itemgetter(0, 1, 2, 4, 5),
    "hasCode": itemgetter(0, 1, 2, 3, 5),
    "thinking": itemgetter(0, 1, 2, 3, 4),
}


def hash_keys(source: str, messages: Iterable[Message]) -> tuple[int, ...]:
    """A number for what is hashed, then one for that without each of ``HASH_FIELDS``.

    Equal content has equal numbers within one process; two that are equal are to be compared.

    >>> a = hash_keys("codex", [Message("user", "hi", thinking="x")])
    >>> b = hash_keys("codex", [Message("user", "hi", thinking="y")])
    >>> [field for field, x, y in zip(HASH_FIELDS, a[1:], b[1:]) if x == y]
    ['thinking']
    """
    rows = [_row(m) for m in messages]
    keys = [hash((source, tuple(rows)))]
    for field in HASH_FIELDS:
        cut = list(map(_without[field], rows))
        if field == "index":
            keys.append(hash((source, tuple(sorted(map(hash, cut))))))
        else:
            keys.append(hash((None if field == "source" else source, tuple(cut))))
    return tuple(keys)


_PLAIN = frozenset({str, bool, type(None)})


def _row(m: Message) -> tuple[Any, ...]:
    row = (m.type, m.role, m.content, m.has_tool_use, m.has_code, m.thinking)
    if type(m.role) in _PLAIN and type(m.thinking) in _PLAIN and type(m.type) is str and type(m.content) is str:
        return row
    return tuple(v if type(v) in _PLAIN or v is UNSET else ecma.json_text([v]) for v in row)


def excluded_marks(header: Iterable[Any], messages: Sequence[Message]) -> tuple[int, ...]:
    """A number for each field of `EXCLUDED`.

    >>> len(excluded_marks([None] * 7, [])) == len(EXCLUDED)
    True
    """
    values = [hash(_stored_text(value)) for value in header]
    for name in ("id", "parent_uuid", "timestamp"):
        values.append(hash(tuple([_stored_text(getattr(m, name)) for m in messages])))
    return tuple(values)


def _stored_text(value: Any) -> str | None:
    """A value as a store's column has it."""
    if type(value) is str:
        return value if value.isascii() else ecma.to_utf8_safe(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if value is None or value is UNSET else ecma.to_utf8_safe(ecma.to_text(value))
