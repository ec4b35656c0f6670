from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import json_values, texts

import crystal_nb as cnb
from crystal_nb.adapters import codex_files
from crystal_nb.adapters.codex_careful import CAREFUL
from crystal_nb.adapters.codex_events import EVENTS, RARE_EVENTS
from crystal_nb.adapters.codex_files import Opened
from crystal_nb.adapters.codex_items import ITEMS, RARE_ITEMS
from crystal_nb.adapters.codex_rules import V1, V2
from crystal_nb.adapters.codex_shapes import Wide

NAME = "rollout-2026-01-01T00-00-00-"
THREAD = "0190cccc-0000-7000-8000-0000000000"
TIME = "2026-01-01T00:00:00.000Z"


def line(type, payload, **more) -> bytes:
    return json.dumps({"timestamp": TIME, "type": type, "payload": payload, **more}).encode() + b"\n"


def lines(*records) -> bytes:
    return b"".join(line(*record) for record in records)


def meta(id="T", **more):
    return "session_meta", {"id": id, "cwd": "/srv/demo", "cli_version": "0.104.0", **more}


def event(type, **payload):
    return "event_msg", {"type": type, **payload}


def item(type, **payload):
    return "response_item", {"type": type, **payload}


def prompt(text, **more):
    return event("user_message", message=text, **more)


def answer(text):
    return event("agent_message", message=text)


def said(text, role="assistant", **more):
    return item("message", role=role, content=[{"type": "output_text", "text": text}], **more)


def completed(type, **fields):
    return event("item_completed", turn_id="t", item={"type": type, **fields})


def call(id, **more):
    return item("function_call", name="shell", arguments="{}", call_id=id, **more)


def output(id, value):
    return item("function_call_output", call_id=id, output=value)


@pytest.fixture
def home(tmp_path):
    def put(name: str, data: bytes, folder="sessions/2026/01/01") -> Path:
        path = tmp_path / ".codex" / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    put.config = cnb.Config(home=tmp_path, platform="linux", cache_seconds=0)
    return put


@pytest.fixture
def parse(home):
    def parse(data: bytes, rules=V2, name=NAME + "T.jsonl"):
        path = home(name, data)
        candidate = cnb.Candidate("codex", "T", str(path), len(data), TIME, "")
        return CAREFUL.read(candidate, rules, home.config)

    return parse


def all_of(home):
    corpus = cnb.parse(cnb.scan("codex@2", config=home.config), config=home.config)
    return {p.candidate.id: p for p in corpus.parsed}


def talk(parsed):
    return [(m.type[0], m.content) for m in parsed.conversation.messages]


def only_tools(parsed):
    return [t for m in parsed.conversation.messages for t in m.details.tools]


COPIES = {
    "event then item": ([answer("hi"), said("hi")], ["hi"]),
    "item then event": ([said("hi"), answer("hi")], ["hi"]),
    "outer white space": ([answer(" hi\n"), said("hi")], ["hi"]),
    "a real repetition": ([answer("hi"), said("hi"), answer("hi"), said("hi")], ["hi", "hi"]),
    "two events, then two items": ([answer("a"), answer("b"), said("a"), said("b")], ["a", "b"]),
    "items only": ([said("hi"), said("hi")], ["hi", "hi"]),
    "the same in the next turn": ([said("hi"), prompt("x"), answer("hi")], ["hi", "x", "hi"]),
    "equal ids across turns": (
        [
            event("task_started", turn_id="1"),
            said("hi", id="m"),
            event("task_started", turn_id="2"),
            completed("AgentMessage", id="m", content=[{"type": "Text", "text": "hi"}]),
        ],
        ["hi"],
    ),
    "other ids": ([said("hi", id="m"), completed("AgentMessage", id="n", content=[{"text": "hi"}])], ["hi", "hi"]),
    "last message of a turn": ([answer("hi"), event("task_complete", last_agent_message="hi")], ["hi"]),
    "only the last message": ([prompt("x"), event("task_complete", last_agent_message="hi")], ["x", "hi"]),
}


@pytest.mark.parametrize("case", COPIES)
def test_a_text_is_told_once_per_time_it_was_said(parse, case):
    records, wanted = COPIES[case]
    assert [text for _, text in talk(parse(lines(*records)))] == wanted


