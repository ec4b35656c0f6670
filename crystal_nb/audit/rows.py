"""Integrity: stored hashes against stored rows, notes, clean-up tasks, the import log, and rows without an owner."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from crystal_nb import ecma
from crystal_nb.audit.findings import Answer, Finding, cause_of, finding
from crystal_nb.audit.stored import Stored, StoredFacts, as_facts
from crystal_nb.records import counted
from crystal_nb.store import Store
from crystal_nb.store_schema import columns_of

__all__ = ["integrity"]


def integrity(store: Store, *, facts: StoredFacts | None = None) -> Answer:
    """Whether a store's rows are what they say they are.

    Conversations whose number of rows is not the one they say are left to `identity`: their hash can't
    be that of their rows.

    Parameters
    ----------
    store
        What is stored.
    facts
        What `read_store` gave, where it was called already.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> with cnb.Store.in_memory(cnb.PINNED, config) as store:
    ...     _ = cnb.import_all(store, config=config)
    ...     integrity(store).kinds()
    {'log-error': 1}
    """
    from crystal_nb.audit.tables import table

    known = as_facts(facts or store)
    connection = store.connection
    findings: list[Finding] = list(_hashes(known))
    with store.reported():
        findings += [*_notes(store), *_tasks(connection)]
        causes = _causes(connection)
        findings += [finding("log-error", None, None, row["cause"], row["entries"]) for row in causes]
        findings += _orphans(store, known.orphans)
    rows = [_row(source, known) for source in dict.fromkeys(c.source for c in known.conversations)]
    sound = sum(row["equal"] for row in rows)
    errors = sum(row["entries"] for row in causes)
    sentence = (
        f"Integrity: the rows of {sound:,} of {counted(len(known.conversations), 'conversation')} hash to the stored"
        f" hash{_rest(known)}; the import log has {counted(errors, 'error')} of {counted(len(causes), 'cause')}."
    )
    tables = {"integrity": table("integrity", rows), "causes": table("causes", causes)}
    return Answer("integrity", sentence, tuple(findings), tables)


def _hashes(known: StoredFacts) -> Iterator[Finding]:
    missing: dict[str, int] = defaultdict(int)
    for c in known.conversations:
        if c.content_hash is None:
            missing[c.source] += 1
        elif not c.is_sound and not _is_miscounted(c):
            yield finding("hash-differs", c.source, c.id, f"stored {c.content_hash[:12]}; {counted(c.rows, 'row')}")
    for source, number in missing.items():
        yield finding("hash-missing", source, None, counted(number, "conversation"), number)


def _is_miscounted(c: Stored) -> bool:
    return c.message_count not in (None, c.rows)


def _rest(known: StoredFacts) -> str:
    """Those that don't, by where they are found."""
    others = [c for c in known.conversations if not c.is_sound]
    unknown = sum(c.content_hash is None for c in others)
    miscounted = sum(c.content_hash is not None and _is_miscounted(c) for c in others)
    parts = {
        "with other messages": len(others) - unknown - miscounted,
        "with another number of messages (row-count, a question of identity)": miscounted,
        "without a stored hash": unknown,
    }
    told = ", ".join(f"{number:,} {what}" for what, number in parts.items() if number)
    return f", {told}" if told else ""


def _row(source: str, known: StoredFacts) -> dict[str, Any]:
    own = [c for c in known.conversations if c.source == source]
    equal, unknown = sum(c.is_sound is True for c in own), sum(c.content_hash is None for c in own)
    return {
        "source": source,
        "conversations": len(own),
        "equal": equal,
        "different": len(own) - equal - unknown,
        "unknown": unknown,
    }


def _select(connection: sqlite3.Connection, table: str, *fields: str) -> Iterable[tuple[Any, ...]]:
    """Rows of a table with null for what it lacks; none when there is no such table."""
    known = columns_of(connection, table)
    if not known:
        return []
    wanted = ", ".join(name if name in known else "NULL" for name in fields)
    return connection.execute(f"SELECT {wanted} FROM {table}")


