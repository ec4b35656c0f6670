"""Parsing damaged copies of the samples: which relations hold between what is read before and after."""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from crystal_nb import ecma
from crystal_nb.adapters.base import Parsed
from crystal_nb.adapters.jsonl import node_line_bounds
from crystal_nb.contract.stage import (
    CannotCheck,
    Check,
    Failed,
    Stage,
    check,
    digest,
    lines_told,
    parse_now,
    some,
)
from crystal_nb.errors import ParseError
from crystal_nb.hashing import hash_input
from crystal_nb.records import Candidate, counted

__all__ = ["CHECKS"]

_EXAMPLES = 20
_PLACES = 25
_UNKNOWN = (
    b'{"type":"crystal-nb-unknown","kind":"crystal-nb-unknown","crystal_nb_unknown":true}',
    b'{"crystal_nb_unknown":true}',
)
_BOM = b"\xef\xbb\xbf"


def _for_all(strategy: st.SearchStrategy[Any], holds: Callable[..., None], *fixed: Any) -> None:
    """Have hypothesis look for a counterexample, the same ones in every run."""

    def test(value: Any) -> None:
        holds(value, *fixed)

    quiet = settings(
        max_examples=_EXAMPLES,
        database=None,
        derandomize=True,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    quiet(given(strategy)(test))()


def _lines(data: bytes) -> list[bytes]:
    return [line for line in re.split(rb"(?<=\n)", data) if line]


def _read(stage: Stage, candidate: Candidate, data: bytes, what: str) -> Parsed:
    try:
        return stage.parse_bytes(candidate, data)
    except ParseError as error:
        raise Failed(f"{ecma.to_text(candidate.id)}, {what}: {error.reason}") from None


@check("damage", "truncated")
def truncated(stage: Stage) -> str:
    """A file cut at any byte reads as a prefix of it.

    Lines: as the whole lines before the cut, with or without the cut one, which has one fate at most;
    before its first line is whole, a file may be refused with ParseError instead.
    A JSON document: it is refused with ParseError, or reads as the whole. Databases: see ``garbled``.
    """
    documents = [(c, p) for c, p in stage.parsed if c.file_path.endswith(".json")][:3]
    try:
        files = stage.line_files()
    except CannotCheck:
        files = []
    for candidate, parsed, data in files:
        _for_all(st.integers(0, len(data)), _cut_line, stage, candidate, data, _Cuts(stage, candidate, parsed, data))
    for candidate, parsed in documents:
        data = Path(candidate.file_path).read_bytes()
        _for_all(st.integers(0, len(data.rstrip()) - 1), _cut_document, stage, candidate, parsed, data)
    if not (files or documents):
        raise CannotCheck("the samples are neither files of lines nor JSON documents")
    cut = f"{counted(len(files), 'file')} of lines, {counted(len(documents), 'document')}"
    return f"{cut}, cut at up to {_EXAMPLES} places each"


class _Cuts:
    """Where the records of a file begin, and what is read of it up to there."""

    def __init__(self, stage: Stage, candidate: Candidate, parsed: Parsed, data: bytes) -> None:
        self._stage, self._candidate, self._data = stage, candidate, data
        self._starts = sorted({*node_line_bounds(data)[0], *(f.offset or 0 for f in parsed.fates), len(data)})
        self._first = min((f.offset or 0 for f in parsed.fates if f.message_index is not None), default=len(data))
        self._read: dict[int, tuple[str, int]] = {}

    def around(self, cut: int) -> tuple[int, int]:
        """Where the record that a cut goes through begins and ends; behind its last byte a record is whole."""
        at = bisect_right(self._starts, cut)
        return self._starts[at - 1], self._starts[min(at, len(self._starts) - 1)]

    def may_be_refused(self, cut: int) -> bool:
        """Whether nothing before the cut is a record that becomes a message."""
        return cut <= self._first or self.around(cut)[0] <= self._first

    def up_to(self, place: int) -> tuple[str, int]:
        """Hash and number of fates of the file up to there."""
        if place not in self._read:
            data = self._data[:place]
            try:
                whole = self._stage.parse_bytes(self._candidate, data)
                self._read[place] = digest(whole), lines_told(whole.fates, data)
            except ParseError:
                self._read[place] = "refused", 0
        return self._read[place]


def _cut_line(cut: int, stage: Stage, candidate: Candidate, data: bytes, cuts: _Cuts) -> None:
    start, stop = cuts.around(cut)
    name = ecma.to_text(candidate.id)
    try:
        got = stage.parse_bytes(candidate, data[:cut])
    except ParseError as error:
        if cuts.may_be_refused(cut):
            return
        raise Failed(f"{name}, cut at byte {cut}: {error.reason}") from None
    told = lines_told(got.fates, data[:cut])
    if start == 0:
        if told > 1:
            raise Failed(f"{name}: cut at byte {cut} of its first line, {told} fates")
        return
    if digest(got) not in (cuts.up_to(start)[0], cuts.up_to(stop)[0]):
        raise Failed(f"{name}: cut at byte {cut}, it reads as no prefix of whole lines")
    if told - cuts.up_to(start)[1] not in (0, 1):
        raise Failed(f"{name}: cut at byte {cut}, {told} fates after {cuts.up_to(start)[1]} lines")


def _cut_document(cut: int, stage: Stage, candidate: Candidate, parsed: Parsed, data: bytes) -> None:
    try:
        got = stage.parse_bytes(candidate, data[:cut])
    except ParseError:
        return
    if digest(got) != digest(parsed):
        count = len(got.conversation.messages)
        raise Failed(f"{ecma.to_text(candidate.id)}: a document cut at byte {cut} reads as {counted(count, 'message')}")


@check("damage", "garbled")
def garbled(stage: Stage) -> str:
    """Whatever bytes are overwritten, a parse gives a Parsed or raises ParseError."""
    by_file = {c.file_path: c for c, _ in stage.parsed}
    chosen = list(by_file.values())[:3]

    noise = st.binary(min_size=1, max_size=40) | st.sampled_from([b"\n", b"null", b'""', b"[]", b"{}", b"\x00" * 16])
    for candidate in chosen:
        data = Path(candidate.file_path).read_bytes()
        changes = st.tuples(st.integers(0, max(0, len(data) - 1)), noise)
        _for_all(changes, _garble, stage, candidate, data)
    return f"{counted(len(chosen), 'file')} with up to {_EXAMPLES} damages each"


def _garble(change: tuple[int, bytes], stage: Stage, candidate: Candidate, data: bytes) -> None:
    at, noise = change
    where = f"{ecma.to_text(candidate.id)}, {len(noise)} bytes overwritten at {at}"
    try:
        got = stage.parse_bytes(candidate, data[:at] + noise + data[at + len(noise) :])
    except ParseError:
        return
    except Exception as error:
        raise Failed(f"{where}: {type(error).__name__}: {error}") from None
    if not isinstance(got, Parsed):
        raise Failed(f"{where}: parse gives a {type(got).__name__}")


@check("damage", "duplicated line")
def duplicated(stage: Stage) -> str:
    """A line that stands twice has a fate twice, and changes no message but those that it goes into."""
    count = 0
    for candidate, parsed, data in stage.line_files():
        lines = _lines(data)
        for number in _spread(len(lines)):
            doubled = b"".join([*lines[: number + 1], _ended(lines[number]), *lines[number + 1 :]])
            doubled = doubled if lines[number].endswith(b"\n") else data + b"\n" + lines[number]
            got, count = _read(stage, candidate, doubled, f"line {number + 1} twice"), count + 1
            told, before = lines_told(got.fates, doubled), lines_told(parsed.fates, data)
            start = sum(map(len, lines[:number]))
            records = sum(start <= (f.offset or 0) < start + len(lines[number]) for f in parsed.fates)
            if told != before + max(1, records):
                raise Failed(f"{ecma.to_text(candidate.id)}: line {number + 1} twice, {told} fates after {before}")
            if digest(got) != digest(parsed) and _others(got, {number, number + 1}) != _others(parsed, {number}):
                raise Failed(f"{ecma.to_text(candidate.id)}: line {number + 1} twice changes other messages")
    return f"{count} lines doubled"


def _others(parsed: Parsed, records: set[int]) -> list[Any]:
    """What is hashed of the messages that these records do not go into, positions aside."""
    touched = {f.message_index for n, f in enumerate(parsed.fates) if n in records}
    hashed = hash_input(parsed.conversation)["messages"]
    return [{**m, "index": 0} for n, m in enumerate(hashed) if n not in touched]


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _spread(count: int) -> list[int]:
    """Some positions, all when they are few, the last one always."""
    step = max(1, count // _PLACES)
    return sorted({*range(0, count, step), count - 1})


@check("damage", "CRLF")
def crlf(stage: Stage) -> str:
    r"""With ``\r\n`` for ``\n`` the hash and the fates' kinds and reasons are the same."""
    count = 0
    for candidate, parsed, data in stage.line_files():
        if b"\r" not in data:
            got, count = _read(stage, candidate, data.replace(b"\n", b"\r\n"), "with CRLF"), count + 1
            if digest(got) != digest(parsed) or _told(got) != _told(parsed):
                raise Failed(f"{ecma.to_text(candidate.id)}: with CRLF it reads differently")
    return f"{counted(count, 'file')} read the same"


def _told(parsed: Parsed) -> list[tuple[Any, ...]]:
    return [(f.status, f.kind, f.reason, f.message_index) for f in parsed.fates]


@check("damage", "BOM")
def bom(stage: Stage) -> str:
    """With a byte order mark the file reads the same, or as if its first line were broken; fates stay as many."""
    seen = set()
    for candidate, parsed, data in stage.line_files():
        got = _read(stage, candidate, _BOM + data, "with a BOM")
        same = lines_told(got.fates, _BOM + data) == lines_told(parsed.fates, data)
        if not same or (digest(got) != digest(parsed) and digest(got) != _without_first(stage, candidate, data)):
            raise Failed(f"{ecma.to_text(candidate.id)}: with a BOM it reads differently")
        seen.add("it is skipped" if _told(got) == _told(parsed) else "the first line is dropped")
    return some(sorted(seen))


def _without_first(stage: Stage, candidate: Candidate, data: bytes) -> str:
    """Hash of what is read where the first line is broken."""
    first, _, rest = data.partition(b"\n")
    return digest(_read(stage, candidate, b"{" * bool(first) + b"\n" + rest, "with a broken first line"))


@check("damage", "unknown record")
def unknown(stage: Stage) -> str:
    """A record of a kind that nobody knows, or of none, put between any lines, is one fate more and the same hash."""
    count = 0
    for candidate, parsed, data in stage.line_files():
        lines = _lines(data)
        places = _spread(len(lines) + (not lines or lines[-1].endswith(b"\n")))
        count += len(places)
        for place, record in product(places, _UNKNOWN):
            changed = b"".join([*map(_ended, lines[:place]), record + b"\n", *lines[place:]])
            got = _read(stage, candidate, changed, f"an unknown record as line {place + 1}")
            if digest(got) != digest(parsed):
                raise Failed(f"{ecma.to_text(candidate.id)}: an unknown record as line {place + 1} changes the hash")
            told = lines_told(got.fates, changed)
            if told != lines_told(parsed.fates, data) + 1:
                raise Failed(f"{ecma.to_text(candidate.id)}: an unknown record as line {place + 1}, {told} fates")
    return f"{count} places"


@check("damage", "half-written")
def half_written(stage: Stage) -> str:
    """A file read while its last line is half there, and again when it is complete, reads as the whole."""
    for candidate, parsed, data in stage.line_files():
        start = data.rstrip(b"\r\n").rfind(b"\n") + 1
        with stage.mutant(candidate, data[: (start + len(data)) // 2]) as (changed, config):
            with contextlib.suppress(ParseError):  # how that reads is a matter of the check of truncated files
                parse_now(stage.adapter, changed, config)
            Path(changed.file_path).write_bytes(data)
            got = parse_now(stage.adapter, changed, config)
        if digest(got) != digest(parsed) or _told(got) != _told(parsed):
            raise Failed(f"{ecma.to_text(candidate.id)}: completed, it reads differently from the whole")
    return "completed files read as the whole"


CHECKS: tuple[Check, ...] = (truncated, garbled, duplicated, crlf, bom, unknown, half_written)
