from __future__ import annotations

import contextlib
import json
import sqlite3
from contextlib import closing

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace
from strategies import json_values, texts

import crystal_nb as cnb
from crystal_nb.adapters import copilot_places
from crystal_nb.adapters.base import list_names
from crystal_nb.adapters.copilot_careful import careful
from crystal_nb.adapters.copilot_log import MAX_PADDING, Damage, Log
from crystal_nb.adapters.copilot_parts import _READERS
from crystal_nb.adapters.copilot_replay import replay
from crystal_nb.adapters.copilot_rules import V1, V2, CopilotRules
from crystal_nb.hashing import content_hash

NOON = 1767225600000
WINDOW = "0f00000000000000000000000000000a"


def config(home, **more) -> cnb.Config:
    return cnb.Config(home=home, platform="linux", cache_seconds=0, **more)


@pytest.fixture
def user(tmp_path):
    return tmp_path / ".config" / "Code" / "User"


@pytest.fixture
def put(user):
    def write(name: str, data: bytes | str, window: str = WINDOW, product: str = "Code"):
        file = user.parent.parent / product / "User" / "workspaceStorage" / window / "chatSessions" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file

    return write


@pytest.fixture
def read(tmp_path, put):
    """Parse bytes as one session file."""

    def parse(data: bytes | str, name: str = "s.jsonl", rules: CopilotRules = V2, clock: int = 0):
        path = put(name, data)
        candidate = cnb.Candidate("copilot", path.stem, str(path), path.stat().st_size, "", "/w/app")
        return careful(rules)._parse(candidate, config(tmp_path, clock=lambda: clock))

    return parse


def lines(*entries) -> bytes:
    return b"".join(e if isinstance(e, bytes) else json.dumps(e).encode() + b"\n" for e in entries)


def session(*requests, **more) -> dict:
    return {"version": 3, "sessionId": "s", "creationDate": NOON, "requests": list(requests), **more}


def turn(text="hi", response=(), **more) -> dict:
    return {"requestId": "r1", "timestamp": NOON, "message": {"text": text}, "response": list(response), **more}


def said(parsed) -> list[str]:
    return [m.content for m in parsed.conversation.messages]


def answer_of(*parts, read, rules=V2, **more):
    parsed = read(json.dumps(session(turn(response=parts, **more))), "s.json", rules)
    return parsed.conversation.messages[1]


class Refused(Exception):
    pass


def naive(state, entry):
    """The next state by the words of the format page (2.4), nothing shared with the package."""
    if entry["kind"] == 0:
        return entry.get("v", UNSET)
    if state is UNSET:
        raise Refused
    if not entry["k"]:
        return state
    if entry["kind"] == 2:

        def change(old):
            if old is UNSET or old is None or old is False or old == 0 or old == "":
                old = []
            if not isinstance(old, list):
                raise Refused
            if "i" in entry:
                old = [old[n] if n < len(old) else None for n in range(entry["i"])]
            return old + entry.get("v", [])

    else:

        def change(old):
            return entry.get("v", UNSET) if entry["kind"] == 1 else UNSET

    return changed(state, entry["k"], change)


def changed(value, path, change):
    if not path:
        return change(value)
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        new = changed(value.get(str(step), UNSET), rest, change)
        others = {name: inner for name, inner in value.items() if name != str(step)}
        return others if new is UNSET else {**others, str(step): new}
    if isinstance(value, list) and isinstance(step, int):
        new = changed(value[step] if step < len(value) else UNSET, rest, change)
        filled = value + [None] * (step + 1 - len(value))
        return [(None if new is UNSET else new) if n == step else inner for n, inner in enumerate(filled)]
    raise Refused


names = st.sampled_from(["requests", "response", "a"])
small = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
parts = st.fixed_dictionaries({"value": st.sampled_from(["", "a", "**b**"])}, optional={"kind": names})
turns = st.builds(turn, st.sampled_from(["hi", ""]), st.lists(parts, min_size=1, max_size=6), a=small)
sessions = st.builds(lambda requests, a: session(*requests, a=a), st.lists(turns, min_size=1, max_size=3), small)
real_paths = st.one_of(
    st.sampled_from([["requests"], ["a"], ["new"]]),
    st.builds(lambda n: ["requests", n], st.integers(0, 3)),
    st.builds(lambda n, name: ["requests", n, name], st.integers(0, 2), st.sampled_from(["response", "a", "new"])),
    st.builds(lambda n, m: ["requests", n, "response", m], st.integers(0, 2), st.integers(0, 7)),
)
paths = real_paths | real_paths | real_paths | st.lists(names | st.integers(0, 3), max_size=4)
values = st.lists(turns | parts | st.integers(0, 9), max_size=3)
changes = st.one_of(
    st.fixed_dictionaries({"kind": st.just(1), "k": paths}, optional={"v": turns | small}),
    st.fixed_dictionaries({"kind": st.just(2), "k": paths}, optional={"v": values, "i": st.integers(0, 7)}),
    st.fixed_dictionaries({"kind": st.just(3), "k": paths}),
)
CUT, PUSH, SET, DELETE, WILD, INITIAL = range(6)
acts = st.sampled_from([CUT] * 6 + [PUSH] * 6 + [SET] * 5 + [DELETE] * 2 + [WILD] * 2 + [INITIAL])


def places_in(value, path=()):
    """Paths of everything in a value, with the length of what is an array."""
    yield list(path), len(value) if isinstance(value, list) else None
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, found in inner:
        yield from places_in(found, (*path, step))


def pushes(path, most, is_cut):
    """Entries that add to an array, those of a cut always from an index on."""
    entry, index = {"kind": st.just(2), "k": st.just(path)}, {"i": st.integers(0, most)}
    if is_cut:
        return st.fixed_dictionaries(entry | index, optional={"v": values})
    return st.fixed_dictionaries(entry, optional={"v": values} | index)


