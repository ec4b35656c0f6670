from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values, texts

from crystal_nb import ecma
from crystal_nb.adapters import trae, vscdb
from crystal_nb.adapters.base import Draft, Parsed
from crystal_nb.adapters.trae import ADAPTER
from crystal_nb.config import Config
from crystal_nb.errors import ParseError, ScanError
from crystal_nb.records import Candidate, Message

NOW = "2027-01-15T08:00:00.000Z"
KEY = "memento/icube-ai-agent-storage"
ASK = {"role": "user", "content": "hello", "turnIndex": 0}
_MISSING: Any = object()


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vscdb, "RETRY_SECONDS", 0)


def config(home: Path) -> Config:
    return Config(home=home, platform="linux", clock=lambda: 1_800_000_000_000)


def database(home: Path, name: str = "w") -> Path:
    return home / ".config/Trae/User/workspaceStorage" / name / "state.vscdb"


def store(home: Path, value: Any, name: str = "w", mode: str = "MEMORY") -> Path:
    """Make a window whose storage holds a value; what is no str, bytes or None becomes JSON."""
    path = database(home, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.with_name("workspace.json").write_text('{"folder": "file:///home/ada/my%20app"}', encoding="utf-8")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        value = value if value is None or isinstance(value, (str, bytes)) else json.dumps(value)
        connection.execute("INSERT INTO ItemTable VALUES (?, ?)", (KEY, value))
    return path


def talk(*messages: Any, created_at: Any = 1_700_000_000_000, **more: Any) -> dict[str, Any]:
    times = {} if created_at is _MISSING else {"createdAt": created_at}
    return {"sessionId": "s", "messages": list(messages)} | times | more


def parse(home: Path, id: Any = "s") -> Parsed:
    candidate = Candidate("trae", id, str(database(home)), 1, NOW, "home/ada/my app")
    return ADAPTER._parse(candidate, config(home))


def parse_messages(home: Path, *messages: Any, **more: Any) -> Parsed:
    store(home, {"list": [talk(*messages, **more)]})
    return parse(home)


def answer(home: Path, **message: Any) -> Message | None:
    kept = parse_messages(home, {"role": "assistant"} | message).conversation.messages
    return kept[0] if kept else None


def scan(home: Path) -> list[Any]:
    return [candidate.id for candidate in ADAPTER._scan(config(home))]


# Detect and scan


def test_conversations_come_in_window_and_list_order_with_repeats(tmp_path: Path) -> None:
    store(tmp_path, {"list": [talk(ASK, sessionId="b"), talk(ASK, sessionId="a")]}, "w1")
    store(tmp_path, {"list": [talk(ASK, sessionId="a"), talk(sessionId="stub"), talk(ASK, sessionId=5)]}, "w2")
    found = ADAPTER._scan(config(tmp_path))
    assert [c.id for c in found] == ["b", "a", "a", 5]
    assert {c.project_dir for c in found} == {"home/ada/my app"}
    assert [c.file_path for c in found[1:3]] == [str(database(tmp_path, "w1")), str(database(tmp_path, "w2"))]
    info = ADAPTER._detect(config(tmp_path))
    assert info is not None
    assert info.conversation_count == 4


def test_no_conversations_mean_absent(tmp_path: Path) -> None:
    assert ADAPTER._detect(config(tmp_path)) is None
    store(tmp_path, {"list": [talk()]})
    assert ADAPTER._detect(config(tmp_path)) is None
    assert scan(tmp_path) == []


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"updatedAt": 1_700_000_001_000, "createdAt": 1}, "2023-11-14T22:13:21.000Z"),
        ({"updatedAt": 0, "createdAt": 1_700_000_000}, "1970-01-20T16:13:20.000Z"),
        ({"updatedAt": "2026-01-01", "createdAt": 1}, "2026-01-01T00:00:00.000Z"),
        ({"createdAt": None}, "1970-01-01T00:00:00.124Z"),
    ],
)
def test_time_of_a_candidate(tmp_path: Path, times: dict[str, Any], expected: str) -> None:
    path = store(tmp_path, {"list": [{"sessionId": "s", "messages": [ASK]} | times]})
    os.utime(path, ns=(0, 123_500_000))
    assert ADAPTER._scan(config(tmp_path))[0].file_mtime == expected


