from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, structs
from strategies import json_values

import crystal_nb as cnb
from crystal_nb import hashing
from crystal_nb.adapters.claude_careful import CAREFUL
from crystal_nb.adapters.claude_envelopes import sort_text
from crystal_nb.adapters.claude_records import media, result_text
from crystal_nb.adapters.claude_rules import V1, V2

FIXTURES = Path(__file__).parent.parent / "fixtures" / "claude-code"
TIME = "2026-01-01T00:00:00.000Z"


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def row(type: str = "user", content="hi", id: str | None = "u1", **more) -> dict:
    message = {"role": type, "content": content, **more.pop("message", {})}
    return {"type": type, "uuid": id, "timestamp": TIME, "message": message, **more}


def answer(content, id: str, mid: str | None = None, **more) -> dict:
    return row("assistant", content, id, message={"id": mid} if mid else {}, **more)


def call(id: str, name: str = "Bash", **input) -> dict:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def result(id: str, content, **more) -> dict:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def text(value: str) -> dict:
    return {"type": "text", "text": value}


@pytest.fixture
def write(tmp_path):
    def write(*rows, name: str = "-srv-demo/session.jsonl") -> Path:
        path = tmp_path / ".claude/projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in rows))
        return path

    return write


def config_of(home: Path, clock: int = 1) -> cnb.Config:
    return cnb.Config(home=home, platform="linux", clock=lambda: clock)


@pytest.fixture
def read_all(tmp_path):
    def read(rules=V2) -> dict:
        config = config_of(tmp_path)
        adapter = CAREFUL
        found = adapter._scan(config)
        return {c.id: adapter.read(c, rules, config) for c in found}

    return read


@pytest.fixture
def read(write, read_all):
    def read(*rows, rules=V2):
        write(*rows)
        return read_all(rules)["session"]

    return read


def told(parsed) -> list[tuple]:
    return [(m.type, m.role, m.content) for m in parsed.conversation.messages]


def check_books(parsed, size: int) -> None:
    """Fates tile the file; kept ones and messages answer to each other."""
    done = 0
    for fate in parsed.fates:
        assert fate.offset == done
        done += fate.size
        assert (fate.message_index is not None) == (fate.status in ("kept", "merged"))
    assert done == size
    count = len(parsed.conversation.messages)
    kept = {f.message_index for f in parsed.fates if f.status == "kept"}
    assert kept == set(range(count))
    assert all(f.message_index is None or f.message_index < count for f in parsed.fates)
    ids = [m.id for m in parsed.conversation.messages]
    assert len(set(ids)) == len(ids)


# ── answers ──


def test_lines_of_one_answer_are_one_message(read):
    parsed = read(
        row(),
        answer([{"type": "thinking", "thinking": "hm"}], "a1", "m", requestId="r"),
        answer([text("Hel")], "a2", "m", requestId="r"),
        answer([text("Hello")], "a3", "m"),
        answer([text("Bye")], "a4", "m"),
        answer([text("Bye")], "a5", "m"),
        answer([text("other")], "a6", "m", requestId="another"),
    )
    assert told(parsed)[1:] == [("assistant", "assistant", "Hello\nBye"), ("assistant", "assistant", "other")]
    assert parsed.conversation.messages[1].thinking == "hm"
    assert parsed.conversation.messages[1].id == "a1"
    assert [f.status for f in parsed.fates] == ["kept", "kept", "merged", "merged", "merged", "merged", "kept"]


def test_usage_is_that_of_the_largest_output(read):
    usage = [{"output_tokens": n, "input_tokens": 3, "cache_read_input_tokens": None} for n in (1, 9, 4)]
    rows = [answer([text(str(n))], f"a{n}", "m") for n in range(3)]
    for r, u in zip(rows, usage, strict=True):
        r["message"]["usage"] = u
    details = read(*rows).conversation.messages[0].details
    assert (details.input_tokens, details.output_tokens, details.cache_tokens) == (3, 9, None)