def fitting(act, state):
    """Entries for what a state holds: an array is cut below its length or grown up to it, a value set or deleted."""
    places = [(path, length) for path, length in places_in(state) if path]
    arrays = [(path, length) for path, length in places if length is not None]
    if act == INITIAL:
        return st.fixed_dictionaries({"kind": st.just(0)}, optional={"v": sessions | small})
    if act == CUT:
        arrays = [(path, length - 1) for path, length in arrays if length]
    if act == WILD or not places or (act in (CUT, PUSH) and not arrays):
        return changes
    if act in (CUT, PUSH):
        return st.sampled_from(arrays).flatmap(lambda array: pushes(*array, is_cut=act == CUT))
    there = st.sampled_from([path for path, _ in places])
    if act == DELETE:
        return st.fixed_dictionaries({"kind": st.just(3), "k": there})
    return st.fixed_dictionaries({"kind": st.just(1), "k": there}, optional={"v": turns | small})


def cuts(state, entry):
    """Whether an entry makes an array shorter before it adds to it."""
    lengths = {tuple(path): length for path, length in places_in(state)}
    return entry["kind"] == 2 and entry.get("i", 99) < (lengths.get(tuple(entry["k"])) or 0)


@st.composite
def logs(draw):
    state = draw(sessions)
    entries, cut = [{"kind": 0, "v": state}], 0
    for _ in range(draw(st.integers(0, 12) | st.integers(6, 12))):
        entry = draw(fitting(draw(acts), state))
        cut += cuts(state, entry)
        entries.append(entry)
        with contextlib.suppress(Refused):
            state = naive(state, entry)
    event(f"arrays cut: {cut if cut < 3 else '3 or more'}")
    return entries


def test_most_logs_that_are_drawn_cut_an_array():
    drawn = []

    @settings(max_examples=200, database=None, derandomize=True)
    @given(logs())
    def draw(entries):
        state = UNSET
        cut = False
        for entry in entries:
            cut = cut or cuts(state, entry)
            with contextlib.suppress(Refused):
                state = naive(state, entry)
        drawn.append(cut)

    draw()
    assert sum(drawn) > len(drawn) / 2


@settings(max_examples=500)
@given(logs())
def test_each_entry_does_what_the_naive_replayer_does_or_is_refused_by_both(entries):
    log, expected = Log(), UNSET
    for entry in entries:
        mine = json.loads(json.dumps(entry))
        try:
            expected = naive(expected, entry)
        except Refused:
            with pytest.raises(Damage):
                log.apply(mine)
        else:
            log.apply(mine)
        assert log.state == expected


@settings(max_examples=300)
@given(logs())
def test_a_log_is_replayed_as_far_as_its_owner_would_and_anew_from_an_initial_state(entries):
    expected, is_stopped = UNSET, False
    for entry in entries:
        is_stopped = is_stopped and entry["kind"] != 0
        try:
            expected = expected if is_stopped else naive(expected, entry)
        except Refused:
            is_stopped = True
    replayed = replay(lines(*entries))
    assert replayed.state == expected
    assert replayed.is_partial == is_stopped


@pytest.mark.parametrize(
    ("entry", "state"),
    [
        ({"kind": 2, "k": ["l"], "v": [9], "i": 1}, {"l": [1, 9]}),  # no splice that overwrites
        ({"kind": 2, "k": ["l"], "i": 1}, {"l": [1]}),
        ({"kind": 2, "k": ["l"], "v": [9], "i": 5}, {"l": [1, 2, 3, None, None, 9]}),
        ({"kind": 2, "k": ["new"], "v": [9]}, {"l": [1, 2, 3], "new": [9]}),
        ({"kind": 2, "k": ["new"]}, {"l": [1, 2, 3], "new": []}),
        ({"kind": 1, "k": ["l"]}, {}),
        ({"kind": 1, "k": ["l", 0]}, {"l": [None, 2, 3]}),
        ({"kind": 3, "k": ["l", 1]}, {"l": [1, None, 3]}),
        ({"kind": 3, "k": ["gone"]}, {"l": [1, 2, 3]}),
        ({"kind": 1, "k": [], "v": 5}, {"l": [1, 2, 3]}),
        ({"kind": 0, "v": {"a": 1}}, {"a": 1}),
    ],
)
def test_where_other_replayers_go_wrong(entry, state):
    log = Log({"l": [1, 2, 3]})
    log.apply(entry)
    assert log.state == state


@pytest.mark.parametrize(
    "entry",
    [
        5,
        {},
        {"kind": "1"},
        {"kind": True, "k": ["a"]},
        {"kind": 4},
        {"kind": 1},
        {"kind": 1, "k": "a"},
        {"kind": 1, "k": [None]},
        {"kind": 1, "k": ["l", -1], "v": 1},
        {"kind": 1, "k": ["l", 0.5], "v": 1},
        {"kind": 1, "k": ["l", "0"], "v": 1},
        {"kind": 1, "k": ["l", True], "v": 1},
        {"kind": 1, "k": ["l", MAX_PADDING + 9], "v": 1},
        {"kind": 1, "k": ["x", "y"], "v": 1},
        {"kind": 1, "k": ["a"] * 2000, "v": 1},
        {"kind": 2, "k": ["l"], "v": 5},
        {"kind": 2, "k": ["l"], "i": -1},
        {"kind": 2, "k": ["l"], "i": None},
        {"kind": 2, "k": ["l"], "i": 10**12, "v": [1]},
        {"kind": 2, "k": ["l", 10**12], "v": [1]},
        {"kind": 2, "k": ["t"], "v": [1]},
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(entry):
    log = Log({"l": [1], "t": "text"})
    with pytest.raises(Damage):
        log.apply(entry)
    assert log.state == {"l": [1], "t": "text"}


STREAM = (
    {"kind": 0, "v": session()},
    {"kind": 2, "k": ["requests"], "v": [turn()]},
    {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "Hel"}]},
    {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "Hello"}], "i": 0},
    {"kind": 1, "k": ["requests", 0, "result"], "v": {"timings": {"totalElapsed": 500}}},
    {"kind": 1, "k": ["customTitle"], "v": "Greeting"},
    {"kind": 3, "k": ["inputState"]},
)


