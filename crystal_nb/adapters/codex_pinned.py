"""Codex CLI by the pinned rules: ``~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl``.

Source: ``formats/codex.md`` section 3; the numbers in comments are its rules.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import (
    Adapter,
    Draft,
    Outcome,
    Parsed,
    Rules,
    TimedCache,
    file_candidate,
    has_fence,
    last_path_part,
    list_names,
)
from crystal_nb.adapters.codex_names import thread_name
from crystal_nb.adapters.codex_rules import V1
from crystal_nb.adapters.jsonl import Broken, no_record, read_lines_into
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder
from crystal_nb.adapters.uuids import random_uuids
from crystal_nb.config import Config
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Conversation, Message

__all__ = ["ADAPTER", "NAME", "by_kinds", "candidate_id"]

NAME = "codex"
_MIN_BYTES = 50
_REQUEST = "## My request for Codex:\n"
_DATED_NAME = re.compile(
    "rollout-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-([^\n\r\u2028\u2029]+)",
)
_FILES: TimedCache[list[str]] = TimedCache()


class ContentBlock(Struct, gc=False):
    type: str | None = None
    text: str | None = None


class Git(Struct, gc=False):
    branch: str | None = None


class Payload(Struct, gc=False):
    type: str | None = None
    id: str | None = None
    cwd: str | None = None
    git: Git | None = None
    message: str | None = None
    role: str | None = None
    content: str | list[ContentBlock] | None = None


class RawLine(Struct, gc=False):
    type: str | None = None
    timestamp: str | None = None
    payload: Payload | None = None


_DECODER = TypedDecoder(RawLine)


def _root(config: Config) -> Path:
    return config.folder(NAME, "CODEX_SESSIONS_DIR", config.home_path / ".codex" / "sessions")


def _count(root: Path, config: Config) -> int:
    return len(_rollouts(root, config)) if root.exists() else 0


def _candidates(root: Path, config: Config) -> list[Candidate]:
    """Rule 4; a file whose stat fails is left out."""
    found = []
    for path in _rollouts(root, config):
        try:
            status = os.stat(path)
        except OSError:
            continue
        if status.st_size >= _MIN_BYTES:
            found.append(file_candidate(NAME, candidate_id(os.path.basename(path)), path, status, ""))
    return found


def _rollouts(root: Path, config: Config) -> list[str]:
    return _FILES.get(str(root), config.cache_seconds, lambda: list(_walk(os.path.abspath(root))))


def _walk(root: str) -> Iterator[str]:
    """Rule 2: depth first, names in byte order, folders behind links not entered."""
    waiting = [(os.path.dirname(root), os.path.basename(root))]
    while waiting:
        folder, name = waiting.pop()
        path = os.path.join(folder, name)
        if path == root or (os.path.isdir(path) and not os.path.islink(path)):
            waiting += ((path, inner) for inner in reversed(list_names(path)))
        elif name.startswith("rollout-") and name.endswith(".jsonl"):
            yield path


def candidate_id(name: str) -> str:
    """The id in a rollout's file name, or the name itself (rule 4).

    >>> candidate_id("rollout-2026-01-01T00-00-00-aaa_bbb.jsonl"), candidate_id("rollout-x.jsonl")
    ('aaa_bbb', 'rollout-x')
    """
    stem = name.removesuffix(".jsonl")
    match = _DATED_NAME.search(stem)
    return match[1] if match else stem


class _Session(Draft):
    """State of one parse."""

    def __init__(self, candidate: Candidate, config: Config) -> None:
        super().__init__(config)
        self.id: Any = candidate.id
        self.cwd: Any = None
        self.git_branch: Any = None
        self.ids = random_uuids()
        self.last_answer: int | None = None
        """Position of the last assistant message."""


def _read(candidate: Candidate, rules: Rules, config: Config) -> Parsed:
    session = _Session(candidate, config)
    read_lines_into(session, candidate, _DECODER, partial(_outcomes, session))
    project_dir = candidate.project_dir or session.cwd or ""
    if not isinstance(project_dir, str):
        reason = f"session_meta's cwd is no text: {type(project_dir).__name__}"
        raise ParseError(reason, source=NAME, path=candidate.file_path)
    messages = session.by_time()
    first, last = session.span(messages)
    conversation = Conversation(
        source=NAME,
        id=session.id,
        messages=messages,
        slug=thread_name(config.home_path / ".codex", session.id),
        project_dir=project_dir,
        project_name=last_path_part(project_dir),
        cwd=session.cwd,
        git_branch=session.git_branch,
        first_message_at=first,
        last_message_at=last,
    )
    return Parsed(conversation, tuple(session.fates))


T = TypeVar("T")
_FEW, _PLAIN = 256, {str, type(None)}


def by_kinds(table: Mapping[Any, T], records: Iterable[Any]) -> Iterable[T | None]:
    """What a table has for the kinds of each line and its payload; None for all where some lines have none to look up.

    >>> list(by_kinds({("a", "b"): 1}, [RawLine("a", None, Payload("b")), RawLine("a", None, Payload("c"))]))
    [1, None]
    """
    found = table.get
    try:
        return [found((record.type, record.payload.type)) for record in records]
    except (AttributeError, TypeError):  # a line without a payload, or with a kind that is no text
        return repeat(None)


def _outcomes(session: _Session, records: list[Any]) -> Iterator[Outcome]:
    """Rules 7 to 12, line by line; what the kinds of a line and its payload say is looked up at once."""
    found: Iterable[Any] = by_kinds(_BY_KINDS, records)
    for known, record in zip(found, records, strict=False):
        if type(known) is tuple:
            yield known
        else:
            yield _read_line(session, record) if known is None else known(record, record.payload, session)


def _read_line(session: _Session, record: RawLine | NotAnObject | Broken) -> Outcome:
    """Rules 7 to 12."""
    if type(record) is not RawLine:
        return no_record(record)  # type: ignore[arg-type]
    payload = record.payload
    if type(payload) is not Payload:
        return "dropped", _kind_text(record.type), "no payload object", None
    if record.type == "session_meta":
        return _read_meta(payload, session)
    try:
        rule = _RULES.get((record.type, payload.type))
    except TypeError:  # a kind that is no text
        rule = None
    return _not_imported(record.type, payload.type) if rule is None else rule(record, payload, session)


def _not_imported(kind: Any, inner: Any) -> Outcome:
    outcome: Outcome = "dropped", f"{_kind_text(kind)}/{_kind_text(inner)}".rstrip("/"), "kind is not imported", None
    if len(_BY_KINDS) < _FEW and {type(kind), type(inner)} <= _PLAIN:  # as a key, 1 is true
        _BY_KINDS[kind, inner] = outcome
    return outcome


def _kind_text(kind: Any) -> str:
    return "" if kind is None else ecma.to_text(kind)


def _read_meta(payload: Payload, session: _Session) -> Outcome:
    """Rule 8: the last one wins."""
    branch = payload.git.branch if isinstance(payload.git, Git) else None
    session.id = payload.id if ecma.truthy(payload.id) else session.id
    session.cwd = payload.cwd if ecma.truthy(payload.cwd) else session.cwd
    session.git_branch = branch if ecma.truthy(branch) else session.git_branch
    return "metadata", "session_meta", None, None


def _read_prompt(record: RawLine, payload: Payload, session: _Session) -> Outcome:
    """Rule 9."""
    text = _event_text(payload)
    at = text.find(_REQUEST, text.find("#"))  # where there is no "#", from the last character on: one is found faster
    text = ecma.trim(text[at + len(_REQUEST) :] if at >= 0 else text)
    if not text:
        return "dropped", _PROMPT, "blank text", None
    return "kept", _PROMPT, None, _add(session, record, "user", text)


def _read_answer_event(record: RawLine, payload: Payload, session: _Session) -> Outcome:
    """Rule 10: kept untrimmed."""
    text = _event_text(payload)
    if not ecma.trim(text):
        return "dropped", _ANSWER, "blank text", None
    session.last_answer = _add(session, record, "assistant", text)
    return "kept", _ANSWER, None, session.last_answer


def _event_text(payload: Payload) -> str:
    if isinstance(payload.message, str):
        return payload.message
    if ecma.truthy(payload.message):
        raise ValueError(f"payload.message is no text: {type(payload.message).__name__}")
    return ""


def _read_answer_item(record: RawLine, payload: Payload, session: _Session) -> Outcome:
    """Rule 11: dropped when it says what the last assistant message says."""
    if payload.role != "assistant":
        return "dropped", _ITEM, _other_role(_kind_text(payload.role)), None
    text = _item_text(payload.content)
    if not text:
        return "dropped", _ITEM, "no output text", None
    last = session.last_answer
    if last is not None and session.messages[last].content == text:
        return "merged", _ITEM, "same text as the last answer", last
    session.last_answer = _add(session, record, "assistant", text)
    return "kept", _ITEM, None, session.last_answer


@functools.lru_cache(maxsize=64)
def _other_role(role: str) -> str:
    return f"role {role} is not imported"


def _item_text(content: Any) -> str:
    if type(content) is list and len(content) == 1:
        block = content[0]
        if type(block) is ContentBlock and block.type == "output_text" and type(block.text) is str:
            return ecma.trim(block.text)
    if not ecma.truthy(content) or isinstance(content, str):
        return ""
    if not isinstance(content, list):
        raise ValueError(f"payload.content can't be iterated: {type(content).__name__}")
    texts = []
    for block in content:
        if block is None:
            raise ValueError("payload.content holds null")
        if isinstance(block, ContentBlock) and block.type == "output_text" and ecma.truthy(block.text):
            texts.append(block.text)
    return ecma.trim(ecma.join(texts, "\n"))


def _read_call(record: RawLine, payload: Payload, session: _Session) -> Outcome:
    """Rule 12: all that is left of a call is a flag on the last assistant message."""
    kind, last = f"response_item/{payload.type}", session.last_answer
    if last is None:
        return "dropped", kind, "call before any assistant text", None
    if not session.messages[last].has_tool_use:
        session.messages[last] = replace(session.messages[last], has_tool_use=True)
    return "merged", kind, "only the tool flag is kept", last


_PROMPT, _ANSWER, _ITEM = "event_msg/user_message", "event_msg/agent_message", "response_item/message"
_RULES: dict[tuple[Any, Any], Callable[[RawLine, Payload, _Session], Outcome]] = {
    ("event_msg", "user_message"): _read_prompt,
    ("event_msg", "agent_message"): _read_answer_event,
    ("response_item", "message"): _read_answer_item,
    ("response_item", "function_call"): _read_call,
    ("response_item", "custom_tool_call"): _read_call,
}
_BY_KINDS: dict[tuple[Any, Any], Outcome | Callable[[RawLine, Payload, _Session], Outcome]] = {**_RULES}
"""Rules, and the outcomes of kinds that are not imported, as far as they were met."""


def _add(session: _Session, record: RawLine, role: str, text: str) -> int:
    time, messages = record.timestamp, session.messages
    clock = not ecma.truthy(time)
    messages.append(
        Message(
            role,
            text,
            role,
            False,
            has_fence(text),
            None,
            next(session.ids),  # rule 13: new at each parse
            None,
            session.now() if clock else time,
            clock,
        )
    )
    return len(messages) - 1


ADAPTER = Adapter(
    name=NAME,
    display_name="Codex CLI",
    root=_root,
    count=_count,
    candidates=_candidates,
    read=_read,
    rules=V1,
)