def test_copies_point_at_the_message_they_repeat(parse):
    parsed = parse(lines(prompt("x"), said("x", role="user"), said("hi"), answer("hi")))
    assert [(f.status, f.message_index) for f in parsed.fates] == [
        ("kept", 0),
        ("merged", 0),
        ("kept", 1),
        ("merged", 1),
    ]


def test_prompts_of_paginated_threads_are_found(parse):
    user = completed("UserMessage", id="u", content=[{"type": "text", "text": "do"}])
    parsed = parse(lines(meta(history_mode="paginated"), user, said("done")))
    assert talk(parsed) == [("u", "do"), ("a", "done")]
    assert [m.id for m in parsed.conversation.messages] == ["u", f"{parsed.conversation.id}:line-3"]


USER_ITEMS = {
    "<environment_context>x</environment_context>": [],
    "# AGENTS.md instructions for /a\n<INSTRUCTIONS>x</INSTRUCTIONS>": [],
    "<skill>a</skill>\n<turn_aborted>b</turn_aborted> go": [("u", "go")],
    "<environment_context> is what?": [("u", "<environment_context> is what?")],
    "# Context from my IDE setup:\na.py\n## My request for Codex:\r\n go ": [("u", "go")],
    "What does\n## My request for Codex:\nmean?": [("u", "What does\n## My request for Codex:\nmean?")],
}


@pytest.mark.parametrize("text", USER_ITEMS)
def test_what_was_typed_is_told_from_what_was_injected(parse, text):
    assert talk(parse(lines(said(text, role="user")))) == USER_ITEMS[text]


def test_injected_texts_are_messages_only_on_request(parse):
    data = lines(said("be careful", role="developer"))
    assert talk(parse(data)) == []
    assert talk(parse(data, replace(V2, context_as_messages=True))) == [("s", "be careful")]


def test_calls_stand_at_their_turn_with_input_and_result(parse):
    records = [answer("before"), prompt("x"), call("1"), output("1", "out"), answer("a"), call("2")]
    parsed = parse(lines(*records))
    assert [(m.content, m.has_tool_use) for m in parsed.conversation.messages] == [
        ("before", False),
        ("x", False),
        ("", True),
        ("a", True),
    ]
    first, second = only_tools(parsed)
    assert (first.name, first.input, first.result, second.result) == ("shell", "{}", "out", None)
    assert [f.status for f in parsed.fates] == ["kept", "kept", "kept", "merged", "kept", "merged"]


@pytest.mark.parametrize(
    ("value", "result", "is_error"),
    [
        ('{"output":"o","metadata":{"exit_code":2}}', "o", True),
        ("Process exited with code 0\nOutput:\no", "Process exited with code 0\nOutput:\no", False),
        ([{"type": "input_text", "text": "o"}], "o", None),
        ({"content": "o", "success": False}, "o", True),
        ({"other": 1}, '{"other":1}', None),
    ],
)
def test_outputs_of_all_forms(parse, value, result, is_error):
    (tool,) = only_tools(parse(lines(call("1"), output("1", value))))
    assert (tool.result, tool.is_error) == (result, is_error)


def test_a_result_may_come_before_its_call_or_without_it(parse):
    first, second = only_tools(parse(lines(output("1", "early"), call("1"), output("2", "alone"))))
    assert (first.name, first.result, second.name, second.result) == ("shell", "early", "", "alone")


def test_what_the_front_end_saw_of_a_call_fills_it_up(parse):
    end = event("exec_command_end", call_id="1", exit_code=1, aggregated_output="cut", command=["ls"])
    (tool,) = only_tools(parse(lines(end, call("1"), output("1", "whole"))))
    assert (tool.name, tool.result, tool.is_error) == ("shell", "whole", True)


def test_reasoning_goes_to_the_message_that_follows_and_is_told_once(parse):
    summary = item("reasoning", summary=[{"type": "summary_text", "text": "hm"}])
    parsed = parse(lines(event("agent_reasoning", text="hm"), summary, answer("a")))
    assert [(m.content, m.thinking) for m in parsed.conversation.messages] == [("a", "hm")]
    assert [f.status for f in parsed.fates] == ["merged", "merged", "kept"]


def test_reasoning_alone_is_a_message(parse):
    parsed = parse(lines(event("agent_reasoning", text="hm")))
    assert [m.thinking for m in parsed.conversation.messages] == ["hm"]
    assert [f.status for f in parsed.fates] == ["kept"]


