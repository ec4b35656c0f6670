"""Which tools have histories here: one async core, blocking twins derived from it.

Source: ``pinned-importer.md`` section 2.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from crystal_nb import foreign
from crystal_nb._loop import twins
from crystal_nb.adapters import registered
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.adapters.usable import usable
from crystal_nb.config import Config, checked
from crystal_nb.foreign import data_folder
from crystal_nb.records import SourceInfo

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "data_folder",
    "detect_all_sources",
    "detect_all_sources_async",
    "source_rows",
    "source_rows_async",
    "sources",
    "sources_async",
]


async def _detect_all_sources(
    *, adapters: Iterable[SourceAdapter] | None = None, config: Config | None = None
) -> list[SourceInfo]:
    """Ask every adapter at once whether its tool is there.

    Parameters
    ----------
    adapters
        Whom to ask; default: the registered ones.
    config
        Folders and settings.

    Returns
    -------
    list of SourceInfo
        Those that are, in the adapters' order.

    Raises
    ------
    CrystalError
        The first failure: as pinned, the answer fails as a whole when one adapter fails.
        `sources` collects the outcomes instead.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> [s.name for s in cnb.detect_all_sources(config=cnb.samples.config())]
    ['claude-code', 'codex', 'cursor', 'trae', 'copilot', 'gemini']
    """
    config = checked(config)
    asked = registered().values() if adapters is None else map(usable, adapters)
    found = await asyncio.gather(*(foreign.detect(a, config) for a in asked))
    return [info for info in found if info is not None]


async def _sources(*, config: Config | None = None) -> pl.DataFrame:
    """Look which tools have histories here.

    Returns
    -------
    polars.DataFrame
        One row per registered adapter: found, absent or failed; columns: ``frames.SOURCES``.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> cnb.sources(config=cnb.samples.config()).shape
    (6, 8)
    """
    from crystal_nb import frames

    return frames.to_frame(frames.SOURCES, await _source_rows(config=config))


async def _source_rows(*, config: Config | None = None) -> list[dict[str, Any]]:
    """`sources` with rows instead of a frame."""
    config = checked(config)
    known = list(registered().values())
    outcomes = await asyncio.gather(*(foreign.detect(a, config) for a in known), return_exceptions=True)
    return [_source_row(adapter, outcome, config) for adapter, outcome in zip(known, outcomes, strict=True)]


def _source_row(adapter: SourceAdapter, outcome: SourceInfo | BaseException | None, config: Config) -> dict[str, Any]:
    row = {
        "source": adapter.name,
        "display_name": adapter.display_name,
        "status": "absent",
        "folder": data_folder(adapter, config),
        "parser_version": adapter.parser_version,
        "conversations": None,
        "error": None,
        "note": None,
    }
    if isinstance(outcome, SourceInfo):
        return {**row, "status": "found", "conversations": outcome.conversation_count, "folder": outcome.data_dir}
    if isinstance(outcome, BaseException):
        return {**row, "status": "failed", "error": f"{type(outcome).__name__}: {outcome}"}
    if row["folder"] is not None and os.path.exists(row["folder"]):
        return {**row, "note": "the folder is there, but the tool's rule finds nothing in it, or an error"}
    return row


detect_all_sources, detect_all_sources_async = twins(_detect_all_sources)
sources, sources_async = twins(_sources)
source_rows, source_rows_async = twins(_source_rows)
