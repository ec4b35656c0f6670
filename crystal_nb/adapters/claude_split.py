"""Side chains inside a session's file: one reading gives all conversations of the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.claude_draft import Session
from crystal_nb.adapters.claude_lines import line_fates, read_lines
from crystal_nb.adapters.claude_places import SideChains
from crystal_nb.adapters.claude_records import Line, LineDecoder
from crystal_nb.adapters.claude_session import read_record
from crystal_nb.records import Fate

__all__ = ["Split", "read_split", "tiled"]

_LINE_DECODER = LineDecoder(Line)


class Split(Struct):
    """The conversations of a file by the key of the side chain; None: the main one."""

    sessions: dict[str | None, Session]
    fates: dict[str | None, list[Fate]]
    told: list[Fate]
    """What the main conversation has for lines of side chains; reasons are the keys."""
    size: int


_LAST: dict[tuple[Any, ...], Split] = {}
"""The file that was read last: its conversations are usually parsed one after the other."""


def read_split(path: str, begin: Callable[[], Session], *, mend: bool) -> Split:
    """Read a file once for all of its conversations; raises OSError if it can't be read."""
    status = os.stat(path)
    session = begin()
    key = path, status.st_mtime_ns, status.st_size, session.rules, session.copied, mend
    found = _LAST.get(key)
    if found is None:
        found = _read(path, begin, mend)
        _LAST.clear()
        _LAST[key] = found
    return found


def _read(path: str, begin: Callable[[], Session], mend: bool) -> Split:
    split = Split({None: begin()}, {None: []}, [], 0)
    chains = SideChains()
    for lines in read_lines(path, _LINE_DECODER, mend=mend):
        keys = [
            chains.key(record, number) if isinstance(record, Line) else None
            for record, number in zip(lines.records, lines.numbers, strict=True)
        ]
        for key in dict.fromkeys(keys):
            if key not in split.sessions:
                split.sessions[key], split.fates[key] = begin(), []
            split.sessions[key].lines = lines
        outcomes: list[Outcome] = []
        for row, (key, record) in enumerate(zip(keys, lines.records, strict=True)):
            session = split.sessions[key]
            session.row = row - 1
            outcomes.append(read_record(session, record))
        for key, fate in zip(keys, line_fates(lines, outcomes), strict=True):
            split.fates[key].append(fate)
            if key is not None:
                split.told.append(Fate("metadata", fate.kind, key, None, fate.line, fate.offset, fate.size))
        split.size = lines.offset + lines.stops[-1]
    return split


def tiled(split: Split, side: str | None, base: str, fates: list[Fate]) -> list[Fate]:
    """Fates of a conversation, with what lies between them, from the first byte of the file to the last.

    The main conversation has a fate for each line of a side chain. A side chain has one for each run
    of other lines, so that many chains in a file don't multiply its lines.
    """
    if side is None:
        told = [replace(fate, reason=f"belongs to {base}/side-{fate.reason}") for fate in split.told]
        return sorted([*fates, *told], key=_offset)
    between: list[Fate] = []
    done, line = 0, 1
    for fate in [*fates, Fate("metadata", "", line=None, offset=split.size, size=0)]:
        offset = _offset(fate)
        if offset > done:
            reason = f"belong to {base} or its other side chains"
            between.append(Fate("metadata", "other lines", reason, None, line, done, offset - done))
        if fate.line is not None:
            between.append(fate)
            line = fate.line + 1
        done = offset + (fate.size or 0)
    return between


def _offset(fate: Fate) -> int:
    return fate.offset or 0
