"""Records that are neither prompt nor answer: system records, attachments, queues, titles, bookkeeping."""

from __future__ import annotations

from collections.abc import Callable

from crystal_nb import ecma
from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.claude_draft import Session
from crystal_nb.adapters.claude_envelopes import HARNESS, sort_text
from crystal_nb.adapters.claude_prompts import meet_queued, prompt_text
from crystal_nb.adapters.claude_records import Block, Line, Rare

__all__ = ["BOOKKEEPING", "read_other"]

_BOOKKEEPING = frozenset(
    (
        "progress",
        "file-history-snapshot",
        "file-history-delta",
        "attribution-snapshot",
        "content-replacement",
        "worktree-state",
        "speculation-accept",
        "saved_hook_context",
        "agent-name",
        "agent-color",
        "agent-setting",
        "tag",
        "task-summary",
        "mode",
        "permission-mode",
        "pr-link",
        "frame-link",
        "bridge-session",
        "continued-in",
        "cost-state",
        "atis-latch",
        "marble-origami-commit",
        "marble-origami-snapshot",
        "rewind-pointer",
        "auto-mode-denial",
    )
)
_EVENTS = frozenset(("api_error", "turn_duration", "stop_hook_summary", "bridge_status", "microcompact_boundary"))
_TOLD = frozenset((None, "local_command", "away_summary", "informational", "compact_boundary"))
_ATTACHED = frozenset(
    (
        "file",
        "compact_file_reference",
        "edited_text_file",
        "todo_reminder",
        "task_reminder",
        "task_status",
        "plan_mode",
        "hook_success",
        "hook_blocking_error",
        "hook_non_blocking_error",
        "hook_cancelled",
        "deferred_tools_delta",
        "mcp_instructions_delta",
        "skill_listing",
    )
)


BOOKKEEPING: dict[str | None, Outcome] = {kind: ("metadata", kind, "bookkeeping", None) for kind in _BOOKKEEPING}
"""Outcomes of records that are told by their kind alone; they can be a third of all lines."""


def read_other(session: Session, record: Line, kind: str) -> Outcome:
    """What becomes of a record that is neither prompt nor answer nor bookkeeping."""
    reader = _READERS.get(kind)
    return reader(session, record, session.rare()) if reader is not None else session.unknown(kind)


def _system(session: Session, record: Line, rare: Rare) -> Outcome:
    subtype = rare.subtype
    kind = f"system/{subtype}" if subtype else "system"
    if record.uuid and rare.logical_parent_uuid and record.parent_uuid is None:
        session.parents[record.uuid] = rare.logical_parent_uuid
    if subtype in _EVENTS:
        return "metadata", kind, "event", None
    text = prompt_text(rare.content) or prompt_text(record.message.content if record.message else None)
    if not session.rules.keep_system:
        return "dropped", kind, "kind is not imported", None
    if subtype == "compact_boundary":
        return "kept", kind, None, _boundary(session, record, rare, text)
    if not text:
        return session.unknown(kind) if subtype not in _TOLD else ("dropped", kind, "no content", None)
    reason = None if subtype in _TOLD else session.unknown(kind)[2]
    role, shown, tag = sort_text(text)
    if tag in ("command", "shell command"):
        return "kept", kind, reason, session.add_text("user", role, record, shown, tag)
    marks = (HARNESS, tag) if tag else (HARNESS,)
    return "kept", kind, reason, session.add_text("system", "system", record, text, *marks)


def _boundary(session: Session, record: Line, rare: Rare, text: str) -> int:
    record.parent_uuid = record.parent_uuid or rare.logical_parent_uuid
    facts = rare.compact_metadata
    marks = ["compact boundary"]
    if facts is not None and facts.trigger:
        marks.append(f"compaction {facts.trigger}")
    if facts is not None and facts.pre_tokens is not None:
        marks.append(f"{facts.pre_tokens} tokens before")
    return session.add_text("system", "system", record, text, *marks)


