from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values, texts

import crystal_nb as cnb

NOON = 1767225600000


def session(*requests, **more) -> bytes:
    return json.dumps(
        {"version": 3, "sessionId": "inner", "customTitle": "T", "requests": list(requests), **more}
    ).encode()


def turn(text="hi", response=(), **more):
    return {"requestId": "r1", "timestamp": NOON, "message": {"text": text}, "response": list(response), **more}


def messages(parsed) -> list[tuple[str, str]]:
    return [(m.id, m.content) for m in parsed.conversation.messages]


def test_a_turn_is_a_prompt_and_an_answer_one_ms_later(parse_file):
    parsed = parse_file("copilot", session(turn(response=[{"value": "yes"}])))
    assert messages(parsed) == [("r1", "hi"), ("resp-r1", "yes")]
    assert [m.timestamp[-5:] for m in parsed.conversation.messages] == [".000Z"[-5:], ".001Z"[-5:]]
    assert (parsed.conversation.id, parsed.conversation.slug) == ("inner", "T")


def test_parts_are_joined_and_the_rest_is_dropped_with_its_kind(parse_file):
    parts = [
        {"kind": "thinking", "value": ["a", "b"]},
        {"value": "one ```"},
        {"kind": "inlineReference"},
        {"kind": "text", "value": "two"},
        {"kind": "prepareToolInvocation"},
        {"kind": None, "value": "x"},
        {"kind": "markdownContent", "content": {"value": "lost"}},
    ]
    parsed = parse_file("copilot", session(turn(response=parts)))
    answer = parsed.conversation.messages[1]
    assert (answer.content, answer.thinking, answer.has_code, answer.has_tool_use) == (
        "one ```\ntwo",
        "a,b",
        True,
        True,
    )
    assert [f.status for f in parsed.fates[1:]] == [
        "kept",
        "merged",
        "dropped",
        "merged",
        "merged",
        "dropped",
        "dropped",
    ]
    assert parsed.fates[7].kind == "markdownContent"
    assert parsed.fates[7].excerpt.startswith('{"kind": "markdownContent"')


def test_a_tool_only_answer_vanishes(parse_file):
    parsed = parse_file("copilot", session(turn(response=[{"kind": "toolInvocationSerialized"}])))
    assert messages(parsed) == [("r1", "hi")]
    assert parsed.fates[1].reason == "answer without text or thinking"


EMPTY = {
    "not JSON": b"{",
    "BOM": b"\xef\xbb\xbf" + session(turn()),
    "null": b"null",
    "number": b"5",
    "no requests": session(),
    "requests is text": session(turn(), requests="abc"),
    "null request": session(None),
    "no timestamp": session({"message": {"text": "x"}}),
    "number text": session(turn(text=5)),
    "null part": session(turn(response=[None])),
    "number part value": session(turn(response=[{"value": 5}])),
    "object response": session(turn() | {"response": {"length": 1}}),
    "text timestamp": session(turn(response=[{"value": "x"}], timestamp="2026-01-01T00:00:00.000Z")),
    "other kind": json.dumps({"kind": 1, "v": {}}).encode(),
    "null kind": json.dumps({"kind": None, "requests": [turn()]}).encode(),
    "false kind": json.dumps({"kind": False, "requests": [turn()]}).encode(),
}


@pytest.mark.parametrize("case", EMPTY)
def test_whatever_throws_gives_an_empty_conversation_and_a_reason(parse_file, case):
    parsed = parse_file("copilot", EMPTY[case])
    assert parsed.conversation.messages == ()
    assert (parsed.conversation.id, parsed.conversation.slug) == ("session", None)
    (fate,) = parsed.fates
    assert (fate.status, fate.line, fate.size) == ("dropped", 1, len(EMPTY[case]))
    assert fate.reason


def test_only_the_first_line_of_a_log_is_read(parse_file):
    log = json.dumps({"kind": 0, "v": json.loads(session(turn()))}).encode() + b"\r\n" + b'{"kind":1}\r{"kind":2}\n'
    parsed = parse_file("copilot", log, "session.jsonl")
    assert messages(parsed) == [("r1", "hi")]
    assert [(f.line, f.status) for f in parsed.fates[1:]] == [(2, "dropped"), (3, "dropped")]
    assert parsed.fates[2].offset == len(log) - len(b'{"kind":2}\n')


