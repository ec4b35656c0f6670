"""What the tools built on VS Code share: window folders, their project, their key-value table."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from crystal_nb import ecma
from crystal_nb.adapters.base import Draft, Parsed, last_path_part, list_names, read_file
from crystal_nb.records import Candidate, Conversation, Message

__all__ = ["date_time", "finish", "item", "readable_windows", "window_folders", "workspace_folder"]

T = TypeVar("T")
_FILE_URI = "file:///"


def window_folders(root: Path) -> list[Path]:
    """Entries of ``workspaceStorage`` in byte order, whatever they are; none when that folder is missing.

    Raises
    ------
    OSError
        If it exists and can't be listed.
    """
    storage = root / "workspaceStorage"
    return [storage / name for name in list_names(storage)] if os.path.exists(storage) else []


def workspace_folder(path: str | os.PathLike[str]) -> str:
    r"""Project that a ``workspace.json`` names, as the pinned rules read it; ``""`` when it names none.

    One exact leading ``file:///`` goes, the rest is percent-decoded, so a POSIX path loses its first
    slash and other schemes stay. Multi-root windows (``workspace``, ``configuration``) count as none.

    Raises
    ------
    OSError
        If the file can't be read.
    ValueError
        If it is no JSON, is ``null``, or the folder is no text or badly encoded.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "workspace.json")
    ...     _ = file.write_text('{"folder": "file:///home/ada/my%20app"}')
    ...     workspace_folder(file)
    'home/ada/my app'
    """
    document = ecma.parse_json(read_file(path).decode("utf-8", "replace"))
    if document is None:
        raise ValueError("workspace.json holds null")
    folder = document.get("folder") if isinstance(document, dict) else None
    if not ecma.truthy(folder):
        return ""
    if not isinstance(folder, str):
        raise ValueError(f"workspace.json: folder is no text: {type(folder).__name__}")
    return ecma.decode_uri_component(folder.removeprefix(_FILE_URI))


def item(connection: sqlite3.Connection, key: str) -> tuple[str, Any] | None:
    """SQLite type and value of the first ``ItemTable`` row with exactly that key; None when there is none.

    Text comes as bytes, as `vscdb.read` has it.
    """
    query = "SELECT typeof(value), value FROM ItemTable WHERE key = ? LIMIT 1"
    row: tuple[Any, Any] | None = connection.execute(query, (key,)).fetchone()
    return None if row is None else (row[0].decode(), row[1])


def date_time(value: Any) -> str:
    """``new Date(value).toISOString()``.

    Raises
    ------
    ValueError
        If the value is no date.

    >>> date_time(1767225600000)
    '2026-01-01T00:00:00.000Z'
    """
    ms = ecma.date_ms(value)
    if ms is None:
        raise ValueError(f"no valid date: {ecma.to_text(value)[:50]!r}")
    return ecma.iso_time(ms)


def readable_windows(root: Path, read: Callable[[Path], T]) -> Iterator[tuple[str, Path, T]]:
    """Project, database and what ``read`` makes of it, of each window; one where anything fails is left out.

    As pinned: a window needs both ``workspace.json`` and ``state.vscdb``.

    Raises
    ------
    OSError
        If the windows can't be listed.
    """
    for folder in window_folders(root):
        description, database = folder / "workspace.json", folder / "state.vscdb"
        if os.path.exists(description) and os.path.exists(database):
            try:
                window = workspace_folder(description), database, read(database)
            except (OSError, ValueError, sqlite3.Error):
                continue
            yield window


def finish(candidate: Candidate, draft: Draft, messages: tuple[Message, ...]) -> Parsed:
    """Conversation of a source that knows no title and no branch, and its project by the window alone."""
    first, last = draft.span(messages)
    conversation = Conversation(
        source=candidate.source,
        id=candidate.id,
        messages=messages,
        project_dir=candidate.project_dir,
        project_name=last_path_part(candidate.project_dir),
        cwd=candidate.project_dir or None,
        first_message_at=first,
        last_message_at=last,
    )
    return Parsed(conversation, tuple(draft.fates))
