"""Imports whose process is killed: what is in the database then, and after a second import.

As a program this file is the helper that forks an import per line it reads; it never has threads to lose by that.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import crystal_nb as cnb
from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_claude_code

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

CONVERSATIONS = 200
KILLS = 50
NOW = 1_767_600_000_000
SEED = 20260105


def serve() -> None:
    """Fork an import per line; it is waited for, and its process id stays taken, until the next line."""
    for job in sys.stdin:
        child = os.fork()
        if child == 0:
            os.write(1, f"{os.getpid()}\n".encode())
            work(**json.loads(job))
            os._exit(0)
        sys.stdin.readline()
        os.write(1, f"{os.waitpid(child, 0)[1]}\n".encode())


def work(store: str, home: str, profile: str, hold: bool) -> None:
    """Import, with a dot on standard output per candidate."""

    def show(done: int, total: int, *_: object) -> None:
        os.write(1, b".")
        if hold and done == total:
            time.sleep(600)

    with open_store(store, profile) as opened:
        load(opened, home, profile, show)


def open_store(path: object, profile: str) -> cnb.Store:
    return cnb.open_store(str(path), profile=profile, config=cnb.Config(clock=lambda: NOW))


def load(store: cnb.Store, home: object, profile: str, show: Any = None) -> cnb.ImportReport:
    config = cnb.Config(home=str(home), platform="linux", enabled_sources=(), clock=lambda: NOW)
    adapters = [cnb.get_adapter("claude-code")]
    return cnb.import_all(store, adapters=adapters, profile=profile, config=config, on_progress=show, progress=False)


class Helper:
    """The other end of `serve`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.requests, self.answers = process.stdin, process.stdout

    def start(self, store: Path, home: Path, profile: str, *, hold: bool = False) -> int:
        job = {"store": str(store), "home": str(home), "profile": profile, "hold": hold}
        self.send(json.dumps(job))
        return int(self.answers.readline())

    def send(self, line: str) -> None:
        self.requests.write(f"{line}\n".encode())
        self.requests.flush()

    def finish(self) -> int:
        """Wait for the child's end; gives its status."""
        self.send("")
        return int(self.answers.readline().lstrip(b"."))

    def run(self, store: Path, home: Path, profile: str) -> float:
        """An import that nobody disturbs; gives its seconds."""
        begun = time.perf_counter()
        self.start(store, home, profile)
        assert self.finish() == 0
        return time.perf_counter() - begun

    def run_and_kill(
        self, store: Path, home: Path, profile: str, *, after: int = 0, seconds: float = 0, hold: bool = False
    ) -> None:
        """Kill an import some time after a number of candidates."""
        child = self.start(store, home, profile, hold=hold)
        dots = self.answers.read(after)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        assert self.finish() in (0, signal.SIGKILL)
        assert dots == b"." * after


@pytest.fixture(scope="module")
def helper() -> Iterator[Helper]:
    command = [sys.executable, "-W", "error", __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=-1) as process:
        yield Helper(process)
        assert process.stdin is not None
        process.stdin.close()


class Trees(NamedTuple):
    """Homes with the same conversations, the first half of them in an older version."""

    older: Path
    newer: Path


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where possible: a killed process loses nothing that the kernel has, and a slow disk costs minutes."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Trees:
    home = tmp_path_factory.mktemp("kill")
    found = Trees(home / "older", home / "newer")
    for n in range(CONVERSATIONS):
        write_claude_code(found.newer, sample(n, "a longer text"))
        if n % 2:
            write_claude_code(found.older, sample(n, "text"))
    return found


def sample(n: int, text: str) -> Sample:
    messages = [
        SampleMessage("assistant" if i % 2 else "user", f"{text} {n}", f"{n}-{i}", f"2026-01-05T10:00:0{i}.000Z")
        for i in range(2 + n % 4)
    ]
    return Sample(f"s{n:03}", tuple(messages))


@pytest.fixture(params=["empty", "filled"])
def start(request: pytest.FixtureRequest, trees: Trees, folder: Path) -> Path | None:
    """A store with older versions of half of the conversations, and notes; or none."""
    return None if request.param == "empty" else filled(folder / "start.db", trees, "careful")


