"""Claude Code's records as flat Structs, whatever types a file has in them.

What msgspec refuses is settled field by field: a value of another type is set aside, except where it
still holds words (a string for a message, a string among blocks).
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar, get_args, get_type_hints

from msgspec import Raw, Struct

from crystal_nb import ecma
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder, raw_bytes

__all__ = [
    "Attachment",
    "Block",
    "ForkedFrom",
    "Line",
    "LineDecoder",
    "Piece",
    "Rare",
    "RawMessage",
    "Usage",
    "media",
    "raw_text",
    "result_text",
]

S = TypeVar("S", bound=Struct)
_NO_RAW = Raw(b"")


class Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class Piece(Struct, gc=False):
    """Part of a tool's result."""

    type: str | None = None
    text: str | None = None
    title: str | None = None
    url: str | None = None
    tool_name: str | None = None
    source: Raw = _NO_RAW


class Block(Struct, gc=False):
    """Part of a message."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = _NO_RAW
    tool_use_id: str | None = None
    content: Raw = _NO_RAW
    is_error: bool | None = None
    source: Raw = _NO_RAW


class RawMessage(Struct, gc=False):
    id: str | None = None
    role: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    usage: Usage | None = None


class ForkedFrom(Struct, gc=False, rename="camel"):
    session_id: str | None = None
    message_uuid: str | None = None


class Line(Struct, gc=False, rename="camel"):
    """What most records have."""

    type: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    timestamp: str | int | float | None = None
    session_id: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    is_sidechain: bool | None = None
    agent_id: str | None = None
    request_id: str | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    forked_from: ForkedFrom | None = None
    message: RawMessage | None = None


class Attachment(Struct, gc=False):
    type: str | None = None
    prompt: str | list[Block] | None = None
    source_uuid: str | None = None


class CompactMetadata(Struct, gc=False, rename="camel"):
    trigger: str | None = None
    pre_tokens: int | None = None


class Rare(Struct, gc=False, rename="camel"):
    """What the rarer kinds of records have, read in a second go."""

    subtype: str | None = None
    content: str | list[Block] | None = None
    logical_parent_uuid: str | None = None
    compact_metadata: CompactMetadata | None = None
    attachment: Attachment | None = None
    operation: str | None = None
    summary: str | None = None
    leaf_uuid: str | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    forked_session_id: str | None = None
    up_to_message_id: str | None = None


class LineDecoder(TypedDecoder[S]):
    """A decoder whose Structs hold nothing but values of the declared types.

    >>> line = LineDecoder(Line).decode(b'{"type": "user", "uuid": 5, "message": "hi"}')
    >>> line.uuid, line.message.content
    (None, 'hi')
    """

    def decode_value(self, value: Any) -> S | NotAnObject:
        if isinstance(value, Raw):
            return self.decode(bytes(value))
        return settle(self.type, value) if isinstance(value, dict) else NotAnObject(value)


def settle(type: type[S], members: dict[str, Any]) -> S:
    """Make a Struct of the members whose types it declares."""
    if type not in _HINTS:
        hints = get_type_hints(type)
        pairs = zip(type.__struct_fields__, type.__struct_encode_fields__, strict=True)
        _HINTS[type] = {name: (key, get_args(hints[name]) or (hints[name],)) for name, key in pairs}
    found = {name: _fit(hints, members[key]) for name, (key, hints) in _HINTS[type].items() if key in members}
    return type(**{name: value for name, value in found.items() if value is not _WRONG})


_HINTS: dict[type[Struct], dict[str, tuple[str, tuple[Any, ...]]]] = {}
_WRONG = object()


def _fit(hints: tuple[Any, ...], value: Any) -> Any:
    if type(value) in hints:
        return value
    if Raw in hints:
        return Raw(raw_bytes(value))
    for hint in hints:
        if isinstance(value, list) and getattr(hint, "__origin__", None) is list:
            items = [_fit(get_args(hint), item) for item in value]
            return [item for item in items if item is not _WRONG and item is not None]
        if isinstance(hint, type) and issubclass(hint, Struct):
            if isinstance(value, dict):
                return settle(hint, value)
            if isinstance(value, str) and hint in _OF_TEXT:
                return _OF_TEXT[hint](value)
    return _WRONG


_OF_TEXT: dict[Any, Any] = {
    RawMessage: lambda text: RawMessage(content=text),
    Block: lambda text: Block("text", text),
    Piece: lambda text: Piece("text", text),
}


def raw_text(raw: Raw) -> str | None:
    """The JSON text of a raw value; None when there is none."""
    return str(raw, "utf-8", "replace") or None


def result_text(content: Raw) -> str | bytes:
    r"""A tool's result as text, or as a JSON string still to be decoded; what is no text is named.

    >>> result_text(Raw(b'"a"')), result_text(Raw(b'[{"type": "text", "text": "a"}, {"tool_name": "Read"}]'))
    (b'"a"', 'a\n[part Read]')
    """
    token = bytes(content)
    if token[:1] == b'"':
        return token
    if token[:1] != b"[":
        return "" if token in (b"", b"null") else token.decode("utf-8", "replace")
    found = _PIECES.decode(b'{"pieces":%b}' % token)
    return "\n".join(map(_piece_text, found.pieces or ()) if isinstance(found, _Pieces) else ())


class _Pieces(Struct):
    pieces: list[Piece] | None = None


_PIECES = LineDecoder(_Pieces)


def _piece_text(piece: Piece) -> str:
    if type(piece.text) is str:
        return piece.text
    if bytes(piece.source):
        return f"[{media(piece.type, piece.source)}]"
    facts = (piece.type or "part", piece.tool_name, piece.title, piece.url)
    return f"[{' '.join(fact for fact in facts if fact)}]"


class _Source(Struct):
    media_type: str | None = None
    data: str | None = None
    url: str | None = None


_SOURCE = LineDecoder(_Source)


def media(kind: str | None, source: Raw) -> str:
    """Name an image or document: kind, type, size and the start of the SHA-256 of its base64 text.

    >>> media("image", Raw(b'{"media_type": "image/png", "data": "QUJD"}'))
    'image image/png 3 bytes sha256:d9cae0dbdbf0'
    """
    try:
        found = _SOURCE.decode(bytes(source))
    except ValueError:
        found = NotAnObject(None)
    if isinstance(found, NotAnObject):
        return kind or "media"
    size = None
    if found.data is not None:
        count = len(found.data) * 3 // 4 - found.data[-2:].count("=")
        digest = hashlib.sha256(ecma.to_utf8_safe(found.data).encode()).hexdigest()
        size = f"{max(count, 0)} bytes sha256:{digest[:12]}"
    return " ".join(fact for fact in (kind or "media", found.media_type, size, found.url) if fact)
