"""The turns of a session: a prompt and an answer each, with the fate of every part.

Source: ``formats/copilot.md`` sections 2.1 and 2.2. Turns keep the order of the file, as their times
may be missing; an answer has its own time or none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import has_fence
from crystal_nb.adapters.copilot_marks import attachment_marks, fact_marks, model_of, state_marks, tokens_of
from crystal_nb.adapters.copilot_parts import Answer
from crystal_nb.adapters.copilot_rules import CopilotRules
from crystal_nb.adapters.copilot_tools import Rounds
from crystal_nb.adapters.copilot_values import as_dict, as_list, json_of, moment, number, text_of, unique
from crystal_nb.adapters.jsonl import HEAD_BYTES
from crystal_nb.details import Details
from crystal_nb.records import Fate, FateStatus, Message

__all__ = ["Turns", "read_turns", "shown_bytes"]

_FACTS = ("contentReferences", "codeCitations", "usedContext", "editedFileEvents")


class Turns(NamedTuple):
    """What the turns of a session give."""

    messages: list[Message]
    fates: list[Fate]
    """Fates of the document's records, by JSON pointer."""
    prompts: dict[int, int]
    """Message of each request's prompt, by the ``id()`` of the request's object, queued ones included."""
    answers: dict[int, int]
    """The same of its answer."""


def read_turns(session: dict[str, Any], rules: CopilotRules, known: dict[str, Any] | None = None) -> Turns:
    """Read the turns of a session.

    Parameters
    ----------
    session
        The session's document.
    rules
        Which repairs are on.
    known
        Turns of another file by id; one that is equal here is left there.

    Raises
    ------
    ValueError
        If a turn's shape is odd and the rules don't bear it.

    >>> from crystal_nb.adapters.copilot_rules import V2
    >>> turns = read_turns({"requests": [{"message": {"text": "hi"}, "response": [{"value": "yes"}]}]}, V2)
    >>> [(m.id, m.content) for m in turns.messages]
    [('turn-1', 'hi'), ('resp-turn-1', 'yes')]
    """
    reader = _Reader(session, rules, known or {})
    for index, request in enumerate(as_list(session.get("requests"))):
        reader.read(index, request, f"/requests/{index}")
    if rules.marks_turns:
        for index, pending in enumerate(as_list(session.get("pendingRequests"))):
            reader.read_pending(index, as_dict(pending))
    return Turns(reader.messages, reader.fates, reader.prompts, reader.answers)


def shown_bytes(value: Any) -> bytes:
    """The JSON of a value, for the head and size of a dropped record."""
    try:
        return msgspec.json.encode(value)
    except (ValueError, RecursionError):  # a lone surrogate, or great depth
        return ecma.to_utf8_safe(json_of(value) or "").encode()


