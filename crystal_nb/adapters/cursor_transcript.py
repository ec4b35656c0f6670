"""Parsing an agent transcript of Cursor, JSONL or the older text form.

Source: ``formats/cursor.md`` section 2.7. Lines have no time and no id, so ids are their positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import Parsed, read_file
from crystal_nb.adapters.cursor_draft import CarefulDraft, Piece, Place, conversation
from crystal_nb.adapters.cursor_parts import add_message, typed_text
from crystal_nb.adapters.cursor_values import json_of, members, string, text_of, time_of
from crystal_nb.adapters.jsonl import HEAD_BYTES, Broken, read_blocks
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder
from crystal_nb.details import Link, ToolCall
from crystal_nb.records import Candidate

__all__ = ["read_transcript"]

_LONGEST_MARK = 300
_ORIGIN = "agent transcript, which names no version"


class _Line(Struct, gc=False):
    role: Any = None
    type: Any = None
    message: Any = None
    timestamp: Any = None
    error: Any = None
    status: Any = None


_LINES = TypedDecoder(_Line)


def read_transcript(
    candidate: Candidate, *, title: str | None, links: tuple[Link, ...], created: Any = None, updated: Any = None
) -> Parsed:
    """Parse a transcript; raises ``OSError`` when it can't be read."""
    is_child = any(link.kind == "subagent-of" for link in links)
    draft = CarefulDraft(is_sidechain=True if is_child else None)
    if candidate.file_path.endswith(".txt"):
        _read_text(draft, read_file(candidate.file_path))
    else:
        _read_lines(draft, candidate.file_path)
    project = candidate.project_dir
    return conversation(candidate, draft, project=project, title=title, links=links, created=created, updated=updated)


def _read_lines(draft: CarefulDraft, path: str) -> None:
    for block in read_blocks(path, _LINES):
        for at, record in enumerate(block.records):
            start, stop = block.starts[at], block.stops[at]
            head = bytes(block.data[start : min(stop, start + HEAD_BYTES)])
            place = Place(None, block.first_line + at, block.offset + start, stop - start, head)
            _add_line(draft, _repaired(record, block.data, start, stop), place)


def _repaired(record: Any, data: bytearray, start: int, stop: int) -> _Line | NotAnObject | Broken:
    """The record; one that a byte order mark or NULs spoil is read without them."""
    if isinstance(record, Broken) and record.reason != "blank line":
        try:
            return _LINES.decode_value(json_of(bytes(data[start:stop]).strip(b"\0\r\n")))
        except ValueError:
            return record
    return record  # type: ignore[no-any-return]


def _add_line(draft: CarefulDraft, line: _Line | NotAnObject | Broken, place: Place) -> None:
    if isinstance(line, Broken):
        draft.note("dropped", "line", place, line.reason)
    elif isinstance(line, NotAnObject):
        draft.note("dropped", "line", place, "not an object")
    elif (role := _role(line)) == "system":
        draft.note("dropped", role, place, "system prompt")
    elif role is not None:
        piece = Piece(kind=role, id=f"line-{place.line}", time=time_of(line.timestamp))
        add_message(draft, role, members(line.message).get("content", line.message), piece, place, _ORIGIN)
    elif line.type == "error":
        _add_error(draft, line, place)
    elif line.type == "turn_ended":
        status = string(line.status)
        remark = f"status {status}"[:_LONGEST_MARK] if status else None
        draft.note("metadata", "turn_ended", replace(place, remark=remark))
    else:
        draft.note("dropped", string(line.type, line.role) or "line", place, f"unknown kind ({_ORIGIN})")


def _role(line: _Line) -> str | None:
    """Role of a message; None for other records."""
    role = string(line.role, members(line.message).get("role"), line.type)
    if role == "tool":
        return "assistant" if isinstance(members(line.message).get("content"), list) else None
    return role if role in ("user", "assistant", "system") else None


def _add_error(draft: CarefulDraft, line: _Line, place: Place) -> None:
    draft.flush()
    at = draft.mark_last(f"error {text_of(line.error) or ''}"[:_LONGEST_MARK])
    if at is None:
        draft.note("dropped", "error", place, "an error before any message")
    else:
        draft.note("merged", "error", place, "mark of the message before", message_index=at)


_ROLE = re.compile(r"(user|assistant):[ \t]*(.*)", re.DOTALL)
_BRACKET = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*(.*)", re.DOTALL)


class _Section(Struct):
    kind: str
    name: str
    place: Place
    lines: list[str]


def _read_text(draft: CarefulDraft, data: bytes) -> None:
    """The text form: sections under a role or a bracket; a bracket's body is indented."""
    role = "user"
    for section in _sections(data):
        body = ecma.trim("\n".join(section.lines))
        if section.kind in ("user", "assistant"):
            role = section.kind
        _add_section(draft, section, role, body)


def _add_section(draft: CarefulDraft, section: _Section, role: str, body: str) -> None:
    piece = Piece(kind=section.kind, id=f"line-{section.place.line}")
    whole = ecma.trim(f"{section.name}\n{body}")
    if section.kind == "Thinking":
        piece.thinking = [whole]
        draft.wait(piece, section.place)
    elif section.kind == "Tool call":
        piece.tools = [ToolCall(section.name or "unknown", body or None)]
        draft.keep(piece, section.place)
        draft.expect(section.name, 0)
    elif section.kind == "Tool result":
        at = draft.answer(section.name, body, is_error=None)
        reason = "answer to a tool call"
        if at is None:
            draft.note("dropped", section.kind, section.place, f"{reason} that isn't there")
        else:
            draft.note("merged", section.kind, section.place, reason, message_index=at)
    elif not whole:
        kind: Any = "metadata" if section.kind in ("user", "assistant") else "dropped"
        draft.note(kind, section.kind, section.place, None if kind == "metadata" else "blank lines")
    else:
        piece.role = role
        piece.text, piece.marks = typed_text(whole) if role == "user" else (whole, [])
        draft.keep(piece, section.place)


def _sections(data: bytes) -> Iterator[_Section]:
    """Sections of a text transcript; together they are the whole file."""
    found: _Section | None = None
    offset = 0
    for number, raw in enumerate(_lines(data), 1):
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        opened = _opened(line, found)
        if opened is not None or found is None:
            if found is not None:
                yield found
            kind, name = opened or ("text", line)
            found = _Section(kind, name, Place(None, number, offset, 0, raw[:HEAD_BYTES]), [])
        else:
            found.lines.append(line)
        found.place = replace(found.place, size=(found.place.size or 0) + len(raw))
        offset += len(raw)
    if found is not None:
        yield found


def _lines(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def _opened(line: str, open_one: _Section | None) -> tuple[str, str] | None:
    """Kind and rest of the line that opens a section; None when it goes on with the open one."""
    if match := _BRACKET.match(line):
        return match[1], ecma.trim(match[2])
    if match := _ROLE.match(line):
        return match[1], ecma.trim(match[2])
    ends_bracket = open_one is not None and open_one.kind in ("Thinking", "Tool call", "Tool result")
    return ("text", line) if ends_bracket and line and not line[0].isspace() else None
