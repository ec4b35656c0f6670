from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from strategies import json_values

import crystal_nb as cnb
from crystal_nb.adapters import cursor_careful, cursor_overview, cursor_snapshot, vscdb
from crystal_nb.adapters.base import Parsed
from crystal_nb.adapters.cursor import CAREFUL
from crystal_nb.adapters.cursor_bubble import Bubble
from crystal_nb.adapters.cursor_rules import V2
from crystal_nb.adapters.cursor_transcript import _Line
from crystal_nb.config import Config
from crystal_nb.details import Details, Link, ToolCall
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Fate, Message

FIXTURES = Path(__file__).parent.parent / "fixtures" / "cursor"
SCENARIOS = sorted(p.parent.name for p in FIXTURES.glob("*/scenario.toml"))
SAID = {"type": 1, "text": "hello"}
Rows = Iterable[tuple[str, Any]]


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vscdb, "RETRY_SECONDS", 0)
    monkeypatch.setattr(cursor_overview, "_last", None)
    monkeypatch.setattr(cursor_snapshot, "_last", None)
    cursor_careful._LISTS.clear()


def user_folder(home: Path) -> Path:
    return home / ".config/Cursor/User"


def database(home: Path) -> Path:
    return user_folder(home) / "globalStorage" / "state.vscdb"


def config(home: Path, clock: int = 1_800_000_000_000) -> Config:
    return Config(home=home, platform="linux", cache_seconds=0, clock=lambda: clock)


def write(path: Path, rows: Rows, table: str = "cursorDiskKV") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        raw = ((k, v if v is None or isinstance(v, (str, bytes)) else json.dumps(v)) for k, v in rows)
        connection.executemany(f"INSERT INTO {table} VALUES (CAST(? AS TEXT), ?)", raw)


def window(home: Path, name: str, described: Any, **items: Any) -> Path:
    folder = user_folder(home) / "workspaceStorage" / name
    write(folder / "state.vscdb", items.items(), "ItemTable")
    (folder / "workspace.json").write_text(json.dumps(described), encoding="utf-8")
    return folder


def listed(home: Path) -> list[Candidate]:
    return CAREFUL._scan(config(home))


def parse(home: Path, number: int = 0, clock: int = 0) -> Parsed:
    return CAREFUL._parse(listed(home)[number], config(home, clock))


def composer(home: Path, *bubbles: Any, **row: Any) -> Parsed:
    """Parse a conversation of these bubbles, each under the id ``b<position>``, and this row."""
    database(home).unlink(missing_ok=True)
    rows = [(f"bubbleId:c:b{i}", value) for i, value in enumerate(bubbles)]
    write(database(home), [*rows, *([("composerData:c", row)] if row else [])])
    return parse(home)


def contents(parsed: Parsed) -> list[str]:
    return [m.content for m in parsed.conversation.messages]


def details(message: Message) -> Details:
    assert message.details is not None
    return message.details


def fates(parsed: Parsed) -> list[tuple[str, str, str | None]]:
    return [(f.status, f.kind, f.reason) for f in parsed.fates]


def headers(*ids: str) -> list[dict[str, Any]]:
    return [{"bubbleId": id, "type": 2} for id in ids]


# The conversation's own order


def test_the_header_list_gives_the_order_and_missing_times_stay_missing(tmp_path: Path) -> None:
    late = {"type": 2, "text": "answer", "createdAt": "2026-01-01T00:00:00.000Z"}
    parsed = composer(tmp_path, late, SAID, fullConversationHeadersOnly=headers("b1", "b0"))
    assert contents(parsed) == ["hello", "answer"]
    assert [m.timestamp for m in parsed.conversation.messages] == [None, "2026-01-01T00:00:00.000Z"]
    assert not any(m.timestamp_from_clock for m in parsed.conversation.messages)


def test_bubbles_without_a_header_come_last_and_marked(tmp_path: Path) -> None:
    parsed = composer(tmp_path, {"type": 2, "text": "old"}, SAID, fullConversationHeadersOnly=headers("b1"))
    assert contents(parsed) == ["hello", "old"]
    assert details(parsed.conversation.messages[1]).marks == ("reverted",)


