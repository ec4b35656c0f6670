"""`ParserWorkbench`: what a parser makes of a file, record by record."""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Any

import ipywidgets as w
import traitlets as t

from crystal_nb.adapters.base import Adapter, SourceAdapter
from crystal_nb.config import Config
from crystal_nb.records import Candidate, printable
from crystal_nb.trial import ParserTrial, try_parser
from crystal_nb.widgets import workbench_html
from crystal_nb.widgets.base import Panel, button, row
from crystal_nb.widgets.markup import window
from crystal_nb.widgets.record_table import RecordTable
from crystal_nb.widgets.workbench_view import MESSAGE_COLUMNS, RECORD_COLUMNS, SHOWN, Bench, Versions

__all__ = ["ParserWorkbench"]

ROWS = 90
"""Rows of each side that are in the page at once."""


class ParserWorkbench(Panel):
    """Raw records of a file on the left, the messages that a parser makes of them on the right.

    Parameters
    ----------
    adapter : adapter or str
        The parser. When a cell is run again that defines an adapter of the same name, that one is taken.
    path : path or Candidate
        The file, wherever it is.
    other : adapter or str, optional
        A second parser, to stand beside the first, such as ``"copilot@1"``.
    id : str, optional
        Conversation in a file that holds several; default: the first.
    config : Config, optional
        The configuration to parse with.
    record : int, optional
        Record that is selected, with its message.
    message : int, optional
        Message that is selected, with its first record.
    shown : str
        Records that are listed: ``all``, ``messages``, ``metadata``, ``dropped`` or ``errors``.
    auto : bool
        Whether a parser that is defined anew is taken at once.

    Attributes
    ----------
    messages : tuple of Message
        What was parsed; read-only, as are the next three.
    dropped : tuple of int
        Records that are lost.
    errors : tuple of int
        Records that the parser fails on.
    trial : ParserTrial
        The whole trial.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> file = sorted(cnb.samples.home().glob(".claude/projects/*/*.jsonl"))[0]
    >>> bench = ParserWorkbench("claude-code", file)
    >>> bench.message = 0
    >>> bench.record in bench.records_of(0)
    True
    """

    title = "Parser"
    keywords = ("record", "message", "shown", "auto")

    record = t.Int(None, allow_none=True)
    message = t.Int(None, allow_none=True)
    shown = t.Enum(SHOWN, "all")
    auto = t.Bool(True)
    messages = t.Tuple(read_only=True)
    dropped = t.Tuple(read_only=True)
    errors = t.Tuple(read_only=True)
    trial = t.Instance(ParserTrial, read_only=True)

    def __init__(
        self,
        adapter: SourceAdapter | str,
        path: str | os.PathLike[str] | Candidate,
        *,
        other: SourceAdapter | str | None = None,
        id: str | None = None,
        config: Config | None = None,
        **traits: Any,
    ) -> None:
        super().__init__(**traits)
        self._adapter, self._path, self._other, self._id, self._config = adapter, path, other, id, config
        self._waiting = True
        self._try()
        self._make_controls()
        for name in self.keywords:
            if name in traits:
                setattr(self, name, traits[name])
        self._pair("record" if "record" in traits else "message")
        self._waiting = False
        self._refresh()
        self.observe(lambda change: self._on_choice(change.name), ["record", "message"])
        self.observe(lambda change: self._refresh(), "shown")
        _watch_cells(self)

    def __repr__(self) -> str:
        return printable(f"ParserWorkbench({self._name(self._adapter)}: {self._bench.headline()})")

    @t.validate("record", "message")
    def _check_place(self, proposal: Any) -> Any:
        name = proposal.trait.name
        count = len(self._bench.rows if name == "record" else self._bench.messages)
        if proposal.value is not None and not 0 <= proposal.value < count:
            raise t.TraitError(f"there is no {name} {proposal.value}; there are {count:,}, from 0 on")
        return proposal.value

    def records_of(self, message: int) -> list[int]:
        """Records that a message came from."""
        return self._bench.records_of.get(message, [])

    def run(self, adapter: SourceAdapter | str | None = None) -> None:
        """Parse the file again, with another parser if one is given."""
        before, chosen = self._adapter, (self.record, self.message)
        self._adapter = before if adapter is None else adapter
        self._waiting = True
        try:
            self.record = self.message = None
            self._try()
        except BaseException:  # as of a file that is gone: the page goes on showing the trial before it
            self._adapter, (self.record, self.message) = before, chosen
            raise
        finally:
            self._waiting = False
        self._refresh()

    def body(self) -> str:
        """What the panel shows, as HTML."""
        b = self._bench
        sides = workbench_html.both_sides(b)
        return workbench_html.books(b) + workbench_html.failure(b) + sides + self._chosen_html()

    def render(self) -> None:
        """Show the present state; the two lists have controls of their own."""
        b = self._bench
        self._head.value = f'<div class="cnb">{workbench_html.books(b)}{workbench_html.failure(b)}</div>'
        self._result.value = f'<div class="cnb">{self._chosen_html()}</div>'

    def _chosen_html(self) -> str:
        shown = workbench_html.pair(self._bench, self.record, self.message)
        if self._versions is None:
            return shown
        names = (self._name(self._adapter), self._name(self._other))
        return shown + workbench_html.versions(self._versions, names)

    @staticmethod
    def _name(adapter: Any) -> str:
        return adapter if isinstance(adapter, str) else str(getattr(adapter, "parser_version", adapter))

    def _try(self) -> None:
        trial = try_parser(self._adapter, self._path, conversation=self._id, config=self._config)
        self._bench, self._versions = Bench(trial), None
        if self._other is not None:
            other = try_parser(self._other, self._path, conversation=self._id, config=self._config)
            self._versions = Versions(self._bench, Bench(other))
        self.set_trait("trial", trial)
        self.set_trait("messages", self._bench.messages)
        self.set_trait("dropped", tuple(self._bench.shown("dropped")))
        self.set_trait("errors", tuple(self._bench.shown("errors")))

    def _on_choice(self, name: str) -> None:
        if not self._waiting:
            self._waiting = True
            self._pair(name)
            self._waiting = False
            self._refresh()

    def _pair(self, name: str) -> None:
        """Choose on the other side what belongs to the choice on this one."""
        if name == "record":
            row = None if self.record is None else self._bench.rows[self.record]
            known = row is not None and row.message is not None and row.message < len(self._bench.messages)
            self.message = row.message if known and row is not None else None
        elif self.message is not None:
            behind = self.records_of(self.message)
            self.record = behind[0] if behind else None
        else:
            self.record = None

    def _refresh(self) -> None:
        with self.quiet():
            self._show_state()
        self.render()

    def _redefined(self, namespace: dict[str, Any]) -> None:
        """Take the adapter of the same name that a cell has defined anew."""
        if not self.auto or isinstance(self._adapter, str):
            return
        found = [v for v in namespace.values() if isinstance(v, Adapter) and v.name == self._adapter.name]
        if found and all(v is not self._adapter for v in found):
            self.guarded(lambda: self.run(found[-1]))(None)

    # Controls ---------------------------------------------------------------------------------------------

    def _make_controls(self) -> None:
        self._head = w.HTML()
        self._shown = w.Dropdown(description="Show", options=SHOWN)
        self._auto = w.Checkbox(description="take a parser that is defined anew", indent=False)
        self.on_change(self._shown, lambda: self.set_trait("shown", self._shown.value))
        self.on_change(self._auto, lambda: self.set_trait("auto", self._auto.value))
        again = button("Run again", self.guarded(self.run), "Read the file and parse it again")
        self._listed: list[int] = []
        self._starts = {"record": 0, "message": 0}
        self._records = self._table("Raw records", RECORD_COLUMNS, "record")
        self._messages = self._table("Messages", MESSAGE_COLUMNS, "message")
        sides = [w.VBox([side.control]) for side in (self._records, self._messages)]
        for side in sides:
            side.add_class("cnb-list")
            side.add_class("cnb-half")
        self.show(row(again, self._shown, self._auto), self._head, row(*sides))

    def _table(self, label: str, columns: tuple[str, ...], name: str) -> RecordTable:
        return RecordTable(
            label,
            columns,
            lambda n: self.guarded(lambda: self._pick(name, self._starts[name] + n))(None),
            lambda by: self.guarded(lambda: self._turn(name, by))(None),
        )

    def _pick(self, name: str, place: int) -> None:
        setattr(self, name, self._listed[place] if name == "record" else place)

    def _turn(self, name: str, by: int) -> None:
        """Select the row after the last or before the first one that is shown."""
        count = len(self._listed) if name == "record" else len(self._bench.messages)
        place = self._starts[name] + (ROWS if by > 0 else -1)
        if 0 <= place < count:
            self._pick(name, place)

    def _show_state(self) -> None:
        self._shown.value, self._auto.value = self.shown, self.auto
        b = self._bench
        self._listed = b.shown(self.shown)
        at = self._listed.index(self.record) if self.record in self._listed else None
        shown = self._window("record", len(self._listed), at)
        behind = set(self.records_of(self.message)) if self.message is not None else set()
        numbers = [self._listed[n] for n in shown]
        marked = [n for n, number in enumerate(numbers) if number in behind]
        place = None if at is None else at - shown.start
        rows = [b.record_cells(n) for n in numbers]
        self._records.show(rows, place, shown.start, len(self._listed), marked)
        shown = self._window("message", len(b.messages), self.message)
        place = None if self.message is None else self.message - shown.start
        self._messages.show([b.message_cells(n) for n in shown], place, shown.start, len(b.messages))

    def _window(self, name: str, count: int, at: int | None) -> range:
        """What is shown stays where it is as long as the choice is in it."""
        shown = range(min(self._starts[name], max(0, count - ROWS)), min(count, self._starts[name] + ROWS))
        if at is not None and at not in shown:
            shown = window(count, at, ROWS)
        self._starts[name] = shown.start
        return shown


def _watch_cells(bench: ParserWorkbench) -> None:
    """Let a workbench hear of cells that are run, until its own cell is run again and so makes another one."""
    with contextlib.suppress(ImportError):
        from IPython.core.getipython import get_ipython

        shell = get_ipython()
        if shell is None:
            return
        known, own = weakref.ref(bench), [""]

        def heard(*result: Any) -> None:
            alive, cell = known(), _cell_of(*result)
            if alive is None or alive.comm is None or cell in own:
                shell.events.unregister("post_run_cell", heard)
                return
            own[:] = [cell] if own == [""] else own
            alive._redefined(shell.user_ns)

        shell.events.register("post_run_cell", heard)


def _cell_of(result: Any = None) -> Any:
    """Id of the cell that was run; an object of its own where the front end gives none."""
    cell = getattr(getattr(result, "info", None), "cell_id", None)
    return object() if cell is None else cell