@pytest.mark.parametrize("updated_at", ["1700000000000", "soon", 1e16, {}])
def test_an_invalid_date_fails_the_scan_only(tmp_path: Path, updated_at: Any) -> None:
    store(tmp_path, {"list": [talk(ASK, updatedAt=updated_at)]})
    assert ADAPTER._detect(config(tmp_path)) is not None
    with pytest.raises(ScanError, match="no valid date"):
        scan(tmp_path)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "{",
        "null",
        "5",
        {"list": [None, talk(ASK)]},
        {"list": "text"},
        {"list": {}},
        {},
        "[" * 100_000,
        b"\xef\xbb\xbf{}",
    ],
)
def test_windows_without_usable_conversations_are_left_out(tmp_path: Path, value: Any) -> None:
    store(tmp_path, value, "bad")
    store(tmp_path, {"list": [talk(ASK), 5]}, "good")
    assert scan(tmp_path) == ["s"]


@pytest.mark.parametrize("data", [b"", b"garbage" * 1000])
def test_an_unsound_database_drops_the_window_and_fails_the_parse(tmp_path: Path, data: bytes) -> None:
    store(tmp_path, {}).write_bytes(data)
    assert ADAPTER._detect(config(tmp_path)) is None
    assert scan(tmp_path) == []
    with pytest.raises(ParseError):
        parse(tmp_path)


def test_an_unreadable_database_drops_the_window_and_fails_the_parse(tmp_path: Path) -> None:
    database(tmp_path).mkdir(parents=True)
    database(tmp_path).with_name("workspace.json").write_text("{}", encoding="utf-8")
    assert scan(tmp_path) == []
    with pytest.raises(ParseError):
        parse(tmp_path)


# Parse


@pytest.mark.parametrize("value", ["{", "null", "{}", '{"list": {}}', '{"list": [null]}', None, "5", "[" * 100_000])
def test_storage_that_cannot_be_read_is_an_error(tmp_path: Path, value: Any) -> None:
    store(tmp_path, value)
    with pytest.raises(ParseError):
        parse(tmp_path)


@pytest.mark.parametrize("id", ["other", "S", None, True, 1.5, {}, []])
def test_an_id_that_is_not_there_makes_an_empty_conversation(tmp_path: Path, id: Any) -> None:
    store(tmp_path, {"list": [talk(ASK), talk(ASK, sessionId=1), talk(ASK, sessionId={}), talk(ASK, sessionId=[])]})
    parsed = parse(tmp_path, id)
    assert parsed.fates == parsed.conversation.messages == ()
    assert parsed.conversation.first_message_at == NOW


@pytest.mark.parametrize("messages", [[], {}, None, 5, "ab"])
def test_messages_that_are_no_list(tmp_path: Path, messages: Any) -> None:
    store(tmp_path, {"list": [{"sessionId": "s", "messages": messages}]})
    assert parse(tmp_path).conversation.messages == ()


def test_messages_with_a_length_that_are_no_list_are_an_error(tmp_path: Path) -> None:
    store(tmp_path, {"list": [{"sessionId": "s", "messages": {"length": 1}}]})
    assert scan(tmp_path) == ["s"]
    with pytest.raises(ParseError, match="iterated"):
        parse(tmp_path)


def test_a_conversation_without_an_id(tmp_path: Path) -> None:
    store(tmp_path, {"list": [{"createdAt": 1, "messages": [{"role": "user", "content": "a"}]}]})
    assert scan(tmp_path) == [None]
    assert parse(tmp_path, None).conversation.messages[0].id == "undefined-undefined"


def test_the_first_of_equal_ids_is_read(tmp_path: Path) -> None:
    store(tmp_path, {"list": [talk(ASK), talk({"role": "user", "content": "second"})]})
    parsed = parse(tmp_path)
    assert [m.content for m in parsed.conversation.messages] == ["hello"]
    assert [f.key for f in parsed.fates] == [f"{KEY}#/list/0/messages/0"]


