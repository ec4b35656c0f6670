"""The content hash: which fields feed it, its exact text, why two hashes differ.

Source: ``pinned-importer.md`` section 4. The hash is SHA-256 over the JSON text of the source and of
seven fields per message: ``index``, ``type``, ``role``, ``content``, ``hasToolUse``, ``hasCode`` and
``thinking``. Ids, parents, times, titles, project, file data and parser version are not in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from crystal_nb import ecma
from crystal_nb.errors import ConfigError
from crystal_nb.records import Conversation, Message

__all__ = [
    "HASH_FIELDS",
    "Ablation",
    "HashDifference",
    "HashField",
    "ablate",
    "canonical_into",
    "canonical_json",
    "content_hash",
    "digest",
    "explain_difference",
    "hash_input",
]

HashField = Literal["source", "index", "type", "role", "content", "hasToolUse", "hasCode", "thinking"]
HASH_FIELDS: tuple[HashField, ...] = (
    "source",
    "index",
    "type",
    "role",
    "content",
    "hasToolUse",
    "hasCode",
    "thinking",
)
"""Everything that the hash looks at, in the order of the text."""


class _HashedMessage(Struct, gc=False, rename="camel"):
    """The part of a message that is hashed, in the order in which it is written."""

    index: int
    type: str
    role: str | UnsetType | None
    content: str
    has_tool_use: bool
    has_code: bool
    thinking: str | UnsetType | None


_encode_into = msgspec.json.Encoder().encode_into
_PLAIN = frozenset({str, type(None), UnsetType})


def content_hash(conversation: Conversation) -> str:
    """SHA-256 of `canonical_json` as 64 lower-case hex digits.

    >>> content_hash(Conversation("codex", "7", (Message("user", "hi", role="user"),)))[:16]
    'c56bbe39c1045a79'
    """
    buffer = bytearray()
    canonical_into(conversation, buffer)
    return digest(buffer)


def digest(text: bytes | bytearray) -> str:
    """The hash of a canonical text."""
    return hashlib.sha256(text).hexdigest()


def canonical_json(conversation: Conversation, *, without: Collection[HashField] | HashField = ()) -> bytes:
    """The UTF-8 JSON text that is hashed.

    Parameters
    ----------
    conversation
        The conversation.
    without
        Fields to leave out, to see what the hash would miss without them. ``index`` stands for the
        order: without it the messages are sorted by their text.

    >>> canonical_json(Conversation("codex", "7", (Message("user", "hi", role="user"),)), without=["thinking"])
    b'{"source":"codex","messages":[{"index":0,"type":"user","role":"user","content":"hi","hasToolUse":false,"hasCode":false}]}'
    """
    without = [without] if isinstance(without, str) else without
    if unknown := set(without) - set(HASH_FIELDS):
        raise ConfigError(f"not fields of the hash: {sorted(unknown)}; allowed: {', '.join(HASH_FIELDS)}")
    if not without:
        buffer = bytearray()
        canonical_into(conversation, buffer)
        return bytes(buffer)
    fields = [f for f in HASH_FIELDS if f not in without and f != "source"]
    rows = [ecma.json_text({f: row[f] for f in fields}) for row in hash_input(conversation)["messages"]]
    head = "{" if "source" in without else f'{{"source":{ecma.json_text(conversation.source)},'
    body = ",".join(sorted(rows) if "index" in without else rows)
    return f'{head}"messages":[{body}]}}'.encode()


def hash_input(conversation: Conversation) -> dict[str, Any]:
    """The value that is hashed, as plain dicts; missing keys are `UNSET`.

    >>> hash_input(Conversation("codex", "7", (Message("user", "hi"),)))["messages"][0]["hasCode"]
    False
    """
    _check(conversation)
    return {
        "source": conversation.source,
        "messages": [
            {
                "index": index,
                "type": m.type,
                "role": m.role,
                "content": m.content,
                "hasToolUse": m.has_tool_use,
                "hasCode": m.has_code,
                "thinking": m.thinking,
            }
            for index, m in enumerate(conversation.messages)
        ],
    }


def canonical_into(conversation: Conversation, buffer: bytearray) -> None:
    """Put `canonical_json` into a buffer in place of what it held; one used again costs no fresh memory."""
    _check(conversation)
    buffer[:] = b'{"source":%b,"messages":' % ecma.json_text(conversation.source).encode()
    start = len(buffer)
    hashed = _hashed(conversation.messages)
    try:
        if not ({type(h.role) for h in hashed} | {type(h.thinking) for h in hashed}) <= _PLAIN:
            raise ValueError("a role or a thinking is neither text nor null")
        _encode_into(hashed, buffer, -1)
    except ValueError:  # a lone surrogate, too
        buffer[start:] = f"[{','.join(map(_exact_json, hashed))}]".encode()
    buffer += b"}"


def _hashed(messages: Iterable[Message]) -> list[_HashedMessage]:
    return [
        _HashedMessage(index, m.type, m.role, m.content, m.has_tool_use, m.has_code, m.thinking)
        for index, m in enumerate(messages)
    ]


def _check(conversation: Conversation) -> None:
    if not isinstance(conversation, Conversation):
        got = type(conversation).__name__
        raise TypeError(f"a Conversation is needed, not {got}; a corpus gives one by corpus[source, id]")


def _exact_json(hashed: _HashedMessage) -> str:
    values = msgspec.structs.astuple(hashed)
    return ecma.json_text(dict(zip(hashed.__struct_encode_fields__, values, strict=True)))


class HashDifference(Struct, frozen=True):
    """Why two conversations hash differently, or that they don't."""

    equal: bool
    """Whether the canonical texts, and so the hashes, are the same."""
    hash_a: str
    """Content hash of the first."""
    hash_b: str
    """Content hash of the second."""
    field: str | None
    """First field that differs, such as ``messages[3].thinking`` or ``messages.length``."""
    value_a: Any
    """Its value in the first; `UNSET` where it has none."""
    value_b: Any
    """Its value in the second."""
    byte: int | None
    """Offset of the first differing byte of the canonical texts."""
    context_a: str
    """Up to 40 bytes round that place in the first."""
    context_b: str
    """The same of the second."""

    def __str__(self) -> str:
        if self.equal:
            return f"equal: {self.hash_a}"
        return f"different from byte {self.byte} on: {self.field}: {self.value_a!r} / {self.value_b!r}"


