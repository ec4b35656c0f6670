"""JSON lines at speed: blocks of about 256 KB through msgspec, the odd block line by line.

A block goes the fast way only if every line is one object: each begins with ``{`` and ends with
``}``, there is no carriage return, and there are as many records as lines. (msgspec's
``decode_lines`` by itself skips blank lines and takes two objects on one line.) Lines are those of
Node's readline.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from itertools import count
from operator import itemgetter
from os import PathLike
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import Draft, Outcome, open_file
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Fate

__all__ = ["BLOCK_BYTES", "HEAD_BYTES", "Block", "Broken", "no_record", "read_blocks", "read_lines_into"]

BLOCK_BYTES = 1 << 18
HEAD_BYTES = 96
_RARE = 500
_NEWLINE = b"\n"[0]

S = TypeVar("S", bound=Struct)


class Broken(Struct, frozen=True):
    """A line that holds no record: blank, no JSON, or too deep."""

    reason: str


class Block(Struct, Generic[S]):
    """Some lines of a file and what they hold; the three lists run in parallel."""

    data: bytearray
    """The bytes of the lines, and behind `end` what is left of earlier ones."""
    end: int
    """How far the data is good."""
    offset: int
    """Where the data stands in the file."""
    first_line: int
    """1-based number of the first line."""
    records: list[S | NotAnObject | Broken]
    """What each line holds."""
    starts: list[int]
    """Where each line begins in the data."""
    stops: list[int]
    """Where each line ends in the data, line end included."""
    node24_lines: frozenset[int] = frozenset()
    """Numbers of lines that hold U+2028 or U+2029, where Node 24 would split them."""


def read_lines_into(
    draft: Draft,
    candidate: Candidate,
    decoder: TypedDecoder[S],
    rules: Callable[[list[S | NotAnObject | Broken]], Iterator[Outcome]],
) -> None:
    """Apply rules to the lines of the candidate's file, block by block, and note each line's fate.

    Raises
    ------
    ParseError
        Where a line's outcome is a ValueError: the pinned parser loses the whole file there.
    """
    for block in read_blocks(candidate.file_path, decoder):
        outcomes: list[Outcome] = []
        try:
            outcomes.extend(rules(block.records))
        except ValueError as error:
            at = len(outcomes)
            line, offset = block.first_line + at, block.offset + block.starts[at]
            message = str(error)
            raise ParseError(
                message, source=candidate.source, path=candidate.file_path, line=line, offset=offset
            ) from None
        draft.fates += _line_fates(block, outcomes)


_head = struct.Struct(f"{HEAD_BYTES}s").unpack_from


def _line_fates(block: Block[Any], outcomes: list[Outcome]) -> list[Fate]:
    base, data = block.offset, block.data
    places = zip(outcomes, block.starts, block.stops, count(block.first_line), strict=False)
    fates = [
        Fate(
            status,
            kind,
            reason,
            index,
            line,
            base + start,
            stop - start,
            None,
            _head(data, start)[0] if stop - start >= HEAD_BYTES else bytes(data[start:stop]),
        )
        if status == "dropped"
        else Fate(status, kind, reason, index, line, base + start, stop - start)
        for (status, kind, reason, index), start, stop, line in places
    ]
    for line in block.node24_lines:
        at = line - block.first_line
        fates[at] = replace(fates[at], note="Node 24 splits this line")
    return fates


def no_record(record: NotAnObject | Broken) -> Outcome:
    """Outcome of a line that holds no object.

    Raises
    ------
    ValueError
        For ``null``, on which the pinned parsers fail.
    """
    if isinstance(record, Broken):
        return "dropped", "line", record.reason, None
    if record.value is None:
        raise ValueError("the line is null, which the pinned parser can't read")
    return "dropped", "line", "not an object", None


class Readable(Protocol):
    """An open file, or what decompresses one."""

    def __enter__(self) -> Readable: ...
    def __exit__(self, *error: Any) -> object: ...
    def readinto(self, buffer: Any, /) -> int | None: ...


def read_blocks(
    path: str | PathLike[str],
    decoder: TypedDecoder[S],
    block_bytes: int = BLOCK_BYTES,
    open: Callable[[str | PathLike[str]], Readable] = open_file,
) -> Iterator[Block[S]]:
    """Read a file block by block; ``open`` gives its bytes, such as decompressed ones.

    The buffer behind ``data`` is used again for the next block. Memory is bounded by the block size
    and the longest line.

    Raises
    ------
    OSError
        If the file can't be read.
    """
    line, offset = 1, 0
    for data, end in _line_aligned(path, block_bytes, open):
        block = _decode_fast(data, end, decoder) or _decode_lines(data, end, decoder)
        block.first_line, block.offset = line, offset
        block.node24_lines = _node24_lines(block)
        yield block
        line += len(block.records)
        offset += end


_SPARE_BUFFERS: list[bytearray] = []
_MOST_SPARED = 1 << 22


def _line_aligned(
    path: str | PathLike[str], size: int, open: Callable[[str | PathLike[str]], Readable]
) -> Iterator[tuple[bytearray, int]]:
    r"""Fill a buffer up to a ``\n`` (the last time up to the end of the file) and say how far it is good.

    One buffer serves all blocks, files too, as fresh memory costs more than the reading. No more than a
    block is read at once, so that it is still in the processor's cache when it is decoded.
    """
    buffer = _SPARE_BUFFERS.pop() if _SPARE_BUFFERS else bytearray(size)
    filled = 0
    with open(path) as file:
        while True:
            buffer = _with_room(buffer, filled, size)
            with memoryview(buffer) as view:
                count = file.readinto(view[filled : filled + size])
            if not count:
                break
            cut = buffer.rfind(b"\n", filled, filled + count) + 1
            filled += count
            if cut:
                yield buffer, cut
                buffer[: filled - cut] = buffer[cut:filled]
                filled -= cut
    if filled:
        yield buffer, filled
    if BLOCK_BYTES <= len(buffer) <= _MOST_SPARED:
        _SPARE_BUFFERS.append(buffer)


def _with_room(buffer: bytearray, filled: int, size: int) -> bytearray:
    """The buffer, larger where it is full, for a line that is longer; a new one where a `Raw` still looks at it."""
    if filled < len(buffer):
        return buffer
    room = bytes(max(size, len(buffer) // 4))
    try:
        buffer.extend(room)
    except BufferError:
        return buffer + room
    return buffer


def _decode_fast(data: bytearray, end: int, decoder: TypedDecoder[S]) -> Block[S] | None:
    if data.find(b"\r", 0, end) >= 0:
        return None
    starts, stops = _line_bounds(data, end)
    if not _all_objects(data, starts, stops):
        return None
    try:
        with memoryview(data) as view:
            records = decoder.decode_lines(view[:end])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if len(records) != len(starts):
        return None
    return Block(data, end, 0, 0, records, starts, stops)  # type: ignore[arg-type]


def _line_bounds(data: bytearray, end: int) -> tuple[list[int], list[int]]:
    stops: list[int] = []
    find, add, stop = data.find, stops.append, 0
    while stop := find(b"\n", stop, end) + 1:
        add(stop)
    if not stops or stops[-1] != end:
        add(end)
    return [0, *stops[:-1]], stops


def _all_objects(data: bytearray, starts: list[int], stops: list[int]) -> bool:
    """Tell whether each line begins with ``{`` and ends with ``}``."""
    ends = [stop - 2 for stop in stops]
    if data[stops[-1] - 1] != _NEWLINE:
        ends[-1] += 1
    return bytes(itemgetter(*starts, *ends)(data)) == b"{" * len(starts) + b"}" * len(ends)


def _decode_lines(data: bytearray, end: int, decoder: TypedDecoder[S]) -> Block[S]:
    records: list[S | NotAnObject | Broken] = []
    with memoryview(data) as view:
        starts, stops = node_line_bounds(view[:end])
        for start, stop in zip(starts, stops, strict=True):
            record = _decode_line(view[start:stop], decoder)
            records.append(record)
    return Block(data, end, 0, 0, records, starts, stops)


_LINE_END = re.compile(rb"\r\n|\n|\r")


def node_line_bounds(data: bytes | memoryview) -> tuple[list[int], list[int]]:
    r"""Where each of Node's lines begins and ends, line end included: at ``\n``, ``\r\n`` and a lone ``\r``."""
    stops = [match.end() for match in _LINE_END.finditer(data)]
    if len(data) and (not stops or stops[-1] != len(data)):
        stops.append(len(data))
    return [0, *stops[:-1]][: len(stops)], stops


