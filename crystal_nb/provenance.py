"""From a value of a frame back to the raw text in the tool's own file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.details import Details
from crystal_nb.errors import UnknownConversationError
from crystal_nb.records import Candidate, Fate, Message
from crystal_nb.rereading import raw_records

__all__ = ["FIELDS", "SourceText", "sources_of"]

_OF_TOOLS = {"tool_name": "name", "tool_input": "input", "tool_result": "result"}
FIELDS = tuple(
    name
    for name in (*Message.__struct_fields__, *_OF_TOOLS, *Details.__struct_fields__)
    if name not in ("details", "tools")
)
"""What can be asked for: fields of a message, and columns of the messages that come from its details."""
_START = re.compile(r'[{\[]\s*["{]')
_TRIES = 100
_WORD = re.compile(r"\w+")


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


class _Leaf(NamedTuple):
    """A text or other single value in a raw record; the record itself has no pointer."""

    fate: Fate
    pointer: str | None
    value: Any


def sources_of(
    candidate: Candidate, fates: Sequence[Fate], index: int, message: Message, field: str | None
) -> list[SourceText]:
    """Raw text behind a message, or behind one of its fields, a part per record that gave to it.

    Raises
    ------
    UnknownConversationError
        If a message has no such field.
    """
    if field is not None and field not in FIELDS:
        raise UnknownConversationError(f"a message has no field {field!r}; it has {', '.join(FIELDS)}")
    given = [fate for fate in fates if fate.status in ("kept", "merged") and index in fate.messages]
    texts = [raw.decode("utf-8", "replace") for raw in raw_records(candidate, given)]
    if field is None:
        return [_source(candidate, fate, text) for fate, text in zip(given, texts, strict=True)]
    is_plain = candidate.file_path.endswith(".txt")
    leaves = [_Leaf(f, *leaf) for f, text in zip(given, texts, strict=True) for leaf in _leaves_of(text, is_plain)]
    if field in Message.__struct_fields__:
        parts = _parts_of(leaves, getattr(message, field))
    else:
        chosen = {id(leaf) for value in _in_details(message, field) for leaf in _exactly(leaves, value)}
        parts = [leaf for leaf in leaves if id(leaf) in chosen]
    return [_source(candidate, p.fate, _shown(p), p.pointer) for p in parts]


def _in_details(message: Message, column: str) -> tuple[Any, ...]:
    """What stands in one of the columns that come from a message's details."""
    details = message.details or Details()
    if column in _OF_TOOLS:
        values = tuple(getattr(tool, _OF_TOOLS[column]) for tool in details.tools)
    else:
        value = getattr(details, column)
        values = value if isinstance(value, tuple) else (value,)
    return tuple(value for value in values if value is not None)


def _exactly(leaves: list[_Leaf], value: Any) -> list[_Leaf]:
    """Leaves that are the value; only where there is none, those that it is made of."""
    equal = [leaf for leaf in leaves if type(leaf.value) is type(value) and leaf.value == value]
    return equal or _parts_of(leaves, value)


def _source(candidate: Candidate, fate: Fate, text: str, pointer: str | None = None) -> SourceText:
    path = fate.file_path or candidate.file_path
    return SourceText(text, path, fate.line, fate.offset, fate.size, fate.key, pointer)


def _shown(leaf: _Leaf) -> str:
    return leaf.value if leaf.pointer is None else json.dumps(leaf.value, ensure_ascii=False)


def _parts_of(leaves: list[_Leaf], value: Any) -> list[_Leaf]:
    """Leaves that are the value, make it up or contain it; else those that have a line of it, or most of its words."""
    found = [leaf for leaf in leaves if _gave(leaf.value, value)]
    if found or not isinstance(value, str):
        return found
    texts = [leaf for leaf in leaves if isinstance(leaf.value, str)]
    lines = [line for line in map(ecma.trim, value.splitlines()) if line]
    if found := [leaf for leaf in texts if any(line in leaf.value for line in lines)]:
        return found
    words = set(_WORD.findall(value))
    counts = [sum(word in leaf.value for word in words) for leaf in texts]
    return [leaf for leaf, count in zip(texts, counts, strict=True) if count and count == max(counts)]


def _leaves_of(record: str, is_plain: bool) -> Iterator[tuple[str | None, Any]]:
    """Pointers and values of all that is neither object nor array in the JSON of a record, be it torn or padded.

    A record that is plain text is one value.
    """
    documents = [] if is_plain else list(_documents(record))
    if not documents:
        yield None, record
    for document in documents:
        yield from _leaves(document)


def _documents(record: str) -> Iterator[Any]:
    try:
        yield ecma.parse_json(record.strip("\0\ufeff \t\r\n"))
    except ValueError:
        yield from _values_in(record)


def _values_in(text: str) -> Iterator[Any]:
    """JSON objects and arrays in a text that is no JSON as a whole."""
    decoder, at = json.JSONDecoder(strict=False), 0
    for start in islice(_START.finditer(text), _TRIES):
        if start.start() >= at:
            try:
                value, at = decoder.raw_decode(text, start.start())
            except (ValueError, RecursionError):
                continue
            yield value


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
