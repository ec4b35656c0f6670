"""Parsing the samples as they are: schema, order, fates."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from msgspec import UNSET

from crystal_nb import ecma
from crystal_nb.adapters.base import Parsed
from crystal_nb.adapters.jsonl import node_line_bounds
from crystal_nb.contract.stage import Check, Failed, Stage, are_lines, check
from crystal_nb.records import Candidate, Conversation, Fate, FateStatus, Message, counted

__all__ = ["CHECKS"]

_TYPES = ("user", "assistant", "system")


@check("parsing", "samples parse")
def samples_parse(stage: Stage) -> str:
    """Every candidate of the samples can be parsed."""
    if failed := [f"{s.id}: {s.error}" for s in stage.samples if s.error is not None]:
        raise Failed("these fail", failed)
    return f"{len(stage.samples)} of {len(stage.samples)}"


@check("parsing", "schema")
def schema(stage: Stage) -> str:
    """Records have the documented types; a time is one that JavaScript reads, or null."""
    wrong = [f"{ecma.to_text(c.id)}: {what}" for c, p in stage.parsed for what in _wrong_types(p, stage.adapter.name)]
    if wrong:
        raise Failed("not of the documented types", wrong)
    return f"{counted(sum(len(p.conversation.messages) for _, p in stage.parsed), 'message')} of the documented types"


def _wrong_types(parsed: Parsed, name: str) -> Iterator[str]:
    if not isinstance(parsed, Parsed) or not isinstance(parsed.conversation, Conversation):
        yield f"parse gives a {type(parsed).__name__}"
        return
    c = parsed.conversation
    if c.source != name:
        yield f"source is {c.source!r}"
    if not isinstance(c.messages, tuple) or not isinstance(parsed.fates, tuple):
        yield "messages and fates must be tuples"
        return
    texts: tuple[tuple[str, Any], ...] = (("project_dir", c.project_dir), ("project_name", c.project_name))
    yield from (f"{field} is {value!r}" for field, value in texts if not isinstance(value, str))
    for number, message in enumerate(c.messages):
        yield from (f"messages[{number}]: {what}" for what in _wrong_in(message))
    yield from (f"fates[{n}] is {f!r}" for n, f in enumerate(parsed.fates) if not isinstance(f, Fate))


def _wrong_in(m: Message) -> Iterator[str]:
    if not isinstance(m, Message):
        yield f"a {type(m).__name__} is no Message"
        return
    if m.type not in _TYPES:
        yield f"type is {m.type!r}, not one of {', '.join(_TYPES)}"
    if not isinstance(m.content, str):
        yield f"content is {type(m.content).__name__}"
    if not (isinstance(m.has_tool_use, bool) and isinstance(m.has_code, bool)):
        yield "has_tool_use and has_code must be True or False"
    for field, value in (("role", m.role), ("thinking", m.thinking)):
        if not (value is None or value is UNSET or isinstance(value, str)):
            yield f"{field} is {type(value).__name__}"
    if m.timestamp is not None and ecma.date_ms(m.timestamp) is None:
        yield f"timestamp {m.timestamp!r} is no time"


@check("parsing", "order")
def order(stage: Stage) -> str:
    """Messages stand in the order of their times, or in that of the records that they came from."""
    wrong = [ecma.to_text(c.id) for c, p in stage.parsed if not (_by_time(p) or _by_record(p))]
    if wrong:
        raise Failed("neither in the order of time nor of the records", wrong)
    return f"{counted(len(stage.parsed), 'conversation')} in order"


def _by_time(parsed: Parsed) -> bool:
    times = [ecma.date_ms(m.timestamp) for m in parsed.conversation.messages if m.timestamp is not None]
    return all(a <= b for a, b in pairwise(t for t in times if t is not None))


def _by_record(parsed: Parsed) -> bool:
    """A record that holds the next one stands where its parts do."""
    inner = [f.key or "" for f in parsed.fates[1:]] + [""]
    parts = (f for f, next in zip(parsed.fates, inner, strict=True) if not (f.key and next.startswith(f"{f.key}/")))
    places = [f.message_index for f in parts if f.status == "kept" and f.message_index is not None]
    return all(a <= b for a, b in pairwise(places))


@check("parsing", "fates")
def fates(stage: Stage) -> str:
    """Every raw record has one fate: those of a file of lines are all its lines and all its bytes.

    A dropped record has a reason; a kept or merged one names a message that is there; a conversation
    with messages has a kept or merged record.
    """
    wrong = [f"{ecma.to_text(c.id)}: {what}" for c, p in stage.parsed for what in _wrong_fates(c, p)]
    if wrong:
        raise Failed("not one fate for each record", wrong)
    return f"{sum(len(p.fates) for _, p in stage.parsed):,} raw records, each with a fate"


def _wrong_fates(candidate: Candidate, parsed: Parsed) -> Iterator[str]:
    found, count = parsed.fates, len(parsed.conversation.messages)
    if count and not any(f.status in ("kept", "merged") for f in found):
        yield f"{counted(count, 'message')}, and no record is kept"
    for number, fate in enumerate(found):
        if fate.status not in get_args(FateStatus):
            yield f"fates[{number}]: status {fate.status!r}"
        if fate.status == "dropped" and not fate.reason:
            yield f"fates[{number}]: dropped without a reason"
        needed = fate.status in ("kept", "merged")
        if needed and not (isinstance(fate.message_index, int) and 0 <= fate.message_index < count):
            yield f"fates[{number}]: {fate.status} as message {fate.message_index} of {count}"
    if are_lines(candidate, parsed):
        yield from _untiled(Path(candidate.file_path).read_bytes(), found)


def _untiled(data: bytes, found: tuple[Fate, ...]) -> Iterator[str]:
    """Each record begins where the one before it ends; a line can hold several, and a fate stand for several lines."""
    starts, at = node_line_bounds(data)[0], 0
    for fate in found:
        line = bisect_right(starts, at)
        if (fate.line, fate.offset) != (line, at):
            yield f"line {line} at byte {at} has no fate: the next is line {fate.line} at byte {fate.offset}"
            return
        at += fate.size or 0
    if at != len(data):
        yield f"the fates end at byte {at} of {len(data)}"


CHECKS: tuple[Check, ...] = (samples_parse, schema, order, fates)