def test_calls_meet_their_results_in_any_order(read):
    parsed = read(
        row("user", [result("t2", "early")], "u0"),
        answer([call("t1", command="ls")], "a1", "m"),
        answer([call("t2"), call("t3")], "a2", "m"),
        row("user", [result("t1", [text("a"), text("b")], is_error=True)], "u2"),
        row("user", [text("note"), result("t3", None)], "u3"),
    )
    assert [m.content for m in parsed.conversation.messages] == ["", "note"]
    tools = parsed.conversation.messages[0].details.tools
    assert [(t.name, t.input, t.result, t.is_error) for t in tools] == [
        ("Bash", '{"command": "ls"}', "a\nb", True),
        ("Bash", "{}", "early", None),
        ("Bash", "{}", "", None),
    ]
    assert [(f.status, f.message_index) for f in parsed.fates] == [
        ("merged", 0),
        ("kept", 0),
        ("merged", 0),
        ("merged", 0),
        ("kept", 1),
    ]


def test_a_result_without_its_call_is_kept_as_such(read):
    parsed = read(row("user", [result("gone", "text")]), row(id="u2"))
    (lone, _) = parsed.conversation.messages
    assert (lone.role, lone.content, lone.has_tool_use) == ("tool", "", True)
    assert lone.details.tools[0].result == "text"


def test_a_large_result_comes_from_its_file(write, read_all):
    path = write(
        answer([call("toolu_1"), call("../toolu_1")], "a1"),
        row("user", [result("toolu_1", "<persisted-output>…")], "u1"),
        row("user", [result("../toolu_1", "<persisted-output>…")], "u2"),
    )
    folder = path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    (folder / "toolu_1.txt").write_text("all of it")
    (folder.parent / "toolu_1.txt").write_text("outside")
    tools = read_all()["session"].conversation.messages[0].details.tools
    assert [t.result for t in tools] == ["all of it", "<persisted-output>…"]


def test_raw_values_do_not_keep_a_longer_line_from_being_read(read):
    rows = [answer([call(f"t{n}", text="x" * 2000)], f"a{n}") for n in range(600)]
    long = row("user", "y" * 12_000_000, "u")
    parsed = read(*rows, long, *[answer([call("z", b=1)], "z")])
    assert len(parsed.conversation.messages) == 602
    assert len(parsed.conversation.messages[600].content) == 12_000_000
    assert parsed.conversation.messages[5].details.tools[0].input == json.dumps({"text": "x" * 2000})


def test_media_are_named(read):
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    parsed = read(row("user", [{"type": "image", "source": source}, {"type": "document"}]))
    (message,) = parsed.conversation.messages
    assert message.content == ""
    assert message.details.marks == ("image image/png 3 bytes sha256:d9cae0dbdbf0", "document")
    assert media("image", Raw(b"[")) == "image"
    assert result_text(Raw(json.dumps([{"type": "image", "source": source}]).encode())).startswith(
        "[image image/png 3 bytes"
    )


def test_withheld_thinking_is_marked(read):
    blocks = [{"type": "thinking", "thinking": "", "signature": "A"}, {"type": "redacted_thinking", "data": "B"}]
    assert read(answer(blocks, "a")).conversation.messages[0].details.marks == ("thinking withheld",)


# ── whose words ──


SORTED = {
    "what is <system-reminder>x</system-reminder>?": ("user", None),
    "<system-reminder>x</system-reminder>": ("harness", "system-reminder"),
    "<system-reminder>x</system-reminder> and I say": ("user", None),
    "<system-reminder>x": ("user", None),
    "<div>x</div>": ("user", None),
    "<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>": ("harness", "bash-stdout"),
    '<teammate-message from="a">x</teammate-message>': ("harness", "teammate-message"),
    "[Request interrupted by user for tool use]": ("harness", "interrupted"),
    "<command-message>c</command-message>\n<command-name>/c</command-name>": ("user", "command"),
    "<bash-input>ls</bash-input>": ("user", "shell command"),
}


@pytest.mark.parametrize("said", SORTED)
def test_only_whole_envelopes_are_the_harness(said):
    role, _, tag = sort_text(said)
    assert (role, tag) == SORTED[said]


