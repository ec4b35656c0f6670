"""What the careful Codex rules read of a line: flat Structs with the fields of all kinds.

Source: ``formats/codex.md`` section 2. A field that holds a value of several shapes is ``Any``, so
that an unusual one doesn't cost the block its fast way.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from crystal_nb import ecma
from crystal_nb.adapters.typed import TypedDecoder

__all__ = [
    "BARE",
    "DOCUMENT",
    "HEAD",
    "LINE",
    "WIDE",
    "Bare",
    "Block",
    "Document",
    "Git",
    "Head",
    "HeadPayload",
    "Item",
    "Payload",
    "RawLine",
    "Session",
    "TokenInfo",
    "Usage",
    "Wide",
    "WideLine",
    "as_text",
    "json_or_text",
    "shown",
]


class Block(Struct, gc=False):
    """A part of a message's content, or of a reasoning summary."""

    type: str | None = None
    text: str | None = None
    image_url: Any = None


class Git(Struct, gc=False):
    branch: str | None = None


class Usage(Struct, gc=False):
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None


class TokenInfo(Struct, gc=False):
    total_token_usage: Usage | None = None
    last_token_usage: Usage | None = None


class Item(Struct, gc=False):
    """A finished item of a paginated thread, tag and fields of section 2.6."""

    type: str | None = None
    id: str | None = None
    content: Any = None
    text: str | None = None
    summary_text: Any = None
    raw_content: Any = None
    server: str | None = None
    tool: str | None = None
    command: Any = None
    arguments: Any = None
    query: Any = None
    action: Any = None
    path: Any = None
    changes: Any = None
    aggregated_output: Any = None
    exit_code: Any = None
    status: Any = None
    result: Any = None
    error: Any = None
    review: Any = None
    kind: Any = None


_NO_RAW = Raw(b"")


class Payload(Struct, gc=False):
    """The fields of the frequent kinds; each further one would cost every line something."""

    type: str | None = None
    role: str | None = None
    content: str | list[Block] | None = None
    message: Any = None
    images: Any = None
    local_images: Any = None
    name: str | None = None
    arguments: Any = None
    call_id: str | None = None
    output: Raw = _NO_RAW
    input: Any = None
    summary: str | list[Block] | None = None
    text: str | None = None
    info: TokenInfo | None = None
    turn_id: str | None = None
    cwd: str | None = None
    model: str | None = None
    last_agent_message: str | None = None
    id: str | None = None
    namespace: str | None = None
    kind: Any = None
    function_call: Any = None


class Wide(Payload, gc=False):
    """The fields of all kinds; lines of a rare kind are decoded again for them."""

    item: Item | None = None
    action: Any = None
    status: Any = None
    tools: Any = None
    success: Any = None
    exit_code: Any = None
    aggregated_output: Any = None
    command: Any = None
    changes: Any = None
    result: Any = None
    query: Any = None
    path: Any = None
    invocation: Any = None
    prompt: Any = None
    event_id: str | None = None
    num_turns: Any = None
    reason: str | None = None
    author: str | None = None
    recipient: str | None = None
    user_facing_hint: str | None = None
    review_output: Any = None
    thread_name: str | None = None
    cli_version: str | None = None
    source: Any = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    history_mode: Any = None
    history_base: Any = None
    git: Git | None = None


class RawLine(Struct, gc=False):
    """A line with its envelope."""

    timestamp: str | None = None
    type: str | None = None
    payload: Payload | None = None
    ordinal: int | None = None


class WideLine(Struct, gc=False):
    """The same for a rare kind."""

    payload: Wide | None = None


class Bare(Wide, gc=False):
    """A line without an envelope: an item, a marker, a head, or another writer's message."""

    timestamp: str | None = None
    record_type: str | None = None
    uuid: str | None = None
    workspace: str | None = None


class Session(Struct, gc=False):
    id: str | None = None
    timestamp: str | None = None


class Document(Struct, gc=False):
    """The single JSON document of spring 2025."""

    session: Session | None = None
    items: list[Bare] | None = None


class HeadPayload(Struct, gc=False):
    id: str | None = None
    type: str | None = None
    turn_id: str | None = None
    history_base: Any = None


class Head(Struct, gc=False):
    """What lineage needs of a line."""

    type: str | None = None
    payload: HeadPayload | None = None
    id: str | None = None


LINE, WIDE, BARE = TypedDecoder(RawLine), TypedDecoder(WideLine), TypedDecoder(Bare)
DOCUMENT, HEAD = TypedDecoder(Document), TypedDecoder(Head)


def as_text(value: Any) -> str:
    """The value if it is text, else nothing.

    >>> as_text("a"), as_text(5)
    ('a', '')
    """
    return value if isinstance(value, str) else ""


def shown(value: Any) -> str:
    """A kind or another name for people: cut text, or what it is instead of text.

    >>> shown("message"), shown(None), shown([1])
    ('message', '', 'list')
    """
    return as_text(value)[:80] if value is None or isinstance(value, str) else type(value).__name__


def json_or_text(value: Any) -> str | None:
    """Text as it is, another value as JSON text, None as None; a value too deep to write as a note.

    >>> json_or_text("a"), json_or_text({"a": 1}), json_or_text(None)
    ('a', '{"a":1}', None)
    """
    if value is None or isinstance(value, str):
        return value
    try:
        return ecma.json_text(_plain(value))
    except RecursionError:
        return "(nested too deeply)"


def _plain(value: Any) -> Any:
    """Undo what the tolerant decoder made of an object where a Struct was expected."""
    if isinstance(value, Struct):
        return {name: _plain(v) for name in value.__struct_fields__ if (v := getattr(value, name)) is not None}
    return value
