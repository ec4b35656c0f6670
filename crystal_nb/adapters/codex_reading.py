"""Applying the careful Codex rules to the lines of a file, block by block."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.codex_lineage import Part
from crystal_nb.adapters.codex_lines import kind_name, read_bare, tables, unknown
from crystal_nb.adapters.codex_pinned import by_kinds
from crystal_nb.adapters.codex_shapes import BARE, LINE, WIDE, Bare, Payload, RawLine, Wide, WideLine
from crystal_nb.adapters.codex_thread import Thread, as_time
from crystal_nb.adapters.jsonl import HEAD_BYTES, Block, Broken
from crystal_nb.adapters.typed import NotAnObject
from crystal_nb.records import Fate

__all__ = ["NO_OBJECT", "Outcomes", "fates_of", "span_key"]

_ENVELOPE = b'{"timestamp":'
_JUNK = b"\0 \t\r\n"


class Outcomes:
    """Applies the rules to the lines of one block.

    Parameters
    ----------
    thread
        What the lines add to.
    block
        The lines.
    look_back
        Called when a session_meta said where the thread comes from.
    part
        Up to where a rollout holds another's beginning.
    other
        Path of the file, where it is not the candidate's own.
    """

    def __init__(
        self,
        thread: Thread,
        block: Block[RawLine],
        look_back: Callable[[], None] | None,
        part: Part | None,
        other: str | None,
    ) -> None:
        self.thread, self.block, self.look_back, self.part, self.other = thread, block, look_back, part, other
        self.tables = tables(thread.rules)

    def read(self) -> list[Outcome]:
        """One outcome per line, up to the end of the part."""
        limit = self._limit()
        records: list[Any] = self.block.records if self.other is None else self.block.records[:limit]
        made = [] if self.other is not None else [self._taken_over(at, r) for at, r in enumerate(records[:limit])]
        thread, add, first = self.thread, made.append, self.block.first_line
        if made:
            records = records[len(made) :]
        rules = by_kinds(self.tables.frequent, records)
        for at, (record, rule) in enumerate(zip(records, rules, strict=False), len(made)):
            thread.line = first + at
            if rule is not None and thread.skips_until is None:
                time = record.timestamp
                thread.time = time if type(time) is str and time else as_time(time)
                add(rule[1](rule[0], record.payload, thread))
            elif type(record) is RawLine and type(payload := record.payload) is Payload:
                add(self._apply(record, payload, at))
            else:
                add(self._odd(at, record))
        return made

    def _limit(self) -> int:
        """How many of the block's lines belong to the part."""
        part, block = self.part, self.block
        count = len(block.records)
        if part is None:
            return 0 if self.other is None else count
        if part.end_offset is not None:
            return sum(block.offset + start < part.end_offset for start in block.starts)
        if part.end_ordinal is not None:
            ordinals = (r.ordinal if isinstance(r, RawLine) else None for r in block.records)
            return next((at for at, o in enumerate(ordinals) if isinstance(o, int) and o >= part.end_ordinal), count)
        return count

    def _taken_over(self, at: int, record: Any) -> Outcome:
        """A line that another rollout's conversation shows; its session and turns hold for what follows."""
        self.thread.line = self.block.first_line + at
        if type(record) is RawLine and type(record.payload) is Payload and record.type in _FACTS:
            read = self._rare if record.type == "session_meta" else self._apply
            read(record, record.payload, at)
            self.thread.history_base = self.thread.forked_from = None
        inner = record.payload.type if type(record) is RawLine and type(record.payload) is Payload else None
        return "dropped", kind_name(getattr(record, "type", "line"), inner), _TAKEN_OVER, None

    def _line(self, at: int) -> bytes:
        return bytes(self.block.data[self.block.starts[at] : self.block.stops[at]])

    def _apply(self, record: RawLine, payload: Payload, at: int, line: bytes = b"") -> Outcome:
        thread, kind = self.thread, record.type
        if thread.skips_until is not None and (outcome := self._skip(kind, payload)) is not None:
            return outcome
        time = record.timestamp
        thread.time = time if type(time) is str and time else as_time(time)
        try:
            rule = self.tables.frequent.get((kind, payload.type))
        except TypeError:  # a kind that is no text
            rule = None
        return self._seldom(record, payload, at, line) if rule is None else rule[1](rule[0], payload, thread)

    def _seldom(self, record: RawLine, payload: Payload, at: int, line: bytes) -> Outcome:
        """A line whose kind alone says what it is, or one of a rare or unknown kind."""
        kind = record.type
        if isinstance(kind, str) and (found := self.tables.lines.get(kind)) is not None:
            return found[1](found[0], payload, self.thread)
        outcome = self._rare(record, payload, at, line)
        if kind == "session_meta" and self.look_back is not None:
            self.look_back()
        return outcome

    def _rare(self, record: RawLine, payload: Payload, at: int, line: bytes = b"") -> Outcome:
        """A line of a rare kind, or of an unknown one."""
        known, kind, inner = self.tables, record.type, payload.type
        by_kind = {"response_item": known.rare_items, "event_msg": known.rare_events}
        table, key = (by_kind[kind], inner) if kind in ("response_item", "event_msg") else (known.rare_lines, kind)
        found = table.get(key) if isinstance(key, str) else None
        wide = WIDE.decode((line or self._line(at)).strip(_JUNK)) if found else None
        if found is None or not isinstance(wide, WideLine) or not isinstance(wide.payload, Wide):
            return unknown(kind, inner, self.thread)
        return found[1](found[0], wide.payload, self.thread)

    def _skip(self, kind: Any, payload: Payload) -> Outcome | None:
        """What a fork copied is left out, up to its first own turn."""
        thread = self.thread
        starts = kind == "turn_context" or payload.type in ("task_started", "turn_started")
        if starts and thread.skips_until and thread.skips_until == payload.turn_id:
            thread.skips_until = None
            return None
        return None if kind == "session_meta" else _copied(kind, payload)

    def _odd(self, at: int, record: Any) -> Outcome:
        """A line without an envelope, or one that holds no record as it stands."""
        if isinstance(record, NotAnObject):
            return NO_OBJECT
        if isinstance(record, Broken):
            return self._mended(self._line(at), record, at)
        if record.payload is not None:
            return "dropped", kind_name(record.type), "no payload object", None
        bare = BARE.decode(self._line(at).strip(_JUNK))
        return read_bare(bare, self.thread) if isinstance(bare, Bare) else NO_OBJECT

    def _mended(self, line: bytes, broken: Broken, at: int) -> Outcome:
        """A record behind a byte order mark, among NULs, or torn and written again on the same line."""
        if not self.thread.rules.mended_lines:
            return "dropped", "line", broken.reason, None
        text = line.strip(_JUNK).removeprefix(b"\xef\xbb\xbf").strip(_JUNK)
        if not text:
            return "dropped", "line", "NUL run" if b"\0" in line else "blank line", None
        again = text.rfind(_ENVELOPE)
        for candidate in (text, text[again:] if again > 0 else b""):
            try:
                record = LINE.decode(candidate) if candidate else None
            except ValueError:
                continue
            if isinstance(record, RawLine) and isinstance(record.payload, Payload):
                return self._apply(record, record.payload, at, candidate)
            if isinstance(record, RawLine) and isinstance(bare := BARE.decode(candidate), Bare):
                return read_bare(bare, self.thread)
        return "dropped", "line", broken.reason, None


