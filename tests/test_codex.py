from __future__ import annotations

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values, texts

import crystal_nb as cnb
from crystal_nb import ecma
from crystal_nb.adapters.codex import candidate_id

TIME = "2026-01-01T00:00:00.000Z"


def lines(*records) -> bytes:
    return b"".join(json.dumps({"timestamp": TIME, "type": t, "payload": p}).encode() + b"\n" for t, p in records)


def prompt(text):
    return "event_msg", {"type": "user_message", "message": text}


def answer(text):
    return "event_msg", {"type": "agent_message", "message": text}


def item(*texts, role="assistant"):
    return "response_item", {
        "type": "message",
        "role": role,
        "content": [{"type": "output_text", "text": t} for t in texts],
    }


def call(kind="function_call"):
    return "response_item", {"type": kind, "name": "shell"}


def said(parsed) -> list[tuple[str, str]]:
    return [(m.type[0], m.content) for m in parsed.conversation.messages]


CASES = {
    "marker": ([prompt("ctx\n## My request for Codex:\n  do it ")], [("u", "do it")]),
    "marker with CRLF": ([prompt("## My request for Codex:\r\nno")], [("u", "## My request for Codex:\r\nno")]),
    "marker and nothing": ([prompt("## My request for Codex:\n  ")], []),
    "outer white space": ([answer(" hi\n"), item(" hi\n")], [("a", " hi\n"), ("a", "hi")]),
    "event then item": ([answer("hi"), item("hi")], [("a", "hi")]),
    "item then event": ([item("hi"), answer("hi")], [("a", "hi"), ("a", "hi")]),
    "same answer later": ([item("hi"), prompt("x"), item("hi")], [("a", "hi"), ("u", "x")]),
    "parts": ([item("a", "", "c")], [("a", "a\nc")]),
    "other role": ([item("x", role="user")], []),
}


@pytest.mark.parametrize("case", CASES)
def test_messages(parse_file, case):
    records, wanted = CASES[case]
    assert said(parse_file("codex", lines(*records))) == wanted


def test_odd_items(parse_file):
    content = [
        {"type": "output_text", "text": 7},
        {"type": "text", "text": "no"},
        {"type": "output_text", "text": "x"},
        5,
    ]
    record = ("response_item", {"type": "message", "role": "assistant", "content": content})
    assert said(parse_file("codex", lines(record))) == [("a", "7\nx")]


def test_a_call_flags_the_answer_before_it_and_is_merged(parse_file):
    parsed = parse_file(
        "codex", lines(call(), answer("a"), prompt("x"), call("custom_tool_call"), call("web_search_call"))
    )
    assert [m.has_tool_use for m in parsed.conversation.messages] == [True, False]
    assert [f.status for f in parsed.fates] == ["dropped", "kept", "kept", "merged", "dropped"]
    assert parsed.fates[3].message_index == 0


def test_the_last_meta_wins(parse_file):
    first = ("session_meta", {"id": "A", "cwd": "/a", "git": {"branch": "b1"}})
    second = ("session_meta", {"id": "B", "cwd": "", "git": {"branch": ""}})
    conversation = parse_file("codex", lines(first, second)).conversation
    assert (conversation.id, conversation.cwd, conversation.git_branch) == ("B", "/a", "b1")


def test_the_project_is_the_last_part_of_the_folder(parse_file):
    conversation = parse_file("codex", lines(("session_meta", {"cwd": "C:\\Users\\x\\"}))).conversation
    assert (conversation.project_dir, conversation.project_name) == ("C:\\Users\\x\\", "x")


ABORTS = [
    prompt({}),
    prompt(5),
    answer(True),
    ("response_item", {"type": "message", "role": "assistant", "content": {"a": 1}}),
    ("response_item", {"type": "message", "role": "assistant", "content": [None]}),
]


@pytest.mark.parametrize("record", ABORTS)
def test_where_the_pinned_parser_throws_the_file_fails_with_its_place(parse_file, record):
    with pytest.raises(cnb.ParseError, match=r"line 2 \(byte"):
        parse_file("codex", lines(prompt("x"), record))


