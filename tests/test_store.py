"""Creating, opening, migrating and reading stores, and what happens when a database can't be used."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import crystal_nb as cnb
from crystal_nb import store_copy, store_frames, store_schema
from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_claude_code
from crystal_nb.store_schema import Layout

NOW = 1_767_600_000_000
POLICIES = {"chatcrystal": cnb.PINNED, "careful": cnb.CAREFUL}
CONVERSATION = {
    "id": "s0",
    "source": "claude-code",
    "source_conversation_id": "s0",
    "content_hash": "00",
    "parser_version": "claude-code@1",
    "message_count": 1,
    "file_size": 7,
    "file_mtime": "2026-01-01T00:00:00.000Z",
    "status": "imported",
}
MESSAGE = {"id": "m", "conversation_id": "s0", "type": "user", "content": "hello", "has_code": 1, "sort_order": 0}


def put(home: Path, id: str, *texts: str) -> Path:
    messages = tuple(
        SampleMessage("assistant" if n % 2 else "user", text, f"{id}-{n}", f"2026-01-05T10:00:0{n}.000Z")
        for n, text in enumerate(texts or ("hello", "hi there"))
    )
    return write_claude_code(home, Sample(id, messages))


@pytest.fixture
def config(tmp_path: Path) -> cnb.Config:
    """A home with three conversations."""
    for n in range(3):
        put(tmp_path / "home", f"s{n}")
    return cnb.Config(home=tmp_path / "home", platform="linux", clock=lambda: NOW, enabled_sources=["claude-code"])


@pytest.fixture(params=list(POLICIES))
def profile(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "imports.db"


@pytest.fixture
def stored(path: Path, profile: str, config: cnb.Config) -> Path:
    """A database with the three conversations, closed."""
    with cnb.open_store(path, profile=profile, config=config) as store:
        assert cnb.import_all(store, profile=profile, config=config).imported == 3
    return path


def contents(path: Path) -> list[str]:
    """All rows of all tables."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def ask(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(statement)


@contextmanager
def refused(path: Path, text: str) -> Iterator[None]:
    """A clear error: what is wrong, with which file."""
    with pytest.raises(cnb.StoreError, match=text) as caught:
        yield
    assert (Path(caught.value.path), str(path) in str(caught.value)) == (path, True)


# Creating and opening


def test_a_new_store_has_the_layout_of_its_profile_and_says_whose_it_is(path, profile, config):
    with cnb.open_store(path, profile=profile, config=config) as store:
        assert (store.layout, store.read_only) == (Layout.of(POLICIES[profile]), False)
        assert repr(store) == f"Store: {path}, 0 conversations"
    assert ask(path, "PRAGMA application_id") == [(store_schema.APPLICATION_ID,)]
    assert ask(path, "PRAGMA user_version") == [(store_schema.VERSION,)]


@pytest.mark.parametrize(
    ("profile", "conversations", "messages"),
    [("chatcrystal", ["id"], ["id"]), ("careful", ["source", "id"], ["source", "conversation_id", "sort_order"])],
)
def test_rows_are_identified_as_the_profile_needs_it(path, profile, conversations, messages):
    cnb.open_store(path, profile=profile).close()
    for table, key in (("conversations", conversations), ("messages", messages)):
        found = ask(path, f"SELECT name FROM pragma_table_info('{table}') WHERE pk > 0 ORDER BY pk")
        assert found == [(name,) for name in key]


def test_an_existing_store_keeps_its_rows_and_its_layout(stored, profile):
    before = contents(stored)
    for other in POLICIES:
        with cnb.open_store(stored, profile=other) as store:
            assert store.layout == Layout.of(POLICIES[profile])
    assert contents(stored) == before


def test_an_empty_file_becomes_a_store(path, profile):
    path.touch()
    with cnb.open_store(path, profile=profile) as store:
        assert store.layout == Layout.of(POLICIES[profile])


def test_migrations_are_recorded(path, profile, config):
    cnb.open_store(path, profile=profile, config=config).close()
    steps = [(n, name, "2026-01-05T08:00:00.000Z") for n, (name, _) in enumerate(store_schema.MIGRATIONS, 1)]
    assert ask(path, "SELECT * FROM migrations ORDER BY version") == steps


