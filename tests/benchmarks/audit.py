"""An audit of a large store, the parses aside: 50,000 conversations and 1,000,000 messages in 60 seconds.

The store is made by SQL as ChatCrystal would have it, with true hashes, and a few faults are planted. All questions
that need no parse are asked of the file; every planted fault must be found, or the run ends with an error.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from report import heading, table

import crystal_nb as cnb
from crystal_nb.audit import QUESTIONS, drift, hash_power, identity, integrity, read_store

LIMIT_SECONDS = 60
SOURCES = ("claude-code", "codex", "cursor", "trae", "copilot")
TABLES = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, slug TEXT, source TEXT, source_conversation_id TEXT,
 content_hash TEXT, parser_version TEXT, project_dir TEXT, project_name TEXT, cwd TEXT, git_branch TEXT,
 message_count INTEGER, first_message_at TEXT, last_message_at TEXT, file_path TEXT, file_size INTEGER,
 file_mtime TEXT, status TEXT, created_at TEXT, updated_at TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT REFERENCES conversations (id), parent_uuid TEXT,
 type TEXT, role TEXT, content TEXT, has_tool_use INTEGER, has_code INTEGER, thinking TEXT, timestamp TEXT,
 sort_order INTEGER);
CREATE TABLE notes (id INTEGER PRIMARY KEY, conversation_id TEXT UNIQUE, title TEXT, is_edited INTEGER,
 source_type TEXT, created_at TEXT);
CREATE TABLE import_log (id INTEGER PRIMARY KEY, file_path TEXT, status TEXT, message TEXT, created_at TEXT);
CREATE TABLE vector_cleanup_tasks (id INTEGER PRIMARY KEY, target_type TEXT, target_id TEXT, status TEXT,
 attempts INTEGER, last_error TEXT, created_at TEXT, updated_at TEXT);
"""
PLANTS = """
UPDATE messages SET content = 'changed' WHERE id = '00000007-0';
UPDATE messages SET conversation_id = '00000009' WHERE id = '00000008-1';
INSERT INTO messages (id, conversation_id, type, sort_order) VALUES ('lost', 'nobody', 'user', 0);
INSERT INTO import_log (file_path, status, message) VALUES ('/a', 'error', 'line 7'), ('/b', 'error', 'line 8');
INSERT INTO vector_cleanup_tasks (target_type, target_id, status) VALUES ('note', '1', 'pending');
"""
FOUND = {
    "hash-differs": 1,
    "row-count": 2,
    "orphan-messages": 1,
    "log-error": 1,
    "clean-up-waits": 1,
    "duplicate": 1,
    "duplicate-across-sources": 1,
}
"""What has to be found, beside it nothing."""


def conversation(number: int, size: int, pool: list[str], chance: random.Random) -> cnb.Conversation:
    """Conversations 0 and 1 have the same words, 0 and 5 of the next source, too."""
    if number in (1, 5):
        return conversation(0, size, pool, random.Random(0))
    chance = random.Random(0) if number == 0 else chance
    messages = tuple(
        cnb.Message(
            "assistant" if n % 2 else "user",
            f"{number if number else ''} {chance.choice(pool)}",
            role="assistant" if n % 2 else "user",
            has_tool_use=chance.random() < 0.3,
            has_code=chance.random() < 0.2,
            thinking=chance.choice(pool)[:300] if n % 4 == 1 else None,
        )
        for n in range(size)
    )
    return cnb.Conversation("", number, messages)


def rows(count: int, size: int) -> Iterator[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    chance = random.Random(7)
    words = [f"word{n}" for n in range(500)]
    pool = [" ".join(chance.choices(words, k=chance.choice((5, 20, 80, 250)))) for _ in range(2000)]
    for number in range(count):
        source = "claude-code" if number in (0, 1) else SOURCES[1 + number % 4] if number < 10 else SOURCES[number % 5]
        c = conversation(number, size, pool, chance)
        digest = cnb.content_hash(cnb.Conversation(source, number, c.messages))
        id, month = f"{number:08d}", f"2026-{1 + number % 12:02d}"
        time_ = f"{month}-05T10:00:00.000Z"
        head = (
            id,
            None,
            source,
            id,
            digest,
            f"{source}@1",
            "/srv/demo",
            "demo",
            "/srv/demo",
            "main",
            size,
            time_,
            time_,
        )
        body = [
            (f"{id}-{n}", id, None, m.type, m.role, m.content, m.has_tool_use, m.has_code, m.thinking, time_, n)
            for n, m in enumerate(c.messages)
        ]
        yield (*head, f"/srv/{id}.jsonl", 1, time_, "imported", time_, time_), body


def make(path: Path, count: int, size: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        for head, body in rows(count, size):
            connection.execute(f"INSERT INTO conversations VALUES ({', '.join('?' * 19)})", head)
            connection.executemany(f"INSERT INTO messages VALUES ({', '.join('?' * 11)})", body)
        connection.executescript(PLANTS)


def timed(path: Path) -> list[tuple[str, float]]:
    """Seconds of the parts, each once."""
    found = []

    def step(name: str, work: Any) -> Any:
        started = time.perf_counter()
        result = work()
        found.append((name, time.perf_counter() - started))
        return result

    store = step("open a copy", lambda: cnb.open_store(path, read_only=True))
    facts = step("read_store", lambda: read_store(store))
    for question in (identity, hash_power, integrity):
        step(question.__name__, lambda question=question: question(store, facts=facts))
    step("drift", lambda: drift(store))
    store.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=50_000)
    parser.add_argument("--size", type=int, default=20, help="messages per conversation")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        path = Path(folder, "chatcrystal.db")
        make(path, options.conversations, options.size)
        started, worked = time.perf_counter(), time.process_time()
        report = cnb.audit(path, [], questions=QUESTIONS)
        seconds, worked = time.perf_counter() - started, time.process_time() - worked
        parts = timed(path)
        megabytes = path.stat().st_size / 1e6
    heading(f"Audit of {options.conversations:,} conversations, {megabytes:,.0f} MB")
    table(
        ["part", "seconds"],
        [[name, f"{s:.1f}"] for name, s in [*parts, ("cnb.audit, all of it", seconds), ("its processor time", worked)]],
    )
    print(repr(report))
    kinds = {kind: n for answer in report.answers for kind, n in answer.kinds().items()}
    if kinds != FOUND or seconds > LIMIT_SECONDS:
        raise SystemExit(f"NOT AS PROMISED: {kinds}, {seconds:.1f} s")


if __name__ == "__main__":
    main()