def _decode_line(line: memoryview, decoder: TypedDecoder[S]) -> S | NotAnObject | Broken:
    stop = len(line)
    while stop and line[stop - 1] in b"\r\n":
        stop -= 1
    try:
        return decoder.decode(line[:stop])
    except ValueError:
        return Broken("invalid JSON" if ecma.trim(str(line[:stop], "utf-8", "replace")) else "blank line")


def _node24_lines(block: Block[Any]) -> frozenset[int]:
    data = block.data
    marks = [mark for mark in (b"\xe2\x80\xa8", b"\xe2\x80\xa9") if _holds(data, block.end, mark)]
    if not marks:
        return frozenset()
    lines = enumerate(zip(block.starts, block.stops, strict=True), block.first_line)
    return frozenset(n for n, (start, stop) in lines if any(data.find(mark, start, stop) >= 0 for mark in marks))


def _holds(data: bytearray, end: int, mark: bytes) -> bool:
    """``mark in data``, by way of its last byte as long as that is rare: one byte is found many times faster."""
    last, before = mark[-1:], mark[:-1]
    at = data.find(last, 0, end)
    for _ in range(_RARE):
        if at < 0:
            return False
        if data.endswith(before, 0, at):
            return True
        at = data.find(last, at + 1, end)
    return data.find(mark, 0, end) >= 0
