"""Reading the raw record that a fate is about again, from the tool's own file.

A fate says where its record stands: by offset and size in a text file (of a compressed one, in what it
holds), or by a key. Where ``file_path`` names another file than the candidate's, the key begins with that
file's name. All forms of a key:

- ``/requests/0``: a JSON pointer into the document, or into the session that the lines of a log add up to;
  ``""`` is the file as it stands. A last index 0 of a value that is no list means that value.
- ``table/key``, ``key`` (of ``ItemTable``), either with a pointer into the value: ``…#/list/0``.
- ``ItemTable:key/0#/…``: an item of the list that the row holds; ``ItemTable:key#id``: an entry of an index.
- ``file#/pointer``, ``file#line 3``, ``file@offset+size``: the same in another file.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from crystal_nb import ecma
from crystal_nb.adapters import get_adapter, vscdb
from crystal_nb.adapters.base import open_file, read_file
from crystal_nb.adapters.codex_files import Opened
from crystal_nb.errors import SourceError, UnknownAdapterError
from crystal_nb.records import Candidate, Fate

__all__ = ["raw_record", "raw_records"]

_COLUMNS = {
    "ItemTable": ("key", "value"),
    "cursorDiskKV": ("key", "value"),
    "meta": ("key", "value"),
    "blobs": ("id", "data"),
}
_ROW = re.compile(f"(?:({'|'.join(_COLUMNS)})[/:])?([^#]*)#?(.*)", re.DOTALL)
_LINE = re.compile("#line ([0-9]+)")
_SPAN = re.compile(r"@([0-9]+)\+([0-9]+)")
_CHUNK = 1 << 20


def raw_record(candidate: Candidate, fate: Fate) -> bytes:
    r"""Bytes of the record that a fate is about.

    Raises
    ------
    SourceError
        If the file can't be read, or has nothing there any more.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
    ...     _ = file.write(b"{}\n[]\n")
    ...     file.flush()
    ...     candidate = Candidate("codex", "7", file.name, 6, "", "")
    ...     raw_record(candidate, Fate("dropped", "line", offset=3, size=3))
    b'[]\n'
    """
    return next(raw_records(candidate, [fate]))


def raw_records(candidate: Candidate, fates: Iterable[Fate]) -> Iterator[bytes]:
    """Bytes of the records of some fates, each document read once; raises as `raw_record`.

    >>> list(raw_records(Candidate("codex", "7", "gone.jsonl", 6, "", ""), []))
    []
    """
    reader = _Reader(candidate)
    for fate in fates:
        path = fate.file_path or candidate.file_path
        try:
            record = reader.read(path, fate)
        except (OSError, sqlite3.Error, ValueError, LookupError, TypeError, RecursionError) as error:
            reason = str(error) or type(error).__name__
            message = f"the record can't be read again: {reason}"
            raise SourceError(message, source=candidate.source, path=path) from error
        yield record


class _Reader:
    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self._documents: dict[str, Any] = {}

    def read(self, path: str, fate: Fate) -> bytes:
        if fate.offset is not None and fate.size is not None:
            return _slice(path, fate.offset, fate.size)
        if fate.key is None:
            raise ValueError("the fate has no place")
        key = fate.key if fate.file_path is None else _behind(os.path.basename(path), fate.key)
        if span := _SPAN.fullmatch(key):
            return _slice(path, int(span[1]), int(span[2]))
        if line := _LINE.fullmatch(key):
            return _line(path, int(line[1]))
        if key in ("", "#"):
            return read_file(path)
        if key.startswith(("/", "#/")):
            return _part(self._document(path), key.removeprefix("#"))
        return vscdb.read(path, lambda connection: _value(connection, key), wal=True)

    def _document(self, path: str) -> Any:
        if path not in self._documents:
            self._documents[path] = _document(self.candidate, path)
        return self._documents[path]


def _behind(name: str, key: str) -> str:
    """The place in another file: what stands behind its name."""
    tail = key.partition(name)[2]
    if not tail:
        raise ValueError(f"{key} is no place in {name}")
    return tail


def _document(candidate: Candidate, path: str) -> Any:
    """What pointers lead into, as the adapter that wrote them sees it."""
    try:
        adapter: Any = get_adapter(candidate.parser_version or candidate.source)
    except UnknownAdapterError:
        adapter = None
    as_read = getattr(adapter, "document", None)
    return _parsed(read_file(path)) if as_read is None else as_read(Path(path), adapter.rules)


def _slice(path: str, offset: int, size: int) -> bytes:
    data = _unpacked(path, offset, size) if path.endswith(".zst") else _plain(path, offset, size)
    if len(data) != size:
        raise ValueError("the file ends before the record")
    return data


def _plain(path: str, offset: int, size: int) -> bytes:
    with open_file(path) as file:
        file.seek(offset)
        return file.read(size) or b""


def _unpacked(path: str, offset: int, size: int) -> bytes:
    data = bytearray()
    with Opened(path) as file:
        for ahead, room in ((False, offset), (True, size)):
            while room and (count := file.readinto(chunk := bytearray(min(room, _CHUNK)))):
                data += chunk[:count] if ahead else b""
                room -= count
    return bytes(data)


def _line(path: str, number: int) -> bytes:
    with open_file(path) as file:
        for line in islice(file, number - 1, None):
            return line
    raise ValueError("the file ends before the record")


def _value(connection: sqlite3.Connection, place: str) -> bytes:
    """The value of a row, or the part of it that a pointer leads to."""
    table, key, pointer = _ROW.fullmatch(place).groups()  # type: ignore[union-attr]
    list_key, _, item = key.rpartition("/")
    rows = [(key, pointer), (list_key, f"/{item}{pointer}")]
    if pointer and not pointer.startswith("/"):
        rows = [(f"{key}.entry.{pointer}", ""), (key, f"/entries/{pointer}")]
    for row, inner in rows:
        value = _row(connection, table or "ItemTable", row)
        if value is not None:
            return _part(_parsed(value), inner) if inner else value
    raise LookupError(f"{table or 'ItemTable'} has no {key}")


def _row(connection: sqlite3.Connection, table: str, key: str) -> bytes | None:
    id, value = _COLUMNS[table]
    row = connection.execute(f"SELECT {value} FROM {table} WHERE {id} = CAST(? AS TEXT)", (key,)).fetchone()
    return None if row is None else row[0] if isinstance(row[0], bytes) else str(row[0]).encode()


def _parsed(data: bytes) -> Any:
    return ecma.parse_json(data.decode("utf-8", "replace"))


def _part(document: Any, pointer: str) -> bytes:
    return ecma.json_text(_at(document, pointer)).encode("utf-8", "surrogatepass")


def _at(value: Any, pointer: str) -> Any:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for at, name in enumerate(steps, 1):
        is_alone = name == "0" and at == len(steps) and not (isinstance(value, dict) and name in value)
        if isinstance(value, list):
            value = value[int(name)]
        elif not is_alone:
            value = value[name]
    return value
