"""Damaged and hostile input through the front door: a fate, a failure row or a clear error, never a crash."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import crystal_nb as cnb

PLACES = {
    "claude-code": ".claude/projects/-srv-demo/s.jsonl",
    "codex": ".codex/sessions/2026/rollout-2026-01-01T00-00-00-s.jsonl",
    "copilot": ".config/Code/User/workspaceStorage/w/chatSessions/s.jsonl",
}
TIME = "2026-01-01T00:00:00.000Z"


def good_line(source: str, text: str = "hello") -> bytes:
    records = {
        "claude-code": {"type": "user", "uuid": "u", "timestamp": TIME, "message": {"role": "user", "content": text}},
        "codex": {"type": "event_msg", "timestamp": TIME, "payload": {"type": "user_message", "message": text}},
        "copilot": {"kind": 0, "v": {"requests": [{"requestId": "r", "timestamp": 1, "message": {"text": text}}]}},
    }
    return json.dumps(records[source]).encode()


@pytest.fixture(params=PLACES)
def source(request) -> str:
    return request.param


@pytest.fixture
def corpus_of(tmp_path, source):
    """Write a file of the source, scan and parse the home."""

    def run(data: bytes) -> cnb.Corpus:
        file = tmp_path / PLACES[source]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.ljust(101))
        config = cnb.Config(home=tmp_path, platform="linux", cache_seconds=0)
        corpus = cnb.parse(cnb.scan(source, config=config), config=config)
        assert len(corpus) + len(corpus.failures) == 1
        assert corpus.fates["size"].null_count() in (0, corpus.fates.height) or source == "copilot"
        return corpus

    return run


def dropped(corpus: cnb.Corpus) -> list[str]:
    return corpus.fates.filter(pl.col("status") == "dropped")["reason"].to_list()


def test_a_broken_last_line_costs_only_itself(corpus_of, source):
    corpus = corpus_of(good_line(source) + b"\n" + good_line(source)[:-20])
    assert corpus.messages["content"].to_list() == ["hello"]
    assert dropped(corpus)


def test_a_binary_file_gives_nothing_but_reasons(corpus_of):
    corpus = corpus_of(random.Random(1).randbytes(5000))
    assert corpus.messages.is_empty()
    assert len(dropped(corpus)) == corpus.fates.height > 0


def test_a_line_of_50_megabytes_is_read(corpus_of, source):
    corpus = corpus_of(good_line(source, "x" * (50 << 20)) + b"\n")
    assert corpus.messages["content"].str.len_bytes().to_list() == [50 << 20]


def test_invalid_utf8_becomes_the_replacement_character(corpus_of, source):
    corpus = corpus_of(good_line(source, "hel#lo").replace(b"#", b"\xff"))
    assert corpus.messages["content"].to_list() == ["hel\ufffdlo"]
    assert not corpus.messages["lossy"].any()


def test_lone_surrogates_stay_exact_in_the_record_and_are_flagged_in_the_frame(corpus_of, source):
    corpus = corpus_of(good_line(source, "a\ud83d"))
    assert next(iter(corpus)).messages[0].content == "a\ud83d"
    assert corpus.messages.select("content", "lossy").row(0) == ("a\ufffd", True)


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"\x00\x00"])
def test_a_bom_or_nul_costs_the_line_as_pinned(corpus_of, source, prefix):
    corpus = corpus_of(prefix + good_line(source) + b"\n")
    assert corpus.messages.is_empty()
    assert len(dropped(corpus)) >= 1


def test_an_empty_file_is_not_listed_and_parses_to_nothing(tmp_path, source):
    file = tmp_path / PLACES[source]
    file.parent.mkdir(parents=True)
    file.touch()
    config = cnb.Config(home=tmp_path, platform="linux", cache_seconds=0)
    assert cnb.scan(source, config=config).is_empty()
    corpus = cnb.parse([cnb.Candidate(source, "s", str(file), 0, TIME, "")], config=config)
    assert (len(corpus), corpus.messages.height, corpus.failures.height) == (1, 0, 0)


def test_a_missing_tool_is_absent_and_not_an_error(tmp_path):
    config = cnb.Config(home=tmp_path)
    assert set(cnb.sources(config=config)["status"]) == {"absent"}
    assert cnb.scan(config=config).is_empty()
    assert len(cnb.parse(cnb.scan(config=config), config=config)) == 0


@pytest.mark.parametrize("source", [*PLACES, "cursor", "trae"])
def test_a_file_where_the_folder_should_be_is_absent(tmp_path, source):
    place = {"claude-code": ".claude/projects", "codex": ".codex/sessions"}
    other = {"copilot": "Code", "cursor": "Cursor", "trae": "Trae"}
    file = tmp_path / (place.get(source) or f".config/{other[source]}/User")
    file.parent.mkdir(parents=True)
    file.touch()
    assert cnb.scan(source, config=cnb.Config(home=tmp_path, platform="linux", cache_seconds=0)).is_empty()


@pytest.mark.parametrize("source", [*PLACES, "cursor", "trae"])
@pytest.mark.parametrize("what", ["gone", "folder"])
def test_a_vanished_file_or_a_folder_in_its_place_is_a_row_that_names_it(tmp_path, source, what):
    path = tmp_path / what
    if what == "folder":
        path.mkdir()
    candidate = cnb.Candidate(source, "s", str(path), 200, TIME, "")
    corpus = cnb.parse([candidate], config=cnb.Config(home=tmp_path))
    (row,) = corpus.failures.rows(named=True)
    assert (row["error"], row["file_path"]) == ("ParseError", str(path))
    assert what in row["message"]
    assert "Traceback" not in row["message"]


@pytest.fixture
def nobody():
    """A folder that anybody may enter, and the rights of nobody in particular."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_an_unreadable_file_is_a_row_that_names_it(nobody, source):
    file = nobody / "s.jsonl"
    file.write_bytes(good_line(source))
    file.chmod(0)
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        corpus = cnb.parse([cnb.Candidate(source, "s", str(file), 200, TIME, "")], config=cnb.Config(home=nobody))
    finally:
        os.seteuid(was)
    (row,) = corpus.failures.rows(named=True)
    assert "s.jsonl: Permission denied" in row["message"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("source", [*PLACES, "cursor", "trae"])
@pytest.mark.timeout(20)
def test_a_pipe_in_place_of_a_file_is_a_row_and_no_endless_wait(tmp_path, source):
    os.mkfifo(tmp_path / "pipe")
    candidate = cnb.Candidate(source, "s", str(tmp_path / "pipe"), 200, TIME, "")
    corpus = cnb.parse([candidate], config=cnb.Config(home=tmp_path))
    assert "not a regular file" in corpus.failures["message"][0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.timeout(20)
def test_pipes_beside_the_histories_hold_nothing_up(tmp_path):
    window = tmp_path / ".config" / "Code" / "User" / "workspaceStorage" / "w"
    (window / "chatSessions").mkdir(parents=True)
    (window / "chatSessions" / "s.json").write_bytes(good_line("copilot").ljust(120))
    os.mkfifo(window / "workspace.json")
    rollout = tmp_path / PLACES["codex"]
    rollout.parent.mkdir(parents=True)
    rollout.write_bytes(good_line("codex").ljust(120))
    os.mkfifo(tmp_path / ".codex" / "session_index.jsonl")
    config = cnb.Config(home=tmp_path, platform="linux", cache_seconds=0)
    corpus = cnb.parse(cnb.scan(config=config), config=config)
    assert corpus.messages["content"].to_list() == ["hello", "hello"]


@pytest.mark.parametrize("digits", [310, 4300, 5000])
def test_integers_of_any_length_are_read(tmp_path, digits):
    chats = tmp_path / ".config" / "Code" / "User" / "workspaceStorage" / "w" / "chatSessions"
    chats.mkdir(parents=True)
    (chats / "s.json").write_text('{"requests":[{"timestamp":' + "9" * digits + ',"message":{"text":"x"}}]}')
    config = cnb.Config(home=tmp_path, platform="linux", cache_seconds=0)
    corpus = cnb.parse(cnb.scan("copilot", config=config), config=config)
    assert corpus.failures.is_empty()
    assert "no valid timestamp" in corpus.fates["reason"][0]


DEEP = "[" * 700 + "]" * 700


@pytest.mark.parametrize("field", ["uuid", "parentUuid", "cwd", "slug", "gitBranch", "timestamp", "type", "version"])
@pytest.mark.timeout(20)
def test_a_deep_value_in_any_field_reaches_the_frames(tmp_path, field):
    line = good_line("claude-code").decode()
    record = {**json.loads(line), field: "DEEP"}
    file = tmp_path / PLACES["claude-code"]
    file.parent.mkdir(parents=True)
    file.write_text(line + "\n" + json.dumps(record).replace('"DEEP"', DEEP) + "\n")
    corpus = cnb.parse([cnb.Candidate("claude-code", "s", str(file), 200, TIME, "")], config=cnb.Config(home=tmp_path))
    assert corpus.failures.is_empty()
    assert corpus.fates.height == 2
    assert corpus.messages.height == (1 if field == "type" else 2)
    assert corpus.conversations.height == 1


def test_a_deep_time_in_a_list_is_a_scan_error_as_any_other_bad_time(tmp_path):
    user = tmp_path / ".config" / "Trae" / "User" / "workspaceStorage" / "w"
    user.mkdir(parents=True)
    (user / "workspace.json").write_text("{}")
    value = '{"list":[{"sessionId":"s","updatedAt":' + DEEP.replace("[]", '["x"]') + ',"messages":[{}]}]}'
    with closing(sqlite3.connect(user / "state.vscdb")) as connection, connection:
        connection.execute("CREATE TABLE ItemTable (key TEXT, value BLOB)")
        connection.execute("INSERT INTO ItemTable VALUES ('memento/icube-ai-agent-storage', ?)", (value,))
    with pytest.raises(cnb.ScanError, match="no valid date"):
        cnb.scan("trae", config=cnb.Config(home=tmp_path, platform="linux"))


def test_very_deep_folders_are_walked(tmp_path):
    sessions = tmp_path / ".codex" / "sessions"
    sessions.mkdir(parents=True)
    here = os.open(sessions, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    try:
        assert cnb.scan("codex", config=cnb.Config(home=tmp_path, cache_seconds=0)).is_empty()
    finally:
        subprocess.run(["rm", "-rf", tmp_path / ".codex"], check=True)  # shutil.rmtree is recursive


def test_ids_and_paths_that_a_frame_can_t_hold_still_lead_to_their_file(tmp_path):
    home = tmp_path / os.fsdecode(b"h\xff\nx")
    file = home / PLACES["claude-code"]
    file.parent.mkdir(parents=True)
    file.write_bytes(good_line("claude-code") + b"\n")
    config = cnb.Config(home=home)
    cands = cnb.scan("claude-code", config=config)
    assert "\ufffd" in cands["file_path"][0]
    assert cnb.parse(cands, config=config).messages["content"].to_list() == ["hello"]


def snapshot(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every name below a folder with size, time and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (stat.st_size, stat.st_mtime_ns, digest)
    return found


def test_the_tools_folders_are_byte_identical_afterwards(tree, tree_config):
    before = snapshot(tree)
    cnb.detect_all_sources(config=tree_config)
    cnb.sources(config=tree_config)
    corpus = cnb.parse(cnb.scan(config=tree_config), config=tree_config)
    assert corpus.messages.height > 50
    assert snapshot(tree) == before
