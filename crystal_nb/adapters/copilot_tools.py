"""Tool calls and edits of one answer, as structured values.

Source: ``formats/copilot.md`` sections 2.2 and 2.3: a response part says that a tool ran and shows it
to the user; arguments and full results stand in ``result.metadata``, under the id of the call.
"""

from __future__ import annotations

from typing import Any

from crystal_nb.adapters.copilot_values import as_dict, as_list, json_of, mark, place, text_of
from crystal_nb.details import ToolCall

__all__ = ["EDIT_KINDS", "Rounds", "edit_call"]

EDIT_KINDS = ("textEditGroup", "notebookEditGroup", "workspaceEdit", "externalEdit")


class Rounds:
    """What ``result.metadata`` of a request says of its tool calls.

    >>> rounds = Rounds({"toolCallRounds": [{"toolCalls": [{"id": "k", "name": "read", "arguments": "{}"}]}],
    ...     "toolCallResults": {"k": {"content": [{"value": "text"}]}}})
    >>> rounds.call({"toolId": "copilot_read", "toolCallId": "k"}).result
    'text'
    >>> rounds.unseen()
    []
    """

    def __init__(self, metadata: Any) -> None:
        self.rounds = [as_dict(r) for r in as_list(as_dict(metadata).get("toolCallRounds"))]
        self.results = as_dict(as_dict(metadata).get("toolCallResults"))
        calls = [as_dict(c) for r in self.rounds for c in as_list(r.get("toolCalls"))]
        self.calls = {c["id"]: c for c in calls if isinstance(c.get("id"), str)}
        self._seen: set[str] = set()

    def text(self) -> str:
        """What the model said in all rounds, for an answer whose parts say nothing."""
        return "".join(text_of(r.get("response")) for r in self.rounds)

    def thinking(self) -> str:
        """What it thought in all rounds."""
        thoughts = [r.get("thinking") for r in self.rounds]
        texts = [text_of(t.get("text") if isinstance(t, dict) else t, "\n") for t in thoughts]
        return "\n".join(t for t in texts if t)

    def call(self, part: dict[str, Any]) -> ToolCall:
        """The call that a response part shows."""
        id = part.get("toolCallId") if isinstance(part.get("toolCallId"), str) else None
        known = self.calls.get(id or "", {})
        self._seen.add(id or "")
        data = as_dict(part.get("toolSpecificData"))
        shown = as_dict(part.get("resultDetails"))
        message = text_of(part.get("pastTenseMessage")) or text_of(part.get("invocationMessage"))
        result = self._result(id)
        return ToolCall(
            name=text_of(part.get("toolId")) or text_of(part.get("toolName")) or text_of(known.get("name")) or "tool",
            input=_first(json_of(known.get("arguments")), _input(data), json_of(shown.get("input")), message),
            raw_result=_first(result, _output(data), _shown_result(part.get("resultDetails")), _error_text(part)),
            id=id,
            is_error=_failed(part, data, shown),
        )

    def _result(self, id: str | None) -> str | None:
        return None if id is None else _content_text(self.results.get(id))

    def unseen(self) -> list[ToolCall]:
        """Calls that no response part shows, in order."""
        return [
            ToolCall(text_of(c.get("name")) or "tool", json_of(c.get("arguments")), self._result(id), id)
            for id, c in self.calls.items()
            if id not in self._seen
        ]


def _first(*texts: str | None) -> str | None:
    return next((t for t in texts if t), None)


def _input(data: dict[str, Any]) -> str | None:
    """What the tool got, as ``toolSpecificData`` has it: a command line as it was run."""
    line = data.get("commandLine")
    command = [as_dict(line).get(name) for name in ("userEdited", "toolEdited", "original")]
    known = [*command, line, data.get("command"), data.get("rawInput"), data.get("input"), data.get("prompt")]
    return _first(*(json_of(v) for v in known if v), json_of(data) if data.get("kind") == "todoList" else None)


def _output(data: dict[str, Any]) -> str | None:
    terminal = text_of(as_dict(data.get("terminalCommandOutput")).get("text"))
    return _first(terminal, json_of(data.get("output")), json_of(data.get("result")))


def _content_text(result: Any) -> str | None:
    """Text of a result's ``content``, or its JSON where that is no plain text."""
    content = as_dict(result).get("content")
    return _texts(content) or json_of(result)


def _shown_result(details: Any) -> str | None:
    """What the user was shown: places, or output; of data only what it is."""
    if isinstance(details, list):
        return json_of([place(d) for d in details])
    output = as_dict(details).get("output")
    if isinstance(output, dict) and "base64Data" in output:
        return mark("data", output.get("mimeType"), f"{len(text_of(output['base64Data'])) * 3 // 4} bytes")
    return _texts(output) or json_of(output)


def _texts(items: Any) -> str | None:
    """The ``value`` of all items, if each has a text there."""
    values = [as_dict(i).get("value") for i in as_list(items)]
    texts = [v for v in values if isinstance(v, str)]
    return "\n".join(texts) if texts and len(texts) == len(values) else None


def _error_text(part: dict[str, Any]) -> str | None:
    error = part.get("resultError")
    return text_of(error) or text_of(as_dict(error).get("message")) or (json_of(error) if error else None)


def _failed(part: dict[str, Any], data: dict[str, Any], shown: dict[str, Any]) -> bool | None:
    """Whether the call failed; None where nothing says so."""
    if part.get("resultError") or shown.get("isError") is True:
        return True
    code = as_dict(data.get("terminalCommandState")).get("exitCode")
    if isinstance(code, int) and not isinstance(code, bool):
        return code != 0
    return False if shown.get("isError") is False else None


def edit_call(kind: str, part: dict[str, Any]) -> ToolCall:
    """An edit that the answer made, as a call under the kind's name: file and edits as JSON.

    >>> edit_call("externalEdit", {"uri": {"path": "/p/a.py"}, "editKind": "create"}).input
    '{"file":"/p/a.py","editKind":"create"}'
    """
    facts = {name: part[name] for name in ("editKind", "edits", "diff") if part.get(name)}
    file = place(part.get("uri"))
    return ToolCall(kind, json_of(({"file": file} if file else {}) | facts))
