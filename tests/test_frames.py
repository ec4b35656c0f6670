from __future__ import annotations

import importlib

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import conversations, json_values

import crystal_nb as cnb
from crystal_nb import ecma, frames
from crystal_nb.corpus import Corpus, ParsedConversation

TABLES = {name: getattr(frames, name) for name in frames.__all__ if name.isupper()}


@pytest.mark.parametrize("name", TABLES)
def test_a_frame_has_its_table_s_columns_also_when_empty(name):
    frame = frames.to_frame(TABLES[name], [])
    assert dict(frame.schema) == {k: pl.DataFrame(schema={k: c.dtype}).schema[k] for k, c in TABLES[name].items()}


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_described(name):
    described = frames.describe(TABLES[name])
    assert all(text.endswith(".") for text in described["description"])


ABOVE = "losses comparison_frames decision_frames remote_frames scenario_frames store_frames trial_frames"


@pytest.mark.parametrize("module", [*ABOVE.split(), "contract.frames", "audit.tables"])
def test_every_public_frame_can_be_asked_about_by_name(module):
    found = importlib.import_module(f"crystal_nb.{module}")
    named = [frames._table(name) for name in frames._NAMES]
    tables = [name for name in found.__all__ if name.isupper()]
    assert tables
    assert [name for name in tables if not any(getattr(found, name) is table for table in named)] == []


def test_an_unknown_frame_lists_the_known_ones():
    with pytest.raises(cnb.ConfigError, match=r"known: sources, .*books.*plan"):
        frames.describe("nothing")


@given(st.lists(conversations, max_size=4))
def test_any_conversation_fits_the_frames(listed):
    candidate = cnb.Candidate("codex", "x", "/f", 1, "", "")
    fates = (cnb.Fate("dropped", "k", head=b"\xff\x1b"),)
    corpus = Corpus([ParsedConversation(candidate, c, fates, cnb.content_hash(c), "codex@1") for c in listed], [])
    assert corpus.conversations.height == corpus.fates.height == len(listed)
    assert corpus.messages.height == sum(len(c.messages) for c in listed)
    rows = corpus.messages.rows(named=True)
    for message, row in zip((m for c in listed for m in c.messages), rows, strict=True):
        if cnb.ecma.well_formed(message.content):
            assert row["content"] == message.content
        else:
            assert row["lossy"]
            assert "\ufffd" in row["content"]


@given(json_values, json_values)
def test_ids_of_any_type_become_text(id, thinking):
    message = cnb.Message("user", "x", id=id, thinking=thinking)
    conversation = replace(cnb.Conversation("codex", id, (message,)), slug=thinking)
    candidate = cnb.Candidate("codex", "x", "/f", 1, "", "")
    corpus = Corpus([ParsedConversation(candidate, conversation, (), "h", "codex@1")], [])
    assert corpus.messages["id"].dtype == pl.String
    assert corpus.conversations.height == 1


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("2026-01-01T00:00:00.123Z", "2026-01-01 00:00:00.123000+00:00"),
        (1767225600000, "2026-01-01 00:00:00+00:00"),
        ("2026-01-31T00:00:00.000Z", "2026-01-31 00:00:00+00:00"),
        ("2026-02-30T00:00:00.000Z", "2026-03-02 00:00:00+00:00"),
        ("x", "None"),
        ("0000-01-01T00:00:00.000Z", "None"),
        ("0001-01-01T00:00:00.000Z", "0001-01-01 00:00:00+00:00"),
        (None, "None"),
        (8_640_000_000_000_000, "None"),
    ],
)
def test_times_are_utc_in_ms_or_null(raw, shown):
    frame = frames.to_frame({"t": frames.Column(frames.TIME, "Time.")}, [{"t": raw}])
    assert str(frame["t"][0]) == shown


@pytest.mark.parametrize("head", [b"\x1b[31m", "\u202e".encode(), b"\xff", b"a\nb", b"\x7f"])
def test_excerpts_are_harmless(head):
    candidate = cnb.Candidate("codex", "x", "/f", 1, "", "")
    fates = (cnb.Fate("dropped", "k", head=b"plain"), cnb.Fate("dropped", "k", head=head), cnb.Fate("kept", "k"))
    corpus = Corpus([ParsedConversation(candidate, cnb.Conversation("codex", "x"), fates, "h", "codex@1")], [])
    assert corpus.fates["excerpt"].to_list() == ["plain", fates[1].excerpt, None]
    assert fates[1].excerpt.isprintable()


def test_a_time_taken_from_the_clock_is_null_in_the_frames():
    message = cnb.Message("user", "x", timestamp="2026-01-01T00:00:00.000Z", timestamp_from_clock=True)
    conversation = cnb.Conversation("codex", "7", (message,), first_message_at=message.timestamp)
    candidate = cnb.Candidate("codex", "x", "/f", 1, "", "")
    corpus = Corpus([ParsedConversation(candidate, conversation, (), "h", "codex@1")], [])
    assert corpus.messages["timestamp"].to_list() == corpus.conversations["first_message_at"].to_list() == [None]


@given(st.lists(st.datetimes().map(lambda d: f"{d.isoformat(timespec='milliseconds')}Z")))
def test_plain_times_are_javascript_s(values):
    series = frames.columns_frame({"t": frames.CANDIDATES["file_mtime"]}, {"t": values})["t"]
    assert series.cast(pl.Int64).to_list() == [ecma.date_ms(v) for v in values]
