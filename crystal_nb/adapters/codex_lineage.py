"""Where a Codex thread comes from: the parent whose turns a fork copied, the rollouts that hold its beginning.

Source: ``formats/codex.md`` sections 2.2, 4 and 5. A missing ancestor loses nothing: what can't be
told is kept, and the link says so.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from crystal_nb.adapters.base import TimedCache
from crystal_nb.adapters.codex_files import Rollout, head_of, rollouts, sessions_root, turns_of
from crystal_nb.adapters.codex_shapes import Wide, as_text
from crystal_nb.config import Config
from crystal_nb.details import Link, LinkKind

__all__ = ["Border", "Part", "border", "chain", "covered", "links_of_meta"]

_LONGEST = 100


class Border(Struct, frozen=True):
    """Where a fork's own part begins."""

    turn: str | None
    """Its first own turn; ``""``: it has none, everything is copied; None: nothing is to be left out."""
    evidence: str
    is_certain: bool = True


class Part(Struct, frozen=True):
    """A rollout that holds a piece of the thread's beginning."""

    rollout: Rollout
    end_offset: int | None
    end_ordinal: int | None


class _Index:
    """The known rollouts by what lineage asks for."""

    def __init__(self, known: list[Rollout]) -> None:
        self.of_thread: dict[str, list[Rollout]] = {}
        for one in known:
            self.of_thread.setdefault(one.thread, []).append(one)
        self.by_rollout = {one.rollout: one for one in reversed(known)}
        self.by_id = {one.id: one for one in known}


_INDEXES: TimedCache[_Index] = TimedCache()


def _index(config: Config) -> _Index:
    root = sessions_root(config)
    try:
        return _INDEXES.get(str(root), config.cache_seconds, lambda: _Index(rollouts(root, config)))
    except OSError:
        return _Index([])


def border(path: str, parent: str, config: Config) -> Border:
    """Find the first turn of a fork that its parent lacks; times never tell it."""
    files = [one for one in _index(config).of_thread.get(parent, []) if one.path != path]
    if not files:
        return Border(None, "the parent's rollout is missing, so nothing was left out", False)
    own = turns_of(path)
    theirs = {turn for file in files for turn in turns_of(file.path)}
    if not own or not theirs:
        return Border(None, "turns have no ids, so a copied part can't be told", False)
    if own[0] not in theirs:
        return Border(None, "no turn is the parent's")
    first = next((turn for turn in own if turn not in theirs), "")
    return Border(first, f"turns before {first} are the parent's" if first else "all turns are the parent's")


def chain(thread: str, path: str, base: Any, config: Config) -> tuple[list[Part], Link | None]:
    """Rollouts of the same thread before the one of that path, oldest first, and the link to the nearest.

    Another thread's rollout is only linked: its messages are its own conversation's.
    """
    parts: list[Part] = []
    link: Link | None = None
    seen: set[str] = set()
    by_rollout = _index(config).by_rollout if isinstance(base, dict) else {}
    while isinstance(base, dict) and len(parts) < _LONGEST:
        id = as_text(base.get("thread_id"))
        found = by_rollout.get(id)
        evidence = "session_meta.history_base"
        if found is None or id in seen or found.path == path:
            why = "goes round in a circle" if found else "names a missing rollout"
            is_own = found.path == path if found else id == thread
            target = None if is_own else found.id if found else id or None
            return parts, Link("continued-from", target, f"{evidence} {why}", False)
        link = link or Link("continued-from", found.id, evidence)
        if found.thread != thread:
            return parts, link
        seen.add(id)
        parts.insert(0, Part(found, _whole(base.get("end_byte_offset")), _whole(base.get("end_ordinal_exclusive"))))
        head = head_of(found.path)
        base = head.history_base if head is not None else None
    return parts, link


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def covered(path: str, id: Any, config: Config) -> tuple[Part | None, Link | None]:
    """How much of a revision the thread's newest rollout takes over, and the link to that."""
    if not isinstance(id, str) or "/" not in id:
        return None, None
    by_id = _index(config).by_id
    own = by_id.get(id)
    newest = by_id.get(own.thread) if own is not None else None
    if own is None or newest is None or own.path != path:
        return None, None
    head = head_of(newest.path)
    parts, _ = chain(own.thread, newest.path, head.history_base if head is not None else None, config)
    mine = next((part for part in parts if part.rollout.path == path), None)
    evidence = "same thread id, an older rollout" + (", whose beginning the newest one takes over" if mine else "")
    return mine, Link("copy-of", newest.id, evidence, mine is not None)


def links_of_meta(meta: Wide, own: str | None) -> tuple[str | None, str | None, list[Link]]:
    """Parent that is forked from, parent that this is a sub-agent of, and the links that say so.

    A thread that names itself has no such parent, and the link says that it can't be told.
    """
    forked, (spawned, evidence) = as_text(meta.forked_from_id) or None, _spawned_by(meta)
    links = [_edge("forked-from", forked, "session_meta.forked_from_id", own)] if forked else []
    links += [_edge("subagent-of", spawned, evidence, own)] if evidence else []
    return None if forked == own else forked, None if spawned == own else spawned, links


def _edge(kind: LinkKind, target: str | None, evidence: str, own: str | None) -> Link:
    if target is not None and target == own:
        return Link(kind, None, f"{evidence} names the thread itself", False)
    return Link(kind, target, evidence, target is not None)


def _spawned_by(meta: Wide) -> tuple[str | None, str]:
    source = meta.source.get("subagent") if isinstance(meta.source, dict) else None
    spawn = source.get("thread_spawn") if isinstance(source, dict) else None
    if isinstance(spawn, dict) and as_text(spawn.get("parent_thread_id")):
        return spawn["parent_thread_id"], "session_meta.source.subagent.thread_spawn.parent_thread_id"
    if as_text(meta.parent_thread_id):
        return meta.parent_thread_id, "session_meta.parent_thread_id"
    return None, "" if source is None else "session_meta.source.subagent names no parent"
