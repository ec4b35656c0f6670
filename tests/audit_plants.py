"""What is planted for each question of an audit, and what has to be found: exactly that.

A plant changes a world of sound conversations: before the import (``before``) or after it (``after``).
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import crystal_nb as cnb
from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_claude_code, write_codex
from crystal_nb.scenarios.world import Staged

CLOCK = 1_770_000_000_000
"""2026-02-02T02:40:00Z"""


class World:
    """A home with sound conversations of two sources and the store that an import makes of them."""

    def __init__(self, folder: Path, profile: str) -> None:
        self.home, self.path, self.profile = folder / "home", folder / "imports.db", profile
        self.home.mkdir()
        self.config = cnb.Config(
            home=self.home, platform="linux", cache_seconds=0, clock=lambda: CLOCK, enabled_sources=SOURCES
        )
        self.adapters: list[Any] = []
        for n in range(6):
            self.claude(f"s{n}")
            self.codex(f"c{n}")

    def claude(self, id: str, *texts: str, ids: str | None = None) -> Path:
        return write_claude_code(self.home, Sample(id, messages(id, *texts, ids=ids)))

    def codex(self, id: str, *texts: str, inner_id: str | None = None) -> Path:
        return write_codex(self.home, Sample(id, messages(id, *texts), inner_id=inner_id))

    def file(self, id: str) -> Path:
        return next(p for p in self.home.rglob("*.jsonl") if p.stem == id or p.stem.endswith(f"-{id}"))

    def scan(self) -> Any:
        return cnb.scan(config=self.config, profile=self.profile)

    def import_all(self) -> None:
        with cnb.open_store(self.path, profile=self.profile, config=self.config) as store:
            cnb.import_all(store, self.scan(), config=self.config, progress=False)

    def sql(self, *statements: str) -> None:
        connection = sqlite3.connect(self.path)
        connection.executescript(";".join(statements))
        connection.close()

    def edit(self, id: str, old: str, new: str, *, seen: bool = True) -> None:
        """Change a file; unseen: of the same size, its time put back."""
        path = self.file(id)
        status, data = path.stat(), path.read_bytes()
        assert old.encode() in data
        path.write_bytes(data.replace(old.encode(), new.encode(), 1))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + (0 if not seen else 5_000_000_000)))


SOURCES = ("claude-code", "codex")


def messages(id: str, *texts: str, ids: str | None = None) -> tuple[SampleMessage, ...]:
    return tuple(
        SampleMessage("assistant" if n % 2 else "user", text, f"{ids or id}-{n}", f"2026-01-05T10:00:0{n}.000Z")
        for n, text in enumerate(texts or (f"paint door {id} blue", f"door {id} is blue now"))
    )


class Plant(NamedTuple):
    """One thing that is wrong."""

    what: str
    found: tuple[tuple[str, str | None, int], ...]
    """Kind, conversation and count of each finding that it gives."""
    before: Callable[[World], object] = lambda world: None
    after: Callable[[World], object] = lambda world: None


def twice_the_same_id(w: World) -> None:
    w.claude("s9", "one", "two")
    w.edit("s9", "s9-1", "s9-0")


def short(w: World) -> None:
    w.claude("s9", "alone")


def timeless(w: World) -> None:
    """A message without time among one from between the two clocks."""
    w.claude("s9", "one", "two", "three")
    path = w.file("s9")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    del records[1]["timestamp"]
    records[2]["timestamp"] = "2026-02-02T12:00:00.000Z"
    path.write_text("".join(json.dumps(r) + "\n" for r in records))


def months(column: str, *, january: str, february: str) -> Callable[[World], None]:
    """A conversation of 60 messages over two months in which a column changes."""

    def plant(w: World) -> None:
        w.claude(f"long-{column}", *(f"{column} {n}" for n in range(60)))

    def shift(w: World) -> None:
        where = f"conversation_id = 'long-{column}' AND sort_order"
        w.sql(
            f"UPDATE messages SET {column} = {january}, timestamp = '2026-03-01T00:00:00.000Z' WHERE {where} < 30",
            f"UPDATE messages SET {column} = {february}, timestamp = '2026-04-01T00:00:00.000Z' WHERE {where} >= 30",
            f"UPDATE conversations SET parser_version = '{column}' WHERE id = 'long-{column}'",
        )

    plant.after = shift  # type: ignore[attr-defined]
    return plant


NULLS = months("thinking", january="NULL", february="'hm'")
MIX = months("has_tool_use", january="0", february="1")


def replaced_with_note(w: World) -> None:
    """An edited note survives the replace of its conversation, an unedited one becomes a task."""
    columns = "(id, conversation_id, is_edited, source_type, created_at)"
    for n, (id, edited) in enumerate((("s1", 1), ("s2", 0))):
        w.sql(
            f"INSERT INTO notes {columns} VALUES ({n}, '{id}', {edited}, 'imported-conversation', "
            "'2026-01-01T00:00:00.000Z')"
        )
        w.edit(id, "blue", "green and white")
    w.config = later(w.config)
    w.import_all()
    w.sql(
        f"INSERT INTO notes {columns} VALUES (7, 's2', 0, 'imported-conversation', '2026-01-01T00:00:00.000Z')",
    )


def later(config: cnb.Config) -> cnb.Config:
    from dataclasses import replace

    return replace(config, clock=lambda: CLOCK + 1000)


ORPHANS = (
    "INSERT INTO messages (id, conversation_id, type, content, sort_order) VALUES ('x', 'gone', 'user', 'hi', 0)",
    "INSERT INTO notes (id, conversation_id) VALUES (99, 'gone')",
    "INSERT INTO note_tags VALUES (98, 'tag')",
)
TASKS = (
    "INSERT INTO vector_cleanup_tasks (target_type, target_id, status, attempts, last_error, created_at) "
    "VALUES ('tag', '7', 'pending', 3, 'no server at /srv/x/y', '2026-01-01')"
)
LOG = (
    "INSERT INTO import_log (file_path, status, message) VALUES "
    "('/a', 'error', 'line 7: \"secret words\" is no JSON'), "
    "('/b', 'error', 'line 12: \"others\" is no JSON'), ('/c', 'error', 'ENOENT: no such file, open ''/srv/a/b''')"
)


def unknown_record(w: World) -> None:
    path = w.file("s0")
    path.write_text(path.read_text() + '{"type": "telepathy", "uuid": "t", "sessionId": "s0"}\n')


def unknown_part(w: World) -> None:
    path = w.file("s1")
    *before, last = path.read_text().splitlines()
    record = json.loads(last)
    record["message"]["content"] = [{"type": "text", "text": "done"}, {"type": "hologram", "data": 1}]
    path.write_text("\n".join([*before, json.dumps(record), ""]))


class Reading(Staged):
    """An adapter that opens every file to count or list them."""

    async def detect(self, config: cnb.Config) -> Any:
        for path in self.failing.split("|"):
            Path(path).read_bytes()
        return await self.inner.detect(config)

    async def scan(self, config: cnb.Config) -> Any:
        return await Reading.detect(self, config) and await self.inner.scan(config)


def reading(w: World) -> None:
    paths = "|".join(str(w.file(f"s{n}")) for n in range(3))
    w.adapters.append(Reading(cnb.get_adapter("claude-code"), failing=paths))


def failing(w: World) -> None:
    w.adapters.append(Staged(cnb.get_adapter("codex"), failing="scan"))


def new_adapter(w: World) -> None:
    @cnb.jsonl_adapter("mytool", root="~/.mytool", glob="**/*.jsonl")
    def mytool(record: Any, session: Any) -> Any:
        yield cnb.Message("user", record["text"], id=record["id"])

    folder = w.home / ".mytool"
    folder.mkdir()
    (folder / "a.jsonl").write_text("".join(json.dumps({"id": n, "text": f"mytool {n}"}) + "\n" for n in "12"))
    w.adapters.append(mytool)


def nowhere(*places: str) -> tuple[tuple[str, None, int], ...]:
    return tuple((f"not-{place}", None, 1) for place in places)


PLANTS: dict[str, tuple[Plant, ...]] = {
    "stale skips": (
        Plant(
            "a word replaced, size and time as before",
            (("stale-skip", "claude-code:s1", 1),),
            after=lambda w: w.edit("s1", "blue", "pink", seen=False),
        ),
        Plant(
            "the answer replaced",
            (("stale-skip", "claude-code:s2", 1),),
            after=lambda w: w.edit("s2", "now", "not", seen=False),
        ),
        Plant(
            "the same in another source",
            (("stale-skip", "codex:c1", 1),),
            after=lambda w: w.edit("c1", "blue", "pink", seen=False),
        ),
        Plant(
            "a row without a hash",
            (("unhashed", "claude-code:s3", 1),),
            after=lambda w: w.sql("UPDATE conversations SET content_hash = NULL WHERE id = 's3'"),
        ),
    ),
    "wasted work": (
        Plant("one message only", (("short", "claude-code:s9", 1),), before=short),
        Plant(
            "a fork with its parent's id",
            (("never-found", "codex:fork", 1),),
            before=lambda w: w.codex("fork", "one", "two", inner_id="c0"),
        ),
        Plant("a touched file", (("churn", "claude-code:s1", 1),), after=lambda w: w.edit("s1", "main", "test")),
        Plant(
            "a padded file", (("churn", "codex:c1", 1),), after=lambda w: w.edit("c1", "/srv/demo", "/srv/demo/longer")
        ),
    ),
    "identity": (
        Plant(
            "one raw id in two sources",
            (("id-in-sources", "twin", 2),),
            before=lambda w: (w.claude("twin", "a", "b"), w.codex("twin", "c", "d")),
        ),
        Plant(
            "raw ids that meet with their source before them",
            (("namespace-collision", "claude-code:s1", 2),),
            before=lambda w: w.claude("claude-code:s1", "e", "f"),
        ),
        Plant(
            "a fork with its parent's id",
            (("id-differs", "codex:fork", 1),),
            before=lambda w: w.codex("fork", "one", "two", inner_id="c0"),
        ),
        Plant(
            "a copy that keeps the message ids",
            (
                ("shared-message-id", None, 2),
                ("row-count", "claude-code:s2", 2),
                ("stolen-rows", "claude-code:s2", 2),
            ),
            before=lambda w: w.claude("s2x", "other", "words", ids="s2"),
        ),
        Plant(
            "two messages with one id",
            (("row-count", "claude-code:s9", 1), ("collapsed-rows", "claude-code:s9", 1)),
            before=twice_the_same_id,
        ),
    ),
    "hash power": (
        Plant(
            "the same words twice",
            (("duplicate", "claude-code:t1", 2),),
            before=lambda w: (w.claude("t1", "same", "words"), w.claude("t2", "same", "words")),
        ),
        Plant(
            "the same words in two sources",
            (("duplicate-across-sources", None, 2),),
            before=lambda w: (w.claude("u1", "such", "words"), w.codex("u2", "such", "words")),
        ),
        Plant(
            "another branch",
            (("ignored-change", "claude-code:s1", 1),),
            after=lambda w: w.edit("s1", '"gitBranch": "main"', '"gitBranch": "test"'),
        ),
        Plant(
            "another time of the second message",
            (("ignored-change", "claude-code:s2", 1), ("ignored-change", "claude-code:s2", 1)),
            after=lambda w: w.edit("s2", "10:00:01.000Z", "10:00:01.500Z"),
        ),
    ),
    "integrity": (
        Plant(
            "a message changed in the database",
            (("hash-differs", "claude-code:s0", 1),),
            after=lambda w: w.sql("UPDATE messages SET content = 'changed' WHERE id = 's0-0'"),
        ),
        Plant(
            "a row without a hash",
            (("hash-missing", None, 1),),
            after=lambda w: w.sql("UPDATE conversations SET content_hash = NULL WHERE id = 's3'"),
        ),
        Plant(
            "notes of conversations that were replaced",
            (("note-outlived", "claude-code:s1", 1), ("note-left", "claude-code:s2", 1), ("clean-up-waits", None, 1)),
            after=replaced_with_note,
        ),
        Plant("a clean-up that failed", (("clean-up-fails", None, 1),), after=lambda w: w.sql(TASKS)),
        Plant(
            "three errors of two causes", (("log-error", None, 2), ("log-error", None, 1)), after=lambda w: w.sql(LOG)
        ),
        Plant(
            "rows without an owner",
            (("orphan-messages", None, 1), ("orphan-notes", None, 1), ("orphan-rows", None, 1)),
            after=lambda w: w.sql(*ORPHANS),
        ),
    ),
    "non-determinism": (
        Plant("Codex ids, which are random", (("field-moves", None, 6),)),
        Plant(
            "a message without time, which takes the clock's",
            (
                ("hash-moves", "claude-code:s9", 1),
                ("field-moves", "claude-code:s9", 1),
                ("field-moves", "claude-code:s9", 1),
            ),
            before=timeless,
        ),
    ),
    "drift": (
        Plant("a record of an unknown kind", (("unknown-kind", None, 1),), before=unknown_record),
        Plant("a part of an unknown kind", (("unknown-kind", None, 1),), before=unknown_part),
        Plant(
            "reasoning that begins in April",
            (("nulls-moved", None, 30),),
            before=NULLS,
            after=NULLS.after,  # type: ignore[attr-defined]
        ),
        Plant(
            "tool calls that begin in April",
            (("mix-moved", None, 30),),
            before=MIX,
            after=MIX.after,  # type: ignore[attr-defined]
        ),
    ),
    "scan cost": (
        Plant(
            "a source that opens files to detect and to list",
            (("detect-reads", None, 3), ("scan-reads", None, 3)),
            before=reading,
        ),
        Plant("a source whose scan fails", (("source-fails", None, 1),), after=failing),
    ),
    "coverage": (
        Plant(
            "rows of a source that nobody knows",
            nowhere("registered", "supported", "default", "restored", "validated", "watched"),
            after=lambda w: w.sql("INSERT INTO conversations (source, id) VALUES ('ghost', '7')"),
        ),
        Plant(
            "a prototype that no list has",
            nowhere("registered", "supported", "default", "restored", "validated", "watched"),
            after=new_adapter,
        ),
        Plant(
            "a registered source that is off by default",
            nowhere("supported", "default", "restored", "validated"),
            after=lambda w: w.sql("INSERT INTO conversations (source, id) VALUES ('gemini', '8')"),
        ),
    ),
}
IN_BOTH = frozenset({"drift"})
"""Questions whose plants are the same in a store of the careful profile."""