def test_many_tags_are_not_quadratic():
    said = "<system-reminder></system-reminder>" * 200_000
    assert sort_text(said)[0] == "user"
    assert sort_text("<system-reminder>" * 300_000)[0] == "user"


@given(st.text(st.sampled_from("</>abc -"), max_size=40).map(lambda s: f"<system-reminder>{s}"))
def test_typed_text_is_never_lost(said):
    role, shown, _ = sort_text(said)
    assert shown == said
    assert role == "user" or said.endswith("</system-reminder>")


def test_reminders_beside_typed_text_are_left_out(read):
    parsed = read(row("user", [text("<system-reminder>r</system-reminder>"), text("typed")]))
    (message,) = parsed.conversation.messages
    assert (message.content, message.role) == ("typed", "user")
    assert message.details.marks == ("system-reminder left out",)


def test_meta_and_summary_are_the_harness(read):
    parsed = read(
        row(isMeta=True),
        {"type": "system", "subtype": "compact_boundary", "uuid": "b", "content": "x", "logicalParentUuid": "u1"},
        row(id="u2", isCompactSummary=True),
    )
    meta, boundary, summary = parsed.conversation.messages
    assert (meta.role, summary.role, boundary.type) == ("harness", "harness", "system")
    assert boundary.parent_uuid == "u1"
    assert "compact boundary" in boundary.details.marks
    assert "compact summary" in summary.details.marks


def test_queued_prompts_are_kept_once(read):
    def queue(content, **more):
        return {"type": "queue-operation", "operation": "enqueue", "content": content, "timestamp": TIME, **more}

    attached = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "b"}, "uuid": "q"}
    parsed = read(queue("a"), queue("b"), queue("c"), row("user", "a", "u1"), attached, row("user", "d", "u2"))
    assert [m.content for m in parsed.conversation.messages] == ["c", "a", "b", "d"]
    assert [f.status for f in parsed.fates] == ["merged", "merged", "kept", "kept", "kept", "kept"]


def test_a_queued_prompt_may_be_written_down_late(read):
    attached = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "b"}, "timestamp": "2026-2"}
    queue = {"type": "queue-operation", "operation": "enqueue", "content": "b"}
    parsed = read(attached, {**queue, "timestamp": "2026-1"}, {**queue, "timestamp": "2026-3"})
    assert [(f.status, f.message_index) for f in parsed.fates] == [("kept", 0), ("merged", 0), ("kept", 1)]


def test_abandoned_branches_are_marked(read):
    parsed = read(
        row(id="u1"),
        answer([text("no")], "a1", parentUuid="u1"),
        {"type": "progress", "uuid": "p", "parentUuid": "u1"},
        answer([text("yes")], "a2", parentUuid="p"),
        row(id="u9", parentUuid=None),
        row(id="u2", parentUuid="a2"),
    )
    marks = [m.details.marks for m in parsed.conversation.messages]
    assert marks == [(), ("reverted",), (), (), ()]


def test_a_cycle_of_parents_ends(read):
    rows = [row(id=f"u{n}", parentUuid=f"u{(n + 1) % 3}") for n in range(3)]
    assert len(read(*rows, row(id="v", parentUuid="u1")).conversation.messages) == 4


def test_a_record_written_twice_is_one_message(read):
    parsed = read(row(id="u1"), answer([text("a")], "a1"), row("user", "better", "u1"))
    assert [m.content for m in parsed.conversation.messages] == ["better", "a"]


