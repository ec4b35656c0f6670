"""Decoding JSON into flat Structs: fast and strict first, then as tolerant as ``JSON.parse``.

A Struct names only the fields that the rules read, with their usual types. What msgspec refuses
(another type, invalid UTF-8, a lone surrogate, great depth) goes through stdlib ``json`` and fills
the same Structs with whatever is there, so one rule function serves both.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Raw, Struct

from crystal_nb import ecma

__all__ = ["NotAnObject", "TypedDecoder", "fill", "raw_bytes"]

S = TypeVar("S", bound=Struct)


class NotAnObject(Struct, frozen=True):
    """A JSON value that is no object, where one was expected."""

    value: Any


class TypedDecoder(Generic[S]):
    """Decodes JSON objects into one Struct type.

    >>> class Line(Struct):
    ...     type: str | None = None
    >>> decoder = TypedDecoder(Line)
    >>> decoder.decode(b'{"type": "user", "more": 1}'), decoder.decode(b'{"type": 5}'), decoder.decode(b"[]")
    (Line(type='user'), Line(type=5), NotAnObject(value=[]))
    """

    def __init__(self, type: type[S]) -> None:
        self.type = type
        self._decoder = msgspec.json.Decoder(type)
        self.decode_lines = self._decoder.decode_lines

    def decode(self, data: bytes | memoryview) -> S | NotAnObject:
        """Decode one JSON text.

        Raises
        ------
        ValueError
            If it is no JSON.
        """
        try:
            return self._decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return self.decode_text(str(data, "utf-8", "replace"))

    def decode_text(self, text: str) -> S | NotAnObject:
        """Decode the tolerant way; raises as `decode` does."""
        return self.decode_value(ecma.parse_json(text))

    def decode_value(self, value: Any) -> S | NotAnObject:
        """Decode what another decoder left as it was (`msgspec.Raw`), or fill what the tolerant way gave."""
        if isinstance(value, Raw):
            return self.decode(bytes(value))
        return fill(self.type, value) if isinstance(value, dict) else NotAnObject(value)


def raw_bytes(value: Any) -> bytes:
    """The JSON of such a value: as it stands in the file, or written anew; nothing where it is too deep for that."""
    try:
        return bytes(value) if isinstance(value, Raw) else ecma.json_text(value).encode()
    except RecursionError:
        return b""


def fill(type: type[S], members: dict[str, Any]) -> S:
    """Make a Struct of what an object has under the Struct's keys, of whatever type it is."""
    fields = zip(type.__struct_fields__, type.__struct_encode_fields__, strict=True)
    hints = _nested(type)
    return type(**{name: _fit(hints.get(name), members[key]) for name, key in fields if key in members})


def _fit(nested: type[Struct] | None, value: Any) -> Any:
    """Fill objects where the field holds Structs, alone or in a list; leave the rest as it is."""
    if nested is None:
        return value
    if isinstance(value, dict):
        return fill(nested, value)
    if isinstance(value, list):
        return [fill(nested, v) if isinstance(v, dict) else v for v in value]
    return value


_NESTED: dict[type[Struct], dict[str, type[Struct]]] = {}


def _nested(type: type[Struct]) -> dict[str, type[Struct]]:
    """Which fields of a Struct hold another Struct, worked out once from its annotations."""
    if type not in _NESTED:
        hints = get_type_hints(type)
        found = {name: _struct_in(hint) for name, hint in hints.items()}
        _NESTED[type] = {name: struct for name, struct in found.items() if struct is not None}
    return _NESTED[type]


def _struct_in(hint: Any) -> type[Struct] | None:
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint
    return next((s for s in map(_struct_in, get_args(hint)) if s is not None), None)
