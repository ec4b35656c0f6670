"""Counts as bars beside their numbers: tables of text, which read without colours, scripts or a style sheet.

A code host strips styles and images from a notebook's outputs, so the bars are characters. Where styles
are kept they take their colours from JupyterLab's theme.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from msgspec import Struct

from crystal_nb.errors import ConfigError
from crystal_nb.records import printable

__all__ = ["Chart", "bars", "counted", "over_time", "stacked"]

_CELLS = 24
"""Characters of the longest bar."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
_GLYPHS = "█▓▒▚▞░"
_COLOURS = (
    "var(--jp-brand-color1,#1976d2)",
    "var(--jp-success-color1,#2e7d32)",
    "var(--jp-warn-color1,#b26a00)",
    "var(--jp-error-color1,#c62828)",
    "var(--jp-info-color1,#00838f)",
    "var(--jp-ui-font-color2,GrayText)",
)
_BAR = "text-align:left;white-space:nowrap;font-family:var(--jp-code-font-family,monospace)"
_MOST = 12
_PERIODS = {10: "day", 7: "month", 4: "year"}
"""Lengths of a day, a month and a year at the beginning of a time."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Chart(Struct, frozen=True):
    """A table with a bar in each row; a notebook shows it, and ``str`` and ``to_html`` give it as text.

    Attributes
    ----------
    caption : str
        What is counted.
    columns : tuple[str, ...]
        Names of the cells.
    rows : tuple[tuple[str | int | None, ...], ...]
        Their values.
    parts : tuple[tuple[int, ...], ...]
        Lengths of the parts of each row's bar.
    names : tuple[str, ...]
        What the parts are, where there are several.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    parts: tuple[tuple[int, ...], ...]
    names: tuple[str, ...] = ()

    def to_html(self) -> str:
        """The chart as a table, all text escaped.

        >>> "&lt;b&gt;" in bars("Things", [{"thing": "<b>", "number": 3}], "number").to_html()
        True
        """
        like = self.rows[0] if self.rows else self.columns
        head = "".join(
            f'<th scope="col"{_align(v)}>{_html(n, 40)}</th>' for n, v in zip(self.columns, like, strict=True)
        )
        largest = self._largest()
        body = "".join(_html_row(row, parts, largest) for row, parts in zip(self.rows, self.parts, strict=True))
        return (
            f'<div class="cnb-chart"><table><caption>{_html(self.caption, 200)}</caption>'
            f'<thead><tr>{head}<th scope="col" style="text-align:left">{self._html_legend()}</th></tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
        )

    _repr_html_ = to_html

    def __repr__(self) -> str:
        cells = [[_text(value, 80) for value in row] for row in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        numbers = [bool(self.rows) and isinstance(value, int) for value in (self.rows or (self.columns,))[0]]
        largest = self._largest()
        bars = ("".join(text for text, _ in _drawn(parts, largest)) for parts in self.parts)
        ends = [_text(self._legend(), 400), *bars]
        lines = [_text(self.caption, 200)]
        for row, end in zip(cells, ends, strict=True):
            placed = (c.rjust(w) if number else c.ljust(w) for c, w, number in zip(row, widths, numbers, strict=True))
            lines.append(f"  {'  '.join(placed)}  {end}".rstrip())
        return "\n".join(lines)

    def _legend(self) -> str:
        named = (f"{_GLYPHS[n % len(_GLYPHS)]} {name}" for n, name in enumerate(self.names))
        return "  ".join(named) or "bar"

    def _html_legend(self) -> str:
        named = (f"{_coloured(_GLYPHS[n % len(_GLYPHS)], n)} {_html(name, 40)}" for n, name in enumerate(self.names))
        return "&ensp;".join(named) or "bar"

    def _largest(self) -> int:
        return max(map(sum, self.parts), default=0) or 1


def _html_row(row: Sequence[Any], parts: Sequence[int], largest: int) -> str:
    first, *others = row
    cells = f'<th scope="row" style="text-align:left">{_html(first, 80)}</th>' + "".join(map(_cell, others))
    bar = "".join(_coloured(text, n) for text, n in _drawn(parts, largest))
    label = f"{100 * sum(parts) / largest:.0f} % of the longest bar"
    return f'<tr>{cells}<td style="{_BAR}"><span role="img" aria-label="{label}">{bar}</span></td></tr>'


def bars(caption: str, rows: Iterable[Mapping[str, Any]], number: str, most: int | None = None) -> Chart:
    """Rows as they are, each with a bar for one of its numbers.

    Parameters
    ----------
    caption
        What is counted.
    rows
        One mapping per row, as ``frame.to_dicts()`` gives them.
    number
        Column that the bars show; nothing below zero.
    most
        Rows to show; the others are summed up in a last one without a bar.

    Raises
    ------
    ConfigError
        If a row lacks a column of the first one, or the number is none.

    Examples
    --------
    >>> bars("Apples", [{"who": "Ada", "apples": 4}, {"who": "Max", "apples": 2}], "apples")
    Apples
      who  apples  bar
      Ada       4  ████████████████████████
      Max       2  ████████████
    """
    listed = list(rows)
    columns = tuple(listed[0]) if listed else (number,)
    _check(listed, columns, number)
    shown, rest = (listed, []) if most is None else (listed[:most], listed[most:])
    cells = [tuple(row[name] for name in columns) for row in shown]
    lengths = [(max(0, row[number] or 0),) for row in shown]
    if rest:
        whole = {columns[0]: f"{len(rest):,} more", number: sum(row[number] or 0 for row in rest)}
        cells.append(tuple(whole.get(name) for name in columns))
        lengths.append((0,))
    return Chart(caption, columns, tuple(cells), tuple(lengths))


def _check(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], number: str) -> None:
    if number not in columns:
        raise ConfigError(f"no column {number!r} to show as bars; there are {', '.join(map(str, columns))}")
    for at, row in enumerate(rows):
        if missing := [name for name in columns if name not in row]:
            raise ConfigError(f"row {at} of the chart has no {missing[0]!r}; it has {', '.join(map(str, row))}")
        value = row[number]
        if value is not None and not (isinstance(value, (int, float)) and math.isfinite(value)):
            what = value if isinstance(value, float) else type(value).__name__
            raise ConfigError(f"row {at} of the chart: {number!r} must be a number, not {what}")


