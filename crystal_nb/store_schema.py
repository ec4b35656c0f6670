"""Tables of a store, its two layouts, and the recorded steps that build and renew it.

Source: ``pinned-importer.md`` section 8; the columns and tables of version 2 are this package's own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

from crystal_nb.policy import Policy

__all__ = [
    "APPLICATION_ID",
    "CONVERSATION_COLUMNS",
    "MESSAGE_COLUMNS",
    "MIGRATIONS",
    "VERSION",
    "Layout",
    "columns_of",
    "complete",
    "migrate",
    "version_of",
]

APPLICATION_ID = 0x43726E62
"""Marks a database as this package's own (``Crnb``)."""

CONVERSATION_COLUMNS = (
    "id",
    "slug",
    "source",
    "source_conversation_id",
    "content_hash",
    "parser_version",
    "project_dir",
    "project_name",
    "cwd",
    "git_branch",
    "message_count",
    "first_message_at",
    "last_message_at",
    "file_path",
    "file_size",
    "file_mtime",
    "status",
    "experience_score",
    "experience_gate_reason",
    "experience_gate_details",
    "created_at",
    "updated_at",
    "parsed_id",
    "fingerprint",
)
MESSAGE_COLUMNS = (
    "id",
    "conversation_id",
    "parent_uuid",
    "type",
    "role",
    "content",
    "has_tool_use",
    "has_code",
    "thinking",
    "timestamp",
    "sort_order",
    "exact",
)
_TYPES = {
    "message_count": "INTEGER",
    "file_size": "INTEGER",
    "experience_score": "REAL",
    "has_tool_use": "INTEGER",
    "has_code": "INTEGER",
    "sort_order": "INTEGER",
}
_LATER = ("parsed_id", "fingerprint")
_LATER_OF_MESSAGES = ("exact",)


class Layout(NamedTuple):
    """What identifies a row."""

    by_source: bool
    """Conversations by source and id; messages and notes then have a column ``source``."""
    by_position: bool
    """Messages by conversation and position instead of by their own id."""

    @classmethod
    def of(cls, policy: Policy) -> Layout:
        """The layout that a policy needs."""
        return cls(policy.conversation_key == "source+id", policy.message_key == "conversation+index")

    @classmethod
    def found_in(cls, connection: sqlite3.Connection) -> Layout:
        """The layout that a database has."""
        by = {table: {n for n, key in _table_info(connection, table) if key} for table in ("conversations", "messages")}
        return cls("source" in by["conversations"], "sort_order" in by["messages"])

    @property
    def owner(self) -> tuple[str, ...]:
        """Columns by which messages and notes name their conversation."""
        return ("source", "conversation_id") if self.by_source else ("conversation_id",)

    def describe(self) -> str:
        """In words, for errors."""
        conversations = "source and id" if self.by_source else "id alone"
        messages = "conversation and position" if self.by_position else "message id alone"
        return f"conversations by {conversations}, messages by {messages}"


def _table_info(connection: sqlite3.Connection, table: str) -> list[tuple[str, int]]:
    return [(row[1], row[5]) for row in connection.execute(f"PRAGMA table_xinfo({table})")]


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """Names of a table's columns; none when there is no such table.

    >>> columns_of(sqlite3.connect(":memory:"), "messages")
    []
    """
    return [name for name, _ in _table_info(connection, table)]


