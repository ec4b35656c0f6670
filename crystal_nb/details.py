"""What careful rules know of a message and a conversation beyond what is hashed.

None of it feeds the content hash. The pinned rules fill none of it.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
from msgspec import Struct

__all__ = ["Details", "Link", "LinkKind", "ToolCall", "without_text"]


def without_text(record: Struct, *hidden: str) -> str:
    """Represent a record, of some fields only the size: what people wrote does not go into logs and tracebacks.

    >>> without_text(Link("forked-from", "7", "a guess"), "evidence")
    "Link(kind='forked-from', target='7', evidence=<7 characters>, is_certain=True)"
    """
    values = ((name, getattr(record, name)) for name in record.__struct_fields__)
    shown = (f"{name}={_size(value) if name in hidden else repr(value)}" for name, value in values)
    return f"{type(record).__name__}({', '.join(shown)})"


def _size(value: Any) -> str:
    for kind, unit in ((str, "characters"), (bytes, "bytes"), ((tuple, list, dict), "items")):
        if isinstance(value, kind):
            return f"<{len(value):,} {unit}>"
    return f"<{type(value).__name__}>" if isinstance(value, (int, float)) else repr(value)


class ToolCall(Struct, frozen=True, gc=False):
    """One call of a tool and what came of it.

    Attributes
    ----------
    name : str
        Name of the tool as the record has it.
    input : str | None
        Arguments as text; JSON text where the record has a JSON value.
    raw_result : str | bytes | None
        What the tool answered: text, or the bytes of a JSON string that nobody has decoded yet, since
        answers can be most of a file; None when no answer is known.
    id : str | None
        Id that pairs call and answer.
    is_error : bool | None
        Whether the tool failed; None when nothing says so.

    Examples
    --------
    >>> ToolCall("read", '{"path":"a"}').result is None
    True
    """

    name: str
    input: str | None = None
    raw_result: str | bytes | None = None
    id: str | None = None
    is_error: bool | None = None

    def __repr__(self) -> str:
        return without_text(self, "input", "raw_result")

    @property
    def result(self) -> str | None:
        r"""What the tool answered, as text.

        >>> ToolCall("read", raw_result=b'"a\n"').result
        'a\n'
        """
        raw = self.raw_result
        return _decoded(raw) if isinstance(raw, bytes) else raw


def _decoded(token: bytes) -> str:
    try:
        return msgspec.json.decode(token, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # a lone surrogate, bad UTF-8
        return str(json.loads(token.decode("utf-8", "replace"), strict=False))


class Details(Struct, frozen=True, gc=False):
    """Facts about one message.

    Attributes
    ----------
    tools : tuple[ToolCall, ...]
        Tool calls that belong to the message, in order.
    model : str | None
        Model that answered.
    input_tokens, output_tokens, cache_tokens : int | None
        Tokens, as the record counts them; None: unknown. Cache: read from it.
    is_sidechain : bool | None
        Whether it belongs to a side conversation; None when nothing says so.
    request_id : str | None
        Id of the request that it answers.
    marks : tuple[str, ...]
        What else is to be known, such as ``compact boundary``, ``compact summary``, ``harness``,
        ``reverted``, ``image image/png 1024 bytes``.

    Examples
    --------
    >>> Details(model="m").tools
    ()
    """

    tools: tuple[ToolCall, ...] = ()
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_tokens: int | None = None
    is_sidechain: bool | None = None
    request_id: str | None = None
    marks: tuple[str, ...] = ()


LinkKind = Literal["subagent-of", "forked-from", "resumed-from", "continued-from", "copy-of"]


class Link(Struct, frozen=True):
    """An edge from a conversation to another one.

    Attributes
    ----------
    kind : LinkKind
        What the conversation is to the other one.
    target : str | None
        Id of the other conversation in the same source; None when it can't be told.
    evidence : str
        What says so, such as ``session_meta.forked_from_id`` or ``12 equal uuids``.
    is_certain : bool
        False where the files don't decide it.

    Examples
    --------
    >>> Link("forked-from", "7", "session_meta.forked_from_id").is_certain
    True
    """

    kind: LinkKind
    target: Any
    evidence: str
    is_certain: bool = True
