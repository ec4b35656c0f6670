"""Careful rules for ``event_msg`` lines, completed items among them.

Source: ``formats/codex.md`` sections 2.5 and 2.6.
"""

from __future__ import annotations

from typing import Any

from crystal_nb import ecma
from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.codex_drafts import COMPLETED, EVENT, LAST, Call
from crystal_nb.adapters.codex_items import Kinds, context, metadata, read_boundary, read_prompt
from crystal_nb.adapters.codex_shapes import Item, Payload, TokenInfo, Wide, as_text, json_or_text
from crystal_nb.adapters.codex_text import block_texts, image_mark, images_in
from crystal_nb.adapters.codex_thread import Thread

__all__ = ["EVENTS", "RARE_EVENTS"]


def read_user(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """What the user typed."""
    text = as_text(payload.message)
    if not isinstance(payload.message, str):
        return "dropped", kind, "message is no text", None
    if payload.kind in ("user_instructions", "environment_context"):
        return context(kind, payload.kind, text, thread)
    images = []
    if thread.rules.images:
        given = [v for v in (payload.images, payload.local_images) if isinstance(v, list)]
        images = [image_mark(url) for urls in given for url in urls]
    return read_prompt(kind, text, EVENT, payload.id, images, thread)


def read_answer(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """What the assistant said."""
    message = payload.message
    if type(message) is not str:
        return "dropped", kind, "message is no text", None
    text = ecma.trim(message)
    return thread.say(kind, text, EVENT) if text else ("dropped", kind, "blank text", None)


def read_summary(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """A summary of reasoning."""
    text = ecma.trim(as_text(payload.text))
    return thread.think(kind, [text], EVENT) if text else ("metadata", kind, "no readable text", None)


def read_raw_reasoning(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """Reasoning itself."""
    text = ecma.trim(as_text(payload.text))
    return thread.think(kind, [text], EVENT, "raw") if text else ("metadata", kind, "no readable text", None)


def read_tokens(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """Tokens of the last response."""
    info = payload.info
    if type(info) is not TokenInfo:
        return "metadata", kind, "no usage of the last response", None
    return "metadata", kind, thread.count(info.last_token_usage, info.total_token_usage), None


def read_turn(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """A turn begins."""
    thread.start_turn(payload.turn_id)
    return "metadata", kind, None, None


def read_turn_end(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """A turn ends; its last message is new only where the turn's answers are missing."""
    text = ecma.trim(as_text(payload.last_agent_message))
    if not text or thread.answers:
        return "metadata", kind, None, None
    return thread.say(kind, text, LAST)


def read_abort(kind: str, payload: Wide, thread: Thread) -> Outcome:
    """A turn was broken off."""
    if thread.drafts:
        thread.drafts[-1].mark(f"turn aborted: {as_text(payload.reason)}")
    return "metadata", kind, None, None


def read_rollback(kind: str, payload: Wide, thread: Thread) -> Outcome:
    """The last turns are undone."""
    turns = payload.num_turns
    if not isinstance(turns, int) or isinstance(turns, bool) or turns < 1:
        return "metadata", kind, "no number of turns", None
    return "metadata", kind, f"{thread.roll_back(turns)} messages reverted", None


def read_title(kind: str, payload: Wide, thread: Thread) -> Outcome:
    """The thread got a name."""
    name = ecma.trim(as_text(payload.thread_name))
    thread.title = name or thread.title
    return "metadata", kind, None, None


def read_error(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """Something failed."""
    text = ecma.trim(as_text(payload.message))
    return thread.note(kind, text, EVENT, "error") if text else ("metadata", kind, "no readable text", None)


def read_review(kind: str, payload: Wide, thread: Thread) -> Outcome:
    """A review begins or ends."""
    text = review_text(payload.review_output) or ecma.trim(as_text(payload.user_facing_hint))
    return thread.note(kind, text, EVENT, "review") if text else ("metadata", kind, "no readable text", None)


def review_text(review: Any) -> str:
    """The explanation of a review and its findings as text."""
    if not isinstance(review, dict):
        return ecma.trim(as_text(review))
    findings = review.get("findings")
    parts = [as_text(review.get("overall_explanation")), as_text(review.get("overall_correctness"))]
    for finding in findings if isinstance(findings, list) else []:
        if isinstance(finding, dict):
            parts.append(f"- {as_text(finding.get('title'))}\n{as_text(finding.get('body'))}")
    return ecma.trim("\n\n".join(part for part in parts if part))


def read_tool_event(kind: str, payload: Wide, thread: Thread) -> Outcome:
    """What the front end saw of a call: it fills up the model's call, or stands for it."""
    id = as_text(payload.call_id) or as_text(payload.event_id) or None
    given = [payload.arguments, payload.input, payload.command, payload.invocation, payload.changes]
    given += [payload.query, payload.path, payload.prompt, payload.action]
    call_input = next((v for v in given if v is not None), None)
    name = as_text(payload.name) or (payload.type or "").removesuffix("_end")
    result = next((v for v in (payload.aggregated_output, payload.result) if v is not None), None)
    if "image_generation" in (payload.type or "") and isinstance(result, str):
        result = f"(image of {len(result)} base64 characters)"
    call = Call(name, id, json_or_text(call_input), json_or_text(result), _failed(payload), is_called=False)
    return thread.call(kind, call, EVENT)


def _failed(of: Wide | Item) -> bool | None:
    if isinstance(of.exit_code, int) and not isinstance(of.exit_code, bool):
        return of.exit_code != 0
    if isinstance(of, Wide) and isinstance(of.success, bool):
        return not of.success
    if isinstance(of, Item) and of.error is not None:
        return True
    known = {"failed": True, "declined": True, "completed": False}
    return known.get(of.status) if isinstance(of.status, str) else None


def read_completed(kind: str, payload: Wide, thread: Thread) -> Outcome:
    """A finished item; paginated threads have nothing else for what was typed."""
    item = payload.item
    if not isinstance(item, Item) or not isinstance(item.type, str):
        return "dropped", kind, "no item", None
    kind = f"{kind}/{item.type}"
    if item.type == "UserMessage":
        images = images_in(item.content) if thread.rules.images else []
        return read_prompt(kind, "\n".join(block_texts(item.content)), COMPLETED, item.id, images, thread)
    if item.type in ("AgentMessage", "Plan"):
        text = ecma.trim("\n".join(block_texts(item.content)) or as_text(item.text))
        marks = ["plan"] if item.type == "Plan" else None
        return thread.say(kind, text, COMPLETED, item.id, marks) if text else ("dropped", kind, "blank text", None)
    if item.type == "Reasoning":
        return _completed_reasoning(kind, item, thread)
    if item.type == "ContextCompaction":
        return read_boundary(kind, payload, thread) if thread.rules.compactions else _off(kind, "compactions")
    if item.type in ("EnteredReviewMode", "ExitedReviewMode"):
        text = review_text(item.review)
        return thread.note(kind, text, COMPLETED, "review") if text else ("metadata", kind, "no readable text", None)
    if item.type in _TOOL_ITEMS:
        return _completed_call(kind, item, thread) if thread.rules.tool_calls else _off(kind, "tool_calls")
    return "dropped", kind, f"unknown kind (tool version {thread.version})", None


_TOOL_ITEMS = frozenset(
    {
        "CollabAgentToolCall",
        "CommandExecution",
        "DynamicToolCall",
        "Extension",
        "FileChange",
        "ImageGeneration",
        "ImageView",
        "McpToolCall",
        "Sleep",
        "SubAgentActivity",
        "WebSearch",
    }
)


def _completed_reasoning(kind: str, item: Item, thread: Thread) -> Outcome:
    if not thread.rules.reasoning:
        return _off(kind, "reasoning")
    texts = [text for t in block_texts(item.summary_text) if (text := ecma.trim(t))]
    raw = [text for t in block_texts(item.raw_content) if (text := ecma.trim(t))]
    outcome = thread.think(kind, texts, COMPLETED) if texts else None
    if raw:
        outcome = thread.think(kind, raw, COMPLETED, "raw")
    return outcome or ("metadata", kind, "no readable text", None)


def _completed_call(kind: str, item: Item, thread: Thread) -> Outcome:
    given = (item.command, item.arguments, item.changes, item.query, item.path, item.action, item.kind)
    call_input = next((v for v in given if v is not None), None)
    name = ".".join(part for part in (as_text(item.server), as_text(item.tool)) if part) or as_text(item.type)
    result = next((v for v in (item.aggregated_output, item.error, item.result) if v is not None), None)
    if item.type == "ImageGeneration" and isinstance(result, str):
        result = f"(image of {len(result)} base64 characters)"
    call = Call(
        name, as_text(item.id) or None, json_or_text(call_input), json_or_text(result), _failed(item), is_called=False
    )
    return thread.call(kind, call, COMPLETED)


def _off(kind: str, field: str) -> Outcome:
    return "dropped", kind, f"rule {field} is off", None


_TOOL_EVENTS = (
    "collab_agent_interaction_end",
    "collab_agent_spawn_end",
    "collab_close_end",
    "collab_waiting_end",
    "dynamic_tool_call_request",
    "dynamic_tool_call_response",
    "exec_command_end",
    "image_generation_end",
    "mcp_tool_call_end",
    "patch_apply_end",
    "sub_agent_activity",
    "tool_call",
    "view_image_tool_call",
    "web_search_end",
)

EVENTS: Kinds = {
    "user_message": (None, read_user),
    "agent_message": (None, read_answer),
    "agent_reasoning": ("reasoning", read_summary),
    "agent_reasoning_raw_content": ("reasoning", read_raw_reasoning),
    "token_count": ("usage", read_tokens),
    "task_started": (None, read_turn),
    "turn_started": (None, read_turn),
    "task_complete": (None, read_turn_end),
    "turn_complete": (None, read_turn_end),
    "context_compacted": ("compactions", read_boundary),
    "undo_completed": (None, metadata),
    "thread_settings_applied": (None, metadata),
    "thread_goal_updated": (None, metadata),
    "guardian_assessment": (None, metadata),
    "error": ("narrative", read_error),
}
"""Kinds of ``event_msg``: the repair that reads it, and how."""

RARE_EVENTS: Kinds = {
    "turn_aborted": ("narrative", read_abort),
    "thread_rolled_back": ("rollbacks", read_rollback),
    "thread_name_updated": (None, read_title),
    "entered_review_mode": ("narrative", read_review),
    "exited_review_mode": ("narrative", read_review),
    "item_completed": ("completed_items", read_completed),
    **dict.fromkeys(_TOOL_EVENTS, ("tool_calls", read_tool_event)),
}
"""Those that need the fields of `Wide`."""