def test_blob_values_are_read_too(tmp_path: Path) -> None:
    store(
        tmp_path, json.dumps({"list": [talk({"role": "user", "content": "é"})]}, ensure_ascii=False).encode("latin-1")
    )
    assert parse(tmp_path).conversation.messages[0].content == "\ufffd"


def test_lone_surrogates_stay(tmp_path: Path) -> None:
    assert parse_messages(tmp_path, ASK | {"content": "\ud83d"}).conversation.messages[0].content == "\ud83d"


@pytest.mark.parametrize(
    ("turns", "order"),
    [
        ([2, 1, 1, None], "dbca"),
        (["2", " 1 ", True, [0]], "dbca"),
        ([1, "x", 0, -1], "abdc"),
        ([2, _MISSING, 1e999, -1], "dbac"),
    ],
)
def test_order_of_turns(tmp_path: Path, turns: list[Any], order: str) -> None:
    said = [
        {"role": "user", "content": c} | ({} if t is _MISSING else {"turnIndex": t})
        for c, t in zip("abcd", turns, strict=True)
    ]
    text = json.dumps({"list": [talk(*said)]}).replace("Infinity", "1e999")
    store(tmp_path, text)
    parsed = parse(tmp_path)
    assert "".join(m.content for m in parsed.conversation.messages) == order
    assert [f.message_index for f in parsed.fates] == [order.index(c) for c in "abcd"]


@pytest.mark.parametrize(
    ("message", "kind", "reason"),
    [
        ({"role": "system", "content": "x"}, "system", "role is neither user nor assistant"),
        ({"role": "User", "content": "x"}, "User", "role is neither user nor assistant"),
        ({"content": "x"}, "message", "role is neither user nor assistant"),
        (5, "message", "not an object"),
        ({"role": "user", "content": " \ufeff"}, "user", "no content"),
        ({"role": "assistant"}, "assistant", "no content"),
        ({"role": "assistant", "agentTaskContent": {}}, "assistant", "task without proposal, finish step or thought"),
        (
            {"role": "assistant", "agentTaskContent": "text"},
            "assistant",
            "task without proposal, finish step or thought",
        ),
    ],
)
def test_dropped_messages_say_why(tmp_path: Path, message: Any, kind: str, reason: str) -> None:
    parsed = parse_messages(tmp_path, ASK, message)
    got, raw = parsed.fates[1], json.dumps(message).encode()
    assert (got.status, got.kind, got.reason, got.size, got.head) == ("dropped", kind, reason, len(raw), raw[:96])
    assert got.key == f"{KEY}#/list/0/messages/1"


@pytest.mark.parametrize(
    "message",
    [
        None,
        {"role": "user", "content": 5},
        {"role": "user", "content": []},
        {"role": "assistant", "content": 0},
        {"role": "assistant", "content": False},
        {"role": "assistant", "agentTaskContent": {"guideline": {"planItems": {}}}},
        {"role": "assistant", "agentTaskContent": {"guideline": {"planItems": [None]}}},
        {"role": "assistant", "content": "x", "agentTaskContent": {"guideline": {"planItems": "ab"}}},
        {
            "role": "assistant",
            "content": "x",
            "agentTaskContent": {"guideline": {"planItems": [{"toolName": "finish"}, None]}},
        },
    ],
)
def test_what_the_pinned_parser_chokes_on_loses_the_conversation(tmp_path: Path, message: Any) -> None:
    with pytest.raises(ParseError):
        parse_messages(tmp_path, ASK, message)


def test_content_wins_over_the_task_which_still_tells_of_tools(tmp_path: Path) -> None:
    items = [{"toolName": "view_files", "reasoningContent": "r"}, None]
    got = answer(tmp_path, content=" text ", agentTaskContent={"proposal": "p", "guideline": {"planItems": items}})
    assert got is not None
    assert (got.content, got.thinking, got.has_tool_use) == ("text", None, True)


