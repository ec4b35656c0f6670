"""Adapters of other packages, announced by the entry-point group ``crystal_nb.adapters``.

An entry point names an adapter, or a function without arguments that gives one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.adapters.usable import usable
from crystal_nb.errors import AdapterError, PluginWarning
from crystal_nb.records import printable, said

__all__ = ["GROUP", "announced"]

GROUP = "crystal_nb.adapters"


def announced() -> Iterator[SourceAdapter]:
    """The adapters that installed packages announce; one that fails is left out with a `PluginWarning`.

    Only a ``KeyboardInterrupt`` goes through, since a person's is no other than a plugin's.

    >>> list(announced())
    []
    """
    from importlib.metadata import entry_points  # takes its time, and most runs need no names of others

    for point in entry_points(group=GROUP):
        try:
            adapter = _given_by(point.load())
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # somebody else's module may raise anything, and leave the interpreter
            reason = said(error) if isinstance(error, AdapterError) else f"{type(error).__name__}: {said(error)}"
            text = f"adapter {point.name!r} ({printable(str(point.value))}) left out: {reason}"
            warnings.warn(text, PluginWarning, stacklevel=4)
        else:
            yield adapter


def _given_by(found: Any) -> SourceAdapter:
    """The adapter, or what a function gives; an adapter that can be called is an adapter all the same."""
    is_maker = callable(found) and not isinstance(found, type) and not hasattr(found, "parser_version")
    return usable(found() if is_maker else found)