def test_without_headers_rows_stand_by_time_and_those_without_stay_behind_their_neighbour(tmp_path: Path) -> None:
    bubbles = [
        {"type": 2, "text": "third", "createdAt": "2026-01-01T00:00:09.000Z"},
        {"type": 2, "text": "fourth"},
        {"type": 1, "text": "first", "timestamp": 1_767_225_600},
        {"type": 2, "text": "second"},
    ]
    parsed = composer(tmp_path, *bubbles)
    assert contents(parsed) == ["first", "second", "third", "fourth"]
    assert parsed.conversation.messages[0].timestamp == 1_767_225_600_000


def test_headers_find_bubbles_by_the_id_inside_too(tmp_path: Path) -> None:
    parsed = composer(tmp_path, {**SAID, "bubbleId": "inner"}, fullConversationHeadersOnly=headers("inner", "gone"))
    assert [m.id for m in parsed.conversation.messages] == ["inner"]
    assert ("dropped", "header", "no bubble has this id") in fates(parsed)


def test_ids_are_unique_inside_a_conversation(tmp_path: Path) -> None:
    parsed = composer(tmp_path, *[{**SAID, "bubbleId": "same"}] * 3)
    assert [m.id for m in parsed.conversation.messages] == ["same", "same#2", "same#3"]


# What a bubble says


def test_reasoning_goes_into_the_answer_after_it(tmp_path: Path) -> None:
    parsed = composer(tmp_path, {"type": 2, "thinking": {"text": "why"}}, {"type": 2, "text": "because"})
    (message,) = parsed.conversation.messages
    assert (message.content, message.thinking) == ("because", "why")
    assert [(f.status, f.message_index) for f in parsed.fates] == [("merged", 0), ("kept", 0)]


def test_reasoning_without_an_answer_is_a_message_of_its_own(tmp_path: Path) -> None:
    thought = {"type": 2, "thinking": "one"}
    parsed = composer(tmp_path, thought, {"type": 2, "allThinkingBlocks": [{"text": "two"}]}, SAID)
    assert [(m.content, m.thinking) for m in parsed.conversation.messages] == [("", "one\ntwo"), ("hello", None)]
    assert [(f.status, f.message_index) for f in parsed.fates] == [("merged", 0), ("kept", 0), ("kept", 1)]


@pytest.mark.parametrize(
    ("data", "call"),
    [
        (
            {"name": "grep", "status": "completed", "toolCallId": "1", "rawArgs": "{}", "result": "x"},
            ToolCall("grep", "{}", "x", "1", is_error=False),
        ),
        ({"name": "run", "params": {"a": 1}, "error": "no"}, ToolCall("run", '{"a":1}', "no", is_error=True)),
        ({"tool": 21, "status": "cancelled"}, ToolCall("tool 21")),
        ({"additionalData": {"status": "error"}}, ToolCall("unknown", is_error=True)),
    ],
)
def test_a_tool_bubble_is_a_message_with_call_and_result(tmp_path: Path, data: Any, call: ToolCall) -> None:
    parsed = composer(tmp_path, {"type": 2, "toolFormerData": data})
    (message,) = parsed.conversation.messages
    assert (message.content, message.has_tool_use, details(message).tools) == ("", True, (call,))


def test_an_agentic_turn_uses_no_tool_by_itself(tmp_path: Path) -> None:
    parsed = composer(tmp_path, {"type": 2, "text": "x", "isAgentic": True, "toolFormerData": {}})
    assert not parsed.conversation.messages[0].has_tool_use


@pytest.mark.parametrize(
    "bubble",
    [
        {"rawText": "hello"},
        {"text": "", "content": "hello"},
        {"message": " hello "},
        {"richText": "hello"},
        {"richText": '{"root":{"children":[{"text":"hello"}]}}'},
        {"text": 5, "rawText": "hello"},
    ],
)
def test_other_fields_hold_the_text_where_text_is_empty(tmp_path: Path, bubble: Any) -> None:
    assert contents(composer(tmp_path, {"type": 1, **bubble})) == ["hello"]