def _columns(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {_TYPES.get(name, 'TEXT')}" for name in names)


def _create_tables(connection: sqlite3.Connection, layout: Layout) -> None:
    """The tables of section 8, and one that stands for whatever hangs on notes there."""
    of_conversation = "source TEXT, conversation_id TEXT" if layout.by_source else "conversation_id TEXT"
    owner = ", ".join(layout.owner)
    target = "source, id" if layout.by_source else "id"
    refers = f"FOREIGN KEY ({owner}) REFERENCES conversations ({target}) ON DELETE CASCADE"
    plain = tuple(name for name in CONVERSATION_COLUMNS if name not in _LATER)
    fields = _columns(tuple(n for n in MESSAGE_COLUMNS if n not in ("conversation_id", *_LATER_OF_MESSAGES)))
    key = f"{owner}, sort_order" if layout.by_position else "id"
    for statement in (
        f"CREATE TABLE IF NOT EXISTS conversations ({_columns(plain)}, PRIMARY KEY ({target}))",
        f"CREATE TABLE IF NOT EXISTS messages ({of_conversation}, {fields}, PRIMARY KEY ({key}), {refers})",
        f"CREATE INDEX IF NOT EXISTS messages_of ON messages ({owner}, sort_order)",
        f"CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, {of_conversation}, title TEXT, summary TEXT,"
        f" key_conclusions TEXT, code_snippets TEXT, is_edited INTEGER DEFAULT 0, source_type TEXT, created_at TEXT,"
        f" UNIQUE ({owner}), {refers})",
        "CREATE TABLE IF NOT EXISTS note_tags (note_id INTEGER REFERENCES notes (id) ON DELETE CASCADE, tag TEXT)",
        "CREATE TABLE IF NOT EXISTS import_log (id INTEGER PRIMARY KEY AUTOINCREMENT, file_path TEXT, status TEXT,"
        " message TEXT, created_at TEXT)",
        "CREATE TABLE IF NOT EXISTS vector_cleanup_tasks (id INTEGER PRIMARY KEY, target_type TEXT, target_id TEXT,"
        " status TEXT, attempts INTEGER DEFAULT 0, last_error TEXT, created_at TEXT, updated_at TEXT,"
        " UNIQUE (target_type, target_id))",
    ):
        connection.execute(statement)


def _add_fingerprints(connection: sqlite3.Connection, layout: Layout) -> None:
    """What the careful policy remembers, and what a message's columns can't say."""
    complete_columns(connection, "conversations", _LATER)
    complete_columns(connection, "messages", _LATER_OF_MESSAGES)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS short_candidates (source TEXT, candidate_id TEXT, file_size INTEGER,"
        " file_mtime TEXT, parser_version TEXT, fingerprint TEXT, PRIMARY KEY (source, candidate_id))"
    )


def complete_columns(connection: sqlite3.Connection, table: str, wanted: tuple[str, ...]) -> None:
    """Add the columns that a table lacks, if there is one."""
    known = columns_of(connection, table)
    for name in wanted:
        if known and name not in known:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {_TYPES.get(name, 'TEXT')}")


Migration = tuple[str, Callable[[sqlite3.Connection, Layout], None]]
MIGRATIONS: tuple[Migration, ...] = (
    ("tables of the pinned importer", _create_tables),
    ("fingerprints and short candidates", _add_fingerprints),
)
"""Step n brings a database from version n to n + 1."""
VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, layout: Layout, now: str) -> None:
    """Bring a database up to `VERSION`, each step in a transaction of its own and recorded.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> migrate(connection, Layout(False, False), "2026-01-01T00:00:00.000Z")
    >>> connection.execute("SELECT version FROM migrations").fetchall()
    [(1,), (2,)]
    """
    for number, (name, step) in enumerate(MIGRATIONS, 1):
        if version_of(connection) >= number:
            continue
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            if version_of(connection) >= number:  # another process was faster
                continue
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, name TEXT, applied_at TEXT)"
            )
            step(connection, layout)
            connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (number, name, now))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")


def version_of(connection: sqlite3.Connection) -> int:
    """Version that a database says it has."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def complete(connection: sqlite3.Connection) -> None:
    """Give a copy of another program's database the tables and columns that it lacks."""
    layout = Layout.found_in(connection)
    complete_columns(connection, "conversations", CONVERSATION_COLUMNS)
    complete_columns(connection, "messages", MESSAGE_COLUMNS)
    complete_columns(connection, "notes", ("is_edited", "source_type"))
    for _, step in MIGRATIONS:
        step(connection, layout)
