"""The importer against a model of its rules, in arbitrary sequences of changes and imports.

The model is written from the text of ``pinned-importer.md``, sections 3, 4, 8 and 10, in dictionaries; nothing of the
package's decisions or writing is in it. Letters in comments are that text's steps.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import crystal_nb as cnb
from crystal_nb.adapters.base import Parsed
from crystal_nb.importer import find_candidates
from crystal_nb.scenarios.subjects import Sample, SampleMessage, subject_for
from crystal_nb.scenarios.world import Staged

START = 1_767_600_000
SOURCES = ("claude-code", "codex")
GENERATED = "imported-conversation"
Key = tuple[str, ...]


class Doc(NamedTuple):
    """A conversation on disk."""

    source: str
    id: str
    inner_id: str
    message_ids: tuple[str, ...]
    texts: tuple[str, ...]
    padding: int = 0
    path: Path = Path()

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    @property
    def time(self) -> str:
        return datetime.fromtimestamp(self.path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def messages(self) -> list[tuple[str | None, str]]:
        """Ids and texts; Codex gives random ids."""
        return [
            (i if self.source == "claude-code" else None, t) for i, t in zip(self.message_ids, self.texts, strict=False)
        ]


ids = st.sampled_from(["a", "b"])
texts = st.lists(st.sampled_from(["blue", "pink", "turquoise"]), min_size=1, max_size=4).map(tuple)
own_ids = st.lists(st.sampled_from(["m0", "m1", "m2", "m3", "m4"]), min_size=4, max_size=4).map(tuple)
new_docs = st.one_of(
    st.builds(lambda id, own, texts: Doc("claude-code", id, id, own, texts), ids, own_ids, texts),
    st.builds(lambda id, inner_id, texts: Doc("codex", id, inner_id, ("",) * 4, texts), ids, ids, texts),
)


def model_hash(source: str, contents: Iterable[tuple[str, str]]) -> str:
    """Section 4, for messages without thinking and tools."""
    keys = ("index", "type", "role", "content", "hasToolUse", "hasCode", "thinking")
    messages = [dict(zip(keys, (i, t, t, c, False, False, None), strict=True)) for i, (t, c) in enumerate(contents)]
    text = json.dumps({"source": source, "messages": messages}, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Model:
    """What is stored, by the text."""

    careful: bool
    rows: dict[Key, dict[str, Any]] = field(default_factory=dict)
    messages: dict[Any, tuple[Key, int, str, str | None]] = field(default_factory=dict)
    notes: dict[int, tuple[Key, bool, str | None]] = field(default_factory=dict)
    tags: list[int] = field(default_factory=list)
    tasks: dict[int, str] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    short: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    foreign_keys: bool = True
    versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 1))
    parsed: list[tuple[str, str]] = field(default_factory=list)
    stolen: list[tuple[str, str]] = field(default_factory=list)
    made: int = 0

    def key(self, source: str, id: str) -> Key:
        return (source, id) if self.careful else (id,)

    def take(self, doc: Doc, parse_fails: bool) -> tuple[str, str]:
        """One candidate, steps a to i: the action, and the id that a report names."""
        row = self.row_of(doc.source, doc.id)
        known = row or (self.short.get((doc.source, doc.id)) if self.careful else None)
        if known and self.looks_unchanged(doc, known):  # b
            return ("skip" if row else "skip-short"), doc.id
        self.parsed.append((doc.source, doc.id))
        if parse_fails:
            return self.fail(doc)
        if len(doc.texts) < 2:  # e
            if self.careful:
                self.short[doc.source, doc.id] = self.seen(doc)
            return "skip-short", doc.id
        id = doc.id if self.careful else doc.inner_id
        target = self.row_of(doc.source, id)
        if row and row["content_hash"] == self.hash_of(doc):  # f
            if target:
                target |= self.metadata(doc)
            return "metadata-update", doc.id
        self.short.pop((doc.source, doc.id), None)
        if row:  # g
            if self.foreign_keys and self.key(doc.source, id) not in self.rows:
                return self.fail(doc)
            self.replace(doc, self.key(doc.source, id), target)
            self.log.append((str(doc.path), "success"))
            return "replace", id
        if self.key(doc.source, id) in self.rows:  # the primary key
            return self.fail(doc)
        new = {"id": id, "source": doc.source, "status": "imported", "experience_gate_reason": None}
        self.rows[self.key(doc.source, id)] = new | self.metadata(doc)  # h
        self.put_messages(doc, self.key(doc.source, id))
        self.log.append((str(doc.path), "success"))
        return "insert", id

    def row_of(self, source: str, id: str) -> dict[str, Any] | None:
        row = self.rows.get(self.key(source, id))
        return row if row and row["source"] == source else None

    def looks_unchanged(self, doc: Doc, known: dict[str, Any]) -> bool:
        now = self.seen(doc)
        names = ("file_size", "file_mtime", *(("fingerprint", "parser_version") if self.careful else ()))
        return all(known[name] == now[name] for name in names)

    def seen(self, doc: Doc) -> dict[str, Any]:
        return {
            "file_size": doc.size,
            "file_mtime": doc.time,
            "fingerprint": doc.digest if self.careful else None,
            "parser_version": f"{doc.source}@{self.versions[doc.source]}",
        }

    def hash_of(self, doc: Doc) -> str:
        return model_hash(doc.source, ((role(i), text) for i, text in enumerate(doc.texts)))

    def metadata(self, doc: Doc) -> dict[str, Any]:
        """Metadata update."""
        return {
            **self.seen(doc),
            "source_conversation_id": doc.id,
            "content_hash": self.hash_of(doc),
            "message_count": len(doc.texts),
            "file_path": str(doc.path),
        }

    def replace(self, doc: Doc, owner: Key, target: dict[str, Any] | None) -> None:
        """Replace, exactly."""
        dropped = [n for n, (o, edited, kind) in self.notes.items() if o == owner and not edited and kind != "manual"]
        for note in dropped:
            del self.notes[note]
            self.tasks[note] = "pending"
        if self.foreign_keys:
            self.tags = [note for note in self.tags if note not in dropped]
        self.messages = {k: m for k, m in self.messages.items() if m[0] != owner}
        if target:
            rejected = (target["status"], target["experience_gate_reason"]) == ("filtered", "user-rejected-note")
            left = any(o == owner for o, _, _ in self.notes.values())
            target["status"] = "filtered" if rejected else "summarized" if left else "imported"
            target["experience_gate_reason"] = "user-rejected-note" if rejected else None
            target |= self.metadata(doc)
        self.put_messages(doc, owner)

    def put_messages(self, doc: Doc, owner: Key) -> None:
        """By message id over all conversations, or by conversation and position."""
        taken = {i for i, _ in doc.messages() if i in self.messages and self.messages[i][0] != owner}
        self.stolen += [] if self.careful else [(str(i), self.messages[i][0][0]) for i in taken]
        for position, (id, text) in enumerate(doc.messages()):
            self.made += 1
            key = (owner, position) if self.careful else self.made if id is None else id
            self.messages[key] = (owner, position, text, id)

    def fail(self, doc: Doc) -> tuple[str, str]:
        self.log.append((str(doc.path), "error"))
        return "error", doc.id

    def facts(self) -> dict[str, Any]:
        """What can be compared with a database."""
        return {
            "conversations": self.rows,
            "messages": sorted(self.messages.values(), key=str),
            "notes": self.notes,
            "tags": sorted(self.tags),
            "tasks": self.tasks,
            "log": self.log,
        }


def role(position: int) -> str:
    return "assistant" if position % 2 else "user"


class Counted(Staged):
    """An adapter that writes down what it parses."""

    parsed: list[tuple[str, str]] = msgspec.field(default_factory=list)

    async def parse(self, candidate: cnb.Candidate, config: cnb.Config) -> Parsed:
        self.parsed.append((candidate.source, candidate.id))
        return await Staged.parse(self, candidate, config)


class Interrupted(Exception):
    """The end of an import in its middle."""


class Imports(RuleBasedStateMachine):
    """Files, a store and the model side by side."""

    policy = cnb.PINNED

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        self.config = cnb.Config(home=self.home, platform="linux", enabled_sources=(), cache_seconds=0, clock=int)
        self.adapters = {name: Counted(cnb.get_adapter(name)) for name in SOURCES}
        self.model = Model(careful=self.policy is cnb.CAREFUL)
        self.docs: dict[tuple[str, str], Doc] = {}
        self.ticks = 0
        self.store = self.opened()
        self.looking = sqlite3.connect(self.home / "imports.db", isolation_level=None)
        self.looking.execute("PRAGMA synchronous = OFF")

    def opened(self) -> cnb.Store:
        """The store, which does not wait for the disk: a power cut is not tested here."""
        store = cnb.open_store(self.home / "imports.db", profile=self.policy, config=self.config)
        store._connection.execute("PRAGMA synchronous = OFF")
        return store

    def teardown(self) -> None:
        self.store.close()
        self.looking.close()
        shutil.rmtree(self.home)

    def put(self, doc: Doc, *, keep_time: bool = False) -> None:
        """Write a conversation, a second later than the last one unless its time is to stay."""
        messages = tuple(
            SampleMessage(role(n), text, id, f"2026-01-05T10:00:0{n}.000Z")
            for n, (id, text) in enumerate(zip(doc.message_ids, doc.texts, strict=False))
        )
        sample = Sample(doc.id, messages, inner_id=doc.inner_id, padding=doc.padding)
        before = doc.path.stat().st_mtime if keep_time else None
        path = subject_for(self.adapters[doc.source].inner).write(self.home, sample)
        self.docs[doc.source, doc.id] = doc._replace(path=path)
        self.set_time(path, before)

    def set_time(self, path: Path, time: float | None = None) -> None:
        self.ticks += time is None
        os.utime(path, (time or START + self.ticks,) * 2)

    def doc(self, data: st.DataObject) -> Doc:
        return self.docs[data.draw(st.sampled_from(sorted(self.docs)))]

    def of_row(self, key: Key) -> dict[str, Any]:
        return dict(
            zip(("source", "conversation_id") if self.model.careful else ("conversation_id",), key, strict=True)
        )

    @initialize(docs=st.lists(new_docs, min_size=2, max_size=4))
    def begin(self, docs: list[Doc]) -> None:
        for doc in docs:
            self.put(doc)
        self.import_all()

    @rule(doc=new_docs)
    def write(self, doc: Doc) -> None:
        self.put(doc)

    @precondition(lambda self: self.docs)
    @rule(data=st.data(), how=st.sampled_from(["edit", "edit_unseen", "pad", "touch", "delete"]))
    def change(self, data: st.DataObject, how: str) -> None:
        getattr(self, how)(data, self.doc(data))

    def edit(self, data: st.DataObject, doc: Doc) -> None:
        self.put(doc._replace(texts=data.draw(texts)))

    def edit_unseen(self, data: st.DataObject, doc: Doc) -> None:
        swapped = {"blue": "pink", "pink": "blue", "turquoise": "aquamarin"}.get(doc.texts[0], "turquoise")
        self.put(doc._replace(texts=(swapped, *doc.texts[1:])), keep_time=True)

    def pad(self, data: st.DataObject, doc: Doc) -> None:
        self.put(doc._replace(padding=data.draw(st.integers(0, 2))), keep_time=True)

    def touch(self, data: st.DataObject, doc: Doc) -> None:
        self.set_time(doc.path)

    def delete(self, data: st.DataObject, doc: Doc) -> None:
        doc.path.unlink()
        del self.docs[doc.source, doc.id]

    @rule(source=st.sampled_from(SOURCES))
    def bump_version(self, source: str) -> None:
        self.adapters[source].version += 1
        self.model.versions[source] += 1

    @precondition(lambda self: self.model.rows)
    @rule(data=st.data(), how=st.sampled_from(["add_note", "filter_out", "finish_tasks"]))
    def use(self, data: st.DataObject, how: str) -> None:
        """What people and the rest of the program do to the store."""
        getattr(self, how)(data, data.draw(st.sampled_from(sorted(self.model.rows))))

    def add_note(self, data: st.DataObject, owner: Key) -> None:
        if any(o == owner for o, _, _ in self.model.notes.values()):
            return
        edited, kind = data.draw(st.booleans()), data.draw(st.sampled_from([GENERATED, None, "manual"]))
        values = {**self.of_row(owner), "is_edited": edited, "source_type": kind}
        note = self.insert("notes", values)
        self.insert("note_tags", {"note_id": note, "tag": "tag"})
        self.set_row(owner, status="summarized")
        self.model.notes[note] = (owner, edited, kind)
        self.model.tags.append(note)

    def filter_out(self, data: st.DataObject, key: Key) -> None:
        reason = data.draw(st.sampled_from(["user-rejected-note", "low-value"]))
        self.set_row(key, status="filtered", experience_gate_reason=reason)

    def finish_tasks(self, data: st.DataObject, key: Key) -> None:
        self.looking.execute("UPDATE vector_cleanup_tasks SET status = 'done'")
        self.model.tasks = dict.fromkeys(self.model.tasks, "done")

    def insert(self, table: str, values: dict[str, Any]) -> int:
        marks = ", ".join("?" * len(values))
        done = self.looking.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", (*values.values(),))
        return done.lastrowid or 0

    def set_row(self, key: Key, **values: Any) -> None:
        row = self.model.rows[key]
        row |= values
        changes = ", ".join(f"{name} = ?" for name in values)
        where = (row["id"], row["source"])
        self.looking.execute(
            f"UPDATE conversations SET {changes} WHERE id = ? AND source = ?", (*values.values(), *where)
        )

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.opened()
        self.model.foreign_keys = True

    @rule()
    def import_all(self) -> None:
        self.check(self.listed(), self.run())

    @precondition(lambda self: self.docs)
    @rule(data=st.data())
    def import_with_failing_parse(self, data: st.DataObject) -> None:
        doc = self.doc(data)
        self.adapters[doc.source].failing, self.adapters[doc.source].failing_id = "parse", doc.id
        self.check(self.listed(), self.run(), failing=(doc.source, doc.id))

    @rule(source=st.sampled_from(SOURCES), stage=st.sampled_from(["detect", "scan"]))
    def import_with_failing_source(self, source: str, stage: str) -> None:
        adapter, others = self.adapters[source], [doc for doc in self.listed() if doc.source != source]
        seen = stage == "detect" or len(others) < len(self.docs)
        adapter.failing = stage
        if seen and not self.model.careful:
            with pytest.raises(cnb.SourceError):
                self.run()
            return
        report = self.run()
        assert [f.source for f in report.source_failures] == [source] * seen
        self.check(others, report)

    @precondition(lambda self: self.docs)
    @rule(data=st.data())
    def import_and_be_interrupted(self, data: st.DataObject) -> None:
        last = data.draw(st.integers(1, len(self.docs)))
        done = copy.deepcopy(self.model)
        for doc in self.listed()[:last]:
            done.take(doc, False)
        with pytest.raises(Interrupted):
            self.run(stop_after=last)
        if self.model.careful:
            self.model = done

    @rule()
    def plan_and_import(self) -> None:
        before = list(self.looking.iterdump())
        candidates = find_candidates(*self.adapters.values(), config=self.config)
        given = {"profile": self.policy, "adapters": self.adapters.values(), "config": self.config}
        planned = cnb.plan(candidates, self.store, **given)
        assert list(self.looking.iterdump()) == before
        self.forget()
        report = self.run()
        self.check(self.listed(), report)
        pairs = zip(planned["action"], report.outcomes, strict=True)
        assert all(action == o.decision.action for action, o in pairs)

    def listed(self) -> list[Doc]:
        """Sources in the adapters' order, files in the order of their names."""
        return [doc for _, doc in sorted(self.docs.items())]

    def run(self, *, stop_after: int = 0) -> Any:
        def watch(done: int, *_: object) -> None:
            if done == stop_after:
                raise Interrupted

        try:
            return cnb.import_all(
                self.store,
                adapters=self.adapters.values(),
                profile=self.policy,
                config=self.config,
                progress=False,
                on_progress=watch,
            )
        finally:
            self.parsed = self.forget()

    def forget(self) -> list[tuple[str, str]]:
        """Make the adapters work again; gives what they had parsed."""
        parsed = [key for adapter in self.adapters.values() for key in adapter.parsed]
        for adapter in self.adapters.values():
            adapter.failing, adapter.parsed = "", []
        return parsed

    def check(self, docs: list[Doc], report: Any, failing: tuple[str, str] | None = None) -> None:
        """A whole import by the model, and what the report says of it."""
        model = self.model
        model.parsed, model.stolen = [], []
        taken = [model.take(doc, (doc.source, doc.id) == failing) for doc in docs]
        model.foreign_keys = model.foreign_keys and model.careful  # the save at the end
        assert [o.decision.action for o in report.outcomes] == [action for action, _ in taken]
        assert self.parsed == model.parsed
        assert (report.total, report.imported_ids) == (len(docs), chosen(taken, "insert"))
        assert (report.replaced_ids, report.error_ids) == (chosen(taken, "replace"), chosen(taken, "error"))
        assert report.skipped_ids == chosen(taken, "skip", "skip-short", "metadata-update")
        assert sorted(s for o in report.outcomes for s in o.applied.stolen) == sorted(model.stolen)

    @invariant()
    def the_store_is_as_the_model_says(self) -> None:
        assert self.facts() == self.model.facts()

    def facts(self) -> dict[str, Any]:
        """What a program that opens the database finds."""
        owner, key = ("source, conversation_id", "source, id") if self.model.careful else ("conversation_id", "id")
        ask, width = self.looking.execute, len(owner.split())
        rows = ask(f"SELECT {key}, {', '.join(COLUMNS)} FROM conversations").fetchall()
        messages = ask(f"SELECT {owner}, sort_order, content, id FROM messages").fetchall()
        notes = ask(f"SELECT {owner}, id, is_edited, source_type FROM notes").fetchall()
        return {
            "conversations": {row[:width]: dict(zip(COLUMNS, row[width:], strict=True)) for row in rows},
            "messages": sorted(((m[:width], *m[width:-1], chosen_id(m[-1])) for m in messages), key=str),
            "notes": {note: (tuple(key), bool(edited), kind) for *key, note, edited, kind in notes},
            "tags": sorted(note for (note,) in ask("SELECT note_id FROM note_tags")),
            "tasks": {
                int(target): status for target, status in ask("SELECT target_id, status FROM vector_cleanup_tasks")
            },
            "log": ask("SELECT file_path, status FROM import_log ORDER BY id").fetchall(),
        }


