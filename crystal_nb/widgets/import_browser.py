"""`ImportBrowser`: what an import holds, and what it lost where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ipywidgets as w
import traitlets as t

from crystal_nb.corpus import Corpus
from crystal_nb.errors import ConfigError
from crystal_nb.records import Conversation, counted, printable
from crystal_nb.rehearsal import Rehearsal
from crystal_nb.report import ImportReport
from crystal_nb.store import Store
from crystal_nb.widgets import browse_html
from crystal_nb.widgets.base import Panel, button, options, row
from crystal_nb.widgets.browse_filters import checked_filters, matching
from crystal_nb.widgets.browse_store import NOTE
from crystal_nb.widgets.browse_view import COLUMNS, charts_of, choices, difference, entries_of, row_of
from crystal_nb.widgets.hash_inspector import HashInspector
from crystal_nb.widgets.record_table import RecordTable, beyond

__all__ = ["ImportBrowser"]

ROWS = 50
"""Rows of the list that are in the page at once."""


class ImportBrowser(Panel):
    """Look through the conversations of a corpus or a store.

    Parameters
    ----------
    subject : Corpus or Store
        What to look through.
    report : ImportReport or Rehearsal, optional
        Whose decisions are shown: what `import_all` or `rehearse` gave.
    filters : dict
        ``source``, ``project``, ``decision``: equal; ``since``, ``until``: a year, a month, a day (all of it
        counts) or a time, in UTC unless it has an offset; ``losses``: True for those that lost something, not
        of a store, which keeps no losses; ``text``: in the title or a message.
    selection : int, optional
        Row of ``corpus.conversations`` or ``store.conversations()`` that is shown; failures count on.
    page : int
        Page of the list.
    message : int
        Message from which the conversation is shown.

    Attributes
    ----------
    filtered : tuple of int
        Rows that pass the filters; read-only, as is the next one.
    conversation : Conversation or None
        The one that is selected.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> browser = ImportBrowser(cnb.parse(cnb.scan("codex", config=config), config=config))
    >>> browser.filters = {"losses": True}
    >>> browser.selection = browser.filtered[0]
    >>> browser.conversation.source
    'codex'
    """

    title = "Import"
    keywords = ("filters", "selection", "page", "message")

    filters = t.Dict()
    selection = t.Int(None, allow_none=True)
    page = t.Int(0)
    message = t.Int(0)
    filtered = t.Tuple(read_only=True)
    conversation = t.Instance(Conversation, allow_none=True, read_only=True)

    def __init__(
        self, subject: Corpus | Store, *, report: ImportReport | Rehearsal | None = None, **traits: Any
    ) -> None:
        super().__init__(**traits)
        self._of_store = isinstance(subject, Store)
        self._entries = entries_of(subject, report)
        self._waiting = False
        self._inspector: HashInspector | None = None
        self._difference: tuple[str, str] | None = None
        self._find()
        self._make_controls()
        self._refresh()
        self.observe(self._on_filters, "filters")
        self.observe(self._on_selection, "selection")
        self.observe(self._on_place, ["page", "message"])
        for name in self.keywords:  # in this order: a selection turns the page and has the messages
            if name in traits:
                setattr(self, name, traits[name])

    def __repr__(self) -> str:
        at = "nothing selected" if self.selection is None else f"row {self.selection}"
        return printable(
            f"ImportBrowser({len(self.filtered):,} of {counted(len(self._entries), 'conversation')}, {at})"
        )

    @t.validate("filters")
    def _check_filters(self, proposal: Any) -> Any:
        try:
            checked = checked_filters(proposal.value)
        except ConfigError as error:
            raise t.TraitError(str(error)) from None
        if self._of_store and "losses" in checked:
            raise t.TraitError(f"the filter losses can't be used here. {NOTE}")
        return checked

    @t.validate("selection")
    def _check_selection(self, proposal: Any) -> Any:
        if proposal.value is not None and not 0 <= proposal.value < len(self._entries):
            raise t.TraitError(f"there is no row {proposal.value}; there are {len(self._entries):,}, from 0 on")
        return proposal.value

    @t.validate("page")
    def _check_page(self, proposal: Any) -> Any:
        return max(0, min(proposal.value, self._pages() - 1))

    @t.validate("message")
    def _check_message(self, proposal: Any) -> Any:
        count = len(self.conversation.messages) if self.conversation else 0
        return max(0, min(proposal.value, count - 1))

    def body(self) -> str:
        """What the panel shows, as HTML."""
        start = self.page * ROWS
        listed, count = self.filtered[start : start + ROWS], len(self.filtered)
        shown = browse_html.filtered_by(self.filters) + browse_html.listing(self._entries, listed, start, count)
        return shown + self._note() + self._charts + self._selected_html()

    def _note(self) -> str:
        return f"<p>{NOTE}</p>" if self._of_store else ""

    def render(self) -> None:
        """Show the present state; the charts have a control of their own."""
        told = f"Charts of these {len(self.filtered):,} conversations"
        folded = f'<div class="cnb"><details><summary>{told}</summary>{self._charts}</details></div>'
        if self._figures.value != folded:  # one that is open stays open
            self._figures.value = folded
        super().render()

    def result(self) -> str:
        """See `Panel.result`; the list is a control of its own."""
        return self._selected_html()

    def _selected_html(self) -> str:
        if self.selection is None:
            return "<p>Select a conversation to read it.</p>"
        entry = self._entries[self.selection]
        shown = browse_html.head(entry, self._difference)
        return shown + (browse_html.conversation(entry, self.conversation, self.message) if self.conversation else "")

    def _pages(self) -> int:
        return max(1, -(-len(self.filtered) // ROWS))

    def _find(self) -> None:
        self.set_trait("filtered", tuple(matching(self._entries, self.filters)))
        found = [self._entries[n] for n in self.filtered]
        self._charts = "".join(chart.to_html() for chart in charts_of(found, losses=not self._of_store))

    def _on_filters(self, change: Any) -> None:
        if self._waiting:
            return
        with self._or_as_before(change):
            self._find()
        self._waiting, self.page = True, self._places().get(self.selection, 0) // ROWS
        self._waiting = False
        self._refresh()

    def _on_selection(self, change: Any) -> None:
        if self._waiting:
            return
        with self._or_as_before(change):
            self._load()
        self._waiting, self.message = True, 0
        self.page = self._places().get(self.selection, self.page * ROWS) // ROWS
        self._waiting = False
        self._refresh()

    @contextmanager
    def _or_as_before(self, change: Any) -> Iterator[None]:
        """Where it can't be done, as with a store that is closed, the page goes on showing what it did."""
        try:
            yield
        except Exception:
            self._waiting = True
            self.set_trait(change.name, change.old)
            self._waiting = False
            with self.quiet():
                self._show_state()
            raise

    def _on_place(self, change: Any) -> None:
        if not self._waiting:
            self._refresh()

    def _load(self) -> None:
        entry = None if self.selection is None else self._entries[self.selection]
        loaded = None if entry is None else entry.load()
        self._difference = None if entry is None else difference(entry, loaded)
        self.set_trait("conversation", loaded)
        self._close_inspector()

    def _places(self) -> dict[int | None, int]:
        return {row: place for place, row in enumerate(self.filtered)}

    def _refresh(self) -> None:
        with self.quiet():
            self._show_state()
        self.render()

    # Controls ---------------------------------------------------------------------------------------------

    def _make_controls(self) -> None:
        lists = {
            name: [("any", ""), *_shown(choices(self._entries, name))] for name in ("source", "project", "decision")
        }
        self._filters: dict[str, w.Widget] = {
            name: w.Dropdown(description=name.capitalize(), options=listed, layout=w.Layout(width="250px"))
            for name, listed in lists.items()
        }
        day = {"placeholder": "2026-01-31", "continuous_update": False, "layout": w.Layout(width="180px")}
        self._filters["since"] = w.Text(description="Since", **day)
        self._filters["until"] = w.Text(description="Until", **day)
        self._filters["text"] = w.Text(
            description="Text", placeholder="in titles and messages", continuous_update=False
        )
        if not self._of_store:
            self._filters["losses"] = w.Checkbox(description="has losses", indent=False)
        for control in self._filters.values():
            self.on_change(control, self._filter)
        self._count, self._figures, self._inspect = w.HTML(), w.HTML(), w.VBox()
        self._table = RecordTable(
            "Conversations",
            COLUMNS,
            lambda n: self.guarded(lambda: self.set_trait("selection", n))(None),
        )
        list_box = w.VBox([self._table.control])
        list_box.add_class("cnb-list")
        b = {name: button(name, self.guarded(act), hint) for name, (act, hint) in self._actions().items()}
        f = self._filters
        self.show(
            row(f["source"], f["project"], f["decision"]),
            row(f["since"], f["until"], f["text"], *([] if self._of_store else [f["losses"]]), b["Clear filters"]),
            *([w.HTML(f'<div class="cnb">{self._note()}</div>')] if self._of_store else []),
            row(self._count, b["Previous page"], b["Next page"]),
            list_box,
            self._figures,
            row(b["Earlier messages"], b["Later messages"], b["Inspect the hash"]),
            self._inspect,
        )

    def _actions(self) -> dict[str, tuple[Any, str]]:
        more = browse_html.MESSAGES
        return {
            "Clear filters": (lambda: self.set_trait("filters", {}), "Show all conversations"),
            "Previous page": (lambda: self._turn(-1), "Rows before these"),
            "Next page": (lambda: self._turn(1), "Rows after these"),
            "Earlier messages": (lambda: self.set_trait("message", self.message - more), "Messages before these"),
            "Later messages": (self._later, "Messages after these"),
            "Inspect the hash": (self._open_inspector, "See why its hash is what it is"),
        }

    def _filter(self) -> None:
        self.filters = {name: control.value for name, control in self._filters.items()}

    def _turn(self, by: int) -> None:
        if 0 <= self.page + by < self._pages():
            self.page += by

    def _later(self) -> None:
        if self.conversation and self.message + browse_html.MESSAGES < len(self.conversation.messages):
            self.message += browse_html.MESSAGES

    def _open_inspector(self) -> None:
        if self.conversation is None:
            raise ConfigError("select a conversation first")
        self._close_inspector()
        self._inspector = HashInspector(self.conversation, message=self.message)
        told = []
        if self._difference is not None and self.selection is not None:
            differ = browse_html.two_hashes(self._entries[self.selection], *self._difference)
            told.append(w.HTML(f'<div class="cnb">{differ}</div>'))
        self._inspect.children = (*told, self._inspector)

    def _close_inspector(self) -> None:
        self._inspect.children = ()
        if self._inspector is not None:
            self._inspector.close()
            self._inspector = None

    def _show_state(self) -> None:
        for name, control in self._filters.items():
            value = self.filters.get(name, False if name == "losses" else "")
            if name in ("source", "project", "decision"):
                known = [v for _, v in control.options]
                options(control, [*control.options, *_shown([value] if value not in known else [])], value)
            else:
                control.value = value
        start = self.page * ROWS
        shown = self.filtered[start : start + ROWS]
        rows = [row_of(self._entries[n]) for n in shown]
        self._table.show(rows, shown, self.selection, start, len(self.filtered), beyond(self.filtered, start, ROWS))
        self._count.value = (
            f'<div class="cnb" role="status" data-count="{len(self.filtered)}"><b>{len(self.filtered):,} of '
            f"{len(self._entries):,}</b> conversations, page {self.page + 1:,} of {self._pages():,}</div>"
        )


def _shown(values: list[str]) -> list[tuple[str, str]]:
    return [(printable(v[:60]), v) for v in values]
