"""What a tried parser made of each raw record, as rows of a frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from crystal_nb.frames import FATES, MESSAGES, Column, Table, to_frame

__all__ = ["TRIAL_RECORDS", "empty_fates", "empty_messages", "trial_records"]

TRIAL_RECORDS: Table = {
    "record": Column(pl.UInt32, "Position of the raw record in reading order."),
    "line": Column(pl.Int64, "1-based line of a text file."),
    "offset": Column(pl.Int64, "Byte offset in the file."),
    "key": Column(pl.String, "Place in a database or document."),
    "kind": Column(pl.String, "Kind of the record as it names it."),
    "status": Column(pl.String, "kept, merged, metadata or dropped; error where the parser failed on it."),
    "reason": Column(pl.String, "Why it was dropped, how merged, or the error with the function's line."),
    "message_index": Column(pl.UInt32, "Message that it became or went into."),
    "raw": Column(pl.String, "Beginning of the record, escaped."),
}


def trial_records(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """One row per raw record."""
    return to_frame(TRIAL_RECORDS, rows)


def empty_messages() -> pl.DataFrame:
    """No messages."""
    return to_frame(MESSAGES, [])


def empty_fates() -> pl.DataFrame:
    """No fates."""
    return to_frame(FATES, [])