def test_facts_go_into_the_details(tmp_path: Path) -> None:
    facts = {
        "modelInfo": {"modelName": "m"},
        "tokenCount": {"inputTokens": 3, "outputTokens": 0},
        "requestId": "r",
        "errorDetails": {"code": 5},
        "images": [{"mimeType": "image/png"}],
        "context": {"fileSelections": [{}, {}]},
    }
    (message,) = composer(tmp_path, {"type": 2, **facts}).conversation.messages
    marks = ("image image/png", "fileSelections 2", 'error {"code":5}')
    assert message.details == Details(model="m", input_tokens=3, request_id="r", marks=marks)


def test_a_compaction_marks_the_next_answer_or_its_own_text(tmp_path: Path) -> None:
    bubbles = [
        {"type": 2, "capabilityType": 22},
        {"type": 2, "text": "a"},
        {"type": 2, "capabilityType": 22, "text": "b"},
    ]
    parsed = composer(tmp_path, *bubbles)
    assert [details(m).marks for m in parsed.conversation.messages] == [("compact boundary",), ("compact summary",)]


@pytest.mark.parametrize(
    ("value", "fate"),
    [
        (None, ("dropped", "bubble", "NULL value")),
        ("", ("dropped", "bubble", "NULL value")),
        ("{", ("dropped", "bubble", "not JSON")),
        ("null", ("dropped", "bubble", "not an object")),
        ({"type": 2}, ("dropped", "assistant", "assistant bubble without text")),
        ({"type": 9, "_v": 7}, ("dropped", "bubble type 9", "unknown kind (bubble version 7)")),
        ({"type": 2, "capabilityType": 5}, ("dropped", "capability 5", "unknown kind (bubble version unknown)")),
    ],
)
def test_one_bad_bubble_gets_a_fate_and_the_rest_goes_on(tmp_path: Path, value: Any, fate: Any) -> None:
    parsed = composer(tmp_path, value, SAID)
    assert contents(parsed) == ["hello"]
    assert fates(parsed)[0] == fate


@pytest.mark.parametrize(
    "value",
    [json.dumps(SAID).encode(), "\ufeff" + json.dumps(SAID), json.dumps(SAID) + "\0\0", '{"type":1,"text":"\\ud800"}'],
)
def test_blobs_marks_nuls_and_lone_surrogates_are_read(tmp_path: Path, value: Any) -> None:
    parsed = composer(tmp_path, value)
    assert contents(parsed) in (["hello"], ["\ud800"])
    assert len(cnb.content_hash(parsed.conversation)) == 64


def test_a_deep_value_loses_nothing_but_its_own_text(tmp_path: Path) -> None:
    deep = "[" * 5000 + "]" * 5000
    bubble = '{"type":2,"text":"x","toolFormerData":{"name":"n","result":DEEP}}'
    parsed = composer(tmp_path, bubble.replace("DEEP", deep), SAID)
    assert contents(parsed) == ["x", "hello"]


# All generations


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_two_clocks_give_the_same_and_every_fate_is_complete(scenario: str) -> None:
    home = FIXTURES / scenario / "home"
    for candidate in listed(home):
        one, two = (CAREFUL._parse(candidate, config(home, clock)) for clock in (0, 10**12))
        assert one == two
        check(one)


def check(parsed: Parsed) -> None:
    """What holds for every parse: fates name what they became, every message comes from a record, ids are unique."""
    count = len(parsed.conversation.messages)
    for fate in parsed.fates:
        assert (fate.message_index is not None) == (fate.status in ("kept", "merged"))
        assert fate.message_index is None or 0 <= fate.message_index < count
        assert (fate.reason is not None) or fate.status in ("kept", "metadata")
        assert fate.key is not None or fate.line is not None
    assert sorted(f.message_index for f in parsed.fates if f.status == "kept") == list(range(count))
    assert len({m.id for m in parsed.conversation.messages}) == count
    assert not any(m.timestamp_from_clock for m in parsed.conversation.messages)
    places = [(f.key, f.line, f.offset) for f in parsed.fates]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("scenario", ["turns", "generations", "log", "agents"])
def test_the_pinned_rules_lose_what_the_careful_ones_have(scenario: str) -> None:
    home = config(FIXTURES / scenario / "home")
    pinned, careful = (cnb.parse(cnb.scan(v, config=home), config=home) for v in ("cursor@1", "cursor@2"))
    assert pinned.messages.height < careful.messages.height
    assert careful.failures.is_empty()


