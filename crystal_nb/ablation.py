"""Which field of the content hash tells what apart, over many conversations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from crystal_nb import hashing
from crystal_nb.identity import namespace
from crystal_nb.records import Conversation

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ablate"]


def ablate(conversations: Iterable[Conversation]) -> pl.DataFrame:
    """Leave each hashed field out in turn and count which conversations then collide.

    Parameters
    ----------
    conversations
        A `Corpus` or conversation records.

    Returns
    -------
    polars.DataFrame
        One row per field; columns: ``frames.ABLATIONS``.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> cnb.ablate(cnb.parse(cnb.scan(config=config), config=config)).height
    8
    """
    from crystal_nb import frames

    def row(found: hashing.Ablation) -> dict[str, Any]:
        pair = [namespace(source, str(id)) for source, id in found.example or ()]
        return {
            "field": found.field,
            "groups": found.groups,
            "conversations": found.conversations,
            "example_a": pair[0] if pair else None,
            "example_b": pair[1] if pair else None,
        }

    return frames.to_frame(frames.ABLATIONS, map(row, hashing.ablate(conversations)))
