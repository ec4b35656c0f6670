"""Adapters of other packages, announced by the entry-point group ``crystal_nb.adapters``.

An entry point names an adapter, or a function without arguments that gives one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.errors import PluginWarning

__all__ = ["GROUP", "announced"]

GROUP = "crystal_nb.adapters"


def announced() -> Iterator[SourceAdapter]:
    """The adapters that installed packages announce; one that fails is left out with a `PluginWarning`.

    >>> list(announced())
    []
    """
    from importlib.metadata import entry_points  # takes its time, and most runs need no names of others

    for point in entry_points(group=GROUP):
        try:
            found = point.load()
            adapter = found if isinstance(found, SourceAdapter) else found()
            if not isinstance(adapter, SourceAdapter):
                raise TypeError(f"{type(adapter).__name__} is no adapter")
        except Exception as error:  # somebody else's module may raise anything
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(f"adapter {point.name!r} ({point.value}) left out: {reason}", PluginWarning, stacklevel=4)
        else:
            yield adapter
