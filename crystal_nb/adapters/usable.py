"""Whether something is an adapter that can be used: checks that name the adapter and the field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.errors import AdapterError
from crystal_nb.records import printable, said

__all__ = ["looks_like_adapter", "usable"]

_NEEDED = "it needs name, display_name, parser_version, detect, scan, parse"
_TEXTS = ("name", "display_name", "parser_version")
_FUNCTIONS = ("detect", "scan", "parse")
_LONGEST = 100


def usable(adapter: Any) -> SourceAdapter:
    r"""The adapter itself, when it has what the importer needs of it.

    Names end up in frames, hashes and terminals, so they are printable texts.

    Raises
    ------
    AdapterError
        With what is wrong.

    >>> from types import SimpleNamespace
    >>> usable(SimpleNamespace(name="mine", display_name="Mine", parser_version=5, detect=id, scan=id, parse=id))
    Traceback (most recent call last):
    crystal_nb.errors.AdapterError: adapter 'mine': parser_version is a printable text, not 5
    """
    if isinstance(adapter, type):
        raise AdapterError(f"{_shown(adapter)} is a class and no adapter; give an instance of it")
    try:
        if not isinstance(adapter, SourceAdapter):
            raise AdapterError(f"{_shown(adapter)} is no adapter: {_NEEDED}")
        for problem in _wrong(adapter):
            raise AdapterError(problem)
    except AdapterError:
        raise
    except Exception as error:  # a property may raise anything
        raise AdapterError(f"{_shown(adapter)} is no adapter: {type(error).__name__}: {said(error)}") from error
    return adapter


def looks_like_adapter(value: Any) -> bool:
    """Tell whether something is meant to be an adapter, so that `usable` can say what is wrong with it.

    >>> looks_like_adapter(SourceAdapter), looks_like_adapter("codex")
    (True, False)
    """
    try:
        return isinstance(value, (type, SourceAdapter))
    except Exception:  # a property may raise anything
        return True


def _wrong(adapter: SourceAdapter) -> Iterator[str]:
    if not (isinstance(adapter.name, str) and adapter.name):
        yield f"an adapter's name must be a non-empty text, not {_shown(adapter.name)}"
    for field in _TEXTS:
        text = getattr(adapter, field)
        if not (isinstance(text, str) and text.isprintable()):
            yield f"adapter {_shown(adapter.name)}: {field} is a printable text, not {_shown(text)}"
    if isinstance(adapter.name, str) and re.search(r"[:\s]", adapter.name):
        yield f"adapter {_shown(adapter.name)}: a name has no white space and no ':', as its ids follow after one"
    for field in _FUNCTIONS:
        if not callable(getattr(adapter, field)):
            yield f"adapter {_shown(adapter.name)}: {field} is a function, not {_shown(getattr(adapter, field))}"


def _shown(value: Any) -> str:
    """A value as one harmless line, whatever its ``repr`` does."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
