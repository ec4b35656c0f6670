from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from crystal_nb.adapters import vscdb

COUNT = "SELECT count(*) FROM t"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vscdb, "RETRY_SECONDS", 0)


def count(connection: sqlite3.Connection) -> int:
    return connection.execute(COUNT).fetchone()[0]


def total(connection: sqlite3.Connection) -> tuple[int, int]:
    return connection.execute("SELECT count(*), sum(x) FROM t").fetchone()


def make(path: Path, mode: str = "DELETE") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("CREATE TABLE t (x)")
    return path


def crash(path: Path, mode: str) -> Path:
    """Leave a database behind as a crash does: one row in the main file, one in its log or journal only."""
    scene = make(path.parent.with_name("scene") / path.name, mode)
    with closing(sqlite3.connect(scene, isolation_level=None)) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        if mode == "WAL":
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("INSERT INTO t VALUES (2)")
        else:
            connection.execute("PRAGMA cache_size=1")
            connection.execute("BEGIN")
            connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
                "INSERT INTO t SELECT hex(zeroblob(500)) FROM n"
            )
        shutil.copytree(scene.parent, path.parent)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_rows_in_the_log_are_seen_only_on_request(tmp_path: Path) -> None:
    path = crash(tmp_path / "tool" / "state.vscdb", "WAL")
    assert vscdb.read(path, count) == 1
    assert vscdb.read(path, count, wal=True) == 2


def test_rolled_back_rows_of_a_hot_journal_are_not_seen_with_the_log(tmp_path: Path) -> None:
    path = crash(tmp_path / "tool" / "state.vscdb", "DELETE")
    assert Path(f"{path}-journal").stat().st_size > 0
    assert vscdb.read(path, count, wal=True) == 1


@pytest.mark.parametrize("wal", [False, True])
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_the_folder_stays_as_it_was(tmp_path: Path, mode: str, wal: bool) -> None:
    path = crash(tmp_path / "tool" / "state.vscdb", mode)
    before = contents(path.parent)
    vscdb.read(path, lambda c: c.execute("PRAGMA schema_version").fetchone(), wal=wal)
    assert contents(path.parent) == before


@pytest.mark.parametrize("wal", [False, True])
def test_a_closed_wal_mode_database_gets_no_side_files(tmp_path: Path, wal: bool) -> None:
    path = make(tmp_path / "tool" / "state.vscdb", "WAL")
    before = contents(path.parent)
    assert list(before) == ["state.vscdb"]
    assert vscdb.read(path, count, wal=wal) == 0
    assert contents(path.parent) == before


@pytest.mark.parametrize("wal", [False, True])
def test_a_read_only_folder_is_enough(tmp_path: Path, wal: bool) -> None:
    path = crash(tmp_path / "tool" / "state.vscdb", "WAL")
    Path(f"{path}-shm").unlink()
    path.parent.chmod(0o555)
    try:
        assert vscdb.read(path, count, wal=wal) == 1 + wal
    finally:
        path.parent.chmod(0o755)


@pytest.mark.parametrize("wal", [False, True])
def test_writing_is_refused(tmp_path: Path, wal: bool) -> None:
    path = crash(tmp_path / "tool" / "state.vscdb", "WAL")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        vscdb.read(path, lambda c: c.execute("INSERT INTO t VALUES (3)"), wal=wal)


@pytest.mark.parametrize("wal", [False, True])
def test_a_missing_path_is_an_os_error_and_no_file_appears(tmp_path: Path, wal: bool) -> None:
    with pytest.raises(FileNotFoundError):
        vscdb.read(tmp_path / "state.vscdb", count, wal=wal)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wal", [False, True])
def test_what_is_no_file_is_an_os_error(tmp_path: Path, wal: bool) -> None:
    with pytest.raises(OSError):
        vscdb.read(tmp_path, count, wal=wal)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="not a regular file"):
            vscdb.read(tmp_path / "pipe", count, wal=wal)


@pytest.mark.parametrize("wal", [False, True])
@pytest.mark.parametrize("data", [b"", b"no database" * 100, b"SQLite format 3\0" + b"\1" * 4080])
def test_empty_foreign_and_corrupt_files_fail_in_the_query(tmp_path: Path, data: bytes, wal: bool) -> None:
    path = tmp_path / "state.vscdb"
    path.write_bytes(data)
    with pytest.raises(sqlite3.DatabaseError):
        vscdb.read(path, count, wal=wal)
    assert contents(tmp_path) == {"state.vscdb": data}


def test_a_truncated_file_fails_in_the_query(tmp_path: Path) -> None:
    path = make(tmp_path / "state.vscdb")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO t VALUES (zeroblob(50000))")
    os.truncate(path, 20_000)
    with pytest.raises(sqlite3.DatabaseError):
        vscdb.read(path, lambda c: c.execute("SELECT hex(x) FROM t").fetchall())


def test_odd_characters_in_the_path(tmp_path: Path) -> None:
    path = crash(tmp_path / "a %20#?;ü'" / "state.vscdb", "WAL")
    assert (vscdb.read(path, count), vscdb.read(path, count, wal=True)) == (1, 2)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_the_log_is_looked_for_beside_what_a_link_points_to(tmp_path: Path) -> None:
    path = crash(tmp_path / "tool" / "state.vscdb", "WAL")
    (tmp_path / "link.vscdb").symlink_to(path)
    assert vscdb.read(tmp_path / "link.vscdb", count, wal=True) == 2