@pytest.mark.parametrize(
    ("written", "fates"),
    [
        ("aa", ["kept", "merged"]),
        ("ab", ["dropped", "kept"]),
        ("aab", ["dropped", "dropped", "kept"]),
        ("abb", ["dropped", "kept", "merged"]),
        ("aba", ["dropped", "dropped", "kept"]),
        ("abcbb", ["dropped", "dropped", "dropped", "kept", "merged"]),
    ],
)
def test_of_records_with_one_id_the_first_gives_the_place_and_the_last_the_content(read, written, fates):
    rows = [row("user", text, "u1") for text in written]
    parsed = read(*rows[:1], answer([text("x")], "a1"), *rows[1:])
    assert [m.content for m in parsed.conversation.messages] == [written[-1], "x"]
    assert parsed.conversation.slug == written[-1]
    told = [f for f in parsed.fates if f.kind == "user"]
    assert [f.status for f in told] == fates
    assert {f.message_index for f in told if f.status != "dropped"} == {0}
    assert all(f.head.startswith(b'{"type": "user"') for f in told if f.status == "dropped")
    assert {(f.reason, f.message_index) for f in told if f.status == "dropped"} <= {
        ("replaced by a later record of the same id", None)
    }


def test_what_is_odd_in_a_record_written_twice_is_told_of_itself(read):
    odd = [text("hi"), {"type": "gas"}]
    parsed = read(row("user", odd, "u1"), row("user", odd, "u1"), row("user", "next", "u2"))
    assert ["unknown block kind gas" in (f.reason or "") for f in parsed.fates] == [True, True, False]


def test_records_without_id_or_time_are_kept_without_a_clock(read):
    first = row(id=None)
    del first["timestamp"]
    parsed = read(first, row(id=None))
    assert [(m.id, m.timestamp) for m in parsed.conversation.messages] == [("line-1", None), ("line-2", TIME)]
    assert parsed.conversation.first_message_at == TIME


def test_unknown_kinds_tell_the_tool_version(read):
    parsed = read(row(version="9.1.0"), {"type": "balloon"}, answer([{"type": "gas"}], "a"))
    assert [(f.kind, f.reason) for f in parsed.fates[1:]] == [
        ("balloon", "unknown kind (tool version 9.1.0)"),
        ("assistant", "unknown block kind gas (tool version 9.1.0)"),
    ]


TITLES = [
    ({"type": "summary", "summary": "of another", "leafUuid": "x"}, "hi"),
    ({"type": "summary", "summary": "own", "leafUuid": "u1"}, "own"),
    ({"type": "ai-title", "aiTitle": "model's"}, "model's"),
    ({"type": "custom-title", "customTitle": "person's"}, "person's"),
]


def test_titles_by_who_gave_them(read, write):
    for count in range(1, len(TITLES) + 1):
        rows = [title for title, _ in TITLES[:count]]
        assert read(*rows, row()).conversation.slug == TITLES[count - 1][1]


def test_the_index_gives_a_title_before_the_first_prompt(write, read_all):
    path = write(row())
    index = {"entries": [None, {"sessionId": "session", "summary": "indexed"}]}
    path.with_name("sessions-index.json").write_text(json.dumps(index))
    assert read_all()["session"].conversation.slug == "indexed"


@pytest.mark.parametrize(
    ("cwd", "name"),
    [(r"\\wsl$\Ubuntu\srv\mill", "mill"), ("vscode-remote://ssh/srv/a.b", "a.b"), ("C:\\w\\x_y", "x_y")],
)
def test_the_project_is_the_working_directory(read, cwd, name):
    conversation = read(row(cwd=cwd)).conversation
    assert (conversation.project_dir, conversation.project_name) == (cwd, name)


# ── several files ──


def test_sub_agents_are_found_at_any_depth_and_linked(write, read_all):
    write(row(), name="-a/s.jsonl")
    write(row(), name="-a/s/subagents/agent-1.jsonl").with_name("agent-1.meta.json").write_text('{"toolUseId": "t"}')
    write(row(), name="-a/s/subagents/workflows/w/agent-2.jsonl")
    write(row(), name="-a/s/subagents/workflows/w/journal.jsonl")
    write(row(), name="-a/gone/subagents/agent-3.jsonl")
    write(row(sessionId="s"), name="-a/agent-4.jsonl")
    write(row(sessionId="x"), name="-a/agent-5.jsonl")
    found = read_all()
    parents = {id: parsed.conversation.parent_id for id, parsed in found.items()}
    assert parents == {
        "s": None,
        "s/agent-1": "s",
        "s/workflows/w/agent-2": "s",
        "gone/agent-3": None,
        "agent-4": "s",
        "agent-5": None,
    }
    links = {id: parsed.conversation.links for id, parsed in found.items()}
    assert links["s/agent-1"][0].evidence.endswith("toolUseId t")
    assert (links["gone/agent-3"][0].target, links["gone/agent-3"][0].is_certain) == ("gone", False)
    assert not links["agent-5"][0].is_certain


