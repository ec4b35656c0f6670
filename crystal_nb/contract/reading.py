"""All that an adapter gives of a home, as one flat table of names and values, so that what moves has a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.config import Config
from crystal_nb.contract.stage import detect_now, parse_now, scan_now
from crystal_nb.errors import CrystalError

__all__ = ["IDS", "ids_of", "moved", "reading", "without_ids"]

IDS = ("id", "parent_uuid", "parent_id", "request_id")
"""Fields that hold ids; whether they stay is a check of its own."""


def reading(adapter: SourceAdapter, config: Config) -> dict[str, str]:
    """Name of each value to its text: what detect, scan and every parse give.

    Whatever an adapter raises on the way is a value too.
    """
    found: dict[str, str] = {}
    try:
        found |= _flat("detect", detect_now(adapter, config))
        candidates = scan_now(adapter, config)
    except CrystalError as error:
        return {**found, "error": repr(error)}
    for number, candidate in enumerate(candidates):
        found |= _flat(f"candidates[{number}]", candidate)
        try:
            parsed: Any = parse_now(adapter, candidate, config)
        except CrystalError as error:
            found[f"conversations[{number}].error"] = repr(error)
        else:
            found |= _flat(f"conversations[{number}]", parsed.conversation)
            found |= _flat(f"conversations[{number}].fates", parsed.fates)
    return found


def _flat(name: str, value: Any) -> dict[str, str]:
    return dict(_leaves(name, value))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from _leaves(f"{name}.{field}", getattr(value, field))
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _leaves(f"{name}[{number}]", item)
        yield f"{name}.length", str(len(value))
    else:
        yield name, repr(value)


def without_ids(values: Mapping[str, str]) -> dict[str, str]:
    """All but the ids.

    >>> without_ids({"candidates[0].id": "'7'", "candidates[0].source": "'codex'"})
    {'candidates[0].source': "'codex'"}
    """
    return {name: value for name, value in values.items() if name.rpartition(".")[2] not in IDS}


def ids_of(values: Mapping[str, str]) -> dict[str, str]:
    """The ids alone."""
    return {name: value for name, value in values.items() if name.rpartition(".")[2] in IDS}


def moved(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Names of the values that differ.

    >>> moved({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"})
    ['b', 'c']
    """
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]