def test_a_log_gives_its_turns_and_each_line_its_share(read):
    parsed = read(lines(*STREAM))
    assert said(parsed) == ["hi", "Hello"]
    assert parsed.conversation.slug == "Greeting"
    assert parsed.conversation.last_message_at == "2026-01-01T00:00:00.500Z"
    assert [(f.status, f.message_index, f.reason) for f in parsed.fates] == [
        ("metadata", None, None),
        ("kept", 0, None),
        ("merged", 1, "rewritten by a later line"),
        ("kept", 1, None),
        ("merged", 1, None),
        ("metadata", None, None),
        ("metadata", None, None),
    ]
    assert parsed.fates[4].kind == "set requests/#/result"


def test_a_compacted_log_names_all_messages_of_its_one_line(read):
    requests = [turn(str(n), [{"value": f"a{n}"}], requestId=f"r{n}") for n in range(3)]
    parsed = read(lines({"kind": 0, "v": session(*requests)}))
    (fate,) = parsed.fates
    assert (fate.status, fate.message_index, fate.note) == ("kept", 0, "messages 0-5")


def test_a_turn_that_the_user_took_back_is_dropped_with_that_reason(read):
    parsed = read(lines(*STREAM, {"kind": 2, "k": ["requests"], "i": 0, "v": [turn("anew", requestId="r2")]}))
    assert said(parsed) == ["anew"]
    assert "no longer in the session" in parsed.fates[1].reason


def test_lost_parts_of_a_replayed_session_have_a_fate_by_pointer(read):
    parsed = read(lines({"kind": 0, "v": session(turn(response=[{"value": "x"}, {"kind": "hologram"}]))}))
    assert [(f.status, f.kind, f.key, f.offset) for f in parsed.fates[1:]] == [
        ("dropped", "hologram", "/requests/0/response/1", None)
    ]
    assert parsed.fates[1].reason == "unknown part kind (session version 3)"


def test_an_unknown_kind_names_the_extension_that_wrote_it(read):
    request = turn(response=[{"kind": "hologram"}], agent={"id": "a", "extensionVersion": "0.31.0"})
    parsed = read(json.dumps(session(request)), "s.json")
    assert "extension 0.31.0" in parsed.fates[-1].reason


def test_damage_ends_the_replay_with_the_last_good_state_flagged(read):
    later = {"kind": 1, "k": ["customTitle"], "v": "Lost"}
    parsed = read(lines(*STREAM[:4], b'{"kind":1,\n', later))
    assert said(parsed) == ["hi", "Hello"]
    assert parsed.conversation.messages[-1].details.marks == ("partial log",)
    assert parsed.conversation.slug is None
    assert [f.reason for f in parsed.fates[-2:]] == ["invalid JSON", "not replayed, as line 5 is damaged"]


def test_an_unknown_log_kind_is_a_kind_of_its_own(read):
    parsed = read(lines(*STREAM, {"kind": 9, "k": []}))
    assert (parsed.fates[-1].kind, parsed.fates[-1].reason) == ("log kind 9", "unknown log kind 9")


def test_an_initial_state_heals_a_damaged_log(read):
    parsed = read(lines(b"\0\0\0\n", STREAM[0], {"kind": 7}, {"kind": 0, "v": session(turn("healed"))}))
    assert said(parsed) == ["healed"]
    assert parsed.conversation.messages[0].details.marks == ()
    assert parsed.fates[0].reason == "NUL bytes"


def test_a_torn_last_line_costs_only_itself(read):
    parsed = read(lines(*STREAM, b'{"kind":1,"k":["cust'))
    assert said(parsed) == ["hi", "Hello"]
    assert parsed.fates[-1].reason == "torn last line"
    assert parsed.conversation.messages[-1].details.marks == ()


@pytest.mark.parametrize("change", [lambda b: b"\xef\xbb\xbf" + b, lambda b: b.replace(b"\n", b"\r\n\n")])
def test_a_bom_carriage_returns_and_blank_lines_do_no_harm(read, change):
    assert said(read(change(lines(*STREAM)))) == ["hi", "Hello"]


def test_a_log_without_initial_state_gives_way_to_the_flat_file(read, put):
    put("s.json", json.dumps(session(turn("flat"))))
    parsed = read(lines(*STREAM[1:]))
    assert said(parsed) == ["flat"]
    assert {f.reason for f in parsed.fates if f.offset is not None} == {"a change before the initial state"}
    assert [f.key for f in parsed.fates if f.status == "kept"] == ["s.json#/requests/0/message"]


def test_without_either_it_is_replayed_from_an_empty_session(read):
    parsed = read(lines({"kind": 1, "k": ["requests", 4, "vote"], "v": 1}, *STREAM[1:]))
    assert said(parsed) == ["hi", "Hello"]
    assert "partial log" in parsed.conversation.messages[-1].details.marks
    assert parsed.fates[0].status == "dropped"


TRANSCRIPT = lines(
    {"type": "session.start", "id": "e0", "data": {"copilotVersion": "0.40"}},
    {"type": "user.message", "id": "e1", "timestamp": "2026-01-01T00:00:00.000Z", "data": {"content": "from afar"}},
    {
        "type": "assistant.message",
        "id": "e2",
        "parentId": "e1",
        "data": {
            "content": "",
            "reasoningText": "hm",
            "toolRequests": [{"toolCallId": "k", "name": "read", "arguments": {"p": 1}}],
        },
    },
    {
        "type": "tool.execution_start",
        "id": "e3",
        "data": {"toolCallId": "k", "arguments": {"p": 2}},
    },
    {
        "type": "tool.execution_complete",
        "id": "e4",
        "data": {"toolCallId": "k", "success": True, "result": {"content": "text"}},
    },
    {"type": "assistant.message", "id": "e5", "data": {"content": "done"}},
    {"type": "new.thing", "id": "e6", "data": {}},
)


