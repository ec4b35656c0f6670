"""A rehearsal shows, row by row, what an import would do."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crystal_nb as cnb
from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_claude_code, write_codex

IDS, TEXTS = ("s1", "s2", "s3"), ("blue", "pink", "a longer text")
conversations = st.lists(
    st.tuples(st.sampled_from(IDS), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3), st.booleans()),
    max_size=4,
)


def put(home: Path, id: str, texts: list[str], shared: bool) -> None:
    """Write a conversation; shared ones take the message ids of s1."""
    owner = "s1" if shared else id
    messages = tuple(
        SampleMessage("assistant" if n % 2 else "user", text, f"{owner}-{n}", f"2026-01-05T10:00:0{n}.000Z")
        for n, text in enumerate(texts)
    )
    write_claude_code(home, Sample(id, messages))
    write_codex(home, Sample(id, messages, inner_id="s1" if shared else None))


def table_rows(path: Path) -> dict[str, Counter[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        names = [n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kept = [n for n in names if not n.startswith("sqlite_") and n != "migrations"]
        return {n: Counter(connection.execute(f"SELECT * FROM {n}").fetchall()) for n in kept}


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
@settings(max_examples=40)
@given(histories=st.lists(conversations, min_size=1, max_size=3))
def test_a_rehearsal_equals_the_import_row_for_row(tmp_path_factory, profile, histories):
    folder = tmp_path_factory.mktemp("rehearsal")
    config = cnb.Config(home=folder, platform="linux", cache_seconds=0, clock=lambda: 1_800_000_000_000)
    with cnb.open_store(folder / "imports.db", profile=profile, config=config) as store:
        for history in histories:
            for id, texts, shared in history:
                put(folder, id, texts, shared)
            cands = cnb.scan("claude-code", "codex", config=config)
            before = table_rows(store.path)
            rehearsal = cnb.rehearse(cands, store, profile=profile, config=config)
            assert table_rows(store.path) == before
            report = cnb.import_all(store, cands, profile=profile, config=config)
            assert rehearsal.decisions.drop("steps").equals(report.decisions.drop("steps"))
            assert changed_rows(rehearsal) == difference(before, table_rows(store.path))
    shutil.rmtree(folder)


def changed_rows(rehearsal: cnb.Rehearsal) -> dict[str, tuple[int, int]]:
    """Rows gone and rows come per table; codex message ids are random, so rows are counted, not compared."""
    found: dict[str, list[int]] = {}
    for change in rehearsal.changed:
        gone, come = change.change != "added", change.change != "removed"
        counts = found.setdefault(change.table, [0, 0])
        counts[0] += gone
        counts[1] += come
    return {table: (gone, come) for table, (gone, come) in found.items()}


def difference(
    before: dict[str, Counter[tuple[object, ...]]], after: dict[str, Counter[tuple[object, ...]]]
) -> dict[str, tuple[int, int]]:
    pairs = {t: ((before[t] - after[t]).total(), (after[t] - before[t]).total()) for t in after}
    return {t: pair for t, pair in pairs.items() if any(pair)}


@pytest.fixture
def config(tmp_path: Path) -> cnb.Config:
    return cnb.Config(home=tmp_path, platform="linux", cache_seconds=0)


def test_the_exact_values_of_a_rehearsal_are_those_of_the_import(tmp_path, config):
    put(tmp_path, "s1", ["blue", "pink"], False)
    cands = cnb.scan("claude-code", config=config)
    with cnb.open_store(tmp_path / "imports.db", config=config) as store:
        rehearsed = store.copy()
        cnb.import_all(rehearsed, cands, config=config)
        cnb.import_all(store, cands, config=config)
        assert rehearsed.messages().equals(store.messages())
        times = ["created_at", "updated_at"]
        assert rehearsed.conversations().drop(times).equals(store.conversations().drop(times))
        rehearsed.close()


def test_the_theft_of_a_shared_message_id_shows(tmp_path, config):
    put(tmp_path, "s1", ["blue", "pink"], False)
    with cnb.open_store(tmp_path / "imports.db", config=config) as store:
        cnb.import_all(store, cnb.scan("claude-code", config=config), config=config)
        put(tmp_path, "s2", ["a longer text", "pink"], True)
        changes = cnb.rehearse(cnb.scan("claude-code", config=config), store, config=config).changes
        stolen = changes.filter(pl.col("change") == "stolen")
        assert stolen["key"].to_list() == ["s1-0", "s1-1"]
        assert set(stolen["from_conversation"]) == {"s1"}
        assert set(stolen["conversation_id"]) == {"s2"}


def test_by_the_careful_policy_nothing_is_stolen(tmp_path, config):
    put(tmp_path, "s1", ["blue", "pink"], False)
    with cnb.open_store(tmp_path / "imports.db", config=config) as store:
        cnb.import_all(store, cnb.scan("claude-code", config=config), config=config)
        put(tmp_path, "s2", ["a longer text", "pink"], True)
        rehearsal = cnb.rehearse(cnb.scan("claude-code", config=config), store, profile="careful", config=config)
        assert rehearsal.changes.filter(pl.col("change") == "stolen").is_empty()


def test_the_drift_of_the_codex_fork_shows():
    config = cnb.samples.config()
    cands = cnb.scan("codex", config=config)
    with cnb.Store.in_memory(cnb.PINNED, config) as store:
        decisions = cnb.rehearse(cands, store, config=config).decisions
        drifted = decisions.filter(pl.col("id") != pl.col("candidate_id"))
        assert drifted["action"].to_list() == ["error"]
        assert "is taken by" in drifted["reason"][0]


def test_policies_are_compared_on_the_same_before_and_after(tmp_path, config):
    put(tmp_path, "s1", ["blue", "pink"], False)
    put(tmp_path, "s2", ["a longer text", "pink"], False)
    put(tmp_path, "s3", ["blue"], False)
    with cnb.open_store(tmp_path / "imports.db", profile="careful", config=config) as store:
        cnb.import_all(store, cnb.scan("claude-code", config=config), profile="careful", config=config)
        edit_unseen(tmp_path, "s1")
        put(tmp_path, "s4", ["blue", "a longer text"], True)
        scores = cnb.compare_policies(cnb.scan("claude-code", config=config), store, config=config)
        pinned, careful = scores.iter_rows(named=True)
    assert (pinned["false_skips"], careful["false_skips"]) == (1, 0)
    assert (pinned["rows_stolen"], careful["rows_stolen"]) == (2, 0)
    assert (pinned["incomplete"], careful["incomplete"]) == (1, 0)
    assert (pinned["needless_parses"], careful["needless_parses"]) == (1, 0)
    assert (pinned["replaces"], careful["replaces"]) == (0, 1)


def edit_unseen(home: Path, id: str) -> None:
    import os

    path = home / ".claude" / "projects" / "-srv-demo" / f"{id}.jsonl"
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"blue", b"grey"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_replace_of_equal_rows_is_needless(tmp_path, config):
    put(tmp_path, "s1", ["blue", "pink"], False)
    cands = cnb.scan("claude-code", config=config)
    with cnb.open_store(tmp_path / "imports.db", config=config) as store:
        cnb.import_all(store, cands, config=config)
        store.connection.execute("UPDATE conversations SET content_hash = NULL, file_size = 0")
        (pinned,) = cnb.compare_policies(cands, store, ["chatcrystal"], config=config).iter_rows(named=True)
    assert (pinned["replaces"], pinned["needless_replaces"]) == (1, 1)


def test_a_rehearsal_shows_itself(tmp_path, config):
    put(tmp_path, "s1", ["blue", "pink"], False)
    with cnb.Store.in_memory(cnb.PINNED, config) as store:
        rehearsal = cnb.rehearse(cnb.scan("claude-code", config=config), store, config=config)
        assert "messages" in repr(rehearsal)
        assert ">messages</th>" in rehearsal._repr_html_()
        cnb.import_all(store, cnb.scan("claude-code", config=config), config=config)
        assert "no row would change" in repr(cnb.rehearse(cnb.scan("claude-code", config=config), store, config=config))


FOREIGN = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, source TEXT, is_virtual INTEGER DEFAULT 0,
 twice TEXT GENERATED ALWAYS AS (id || id) STORED, lazy TEXT GENERATED ALWAYS AS (id || 1) VIRTUAL);
CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, type TEXT, content BLOB, role BLOB,
 sort_order INTEGER) WITHOUT ROWID;
CREATE TABLE sqlitefoo (x);
CREATE TABLE short_candidates (something TEXT);
INSERT INTO conversations (id, source) VALUES ('s1', 'claude-code');
INSERT INTO messages VALUES ('s1-0', 's1', 'user', x'c328', x'00', 0);
INSERT INTO sqlitefoo VALUES (1), (1);
"""


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
def test_a_database_with_unusual_tables_can_be_rehearsed_on(tmp_path, config, profile):
    with closing(sqlite3.connect(tmp_path / "cc.db")) as connection:
        connection.executescript(FOREIGN)
    put(tmp_path, "s1", ["blue", "pink"], False)
    put(tmp_path, "s2", ["blue", "pink"], False)
    cands = cnb.scan("claude-code", config=config)
    with cnb.open_store(tmp_path / "cc.db") as store:
        rehearsal = cnb.rehearse(cands, store, profile=profile, config=config)
        assert rehearsal.counts()["conversations", "added"] == rehearsal.report.imported
        assert rehearsal.counts()["conversations", "changed"] == rehearsal.report.replaced
        assert cnb.compare_policies(cands, store, config=config).height == 2


