"""Gemini CLI: ``~/.gemini/tmp/<project>/chats/session-*.json`` and ``*.jsonl``.

Written as somebody else would write an adapter: with the public pieces only, in this one file.

Sure, from the tool's own source (google-gemini/gemini-cli, ``packages/core/src/services/``
``chatRecordingService.ts`` and ``chatRecordingTypes.ts``):

- G1 The older form is one JSON document ``{sessionId, projectHash, startTime, lastUpdated, messages, …}``.
- G2 The newer form is a log: a first line with the same keys without ``messages``, then one message per
  line; a message that comes again under its id replaces the earlier one in its place.
- G3 ``{"$rewindTo": id}`` takes that message and all after it away, all of them where there is none of that id.
- G4 ``{"$set": {…}}`` changes the facts about the session.
- G5 A message is ``{id, timestamp, type, content}``; ``type`` is user, gemini, info, error or warning; content is
  text or a list of parts with ``text``; gemini messages have ``thoughts``, ``toolCalls``, ``tokens``, ``model``.
- G6 A subagent's log is ``chats/<parent's session id>/<its own>.jsonl``. Resuming a document writes a log of the
  same name beside it, which then goes on alone.

Not sure, since versions differ or only others say so:

- G7 ``$set.messages``: the newer loader takes the list as a fresh start and goes on from there, an older one
  lets the last list win over all lines. This follows the newer one.
- G8 ``<project>/.project_root`` holds the project's path (seen by others; without it the folder's name serves).
- G9 A user message that begins with ``<session_context>`` is the tool's own; it is kept, with the mark ``harness``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crystal_nb.adapters.base import Adapter, Parsed, Rules, file_candidate, read_file
from crystal_nb.config import Config
from crystal_nb.details import Details, Link, ToolCall
from crystal_nb.prototyping import RawRecord, line_records, read_document
from crystal_nb.records import Candidate, Conversation, Fate, FateStatus, Message

if TYPE_CHECKING:
    from crystal_nb.scenarios import Sample

__all__ = ["ADAPTER"]

NAME = "gemini"
_LONGEST_PATH = 4096
_TYPES = {"user": "user", "gemini": "assistant"}
_HEAD_BYTES = 96


def _root(config: Config) -> Path:
    return config.folder(NAME, "", config.home_path / ".gemini" / "tmp")


def _candidates(root: Path, config: Config) -> list[Candidate]:
    found = []
    for project in _folders(root):
        chats = project / "chats"
        if chats.is_dir():
            title = _project_root(project) or project.name
            paths = [*_sessions(chats), *(path for agent in _folders(chats) for path in sorted(agent.glob("*.jsonl")))]
            found += [file_candidate(NAME, _id(p), p, os.stat(p), title) for p in paths if p.exists()]
    return found


def _id(path: Path) -> str:
    return path.stem.removeprefix("session-")


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir())


def _sessions(chats: Path) -> list[Path]:
    """Logs, and documents that no log goes on with (G6)."""
    names = {name for name in os.listdir(chats) if name.startswith("session-")}
    alone = {name for name in names if name.endswith(".json") and f"{name}l" not in names}
    return sorted(chats / name for name in names if name.endswith(".jsonl") or name in alone)


def _project_root(project: Path) -> str | None:
    """G8."""
    try:
        return read_file(project / ".project_root")[:_LONGEST_PATH].decode("utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


@dataclass
class _Entry:
    """A message as it stands after replaying the log so far."""

    value: dict[str, Any]
    records: list[int]
    """Raw records that made it, the last one being what it is now."""


@dataclass
class _Replay:
    """The log replayed: messages by id in order, and what is known of each raw record."""

    entries: dict[str, _Entry] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[int, tuple[FateStatus, str | None]] = field(default_factory=dict)

    def read(self, number: int, record: RawRecord) -> None:
        """Take in one line."""
        value = record.value
        if record.problem is not None:
            self.outcomes[number] = ("dropped", record.problem)
        elif isinstance(value.get("$rewindTo"), str):
            self._rewind(value["$rewindTo"])
            self.outcomes[number] = ("metadata", None)
        elif isinstance(value.get("id"), str):
            self.put(number, value)
        elif isinstance(value.get("$set"), dict):
            self._set(number, value["$set"])
        elif isinstance(value.get("sessionId"), str):
            self.facts |= value
            self.outcomes[number] = ("metadata", None)
        else:
            self.outcomes[number] = ("dropped", "kind is not known")

    def put(self, number: int, value: dict[str, Any]) -> None:
        """Add a message, or the new state of one (G2)."""
        entry = self.entries.setdefault(value["id"], _Entry(value, []))
        entry.value = value
        entry.records.append(number)

    def _rewind(self, id: str) -> None:
        """G3."""
        gone = None
        while self.entries and gone != id:
            gone, entry = self.entries.popitem()
            self._lose(entry, "taken back by a rewind")

    def _set(self, number: int, facts: dict[str, Any]) -> None:
        """G4 and G7."""
        messages = facts.get("messages")
        self.facts |= {key: value for key, value in facts.items() if key != "messages"}
        self.outcomes[number] = ("metadata", None)
        if isinstance(messages, list):
            listed = [m for m in messages if isinstance(m, dict) and isinstance(m.get("id"), str)]
            before, self.entries = self.entries, {}
            for m in listed:
                entry = self.entries.get(m["id"]) or before.pop(m["id"], None) or _Entry(m, [])
                self.entries[m["id"]], entry.value = entry, m
                if entry.records[-1:] != [number]:
                    entry.records.append(number)
            for entry in before.values():
                self._lose(entry, "left out of a later list of messages")

    def _lose(self, entry: _Entry, reason: str) -> None:
        for number in entry.records:
            self.outcomes.setdefault(number, ("dropped", reason))


def _read(candidate: Candidate, rules: Rules, config: Config) -> Parsed:
    replay, records = _Replay(), list(_records(candidate))
    if candidate.file_path.endswith(".jsonl"):
        for number, record in enumerate(records):
            replay.read(number, record)
    else:
        document, *turns = records
        replay.facts = document.value if isinstance(document.value, dict) else {}
        replay.outcomes[0] = ("metadata", None) if replay.facts else ("dropped", "not an object")
        for number, record in enumerate(turns, 1):
            if isinstance(record.value, dict) and isinstance(record.value.get("id"), str):
                replay.put(number, record.value)
            else:
                replay.outcomes[number] = ("dropped", "no message with an id")
    messages, owners = _messages(replay)
    return Parsed(_conversation(candidate, replay.facts, messages), tuple(_fates(records, replay, owners)))


def _records(candidate: Candidate) -> Iterable[RawRecord]:
    """Lines of a log; of a document, the document and its messages."""
    if candidate.file_path.endswith(".jsonl"):
        yield from line_records(candidate.file_path)
        return
    document = read_document(candidate)
    yield document
    turns = document.value.get("messages") if isinstance(document.value, dict) else None
    for number, turn in enumerate(turns if isinstance(turns, list) else ()):
        yield RawRecord(turn, json.dumps(turn).encode(), key=f"/messages/{number}")


def _messages(replay: _Replay) -> tuple[list[Message], dict[int, list[int]]]:
    """The messages, and which of them each raw record went into, the one that it stands for first."""
    messages: list[Message] = []
    owners: dict[int, list[int]] = {}
    for entry in replay.entries.values():
        message, why_not = _message(entry.value)
        *earlier, last = entry.records
        if message is None:
            replay.outcomes.setdefault(last, ("dropped", why_not))
            for number in earlier:
                replay.outcomes.setdefault(number, ("dropped", f"replaced by a later state: {why_not}"))
            continue
        stands = replay.outcomes.get(last) in (None, ("metadata", None))
        if stands:
            replay.outcomes[last] = ("kept", None)
        made = owners.setdefault(last, [])
        made.insert(0 if stands else len(made), len(messages))
        for number in earlier:
            replay.outcomes.setdefault(number, ("merged", "an earlier state of the message"))
            owners.setdefault(number, []).append(len(messages))
        messages.append(message)
    return messages, owners


def _message(value: dict[str, Any]) -> tuple[Message | None, str | None]:
    """G5."""
    kind = value.get("type")
    type = _TYPES.get(kind) if isinstance(kind, str) else None
    if type is None:
        return None, "a note of the interface" if kind in ("info", "error", "warning") else "kind is not imported"
    content, thinking = _text(value.get("content")), _thinking(value.get("thoughts"))
    tools = tuple(_tool(call) for call in _objects(value.get("toolCalls")))
    if not (content or thinking or tools):
        return None, "no text"
    message = Message(
        type=type,
        content=content,
        role=kind,
        has_tool_use=bool(tools),
        has_code="```" in content,
        thinking=thinking,
        id=value["id"],
        timestamp=value.get("timestamp"),
        details=_details(value, tools, content),
    )
    return message, None


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(content: Any) -> str:
    """Text of a message or a tool's answer: as it is, or that of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    texts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, (str, dict))]
    return "".join(text for text in texts if isinstance(text, str))


