from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import crystal_nb as cnb
from crystal_nb import charts
from crystal_nb.audit import Answer
from crystal_nb.audit.tables import table
from crystal_nb.corpus import Corpus, ParsedConversation
from crystal_nb.report import ImportReport, Outcome

HOSTILE = '</td><script>alert(1)</script>"\x1b[31m\u202e'
COUNTS = st.dictionaries(st.text(max_size=8), st.integers(0, 10**9), max_size=30)
STACKS = st.dictionaries(st.text(max_size=8), COUNTS, max_size=8)


def lengths(chart):
    """Characters of each bar."""
    return [len(re.sub("<[^>]*>", "", bar)) for bar in re.findall('role="img"[^>]*>(.*?)</span></td>', chart.to_html())]


@given(COUNTS)
def test_a_longer_bar_is_a_larger_number_and_something_is_seen(counts):
    chart = charts.bars("c", [{"name": k, "number": n} for k, n in counts.items()], "number")
    drawn = dict(zip(counts, lengths(chart), strict=True))
    assert all((drawn[a] <= drawn[b]) for a in counts for b in counts if counts[a] <= counts[b])
    assert all((length > 0) == (counts[name] > 0) for name, length in drawn.items())


@given(COUNTS)
def test_nothing_is_left_out_of_the_sum(counts):
    rows = charts.counted("c", "name", counts).rows
    assert len(rows) <= 13
    assert sum(n for _, n in rows) == sum(counts.values())


@given(STACKS)
def test_every_part_that_is_something_is_seen_and_named(counts):
    chart = charts.stacked("c", "key", "name", counts)
    assert [n for _, n, _ in chart.rows] == [sum(row.values()) for row in counts.values()]
    assert set(chart.names) == {name for row in counts.values() for name in row}
    for parts, length in zip(chart.parts, lengths(chart), strict=True):
        assert length >= sum(n > 0 for n in parts)
    assert repr(chart).count("\n") == 1 + len(counts)


@given(st.text(), st.text(), st.text())
def test_no_text_is_markup_or_moves_a_terminal(caption, name, source):
    for chart in (
        charts.counted(caption, name, {source: 1}),
        charts.stacked(caption, name, source, {name: {source: 1}}),
    ):
        html = chart.to_html()
        tags = {tag.split()[0].strip("/") for tag in re.findall("<([^>]*)>", html)}
        assert tags <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "span"}
        assert html.isprintable()
        assert all(line.isprintable() for line in repr(chart).split("\n"))


@pytest.mark.parametrize(
    ("times", "head"),
    [
        ([f"2026-01-{n:02d}" for n in range(1, 25)], "day"),
        ([f"2026-01-{n:02d}" for n in range(1, 26)], "month"),
        ([f"20{y:02d}-{m:02d}-01" for y in range(3) for m in range(1, 13)], "year"),
    ],
)
def test_time_is_as_fine_as_there_is_room(times, head):
    chart = charts.over_time((time, "codex") for time in times)
    assert chart.columns[0] == head
    assert sum(n for _, n, _ in chart.rows) == len(times)


def parsed(id, fates=(), messages=1, last="2026-02-01T10:00:00.000Z", source="codex"):
    candidate = cnb.Candidate(source, id, f"/{id}", 1, "2026-01-01T00:00:00.000Z", "")
    said = (cnb.Message("user", "hi"),) * messages
    return ParsedConversation(candidate, cnb.Conversation(source, id, said, last_message_at=last), fates, "0" * 64, "v")


def test_a_corpus_shows_when_and_what_was_lost():
    lost = [cnb.Fate("dropped", HOSTILE, HOSTILE)] * 3
    html = Corpus([parsed("a", lost), parsed("b", messages=0), parsed("c", last=HOSTILE)], [])._repr_html_()
    assert '<th scope="row" style="text-align:left">2026-02-01</th><td style="text-align:right">1</td>' in html
    assert '<th scope="row" style="text-align:left">no time</th><td style="text-align:right">2</td>' in html
    assert "<caption>What was lost</caption>" in html
    assert "<script" not in html
    assert html.isprintable()


def test_a_conversation_s_time_is_that_of_its_messages_and_never_a_clock_s():
    first, last = cnb.Message("user", "hi", timestamp="2026-03-01"), cnb.Message("assistant", "ho")
    conversation = cnb.Conversation("codex", "7", (first, last), last_message_at=None)
    known = parsed("a")
    assert known.time == "2026-02-01T10:00:00.000Z"
    assert replace(known, conversation=conversation).time == "2026-03-01"
    assert parsed("b", messages=0).time == ""
    last = cnb.Message("assistant", "ho", timestamp="2031-01-01", timestamp_from_clock=True)
    conversation = cnb.Conversation("codex", "7", (first, last), last_message_at="2031-01-01")
    assert replace(known, conversation=conversation).time == "2026-03-01"


def test_a_report_shows_decisions_by_source():
    made = [("codex", "insert"), ("codex", "skip"), ("cursor", "insert")]
    decisions = [cnb.Decision(source, str(n), action, "why", ()) for n, (source, action) in enumerate(made)]
    report = ImportReport("pinned", tuple(Outcome(parsed("a").candidate, d) for d in decisions))
    assert report.chart().rows == (("insert", 2, "codex 1, cursor 1"), ("skip", 1, "codex 1"))
    assert "<caption>Decisions</caption>" in report._repr_html_()


def test_an_audit_shows_what_scans_read():
    phases = [("detect", 1), ("scan", 70), ("scan again", 30), ("parse", 9)]
    rows = [{"source": HOSTILE, "phase": phase, "bytes_read": n} for phase, n in phases]
    report = cnb.AuditReport((Answer("scan cost", "s", (), {"costs": table("costs", rows)}),))
    assert report.scans().rows == ((HOSTILE, 100, "scan 70, scan again 30"),)
    for html in (report._repr_html_(), report.to_html()):
        assert "<caption>Bytes read by scans</caption>" in html
        assert "<script" not in html


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([{"a": 1}], "no column 'n' to show as bars; there are a"),
        ([{"a": 1, "n": 1}, {"n": 2}], "row 1 of the chart has no 'a'; it has n"),
        ([{"n": "x"}], "row 0 of the chart: 'n' must be a number, not str"),
        ([{"n": 1}, {"n": float("inf")}], "row 1 of the chart: 'n' must be a number, not inf"),
        ([{"n": float("nan")}], "row 0 of the chart: 'n' must be a number, not nan"),
    ],
)
def test_rows_without_a_number_to_draw_are_refused(rows, problem):
    with pytest.raises(cnb.ConfigError, match=problem):
        charts.bars("Things", rows, "n")


def test_the_time_of_a_chart_grows_with_its_rows():
    rows = [{"a": str(n), "n": n} for n in range(30_000)]
    chart = charts.bars("Many", rows, "n")
    counted = 0

    class Counting(charts.Chart, frozen=True):
        def _largest(self):
            nonlocal counted
            counted += 1
            return super()._largest()

    many = Counting(chart.caption, chart.columns, chart.rows, chart.parts)
    assert len(many.to_html()) + len(repr(many)) > 30_000
    assert counted == 2
