"""User records: prompts, tool results, and what the harness writes in people's name."""

from __future__ import annotations

from crystal_nb import ecma
from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.claude_draft import SAME_AGAIN, Session, Sketch, orphan_call
from crystal_nb.adapters.claude_envelopes import HARNESS, sort_text
from crystal_nb.adapters.claude_records import Block, Line, RawMessage

__all__ = ["meet_queued", "prompt_text", "read_user"]

_TYPED = ("command", "shell command")


def read_user(session: Session, record: Line, message: RawMessage) -> Outcome:
    """A tool's result goes to its call; anything else is a message."""
    content = message.content
    if not content:
        return "dropped", "user", "no content", None
    if type(content) is list and len(content) == 1 and content[0].type == "tool_result":
        return _lone_result(session, record, content[0])
    return _prompt(session, record, message, [Block("text", content)] if isinstance(content, str) else content)


def _lone_result(session: Session, record: Line, block: Block) -> Outcome:
    if not session.rules.pair_tools:
        return "dropped", "user", "only tool_result", None
    at = session.take_result(block)
    if at is not None:
        return "merged", "user", "tool result", at
    sketch = session.sketch("user", "tool", record)
    sketch.tools = [orphan_call(block.tool_use_id)]
    at = session.add(sketch, record.uuid)
    if block.tool_use_id:
        session.calls[block.tool_use_id] = at
        session.orphans.add(block.tool_use_id)
    return "kept", "user", "result of an unknown call", at


def _prompt(session: Session, record: Line, message: RawMessage, content: list[Block]) -> Outcome:
    sketch = session.sketch("user", message.role or "user", record)
    merged = _read_blocks(session, sketch, content)
    if not (sketch.texts or sketch.tools or sketch.marks):
        if merged is not None:
            return "merged", "user", "tool result", merged
        return "dropped", "user", session.why_empty(content), None
    if session.rules.mark_harness:
        _mark_origin(sketch, record)
    at = session.repeated(record, "user")
    if at is not None:
        return _again(session, at, sketch)
    at = session.add(sketch, record.uuid)
    if sketch.role == "user" and sketch.texts:
        text = sketch.texts[0] if len(sketch.texts) == 1 else "\n".join(sketch.texts)
        if session.first_prompt is None and sketch.marks is None:
            session.first_prompt = text
        if session.queued or session.attached:
            meet_queued(session, text, at)
    odd, session.odd = session.odd, None
    return "kept", "user", odd, at


def _again(session: Session, at: int, sketch: Sketch) -> Outcome:
    """A record whose id was there before: the first counts for the place, the last for the content."""
    odd, session.odd = session.odd, None
    earlier = session.sketches[at]
    if (earlier.texts, earlier.marks, earlier.role) == (sketch.texts, sketch.marks, sketch.role):
        return "merged", "user", odd or SAME_AGAIN, at
    if session.first_prompt is not None and session.first_prompt == "\n".join(earlier.texts or ()):
        session.first_prompt = "\n".join(sketch.texts or ()) or None
    earlier.texts, earlier.marks, earlier.role = sketch.texts, sketch.marks, sketch.role
    session.replaced.add(at)
    return "kept", "user", odd, at


def _read_blocks(session: Session, sketch: Sketch, content: list[Block]) -> int | None:
    """Fill a prompt's sketch; returns the sketch that a result among the blocks went to."""
    typed: list[str] = []
    written: list[str] = []
    tags: list[str] = []
    merged = None
    for block in content:
        if block.type == "text":
            text = ecma.trim(block.text or "")
            if text:
                role, text, tag = sort_text(text) if session.rules.mark_harness else ("user", text, None)
                (written if role == HARNESS else typed).append(text)
                if tag:
                    tags.append(tag)
        elif block.type == "tool_result":
            if session.rules.pair_tools:
                at = session.take_result(block)
                if at is None:
                    sketch.tools = [*(sketch.tools or ()), orphan_call(block.tool_use_id)]
                merged = merged if at is None else at
        else:
            session.note_block(sketch, block)
    sketch.texts = typed or written or None
    if written and not typed:
        sketch.role = HARNESS
    for tag in tags:
        sketch.mark(f"{tag} left out" if typed and tag not in _TYPED else tag)
    return merged


def _mark_origin(sketch: Sketch, record: Line) -> None:
    if record.is_compact_summary:
        sketch.role = HARNESS
        sketch.mark("compact summary")
    elif record.is_meta:
        sketch.role = HARNESS
        sketch.mark("meta")
    if sketch.role == HARNESS:
        sketch.mark(HARNESS)


def prompt_text(content: str | list[Block] | None) -> str:
    """Text of a prompt as queues hold it."""
    if content is None:
        return ""
    blocks = [Block("text", content)] if isinstance(content, str) else content
    return "\n".join(text for block in blocks if (text := ecma.trim(block.text or "")))


def meet_queued(session: Session, text: str, at: int) -> None:
    """A prompt that was queued comes again as a record of its own: both are one message.

    One that was attached while a tool ran is met by the very next prompt only, as people repeat themselves.
    """
    waiting = session.attached.pop(text, None)
    session.attached.clear()
    queue = session.queued.get(text)
    if waiting is None and queue:
        waiting = queue.pop(0)
        if not queue:
            del session.queued[text]
    if waiting is not None:
        session.sketches[waiting].move(at, "queued prompt that comes again")
