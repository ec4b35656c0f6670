"""Answers: the lines of one response joined, calls noted, blocks without text marked."""

from __future__ import annotations

from crystal_nb import ecma
from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.claude_draft import Session, Sketch
from crystal_nb.adapters.claude_records import Block, Line, RawMessage, Usage, raw_text

__all__ = ["read_answer"]

_CALLS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))


def read_answer(session: Session, record: Line, message: RawMessage) -> Outcome:
    """Begin an answer, or add to the one that this line goes on with."""
    content = message.content
    if not content:
        return "dropped", "assistant", "no content", None
    if isinstance(content, str):
        content = [Block("text", content)]
    at = _begun(session, record, message)
    if at is not None:
        sketch = session.sketches[at]
        _fill(session, sketch, at, content, joined=True)
        _take_usage(sketch, message.usage)
        return "merged", "assistant", _odd(session) or "another part of one answer", at
    at = len(session.sketches)
    sketch = Sketch(
        "assistant",
        message.role or "assistant",
        "",
        record.parent_uuid,
        record.timestamp,
        record.is_sidechain,
        model=message.model,
        request_id=record.request_id,
        usage=message.usage,
    )
    if not _fill(session, sketch, at, content, joined=False):
        session.odd = None
        return "dropped", "assistant", session.why_empty(content), None
    if record.is_api_error_message:
        sketch.mark("api error")
    if message.id:
        session.answers[message.id] = at
    session.add(sketch, record.uuid)
    return "kept", "assistant", _odd(session), at


def _odd(session: Session) -> str | None:
    odd, session.odd = session.odd, None
    return odd


def _begun(session: Session, record: Line, message: RawMessage) -> int | None:
    """Sketch of the answer that this line goes on with, or that it repeats."""
    if session.rules.join_streamed and message.id:
        at = session.answers.get(message.id)
        if at is not None:
            asked = session.sketches[at].request_id
            return at if not (asked and record.request_id) or asked == record.request_id else None
    return session.repeated(record, "assistant")


def _fill(session: Session, sketch: Sketch, at: int, content: list[Block], *, joined: bool) -> bool:
    """Add blocks to an answer; False when there was nothing in them."""
    any_use = False
    for block in content:
        kind = block.type
        if kind == "text" and block.text:
            text = ecma.trim(block.text)
            if text:
                any_use = True
                sketch.texts = _with(sketch.texts, text) if joined else [*(sketch.texts or ()), text]
        elif kind in _CALLS:
            any_use = True
            _call(session, sketch, at, block)
        elif kind == "thinking" and block.thinking:
            any_use = True
            sketch.thoughts = (
                _with(sketch.thoughts, block.thinking) if joined else [*(sketch.thoughts or ()), block.thinking]
            )
        elif session.note_block(sketch, block):
            any_use = True
    return any_use


def _with(parts: list[str] | None, text: str) -> list[str]:
    """Add what another line brings; a later snapshot replaces the one that it extends."""
    if parts is None:
        return [text]
    if text in parts:
        return parts
    if text.startswith(parts[-1]):
        parts[-1] = text
    else:
        parts.append(text)
    return parts


def _call(session: Session, sketch: Sketch, at: int, block: Block) -> None:
    if not session.rules.pair_tools:
        block = Block(block.type)
    block.input = raw_text(block.input)  # type: ignore[assignment]
    id = block.id
    if id:
        earlier = session.calls.get(id)
        if earlier is not None and id in session.orphans:
            session.orphans.discard(id)
            session.sketches[earlier].move(at, "tool result")
        elif earlier == at and sketch.tools:
            sketch.tools[:] = [block if tool.id == id else tool for tool in sketch.tools]
            return
        session.calls[id] = at
    if sketch.tools is None:
        sketch.tools = [block]
    else:
        sketch.tools.append(block)


def _take_usage(sketch: Sketch, usage: Usage | None) -> None:
    """Snapshots count up: the largest output is the last."""
    if usage is None:
        return
    if sketch.usage is None or (usage.output_tokens or 0) >= (sketch.usage.output_tokens or 0):
        sketch.usage = usage