def test_a_null_time_is_1970_and_a_missing_id_is_made_of_it(parse_file):
    request = {"timestamp": None, "message": {"text": "x"}, "response": [{"value": "y"}]}
    parsed = parse_file("copilot", session(request))
    assert messages(parsed) == [("user-null", "x"), ("resp-null", "y")]
    assert parsed.conversation.messages[1].timestamp == "1970-01-01T00:00:00.001Z"


def test_a_part_too_deep_to_be_written_again_costs_nothing_else(parse_file):
    deep = '{"kind":"x","value":' + "[" * 5000 + "]" * 5000 + "}"
    surrogate = json.dumps({"value": "a\ud83d"})
    data = session(turn(response=["DEEP", "SURROGATE"])).decode()
    parsed = parse_file("copilot", data.replace('"DEEP"', deep).replace('"SURROGATE"', surrogate).encode())
    assert messages(parsed) == [("r1", "hi"), ("resp-r1", "a\ud83d")]
    assert [(f.status, f.kind) for f in parsed.fates[1:]] == [("dropped", "x"), ("kept", "text")]


parts = st.fixed_dictionaries(
    {}, optional={"kind": st.sampled_from(["text", "thinking", "undoStop"]) | json_values, "value": texts | json_values}
)
requests = st.fixed_dictionaries(
    {"timestamp": st.just(NOON) | json_values},
    optional={
        "requestId": json_values,
        "message": st.fixed_dictionaries({"text": texts | json_values}) | json_values,
        "response": st.lists(parts | json_values, max_size=3) | json_values,
    },
)
documents = st.fixed_dictionaries(
    {"requests": st.lists(requests | json_values, max_size=3) | json_values},
    optional={"sessionId": json_values, "customTitle": json_values},
)


@given(documents.map(lambda d: json.dumps(d).encode()) | st.binary(), st.sampled_from(["s.json", "s.jsonl"]))
def test_any_bytes_give_a_conversation_with_fates_and_never_an_error(parse_file, data, name):
    parsed = parse_file("copilot", data, name)
    assert parsed.fates or parsed.conversation.messages == ()
    assert len({f.key or f.line for f in parsed.fates}) == len(parsed.fates)
    kept = {f.message_index for f in parsed.fates if f.status == "kept"}
    assert kept == set(range(len(parsed.conversation.messages)))
    cnb.content_hash(parsed.conversation)


@pytest.fixture
def user(tmp_path):
    return tmp_path / ".config" / "Code" / "User"


def put(path, size=200):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def found(tmp_path, **config):
    return cnb.scan("copilot", config=cnb.Config(home=tmp_path, platform="linux", cache_seconds=0, **config))[
        "id"
    ].to_list()


def test_both_forms_are_listed_json_first_small_and_other_names_not(tmp_path, user):
    chats = user / "workspaceStorage" / "w" / "chatSessions"
    for name, size in {"a.jsonl": 100, "a.json": 100, "b.json": 99, "c.JSON": 200, "sub/d.json": 200}.items():
        put(chats / name, size)
    put(user / "globalStorage" / "emptyWindowChatSessions" / "e.json")
    put(user / "globalStorage" / "transferredChatSessions" / "f.json")
    assert found(tmp_path) == ["a", "a", "e"]


@pytest.mark.parametrize(
    ("workspace", "project"),
    [
        ('{"folder":"file:///a%20b"}', "a b"),
        ('{"folder":"x%"}', ""),
        ("{", ""),
        ('{"folder":"vscode-remote://h/p"}', "vscode-remote://h/p"),
    ],
)
def test_the_project_is_the_window_s_folder_or_nothing(tmp_path, user, workspace, project):
    window = user / "workspaceStorage" / "w"
    put(window / "chatSessions" / "a.json")
    (window / "workspace.json").write_text(workspace)
    cands = cnb.scan("copilot", config=cnb.Config(home=tmp_path, platform="linux"))
    assert cands["project_dir"].to_list() == [project]


def test_a_file_in_place_of_the_chat_folder_hides_the_source(tmp_path, user):
    put(user / "workspaceStorage" / "w" / "chatSessions")
    config = cnb.Config(home=tmp_path, platform="linux", cache_seconds=0)
    assert cnb.get_adapter("copilot")._detect(config) is None
    with pytest.raises(cnb.ScanError, match="chatSessions"):
        cnb.get_adapter("copilot")._scan(config)
