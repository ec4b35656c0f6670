"""GitHub Copilot Chat in VS Code: ``chatSessions/<id>.json`` and ``.jsonl``.

Source: ``formats/copilot.md`` section 3; the numbers in comments are its rules. The pinned parser
reads only the first line of a ``.jsonl`` log, and anything that fails inside gives an empty
conversation instead of an error: both stand in the fates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType

from crystal_nb import ecma
from crystal_nb.adapters.base import (
    FENCE,
    Adapter,
    Draft,
    Parsed,
    Rules,
    TimedCache,
    file_candidate,
    has_fence,
    last_path_part,
    list_names,
    read_file,
)
from crystal_nb.adapters.copilot_rules import V1
from crystal_nb.adapters.jsonl import HEAD_BYTES, node_line_bounds
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder, raw_bytes
from crystal_nb.adapters.vscode import window_folders, workspace_folder
from crystal_nb.config import Config
from crystal_nb.records import Candidate, Conversation, Fate, Message

__all__ = ["ADAPTER", "NAME"]

NAME = "copilot"
_MIN_BYTES = 100
_TOOL_KINDS = ("toolInvocationSerialized", "prepareToolInvocation")
_FILES: TimedCache[list[Candidate]] = TimedCache()


class Part(Struct, gc=False):
    kind: str | UnsetType = UNSET
    value: str | None = None


class Prompt(Struct, gc=False):
    text: str | None = None


class Request(Struct, gc=False, rename="camel"):
    request_id: str | None = None
    timestamp: int | UnsetType | None = UNSET
    message: Prompt | None = None
    response: list[Raw] | None = None


class Session(Struct, rename="camel"):
    session_id: str | None = None
    custom_title: str | None = None
    requests: list[Request] | None = None


class Document(Session):
    kind: int | UnsetType = UNSET
    v: Session | None = None


_DECODER = TypedDecoder(Document)
_PART_DECODER = TypedDecoder(Part)


def _root(config: Config) -> Path:
    return config.folder(NAME, "COPILOT_DATA_DIR", config.user_data("Code"))


def _count(root: Path, config: Config) -> int:
    return len(_candidates(root, config))


def _candidates(root: Path, config: Config) -> list[Candidate]:
    return list(_FILES.get(str(root), config.cache_seconds, lambda: list(_sessions(root))))


def _sessions(root: Path) -> Iterator[Candidate]:
    """Rules C2 to C5."""
    for window in window_folders(root):
        if os.path.exists(window / "chatSessions"):
            yield from _session_files(window / "chatSessions", _project_dir(window))
    empty = root / "globalStorage" / "emptyWindowChatSessions"
    if os.path.exists(empty):
        yield from _session_files(empty, "")


def _project_dir(window: Path) -> str:
    try:
        return workspace_folder(window / "workspace.json")
    except (OSError, ValueError):
        return ""


def _session_files(folder: Path, project_dir: str) -> Iterator[Candidate]:
    for name in list_names(folder):
        if name.endswith((".json", ".jsonl")):
            stem = name[: name.rindex(".")]
            try:
                status = os.stat(folder / name)
            except OSError:
                continue
            if status.st_size >= _MIN_BYTES:
                yield file_candidate(NAME, stem, folder / name, status, project_dir)


def _read(candidate: Candidate, rules: Rules, config: Config) -> Parsed:
    """Rule C9 to C21."""
    data = read_file(candidate.file_path)
    lines = [(0, len(data))] if candidate.file_path.endswith(".json") else _lines(data)
    draft = Draft(config)
    start, stop = lines[0]
    try:
        conversation = _read_document(data[start:stop], candidate, draft)
    except ValueError as error:
        draft = Draft(config)
        draft.fates.append(_whole(data[start:stop], str(error)))
        conversation = _conversation(candidate, draft)
    later = (_unread(data, n, start, stop) for n, (start, stop) in enumerate(lines[1:], 2))
    return Parsed(conversation, (*draft.fates, *later))


def _document(path: Path, rules: Rules) -> Any:
    """The session that pointers lead into."""
    data = read_file(path)
    start, stop = (0, len(data)) if path.suffix == ".json" else _lines(data)[0]
    document = ecma.parse_json(data[start:stop].decode("utf-8", "replace"))
    return document if document.get("v") is None else document["v"]


def _lines(data: bytes) -> list[tuple[int, int]]:
    return list(zip(*node_line_bounds(data), strict=True)) or [(0, 0)]


def _whole(line: bytes, reason: str) -> Fate:
    return Fate("dropped", "session", reason, line=1, offset=0, size=len(line), head=line[:HEAD_BYTES])


def _unread(data: bytes, number: int, start: int, stop: int) -> Fate:
    head = data[start : min(stop, start + HEAD_BYTES)]
    reason = "only the first line of a log is read"
    return Fate("dropped", "log line", reason, line=number, offset=start, size=stop - start, head=head)


def _read_document(line: bytes, candidate: Candidate, draft: Draft) -> Conversation:
    """Rules C10 to C13; a ValueError gives the empty conversation."""
    document = _DECODER.decode(line.rstrip(b"\r\n") if candidate.file_path.endswith("l") else line)
    if not isinstance(document, Document):
        raise ValueError("the document is no object")
    if document.kind is not UNSET and (document.kind != 0 or isinstance(document.kind, bool)):
        raise ValueError("the first line is no initial state (kind 0)")
    session: Any = document if document.v is None else document.v
    if not isinstance(session, Session) or not isinstance(session.requests, list):
        raise ValueError("no list of requests")
    if not session.requests:
        raise ValueError("no requests")
    for index, request in enumerate(session.requests):
        _read_request(request, f"/requests/{index}", draft)
    return _conversation(candidate, draft, session)


def _conversation(candidate: Candidate, draft: Draft, session: Session | None = None) -> Conversation:
    """Rules C20 and C21."""
    messages = draft.by_time()
    first, last = draft.span(messages)
    project_dir = candidate.project_dir
    return Conversation(
        source=NAME,
        id=session.session_id if session and ecma.truthy(session.session_id) else candidate.id,
        messages=messages,
        slug=session.custom_title if session and ecma.truthy(session.custom_title) else None,
        project_dir=project_dir,
        project_name=last_path_part(project_dir) if project_dir else "Global",
        cwd=project_dir or None,
        first_message_at=first,
        last_message_at=last,
    )


def _read_request(request: Any, pointer: str, draft: Draft) -> None:
    if request is None:
        raise ValueError(f"{pointer} is null")
    if not isinstance(request, Request):
        draft.fates.append(Fate("dropped", "request", "not an object", key=pointer))
        return
    _read_prompt(request, pointer, draft)
    _read_response(request, pointer, draft)


def _read_prompt(request: Request, pointer: str, draft: Draft) -> None:
    """Rule C14."""
    pointer += "/message"
    text = request.message.text if isinstance(request.message, Prompt) else None
    if text is not None and not isinstance(text, str):
        raise ValueError(f"{pointer}/text is no text")
    text = ecma.trim(text or "")
    if not text:
        draft.fates.append(Fate("dropped", "message", "no text", key=pointer))
        return
    id = request.request_id if ecma.truthy(request.request_id) else f"user-{ecma.to_text(request.timestamp)}"
    time = _time(request.timestamp, pointer)
    draft.fates.append(Fate("kept", "message", message_index=len(draft.messages), key=pointer))
    draft.messages.append(Message("user", text, "user", has_code=has_fence(text), id=id, timestamp=time))


class _Answer:
    """What the parts of one response add up to."""

    def __init__(self) -> None:
        self.texts: list[Any] = []
        self.thoughts: list[Any] = []
        self.has_code = False
        self.has_tool_use = False

    def take(self, raw: Any, pointer: str) -> tuple[str, str | None]:
        """Read one part (rule C16); give its kind and, unless it is used, why not."""
        part = _PART_DECODER.decode_value(raw)
        if isinstance(part, NotAnObject):
            if part.value is None:
                raise ValueError(f"{pointer} is null")
            return "part", "not an object"
        kind, value = part.kind, part.value
        if kind == "thinking":
            return kind, self._take_thinking(value)
        if kind is UNSET or kind == "text":
            return "text", self._take_text(value, pointer)
        if kind in _TOOL_KINDS:
            self.has_tool_use = True
            return kind, None
        return ecma.to_text(kind), "part kind is not read"

    def _take_thinking(self, value: Any) -> str | None:
        if not ecma.truthy(value):
            return "no text"
        self.thoughts.append(value)
        return None

    def _take_text(self, value: Any, pointer: str) -> str | None:
        if not ecma.truthy(value):
            return "no text"
        if not isinstance(value, (str, list)):
            raise ValueError(f"{pointer}/value is no text")
        self.texts.append(value)
        self.has_code = self.has_code or FENCE in value
        return None


def _read_response(request: Request, pointer: str, draft: Draft) -> None:
    """Rules C15 to C18."""
    response: Any = request.response
    pointer += "/response"
    if not isinstance(response, list):
        _skip_response(response, pointer, draft)
        return
    answer = _Answer()
    taken = [answer.take(raw, f"{pointer}/{index}") for index, raw in enumerate(response)]
    message = _answer_message(answer, request, pointer)
    place = None if message is None else len(draft.messages)
    if message is not None:
        draft.messages.append(message)
    draft.fates.extend(_part_fates(response, taken, pointer, place))


def _answer_message(answer: _Answer, request: Request, pointer: str) -> Message | None:
    text = ecma.trim(ecma.join(answer.texts, "\n"))
    thinking = ecma.join(answer.thoughts, "\n") if answer.thoughts else None
    if not (text or thinking):
        return None
    id = request.request_id if ecma.truthy(request.request_id) else request.timestamp
    return Message(
        type="assistant",
        content=text,
        role="assistant",
        has_tool_use=answer.has_tool_use,
        has_code=answer.has_code,
        thinking=thinking,
        id=f"resp-{ecma.to_text(id)}",
        timestamp=_time(_plus_one(request.timestamp), pointer),
    )


def _skip_response(response: Any, pointer: str, draft: Draft) -> None:
    """A text is walked by characters and yields nothing; other things with a length can't be walked."""
    if ecma.length(response) > 0 and not isinstance(response, str):
        raise ValueError(f"{pointer} can't be iterated")
    if ecma.truthy(response):
        draft.fates.append(Fate("dropped", "response", "not a list", key=pointer))


