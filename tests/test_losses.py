"""Books that close, and what was dropped by name."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import zstandard
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


@pytest.fixture
def parsed(tmp_path):
    """What an adapter gave that read a file of lines, and told these fates."""

    def make(data: bytes, *fates: cnb.Fate, name="session.jsonl", id="7") -> cnb.corpus.ParsedConversation:
        path = tmp_path / name
        path.write_bytes(data)
        candidate = cnb.Candidate("own", id, str(path), len(data), "", "")
        return cnb.corpus.ParsedConversation(candidate, cnb.Conversation("own", id), fates, "", "own@1")

    return make


def spans(*places: tuple[int, int]) -> list[cnb.Fate]:
    """Fates of records from here to there."""
    return [cnb.Fate("metadata", "line", offset=start, size=stop - start) for start, stop in places]


TEN = b"012\n456\n8\n"
TILINGS = {
    "end to end": ([(0, 4), (4, 8), (8, 10)], True),
    "one record": ([(0, 10)], True),
    "out of order": ([(8, 10), (0, 4), (4, 8)], True),
    "a gap": ([(0, 4), (5, 8), (8, 10)], False),
    "an overlap": ([(0, 4), (3, 8), (8, 10)], False),
    "a record twice": ([(0, 4), (4, 8), (4, 8), (8, 10)], False),
    "a gap and an overlap of the same size": ([(0, 4), (5, 9), (8, 10)], False),
    "the same sum, but one record twice": ([(0, 5), (0, 5)], False),
    "without the first bytes": ([(1, 4), (4, 8), (8, 10)], False),
    "without the first record": ([(4, 8), (8, 10)], False),
    "without the last byte": ([(0, 4), (4, 8), (8, 9)], False),
    "without the last record": ([(0, 4), (4, 8)], False),
    "more than the file": ([(0, 4), (4, 8), (8, 11)], False),
}


@pytest.mark.parametrize("name", TILINGS)
def test_books_close_only_where_the_records_tile_the_file(parsed, name):
    places, is_closed = TILINGS[name]
    (row,) = losses.books([parsed(TEN, *spans(*places))]).iter_rows(named=True)
    assert (row["closed"], row["file_size"], row["records"]) == (is_closed, 10, len(places))
    assert row["metadata"] == sum(stop - start for start, stop in places)


def test_books_are_about_the_file_as_it_is_now_and_as_listed_once_it_is_gone(parsed):
    p = parsed(TEN, *spans((0, 4), (4, 10)))
    path = Path(p.candidate.file_path)
    path.write_bytes(TEN + b"more\n")
    assert losses.books([p])["closed"].to_list() == [False]
    assert losses.books([p])["file_size"].to_list() == [10]
    path.unlink()
    assert losses.books([p])["closed"].to_list() == [True]


@pytest.mark.parametrize(("offset", "size"), [(None, 4), (4, None), (None, None)])
def test_a_record_without_a_place_leaves_nothing_to_close(parsed, offset, size):
    p = parsed(TEN, *spans((0, 10)), cnb.Fate("dropped", "x", offset=offset, size=size, key="k"))
    (row,) = losses.books([p]).iter_rows(named=True)
    assert (row["closed"], row["file_size"], row["dropped"]) == (None, None, size or 0)


def test_a_document_has_no_lines_to_close(parsed):
    p = parsed(TEN, *spans((0, 10)), name="session.json")
    assert losses.books([p]).select("closed", "file_size").row(0) == (None, None)


PACKED = {
    "whole": ([(0, 500), (500, 3000)], True),
    "a gap": ([(0, 500), (501, 3000)], False),
    "a record of no bytes at the end": ([(0, 500), (500, 3000), (3000, 3000)], False),
}


@pytest.mark.parametrize("name", PACKED)
def test_the_size_of_a_packed_file_is_the_compressed_one_and_the_sums_are_not(parsed, name):
    places, is_closed = PACKED[name]
    data = zstandard.compress(b"x" * 3000)
    p = parsed(data, *spans(*places), name="rollout-1.jsonl.zst")
    (row,) = losses.books([p]).iter_rows(named=True)
    assert (row["file_size"], row["closed"]) == (len(data), is_closed)
    assert row["metadata"] == sum(stop - start for start, stop in places) > len(data)
    assert "of a .zst file the compressed ones" in cnb.frames.describe("books").row(3)[2]


RECORDS = {
    "kept": [b'{"said": "one"}\n', b'{"said": "three, longer"}\r\n'],
    "merged": [b'{"more": 1}\r', b'{"more": "\xc3\xa9"}\n', b"{}\r\n"],
    "metadata": [b'{"title": "x"}\n'],
    "dropped": [b"\n", b"{\r", b"last, without an end"],
}
ORDER = ["dropped", "kept", "merged", "metadata", "merged", "dropped", "kept", "merged", "dropped"]


def test_each_sum_is_that_of_the_records_of_its_fate(parsed):
    left = {status: list(records) for status, records in RECORDS.items()}
    data, fates = b"", []
    for status in ORDER:
        record = left[status].pop(0)
        fates.append(cnb.Fate(status, "line", offset=len(data), size=len(record)))
        data += record
    (row,) = losses.books([parsed(data, *fates)]).iter_rows(named=True)
    sums = {status: len(b"".join(records)) for status, records in RECORDS.items()}
    assert len(set(sums.values())) == len(sums)
    assert {status: row[status] for status in sums} == sums
    assert (row["records"], row["file_size"], row["closed"]) == (len(ORDER), len(data), True)


@pytest.mark.parametrize("stop", [b"\n", b"\r\n", b"\r"])
def test_the_sums_of_a_transcript_are_its_bytes_with_any_line_ends(parse_file, tmp_path, stop):
    said = {"uuid": "u", "message": {"role": "user", "content": "é"}, "timestamp": "2026-01-01T00:00:00.000Z"}
    records = [{"type": "strange", "n": n} for n in range(3)] + [{"type": "user", **said}]
    rows = [json.dumps(record, ensure_ascii=False).encode() + stop for record in records]
    outcome = parse_file("claude-code", b"".join(rows))
    path = tmp_path / ".claude/projects/-srv-demo/session.jsonl"
    candidate = cnb.Candidate("claude-code", "session", str(path), path.stat().st_size, "", "")
    p = cnb.corpus.ParsedConversation(candidate, outcome.conversation, outcome.fates, "", "claude-code@1")
    (row,) = losses.books([p]).iter_rows(named=True)
    sums = {"dropped": len(b"".join(rows[:3])), "kept": len(rows[3]), "merged": 0, "metadata": 0}
    assert {status: row[status] for status in sums} == sums
    assert row["closed"]
    (loss,) = losses.losses([p]).iter_rows(named=True)
    assert loss["bytes"] == sums["dropped"]
    assert loss["characters"] == sum(len(text.decode().rstrip("\r\n")) for text in rows[:3])
    path.write_bytes(b"".join(rows) + b"{}" + stop)
    assert losses.books([p])["closed"].to_list() == [False]


def lost(kind: str, size: int | None, reason="why", head=b"", **more) -> cnb.Fate:
    return cnb.Fate("dropped", kind, reason, offset=None if size is None else 0, size=size, head=head, **more)


def test_the_largest_loss_is_first_and_what_has_no_size_last(parsed):
    fates = [
        lost("unknown, one", None),
        lost("small", 1),
        *[lost("unknown, two", None)] * 2,
        lost("large", 9),
        *[lost("as large, of three", 3)] * 3,
        lost("partly unknown, three", 5),
        *[lost("partly unknown, three", None)] * 2,
        lost("none", 0),
    ]
    found = losses.losses([parsed(TEN, *fates)], characters=False)
    assert list(zip(found["kind"], found["bytes"], found["records"], strict=True)) == [
        ("as large, of three", 9, 3),
        ("large", 9, 1),
        ("small", 1, 1),
        ("none", 0, 1),
        ("partly unknown, three", None, 3),
        ("unknown, two", None, 2),
        ("unknown, one", None, 1),
    ]


def test_equal_losses_stay_in_the_order_of_the_conversations(parsed):
    all_of = [parsed(TEN, lost("b", 2), lost("a", 2), name=f"{n}.jsonl", id=str(n)) for n in range(20)]
    found = losses.losses(all_of)
    assert found["conversation_index"].to_list() == [n for n in range(20) for _ in "ba"]
    assert found["kind"].to_list() == ["b", "a"] * 20
    assert losses.books(all_of)["conversation_index"].to_list() == list(range(20))


def test_the_example_is_the_first_record_of_its_kind_and_reason_that_has_a_head(parsed):
    fates = [
        lost("x", 1, head=b""),
        lost("y", 2, head=b"y's"),
        cnb.Fate("kept", "x", "why", 0, head=b"kept"),
        lost("x", 1, "other", head=b"other"),
        lost("x", 1, head=b"first"),
        lost("x", 1, head=b"second"),
        lost("z", 1),
    ]
    found = losses.losses([parsed(TEN, *fates)])
    shown = {(kind, why): text for kind, why, text in found.select("kind", "reason", "example").iter_rows()}
    assert shown == {("x", "why"): "first", ("x", "other"): "other", ("y", "why"): "y's", ("z", "why"): None}
