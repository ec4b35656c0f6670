"""Careful rules for whole lines: session facts, turns, compaction, older and foreign shapes.

Source: ``formats/codex.md`` sections 2.2, 2.3, 2.7 and 2.8.
"""

from __future__ import annotations

import functools
from typing import Any

from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.codex_drafts import ITEM, Call
from crystal_nb.adapters.codex_events import EVENTS, RARE_EVENTS
from crystal_nb.adapters.codex_items import (
    ITEMS,
    RARE_ITEMS,
    Handler,
    Kinds,
    metadata,
    read_agent_message,
    read_message,
)
from crystal_nb.adapters.codex_lineage import links_of_meta
from crystal_nb.adapters.codex_rules import CodexRules
from crystal_nb.adapters.codex_shapes import Bare, Git, Payload, Wide, as_text, json_or_text, shown
from crystal_nb.adapters.codex_thread import Thread, as_time
from crystal_nb.errors import ParseError

__all__ = ["Tables", "kind_name", "read_bare", "tables", "unknown"]

Table = dict[Any, tuple[str, Handler]]
"""Name and handler by the kind of the payload."""


def read_meta(kind: str, meta: Wide, thread: Thread) -> Outcome:
    """The first says whose file this is; another thread's is a fork's copy of its parent's."""
    id = as_text(meta.id) or None
    if thread.has_meta and thread.rules.own_identity:
        if id is not None and id != thread.id:
            thread.copied_from = thread.copied_from or id
            return "metadata", kind, "copied from the parent", None
        return "metadata", kind, "again", None
    if meta.history_mode not in (None, "", "legacy", "paginated"):
        reason = f"unknown layout: history_mode {shown(meta.history_mode)!r}"
        raise ParseError(reason, source="codex", path=thread.path)
    thread.has_meta = True
    thread.id, thread.cwd = id or thread.id, as_text(meta.cwd) or thread.cwd
    thread.git_branch = as_text(meta.git.branch) or None if isinstance(meta.git, Git) else None
    thread.version = as_text(meta.cli_version) or None
    thread.forked_from, thread.parent_id, links = links_of_meta(meta, thread.id)
    thread.links += links
    thread.history_base = meta.history_base
    if isinstance(meta.history_base, dict):  # then nothing is copied
        thread.forked_from = None
    return "metadata", kind, None, None


def read_context(kind: str, context: Payload, thread: Thread) -> Outcome:
    """Model and folder of what follows."""
    thread.start_turn(context.turn_id)
    if thread.rules.usage:
        thread.model = as_text(context.model) or thread.model
    cwd = as_text(context.cwd)
    if cwd:
        thread.cwd = thread.cwd or cwd
        if cwd != (thread.turn_cwd or thread.cwd):
            thread.pending.append(f"cwd {cwd}")
        thread.turn_cwd = cwd
    return "metadata", kind, None, None


def read_compacted(kind: str, payload: Payload, thread: Thread) -> Outcome:
    """From here on the model saw a summary; the history that it restates is not read again."""
    text = ecma.trim(as_text(payload.message))
    if not text:
        if "compact boundary" not in thread.pending:
            thread.pending.append("compact boundary")
        return "metadata", kind, "compact boundary", None
    thread.pending = [mark for mark in thread.pending if mark != "compact boundary"]
    draft = thread.add("system", text)
    draft.mark("compact boundary", "compact summary")
    return "kept", kind, None, draft.at


_LINES: Kinds = {
    "turn_context": (None, read_context),
    "compacted": ("compactions", read_compacted),
    "world_state": (None, metadata),
    "token_usage_record": (None, metadata),
    "security_risk_score": (None, metadata),
    "inter_agent_communication_metadata": (None, metadata),
}
_RARE_LINES: Kinds = {
    "session_meta": (None, read_meta),
    "inter_agent_communication": ("narrative", read_agent_message),
}