def _part_fates(
    response: list[Any], taken: list[tuple[str, str | None]], pointer: str, place: int | None
) -> Iterator[Fate]:
    """The first text makes the message, the other used parts are merged into it."""
    made = False
    for index, (raw, (kind, reason)) in enumerate(zip(response, taken, strict=True)):
        key, data = f"{pointer}/{index}", raw_bytes(raw)
        if reason is not None or place is None:
            why = reason or "answer without text or thinking"
            yield Fate("dropped", kind, why, key=key, size=len(data), head=data[:HEAD_BYTES])
        elif kind in _TOOL_KINDS:
            yield Fate("merged", kind, "only the tool flag is kept", place, key=key, size=len(data))
        else:
            yield Fate("merged" if made else "kept", kind, "joined" if made else None, place, key=key, size=len(data))
            made = True


def _plus_one(timestamp: Any) -> Any:
    """JavaScript's ``timestamp + 1``: a sum for numbers, true and null, else text with a 1 behind."""
    if timestamp is UNSET:
        return UNSET
    if timestamp is None or isinstance(timestamp, (bool, int, float)):
        return (timestamp or 0) + 1
    return ecma.to_text(timestamp) + "1"


def _time(timestamp: Any, pointer: str) -> str:
    """Rule C19: an invalid time empties the whole conversation."""
    ms = None if timestamp is UNSET else ecma.date_ms(timestamp)
    if ms is None:
        raise ValueError(f"{pointer}: the request has no valid timestamp")
    return ecma.iso_time(ms)


ADAPTER = Adapter(
    name=NAME,
    display_name="GitHub Copilot",
    root=_root,
    count=_count,
    candidates=_candidates,
    read=_read,
    rules=V1,
    document=_document,
)