def test_one_session_id_in_two_folders_gives_two_ids(write, read_all):
    write(row(), name="-a/s.jsonl")
    write(row(), name="-b/s.jsonl")
    write(row(sessionId="s"), name="-b/agent-1.jsonl")
    found = read_all()
    assert list(found) == ["s", "agent-1", "-b/s"]
    assert found["agent-1"].conversation.parent_id == "-b/s"


def test_side_chains_inside_a_file_are_conversations(write, read_all):
    rows = [
        row(id="m1"),
        row("user", "one", "s1", isSidechain=True, parentUuid=None),
        row("user", "two", "r1", isSidechain=True, parentUuid=None),
        answer([text("1")], "s2", isSidechain=True, parentUuid="s1"),
        answer([text("m")], "m2", parentUuid="m1"),
    ]
    path = write(*rows)
    found = read_all()
    assert {id: [m.content for m in p.conversation.messages] for id, p in found.items()} == {
        "session": ["hi", "m"],
        "session/side-s1": ["one", "1"],
        "session/side-r1": ["two"],
    }
    for parsed in found.values():
        check_books(parsed, path.stat().st_size)


def test_newer_sessions_are_not_searched_for_side_chains(write, read_all):
    write(row(version="2.0.1"), row(id="s", isSidechain=True))
    assert list(read_all()) == ["session"]


def common(count: int, session: str) -> list[dict]:
    return [row("user", f"p{n}", uuid(n), sessionId=session) for n in range(count)]


def test_a_resumed_copy_keeps_what_is_new(write, read_all):
    write(*common(3, "a"), name="-a/a.jsonl")
    write(*common(3, "b"), row("user", "new", uuid(9), sessionId="b"), name="-a/b.jsonl")
    found = read_all()
    assert len(found["a"].conversation.messages) == 3
    assert [m.content for m in found["b"].conversation.messages] == ["new"]
    (link,) = found["b"].conversation.links
    assert (link.kind, link.target, link.is_certain) == ("resumed-from", "a", True)
    assert {f.kind for f in found["b"].fates} == {"copy", "user"}


def test_a_record_that_says_something_else_is_no_copy_whatever_its_id(write, read_all):
    write(*common(3, "a"), name="-a/a.jsonl")
    edited = [
        r | {"message": {"role": "user", "content": "edited"}} if n == 1 else r for n, r in enumerate(common(3, "a"))
    ]
    write(*edited, row("user", "new", uuid(9), sessionId="b"), name="-a/b.jsonl")
    found = read_all()
    assert [m.content for m in found["b"].conversation.messages] == ["edited", "new"]
    (link,) = found["b"].conversation.links
    assert link.target == "a"
    assert "1 of them with other content" in link.evidence


def test_what_cannot_be_decided_says_so(write, read_all):
    write(*common(2, "a"), name="-a/a.jsonl")
    write(*common(2, "b"), name="-a/b.jsonl")
    (link,) = read_all()["b"].conversation.links
    assert (link.kind, link.target, link.is_certain) == ("copy-of", "a", False)


def test_ids_that_are_no_uuids_prove_no_copy(write, read_all):
    for name in ("-a/a.jsonl", "-a/b.jsonl"):
        write(row(id="msg-1"), row(id="msg-2"), name=name)
    assert all(len(p.conversation.messages) == 2 for p in read_all().values())


def test_a_family_is_read_once(write, read_all, monkeypatch):
    from crystal_nb.adapters import claude_copies

    for n in range(12):
        write(*common(n + 1, f"s{n}"), name=f"-a/s{n:02}.jsonl")
    opened = []
    read_blocks = claude_copies.read_blocks
    monkeypatch.setattr(claude_copies, "read_blocks", lambda path, d: opened.append(path) or read_blocks(path, d))
    found = read_all()
    assert len(opened) == 12
    assert sum(len(p.conversation.messages) for p in found.values()) == 12


