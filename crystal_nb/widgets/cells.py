"""What a widget hears of the cells that are run: which variables hold its adapters, and which other ones later."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from crystal_nb.adapters.usable import looks_like_adapter

__all__ = ["Variables", "watch_cells"]


class Variables:
    """The variables that hold some adapters, so that what one of them holds later is found.

    Names that begin with an underline are left out: IPython keeps the outputs of cells in them.

    >>> from crystal_nb.adapters import get_adapter
    >>> variables, one, two = Variables(), get_adapter("codex"), get_adapter("trae")
    >>> variables.anew({"adapter": one}, {"mine": one, "_5": one})
    {}
    >>> variables.anew({"adapter": one}, {"mine": two, "_5": one})["adapter"] is two
    True
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, list[str]]] = {}

    def anew(self, sides: Mapping[str, Any], namespace: Mapping[str, Any]) -> dict[str, Any]:
        """Other adapters in the variables that have held those of the sides."""
        found: dict[str, Any] = {}
        claimed: set[str] = set()
        for side, adapter in sides.items():
            held = [n for n, v in namespace.items() if v is adapter and not n.startswith("_") and n not in claimed]
            if sum(other is adapter for other in sides.values()) > 1:
                held = held[:1]  # after "old = mytool", each side follows a variable of its own
            claimed.update(held)
            before, names = self._known.get(side, (None, []))
            names = list(dict.fromkeys((*(names if before is adapter else ()), *held)))
            self._known[side] = adapter, names
            others = [namespace[n] for n in names if n in namespace and _other(namespace[n], adapter)]
            if others:
                found[side] = others[0]
        return found


def _other(value: Any, adapter: Any) -> bool:
    return value is not adapter and not isinstance(value, type) and looks_like_adapter(value)


def watch_cells(widget: Any, heard: Callable[[Any, dict[str, Any]], None]) -> None:
    """Let a widget hear of cells that are run, until its own cell is run again and so makes another one.

    Parameters
    ----------
    widget
        The widget; nothing here keeps it alive.
    heard
        Called with the widget and the variables, now and after each cell.
    """
    with contextlib.suppress(ImportError):
        from IPython.core.getipython import get_ipython

        shell = get_ipython()
        if shell is None:
            return
        known, own = weakref.ref(widget), [""]

        def after_cell(*result: Any) -> None:
            alive, cell = known(), _cell_of(*result)
            if alive is None or alive.comm is None or cell in own:
                shell.events.unregister("post_run_cell", after_cell)
                return
            own[:] = [cell] if own == [""] else own
            heard(alive, shell.user_ns)

        heard(widget, shell.user_ns)
        shell.events.register("post_run_cell", after_cell)


def _cell_of(result: Any = None) -> Any:
    """Id of the cell that was run; an object of its own where the front end gives none."""
    cell = getattr(getattr(result, "info", None), "cell_id", None)
    return object() if cell is None else cell
