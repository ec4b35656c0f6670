"""Putting together the messages and fates of one conversation by careful rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import Parsed, has_fence, last_path_part
from crystal_nb.adapters.cursor_values import time_of
from crystal_nb.adapters.jsonl import HEAD_BYTES
from crystal_nb.details import Details, Link, ToolCall
from crystal_nb.records import Candidate, Conversation, Fate, FateStatus, Message

__all__ = ["CarefulDraft", "Piece", "Place", "conversation"]


class Place(Struct, frozen=True):
    """Where a raw record stands, its first bytes and what else is to be known of it."""

    key: str | None = None
    line: int | None = None
    offset: int | None = None
    size: int | None = None
    head: bytes = b""
    remark: str | None = None


class Piece(Struct, kw_only=True):
    """What one raw record says."""

    kind: str
    role: str = "assistant"
    id: str = ""
    text: str = ""
    thinking: list[str] = []
    tools: list[ToolCall] = []
    marks: list[str] = []
    is_tool: bool = False
    has_code: bool = False
    time: Any = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    request_id: str | None = None


@dataclass
class CarefulDraft:
    """Messages and fates in order; reasoning and marks without text wait for the answer that follows."""

    is_sidechain: bool | None = None
    messages: list[Message] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _waiting: list[tuple[int, Piece]] = field(default_factory=list)
    _calls: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def note(self, status: FateStatus, kind: str, place: Place, reason: str | None = None, **more: Any) -> None:
        """Add a fate."""
        head = place.head[:HEAD_BYTES] if status == "dropped" else b""
        self.fates.append(
            Fate(
                status,
                kind,
                reason,
                line=place.line,
                offset=place.offset,
                size=place.size,
                key=place.key,
                head=head,
                note=place.remark,
                **more,
            )
        )

    def keep(self, piece: Piece, place: Place) -> None:
        """Make a message of a record."""
        if piece.role != "assistant":
            self.flush()
        waited, self._waiting = self._waiting, []
        index = len(self.messages)
        for at, _ in waited:
            self.fates[at] = replace(self.fates[at], message_index=index)
        before = [p for _, p in waited]
        thinking = [text for p in (*before, piece) for text in p.thinking]
        marks = [mark for p in (*before, piece) for mark in p.marks]
        self.note("kept", piece.kind, place, message_index=index)
        self.messages.append(self._message(piece, thinking, marks))
        for at, call in enumerate(piece.tools):
            if call.id is not None:
                self.expect(call.id, at)

    def _message(self, piece: Piece, thinking: list[str], marks: list[str]) -> Message:
        details = Details(
            tuple(piece.tools),
            piece.model,
            piece.input_tokens,
            piece.output_tokens,
            None,
            self.is_sidechain,
            piece.request_id,
            tuple(marks),
        )
        return Message(
            piece.role,
            piece.text,
            piece.role,
            has_tool_use=bool(piece.tools) or piece.is_tool,
            has_code=piece.has_code or has_fence(piece.text),
            thinking="\n".join(thinking) or None,
            id=self._unique(piece.id),
            timestamp=piece.time,
            details=None if details == Details() else details,
        )

    def _unique(self, id: str) -> str:
        id, number = id or f"message-{len(self.messages) + 1}", 1
        found = id
        while found in self._ids:
            number += 1
            found = f"{id}#{number}"
        self._ids.add(found)
        return found

    def wait(self, piece: Piece, place: Place) -> None:
        """Hold a record that is merged into the next answer."""
        self._waiting.append((len(self.fates), piece))
        self.note("merged", piece.kind, place, "part of the answer that follows")

    def flush(self) -> None:
        """Make a message of what waits when no answer follows; to be called at the end, too."""
        if self._waiting:
            *before, (at, piece) = self._waiting
            self._waiting = before
            rest, self.fates = self.fates[at + 1 :], self.fates[: at + 1]
            fate = self.fates.pop()
            self.keep(piece, Place(fate.key, fate.line, fate.offset, fate.size, remark=fate.note))
            self.fates += rest

    def expect(self, key: str, at: int) -> None:
        """Let the answer under a key go to a tool call of the last message."""
        self._calls.setdefault(key, []).append((len(self.messages) - 1, at))

    def answer(self, call_id: str | None, result: str | None, *, is_error: bool | None) -> int | None:
        """Put a tool's answer to its call; position of the message, None when no call waits for it."""
        places = self._calls.get(call_id) if call_id is not None else None
        if not places:
            return None
        index, at = places.pop(0)
        message = self.messages[index]
        details = message.details or Details()
        tools = list(details.tools)
        tools[at] = replace(tools[at], raw_result=result, is_error=is_error)
        self.messages[index] = replace(message, details=replace(details, tools=tuple(tools)))
        return index

    def mark_last(self, mark: str) -> int | None:
        """Mark the last message; its position, None when there is none."""
        if not self.messages:
            return None
        details = self.messages[-1].details or Details()
        self.messages[-1] = replace(self.messages[-1], details=replace(details, marks=(*details.marks, mark)))
        return len(self.messages) - 1


def conversation(
    candidate: Candidate,
    draft: CarefulDraft,
    *,
    project: str,
    title: str | None = None,
    links: tuple[Link, ...] = (),
    created: Any = None,
    updated: Any = None,
) -> Parsed:
    """What the draft has become; the times are the messages', else the conversation's own."""
    draft.flush()
    times = [m.timestamp for m in draft.messages if m.timestamp is not None]
    parent = next((link.target for link in links if link.kind == "subagent-of"), None)
    result = Conversation(
        source=candidate.source,
        id=candidate.id,
        messages=tuple(draft.messages),
        slug=title,
        project_dir=project,
        project_name=last_path_part(project),
        cwd=project or None,
        first_message_at=min(times, key=_ms) if times else time_of(created),
        last_message_at=max(times, key=_ms) if times else time_of(updated, created),
        parent_id=parent,
        links=links,
    )
    return Parsed(result, tuple(draft.fates))


def _ms(time: Any) -> int:
    return ecma.date_ms(time) or 0
