"""Claude Code by careful rules (``claude-code@2``).

A message is one prompt or one answer with its tool calls and their results; its text is the raw one,
trimmed, but for whole envelopes that the harness wrote (`claude_envelopes`). Ids of candidates are
told in `claude_places`. Records that several sessions hold are kept once, by the session that wrote
them first (`claude_copies`). A line of a side chain has its fate in the chain's conversation; the
session's own fates point there.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import Adapter, Parsed, last_path_part, open_file
from crystal_nb.adapters.claude_copies import NO_COPY, Copy, copied_from, copied_from_session, is_held
from crystal_nb.adapters.claude_draft import Session
from crystal_nb.adapters.claude_lines import line_fates, read_lines
from crystal_nb.adapters.claude_links import Place, index_title, links_of, meta_of, place_of, stored_result
from crystal_nb.adapters.claude_places import NAME, careful_root, list_candidates, project_name, side_keys
from crystal_nb.adapters.claude_records import Line, LineDecoder
from crystal_nb.adapters.claude_rules import V2, ClaudeRules
from crystal_nb.adapters.claude_session import finish, read_record
from crystal_nb.adapters.claude_split import read_split, tiled
from crystal_nb.adapters.jsonl import HEAD_BYTES
from crystal_nb.config import Config
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Conversation, Fate, Message

__all__ = ["CAREFUL"]

_DECODER = LineDecoder(Line)
_TITLE_LENGTH = 80


def _read(candidate: Candidate, rules: ClaudeRules, config: Config) -> Parsed:
    place = place_of(candidate.file_path, candidate.id)
    copy = _copy(place, rules)
    begin = partial(Session, rules, copy.uuids, partial(stored_result, place), partial(is_held, place.path))
    if _has_sides(place, rules):
        split = read_split(place.path, begin, mend=rules.mend_lines)
        if place.side not in split.sessions:
            raise ParseError("the file has no such side chain", source=NAME, path=place.path)
        session = split.sessions[place.side]
        messages, fates = finish(session, split.fates[place.side])
        fates = tiled(split, place.side, str(candidate.id).removesuffix(f"/side-{place.side}"), fates)
    else:
        session, fates = _read_whole(place, begin(), rules)
        _refuse_unknown(candidate, fates)
        messages, fates = finish(session, fates)
    if session.replaced:
        fates = _with_heads(place.path, fates)
    return Parsed(_conversation(candidate, place, session, messages, copy), tuple(fates))


def _with_heads(path: str, fates: list[Fate]) -> list[Fate]:
    """Fates of records that were lost only after their lines were read, with the beginning of their bytes."""
    with open_file(path) as file:
        found = []
        for fate in fates:
            if fate.status == "dropped" and not fate.head and fate.size:
                file.seek(fate.offset or 0)
                fate = replace(fate, head=file.read(min(fate.size, HEAD_BYTES)) or b"")
            found.append(fate)
    return found


def _copy(place: Place, rules: ClaudeRules) -> Copy:
    if not rules.copies_once:
        return NO_COPY
    if not place.is_agent:
        return copied_from(place.path)
    if place.session_path is not None and place.stem.startswith("agent-acompact"):
        return copied_from_session(place.session_path)
    return NO_COPY


def _has_sides(place: Place, rules: ClaudeRules) -> bool:
    if not rules.split_sidechains or place.is_agent:
        return False
    status = os.stat(place.path)
    return bool(side_keys(place.path, status.st_mtime_ns, status.st_size))


def _read_whole(place: Place, session: Session, rules: ClaudeRules) -> tuple[Session, list[Fate]]:
    fates: list[Fate] = []
    for lines in read_lines(place.path, _DECODER, mend=rules.mend_lines):
        session.lines, session.row = lines, -1
        fates += line_fates(lines, [read_record(session, record) for record in lines.records])
    return session, fates


def _refuse_unknown(candidate: Candidate, fates: list[Fate]) -> None:
    """A file without any record is no empty conversation, unless it is empty indeed or just being written."""
    if not fates or any(fate.kind not in ("line", "") for fate in fates):
        return
    if any(fate.reason == "invalid JSON" or fate.reason == "NUL bytes only" for fate in fates):
        why = "unknown layout: no line holds a record"
    elif any(fate.kind == "" for fate in fates):
        why = "unknown layout: no record has a type"
    else:
        return
    raise ParseError(why, source=candidate.source, path=candidate.file_path)


def _conversation(
    candidate: Candidate, place: Place, session: Session, messages: tuple[Message, ...], copy: Copy
) -> Conversation:
    rules = session.rules
    meta = meta_of(place) if rules.subagents else {}
    parent, links = links_of(place, candidate.id, session, copy, meta)
    times = [message.timestamp for message in messages if message.timestamp is not None]
    from_cwd = session.cwd if rules.place_from_cwd else None
    return Conversation(
        source=NAME,
        id=candidate.id,
        messages=messages,
        slug=_title(place, session, meta) if rules.titles else None,
        project_dir=from_cwd or candidate.project_dir,
        project_name=last_path_part(from_cwd) if from_cwd else project_name(candidate.project_dir),
        cwd=session.cwd,
        git_branch=session.git_branch,
        first_message_at=times[0] if times else None,
        last_message_at=times[-1] if times else None,
        parent_id=parent,
        links=links,
    )


def _title(place: Place, session: Session, meta: dict[str, Any]) -> str | None:
    """A person's title, the model's, a summary of a leaf in this file, the index's, or the first prompt's start."""
    said = session.titles.get("custom-title") or session.titles.get("ai-title")
    if said:
        return said
    for summary, leaf in reversed(session.summaries):
        if leaf is None or leaf in session.parents:
            return summary
    if isinstance(meta.get("description"), str) and meta["description"]:
        return str(meta["description"])
    indexed = None if place.is_agent or place.side else index_title(place)
    prompt = ecma.trim(session.first_prompt or "").split("\n", 1)[0]
    return indexed or prompt[:_TITLE_LENGTH] or None


def _candidates(root: Path, config: Config) -> list[Candidate]:
    return list_candidates(root, V2, config)


def _count(root: Path, config: Config) -> int:
    return len(_candidates(root, config))


CAREFUL = Adapter(
    name=NAME,
    display_name="Claude Code",
    root=careful_root,
    count=_count,
    candidates=_candidates,
    read=_read,
    rules=V2,
)
