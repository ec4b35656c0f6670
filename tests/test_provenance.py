"""From a message back to the raw text in the tool's file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import crystal_nb as cnb
from crystal_nb.provenance import raw_record
from crystal_nb.records import Candidate, Fate


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
    with pytest.raises(cnb.UnknownConversationError, match="no field 'colour'"):
        corpus.source_of(source, id, 0, "colour")
    with pytest.raises(cnb.UnknownConversationError, match="no conversation"):
        corpus.source_of(source, "nobody", 0)


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


@pytest.mark.parametrize("key", ["/no/such", "/requests/9", "/requests/x", "nothing/here", "cursorDiskKV/none", ""])
def test_a_key_that_leads_nowhere_is_an_error(tmp_path, key):
    path = tmp_path / "session.json"
    path.write_text('{"requests": []}')
    with pytest.raises(cnb.SourceError, match=r"session\.json"):
        raw_record(Candidate("copilot", "7", str(path), 1, "", ""), Fate("dropped", "x", key=key or None))


def test_a_pointer_with_escaped_steps_is_followed(tmp_path):
    path = tmp_path / "session.json"
    path.write_text('{"a/b": {"~": [1, "x"]}}')
    fate = Fate("dropped", "x", key="/a~1b/~0/1")
    assert raw_record(Candidate("copilot", "7", str(path), 1, "", ""), fate) == b'"x"'


def test_a_compressed_file_is_read_where_the_text_stands(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"0123456789" * 300_000))
    candidate = Candidate("codex", "7", str(path), 1, "", "")
    assert raw_record(candidate, Fate("dropped", "x", offset=2_000_003, size=4)) == b"3456"
    with pytest.raises(cnb.SourceError, match="ends before"):
        raw_record(candidate, Fate("dropped", "x", offset=4_000_000, size=4))


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