def _copied(kind: Any, payload: Payload) -> Outcome:
    return "dropped", kind_name(kind, payload.type), "copied from the parent", None


_FACTS = ("session_meta", "turn_context")
NO_OBJECT: Outcome = ("dropped", "line", "not an object", None)
_TAKEN_OVER = "shown in the thread's newest rollout"


def fates_of(block: Block[Any], outcomes: list[Outcome], other: str | None) -> list[Fate]:
    """Fates of a block's lines, as far as there are outcomes.

    Those of another file have its name, offset and size as their key, since an offset is one in the candidate's file.

    Parameters
    ----------
    block, outcomes
        The lines and what became of them.
    other
        Path of the file, where it is not the candidate's own.
    """
    base, data, line = block.offset, block.data, block.first_line
    places = enumerate(zip(outcomes, block.starts, block.stops, strict=False), line)
    if other is None:
        return [
            Fate(status, kind, reason, index, line, base + start, stop - start)
            if status != "dropped"
            else Fate(status, kind, reason, index, line, base + start, stop - start, None, _head(data, start, stop))
            for line, ((status, kind, reason, index), start, stop) in places
        ]
    return [
        Fate(*outcome, line, None, None, key, _head(data, start, stop), file_path=other)
        for line, (outcome, start, stop) in places
        for key in [span_key(other, base + start, stop - start)]
    ]


def span_key(path: str, offset: int, size: int) -> str:
    """Key of a record in another file.

    >>> span_key("/a/rollout-b.jsonl", 120, 64)
    'rollout-b.jsonl@120+64'
    """
    return f"{os.path.basename(path)}@{offset}+{size}"


def _head(data: bytearray, start: int, stop: int) -> bytes:
    return bytes(data[start : min(stop, start + HEAD_BYTES)])
