"""From a message back to the raw text in the tool's file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import crystal_nb as cnb
from crystal_nb.parse_session import ParserRules, RawRecord, run_parser
from crystal_nb.provenance import sources_of
from crystal_nb.rereading import raw_record


@pytest.fixture(scope="module")
def corpus() -> cnb.Corpus:
    config = cnb.samples.config()
    return cnb.parse(cnb.scan(config=config), config=config)


def messages(corpus: cnb.Corpus):
    for p in corpus.parsed:
        for index, message in enumerate(p.conversation.messages):
            yield p.candidate.source, p.candidate.id, index, message


def test_every_message_of_the_samples_leads_back_to_its_text(corpus):
    found = 0
    for source, id, index, message in messages(corpus):
        records = corpus.source_of(source, id, index)
        assert records
        for word in message.content.split()[:3]:
            assert any(word in record.text or json.dumps(word)[1:-1] in record.text for record in records)
            found += 1
    assert found > 20


def test_a_field_leads_to_the_part_of_the_record_that_gave_it(corpus):
    source, id, index, message = next(m for m in messages(corpus) if m[0] == "codex")
    (part,) = corpus.source_of(source, id, index, "content")
    assert json.loads(part.text) == message.content
    assert part.pointer == "/payload/message"
    assert part.line is not None


def test_a_text_in_a_database_names_its_key(corpus):
    source, id, index, message = next(m for m in messages(corpus) if m[0] == "cursor")
    (part,) = corpus.source_of(source, id, index, "content")
    assert json.loads(part.text) == message.content
    assert part.key.startswith("cursorDiskKV/bubbleId:")


def test_every_raw_record_of_the_samples_can_be_read_again(corpus):
    for p in corpus.parsed:
        for fate in p.fates:
            data = raw_record(p.candidate, fate)
            assert data
            if fate.head and fate.offset is not None:
                assert data.startswith(fate.head)


def test_what_is_not_there_is_named(corpus):
    source, id, *_ = next(messages(corpus))
    with pytest.raises(cnb.UnknownConversationError, match="none at 99"):
        corpus.source_of(source, id, 99)
    with pytest.raises(cnb.UnknownConversationError, match=r"no field 'colour'; it has .*tool_input"):
        corpus.source_of(source, id, 0, "colour")
    with pytest.raises(cnb.UnknownConversationError, match="no conversation"):
        corpus.source_of(source, "nobody", 0)


def test_a_column_of_the_details_leads_to_its_part(corpus):
    config = cnb.samples.config()
    careful = cnb.parse(cnb.scan(config=config, profile="careful"), config=config)
    columns = ("tool_name", "tool_input", "tool_result", "model")
    found = dict.fromkeys(columns, 0)
    for source, id, index, message in messages(careful):
        d = message.details
        if d is not None and careful[source, id].messages[index] is message:
            values = [[t.name for t in d.tools], [t.input for t in d.tools], [t.result for t in d.tools], [d.model]]
            for column, wanted in zip(columns, values, strict=True):
                parts = careful.source_of(source, id, index, column)
                assert not parts or any(wanted)
                found[column] += any(part.text.strip('"') in str(w) for part in parts for w in wanted)
    assert all(found.values())


def test_a_file_that_is_gone_or_shorter_is_an_error_with_its_name(tmp_path):
    home = tmp_path / "home"
    shutil.copytree(cnb.samples.home(), home)
    config = cnb.Config(home=home)
    corpus = cnb.parse(cnb.scan("codex", config=config), config=config)
    path = Path(corpus.parsed[0].candidate.file_path)
    path.write_bytes(b"")
    with pytest.raises(cnb.SourceError, match="ends before the record"):
        corpus.source_of("codex", corpus.parsed[0].candidate.id, 0)
    path.unlink()
    with pytest.raises(cnb.SourceError, match=path.name):
        corpus.source_of("codex", corpus.parsed[0].candidate.id, 0)


def test_a_record_of_several_messages_leads_to_each_also_after_sorting_by_time():
    def say(record, session):
        if "fix" in record:
            session.amend(0, content=record["fix"])
        for text, at in record.get("says", ()):
            yield cnb.Message("user", text, timestamp=at)

    values = [{"says": [["d", 4], ["a", 1]]}, {"says": [["c", 3], ["b", 2]], "fix": "dd"}, {"fix": "D"}]
    records = [RawRecord(value, b"{}", line=number) for number, value in enumerate(values, 1)]
    candidate = cnb.Candidate("mine", "7", "/f", 1, "", "")
    parsed = run_parser(say, records, candidate, ParserRules("mine@1"), cnb.Config(), by_time=True)
    assert [m.content for m in parsed.conversation.messages] == ["a", "b", "c", "D"]
    assert [f.messages for f in parsed.fates] == [(3, 0), (2, 1, 3), (3,)]


def test_a_list_of_messages_in_one_line_leads_to_each(tmp_path):
    path = tmp_path / ".gemini/tmp/p/chats/session-x.jsonl"
    path.parent.mkdir(parents=True)
    said = [{"id": id, "type": "user", "content": f"text of {id}"} for id in "abc"]
    lines = [{"sessionId": "x"}, said[1], {"$set": {"messages": said}}, {**said[0], "content": "text of a, again"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = cnb.Config(home=tmp_path)
    corpus = cnb.parse(cnb.scan("gemini", config=config), config=config)
    found = [[part.line for part in corpus.source_of("gemini", "x", index)] for index in range(3)]
    assert found == [[3, 4], [2, 3], [3]]
    (part,) = corpus.source_of("gemini", "x", 2, "content")
    assert (json.loads(part.text), part.pointer) == ("text of c", "/$set/messages/2/content")


def test_a_line_of_a_log_leads_to_each_message_that_it_brought(tmp_path):
    path = tmp_path / ".config/Code/User/workspaceStorage/w/chatSessions/s.jsonl"
    path.parent.mkdir(parents=True)
    turn = {"requestId": "r", "timestamp": 1, "message": {"text": "Why?"}, "response": [{"value": "Because."}]}
    path.write_text(json.dumps({"kind": 0, "v": {"requests": [turn]}}) + "\n")
    config = cnb.Config(home=tmp_path, platform="linux")
    corpus = cnb.parse(cnb.scan("copilot", profile="careful", config=config), config=config)
    found = [corpus.source_of("copilot", "s", index, "content") for index in range(2)]
    assert [(part.line, json.loads(part.text)) for (part,) in found] == [(1, "Why?"), (1, "Because.")]


def test_a_text_that_the_rules_wrap_leads_to_the_value_that_has_its_words(tmp_path):
    path = tmp_path / ".codex/sessions/rollout-x.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    line = json.dumps({"noise": "x", "in": "<name>/cost</name><args>today</args>"})
    candidate = cnb.Candidate("codex", "x", str(path), 1, "", "")
    path.write_text(line)
    fate = cnb.Fate("kept", "x", message_index=0, offset=0, size=len(line))
    (part,) = sources_of(candidate, [fate], 0, cnb.Message("user", "/cost today"), "content")
    assert part.pointer == "/in"


@pytest.mark.parametrize("padding", ["\ufeff", "\0\0", '{"type":"torn ', ""])
def test_a_value_in_a_padded_or_torn_line_is_found(tmp_path, padding):
    path = tmp_path / "rollout-x.jsonl"
    line = (padding + '{"in": "hi there"}\n').encode()
    path.write_bytes(line)
    candidate = cnb.Candidate("codex", "x", str(path), 1, "", "")
    fate = cnb.Fate("kept", "x", message_index=0, offset=0, size=len(line))
    (part,) = sources_of(candidate, [fate], 0, cnb.Message("user", "hi there"), "content")
    assert (part.text, part.pointer) == ('"hi there"', "/in")


def test_a_compressed_file_is_read_where_the_text_stands(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"0123456789" * 300_000))
    candidate = cnb.Candidate("codex", "7", str(path), 1, "", "")
    assert raw_record(candidate, cnb.Fate("dropped", "x", offset=2_000_003, size=4)) == b"3456"
    with pytest.raises(cnb.SourceError, match="ends before"):
        raw_record(candidate, cnb.Fate("dropped", "x", offset=4_000_000, size=4))


@pytest.mark.parametrize("as_log", [False, True])
@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
def test_every_record_of_a_session_of_copilot_is_found_again(tmp_path, as_log, profile):
    """A log's first line holds the document that the pinned rules' pointers go into."""
    from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_copilot

    said = tuple(SampleMessage(r, f"{r} speaks", f"m-{r}", "2026-01-05T10:00:00.000Z") for r in ("user", "assistant"))
    path = write_copilot(tmp_path, Sample("v1", said))
    if as_log:
        document = json.loads(path.read_text())
        path.with_suffix(".jsonl").write_text(json.dumps({"kind": 0, "v": document}) + "\n")
        path.unlink()
    config = cnb.Config(home=tmp_path, platform="linux", cache_seconds=0)
    corpus = cnb.parse(cnb.scan("copilot", profile=profile, config=config), config=config)
    (p,) = corpus.parsed
    assert all(raw_record(p.candidate, fate) for fate in p.fates)
    assert "user speaks" in corpus.source_of("copilot", "v1", 0, "content")[0].text