def _thinking(thoughts: Any) -> str | None:
    pairs = [(_string(t.get("subject")), _string(t.get("description"))) for t in _objects(thoughts)]
    return "\n".join(": ".join(filter(None, pair)) for pair in pairs if any(pair)) or None


def _tool(call: dict[str, Any]) -> ToolCall:
    status, args = _string(call.get("status")), call.get("args")
    arguments = None if args is None else json.dumps(args, ensure_ascii=False)
    failed = None if status is None else status != "success"
    return ToolCall(_string(call.get("name")) or "", arguments, _answer(call), _string(call.get("id")), failed)


def _answer(call: dict[str, Any]) -> str | None:
    result = call.get("result")
    parts = _objects([result] if isinstance(result, dict) else result)
    answers = [json.dumps(r.get("response")) for r in _objects([part.get("functionResponse") for part in parts])]
    return "\n".join(answers) or _text(result) or _string(call.get("resultDisplay"))


def _details(value: dict[str, Any], tools: tuple[ToolCall, ...], content: str) -> Details:
    tokens = next(iter(_objects([value.get("tokens")])), {})
    numbers = map(tokens.get, ("input", "output", "cached"))
    given, made, cached = (n if type(n) is int and abs(n) < 2**63 else None for n in numbers)
    marks = ("harness",) if content.lstrip().startswith("<session_context>") else ()
    return Details(tools, _string(value.get("model")), given, made, cached, marks=marks)


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _conversation(candidate: Candidate, facts: dict[str, Any], messages: list[Message]) -> Conversation:
    path, project = Path(candidate.file_path), candidate.project_dir
    parent = _parent(path)
    return Conversation(
        source=NAME,
        id=candidate.id,
        messages=tuple(messages),
        slug=_string(facts.get("summary")),
        project_dir=project,
        project_name=Path(project).name or project,
        cwd=project if os.path.isabs(project) else None,
        first_message_at=messages[0].timestamp if messages else None,
        last_message_at=messages[-1].timestamp if messages else None,
        parent_id=parent.target if parent else None,
        links=(parent,) if parent else (),
    )


