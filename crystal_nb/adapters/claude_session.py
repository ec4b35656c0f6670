"""Each record to the rule for its kind; at the end messages with their details."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from crystal_nb.adapters.base import Outcome, has_fence
from crystal_nb.adapters.claude_answers import read_answer
from crystal_nb.adapters.claude_branches import mark_reverted
from crystal_nb.adapters.claude_draft import SAME_AGAIN, Session, Sketch
from crystal_nb.adapters.claude_others import BOOKKEEPING, read_other
from crystal_nb.adapters.claude_prompts import read_user
from crystal_nb.adapters.claude_records import Line, RawMessage
from crystal_nb.adapters.jsonl import Broken
from crystal_nb.adapters.typed import NotAnObject
from crystal_nb.details import Details, ToolCall
from crystal_nb.records import Fate, Message

__all__ = ["finish", "read_record"]

_NO_MESSAGE = RawMessage()
_COPY: Outcome = ("metadata", "copy", "copied record that another conversation keeps", None)
_PLAIN = {side: Details(is_sidechain=side) for side in (None, False, True)}


def read_record(session: Session, record: Line | NotAnObject | Broken) -> Outcome:
    """What becomes of one record; never raises."""
    session.row += 1
    if type(record) is not Line:
        session.uuids.append(None)
        return "dropped", "line", record.reason if isinstance(record, Broken) else "not an object", None
    uuid, kind = record.uuid, record.type
    session.uuids.append(uuid)
    if kind in BOOKKEEPING:
        if uuid:
            session.parents.setdefault(uuid, record.parent_uuid)
        return BOOKKEEPING[kind]
    if session.cwd is None or session.git_branch is None or session.session_id is None:
        session.note_place(record)
    if record.version is not None:
        session.version = record.version
    if uuid:
        if uuid in session.copied or (record.forked_from is not None and session.is_fork_copy(record.forked_from)):
            return _COPY
        session.parents.setdefault(uuid, record.parent_uuid)
    if kind == "assistant":
        return read_answer(session, record, record.message or _NO_MESSAGE)
    if kind == "user":
        return read_user(session, record, record.message or _NO_MESSAGE)
    if kind is None and record.message is not None:
        return _untyped(session, record, record.message)
    return read_other(session, record, kind or "")


def _untyped(session: Session, record: Line, message: RawMessage) -> Outcome:
    """A record of another writer that leaves the type out."""
    if message.role == "user":
        return read_user(session, record, message)
    return read_answer(session, record, message) if message.role == "assistant" else session.unknown("")


def finish(session: Session, fates: list[Fate]) -> tuple[tuple[Message, ...], list[Fate]]:
    """Messages in order, and fates that name their final places."""
    if session.rules.mark_reverted:
        mark_reverted(session, fates)
    if session.replaced:
        fates = _replaced(session.replaced, fates)
    sketches, results = session.sketches, session.results
    kept = [sketch for sketch in sketches if sketch.moved_to < 0]
    messages = tuple([_message(sketch, results) for sketch in kept])
    return messages, fates if len(kept) == len(sketches) else _moved(sketches, fates)


def _replaced(sketches: set[int], fates: list[Fate]) -> list[Fate]:
    """Of records with one id the last other one is kept; what came before it is lost."""
    kept: set[int] = set()
    found = []
    for fate in reversed(fates):
        at = fate.message_index
        if at in kept and (fate.status == "kept" or fate.reason == SAME_AGAIN):
            fate = Fate("dropped", fate.kind, _REPLACED, None, fate.line, fate.offset, fate.size, fate.key)
        elif at is not None and at in sketches and fate.status == "kept":
            kept.add(at)
        found.append(fate)
    return found[::-1]


_REPLACED = "replaced by a later record of the same id"


def _moved(sketches: list[Sketch], fates: list[Fate]) -> list[Fate]:
    """Fates of sketches that went into others follow them."""
    places: list[int] = []
    number = 0
    for sketch in sketches:
        places.append(number)
        number += sketch.moved_to < 0
    found = []
    for fate in fates:
        at = fate.message_index
        if at is None:
            found.append(fate)
            continue
        why = sketches[at].moved_why
        while sketches[at].moved_to >= 0:
            at = sketches[at].moved_to
        status, reason = ("merged", why) if why is not None else (fate.status, fate.reason)
        found.append(replace(fate, status=status, reason=reason, message_index=places[at]))
    return found


def _message(sketch: Sketch, results: dict[str, tuple[str | bytes, bool | None]]) -> Message:
    texts, thoughts = sketch.texts, sketch.thoughts
    content = "" if texts is None else texts[0] if len(texts) == 1 else "\n".join(texts)
    thinking = None if thoughts is None else thoughts[0] if len(thoughts) == 1 else "\n".join(thoughts)
    return Message(
        sketch.type,
        content,
        sketch.role,
        sketch.tools is not None,
        has_fence(content),
        thinking,
        sketch.id,
        sketch.parent,
        sketch.time,
        False,
        _details(sketch, results),
    )


def _details(sketch: Sketch, results: dict[str, tuple[str | bytes, bool | None]]) -> Details:
    if sketch.type == "user" and sketch.tools is None and sketch.marks is None:
        return _PLAIN[sketch.side]
    usage = sketch.usage
    tools = sketch.tools
    return Details(
        () if tools is None else tuple([_tool(tool, results) for tool in tools]),
        sketch.model,
        None if usage is None else usage.input_tokens,
        None if usage is None else usage.output_tokens,
        None if usage is None else usage.cache_read_input_tokens,
        sketch.side,
        sketch.request_id,
        () if sketch.marks is None else tuple(sketch.marks),
    )


_NO_RESULT = (None, None)


def _tool(block: Any, results: dict[str, tuple[str | bytes, bool | None]]) -> ToolCall:
    result, is_error = results.get(block.id or "", _NO_RESULT)
    return ToolCall(block.name or "", block.input, result, block.id, is_error)
