"""What the import browser reads of a store: one conversation at a time, and where a text stands."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from crystal_nb import ecma
from crystal_nb.hashing import content_hash
from crystal_nb.records import Conversation, counted
from crystal_nb.store import Store

if TYPE_CHECKING:
    import polars as pl

__all__ = ["NOTE", "StoredRows"]

NOTE = "A store keeps neither tool calls nor what was lost; a corpus, which cnb.parse gives, shows both."


class StoredRows:
    """The rows of a store, as long as a browser of it lives.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> with cnb.Store.in_memory(cnb.PINNED, cnb.samples.config()) as store:
    ...     StoredRows(store).with_text("pears")
    frozenset()
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def conversation(self, source: str, id: str) -> Conversation:
        """One conversation; only its rows are read."""
        return self._store.conversation(source, id)

    def with_text(self, needle: str) -> frozenset[tuple[str, str]]:
        """Source and id of the conversations with a message that has a case-folded text."""
        import polars as pl

        if not ecma.well_formed(needle):  # such a text is not in a database
            return frozenset()
        hit = (pl.col(name).str.contains(needle, literal=True).fill_null(False) for name in ("content", "thinking"))
        found = self._texts.filter(pl.any_horizontal(*hit)).select(pl.col("source").fill_null(""), "conversation_id")
        return frozenset((source, id) for source, id in found.unique().iter_rows())

    @cached_property
    def _texts(self) -> pl.DataFrame:
        return self._store.folded_texts()

    def difference(self, stored_hash: str, parsed: int | None, left: Conversation) -> tuple[str, str] | None:
        """Hash of the rows that are left and why it is not the stored one; None where it is, or none is stored."""
        digest = content_hash(left)
        if not stored_hash or digest == stored_hash:
            return None
        count = len(left.messages)
        if self._store.layout.by_position or parsed is None or count >= parsed:
            return digest, "The rows were changed after they were hashed."
        return digest, (
            f"Parsed and hashed: {counted(parsed, 'message')}. Left: {count:,}. This store has one row for each "
            "message id, and a later message with the same id takes the row of an earlier one."
        )
