"""How a decision is written: insert, replace and metadata update, statement by statement.

Source: ``pinned-importer.md`` section 3, "Replace, exactly" and "Metadata update", and the
paragraphs on message ids.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, Struct

from crystal_nb import ecma
from crystal_nb.decisions import Decision
from crystal_nb.policy import Policy
from crystal_nb.records import Candidate, Conversation, Message
from crystal_nb.store_schema import MESSAGE_COLUMNS, Layout

__all__ = ["Applied", "write", "write_log", "write_short"]

_IDS_AT_ONCE = 500


class Applied(Struct, frozen=True):
    """What a decision's writing did beside its purpose."""

    status: str | None = None
    """Status of the conversation's row afterwards; None when there is no such row."""
    stolen: tuple[tuple[str, str], ...] = ()
    """Message ids that belonged to another conversation, each with its id."""
    collapsed: int = 0
    """Messages that another one of this conversation with the same id took the place of."""
    notes_deleted: int = 0
    """Notes that were dropped, each with a clean-up task."""


def write(
    connection: sqlite3.Connection,
    layout: Layout,
    policy: Policy,
    decision: Decision,
    candidate: Candidate,
    conversation: Conversation,
    now: str,
) -> Applied:
    """Write one decision inside the caller's transaction."""
    writer = _Writer(connection, layout, decision.source, decision.id or "", now)
    values = _values(decision, candidate, conversation, now)
    if layout.by_position:
        values |= _without_clock(conversation.messages)
    if decision.action == "insert":
        writer.insert(values)
        applied = writer.put_messages(conversation.messages)
    elif decision.action == "replace":
        deleted = writer.replace(values, policy)
        applied = writer.put_messages(conversation.messages, notes_deleted=deleted)
    else:
        writer.update(values)
        return Applied(writer.status())
    if policy.remember_short:
        connection.execute(
            "DELETE FROM short_candidates WHERE source = ? AND candidate_id = ?",
            (decision.source, decision.candidate_id),
        )
    write_log(connection, candidate.file_path, "success", None, now)
    return applied


def write_log(connection: sqlite3.Connection, file_path: str, status: str, message: str | None, now: str) -> None:
    """Add a row to the import log."""
    connection.execute(
        "INSERT INTO import_log (file_path, status, message, created_at) VALUES (?, ?, ?, ?)",
        (_text(file_path), status, _text(message), now),
    )


def write_short(connection: sqlite3.Connection, decision: Decision, candidate: Candidate) -> None:
    """Remember that a candidate has too few messages to store."""
    connection.execute(
        "INSERT OR REPLACE INTO short_candidates VALUES (?, ?, ?, ?, ?, ?)",
        (
            decision.source,
            decision.candidate_id,
            _integer(candidate.file_size),
            _text(candidate.file_mtime),
            _text(decision.parser_version),
            decision.fingerprint,
        ),
    )


def _values(decision: Decision, candidate: Candidate, conversation: Conversation, now: str) -> dict[str, Any]:
    return {
        "slug": _text(conversation.slug),
        "source_conversation_id": decision.candidate_id,
        "content_hash": decision.content_hash,
        "parser_version": _text(decision.parser_version),
        "project_dir": _text(conversation.project_dir),
        "project_name": _text(conversation.project_name),
        "cwd": _text(conversation.cwd),
        "git_branch": _text(conversation.git_branch),
        "message_count": decision.message_count,
        "first_message_at": _text(conversation.first_message_at),
        "last_message_at": _text(conversation.last_message_at),
        "file_path": _text(candidate.file_path),
        "file_size": _integer(candidate.file_size),
        "file_mtime": _text(candidate.file_mtime),
        "parsed_id": _text(conversation.id),
        "fingerprint": decision.fingerprint,
        "updated_at": now,
    }


def _without_clock(messages: Sequence[Message]) -> dict[str, None]:
    """Null for the time of the first and of the last message where the clock stands in for it."""
    ends = {"first_message_at": messages[:1], "last_message_at": messages[-1:]}
    return {name: None for name, end in ends.items() if any(m.timestamp_from_clock for m in end)}


def _text(value: Any) -> str | None:
    """Text as SQLite can hold it."""
    return None if value is None or value is UNSET else ecma.to_utf8_safe(ecma.to_text(value))


def _integer(value: Any) -> int | None:
    """A whole number as SQLite can hold it."""
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def _is_text(value: Any) -> bool:
    return type(value) is str and ecma.well_formed(value)


def _exact(m: Message) -> str | None:
    """What the columns can't say of the hashed fields: values that are missing, no text, or no UTF-8."""
    found: dict[str, Any] = {}
    for name in ("type", "role", "content", "thinking"):
        value = getattr(m, name)
        if value is UNSET:
            found.setdefault("missing", []).append(name)
        elif not (_is_text(value) or (value is None and name in ("role", "thinking"))):
            found[name] = value
    for name in ("has_tool_use", "has_code"):
        if getattr(m, name) is UNSET:
            found.setdefault("missing", []).append(name)
        elif type(getattr(m, name)) is not bool:
            found[name] = getattr(m, name)
    return ecma.key_text(ecma.json_text(found)) if found else None