def test_copies_are_left_alone_when_the_rule_is_off(write, read_all):
    for name in ("a", "b"):
        write(*common(2, name), name=f"-a/{name}.jsonl")
    rules = structs.replace(V2, copies_once=False)
    assert all(len(p.conversation.messages) == 2 for p in read_all(rules).values())


def test_other_roots_are_listed_unless_one_was_chosen(write, tmp_path):
    path = write(row())
    for base in (".config/claude", ".config/Claude/local-agent-mode-sessions/a/b/.claude"):
        folder = tmp_path / base / "projects/-x"
        folder.mkdir(parents=True)
        (folder / f"{len(base)}.jsonl").write_bytes(path.read_bytes())
    assert len(CAREFUL._scan(config_of(tmp_path))) == 3
    chosen = cnb.Config(home=tmp_path, folders={"claude-code": path.parent.parent})
    assert len(CAREFUL._scan(chosen)) == 1
    moved = cnb.Config(home=tmp_path, environ={"CLAUDE_CONFIG_DIR": str(tmp_path / ".config/claude")})
    assert [c.id for c in CAREFUL._scan(moved)] == ["14"]


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_dangling_links_do_not_fail_the_scan(write, tmp_path):
    path = write(row())
    path.with_name("gone.jsonl").symlink_to(tmp_path / "nowhere")
    (path.parent.parent / "gone").symlink_to(tmp_path / "nowhere")
    assert [c.id for c in CAREFUL._scan(config_of(tmp_path))] == ["session"]


# ── damage ──

GOOD = json.dumps(row()).encode()
MENDED = {
    "BOM": (b"\xef\xbb\xbf" + GOOD + b"\n", ["kept"]),
    "NUL": (b"\x00\x00" + GOOD + b"\x00\n", ["kept"]),
    "CRLF": (GOOD + b"\r\n", ["kept"]),
    "spliced": (GOOD + json.dumps(row(id="u2")).encode() + b"\n", ["kept", "kept"]),
    "torn by the next": (GOOD[:60] + GOOD + b"\n", ["dropped", "kept"]),
    "torn by a BOM and the next": (GOOD + b"\xef\xbb\xbf" + GOOD[:-1] + b"\n", ["kept", "dropped"]),
    "torn last": (GOOD + b"\n" + GOOD[:50], ["kept", "dropped"]),
    "null": (b"null\n" + GOOD, ["dropped", "kept"]),
    "number for content": (json.dumps(row(content=5)).encode() + b"\n" + GOOD, ["dropped", "kept"]),
    "NUL instead": (bytes(50) + b"\n" + GOOD, ["dropped", "kept"]),
}


@pytest.mark.parametrize("case", MENDED)
def test_damaged_lines_are_mended_and_lose_no_other(read, case):
    data, statuses = MENDED[case]
    parsed = read(data)
    assert [f.status for f in parsed.fates] == statuses
    check_books(parsed, len(data))


@pytest.mark.parametrize("data", [b"\x7fELF\x00 rubbish\n", b'{"messages": []}\n', bytes(200)])
def test_a_file_without_records_is_no_empty_conversation(write, tmp_path, data):
    write(data)
    (candidate,) = CAREFUL._scan(config_of(tmp_path))
    with pytest.raises(cnb.ParseError, match="unknown layout"):
        CAREFUL._parse(candidate, config_of(tmp_path))


@pytest.mark.parametrize("data", [b"[]\n", b"null\n\n", b'{"type": "summary", "summary": "x"}\n', GOOD[:30]])
def test_a_file_without_messages_is_no_error(read, data):
    assert read(data).conversation.messages == ()


def test_deep_nesting_is_survived(read):
    deep = b'{"type":"user","uuid":"d","message":{"content":[{"type":"text","text":"x","source":%s}]}}\n'
    parsed = read(deep % (b"[" * 100_000 + b"]" * 100_000), GOOD)
    assert [m.content for m in parsed.conversation.messages] == ["x", "hi"]


