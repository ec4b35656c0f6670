from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import json_values, texts

import crystal_nb as cnb
from crystal_nb import ecma
from crystal_nb.adapters.claude_code import (
    RawMessage,
    _holds_end_tag,
    _read_blocks,
    _read_lone_block,
    clean,
    project_name,
)
from crystal_nb.adapters.typed import TypedDecoder

TAGS = [
    "system-reminder",
    "command-name",
    "command-message",
    "command-args",
    "local-command-stdout",
    "local-command-caveat",
]
tag_soup = st.lists(
    st.sampled_from([f"<{end}{tag}>" for tag in TAGS for end in ("", "/")])
    | st.sampled_from([*"<>/ \n", "a", "é", "\ud83d", "\ude00"]),
    max_size=12,
).map("".join)


@given(tag_soup)
def test_cleaning_is_the_regular_expressions_of_the_rule(node, text):
    assert clean(ecma.pair_surrogates(text)) == node("clean", text)


@given(st.text(st.sampled_from("<</ax"), max_size=60).map(lambda text: f"<{text}"))
@example("<" * 100 + "/")
@example("</")
def test_an_end_tag_is_found_wherever_it_stands(text):
    assert _holds_end_tag(text) == ("</" in text)


def test_cleaning_many_unclosed_tags_is_not_quadratic():
    text = "<system-reminder>" * 300_000 + "<command-name>" * 300_000
    assert clean(text) == text


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("-home-a-projects-shop-api", "shop-api"),
        ("c--Users-B-Project-Web-Admin", "Web-Admin"),
        ("-a-b-projects", "b-projects"),
        ("-srv-demo", "srv-demo"),
        ("-x", "-x"),
        ("", ""),
    ],
)
def test_project_names(folder, name):
    assert project_name(folder) == name


def line(**fields) -> bytes:
    base = {
        "type": "user",
        "uuid": "u1",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": "hi"},
    }
    return json.dumps({**base, **fields}).encode() + b"\n"


def content(value) -> bytes:
    return line(message={"role": "user", "content": value})


DROPPED = {
    "tags only": (content("<command-message>m</command-message>\n<command-name>/x</command-name>"), "nothing left"),
    "tool result": (content([{"type": "tool_result", "content": "x"}]), "only tool_result"),
    "image": (content([{"type": "image"}]), "only image"),
    "no uuid": (line(uuid=0), "no uuid"),
    "other kind": (line(type="summary"), "kind is not imported"),
    "not an object": (b"[1]\n", "not an object"),
    "not JSON": (b"{\n", "invalid JSON"),
    "blank": (b"\xc2\xa0\xef\xbb\xbf\n", "blank line"),
    "BOM": (b"\xef\xbb\xbf" + line(), "invalid JSON"),
    "NUL": (b"\x00" + line(), "invalid JSON"),
    "spliced": (line().rstrip() + line(), "invalid JSON"),
    "no content": (line(message=None), "no content"),
}


@pytest.mark.parametrize("case", DROPPED)
def test_what_is_dropped_says_why(parse_file, case):
    data, reason = DROPPED[case]
    parsed = parse_file("claude-code", data)
    (fate,) = parsed.fates
    assert parsed.conversation.messages == ()
    assert (fate.status, fate.line, fate.offset, fate.size) == ("dropped", 1, 0, len(data))
    assert reason in fate.reason
    assert fate.head == data[:96]


KEPT = {
    "array text": (content([{"type": "text", "text": ["a", "```", None]}]), ("a,```,", True)),
    "number uuid": (line(uuid=5), ("hi", False)),
    "blank thinking": (content([{"type": "thinking", "thinking": " "}]), ("", False)),
    "number thinking": (content([{"type": "thinking", "thinking": 5}, {"type": "tool_use"}]), ("", False)),
    "fence in a removed block": (content("<system-reminder>```</system-reminder>b"), ("b", False)),
    "fence in a removed part": (
        content([{"type": "text", "text": "a<system-reminder>```"}, {"type": "text", "text": "x</system-reminder>b"}]),
        ("ab", True),
    ),
    "lone surrogate": (content("\ud83d"), ("\ud83d", False)),
    "surrogates that meet": (content("\ud83d<command-name>x</command-name>\ude00"), ("😀", False)),
    "U+0085": (content("\x85"), ("\x85", False)),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_is_kept(parse_file, case):
    data, (text, has_code) = KEPT[case]
    (message,) = parse_file("claude-code", data).conversation.messages
    assert (message.content, message.has_code) == (text, has_code)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a<system-reminder>x <b>y</b> <i></system-reminder>b", "ab"),
        ("<local-command-caveat>x <b>y</b></local-command-caveat>b", "b"),
        ("<command-name>x<b></command-name>b", "<command-name>x<b></command-name>b"),
        ("<system-reminder>a<system-reminder>b</system-reminder>c</system-reminder>d", "c</system-reminder>d"),
    ],
)
def test_only_reminders_and_caveats_may_hold_other_tags(text, left):
    assert clean(text) == left


def test_thoughts_and_texts_of_one_line_are_joined_by_line_breaks(parse_file):
    blocks = [{"type": k, k: t} for k, t in (("thinking", "a"), ("text", "x"), ("thinking", "b"), ("text", "y"))]
    (message,) = parse_file("claude-code", content(blocks)).conversation.messages
    assert (message.content, message.thinking) == ("x\ny", "a\nb")


def test_a_lone_text_block_s_fence_counts_even_when_cleaning_removes_it(parse_file):
    text = "<system-reminder>```</system-reminder>b"
    (message,) = parse_file("claude-code", content([{"type": "text", "text": text}])).conversation.messages
    assert (message.content, message.has_code) == ("b", True)