odd_kinds = st.none() | st.booleans() | st.integers(0, 1) | st.sampled_from([1.0, "", "1", "true", "a", [], {"a": 1}])


@given(st.lists(st.tuples(odd_kinds, odd_kinds), min_size=1, max_size=5))
def test_what_is_not_imported_is_named_as_its_own_kinds_are(parse_file, pairs):
    """Whatever kinds were seen before: 1, 1.0 and true are one key of a dict."""
    fates = parse_file("codex", lines(*[(kind, {"type": inner}) for kind, inner in pairs])).fates
    named = [[ecma.to_text("" if v is None else v) for v in pair] for pair in pairs]
    assert [f.kind for f in fates] == ["/".join(pair).rstrip("/") for pair in named]


def test_ids_are_new_at_each_parse(parse_file):
    data = lines(prompt("x"))
    assert (
        parse_file("codex", data).conversation.messages[0].id != parse_file("codex", data).conversation.messages[0].id
    )


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("rollout-2026-01-01T00-00-00-aaa_bbb.jsonl", "aaa_bbb"),
        ("rollout-x.jsonl", "rollout-x"),
        ("rollout-pre-rollout-2026-01-01T00-00-00-e.jsonl", "e"),
        ("rollout-2026-01-01T00-00-00-.jsonl", "rollout-2026-01-01T00-00-00-"),
    ],
)
def test_ids_in_file_names(name, id):
    assert candidate_id(name) == id


payloads = st.fixed_dictionaries(
    {"type": st.sampled_from(["user_message", "agent_message", "message", "function_call"]) | json_values},
    optional=dict.fromkeys(("id", "cwd", "git", "message", "content"), texts | json_values)
    | {"role": st.just("assistant")},
)
any_line = st.fixed_dictionaries(
    {"type": st.sampled_from(["session_meta", "event_msg", "response_item"]) | json_values},
    optional={"timestamp": json_values, "payload": payloads | json_values},
).map(lambda record: json.dumps(record).encode() + b"\n")


@given(st.lists(any_line | st.binary().map(lambda b: b + b"\n")).map(b"".join))
def test_any_bytes_give_a_fate_per_line_or_a_parse_error(parse_file, data):
    try:
        parsed = parse_file("codex", data)
    except cnb.ParseError:
        return
    assert [f.line for f in parsed.fates] == list(range(1, len(parsed.fates) + 1))
    assert sum(f.size for f in parsed.fates) == len(data)
    cnb.content_hash(parsed.conversation)


@st.composite
def answer_pairs(draw):
    """An event's text and an item's: mostly equal but for outer white space or one character."""
    text = draw(texts)
    outer = st.sampled_from(["", "", " ", "\n", "\ufeff", "\x85", "x", "\ud83d"])
    return draw(outer) + text + draw(outer), draw(outer) + text + draw(outer)


def written(record, escaped: bool) -> bytes:
    kind, payload = record
    line = {"timestamp": TIME, "type": kind, "payload": payload}
    return json.dumps(line, ensure_ascii=escaped).encode("utf-8", "surrogatepass") + b"\n"


