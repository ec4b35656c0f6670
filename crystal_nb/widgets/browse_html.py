"""The import browser's panels as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crystal_nb import ecma
from crystal_nb.details import ToolCall
from crystal_nb.records import Conversation, Fate, Message, counted
from crystal_nb.widgets import lab_html
from crystal_nb.widgets.browse_filters import told
from crystal_nb.widgets.browse_view import COLUMNS, Entry, Part, parts, row_of
from crystal_nb.widgets.markup import block, code, region, table, text

__all__ = ["MESSAGES", "conversation", "filtered_by", "head", "listing", "two_hashes"]

MESSAGES = 50
"""Messages of a conversation that are shown at once."""
_LOSSES = 50
"""Rows for lost records that are shown with them, the heads of their tables too."""
_ROOM = 4_000


def listing(entries: Sequence[Entry], positions: Sequence[int], start: int, total: int) -> str:
    """Rows of the list from a position on, as a page without a kernel has them."""
    rows = [[text(cell) for cell in row_of(entries[n])] for n in positions]
    shown = f"{start + 1:,} to {start + len(rows):,} of " if len(rows) < total else ""
    return table(f"{shown}{counted(total, 'conversation')}", COLUMNS, rows)


def filtered_by(filters: Mapping[str, Any]) -> str:
    """Which filters are on; nothing where none is."""
    return f"<p><b>Filters</b>: {text(told(filters))}</p>" if filters else ""


def two_hashes(entry: Entry, left: str, why: str) -> str:
    """That the rows of a stored conversation have another hash than the stored one, and why."""
    return (
        f'<div class="cnb-status cnb-yes" data-hashes="differ"><b>Two hashes.</b> Stored: {code(entry.content_hash)}. '
        f'Of the rows that are left: <code data-hash="rows">{text(left)}</code>. {text(why)}</div>'
    )


def head(entry: Entry, difference: tuple[str, str] | None = None) -> str:
    """What is known of an entry: ids, hash, that of its rows where it is another, and the path of its decision."""
    rows = [
        ["source", text(entry.source)],
        ["id", code(entry.id)],
        ["project", text(entry.project)],
        ["time", _time(entry)],
        ["content hash", f'<code data-hash="entry">{text(entry.content_hash)}</code>'],
        ["decision", text(entry.decision or "none: no report was given")],
    ]
    shown = table("Conversation", ["field", "value"], rows)
    if difference is not None:
        shown += two_hashes(entry, *difference)
    if entry.error:
        shown += f'<div class="cnb-status cnb-yes"><b>The parse failed.</b> {text(entry.error)}</div>'
    if entry.why is not None:
        shown += f"<details><summary>Path of the decision: {text(entry.why.action)}</summary>"
        shown += f"{lab_html.path(entry.why, 0, True)}</details>"
    return shown


def _time(entry: Entry) -> str:
    of_file = " (of its file: no record says when)" if entry.has_file_time else ""
    return code(entry.time) + of_file if entry.time else "not known"


def conversation(entry: Entry, known: Conversation, start: int) -> str:
    """Messages from a position on, with what was lost between them."""
    every = parts(known, entry.fates)
    shown = every[start + 1 : start + 1 + MESSAGES]
    if start == 0:
        shown = [every[0], *shown]
    room = _LOSSES
    body = []
    for part in shown:
        body.append(_part(part, room))
        room = max(0, room - len(part.lost) - 1) if part.lost else room
    count = len(known.messages)
    told = f"messages {start + 1:,} to {min(start + MESSAGES, count):,} of {count:,}" if count else "no message"
    return f'<p data-messages="{start}"><b>{told}</b></p>' + region("Messages", "".join(body))


def _part(part: Part, room: int) -> str:
    shown = _message(part.index or 0, part.message) if part.message is not None else ""
    return shown + (_lost(part.lost, room) if part.lost else "")


def _message(index: int, message: Message) -> str:
    role = "" if message.role in (None, message.type) else f" (role {text(ecma.to_text(message.role), 40)})"
    time = "" if message.timestamp is None else f" · {text(ecma.to_text(message.timestamp), 40)}"
    marks = "".join(
        f" · {name}" for name, yes in (("tool use", message.has_tool_use), ("code", message.has_code)) if yes
    )
    title = f"<b>{index} {text(message.type, 40)}</b>{role}{time}{marks}{_facts(message)}"
    body = f"<pre>{block(message.content, _ROOM)}</pre>" if message.content else "<p>(no text)</p>"
    thinking = _folded("thinking", ecma.to_text(message.thinking)) if message.thinking else ""
    tools = "".join(map(_tool, message.details.tools[:20])) if message.details else ""
    kind = message.type if message.type in ("user", "assistant", "system") else "other"
    return f'<div class="cnb-message cnb-{kind}"><p>{title}</p>{thinking}{body}{tools}</div>'


def _facts(message: Message) -> str:
    known = message.details
    if known is None:
        return ""
    facts = [known.model] if known.model else []
    return "".join(f" · {text(fact, 60)}" for fact in (*facts, *known.marks[:5]))


def _tool(call: ToolCall) -> str:
    state = " (failed)" if call.is_error else ""
    texts = (("input", call.input), ("result", call.result))
    body = "".join(f"<p>{name}</p><pre>{block(value or '–', _ROOM)}</pre>" for name, value in texts)
    return f"<details><summary>tool call {text(call.name, 60)}{state}</summary>{body}</details>"


def _folded(name: str, body: str) -> str:
    return f"<details><summary>{name}, {len(body):,} characters</summary><pre>{block(body, _ROOM)}</pre></details>"


def _lost(fates: Sequence[Fate], room: int) -> str:
    fit = fates[: max(0, room - 1)]
    rows = [[text(f.kind, 60), text(f.reason or "", 120), text(_where(f), 60), code(f.excerpt, 100)] for f in fit]
    what = f"{counted(len(fates), 'record')} lost here"
    reasons = list(dict.fromkeys(f.reason or f.kind for f in fates))
    told = f"{what}: {text('; '.join(reasons), 120)}"
    rest = f"<p>{len(fates) - len(fit):,} more</p>" if len(fates) > len(fit) else ""
    shown = table("Lost records", ["kind", "reason", "place", "start"], rows) if rows else ""
    return f'<details class="cnb-lost"><summary>✗ {told}</summary>{shown}{rest}</details>'


def _where(fate: Fate) -> str:
    return f"line {fate.line}" if fate.line is not None else fate.key or ""