def test_a_line_that_node_24_splits_has_a_note_in_its_fate(parse_file):
    data = line() + line(slug="a\u2028b").replace(b"\\u2028", "\u2028".encode())
    assert [f.note for f in parse_file("claude-code", data).fates] == [None, "Node 24 splits this line"]


def test_the_place_of_a_failure_is_right_in_any_block(parse_file):
    many = 30_000
    with pytest.raises(cnb.ParseError) as caught:
        parse_file("claude-code", line() * many + b"null\n")
    assert (caught.value.line, caught.value.offset) == (many + 1, many * len(line()))


ABORTS = {
    "null line": b"null\n",
    "number text": content([{"type": "text", "text": 5}]),
    "object content": content({"a": 1}),
    "number content": content(5),
    "null block": content([None]),
}


@pytest.mark.parametrize("case", ABORTS)
def test_where_the_pinned_parser_throws_the_file_fails_with_its_place(parse_file, case):
    good = line()
    with pytest.raises(cnb.ParseError, match=rf"session\.jsonl: line 2 \(byte {len(good)}\): ") as caught:
        parse_file("claude-code", good + ABORTS[case])
    assert (caught.value.line, caught.value.offset) == (2, len(good))


def test_a_missing_time_is_the_clock_s_and_says_so(parse_file):
    (message,) = parse_file("claude-code", line(timestamp=None)).conversation.messages
    assert (message.timestamp, message.timestamp_from_clock) == ("2027-01-15T08:00:00.000Z", True)
    (message,) = parse_file("claude-code", line(timestamp="")).conversation.messages
    assert (message.timestamp, message.timestamp_from_clock) == ("", False)


def test_a_dropped_line_still_gives_its_folder(parse_file):
    data = line(cwd="", gitBranch="b1") + content([]) + line(cwd="/x", slug="s", message=None) + line(cwd="/y")
    conversation = parse_file("claude-code", data).conversation
    assert (conversation.cwd, conversation.git_branch, conversation.slug) == ("/x", "b1", "s")


def test_fates_follow_their_messages_when_time_reorders_them(parse_file):
    data = line(uuid="late", timestamp="2026-01-02T00:00:00.000Z") + line(uuid="early")
    parsed = parse_file("claude-code", data)
    assert [m.id for m in parsed.conversation.messages] == ["early", "late"]
    assert [f.message_index for f in parsed.fates] == [1, 0]


blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result"]) | json_values},
    optional={"text": texts | json_values, "thinking": texts | json_values},
)


@given(blocks)
def test_a_lone_block_is_read_as_among_others(block):
    typed = TypedDecoder(RawMessage).decode(json.dumps({"content": [block]}).encode())
    try:
        usual = _read_lone_block(typed.content[0])
        assert usual is None or usual == _read_blocks(typed.content)
    except ValueError:
        pass


field_values = st.sampled_from(["user", "assistant", "u1", "2026-01-01T00:00:00.000Z"]) | json_values
any_message = st.fixed_dictionaries(
    {}, optional={"role": json_values, "content": texts | st.lists(blocks | json_values) | json_values}
)
any_line = st.fixed_dictionaries(
    {"type": field_values, "uuid": field_values},
    optional=dict.fromkeys(("timestamp", "parentUuid", "cwd", "gitBranch", "slug"), json_values)
    | {"message": any_message | json_values},
).map(lambda record: json.dumps(record).encode() + b"\n")


@given(st.lists(any_line | st.binary().map(lambda b: b + b"\n")).map(b"".join))
def test_any_bytes_give_a_fate_per_line_or_a_parse_error(parse_file, data):
    try:
        parsed = parse_file("claude-code", data)
    except cnb.ParseError as error:
        assert error.line is not None  # noqa: PT017
        return
    assert [f.line for f in parsed.fates] == list(range(1, len(parsed.fates) + 1))
    assert sum(f.size for f in parsed.fates) == len(data)
    kept = [f.message_index for f in parsed.fates if f.status == "kept"]
    assert sorted(kept) == list(range(len(parsed.conversation.messages)))
    cnb.content_hash(parsed.conversation)


def scan(home, **config):
    return cnb.scan("claude-code", config=cnb.Config(home=home, **config))


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(b"x" * 100)
    return folder


def test_files_below_100_bytes_are_not_listed(tmp_path, project):
    (project / "b.jsonl").write_bytes(b"x" * 99)
    assert scan(tmp_path)["id"].to_list() == ["a"]


def test_only_names_one_level_down_are_listed(tmp_path, project):
    for name in ("sub/agents.jsonl", "b.JSONL", "c.json"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_bytes(b"x" * 200)
    (project / ".jsonl").write_bytes(b"x" * 200)
    assert scan(tmp_path)["id"].to_list() == ["", "a"]


def test_one_dangling_link_fails_the_scan_but_hides_the_tool_from_detect(tmp_path, project):
    (project.parent / "gone").symlink_to("nowhere")
    config = cnb.Config(home=tmp_path)
    adapter = cnb.get_adapter("claude-code")
    assert adapter._detect(config) is None
    with pytest.raises(cnb.ScanError, match="gone"):
        adapter._scan(config)


def test_a_folder_named_like_a_session_is_listed_and_fails_alone(tmp_path, project):
    (project / "d.jsonl").mkdir()
    config = cnb.Config(home=tmp_path)
    cands = cnb.scan("claude-code", config=config)
    corpus = cnb.parse(cands, config=config)
    assert corpus.failures["message"].to_list()[0].endswith("d.jsonl: Is a directory")
    assert len(corpus) == 1