FIELDS = [
    *("type", "uuid", "parentUuid", "timestamp", "sessionId", "cwd", "version", "isSidechain", "agentId", "forkedFrom"),
    *("subtype", "content", "attachment", "summary", "leafUuid", "operation", "compactMetadata", "logicalParentUuid"),
    *("forkedSessionId", "customTitle", "message"),
]
PLACES = ["content", "id", "role", "model", "usage"]
BLOCK = ["type", "text", "thinking", "id", "name", "input", "tool_use_id", "content", "is_error", "source"]
KINDS = [
    *("user", "assistant", "system", "attachment", "queue-operation", "summary", "custom-title"),
    *("fork-context-ref", "tool_result", "x"),
]
odd_blocks = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image", "x"])},
    optional=dict.fromkeys(BLOCK[1:], json_values),
)
odd_rows = st.one_of(
    json_values,
    st.builds(
        lambda base, fields, message: {**base, "message": {**base["message"], **message}, **fields},
        st.builds(row, st.sampled_from(KINDS), st.lists(odd_blocks | json_values, max_size=3) | json_values),
        st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=2),
        st.dictionaries(st.sampled_from(PLACES), json_values, max_size=2),
    ),
)


@settings(max_examples=300, deadline=None)
@given(rows=st.lists(odd_rows, max_size=5), cut=st.integers(0, 20))
def test_any_json_anywhere_gives_books_that_close(tmp_path_factory, rows, cut):
    home = tmp_path_factory.mktemp("odd")
    path = home / ".claude/projects/-a/s.jsonl"
    path.parent.mkdir(parents=True)
    data = b"".join(json.dumps(r).encode() + b"\n" for r in [*rows, row()])
    path.write_bytes(data[: len(data) - cut])
    first = [_outcome(c, home, 1) for c in CAREFUL._scan(config_of(home))]
    assert first == [_outcome(c, home, 10**12) for c in CAREFUL._scan(config_of(home))]
    for parsed in first:
        if not isinstance(parsed, str):
            check_books(parsed, len(data) - cut)
            hashing.content_hash(parsed.conversation)


def _outcome(candidate, home, clock):
    try:
        return CAREFUL._parse(candidate, config_of(home, clock))
    except cnb.ParseError as error:
        return str(error)


# ── fixtures ──

SCENARIOS = sorted(p.parent for p in FIXTURES.glob("*/scenario.toml"))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_books_of_the_scenarios_close(scenario):
    config = config_of(scenario / "home")
    for p in cnb.parse(cnb.scan("claude-code", profile="careful", config=config), config=config).parsed:
        check_books(p, p.candidate.file_size)


@pytest.mark.parametrize("name", ["answers", "lineage", "sidechains", "mended"])
def test_the_pinned_rules_lose_what_the_careful_ones_have(name):
    config = config_of(FIXTURES / name / "home")
    pinned = cnb.parse(cnb.scan("claude-code@1", config=config), config=config)
    careful = cnb.parse(cnb.scan("claude-code@2", config=config), config=config)
    assert words(careful) - words(pinned)
    assert pinned.loss_reasons() or pinned.failed or len(careful) > len(pinned)


def words(corpus) -> set[str | None]:
    found = {m.content for c in corpus for m in c.messages}
    return found | {t.result for c in corpus for m in c.messages if m.details for t in m.details.tools}


def test_the_pinned_rules_have_every_switch_off():
    assert not any(value for value in structs.asdict(V1).values() if isinstance(value, bool))
    assert all(value for value in structs.asdict(V2).values() if isinstance(value, bool))


@pytest.mark.parametrize("field", [name for name in V2.__struct_fields__ if name != "version"])
def test_each_repair_can_be_switched_off(field, tmp_path):
    rules = structs.replace(V2, **{field: False})
    for scenario in SCENARIOS:
        config = config_of(scenario / "home")
        for candidate in CAREFUL._scan(config):
            try:
                CAREFUL.read(candidate, rules, config)
            except cnb.ParseError:
                continue