def filled(path: Path, trees: Trees, profile: str) -> Path:
    with open_store(path, profile) as store:
        assert load(store, trees.older, profile).imported == CONVERSATIONS // 2
    columns = "conversation_id, is_edited" + (", source" if profile == "careful" else "")
    values = "id, rowid % 2" + (", source" if profile == "careful" else "")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"INSERT INTO notes ({columns}) SELECT {values} FROM conversations")
    return path


def begin(start: Path | None, path: Path) -> Path:
    """A store to be written to."""
    path.unlink(missing_ok=True)
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    if start is not None:
        shutil.copyfile(start, path)
    return path


def contents(path: Path) -> list[str]:
    """All rows of all tables."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def sound_conversations(path: Path, profile: str) -> dict[str, tuple[Any, ...]]:
    """Each conversation with its messages and notes, after checks that hold at any time."""
    open_store(path, profile).close()
    with closing(sqlite3.connect(path)) as connection:
        ask = connection.execute
        assert ask("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = {row[0]: row for row in ask("SELECT id, message_count, c.* FROM conversations c")}
        found = {id: (row, of_row(ask, "messages", id), of_row(ask, "notes", id)) for id, row in rows.items()}
        assert all(row[1] == len(messages) for row, messages, _ in found.values())
        assert ask("SELECT count(*) FROM messages").fetchone() == (sum(row[1] for row in rows.values()),)
        return found


def of_row(ask: Any, table: str, id: str) -> list[tuple[Any, ...]]:
    return ask(f"SELECT * FROM {table} WHERE conversation_id = ? ORDER BY rowid", (id,)).fetchall()


def test_a_killed_careful_import_leaves_whole_conversations_and_can_go_on(
    helper: Helper, trees: Trees, start: Path | None, folder: Path
):
    store, chance = folder / "imports.db", random.Random(SEED)
    before = {} if start is None else sound_conversations(start, "careful")
    seconds = helper.run(begin(start, store), trees.newer, "careful")
    undisturbed, after = contents(store), sound_conversations(store, "careful")
    partial = 0
    for n in range(KILLS // 2):
        place = 0 if n < 5 else chance.randrange(CONVERSATIONS)
        wait = chance.uniform(0, seconds / 5 if n < 5 else 2 * seconds / CONVERSATIONS)
        helper.run_and_kill(begin(start, store), trees.newer, "careful", after=place, seconds=wait)
        left = sound_conversations(store, "careful")
        assert all(found in (before.get(id), after[id]) for id, found in left.items())
        partial += 0 < sum(left.get(id) == found for id, found in after.items()) < CONVERSATIONS
        helper.run(store, trees.newer, "careful")
        assert contents(store) == undisturbed
    assert partial >= KILLS // 5


def test_a_killed_pinned_import_leaves_nothing_or_everything(helper: Helper, trees: Trees, folder: Path):
    start, store, chance = (
        filled(folder / "start.db", trees, "chatcrystal"),
        folder / "imports.db",
        random.Random(SEED),
    )
    before = contents(start)
    seconds = helper.run(begin(start, store), trees.newer, "chatcrystal")
    undisturbed = contents(store)
    for place in (0, 1, 50, 120, 199, *[CONVERSATIONS] * 5):
        wait = chance.uniform(0, seconds / 10)
        helper.run_and_kill(begin(start, store), trees.newer, "chatcrystal", after=place, seconds=wait)
        sound_conversations(store, "chatcrystal")
        assert contents(store) in (before, undisturbed)
        helper.run(store, trees.newer, "chatcrystal")
        assert contents(store) == undisturbed


def test_a_pinned_import_that_is_killed_before_its_save_is_lost(helper: Helper, trees: Trees, folder: Path):
    store = folder / "imports.db"
    helper.run_and_kill(store, trees.newer, "chatcrystal", after=CONVERSATIONS, hold=True)
    assert sound_conversations(store, "chatcrystal") == {}


def test_the_scenario_shows_that_the_pinned_batch_is_lost():
    shown = cnb.run_scenarios(names=["crash"], policies=[cnb.PINNED])
    assert shown["ok"].all()
    assert "empty" in shown["observed"].to_list()


if __name__ == "__main__":
    serve()
