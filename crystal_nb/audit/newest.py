"""What the newest rules and a tool's own files say of a candidate: unknown kinds, the tool's version, the month."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from crystal_nb import ecma
from crystal_nb.adapters.base import Parsed
from crystal_nb.errors import CrystalError, ParseError, SourceError
from crystal_nb.provenance import raw_record
from crystal_nb.records import Candidate, Fate, Message, printable

__all__ = ["UNKNOWN_LAYOUT", "Records", "month_of", "records_of", "tool_version"]

Records = Mapping[tuple[str, str, str], int]
"""Raw records by kind, status and reason."""
UNKNOWN_LAYOUT = "unknown layout"
_PLACES: Mapping[str, tuple[tuple[str | int, ...], ...]] = {
    "claude-code": (("version",),),
    "codex": (("payload", "cli_version"), ("cli_version",)),
    "copilot": (("agent", "extensionVersion"), ("v", "requests", 0, "agent", "extensionVersion")),
}
"""Where a raw record says by which version of the tool it was written; other tools don't say it."""
_LOOKED_AT, _LARGEST, _LONGEST = 20, 1_000_000, 40


def records_of(parsed: Parsed | CrystalError) -> Records:
    """Raw records of a parse, or of one that was refused since nobody knows the layout.

    >>> records_of(ParseError("unknown layout: no list", source="x", path="/f"))
    {('file', 'dropped', 'unknown layout'): 1}
    """
    if isinstance(parsed, Parsed):
        return Counter((f.kind, f.status, _reason(f)) for f in parsed.fates)
    is_layout = isinstance(parsed, ParseError) and UNKNOWN_LAYOUT in parsed.reason
    return {("file", "dropped", UNKNOWN_LAYOUT): 1} if is_layout else {}


def _reason(fate: Fate) -> str:
    """Why it was dropped, or what of it is unknown, which the rules may note beside a record that they keep."""
    return fate.note if fate.note is not None and fate.note.startswith("unknown ") else fate.reason or ""


def tool_version(candidate: Candidate, fates: Iterable[Fate]) -> str | None:
    """Version of the tool that wrote a conversation, by the first of its records that says it."""
    places = _PLACES.get(candidate.source, ())
    for fate in islice(fates, _LOOKED_AT if places else 0):
        if fate.size is None or fate.size <= _LARGEST:
            record = _decoded(candidate, fate)
            found = next((v for v in (_at(record, place) for place in places) if isinstance(v, str)), None)
            if found:
                return printable(found[:_LONGEST])
    return None


def _decoded(candidate: Candidate, fate: Fate) -> Any:
    try:
        return json.loads(raw_record(candidate, fate))
    except (SourceError, ValueError, RecursionError):
        return None


def _at(value: Any, place: Sequence[str | int]) -> Any:
    for key in place:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return None
    return value


def month_of(messages: Iterable[Message]) -> str | None:
    """Year and month of the first message that has a valid time of its own.

    >>> month_of([Message("user", "hi"), Message("user", "hi", timestamp="2026-01-05T10:00:00Z")])
    '2026-01'
    """
    times = (ecma.date_ms(m.timestamp) for m in messages if m.timestamp is not None and not m.timestamp_from_clock)
    first = next((ms for ms in times if ms is not None), None)
    return None if first is None else ecma.iso_time(first)[:7]