def test_a_store_of_the_first_version_is_migrated(path, profile, config, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(store_schema, "MIGRATIONS", store_schema.MIGRATIONS[:1])
        cnb.open_store(path, profile=profile).close()
    insert(path, "conversations", CONVERSATION)
    assert ask(path, "PRAGMA user_version") == [(1,)]
    with cnb.open_store(path, config=config) as store:
        row = store.conversations().row(0, named=True)
        assert (row["id"], row["fingerprint"], store.layout) == ("s0", None, Layout.of(POLICIES[profile]))
        assert cnb.import_all(store, profile=profile, config=config).replaced_ids == ["s0"]
    assert ask(path, "SELECT version FROM migrations") == [(1,), (2,)]


def test_a_step_that_fails_leaves_the_version_before(path, monkeypatch):
    def fail(connection: sqlite3.Connection, layout: Layout) -> None:
        connection.execute("CREATE TABLE half (id)")
        connection.execute("no SQL")

    with monkeypatch.context() as patch:
        patch.setattr(store_schema, "MIGRATIONS", (store_schema.MIGRATIONS[0], ("fails", fail)))
        with refused(path, "syntax error"):
            cnb.open_store(path)
    assert ask(path, "PRAGMA user_version") == [(1,)]
    assert "half" not in "".join(contents(path))
    cnb.open_store(path).close()


def test_closing_twice_is_fine_and_shows(path):
    store = cnb.open_store(path)
    store.close()
    store.close()
    assert repr(store) == f"Store: {path}, closed"


def crashed_creation(path: Path) -> None:
    """What a process leaves that dies between writing a new database and dropping its journal."""
    made = path.with_name("made.db")
    with closing(store_copy.connect(str(made))) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        store_schema.MIGRATIONS[0][1](connection, Layout.of(cnb.CAREFUL))
        connection.execute(f"PRAGMA application_id = {store_schema.APPLICATION_ID}")
        shutil.copyfile(f"{made}-journal", f"{path}-journal")
        connection.execute("COMMIT")
    made.rename(path)


def test_a_creation_that_crashed_is_done_again_with_the_layout_of_the_profile(path):
    crashed_creation(path)
    with cnb.open_store(path, profile="careful") as store:
        assert store.layout == Layout.of(cnb.CAREFUL)


# Reading


def test_everything_that_decisions_need_takes_one_query(stored):
    with cnb.open_store(stored) as store:
        asked: list[str] = []
        store._connection.set_trace_callback(asked.append)
        assert len(store.states()) == 3
    assert [query.split()[0] for query in asked if not query.startswith("PRAGMA ")] == ["SELECT"]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("conversations", store_frames.STORED_CONVERSATIONS),
        ("messages", store_frames.STORED_MESSAGES),
        ("notes", store_frames.NOTES),
        ("import_log", store_frames.IMPORT_LOG),
        ("clean_up_tasks", store_frames.CLEAN_UP_TASKS),
    ],
)
def test_frames_have_their_documented_columns_with_and_without_rows(stored, name, columns, tmp_path):
    schema = {column: c.dtype for column, c in columns.items()}
    with cnb.open_store(stored) as store, cnb.open_store(tmp_path / "new.db") as new:
        assert dict(getattr(store, name)().schema) == dict(getattr(new, name)().schema) == schema


def test_frames_hold_what_was_imported(stored):
    with cnb.open_store(stored) as store:
        assert store.conversations()["id"].to_list() == ["s0", "s1", "s2"]
        assert store.conversations()["message_count"].to_list() == [2, 2, 2]
        messages = store.messages()
        assert messages.select("source", "conversation_id", "sort_order", "content", "has_code").rows()[:2] == [
            ("claude-code", "s0", 0, "hello", False),
            ("claude-code", "s0", 1, "hi there", False),
        ]
        assert store.import_log()["status"].to_list() == ["success"] * 3