@pytest.mark.parametrize("name", [f for f in structs.asdict(V2) if f != "version"])
def test_each_repair_can_be_switched_off(name: str) -> None:
    rules = structs.replace(V2, **{name: False})
    outcomes = []
    for scenario in SCENARIOS:
        home = FIXTURES / scenario / "home"
        for r in (V2, rules):
            found = cursor_careful.candidates(user_folder(home), config(home), r)
            outcomes.append([(c, cursor_careful.read(c, r, config(home))) for c in found])
    assert outcomes[::2] != outcomes[1::2]


def test_an_inline_copy_of_a_row_is_merged_into_it(tmp_path: Path) -> None:
    parsed = composer(tmp_path, SAID, conversation=[{**SAID, "bubbleId": "b0"}, {"type": 2, "text": "only here"}])
    assert contents(parsed) == ["only here", "hello"]
    copy = parsed.fates[-1]
    assert (copy.status, copy.reason, copy.message_index) == ("merged", "copy of the bubble's row", 1)
    assert copy.key == "cursorDiskKV/composerData:c#/conversation/0"


# Listing


def test_every_composer_is_listed_once_with_its_project(tmp_path: Path) -> None:
    heads = {"composer.composerData": {"allComposers": [{"composerId": "w"}, None, 5, {"composerId": 7}]}}
    window(tmp_path, "one", {"folder": "file:///home/ada/app"}, **heads)
    window(tmp_path, "two", {"workspace": "file:///home/ada/all.code-workspace"}, **heads)
    row = {"workspaceIdentifier": {"uri": {"fsPath": "/srv/y"}}, "lastUpdatedAt": 1_700_000_000_000}
    write(database(tmp_path), [("bubbleId:w:1", SAID), ("bubbleId:tool-only:1", {"type": 2}), ("composerData:y", row)])
    found = [(c.id, c.project_dir) for c in listed(tmp_path)]
    assert found == [("w", "/home/ada/app"), ("y", "/srv/y"), ("tool-only", "")]
    assert listed(tmp_path)[1].file_mtime == "2023-11-14T22:13:20.000Z"


@pytest.mark.parametrize(
    ("described", "project"),
    [
        ({"configuration": {"$mid": 1, "path": "/w/x.code-workspace", "scheme": "file"}}, "/w/x.code-workspace"),
        ({"folder": "file://wsl%24/Ubuntu/app"}, "\\\\wsl$\\Ubuntu\\app"),
        ({"folder": "vscode-remote://ssh-remote%2Bhost/srv/app"}, "vscode-remote://ssh-remote+host/srv/app"),
        ({"folder": "file:///bad%"}, "file:///bad%"),
        ({"folder": 5}, ""),
        ([], ""),
    ],
)
def test_workspace_files_of_every_spelling_name_the_project(tmp_path: Path, described: Any, project: str) -> None:
    window(tmp_path, "w", described, **{"composer.composerData": {"allComposers": [{"composerId": "c"}]}})
    write(database(tmp_path), [("bubbleId:c:1", SAID)])
    assert listed(tmp_path)[0].project_dir == project


def test_the_request_context_names_the_project(tmp_path: Path) -> None:
    context = {"projectLayouts": ["{", '{"rootPath":"/home/ada/app"}']}
    write(database(tmp_path), [("bubbleId:c:1", SAID), ("messageRequestContext:c:1", context)])
    parsed = parse(tmp_path)
    assert (parsed.conversation.cwd, parsed.conversation.project_name) == ("/home/ada/app", "app")


def test_a_sub_agent_is_linked_to_the_parent_that_its_row_names(tmp_path: Path) -> None:
    write(database(tmp_path), [("composerData:c", {"subagentInfo": {"parentComposerId": "p"}})])
    conversation = parse(tmp_path).conversation
    assert conversation.parent_id == "p"
    assert conversation.links == (Link("subagent-of", "p", "composerData.subagentInfo.parentComposerId"),)


