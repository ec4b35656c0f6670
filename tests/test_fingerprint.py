from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from crystal_nb.adapters import base
from crystal_nb.fingerprint import Fingerprints
from crystal_nb.records import Candidate


def candidate(path: Path) -> Candidate:
    return Candidate("codex", "7", str(path), 1, "", "")


def test_other_bytes_give_another_fingerprint(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"blue")
    two.write_bytes(b"pink")
    assert Fingerprints()(candidate(one)) != Fingerprints()(candidate(two))


def test_what_can_not_be_read_has_none(tmp_path):
    assert Fingerprints()(candidate(tmp_path)) is None
    assert Fingerprints()(candidate(tmp_path / "missing")) is None
    assert Fingerprints()(candidate(Path("a\0b"))) is None


def test_a_shared_database_is_read_once(tmp_path, monkeypatch):
    path = tmp_path / "state.vscdb"
    path.write_bytes(b"x" * 100)
    opened = []
    monkeypatch.setattr("crystal_nb.fingerprint.open_file", lambda p: opened.append(p) or base.open_file(p))
    marks = Fingerprints()
    assert marks(candidate(path)) == marks(candidate(path))
    assert len(opened) == 1


def test_what_only_the_write_ahead_log_holds_counts(tmp_path):
    path = tmp_path / "state.vscdb"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("CREATE TABLE t (v)")
        before, main = Fingerprints()(candidate(path)), path.read_bytes()
        connection.execute("INSERT INTO t VALUES (1)")
        assert path.read_bytes() == main
        assert Fingerprints()(candidate(path)) != before
