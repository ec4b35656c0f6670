"""Keys of fates, and the bytes that they lead to."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
import zstandard

import crystal_nb as cnb
from crystal_nb.records import Candidate, Fate
from crystal_nb.rereading import raw_record, raw_records


def database(path, **tables):
    """A database with one row per table, given as ``table=(columns, key, value)``."""
    with closing(sqlite3.connect(path)) as connection:
        for table, (id, value, rows) in tables.items():
            connection.execute(f"CREATE TABLE {table} ({id} TEXT, {value} BLOB)")
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows.items())
        connection.commit()
    return Candidate("copilot", "7", str(path), 1, "", "")


@pytest.mark.parametrize("key", ["/no/such", "/requests/9", "/requests/x", "nothing/here", "cursorDiskKV/none", ""])
def test_a_key_that_leads_nowhere_is_an_error(tmp_path, key):
    path = tmp_path / "session.json"
    path.write_text('{"requests": []}')
    with pytest.raises(cnb.SourceError, match=r"session\.json"):
        raw_record(Candidate("copilot", "7", str(path), 1, "", ""), Fate("dropped", "x", key=key or None))


def test_a_pointer_with_escaped_steps_is_followed(tmp_path):
    path = tmp_path / "session.json"
    path.write_text('{"a/b": {"~": [1, "x"]}}')
    fate = Fate("dropped", "x", key="/a~1b/~0/1")
    assert raw_record(Candidate("copilot", "7", str(path), 1, "", ""), fate) == b'"x"'


def test_a_compressed_file_is_read_where_the_text_stands(tmp_path):
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"0123456789" * 300_000))
    candidate = Candidate("codex", "7", str(path), 1, "", "")
    assert raw_record(candidate, Fate("dropped", "x", offset=2_000_003, size=4)) == b"3456"
    with pytest.raises(cnb.SourceError, match="ends before"):
        raw_record(candidate, Fate("dropped", "x", offset=4_000_000, size=4))


def test_a_damaged_compressed_file_is_read_up_to_the_damage(tmp_path):
    path = tmp_path / "rollout.jsonl.zst"
    data = bytes(range(256)) * 8192
    packed = zstandard.ZstdCompressor().compress(data)
    path.write_bytes(zstandard.ZstdCompressor().compress(b"whole") + packed[: len(packed) // 2] + b"\xff" * 9)
    candidate = Candidate("codex", "7", str(path), 1, "", "")
    assert raw_record(candidate, Fate("dropped", "x", offset=1, size=4)) == b"hole"
    assert raw_record(candidate, Fate("dropped", "zstd", offset=5, size=0)) == b""
    with pytest.raises(cnb.SourceError, match="ends before"):
        raw_record(candidate, Fate("dropped", "x", offset=len(data), size=4))


def test_every_form_of_a_key_in_a_database_is_followed(tmp_path):
    index = json.dumps({"entries": {"a": 1}})
    rows = {"k": "1", "list": '[{"x": "y"}, 2]', "p/q": '{"a/b": [3]}', "index": index, "index.entry.b": "4"}
    candidate = database(
        tmp_path / "state.vscdb",
        ItemTable=("key", "value", rows),
        cursorDiskKV=("key", "value", {"bubbleId:a:b": "5"}),
        meta=("key", "value", {"0": "7b7d"}),
        blobs=("id", "data", {"ab12": b"\xff6"}),
    )
    expected = {
        "ItemTable/k": b"1",
        "k": b"1",
        "ItemTable:k#": b"1",
        "p/q#/a~1b/0": b"3",
        "ItemTable:list/0#": b'{"x":"y"}',
        "ItemTable:list/0#/x": b'"y"',
        "ItemTable:list/1#": b"2",
        "ItemTable:index#a": b"1",
        "ItemTable:index#b": b"4",
        "cursorDiskKV/bubbleId:a:b": b"5",
        "meta/0": b"7b7d",
        "blobs/ab12": b"\xff6",
    }
    fates = [Fate("dropped", "x", key=key) for key in expected]
    assert dict(zip(expected, raw_records(candidate, fates), strict=True)) == expected


@pytest.mark.parametrize(
    "key", ["ItemTable:list/7#", "ItemTable:none#a", "ItemTable:list#a", "blobs/", "meta/1", "k#/0/0", "k#/1"]
)
def test_a_key_without_a_row_is_an_error(tmp_path, key):
    rows = {"list": "[1]", "k": "{}"}
    candidate = database(tmp_path / "state.vscdb", ItemTable=("key", "value", rows), blobs=("id", "data", {}))
    with pytest.raises(cnb.SourceError, match=r"state\.vscdb"):
        raw_record(candidate, Fate("dropped", "x", key=key))


@pytest.mark.parametrize(
    ("tail", "expected"),
    [("#/a/0", b'"b"'), ("#/a/0/0", b'"b"'), ("#", b'{"a": ["b"]}\nline'), ("#line 2", b"line"), ("@2+3", b'a":')],
)
def test_a_key_of_another_file_is_followed_there(tmp_path, tail, expected):
    other = tmp_path / "odd #1@2.json"
    other.write_text('{"a": ["b"]}' if "/" in tail else '{"a": ["b"]}\nline')
    fate = Fate("dropped", "x", key=f"below/{other.name}{tail}", file_path=str(other))
    assert raw_record(Candidate("mine", "7", str(tmp_path / "none"), 1, "", ""), fate) == expected


@pytest.mark.parametrize("tail", ["#line 9", "#line 0", "@9999+1", "#/a", "", "elsewhere"])
def test_a_key_that_leads_nowhere_in_another_file_is_an_error_with_that_file(tmp_path, tail):
    other = tmp_path / "other.jsonl"
    other.write_text("{}\n{}\n")
    key = tail if tail == "elsewhere" else f"{other.name}{tail}"
    with pytest.raises(cnb.SourceError, match=r"other\.jsonl"):
        raw_record(Candidate("mine", "7", "none", 1, "", ""), Fate("dropped", "x", key=key, file_path=str(other)))


def test_a_document_is_read_once_for_all_its_records(tmp_path, monkeypatch):
    path = tmp_path / "session.json"
    path.write_text('{"a": [1, 2, 3]}')
    opened = []
    monkeypatch.setattr("crystal_nb.rereading.read_file", lambda path: opened.append(path) or b'{"a": [1, 2, 3]}')
    fates = [Fate("dropped", "x", key=f"/a/{n}") for n in range(3)]
    assert list(raw_records(Candidate("mine", "7", str(path), 1, "", ""), fates)) == [b"1", b"2", b"3"]
    assert len(opened) == 1