def test_a_sub_agent_of_an_unknown_parent_is_undecidable(tmp_path: Path) -> None:
    write(database(tmp_path), [("bubbleId:c:1", SAID)])
    with closing(sqlite3.connect(database(tmp_path))) as connection, connection:
        connection.execute("CREATE TABLE composerHeaders (composerId TEXT, isSubagent INTEGER)")
        connection.execute("INSERT INTO composerHeaders VALUES ('c', 1)")
    conversation = parse(tmp_path).conversation
    assert conversation.parent_id is None
    assert [(link.target, link.is_certain) for link in conversation.links] == [(None, False)]


def test_chat_tabs_of_one_id_are_kept_apart(tmp_path: Path) -> None:
    tabs = {"tabs": [{"tabId": "t", "bubbles": [{"type": "user", "text": "hello"}]}]}
    for name in ("one", "two"):
        window(tmp_path, name, {}, **{"workbench.panel.aichat.view.aichat.chatdata": tabs})
    assert [c.id for c in listed(tmp_path)] == ["t", "two/t"]
    copy = parse(tmp_path, 1)
    assert contents(copy) == ["hello"]
    assert copy.conversation.links == (Link("copy-of", "t", "the same id in another place", is_certain=False),)


@pytest.mark.parametrize("damage", [b"SQLite format 3\0" + b"x" * 5000, b"no database" * 500])
def test_a_damaged_database_is_listed_and_fails_clearly(tmp_path: Path, damage: bytes) -> None:
    database(tmp_path).parent.mkdir(parents=True)
    database(tmp_path).write_bytes(damage)
    folder = window(tmp_path, "w", {})
    (folder / "state.vscdb").write_bytes(damage)
    found = listed(tmp_path)
    assert [c.id for c in found] == ["globalStorage/state.vscdb", "w/state.vscdb"]
    for candidate in found:
        with pytest.raises(ParseError, match=r"database|malformed"):
            CAREFUL._parse(candidate, config(tmp_path))


def test_a_chat_list_that_is_no_json_fails_clearly(tmp_path: Path) -> None:
    window(tmp_path, "w", {}, **{"workbench.panel.aichat.view.aichat.chatdata": "{"})
    with pytest.raises(ParseError, match="no JSON"):
        parse(tmp_path)


# The write-ahead log


def in_log(path: Path, rows: Rows) -> None:
    """Leave rows in a log beside a database, as a crash does."""
    live = path.with_name("live")
    shutil.copyfile(path, live)
    with closing(sqlite3.connect(live, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", [(k, json.dumps(v)) for k, v in rows])
        shutil.copyfile(live, path)
        shutil.copyfile(f"{live}-wal", f"{path}-wal")
    live.unlink()


def test_the_log_is_read_and_shows_in_size_and_time(tmp_path: Path) -> None:
    write(database(tmp_path), [("bubbleId:c:1", SAID), ("bubbleId:gone:1", {**SAID, "text": "stays"})])
    before = listed(tmp_path)[0]
    in_log(database(tmp_path), [("bubbleId:c:2", {"type": 2, "text": "late"}), ("agentKv:blob:1", "x")])
    os.utime(f"{database(tmp_path)}-wal", ns=(0, 2 * 10**18))
    after = listed(tmp_path)[0]
    assert contents(parse(tmp_path)) == ["hello", "late"]
    assert after.file_size > before.file_size
    assert after.file_mtime == "2033-05-18T03:33:20.000Z"


def test_a_database_with_a_log_is_copied_once_for_all_conversations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(database(tmp_path), [(f"bubbleId:c{i}:1", SAID) for i in range(20)])
    in_log(database(tmp_path), [("bubbleId:late:1", SAID)])
    copies: list[Any] = []
    real = vscdb._copied
    monkeypatch.setattr(vscdb, "_copied", lambda *a: copies.append(a) or real(*a))
    found = listed(tmp_path)
    assert [contents(CAREFUL._parse(c, config(tmp_path))) for c in found] == [["hello"]] * 21
    assert len(copies) == 1


def test_the_private_file_goes_when_nobody_needs_it(tmp_path: Path) -> None:
    write(database(tmp_path), [("bubbleId:c:1", SAID)])
    in_log(database(tmp_path), [("bubbleId:c:2", SAID)])
    parse(tmp_path)
    extract = cursor_snapshot._last
    assert extract is not None
    file = extract.file
    assert file.exists()
    cursor_snapshot._last = None
    del extract
    gc.collect()
    assert not file.parent.exists()


def test_work_grows_with_the_conversations_not_with_their_product(tmp_path: Path) -> None:
    steps = []
    for number in (40, 80):
        path = tmp_path / str(number)
        write(database(path), [(f"bubbleId:c{i:03d}:{j}", SAID) for j in range(20) for i in range(number)])
        steps.append(count_steps(path))
    assert steps[1] < 3 * steps[0]


def count_steps(home: Path) -> int:
    """Virtual machine steps, in tens, of the queries that listing and parsing all take."""
    total = 0

    def tick() -> int:
        nonlocal total
        total += 1
        return 0

    real = vscdb._ask

    def ask(uri: str, query: Any, mark: Any = None) -> Any:
        def counted(connection: Any) -> Any:
            connection.set_progress_handler(tick, 10)
            return query(connection)

        return real(uri, counted, mark)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vscdb, "_ask", ask)
        for candidate in listed(home):
            CAREFUL._parse(candidate, config(home))
    return total


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_tools_folder_stays_as_it_is(tmp_path: Path, scenario: str) -> None:
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / scenario / "home", home)
    before = snapshot(home)
    for candidate in listed(home):
        CAREFUL._parse(candidate, config(home))
    assert snapshot(home) == before


