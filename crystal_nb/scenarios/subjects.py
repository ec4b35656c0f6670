"""What a scenario imports: a small conversation that an adapter's sample writer puts on disk, or a copy of one's own.

Every subject can be put in the same variants, so one scenario serves all adapters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.errors import ConfigError

__all__ = [
    "Sample",
    "SampleMessage",
    "SampleSubject",
    "SampleWriter",
    "Subject",
    "Variant",
    "lacking",
    "messages_at_first",
    "needed",
    "subject_for",
]

Variant = Literal["base", "same-size-edit", "edited", "appended", "padded", "short", "other"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
Ability = Literal["append", "copies", "short", "inner-id", "message-ids"]
"""What not every subject can: more messages, other conversations, one message only, an id of its own
inside the file, message ids of its own choice."""
_WORDS: dict[Ability, str] = {
    "append": "messages to append: three messages or more, each on a line of its own of a file of JSON lines",
    "copies": "other conversations beside it",
    "short": "a variant of one message",
    "inner-id": "an id of its own inside the file",
    "message-ids": "message ids of its own choice",
}
_ALWAYS: frozenset[Ability] = frozenset({"append", "copies", "short"})


class SampleMessage(Struct, frozen=True):
    """One message to write."""

    role: Literal["user", "assistant"]
    text: str
    id: str
    time: str


class Sample(Struct, frozen=True):
    """A conversation to write as a tool would."""

    id: str
    """What the scan has to find."""
    messages: tuple[SampleMessage, ...]
    inner_id: str | None = None
    """What the parse has to find, where that can differ."""
    padding: int = 0
    """Bytes, about, that change the size and no message."""


SampleWriter = Callable[[Path, Sample], Path]
"""Writes a sample below a home folder, a file of its own per conversation, and returns the file."""


class Subject(Protocol):
    """A conversation in variants."""

    @property
    def source(self) -> str: ...
    @property
    def abilities(self) -> frozenset[Ability]: ...
    def put(self, home: Path, variant: Variant, *, id: str | None = None, shared: bool = False) -> Path:
        """Write a variant; ``id`` names another conversation, ``shared`` gives it the first one's message ids."""
        ...


class SampleSubject(Struct, frozen=True):
    """A made-up conversation."""

    source: str
    write: SampleWriter
    abilities: frozenset[Ability] = _ALWAYS
    inner_id: str | None = None

    def put(self, home: Path, variant: Variant, *, id: str | None = None, shared: bool = False) -> Path:
        """See `Subject`."""
        id = id or "s1"
        messages = _messages("s1" if shared else id)
        sample = Sample(id, messages[:2], inner_id=self.inner_id)
        return self.write(home, _VARIANTS[variant](sample, messages))


def _messages(prefix: str) -> tuple[SampleMessage, ...]:
    texts = ("Paint the door blue, please", "The door is blue now", "And the window, too", "The window is blue as well")
    return tuple(
        SampleMessage("assistant" if n % 2 else "user", text, f"{prefix}-m{n}", f"2026-01-05T10:00:0{n}.000Z")
        for n, text in enumerate(texts)
    )


def _repainted(sample: Sample, colour: str) -> Sample:
    first, *others = sample.messages
    return replace(sample, messages=(replace(first, text=first.text.replace("blue", colour)), *others))


_VARIANTS: dict[Variant, Callable[[Sample, tuple[SampleMessage, ...]], Sample]] = {
    "base": lambda sample, _: sample,
    "same-size-edit": lambda sample, _: _repainted(sample, "pink"),
    "edited": lambda sample, _: _repainted(sample, "turquoise"),
    "appended": lambda sample, messages: replace(sample, messages=messages),
    "padded": lambda sample, _: replace(sample, padding=40),
    "short": lambda sample, _: replace(sample, messages=sample.messages[:1]),
    "other": lambda sample, messages: replace(sample, messages=(*sample.messages[:1], *messages[2:])),
}