def test_rolled_back_turns_are_marked(parse):
    records = [
        prompt("a"),
        answer("1"),
        prompt("b"),
        answer("2"),
        event("thread_rolled_back", num_turns=1),
        prompt("c"),
    ]
    marked = [m.content for m in parse(lines(*records)).conversation.messages if "reverted" in m.details.marks]
    assert marked == ["b", "2"]


def test_a_compaction_is_a_boundary_with_its_summary_and_no_history(parse):
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "old"}]}]
    compacted = ("compacted", {"message": "So far.", "replacement_history": history})
    parsed = parse(lines(compacted, event("context_compacted"), prompt("x")))
    assert talk(parsed) == [("s", "So far."), ("u", "x")]
    assert parsed.conversation.messages[0].details.marks == ("compact boundary", "compact summary")
    assert parse(lines(event("context_compacted"), prompt("x"))).conversation.messages[0].details.marks == (
        "compact boundary",
    )


def test_tokens_and_model(parse):
    usage = {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 2}
    count = event("token_count", info={"total_token_usage": usage, "last_token_usage": usage})
    parsed = parse(lines(("turn_context", {"model": "m"}), answer("a"), count, count))
    details = parsed.conversation.messages[0].details
    assert (details.model, details.input_tokens, details.cache_tokens, details.output_tokens) == ("m", 9, 4, 2)


def test_images_are_named_once(parse):
    url = "data:image/png;base64,AAAA"
    content = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": url}]
    parsed = parse(lines(item("message", role="user", content=content), prompt("see", images=[url])))
    (message,) = parsed.conversation.messages
    assert message.details.marks == ("image image/png 3 bytes sha256:709e80c88487",)


def test_unknown_kinds_say_their_tool_version(parse):
    parsed = parse(lines(meta(), event("new"), item("newer"), ("newest", {}), completed("Newer")))
    assert {f.reason for f in parsed.fates if f.status == "dropped"} == {"unknown kind (tool version 0.104.0)"}
    assert [f.kind for f in parsed.fates[1:]] == [
        "event_msg/new",
        "response_item/newer",
        "newest",
        "event_msg/item_completed/Newer",
    ]


def test_an_unknown_history_mode_is_an_outcome_of_its_own(parse):
    with pytest.raises(cnb.ParseError, match="unknown layout"):
        parse(lines(meta(history_mode="other"), prompt("x")))


def test_output_of_exec_json_is_no_rollout(parse):
    with pytest.raises(cnb.ParseError, match="exec --json"):
        parse(b'{"type":"thread.started","thread_id":"x"}\n')


def test_lines_are_mended(parse):
    torn = line(*prompt("x"))[:40] + line(*prompt("x"))
    data = b"\xef\xbb\xbf" + lines(meta("A")) + b"\0\0" + torn + b"\0\0\n" + line(*answer("y"))[:30]
    parsed = parse(data)
    assert (parsed.conversation.id, talk(parsed)) == ("A", [("u", "x")])
    assert [f.reason for f in parsed.fates[-2:]] == ["NUL run", "invalid JSON"]


def test_missing_times_stay_null_and_the_order_is_the_files(parse):
    early = {"timestamp": "2020-01-01T00:00:00.000Z", "type": "event_msg", "payload": answer("b")[1]}
    data = line(*prompt("a")) + json.dumps(early).encode() + b"\n"
    assert [text for _, text in talk(parse(data))] == ["a", "b"]
    parsed = parse(b'{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}\n')
    assert parsed.conversation.first_message_at is None


@pytest.mark.parametrize("cwd", ["C:\\w\\x", "\\\\wsl$\\U\\home", "vscode-remote://ssh/x"])
def test_folders_of_other_machines_stay_readable(parse, cwd):
    assert parse(lines(meta(cwd=cwd))).conversation.project_dir == cwd


def test_a_twelve_million_character_line(parse):
    (tool,) = only_tools(parse(lines(call("1"), output("1", "x" * 12_000_000))))
    assert len(tool.result) == 12_000_000


def packed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(data)


def test_compressed_rollouts_are_read_and_offsets_are_those_of_the_text(home):
    data = lines(meta(THREAD + "01"), prompt("x"), *[answer(f"{n}" * 999) for n in range(3000)])
    home(f"{NAME}{THREAD}01.jsonl.zst", packed(data))
    (parsed,) = all_of(home).values()
    assert len(parsed.conversation.messages) == 3001
    assert sum(f.size for f in parsed.fates) == len(data)


