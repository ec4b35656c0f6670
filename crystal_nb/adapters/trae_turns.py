"""Messages of one Trae conversation, each with the places in the database that it comes from.

An answer is made of blocks: the proposal, the plan's thought, each step, the final text. They become
messages one by one (rule ``steps_apart``) or one message together.

Source: ``formats/trae.md`` sections 2.3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from crystal_nb.adapters.base import has_fence
from crystal_nb.adapters.jsonl import HEAD_BYTES
from crystal_nb.adapters.trae_blocks import DONE, FINISH, Block, answer_blocks, unknown_parts
from crystal_nb.adapters.trae_facts import content_of, encoded, label_of, members, text_of, time_of
from crystal_nb.adapters.trae_rules import TraeRules
from crystal_nb.adapters.trae_stores import Entry, unique
from crystal_nb.details import Details
from crystal_nb.records import Fate, FateStatus, Message

__all__ = ["read_turns"]

_PINNED_TYPES = {"user": "user", "assistant": "assistant"}
_TYPES = {**_PINNED_TYPES, "system": "system", "human": "user", "ai": "assistant", "agent": "assistant"}
_ATTACHMENTS = (("multiMedia", "media"), ("files", "file"), ("contextResolvers", "context"))
_FIELDS = frozenset(
    {"role", "content", "sessionId", "turnId", "turnIndex", "agentMessageId", "agentType", "agentMessageType"}
    | {"status", "timestamp", "modelInfo", "model", "agentTaskContent", "parsedQuery", "id"}
    | {name for name, _ in _ATTACHMENTS}
)


def read_turns(entry: Entry, id: str, rules: TraeRules) -> tuple[list[Message], list[Fate]]:
    """Messages in the order of turns, and the fates of all records in the order of the list.

    >>> said = {"role": "user", "content": "hi", "turnId": "t1"}
    >>> entry = Entry("s", "s", "k#/list/0", {"messages": [said]})
    >>> messages, fates = read_turns(entry, "s", TraeRules(version="trae@0"))
    >>> messages[0].content, fates[0].key
    ('hi', 'k#/list/0/messages/0')
    """
    listed = list(members(entry.value.get("messages")))
    turns = _Turns(id, _model(entry.value), rules)
    fates: dict[int, list[Fate]] = {}
    for at in _order([raw for _, raw in listed], rules):
        step, raw = listed[at]
        fates[at] = list(turns.read(f"{entry.key}/messages/{step}", raw, at))
    return turns.messages, [fate for at in range(len(listed)) for fate in fates[at]]


def _order(raws: list[Any], rules: TraeRules) -> list[int]:
    """Stable by turn number; where one is missing, the order of the list (rule ``array_order``)."""
    numbers = {at: _turn(raw) for at, raw in enumerate(raws) if isinstance(raw, dict)}
    if rules.array_order and None in numbers.values():
        return list(range(len(raws)))
    return sorted(range(len(raws)), key=lambda at: numbers.get(at) or 0)


def _turn(raw: dict[str, Any]) -> float | None:
    number = raw.get("turnIndex")
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else None


class _Turns:
    """Reads the messages of a conversation one after the other."""

    def __init__(self, id: str, model: str | None, rules: TraeRules) -> None:
        self.id = id
        self.model = model
        self.rules = rules
        self.messages: list[Message] = []
        self._taken: set[str] = set()
        self._prompts: dict[str, str] = {}

    def read(self, key: str, raw: Any, at: int) -> Iterator[Fate]:
        """Add what a record holds, and tell the fates of the record and its parts."""
        if not isinstance(raw, dict):
            yield _dropped(key, "message", "not an object", raw)
            return
        kind, type = text_of(raw.get("role")) or "message", self._type(raw.get("role"))
        if type is None:
            yield _dropped(key, kind, "unknown role", raw, _other_fields(raw))
            return
        text, attached = _content(raw)
        own = Block(key, kind, raw, text, is_own=True)
        task = raw.get("agentTaskContent")
        blocks = answer_blocks(own, task, self.rules)
        groups = _grouped(blocks, self.rules)
        if not groups and attached and self.rules.facts:
            groups = [[own]]
        self._add_all(type, raw, at, groups, (*_marks(raw), *attached))
        yield _own_fate(own, groups)
        yield from (_part_fate(block) for block in blocks if not block.is_own)
        for place, name, value in unknown_parts(f"{key}/agentTaskContent", task):
            yield _dropped(place, name, "unknown kind (tool version unknown)", value)

    def _type(self, role: Any) -> str | None:
        if not isinstance(role, str):
            return None
        return _TYPES.get(role.strip().lower()) if self.rules.more_roles else _PINNED_TYPES.get(role)

    def _add_all(
        self, type: str, raw: dict[str, Any], at: int, groups: list[list[Block]], marks: tuple[str, ...]
    ) -> None:
        """Add a message for each group; an answer's first one has the turn's prompt as parent."""
        turn = text_of(raw.get("turnId"))
        parent = self._prompts.get(turn) if type == "assistant" else None
        for group in groups:
            main = _main(group)
            main.is_main = True
            for block in group:
                block.index = len(self.messages)
            id = self._message_id(type, raw, at)
            self.messages.append(self._message(type, raw, group, id, parent, self._details(type, raw, group, marks)))
            parent = id
        if type == "user" and turn and groups:
            self._prompts[turn] = self.messages[-1].id

    def _message(
        self, type: str, raw: dict[str, Any], group: list[Block], id: str, parent: str | None, details: Details | None
    ) -> Message:
        content = "\n\n".join(b.text for b in group if b.text and not b.is_repeated)
        return Message(
            type,
            content,
            raw["role"],
            has_tool_use=any(b.tool is not None and b.tool.name != FINISH for b in group),
            has_code=has_fence(content),
            thinking="\n".join(b.thinking for b in group if b.thinking) or None,
            id=id,
            parent_uuid=parent if self.rules.distinct_ids else None,
            timestamp=next(filter(None, map(time_of, (*(b.time for b in group), raw.get("timestamp")))), None),
            details=details,
        )

    def _message_id(self, type: str, raw: dict[str, Any], at: int) -> str:
        own, turn = text_of(raw.get("agentMessageId")), text_of(raw.get("turnId"))
        if not self.rules.distinct_ids:
            return own or turn or f"{self.id}-{text_of(raw.get('turnIndex'))}"
        return unique(own or (f"{turn}/{type}" if turn else f"{self.id}/{at}"), self._taken)

    def _details(self, type: str, raw: dict[str, Any], group: list[Block], marks: tuple[str, ...]) -> Details | None:
        tools = tuple(b.tool for b in group if b.tool is not None) if self.rules.tool_calls else ()
        details = Details(tools)
        if self.rules.facts:
            model = (_model(raw) or self.model) if type == "assistant" else None
            all_marks = (*marks, *(mark for b in group for mark in b.marks))
            details = Details(tools, model=model, request_id=text_of(raw.get("turnId")) or None, marks=all_marks)
        return None if details == Details() else details


def _grouped(blocks: list[Block], rules: TraeRules) -> list[list[Block]]:
    """Blocks by the message that they become; reasoning alone goes to the block behind it."""
    filled = [block for block in blocks if not block.is_empty]
    if not rules.steps_apart:
        return [filled] if filled else []
    groups: list[list[Block]] = []
    for block in filled:
        if block.is_repeated:
            (next((g for g in groups if any(b.text == block.text for b in g)), None) or groups[-1]).append(block)
        elif groups and all(b.is_thinking for b in groups[-1]) and not block.thinking:
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def _main(group: list[Block]) -> Block:
    """The block that the message is, the others being merged into it."""
    new = [b for b in group if not b.is_repeated]
    own = next((b for b in new if b.is_own), None)
    return own or next((b for b in new if not b.is_thinking), new[0])


def _own_fate(own: Block, groups: list[list[Block]]) -> Fate:
    """Fate of the record as a whole."""
    if not groups:
        return _dropped(own.key, own.kind, "no content", own.raw, _other_fields(own.raw))
    if own.index is not None:
        return replace(_part_fate(own), note=_other_fields(own.raw))
    reason, index = "its parts are the message", groups[0][0].index
    return Fate("merged", own.kind, reason, index, size=_size(own.raw), key=own.key, note=_other_fields(own.raw))


def _part_fate(block: Block) -> Fate:
    if block.index is None:
        return _dropped(block.key, block.kind, "empty", block.raw)
    status: FateStatus = "kept" if block.is_main else "merged"
    reason = None if block.is_main else "says the same" if block.is_repeated else "part of the message"
    return Fate(status, block.kind, reason, block.index, size=_size(block.raw), key=block.key)


def _dropped(key: str, kind: str, reason: str, raw: Any, note: str | None = None) -> Fate:
    data = encoded(raw)
    return Fate("dropped", kind, reason, size=len(data), key=key, head=data[:HEAD_BYTES], note=note)


def _size(raw: Any) -> int:
    return len(encoded(raw))


def _other_fields(raw: dict[str, Any]) -> str | None:
    """What a record holds under names that no rule reads: where content may have moved in a build not known here."""
    names = [name for name in raw if name not in _FIELDS]
    return f"other fields: {', '.join(names)[:200]}" if names else None


def _content(raw: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Text of a message, that of its parsed query where it has no other, and its attachments."""
    text, marks = content_of(raw.get("content"))
    text = text or content_of(raw.get("parsedQuery"))[0]
    return text, (*marks, *_attachments(raw))


def _attachments(raw: dict[str, Any]) -> Iterator[str]:
    for name, kind in _ATTACHMENTS:
        yield from (label_of(_media(kind, value), value) for _, value in members(raw.get(name)) if value)


def _media(kind: str, value: Any) -> str:
    own = text_of(value.get("type")) if isinstance(value, dict) else ""
    return own or kind


def _marks(raw: dict[str, Any]) -> tuple[str, ...]:
    agent, status = text_of(raw.get("agentType")), text_of(raw.get("status"))
    return tuple(
        f"{name} {value}" for name, value in (("agent", agent), ("status", status)) if value.lower() not in DONE
    )


def _model(value: dict[str, Any]) -> str | None:
    info = value.get("modelInfo")
    named = (info.get("display_model_name"), info.get("config_name")) if isinstance(info, dict) else ()
    model = value.get("model")
    if isinstance(model, dict):
        model = next(
            (model[name] for name in ("name", "display_model_name", "config_name", "id") if model.get(name)), ""
        )
    return next(filter(None, map(text_of, (*named, model))), None)
