"""A table of records with row selection and keyboard, by anywidget; a plain list stands in without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import ipywidgets as w
import traitlets as t

__all__ = ["RecordTable"]


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
        "first": t.Int(0).tag(sync=True),
        "total": t.Int(0).tag(sync=True),
        "selected": t.Int(-1).tag(sync=True),
        "marked": t.List().tag(sync=True),
    }
    return type("RecordGrid", (anywidget.AnyWidget,), traits)


class RecordTable:
    """Rows of which one is selected.

    Parameters
    ----------
    label
        What the rows are.
    columns
        Names of the columns.
    on_select
        Called with the row that a person selected.
    on_turn
        Called with 1 or -1 when a person goes beyond the last or the first row.

    Attributes
    ----------
    control
        The widget.
    turners : tuple of Widget
        Buttons that go beyond the rows, where the plain list stands in, whose keyboard can't; else none.
    """

    def __init__(
        self,
        label: str,
        columns: Sequence[str],
        on_select: Callable[[int], None],
        on_turn: Callable[[int], None],
    ) -> None:
        grid = _grid_class()
        self._on_select, self._quiet = on_select, False
        self.turners: tuple[w.Widget, ...] = ()
        if grid is None:
            layout = w.Layout(width="98%")
            self.control: w.Widget = w.Select(description=label, options=[], rows=12, layout=layout)
            self.control.observe(self._selected, "value")
            self.turners = tuple(_turner(f"{way} {label.lower()}", by, on_turn) for way, by in _WAYS)
            return
        self.control = grid(label=label, columns=list(columns))
        self.control.observe(self._selected, "selected")
        self.control.on_msg(lambda _, content, buffers: on_turn(1 if content.get("turn") == 1 else -1))

    def show(
        self,
        rows: Sequence[Sequence[str]],
        selected: int | None,
        first: int,
        total: int,
        marked: Sequence[int] = (),
    ) -> None:
        """Show other rows, of which one is selected or none, and some may be marked."""
        self._quiet, at = True, -1 if selected is None else selected
        try:
            if isinstance(self.control, w.Select):
                listed = [(_line(row, n in set(marked)), n) for n, row in enumerate(rows)]
                for turner, none in zip(self.turners, (first == 0, first + len(rows) >= total), strict=True):
                    turner.disabled = none
                with self.control.hold_sync():
                    if list(self.control.options) != listed:
                        self.control.options = listed
                    self.control.value = selected
            else:
                with self.control.hold_sync():
                    self.control.first, self.control.total = first, total
                    self.control.selected, self.control.marked = at, list(marked)
                    self.control.rows = [list(row) for row in rows]
        finally:
            self._quiet = False

    def _selected(self, change: Any) -> None:
        if not self._quiet and change.new is not None and change.new >= 0:
            self._on_select(change.new)


_WAYS = (("Earlier", -1), ("Later", 1))


def _turner(label: str, by: int, on_turn: Callable[[int], None]) -> w.Button:
    made = w.Button(description=label, tooltip=label, layout=w.Layout(width="auto"))
    made.on_click(lambda _: on_turn(by))
    return made


def _line(row: Sequence[str], marked: bool) -> str:
    return ("• " if marked else "") + " · ".join(cell for cell in row if cell)
