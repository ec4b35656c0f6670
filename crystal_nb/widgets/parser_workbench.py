"""`ParserWorkbench`: what a parser makes of a file, record by record."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import ipywidgets as w
import traitlets as t

from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.config import Config
from crystal_nb.records import Candidate, printable
from crystal_nb.trial import ParserTrial, try_parser
from crystal_nb.widgets import workbench_html
from crystal_nb.widgets.base import Panel, button, row
from crystal_nb.widgets.cells import Variables, watch_cells
from crystal_nb.widgets.markup import window
from crystal_nb.widgets.record_table import RecordTable, beyond
from crystal_nb.widgets.workbench_view import MESSAGE_COLUMNS, RECORD_COLUMNS, SHOWN, Bench, Side, Versions

__all__ = ["ParserWorkbench"]

ROWS = 90
"""Rows of each side that are in the page at once."""
_INPUTS = ("adapter", "path", "other", "id")


class _Tried(NamedTuple):
    """What was tried, and what it gave."""

    inputs: dict[str, Any]
    bench: Bench
    versions: Versions | None


class ParserWorkbench(Panel):
    """Raw records of a file on the left, the messages that a parser makes of them on the right.

    Parameters
    ----------
    adapter : adapter or str
        The parser. When a cell gives the variable that holds it another adapter, that one is taken. This trait and
        the next three can be set; what can't be parsed at all is refused.
    path : path or Candidate
        The file, wherever it is.
    other : adapter or str, optional
        A second parser, to stand beside the first, such as ``"copilot@1"``. Its variable is followed, too.
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

    adapter = t.Any()
    path = t.Any()
    other = t.Any(None)
    id = t.Any(None)
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
        self._config, self._variables, self._waiting = config, Variables(), True
        self._make_controls()
        self._take(self._trial(adapter=adapter, path=path, other=other, id=id))
        self._waiting = True
        for name in self.keywords:
            if name in traits:
                setattr(self, name, traits[name])
        self._pair("record" if "record" in traits else "message")
        self._waiting = False
        self._refresh()
        self.observe(lambda change: self._on_input(), list(_INPUTS))
        self.observe(lambda change: self._on_choice(change.name), ["record", "message"])
        self.observe(lambda change: self._refresh(), ["shown", "auto"])
        watch_cells(self, ParserWorkbench._redefined)

    def __repr__(self) -> str:
        return printable(f"ParserWorkbench({self._name(self.adapter)}: {self._bench.headline()})")

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
        self._take(self._trial(**({} if adapter is None else {"adapter": adapter})))

    def body(self) -> str:
        """What the panel shows, as HTML."""
        b = self._bench
        sides = workbench_html.both_sides(self._sides())
        return workbench_html.books(b) + workbench_html.failure(b) + sides + self._chosen_html()

    def render(self) -> None:
        """Show the present state; the books stand above the two lists."""
        b = self._bench
        self._head.value = f'<div class="cnb">{workbench_html.books(b)}{workbench_html.failure(b)}</div>'
        super().render()

    def result(self) -> str:
        """See `Panel.result`; the two lists are controls."""
        return self._chosen_html()

    def show_again(self) -> None:
        """See `Panel.show_again`."""
        with self.quiet():
            self._show_state()

    def _chosen_html(self) -> str:
        shown = workbench_html.pair(self._bench, self.record, self.message)
        if self._versions is None:
            return shown
        names = (self._name(self.adapter), self._name(self.other))
        return shown + workbench_html.versions(self._versions, names)

    @staticmethod
    def _name(adapter: Any) -> str:
        return adapter if isinstance(adapter, str) else str(getattr(adapter, "parser_version", adapter))

    def _trial(self, **changes: Any) -> _Tried:
        """Parse with other inputs; nothing of the present state is touched."""
        inputs = {name: getattr(self, name) for name in _INPUTS} | changes

        def bench(adapter: Any) -> Bench:
            return Bench(try_parser(adapter, inputs["path"], conversation=inputs["id"], config=self._config))

        first, other = bench(inputs["adapter"]), inputs["other"]
        return _Tried(inputs, first, None if other is None else Versions(first, bench(other)))

    def _take(self, tried: _Tried) -> None:
        """Go over to a trial, with nothing selected."""
        self._waiting, self._tried = True, tried
        try:
            self.record = self.message = None
            self._bench, self._versions = tried.bench, tried.versions
            self._set_inputs()
            self.set_trait("trial", self._bench.trial)
            self.set_trait("messages", self._bench.messages)
            self.set_trait("dropped", tuple(self._bench.shown("dropped")))
            self.set_trait("errors", tuple(self._bench.shown("errors")))
        finally:
            self._waiting = False
        self._refresh()

    def _on_input(self) -> None:
        if self._waiting:
            return
        try:
            tried = self._trial()
        except BaseException:  # as of a file that is gone: the page goes on showing the trial before it
            self._set_inputs()
            raise
        self._take(tried)

    def _set_inputs(self) -> None:
        before, self._waiting = self._waiting, True
        for name, value in self._tried.inputs.items():
            self.set_trait(name, value)
        self._waiting = before

    def _on_choice(self, name: str) -> None:
        if not self._waiting:
            self._waiting = True
            self._pair(name)
            self._waiting = False
            self._refresh()

    def _pair(self, name: str) -> None:
        """Choose on the other side what belongs to the choice on this one."""
        if name == "record":
            gave = () if self.record is None else self._bench.messages_of(self.record)
            self.message = gave[0] if gave and gave[0] < len(self._bench.messages) else None
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
        """Take the adapters that a cell has put in the place of those of the bench."""
        found = self._variables.anew(self._own(), namespace)
        if found and self.auto:
            self.guarded(lambda: self._take(self._trial(**found)))(None)
            self._variables.anew(self._own(), namespace)

    def _own(self) -> dict[str, Any]:
        """The parsers that are no names of released ones."""
        sides = {"adapter": self.adapter, "other": self.other}
        return {name: adapter for name, adapter in sides.items() if not isinstance(adapter, str | None)}

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
        sides = [w.VBox([side.control, *side.turners]) for side in (self._records, self._messages)]
        for side in sides:
            side.add_class("cnb-list")
            side.add_class("cnb-half")
        self.show(row(again, self._shown, self._auto), self._head, row(*sides))

    def _table(self, label: str, columns: tuple[str, ...], name: str) -> RecordTable:
        return RecordTable(
            label,
            columns,
            lambda n: self.guarded(lambda: self.set_trait(name, n))(None),
        )

    def _show_state(self) -> None:
        self._shown.value, self._auto.value = self.shown, self.auto
        for made, side in zip((self._records, self._messages), self._sides(), strict=True):
            selected = None if side.selected is None else side.keys[side.selected]
            made.show(side.rows, side.keys, selected, side.first, side.total, side.beyond, side.marked)

    def _sides(self) -> tuple[Side, Side]:
        """What the two lists show: a window on each, what is selected, and what belongs to it."""
        b, record, message = self._bench, self.record, self.message
        self._listed = b.shown(self.shown)
        at = self._listed.index(record) if record in self._listed else None
        window = self._window("record", len(self._listed), at)
        numbers = [self._listed[n] for n in window]
        label = "Raw records" if self.shown == "all" else f"Raw records, {self.shown}"
        behind = [] if message is None else self.records_of(message)
        cells = [b.record_cells(n) for n in numbers]
        places = _places(numbers, record, behind)
        around = beyond(self._listed, window.start, len(window))
        left = Side(label, RECORD_COLUMNS, cells, numbers, window.start, len(self._listed), around, *places)
        window = self._window("message", len(b.messages), message)
        gave = () if record is None else b.messages_of(record)
        cells = [b.message_cells(n) for n in window]
        places = _places(window, message, gave)
        around = beyond(range(len(b.messages)), window.start, len(window))
        return left, Side("Messages", MESSAGE_COLUMNS, cells, window, window.start, len(b.messages), around, *places)

    def _window(self, name: str, count: int, at: int | None) -> range:
        """What is shown stays where it is as long as the choice is in it."""
        shown = range(min(self._starts[name], max(0, count - ROWS)), min(count, self._starts[name] + ROWS))
        if at is not None and at not in shown:
            shown = window(count, at, ROWS)
        self._starts[name] = shown.start
        return shown


def _places(shown: Sequence[int], selected: int | None, belong: Sequence[int]) -> tuple[int | None, tuple[int, ...]]:
    """Where in the window the selected one is, and those that belong to the other side's."""
    marked = set(belong)
    return shown.index(selected) if selected in shown else None, tuple(n for n, v in enumerate(shown) if v in marked)
