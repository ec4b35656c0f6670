from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import json_values, texts
from test_trae import anything, message_values

import crystal_nb as cnb
from crystal_nb.adapters import trae, trae_stores, vscdb
from crystal_nb.adapters.base import Adapter, Parsed
from crystal_nb.adapters.trae_careful import careful
from crystal_nb.adapters.trae_facts import label_of, project_of, time_of, window_project
from crystal_nb.adapters.trae_rules import V2
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Message

FIXTURES = Path(__file__).parent.parent / "fixtures" / "trae"
KEY = "memento/icube-ai-agent-storage"
(CAREFUL,) = trae.LATER
TIME = 1_700_000_000_000
ASK = {"role": "user", "content": "hello", "turnId": "t", "turnIndex": 0}
ANSWER = {"role": "assistant", "content": "hi", "turnId": "t", "turnIndex": 0, "agentMessageId": "m"}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vscdb, "RETRY_SECONDS", 0)


def config(home: Path, clock: int = 1, **more: Any) -> cnb.Config:
    return cnb.Config(home=home, platform="linux", clock=lambda: clock, **more)


def user(home: Path, product: str = "Trae") -> Path:
    return home / ".config" / product / "User"


def window(home: Path, name: str = "w", product: str = "Trae") -> Path:
    return user(home, product) / "workspaceStorage" / name / "state.vscdb"


