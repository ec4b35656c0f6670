"""Reading values of any JSON type out of a chat session: texts, places, numbers, times."""

from __future__ import annotations

from typing import Any

from crystal_nb import ecma

__all__ = ["as_dict", "as_list", "json_of", "mark", "moment", "number", "place", "place_name", "text_of", "unique"]

_MARK_CHARACTERS = 200
_MAX_NESTING = 20
_LARGEST = 2**63 - 1


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one.

    >>> as_dict(None)
    {}
    """
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one.

    >>> as_list("ab")
    []
    """
    return value if isinstance(value, list) else []


def text_of(value: Any, between: str = "") -> str:
    """Text of a markdown value: a text, an object with a ``value``, or a list of these.

    >>> text_of("a"), text_of({"value": {"value": "b"}}), text_of(["c", {"value": "d"}, 5], "-"), text_of(None)
    ('a', 'b', 'c-d', '')
    """
    return _text_of(value, between, _MAX_NESTING)


def _text_of(value: Any, between: str, depth: int) -> str:
    if isinstance(value, str):
        return value
    if depth and isinstance(value, dict):
        return _text_of(value.get("value"), between, depth - 1)
    if depth and isinstance(value, list):
        texts = [_text_of(v, "", depth - 1) for v in value]
        return between.join(t for t in texts if t)
    return ""


def place(value: Any) -> str:
    """Path or address that a URI, a location or a symbol names; ``""`` for none.

    >>> place({"$mid": 1, "scheme": "file", "path": "/p/a.py"}), place({"uri": {"scheme": "ssh", "path": "/b"}})
    ('/p/a.py', 'ssh:/b')
    """
    for _ in range(_MAX_NESTING):
        if not isinstance(value, dict):
            break
        inner = next((value[name] for name in ("uri", "location") if name in value), None)
        if inner is None:
            return _uri_text(value)
        value = inner
    return value if isinstance(value, str) else ""


def _uri_text(uri: dict[str, Any]) -> str:
    path, scheme, authority = (text_of(uri.get(name)) for name in ("path", "scheme", "authority"))
    if scheme in ("", "file"):
        return text_of(uri.get("fsPath")) or (f"//{authority}{path}" if authority else path)
    return f"{scheme}://{authority}{path}" if authority else f"{scheme}:{path}"


def place_name(value: Any) -> str:
    """Name that the tool shows for a reference: the symbol's, else the file's.

    >>> place_name({"name": "main", "location": {}}), place_name({"path": "/p/a.py"})
    ('main', 'a.py')
    """
    name = value.get("name") if isinstance(value, dict) else None
    if isinstance(name, str) and name:
        return name
    path = place(value)
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def number(*values: Any) -> int | None:
    """The first of the values that is a count.

    >>> number(None, True, "5", -1, 7.0)
    7
    """
    for value in values:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _LARGEST:
            return int(value)
    return None


def moment(value: Any) -> str | None:
    """A time in ms, or as ISO text in UTC, as ISO text; None for anything else, which includes null and 0.

    >>> moment(1767225600000), moment("2026-01-01T00:00:00Z"), moment(None), moment("today")
    ('2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', None, None)
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    is_utc = isinstance(value, str) and value[-1:] == "Z" and "T" in value
    ms = ecma.date_ms(value) if is_number or is_utc else None
    return None if ms is None else ecma.iso_time(ms)


def json_of(value: Any) -> str | None:
    """A value as text: a text as it is, anything else as JSON; None for null and for what is too deep to write.

    >>> json_of("a"), json_of({"b": 1}), json_of(None)
    ('a', '{"b":1}', None)
    """
    if value is None or isinstance(value, str):
        return value
    try:
        return ecma.json_text(value)
    except RecursionError:
        return None


def mark(name: str, *details: Any) -> str:
    """A mark: a name and what is known besides, short and on one line.

    >>> mark("file", "/p/a.py", None, ""), mark("vote")
    ('file /p/a.py', 'vote')
    """
    known = [ecma.to_text(d) for d in details if d is not None and d != "" and not isinstance(d, (dict, list))]
    return " ".join(" ".join([name, *known]).split())[:_MARK_CHARACTERS]


def unique(id: str, taken: set[str]) -> str:
    """An id that is not taken yet, with a number where it has to be; it is taken then.

    >>> taken = {"a"}
    >>> unique("a", taken), unique("a", taken), unique("b", taken)
    ('a#2', 'a#3', 'b')
    """
    name, number = id, 1
    while name in taken:
        number += 1
        name = f"{id}#{number}"
    taken.add(name)
    return name
