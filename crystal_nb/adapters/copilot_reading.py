"""One session from its file, or from what stands in for it.

Source: ``formats/copilot.md`` section 5: a log without initial state gives way to the flat file beside
it, that to the extension's transcript; without either it is replayed from an empty session.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from crystal_nb.adapters.base import read_file
from crystal_nb.adapters.copilot_places import transcript_of
from crystal_nb.adapters.copilot_replay import Replay, decode, replay
from crystal_nb.adapters.copilot_rules import CopilotRules
from crystal_nb.adapters.copilot_transcript import read_transcript
from crystal_nb.adapters.copilot_values import as_dict, as_list
from crystal_nb.records import Fate, Message

__all__ = ["Reading", "document", "read_session", "read_stable", "whole_length"]

_ATTEMPTS = 3


class Reading(NamedTuple):
    """What was found of a session."""

    session: dict[str, Any]
    """The session's document; empty where only a transcript is left."""
    log: Replay | None = None
    """The replayed file, where it is a log."""
    stand_in: str = ""
    """Name of the flat file that the document comes from instead."""
    transcript: tuple[list[Message], list[Fate]] | None = None
    """The transcript, where the session has no turn."""
    problem: str | None = None
    """Why the file itself is no session, where a transcript stands in for it."""


def read_stable(path: Path) -> bytes:
    """All bytes of a file as they were at one time: read again when it changed meanwhile.

    Raises
    ------
    OSError
        If it can't be read.
    """
    data = b""
    for _ in range(_ATTEMPTS):
        before = _look(path)
        data = read_file(path)
        if _look(path) == before:
            break
    return data


def _look(path: Path) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def read_session(path: Path, rules: CopilotRules) -> Reading:
    """Read the session of a file.

    Raises
    ------
    OSError
        If the file can't be read.
    ValueError
        If neither it nor anything in its place holds a session.
    """
    own, problem = _own(read_stable(path), path, rules)
    if not rules.rescues:
        return _checked(own, problem)
    flat = _flat_beside(path, own) if problem and own is not None else None
    found, lack = (own, problem) if flat is None else (flat, None)
    has_turns = found is not None and as_list(found.session.get("requests"))
    if (lack or not has_turns) and (transcript := _transcript(path)):
        return (found or Reading({}, problem=problem))._replace(transcript=transcript)
    if lack and found is not None and found.log is not None:
        return _from_nothing(found.log, lack)
    return _checked(found, lack)


def document(path: Path, rules: CopilotRules) -> Any:
    """The session that a file itself holds, which the pointers of its fates lead into; raises as `read_session`."""
    own, problem = _own(read_stable(path), path, rules)
    if problem and own is not None and own.log is not None:
        own, problem = _from_nothing(own.log, problem), None
    return _checked(own, problem).session


def _own(data: bytes, path: Path, rules: CopilotRules) -> tuple[Reading | None, str | None]:
    """What the file itself holds, and why that is no session."""
    if path.suffix == ".json":
        return _document(data)
    log = replay(data, only_first=not rules.replays_log)
    problem = None if isinstance(log.state, dict) else "the log has no initial state"
    return Reading(as_dict(log.state), log), problem


def _document(data: bytes) -> tuple[Reading | None, str | None]:
    if not data.strip():
        return None, "the file is empty"
    try:
        document = as_dict(decode(data))
    except ValueError as error:
        return None, f"no JSON: {error}"
    session = document["v"] if isinstance(document.get("v"), dict) else document
    if not isinstance(session.get("requests"), list):
        return None, "unknown layout: no list of requests"
    return Reading(session), None


def _flat_beside(path: Path, own: Reading) -> Reading | None:
    flat = path.with_suffix(".json")
    if flat == path or not flat.exists():
        return None
    found, _ = _document(read_stable(flat))
    return None if found is None else found._replace(log=own.log, stand_in=flat.name)


def _transcript(path: Path) -> tuple[list[Message], list[Fate]] | None:
    where = transcript_of(path)
    if where is None or not where.exists():
        return None
    found = read_transcript(read_stable(where))
    return found if found[0] else None


def _from_nothing(log: Replay, problem: str) -> Reading:
    """Replay a log that lost its head; a change that does not fit costs nothing but itself."""
    again = replay(log.data, state={"requests": []})
    session = as_dict(again.state)
    return _checked(Reading(session, again), None if as_list(session.get("requests")) else problem)


def _checked(reading: Reading | None, problem: str | None) -> Reading:
    if reading is None or problem:
        raise ValueError(problem or "no session")
    return reading


def whole_length(path: Path, rules: CopilotRules) -> tuple[int, int]:
    """How long a file's session is, in turns and parts of answers; nothing where it can't be read."""
    try:
        requests = as_list(read_session(path, rules).session.get("requests"))
    except (OSError, ValueError, RecursionError):
        return 0, 0
    return len(requests), sum(len(as_list(as_dict(r).get("response"))) for r in requests)
