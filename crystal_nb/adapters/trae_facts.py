"""Small readings of values that Trae's stores don't promise the type of: times, texts, names, projects."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from crystal_nb import ecma
from crystal_nb.adapters.base import read_file
from crystal_nb.adapters.typed import raw_bytes

__all__ = [
    "content_of",
    "encoded",
    "id_time",
    "json_of",
    "label_of",
    "members",
    "project_of",
    "text_of",
    "time_of",
    "window_project",
]

_SECONDS_BELOW = 1e11
_OBJECT_ID = re.compile(r"[0-9a-f]{24}", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,16}(\.[0-9]+)?")
_DRIVE = re.compile(r"/[A-Za-z]:")
_SHOWN = 200
_DEPTH = 20
_NAMES = ("name", "fileName", "filePath", "file_path", "path", "relativePath", "uri", "url", "title", "type", "id")


def time_of(value: Any) -> str | None:
    """ISO text of a time in ms, in seconds, or as text; None when it is none.

    >>> time_of(1700000000500), time_of(1700000000), time_of("2026-01-01T00:00:00Z"), time_of("soon")
    ('2023-11-14T22:13:20.500Z', '2023-11-14T22:13:20.000Z', '2026-01-01T00:00:00.000Z', None)
    """
    if isinstance(value, str):
        text = value.strip()
        return time_of(float(text)) if _NUMBER.fullmatch(text) else _iso(ecma.date_ms(text))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        return None
    return _iso(ecma.date_ms(value * 1000 if value < _SECONDS_BELOW else value))


def _iso(ms: int | None) -> str | None:
    return None if ms is None else ecma.iso_time(ms)


def id_time(id: Any) -> str | None:
    """When an ObjectId was made, which its first eight digits tell; None for other ids.

    >>> id_time("665000000000000000000001"), id_time("s1")
    ('2024-05-24T02:48:32.000Z', None)
    """
    return time_of(int(id[:8], 16)) if isinstance(id, str) and _OBJECT_ID.fullmatch(id) else None


def text_of(value: Any) -> str:
    """A text, or a number as text; ``""`` for anything else.

    >>> text_of("a"), text_of(5), text_of(None), text_of([])
    ('a', '5', '', '')
    """
    if isinstance(value, str):
        return value
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return ecma.number_text(value) if is_number else ""


def content_of(value: Any) -> tuple[str, tuple[str, ...]]:
    """Text of a message's content, and marks for what in it is no text.

    >>> content_of(" hi "), content_of([{"type": "text", "text": "a"}, {"type": "image", "name": "b.png"}])
    (('hi', ()), ('a', ('image b.png',)))
    """
    texts: list[str] = []
    marks: list[str] = []
    _collect(value, texts, marks, _DEPTH)
    return ecma.trim("\n".join(texts)), tuple(marks)


def _collect(value: Any, texts: list[str], marks: list[str], depth: int) -> None:
    if isinstance(value, list) and depth:
        for part in value:
            _collect(part, texts, marks, depth - 1)
    elif isinstance(value, dict) and depth:
        inner = next((value[name] for name in ("text", "content", "value") if value.get(name)), None)
        if inner is not None:
            _collect(inner, texts, marks, depth - 1)
        elif value:
            marks.append(label_of(text_of(value.get("type")) or "part", value))
    elif text := text_of(value):
        texts.append(text)


def label_of(kind: str, value: Any) -> str:
    """Name an attachment in a few words; bytes in a data URI are only counted.

    >>> label_of("file", {"path": "a.py"}), label_of("image", "data:image/png;base64,AAAA")
    ('file a.py', 'image image/png 4 characters')
    """
    if isinstance(value, dict):
        value = next((value[name] for name in _NAMES if isinstance(value.get(name), str) and value[name] != kind), "")
    name = text_of(value)
    if name.startswith("data:"):
        head, _, data = name.partition(",")
        name = f"{head[5:].partition(';')[0]} {len(data)} characters"
    return f"{kind} {name[:_SHOWN]}".rstrip()


def json_of(value: Any) -> str | None:
    """A value as text: a text as it is, anything else as JSON; None for null.

    >>> json_of("ls"), json_of({"a": 1}), json_of(None)
    ('ls', '{"a":1}', None)
    """
    if value is None or isinstance(value, str):
        return value
    try:
        return ecma.json_text(value)
    except RecursionError:
        return "(nested too deeply to show)"


def encoded(value: Any) -> bytes:
    """JSON of a value, nearly as Trae wrote it; nothing where it is too deep for that.

    >>> encoded({"a": ["b", 1]})
    b'{"a":["b",1]}'
    """
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return raw_bytes(value)


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """Last step of the JSON pointer to each member of a list or an object, and the member.

    >>> list(members(["a"])), list(members({"x/y": "a"})), list(members(None))
    ([('0', 'a')], [('x~1y', 'a')], [])
    """
    if isinstance(value, list):
        yield from ((str(at), member) for at, member in enumerate(value))
    elif isinstance(value, dict):
        yield from ((key.replace("~", "~0").replace("/", "~1"), member) for key, member in value.items())


def project_of(uri: Any) -> str:
    r"""Path behind a URI text, a URI object or a plain path; what is not on this machine keeps its scheme.

    >>> project_of("file:///home/u/my%20app"), project_of("file:///c%3A/app"), project_of("file://wsl%24/U/app")
    ('/home/u/my app', 'c:/app', '\\\\wsl$\\U\\app')
    >>> project_of("vscode-remote://wsl%2Bubuntu/home/u"), project_of({"path": "/srv", "scheme": "file"})
    ('vscode-remote://wsl+ubuntu/home/u', '/srv')
    """
    if isinstance(uri, dict):
        path, scheme, host = (text_of(uri.get(name)) for name in ("path", "scheme", "authority"))
        return _local(host, path) if scheme in ("", "file") else f"{scheme}://{host}{path}"
    if not isinstance(uri, str) or "://" not in uri:
        return uri if isinstance(uri, str) else ""
    try:
        decoded = ecma.decode_uri_component(uri)
    except ValueError:
        return uri
    scheme, _, rest = decoded.partition("://")
    host, slash, path = rest.partition("/")
    return _local(host, slash + path) if scheme.lower() == "file" else decoded


def _local(host: str, path: str) -> str:
    if host and host != "localhost":
        return f"\\\\{host}{path}".replace("/", "\\")
    return path[1:] if _DRIVE.match(path) else path


def window_project(path: str | os.PathLike[str]) -> str:
    """Project that a ``workspace.json`` names under any of its three keys; ``""`` when it is not known."""
    try:
        document = ecma.parse_json(read_file(path).decode("utf-8-sig", "replace"))
    except (OSError, ValueError):
        return ""
    named = document if isinstance(document, dict) else {}
    found = (project_of(named.get(name)) for name in ("folder", "workspace", "configuration"))
    return next(filter(None, found), "")
