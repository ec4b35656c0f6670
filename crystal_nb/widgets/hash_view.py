"""What the hash inspector knows: edits of a conversation, and what they do to the canonical text and its hash.

Pure: no widget is needed here. An edit is a plain tuple, so that a cell can write it:

========================================  =====================================================
``("set", 0, "content", "new text")``     another value for a field of message 0
``("set", None, "slug", "a title")``      … of the conversation
``("move", 2, 0)``                        message 2 comes before message 0
``("drop", 1)``                           message 1 is left out
``("add", 1, "user", "text")``            a new message comes to stand at 1
========================================  =====================================================
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any, get_type_hints

import msgspec
from msgspec import UNSET, Struct

from crystal_nb import ecma
from crystal_nb.details import Details, Link, ToolCall
from crystal_nb.errors import ConfigError
from crystal_nb.hashing import HASH_FIELDS, HashField, canonical_json, digest, hash_input
from crystal_nb.records import Conversation, Message

__all__ = [
    "CONVERSATION_FIELDS",
    "MESSAGE_FIELDS",
    "Edit",
    "Inspection",
    "Line",
    "apply_edit",
    "apply_edits",
    "canonical_lines",
    "field_value",
    "hash_name",
    "message_line",
    "value_json",
]

Edit = tuple[Any, ...]
Line = tuple[int, str]
"""Depth and text; the texts joined are the canonical text."""

CONVERSATION_FIELDS = tuple(f for f in Conversation.__struct_fields__ if f != "messages")
_HASH_NAMES: dict[str, HashField] = {
    "type": "type",
    "role": "role",
    "content": "content",
    "has_tool_use": "hasToolUse",
    "has_code": "hasCode",
    "thinking": "thinking",
}
MESSAGE_FIELDS = (*_HASH_NAMES, *(f for f in Message.__struct_fields__ if f not in _HASH_NAMES))
_TEXTS = ("type", "content", "source", "project_dir", "project_name")
_FLAGS = ("has_tool_use", "has_code", "timestamp_from_clock")


def hash_name(index: int | None, field: str) -> HashField | None:
    """Name in the canonical text of a field, or None where it isn't part of it.

    >>> hash_name(0, "has_code"), hash_name(0, "timestamp"), hash_name(None, "source")
    ('hasCode', None, 'source')
    """
    if index is None:
        return "source" if field == "source" else None
    return _HASH_NAMES.get(field)


def apply_edits(conversation: Conversation, edits: Iterable[Edit]) -> Conversation:
    """The conversation after the edits, one after the other.

    >>> c = Conversation("codex", "7", (Message("user", "hi"), Message("assistant", "ho")))
    >>> [m.content for m in apply_edits(c, [("move", 1, 0), ("set", 0, "content", "hey")]).messages]
    ['hey', 'hi']
    """
    for edit in edits:
        conversation = apply_edit(conversation, edit)
    return conversation


def apply_edit(conversation: Conversation, edit: Edit) -> Conversation:
    """The conversation after one edit.

    Raises
    ------
    ConfigError
        If it isn't an edit, or there is no such message or field, or the value is none for it.
    """
    messages = list(conversation.messages)
    match edit:
        case ("set", None, str(field), value):
            return msgspec.structs.replace(conversation, **{_field(None, field): _checked(field, value)})
        case ("set", int(index), str(field), value):
            at = _position(index, len(messages))
            messages[at] = msgspec.structs.replace(messages[at], **{_field(at, field): _checked(field, value)})
        case ("move", int(index), int(to)):
            end = len(messages)
            messages.insert(_position(to, end), messages.pop(_position(index, end)))
        case ("drop", int(index)):
            del messages[_position(index, len(messages))]
        case ("add", int(index), str(kind), str(content)):
            messages.insert(_position(index, len(messages) + 1), Message(kind, content, role=kind))
        case _:
            raise ConfigError(
                f"not an edit: {edit!r}; an edit is ('set', index or None, field, value), ('move', index, to), "
                "('drop', index) or ('add', index, type, content)"
            )
    return msgspec.structs.replace(conversation, messages=tuple(messages))


def _position(index: int, count: int) -> int:
    if not 0 <= index < count:
        known = f"they are numbered from 0 to {count - 1}" if count else "there is none left"
        raise ConfigError(f"there is no message {index}; {known}")
    return index


def _field(index: int | None, field: str) -> str:
    field = next((own for own, hashed in _HASH_NAMES.items() if hashed == field), field)
    known = CONVERSATION_FIELDS if index is None else MESSAGE_FIELDS
    if field not in known:
        owner = "conversation" if index is None else "message"
        raise ConfigError(f"a {owner} has no field {field!r} to edit; it has {', '.join(known)}")
    return field


def _checked(field: str, value: Any) -> Any:
    field = next((own for own, hashed in _HASH_NAMES.items() if hashed == field), field)
    try:
        value_json(value)
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(f"{field} must be a value of JSON, not a {type(value).__name__}") from None
    if field in _TEXTS and not isinstance(value, str):
        raise ConfigError(f"{field} must be text, not {value_json(value)}")
    if field in _FLAGS and not isinstance(value, bool):
        raise ConfigError(f"{field} must be true or false, not {value_json(value)}")
    try:
        if field == "details" and value is not None:
            return _details(_plain(value))
        if field == "links":
            return msgspec.convert(_plain(value), tuple[Link, ...])
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{field}: {error}") from None
    return value


class _Tool(Struct, forbid_unknown_fields=True):
    """A tool call as it is edited."""

    name: str
    input: str | None = None
    result: str | None = None
    id: str | None = None
    is_error: bool | None = None


def _details(value: Any) -> Details:
    if not isinstance(value, dict):
        raise TypeError("Expected an object")
    others = {name: v for name, v in value.items() if name != "tools"}
    if unknown := sorted(set(others) - set(Details.__struct_fields__)):
        raise TypeError(f"it has no {unknown[0]!r}, only {', '.join(Details.__struct_fields__)}")
    hints = get_type_hints(Details)
    facts = {name: msgspec.convert(v, hints[name]) for name, v in others.items()}
    tools = msgspec.convert(value.get("tools", []), tuple[_Tool, ...])
    return Details(tools=tuple(ToolCall(t.name, t.input, t.result, t.id, t.is_error) for t in tools), **facts)


def field_value(conversation: Conversation, index: int | None, field: str) -> Any:
    """Value of a field of a message, or of the conversation."""
    return getattr(conversation if index is None else conversation.messages[index], _field(index, field))


def value_json(value: Any) -> str:
    """A value as JSON text; ``(absent)`` where there is no such key.

    >>> value_json(UNSET), value_json(None), value_json("é")
    ('(absent)', 'null', '"é"')
    """
    return "(absent)" if value is UNSET else ecma.json_text(_plain(value))


def _plain(value: Any) -> Any:
    """Details and links as JSON has them, a tool's answer as the text that it is."""
    if isinstance(value, ToolCall):
        return {
            name.removeprefix("raw_"): getattr(value, name.removeprefix("raw_")) for name in value.__struct_fields__
        }
    if isinstance(value, Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def canonical_lines(conversation: Conversation, without: Collection[HashField] = ()) -> list[Line]:
    """The canonical text in lines of one field each.

    >>> "".join(text for _, text in canonical_lines(Conversation("codex", "7")))
    '{"source":"codex","messages":[]}'
    """
    lines: list[Line] = [(0, "{")]
    if "source" not in without:
        lines.append((1, f'"source":{ecma.json_text(conversation.source)},'))
    groups = [group for _, group in _groups(conversation, without)]
    lines.append((1, '"messages":['))
    for number, group in enumerate(groups, 1):
        lines += group if number == len(groups) else [*group[:-1], (group[-1][0], group[-1][1] + ",")]
    return [*lines, (1, "]"), (0, "}")]


def message_line(conversation: Conversation, index: int, without: Collection[HashField] = ()) -> int:
    """Position of the line of `canonical_lines` in which a message begins.

    >>> c = Conversation("codex", "7", (Message("user", "b"), Message("user", "a")))
    >>> message_line(c, 0), message_line(c, 0, ["index"]), canonical_lines(c)[message_line(c, 1) + 1]
    (3, 11, (3, '"index":1,'))
    """
    line = 2 if "source" in without else 3
    for at, group in _groups(conversation, without):
        if at == index:
            break
        line += len(group)
    return line


def _groups(conversation: Conversation, without: Collection[HashField]) -> list[tuple[int, list[Line]]]:
    """Each message's position and lines, in the order of the text."""
    groups = [(at, _message_lines(row, without)) for at, row in enumerate(hash_input(conversation)["messages"])]
    if "index" in without:
        groups.sort(key=lambda group: "".join(text for _, text in group[1]))
    return groups


def _message_lines(row: dict[str, Any], without: Collection[HashField]) -> list[Line]:
    fields = [f'"{name}":{ecma.json_text(v)}' for name, v in row.items() if v is not UNSET and name not in without]
    return [(2, "{"), *((3, f"{field},") for field in fields[:-1]), *((3, field) for field in fields[-1:]), (2, "}")]


class Inspection:
    """A conversation before and after edits, by some of the hashed fields.

    Parameters
    ----------
    original
        The conversation as it was parsed.
    edits
        What was done to it.
    fields
        Hashed fields that are left in the canonical text; default: all, as the importer has it.

    >>> c = Conversation("codex", "7", (Message("user", "hi"),))
    >>> Inspection(c, [("set", 0, "timestamp", "2026")]).verdict
    'timestamp is not part of the hash: unchanged'
    """

    def __init__(
        self, original: Conversation, edits: Iterable[Edit] = (), fields: Collection[str] = HASH_FIELDS
    ) -> None:
        if unknown := [f for f in fields if f not in HASH_FIELDS]:
            raise ConfigError(f"not fields of the hash: {unknown}; allowed: {', '.join(HASH_FIELDS)}")
        self.original, self.edits = original, tuple(tuple(e) if isinstance(e, list) else e for e in edits)
        self.edited = apply_edits(original, self.edits)
        self.without: list[HashField] = [f for f in HASH_FIELDS if f not in fields]

    @cached_property
    def texts(self) -> tuple[bytes, bytes]:
        """Canonical text before and after."""
        before, after = (canonical_json(c, without=self.without) for c in (self.original, self.edited))
        return before, after

    @cached_property
    def hashes(self) -> tuple[str, str]:
        """Hash before and after."""
        return digest(self.texts[0]), digest(self.texts[1])

    @property
    def changed(self) -> bool:
        """Whether the edits changed the hash."""
        return self.hashes[0] != self.hashes[1]

    @cached_property
    def verdict(self) -> str:
        """What the edits did to the hash, in words."""
        off = f"; {_listed(self.without)} switched out of the canonical text" if self.without else ""
        if self.edited == self.original and not self.changed:  # Python takes true for 1, the hash doesn't
            what = "nothing is edited" if not self.edits else "the edits cancel out"
            return f"{what}: {'the hash without those fields' if off else 'this is the hash'}{off}"
        reasons = self._reasons()
        if not self.changed and any(r.endswith("is part of the hash") for r in reasons):
            reasons.append("but the canonical text comes out the same")
        return f"{', '.join(reasons)}: {'changed' if self.changed else 'unchanged'}"

    def _reasons(self) -> list[str]:
        reasons = [self._set_reason(edit) for edit in self.edits if edit[0] == "set"]
        kinds = {edit[0] for edit in self.edits}
        if "move" in kinds:
            off = "index" in self.without
            reasons.append("the order is switched out" if off else "the order is part of the hash")
        if kinds & {"add", "drop"}:
            reasons.append("which messages there are is part of the hash")
        return list(dict.fromkeys(reasons))

    def _set_reason(self, edit: Edit) -> str:
        field = _field(edit[1], edit[2])
        hashed = hash_name(edit[1], field)
        if hashed is None:
            return f"{field} is not part of the hash"
        return f"{hashed} is switched out" if hashed in self.without else f"{hashed} is part of the hash"


def _listed(names: list[HashField]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