COLUMNS = (
    *("id", "source", "source_conversation_id", "content_hash", "parser_version", "message_count", "file_path"),
    *("file_size", "file_mtime", "status", "experience_gate_reason", "fingerprint"),
)


def chosen(taken: list[tuple[str, str]], *actions: str) -> list[str]:
    return [id for action, id in taken if action in actions]


def chosen_id(id: str) -> str | None:
    """A message id that the test chose, none for a random one."""
    return id if id.startswith("m") else None


class PinnedImports(Imports):
    """The pinned importer, with all that it loses."""


class CarefulImports(Imports):
    """The careful one loses nothing."""

    policy = cnb.CAREFUL

    @invariant()
    def every_count_is_the_number_of_rows(self) -> None:
        query = (
            "SELECT message_count, (SELECT count(*) FROM messages WHERE (source, conversation_id) = (c.source, c.id))"
        )
        assert all(count == rows for count, rows in self.looking.execute(f"{query} FROM conversations c"))

    @invariant()
    def every_hash_is_that_of_the_rows(self) -> None:
        for source, id, digest in self.looking.execute("SELECT source, id, content_hash FROM conversations").fetchall():
            query = "SELECT type, content FROM messages WHERE (source, conversation_id) = (?, ?) ORDER BY sort_order"
            assert model_hash(source, self.looking.execute(query, (source, id))) == digest


LIMITS = settings(max_examples=100, stateful_step_count=25, suppress_health_check=list(HealthCheck), deadline=None)
TestPinned, TestCareful = PinnedImports.TestCase, CarefulImports.TestCase
TestPinned.settings = TestCareful.settings = LIMITS
