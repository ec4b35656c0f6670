"""Adapters of other packages, announced by the entry-point group ``crystal_nb.adapters``.

An entry point names an adapter, or a function without arguments that gives one.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.adapters.usable import usable
from crystal_nb.errors import AdapterError, PluginWarning
from crystal_nb.records import printable, said

__all__ = ["GROUP", "announced", "warn"]

GROUP = "crystal_nb.adapters"
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


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
            warn(text)
        else:
            if adapter.name != point.name:
                warn(f"entry point {point.name!r} gives the adapter {adapter.name!r}, which is found by that name")
            yield adapter


def _given_by(found: Any) -> SourceAdapter:
    """The adapter, or what a function gives; an adapter that can be called is an adapter all the same."""
    is_maker = callable(found) and not isinstance(found, type) and not hasattr(found, "parser_version")
    return usable(found() if is_maker else found)


def warn(text: str) -> None:
    """Give a `PluginWarning` that points to the line with which a person's code entered this package."""
    # inside a notebook's loop the work is another thread's, and the main one waits where it entered
    stacks = (sys._current_frames().get(threading.main_thread().ident or 0), sys._getframe())
    caller = next(filter(None, map(_caller, stacks)), None)
    file, line = (caller.f_code.co_filename, caller.f_lineno) if caller else ("crystal_nb", 1)
    warnings.warn_explicit(text, PluginWarning, file, line)


def _caller(frame: FrameType | None) -> FrameType | None:
    """What called the outermost function of this package on a stack."""
    found = None
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            found = frame.f_back
        frame = frame.f_back
    return found