def test_plain_goes_before_compressed_and_live_before_archived(home):
    name = f"{NAME}{THREAD}01.jsonl"
    home(name + ".zst", packed(lines(prompt("packed"))))
    home(name, lines(prompt("archived")), "archived_sessions")
    home(name, lines(prompt("plain")))
    home(f"{NAME}{THREAD}02.jsonl", lines(prompt("only archived")), "archived_sessions")
    assert [talk(p) for p in all_of(home).values()] == [[("u", "plain")], [("u", "only archived")]]


def test_damaged_compressed_data_keeps_what_came_before(home):
    data = b"".join(line(*answer(f"{n}{hash(n * 7.7)}")) for n in range(50_000))
    whole = packed(data)
    home(f"{NAME}{THREAD}01.jsonl.zst", whole[:-2000] + b"\xff" * 2000)
    home(f"{NAME}{THREAD}02.jsonl.zst", b"no zstd")
    corpus = cnb.parse(cnb.scan("codex@2", config=home.config), config=home.config)
    assert [f.candidate.id for f in corpus.failed] == [THREAD + "02"]
    assert "damaged" in corpus.parsed[0].fates[-1].reason
    assert len(corpus.parsed[0].conversation.messages) > 10_000


def frame(data: bytes, checksum: bool) -> bytes:
    """A frame of many blocks: compressed ones, and one repeated byte where the data is that."""
    packer = zstandard.ZstdCompressor(level=3, write_checksum=checksum).compressobj()
    pieces = [data[at : at + 3000] for at in range(0, len(data), 3000)]
    parts = [packer.compress(piece) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for piece in pieces]
    return b"".join(parts) + packer.flush()


def rambling(first: int, count: int) -> bytes:
    return lines(*[answer(f"{n}{hash(n * 7.7)}" + "x" * 300 * (n % 2)) for n in range(first, first + count)])


SKIPPED = (0x184D2A5F).to_bytes(4, "little") + (700).to_bytes(4, "little") + b"?" * 700
INCOMPRESSIBLE = random.Random(7).randbytes(5000)
PIECES = [rambling(0, 40), b"", b" " * 200_000 + b"\n", INCOMPRESSIBLE, rambling(40, 40)]


@pytest.mark.parametrize("checksum", [False, True])
def test_compressed_data_that_ends_too_early_is_told_wherever_it_is_cut(home, checksum):
    frames = [SKIPPED, *(frame(piece, checksum) for piece in PIECES), SKIPPED]
    whole = b"".join(frames)
    good = {sum(map(len, frames[:count])) for count in range(len(frames) + 1)}
    near = {place + by for place in good for by in range(-20, 21)}
    path = home(f"{NAME}{THREAD}01.jsonl.zst", whole)
    for cut in sorted({at for at in near if 0 <= at <= len(whole)} | set(range(0, len(whole), 97))):
        path.write_bytes(whole[:cut])
        with Opened(path) as file:
            buffer = bytearray(1 << 20)
            while file.readinto(buffer):
                pass
            assert file.damage == (None if cut in good else "it ends in the middle of a frame"), cut
            assert file.readinto(buffer) == 0


@pytest.mark.parametrize(("behind", "is_told"), [(b"", True), (bytes(58), False), (frame(b"x" * 9, False)[6:-1], True)])
def test_a_header_with_nothing_but_zeros_behind_it_is_an_empty_file(home, behind, is_told):
    path = home(f"{NAME}{THREAD}01.jsonl.zst", zstandard.MAGIC_NUMBER.to_bytes(4, "little") + bytes(2) + behind)
    with Opened(path) as file:
        while file.readinto(bytearray(9)):
            pass
        assert bool(file.damage) == is_told


@pytest.mark.parametrize("checksum", [False, True])
def test_the_books_of_a_cut_compressed_rollout_do_not_close(home, checksum):
    pack = zstandard.ZstdCompressor(write_checksum=checksum).compress
    frames = [pack(rambling(0, 9000)), pack(rambling(9000, 9000))]
    whole = b"".join(frames)
    path = home(f"{NAME}{THREAD}01.jsonl.zst", whole)

    def closed() -> bool | None:
        corpus = cnb.parse(cnb.scan("codex@2", config=home.config), config=home.config)
        assert not corpus.failed
        told = [fate.reason for fate in corpus.parsed[0].fates if fate.kind == "zstd"]
        (is_closed,) = corpus.books()["closed"]
        assert told == (
            [] if is_closed else ["the compressed data is damaged from here: it ends in the middle of a frame"]
        )
        assert corpus.books()["file_size"].to_list() == [path.stat().st_size]
        return is_closed

    assert closed()
    for cut in (1, 2, 4, 2000, len(frames[1]) - 3, len(frames[1]) + 1):
        path.write_bytes(whole[:-cut])
        assert not closed(), cut
    path.write_bytes(frames[0])
    assert closed()


