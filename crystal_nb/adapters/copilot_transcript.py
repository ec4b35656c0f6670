"""The extension's own transcript of a conversation, for one that has no file or only a stub.

Source: ``formats/copilot.md`` section 2.6.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import has_fence
from crystal_nb.adapters.copilot_replay import decode, line_bounds
from crystal_nb.adapters.copilot_values import as_dict, as_list, json_of, mark, moment, place, text_of, unique
from crystal_nb.adapters.jsonl import HEAD_BYTES
from crystal_nb.details import Details, ToolCall
from crystal_nb.records import Fate, FateStatus, Message

__all__ = ["read_transcript"]

_Outcome = tuple[FateStatus, str, str | None, int | None]
_TURN_ENDS = ("session.start", "assistant.turn_start", "assistant.turn_end")


def read_transcript(data: bytes) -> tuple[list[Message], list[Fate]]:
    r"""Messages of a transcript and the fate of each line, which tile it.

    >>> line = b'{"type":"user.message","id":"u1","data":{"content":"hi"}}\n'
    >>> messages, fates = read_transcript(line)
    >>> messages[0].content, fates[0].status
    ('hi', 'kept')
    """
    reader, fates = _Reader(), []
    for number, (start, stop) in enumerate(line_bounds(data), 1):
        status, kind, reason, index = reader.read(data[start:stop], number, is_last=stop == len(data))
        head = data[start : min(stop, start + HEAD_BYTES)] if status == "dropped" else b""
        fates.append(Fate(status, kind, reason, index, number, start, stop - start, head=head))
    return reader.messages, fates


class _Reader:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._calls: dict[str, tuple[int, int]] = {}
        self._ids: set[str] = set()
        self._version = "?"

    def read(self, text: bytes, number: int, *, is_last: bool) -> _Outcome:
        if not text.strip():
            return "dropped", "line", "blank line", None
        try:
            line = decode(text)
        except ValueError:
            torn = is_last and not text.endswith(b"\n")
            return "dropped", "line", "torn last line" if torn else "invalid JSON", None
        if not isinstance(line, dict):
            return "dropped", "line", "not an object", None
        kind, data = ecma.to_text(line.get("type"))[:80], as_dict(line.get("data"))
        if kind == "user.message":
            return self._user(line, data, number)
        if kind == "assistant.message":
            return self._assistant(line, data, number)
        if kind in ("tool.execution_start", "tool.execution_complete"):
            return self._execution(kind, data)
        if kind in _TURN_ENDS:
            self._version = text_of(data.get("copilotVersion")) or text_of(data.get("version")) or self._version
            return "metadata", kind, None, None
        return "dropped", kind, f"unknown transcript kind (version {self._version[:20]})", None

    def _user(self, line: dict[str, Any], data: dict[str, Any], number: int) -> _Outcome:
        text = ecma.trim(text_of(data.get("content")))
        marks = [_attachment(a) for a in as_list(data.get("attachments"))]
        if not text and not marks:
            return "dropped", "user.message", "no text", None
        return self._add(Message("user", text, "user", details=Details(marks=tuple(marks))), line, number)

    def _assistant(self, line: dict[str, Any], data: dict[str, Any], number: int) -> _Outcome:
        text, thinking = ecma.trim(text_of(data.get("content"))), text_of(data.get("reasoningText"), "\n")
        tools = [_call(as_dict(t)) for t in as_list(data.get("toolRequests"))]
        if not (text or thinking or tools):
            return "dropped", "assistant.message", "no text", None
        self._calls |= {t.id: (len(self.messages), at) for at, t in enumerate(tools) if t.id is not None}
        details = Details(tools=tuple(tools), model=text_of(data.get("model")) or None)
        message = Message("assistant", text, "assistant", bool(tools), thinking=thinking or None, details=details)
        return self._add(message, line, number)

    def _add(self, message: Message, line: dict[str, Any], number: int) -> _Outcome:
        id, parent = text_of(line.get("id")), text_of(line.get("parentId"))
        id = unique(id or f"line-{number}", self._ids)
        index = len(self.messages)
        content = ecma.pair_surrogates(message.content)
        time = moment(line.get("timestamp"))
        self.messages.append(
            replace(
                message,
                content=content,
                has_code=has_fence(content),
                id=id,
                parent_uuid=parent or None,
                timestamp=time,
            )
        )
        return "kept", f"{message.type}.message", None, index

    def _execution(self, kind: str, data: dict[str, Any]) -> _Outcome:
        """What a tool got and gave goes to the message that asked for it."""
        id = text_of(data.get("toolCallId"))
        if id not in self._calls:
            return "dropped", kind, "of no known tool call", None
        index, at = self._calls[id]
        message = self.messages[index]
        details = message.details or Details()
        call = details.tools[at]
        if kind == "tool.execution_start":
            call = replace(call, input=call.input or json_of(data.get("arguments")))
        else:
            call = replace(call, raw_result=_result(data), is_error=_failed(data))
        tools = (*details.tools[:at], call, *details.tools[at + 1 :])
        self.messages[index] = replace(message, details=replace(details, tools=tools))
        return "merged", kind, None, index


def _call(request: dict[str, Any]) -> ToolCall:
    name = text_of(request.get("name")) or text_of(request.get("toolName")) or "tool"
    id = text_of(request.get("toolCallId")) or text_of(request.get("id")) or None
    return ToolCall(name, json_of(request.get("arguments")), id=id)


def _result(data: dict[str, Any]) -> str | None:
    result = data.get("result", data.get("error"))
    return text_of(as_dict(result).get("content")) or text_of(result) or json_of(result)


def _failed(data: dict[str, Any]) -> bool | None:
    success = data.get("success")
    return not success if isinstance(success, bool) else None


def _attachment(value: Any) -> str:
    attachment = as_dict(value)
    where = place(attachment) or text_of(attachment.get("path")) or text_of(attachment.get("displayName"))
    return mark(text_of(attachment.get("type")) or "attachment", where or place(value))
