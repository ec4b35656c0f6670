"""Rows as an HTML table."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

__all__ = ["html_table"]


def html_table(caption: str, rows: list[dict[str, Any]], cell: Callable[[Any], str]) -> str:
    """A table with the first row's names as its head; nothing where there are no rows.

    Parameters
    ----------
    caption
        What the table shows.
    rows
        Rows with the same names.
    cell
        Makes the ``td`` of a value, escaped.

    Examples
    --------
    >>> html_table("Counts", [{"n": 1}], "<td>{}</td>".format)
    '<table><caption>Counts</caption><thead><tr><th>n</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>'
    """
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join(f"<tr>{''.join(map(cell, row.values()))}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