def snapshot(folder: Path) -> dict[str, tuple[int, str]]:
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {str(p): (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).hexdigest()) for p in files}


# Transcripts and stores


def transcript(home: Path, data: bytes, name: str = "t/t.jsonl", slug: str = "home-ada-app") -> Parsed:
    path = home / ".cursor/projects" / slug / "agent-transcripts" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return parse(home, -1)


def line(role: str, *parts: Any) -> bytes:
    return json.dumps({"role": role, "message": {"content": list(parts)}}).encode()


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def assert_tiled(found: Iterable[Fate], size: int) -> None:
    at = 0
    for fate in found:
        if fate.offset is not None:
            assert fate.offset == at
            at += fate.size or 0
    assert at == size


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_transcript_has_a_fate_for_every_byte(tmp_path: Path, end: bytes) -> None:
    lines = [
        b"\xef\xbb\xbf" + line("user", text("<user_query>\nhi\n</user_query>")),
        b"",
        line("assistant", {"type": "tool_use", "name": "Shell", "input": {"a": 1}}),
        b"\0\0\0\0",
        b"null",
        b'{"type":"turn_ended","status":"success"}',
        b'{"role":"assistant","message":{"content":"\\ud800 ok"}}',
        b'{"torn',
    ]
    parsed = transcript(tmp_path, end.join(lines))
    assert contents(parsed) == ["hi", "", "\ud800 ok"]
    assert details(parsed.conversation.messages[1]).tools == (ToolCall("Shell", '{"a":1}'),)
    assert [f.status for f in parsed.fates] == [
        *("kept", "dropped", "kept", "dropped", "dropped", "metadata", "kept", "dropped"),
    ]
    assert_tiled(parsed.fates, len(end.join(lines)))


def test_unknown_parts_are_remarked_on_their_line_and_lines_of_nothing_else_dropped(tmp_path: Path) -> None:
    data = line("assistant", text("a"), {"type": "new"}) + b"\n" + line("assistant", {"type": "new"})
    parsed = transcript(tmp_path, data)
    (message,) = parsed.conversation.messages
    assert details(message).marks == ("unknown part new",)
    assert [(f.status, f.kind) for f in parsed.fates] == [("kept", "assistant"), ("dropped", "new")]
    assert all("names no version" in (f.note or "") for f in parsed.fates)


def test_unknown_parts_of_a_store_have_fates_of_their_own(tmp_path: Path) -> None:
    parsed = store(tmp_path, [{"role": "user", "content": [text("hi"), {"type": "new"}, 5]}])
    assert contents(parsed) == ["hi"]
    assert [f.kind for f in parsed.fates if f.status == "dropped"] == ["new", "part without a kind"]


@pytest.mark.timeout(60)
def test_a_line_of_twelve_million_characters_is_read(tmp_path: Path) -> None:
    long = "x" * 12_000_000
    parsed = transcript(tmp_path, line("user", text(long)) + b"\n" + line("assistant", text("done")))
    assert [len(c) for c in contents(parsed)] == [len(long), 4]


