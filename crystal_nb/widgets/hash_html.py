"""The hash inspector's panels as HTML."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher

from crystal_nb.hashing import HashField, canonical_json, explain_difference
from crystal_nb.records import Conversation, counted
from crystal_nb.widgets.hash_view import (
    CONVERSATION_FIELDS,
    MESSAGE_FIELDS,
    Inspection,
    Line,
    canonical_lines,
    field_value,
    hash_name,
    message_line,
    value_json,
)
from crystal_nb.widgets.markup import code, region, table, text, window

__all__ = ["LINES", "PAGE_LINES", "comparison", "difference", "inspection"]

LINES, PAGE_LINES = 40, 20_000
"""Lines of the canonical text that a panel and a page of its own have room for."""
_WIDTH, _PAGE_WIDTH = 400, 1_000_000
"""Characters of a line of it that they show."""
_LINES = 200
_ROOM = 160
_ROUND = 60


def inspection(found: Inspection, message: int | None, room: int = LINES) -> str:
    """Verdict, hashes, record and text difference; of the canonical text as many lines as there is room for."""
    record = fields(found, message) if found.edited.messages and message is not None else ""
    return (
        f"{_verdict(found)}{_hashes(found)}"
        f'<div class="cnb-pair"><div>{record}{fields(found, None)}</div>'
        f"<div>{difference(found)}{canonical(found, message, room)}</div></div>"
    )


def _verdict(found: Inspection) -> str:
    mark, state = ("●", "yes") if found.changed else ("○", "no")
    return (
        f'<div class="cnb-status cnb-{state}" role="status" data-changed="{state}">'
        f"{mark} <b>hash {'changed' if found.changed else 'unchanged'}</b>. {text(found.verdict)}</div>"
    )


def _hashes(found: Inspection) -> str:
    before, after = found.hashes
    sizes = [counted(len(t), "byte") for t in found.texts]
    rows = [
        ["before", f'<code data-hash="before">{before}</code>', sizes[0]],
        ["after", f'<code data-hash="after">{after}</code>', sizes[1]],
    ]
    return table("SHA-256 of the canonical text", ["state", "hash", "text"], rows)


def fields(found: Inspection, index: int | None) -> str:
    """Every field of a message or of the conversation, those outside the hash greyed."""
    names = CONVERSATION_FIELDS if index is None else MESSAGE_FIELDS
    place = "Conversation" if index is None else f"Message {index}"
    rows, classes = [], []
    if index is not None:
        rows.append([code("index"), code(index), _hashed("index", found)])
        classes.append("cnb-out" if "index" in found.without else "cnb-in")
    for name in names:
        hashed = hash_name(index, name)
        value = value_json(field_value(found.edited, index, name))
        rows.append([code(hashed or name), code(value, 400), _hashed(hashed, found)])
        classes.append("cnb-in" if hashed and hashed not in found.without else "cnb-out")
    return table(f"{place}: what feeds the hash", ["field", "value", "in the hash"], rows, classes)


def _hashed(name: str | None, found: Inspection) -> str:
    if name is None:
        return "– no"
    return "✗ switched out" if name in found.without else "✓ yes"


def canonical(found: Inspection, message: int | None, room: int = LINES) -> str:
    """The canonical text round the chosen message, one field a line."""
    lines = canonical_lines(found.edited, found.without)
    at = 0 if message is None else message_line(found.edited, message, found.without)
    shown = window(len(lines), at, room)
    width = _WIDTH if room <= LINES else _PAGE_WIDTH
    body = "".join(f"<div>{'  ' * depth}{text(line, width)}</div>" for depth, line in lines[shown.start : shown.stop])
    note = f"lines {shown.start + 1:,} to {shown.stop:,} of {len(lines):,}"
    if len(shown) < len(lines) and room > LINES:
        note += f"; the other {len(lines) - len(shown):,} are left out here"
    label = "Canonical text: exactly this is hashed, joined without the line breaks"
    return f"<p><b>{label}</b> ({note})</p>" + region("Canonical text", f'<div class="cnb-diff">{body}</div>')


def difference(found: Inspection) -> str:
    """The canonical text before and after, where it differs."""
    if found.texts[0] == found.texts[1]:
        return '<p data-difference="none"><b>Text difference</b>: none</p>'
    before, after = (canonical_lines(c, found.without) for c in (found.original, found.edited))
    rows = list(_changes(before, after))
    body = "".join(_change(sign, line) for sign, line in rows[:_LINES])
    if len(rows) > _LINES:
        body += f'<div class="cnb-where">… {len(rows) - _LINES:,} more lines</div>'
    return "<p><b>Text difference</b></p>" + region("Text difference", f'<div class="cnb-diff">{body}</div>')


def _changes(before: Sequence[Line], after: Sequence[Line]) -> Iterator[tuple[str, str]]:
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if start:
        yield " ", _indented(before[start - 1])
    if max(len(old), len(new)) > 2 * _LINES:  # too much to find the shortest difference in
        yield from (("-", _indented(line)) for line in old)
        yield from (("+", _indented(line)) for line in new)
        return
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from ((" ", _indented(line)) for line in old[a:b])
        else:
            yield from _replaced(old[a:b], new[c:d])
    if end:
        yield " ", _indented(before[len(before) - end])


def _common(a: Sequence[Line], b: Sequence[Line]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _replaced(old: Sequence[Line], new: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """Lines that took each other's place, long ones cut to where they part."""
    pairs = zip(old, new, strict=False) if len(old) == len(new) else ()
    cuts = [_parting(x[1], y[1]) for x, y in pairs]
    yield from (("-", _indented(line, cut)) for line, cut in _padded(old, cuts))
    yield from (("+", _indented(line, cut)) for line, cut in _padded(new, cuts))