def test_a_compressed_rollout_cut_before_its_first_record_fails(home):
    home(f"{NAME}{THREAD}01.jsonl.zst", packed(lines(answer("x")))[:9])
    corpus = cnb.parse(cnb.scan("codex@2", config=home.config), config=home.config)
    assert "ends in the middle of a frame" in corpus.failed[0].message


MEGABYTES = 1 << 20
BOMBS = {
    "blank lines": (b"\n" * MEGABYTES, 4096, 2 * MEGABYTES),
    "lone carriage returns": (b"\r" * MEGABYTES, 4096, 2 * MEGABYTES),
    "empty objects": (b"{}\n" * (MEGABYTES // 3), 4096, 2 * MEGABYTES),
    "one blank line without end": (b" " * MEGABYTES, 4096, 90 * MEGABYTES),
    "few lines, each of a megabyte": (b" " * (MEGABYTES - 1) + b"\n", 4096, 66 * MEGABYTES),
}
"""By what it unfolds to: a frame that is repeated, how often, and how many bytes may come out of it at most."""


@pytest.mark.parametrize("name", BOMBS)
def test_compressed_data_that_unfolds_without_measure_is_refused(home, name):
    frame, times, most = BOMBS[name]
    data = packed(lines(meta(THREAD + "01"), prompt("hi"))) + packed(frame) * times
    home(f"{NAME}{THREAD}01.jsonl.zst", data)
    corpus = cnb.parse(cnb.scan("codex@2", config=home.config), config=home.config)
    (failure,) = corpus.failed
    assert (failure.error, failure.candidate.id) == ("ParseError", THREAD + "01")
    told = re.search(r"([\d,]+) compressed bytes unfold to ([\d,]+) bytes with ([\d,]+) line ends", failure.message)
    packed_bytes, unfolded, ends = (int(number.replace(",", "")) for number in told.groups())
    assert packed_bytes == len(data)
    assert unfolded <= most
    assert ends <= 100_000 + len(data) + MEGABYTES


def test_a_compressed_line_has_a_longest_size(home, monkeypatch):
    monkeypatch.setattr(codex_files, "_LONGEST_LINE", 500_000)
    path = home(f"{NAME}{THREAD}01.jsonl.zst", packed(lines(*[answer("x" * 400_000)] * 9)))
    assert len(all_of(home)[THREAD + "01"].fates) == 9
    path.write_bytes(packed(lines(answer("x" * 600_000))))
    corpus = cnb.parse(cnb.scan("codex@2", config=home.config), config=home.config)
    assert "too large: a line of more than" in corpus.failed[0].message


@pytest.mark.parametrize(
    "rows", [[answer("x" * 40_000_000)], [answer("same")] * 60_000, [answer(f"{n}") for n in range(110_000)]]
)
def test_histories_that_compress_very_well_are_read(home, rows):
    data = lines(meta(THREAD + "01"), prompt("hi"), *rows)
    home(f"{NAME}{THREAD}01.jsonl.zst", packed(data))
    (parsed,) = all_of(home).values()
    assert sum(f.size for f in parsed.fates) == len(data)


def test_without_a_zstd_library_the_outcome_says_so(home, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    home(f"{NAME}{THREAD}01.jsonl.zst", b"x")
    corpus = cnb.parse(cnb.scan("codex@2", config=home.config), config=home.config)
    assert "compressed, not read" in corpus.failed[0].message


def test_a_fork_keeps_its_own_identity_and_turns(home):
    turns = [event("task_started", turn_id="p"), prompt("x"), answer("y")]
    home(f"{NAME}{THREAD}01.jsonl", lines(meta(THREAD + "01"), *turns))
    own = [event("task_started", turn_id="c"), prompt("z")]
    fork = lines(meta(THREAD + "02", forked_from_id=THREAD + "01"), meta(THREAD + "01"), *turns, *own)
    home(f"{NAME}{THREAD}02.jsonl", fork)
    parsed = all_of(home)[THREAD + "02"]
    assert (parsed.conversation.id, talk(parsed)) == (THREAD + "02", [("u", "z")])
    (link,) = parsed.conversation.links
    assert (link.kind, link.target, link.is_certain) == ("forked-from", THREAD + "01", True)


@pytest.mark.parametrize("has_parent", [True, False])
def test_where_the_border_is_undecidable_all_is_kept_and_it_says_so(home, has_parent):
    if has_parent:
        home(f"{NAME}{THREAD}01.jsonl", lines(meta(THREAD + "01"), prompt("x")))
    home(f"{NAME}{THREAD}02.jsonl", lines(meta(THREAD + "02"), meta(THREAD + "01"), prompt("x")))
    parsed = all_of(home)[THREAD + "02"]
    assert talk(parsed) == [("u", "x")]
    assert ("copy-of", False) in {(link.kind, link.is_certain) for link in parsed.conversation.links}


SELF = THREAD + "01"
ITSELF = {
    "fork": {"forked_from_id": SELF},
    "thread": {"parent_thread_id": SELF},
    "spawn": {"source": {"subagent": {"thread_spawn": {"parent_thread_id": SELF}}}},
    "base": {"history_base": {"thread_id": SELF}},
}


@pytest.mark.parametrize("of_itself", ITSELF.values(), ids=ITSELF)
@pytest.mark.parametrize("names", [[SELF], [f"{SELF}_{THREAD}02"], [SELF, f"{SELF}_{THREAD}02"]], ids="+".join)
def test_no_edge_leads_from_a_thread_to_itself(home, of_itself, names):
    for at, name in enumerate(names, 1):
        data = lines(meta(SELF, **of_itself), event("task_started", turn_id="p"), prompt(f"x{at}"))
        home(f"rollout-2026-01-0{at}T00-00-00-{name}.jsonl", data)
    parsed = all_of(home)
    for id, one in parsed.items():
        assert one.conversation.parent_id is None
        assert id not in [link.target for link in one.conversation.links]
        assert any(not link.is_certain for link in one.conversation.links) or "history_base" in of_itself
    assert ("u", f"x{len(names)}") in talk(parsed[SELF])


def test_a_sub_agent_is_part_of_its_parent(home):
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "P", "depth": 1}}}
    home(f"{NAME}{THREAD}01.jsonl", lines(meta(THREAD + "01", source=source), prompt("x")))
    conversation = all_of(home)[THREAD + "01"].conversation
    assert (conversation.parent_id, conversation.links[0].kind) == ("P", "subagent-of")
    assert conversation.messages[0].details.is_sidechain


