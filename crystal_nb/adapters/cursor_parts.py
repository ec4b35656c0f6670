"""Messages that are made of parts, as transcripts and ``store.db`` have them.

Source: ``formats/cursor.md`` sections 2.7 and 2.8.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.cursor_draft import CarefulDraft, Piece, Place
from crystal_nb.adapters.cursor_values import list_of, members, string, text_of
from crystal_nb.details import ToolCall

__all__ = ["add_message", "typed_text"]

_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_TEXTS = frozenset(("text", "input_text", "output_text"))
_CALLS = frozenset(("tool_use", "tool-call"))
_ANSWERS = frozenset(("tool_result", "tool-result"))
_LONGEST_KIND = 100
_IMAGES = frozenset(("image", "file", "document"))


def typed_text(text: str) -> tuple[str, list[str]]:
    r"""What a person typed, without what Cursor put around it, and a mark where it did.

    >>> typed_text("<user_query>\nhi\n</user_query>"), typed_text("<rules>x</rules><user_query>hi</user_query>")
    (('hi', []), ('hi', ['harness context']))
    """
    queries = _QUERY.findall(text)
    if not queries:
        return ecma.trim(text), []
    around = ecma.trim(_QUERY.sub("", text))
    return ecma.trim("\n\n".join(queries)), ["harness context"] if around else []


class _Read(NamedTuple):
    """What the parts of one message are, beside what went into its piece."""

    texts: list[str]
    answered: list[int | None]
    """Messages whose tool calls got their answers; None for an answer without a call."""
    unknown: list[tuple[int, str]]
    """Position and kind."""


def add_message(draft: CarefulDraft, role: str, content: Any, piece: Piece, place: Place, origin: str) -> None:
    """Make a message of a text or of parts; answers of tools go to their calls.

    Parts of unknown kinds get a fate of their own in a database; in a file of lines, where the fates are
    the lines, they are remarked on the line's.
    """
    read = _Read([], [], [])
    for number, part in enumerate(
        [{"type": "text", "text": content}] if isinstance(content, str) else list_of(content)
    ):
        _read_part(draft, number, members(part), piece, read)
    text = ecma.trim("\n".join(read.texts))
    piece.role = piece.kind = role
    piece.text, marks = typed_text(text) if role == "user" else (text, [])
    piece.marks = [*piece.marks, *marks]
    is_kept = bool(piece.text or piece.tools or piece.marks) or (role == "user" and not read.answered)
    place = _note_unknown(draft, read, piece, place, origin)
    if is_kept:
        draft.keep(piece, place)
    elif piece.thinking:
        draft.wait(piece, place)
    else:
        _note_empty(draft, read, role, place, origin)


def _note_unknown(draft: CarefulDraft, read: _Read, piece: Piece, place: Place, origin: str) -> Place:
    """Fates of unknown parts, or a remark and marks instead."""
    if not read.unknown:
        return place
    if place.line is None:
        for number, kind in read.unknown:
            draft.note("dropped", kind, Place(f"{place.key}#/content/{number}"), f"unknown kind ({origin})")
        return place
    kinds = [kind for _, kind in read.unknown]
    piece.marks = [*piece.marks, *(f"unknown part {kind}" for kind in kinds)]
    return replace(place, remark=f"unknown part kind {', '.join(kinds)} ({origin})")


def _note_empty(draft: CarefulDraft, read: _Read, role: str, place: Place, origin: str) -> None:
    """Fate of a record that is no message."""
    index = next((at for at in read.answered if at is not None), None)
    if index is not None:
        draft.note("merged", role, place, "answer to a tool call", message_index=index)
    elif read.answered:
        draft.note("dropped", role, place, "answer to a tool call that isn't there")
    elif read.unknown:
        draft.note("dropped", read.unknown[0][1], place, f"unknown kind ({origin})")
    else:
        draft.note("dropped", role, place, "no text")


def _read_part(draft: CarefulDraft, number: int, part: dict[str, Any], piece: Piece, read: _Read) -> None:
    """Put what a part says where it belongs."""
    kind = string(part.get("type"))
    if kind in _TEXTS:
        read.texts.extend(filter(None, [string(part.get("text"))]))
    elif kind in _ANSWERS:
        read.answered.append(_answer(draft, part))
    elif kind in _CALLS:
        piece.tools = [*piece.tools, _call(part)]
    elif kind in ("reasoning", "thinking"):
        piece.thinking = [*piece.thinking, *filter(None, [string(part.get("text"), part.get("thinking"))])]
    elif kind in ("redacted-reasoning", "redacted_thinking"):
        piece.marks = [*piece.marks, "redacted reasoning"]
    elif kind in _IMAGES:
        words = (string(part.get(k)) for k in ("mimeType", "mediaType", "media_type", "filename", "name"))
        piece.marks = [*piece.marks, " ".join([kind or "", *filter(None, words)])]
    else:
        read.unknown.append((number, (kind or "part without a kind")[:_LONGEST_KIND]))


def _call(part: dict[str, Any]) -> ToolCall:
    arguments = part.get("input") if "input" in part else part.get("args")
    name = string(part.get("name"), part.get("toolName")) or "unknown"
    return ToolCall(name, text_of(arguments), id=string(part.get("id"), part.get("toolCallId")))


def _answer(draft: CarefulDraft, part: dict[str, Any]) -> int | None:
    value = next((part[k] for k in ("result", "output", "content") if part.get(k) is not None), None)
    failed = part.get("isError", part.get("is_error"))
    is_error = failed if isinstance(failed, bool) else None
    return draft.answer(string(part.get("toolCallId"), part.get("tool_use_id")), text_of(value), is_error=is_error)
