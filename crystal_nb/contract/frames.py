"""What a run of the contract found, as rows of a frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from crystal_nb.frames import Column, Table, to_frame

__all__ = ["CONTRACT", "contract_rows"]

CONTRACT: Table = {
    "group": Column(pl.String, "What the check is about."),
    "check": Column(pl.String, "Name of the check."),
    "ok": Column(pl.Boolean, "Whether it holds; null where it can't be checked here."),
    "detail": Column(pl.String, "What was looked at, what moved or broke, or why it can't be checked."),
}


def contract_rows(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """One row per check."""
    return to_frame(CONTRACT, rows)