def _json_lines(path: Path, records: list[dict[str, Any]], padding: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_text(text + " " * padding + "\n" * (padding > 0), encoding="utf-8")
    return path


def write_claude_code(home: Path, sample: Sample) -> Path:
    """Write a session file of Claude Code.

    >>> import tempfile
    >>> write_claude_code(Path(tempfile.mkdtemp()), Sample("s1", ())).name
    's1.jsonl'
    """
    place = {"sessionId": sample.id, "cwd": "/srv/demo", "gitBranch": "main", "version": "2.0.0"}
    previous = [None, *(m.id for m in sample.messages)]
    records = [
        {
            "type": m.role,
            "uuid": m.id,
            "parentUuid": parent,
            "timestamp": m.time,
            **place,
            "message": {"role": m.role, "content": [{"type": "text", "text": m.text}]},
        }
        for m, parent in zip(sample.messages, previous, strict=False)
    ]
    return _json_lines(home / ".claude" / "projects" / "-srv-demo" / f"{sample.id}.jsonl", records, sample.padding)


def write_codex(home: Path, sample: Sample) -> Path:
    """Write a rollout file of Codex CLI.

    >>> import tempfile
    >>> write_codex(Path(tempfile.mkdtemp()), Sample("s1", ())).name
    'rollout-2026-01-05T10-00-00-s1.jsonl'
    """
    start = "2026-01-05T10:00:00.000Z"
    meta = {"id": sample.inner_id or sample.id, "cwd": "/srv/demo", "git": {"branch": "main"}}
    records: list[dict[str, Any]] = [{"timestamp": start, "type": "session_meta", "payload": meta}]
    for m in sample.messages:
        kind = "user_message" if m.role == "user" else "agent_message"
        records.append({"timestamp": m.time, "type": "event_msg", "payload": {"type": kind, "message": m.text}})
    folder = home / ".codex" / "sessions" / "2026" / "01" / "05"
    return _json_lines(folder / f"rollout-2026-01-05T10-00-00-{sample.id}.jsonl", records, sample.padding)


def write_copilot(home: Path, sample: Sample) -> Path:
    """Write a session file of GitHub Copilot Chat.

    >>> import tempfile
    >>> write_copilot(Path(tempfile.mkdtemp()), Sample("s1", ())).name
    's1.json'
    """
    requests: list[dict[str, Any]] = []
    for m in sample.messages:
        if m.role == "user":
            ms = 1_767_607_200_000 + 1000 * len(requests)
            requests.append({"requestId": m.id, "timestamp": ms, "message": {"text": m.text}, "response": []})
        else:
            requests[-1]["response"] = [{"value": m.text}]
            requests[-1]["responseId"] = m.id
    document = {"version": 3, "sessionId": sample.inner_id or sample.id, "requests": requests}
    window = home / ".config" / "Code" / "User" / "workspaceStorage" / "w1"
    path = window / "chatSessions" / f"{sample.id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    (window / "workspace.json").write_text('{"folder": "file:///srv/demo"}', encoding="utf-8")
    path.write_text(json.dumps(document) + " " * (sample.padding + 100), encoding="utf-8")
    return path


_WRITERS: dict[str, tuple[SampleWriter, frozenset[Ability]]] = {
    "claude-code": (write_claude_code, frozenset({"message-ids"})),
    "codex": (write_codex, frozenset({"inner-id"})),
    "copilot": (write_copilot, frozenset({"inner-id"})),
}


def subject_for(adapter: SourceAdapter, *, inner_id: str | None = None) -> SampleSubject:
    """A made-up conversation of an adapter.

    Raises
    ------
    ConfigError
        If the adapter has no ``write_sample`` and is none of those that have a writer here.

    >>> from crystal_nb.adapters import get_adapter
    >>> sorted(subject_for(get_adapter("codex")).abilities)
    ['append', 'copies', 'inner-id', 'short']
    """
    own = getattr(adapter, "write_sample", None)
    if own is not None:
        abilities = _ALWAYS | frozenset(getattr(adapter, "sample_abilities", ()))
        return SampleSubject(adapter.name, own, abilities, inner_id)
    if adapter.name not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise ConfigError(
            f"no sample writer for {adapter.name!r}: give the decorator (or a class of your own) "
            f"write_sample=function(home, sample), or check copies of files with home=…; built-in ones: {known}"
        )
    write, abilities = _WRITERS[adapter.name]
    return SampleSubject(adapter.name, write, _ALWAYS | abilities, inner_id)


def needed(abilities: Iterable[Ability]) -> str:
    """What a subject lacks, in words.

    >>> needed(["short"])
    'needs a subject that has a variant of one message; write_sample(home, sample) of an adapter gives one'
    """
    words = ", ".join(_WORDS[ability] for ability in sorted(abilities))
    return f"needs a subject that has {words}; write_sample(home, sample) of an adapter gives one"


def lacking(abilities: Iterable[Ability], subject: Subject | None) -> str:
    """What a given subject lacks of what is needed, in words.

    >>> lacking(["append", "short"], SampleSubject("mine", write_codex, frozenset({"append"})))
    'needs a subject that has a variant of one message; write_sample(home, sample) of an adapter gives one'
    """
    count = messages_at_first(subject)
    if count < 2:
        return f"needs two messages or more at its first import, and has {count}"
    return needed(set(abilities) - (subject.abilities if subject is not None else set()))


def messages_at_first(subject: Subject | None) -> int:
    """Messages of the variant that is imported first.

    >>> messages_at_first(None)
    2
    """
    first: int = getattr(subject, "counts", (2, 4))[0]
    return first
