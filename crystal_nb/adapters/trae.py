"""Trae: each window's ``workspaceStorage/<id>/state.vscdb`` holds its conversations in one JSON value.

Source: ``formats/trae.md`` section 3; the numbers in comments are its rules.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterator
from functools import cmp_to_key
from pathlib import Path
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters import vscdb
from crystal_nb.adapters.base import Adapter, Draft, Outcome, Parsed, Rules, file_candidate, has_fence
from crystal_nb.adapters.jsonl import HEAD_BYTES
from crystal_nb.adapters.trae_careful import careful
from crystal_nb.adapters.trae_rules import V1
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder, raw_bytes
from crystal_nb.adapters.vscode import date_time, finish, item, readable_windows
from crystal_nb.config import Config
from crystal_nb.ecma.operators import is_greater, plus_one, to_number
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Fate, Message

__all__ = ["ADAPTER", "LATER"]

NAME = "trae"
_KEY = "memento/icube-ai-agent-storage"


class PlanItem(Struct, gc=False, rename="camel"):
    tool_name: str | None = None
    thought: str | None = None
    reasoning_content: str | None = None


class Guideline(Struct, gc=False, rename="camel"):
    thought: str | None = None
    plan_items: list[PlanItem] | None = None


class Task(Struct, gc=False, rename="camel"):
    proposal: str | None = None
    proposal_reasoning_content: str | None = None
    guideline: Guideline | None = None


class RawMessage(Struct, gc=False, rename="camel"):
    role: str | None = None
    content: str | None = None
    timestamp: float | None = None
    turn_index: float | UnsetType | None = UNSET
    turn_id: str | None = None
    agent_message_id: str | None = None
    agent_task_content: Task | None = None


class RawConversation(Struct, rename="camel"):
    session_id: str | UnsetType | None = UNSET
    created_at: float | UnsetType | None = UNSET
    updated_at: float | None = None
    messages: list[Raw] | None = None


class Storage(Struct):
    conversations: list[RawConversation] | None = field(name="list", default=None)


_STORAGE_DECODER = TypedDecoder(Storage)
_MESSAGE_DECODER = TypedDecoder(RawMessage)


def _root(config: Config) -> Path:
    return config.folder(NAME, "TRAE_DATA_DIR", config.user_data("Trae"))


def _count(root: Path, config: Config) -> int:
    """Rule 9."""
    return sum(len(conversations) for _, _, conversations in _windows(root))


def _candidates(root: Path, config: Config) -> list[Candidate]:
    """Rules 10 and 11."""
    found = []
    for project, path, conversations in _windows(root):
        whole = file_candidate(NAME, "", path, os.stat(path), project)
        for conversation in conversations:
            time = _first_truthy(conversation.updated_at, conversation.created_at)
            mtime = date_time(time) if ecma.truthy(time) else whole.file_mtime
            name = None if conversation.session_id is UNSET else conversation.session_id
            found.append(replace(whole, id=name, file_mtime=mtime))
    return found


def _windows(root: Path) -> Iterator[tuple[str, Path, list[RawConversation]]]:
    """Project, database and conversations of each window that has some (rules 4 to 8)."""
    return (window for window in readable_windows(root, _used_conversations) if window[2])


def _used_conversations(path: Path) -> list[RawConversation]:
    """Rule 7."""
    storage = _read_storage(path)
    conversations: Any = [] if storage is None else storage.conversations
    if not isinstance(conversations, list):
        return []
    if None in conversations:
        raise ValueError("list holds null")
    return [c for c in conversations if isinstance(c, RawConversation) and ecma.length(c.messages) > 0]


def _read_storage(path: Path | str) -> Storage | None:
    """Rule 6; None when the database has no such row."""
    row = vscdb.read(path, lambda connection: item(connection, _KEY))
    if row is None:
        return None
    type, value = row
    if type not in ("text", "blob"):
        raise ValueError(f"the value is of type {type}")
    storage = _STORAGE_DECODER.decode(vscdb.utf8(value) if type == "text" else value)
    if isinstance(storage, NotAnObject):
        raise ValueError("the value is no JSON object")
    return storage


def _read(candidate: Candidate, rules: Rules, config: Config) -> Parsed:
    draft = Draft(config)
    try:
        storage = _read_storage(candidate.file_path)
    except (ValueError, sqlite3.Error) as error:
        raise ParseError(str(error), source=NAME, path=candidate.file_path, row=_KEY) from error
    if storage is not None:
        _read_conversation(storage, candidate, draft)
    return finish(candidate, draft, tuple(draft.messages))


def _read_conversation(storage: Storage, candidate: Candidate, draft: Draft) -> None:
    """Rules 14 to 17; the fates come in the order of the list."""
    at, conversation = _find(storage.conversations, candidate)
    if conversation is None:
        return
    pointer = f"{_KEY}#/list/{at}/messages"
    turns, fates, row = _Turns(conversation, draft), {}, pointer
    try:
        values = _values(conversation.messages)
        messages = [_message(value) for value in values]
        for i in _turn_order(messages):
            row = f"{pointer}/{i}"
            fates[i] = _fate(row, values[i], turns.read(messages[i]))
    except ValueError as error:
        raise ParseError(str(error), source=NAME, path=candidate.file_path, row=row) from None
    draft.fates += (fates[i] for i in range(len(values)))


def _values(messages: Any) -> list[Any]:
    """What ``[...messages]`` spreads, if it has a length."""
    if isinstance(messages, (list, str)):
        return list(messages)
    if ecma.truthy(ecma.length(messages)):
        raise ValueError("messages can't be iterated")
    return []


def _message(value: Any) -> RawMessage | NotAnObject:
    message = _MESSAGE_DECODER.decode_value(value)
    if isinstance(message, NotAnObject) and message.value is None:
        raise ValueError("a message is null")
    return message


def _fate(row: str, value: Any, outcome: Outcome) -> Fate:
    status, kind, reason, index = outcome
    raw = raw_bytes(value)
    head = raw[:HEAD_BYTES] if status == "dropped" else b""
    return Fate(status, kind, reason, index, size=len(raw), key=row, head=head)


def _find(conversations: Any, candidate: Candidate) -> tuple[int, RawConversation | None]:
    """First conversation of the list whose id is strictly equal (rule 14)."""
    if not isinstance(conversations, list):
        raise ParseError("the value has no list", source=NAME, path=candidate.file_path, row=_KEY)
    for i, conversation in enumerate(conversations):
        if conversation is None:
            raise ParseError("the entry is null", source=NAME, path=candidate.file_path, row=f"{_KEY}#/list/{i}")
        if isinstance(conversation, RawConversation) and _is_same(conversation.session_id, candidate.id):
            return i, conversation
    return -1, None


def _is_same(session_id: Any, id: Any) -> bool:
    if id is None:
        return session_id is UNSET or session_id is None
    if isinstance(id, (list, dict)) or isinstance(session_id, bool) is not isinstance(id, bool):
        return False
    return bool(session_id == id)


def _turn_order(messages: list[RawMessage | NotAnObject]) -> list[int]:
    """Positions in the order of turns (rule 15)."""
    turns = [_turn(message) for message in messages]
    if not any(map(math.isnan, turns)):
        return sorted(range(len(turns)), key=turns.__getitem__)

    def compare(a: int, b: int) -> float:
        difference = turns[a] - turns[b]
        return 0 if math.isnan(difference) else difference

    return sorted(range(len(turns)), key=cmp_to_key(compare))  # type: ignore[arg-type]


def _turn(message: RawMessage | NotAnObject) -> float:
    turn = message.turn_index if isinstance(message, RawMessage) else None
    return 0 if turn is None or turn is UNSET else to_number(turn)


class _Turns:
    """Reads a conversation's messages one after the other; they share a clock that never goes back."""

    def __init__(self, conversation: RawConversation, draft: Draft) -> None:
        self.conversation = conversation
        self.draft = draft
        self.clock: Any = conversation.created_at  # rule 16

    def read(self, raw: RawMessage | NotAnObject) -> Outcome:
        """Rules 17 to 28; a ValueError stands for the pinned parser's TypeError, which loses the conversation."""
        if not isinstance(raw, RawMessage):
            return "dropped", "message", "not an object", None
        role = raw.role
        if role != "user" and role != "assistant":
            return "dropped", _kind(role), "role is neither user nor assistant", None
        thinking, has_tool_use = None, False
        if role == "user":
            content = _trimmed(raw.content if ecma.truthy(raw.content) else None)
        else:
            content, thinking = _answer(raw)
            has_tool_use = _has_tool_use(_plan_items(raw))
        if not content and not thinking:
            return "dropped", role, _why_empty(raw), None
        self.draft.messages.append(
            Message(
                role,
                content,
                role,
                has_tool_use=has_tool_use,
                has_code=has_fence(content),
                thinking=thinking,
                id=self._id(raw),
                timestamp=self._tick(raw.timestamp),
            )
        )
        return "kept", role, None, len(self.draft.messages) - 1

    def _id(self, raw: RawMessage) -> Any:
        own = _first_truthy(raw.agent_message_id, raw.turn_id)
        made = f"{ecma.to_text(self.conversation.session_id)}-{ecma.to_text(raw.turn_index)}"
        return own if ecma.truthy(own) else made

    def _tick(self, timestamp: Any) -> str:
        """Rules 26 and 27."""
        real = timestamp if ecma.truthy(timestamp) else 0
        time = real if is_greater(real, self.clock) else self.clock
        self.clock = plus_one(time)
        return date_time(time)