def store(path: Path, rows: dict[str, Any], folder: str | None = "file:///home/ada/app") -> Path:
    """Make a database; a value that is no str, bytes or None becomes JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if folder is not None:
        path.with_name("workspace.json").write_text(json.dumps({"folder": folder}), encoding="utf-8")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA journal_mode=MEMORY")
        connection.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        kept = [(k, v if v is None or isinstance(v, (str, bytes, int)) else json.dumps(v)) for k, v in rows.items()]
        connection.executemany("INSERT INTO ItemTable VALUES (?, ?)", kept)
    return path


def talk(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"sessionId": "s", "createdAt": TIME, "messages": list(messages)} | more


def scan(home: Path, adapter: Adapter = CAREFUL) -> list[Candidate]:
    return adapter._scan(config(home))


def ids(home: Path) -> list[Any]:
    return [c.id for c in scan(home)]


def parse_value(home: Path, value: Any, adapter: Adapter = CAREFUL) -> Parsed:
    path = store(window(home), {KEY: {"list": [value]}})
    return adapter._parse(Candidate("trae", "s", str(path), 1, "", "/home/ada/app"), config(home))


def said(home: Path, *messages: Any, **more: Any) -> list[Message]:
    return list(parse_value(home, talk(*messages, **more)).conversation.messages)


def failure(candidate: Candidate, home: Path) -> str:
    with pytest.raises(ParseError) as caught:
        CAREFUL._parse(candidate, config(home))
    return str(caught.value)


def task(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "agentTaskContent": {"guideline": {"planItems": list(steps)}, **more}}


# Where conversations are


@pytest.mark.parametrize("product", ["Trae", "Trae CN", "TRAE SOLO", "TRAE SOLO CN"])
def test_every_product_counts(tmp_path: Path, product: str) -> None:
    store(window(tmp_path, product=product), {KEY: {"list": [talk(ASK, ANSWER)]}})
    info = CAREFUL._detect(config(tmp_path))
    assert info is not None
    assert (info.conversation_count, info.data_dir) == (1, str(user(tmp_path, product)))
    corpus = cnb.parse(cnb.scan("trae", profile="careful", config=config(tmp_path)), config=config(tmp_path))
    assert corpus.messages["content"].to_list() == ["hello", "hi"]


@pytest.mark.parametrize(
    ("platform", "place"),
    [("win32", "AppData/Roaming/Trae CN"), ("darwin", "Library/Application Support/Trae CN")],
)
def test_products_are_where_the_platform_has_them(tmp_path: Path, platform: str, place: str) -> None:
    store(tmp_path / place / "User/workspaceStorage/w/state.vscdb", {KEY: {"list": [talk(ASK)]}})
    assert [c.id for c in CAREFUL._scan(cnb.Config(home=tmp_path, platform=platform))] == ["s"]


def test_xdg_config_home_is_followed(tmp_path: Path) -> None:
    store(tmp_path / "x/TRAE SOLO/User/workspaceStorage/w/state.vscdb", {KEY: {"list": [talk(ASK)]}})
    assert len(CAREFUL._scan(config(tmp_path, environ={"XDG_CONFIG_HOME": str(tmp_path / "x")}))) == 1


def test_a_configured_folder_is_read_alone(tmp_path: Path) -> None:
    store(window(tmp_path), {KEY: {"list": [talk(ASK)]}})
    store(window(tmp_path, product="Trae CN"), {KEY: {"list": [talk(ASK, sessionId="cn")]}})
    here = config(tmp_path, folders={"trae": user(tmp_path, "Trae CN")})
    assert [c.id for c in CAREFUL._scan(here)] == ["cn"]
    there = config(tmp_path, environ={"TRAE_DATA_DIR": str(user(tmp_path))})
    assert [c.id for c in CAREFUL._scan(there)] == ["s"]


def test_every_list_of_a_database_is_read(tmp_path: Path) -> None:
    rows = {
        "ChatStore": [talk(ASK, sessionId="bare")],
        "memento/icube-ai-chat-storage-1": {"list": [talk(ASK, sessionId="chat")]},
        "memento/icube-ai-ng-chat-storage-22": {"sessions": [talk(ASK, sessionId="ng")]},
        "memento/icube-ai-other": {"list": [talk(ASK, sessionId="no")]},
        "memento/icube-ai-agent-storage-3": {"entries": {"by-key": {"messages": {"m": ASK}}}},
        KEY: {"list": [talk(ASK)]},
    }
    store(window(tmp_path), rows)
    store(user(tmp_path) / "globalStorage/state.vscdb", {KEY: {"list": [talk(ASK, sessionId="global")]}}, None)
    assert ids(tmp_path) == ["s", "by-key", "ng", "chat", "bare", "global"]
    for candidate in scan(tmp_path):
        assert [m.content for m in CAREFUL._parse(candidate, config(tmp_path)).conversation.messages] == ["hello"]


def test_a_conversation_without_an_id_is_named_by_its_place(tmp_path: Path) -> None:
    store(window(tmp_path), {KEY: {"list": [{"messages": [ASK]}, {"sessionId": 7, "messages": [ASK]}]}})
    assert ids(tmp_path) == [f"{KEY}#/list/0", "7"]


def test_a_window_without_a_folder_has_an_unknown_project(tmp_path: Path) -> None:
    store(window(tmp_path), {KEY: {"list": [talk(ASK)]}}, folder=None)
    (candidate,) = scan(tmp_path)
    conversation = CAREFUL._parse(candidate, config(tmp_path)).conversation
    assert (conversation.project_dir, conversation.cwd) == ("", None)


def test_stubs_and_odd_entries_are_no_candidates_and_hide_nothing(tmp_path: Path) -> None:
    store(window(tmp_path), {KEY: {"list": [None, 5, "x", talk(), {"sessionId": "s"}, talk(ASK), {}]}})
    assert ids(tmp_path) == ["s"]


@pytest.mark.parametrize("data", [b"", b"\0" * 7])
def test_values_that_hold_nothing_are_no_candidates(tmp_path: Path, data: bytes) -> None:
    store(window(tmp_path, "a"), {KEY: None, "ChatStore": "null"})
    store(window(tmp_path, "b"), {KEY: {"list": []}})
    store(window(tmp_path, "c"), {}).write_bytes(b"")
    assert CAREFUL._detect(config(tmp_path)) is None
    assert ids(tmp_path) == []


@pytest.mark.parametrize(
    ("description", "project"),
    [
        ({"folder": "file:///home/u/my%20app"}, "/home/u/my app"),
        ({"folder": "file:///c%3A/Users/u/app"}, "c:/Users/u/app"),
        ({"folder": "file://server/share"}, r"\\server\share"),
        ({"folder": "file://wsl%24/Ubuntu/home/u"}, r"\\wsl$\Ubuntu\home\u"),
        ({"folder": "vscode-remote://ssh-remote%2Bhost/srv/app"}, "vscode-remote://ssh-remote+host/srv/app"),
        ({"folder": "file:///bad%"}, "file:///bad%"),
        ({"folder": 5, "workspace": "file:///w/a.code-workspace"}, "/w/a.code-workspace"),
        ({"configuration": "/w/b.code-workspace"}, "/w/b.code-workspace"),
        ({"configuration": {"path": "/c:/w", "scheme": "file"}}, "c:/w"),
        ({"configuration": {"path": "/w", "scheme": "vscode-remote", "authority": "h"}}, "vscode-remote://h/w"),
        ([], ""),
        (None, ""),
    ],
)
def test_projects_of_windows(tmp_path: Path, description: Any, project: str) -> None:
    (tmp_path / "workspace.json").write_text("\ufeff" + json.dumps(description), encoding="utf-8")
    assert window_project(tmp_path / "workspace.json") == project


def test_a_multi_root_window_has_the_name_of_its_file_and_no_folder(tmp_path: Path) -> None:
    path = store(window(tmp_path), {KEY: {"list": [talk(ASK)]}})
    candidate = Candidate("trae", "s", str(path), 1, "", "/w/orchards.code-workspace")
    conversation = CAREFUL._parse(candidate, config(tmp_path)).conversation
    assert (conversation.project_name, conversation.cwd) == ("orchards", None)


# Copies


def test_of_equal_and_earlier_states_the_longest_counts_once(tmp_path: Path) -> None:
    store(window(tmp_path, "a"), {KEY: {"list": [talk(ASK), talk(ASK)]}})
    store(user(tmp_path) / "globalStorage/state.vscdb", {KEY: {"list": [talk(ASK), talk(ASK, ANSWER)]}}, None)
    (candidate,) = scan(tmp_path)
    assert (candidate.id, candidate.project_dir) == ("s", "/home/ada/app")
    parsed = CAREFUL._parse(candidate, config(tmp_path))
    assert len(parsed.conversation.messages) == 2
    assert [f.reason for f in parsed.fates if f.status == "metadata"] == [
        "title and times",
        "an equal or earlier state",
    ]


def test_other_messages_under_the_same_id_are_kept_and_linked_as_undecidable(tmp_path: Path) -> None:
    other = {**ASK, "content": "other"}
    store(window(tmp_path, "a"), {KEY: {"list": [talk(ASK), talk(other)]}})
    store(window(tmp_path, "b"), {KEY: {"list": [talk({**ASK, "content": "third"})]}})
    found = {c.id: CAREFUL._parse(c, config(tmp_path)).conversation for c in scan(tmp_path)}
    assert {id: c.messages[0].content for id, c in found.items()} == {"s": "hello", "s#2": "other", "s@Trae/b": "third"}
    assert [[(link.kind, link.target, link.is_certain) for link in c.links] for c in found.values()] == [
        [],
        [("copy-of", "s", False)],
        [("copy-of", "s", False)],
    ]


@given(st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=3), max_size=5))
def test_what_stays_of_copies_begins_no_other_and_is_all_there_was(lists: list[list[str]]) -> None:
    entries = [trae_stores.Entry("s", "s", str(at), {}, tuple(_chain(said))) for at, said in enumerate(lists)]
    old = trae_stores.outdated(entries)
    kept = [said for at, said in enumerate(lists) if at not in old]
    assert not any(a == b[: len(a)] for i, a in enumerate(kept) for j, b in enumerate(kept) if i != j)
    assert all(any(a == b[: len(a)] for b in kept) for a in lists)


def _chain(said: list[str]) -> list[bytes]:
    return ["".join(said[: at + 1]).encode() for at in range(len(said))]


# What can't be read


def modular(home: Path, data: bytes, product: str = "Trae") -> Path:
    path = home / ".config" / product / "ModularData/ai-agent/database.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def test_an_encrypted_store_is_an_outcome_of_its_own(tmp_path: Path) -> None:
    store(window(tmp_path, product="Trae CN"), {KEY: {"list": [talk()]}})
    path = modular(tmp_path, os.urandom(64), "Trae CN")
    before = path.read_bytes()
    corpus = cnb.parse(cnb.scan("trae@2", config=config(tmp_path)), config=config(tmp_path))
    assert len(corpus) == 0
    (row,) = corpus.failures.rows(named=True)
    assert (row["id"], row["error"], row["file_path"]) == ("modular-store@Trae CN", "ParseError", str(path))
    assert "encrypted" in row["message"]
    assert (path.read_bytes(), [p.name for p in path.parent.iterdir()]) == (before, ["database.db"])


def test_an_encrypted_store_hides_no_readable_conversation(tmp_path: Path) -> None:
    store(window(tmp_path), {KEY: {"list": [talk(ASK)]}})
    modular(tmp_path, b"\x8f" * 32)
    assert ids(tmp_path) == ["s", "modular-store@Trae"]


def test_a_plain_modular_store_is_an_unknown_layout(tmp_path: Path) -> None:
    modular(tmp_path, b"SQLite format 3\0 and more")
    (candidate,) = scan(tmp_path)
    assert "unknown layout" in failure(candidate, tmp_path)
    Path(candidate.file_path).unlink()
    assert "gone" in failure(candidate, tmp_path)


def test_a_conversation_that_became_a_stub_says_so(tmp_path: Path) -> None:
    store(window(tmp_path), {KEY: {"list": [talk(ASK)]}})
    (candidate,) = scan(tmp_path)
    store(window(tmp_path), {KEY: {"list": [talk()]}})
    assert "none of its messages" in failure(candidate, tmp_path)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{", "damaged"),
        ("5", "unknown layout: the value is int"),
        ('"x"', "unknown layout: the value is str"),
        ('{"list":"x"}', "unknown layout: list"),
        (7, "unknown layout: the value is of type integer"),
        ("\ufeff{]", "damaged"),
    ],
)
def test_a_value_that_cannot_be_read_costs_only_itself(tmp_path: Path, value: Any, reason: str) -> None:
    store(window(tmp_path), {KEY: value, "ChatStore": {"list": [talk(ASK)]}})
    good, bad = scan(tmp_path)
    assert (good.id, bad.id) == ("s", f"unreadable:{KEY}@Trae/w")
    assert reason in failure(bad, tmp_path)
    store(window(tmp_path), {KEY: {"list": []}})
    assert "scan again" in failure(bad, tmp_path)
    assert "no conversation" in failure(good, tmp_path)


def test_a_value_beyond_the_limit_is_too_large(tmp_path: Path) -> None:
    adapter = careful(trae.ADAPTER, replace(V2, max_value_bytes=100))
    store(window(tmp_path), {KEY: {"list": [talk(ASK)]}, "ChatStore": {"list": []}})
    (candidate,) = scan(tmp_path, adapter)
    with pytest.raises(ParseError, match="too large"):
        adapter._parse(candidate, config(tmp_path))


@pytest.mark.parametrize("kind", ["garbage", "folder", "no table"])
def test_a_damaged_database_is_a_candidate_that_fails(tmp_path: Path, kind: str) -> None:
    path = store(window(tmp_path), {})
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "garbage":
        path.write_bytes(b"garbage" * 1000)
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE other (key)")
    store(window(tmp_path, "x"), {KEY: {"list": [talk(ASK)]}})
    good, bad = scan(tmp_path)
    assert (good.id, bad.id) == ("s", "unreadable@Trae/w")
    assert failure(bad, tmp_path)


def test_messages_of_an_unknown_shape_are_an_unknown_layout(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="unknown layout: messages is str"):
        parse_value(tmp_path, {"sessionId": "s", "messages": "text"})


def test_reports_can_be_switched_off(tmp_path: Path) -> None:
    modular(tmp_path, b"\x8f" * 32)
    store(window(tmp_path), {KEY: "{"})
    assert scan(tmp_path, careful(trae.ADAPTER, replace(V2, report_unreadable=False))) == []


# The CLI


def session(home: Path, product: str = ".trae", text: str = "hello") -> Path:
    path = home / product / "cli/sessions/2026/rollout-2026-01-01T00-00-00-0190aaaa-0000-7000-8000-00000000000d.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    payload = {"type": "user_message", "message": text}
    line = {"timestamp": "2026-01-01T00:00:00.000Z", "type": "event_msg", "payload": payload}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    return path


def test_sessions_of_the_cli_are_read_as_codex_reads_them(tmp_path: Path) -> None:
    session(tmp_path)
    session(tmp_path, ".trae-cn", "ni hao")
    id = "0190aaaa-0000-7000-8000-00000000000d"
    corpus = cnb.parse(cnb.scan("trae@2", config=config(tmp_path)), config=config(tmp_path))
    assert corpus.messages["content"].to_list() == ["hello", "ni hao"]
    assert [(c.source, c.id) for c in corpus] == [("trae", id), ("trae", f"{id}@.trae-cn")]


def test_a_session_that_is_gone_is_an_error_of_this_source(tmp_path: Path) -> None:
    path = session(tmp_path)
    (candidate,) = scan(tmp_path)
    path.unlink()
    assert failure(candidate, tmp_path).startswith(f"trae: {path}: ")


def test_sessions_are_left_out_where_a_folder_is_configured(tmp_path: Path) -> None:
    session(tmp_path)
    user(tmp_path).mkdir(parents=True)
    assert CAREFUL._scan(config(tmp_path, folders={"trae": user(tmp_path)})) == []


# Messages


def test_steps_keep_their_order_with_text_reasoning_and_calls(tmp_path: Path) -> None:
    steps = (
        {"thought": "Look.", "toolName": "view_files", "reasoningContent": "Why", "params": {"p": 1}, "result": "r"},
        {"toolName": "run_command", "params": "ls", "result": {"exit": 1}, "status": "failed", "toolCallId": "c"},
        {"thought": "Done ```", "toolName": "finish"},
    )
    got = said(tmp_path, task(*steps, proposal="Go.", proposalReasoningContent="First"))
    assert [(m.content, m.thinking, m.has_tool_use, m.has_code) for m in got] == [
        ("Go.", "First", False, False),
        ("Look.", "Why", True, False),
        ("", None, True, False),
        ("Done ```", None, False, True),
    ]
    assert [m.details.tools for m in got if m.details] == [
        (cnb.ToolCall("view_files", '{"p":1}', "r"),),
        (cnb.ToolCall("run_command", "ls", '{"exit":1}', "c", True),),
    ]
    assert [m.id for m in got] == ["s/0", "s/0#2", "s/0#3", "s/0#4"]
    assert [m.parent_uuid for m in got] == [None, "s/0", "s/0#2", "s/0#3"]


def test_steps_together_are_one_message(tmp_path: Path) -> None:
    adapter = careful(trae.ADAPTER, replace(V2, steps_apart=False))
    steps = ({"thought": "a", "toolName": "x", "reasoningContent": "r"}, {"thought": "b", "toolName": "finish"})
    parsed = parse_value(tmp_path, talk(task(*steps, proposal="p") | {"content": "b"}), adapter)
    (got,) = parsed.conversation.messages
    assert (got.content, got.thinking, got.has_tool_use) == ("p\n\na\n\nb", "r", True)
    assert [f.status for f in parsed.fates] == ["metadata", "merged", "kept", "merged", "merged"]


@pytest.mark.parametrize("content", ["p", "a", "b", "p\n\nb", "p\n\na\n\nb"])
def test_a_final_text_that_says_the_same_again_is_merged(tmp_path: Path, content: str) -> None:
    steps = ({"thought": "a", "toolName": "x"}, {"thought": "b", "toolName": "finish"})
    parsed = parse_value(tmp_path, talk({**task(*steps, proposal="p"), "content": content}))
    assert [m.content for m in parsed.conversation.messages] == ["p", "a", "b"]
    assert [(f.status, f.reason) for f in parsed.fates if f.kind == "assistant"] == [("merged", "says the same")]


def test_a_final_text_and_the_reasoning_before_it_are_one_message(tmp_path: Path) -> None:
    (got,) = said(tmp_path, {**ANSWER, "agentTaskContent": {"proposalReasoningContent": "Hm."}})
    assert (got.content, got.thinking, got.id) == ("hi", "Hm.", "m")


@pytest.mark.parametrize(
    ("message", "contents"),
    [
        ({"agentTaskContent": "text"}, ["text"]),
        ({"agentTaskContent": {"text": "t"}}, ["t"]),
        ({"agentTaskContent": {"content": ["a", {"text": "b"}]}}, ["a\nb"]),
        ({"agentTaskContent": {"guideline": "plan"}}, ["plan"]),
        (
            {"agentTaskContent": {"guideline": {"thought": "g", "planItems": {"2": "x", "1": {"thought": "y"}}}}},
            ["g", "x", "y"],
        ),
        ({"agentTaskContent": {"guideline": {"thought": "g", "planItems": [{"thought": "g"}]}}}, ["g"]),
        (task({"toolName": "finish", "params": {"summary": "sum"}}), ["sum"]),
        (task({"toolName": "finish", "params": '{"summary":"sum"}'}), ["sum"]),
        (task({"toolName": "finish", "params": "sum"}), ["sum"]),
        (task({"thought": "a", "content": "b"}), ["a\n\nb"]),
        ({"content": {"value": {"text": "deep"}}}, ["deep"]),
        ({"content": 5}, ["5"]),
    ],
)
def test_older_shapes_of_an_answer(tmp_path: Path, message: Any, contents: list[str]) -> None:
    assert [m.content for m in said(tmp_path, {"role": "assistant", **message})] == contents


@pytest.mark.parametrize(
    ("role", "type"),
    [("human", "user"), ("User", "user"), ("ai", "assistant"), ("agent", "assistant"), ("system", "system")],
)
def test_roles_are_read_as_what_they_mean_and_kept_as_written(tmp_path: Path, role: str, type: str) -> None:
    (got,) = said(tmp_path, {"role": role, "content": "x"})
    assert (got.type, got.role) == (type, role)


def test_a_missing_turn_number_keeps_the_order_of_the_list(tmp_path: Path) -> None:
    rows = [{"role": "user", "content": c} for c in "abc"]
    numbered = [row | {"turnIndex": n} for row, n in zip(rows, (2, 1, 1), strict=True)]
    assert "".join(m.content for m in said(tmp_path, *numbered)) == "bca"
    assert "".join(m.content for m in said(tmp_path, *numbered[:2], rows[2])) == "abc"


def test_answers_name_the_prompt_of_their_turn_and_ids_are_unique(tmp_path: Path) -> None:
    got = said(tmp_path, ASK, {**ANSWER, "agentMessageId": None}, ANSWER, ANSWER, {"role": "user", "content": "x"})
    assert [m.id for m in got] == ["t/user", "t/assistant", "m", "m#2", "s/4"]
    assert [m.parent_uuid for m in got] == [None, "t/user", "t/user", "t/user", None]
    assert {m.details.request_id for m in got if m.details} == {"t"}


def test_facts_of_an_answer(tmp_path: Path) -> None:
    more = {"modelInfo": {"config_name": "c"}, "status": "canceled", "agentType": "builder"}
    parsed = parse_value(
        tmp_path, talk({**ANSWER, **more}, {**ANSWER, "model": {"name": "n"}}, ANSWER, title="T", model="d")
    )
    details = [m.details for m in parsed.conversation.messages]
    assert [d.model for d in details if d] == ["c", "n", "d"]
    assert details[0] is not None
    assert details[0].marks == ("agent builder", "status canceled")
    assert parsed.conversation.slug == "T"


def test_attachments_are_named_and_carry_a_prompt_without_text(tmp_path: Path) -> None:
    media = [{"type": "image", "name": "a.png"}, {"type": "image", "url": "data:image/png;base64,AAAA"}, {}]
    (got,) = said(tmp_path, {"role": "user", "content": "", "multiMedia": media, "files": ["b.py"]})
    assert got.details is not None
    assert (got.content, got.details.marks) == ("", ("image a.png", "image image/png 4 characters", "file b.py"))


def test_times_are_the_records_own_or_missing(tmp_path: Path) -> None:
    rows = [{"role": "user", "content": "x", "timestamp": t} for t in (TIME + 9, TIME, None, "x", 1_700_000_000, "0")]
    conversation = parse_value(tmp_path, talk(*rows)).conversation
    first, second = "2023-11-14T22:13:20.009Z", "2023-11-14T22:13:20.000Z"
    assert [m.timestamp for m in conversation.messages] == [first, second, None, None, second, None]
    assert (conversation.first_message_at, conversation.last_message_at) == (second, first)


@pytest.mark.parametrize(
    ("id", "times", "first", "last"),
    [
        ("s", {"createdAt": None}, None, None),
        (
            "s",
            {"createdAt": "2026-01-01T00:00:00Z", "updatedAt": 1e300},
            "2026-01-01T00:00:00.000Z",
            "2026-01-01T00:00:00.000Z",
        ),
        ("665000000000000000000001", {"createdAt": {}}, "2024-05-24T02:48:32.000Z", "2024-05-24T02:48:32.000Z"),
    ],
)
def test_times_of_a_conversation_whose_messages_have_none(
    tmp_path: Path, id: str, times: Any, first: str | None, last: str | None
) -> None:
    store(window(tmp_path), {KEY: {"list": [talk(ASK, sessionId=id, **times)]}})
    (candidate,) = scan(tmp_path)
    conversation = CAREFUL._parse(candidate, config(tmp_path)).conversation
    assert (conversation.first_message_at, conversation.last_message_at) == (first, last)


@pytest.mark.parametrize(
    ("value", "time"),
    [(True, None), (-1, None), (0, None), (1e300, None), ("1700000000000", "2023-11-14T22:13:20.000Z"), ([], None)],
)
def test_odd_times(value: Any, time: str | None) -> None:
    assert time_of(value) == time


# Fates


@pytest.mark.parametrize(
    ("message", "kind", "reason"),
    [
        (None, "message", "not an object"),
        ({"role": "tool", "content": "x"}, "tool", "unknown role"),
        ({"content": "x"}, "message", "unknown role"),
        ({"role": {}, "content": "x"}, "message", "unknown role"),
        ({"role": "user", "content": " "}, "user", "no content"),
        ({"role": "assistant", "content": [[]], "agentTaskContent": {}}, "assistant", "no content"),
    ],
)
def test_lost_records_say_why_and_cost_no_other(tmp_path: Path, message: Any, kind: str, reason: str) -> None:
    parsed = parse_value(tmp_path, talk(message, ASK))
    assert [m.content for m in parsed.conversation.messages] == ["hello"]
    got = parsed.fates[1]
    assert (got.status, got.kind, got.reason, got.key) == ("dropped", kind, reason, f"{KEY}#/list/0/messages/0")
    assert got.head


def test_unknown_parts_are_lost_by_name(tmp_path: Path) -> None:
    step = {"thought": "a", "chart": {"x": 1}, "flag": True}
    answer = task(step, diagram="d") | {"extra": 1}
    answer["agentTaskContent"]["guideline"]["notes"] = ["n"]
    fates = parse_value(tmp_path, talk(answer)).fates
    lost = [(f.kind, f.reason) for f in fates if f.status == "dropped"]
    why = "unknown kind (tool version unknown)"
    assert lost == [("agentTaskContent.diagram", why), ("guideline.notes", why), ("planItem.chart", why)]
    assert [f.note for f in fates if f.kind == "assistant"] == ["other fields: extra"]


def test_the_raw_text_behind_a_message_is_found_by_its_key(tmp_path: Path) -> None:
    parsed = parse_value(tmp_path, talk(ASK, task({"thought": "a/b", "toolName": "x"})))
    document = {"list": [talk(ASK, task({"thought": "a/b", "toolName": "x"}))]}
    found = []
    for fate in parsed.fates:
        if fate.status == "kept":
            value: Any = document
            for step in (fate.key or "").partition("#")[2].split("/")[1:]:
                value = value[int(step)] if isinstance(value, list) else value[step]
            found.append(value.get("content") or value.get("thought"))
    assert found == ["hello", "a/b"]


# The write-ahead log, and leaving no trace


def test_what_only_the_log_holds_is_seen_and_nothing_changes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / "log" / "home", home)
    before = {str(p): p.read_bytes() for p in home.rglob("*") if p.is_file()}
    (candidate,) = scan(home)
    assert candidate.file_size == sum(len(data) for name, data in before.items() if "state.vscdb" in name)
    assert len(CAREFUL._parse(candidate, config(home)).conversation.messages) == 4
    assert len(scan(home, careful(trae.ADAPTER, replace(V2, read_log=False)))) == 1
    assert {str(p): p.read_bytes() for p in home.rglob("*") if p.is_file()} == before


def test_a_store_that_changes_is_read_again(tmp_path: Path) -> None:
    store(window(tmp_path), {KEY: {"list": [talk(ASK)]}})
    (candidate,) = scan(tmp_path)
    for text in ("one", "two"):
        with closing(sqlite3.connect(candidate.file_path)) as connection, connection:
            value = json.dumps({"list": [talk({**ASK, "content": text})]})
            connection.execute("UPDATE ItemTable SET value = ?", (value,))
        assert CAREFUL._parse(candidate, config(tmp_path)).conversation.messages[0].content == text


@pytest.mark.parametrize("scenario", ["products", "answers", "log", "cli"])
def test_the_careful_rules_find_what_the_pinned_ones_lose(scenario: str) -> None:
    here = config(FIXTURES / scenario / "home")
    pinned, later = (cnb.parse(cnb.scan(v, config=here), config=here) for v in ("trae@1", "trae@2"))
    assert later.messages.height > pinned.messages.height
    assert {c.id for c in pinned} <= {c.id for c in later}


def test_the_frames_take_everything(tmp_path: Path) -> None:
    store(window(tmp_path), {KEY: {"list": [talk(ASK, task({"toolName": "a\ud83d", "params": "\ud83d"}))]}})
    corpus = cnb.parse(cnb.scan("trae@2", config=config(tmp_path)), config=config(tmp_path))
    assert corpus.messages["tool_name"].to_list() == [None, ["a\ufffd"]]
    assert corpus.conversations.height == 1
    assert corpus.fates.height == 4


# Any JSON


def checked(parsed: Parsed) -> Parsed:
    """Every message is kept once, every record and part has one fate."""
    assert sorted(f.message_index for f in parsed.fates if f.status == "kept") == list(
        range(len(parsed.conversation.messages))
    )
    assert len({f.key for f in parsed.fates}) == len(parsed.fates)
    assert all(f.reason for f in parsed.fates if f.status != "kept")
    messages = parsed.conversation.messages
    assert len({m.id for m in messages}) == len(messages)
    assert cnb.content_hash(parsed.conversation)
    return parsed


@given(st.lists(message_values | anything, max_size=4), anything)
@settings(max_examples=200)
def test_every_record_has_one_fate_whatever_it_holds_and_the_clock_has_no_say(
    tmp_path: Path, messages: list[Any], created_at: Any
) -> None:
    path = store(window(tmp_path), {KEY: {"list": [{"sessionId": "s", "createdAt": created_at, "messages": messages}]}})
    candidate = Candidate("trae", "s", str(path), 1, "", "")
    if not messages:
        return
    results = [CAREFUL._parse(candidate, config(tmp_path, clock)) for clock in (1, 10**12)]
    assert results[0] == results[1]
    checked(results[0])
    records = [f"{KEY}#/list/0/messages/{at}" for at in range(len(messages))]
    assert [f.key for f in results[0].fates if f.key in records] == records


switches = st.fixed_dictionaries(
    {name: st.booleans() for name in V2.__struct_fields__ if isinstance(getattr(V2, name), bool)}
)


@given(switches, st.lists(message_values, min_size=1, max_size=3))
def test_repairs_can_be_switched_one_by_one(tmp_path: Path, on: dict[str, bool], messages: list[Any]) -> None:
    adapter = careful(trae.ADAPTER, replace(V2, **on))
    store(window(tmp_path), {KEY: {"list": [talk(*messages)]}})
    for candidate in scan(tmp_path, adapter):
        parsed = adapter._parse(candidate, config(tmp_path))
        kept = sorted(f.message_index for f in parsed.fates if f.status == "kept")
        assert kept == list(range(len(parsed.conversation.messages)))


conversation_values = st.fixed_dictionaries(
    {},
    optional={
        "sessionId": st.sampled_from(["a", "a#2", "a@Trae/w", "b"]) | texts | anything,
        "id": anything,
        "createdAt": anything,
        "updatedAt": anything,
        "title": anything,
        "model": anything,
        "messages": st.lists(message_values, max_size=2) | anything,
    },
)
stores = st.fixed_dictionaries({}, optional={"list": st.lists(conversation_values | anything, max_size=3) | anything})


@given(stores | anything, stores | json_values, json_values)
def test_any_store_gives_candidates_that_parse_or_say_why(tmp_path: Path, one: Any, two: Any, folder: Any) -> None:
    store(window(tmp_path), {KEY: json.dumps(one), "ChatStore": json.dumps(two)}, folder)
    store(user(tmp_path) / "globalStorage/state.vscdb", {KEY: json.dumps(one)}, None)
    found = scan(tmp_path)
    assert len({c.id for c in found}) == len(found)
    for candidate in found:
        try:
            parsed = CAREFUL._parse(candidate, config(tmp_path))
        except ParseError:
            continue
        assert parsed.conversation.id == candidate.id
        assert parsed.conversation.messages or parsed.fates[1:]


@given(json_values)
def test_projects_and_labels_of_anything_are_text(value: Any) -> None:
    assert isinstance(project_of(value), str)
    assert isinstance(label_of("x", value), str)


@pytest.mark.parametrize("depth", [500, 100_000])
def test_a_value_that_is_nested_deeply_costs_only_its_record(tmp_path: Path, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    step = '{"toolName":"x","params":DEEP,"result":DEEP}'
    more = '{"role":"user","content":DEEP},{"role":"user","content":"x","files":DEEP},DEEP'
    answer = f'{{"role":"assistant","agentTaskContent":{{"guideline":{{"planItems":[{step}]}},"more":DEEP}}}}'
    text = f'{{"list":[{{"sessionId":"s","title":DEEP,"messages":[{json.dumps(ASK)},{answer},{more}]}}]}}'
    store(window(tmp_path), {KEY: text.replace("DEEP", deep)})
    (candidate,) = scan(tmp_path)
    parsed = checked(CAREFUL._parse(candidate, config(tmp_path)))
    assert [m.content for m in parsed.conversation.messages] == ["hello", "", "x"]


def test_a_text_of_12_million_characters_is_read(tmp_path: Path) -> None:
    (got,) = said(tmp_path, {"role": "user", "content": "x" * 12_000_000})
    assert len(got.content) == 12_000_000


@pytest.mark.parametrize("form", ["blob", "bom", "nul", "latin"])
def test_values_in_odd_bytes_are_read(tmp_path: Path, form: str) -> None:
    data = json.dumps({"list": [talk({**ASK, "content": "é\ud83d"})]}, ensure_ascii=form == "blob")
    raw = data.encode("utf-8", "surrogatepass")
    value = {"bom": b"\xef\xbb\xbf" + raw, "nul": raw + b"\0" * 9, "latin": raw.replace("é".encode(), b"\xe9")}.get(
        form, raw
    )
    store(window(tmp_path), {KEY: value})
    (candidate,) = scan(tmp_path)
    content = CAREFUL._parse(candidate, config(tmp_path)).conversation.messages[0].content
    assert content[0] == ("\ufffd" if form == "latin" else "é")
