"""Whether zstd data is whole, by the headers of its frames and blocks (RFC 8878, section 3) alone.

The library tells data that is wrong, but not that data ends too early.
"""

from __future__ import annotations

import os
from typing import BinaryIO

__all__ = ["ends_midway"]

_MOST_HEADER, _LEAST_HEADER = 18, 6
_SKIPPABLE_HEADER, _BLOCK_HEADER, _CHECKSUM = 8, 3, 4
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_RLE = 1


def ends_midway(file: BinaryIO) -> bool:
    r"""Tell whether the data ends in the middle of a frame; an end between two frames is a good one.

    The data must be valid as far as it goes. Nothing is decompressed. A header with nothing but empty blocks
    behind it counts as a frame without content.

    >>> import io, zstandard
    >>> data = zstandard.ZstdCompressor().compress(b"hello")
    >>> [ends_midway(io.BytesIO(part)) for part in (data, data + data, data[:-1], b"")]
    [False, False, True, False]
    """
    end = file.seek(0, os.SEEK_END)
    at = 0
    while at < end:
        at = _behind_frame(file, at)
    return at > end


def _behind_frame(file: BinaryIO, at: int) -> int:
    """Where a frame ends; of one that is cut, some place behind the end of the file."""
    from zstandard import frame_header_size, get_frame_parameters

    file.seek(at)
    head = file.read(_MOST_HEADER)
    if len(head) < _LEAST_HEADER:
        return at + _LEAST_HEADER
    if int.from_bytes(head[:4], "little") in _SKIPPABLE:
        return at + _SKIPPABLE_HEADER + int.from_bytes(head[4:_SKIPPABLE_HEADER], "little")
    size = frame_header_size(head)
    if len(head) < size:
        return at + size
    return _behind_blocks(file, at + size) + _CHECKSUM * get_frame_parameters(head).has_checksum


def _behind_blocks(file: BinaryIO, at: int) -> int:
    start, is_last, most = at, False, 0
    while not is_last:
        file.seek(at)
        head = file.read(_BLOCK_HEADER)
        if len(head) < _BLOCK_HEADER:
            is_blank = at > start and not most  # nothing but zeros; a frozen golden reads that as an empty file
            return at + (len(head) if is_blank else _BLOCK_HEADER)
        bits = int.from_bytes(head, "little")
        is_last, kind, size = bool(bits & 1), bits >> 1 & 3, bits >> 3
        at += _BLOCK_HEADER + (1 if kind == _RLE else size)
        most = max(most, size)
    return at