def _attachment(session: Session, record: Line, rare: Rare) -> Outcome:
    attachment = rare.attachment
    name = attachment.type if attachment is not None else None
    kind = f"attachment/{name}" if name else "attachment"
    if attachment is None or name != "queued_command":
        return ("metadata", kind, "context for the model", None) if name in _ATTACHED else session.unknown(kind)
    text = prompt_text(attachment.prompt)
    if not (text and session.rules.queued_prompts):
        return "dropped", kind, "no content" if not text else "kind is not imported", None
    known = session.ids.get(attachment.source_uuid or "")
    if known is not None and text in (session.sketches[known].texts or ()):
        return "merged", kind, "prompt that is there already", known
    at = _queued(session, record, text)
    _note_media(session, at, attachment.prompt)
    meet_queued(session, text, at)
    session.attached[text] = at
    return "kept", kind, None, at


def _queue(session: Session, record: Line, rare: Rare) -> Outcome:
    text = prompt_text(rare.content)
    kind = "queue-operation"
    if rare.operation not in ("enqueue", None) or not text or not session.rules.queued_prompts:
        if rare.operation == "popAll":
            for at in (at for places in session.queued.values() for at in places):
                session.sketches[at].mark("taken back")
        return "metadata", kind, "bookkeeping", None
    there = session.attached.get(text)
    if there is not None and str(record.timestamp) <= str(session.sketches[there].time):
        return "merged", kind, "queued prompt, written down after it was attached", there
    at = _queued(session, record, text)
    _note_media(session, at, rare.content)
    session.queued.setdefault(text, []).append(at)
    return "kept", kind, "queued prompt that no other record repeats", at


def _queued(session: Session, record: Line, text: str) -> int:
    role, shown, tag = sort_text(text) if session.rules.mark_harness else ("user", text, None)
    marks = ["queued", *([tag] if tag else ()), *([HARNESS] if role == HARNESS else ())]
    if role == "user" and session.first_prompt is None:
        session.first_prompt = shown
    return session.add_text("user", role, record, shown, *marks)


def _note_media(session: Session, at: int, content: str | list[Block] | None) -> None:
    for block in content if isinstance(content, list) else ():
        if block.type != "text":
            session.note_block(session.sketches[at], block)


def _summary(session: Session, record: Line, rare: Rare) -> Outcome:
    if rare.summary:
        session.summaries.append((rare.summary, rare.leaf_uuid))
        return "metadata", "summary", "title of the conversation that holds its leaf", None
    text = prompt_text(record.message.content if record.message else None)
    if not text or not session.rules.keep_system:
        return "dropped", "summary", "no content", None
    return "kept", "summary", None, session.add_text("system", "system", record, text, "compact summary", HARNESS)


def _title(session: Session, record: Line, rare: Rare) -> Outcome:
    title = rare.custom_title or rare.ai_title
    if title:
        session.titles[record.type or ""] = title
    return "metadata", record.type or "", "title", None


def _last_prompt(session: Session, record: Line, rare: Rare) -> Outcome:
    session.leaf = rare.leaf_uuid or session.leaf
    return "metadata", "last-prompt", "bookkeeping", None


def _fork(session: Session, record: Line, rare: Rare) -> Outcome:
    if rare.forked_session_id:
        session.fork_refs.append((rare.forked_session_id, rare.up_to_message_id))
    return "metadata", "fork-context-ref", "origin of a fork", None


def _logged_result(session: Session, record: Line, rare: Rare) -> Outcome:
    """A result as logs of other writers have it: without an id, below the message that called."""
    at = session.ids.get(record.parent_uuid or "")
    content = record.message.content if record.message else None
    tools = session.sketches[at].tools if at is not None else None
    waiting = [tool for tool in tools or () if tool.id and tool.id not in session.results]
    if len(waiting) != 1 or type(content) is not str:
        return session.unknown("tool_result")
    session.results[waiting[0].id or ""] = ecma.trim(content), None
    return "merged", "tool_result", "tool result, by its parent", at


_READERS: dict[str, Callable[[Session, Line, Rare], Outcome]] = {
    "system": _system,
    "attachment": _attachment,
    "queue-operation": _queue,
    "summary": _summary,
    "custom-title": _title,
    "ai-title": _title,
    "last-prompt": _last_prompt,
    "fork-context-ref": _fork,
    "tool_result": _logged_result,
}
