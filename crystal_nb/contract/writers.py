"""Sample conversations of the sources that keep many in one database, for the checks of the change policy."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from crystal_nb.scenarios.subjects import Sample, SampleMessage

__all__ = ["WRITERS"]

_FILLER = "x" * 3000
"""More than a page of the database per message, so that its size grows with them."""
_WINDOW = "0f000000000000000000000000000000"


def write_cursor(home: Path, sample: Sample) -> Path:
    """Write Cursor's databases with this one conversation.

    >>> import tempfile
    >>> write_cursor(Path(tempfile.mkdtemp()), Sample("s1", ())).name
    'state.vscdb'
    """
    user = home / ".config" / "Cursor" / "User"
    head = {"type": "head", "composerId": sample.id, "name": "Painting", "createdAt": 1_767_607_200_000}
    bubbles = [(f"bubbleId:{sample.id}:{m.id}", _bubble(m)) for m in sample.messages]
    rows = [(f"composerData:{sample.id}", {"_v": 10, "composerId": sample.id, "name": "Painting"}), *bubbles]
    window = _window(user)
    _write(window, {"ItemTable": [("composer.composerData", {"allComposers": [head]})]})
    return _write(user / "globalStorage" / "state.vscdb", {"ItemTable": [], "cursorDiskKV": rows})


def _bubble(m: SampleMessage) -> dict[str, Any]:
    kind = 1 if m.role == "user" else 2
    return {"_v": 3, "type": kind, "bubbleId": m.id, "text": m.text, "createdAt": m.time, "filler": _FILLER}


def write_trae(home: Path, sample: Sample) -> Path:
    """Write a window's database of Trae with this one conversation.

    >>> import tempfile
    >>> write_trae(Path(tempfile.mkdtemp()), Sample("s1", ())).name
    'state.vscdb'
    """
    turns = [
        {
            "role": m.role,
            "content": m.text,
            "turnId": f"t{number // 2}",
            "turnIndex": number // 2,
            "agentMessageId": m.id,
            "timestamp": 1_767_607_200_000 + number,
            "filler": _FILLER,
        }
        for number, m in enumerate(sample.messages)
    ]
    session = {"sessionId": sample.id, "createdAt": 1_767_607_200_000, "title": "Painting", "messages": turns}
    storage = {"list": [session], "currentSessionId": sample.id}
    return _write(_window(home / ".config" / "Trae" / "User"), {"ItemTable": [(_TRAE_KEY, storage)]})


_TRAE_KEY = "memento/icube-ai-agent-storage"


def _window(user: Path) -> Path:
    window = user / "workspaceStorage" / _WINDOW
    window.mkdir(parents=True, exist_ok=True)
    (window / "workspace.json").write_text('{"folder": "file:///srv/demo"}', encoding="utf-8")
    return window / "state.vscdb"


def _write(path: Path, tables: dict[str, Iterable[tuple[str, Any]]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # written in place, as the tools do: SQLite's change counter moves, which a file made anew would hide
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA page_size=1024")
        for table, rows in tables.items():
            columns = "key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB"
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
            connection.execute(f"DELETE FROM {table}")
            texts = [(key, json.dumps(value)) for key, value in rows]
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", texts)
        connection.commit()
    return path


WRITERS: dict[str, Callable[[Path, Sample], Path]] = {"cursor": write_cursor, "trae": write_trae}
"""By source. Each write is a database of its own, so there is only ever one conversation."""