def _parent(path: Path) -> Link | None:
    """The session that a subagent's log belongs to; its file's name ends with the first 8 characters of its id (G6)."""
    if path.parent.name == "chats":
        return None
    short, chats = path.parent.name[:8], path.parent.parent
    ids = {_id(p) for p in chats.glob("session-*") if p.stem.endswith(f"-{short}")}
    target = ids.pop() if len(ids) == 1 else None
    return Link("subagent-of", target, f"in the folder of {path.parent.name}", target is not None)


def _fates(records: list[RawRecord], replay: _Replay, owners: dict[int, list[int]]) -> Iterable[Fate]:
    for number, record in enumerate(records):
        status, reason = replay.outcomes.get(number, ("metadata", None))
        head = record.data[:_HEAD_BYTES] if status == "dropped" else b""
        kind = record.kind or next(iter(record.value), "") if isinstance(record.value, dict) else record.kind
        place = (record.line, record.offset, record.size, record.key)
        own = owners[number] if status in ("kept", "merged") else []
        yield Fate(status, kind, reason, own[0] if own else None, *place, head, also=tuple(own[1:]))


@dataclass(frozen=True)
class _Gemini(Adapter):
    """The adapter, and a writer of sample sessions for its checks."""

    def write_sample(self, home: Path, sample: Sample) -> Path:
        """Write a session of the newer form."""
        begun = "2026-01-05T10:00:00.000Z"
        head = {"sessionId": sample.id, "projectHash": "0" * 64, "startTime": begun, "kind": "main"}
        lines: list[dict[str, Any]] = [head]
        for m in sample.messages:
            kind = "user" if m.role == "user" else "gemini"
            lines.append({"id": m.id, "timestamp": m.time, "type": kind, "content": [{"text": m.text}]})
        if sample.padding:
            lines.append({"$set": {"lastUpdated": "x" * sample.padding}})
        path = home / ".gemini" / "tmp" / "demo" / "chats" / f"session-{sample.id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return path


ADAPTER = _Gemini(
    name=NAME,
    display_name="Gemini CLI",
    root=_root,
    count=lambda root, config: len(_candidates(root, config)) if root.is_dir() else 0,
    candidates=_candidates,
    read=_read,
    rules=Rules("gemini@1"),
)
