"""Scenarios as rows of a frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from crystal_nb.frames import Column, Table, to_frame

__all__ = ["SCENARIO_ROWS", "scenario_rows"]

SCENARIO_ROWS: Table = {
    "scenario": Column(pl.String, "Short name."),
    "title": Column(pl.String, "What it is about."),
    "policy": Column(pl.String, "Name of the policy."),
    "source": Column(pl.String, "Adapter whose files were imported."),
    "step": Column(pl.String, "Scene, and whether its decisions or the database are compared."),
    "expected": Column(pl.String, "What has to come out."),
    "observed": Column(pl.String, "What came out."),
    "ok": Column(pl.Boolean, "Whether they are equal; null where the subject can't play the scenario."),
    "why": Column(pl.String, "What was done, or why nothing was."),
}


def scenario_rows(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """One row per comparison."""
    return to_frame(SCENARIO_ROWS, rows)