def _notes(store: Store) -> Iterator[Finding]:
    """Notes that are older than the replace of their conversation: by the log, an import of its file later on."""
    owner = store.layout.owner
    notes = list(_select(store.connection, "notes", *owner, "created_at", "is_edited", "source_type"))
    if not notes:
        return
    heads = {
        (source, id)[2 - len(owner) :]: (source, id, path, _ms(updated), _ms(created))
        for source, id, path, updated, created in _select(
            store.connection, "conversations", "source", "id", "file_path", "updated_at", "created_at"
        )
    }
    imports: dict[Any, set[int]] = defaultdict(set)
    for path, status, at in _select(store.connection, "import_log", "file_path", "status", "created_at"):
        if status == "success" and (ms := _ms(at)) is not None:
            imports[path].add(ms)
    shared: dict[Any, int] = defaultdict(int)
    for _, _, path, _, _ in heads.values():
        shared[path] += 1
    for *key, at, is_edited, kind in notes:
        head, made = heads.get(tuple(key)), _ms(at)
        if head is None or made is None:
            continue
        source, id, path, updated, created = head
        later = {ms for ms in imports[path] if ms > made and ms != created}
        if not later or (shared[path] > 1 and updated not in later):
            continue
        is_deletable = not is_edited and kind in (None, "imported-conversation")
        yield finding("note-left" if is_deletable else "note-outlived", source, id, f"note of {at}, replaced after it")


def _ms(value: Any) -> int | None:
    """A time of SQLite's own form, too, which is UTC."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", value):
        value = value.replace(" ", "T") + "Z"
    return ecma.date_ms(value)


def _tasks(connection: sqlite3.Connection) -> Iterator[Finding]:
    groups: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for kind, status, attempts, error, at in _select(
        connection, "vector_cleanup_tasks", "target_type", "status", "attempts", "last_error", "created_at"
    ):
        if status in ("pending", "failed", "error", "running", "processing"):
            fails = bool(attempts and error)
            name, cause = ("clean-up-fails", cause_of(error)) if fails else ("clean-up-waits", "")
            groups[name, str(kind), cause].append((at, error))
    for (name, kind, _), found in groups.items():
        since = min((str(at) for at, _ in found if at is not None), default="?")
        cause = f"; {cause_of(found[-1][1], numbers=True)}" if name == "clean-up-fails" else ""
        yield finding(name, None, None, f"{kind}, since {since}{cause}", len(found))


_TAKEN_ID = re.compile(r"The id .+ is taken by a conversation of (.+?) from candidate .+\.")


def _causes(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    groups: dict[str, list[tuple[Any, str]]] = defaultdict(list)
    for path, status, message, at in _select(connection, "import_log", "file_path", "status", "message", "created_at"):
        if status == "error":
            known = _TAKEN_ID.fullmatch(message) if isinstance(message, str) else None
            cause = f"The id is taken by a conversation of {known[1]}." if known else cause_of(message)
            groups[cause].append((path, "" if at is None else str(at)))
    rows = [
        {
            "cause": cause,
            "entries": len(found),
            "files": len({path for path, _ in found}),
            "first_at": min((at for _, at in found if at), default=None),
            "last_at": max((at for _, at in found if at), default=None),
        }
        for cause, found in groups.items()
    ]
    return sorted(rows, key=lambda row: -row["entries"])


def _orphans(store: Store, messages: int) -> Iterator[Finding]:
    connection, owner = store.connection, store.layout.owner
    if messages:
        yield finding("orphan-messages", None, None, f"{counted(messages, 'row')} of messages", messages)
    if set(owner) <= set(columns_of(connection, "notes")):
        match = " AND ".join(f"c.{'source' if name == 'source' else 'id'} = n.{name}" for name in owner)
        query = f"SELECT count(*) FROM notes n WHERE NOT EXISTS (SELECT 1 FROM conversations c WHERE {match})"
        (count,) = connection.execute(query).fetchone()
        if count:
            yield finding("orphan-notes", None, None, counted(count, "note"), count)
    for table in _tables_of_notes(connection):
        query = f'SELECT count(*) FROM "{table}" t WHERE note_id NOT IN (SELECT id FROM notes WHERE id IS NOT NULL)'
        (count,) = connection.execute(query).fetchone()
        if count:
            yield finding("orphan-rows", None, None, f"{table}: {counted(count, 'row')}", count)


def _tables_of_notes(connection: sqlite3.Connection) -> list[str]:
    if "id" not in columns_of(connection, "notes"):
        return []
    names = [n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return [n for n in names if '"' not in n and "note_id" in columns_of(connection, f'"{n}"')]
