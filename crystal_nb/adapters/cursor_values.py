"""Values of unknown shape, as Cursor's files have them: read what fits, never fail on what doesn't."""

from __future__ import annotations

from typing import Any

import msgspec

from crystal_nb import ecma

__all__ = ["dicts", "integer", "json_of", "list_of", "members", "string", "text_of", "time_of"]

_BOM = b"\xef\xbb\xbf"
_OLDEST_MS = 1e11
"""Numbers below are seconds (``formats/cursor.md`` section 5.3)."""


def raw_of(value: Any) -> bytes:
    """Bytes of a database value."""
    return value if isinstance(value, bytes) else b"" if value is None else str(value).encode("utf-8", "replace")


def json_of(data: bytes) -> Any:
    r"""The JSON value of a database row or file, with whatever stands behind a NUL left aside.

    Raises
    ------
    ValueError
        If it is no JSON.

    >>> json_of(b'\xef\xbb\xbf{"a": 1}\x00\x00')
    {'a': 1}
    """
    data = data.removeprefix(_BOM)
    for part in (data, data.partition(b"\0")[0]):
        try:
            return msgspec.json.decode(part)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
    return ecma.parse_json(data.partition(b"\0")[0].decode("utf-8", "replace"))


def members(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [v for v in list_of(value) if isinstance(v, dict)]


def string(*values: Any) -> str | None:
    """The first text that isn't blank.

    >>> string(None, 5, " ", "x")
    'x'
    """
    return next((v for v in values if isinstance(v, str) and ecma.trim(v)), None)


def integer(value: Any) -> int | None:
    """A whole number that a column can hold.

    >>> integer(5), integer(5.0), integer(True), integer(1e300)
    (5, 5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -(2**63) <= value < 2**63:
        return None
    return int(value) if value == int(value) else None


def text_of(value: Any) -> str | None:
    """Text of a value: itself, or its JSON; None for null.

    >>> text_of({"a": 1}), text_of("x")
    ('{"a":1}', 'x')
    """
    if value is None or isinstance(value, str):
        return value
    try:
        return ecma.json_text(value)
    except RecursionError:
        return "(nested too deep to be written)"


def time_of(*values: Any) -> Any:
    """The first valid time, text or ms as it stands, seconds as ms; None when there is none.

    >>> time_of(None, "soon", 1700000000), time_of("2026-01-01T00:00:00Z")
    (1700000000000, '2026-01-01T00:00:00Z')
    """
    for value in values:
        if isinstance(value, str):
            if ecma.date_ms(value) is not None:
                return value
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            ms = int(value * 1000) if value < _OLDEST_MS else value
            if ecma.date_ms(ms) is not None:
                return ms
    return None
