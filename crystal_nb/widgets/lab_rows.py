"""What became of a store's rows between two scenes of a reimport lab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from crystal_nb.details import without_text

__all__ = ["RowChange", "row_changes"]


class RowChange(Struct, frozen=True):
    """One row of a table before and after a scene."""

    table: str
    kind: Literal["added", "changed", "removed", "same"]
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    def __repr__(self) -> str:
        return without_text(self, "before", "after")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns with other values, of a row that changed."""
        if self.kind != "changed" or self.before is None or self.after is None:
            return ()
        return tuple(name for name, value in self.after.items() if self.before.get(name) != value)


_KEYS = {
    "conversations": ("source", "id"),
    "messages": ("conversation_id", "sort_order"),
    "import_log": ("id",),
}


def row_changes(
    before: Mapping[str, list[dict[str, Any]]], after: Mapping[str, list[dict[str, Any]]]
) -> list[RowChange]:
    """What became of every row between two scenes, table by table.

    >>> [c.kind for c in row_changes({}, {"import_log": [{"id": 1}]})]
    ['added']
    """
    found = []
    for table in dict.fromkeys((*after, *before)):
        old, new = (_keyed(table, rows.get(table, [])) for rows in (before, after))
        for key in dict.fromkeys((*old, *new)):
            one, two = old.get(key), new.get(key)
            kind = "removed" if two is None else "added" if one is None else "same" if one == two else "changed"
            found.append(RowChange(table, kind, one, two))  # type: ignore[arg-type]
    return found


def _keyed(table: str, rows: Iterable[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    names = _KEYS.get(table)
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for number, row in enumerate(rows):
        key = tuple(row.get(name) for name in names) if names else (number,)
        found[key if key not in found else (*key, number)] = row  # the careful layout repeats ids of two sources
    return found
