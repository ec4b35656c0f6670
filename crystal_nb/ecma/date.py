"""Dates: what ``new Date(x)`` makes of a value, as far as ordering and times of files need it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from crystal_nb.ecma.value import to_double, to_text

_EPOCH = datetime(1970, 1, 1)
_DAY_MS = 86_400_000
_LIMIT_MS = 8_640_000_000_000_000
_fromisoformat = datetime.fromisoformat

_ISO = re.compile(
    r"(?P<year>[0-9]{4}|[+-][0-9]{6})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2}))?)?"
    r"(?:T(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?",
    re.IGNORECASE,
)
_SPACED = re.compile(
    r"\s*(?P<year>[0-9]{4})[-/](?P<month>[0-9]{1,2})[-/](?P<day>[0-9]{1,2})"
    r"(?:\s+(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?)?"
    r"\s*(?P<zone>Z|UTC|GMT|(?:UTC|GMT)?(?P<sign>[+-])[0-9]{2}:?[0-9]{2})?\s*",
    re.ASCII,
)
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_NAMED = re.compile(
    r"\s*(?:[A-Za-z]{3,9},?\s+)?(?:(?P<month>[A-Za-z]{3,9})\s+(?P<day>[0-9]{1,2}),?"
    r"|(?P<day2>[0-9]{1,2})\s+(?P<month2>[A-Za-z]{3,9}),?)\s+(?P<year>[0-9]{4})"
    r"(?:\s+(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?)?"
    r"\s*(?P<zone>Z|UTC|GMT|(?:UTC|GMT)?[+-][0-9]{2}:?[0-9]{2})?\s*",
    re.ASCII,
)


def date_ms(value: Any) -> int | None:
    """Milliseconds since the epoch of ``new Date(value)``, or None where that is an invalid date.

    Known exactly: the ISO forms (any fraction length, cut to ms; ``24:00``; days that roll over;
    date-only is UTC, date-time without offset is local time), numbers and booleans. Of the legacy
    forms: year-first dates with a blank or slashes, and named months as in mail headers; any other
    text counts as invalid.

    >>> date_ms("2026-01-01T00:00:00.0009Z"), date_ms("2026-02-30"), date_ms(True), date_ms("x")
    (1767225600000, 1772409600000, 1, None)
    """
    if isinstance(value, str):
        return _canonical_ms(value) if _is_canonical(value) else _text_ms(value)
    if value is None:
        return 0
    if isinstance(value, (bool, int, float)):
        return _time_clip(value)
    return _text_ms(to_text(value))


def _time_clip(value: float) -> int | None:
    number = to_double(value)
    if math.isnan(number) or abs(number) > _LIMIT_MS:
        return None
    return int(number)


def _is_canonical(text: str) -> bool:
    """Tell whether the text has the outline of ``2026-01-01T00:00:00.000Z`` (digits unchecked)."""
    return len(text) == 24 and text[23] == "Z" and text[10] == "T" and text[19] == "." and text[7] == "-"


def _canonical_ms(text: str) -> int | None:
    try:
        return round(_fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return _text_ms(text)


def _text_ms(text: str) -> int | None:
    if match := _ISO.fullmatch(text):
        return _fields_ms(match.groupdict(), local=match["hour"] is not None, iso=True)
    if match := _SPACED.fullmatch(text):
        if match["sign"] and not match["hour"]:
            return None
        return _fields_ms(match.groupdict(), local=True, iso=False)
    if match := _NAMED.fullmatch(text):
        fields = match.groupdict()
        month = _MONTHS.get((fields["month"] or fields["month2"])[:3].lower())
        if month is None:
            return None
        fields |= {"month": str(month), "day": fields["day"] or fields["day2"]}
        return _fields_ms(fields, local=True, iso=False)
    if text.isascii() and text.isdigit() and len(text) <= 6:
        return _digits_ms(text)
    return None


def _digits_ms(text: str) -> int | None:
    """1 to 6 digits: a month of 2001 up to 12, else a year as the legacy parser reads it."""
    number = int(text)
    if 1 <= number <= 12:
        return _local_ms(_day_number(2001, number, 1) * _DAY_MS)
    if number <= 31 and number > 0:
        return None
    year = number + 2000 if number <= 49 else number + 1900 if number <= 99 else number
    return _local_ms(_day_number(year, 1, 1) * _DAY_MS)


def _fields_ms(fields: dict[str, str | None], *, local: bool, iso: bool) -> int | None:
    year_text = fields["year"] or ""
    if year_text == "-000000":
        return None
    month, day = int(fields["month"] or 1), int(fields["day"] or 1)
    hour, minute, second = (int(fields[k] or 0) for k in ("hour", "minute", "second"))
    fraction = int(((fields["fraction"] or "") + "000")[:3])
    if not (1 <= month <= 12 and 1 <= day <= 31 and minute <= 59 and second <= 59):
        return None
    if hour > 24 or (hour == 24 and (minute or second or (fields["fraction"] or "").strip("0"))):
        return None
    total = _day_number(int(year_text), month, day) * _DAY_MS
    total += ((hour * 60 + minute) * 60 + second) * 1000 + fraction
    zone = fields["zone"]
    if zone is None and local:
        return _time_clip(_local_ms(total))
    offset = _offset_ms(zone, strict=iso)
    return None if offset is None else _time_clip(total - offset)


def _offset_ms(zone: str | None, *, strict: bool) -> int | None:
    zone = (zone or "").upper().removeprefix("UTC").removeprefix("GMT")
    if zone in ("", "Z"):
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if strict and (hours > 23 or minutes > 59):
        return None
    return (hours * 60 + minutes) * 60_000 * (-1 if zone[0] == "-" else 1)


def _day_number(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, any year; days may roll over."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def _local_ms(wall_ms: int) -> int:
    """Read wall-clock milliseconds in the machine's time zone; outside years 1–9999 as UTC."""
    try:
        wall = _EPOCH + timedelta(milliseconds=wall_ms)
        return round(wall.astimezone().timestamp() * 1000)
    except (OverflowError, ValueError, OSError):
        return wall_ms


