"""What a store holds as frames."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from crystal_nb.frames import TIME, Column, Table, columns_frame
from crystal_nb.store_schema import columns_of

__all__ = [
    "CLEAN_UP_TASKS",
    "FOLDED_TEXTS",
    "IMPORT_LOG",
    "NOTES",
    "STORED_CONVERSATIONS",
    "STORED_MESSAGES",
    "folded_texts",
    "read",
]

_AT_ONCE = 5_000
"""Rows of `folded_texts` that are Python objects at a time."""

STORED_CONVERSATIONS: Table = {
    "source": Column(pl.String, "Adapter name."),
    "id": Column(pl.String, "Id of the row."),
    "source_conversation_id": Column(pl.String, "Id of the candidate it came from; null in old databases."),
    "parsed_id": Column(pl.String, "Id found inside; null in ChatCrystal's own databases."),
    "slug": Column(pl.String, "Title."),
    "project_dir": Column(pl.String, "Project folder."),
    "project_name": Column(pl.String, "Short name of the project."),
    "cwd": Column(pl.String, "Working directory."),
    "git_branch": Column(pl.String, "Branch."),
    "message_count": Column(pl.Int64, "Messages that were parsed; rows can be fewer."),
    "first_message_at": Column(TIME, "Time of the first message; null where there is none or no valid one."),
    "last_message_at": Column(TIME, "Time of the last message."),
    "content_hash": Column(pl.String, "Hash of what was parsed; null in old databases."),
    "parser_version": Column(pl.String, "Rules that parsed it."),
    "file_path": Column(pl.String, "File or database that held it."),
    "file_size": Column(pl.Int64, "Its size in bytes."),
    "file_mtime": Column(pl.String, "Its time, exactly as it is compared."),
    "fingerprint": Column(pl.String, "SHA-256 of its bytes, where the policy asked for it."),
    "status": Column(pl.String, "imported, summarizing, summarized, filtered or error."),
    "experience_score": Column(pl.Float64, "Score of the last summary."),
    "experience_gate_reason": Column(pl.String, "Why it was filtered."),
    "created_at": Column(TIME, "When the row was inserted."),
    "updated_at": Column(TIME, "When it was changed last."),
}
STORED_MESSAGES: Table = {
    "source": Column(pl.String, "Adapter name; null where the conversation's row is missing."),
    "conversation_id": Column(pl.String, "Id of the conversation's row."),
    "sort_order": Column(pl.Int64, "Position in the conversation."),
    "id": Column(pl.String, "Message id."),
    "parent_uuid": Column(pl.String, "Id of the message before."),
    "type": Column(pl.String, "user, assistant or system."),
    "role": Column(pl.String, "Role as the raw record says it."),
    "content": Column(pl.String, "Text."),
    "has_tool_use": Column(pl.Boolean, "Whether a tool call belongs to it."),
    "has_code": Column(pl.Boolean, "Whether the parser saw a code fence."),
    "thinking": Column(pl.String, "Reasoning text."),
    "timestamp": Column(TIME, "Time; null where there is none or no valid one."),
}
FOLDED_TEXTS: Table = {
    "source": STORED_MESSAGES["source"],
    "conversation_id": STORED_MESSAGES["conversation_id"],
    "content": Column(pl.String, "Text, case-folded."),
    "thinking": Column(pl.String, "Reasoning text, case-folded."),
}
NOTES: Table = {
    "id": Column(pl.String, "Id of the note."),
    "source": Column(pl.String, "Adapter name; null where the conversation's row is missing."),
    "conversation_id": Column(pl.String, "Id of the conversation's row."),
    "title": Column(pl.String, "Title."),
    "summary": Column(pl.String, "Summary."),
    "is_edited": Column(pl.Boolean, "Whether a person edited it."),
    "source_type": Column(pl.String, "Where it came from; null counts as imported-conversation."),
    "created_at": Column(TIME, "When it was made."),
}
IMPORT_LOG: Table = {
    "id": Column(pl.Int64, "Position in the log."),
    "file_path": Column(pl.String, "File or database of the candidate."),
    "status": Column(pl.String, "success or error."),
    "message": Column(pl.String, "What went wrong."),
    "created_at": Column(TIME, "When it was written."),
}
CLEAN_UP_TASKS: Table = {
    "id": Column(pl.Int64, "Position in the list."),
    "target_type": Column(pl.String, "Kind of what was deleted."),
    "target_id": Column(pl.String, "Its id."),
    "status": Column(pl.String, "pending until the vectors are gone."),
    "attempts": Column(pl.Int64, "How often it was tried."),
    "last_error": Column(pl.String, "What went wrong the last time."),
    "created_at": Column(TIME, "When it was queued."),
    "updated_at": Column(TIME, "When it changed last."),
}
_TABLES: Mapping[str, tuple[str, Table, str]] = {
    "conversations": ("conversations", STORED_CONVERSATIONS, "source, id"),
    "messages": ("messages", STORED_MESSAGES, "source, conversation_id, sort_order"),
    "notes": ("notes", NOTES, "id"),
    "import_log": ("import_log", IMPORT_LOG, "id"),
    "clean_up_tasks": ("vector_cleanup_tasks", CLEAN_UP_TASKS, "id"),
}


def read(connection: sqlite3.Connection, name: str) -> pl.DataFrame:
    """Read a table; one that a database lacks is empty, columns that it lacks are null.

    >>> read(sqlite3.connect(":memory:"), "notes").shape
    (0, 8)
    """
    table, columns, order = _TABLES[name]
    known = columns_of(connection, table)
    rows = _rows(connection, table, columns, known, order).fetchall() if known else []
    values = dict(zip(columns, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(columns, ())
    return _frame(columns, values)


def folded_texts(connection: sqlite3.Connection) -> pl.DataFrame:
    """The texts of all messages, case-folded; some rows are read at a time, so that few are Python's at once.

    >>> folded_texts(sqlite3.connect(":memory:")).shape
    (0, 4)
    """
    frames = [_frame(FOLDED_TEXTS, dict.fromkeys(FOLDED_TEXTS, ()))]
    known = columns_of(connection, "messages")
    rows = _rows(connection, "messages", FOLDED_TEXTS, known) if known else None
    while rows is not None and (some := rows.fetchmany(_AT_ONCE)):
        frames.append(_frame(FOLDED_TEXTS, dict(zip(FOLDED_TEXTS, _folded(some), strict=True))))
    return pl.concat(frames, rechunk=False)


def _folded(rows: Sequence[tuple[Any, ...]]) -> list[Sequence[Any]]:
    sources, ids, *texts = zip(*rows, strict=True)
    plain = ([_typed(FOLDED_TEXTS["content"], v) for v in column] for column in texts)
    return [sources, ids, *([v.casefold() if isinstance(v, str) else v for v in column] for column in plain)]


def _frame(columns: Table, values: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    typed = {c: [_typed(columns[c], v) for v in column] for c, column in values.items()}
    return columns_frame(columns, typed)


def _rows(
    connection: sqlite3.Connection, table: str, columns: Table, known: list[str], order: str = ""
) -> sqlite3.Cursor:
    join = ""
    fields = [f"t.{name}" if name in known else f"NULL AS {name}" for name in columns]
    if "source" in columns and "source" not in known:
        join = "LEFT JOIN conversations c ON c.id = t.conversation_id"
        fields[list(columns).index("source")] = "c.source AS source"
    order = ", ".join(str(list(columns).index(name) + 1) for name in order.split(", ") if name in columns)
    ordered = f"ORDER BY {order}" if order else ""
    return connection.execute(f"SELECT {', '.join(fields)} FROM {table} t {join} {ordered}")


def _typed(column: Column, value: object) -> object:
    """A value that fits the column: databases of other programs may hold anything."""
    if value is None:
        return None
    if column.dtype == pl.Boolean:
        return bool(value)
    if column.dtype == pl.Int64:
        return value if isinstance(value, int) else None
    if column.dtype == pl.Float64:
        return float(value) if isinstance(value, (int, float)) else None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
