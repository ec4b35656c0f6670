"""What the newest rules and a tool's own files say of a candidate: unknown kinds, the tool's version, the month."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from crystal_nb import ecma
from crystal_nb.adapters.base import Parsed, open_file
from crystal_nb.errors import CrystalError, ParseError, SourceError
from crystal_nb.records import Candidate, Fate, Message, printable
from crystal_nb.rereading import raw_record

__all__ = ["UNKNOWN_LAYOUT", "Records", "month_of", "records_of", "tool_version"]

Records = Mapping[tuple[str, str, str], int]
"""Raw records by kind, status and reason."""
UNKNOWN_LAYOUT = "unknown layout"
_PLACES: Mapping[str, tuple[tuple[str | int, ...], ...]] = {
    "claude-code": (("version",),),
    "codex": (("payload", "cli_version"), ("cli_version",)),
    "copilot": tuple((*root, "requests", 0, "agent", "extensionVersion") for root in ((), ("v",))),
}
"""Where a record, or Copilot's document, says by which version of the tool it was written; other tools don't say it."""
_LOOKED_AT, _LARGEST, _LARGEST_DOCUMENT, _LONGEST = 20, 1_000_000, 50_000_000, 40
_LONGEST_NAME = 100
"""Of a kind or reason, as a file may name its kinds anyhow."""


def records_of(parsed: Parsed | CrystalError) -> Records:
    """Raw records of a parse, or of one that was refused since nobody knows the layout.

    >>> records_of(ParseError("unknown layout: no list", source="x", path="/f"))
    {('file', 'dropped', 'unknown layout'): 1}
    """
    if isinstance(parsed, Parsed):
        return Counter((f.kind[:_LONGEST_NAME], f.status, _reason(f)[:_LONGEST_NAME]) for f in parsed.fates)
    is_layout = isinstance(parsed, ParseError) and UNKNOWN_LAYOUT in parsed.reason
    return {("file", "dropped", UNKNOWN_LAYOUT): 1} if is_layout else {}


def _reason(fate: Fate) -> str:
    """Why it was dropped, or what of it is unknown, which the rules may note beside a record that they keep."""
    return fate.note if fate.note is not None and fate.note.startswith("unknown ") else fate.reason or ""


def tool_version(candidate: Candidate, fates: Iterable[Fate]) -> str | None:
    """Version of the tool that wrote a conversation, by the first of its records that says it."""
    places = _PLACES.get(candidate.source, ())
    for text in _texts(candidate, fates) if places else ():
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if found := next((v for v in (_at(record, place) for place in places) if v and isinstance(v, str)), None):
            return printable(found[:_LONGEST])
    return None


def _texts(candidate: Candidate, fates: Iterable[Fate]) -> Iterator[bytes]:
    """A document, or the first line of its log; else the first records that are not too large."""
    try:
        if candidate.source != "copilot":
            for fate in islice(fates, _LOOKED_AT):
                if fate.size is not None and fate.size <= _LARGEST:
                    yield raw_record(candidate, fate)
        elif candidate.file_size <= _LARGEST_DOCUMENT:
            with open_file(candidate.file_path) as file, io.BufferedReader(file) as lines:
                yield lines.readline() if candidate.file_path.endswith(".jsonl") else lines.read()
    except (SourceError, OSError, ValueError):
        return


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