@pytest.fixture
def transcript(user):
    path = user / "workspaceStorage" / WINDOW / "GitHub.copilot-chat" / "transcripts" / "s.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(TRANSCRIPT)
    return path


def test_a_transcript_steps_in_for_a_stub(read, transcript):
    parsed = read(lines(STREAM[0]))
    assert said(parsed) == ["from afar", "", "done"]
    (call,) = parsed.conversation.messages[1].details.tools
    assert (call.name, call.input, call.result, call.is_error) == ("read", '{"p":1}', "text", False)
    assert parsed.conversation.messages[1].thinking == "hm"
    assert [f.kind for f in parsed.fates if f.status == "dropped"] == ["new.thing"]
    assert parsed.fates[2].key == "transcripts/s.jsonl#line 2"


def test_a_transcript_steps_in_for_a_broken_document(read, transcript):
    parsed = read(b"{", "s.json")
    assert said(parsed)[0] == "from afar"
    assert parsed.fates[0].reason.startswith("no JSON")


def test_a_transcript_without_a_file_is_a_conversation_of_its_own(tmp_path, transcript):
    corpus = scan_and_parse(tmp_path)
    assert said(corpus.parsed[0]) == ["from afar", "", "done"]
    assert corpus.parsed[0].candidate.id == "s"
    assert tiles(corpus.parsed[0].fates, len(TRANSCRIPT))


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"", "s.json", "empty"),
        (b"{", "s.json", "no JSON"),
        (b"[]", "s.json", "unknown layout"),
        (b"null", "s.json", "unknown layout"),
        (b"", "s.jsonl", "no initial state"),
        (b"\0" * 500, "s.jsonl", "no initial state"),
        (b'{"kind":0,"v":5}\n', "s.jsonl", "no initial state"),
    ],
)
def test_what_holds_no_session_is_an_error_and_no_empty_conversation(read, data, name, reason):
    with pytest.raises(cnb.ParseError, match=reason):
        read(data, name)


def test_a_session_without_turns_is_an_empty_one_without_the_clock(read):
    parsed = read(lines(STREAM[0]), clock=5)
    assert parsed.conversation.messages == ()
    assert parsed.conversation.first_message_at is None


def test_references_stand_inside_their_sentence_and_tools_part_paragraphs(read):
    answer = answer_of(
        {"value": "See "},
        {"kind": "inlineReference", "inlineReference": {"path": "/p/a.py", "scheme": "file"}},
        {"value": " and "},
        {"kind": "inlineReference", "inlineReference": {"name": "main", "location": {"uri": {"path": "/p/b.py"}}}},
        {"value": "."},
        {"kind": "toolInvocationSerialized", "toolId": "t"},
        {"kind": "markdownContent", "content": {"value": "Done"}},
        {"kind": "markdownVuln", "content": {"value": "!"}, "vulnerabilities": [{"title": "xss"}]},
        {"kind": "markdownContent", "value": "?"},
        read=read,
    )
    assert answer.content == "See a.py and main.\n\nDone!?"
    marks = {"reference /p/a.py", "reference /p/b.py", "vulnerability xss", "order text tool text"}
    assert marks <= set(answer.details.marks)


def test_thinking_lists_and_object_values_are_texts(read):
    answer = answer_of(
        {"kind": "thinking", "value": ["Plan", "Act"]},
        {"kind": "thinking", "id": "end"},
        {"value": {"value": "nested"}},
        "plain",
        {"value": ["a", "b"]},
        read=read,
    )
    assert (answer.thinking, answer.content) == ("Plan\nAct", "nestedplainab")


def test_a_surrogate_pair_split_over_parts_is_joined(read):
    assert answer_of({"value": "\ud83d"}, {"value": "\ude00"}, read=read).content == "😀"


def test_tool_calls_have_their_arguments_and_results(read):
    rounds = {
        "toolCallRounds": [
            {"toolCalls": [{"id": "k1", "name": "read", "arguments": '{"p":1}'}, {"id": "k9", "name": "unseen"}]}
        ],
        "toolCallResults": {"k1": {"content": [{"value": "one"}, {"value": "two"}]}},
    }
    terminal = {
        "kind": "terminal",
        "commandLine": {"original": "ls", "userEdited": "ls -l"},
        "terminalCommandOutput": {"text": "a.py"},
        "terminalCommandState": {"exitCode": 1},
    }
    shot = {"output": {"type": "data", "mimeType": "image/png", "base64Data": "A" * 400}}
    answer = answer_of(
        {"kind": "prepareToolInvocation", "toolName": "copilot_read"},
        {"kind": "toolInvocationSerialized", "toolId": "copilot_read", "toolCallId": "k1"},
        {"kind": "toolInvocationSerialized", "toolId": "run", "toolCallId": "k2", "toolSpecificData": terminal},
        {"kind": "toolInvocationSerialized", "toolId": "shot", "invocationMessage": "Looking", "resultDetails": shot},
        {"kind": "textEditGroup", "uri": {"path": "/p/a.py"}, "edits": [[{"text": "y"}]]},
        read=read,
        result={"metadata": rounds},
    )
    assert [(t.name, t.input, t.result, t.is_error) for t in answer.details.tools] == [
        ("copilot_read", '{"p":1}', "one\ntwo", None),
        ("run", "ls -l", "a.py", True),
        ("shot", "Looking", "data image/png 300 bytes", None),
        ("textEditGroup", '{"file":"/p/a.py","edits":[[{"text":"y"}]]}', None, None),
        ("unseen", None, None, None),
    ]
    assert answer.has_tool_use
    assert answer.content == ""


def test_an_edit_between_the_fences_of_a_code_block_does_not_tear_it(read):
    answer = answer_of(
        {"value": "```py\n"}, {"kind": "textEditGroup", "uri": {"path": "/a.py"}}, {"value": "x = 1\n```"}, read=read
    )
    assert answer.content == "```py\nx = 1\n```"


