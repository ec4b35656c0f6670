"""Names of Codex threads, which stand in ``session_index.jsonl`` beside the rollouts."""

from __future__ import annotations

import functools
import os
from typing import Any

from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.adapters.base import read_file
from crystal_nb.adapters.typed import TypedDecoder

__all__ = ["thread_name"]


class IndexEntry(Struct):
    id: str | None = None
    thread_name: str | None = None


_DECODER = TypedDecoder(IndexEntry)


def thread_name(folder: str | os.PathLike[str], id: Any) -> Any:
    """Name of a thread in the folder's ``session_index.jsonl``, or None (rule 14).

    The pinned importer reads the index once per process; this one again when the file changed.
    """
    index = os.path.join(folder, "session_index.jsonl")
    try:
        status = os.stat(index)
        return _thread_names(index, status.st_mtime_ns, status.st_size).get(id) if isinstance(id, str) else None
    except OSError:
        return None


@functools.lru_cache(maxsize=4)
def _thread_names(index: str, mtime_ns: int, size: int) -> dict[Any, Any]:
    names = {}
    for line in read_file(index).split(b"\n"):
        try:
            entry = _DECODER.decode(line)
        except ValueError:
            continue
        if isinstance(entry, IndexEntry) and isinstance(entry.id, str) and entry.id and ecma.truthy(entry.thread_name):
            names[entry.id] = entry.thread_name
    return names