class _Writer:
    """Statements about one conversation."""

    def __init__(self, connection: sqlite3.Connection, layout: Layout, source: str, id: str, now: str) -> None:
        self.run = connection.execute
        self.many = connection.executemany
        self.layout, self.source, self.id, self.now = layout, source, id, now
        self.owner = (source, id) if layout.by_source else (id,)
        self.of_owner = " AND ".join(f"{name} = ?" for name in layout.owner)

    def status(self) -> str | None:
        found = self.run("SELECT status FROM conversations WHERE id = ? AND source = ?", (self.id, self.source))
        return next((status for (status,) in found), None)

    def insert(self, values: dict[str, Any]) -> None:
        row = {"id": self.id, "source": self.source, "status": "imported", "created_at": self.now, **values}
        marks = ", ".join("?" * len(row))
        self.run(f"INSERT INTO conversations ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))

    def update(self, values: dict[str, Any]) -> None:
        changes = ", ".join(f"{name} = ?" for name in values)
        self.run(
            f"UPDATE conversations SET {changes} WHERE id = ? AND source = ?", (*values.values(), self.id, self.source)
        )

    def replace(self, values: dict[str, Any], policy: Policy) -> int:
        """All but the new messages; says how many notes went."""
        row = self.run(
            "SELECT status, experience_gate_reason FROM conversations WHERE id = ? AND source = ?",
            (self.id, self.source),
        ).fetchone()
        rejected = policy.keep_rejected and row == ("filtered", "user-rejected-note")
        deleted = self._drop_notes(policy)
        self.run(f"DELETE FROM messages WHERE {self.of_owner}", self.owner)
        noted = self.run(f"SELECT 1 FROM notes WHERE {self.of_owner}", self.owner).fetchone()
        changes = {**values, "status": "filtered" if rejected else "summarized" if noted else "imported"}
        if not rejected:
            changes |= dict.fromkeys(("experience_score", "experience_gate_reason", "experience_gate_details"))
        self.update(changes)
        return deleted

    def _drop_notes(self, policy: Policy) -> int:
        """Delete the notes that an import made and nobody edited; each leaves a clean-up task."""
        kept = "AND coalesce(is_edited, 0) = 0" if policy.keep_edited_notes else ""
        which = f"{self.of_owner} AND coalesce(source_type, 'imported-conversation') = 'imported-conversation' {kept}"
        notes = self.run(f"SELECT id FROM notes WHERE {which}", self.owner).fetchall()
        for (note,) in notes:
            self.run("DELETE FROM notes WHERE id = ?", (note,))
            self.run(
                "INSERT INTO vector_cleanup_tasks (target_type, target_id, status, attempts, created_at, updated_at)"
                " VALUES ('note', ?, 'pending', 0, ?, ?) ON CONFLICT (target_type, target_id)"
                " DO UPDATE SET status = 'pending', updated_at = excluded.updated_at",
                (str(note), self.now, self.now),
            )
        return len(notes)

    def put_messages(self, messages: Sequence[Message], *, notes_deleted: int = 0) -> Applied:
        rows = [self._message_row(index, m) for index, m in enumerate(messages)]
        columns = [*self.layout.owner, *(name for name in MESSAGE_COLUMNS if name != "conversation_id")]
        put = "INSERT" if self.layout.by_position else "INSERT OR REPLACE"
        ids = [row[len(self.owner)] for row in rows if row[len(self.owner)] is not None]
        stolen = () if self.layout.by_position else self._owned_by_others(ids)
        self.many(f"{put} INTO messages ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows)
        collapsed = 0 if self.layout.by_position else len(ids) - len(set(ids))
        return Applied(self.status(), stolen, collapsed, notes_deleted)

    def _message_row(self, index: int, m: Message) -> tuple[Any, ...]:
        return (
            *self.owner,
            _text(m.id),
            _text(m.parent_uuid),
            _text(m.type),
            _text(m.role),
            _text(m.content),
            int(ecma.truthy(m.has_tool_use)),
            int(ecma.truthy(m.has_code)),
            _text(m.thinking),
            None if m.timestamp_from_clock and self.layout.by_position else _text(m.timestamp),
            index,
            _exact(m),
        )

    def _owned_by_others(self, ids: list[str]) -> tuple[tuple[str, str], ...]:
        names, found = ", ".join(self.layout.owner), []
        for at in range(0, len(ids), _IDS_AT_ONCE):
            some = ids[at : at + _IDS_AT_ONCE]
            marks = ", ".join("?" * len(some))
            found += self.run(f"SELECT id, {names} FROM messages WHERE id IN ({marks})", some).fetchall()
        return tuple((row[0], row[-1]) for row in found if row[1:] != self.owner)
