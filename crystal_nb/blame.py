"""Where in a person's own function an exception came from."""

from __future__ import annotations

import linecache
from types import TracebackType
from typing import Any

__all__ = ["describe_error"]


def describe_error(error: BaseException, function: Any, result: Any = None) -> str:
    """The kind of an exception and the line of the function that raised it, or that yielded what was refused.

    What it says stays out, since it may be a message's text.

    >>> def broken(record, session):
    ...     return record["id"]
    >>> try:
    ...     broken({}, None)
    ... except KeyError as error:
    ...     print(describe_error(error, broken).partition(" at ")[0])
    KeyError in broken, line 2
    """
    name = getattr(function, "__name__", "the parser")
    number = _raised_at(error.__traceback__, function) or _yielded_at(result, function)
    where = f" in {name}" if number is None else f" in {name}, line {number}"
    line = "" if number is None else linecache.getline(function.__code__.co_filename, number).strip()
    source = f" at `{line}`" if line else ""
    return f"{type(error).__name__}{where}{source}"


def _raised_at(traceback: TracebackType | None, function: Any) -> int | None:
    """Number of the deepest line in the function's own file; its module or cell counts from 1."""
    code = getattr(function, "__code__", None)
    found = None
    while traceback is not None and code is not None:
        if traceback.tb_frame.f_code.co_filename == code.co_filename:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    return found


def _yielded_at(result: Any, function: Any) -> int | None:
    """Number of the line where a generator waits, else of the function's first line."""
    code, frame = getattr(function, "__code__", None), getattr(result, "gi_frame", None)
    if code is None:
        return None
    number: int = frame.f_lineno if frame is not None and frame.f_code is code else code.co_firstlineno
    return number