def base(of, end=None, **more):
    return {"thread_id": of, "end_ordinal_exclusive": None, "end_byte_offset": end, **more}


def test_history_base_gives_the_beginning_and_the_rest_is_a_revision(home):
    id, second = THREAD + "01", THREAD + "02"
    start = lines(meta(id), prompt("a"))
    home(f"{NAME}{id}.jsonl", start + lines(prompt("gone")))
    home(
        f"rollout-2026-01-02T00-00-00-{id}_{second}.jsonl",
        lines(meta(id, history_base=base(id, len(start))), prompt("b")),
    )
    parsed = all_of(home)
    assert talk(parsed[id]) == [("u", "a"), ("u", "b")]
    assert talk(parsed[f"{id}/{id}"]) == [("u", "gone")]
    own = [f for f in parsed[id].fates if f.key is None]
    assert sum(f.size for f in own) == parsed[id].candidate.file_size


@pytest.mark.parametrize("of", [THREAD + "02", THREAD + "77"])
def test_a_chain_that_goes_round_or_ends_in_nothing_is_told(home, of):
    id, second = THREAD + "01", THREAD + "02"
    home(f"{NAME}{id}.jsonl", lines(meta(id, history_base=base(of)), prompt("a")))
    home(f"rollout-2026-01-02T00-00-00-{id}_{second}.jsonl", lines(meta(id, history_base=base(id)), prompt("b")))
    links = all_of(home)[id].conversation.links
    assert [link.is_certain for link in links] == [False]


