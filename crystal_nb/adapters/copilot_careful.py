"""The careful rules of GitHub Copilot Chat: ``copilot@2``.

A session's file is replayed in full; where it is no whole state or holds no turn, the flat file
beside it and then the extension's transcript step in. Fates: the lines of a log tile its file, and
lost parts of the replayed session have one more each, by JSON pointer; a document's records have
theirs by pointer; those of a file that stepped in, or of a database, have its name in their key.
"""

from __future__ import annotations

import dataclasses
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from crystal_nb.adapters.base import Adapter, Parsed
from crystal_nb.adapters.copilot_listing import candidates, longest, root
from crystal_nb.adapters.copilot_pinned import ADAPTER, NAME
from crystal_nb.adapters.copilot_places import (
    DATABASE,
    INDEX_KEY,
    LEGACY_KEY,
    SessionFile,
    index_entries,
    legacy_sessions,
    project_name,
    project_path,
    roots,
    session_files,
    transcript_of,
    window_of,
)
from crystal_nb.adapters.copilot_reading import Reading, document, read_session, read_stable
from crystal_nb.adapters.copilot_rules import V2, CopilotRules
from crystal_nb.adapters.copilot_transcript import read_transcript
from crystal_nb.adapters.copilot_turns import Turns, read_turns, shown_bytes
from crystal_nb.adapters.copilot_values import as_dict, as_list, moment, text_of
from crystal_nb.adapters.jsonl import HEAD_BYTES
from crystal_nb.config import Config
from crystal_nb.details import Details, Link
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Conversation, Fate, Message

__all__ = ["CAREFUL", "careful"]

_IN_VAIN = "its turns are no longer in the session, or gave no message"
_COPIED = "its turns are kept by another window folder's file, or gave no message"
_STOOD_IN = "the log is no whole session, the file beside it is read"


class _Copied(NamedTuple):
    """What another file has of the same session."""

    turns: dict[str, Any]
    links: tuple[Link, ...]


def _read(candidate: Candidate, rules: CopilotRules, config: Config) -> Parsed:
    path = Path(candidate.file_path)
    if path.name == DATABASE:
        return _read_stored(candidate, path, rules, config)
    parsed = _read_file(candidate, path, rules, config)
    if not rules.asks_index:
        return parsed
    database = (window_of(path) or path.parent.parent) / DATABASE
    entry = index_entries(database, config.cache_seconds).get(path.stem, {})
    return Parsed(_with_index(parsed.conversation, entry), parsed.fates)


def _with_index(conversation: Conversation, entry: dict[str, Any]) -> Conversation:
    """Fill in what the index knows: a title, where the session has none, and the working folder."""
    title, folder = text_of(entry.get("title")) or None, project_path(entry.get("workingDirectory"))
    return replace(conversation, slug=conversation.slug or title, cwd=folder or conversation.cwd)


def _read_file(candidate: Candidate, path: Path, rules: CopilotRules, config: Config) -> Parsed:
    if path.parent.name == "transcripts":
        messages, fates = read_transcript(read_stable(path))
        return Parsed(_conversation(candidate, {}, messages), tuple(fates))
    reading = read_session(path, rules)
    session = reading.session
    if reading.transcript is not None:
        return _read_transcript(candidate, reading, path)
    copied = _copied(candidate, session, rules, config) if rules.links_copies else _Copied({}, ())
    turns = read_turns(session, rules, copied.turns)
    conversation = _conversation(candidate, session, _with_partial(reading, turns.messages), copied.links)
    return Parsed(conversation, tuple(_fates(path, reading, turns, _COPIED if copied.turns else _IN_VAIN)))


def _fates(path: Path, reading: Reading, turns: Turns, lost: str) -> list[Fate]:
    session = reading.session
    if reading.log is None:
        return [*_session_fates(session), *turns.fates]
    if reading.stand_in:
        lines = reading.log.fates(None, _STOOD_IN)
        own = [*_session_fates(session), *turns.fates]
        return [*lines, *_under(reading.stand_in, own, path.with_name(reading.stand_in))]
    parts = [f for f in turns.fates if f.status == "dropped"]
    return [*reading.log.fates(turns, lost), *parts]


def _read_transcript(candidate: Candidate, reading: Reading, path: Path) -> Parsed:
    """A transcript in place of a file that holds no turn."""
    session = reading.session
    messages, fates = reading.transcript or ([], [])
    if reading.problem is not None:
        own = [Fate("dropped", "session", reading.problem, key="")]
    else:
        own = _session_fates(session) if reading.log is None else reading.log.fates(None, _IN_VAIN)
    named = [replace(f, key=f"line {f.line}", line=None, offset=None) for f in fates]
    stand_in = _under(f"transcripts/{path.stem}.jsonl", named, transcript_of(path))
    return Parsed(_conversation(candidate, session, messages), (*own, *stand_in))


def _under(name: str, fates: list[Fate], path: Path | None = None) -> list[Fate]:
    """Fates of what a file or a row's value of that name holds; the path, where the file is not the candidate's own."""
    file_path = None if path is None else str(path)
    return [replace(f, key=f"{name}#{f.key}", file_path=file_path) for f in fates]


