"""Operators on values of any type: conversion to numbers, ``>`` and ``+``."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import UNSET

from crystal_nb.ecma.text import trim
from crystal_nb.ecma.value import to_text

_DECIMAL = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|Infinity)")
_RADIX = re.compile("0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+")


def to_number(value: Any) -> float:
    """``Number(value)``.

    >>> [to_number(v) for v in (None, True, " 12 ", "0x1F", [], ["7"], {}, UNSET)]
    [0, True, 12.0, 31, 0, 7.0, nan, nan]
    """
    if value is UNSET:
        return math.nan
    if value is None:
        return 0
    if isinstance(value, (int, float)):
        return value
    text = trim(to_text(value))
    if not text:
        return 0
    if _DECIMAL.fullmatch(text):
        return float(text)
    return int(text, 0) if _RADIX.fullmatch(text) else math.nan


def is_greater(a: Any, b: Any) -> bool:
    """``a > b``: two texts by their UTF-16 units, anything else as numbers.

    >>> is_greater("9", "10"), is_greater("9", 10), is_greater("x", 0), is_greater(0, UNSET)
    (True, False, False, False)
    """
    a, b = _primitive(a), _primitive(b)
    if isinstance(a, str) and isinstance(b, str):
        return a.encode("utf-16-be", "surrogatepass") > b.encode("utf-16-be", "surrogatepass")
    return to_number(a) > to_number(b)


def plus_one(value: Any) -> Any:
    """``value + 1``, which appends to a text.

    >>> plus_one(1.5), plus_one(None), plus_one("2026"), plus_one([])
    (2.5, 1, '20261', '1')
    """
    value = _primitive(value)
    return f"{value}1" if isinstance(value, str) else to_number(value) + 1


def _primitive(value: Any) -> Any:
    return to_text(value) if isinstance(value, (list, dict)) else value