def test_a_task_is_put_together(tmp_path: Path) -> None:
    items = [
        {"toolName": "view_files", "thought": "unread", "reasoningContent": "r1"},
        {"toolName": "finish", "thought": "done ``` ", "reasoningContent": " r2 "},
        5,
    ]
    task = {
        "proposal": " plan",
        "proposalReasoningContent": "r0",
        "guideline": {"thought": "unread", "planItems": items},
    }
    got = answer(tmp_path, agentTaskContent=task)
    assert got is not None
    assert (got.content, got.thinking, got.has_tool_use, got.has_code) == (
        "plan\n\ndone ```",
        "r0\nr1\n r2 ",
        True,
        True,
    )


@pytest.mark.parametrize(
    ("task", "content", "thinking"),
    [
        ({"guideline": {"thought": "t"}}, "t", None),
        ({"proposal": "p", "guideline": {"thought": "t"}}, "p", None),
        ({"proposalReasoningContent": " "}, "", " "),
        ({"proposal": ["a", None, 1], "proposalReasoningContent": {}}, "a,,1", "[object Object]"),
        ({"guideline": {"thought": "t", "planItems": [{"toolName": "finish"}]}}, "t", None),
    ],
)
def test_parts_of_a_task(tmp_path: Path, task: Any, content: str, thinking: str | None) -> None:
    got = answer(tmp_path, agentTaskContent=task)
    assert got is not None
    assert (got.content, got.thinking, got.has_tool_use) == (content, thinking, False)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ({"agentMessageId": "m", "turnId": "t"}, "m"),
        ({"agentMessageId": "", "turnId": "t"}, "t"),
        ({"turnIndex": 3.0}, "s-3"),
        ({"turnIndex": None}, "s-null"),
        ({}, "s-undefined"),
    ],
)
def test_message_ids(tmp_path: Path, ids: dict[str, Any], expected: str) -> None:
    got = answer(tmp_path, content="x", **ids)
    assert got is not None
    assert got.id == expected


def ms(number: int) -> str:
    return ecma.iso_time(number)


@pytest.mark.parametrize(
    ("created_at", "stamps", "expected"),
    [
        (100, [None, 50, 200, 150, 0], [100, 101, 200, 201, 202]),
        (None, [None, 5], [0, 5]),
        (None, [7, None], [7, 8]),
        (True, [None], [1]),
        ("", [9], [9]),
        (100, ["2026-01-01T00:00:00.000Z"], [100]),
        ("1970-01-01T00:00:00.005Z", [None], [5]),
        ("1970-01-01T00:00:00.005Z", ["1970-01-01T00:00:00.009Z"], [9]),
        (100.9, [None], [100]),
    ],
)
def test_times_never_go_back(tmp_path: Path, created_at: Any, stamps: list[Any], expected: list[int]) -> None:
    said = [{"role": "user", "content": "x", "timestamp": stamp} for stamp in stamps]
    kept = parse_messages(tmp_path, *said, created_at=created_at).conversation.messages
    assert [m.timestamp for m in kept] == list(map(ms, expected))
    assert not any(m.timestamp_from_clock for m in kept)


@pytest.mark.parametrize(
    ("created_at", "stamps"),
    [
        (_MISSING, [1_700_000_000_000]),
        ("1970-01-01T00:00:00.005Z", [None, None]),
        (100, ["1700000000000"]),
        (100, [1e16]),
        ({}, [None]),
    ],
)
def test_times_that_are_none_lose_the_conversation(tmp_path: Path, created_at: Any, stamps: list[Any]) -> None:
    said = [{"role": "user", "content": "x", "timestamp": stamp} for stamp in stamps]
    with pytest.raises(ParseError, match="no valid date"):
        parse_messages(tmp_path, *said, created_at=created_at)


def test_skipped_messages_do_not_move_the_clock(tmp_path: Path) -> None:
    said = [{"role": "system", "content": "x", "timestamp": 900}, {"role": "user", "timestamp": 900}, ASK]
    conversation = parse_messages(tmp_path, *said, created_at=100).conversation
    assert conversation.first_message_at == conversation.last_message_at == ms(100)