def _kind(role: Any) -> str:
    return role if isinstance(role, str) else "message"


def _first_truthy(first: Any, second: Any) -> Any:
    return first if ecma.truthy(first) else second


def _trimmed(content: Any) -> str:
    if content is None:
        return ""
    if not isinstance(content, str):
        raise ValueError(f"content is no string: {type(content).__name__}")
    return ecma.trim(content)


def _answer(raw: RawMessage) -> tuple[str, str | None]:
    """Text and thinking of an assistant's message (rules 19 to 23)."""
    content = _trimmed(raw.content)
    task = raw.agent_task_content
    if content or not isinstance(task, Task):
        return content, None
    parts: list[Any] = [task.proposal]
    thoughts: list[Any] = [task.proposal_reasoning_content]
    for step in _steps(_plan_items(raw)):
        thoughts.append(step.reasoning_content)
        if step.tool_name == "finish":
            parts.append(step.thought)
    parts = list(filter(ecma.truthy, parts))
    if not parts and isinstance(task.guideline, Guideline):
        parts = list(filter(ecma.truthy, [task.guideline.thought]))
    thoughts = list(filter(ecma.truthy, thoughts))
    return ecma.trim(ecma.join(parts, "\n\n")), ecma.join(thoughts, "\n") if thoughts else None