def test_a_copy_in_memory_is_one_to_try_things_on(stored, profile, config):
    before = contents(stored)
    put(config.home_path, "s1", "something else", "indeed")
    with cnb.open_store(stored) as store, store.copy() as copy:
        assert (copy.path, copy.layout) == (None, store.layout)
        assert cnb.import_all(copy, profile=profile, config=config).replaced_ids == ["s1"]
        assert copy.messages().height == store.messages().height
    assert contents(stored) == before


def test_a_copy_can_be_laid_out_for_another_policy(stored):
    with cnb.open_store(stored) as store:
        for policy in POLICIES.values():
            with store.copy(policy) as copy:
                assert copy.layout == Layout.of(policy)
                assert copy.conversations().equals(store.conversations())
                assert copy.messages().equals(store.messages())


def test_a_copy_to_look_at_is_as_the_store_is_now_and_leaves_no_file(stored, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "data"))
    with cnb.open_store(stored) as store, cnb.open_store(stored, read_only=True) as copy:
        assert (copy.read_only, repr(copy)) == (True, f"Store: {stored}, 3 conversations, read-only")
        assert copy.conversations().equals(store.conversations())
    assert list(files(stored.parent)) == ["imports.db"]


def test_a_note_that_is_dropped_again_has_its_clean_up_queued_again(stored, profile, config):
    with cnb.open_store(stored, config=config) as store:
        for text in ("something else", "once more"):
            change(stored, "UPDATE vector_cleanup_tasks SET status = 'done'")
            insert(stored, "notes", {"id": 7, "conversation_id": "s1"})
            put(config.home_path, "s1", text, "indeed")
            assert cnb.import_all(store, profile=profile, config=config).replaced == 1
            assert store.clean_up_tasks().select("target_id", "status").rows() == [("7", "pending")]


# ChatCrystal's own databases

TABLES = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, slug TEXT, source TEXT NOT NULL, source_conversation_id TEXT,
  content_hash TEXT, parser_version TEXT, project_dir TEXT, project_name TEXT, cwd TEXT, git_branch TEXT,
  message_count INTEGER DEFAULT 0, first_message_at TEXT, last_message_at TEXT, file_path TEXT, file_size INTEGER,
  file_mtime TEXT, status TEXT DEFAULT 'imported', experience_score REAL, experience_gate_reason TEXT,
  experience_gate_details TEXT, created_at TEXT, updated_at TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE, parent_uuid TEXT, type TEXT NOT NULL,
  role TEXT, content TEXT, has_tool_use INTEGER DEFAULT 0, has_code INTEGER DEFAULT 0, thinking TEXT, timestamp TEXT,
  sort_order INTEGER);
CREATE TABLE notes (id INTEGER PRIMARY KEY, conversation_id TEXT UNIQUE REFERENCES conversations (id) ON DELETE CASCADE,
  title TEXT, summary TEXT, key_conclusions TEXT, code_snippets TEXT, is_edited INTEGER DEFAULT 0, source_type TEXT,
  created_at TEXT, embedding BLOB);
CREATE TABLE import_log (id INTEGER PRIMARY KEY, file_path TEXT, status TEXT, message TEXT, created_at TEXT);
CREATE TABLE vector_cleanup_tasks (id INTEGER PRIMARY KEY, target_type TEXT, target_id TEXT, status TEXT,
  attempts INTEGER, last_error TEXT, created_at TEXT, updated_at TEXT, UNIQUE (target_type, target_id));