def date_order(values: Sequence[Any]) -> list[int] | None:
    """Positions in the order of a stable sort by date, or None when they are in order already.

    An invalid date compares equal to everything, as the difference is NaN; what that does depends
    on the algorithm. Python's agrees with V8's for up to about a hundred elements; in longer, nearly
    sorted lists with invalid dates the two can differ.

    >>> date_order(["2026-01-02", "2026-01-01"]), date_order(["2026-01-01", "2026-01-02"])
    ([1, 0], None)
    """
    if _ascend_plainly(values):
        return None
    times = [date_ms(v) for v in values]
    if None not in times:
        keys: list[int] = times  # type: ignore[assignment]
        if all(a <= b for a, b in pairwise(keys)):
            return None
        return sorted(range(len(keys)), key=keys.__getitem__)

    def compare(a: int, b: int) -> int:
        first, second = times[a], times[b]
        return 0 if first is None or second is None else first - second

    return sorted(range(len(times)), key=cmp_to_key(compare))


def _ascend_plainly(values: Sequence[Any]) -> bool:
    """Tell whether all are valid times of the canonical form and in order; then text order is time order."""
    if not _all_canonical(values) or sorted(values) != list(values):
        return False
    try:
        return all(map(_fromisoformat, values))
    except ValueError:
        return False


def _all_canonical(values: Sequence[Any]) -> bool:
    """`_is_canonical` of all values at once."""
    if not (set(map(type, values)) <= {str} and set(map(len, values)) <= {24}):
        return False
    text, number = "".join(values), len(values)
    return all(text[at::24] == mark * number for at, mark in ((23, "Z"), (10, "T"), (19, "."), (7, "-")))


def iso_time(ms: float) -> str:
    """``new Date(ms).toISOString()``.

    Raises
    ------
    ValueError
        If the time is not a date (JavaScript's RangeError).

    >>> iso_time(1767225600123.9), iso_time(-62198755200000)
    ('2026-01-01T00:00:00.123Z', '-000001-01-01T00:00:00.000Z')
    """
    clipped = _time_clip(ms)
    if clipped is None:
        raise ValueError(f"invalid time value: {ms!r} ms")
    days, rest = divmod(clipped, _DAY_MS)
    year, month, day = _civil(days)
    seconds, ms_part = divmod(rest, 1000)
    year_text = f"{year:04d}" if 0 <= year <= 9999 else f"{'-' if year < 0 else '+'}{abs(year):06d}"
    return (
        f"{year_text}-{month:02d}-{day:02d}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        f".{ms_part:03d}Z"
    )


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number: the inverse of `_day_number`."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day_of_year - (153 * shifted_month + 2) // 5 + 1


def file_time_ms(ns: int) -> int:
    """A file time in whole ms as Node shows it: a double of ms, rounded half up.

    Source: ``pinned-importer.md`` section 1.

    >>> file_time_ms(123_400_000), file_time_ms(123_499_999), file_time_ms(1_767_225_600_123_499_999)
    (123, 123, 1767225600124)
    """
    seconds, rest = divmod(ns, 1_000_000_000)
    return math.floor(seconds * 1000.0 + rest / 1e6 + 0.5)
