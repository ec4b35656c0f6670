"""Filters of the import browser: which entries pass them all."""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from crystal_nb import ecma
from crystal_nb.errors import ConfigError
from crystal_nb.widgets.browse_view import Entry

__all__ = ["FILTERS", "checked_filters", "matching", "period", "told"]

FILTERS = ("source", "project", "since", "until", "decision", "losses", "text")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
_WHEN = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r" ?(?P<zone>Z|(?P<sign>[+-])(?P<zone_hour>[01][0-9]|2[0-3]):?(?P<zone_minute>[0-5][0-9]))?)?)?)?",
    re.IGNORECASE,
)


def period(text: str) -> range:
    """Milliseconds of the year, month, day, minute, second or instant that a text names; without an offset in UTC.

    Raises
    ------
    ConfigError
        If it names none.

    >>> period("2026-01-31") == range(1769817600000, 1769904000000), len(period("2026-01-31T10:00:00.5+02:00"))
    (True, 1)
    """
    match = _WHEN.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError
        return _named(match.groupdict())
    except ValueError:
        wanted = "such as 2026-01-31, 2026-01 or 2026-01-31T10:05:00+02:00"
        raise ConfigError(f"{text!r} is no date; write year, month and day, and a time if you like, {wanted}") from None


def _named(fields: Mapping[str, str | None]) -> range:
    year, month, day, hour, minute, second, zone_hour, zone_minute = (
        int(fields[name] or without)
        for name, without in (
            ("year", 0), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0),
            ("zone_hour", 0), ("zone_minute", 0),
        )
    )  # fmt: skip
    fraction = int(f"{fields['fraction'] or ''}000"[:3])
    start = (datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
    start += fraction - (zone_hour * 60 + zone_minute) * 60_000 * (-1 if fields["sign"] == "-" else 1)
    lengths = (
        ("fraction", 1),
        ("second", 1_000),
        ("minute", 60_000),
        ("day", _DAY_MS),
        ("month", _DAY_MS * monthrange(year, month)[1]),
        ("year", _DAY_MS * (366 if isleap(year) else 365)),
    )
    return range(start, start + next(length for name, length in lengths if fields[name]))


def checked_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Filters without the empty ones.

    Raises
    ------
    ConfigError
        If one is unknown, or a time is none.

    >>> checked_filters({"source": "codex", "text": ""})
    {'source': 'codex'}
    """
    for name, value in filters.items():
        if name not in FILTERS:
            raise ConfigError(f"no filter {name!r}; there are {', '.join(FILTERS)}")
        kind = bool if name == "losses" else str
        if value is not None and not isinstance(value, kind):
            wanted = "true or false" if kind is bool else "text"
            raise ConfigError(f"the filter {name} must be {wanted}, not a {type(value).__name__}")
        if name in ("since", "until") and isinstance(value, str) and value:
            period(value)
    return {name: value for name, value in filters.items() if value not in ("", None, False)}


def told(filters: Mapping[str, Any]) -> str:
    """The filters in a line.

    >>> told({"source": "codex", "losses": True})
    'source: codex; has losses'
    """
    return "; ".join("has losses" if name == "losses" else f"{name}: {value}" for name, value in filters.items())


def matching(entries: Sequence[Entry], filters: Mapping[str, Any]) -> list[int]:
    """Positions of the entries that pass every filter; text is looked for in titles and messages.

    >>> matching([], {"text": "x"})
    []
    """
    wanted = checked_filters(filters)
    text = wanted.pop("text", None)
    tests = [_test(name, value) for name, value in wanted.items()]
    found = [n for n, e in enumerate(entries) if all(test(e) for test in tests)]
    return found if text is None else _with_text(entries, found, text.casefold())


def _test(name: str, value: Any) -> Callable[[Entry], bool]:
    if name == "losses":
        return lambda e: bool(e.losses)
    if name not in ("since", "until"):
        return lambda e: bool(getattr(e, name) == value)
    named = period(value)
    if name == "since":
        return lambda e: (at := _instant(e)) is not None and at >= named.start
    return lambda e: (at := _instant(e)) is not None and at < named.stop


def _instant(entry: Entry) -> int | None:
    return ecma.date_ms(entry.time)


def _with_text(entries: Sequence[Entry], among: Sequence[int], needle: str) -> list[int]:
    stored = next((entries[n].stored for n in among if entries[n].stored is not None), None)
    hits = frozenset() if stored is None else stored.with_text(needle)
    return [n for n in among if _key(entries[n]) in hits or any(needle in t.casefold() for t in _texts(entries[n]))]


def _key(entry: Entry) -> tuple[str, str]:
    return entry.source, entry.id


def _texts(entry: Entry) -> Iterable[str]:
    yield from (entry.title, entry.id, entry.error)
    conversation = entry.load() if entry.stored is None else None
    for message in conversation.messages if conversation else ():
        yield message.content
        if isinstance(message.thinking, str):
            yield message.thinking