class Tables(Struct, frozen=True):
    """Name and handler by kind: of frequent kinds, and of those that need the fields of `Wide`."""

    frequent: Table
    """Events and items by the kinds of the line and of the payload."""
    items: Table
    lines: Table
    rare_events: Table
    rare_items: Table
    rare_lines: Table


@functools.lru_cache(maxsize=8)
def tables(rules: CodexRules) -> Tables:
    """All handlers; a kind whose repair is off is dropped."""

    def of(kinds: Kinds, prefix: str) -> Table:
        return {k: (f"{prefix}{k or ''}".rstrip("/"), _on(rules, *v)) for k, v in kinds.items()}

    events, items, lines = "event_msg/", "response_item/", ""
    by_line = {"event_msg": of(EVENTS, events), "response_item": of(ITEMS, items)}
    frequent = {(line, kind): rule for line, table in by_line.items() for kind, rule in table.items()}
    rare = of(RARE_EVENTS, events), of(RARE_ITEMS, items), of(_RARE_LINES, lines)
    return Tables(frequent, by_line["response_item"], of(_LINES, lines), *rare)


def _on(rules: CodexRules, field: str | None, handler: Handler) -> Handler:
    if field is None or getattr(rules, field):
        return handler
    reason = f"rule {field} is off"
    return lambda kind, payload, thread: ("dropped", kind, reason, None)


def unknown(kind: Any, inner: Any, thread: Thread) -> Outcome:
    """A kind that no rule knows, by tool version."""
    return "dropped", kind_name(kind, inner), f"unknown kind (tool version {thread.version})", None


def kind_name(kind: Any, inner: Any = None) -> str:
    """Name of a kind of line, with the payload's."""
    return f"{shown(kind)}/{shown(inner)}".rstrip("/")


_ENVELOPES = ("event_msg", "response_item", *_LINES, *_RARE_LINES)


def read_bare(record: Bare, thread: Thread) -> Outcome:
    """A line without an envelope.

    Raises
    ------
    ParseError
        If it is the output of ``exec --json``, which is no rollout.
    """
    thread.time = as_time(record.timestamp)
    kind = record.type
    if kind in ("thread.started", "turn.started", "item.completed") and not thread.drafts and not thread.has_meta:
        raise ParseError("unknown layout: output of exec --json, not a rollout", source="codex", path=thread.path)
    if not thread.rules.old_shapes or kind in _ENVELOPES:
        return "dropped", kind_name(kind), "no payload object", None
    if isinstance(record.message, dict) and kind in ("user", "assistant", "tool", "system"):
        return _read_foreign(kind, record, record.message, thread)
    if kind is None and record.role is None:
        return _read_head(record, thread)
    known = tables(thread.rules)
    found = known.items.get(kind) or known.rare_items.get(kind) if isinstance(kind, (str, type(None))) else None
    return unknown(kind, None, thread) if found is None else found[1](kind or "message", record, thread)


def _read_head(record: Bare, thread: Thread) -> Outcome:
    """The first line of the older shape, or a marker."""
    if record.record_type is not None:
        return "metadata", f"record_type {kind_name(record.record_type)}", None, None
    if as_text(record.id) and not thread.has_meta:
        thread.id, thread.has_meta = as_text(record.id), True
        thread.git_branch = as_text(record.git.branch) or None if isinstance(record.git, Git) else None
        return "metadata", "session", None, None
    return unknown("", None, thread)


def _read_foreign(kind: str, record: Bare, message: dict[str, Any], thread: Thread) -> Outcome:
    """A message of another writer: ``{"type","message":{"role","content"},"uuid"}``."""
    thread.cwd = thread.cwd or as_text(record.workspace) or as_text(record.cwd) or None
    if kind == "tool" and thread.rules.tool_calls:
        call = Call(as_text(message.get("tool_name")), as_text(record.uuid) or None)
        call.input, call.result = json_or_text(message.get("tool_input")), json_or_text(message.get("tool_output"))
        return thread.call(kind, call, ITEM)
    content = message.get("content")
    payload = Payload(role=kind, content=content if isinstance(content, (str, list)) else None, id=record.uuid)
    return read_message(kind, payload, thread)
