"""JSON text as ``JSON.parse`` reads it and ``JSON.stringify`` writes it."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec
from msgspec import UNSET

from crystal_nb.ecma.text import pair_surrogates
from crystal_nb.ecma.value import number_text

_encode = msgspec.json.encode
_SURROGATE = re.compile("[\ud800-\udfff]")
_ARRAY_INDEX = re.compile("0|[1-9][0-9]{0,9}")
_SAFE_DIGITS = 15


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _SAFE_DIGITS else float(text)


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_decoder = json.JSONDecoder(parse_int=_integer, parse_constant=_constant)


def parse_json(text: str) -> Any:
    r"""Read one JSON value as ``JSON.parse`` does.

    Numbers are doubles (kept as ``int`` up to 15 digits), duplicate keys: the last wins, lone
    surrogate escapes stay.

    Raises
    ------
    ValueError
        If the text is no JSON (``NaN``, a BOM, raw control characters in strings, …).
    RecursionError
        If it is nested deeper than Python's limit, about 1,000 levels, where Node goes on.

    >>> parse_json('{"a": 1e999, "a": "\\ud83d"}')
    {'a': '\ud83d'}
    """
    value, end = _decoder.raw_decode(text, len(text) - len(text.lstrip(" \t\n\r")))
    if text[end:].strip(" \t\n\r"):
        raise ValueError(f"text after the JSON value at character {end}")
    return value


def json_text(value: Any) -> str:
    r"""Write a value exactly as ``JSON.stringify`` does.

    ``msgspec.UNSET`` stands for *undefined*: its key is dropped, in an array it becomes ``null``.

    Raises
    ------
    RecursionError
        If the value is nested deeper than Python's limit.

    >>> json_text({"b": "\x1f/\ud83d", "2": 1.0, "gone": UNSET})
    '{"2":1,"b":"\\u001f/\\ud83d"}'
    """
    if isinstance(value, str):
        return _quote(value)
    if value is None or value is UNSET:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value) if math.isfinite(value) else "null"
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    members = (f"{_quote(k)}:{json_text(value[k])}" for k in _key_order(value) if value[k] is not UNSET)
    return f"{{{','.join(members)}}}"


def _quote(text: str) -> str:
    try:
        return _encode(text).decode()
    except UnicodeEncodeError:
        exact = json.dumps(pair_surrogates(text), ensure_ascii=False)
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", exact)


def _key_order(members: dict[str, Any]) -> list[str]:
    """Own-property order: array indexes ascending, then the rest as inserted."""
    indexes = [k for k in members if _ARRAY_INDEX.fullmatch(k) and int(k) < 2**32 - 1]
    if not indexes:
        return list(members)
    return sorted(indexes, key=int) + [k for k in members if k not in set(indexes)]
