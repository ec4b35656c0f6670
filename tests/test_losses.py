"""Books that close, and what was dropped by name."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crystal_nb as cnb
from crystal_nb import losses


@pytest.fixture(scope="module")
def corpus() -> cnb.Corpus:
    config = cnb.samples.config()
    return cnb.parse(cnb.scan(config=config), config=config)


def test_the_books_of_every_line_file_close(corpus):
    books = corpus.books().filter(pl.col("closed").is_not_null())
    assert books.height >= 5
    assert books["closed"].all()
    total = books.select(pl.sum_horizontal("kept", "merged", "metadata", "dropped")).to_series()
    assert total.to_list() == books["file_size"].to_list()


def test_losses_add_up_to_the_dropped_records(corpus):
    found = corpus.losses()
    dropped = corpus.fates.filter(pl.col("status") == "dropped")
    assert found["records"].sum() == dropped.height
    assert found["conversation_index"].n_unique() == dropped["conversation_index"].n_unique()


def test_a_loss_is_named_measured_and_shown(corpus):
    row = corpus.losses().filter(pl.col("reason") == "only the first line of a log is read").row(0, named=True)
    assert (row["source"], row["records"]) == ("copilot", 3)
    assert row["bytes"] == row["characters"] + row["records"]
    assert row["example"].startswith('{"kind":')


def test_characters_are_not_bytes(parse_file, tmp_path):
    line = '{"type": "strange", "text": "' + "é" * 100 + '"}\n'
    parsed = parse_file("claude-code", line.encode())
    path = tmp_path / ".claude/projects/-srv-demo/session.jsonl"
    candidate = cnb.Candidate("claude-code", "session", str(path), 0, "", "")
    p = cnb.corpus.ParsedConversation(candidate, parsed.conversation, parsed.fates, "", "claude-code@1")
    (row,) = losses.losses([p]).iter_rows(named=True)
    assert (row["characters"], row["bytes"]) == (len(line) - 1, len(line.encode()))
    path.unlink()
    assert losses.losses([p])["characters"].to_list() == [None]


def test_without_counting_characters_no_file_is_read(corpus):
    assert corpus.losses(characters=False)["characters"].null_count() == corpus.losses().height


line = st.sampled_from(
    [
        b"",
        b" ",
        b"{}",
        b"null",
        b"[1]",
        b"{",
        b"\xff\xfe",
        b'{"type":"user","uuid":"u","message":{"content":"x"}}',
        b"\xef\xbb\xbf{}",
    ]
)
end = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(lines=st.lists(st.tuples(line, end), min_size=1, max_size=8), last=line)
@pytest.mark.parametrize("source", ["claude-code", "codex"])
def test_every_byte_belongs_to_exactly_one_record(parse_file, source, lines, last):
    data = b"".join(text + stop for text, stop in lines) + last
    try:
        fates = parse_file(source, data).fates
    except cnb.ParseError:
        return  # null lines, which lose the file by the pinned rules
    assert [f.offset for f in fates] == [0, *(f.offset + f.size for f in fates)][:-1]
    assert sum(f.size for f in fates) == len(data)


def test_a_file_that_was_rewritten_since_costs_only_the_characters(tmp_path):
    path = tmp_path / "session.json"
    path.write_text('{"messages": 5}')
    candidate = cnb.Candidate("copilot", "7", str(path), 0, "", "")
    fates = (cnb.Fate("dropped", "x", "why", key="/messages/0/text"),)
    p = cnb.corpus.ParsedConversation(candidate, cnb.Conversation("copilot", "7"), fates, "", "copilot@1")
    assert losses.losses([p])["characters"].to_list() == [None]


def test_a_conversation_without_records_has_no_books_to_close():
    candidate = cnb.Candidate("cursor", "7", "/state.vscdb", 9, "", "")
    p = cnb.corpus.ParsedConversation(candidate, cnb.Conversation("cursor", "7"), (), "", "cursor@1")
    assert losses.books([p])["closed"].to_list() == [None]