def test_nothing_in_the_tools_folder_changes(tmp_path: Path) -> None:
    scene, home = tmp_path / "scene", tmp_path / "home"
    path = store(scene, {"list": [talk(ASK)]}, mode="WAL")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE ItemTable SET value = '{}'")
        shutil.copytree(scene, home)
    before = {p.name: p.read_bytes() for p in database(home).parent.iterdir()}
    assert len(before) == 4
    assert ADAPTER._detect(config(home)) is not None
    assert scan(home) == ["s"]
    assert len(parse(home).fates) == 1
    assert {p.name: p.read_bytes() for p in database(home).parent.iterdir()} == before


# Any JSON

anything = json_values | st.sampled_from([[], {}, "", 0, 1, True, {"length": 1}, [None], [{}], "0x10", "2026-01-01"])
plan_items = st.fixed_dictionaries(
    {},
    optional={
        "toolName": st.just("finish") | anything,
        "thought": texts | anything,
        "reasoningContent": texts | anything,
    },
)
guidelines = st.fixed_dictionaries(
    {}, optional={"thought": texts | anything, "planItems": st.lists(plan_items | anything, max_size=2) | anything}
)
tasks = st.fixed_dictionaries(
    {},
    optional={
        "proposal": texts | anything,
        "proposalReasoningContent": texts | anything,
        "guideline": guidelines | anything,
    },
)
message_values = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]) | anything},
    optional={
        "content": texts | anything,
        "timestamp": st.integers(0, 10**13) | anything,
        "turnIndex": st.integers(0, 3) | anything,
        "turnId": texts | anything,
        "agentMessageId": texts | anything,
        "agentTaskContent": tasks | anything,
    },
)
created_times = st.integers(0, 10**13) | anything


@given(st.lists(message_values | anything, max_size=4), created_times)
def test_every_message_has_one_fate_whatever_it_holds(tmp_path: Path, messages: list[Any], created_at: Any) -> None:
    try:
        parsed = parse_messages(tmp_path, *messages, created_at=created_at)
    except ParseError:
        return
    assert [f.key for f in parsed.fates] == [f"{KEY}#/list/0/messages/{i}" for i in range(len(messages))]
    kept = sorted(f.message_index for f in parsed.fates if f.status == "kept")
    assert kept == list(range(len(parsed.conversation.messages)))


@given(st.lists(message_values | anything, max_size=4), created_times)
def test_the_fast_and_the_tolerant_decoding_agree(messages: list[Any], created_at: Any) -> None:
    candidate = Candidate("trae", "s", "state.vscdb", 1, NOW, "")

    def outcome(storage: Any) -> Any:
        draft = Draft(config(Path("/nowhere")))
        try:
            trae._read_conversation(storage, candidate, draft)
        except ParseError as error:
            return error.row
        return draft.messages, [(f.status, f.kind, f.reason, f.message_index) for f in draft.fates]

    text = json.dumps({"list": [talk(*messages, created_at=created_at)]})
    assert outcome(trae._STORAGE_DECODER.decode(text.encode())) == outcome(trae._STORAGE_DECODER.decode_text(text))


conversation_values = st.fixed_dictionaries(
    {},
    optional={
        "sessionId": texts | anything,
        "createdAt": anything,
        "updatedAt": anything,
        "messages": st.lists(message_values, max_size=2) | anything,
    },
)


@given(
    st.fixed_dictionaries({}, optional={"list": st.lists(conversation_values | anything, max_size=3) | anything})
    | anything
)
def test_any_storage_gives_candidates_or_a_scan_error(tmp_path: Path, storage: Any) -> None:
    store(tmp_path, json.dumps(storage))
    ADAPTER._detect(config(tmp_path))
    try:
        found = ADAPTER._scan(config(tmp_path))
    except ScanError:
        return
    for candidate in found:
        with suppress(ParseError):
            ADAPTER._parse(candidate, config(tmp_path))