@given(st.lists(answer_pairs(), max_size=4), st.booleans())
def test_an_item_is_merged_when_its_trimmed_text_is_the_last_answer(parse_file, pairs, escaped):
    data, wanted, last = b"", [], None
    for event, block in pairs:
        lone, usual = item(block), item(block, "")  # an empty block more adds nothing to the text
        data += written(answer(event), escaped) + written(lone, escaped) + written(usual, escaped)
        seen = (lambda t: t) if escaped else (lambda t: t.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
        event, block = ecma.pair_surrogates(seen(event)), ecma.trim(ecma.pair_surrogates(seen(block)))
        if ecma.trim(event):
            wanted.append(last := event)
        if block and block != last:
            wanted.append(last := block)
    assert [m.content for m in parse_file("codex", data).conversation.messages] == wanted


@given(st.lists(st.sampled_from(["#", "##", " ", "## My request for Codex:", "\n", "x", "é"])).map("".join))
def test_a_prompt_is_what_follows_the_first_marker(parse_file, text):
    before, marker, after = text.partition("## My request for Codex:\n")
    wanted = ecma.trim(after if marker else before)
    assert said(parse_file("codex", lines(prompt(text)))) == ([("u", wanted)] if wanted else [])


@pytest.fixture
def sessions(tmp_path):
    day = tmp_path / ".codex" / "sessions" / "2026"
    day.mkdir(parents=True)
    (day / "rollout-2026-01-01T00-00-00-a.jsonl").write_bytes(lines(prompt("x"), answer("y")))
    return tmp_path / ".codex" / "sessions"


def test_links_to_folders_are_not_entered_but_linked_files_count(tmp_path, sessions):
    (sessions / "again").symlink_to(sessions / "2026")
    (sessions / "rollout-linked.jsonl").symlink_to(sessions / "2026" / "rollout-2026-01-01T00-00-00-a.jsonl")
    found = cnb.scan("codex", config=cnb.Config(home=tmp_path))
    assert found["id"].to_list() == ["a", "rollout-linked"]


def test_the_file_list_is_kept_for_a_while_unless_switched_off(tmp_path, sessions):
    kept, fresh = cnb.Config(home=tmp_path), cnb.Config(home=tmp_path, cache_seconds=0)
    assert len(cnb.scan("codex", config=kept)) == 1
    (sessions / "rollout-new.jsonl").write_bytes(b"x" * 60)
    assert len(cnb.scan("codex", config=kept)) == 1
    assert len(cnb.scan("codex", config=fresh)) == 2


def test_a_file_that_vanished_is_left_out(tmp_path, sessions):
    config = cnb.Config(home=tmp_path)
    assert cnb.get_adapter("codex")._detect(config).conversation_count == 1
    next(sessions.rglob("rollout-*")).unlink()
    assert cnb.scan("codex", config=config).is_empty()


def test_the_title_is_the_last_name_in_the_index_of_the_home(tmp_path, sessions):
    index = tmp_path / ".codex" / "session_index.jsonl"
    index.write_text(
        '{"id":"a","thread_name":"old"}\n{"id":"a","thread_name":""}\nnull\nx\n{"id":"a","thread_name":"new"}'
    )
    config = cnb.Config(home=tmp_path)
    assert cnb.parse(cnb.scan("codex", config=config), config=config)["codex", "a"].slug == "new"


def test_a_changed_index_is_read_again(tmp_path, sessions):
    index = tmp_path / ".codex" / "session_index.jsonl"
    config = cnb.Config(home=tmp_path)
    for name in ("one", "another"):
        index.write_text(f'{{"id":"a","thread_name":"{name}"}}')
        assert cnb.parse(cnb.scan("codex", config=config), config=config)["codex", "a"].slug == name


def test_files_below_50_bytes_are_not_listed(tmp_path, sessions):
    for size in (49, 50):
        (sessions / f"rollout-{size}.jsonl").write_bytes(b"x" * size)
    assert cnb.scan("codex", config=cnb.Config(home=tmp_path, cache_seconds=0))["id"].to_list() == ["a", "rollout-50"]


def test_ids_are_version_4_uuids(parse_file):
    ids = [m.id for m in parse_file("codex", lines(*[prompt(str(i)) for i in range(100)])).conversation.messages]
    assert len(set(ids)) == 100
    assert all(
        uuid.UUID(id).version == 4 and uuid.UUID(id).variant == uuid.RFC_4122 and str(uuid.UUID(id)) == id for id in ids
    )


def test_a_cwd_that_is_no_text_fails_the_file(parse_file):
    with pytest.raises(cnb.ParseError, match="cwd is no text"):
        parse_file("codex", lines(("session_meta", {"cwd": 5})))