def _plan_items(raw: RawMessage) -> Any:
    task = raw.agent_task_content
    guideline = task.guideline if isinstance(task, Task) else None
    return guideline.plan_items if isinstance(guideline, Guideline) else None


def _steps(items: Any) -> Iterator[PlanItem]:
    """What ``for (const item of planItems)`` meets, objects only."""
    if not ecma.truthy(items) or isinstance(items, str):
        return
    if not isinstance(items, list):
        raise ValueError("planItems can't be iterated")
    for step in items:
        if step is None:
            raise ValueError("planItems holds null")
        if isinstance(step, PlanItem):
            yield step


def _has_tool_use(items: Any) -> bool:
    """Rule 24: ``planItems.some(…)``, which strings lack and which stops at the first hit."""
    if ecma.truthy(items) and isinstance(items, str):
        raise ValueError("planItems is a string")
    return any(ecma.truthy(step.tool_name) and step.tool_name != "finish" for step in _steps(items))


def _why_empty(raw: RawMessage) -> str:
    if raw.role == "user":
        return "no content"
    return "no content" if not ecma.truthy(raw.agent_task_content) else "task without proposal, finish step or thought"


ADAPTER = Adapter(
    name=NAME,
    display_name="Trae",
    root=_root,
    count=_count,
    candidates=_candidates,
    read=_read,
    rules=V1,
)
LATER = (careful(ADAPTER),)