def test_retracted_text_is_dropped_with_that_reason(read):
    parts = [
        {"value": "before"},
        {"kind": "toolInvocationSerialized"},
        {"value": "wrong"},
        {"kind": "clearToPreviousToolInvocation", "reason": 1},
        {"value": "right"},
    ]
    parsed = read(json.dumps(session(turn(response=parts))), "s.json")
    assert said(parsed)[1] == "before\n\nright"
    (dropped,) = [f for f in parsed.fates if f.status == "dropped"]
    assert (dropped.key, dropped.reason) == ("/requests/0/response/2", "retracted by the tool")


def test_boxes_for_the_user_are_paragraphs(read):
    answer = answer_of(
        {"value": "a"},
        {"kind": "warning", "content": {"value": "Careful"}},
        {"kind": "questionCarousel", "questions": [{"title": "Which?"}], "data": {"Which?": "both"}, "isUsed": True},
        {"kind": "planReview", "plan": "1. go"},
        read=read,
    )
    assert answer.content == 'a\n\nCareful\n\nWhich?\n{"Which?":"both"}\n\n1. go'


@pytest.mark.parametrize("kind", _READERS)
def test_no_known_kind_is_called_unknown(read, kind):
    parsed = read(json.dumps(session(turn(response=[{"kind": kind}]))), "s.json")
    assert "unknown" not in str([f.reason for f in parsed.fates])


def test_states_attachments_models_and_tokens_are_noted(read):
    request = turn(
        response=[{"value": "x"}],
        modelState={"value": 2, "completedAt": NOON + 5},
        modelId="copilot/auto",
        shouldBeRemovedOnSend={"requestId": "r1"},
        variableData={
            "variables": [
                {"kind": "file", "name": "a.py", "value": {"path": "/p/a.py", "scheme": "file"}},
                {"kind": "image", "name": "shot", "mimeType": "image/png", "value": {"0": 1, "1": 2}},
            ]
        },
        modeInfo={"kind": "agent"},
        vote=0,
        voteDownReason="wrong",
        promptTokens=5,
        completionTokens=7,
        result={"metadata": {"resolvedModel": "model-x"}, "errorDetails": {"message": "Stopped", "code": "c"}},
        codeCitations=[{"license": "MIT"}],
    )
    prompt, answer = read(json.dumps(session(request)), "s.json").conversation.messages
    assert prompt.details.marks == ("file /p/a.py", "image image/png 2 bytes", "mode agent")
    assert set(answer.details.marks) == {"cancelled", "reverted", "error c Stopped", "citation MIT", "vote down wrong"}
    assert (answer.details.model, answer.details.input_tokens, answer.details.output_tokens) == ("model-x", 5, 7)
    assert (answer.timestamp, answer.parent_uuid) == ("2026-01-01T00:00:00.005Z", "r1")


def test_an_error_alone_is_an_answer(read):
    answer = answer_of(read=read, result={"errorDetails": {"message": "Rate limit"}})
    assert (answer.content, answer.details.marks) == ("", ("error Rate limit",))


def test_old_shapes_and_missing_times_cost_nothing(read):
    requests = [
        {"message": "plain text", "response": "as text"},
        None,
        {"message": {"parts": [{"text": "by "}, {"text": "parts"}]}, "response": {"value": "one markdown"}},
    ]
    parsed = read(json.dumps({"requests": requests, "computedTitle": "Old"}), "s.json", clock=5)
    assert said(parsed) == ["plain text", "as text", "by parts", "one markdown"]
    assert {m.timestamp for m in parsed.conversation.messages} == {None}
    assert [m.id for m in parsed.conversation.messages] == ["turn-1", "resp-turn-1", "turn-3", "resp-turn-3"]
    assert parsed.conversation.slug == "Old"


def test_ids_are_unique_and_turns_stay_in_the_order_of_the_file(read):
    parsed = read(json.dumps(session(turn("b", timestamp=NOON + 9), turn("a"), turn("c"))), "s.json")
    assert said(parsed) == ["b", "a", "c"]
    assert [m.id for m in parsed.conversation.messages] == ["r1", "r1#2", "r1#3"]


def test_a_queued_prompt_is_a_message_and_a_draft_is_not(read):
    more = {
        "pendingRequests": [{"id": "q", "request": {"message": {"text": "next"}}}],
        "inputState": {"inputText": "unsent"},
    }
    parsed = read(json.dumps(session(turn(), **more)), "s.json")
    assert said(parsed) == ["hi", "next"]
    assert parsed.conversation.messages[1].details.marks == ("queued",)
    assert [f.key for f in parsed.fates if f.status == "dropped"] == ["/inputState"]


def scan_and_parse(home, rules=V2, **more):
    adapter = careful(rules)
    settings = config(home, **more)
    candidates = adapter._scan(settings)
    return cnb.parse(candidates, adapters=[adapter], config=settings)


def ids(home, rules=V2, **more) -> list[str]:
    return [c.id for c in careful(rules)._scan(config(home, **more))]


def test_the_log_wins_over_the_flat_file_and_small_files_are_listed(tmp_path, put):
    put("a.json", json.dumps(session(turn("old"))))
    put("a.jsonl", lines(*STREAM))
    put("b.json", '{"requests":[]}')
    assert ids(tmp_path) == ["a", "b"]
    assert said(scan_and_parse(tmp_path).parsed[0]) == ["hi", "Hello"]


def test_other_products_are_looked_through_unless_a_folder_is_named(tmp_path, put, user):
    put("a.json", "{}")
    put("b.json", "{}", product="Code - Insiders")
    put("c.json", "{}", product="VSCodium")
    assert ids(tmp_path) == ["a", "b", "c"]
    assert ids(tmp_path, folders={"copilot": user}) == ["a"]


