"""What all widgets share: keywords that are checked, errors that are seen, a page without a kernel."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

import ipywidgets as w

from crystal_nb.widgets import markup

__all__ = ["Panel", "button", "checked_keywords", "options", "row"]


class Panel(w.VBox):
    """A box of controls with a panel of results below.

    A subclass names its settable traits in ``keywords``, fills `controls`, and gives `body` and `refresh`.
    """

    title: ClassVar[str] = ""
    keywords: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **traits: Any) -> None:
        named = [name for name in signature(type(self).__init__).parameters if name not in ("self", "traits")]
        checked_keywords(type(self).__name__, traits, (*named, *self.keywords, "layout"))
        self._quiet = False
        self._result, self._alert = w.HTML(), w.HTML()
        super().__init__(**{k: v for k, v in traits.items() if k == "layout"})
        self.add_class("cnb-widget")

    def show(self, *controls: w.Widget) -> None:
        """Put the controls on the page, the results below them."""
        head = f'{markup.style()}<div class="cnb"><p class="cnb-title"><b>{self.title}</b></p></div>'
        self.children = (w.HTML(head), *controls, self._alert, self._result, *_key_guard())

    def body(self) -> str:
        """What the panel shows, as HTML."""
        raise NotImplementedError

    def render(self) -> None:
        """Show the present state; what failed before it is no longer of interest."""
        self._alert.value = ""
        self._result.value = f'<div class="cnb">{self.result()}</div>'

    def result(self) -> str:
        """What stands below the controls: all that the panel shows, unless some of it has controls of its own."""
        return self.body()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Let controls be set without their handlers."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    def guarded(self, handler: Callable[[], None]) -> Callable[[Any], None]:
        """The handler for a control: its error is shown in the page, where Lab would hide it in a log."""

        def handle(change: Any) -> None:
            if self._quiet:
                return
            try:
                handler()
            except Exception as error:
                self.show_again()
                self._alert.value = f'<div class="cnb">{markup.alert(_message(error))}</div>'
            else:
                self._alert.value = ""

        return handle

    def on_change(self, control: w.Widget, handler: Callable[[], None], name: str = "value") -> None:
        """Call the handler when a person changes the control."""
        control.observe(self.guarded(handler), name)

    def show_again(self) -> None:
        """Let the controls show the state, after one of them has asked for what can't be."""

    def whole(self) -> str:
        """What a page of its own shows: the panel, unless there is more to see where there is room."""
        return self.body()

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The present state as a page of its own, which needs no kernel.

        Parameters
        ----------
        path
            Where to write it, too.
        """
        page = markup.page(self.title, self.whole())
        if path is not None:
            Path(path).expanduser().write_text(page, encoding="utf-8")
        return page

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        data = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        return markup.panel(self.title, self.body())


@cache
def _guard_class() -> Any:
    try:
        import anywidget
    except ImportError:
        return None
    source = files(__package__).joinpath("keys.js").read_text(encoding="utf-8")
    return type("KeyGuard", (anywidget.AnyWidget,), {"_esm": source})


def _key_guard() -> list[w.Widget]:
    """What keeps JupyterLab's shortcuts out of a panel; nothing where anywidget is not installed."""
    made = _guard_class()
    return [] if made is None else [made(layout=w.Layout(height="0", margin="0", overflow="hidden"))]


def _message(error: Exception) -> str:
    text = str(error) or "no message"
    return text if type(error).__module__.startswith(("crystal_nb", "traitlets")) else f"{type(error).__name__}: {text}"


def checked_keywords(name: str, given: dict[str, Any], allowed: tuple[str, ...]) -> None:
    """Refuse a keyword that means nothing, which traitlets would only warn of.

    >>> checked_keywords("HashInspector", {"mesage": 1}, ("message", "fields"))
    Traceback (most recent call last):
    TypeError: HashInspector has no keyword 'mesage'; did you mean 'message'? It takes message, fields.
    """
    for keyword in given:
        if keyword not in allowed:
            near = difflib.get_close_matches(keyword, allowed, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise TypeError(f"{name} has no keyword {keyword!r}; {hint}It takes {', '.join(allowed)}.")


def button(label: str, handler: Callable[[Any], None], hint: str = "", **layout: str) -> w.Button:
    """A button with its words on it."""
    made = w.Button(description=label, tooltip=hint or label, layout=w.Layout(width=layout.get("width", "auto")))
    made.on_click(handler)
    return made


def row(*controls: w.Widget) -> w.HBox:
    """Controls side by side, on more lines where there is no room."""
    made = w.HBox(list(controls))
    made.add_class("cnb-row")
    return made


def options(control: w.Widget, listed: Sequence[tuple[str, Any]], value: Any) -> None:
    """Give a control other options and a value in one message.

    In two, the second one could undo what a quick person chose between them.
    """
    with control.hold_sync():
        if list(control.options) != list(listed):
            control.options = listed
        if control.value != value:
            control.value = value