def test_a_text_transcript_is_tiled_by_its_sections(tmp_path: Path) -> None:
    data = b"user:\nhi\n\nassistant:\n[Tool call] Read\n  a.py\n[Tool result] Read\n  x = 1\n\n  y\nDone.\nuser: bye"
    parsed = transcript(tmp_path, data, "t.txt")
    assert contents(parsed) == ["hi", "", "Done.", "bye"]
    assert details(parsed.conversation.messages[1]).tools == (ToolCall("Read", "a.py", "x = 1\n\n  y"),)
    assert_tiled(parsed.fates, len(data))


def test_a_transcript_counts_only_where_no_database_has_the_conversation(tmp_path: Path) -> None:
    transcript(tmp_path, line("user", text("hi")), "c/c.jsonl")
    transcript(tmp_path, line("user", text("hi")), "c.txt")
    assert [Path(c.file_path).suffix for c in listed(tmp_path)] == [".jsonl"]
    write(
        database(tmp_path),
        [("composerData:c", {"name": "Title", "workspaceIdentifier": {"uri": "file:///home/ada/app"}})],
    )
    parsed = parse(tmp_path)
    assert (contents(parsed), parsed.conversation.slug) == (["hi"], "Title")
    assert parsed.conversation.project_dir == "/home/ada/app"
    write(database(tmp_path), [("bubbleId:c:1", SAID)])
    assert [Path(c.file_path).name for c in listed(tmp_path)] == ["state.vscdb"]


def test_transcripts_of_one_id_in_two_projects_are_kept_apart(tmp_path: Path) -> None:
    for slug in ("a", "b"):
        parsed = transcript(tmp_path, line("user", text("hi")), slug=slug)
    assert [c.id for c in listed(tmp_path)] == ["t", "b/t"]
    assert [(link.kind, link.target, link.is_certain) for link in parsed.conversation.links] == [
        ("copy-of", "t", False)
    ]


def varint_field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def store(home: Path, messages: list[Any], root: bytes | None = None, **meta: Any) -> Parsed:
    blobs = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
    ids = [hashlib.sha256(blob).digest() for blob in blobs]
    root = b"".join(varint_field(1, id) for id in ids) if root is None else root
    path = home / ".cursor/chats/abc/agent/store.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
        connection.execute("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)")
        described = json.dumps({"latestRootBlobId": "root", **meta}).encode().hex()
        connection.execute("INSERT INTO meta VALUES ('0', ?)", (described,))
        rows = [("root", root), *((id.hex(), blob) for id, blob in zip(ids, blobs, strict=True))]
        connection.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?)", rows)
    return parse(home)


def test_a_store_is_walked_from_its_root(tmp_path: Path) -> None:
    call = {"type": "tool-call", "toolCallId": "1", "toolName": "Read", "args": {}}
    answer = {"type": "tool-result", "toolCallId": "1", "result": {"x": 1}}
    parsed = store(
        tmp_path,
        [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [call]},
            {"role": "tool", "content": [answer]},
        ],
        name="Title",
    )
    assert parsed.conversation.slug == "Title"
    assert details(parsed.conversation.messages[1]).tools == (ToolCall("Read", "{}", '{"x":1}', "1"),)
    assert [f.status for f in parsed.fates] == ["metadata", "metadata", "kept", "kept", "merged"]


@pytest.mark.parametrize(
    ("messages", "root", "meta", "reason"),
    [
        ([b"\x93\x02"], None, {"blobEncryptionKey": "k"}, "encrypted"),
        ([], b"\xff\xff", {"blobEncryptionKey": "k"}, "encrypted"),
        ([], b"\xff\xff", {}, "unknown layout"),
        ([], b"\x0a", {}, "unknown layout"),
        ([], None, {"latestRootBlobId": "gone"}, "unknown layout"),
    ],
)
def test_a_store_that_can_t_be_read_says_why(tmp_path: Path, messages: Any, root: Any, meta: Any, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        store(tmp_path, messages, root, **meta)


# Whatever stands in a field


FIELDS = [n for n in Bubble.__struct_encode_fields__ if n != "_v"]


@given(st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=4), st.sampled_from([1, 2, None]))
@settings(max_examples=150)
def test_any_bubble_gets_a_fate(tmp_path_factory: Any, fields: dict[str, Any], type: Any) -> None:
    home = tmp_path_factory.mktemp("any")
    parsed = composer(home, {"type": type, **fields}, SAID)
    check(parsed)
    assert contents(parsed)[-1] == "hello"
    cnb.content_hash(parsed.conversation)


