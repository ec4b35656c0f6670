"""From a value of a frame back to the raw text in the tool's own file.

A fate says where its record stands: line, offset and size in a text file (of a compressed one, in what
it holds), or a key: a JSON pointer into a document (``/requests/0``), a table and a key of a database
(``cursorDiskKV/bubbleId:…``), either with a pointer into that value (``…#/list/0``).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.adapters import vscdb
from crystal_nb.adapters.base import open_file, read_file
from crystal_nb.errors import SourceError
from crystal_nb.records import Candidate, Fate, Message

__all__ = ["SourceText", "raw_record", "sources_of"]

_TABLES = ("cursorDiskKV", "ItemTable")


class SourceText(Struct, frozen=True):
    """Raw text behind a value.

    Attributes
    ----------
    text : str
        The raw record, or the JSON text of the part of it that holds the value; bad UTF-8 as U+FFFD.
    path : str
        File or database.
    line, offset, size : int | None
        Place of the raw record in a text file: 1-based line, byte offset and bytes.
    key : str | None
        Place in a database or document.
    pointer : str | None
        JSON pointer of the part inside the record; None: the whole record.
    """

    text: str
    path: str
    line: int | None = None
    offset: int | None = None
    size: int | None = None
    key: str | None = None
    pointer: str | None = None

    def __str__(self) -> str:
        return self.text


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
    try:
        data = _read(candidate.file_path, fate)
    except (OSError, sqlite3.Error, ValueError, LookupError, TypeError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise SourceError(
            f"the record can't be read again: {reason}", source=candidate.source, path=candidate.file_path
        ) from error
    if fate.offset is not None and fate.size is not None and len(data) != fate.size:
        raise SourceError("the file ends before the record", source=candidate.source, path=candidate.file_path)
    return data


def _read(path: str, fate: Fate) -> bytes:
    if fate.offset is not None and fate.size is not None:
        return _slice(path, fate.offset, fate.size)
    if fate.key is None:
        raise ValueError("the fate has no place")
    if fate.key == "" or fate.key.startswith("/"):
        return _part(_document(path), fate.key)
    key, _, pointer = fate.key.partition("#")
    value = vscdb.read(path, lambda connection: _value(connection, key), wal=True)
    return _part(value, pointer) if pointer else value


def _document(path: str) -> bytes:
    """A file that is one JSON document, or what the first entry of a log (Copilot's) begins with."""
    data = read_file(path)
    if not path.endswith(".jsonl"):
        return data
    return _part(data.partition(b"\n")[0], "/v")


def _slice(path: str, offset: int, size: int) -> bytes:
    if path.endswith(".zst"):
        return _decompressed(path, offset, size)
    with open_file(path) as file:
        file.seek(offset)
        return file.read(size) or b""


def _decompressed(path: str, offset: int, size: int) -> bytes:
    import zstandard

    with open_file(path) as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as stream:
        while offset > 0:
            skipped = len(stream.read(min(offset, 1 << 20)))
            if not skipped:
                return b""
            offset -= skipped
        return bytes(stream.read(size))


def _value(connection: sqlite3.Connection, place: str) -> bytes:
    table, _, key = place.partition("/")
    if table not in _TABLES:
        table, key = "ItemTable", place
    row = connection.execute(f"SELECT value FROM {table} WHERE key = CAST(? AS TEXT)", (key,)).fetchone()
    if row is None:
        raise LookupError(f"{table} has no {key}")
    return row[0] if isinstance(row[0], bytes) else str(row[0]).encode()


def _part(document: bytes, pointer: str) -> bytes:
    return ecma.json_text(_at(ecma.parse_json(document.decode("utf-8", "replace")), pointer)).encode(
        "utf-8", "surrogatepass"
    )


def _at(value: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def sources_of(
    candidate: Candidate, fates: Sequence[Fate], index: int, message: Message, field: str | None
) -> list[SourceText]:
    """Raw text behind a message, or behind one of its fields, a part per record that gave to it."""
    found = []
    for fate in fates:
        if fate.message_index == index and fate.status in ("kept", "merged"):
            text = raw_record(candidate, fate).decode("utf-8", "replace")
            place = (candidate.file_path, fate.line, fate.offset, fate.size, fate.key)
            if field is None:
                found.append(SourceText(text, *place))
            else:
                parts = _parts_of(text, getattr(message, field))
                found += [SourceText(part, *place, pointer) for pointer, part in parts]
    return found


def _parts_of(record: str, value: Any) -> Iterator[tuple[str, str]]:
    """Parts of a record whose value is the given one, or is a text that makes it up or contains it."""
    try:
        document = ecma.parse_json(record)
    except ValueError:
        return
    for pointer, leaf in _leaves(document):
        if _gave(leaf, value):
            yield pointer, json.dumps(leaf, ensure_ascii=False)


def _leaves(document: Any) -> Iterator[tuple[str, Any]]:
    """Pointers and values of all that is neither object nor array, without recursion."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        pointer, value = waiting.pop()
        if isinstance(value, dict):
            steps = ((str(k).replace("~", "~0").replace("/", "~1"), v) for k, v in value.items())
            waiting += [(f"{pointer}/{step}", v) for step, v in reversed(list(steps))]
        elif isinstance(value, list):
            waiting += [(f"{pointer}/{n}", v) for n, v in reversed(list(enumerate(value)))]
        else:
            yield pointer, value


def _gave(leaf: Any, value: Any) -> bool:
    if not (isinstance(leaf, str) and isinstance(value, str)):
        return type(leaf) is type(value) and leaf == value and leaf is not None
    text = ecma.trim(leaf)
    return bool(text and value) and (leaf == value or (len(text) > 1 and text in value) or ecma.trim(value) in leaf)
