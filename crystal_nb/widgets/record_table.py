"""A table of records with row selection and keyboard, by anywidget; a plain list stands in without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import ipywidgets as w
import traitlets as t

__all__ = ["RecordTable", "beyond"]

_WAYS = "Earlier", "Later"


@cache
def _grid_class() -> Any:
    """The widget class; None where anywidget is not installed."""
    try:
        import anywidget
    except ImportError:
        return None
    source = files(__package__).joinpath("record_table.js").read_text(encoding="utf-8")
    traits = {
        "_esm": source,
        "label": t.Unicode().tag(sync=True),
        "columns": t.List().tag(sync=True),
        "rows": t.List().tag(sync=True),
        "row_keys": t.List().tag(sync=True),
        "beyond": t.List([-1, -1]).tag(sync=True),
        "first": t.Int(0).tag(sync=True),
        "total": t.Int(0).tag(sync=True),
        "selected": t.Int(-1).tag(sync=True),
        "marked": t.List().tag(sync=True),
    }
    return type("RecordGrid", (anywidget.AnyWidget,), traits)


class RecordTable:
    """Rows of which one is selected.

    Each row has a key, a number from 0 on, which says what it stands for: what a person selects stays the same when
    the rows are others by the time that the kernel hears of it.

    Parameters
    ----------
    label
        What the rows are.
    columns
        Names of the columns.
    on_select
        Called with the key of the row that a person selected, which may be the one before or after those shown.

    Attributes
    ----------
    control
        The widget.
    turners : tuple of Widget
        Buttons that go beyond the rows, where the plain list stands in, whose keyboard can't; else none.
    """

    def __init__(self, label: str, columns: Sequence[str], on_select: Callable[[int], None]) -> None:
        grid = _grid_class()
        self._on_select, self._quiet = on_select, False
        self.turners: tuple[w.Widget, ...] = ()
        if grid is None:
            layout = w.Layout(width="98%")
            self.control: w.Widget = w.Select(description=label, options=[], rows=12, layout=layout)
            self.control.observe(self._selected, "value")
            self._beyond = (-1, -1)
            self.turners = tuple(self._turner(f"{way} {label.lower()}", n) for n, way in enumerate(_WAYS))
            return
        self.control = grid(label=label, columns=list(columns))
        self.control.observe(self._selected, "selected")

    def show(
        self,
        rows: Sequence[Sequence[str]],
        keys: Sequence[int],
        selected: int | None,
        first: int,
        total: int,
        beyond: tuple[int, int],
        marked: Sequence[int] = (),
    ) -> None:
        """Show other rows; the selected one is named by its key, the marked ones by where they stand.

        ``beyond`` has the keys of the rows before and after these, -1 where there is none.
        """
        self._quiet, at = True, -1 if selected is None or selected not in keys else selected
        try:
            if isinstance(self.control, w.Select):
                lines = [_line(row, n in set(marked)) for n, row in enumerate(rows)]
                listed = list(zip(lines, keys, strict=True))
                self._beyond = beyond
                for turner, key in zip(self.turners, beyond, strict=True):
                    turner.disabled = key < 0
                with self.control.hold_sync():
                    if list(self.control.options) != listed:
                        self.control.options = listed
                    self.control.value = None if at < 0 else at
            else:
                with self.control.hold_sync():
                    self.control.first, self.control.total = first, total
                    self.control.selected, self.control.marked = at, list(marked)
                    self.control.beyond = list(beyond)
                    self.control.rows, self.control.row_keys = [list(row) for row in rows], list(keys)
        finally:
            self._quiet = False

    def _selected(self, change: Any) -> None:
        if not self._quiet and change.new is not None and change.new >= 0:
            self._on_select(change.new)

    def _turner(self, label: str, side: int) -> w.Button:
        made = w.Button(description=label, tooltip=label, layout=w.Layout(width="auto"))
        made.on_click(lambda _: self._on_select(self._beyond[side]))
        return made


def _line(row: Sequence[str], marked: bool) -> str:
    return ("• " if marked else "") + " · ".join(cell for cell in row if cell)


def beyond(keys: Sequence[int], start: int, count: int) -> tuple[int, int]:
    """Keys of the rows before and after a window on all of them, -1 where there is none.

    >>> beyond([10, 11, 12, 13], 1, 2), beyond([10, 11], 0, 2)
    ((10, 13), (-1, -1))
    """
    stop = start + count
    return keys[start - 1] if start else -1, keys[stop] if stop < len(keys) else -1
