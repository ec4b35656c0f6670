"""JSON lines at speed: blocks of about 4 MB through msgspec, the odd block line by line.

A block goes the fast way only if every line is one object: each begins with ``{`` and ends with
``}``, no carriage return stands alone, and there are as many records as lines. (msgspec's
``decode_lines`` by itself skips blank lines and takes two objects on one line.) Lines are those of
Node's readline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from os import PathLike
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.adapters.base import Draft, Outcome
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Fate

__all__ = ["BLOCK_BYTES", "HEAD_BYTES", "Block", "Broken", "no_record", "read_blocks", "read_lines_into"]

BLOCK_BYTES = 4 << 20
HEAD_BYTES = 96
_NODE24 = "Node 24 splits this line"
_RARE = 2000
_OPEN, _CLOSE, _NEWLINE, _RETURN = b"{}\n\r"

S = TypeVar("S", bound=Struct)


class Broken(Struct, frozen=True):
    """A line that holds no record: blank, no JSON, or too deep."""

    reason: str


class Block(Struct, Generic[S]):
    """Some lines of a file and what they hold; the three lists run in parallel."""

    data: bytes
    """The bytes of the lines."""
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
    draft: Draft, candidate: Candidate, decoder: TypedDecoder[S], rule: Callable[[S | NotAnObject | Broken], Outcome]
) -> None:
    """Apply a rule to every line of the candidate's file and note each line's fate.

    Raises
    ------
    ParseError
        Where the rule raises ValueError: the pinned parser loses the whole file there.
    """
    add = draft.fates.append
    for block in read_blocks(candidate.file_path, decoder):
        data, node24, line = block.data, block.node24_lines, block.first_line
        for record, start, stop in zip(block.records, block.starts, block.stops, strict=True):
            offset = block.offset + start
            try:
                status, kind, reason, index = rule(record)
            except ValueError as error:
                raise ParseError(
                    str(error), source=candidate.source, path=candidate.file_path, line=line, offset=offset
                ) from None
            head = data[start : start + HEAD_BYTES] if status == "dropped" else b""
            note = _NODE24 if line in node24 else None
            add(Fate(status, kind, reason, index, line, offset, stop - start, None, head, note))
            line += 1


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


def read_blocks(
    path: str | PathLike[str], decoder: TypedDecoder[S], block_bytes: int = BLOCK_BYTES
) -> Iterator[Block[S]]:
    """Read a file block by block.

    Memory is bounded by the block size and the longest line.

    Raises
    ------
    OSError
        If the file can't be read.
    """
    line, offset = 1, 0
    for data in _line_aligned(path, block_bytes):
        block = _decode_fast(data, decoder) or _decode_lines(data, decoder)
        block.first_line, block.offset = line, offset
        block.node24_lines = _node24_lines(block)
        yield block
        line += len(block.records)
        offset += len(data)


def _line_aligned(path: str | PathLike[str], size: int) -> Iterator[bytes]:
    r"""Cut a file into pieces that end at ``\n`` (the last one where the file ends)."""
    pending: list[bytes] = []
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(size):
            cut = chunk.rfind(b"\n") + 1
            if cut == 0:
                pending.append(chunk)
                continue
            pending.append(chunk[:cut])
            yield b"".join(pending)
            pending = [chunk[cut:]] if cut < len(chunk) else []
    if pending:
        yield b"".join(pending)


def _decode_fast(data: bytes, decoder: TypedDecoder[S]) -> Block[S] | None:
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None
    starts, stops = _line_bounds(data)
    if not all(map(_is_object_line, repeat(data), starts, stops)):
        return None
    try:
        records = decoder.decode_lines(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if len(records) != len(starts):
        return None
    return Block(data, 0, 0, records, starts, stops)  # type: ignore[arg-type]


def _line_bounds(data: bytes) -> tuple[list[int], list[int]]:
    stops: list[int] = []
    find, add, stop = data.find, stops.append, 0
    while stop := find(b"\n", stop) + 1:
        add(stop)
    if not stops or stops[-1] != len(data):
        add(len(data))
    return [0, *stops[:-1]], stops


def _is_object_line(data: bytes, start: int, stop: int) -> bool:
    if data[stop - 1] == _NEWLINE:
        stop -= 1
        if stop > start and data[stop - 1] == _RETURN:
            stop -= 1
    return stop > start and data[start] == _OPEN and data[stop - 1] == _CLOSE


def _decode_lines(data: bytes, decoder: TypedDecoder[S]) -> Block[S]:
    starts, stops = node_line_bounds(data)
    records: list[S | NotAnObject | Broken] = []
    for start, stop in zip(starts, stops, strict=True):
        record = _decode_line(data[start:stop], decoder)
        records.append(record)
    return Block(data, 0, 0, records, starts, stops)


def node_line_bounds(data: bytes) -> tuple[list[int], list[int]]:
    starts, stops = [], []
    start = 0
    for piece in data.splitlines(keepends=True):  # of bytes: exactly \n, \r\n and \r
        starts.append(start)
        start += len(piece)
        stops.append(start)
    return starts, stops


def _decode_line(raw: bytes, decoder: TypedDecoder[S]) -> S | NotAnObject | Broken:
    text = raw.rstrip(b"\r\n")
    try:
        return decoder.decode(text)
    except RecursionError:
        return Broken("nested too deep for Python, not for Node")
    except ValueError:
        return Broken("invalid JSON" if ecma.trim(text.decode("utf-8", "replace")) else "blank line")


def _node24_lines(block: Block[Any]) -> frozenset[int]:
    data = block.data
    marks = [mark for mark in (b"\xe2\x80\xa8", b"\xe2\x80\xa9") if _holds(data, mark)]
    if not marks:
        return frozenset()
    lines = enumerate(zip(block.starts, block.stops, strict=True), block.first_line)
    return frozenset(n for n, (start, stop) in lines if any(mark in data[start:stop] for mark in marks))


def _holds(data: bytes, mark: bytes) -> bool:
    """``mark in data``, by way of its last byte as long as that is rare: one byte is found ten times faster."""
    last, before = mark[-1:], mark[:-1]
    at = data.find(last)
    for _ in range(_RARE):
        if at < 0:
            return False
        if data[at - len(before) : at] == before:
            return True
        at = data.find(last, at + 1)
    return mark in data
