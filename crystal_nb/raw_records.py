"""Raw records as plain Python values with their places: lines, documents, rows."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters import vscdb
from crystal_nb.adapters.base import file_candidate, read_file
from crystal_nb.adapters.jsonl import Broken, read_blocks
from crystal_nb.adapters.typed import NotAnObject
from crystal_nb.errors import ParseError, ScanError
from crystal_nb.parse_session import RawRecord
from crystal_nb.records import Candidate, printable

__all__ = ["document_records", "line_records", "read_document", "row_records", "sqlite_candidates"]

_FIRST_PARTS = 100
"""Of a value that is too deep to be written: more than is shown of it, and far from too deep."""
_BOM = b"\xef\xbb\xbf"


class _PlainDecoder:
    """Decodes JSON objects into dicts, as tolerant as ``json``; for `read_blocks`."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(dict[str, Any])
        self.decode_lines = self._decoder.decode_lines

    def decode(self, data: bytes | memoryview) -> Any:
        try:
            return self._decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            value = _loads(bytes(data))
            return value if isinstance(value, dict) else NotAnObject(value)


def _integer(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:  # more digits than Python makes an integer of
        return float(text)


_JSON = json.JSONDecoder(parse_int=_integer)
_WHITE_SPACE = " \t\n\r"


def _loads(data: bytes) -> Any:
    """Any JSON value, however deep; a BOM before it is skipped.

    Raises
    ------
    ValueError
        If it is no JSON.
    """
    text = data.removeprefix(_BOM).decode("utf-8", "replace")
    try:
        return _JSON.decode(text)
    except RecursionError:
        value, end = ecma.decode_deep(text, _JSON)
    if rest := text[end:].strip(_WHITE_SPACE):
        raise ValueError(f"text after the JSON value: {rest[:20]}")
    return value


_DECODER = _PlainDecoder()


def line_records(path: str | PathLike[str]) -> Iterator[RawRecord]:
    r"""Every line of a file of JSON lines; together they are the whole file.

    Raises
    ------
    OSError
        If the file can't be read.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "a.jsonl")
    >>> _ = file.write_bytes(b'{"a": 1}\n[]\n{"a')
    >>> [(r.line, r.offset, r.size, r.value, r.problem) for r in line_records(file)]
    [(1, 0, 9, {'a': 1}, None), (2, 9, 3, [], 'not an object'), (3, 12, 3, None, 'invalid JSON')]
    """
    blocks: Iterator[Any] = read_blocks(path, _DECODER)  # type: ignore[arg-type]
    for block in blocks:
        places = zip(block.records, block.starts, block.stops, strict=True)
        for line, (value, start, stop) in enumerate(places, block.first_line):
            data = bytes(block.data[start:stop])
            yield _line_record(value, data, line, block.offset + start)


def _line_record(value: Any, data: bytes, line: int, offset: int) -> RawRecord:
    problem = None
    if isinstance(value, Broken):
        value, problem = None, value.reason
    elif isinstance(value, NotAnObject):
        value, problem = value.value, "not an object"
    return RawRecord(value, data.rstrip(b"\r\n"), problem, line, offset, len(data))


def read_document(candidate: Candidate) -> RawRecord:
    """The candidate's file as one JSON document.

    Raises
    ------
    ParseError
        If it is none.
    OSError
        If the file can't be read.
    """
    data = read_file(candidate.file_path)
    try:
        return RawRecord(_loads(data), data, offset=0, size=len(data), key="")
    except ValueError as error:
        reason = f"the document is no JSON: {error}"
        raise ParseError(reason, source=candidate.source, path=candidate.file_path) from error


def document_records(document: RawRecord, pointer: str | None) -> Iterator[RawRecord]:
    """The items of the list or object at a pointer, or the document itself.

    >>> whole = RawRecord({"turns": [{"n": 1}]}, b'{"turns":[{"n":1}]}', key="")
    >>> [(r.key, r.value) for r in document_records(whole, "/turns")]
    [('/turns/0', {'n': 1})]
    >>> [r.problem for r in document_records(whole, "/messages")]
    ['the document has no list at /messages']
    """
    if pointer is None:
        yield document
        return
    place = _at(document.value, pointer)
    if not isinstance(place, (list, dict)):
        yield replace(document, problem=f"the document has no list at {pointer}")
        return
    items = place.items() if isinstance(place, dict) else enumerate(place)
    # all of them now: a parser function can reach the document, and what it changes there is no raw record
    yield from [RawRecord(value, _text(value), key=f"{pointer}/{_escape(str(key))}") for key, value in items]


def _at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _text(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, default=_blob)
    except RecursionError:
        text = "".join(islice(json.JSONEncoder(ensure_ascii=False, default=_blob).iterencode(value), _FIRST_PARTS))
    return text.encode("utf-8", "backslashreplace")


def _blob(value: Any) -> str:
    return f"{len(value)} bytes: {value[:32].hex()}" if isinstance(value, bytes) else repr(value)


def row_records(query: str, conversation: str, candidate: Candidate) -> Iterator[RawRecord]:
    """Rows of a query that belong to the candidate's conversation, as dicts.

    Raises
    ------
    ParseError
        If the database can't be asked, the query does more than read it, or has no such column.
    """
    try:
        rows = vscdb.read(candidate.file_path, lambda c: _rows(c, query, conversation), wal=True)
    except (sqlite3.Error, LookupError) as error:
        raise ParseError(str(error), source=candidate.source, path=candidate.file_path) from error
    for number, row in enumerate(rows, 1):
        if _id(row[conversation]) == candidate.id:
            yield RawRecord(row, _text(row), key=f"row {number}")


def sqlite_candidates(name: str, query: str, conversation: str, path: Path) -> list[Candidate]:
    """One candidate per distinct value of the column, in the order of the rows.

    Size and time are those of the database and its write-ahead log together.

    Raises
    ------
    ScanError
        If the database can't be asked, the query does more than read it, or has no such column.
    """
    try:
        rows = vscdb.read(path, lambda c: _rows(c, query, conversation), wal=True)
    except (sqlite3.Error, LookupError) as error:
        raise ScanError(str(error), source=name, path=path) from error
    main = file_candidate(name, "", path, os.stat(path), "")
    try:
        log = file_candidate(name, "", path, os.stat(f"{path}-wal"), "")
    except OSError:
        log = replace(main, file_size=0)
    whole = replace(main, file_size=main.file_size + log.file_size, file_mtime=max(main.file_mtime, log.file_mtime))
    return [replace(whole, id=id) for id in dict.fromkeys(_id(row[conversation]) for row in rows)]


def _id(value: Any) -> str:
    return "NULL" if value is None else ecma.to_text(value) if isinstance(value, (str, int, float)) else _blob(value)


def _rows(connection: sqlite3.Connection, query: str, conversation: str) -> list[dict[str, Any]]:
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    refused: list[str] = []
    connection.set_authorizer(partial(_only_reads, refused))
    try:
        cursor = connection.execute(query)
    except (sqlite3.Error, sqlite3.Warning) as error:  # a Warning: several statements, in Python 3.11
        raise sqlite3.OperationalError(_REFUSED.format(refused[0]) if refused else str(error)) from error
    names = [column[0] for column in cursor.description or ()]
    if conversation not in names:
        raise LookupError(f"the query has no column {conversation!r}; it has {', '.join(names) or 'none'}")
    return [dict(zip(names, row, strict=True)) for row in cursor]


_REFUSED = "the query may do nothing but read this one database; it asks for {}"
_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_FOR_VIRTUAL_TABLES = {(sqlite3.SQLITE_PRAGMA, "data_version"), (sqlite3.SQLITE_UPDATE, "sqlite_master")}
"""SQLite asks for these by itself where a query reads a virtual table; the connection is read-only all the same."""
_ASKED = {
    getattr(sqlite3, f"SQLITE_{name}"): name.replace("_", " ")
    for name in (
        *("ALTER_TABLE", "ANALYZE", "ATTACH", "DELETE", "DETACH", "DROP_INDEX", "DROP_TABLE", "DROP_TEMP_TABLE"),
        *("DROP_TRIGGER", "DROP_VIEW", "DROP_VTABLE", "INSERT", "PRAGMA", "REINDEX", "SAVEPOINT", "TRANSACTION"),
        *("CREATE_INDEX", "CREATE_TABLE", "CREATE_TEMP_TABLE", "CREATE_TEMP_VIEW", "CREATE_TRIGGER", "CREATE_VIEW"),
        *("CREATE_VTABLE", "UPDATE"),
    )
}


def _only_reads(refused: list[str], action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Let a query read the database that is open, and nothing else; what is refused is noted."""
    allowed = action in _READS and not (action == sqlite3.SQLITE_FUNCTION and second == "load_extension")
    if allowed or (action, first) in _FOR_VIRTUAL_TABLES:
        return sqlite3.SQLITE_OK
    what = (_ASKED.get(action), first, second)
    refused.append(printable(" ".join(filter(None, what))))
    return sqlite3.SQLITE_DENY