def test_a_folder_that_can_t_be_listed_is_a_failure_and_hides_no_other(tmp_path, put, monkeypatch):
    put("a.json", json.dumps(session(turn())), "w1")
    put("b.json", json.dumps(session(turn())), "w2")

    def refuse(folder):
        if folder.name == "chatSessions" and folder.parent.name == "w1":
            raise PermissionError(13, "Permission denied")
        return list_names(folder)

    monkeypatch.setattr(copilot_places, "list_names", refuse)
    corpus = scan_and_parse(tmp_path)
    assert [p.candidate.id for p in corpus.parsed] == ["b"]
    assert [f.candidate.id for f in corpus.failed] == ["w1/chatSessions"]


def test_odd_text_everywhere_comes_through_the_frames(tmp_path, put):
    odd = "a\ud83d\x1b"
    request = turn(
        odd,
        [{"kind": "thinking", "value": odd}, {"kind": "toolInvocationSerialized", "toolId": odd}, {"kind": odd}],
        requestId=odd,
        modelId=odd,
        variableData={"variables": [{"kind": odd, "name": odd}]},
    )
    put("a.json", json.dumps(session(request, customTitle=odd, repoData={"localBranch": odd})))
    corpus = scan_and_parse(tmp_path)
    assert corpus.messages["lossy"].to_list() == [True, True]
    assert corpus.messages["model"].to_list() == [None, "a\ufffd\x1b"]
    assert (corpus.conversations.height, corpus.fates.height) == (1, 6)


def test_a_candidate_with_a_bare_name_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text(json.dumps(session(turn())))
    candidate = cnb.Candidate("copilot", "s", "s.json", 1, "", "")
    assert said(careful(V2)._parse(candidate, config(tmp_path))) == ["hi"]


def test_homes_without_window_are_read(tmp_path, user):
    for home in ("emptyWindowChatSessions", "transferredChatSessions"):
        (user / "globalStorage" / home).mkdir(parents=True)
        (user / "globalStorage" / home / f"{home[0]}.json").write_text(json.dumps(session(turn())))
    corpus = scan_and_parse(tmp_path)
    assert [p.candidate.id for p in corpus.parsed] == ["e", "t"]
    assert {p.conversation.project_name for p in corpus.parsed} == {"Global"}


def test_copies_keep_each_turn_once_and_name_the_longest(tmp_path, put):
    first, second = turn("one"), turn("two", requestId="r2")
    put("a.jsonl", lines({"kind": 0, "v": session(first, turn("mine", requestId="r9"))}), "w1")
    longest = session(first, second, turn("three", requestId="r3"), sessionId="a")
    put("a.jsonl", lines({"kind": 0, "v": longest}), "w2")
    put("a.json", json.dumps(session(turn("other", requestId="x"))), "w3")
    corpus = scan_and_parse(tmp_path)
    assert [(p.candidate.id, said(p)) for p in corpus.parsed] == [
        ("w1/a", ["mine"]),
        ("a", ["one", "two", "three"]),
        ("w3/a", ["other"]),
    ]
    links = [p.conversation.links for p in corpus.parsed]
    assert links[0][0].evidence == "same file name in w2, 1 of 2 request ids equal"
    assert [(bool(link), link and link[0].is_certain) for link in links] == [(True, True), (False, ()), (True, False)]


def test_another_id_inside_is_an_undecided_edge(read):
    parsed = read(json.dumps(session(turn(), sessionId="other")), "s.json")
    (link,) = parsed.conversation.links
    assert (parsed.conversation.id, link.target, link.is_certain) == ("s", "other", False)


def make_database(path, **values):
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        connection.executemany("INSERT INTO ItemTable VALUES (?, ?)", [(k, json.dumps(v)) for k, v in values.items()])


def test_sessions_older_than_files_come_from_the_database(tmp_path, put, user):
    stored = [session(turn("file"), sessionId="a"), session(turn("stored"), sessionId="b"), {"requests": [turn("c")]}]
    make_database(user / "workspaceStorage" / WINDOW / "state.vscdb", **{"interactive.sessions": stored})
    put("a.json", json.dumps(session(turn("file"), sessionId="a")))
    corpus = scan_and_parse(tmp_path)
    assert [(p.candidate.id, said(p)) for p in corpus.parsed] == [
        ("a", ["file"]),
        ("b", ["stored"]),
        (f"{WINDOW}/interactive.sessions/2", ["c"]),
    ]
    assert corpus.parsed[1].fates[1].key == "ItemTable:interactive.sessions/1#/requests/0/message"


def test_a_broken_database_is_a_failure_with_its_name_and_hides_no_file(tmp_path, put, user):
    put("a.json", json.dumps(session(turn())))
    (user / "workspaceStorage" / WINDOW / "state.vscdb").write_bytes(b"no database" * 100)
    corpus = scan_and_parse(tmp_path)
    assert [p.candidate.id for p in corpus.parsed] == ["a"]
    assert "state.vscdb" in corpus.failed[0].candidate.file_path


def test_the_index_gives_the_title_that_the_log_lacks(tmp_path, put, user):
    put("a.json", json.dumps(session(turn())))
    put("b.json", json.dumps(session(turn(), customTitle="Own")))
    put("c.json", json.dumps(session(turn())))
    entries = {"a": {"title": "Indexed"}, "b": {"title": "Other"}, "c": {"title": "Old"}}
    rows = {"chat.ChatSessionStore.index": {"version": 1, "entries": entries}}
    rows["chat.ChatSessionStore.index.entry.c"] = {"title": "New"}
    make_database(user / "workspaceStorage" / WINDOW / "state.vscdb", **rows)
    assert [p.conversation.slug for p in scan_and_parse(tmp_path).parsed] == ["Indexed", "Own", "New"]