def test_ids_are_unique_and_the_same_in_each_scan(home):
    for folder in ("sessions/a", "sessions/b", "sessions/c"):
        home(f"{NAME}{THREAD}01.jsonl", lines(meta(THREAD + "01"), prompt(folder)), folder)
    first, second = (list(all_of(home)) for _ in range(2))
    assert first == second
    assert len(first) == 3
    assert {p.conversation.id for p in all_of(home).values()} == set(first)


def test_other_rollouts_are_not_read_for_a_plain_one(home, monkeypatch):
    home(f"{NAME}{THREAD}01.jsonl", lines(meta(THREAD + "01"), prompt("x")))
    path = home(f"{NAME}{THREAD}02.jsonl", lines(meta(THREAD + "02"), prompt("y")))
    opened = []
    real = cnb.adapters.codex_files.open_file
    monkeypatch.setattr(cnb.adapters.codex_files, "open_file", lambda p: opened.append(p) or real(p))
    CAREFUL.read(cnb.Candidate("codex", THREAD + "02", str(path), 1, TIME, ""), V2, home.config)
    assert opened == [str(path)]


def test_each_repair_can_be_switched_off(parse):
    data = lines(meta(), said("x", role="user"), call("1"), answer("a"))
    assert talk(parse(data, replace(V2, user_items=False))) == [("a", ""), ("a", "a")]
    without = parse(data, replace(V2, tool_calls=False))
    assert "rule tool_calls is off" in {f.reason for f in without.fates}
    assert type(V1)("codex@1") == V1


FIELDS = (*Wide.__struct_fields__, "record_type", "uuid", "workspace", "encrypted_content")
KINDS = [kind for kinds in (ITEMS, RARE_ITEMS, EVENTS, RARE_EVENTS) for kind in kinds if kind]
few = st.sampled_from(["a", "b", 1, True, None, "<skill>a</skill>", "data:image/png;base64,A"])
blocks = st.lists(st.fixed_dictionaries({"type": st.sampled_from(["text", "input_image", "reasoning"]), "text": few}))
items = st.fixed_dictionaries(
    {"type": st.sampled_from(["UserMessage", "AgentMessage", "Reasoning", "CommandExecution", "Plan", "New"])},
    optional=dict.fromkeys(("id", "content", "text", "summary_text", "exit_code", "error"), few | blocks | json_values),
)
payloads = st.dictionaries(st.sampled_from(FIELDS), few | texts | blocks | items | json_values, max_size=5)
typed = st.tuples(payloads, st.sampled_from(KINDS), st.sampled_from(["user", "assistant", "developer"])).map(
    lambda drawn: {**drawn[0], "type": drawn[1], "role": drawn[2]}
)
any_line = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["session_meta", "event_msg", "response_item", "turn_context", "compacted"])
        | json_values
    },
    optional={"timestamp": json_values, "payload": typed | payloads | json_values, "message": json_values},
).map(lambda record: json.dumps(record).encode() + b"\n")
pieces = (
    any_line | payloads.map(lambda record: json.dumps(record).encode() + b"\n") | st.binary().map(lambda b: b + b"\n")
)


@given(st.lists(pieces, max_size=12).map(b"".join))
def test_any_bytes_give_a_fate_for_each_byte_and_two_parses_are_equal(parse, data):
    try:
        parsed = parse(data)
    except cnb.ParseError:
        return
    assert sum(f.size for f in parsed.fates) == len(data)
    at = 0
    for fate in parsed.fates:
        assert fate.offset == at
        at += fate.size
    kept = [f.message_index for f in parsed.fates if f.status == "kept"]
    assert sorted(kept) == list(range(len(parsed.conversation.messages)))
    assert all(f.message_index is not None for f in parsed.fates if f.status in ("kept", "merged"))
    assert all(f.reason for f in parsed.fates if f.status == "dropped")
    ids = [m.id for m in parsed.conversation.messages]
    assert len(set(ids)) == len(ids)
    assert parse(data) == parsed
    cnb.content_hash(parsed.conversation)


@given(json_values | st.fixed_dictionaries({"items": st.lists(typed | json_values)}, optional={"session": json_values}))
def test_any_document_gives_a_fate_for_each_item_or_a_parse_error(home, value):
    path = home("rollout-2025-04-20-x.json", json.dumps(value).encode())
    try:
        parsed = CAREFUL._parse(cnb.Candidate("codex", "x", str(path), 1, TIME, ""), home.config)
    except cnb.ParseError:
        return
    assert len([f for f in parsed.fates if f.key != "/session"]) == len(value["items"])
