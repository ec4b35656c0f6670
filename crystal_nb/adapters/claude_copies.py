"""Records that several sessions of a project folder hold: copies made by resuming, forking, backgrounding.

Each is kept once, by the session that wrote it first; the copy keeps only what is new in it and has a
link to that session. Sessions whose files begin with the same UUID are compared, as are those that
begin with a compaction boundary which another one holds. All files of such a family are read once and
kept in mind; a folder is looked through again when its listing changes.

Who wrote first: a file that says itself that it is a copy (``forkedFrom``, ``sessionKind`` ``bg``,
lines with another session's id) comes last; then one all of whose records the other holds is the
older one. Where both went on after the common part, the one that went on first is taken for the
origin, and the link says that this is not certain.
"""

from __future__ import annotations

import os
from collections import defaultdict
from functools import lru_cache
from typing import Any, TypeVar

from msgspec import Raw, Struct

from crystal_nb.adapters.claude_places import head, plain_name
from crystal_nb.adapters.claude_records import LineDecoder
from crystal_nb.adapters.jsonl import read_blocks
from crystal_nb.adapters.typed import NotAnObject, raw_bytes
from crystal_nb.details import LinkKind

__all__ = ["NO_COPY", "Copy", "copied_from", "copied_from_session", "is_held"]

_SUFFIX = ".jsonl"
_BOM, _JUNK = b"\xef\xbb\xbf", b"\x00 \t"
S = TypeVar("S", bound=Struct)


class Copy(Struct, frozen=True):
    """What of a file is copied, and from where."""

    uuids: frozenset[str] = frozenset()
    origin: str | None = None
    """Path of the file that keeps the last copied record."""
    kind: LinkKind = "resumed-from"
    evidence: str = ""
    is_certain: bool = True


NO_COPY = Copy()


_NO_RAW = Raw(b"")


class _Forked(Struct, gc=False, rename="camel"):
    session_id: str | None = None


class _Said(Struct, gc=False):
    content: Raw = _NO_RAW


class _Step(Struct, gc=False, rename="camel"):
    uuid: str | None = None
    message: _Said | None = None
    timestamp: str | None = None
    session_id: str | None = None
    session_kind: str | None = None
    forked_from: _Forked | None = None


class _MendedDecoder(LineDecoder[S]):
    """Reads a line behind a byte order mark or NULs as `claude_lines` does, so that both see the same records."""

    def decode(self, data: bytes | memoryview) -> S | NotAnObject:
        return super().decode(bytes(data).strip(_JUNK).removeprefix(_BOM).strip(_JUNK))


_DECODER = _MendedDecoder(_Step)


class _Member(Struct):
    """A file of a family."""

    path: str
    size: int
    steps: dict[str, str]
    """Times by UUID, in file order."""
    said: dict[str, int]
    """Hashes of the messages' contents by UUID: what says something else is no copy, whatever its id."""
    says: str | None
    """How it tells that it is a copy."""
    kind: LinkKind
    is_within: bool
    """Whether the common records begin in the middle of it."""


def copied_from(path: str) -> Copy:
    """What of a session's file other sessions of its folder keep.

    Raises
    ------
    OSError
        If the file is gone.
    """
    folder = os.path.dirname(path)
    status = os.stat(path)
    own = head(path, status.st_mtime_ns, status.st_size)
    if own.first_uuid is None:
        return NO_COPY
    try:
        mtime = os.stat(folder).st_mtime_ns
        family = _families(folder, mtime).get(own.first_uuid, ())
        if own.is_boundary:
            others = _boundaries(folder, mtime).get(own.first_uuid, ())
            family = tuple(dict.fromkeys((*family, *others)))
        if path not in family or len(family) < 2:
            return NO_COPY
        return _analysed(own.first_uuid, family, path, status.st_size)
    except OSError:
        return NO_COPY


def copied_from_session(path: str) -> Copy:
    """What an agent that compacts a session has of it: all records whose ids the session holds."""
    try:
        status = os.stat(path)
        return Copy(_uuids(path, status.st_mtime_ns, status.st_size))
    except OSError:
        return NO_COPY


def is_held(path: str, session_id: str, uuid: str) -> bool:
    """Whether another session of a file's folder holds a record."""
    other = os.path.join(os.path.dirname(path), session_id + _SUFFIX)
    if not plain_name(session_id) or other == path:
        return False
    try:
        status = os.stat(other)
        return uuid in _uuids(other, status.st_mtime_ns, status.st_size)
    except OSError:
        return False


@lru_cache(maxsize=4)
def _uuids(path: str, mtime_ns: int, size: int) -> frozenset[str]:
    blocks = read_blocks(path, _DECODER)
    return frozenset(r.uuid for block in blocks for r in block.records if isinstance(r, _Step) and r.uuid)