def test_a_session_that_only_the_index_knows_is_listed_without_messages(tmp_path, put, user):
    put("a.json", json.dumps(session(turn(), sessionId="a")))
    entries = {
        "a": {"title": "A", "workingDirectory": {"path": "/w/deep", "scheme": "file"}},
        "gone": {"title": "Gone", "lastMessageDate": NOON},
        "empty": {"title": "New Chat", "isEmpty": True},
        "cloud": {"isExternal": True},
        "odd": 5,
    }
    database = user / "workspaceStorage" / WINDOW / "state.vscdb"
    make_database(database, **{"chat.ChatSessionStore.index": {"version": 1, "entries": entries}})
    known, gone = scan_and_parse(tmp_path).parsed
    assert (known.candidate.id, known.conversation.cwd) == ("a", "/w/deep")
    assert (gone.candidate.id, gone.conversation.slug, gone.conversation.messages) == ("gone", "Gone", ())
    assert [(f.status, f.reason) for f in gone.fates] == [("metadata", "its file is gone")]


@pytest.mark.parametrize(
    ("workspace", "project", "name"),
    [
        ({"folder": "file:///home/u/my%20app"}, "/home/u/my app", "my app"),
        ({"folder": "file:///c%3A/w/app"}, "c:/w/app", "app"),
        ({"folder": "file://server/share/app"}, "//server/share/app", "app"),
        ({"folder": "vscode-remote://wsl%2Bubuntu/home/u/app"}, "vscode-remote://wsl+ubuntu/home/u/app", "app"),
        ({"workspace": "file:///w/team.code-workspace"}, "/w/team.code-workspace", "team"),
        ({"configuration": {"$mid": 1, "path": "/w/t.code-workspace", "scheme": "file"}}, "/w/t.code-workspace", "t"),
        ({"configuration": "/w/t.code-workspace"}, "/w/t.code-workspace", "t"),
        ({"folder": "file:///bad%zz"}, "/bad%zz", "bad%zz"),
        ({"folder": 5}, "", "Global"),
    ],
)
def test_projects_by_any_address(tmp_path, put, user, workspace, project, name):
    put("a.json", json.dumps(session(turn())))
    (user / "workspaceStorage" / WINDOW / "workspace.json").write_text(json.dumps(workspace))
    (parsed,) = scan_and_parse(tmp_path).parsed
    assert (parsed.conversation.project_dir, parsed.conversation.project_name) == (project, name)


def tiles(fates, size) -> bool:
    places = [(f.offset, f.size) for f in fates if f.offset is not None]
    ends = [0]
    for offset, length in places:
        assert offset == ends[-1]
        ends.append(offset + length)
    return ends[-1] == size


odd = json_values
part = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from([*_READERS, "new"]) | odd,
        "value": texts | odd,
        "content": odd,
        "toolCallId": st.just("k") | odd,
        "toolSpecificData": st.dictionaries(
            st.sampled_from(["kind", "commandLine", "terminalCommandState", "output"]), odd, max_size=3
        ),
        "resultDetails": odd | st.fixed_dictionaries({"output": odd | st.fixed_dictionaries({"base64Data": odd})}),
        "inlineReference": odd | st.fixed_dictionaries({"uri": odd, "name": odd}),
        "edits": odd,
        "uri": odd | st.fixed_dictionaries({"path": odd, "fsPath": odd, "scheme": odd, "authority": odd}),
        "questions": odd | st.lists(odd, max_size=2),
        "extensions": odd,
        "vulnerabilities": odd,
        "treeData": odd,
        "multiDiffData": odd | st.fixed_dictionaries({"resources": odd}),
        "resolved": odd,
    },
)
request = st.fixed_dictionaries(
    {},
    optional={
        "requestId": st.sampled_from(["r", ""]) | odd,
        "timestamp": st.just(NOON) | odd,
        "message": odd | st.fixed_dictionaries({"text": odd, "parts": odd}),
        "response": st.lists(part | odd, max_size=4) | odd,
        "variableData": odd | st.fixed_dictionaries({"variables": st.lists(part | odd, max_size=2)}),
        "result": odd
        | st.fixed_dictionaries(
            {
                "metadata": odd
                | st.fixed_dictionaries(
                    {"toolCallRounds": st.lists(odd | st.fixed_dictionaries({"toolCalls": odd}), max_size=2)}
                ),
                "timings": odd,
                "errorDetails": odd,
            }
        ),
        "modelState": odd | st.fixed_dictionaries({"value": odd, "completedAt": odd}),
        "vote": odd,
        "modeInfo": odd,
        "slashCommand": odd,
        "agent": odd,
        "elapsedMs": odd,
        "contentReferences": odd,
        "codeCitations": odd,
        "editedFileEvents": odd,
        "promptTokens": odd,
        "usage": odd,
    },
)
document = st.fixed_dictionaries(
    {"requests": st.lists(request | odd, max_size=3)},
    optional=dict.fromkeys(("version", "sessionId", "customTitle", "computedTitle", "repoData", "inputState"), odd)
    | {"pendingRequests": odd | st.lists(st.fixed_dictionaries({"id": odd, "request": request}), max_size=2)},
)


def check(parsed):
    messages, fates = parsed.conversation.messages, parsed.fates
    assert len({m.id for m in messages}) == len(messages)
    assert all(isinstance(m.content, str) and m.timestamp_from_clock is False for m in messages)
    assert all(f.message_index is None or 0 <= f.message_index < len(messages) for f in fates)
    assert all((f.message_index is not None) == (f.status in ("kept", "merged")) for f in fates)
    content_hash(parsed.conversation)


@given(document)
def test_any_json_in_any_field_of_a_document_gives_fates_and_never_an_error(read, value):
    data = json.dumps(value)
    parsed = read(data, "s.json", clock=1)
    check(parsed)
    assert {f.message_index for f in parsed.fates if f.status == "kept"} == set(
        range(len(parsed.conversation.messages))
    )
    assert len({f.key for f in parsed.fates}) == len(parsed.fates)
    assert parsed == read(data, "s.json", clock=2)


def covered(fates) -> set[int]:
    """Messages that fates name, those in notes included."""
    found = {f.message_index for f in fates if f.message_index is not None}
    for note in (f.note for f in fates if f.note and f.note.startswith("messages ")):
        for run in note.removeprefix("messages ").split(", "):
            first, _, last = run.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


