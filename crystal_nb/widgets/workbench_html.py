"""The parser workbench's panels as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from crystal_nb import ecma
from crystal_nb.records import counted
from crystal_nb.widgets.markup import block, code, table, text
from crystal_nb.widgets.workbench_view import Bench, Row, Side, Versions

__all__ = ["books", "both_sides", "failure", "pair", "versions"]

_ROWS = 40
_MESSAGES = 5
_ROOM = 6_000


def books(bench: Bench) -> str:
    """What became of all records, in a line."""
    return f'<p role="status" data-records="{len(bench.rows)}"><b>{text(bench.headline())}</b></p>'


def failure(bench: Bench, name: str = "The parser") -> str:
    """What an import would fail with."""
    if bench.trial.error is None:
        return ""
    cause = bench.trial.error.__cause__
    kind = type(cause if cause is not None else bench.trial.error).__name__
    body = f"<pre>{block(bench.trial.problem(), _ROOM)}</pre>"
    return f'<div class="cnb-alert" data-error="{text(kind)}"><b>{text(name)} fails: {text(kind)}</b>{body}</div>'


def pair(bench: Bench, record: int | None, message: int | None) -> str:
    """The chosen record beside the message that came from it."""
    left = "<p>Select a record or a message.</p>"
    if record is not None:
        row = bench.rows[record]
        left = (
            f"<p><b>Record {record}</b>, {text(row.place)}: {text(row.fate)}</p>"
            f"<pre>{block(bench.raw(record), _ROOM)}</pre>"
        )
    elif message is not None:
        left = "<p>No record says that it gave this message.</p>"
    right = "<p>No message came from it.</p>" if record is not None else ""
    if message is not None:
        right = _message(bench, message)
    place = f'data-record="{record}" data-message="{message}"'
    return f'<div class="cnb-pair" {place}><div>{left}</div><div>{right}</div></div>'


def _message(bench: Bench, index: int) -> str:
    m = bench.messages[index]
    records = ", ".join(str(n) for n in bench.records_of.get(index, [])[:20]) or "none"
    rows = [
        [name, code(ecma.to_text(value), 200)]
        for name, value in (("role", m.role), ("id", m.id), ("timestamp", m.timestamp), ("thinking", m.thinking))
        if value is not None
    ]
    facts = table("Its other fields", ["field", "value"], rows) if rows else ""
    return (
        f"<p><b>Message {index}</b>, {text(m.type, 40)}, from record {records}</p>"
        f"<pre>{block(m.content, _ROOM)}</pre>{facts}"
    )


def both_sides(sides: Sequence[Side]) -> str:
    """Records and messages as the panel shows them, for a page without a kernel."""
    return f'<div class="cnb-pair">{"".join(f"<div>{_side_table(side)}</div>" for side in sides)}</div>'


def _side_table(side: Side) -> str:
    rows, classes = [], []
    for n, (first, *others) in enumerate(side.rows):
        sign = "▸ " if n == side.selected else "• " if n in side.marked else ""
        rows.append([sign + text(first), *map(text, others)])
        classes.append("cnb-hit" if n == side.selected else "cnb-add" if sign else "")
    return table(_title(side), side.columns, rows, classes)


def _title(side: Side) -> str:
    if len(side.rows) == side.total:
        return f"{side.label}: {side.total:,}"
    return f"{side.label}: {side.first + 1:,} to {side.first + len(side.rows):,} of {side.total:,}"


def versions(found: Versions, names: tuple[str, str]) -> str:
    """Two parsers on the same file: hashes, how the messages align, and the records with another fate."""
    heads = [
        [text(name), f"<code>{bench.content_hash or '–'}</code>", text(bench.headline())]
        for name, bench in zip(names, (found.a, found.b), strict=True)
    ]
    a = found.alignment
    told = f"{counted(a.same, 'message')} the same, {a.moved:,} moved, {a.changed:,} changed"
    told += f", {a.removed:,} removed, {a.added:,} added"
    differing = found.differing
    rows = [
        [text((one or two).place), code((one or two).raw, 80), _side(found.a, one), _side(found.b, two)]  # type: ignore[union-attr]
        for one, two in differing[:_ROWS]
    ]
    title = f"Records with another fate or message: {len(differing):,}"
    shown = table(title, ["place", "raw record", *names], rows) if rows else f"<p>{title}</p>"
    return (
        f'<div data-differing="{len(differing)}">{table("Two parsers", ["parser", "content hash", "books"], heads)}'
        f"<p>{told}</p>{shown}{failure(found.b, names[1])}</div>"
    )


def _side(bench: Bench, row: Row | None) -> str:
    if row is None:
        return "no such record"
    messages = [bench.messages[n] for n in row.messages if n < len(bench.messages)]
    shown = [text(row.fate, 160), *(code(m.content, 120) for m in messages[:_MESSAGES])]
    more = len(messages) - _MESSAGES
    return "<br>".join(shown) + (f"<br>… {counted(more, 'more message')}" if more > 0 else "")
