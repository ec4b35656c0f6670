"""Edges from a Claude Code conversation to others, with what says so."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from typing import Any

from msgspec import Struct

from crystal_nb.adapters.base import read_file
from crystal_nb.adapters.claude_copies import Copy
from crystal_nb.adapters.claude_draft import Session
from crystal_nb.adapters.claude_places import plain_name, session_id_of
from crystal_nb.details import Link

__all__ = ["Place", "index_title", "links_of", "meta_of", "place_of", "stored_result"]

_SUFFIX = ".jsonl"
_SIDE = "/side-"
_SMALL_FILE = 1 << 22
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Place(Struct, frozen=True):
    """What a transcript's path and its candidate's id tell."""

    path: str
    stem: str
    session_path: str | None
    """File of the session that a sub-agent below it belongs to."""
    below: str
    """Path of a sub-agent below its session's ``subagents``, without suffix."""
    is_agent: bool
    side: str | None
    """Key of the side chain that the candidate stands for."""


def place_of(path: str, id: Any) -> Place:
    """Read a candidate's path and id.

    >>> place_of("/p/-a/s/subagents/w/agent-1.jsonl", "s/w/agent-1").session_path
    '/p/-a/s.jsonl'
    """
    name = os.path.basename(path)
    stem = name.removesuffix(_SUFFIX)
    parts = path.replace(os.sep, "/").split("/")
    at = max((i for i, part in enumerate(parts[:-1]) if part == "subagents"), default=0)
    below = "/".join([*parts[at + 1 : -1], stem])
    if at and str(id).endswith(f"/{below}"):
        return Place(path, stem, "/".join(parts[:at]) + _SUFFIX, below, True, None)
    if name.startswith("agent-"):
        return Place(path, stem, None, "", True, None)
    _, marker, side = id.partition(f"{stem}{_SIDE}") if isinstance(id, str) else ("", "", "")
    return Place(path, stem, None, "", False, side if marker else None)


def links_of(
    place: Place, id: Any, session: Session, copy: Copy, meta: dict[str, Any]
) -> tuple[str | None, tuple[Link, ...]]:
    """Parent and edges of a conversation."""
    parent, links = None, []
    if place.side is not None:
        parent = str(id).removesuffix(f"{_SIDE}{place.side}")
        links.append(Link("subagent-of", parent, "isSidechain records in the session's file"))
    elif place.is_agent:
        parent, link = _agent_link(place, id, session, meta)
        links += [link] if link is not None else []
    if copy.origin is not None:
        links.append(Link(copy.kind, session_id_of(copy.origin), copy.evidence, copy.is_certain))
    if place.side is None:
        links += [_fork_link(place, *ref) for ref in dict.fromkeys(session.fork_refs)]
        links += [_forked_link(place, said, *counts) for said, counts in session.forked.items()]
        links += _undecided(place, session) if not (links or place.is_agent) else []
    return parent, tuple(links)


def _agent_link(place: Place, id: Any, session: Session, meta: dict[str, Any]) -> tuple[str | None, Link | None]:
    if place.session_path is not None:
        parent = str(id).removesuffix(f"/{place.below}")
        evidence = "lies in the session's subagents folder"
        if isinstance(meta.get("toolUseId"), str):
            evidence += f"; toolUseId {meta['toolUseId']}"
        if os.path.exists(place.session_path):
            return parent, Link("subagent-of", parent, evidence)
        return None, Link("subagent-of", parent, f"{evidence}; that session's file is missing", False)
    said = session.session_id
    if said is None:
        return None, Link("subagent-of", None, "its name says so; no line names the session", False)
    if said == place.stem:
        return None, None
    target = _sibling(place, said)
    if target is None:
        return None, Link("subagent-of", said, "sessionId in its lines; no such file in its folder", False)
    return target, Link("subagent-of", target, "sessionId in its lines")


def _sibling(place: Place, session_id: str) -> str | None:
    """Candidate id of a session in the same folder, if its file is there."""
    if not plain_name(session_id):
        return None
    path = os.path.join(os.path.dirname(place.path), session_id + _SUFFIX)
    return session_id_of(path) if os.path.exists(path) else None


def _fork_link(place: Place, forked: str, up_to: str | None) -> Link:
    target = _sibling(place, forked)
    evidence = f"fork-context-ref up to {up_to}" if up_to else "fork-context-ref"
    if target is None:
        return Link("forked-from", forked, f"{evidence}; no such file in its folder", False)
    return Link("forked-from", target, evidence)


def _forked_link(place: Place, said: str, held: int, missing: int) -> Link:
    target = _sibling(place, said)
    evidence = f"{held} records with forkedFrom that it holds, {missing} that it lacks"
    return Link("forked-from", said if target is None else target, evidence, bool(held))


def _undecided(place: Place, session: Session) -> list[Link]:
    """What points to another conversation that is not found."""
    said = session.session_id
    if said and said != place.stem and _UUID.fullmatch(said) and _UUID.fullmatch(place.stem):
        return [Link("resumed-from", said, "sessionId in its lines; no common records found in its folder", False)]
    first = session.sketches[0] if session.sketches else None
    if first is None or first.parent is None or "compact boundary" not in (first.marks or ()):
        return []
    if first.parent in session.parents:
        return []
    why = f"begins with a compaction boundary; its predecessor {first.parent} is not in the file"
    return [Link("continued-from", None, why, False)]


def meta_of(place: Place) -> dict[str, Any]:
    """What the small file beside a sub-agent's transcript says of it; nothing where there is none."""
    if place.session_path is None:
        return {}
    return _json_object(place.path.removesuffix(_SUFFIX) + ".meta.json")


def _json_object(path: str) -> dict[str, Any]:
    try:
        found = json.loads(read_file(path)) if os.stat(path).st_size <= _SMALL_FILE else None
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def index_title(place: Place) -> str | None:
    """Summary of a session in the folder's index, which is often stale and never complete."""
    path = os.path.join(os.path.dirname(place.path), "sessions-index.json")
    try:
        status = os.stat(path)
    except OSError:
        return None
    return _index(path, status.st_mtime_ns, status.st_size).get(place.stem)


@lru_cache(maxsize=64)
def _index(path: str, mtime_ns: int, size: int) -> dict[str, str]:
    entries = _json_object(path).get("entries")
    found = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("sessionId"), str):
            title = entry.get("summary")
            if isinstance(title, str) and title:
                found[entry["sessionId"]] = title
    return found


def stored_result(place: Place, call_id: str) -> str | None:
    """A tool's result from the session's ``tool-results``, where it is not too large."""
    if not plain_name(call_id):
        return None
    session = (place.session_path or place.path).removesuffix(_SUFFIX)
    for suffix in (".txt", ".json"):
        path = os.path.join(session, "tool-results", call_id + suffix)
        try:
            if os.stat(path).st_size <= _SMALL_FILE:
                return read_file(path).decode("utf-8", "replace")
        except OSError:
            continue
    return None