CREATE TABLE something_of_its_own (id TEXT);
"""
LATER = ("source_conversation_id", "content_hash", "parser_version")


def insert(path: Path, table: str, values: dict[str, Any]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        if "source" in store_schema.columns_of(connection, table):
            values = {"source": "claude-code", **values}
        marks = ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", (*values.values(),))


@pytest.fixture(params=["current", "old"])
def chatcrystal(request: pytest.FixtureRequest, path: Path) -> Path:
    """A database as ChatCrystal has it, or had it."""
    old = request.param == "old"
    change(path, TABLES)
    if old:
        change(path, "".join(f"ALTER TABLE conversations DROP COLUMN {name};" for name in LATER))
    insert(path, "conversations", {k: v for k, v in CONVERSATION.items() if not (old and k in LATER)})
    insert(path, "messages", MESSAGE)
    insert(path, "notes", {"conversation_id": "s0", "title": "note", "is_edited": 1})
    return path


def test_a_chatcrystal_database_is_read_and_never_altered(chatcrystal, config):
    before = files(chatcrystal.parent)
    with cnb.open_store(chatcrystal, config=config) as store:
        assert (store.read_only, store.layout) == (True, Layout.of(cnb.PINNED))
        assert store.conversations().select("source", "id", "message_count").rows() == [("claude-code", "s0", 1)]
        assert store.messages().select("source", "content", "has_code").rows() == [("claude-code", "hello", True)]
        assert store.notes().select("source", "title", "is_edited").rows() == [("claude-code", "note", True)]
        assert (store.import_log().height, store.clean_up_tasks().height) == (0, 0)
        with refused(chatcrystal, "to be looked at"):
            cnb.import_all(store, config=config)
        plan = cnb.plan(cnb.scan("claude-code", config=config), store, config=config)
        assert plan["action"].to_list() == ["replace", "insert", "insert"]
        with store.copy() as copy:
            assert cnb.import_all(copy, config=config).replaced_ids == ["s0"]
    assert files(chatcrystal.parent) == before


def test_columns_that_an_old_database_lacks_are_unknown(chatcrystal):
    old = "content_hash" not in contents(chatcrystal)[1] + contents(chatcrystal)[2]
    with cnb.open_store(chatcrystal) as store:
        row = store.conversations().row(0, named=True)
        state = store.states().owner("claude-code", "s0", cnb.PINNED)
    assert [row[name] is None for name in LATER] == [old] * 3
    assert [state.candidate_id is None, state.content_hash is None, state.parser_version is None] == [old] * 3
    assert (state.file_size, state.file_mtime, state.fingerprint) == (7, "2026-01-01T00:00:00.000Z", None)


def test_what_only_the_write_ahead_log_holds_is_seen_while_another_program_has_the_database_open(chatcrystal):
    with closing(sqlite3.connect(chatcrystal, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("PRAGMA wal_autocheckpoint = 0")
        other.execute("UPDATE conversations SET status = 'summarized'")
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE conversations SET status = 'error'")
        before = files(chatcrystal.parent)
        with cnb.open_store(chatcrystal) as store:
            assert store.conversations()["status"].to_list() == ["summarized"]
        assert files(chatcrystal.parent) == before
        assert sorted(before) == ["imports.db", "imports.db-shm", "imports.db-wal"]


def test_values_of_other_types_are_shown_as_far_as_they_fit(chatcrystal):
    change(chatcrystal, "UPDATE messages SET content = x'ff41'; UPDATE conversations SET file_size = 'big'")
    with cnb.open_store(chatcrystal) as store:
        assert store.messages()["content"].to_list() == ["\ufffdA"]
        assert store.conversations()["file_size"].to_list() == [None]


# What can't be opened


def test_a_file_that_is_no_database_is_refused(path, profile):
    path.write_text("hello", encoding="utf-8")
    with refused(path, "no SQLite database"):
        cnb.open_store(path, profile=profile)
    assert files(path.parent) == {"imports.db": b"hello"}


def test_a_folder_is_refused(tmp_path):
    with refused(tmp_path, "directory|denied"):
        cnb.open_store(tmp_path)


def test_a_store_in_a_folder_that_is_not_there_is_refused(tmp_path):
    path = tmp_path / "no" / "imports.db"
    with refused(path, "unable to open"):
        cnb.open_store(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path_is", ["missing", "empty"])
def test_there_is_nothing_to_look_at_in_what_is_not_there(path, path_is):
    if path_is == "empty":
        path.touch()
    with refused(path, "no such database"):
        cnb.open_store(path, read_only=True)
    assert path.exists() == (path_is == "empty")


def test_a_database_of_another_program_is_refused(path):
    change(path, "CREATE TABLE messages (id TEXT, body TEXT); CREATE TABLE conversations (id TEXT)")
    before = files(path.parent)
    with refused(path, "no database of imported conversations"):
        cnb.open_store(path)
    assert files(path.parent) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_of_a_newer_version_is_refused(stored, read_only):
    change(stored, f"PRAGMA user_version = {store_schema.VERSION + 1}")
    before = contents(stored)
    with refused(stored, "newer than"):
        cnb.open_store(stored, read_only=read_only)
    assert contents(stored) == before


def test_a_file_with_a_damaged_schema_is_refused(stored, profile):
    data = bytearray(stored.read_bytes())
    data[100:4096] = b"\xaa" * 3996
    stored.write_bytes(data)
    for read_only in (False, True):
        with refused(stored, "malformed|damaged"):
            cnb.open_store(stored, profile=profile, read_only=read_only)
    assert stored.read_bytes() == data


@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_schema_that_sqlite_quotes_is_reported(stored, read_only):
    stored.write_bytes(stored.read_bytes().replace(b"CREATE TABLE notes", b"CREA\xddE TABLE notes"))
    with refused(stored, "the database is damaged"):
        cnb.open_store(stored, read_only=read_only)


# What can't be written


def changed(config: cnb.Config) -> cnb.Config:
    """The same home with one conversation edited and many new large ones."""
    put(config.home_path, "s1", "something else", "indeed")
    for n in range(30):
        put(config.home_path, f"t{n:02}", "long " * 2000, "short")
    return config


def fails(store: cnb.Store, path: Path, profile: str, config: cnb.Config, hint: str) -> cnb.ImportReport | None:
    """Import; the pinned run ends with the error, of the careful one's report each failing candidate names it."""
    if profile == "chatcrystal":
        with refused(path, hint):
            cnb.import_all(store, profile=profile, config=config)
        return None
    report = cnb.import_all(store, profile=profile, config=config)
    assert all(hint in problem and str(path) in problem for problem in report.problems())
    return report


