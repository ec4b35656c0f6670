"""HTML of the widgets' panels: everything that comes from a history is escaped here, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from crystal_nb import ecma
from crystal_nb.records import printable

__all__ = ["alert", "block", "code", "page", "panel", "region", "style", "table", "text", "window"]

ROOM = 2_000
"""Characters of one value that a panel shows."""


@cache
def style() -> str:
    """The style sheet as an element; exported pages carry it with them."""
    return f"<style>{files(__package__).joinpath('style.css').read_text(encoding='utf-8')}</style>"


def text(value: object, room: int = ROOM) -> str:
    r"""One line of a value as harmless HTML; what can't be seen is escaped, what is too long is cut and counted.

    >>> text("<b>\x1b[31m")
    '&lt;b&gt;\\x1b[31m'
    """
    whole = ecma.to_text(value) if not isinstance(value, str) else value
    rest = len(whole) - room
    return escape(printable(whole if rest <= 0 else whole[:room])) + _more(rest)


def block(value: str, room: int = ROOM) -> str:
    r"""The same with its line breaks.

    >>> block("a\r\nb\u202e")
    'a\nb\\u202e'
    """
    shown = value[:room].replace("\r\n", "\n").split("\n")
    return "\n".join(escape(printable(line.replace("\t", "    "))) for line in shown) + _more(len(value) - room)


def _more(rest: int) -> str:
    return f" <em>… {rest:,} more characters</em>" if rest > 0 else ""


def code(value: object, room: int = ROOM) -> str:
    """A value in the type of data.

    >>> code("a&b")
    '<code>a&amp;b</code>'
    """
    return f"<code>{text(value, room)}</code>"


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], classes: Iterable[str] = ()) -> str:
    """A table of cells that are HTML already; the first cell of a row is its heading.

    Parameters
    ----------
    caption, head
        Plain text.
    rows
        Cells as HTML.
    classes
        One class per row; missing ones are empty.
    """
    marks = iter(classes)
    body = []
    for first, *others in rows:
        mark = next(marks, "")
        cells = f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)
        body.append(f'<tr class="{mark}">{cells}</tr>' if mark else f"<tr>{cells}</tr>")
    columns = "".join(f'<th scope="col">{text(name)}</th>' for name in head)
    return (
        f"<table><caption>{text(caption)}</caption><thead><tr>{columns}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def region(label: str, content: str) -> str:
    """A part that scrolls on its own, and so can have the keyboard's focus."""
    return f'<div class="cnb-region" role="region" tabindex="0" aria-label="{escape(label)}">{content}</div>'


def alert(message: str) -> str:
    """What went wrong, where a reader of the page finds it."""
    return f'<div class="cnb-alert" role="alert"><b>This did not work.</b> {text(message)}</div>'


def page(title: str, content: str) -> str:
    """A panel as a whole page.

    >>> page("A & B", "<p>text</p>").startswith('<!doctype html><html lang="en"><head><meta charset="utf-8">')
    True
    """
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>'
    body = f'<main class="cnb"><h1 class="cnb-title">{escape(title)}</h1>{content}</main>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{style()}{body}</body></html>\n'


def panel(title: str, content: str) -> str:
    """A whole panel that stands on its own, as in an exported notebook."""
    return f'{style()}<div class="cnb"><p class="cnb-title"><b>{escape(title)}</b></p>{content}</div>'


def window(count: int, at: int, size: int) -> range:
    """The positions to show when not all have room: ``size`` of them, ``at`` in their midst.

    >>> window(1000, 500, 4), window(3, 2, 4)
    (range(498, 502), range(0, 3))
    """
    start = max(0, min(at - size // 2, count - size))
    return range(start, min(count, start + size))