class _Reader:
    def __init__(self, session: dict[str, Any], rules: CopilotRules, known: dict[str, Any]) -> None:
        self.rules, self.known = rules, known
        self.version = ecma.to_text(session.get("version", "?"))[:20]
        self.messages: list[Message] = []
        self.fates: list[Fate] = []
        self.prompts: dict[int, int] = {}
        self.answers: dict[int, int] = {}
        self._ids: set[str] = set()

    def read(self, index: int, request: Any, pointer: str) -> None:
        if not isinstance(request, dict):
            if not self.rules.bears_gaps:
                raise ValueError(f"{pointer} is no object")
            self._drop("request", "not an object", pointer, request)
            return
        own_id = text_of(request.get("requestId"))
        if own_id and _is_known(request, self.known.get(own_id)):
            self._drop("request", "copy of a turn that another window folder's file keeps", pointer, request)
            return
        if not self.rules.bears_gaps and moment(request.get("timestamp")) is None:
            raise ValueError(f"{pointer}: the request has no valid timestamp")
        turn = unique(own_id or f"turn-{index + 1}", self._ids)
        prompt = self._read_prompt(request, turn, pointer)
        if prompt is not None:
            self.prompts[id(request)] = len(self.messages)
            self.messages.append(prompt)
        answer = self._read_answer(request, turn, pointer, prompt)
        if answer is not None:
            self.answers[id(request)] = len(self.messages)
            self.messages.append(answer)
        elif prompt is not None and self.rules.marks_turns:
            self._mark_prompt(state_marks(request))

    def read_pending(self, index: int, pending: dict[str, Any]) -> None:
        """A prompt that waits in the queue: typed, but not sent yet."""
        pointer = f"/pendingRequests/{index}"
        request = as_dict(pending.get("request"))
        own_id = text_of(pending.get("id")) or text_of(request.get("requestId"))
        turn = unique(own_id or f"pending-{index + 1}", self._ids)
        prompt = self._read_prompt(request, turn, f"{pointer}/request")
        if prompt is not None:
            self.prompts[id(pending)] = len(self.messages)
            self.messages.append(prompt)
            self._mark_prompt(["queued"])

    def _read_prompt(self, request: dict[str, Any], turn: str, pointer: str) -> Message | None:
        text, pointer = self._prompt_text(request.get("message")), f"{pointer}/message"
        variables = as_list(as_dict(request.get("variableData")).get("variables"))
        marks = attachment_marks(request, variables) if self.rules.marks_turns else []
        if not text and not (marks and self.rules.keeps_bare_answers):
            self._drop("message", "no text", pointer, request.get("message"))
            return None
        place = len(self.messages)
        self.fates.append(Fate("kept", "message", message_index=place, key=pointer))
        where = pointer.removesuffix("message") + "variableData/variables"
        for at, variable in enumerate(variables):
            if self.rules.marks_turns:
                self.fates.append(Fate("merged", "attachment", "noted as a mark", place, key=f"{where}/{at}"))
            else:
                self._drop("attachment", "not read", f"{where}/{at}", variable)
        details = Details(request_id=text_of(request.get("requestId")) or None, marks=tuple(marks))
        time = moment(request.get("timestamp"))
        return Message("user", text, "user", False, has_fence(text), None, turn, None, time, details=details)

    def _prompt_text(self, message: Any) -> str:
        if isinstance(message, str):
            return ecma.trim(message) if self.rules.bears_gaps else ""
        text = as_dict(message).get("text")
        if not isinstance(text, str):
            text = "".join(text_of(as_dict(p).get("text")) for p in as_list(as_dict(message).get("parts")))
        return ecma.trim(text)

    def _read_answer(self, request: dict[str, Any], turn: str, pointer: str, prompt: Message | None) -> Message | None:
        result = as_dict(request.get("result"))
        answer = Answer(self.rules, Rounds(result.get("metadata")), _tool_version(request, self.version))
        parts = _response_parts(request.get("response"))
        for part in parts:
            answer.take(part)
        answer.finish()
        message = self._answer_message(answer, request, turn, prompt)
        place = None if message is None else len(self.messages)
        self._part_fates(answer, parts, f"{pointer}/response", place)
        self._fact_fates(request, pointer, place)
        return message

    def _answer_message(
        self, answer: Answer, request: dict[str, Any], turn: str, prompt: Message | None
    ) -> Message | None:
        content, thinking = answer.content(), answer.thinking()
        error = as_dict(as_dict(request.get("result")).get("errorDetails"))
        said = content or thinking
        did = answer.tools or answer.marks or answer.has_tool_use or error
        if not said and not (did and self.rules.keeps_bare_answers):
            return None
        marks = [*answer.marks, *state_marks(request), *fact_marks(request)] if self.rules.marks_turns else []
        input_tokens, output_tokens = tokens_of(request)
        return Message(
            type="assistant",
            content=content,
            role="assistant",
            has_tool_use=answer.has_tool_use,
            has_code=has_fence(content),
            thinking=thinking,
            id=unique(f"resp-{turn}", self._ids),
            parent_uuid=None if prompt is None else prompt.id,
            timestamp=self._answer_time(request),
            details=Details(
                tools=tuple(answer.tools),
                model=answer.model or model_of(request),
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                request_id=text_of(request.get("requestId")) or None,
                marks=tuple(dict.fromkeys(marks)),
            ),
        )

    def _answer_time(self, request: dict[str, Any]) -> str | None:
        """When the answer was complete; None where nothing says so."""
        sent = number(request.get("timestamp"))
        if not self.rules.times_answers:
            return None if sent is None else moment(sent + 1)
        completed = moment(as_dict(request.get("modelState")).get("completedAt"))
        timings = as_dict(as_dict(request.get("result")).get("timings"))
        took = number(timings.get("totalElapsed"), request.get("elapsedMs"))
        return completed or (moment(sent + took) if sent and took is not None else None)

    def _part_fates(self, answer: Answer, parts: list[Any], pointer: str, place: int | None) -> None:
        """The first used part makes the message, the others are merged into it."""
        is_made = False
        for index, (part, (status, kind, reason)) in enumerate(zip(parts, answer.taken, strict=True)):
            key = f"{pointer}/{index}"
            if status == "merged" and place is None:
                status, reason = "dropped", "answer without text or thinking"
            if status == "dropped":
                self._drop(kind, reason, key, part)
            elif status == "metadata":
                self.fates.append(Fate(status, kind, reason, key=key))
            else:
                used: FateStatus = "merged" if is_made else "kept"
                self.fates.append(Fate(used, kind, reason, place, key=key))
                is_made = True
        if place is not None and not is_made:
            self.fates.append(Fate("kept", "result", "answer without parts", place, key=_sibling(pointer, "result")))

    def _fact_fates(self, request: dict[str, Any], pointer: str, place: int | None) -> None:
        made = any(f.key == f"{pointer}/result" for f in self.fates[-1:])
        if request.get("result") and not made:
            status: FateStatus = "metadata" if place is None else "merged"
            self.fates.append(Fate(status, "result", None, place, key=f"{pointer}/result"))
        if request.get("followups"):
            self._drop("followups", "prompts that the tool proposed", f"{pointer}/followups", request["followups"])
        for name in (n for n in _FACTS if request.get(n)):
            if place is None or not self.rules.marks_turns:
                self._drop(name, "not read", f"{pointer}/{name}", request[name])
            else:
                self.fates.append(Fate("merged", name, "noted as a mark", place, key=f"{pointer}/{name}"))

    def _mark_prompt(self, marks: list[str]) -> None:
        last = self.messages[-1]
        details = last.details or Details()
        self.messages[-1] = replace(last, details=replace(details, marks=(*details.marks, *marks)))

    def _drop(self, kind: str, reason: str | None, key: str, value: Any) -> None:
        data = shown_bytes(value)
        self.fates.append(Fate("dropped", kind, reason, key=key, size=len(data), head=data[:HEAD_BYTES]))


def _response_parts(response: Any) -> list[Any]:
    """Parts of a response; the oldest sessions have a text or one markdown object in place of the list."""
    if isinstance(response, list):
        return response
    return [response] if isinstance(response, (str, dict)) and response else []


def _is_known(request: dict[str, Any], other: Any) -> bool:
    try:
        return bool(request == other)
    except RecursionError:
        return False


def _tool_version(request: dict[str, Any], session_version: str) -> str:
    """What says which build wrote a turn: version of the session's layout, and of the extension where it stands."""
    extension = text_of(as_dict(request.get("agent")).get("extensionVersion"))
    return f"{session_version}, extension {extension[:20]}" if extension else session_version


def _sibling(pointer: str, name: str) -> str:
    return pointer.rpartition("/")[0] + "/" + name