ROW_FIELDS = [
    *("fullConversationHeadersOnly", "conversation", "conversationMap", "tabs", "name", "createdAt", "lastUpdatedAt"),
    *("subagentComposerIds", "subagentInfo", "workspaceIdentifier", "text", "_v"),
]


@given(st.dictionaries(st.sampled_from(ROW_FIELDS), json_values | st.lists(json_values), max_size=4))
@settings(max_examples=150)
def test_any_composer_row_is_read(tmp_path_factory: Any, row: dict[str, Any]) -> None:
    parsed = composer(tmp_path_factory.mktemp("any"), SAID, x=1, **row)
    check(parsed)
    assert "hello" in contents(parsed)


part_values = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "reasoning", "image", "new"])},
    optional=dict.fromkeys(("text", "name", "input", "content", "id", "tool_use_id", "is_error"), json_values),
)
line_values = st.dictionaries(st.sampled_from(_Line.__struct_fields__), json_values, max_size=4) | st.builds(
    lambda role, content: {"role": role, "message": {"content": content}},
    st.sampled_from(["user", "assistant", "tool", "system"]),
    json_values | st.lists(part_values, max_size=3),
)


@given(st.lists(line_values.map(lambda v: json.dumps(v).encode()) | st.binary(max_size=20), max_size=6))
@settings(max_examples=150)
def test_any_transcript_is_tiled(tmp_path_factory: Any, lines: list[bytes]) -> None:
    data = b"\n".join(lines)
    parsed = transcript(tmp_path_factory.mktemp("any"), data)
    check(parsed)
    assert_tiled(parsed.fates, len(data))


@given(st.text("user:\nasitn[]TholcrkgDe \r\t", max_size=60).map(str.encode) | st.binary(max_size=40))
@settings(max_examples=150)
def test_any_text_transcript_is_tiled(tmp_path_factory: Any, data: bytes) -> None:
    parsed = transcript(tmp_path_factory.mktemp("any"), data, "t.txt")
    check(parsed)
    assert_tiled(parsed.fates, len(data))


@given(
    st.lists(
        st.fixed_dictionaries({"role": json_values | st.just("user"), "content": json_values}),
        max_size=3,
        unique_by=str,
    )
)
@settings(max_examples=100)
def test_any_store_is_read_or_refused(tmp_path_factory: Any, messages: list[Any]) -> None:
    home = tmp_path_factory.mktemp("any")
    if messages:
        check(store(home, messages))
    else:
        with pytest.raises(ParseError, match="unknown layout"):
            store(home, messages)


@given(json_values)
@settings(max_examples=100)
def test_any_head_chat_and_workspace_file_are_survived(tmp_path_factory: Any, value: Any) -> None:
    home = tmp_path_factory.mktemp("any")
    for number, described in enumerate([value, {"folder": value}, {"configuration": value}]):
        items = {"composer.composerData": {"allComposers": [value, {"composerId": value}]}}
        items["workbench.panel.aichat.view.aichat.chatdata"] = {"tabs": [value, {"bubbles": [value]}]}
        window(home, str(number), described, **items)
    write(database(home), [("composer.composerHeaders", {"allComposers": [value]})], "ItemTable")
    write(database(home), [("composerData:c", value), ("bubbleId:c:1", SAID), ("messageRequestContext:c:1", value)])
    for candidate in listed(home):
        check(CAREFUL._parse(candidate, config(home)))


def test_a_configured_folder_is_the_only_one_read(tmp_path: Path) -> None:
    transcript(tmp_path, line("user", text("hi")))
    (tmp_path / "empty").mkdir()
    assert CAREFUL._detect(replace(config(tmp_path), folders={"cursor": tmp_path / "empty"})) is None
    found = CAREFUL._scan(replace(config(tmp_path), folders={"cursor": tmp_path / ".cursor"}))
    assert [c.id for c in found] == ["t"]