def test_rows_without_a_key_are_counted(tmp_path):
    from crystal_nb.store_changes import changes_since, remember
    from crystal_nb.store_schema import Layout

    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript("CREATE TABLE tags (t); INSERT INTO tags VALUES ('a'), ('a'), ('a'), ('b')")
    remember(connection)
    connection.executescript("DELETE FROM tags WHERE rowid < 3; INSERT INTO tags VALUES ('b')")
    found = Counter((c.change, c.key) for c in changes_since(connection, Layout(False, False)))
    assert found == {("removed", "a"): 2, ("added", "b"): 1}
    connection.close()


def test_a_damaged_database_is_an_error_with_its_name(tmp_path, config):
    put(tmp_path, "s1", ["blue" * 5000, "pink" * 5000], False)
    cands = cnb.scan("claude-code", config=config)
    with cnb.open_store(tmp_path / "imports.db", config=config) as store:
        cnb.import_all(store, cands, config=config)
    data = bytearray((tmp_path / "imports.db").read_bytes())
    data[20_000:40_000] = b"\x5a" * 20_000
    (tmp_path / "imports.db").write_bytes(data)
    with pytest.raises(cnb.StoreError, match=r"imports\.db"), cnb.open_store(tmp_path / "imports.db") as store:
        cnb.rehearse(cands, store, config=config)