def _session_fates(session: dict[str, Any]) -> list[Fate]:
    """Fates of a document's records that are no turns."""
    fates = [Fate("metadata", "session", key="")]
    draft = text_of(as_dict(session.get("inputState")).get("inputText"))
    if draft:
        data = shown_bytes(draft)
        why = "a draft that was never sent"
        fates.append(Fate("dropped", "inputState", why, key="/inputState", size=len(data), head=data[:HEAD_BYTES]))
    return fates


def _with_partial(reading: Reading, messages: list[Message]) -> list[Message]:
    """Mark the last message of a session whose log could not be replayed as a whole."""
    if reading.log is None or reading.stand_in or not reading.log.is_partial or not messages:
        return messages
    details = messages[-1].details or Details()
    marked = replace(messages[-1], details=replace(details, marks=(*details.marks, "partial log")))
    return [*messages[:-1], marked]


def _read_stored(candidate: Candidate, database: Path, rules: CopilotRules, config: Config) -> Parsed:
    """A session that a window's database holds, from before sessions had files."""
    try:
        sessions = [as_dict(session) for session in legacy_sessions(database)]
    except sqlite3.Error as error:
        raise ParseError(str(error), source=NAME, path=candidate.file_path) from error
    name, _, number = str(candidate.id).rpartition("/")
    if name.endswith(f"/{LEGACY_KEY}") and number.isdecimal():
        found = [int(number)] if int(number) < len(sessions) else []
    else:
        found = [i for i, session in enumerate(sessions) if session.get("sessionId") == candidate.id]
    if not found:
        return _read_entry(candidate, database, config)
    session = sessions[found[0]]
    turns = read_turns(session, rules)
    fates = _under(f"ItemTable:{LEGACY_KEY}/{found[0]}", [*_session_fates(session), *turns.fates])
    return Parsed(_conversation(candidate, session, turns.messages), tuple(fates))


def _read_entry(candidate: Candidate, database: Path, config: Config) -> Parsed:
    """A session whose file is gone: what the index still says of it."""
    entry = index_entries(database, config.cache_seconds).get(candidate.id)
    if entry is None:
        raise ValueError("the database has no such session any more")
    conversation = _with_index(_conversation(candidate, {}, []), entry)
    fate = Fate("metadata", "index entry", "its file is gone", key=f"ItemTable:{INDEX_KEY}#{candidate.id}")
    return Parsed(replace(conversation, last_message_at=moment(entry.get("lastMessageDate"))), (fate,))


def _copied(candidate: Candidate, session: dict[str, Any], rules: CopilotRules, config: Config) -> _Copied:
    """Turns that the file with the plain id has, too, where this one's id is qualified."""
    path = Path(candidate.file_path)
    if candidate.id == path.stem:
        return _Copied({}, _links_by_id(candidate, session))
    listed = (file for folder in roots(config, rules) for file in session_files(folder, rules))
    group = [file for file in listed if file.stem == path.stem]
    plain = longest(group, rules) if group else None
    if plain is None or plain.path == path:
        return _Copied({}, ())
    try:
        requests = as_list(read_session(plain.path, rules).session.get("requests"))
    except (OSError, ValueError, RecursionError):
        requests = []
    others = {r["requestId"]: r for r in requests if isinstance(as_dict(r).get("requestId"), str)}
    return _Copied(others, (_copy_link(plain, session, others),))


def _copy_link(plain: SessionFile, session: dict[str, Any], others: dict[str, Any]) -> Link:
    ids = [text_of(as_dict(r).get("requestId")) for r in as_list(session.get("requests"))]
    shared = sum(id in others for id in ids)
    evidence = f"same file name in {plain.owner}, {shared} of {len(ids)} request ids equal"
    return Link("copy-of", plain.stem, evidence, is_certain=shared > 0)


def _links_by_id(candidate: Candidate, session: dict[str, Any]) -> tuple[Link, ...]:
    """An edge to the session that the file says it is, where its name says otherwise."""
    inner = session.get("sessionId")
    if not isinstance(inner, str) or inner in ("", candidate.id):
        return ()
    return (Link("copy-of", inner, "sessionId differs from the file's name", is_certain=False),)


def _title(session: dict[str, Any]) -> str | None:
    return text_of(session.get("customTitle")) or text_of(session.get("computedTitle")) or None


def _conversation(
    candidate: Candidate, session: dict[str, Any], messages: list[Message], links: tuple[Link, ...] = ()
) -> Conversation:
    times = [m.timestamp for m in messages if m.timestamp is not None]
    project = candidate.project_dir
    return Conversation(
        source=NAME,
        id=candidate.id,
        messages=tuple(messages),
        slug=_title(session),
        project_dir=project,
        project_name=project_name(project),
        cwd=project or None,
        git_branch=text_of(as_dict(session.get("repoData")).get("localBranch")) or None,
        first_message_at=times[0] if times else None,
        last_message_at=times[-1] if times else None,
        links=links,
    )


def careful(rules: CopilotRules) -> Adapter:
    """An adapter by some rules.

    >>> careful(V2).parser_version
    'copilot@2'
    """
    return dataclasses.replace(
        ADAPTER,
        root=partial(root, rules=rules),
        count=lambda _, config: len(candidates(config, rules)),
        candidates=lambda _, config: list(candidates(config, rules)),
        read=_read,
        rules=rules,
        document=document,
    )


CAREFUL = careful(V2)