def whole(path: Path) -> None:
    """Every conversation has all its rows, and none that was there is gone."""
    query = "SELECT sum(message_count), (SELECT count(*) FROM messages) FROM conversations"
    ((promised, there),) = ask(path, query)
    assert promised == there
    assert {("s0",), ("s1",), ("s2",)} <= set(ask(path, "SELECT id FROM conversations"))
    assert ask(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_locked_database_is_refused_and_taken_again_when_it_is_free(stored, profile, config, monkeypatch):
    monkeypatch.setattr(store_copy, "_BUSY_SECONDS", 0.01)
    before = contents(stored)
    with cnb.open_store(stored, config=config) as store, closing(sqlite3.connect(stored)) as other:
        other.execute("BEGIN IMMEDIATE")
        with refused(stored, "another program is writing to it"):
            cnb.import_all(store, profile=profile, config=changed(config))
        assert contents(stored) == before
        other.rollback()
        again = cnb.import_all(store, profile=profile, config=config)
        assert (again.imported, again.replaced, again.errors) == (30, 1, 0)


def test_a_locked_database_of_an_older_version_is_refused(path, monkeypatch):
    monkeypatch.setattr(store_copy, "_BUSY_SECONDS", 0.01)
    with monkeypatch.context() as patch:
        patch.setattr(store_schema, "MIGRATIONS", store_schema.MIGRATIONS[:1])
        cnb.open_store(path).close()
    before = contents(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with refused(path, "another program is writing to it"):
            cnb.open_store(path)
    assert contents(path) == before


def test_on_a_full_disk_nothing_is_half_written(stored, profile, config):
    before = contents(stored)
    with cnb.open_store(stored, config=config) as store:
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages + 10}")
        report = fails(store, stored, profile, changed(config), "no room is left on the disk")
        assert (report.errors > 10) if report else contents(stored) == before
        whole(stored)
        store._connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
        again = cnb.import_all(store, profile=profile, config=config)
        assert (again.errors, store.conversations().height) == (0, 33)
    whole(stored)


def test_a_conversation_whose_writing_fails_half_way_is_left_as_it_was(stored, profile, config):
    refuse = "BEGIN SELECT raise(ABORT, 'told to fail'); END"
    change(stored, f"CREATE TRIGGER t BEFORE INSERT ON messages WHEN new.content = 'poison' {refuse}")
    insert(stored, "notes", {"conversation_id": "s1"})
    before = [line for line in contents(stored) if "import_log" not in line]
    for id in ("s1", "t1"):
        put(config.home_path, id, "something else", "poison")
    with cnb.open_store(stored, config=config) as store:
        report = cnb.import_all(store, profile=profile, config=config)
        assert (report.error_ids, report.skipped) == (["s1", "t1"], 2)
        assert store.import_log()["status"].to_list()[3:] == ["error"] * 2
    assert [line for line in contents(stored) if "import_log" not in line] == before


def test_a_connection_that_may_not_write_is_refused(stored, profile, config):
    before = contents(stored)
    with cnb.open_store(stored, config=config) as store:
        store._connection.execute("PRAGMA query_only = 1")
        report = fails(store, stored, profile, changed(config), "can't be written")
        assert report is None or report.errors == 31
    assert contents(stored) == before


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="this user may write everywhere")
def test_a_file_that_may_not_be_written_is_refused(stored, profile, config):
    before = files(stored.parent)
    stored.chmod(0o444)
    stored.parent.chmod(0o555)
    try:
        with refused(stored, "readonly|unable to open"):
            cnb.open_store(stored, config=config)
        with cnb.open_store(stored, read_only=True) as copy:
            assert copy.conversations().height == 3
        assert files(stored.parent) == before
    finally:
        stored.parent.chmod(0o755)


