"""Values: truth, length, conversion to text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET


def truthy(value: Any) -> bool:
    """Tell whether JavaScript takes the value for true; empty arrays and objects are.

    >>> [truthy(v) for v in ([], {}, "0", "", 0, None, float("nan"))]
    [True, True, True, False, False, False, False]
    """
    if type(value) is str:
        return value != ""
    if isinstance(value, (list, dict)):
        return True
    if isinstance(value, float) and math.isnan(value):
        return False
    return bool(value) and value is not UNSET


def length(value: Any) -> float:
    """``value?.length`` of an array or string in UTF-16 units, else 0 (nothing compares above it).

    >>> length([1, 2]), length("a😀"), length({"x": 1}), length(None)
    (2, 3, 0, 0)
    """
    if isinstance(value, list):
        return len(value)
    if isinstance(value, str):
        return len(value) + sum(ord(c) > 0xFFFF for c in value)
    if isinstance(value, dict) and isinstance(value.get("length"), (int, float)):
        return to_double(value["length"])
    return 0


def number_text(value: float) -> str:
    """Write a number as JavaScript's ``String`` does.

    >>> [number_text(v) for v in (5.0, -0.0, 1e21, 1.5e-7, 123456789012345680000.0)]
    ['5', '0', '1e+21', '1.5e-7', '123456789012345680000']
    """
    number = to_double(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return sign + _place_point(digits, point)


def to_double(value: float) -> float:
    """A number as JavaScript holds it; integers beyond its range are infinite.

    >>> to_double(10**400), to_double(-(10**400))
    (inf, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _place_point(digits: str, point: int) -> str:
    """Lay out decimal digits with the point after ``point`` of them (ECMA-262 Number::toString)."""
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    exponent = point - 1
    head = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{head}e{'+' if exponent > 0 else '-'}{abs(exponent)}"


def to_text(value: Any) -> str:
    """Convert as JavaScript's ``String`` does.

    >>> [to_text(v) for v in (None, True, 5.0, {"a": 1}, [1, None, [2]], UNSET)]
    ['null', 'true', '5', '[object Object]', '1,,2', 'undefined']
    """
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if value is UNSET:
        return "undefined"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, list):
        return ",".join(_leaves(value))
    return "[object Object]"


def _leaves(values: list[Any]) -> Iterator[str]:
    """Texts between the commas of an array as text, however deep it is nested."""
    waiting: list[Any] = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list) and value:
            waiting += reversed(value)
        elif value is None or value is UNSET or isinstance(value, list):
            yield ""
        else:
            yield to_text(value)


def join(values: Sequence[Any], separator: str) -> str:
    r"""``Array.prototype.join``: null and undefined become nothing.

    >>> join(["a", None, ["b", 1]], "-")
    'a--b,1'
    """
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return separator.join("" if v is None or v is UNSET else to_text(v) for v in values)