def counted(caption: str, head: str, counts: Mapping[str, int]) -> Chart:
    """The largest counts first, those of the same size by name.

    >>> counted("Things", "thing", {str(n): 20 - n for n in range(14)}).rows[-1]
    ('2 more', 15)
    """
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return bars(caption, [{head: name or "–", "number": n} for name, n in listed], "number", _MOST)


def stacked(caption: str, head: str, by: str, counts: Mapping[str, Mapping[str, int]]) -> Chart:
    """One row per key, with a bar of one part per name.

    Parameters
    ----------
    caption
        What is counted.
    head, by
        What the keys and the names are.
    counts
        Numbers by key and name; rows stay in this order.

    Examples
    --------
    >>> stacked("Over time", "day", "source", {"2026-01-01": {"codex": 2, "cursor": 2}, "2026-01-02": {"codex": 1}})
    Over time
      day         number  by source          █ codex  ▓ cursor
      2026-01-01       4  codex 2, cursor 2  ████████████▓▓▓▓▓▓▓▓▓▓▓▓
      2026-01-02       1  codex 1            ██████
    """
    totals: Counter[str] = Counter()
    for row in counts.values():
        totals.update(row)
    names = tuple(sorted(totals, key=lambda name: (-totals[name], name)))
    rows = tuple((key, sum(row.values()), _told(row, names)) for key, row in counts.items())
    parts = tuple(tuple(row.get(name, 0) for name in names) for row in counts.values())
    return Chart(caption, (head, "number", f"by {by}"), rows, parts, names)


def over_time(found: Iterable[tuple[str, str]], caption: str = "Conversations over time by source") -> Chart:
    """Things over time by source: by day, month or year, whichever has room.

    Parameters
    ----------
    found
        Time, as ISO 8601, and source of each; those without such a time have a row of their own.
    caption
        What is counted.

    Examples
    --------
    >>> over_time([("2026-01-31T10:00:00.000Z", "codex"), ("", "codex")])
    Conversations over time by source
      day         number  by source  █ codex
      2026-01-31       1  codex 1    ████████████████████████
      no time          1  codex 1    ████████████████████████
    """
    listed = list(found)
    known = [(time, source) for time, source in listed if _DAY.match(time)]
    counts: dict[str, Counter[str]] = {}
    for length in _PERIODS:
        counts = {}
        for time, source in known:
            counts.setdefault(time[:length], Counter())[source] += 1
        if len(counts) <= 2 * _MOST:
            break
    latest: dict[str, Counter[str]] = dict(sorted(counts.items())[-2 * _MOST :])
    if len(known) < len(listed):
        latest["no time"] = Counter(source for time, source in listed if not _DAY.match(time))
    return stacked(caption, _PERIODS[length], "source", latest)


def _told(row: Mapping[str, int], names: Iterable[str]) -> str:
    return ", ".join(f"{name} {row[name]:,}" for name in names if row.get(name))


def _drawn(parts: Sequence[int], largest: int) -> list[tuple[str, int]]:
    """The bar's parts as characters, with their numbers; what is not nothing is seen."""
    if len(parts) == 1:
        whole, eighths = divmod(round(8 * _CELLS * parts[0] / largest), 8)
        eighths = eighths or (parts[0] > 0 and not whole)
        return [(_GLYPHS[0] * whole + (_EIGHTHS[eighths] if eighths else ""), 0)]
    lengths = (max(1, round(_CELLS * n / largest)) if n else 0 for n in parts)
    return [(_GLYPHS[n % len(_GLYPHS)] * length, n) for n, length in enumerate(lengths) if length]


def _coloured(text: str, number: int) -> str:
    return f'<span style="color:{_COLOURS[number % len(_COLOURS)]}">{text}</span>'


def _text(value: Any, room: int) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    text = "" if value is None else str(value)
    return printable(text if len(text) <= room else f"{text[:room]}…")


def _html(value: Any, room: int) -> str:
    return escape(_text(value, room))


def _cell(value: Any) -> str:
    return f"<td{_align(value)}>{_html(value, 200)}</td>"


def _align(value: Any) -> str:
    return f' style="text-align:{"right" if isinstance(value, int) else "left"}"'