def _padded(lines: Sequence[Line], cuts: Sequence[int]) -> Iterator[tuple[Line, int]]:
    return ((line, cuts[n] if n < len(cuts) else 0) for n, line in enumerate(lines))


def _parting(a: str, b: str) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _indented(line: Line, at: int = 0) -> str:
    depth, whole = line
    start = max(0, at - _ROUND) if len(whole) > _ROOM else 0
    head = "…" if start else ""
    tail = "…" if len(whole) > start + _ROOM else ""
    return f"{'  ' * depth}{head}{whole[start : start + _ROOM]}{tail}"


def _change(sign: str, line: str) -> str:
    kind = {"-": ' class="cnb-del"', "+": ' class="cnb-add"'}.get(sign, "")
    return f"<div{kind}>{sign} {text(line)}</div>"


def comparison(a: Conversation, b: Conversation, names: tuple[str, str], without: Collection[HashField] = ()) -> str:
    """Two conversations: both hashes, and the first differing byte with what stands round it."""
    found = explain_difference(a, b, without=without)
    rows = [
        [text(name), f"<code>{value}</code>"] for name, value in zip(names, (found.hash_a, found.hash_b), strict=True)
    ]
    head = table("Comparison", ["conversation", "hash"], rows)
    if found.equal or found.byte is None:
        return f'<div class="cnb-wrap">{head}</div><p data-byte="none">The canonical texts are equal.</p>'
    texts = canonical_json(a, without=without), canonical_json(b, without=without)
    around = [[text(name), _marked(whole, found.byte)] for name, whole in zip(names, texts, strict=True)]
    values = f"{code(value_json(found.value_a), 120)} and {code(value_json(found.value_b), 120)}"
    return (
        f'<div class="cnb-wrap">{head}<p data-byte="{found.byte}">The canonical texts part at byte {found.byte:,}, in '
        f"{code(found.field)}: {values}.</p>{table('Round that byte', ['conversation', 'text'], around)}</div>"
    )


def _marked(whole: bytes, at: int) -> str:
    """The bytes round a place, the character there marked."""
    while at > 0 and at < len(whole) and whole[at] & 0xC0 == 0x80:
        at -= 1
    stop = at + 1
    while stop < len(whole) and whole[stop] & 0xC0 == 0x80:
        stop += 1
    before, hit, after = (
        text(part.decode("utf-8", "replace"))
        for part in (whole[max(0, at - _ROUND) : at], whole[at:stop], whole[stop : stop + _ROUND])
    )
    return f"<code>{before}<mark>{hit or '(end)'}</mark>{after}</code>"
