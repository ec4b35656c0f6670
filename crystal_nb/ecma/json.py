"""JSON text as ``JSON.parse`` reads it and ``JSON.stringify`` writes it."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec
from msgspec import UNSET

from crystal_nb.ecma.text import pair_surrogates
from crystal_nb.ecma.value import number_text, to_double

_encode = msgspec.json.encode
_SURROGATE = re.compile("[\ud800-\udfff]")
_ARRAY_INDEX = re.compile("0|[1-9][0-9]{0,9}")
_SAFE_DIGITS = 15
_BLANK = re.compile(r"[ \t\n\r]*")
_CLOSING = {"[": "]", "{": "}"}


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
    >>> parse_json('{"a": 1e999, "a": "\\ud83d"}')
    {'a': '\ud83d'}
    """
    try:
        value, end = _decoder.raw_decode(text, _BLANK.match(text, 0).end())  # type: ignore[union-attr]
    except RecursionError:
        value, end = decode_deep(text, _decoder)
    if _BLANK.match(text, end).end() != len(text):  # type: ignore[union-attr]
        raise ValueError(f"text after the JSON value at character {end}")
    return value


def decode_deep(text: str, decoder: json.JSONDecoder) -> tuple[Any, int]:
    """Read a value of any depth without recursion, where a quick decoder gives up; it still reads what is flat.

    Returns
    -------
    tuple
        The value and where it ends.

    Raises
    ------
    ValueError
        If the text begins with no JSON value.

    >>> value, end = decode_deep("[" * 100_000 + "]" * 100_000 + " ", json.JSONDecoder())
    >>> end
    200000
    """
    open_ones: list[tuple[Any, str | None]] = []  # containers, and for objects the key that waits for its value
    at = 0
    while True:
        at = _skip(text, at)
        opening = text[at : at + 1]
        if opening and opening in "[{":
            container: Any = [] if opening == "[" else {}
            at = _skip(text, at + 1)
            if text[at : at + 1] != _CLOSING[opening]:
                key, at = (None, at) if opening == "[" else _key(text, at, decoder)
                open_ones.append((container, key))
                continue
            value, at = container, at + 1
        else:
            value, at = decoder.raw_decode(text, at)
        while open_ones:
            container, key = open_ones.pop()
            if key is None:
                container.append(value)
            else:
                container[key] = value
            at = _skip(text, at)
            sign = text[at : at + 1]
            if sign == ",":
                key, at = (None, at + 1) if key is None else _key(text, _skip(text, at + 1), decoder)
                open_ones.append((container, key))
                break
            if sign != ("]" if key is None else "}"):
                raise ValueError(f"neither a comma nor an end at character {at}")
            value, at = container, at + 1
        else:
            return value, at


def _skip(text: str, at: int) -> int:
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]


def _key(text: str, at: int, decoder: json.JSONDecoder) -> tuple[str, int]:
    """An object's key and where its value begins."""
    if text[at : at + 1] != '"':
        raise ValueError(f"no key at character {at}")
    key, at = decoder.raw_decode(text, at)
    at = _skip(text, at)
    if text[at : at + 1] != ":":
        raise ValueError(f"no colon at character {at}")
    return key, at + 1


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
        return number_text(value) if math.isfinite(to_double(value)) else "null"
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