def test_a_failed_read_is_tried_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "state.vscdb")
    answers = iter([PermissionError("locked"), PermissionError("locked"), vscdb.fingerprint(path)])

    def fingerprint(_: object) -> vscdb.Fingerprint:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(vscdb, "fingerprint", fingerprint)
    with pytest.raises(PermissionError):
        vscdb.read(path, count)
    assert isinstance(next(answers), vscdb.Fingerprint)


@pytest.mark.parametrize("changes", [1, 2, 9])
def test_a_file_that_changes_meanwhile_is_read_again_but_not_for_ever(tmp_path: Path, changes: int) -> None:
    path, runs = make(tmp_path / "state.vscdb"), []

    def query(connection: sqlite3.Connection) -> int:
        runs.append(1)
        if len(runs) <= changes:
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("INSERT INTO t VALUES (1)")
        return count(connection)

    vscdb.read(path, query)
    assert len(runs) == min(changes + 1, 3)


def test_a_copy_that_never_fits_is_a_database_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = crash(tmp_path / "tool" / "state.vscdb", "DELETE")
    monkeypatch.setattr(vscdb, "_PAUSE_SECONDS", 0)
    times = itertools.count()
    monkeypatch.setattr(shutil, "copyfile", lambda a, b: os.utime(f"{path}-journal", ns=(0, next(times))))
    with pytest.raises(sqlite3.OperationalError, match="every attempt"):
        vscdb.read(path, count, wal=True)


def test_text_is_cut_at_nul_and_loses_its_bom() -> None:
    assert vscdb.utf8(b"\xef\xbb\xbf{}\x00rest") == b"{}"
    assert vscdb.decode(b"\xef\xbb\xbf\xef\xbb\xbfa\xff\xed\xa0\x80") == "\ufeffa" + "\ufffd" * 4


WRITER = """
import sqlite3, sys, time
path, mode = sys.argv[1:]
connection = sqlite3.connect(path, isolation_level=None, timeout=0)
connection.execute(f"PRAGMA journal_mode={mode}")
connection.execute("PRAGMA wal_autocheckpoint=5")
stop = time.monotonic() + 60
n = 0
while time.monotonic() < stop:
    n += 1
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t VALUES (?)", (n,))
    connection.execute("INSERT INTO t VALUES (?)", (-n,))
    connection.execute("INSERT INTO pad VALUES (zeroblob(20000))")
    connection.execute("COMMIT")
    if n == 1:
        print("writing", flush=True)
    time.sleep(0.01)
"""


@contextmanager
def busy_writer(path: Path, mode: str) -> Iterator[None]:
    """Another process that commits all the time; it fails if anybody locks it out."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE pad (x)")
    program = [sys.executable, "-c", WRITER, str(path), mode]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        yield
        assert writer.poll() is None, writer.stderr and writer.stderr.read()
        writer.terminate()


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_busy_writer_is_seen_in_whole_transactions_and_not_disturbed(tmp_path: Path, mode: str) -> None:
    path = make(tmp_path / "state.vscdb", mode)
    seen = []
    with busy_writer(path, mode):
        while len(seen) < 60 or len({n for n, _ in seen}) < 10:
            seen.append(vscdb.read(path, total, wal=True))
        names = {p.name for p in tmp_path.iterdir()}
    assert all(n % 2 == 0 and balance == 0 for n, balance in seen)
    assert [n for n, _ in seen] == sorted(n for n, _ in seen)
    assert names <= {"state.vscdb", "state.vscdb-wal", "state.vscdb-shm", "state.vscdb-journal"}


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_the_pinned_view_of_a_busy_file_gives_rows_or_a_database_error(tmp_path: Path, mode: str) -> None:
    path = make(tmp_path / "state.vscdb", mode)
    with busy_writer(path, mode):
        for _ in range(60):
            with suppress(sqlite3.DatabaseError):
                assert vscdb.read(path, count) >= 0


def test_private_copies_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr(vscdb.tempfile, "tempdir", str(private))
    path = tmp_path / "state.vscdb"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE t (x)")
        writer.commit()
        seen = vscdb.read(
            path, lambda c: (os.listdir(private), c.execute("SELECT count(*) FROM t").fetchone()), wal=True
        )
    assert (len(seen[0]), seen[1]) == (1, (0,))
    assert os.listdir(private) == []


@pytest.mark.parametrize("table", ["ItemTable", "cursorDiskKV", "blobs"])
def test_a_view_in_place_of_a_table_is_refused(tmp_path, table):
    path = tmp_path / "state.vscdb"
    endless = (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT 'k' || x AS key, 'v' AS value FROM c"
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE VIEW {table} AS {endless}")
    for wal in (False, True):
        with pytest.raises(sqlite3.DatabaseError, match="is a view"):
            vscdb.read(path, lambda c: c.execute(f"SELECT * FROM {table}").fetchall(), wal=wal)