@lru_cache(maxsize=64)
def _families(folder: str, mtime_ns: int) -> dict[str, tuple[str, ...]]:
    """Sessions of a folder by the UUID that they begin with, if several do."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, status in _sessions(folder):
        first = head(path, status.st_mtime_ns, status.st_size).first_uuid
        if first is not None:
            found[first].append(path)
    return {first: tuple(sorted(paths)) for first, paths in found.items()}


def _sessions(folder: str) -> list[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        files = [e for e in entries if e.name.endswith(_SUFFIX) and not e.name.startswith("agent-")]
    found = []
    for entry in files:
        try:
            found.append((entry.path, entry.stat()))
        except OSError:
            continue
    return found


@lru_cache(maxsize=8)
def _boundaries(folder: str, mtime_ns: int) -> dict[str, tuple[str, ...]]:
    """Sessions of a folder by the compaction boundaries in them; each file is read once."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, _ in sorted(_sessions(folder)):
        for uuid in _boundaries_in(path):
            found[uuid].append(path)
    return {uuid: tuple(paths) for uuid, paths in found.items()}


class _Boundary(Struct, gc=False):
    uuid: str | None = None
    subtype: str | None = None


_BOUNDARY_DECODER = _MendedDecoder(_Boundary)


def _boundaries_in(path: str) -> list[str]:
    try:
        return [
            record.uuid
            for block in read_blocks(path, _BOUNDARY_DECODER)
            for record in block.records
            if isinstance(record, _Boundary) and record.subtype == "compact_boundary" and record.uuid
        ]
    except OSError:
        return []


_ANALYSES: dict[tuple[str, tuple[str, ...]], tuple[dict[str, int], dict[str, Copy]]] = {}
_KEPT = 32


def _analysed(first: str, family: tuple[str, ...], path: str, size: int) -> Copy:
    """The answer for one file; the family is read again only when this file's size is not the one that was read."""
    key = first, family
    known = _ANALYSES.get(key)
    if known is None or known[0].get(path) != size:
        members = [_member(other, first) for other in family]
        known = {m.path: m.size for m in members}, _copies(members)
        while len(_ANALYSES) >= _KEPT:
            _ANALYSES.pop(next(iter(_ANALYSES)), None)
        _ANALYSES[key] = known
    return known[1].get(path, NO_COPY)


def _member(path: str, first: str) -> _Member:
    stem = os.path.basename(path).removesuffix(_SUFFIX)
    steps: dict[str, str] = {}
    said: dict[str, int] = {}
    says: tuple[str, LinkKind] | None = None
    size = 0
    for block in read_blocks(path, _DECODER):
        size = block.offset + block.end
        for record in block.records:
            if isinstance(record, _Step) and record.uuid and record.uuid not in steps:
                if not steps:
                    says = _says(record, stem)
                steps[record.uuid] = record.timestamp or ""
                content = record.message.content if isinstance(record.message, _Said) else _NO_RAW
                said[record.uuid] = hash(raw_bytes(content))
    is_within = next(iter(steps), first) != first
    return _Member(path, size, steps, said, says[0] if says else None, says[1] if says else "resumed-from", is_within)


def _says(record: _Step, stem: str) -> tuple[str, LinkKind] | None:
    """What a file's first record with an id tells of the file being a copy."""
    if record.forked_from is not None and record.forked_from.session_id:
        return f"forkedFrom {record.forked_from.session_id}", "forked-from"
    if record.session_kind == "bg":
        return "sessionKind bg", "resumed-from"
    if record.session_id and record.session_id != stem:
        return f"lines with sessionId {record.session_id}", "resumed-from"
    return None


def _copies(members: list[_Member]) -> dict[str, Copy]:
    holders: dict[str, int] = defaultdict(int)
    for member in members:
        for uuid in member.steps:
            holders[uuid] += 1
    members = sorted(members, key=lambda member: _age(member, holders))
    keeper: dict[str, _Member] = {}
    found = {}
    for member in members:
        shared = [uuid for uuid in member.steps if uuid in keeper]
        if shared:
            same = frozenset(uuid for uuid in shared if member.said[uuid] == keeper[uuid].said[uuid])
            found[member.path] = _copy(member, shared, same, keeper[shared[-1]])
        for uuid in member.steps:
            keeper.setdefault(uuid, member)
    return found


def _age(member: _Member, holders: dict[str, int]) -> tuple[Any, ...]:
    """Older members first."""
    own = next((time for uuid, time in member.steps.items() if holders[uuid] == 1), "")
    return not member.is_within, member.says is not None, own, len(member.steps), member.path


def _copy(member: _Member, shared: list[str], same: frozenset[str], origin: _Member) -> Copy:
    common = f"{len(shared)} equal record ids"
    if len(same) < len(shared):
        common += f", {len(shared) - len(same)} of them with other content, which stays"
    is_whole = len(shared) == len(member.steps)
    origin_went_on = any(uuid not in member.steps for uuid in origin.steps)
    kind: LinkKind = "copy-of" if is_whole else member.kind
    if origin.is_within:
        return Copy(same, origin.path, "forked-from", f"{common}, from a compaction boundary on", True)
    if member.says is not None and origin.says != member.says:
        return Copy(same, origin.path, kind, f"{common}; {member.says}", True)
    if not is_whole and not origin_went_on:
        return Copy(same, origin.path, kind, f"{common}, all that the other one has", True)
    why = "nothing tells which is the copy" if is_whole else "both go on; the one that went on first is the origin"
    kind = kind if is_whole else "forked-from"
    return Copy(same, origin.path, kind, f"{common}; {why}", False)
