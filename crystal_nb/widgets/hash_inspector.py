"""`HashInspector`: why a content hash is what it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import ipywidgets as w
import traitlets as t

from crystal_nb import ecma
from crystal_nb.errors import ConfigError
from crystal_nb.hashing import HASH_FIELDS
from crystal_nb.records import Conversation, printable
from crystal_nb.widgets import hash_html
from crystal_nb.widgets.base import Panel, button, options, row
from crystal_nb.widgets.edit_box import editable, parse_value
from crystal_nb.widgets.hash_choices import conversations, field_options, label, searched
from crystal_nb.widgets.hash_view import (
    Inspection,
    field_value,
    value_json,
)
from crystal_nb.widgets.markup import window

__all__ = ["HashInspector"]

_SHOWN = 200
_WIDE = w.Layout(width="340px")


class HashInspector(Panel):
    """Edit a conversation and watch what its content hash makes of that.

    Parameters
    ----------
    subject : Conversation, Corpus or conversations
        What to look at.
    conversation : int
        Position of the conversation that is shown.
    message : int
        Position of the message that is shown.
    fields : sequence of str
        Hashed fields that are left in the canonical text; default: all. Without one, `value` is the
        hash that an importer would have that leaves it out.
    edits : sequence of tuple
        What was done to the conversation, as `hash_view` has it; a cell can set it.
    other : int, optional
        Position of a conversation to compare with.

    Attributes
    ----------
    value : str
        Hash of the edited conversation; read-only, as are the next three.
    changed : bool
        Whether it differs from that of the conversation as it was given.
    verdict : str
        Why, in words.
    edited : Conversation
        The edited conversation.

    Examples
    --------
    >>> from crystal_nb import Conversation, Message
    >>> inspector = HashInspector(Conversation("codex", "7", (Message("user", "hi"),)))
    >>> inspector.edits = [("set", 0, "timestamp", "2026-01-01")]
    >>> inspector.changed, inspector.verdict
    (False, 'timestamp is not part of the hash: unchanged')
    """

    title = "Content hash"
    keywords = ("conversation", "fields", "edits", "message", "other")

    conversation = t.Int(0)
    message = t.Int(0)
    fields = t.Tuple(HASH_FIELDS)
    edits = t.Tuple()
    other = t.Int(None, allow_none=True)
    value = t.Unicode(read_only=True)
    changed = t.Bool(read_only=True)
    verdict = t.Unicode(read_only=True)
    edited = t.Instance(Conversation, read_only=True)

    def __init__(self, subject: Conversation | Iterable[Conversation], **traits: Any) -> None:
        super().__init__(**traits)
        self._known = conversations(subject)
        self._waiting = False
        self._make_controls()
        self._refresh()
        self.observe(self._on_conversation, "conversation")
        self.observe(self._on_state, ["fields", "edits"])
        self.observe(self._on_place, ["message", "other"])
        for name in self.keywords:  # in this order: which messages there are depends on what comes before
            if name in traits:
                setattr(self, name, traits[name])

    def __repr__(self) -> str:
        c = self._known[self.conversation]
        name = printable(f"{c.source[:40]} {ecma.to_text(c.id)[:80]}")
        return f"HashInspector({name}: {self.value[:16]}, {self.verdict})"

    @t.validate("conversation", "other")
    def _check_conversation(self, proposal: Any) -> Any:
        if proposal.value is not None and not 0 <= proposal.value < len(self._known):
            raise t.TraitError(f"there is no conversation {proposal.value}; there are {len(self._known)}, from 0 on")
        return proposal.value

    @t.validate("message")
    def _check_message(self, proposal: Any) -> int:
        count = len(self._inspection.edited.messages)
        if not 0 <= proposal.value < max(1, count):
            raise t.TraitError(f"there is no message {proposal.value}; there are {count:,}, from 0 on")
        return int(proposal.value)

    @t.validate("fields", "edits")
    def _check(self, proposal: Any) -> Any:
        given = {"fields": self.fields, "edits": self.edits, proposal.trait.name: proposal.value}
        try:
            Inspection(self._known[self.conversation], given["edits"], given["fields"])
        except ConfigError as error:
            raise t.TraitError(str(error)) from None
        return tuple(proposal.value) if proposal.trait.name == "fields" else tuple(map(tuple, proposal.value))

    @property
    def inspection(self) -> Inspection:
        """Before and after, as `hash_view` has it."""
        return self._inspection

    def edit(self, *edit: Any) -> None:
        """Do one more edit, as in ``inspector.edit("drop", 1)``."""
        self.edits = (*self.edits, edit)

    def undo(self) -> None:
        """Take the last edit back."""
        self.edits = self.edits[:-1]

    def reset(self) -> None:
        """Take all edits back and have all fields in the canonical text again."""
        with self._at_once():
            self.edits, self.fields = (), HASH_FIELDS

    def body(self) -> str:
        """What the panel shows, as HTML."""
        return self._panels(hash_html.LINES)

    def whole(self) -> str:
        """The same with the whole canonical text, as far as a page has room for it."""
        return self._panels(hash_html.PAGE_LINES)

    def _panels(self, room: int) -> str:
        found = self._inspection
        shown = hash_html.inspection(found, self._at(), room)
        if self.other is not None:
            names = (f"this one, {self._name(self.conversation)}", self._name(self.other))
            shown += hash_html.comparison(found.edited, self._known[self.other], names, found.without)
        return shown

    def _name(self, position: int) -> str:
        c = self._known[position]
        id = ecma.to_text(c.id)
        title = c.slug if isinstance(c.slug, str) else c.messages[0].content if c.messages else "no message"
        return f"{c.source} {id if len(id) <= 12 else '…' + id[-8:]}: {title[:40]}"

    def _at(self) -> int | None:
        """Position of the message that is shown, inside what is left."""
        count = len(self._inspection.edited.messages)
        return max(0, min(self.message, count - 1)) if count else None

    def _on_conversation(self, change: Any) -> None:
        with self._at_once():
            self.edits, self.message = (), 0

    def _on_state(self, change: Any) -> None:
        if not self._waiting:
            self._refresh()

    def _on_place(self, change: Any) -> None:
        if not self._waiting:
            self._show()

    @contextmanager
    def _at_once(self) -> Iterator[None]:
        """Set several traits and show the outcome once."""
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False
            self._refresh()

    def _refresh(self) -> None:
        self._inspection = found = Inspection(self._known[self.conversation], self.edits, self.fields)
        with self.hold_trait_notifications():
            self.message = self._at() or 0
            self.set_trait("edited", found.edited)
            self.set_trait("value", found.hashes[1])
            self.set_trait("changed", found.changed)
            self.set_trait("verdict", found.verdict)
        self._show()

    def _show(self) -> None:
        with self.quiet():
            self._show_state()
        self.render()

    # Controls ---------------------------------------------------------------------------------------------

    def _make_controls(self) -> None:
        self._find = w.Text(
            description="Find conversation", placeholder="id, title or first message", continuous_update=False
        )
        self._conversation = w.Dropdown(description="Conversation", layout=_WIDE)
        self._other = w.Dropdown(description="Compare with", layout=_WIDE)
        self._message = w.Dropdown(description="Message", layout=_WIDE)
        self._checks = {name: w.Checkbox(True, description=name, indent=False) for name in HASH_FIELDS}
        self._field = w.Dropdown(description="Field", value="content", options=field_options())
        self._kind = w.Dropdown(description="as", options=["text", "JSON", "absent"], layout=w.Layout(width="120px"))
        # Leaving the box gives the field its text: a kernel may see the click on a button before the text that was
        # sent just before it (ipykernel 7 with JupyterLab's subshells), so nothing may need both in order.
        self._text = w.Textarea(
            description="New value", continuous_update=False, layout=w.Layout(width="520px", height="64px")
        )
        self._buttons = {
            name: button(name, self.guarded(handler), hint) for name, (handler, hint) in self._actions().items()
        }
        self.on_change(self._find, self._show_found)
        self.on_change(self._conversation, lambda: self.set_trait("conversation", self._conversation.value))
        self.on_change(self._other, lambda: self.set_trait("other", self._other.value))
        self.on_change(self._message, lambda: self.set_trait("message", self._message.value))
        self.on_change(self._field, self._load_quietly)
        self.on_change(self._text, self._apply)
        self.on_change(self._kind, self._choose_kind)
        for check in self._checks.values():
            self.on_change(check, self._switch)
        several = [row(self._find, self._conversation), row(self._other)] if len(self._known) > 1 else []
        names = w.HTML('<div class="cnb"><b>In the canonical text</b></div>')
        b = self._buttons
        self.show(
            *several,
            row(self._message, b["Earlier"], b["Later"], b["Move up"], b["Move down"], b["Drop"], b["Add after"]),
            row(names, *self._checks.values()),
            row(self._field, self._kind, self._text, b["Apply"], b["Undo"], b["Reset"]),
        )

    def _actions(self) -> dict[str, tuple[Any, str]]:
        return {
            "Earlier": (lambda: self._step(-1), "Show the message before"),
            "Later": (lambda: self._step(1), "Show the next message"),
            "Move up": (lambda: self._move(-1), "Let the message come before the one before it"),
            "Move down": (lambda: self._move(1), "Let the message come after the next one"),
            "Drop": (self._drop, "Leave the message out"),
            "Add after": (self._add, "Put a new message after this one"),
            "Apply": (self._apply, "Give the field the new value"),
            "Undo": (self.undo, "Take the last edit back"),
            "Reset": (self.reset, "Take all edits back"),
        }

    def _step(self, by: int) -> None:
        count = len(self._inspection.edited.messages)
        self.message = max(0, min((self._at() or 0) + by, count - 1))

    def _here(self) -> int:
        at = self._at()
        if at is None:
            raise ConfigError("the conversation has no message; add one")
        return at

    def _move(self, by: int) -> None:
        here = self._here()
        self.edit("move", here, here + by)
        self.message = here + by

    def _drop(self) -> None:
        self.edit("drop", self._here())

    def _add(self) -> None:
        at = self._at()
        to = 0 if at is None else at + 1
        self.edit("add", to, "user", "a new message")
        self.message = to

    def _apply(self) -> None:
        """Give the field the value in the box, unless it has it already."""
        owner, field = self._field.value.rpartition(".")[::2]
        at = None if owner else self._here()
        value = parse_value(self._kind.value, self._text.value)
        now = field_value(self._inspection.edited, at, field)
        if editable(now) != (self._kind.value, self._text.value) and value_json(value) != value_json(now):
            self.edit("set", at, field, value)

    def _choose_kind(self) -> None:
        if self._kind.value == "absent":
            self._apply()

    def _switch(self) -> None:
        self.fields = tuple(name for name in HASH_FIELDS if self._checks[name].value)

    # What the controls show -------------------------------------------------------------------------------

    def _show_found(self) -> None:
        with self.quiet():
            self._show_conversations()

    def _show_state(self) -> None:
        self._show_conversations()
        at, messages = self._at(), self._inspection.edited.messages
        shown = window(len(messages), at or 0, _SHOWN)
        options(self._message, [(label(n, messages[n]), n) for n in shown] or [("none", None)], at)
        for name, check in self._checks.items():
            check.value = name in self.fields
        self._load()

    def _show_conversations(self) -> None:
        wanted = self._find.value.casefold()
        found = [n for n, c in enumerate(self._known) if wanted in searched(c)] if wanted else range(len(self._known))
        at = self.conversation
        shown = list(found)[:_SHOWN] if wanted else list(window(len(self._known), at, _SHOWN))
        listed = [(printable(self._name(n)), n) for n in shown]
        options(self._conversation, listed if at in shown else [(printable(self._name(at)), at), *listed], at)
        others = [o for o in listed if o[1] != self.other]
        picked = [] if self.other is None else [(printable(self._name(self.other)), self.other)]
        options(self._other, [("nothing", None), *picked, *others], self.other)

    def _load_quietly(self) -> None:
        with self.quiet():
            self._load()

    def _load(self) -> None:
        """Fill the edit box with the field's present value."""
        owner, field = self._field.value.rpartition(".")[::2]
        at = None if owner else self._at()
        if not owner and at is None:
            kind, text = "text", ""
        else:
            kind, text = editable(field_value(self._inspection.edited, at, field))
        self._kind.value, self._text.value = kind, text
        self._text.placeholder = "a new value replaces it; long ones are not shown here"
