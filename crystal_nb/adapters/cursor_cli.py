"""Parsing a ``store.db`` of Cursor's command line agent.

Source: ``formats/cursor.md`` section 2.8. The root blob lists the messages; the order of rows means nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from crystal_nb.adapters import vscdb
from crystal_nb.adapters.base import Parsed, read_file
from crystal_nb.adapters.cursor_draft import CarefulDraft, Piece, Place, conversation
from crystal_nb.adapters.cursor_parts import add_message
from crystal_nb.adapters.cursor_places import NAME
from crystal_nb.adapters.cursor_values import json_of, members, raw_of, string
from crystal_nb.details import Link
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate

__all__ = ["message_ids", "read_store", "sidecar"]

_ID_BYTES = 32
_ORIGIN = "store.db, which names no version"


def sidecar(store: str | os.PathLike[str]) -> dict[str, Any]:
    """What ``meta.json`` beside a store says; nothing where there is none."""
    try:
        return members(json_of(read_file(Path(store).with_name("meta.json"))))
    except (OSError, ValueError):
        return {}


class _Store(NamedTuple):
    meta: dict[str, Any]
    blobs: dict[str, bytes]
    """The root and what it names."""
    order: list[str]
    others: list[tuple[str, int]]


def read_store(candidate: Candidate, links: tuple[Link, ...], *, logs: bool) -> Parsed:
    """Parse one store.

    Raises
    ------
    OSError, sqlite3.DatabaseError
        If it can't be read.
    ParseError
        If it is encrypted or laid out in an unknown way.
    """
    try:
        store = vscdb.read(candidate.file_path, _load, wal=logs)
    except ValueError as error:
        raise ParseError(str(error), source=NAME, path=candidate.file_path) from None
    draft = CarefulDraft()
    draft.note("metadata", "meta", Place("meta/0"))
    if root := string(store.meta.get("latestRootBlobId")):
        draft.note("metadata", "root", Place(f"blobs/{root}"))
    for id in store.order:
        _add_blob(draft, id, store.blobs.get(id))
    draft.flush()
    for id, size in store.others:
        draft.note("dropped", "blob", Place(f"blobs/{id}", size=size), "not named by the newest root")
    beside = sidecar(candidate.file_path)
    return conversation(
        candidate,
        draft,
        project=candidate.project_dir,
        title=string(beside.get("title"), store.meta.get("name")),
        links=links,
        created=beside.get("createdAtMs", store.meta.get("createdAt")),
        updated=beside.get("updatedAtMs"),
    )


def _load(connection: vscdb.Connection) -> _Store:
    row = connection.execute("SELECT value FROM meta WHERE key = '0'").fetchone()
    meta = _meta(raw_of(row[0])) if row else {}
    root_id = string(meta.get("latestRootBlobId")) or ""
    sizes = {_text(id): size for id, size in connection.execute("SELECT id, length(data) FROM blobs ORDER BY id")}
    root = _blob(connection, root_id)
    if not root:
        if not meta or root_id:
            raise ValueError("unknown layout: the newest root is not there")
        return _Store(meta, {}, [], list(sizes.items()))
    is_encrypted = meta.get("blobEncryptionKey") is not None
    try:
        order = message_ids(root)
    except ValueError:
        order = []
    blobs = {id: data for id in order if (data := _blob(connection, id)) is not None}
    if is_encrypted and not any(data.lstrip()[:1] == b"{" for data in blobs.values()):
        raise ValueError("encrypted: the store has a key for its blobs, and none is readable as it is")
    if not order:
        raise ValueError("unknown layout: the root lists no messages")
    others = [(id, size or 0) for id, size in sizes.items() if id not in blobs and id != root_id]
    return _Store(meta, blobs, order, others)


def _text(value: Any) -> str:
    return raw_of(value).decode("utf-8", "replace")


def _blob(connection: vscdb.Connection, id: str) -> bytes | None:
    row = connection.execute("SELECT data FROM blobs WHERE id = ?", (id,)).fetchone()
    return raw_of(row[0]) if row else None


def _meta(data: bytes) -> dict[str, Any]:
    """JSON, as hex digits or as it is."""
    try:
        return members(json_of(bytes.fromhex(data.decode("ascii"))))
    except ValueError:
        pass
    try:
        return members(json_of(data))
    except ValueError:
        return {}


def message_ids(root: bytes) -> list[str]:
    r"""Ids in field 1 of a root blob, in order.

    Raises
    ------
    ValueError
        If it is no protobuf message.

    >>> message_ids(b"\x0a\x20" + bytes(31) + b"\x07")[0][-4:]
    '0007'
    """
    return [value.hex() for field, value in _fields(root) if field == 1 and len(value) == _ID_BYTES]


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of the length-delimited fields of a protobuf message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            _, at = _varint(data, at)
            continue
        size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}.get(kind, -1), at)
        if size < 0 or at + size > len(data):
            raise ValueError("no protobuf message")
        if kind == 2:
            yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise ValueError("no protobuf message")


def _add_blob(draft: CarefulDraft, id: str, data: bytes | None) -> None:
    key = f"blobs/{id}"
    if data is None:
        draft.note("dropped", "blob", Place(key), "named by the root, but not there")
        return
    place = Place(key, size=len(data), head=data)
    try:
        value = json_of(data)
    except ValueError:
        draft.note("dropped", "blob", place, "not JSON")
        return
    role = string(members(value).get("role"))
    content = members(value).get("content")
    if role in ("user", "assistant", "tool"):
        own = "assistant" if role == "tool" else role
        add_message(draft, own, content, Piece(kind=role, id=string(members(value).get("id")) or id), place, _ORIGIN)
    elif role == "system":
        draft.note("dropped", "system", place, "system prompt")
    else:
        draft.note("dropped", role or "blob", place, f"unknown kind ({_ORIGIN})")