def explain_difference(
    a: Conversation, b: Conversation, *, without: Collection[HashField] | HashField = ()
) -> HashDifference:
    """Say where the canonical texts of two conversations part.

    Parameters
    ----------
    a, b
        The conversations.
    without
        Fields to leave out, as in `canonical_json`; hashes and field are those of what is left.

    >>> a = Conversation("codex", "7", (Message("user", "hi"),))
    >>> b = Conversation("codex", "8", (Message("user", "ho"),))
    >>> str(explain_difference(a, b))
    "different from byte 79 on: messages[0].content: 'hi' / 'ho'"
    >>> explain_difference(a, b, without="content").equal
    True
    """
    without = [without] if isinstance(without, str) else without
    text_a, text_b = canonical_json(a, without=without), canonical_json(b, without=without)
    equal = text_a == text_b
    byte = None if equal else _first_difference(text_a, text_b)
    field, value_a, value_b = (None, UNSET, UNSET) if equal else _differing_field(_left(a, without), _left(b, without))
    return HashDifference(
        equal=equal,
        hash_a=digest(text_a),
        hash_b=digest(text_b),
        field=field,
        value_a=value_a,
        value_b=value_b,
        byte=byte,
        context_a=_context(text_a, byte),
        context_b=_context(text_b, byte),
    )


def _left(conversation: Conversation, without: Collection[HashField]) -> dict[str, Any]:
    """What is left of the value that is hashed, in the order of its text."""
    value = hash_input(conversation)
    rows = [{f: v for f, v in row.items() if f not in without} for row in value["messages"]]
    return {
        "source": None if "source" in without else value["source"],
        "messages": sorted(rows, key=ecma.json_text) if "index" in without else rows,
    }


def _first_difference(a: bytes, b: bytes) -> int:
    """Position of the first differing byte, by halving, so that memcmp does the work."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _context(text: bytes, byte: int | None) -> str:
    return "" if byte is None else text[max(0, byte - 20) : byte + 20].decode("utf-8", "replace")


def _differing_field(a: dict[str, Any], b: dict[str, Any]) -> tuple[str, Any, Any]:
    if a["source"] != b["source"]:
        return "source", a["source"], b["source"]
    for index, (one, two) in enumerate(zip(a["messages"], b["messages"], strict=False)):
        for field in one:
            if ecma.json_text([one[field]]) != ecma.json_text([two[field]]) or (one[field] is UNSET) != (
                two[field] is UNSET
            ):
                return f"messages[{index}].{field}", one[field], two[field]
    return "messages.length", len(a["messages"]), len(b["messages"])


class Ablation(Struct, frozen=True):
    """What one field of the hash tells apart."""

    field: HashField
    """The field that was left out."""
    groups: int
    """Groups of conversations that have different hashes but would share one without the field."""
    conversations: int
    """Conversations in those groups."""
    example: tuple[tuple[str, Any], tuple[str, Any]] | None
    """Two conversations of one group as (source, id)."""


def ablate(conversations: Iterable[Conversation]) -> list[Ablation]:
    """Leave each field out of the hash in turn and count what then collides.

    >>> a = Conversation("codex", "1", (Message("user", "hi", thinking="x"),))
    >>> b = Conversation("codex", "2", (Message("user", "hi", thinking="y"),))
    >>> [(row.field, row.conversations) for row in ablate([a, b]) if row.groups]
    [('thinking', 2)]
    """
    known = list(conversations)
    full = [content_hash(c) for c in known]
    return [_ablate_field(known, full, field) for field in HASH_FIELDS]


def _ablate_field(conversations: list[Conversation], full: list[str], field: HashField) -> Ablation:
    groups: dict[bytes, dict[str, Conversation]] = {}
    for conversation, digest in zip(conversations, full, strict=True):
        short = hashlib.sha256(canonical_json(conversation, without=[field])).digest()
        groups.setdefault(short, {}).setdefault(digest, conversation)
    met = [list(g.values()) for g in groups.values() if len(g) > 1]
    example = ((met[0][0].source, met[0][0].id), (met[0][1].source, met[0][1].id)) if met else None
    return Ablation(field=field, groups=len(met), conversations=sum(map(len, met)), example=example)