turn_changes = st.one_of(
    st.fixed_dictionaries({"kind": st.just(2), "k": st.just(["requests"]), "v": st.lists(request, max_size=2)}),
    st.fixed_dictionaries(
        {
            "kind": st.just(2),
            "k": st.tuples(st.just("requests"), st.integers(0, 2), st.just("response")).map(list),
            "v": st.lists(part, max_size=2),
        },
        optional={"i": st.integers(0, 2)},
    ),
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from([1, 3]),
            "k": st.tuples(
                st.just("requests"), st.integers(0, 2), st.sampled_from(["result", "message", "response"])
            ).map(list),
        },
        optional={"v": odd},
    ),
    changes,
    odd,
)


@given(document, st.lists(turn_changes, max_size=6), st.sampled_from([b"", b"\n", b"{\n", b"\0\n", b'{"kin']))
def test_any_log_is_tiled_by_its_fates_and_each_message_has_its_line(read, value, entries, tail):
    data = lines({"kind": 0, "v": value}, *entries) + tail
    try:
        parsed = read(data, clock=1)
    except cnb.ParseError:
        return  # a later entry took the session away as a whole
    check(parsed)
    assert tiles(parsed.fates, len(data))
    assert all(f.status == "dropped" for f in parsed.fates if f.offset is None)
    assert covered(parsed.fates) == set(range(len(parsed.conversation.messages)))
    assert parsed == read(data, clock=2)


pieces = st.binary(max_size=9) | st.sampled_from([b"\n", b'{"kind":0', b"\xef\xbb\xbf"])


@given(st.binary() | st.lists(pieces).map(b"".join))
def test_any_bytes_give_a_session_or_a_parse_error(read, data):
    for name in ("b.json", "b.jsonl"):
        with contextlib.suppress(cnb.ParseError):
            check(read(data, name))


tool_requests = st.lists(odd | st.fixed_dictionaries({"toolCallId": odd, "arguments": odd}), max_size=2)
events = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["user.message", "assistant.message", "tool.execution_complete", "x"]) | odd,
        "data": odd
        | st.fixed_dictionaries(
            {
                "content": odd,
                "toolRequests": st.lists(
                    odd | st.fixed_dictionaries({"toolCallId": odd, "arguments": odd}), max_size=2
                ),
                "attachments": odd,
                "toolCallId": odd,
                "result": odd,
            }
        ),
    },
    optional={"id": odd, "timestamp": odd, "parentId": odd},
)


@given(st.lists(events | odd, max_size=5))
def test_any_transcript_is_tiled_by_its_fates(tmp_path, transcript, entries):
    data = lines(*entries)
    transcript.write_bytes(data)
    candidate = cnb.Candidate("copilot", "s", str(transcript), len(data), "", "")
    parsed = careful(V2)._parse(candidate, config(tmp_path))
    check(parsed)
    assert tiles(parsed.fates, len(data))


def test_a_very_long_line_and_great_depth_are_read(read):
    deep = {"value": "DEEP"}
    data = json.dumps(session(turn("x" * 12_000_000, [deep, {"value": "ok"}, {"kind": "hologram", "v": "DEEP"}])))
    nested = '{"value":' * 5000 + "1" + "}" * 5000
    parsed = read(('{"kind":0,"v":' + data.replace('"DEEP"', nested) + "}\n").encode())
    assert len(said(parsed)[0]) == 12_000_000
    assert said(parsed)[1] == "ok"


@pytest.mark.parametrize("field", [f for f in CopilotRules.__struct_fields__ if f != "version"])
def test_each_repair_can_be_switched_off_alone(tmp_path, put, user, transcript, field):
    """Where everything is wrong at once, each repair makes a difference."""
    rich = turn(
        response=[
            {"value": "See "},
            {"kind": "inlineReference", "inlineReference": {"path": "/p/a.py"}},
            {"kind": "warning", "content": "!"},
        ],
        isHidden=True,
    )
    bare = turn("tools", [{"kind": "toolInvocationSerialized", "toolId": "t"}], requestId="r2")
    put("a.jsonl", lines({"kind": 0, "v": session()}, {"kind": 2, "k": ["requests"], "v": [rich, bare]}))
    put("a.json", json.dumps(session(turn("an older copy"))))
    put("b.jsonl", lines({"kind": 2, "k": ["requests"], "v": [turn()]}))
    put("a.jsonl", lines({"kind": 0, "v": session(turn("copied"))}), "w2")
    put("c.json", json.dumps({"requests": [{"message": "x"}]}))
    put("d.json", json.dumps(session(turn())), product="Code - Insiders")
    make_database(user / "globalStorage" / "state.vscdb", **{"interactive.sessions": [session(turn(), sessionId="l")]})
    make_database(
        user / "workspaceStorage" / WINDOW / "state.vscdb",
        **{"chat.ChatSessionStore.index": {"entries": {"a": {"title": "T"}}}},
    )
    (user / "workspaceStorage" / WINDOW / "workspace.json").write_text('{"folder":"file:///w/app"}')

    def outcome(rules):
        corpus = scan_and_parse(tmp_path, rules)
        return [(p.candidate, p.conversation, p.fates) for p in corpus.parsed], [f.message for f in corpus.failed]

    assert outcome(replace(V2, **{field: False})) != outcome(V2)


def test_the_pinned_rules_have_no_repair_and_the_careful_ones_all():
    names = [f for f in CopilotRules.__struct_fields__ if f != "version"]
    assert not any(getattr(V1, name) for name in names)
    assert all(getattr(V2, name) for name in names)
    assert cnb.get_adapter("copilot@2").rules is V2


def test_reading_writes_nothing(tmp_path, put, user):
    put("a.jsonl", lines(*STREAM))
    make_database(user / "workspaceStorage" / WINDOW / "state.vscdb", x=1)
    home = tmp_path / ".config"
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in home.rglob("*")}
    scan_and_parse(tmp_path)
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in home.rglob("*")} == before
