"""What the chosen rules dropped, and books that close: every byte of a file belongs to one record with one fate."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from crystal_nb.errors import SourceError
from crystal_nb.frames import Column, Table, to_frame
from crystal_nb.records import Candidate, Fate
from crystal_nb.rereading import raw_records

if TYPE_CHECKING:
    from crystal_nb.corpus import ParsedConversation

__all__ = ["BOOKS", "LOSSES", "books", "losses"]

LOSSES: Table = {
    "source": Column(pl.String, "Adapter name."),
    "conversation_id": Column(pl.String, "Namespaced id of the conversation."),
    "conversation_index": Column(pl.UInt32, "Row in the conversations frame."),
    "kind": Column(pl.String, "Kind of the records as the tool names it."),
    "reason": Column(pl.String, "Why they were dropped."),
    "records": Column(pl.UInt32, "Raw records."),
    "bytes": Column(pl.Int64, "Their bytes; null where the parser knows none."),
    "characters": Column(pl.Int64, "Their characters as text, read again; null where they can't be."),
    "example": Column(pl.String, "Start of the first one, escaped; null where the parser kept none."),
}
BOOKS: Table = {
    "source": Column(pl.String, "Adapter name."),
    "conversation_id": Column(pl.String, "Namespaced id of the conversation."),
    "conversation_index": Column(pl.UInt32, "Row in the conversations frame."),
    "file_size": Column(
        pl.Int64,
        "Bytes of the file on disk: of a .zst file the compressed ones, while the sums count what it unfolds to; "
        "null for a conversation in a document or database.",
    ),
    "records": Column(pl.UInt32, "Raw records, each with one fate."),
    "kept": Column(pl.Int64, "Bytes of records that became messages."),
    "merged": Column(pl.Int64, "Bytes of records that went into a message of another record."),
    "metadata": Column(pl.Int64, "Bytes of records that fed the conversation's own fields."),
    "dropped": Column(pl.Int64, "Bytes of records that are lost."),
    "closed": Column(
        pl.Boolean,
        "Whether the records lie end to end from first byte to last, and a .zst file unfolds to its end; null where "
        "file_size is, as there are no lines.",
    ),
}


def losses(parsed: Sequence[ParsedConversation], *, characters: bool = True) -> pl.DataFrame:
    """One row per conversation, kind and reason of dropped records, the largest first."""
    rows = (row for index, p in enumerate(parsed) for row in _loss_rows(index, p, characters))
    return to_frame(LOSSES, rows).sort("bytes", "records", descending=True, nulls_last=True, maintain_order=True)


def _loss_rows(index: int, p: ParsedConversation, characters: bool) -> Iterator[dict[str, Any]]:
    groups: dict[tuple[str, str | None], list[Fate]] = defaultdict(list)
    for fate in p.fates:
        if fate.status == "dropped":
            groups[fate.kind, fate.reason].append(fate)
    for (kind, reason), fates in groups.items():
        sizes = [fate.size for fate in fates if fate.size is not None]
        yield {
            "source": p.conversation.source,
            "conversation_id": p.conversation_id,
            "conversation_index": index,
            "kind": kind,
            "reason": reason,
            "records": len(fates),
            "bytes": sum(sizes) if len(sizes) == len(fates) else None,
            "characters": _characters(p.candidate, fates) if characters else None,
            "example": next((fate.excerpt for fate in fates if fate.head), None),
        }


def _characters(candidate: Candidate, fates: Sequence[Fate]) -> int | None:
    try:
        return sum(len(raw.decode("utf-8", "replace").rstrip("\r\n")) for raw in raw_records(candidate, fates))
    except SourceError:
        return None


def books(parsed: Sequence[ParsedConversation]) -> pl.DataFrame:
    """One row per conversation: where the bytes of its file went."""
    return to_frame(BOOKS, map(_book_row, range(len(parsed)), parsed))


def _book_row(index: int, p: ParsedConversation) -> dict[str, Any]:
    sums: dict[str, int] = defaultdict(int)
    for fate in p.fates:
        sums[fate.status] += fate.size or 0
    ends = [
        (fate.offset, fate.offset + fate.size) for fate in p.fates if fate.offset is not None and fate.size is not None
    ]
    by_bytes = bool(ends) and len(ends) == len(p.fates) and not p.candidate.file_path.endswith(".json")
    return {
        "source": p.conversation.source,
        "conversation_id": p.conversation_id,
        "conversation_index": index,
        "file_size": p.candidate.file_size if by_bytes else None,
        "records": len(p.fates),
        **{status: sums[status] for status in ("kept", "merged", "metadata", "dropped")},
        "closed": _tile(ends, p.candidate) if by_bytes else None,
    }


def _tile(ends: list[tuple[int, int]], candidate: Candidate) -> bool:
    """Tell whether the records follow one another without gap or overlap, up to the file's end.

    A record of no bytes stands for what couldn't be unfolded.
    """
    stops = [0, *(stop for _, stop in sorted(ends))]
    starts = [start for start, _ in sorted(ends)]
    is_packed = candidate.file_path.endswith(".zst")
    is_whole = all(start < stop for start, stop in ends) if is_packed else stops[-1] == _size(candidate)
    return starts == stops[:-1] and is_whole


def _size(candidate: Candidate) -> int:
    try:
        return os.stat(candidate.file_path).st_size
    except OSError:
        return candidate.file_size