def test_a_damaged_database_is_reported_by_whatever_meets_the_damage(stored, profile, config):
    change(stored, "PRAGMA journal_mode = DELETE")
    with cnb.open_store(stored, config=config) as store:
        cnb.import_all(store, profile=profile, config=changed(config))
    data = bytearray(stored.read_bytes())
    data[4096 * 4 : 4096 * (len(data) // 4096 - 2)] = b"\xaa" * (4096 * (len(data) // 4096 - 6))
    stored.write_bytes(data)
    with refused(stored, "the database is damaged"), cnb.open_store(stored) as store:
        store.messages()


def test_a_version_below_zero_is_refused(stored):
    with closing(sqlite3.connect(stored)) as connection:
        connection.execute("PRAGMA user_version = -5")
    with refused(stored, "which is none"):
        cnb.open_store(stored)


def test_a_name_that_sqlite_takes_for_memory_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:x"):
        cnb.open_store(name).close()
        assert Path(name).stat().st_size > 0


def test_a_path_with_nul_is_an_error(tmp_path):
    with pytest.raises(cnb.StoreError):
        cnb.open_store(f"{tmp_path}/a\0b")


def test_views_in_place_of_tables_are_refused(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW conversations AS SELECT 1 AS id, 2 AS source")
        connection.execute("CREATE TABLE messages (id, conversation_id)")
    with refused(path, "no fitting table conversations"):
        cnb.open_store(path)


def test_a_forgotten_copy_is_removed(stored, monkeypatch):
    import gc
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(stored.parent))
    store = cnb.open_store(stored, read_only=True)
    assert list(stored.parent.glob("crystal-nb-*"))
    store.connection.close()
    del store
    gc.collect()
    assert not list(stored.parent.glob("crystal-nb-*"))


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_store_can_be_created_by_several_processes_at_once(path):
    import subprocess

    code = f"import crystal_nb as cnb; cnb.open_store({str(path)!r}).close()"
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(6)]
    assert [process.wait() for process in running] == [0] * 6


def test_what_is_shown_of_a_path_obeys_nobody(tmp_path):
    name = tmp_path / "a\x1b[31m\u202e.db"
    with cnb.open_store(name) as store:
        assert "\x1b" not in repr(store)
    name.write_text("no database")
    with pytest.raises(cnb.StoreError) as caught:
        cnb.open_store(name)
    assert "\x1b" not in str(caught.value)


def test_a_path_may_begin_at_the_home_folder(tmp_path, monkeypatch, config):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with cnb.open_store("~/imports.db", config=config) as store:
        assert store.path == tmp_path / "imports.db"
