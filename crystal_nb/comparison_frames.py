"""Comparisons of two parsers as rows of a frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from crystal_nb.frames import Column, Table, to_frame

__all__ = ["COMPARISONS", "comparisons"]

COMPARISONS: Table = {
    "source": Column(pl.String, "Adapter name."),
    "candidate_id": Column(pl.String, "Id of the candidate."),
    "equal": Column(pl.Boolean, "Whether the content hashes are equal; null where one parse failed."),
    "hash_a": Column(pl.String, "Content hash of the first parser's result."),
    "hash_b": Column(pl.String, "Content hash of the second one's."),
    "messages_a": Column(pl.UInt32, "Messages of the first."),
    "messages_b": Column(pl.UInt32, "Messages of the second."),
    "same": Column(pl.UInt32, "Messages that both have, in the same order."),
    "moved": Column(pl.UInt32, "Messages that both have, in another order."),
    "changed": Column(pl.UInt32, "Messages with the same id and other content."),
    "removed": Column(pl.UInt32, "Messages that only the first has."),
    "added": Column(pl.UInt32, "Messages that only the second has."),
    "error_a": Column(pl.String, "Why the first failed."),
    "error_b": Column(pl.String, "Why the second failed."),
    "file_path": Column(pl.String, "File or database of the candidate."),
}


def comparisons(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """One row per candidate."""
    return to_frame(COMPARISONS, rows)
