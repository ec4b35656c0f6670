"""Careful rules for ``response_item`` lines and for the same items without an envelope.

Source: ``formats/codex.md`` sections 2.4, 2.5 and 2.8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crystal_nb import ecma
from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.codex_drafts import EVENT, ITEM, Call
from crystal_nb.adapters.codex_results import read_output
from crystal_nb.adapters.codex_shapes import Block, Payload, Wide, as_text, json_or_text, shown
from crystal_nb.adapters.codex_text import block_texts, images_in, split_prompt, without_envelopes
from crystal_nb.adapters.codex_thread import Thread

__all__ = ["ITEMS", "RARE_ITEMS", "Handler", "Kinds", "context", "metadata", "read_agent_message", "read_boundary"]
__all__ += ["read_message", "read_prompt"]

Handler = Callable[[str, Any, Thread], Outcome]
"""A rule for one kind: takes its name, the payload and the thread."""
Kinds = dict[str | None, tuple[str | None, Handler]]
"""By the kind's name: the repair that reads it (None: always), and how."""


def metadata(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """Bookkeeping that no message is made of."""
    return "metadata", kind, None, None


def read_message(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """A message as the model saw it."""
    role, content = payload.role, payload.content
    if role == "assistant":
        return _read_answer(kind, payload, thread)
    if role == "user":
        return _read_user(kind, payload, thread)
    if role in ("developer", "system"):
        return context(kind, role, "\n".join(block_texts(content)), thread)
    if role in ("function", "tool"):
        return _read_foreign_result(kind, "\n".join(block_texts(content)), thread)
    return "dropped", kind, f"unknown role {shown(role)} (tool version {thread.version})", None


def _read_answer(kind: str, payload: Payload, thread: Thread) -> Outcome:
    content = payload.content
    block = content[0] if type(content) is list and len(content) == 1 else None
    if type(block) is Block and type(block.text) is str:
        text = block.text
        if block.type == "reasoning":
            return thread.think(kind, [text], ITEM, "raw") if thread.rules.reasoning else _off(kind, "reasoning")
        images = images_in(content) if block.image_url is not None else None
    else:
        text, images = "\n".join(block_texts(_without_reasoning(kind, content, thread))), images_in(content)
    text = ecma.trim(text)
    if text:
        return thread.say(kind, text, ITEM, payload.id, images if thread.rules.images else None)
    if isinstance(payload.function_call, dict):
        return _call_inside(kind, payload.function_call, thread)
    return "dropped", kind, "blank text", None


def _without_reasoning(kind: str, content: Any, thread: Thread) -> Any:
    """Foreign writers put reasoning between the texts."""
    if not (isinstance(content, list) and any(isinstance(b, Block) and b.type == "reasoning" for b in content)):
        return content
    thoughts = [b for b in content if isinstance(b, Block) and b.type == "reasoning"]
    texts = [as_text(b.text) for b in thoughts if as_text(b.text)]
    if texts and thread.rules.reasoning:
        thread.think(kind, texts, ITEM, "raw")
    return [b for b in content if not (isinstance(b, Block) and b.type == "reasoning")]


def _call_inside(kind: str, call: dict[str, Any], thread: Thread) -> Outcome:
    if not thread.rules.tool_calls:
        return _off(kind, "tool_calls")
    name, arguments = as_text(call.get("name")), json_or_text(call.get("arguments"))
    return thread.call(kind, Call(name, None, arguments), ITEM)


def _read_foreign_result(kind: str, text: str, thread: Thread) -> Outcome:
    """The result of the first call that has none; other writers' results name no call."""
    if not thread.rules.tool_calls:
        return _off(kind, "tool_calls")
    waiting = [c for c in thread.answer.calls if c.result is None] if thread.answer is not None else []
    if not waiting:
        return thread.result(kind, None, text, None)
    waiting[0].result, waiting[0].has_output = text, True
    return "merged", kind, "result of the call", waiting[0].at


def _read_user(kind: str, payload: Payload, thread: Thread) -> Outcome:
    if not thread.rules.user_items:
        return _off(kind, "user_items")
    texts = block_texts(payload.content)
    names: list[str] = []
    rest = []
    for text in texts:
        found, more = without_envelopes(text)
        names += found
        rest += [more] if more else []
    images = images_in(payload.content) if thread.rules.images else []
    if not rest and not images:
        text = "\n".join(texts)
        return context(kind, ", ".join(names), text, thread) if names else ("dropped", kind, "blank text", None)
    return read_prompt(kind, "\n".join(rest), ITEM, payload.id, images, thread)


def read_prompt(kind: str, text: str, place: int, id: Any, images: list[str], thread: Thread) -> Outcome:
    """A typed prompt, less what an IDE put before it."""
    before, text = split_prompt(text)
    marks = [f"ide context {len(before)} characters", *images] if before else images
    if not text and not images:
        return "dropped", kind, "ide context without a request" if before else "blank text", None
    return thread.prompt(kind, text, place, id, marks)


def context(kind: str, name: str, text: str, thread: Thread) -> Outcome:
    """An injected text: found by its fate, and a message only where that is asked for."""
    if not thread.rules.context_as_messages or not ecma.trim(text):
        return "metadata", kind, f"injected context: {name}", None
    draft = thread.add("system", ecma.trim(text), role="context")
    draft.mark(f"injected context: {name}")
    return "kept", kind, None, draft.at


def _off(kind: str, field: str) -> Outcome:
    return "dropped", kind, f"rule {field} is off", None


def read_reasoning(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """Readable reasoning; most of it is encrypted and says nothing here."""
    texts, raw = _texts(payload.summary), _texts(payload.content)
    outcome = thread.think(kind, texts, ITEM) if texts else None
    if raw:
        outcome = thread.think(kind, raw, ITEM, "raw")
    return outcome or ("metadata", kind, "no readable text", None)


def _texts(blocks: Any) -> list[str]:
    if not blocks:
        return []
    if type(blocks) is list and len(blocks) == 1 and type(blocks[0]) is Block and type(blocks[0].text) is str:
        return [text] if (text := ecma.trim(blocks[0].text)) else []
    return [text for block in block_texts(blocks) if (text := ecma.trim(block))]


def read_call(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """A call of a function or of a tool with free input."""
    given = payload.arguments if payload.arguments is not None else payload.input
    name = as_text(payload.name) or payload.type or ""
    if payload.namespace and isinstance(payload.namespace, str):
        name = f"{payload.namespace}.{name}"
    id = payload.call_id if type(payload.call_id) is str else as_text(payload.id) or None
    text = given if type(given) is str else json_or_text(given)
    return thread.call(kind, Call(name, id, text), ITEM)


def read_action(kind: str, payload: Wide, thread: Thread) -> Outcome:
    """A call of a tool that the model has built in; its action is its input."""
    given = next((v for v in (payload.action, payload.arguments, payload.input) if v is not None), None)
    error = True if payload.status in ("failed", "incomplete") else None
    id = as_text(payload.call_id) or as_text(payload.id) or None
    return thread.call(kind, Call(payload.type or "", id, json_or_text(given), None, error), ITEM)


def read_result(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """What a tool answered."""
    text, is_error, marks = read_output(payload.output)
    return thread.result(kind, payload.call_id, text, is_error, marks)


def read_search_result(kind: str, payload: Wide, thread: Thread) -> Outcome:
    """Tools that a search found."""
    text = json_or_text(payload.tools) if payload.tools is not None else read_output(payload.output)[0]
    return thread.result(kind, payload.call_id, text, None)


def read_image_call(kind: str, payload: Wide, thread: Thread) -> Outcome:
    """A generated image: named, not kept."""
    call = Call("image_generation", as_text(payload.id) or None, json_or_text(payload.prompt))
    call.result = f"(image of {len(payload.result)} base64 characters)" if isinstance(payload.result, str) else None
    return thread.call(kind, call, ITEM)


def read_agent_message(kind: str, payload: Wide, thread: Thread) -> Outcome:
    """A message between agents."""
    text = ecma.trim("\n".join(block_texts(payload.content)))
    if not text:
        return "metadata", kind, "no readable text", None
    mark = f"agent message from {as_text(payload.author)} to {as_text(payload.recipient)}"
    return thread.note(kind, text, EVENT if kind.startswith("inter_") else ITEM, mark, role="agent", id=payload.id)


def read_boundary(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """An encrypted compaction, or the event of one: what follows knows no more than its summary."""
    if "compact boundary" not in thread.pending and not _is_boundary(thread):
        thread.pending.append("compact boundary")
    return "metadata", kind, "compact boundary", None


def _is_boundary(thread: Thread) -> bool:
    """The summary's line and the event stand together."""
    return bool(thread.drafts) and "compact summary" in thread.drafts[-1].marks


ITEMS: Kinds = {
    "message": (None, read_message),
    None: (None, read_message),
    "reasoning": ("reasoning", read_reasoning),
    "function_call": ("tool_calls", read_call),
    "custom_tool_call": ("tool_calls", read_call),
    "function_call_output": ("tool_calls", read_result),
    "custom_tool_call_output": ("tool_calls", read_result),
    "compaction": ("compactions", read_boundary),
    "compaction_summary": ("compactions", read_boundary),
    "context_compaction": ("compactions", read_boundary),
    "ghost_snapshot": (None, metadata),
    "additional_tools": (None, metadata),
}
"""Kinds of ``response_item``: the repair that reads it, and how."""

RARE_ITEMS: Kinds = {
    "local_shell_call": ("tool_calls", read_action),
    "web_search_call": ("tool_calls", read_action),
    "tool_search_call": ("tool_calls", read_action),
    "tool_search_output": ("tool_calls", read_search_result),
    "tool_search_call_output": ("tool_calls", read_search_result),
    "image_generation_call": ("tool_calls", read_image_call),
    "agent_message": ("narrative", read_agent_message),
}
"""Those that need the fields of `Wide`."""
