"""Lines of a transcript, damaged ones mended as far as they go, and the fates of all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from msgspec import Struct

from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.jsonl import HEAD_BYTES, Block, Broken, read_blocks
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder
from crystal_nb.records import Fate

__all__ = ["Lines", "line_fates", "read_lines"]

_STARTS = re.compile(r'\{"(?:parentUuid|type|isSidechain|uuid|sessionId|logicalParentUuid)"')
_SIGNS = frozenset(("uuid", "sessionId", "timestamp", "leafUuid", "messageId"))
_TRIES = 32
_BOM = b"\xef\xbb\xbf"
_INVALID = "invalid JSON"


class Lines(Struct):
    """Some records of a file; the lists run in parallel."""

    data: bytearray
    offset: int
    records: list[Any]
    starts: list[int]
    stops: list[int]
    numbers: Sequence[int]
    """Number of each record's line, 1-based; two records can share one."""

    def raw(self, row: int) -> bytes:
        """The bytes of a record."""
        return bytes(self.data[self.starts[row] : self.stops[row]])


def read_lines(path: str, decoder: TypedDecoder[Any], *, mend: bool) -> Iterator[Lines]:
    """Read a file's records. They are good until the next step only, as are raw values in them.

    Raises
    ------
    OSError
        If the file can't be read.
    """
    for block in read_blocks(path, decoder):
        numbers = range(block.first_line, block.first_line + len(block.records))
        lines = Lines(block.data, block.offset, block.records, block.starts, block.stops, numbers)
        if any(type(record) is Broken for record in block.records):
            lines = _mended(block, decoder) if mend else lines
        yield lines
        if lines.records is not block.records:
            lines.records.clear()
        block.records[:] = [None] * len(block.records)  # raw values keep the buffer from growing


def _mended(block: Block[Any], decoder: TypedDecoder[Any]) -> Lines:
    lines = Lines(block.data, block.offset, [], [], [], [])
    numbers: list[int] = []
    for record, start, stop, number in zip(
        block.records, block.starts, block.stops, count(block.first_line), strict=False
    ):
        pieces: list[tuple[int, int, Any]] = [(start, stop, record)]
        if type(record) is Broken and record.reason == _INVALID:
            pieces = _mend(bytes(block.data[start:stop]), start, decoder)
        for begin, end, found in pieces:
            lines.starts.append(begin)
            lines.stops.append(end)
            lines.records.append(found)
            numbers.append(number)
    lines.numbers = numbers
    return lines


def _mend(line: bytes, base: int, decoder: TypedDecoder[Any]) -> list[tuple[int, int, Any]]:
    """What a broken line holds: one record behind padding, or good records between broken stretches."""
    bare = line.rstrip(b"\r\n").strip(b"\x00 \t").removeprefix(_BOM).strip(b"\x00 \t")
    whole = base, base + len(line)
    if not bare:
        return [(*whole, Broken("NUL bytes only"))]
    found = _decode(bare, decoder)
    if found is not None:
        return [(*whole, found)]
    text = line.decode("utf-8", "surrogateescape")
    pieces = [(start, stop, _decode(_bytes(text[start:stop]), decoder)) for start, stop in _records_in(text)]
    good = [piece for piece in pieces if piece[2] is not None]
    if not good:
        torn = not line.endswith((b"\n", b"\r"))
        return [(*whole, Broken("incomplete last line" if torn else _INVALID))]
    return _tile(text, base, good)


def _decode(data: bytes, decoder: TypedDecoder[Any]) -> Any:
    try:
        found = decoder.decode(data)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(found, NotAnObject) else found


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _records_in(text: str) -> Iterator[tuple[int, int]]:
    """Where objects that look like records begin and end; few places are tried, as each can be long."""
    scan, at = json.JSONDecoder(), 0
    for _ in range(_TRIES):
        start = _STARTS.search(text, at)
        if start is None:
            return
        try:
            value, end = scan.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
            continue
        if _SIGNS.isdisjoint(value):
            at = end
            continue
        yield start.start(), end
        at = end


def _tile(text: str, base: int, good: list[tuple[int, int, Any]]) -> list[tuple[int, int, Any]]:
    """Good records with the broken stretches between; blanks go to the record before them."""
    tiles: list[tuple[int, int, Any]] = []
    done = 0  # characters
    at = base  # bytes
    for start, stop, record in good:
        if text[done:start].strip("\x00 \t\ufeff"):
            end = at + len(_bytes(text[done:start]))
            tiles.append((at, end, Broken(_INVALID)))
            at, done = end, start
        end = at + len(_bytes(text[done:stop]))
        tiles.append((at, end, record))
        at, done = end, stop
    rest = _bytes(text[done:])
    if rest.strip(b"\x00 \t\r\n"):
        return [*tiles, (at, at + len(rest), Broken(_INVALID))]
    start_last, _, last = tiles[-1]
    return [*tiles[:-1], (start_last, at + len(rest), last)]


def line_fates(lines: Lines, outcomes: list[Outcome]) -> list[Fate]:
    """Fates of the records from what a rule made of them."""
    base = lines.offset
    places = zip(outcomes, lines.starts, lines.stops, lines.numbers, strict=True)
    return [
        Fate(
            status,
            kind,
            reason,
            index,
            number,
            base + start,
            stop - start,
            None,
            bytes(lines.data[start : min(stop, start + HEAD_BYTES)]) if status == "dropped" else b"",
        )
        for (status, kind, reason, index), start, stop, number in places
    ]
