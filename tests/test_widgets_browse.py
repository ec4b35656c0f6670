"""The import browser: its model and its traits, without a browser."""

from __future__ import annotations

import sys
import time

import ipywidgets
import pytest
import traitlets
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts

import crystal_nb as cnb
from crystal_nb import Candidate, Conversation, Fate, Message
from crystal_nb.audit.report import AuditReport
from crystal_nb.corpus import Corpus, Failure, ParsedConversation
from crystal_nb.errors import ConfigError
from crystal_nb.report import ImportReport, Outcome
from crystal_nb.widgets import ImportBrowser, browse_html, record_table
from crystal_nb.widgets import browse_view as view

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\ud83d</pre></details>"


def entry_of(number: int, source: str = "codex", text: str = "hello", lost: int = 0) -> ParsedConversation:
    candidate = Candidate(source, f"c{number}", f"/f{number}", 1, f"2026-01-{number % 28 + 1:02d}T10:00:00.000Z", "p")
    messages = (Message("user", text, role="user"), Message("assistant", "answer", role="assistant", thinking="deep"))
    conversation = Conversation(source, f"c{number}", messages, slug=f"title {number}", project_name=f"p{number % 3}")
    fates = (Fate("kept", "m", message_index=0), *[Fate("dropped", "tool", "no place", line=2, head=b"{}")] * lost)
    return ParsedConversation(candidate, conversation, fates, cnb.content_hash(conversation), f"{source}@1")


CORPUS = Corpus(
    [entry_of(0), entry_of(1, "cursor", lost=2), entry_of(2, text="Needle"), entry_of(3, "cursor")],
    [Failure(Candidate("trae", "bad", "/x", 1, "2026-02-01T00:00:00.000Z", "p"), "ParseError", "no such line")],
)


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"source": "cursor"}, [1, 3]),
        ({"project": "p0"}, [0, 3]),
        ({"decision": "failed"}, [4]),
        ({"losses": True}, [1]),
        ({"since": "2026-01-03"}, [2, 3, 4]),
        ({"until": "2026-01-02"}, [0, 1]),
        ({"since": "2026-01-02", "until": "2026-01"}, [1, 2, 3]),
        ({"text": "needle"}, [2]),
        ({"text": "DEEP"}, [0, 1, 2, 3]),
        ({"text": "title 3"}, [3]),
        ({"text": "such line"}, [4]),
        ({"source": "cursor", "losses": True, "text": "hello"}, [1]),
        ({"source": "nobody"}, []),
        ({"source": "", "text": None, "losses": False}, [0, 1, 2, 3, 4]),
    ],
)
def test_filters_leave_what_passes_them_all(filters, rows):
    assert view.matching(view.entries_of(CORPUS), filters) == rows
    assert ImportBrowser(CORPUS, filters=filters).filtered == tuple(rows)


@given(st.lists(st.tuples(st.sampled_from(["kept", "merged", "metadata", "dropped"]), st.integers(0, 3)), max_size=20))
def test_every_lost_record_stands_in_one_place_in_order(drawn):
    fates = [Fate(s, str(n), message_index=at if s in ("kept", "merged") else None) for n, (s, at) in enumerate(drawn)]
    shown = view.parts(Conversation("codex", "7", (Message("user", "x"),) * 4), fates)
    lost = [f for part in shown for f in part.lost]
    assert [p.index for p in shown] == [None, 0, 1, 2, 3]
    assert [f.kind for f in lost] == [f.kind for f in fates if f.status == "dropped"]


def test_charts_count_what_the_filters_leave():
    times, losses, _ = map(str, view.charts_of(view.entries_of(CORPUS)))
    assert "codex 1" in times
    assert "2026-02-01" in times
    assert "cursor: no place" in losses
    browser = ImportBrowser(CORPUS, filters={"source": "cursor"})
    assert "Charts of these 2 conversations" in browser._figures.value
    assert "codex" not in browser._figures.value


def test_long_times_are_charted_by_month_or_year():
    many = Corpus([entry_of(n) for n in range(28)], [])
    assert view.charts_of(view.entries_of(many))[0].columns[0] == "month"
    assert view.charts_of([])[0].rows == ()


def test_losses_stand_between_the_messages_where_they_happened():
    html = ImportBrowser(CORPUS, selection=1).to_html()
    first, lost, second = (
        html.index(x) for x in ("<b>0 user</b>", "2 records lost here: no place", "<b>1 assistant</b>")
    )
    assert first < lost < second


def test_thinking_and_tool_calls_are_folded():
    call = cnb.ToolCall("read", '{"path":"a"}', '"the file"')
    message = Message("assistant", "", has_tool_use=True, thinking="hm", details=cnb.Details(tools=(call,), model="m1"))
    html = browse_html._message(3, message)
    assert "<details><summary>thinking, 2 characters</summary><pre>hm</pre></details>" in html
    assert "<details><summary>tool call read</summary>" in html
    assert "· tool use · m1" in html


def test_decisions_of_a_report_are_shown_and_filter():
    decision = cnb.Decision("codex", "c0", "skip", "It looks unchanged.", (cnb.Step("stored", "a", "a", True),))
    report = ImportReport("pinned", (Outcome(CORPUS.parsed[0].candidate, decision),))
    browser = ImportBrowser(CORPUS, report=report, filters={"decision": "skip"})
    assert browser.filtered == (0,)
    browser.selection = 0
    assert "Path of the decision: skip" in browser.to_html()


def test_a_failure_says_what_failed():
    browser = ImportBrowser(CORPUS, selection=4)
    assert browser.conversation is None
    assert "<b>The parse failed.</b> no such line" in browser.to_html()
    with pytest.raises(ConfigError, match="select a conversation"):
        browser._open_inspector()


def test_a_store_is_browsed_too(tmp_path):
    config = cnb.samples.config()
    with cnb.open_store(tmp_path / "imports.db") as store:
        report = cnb.import_all(store, cnb.scan(config=config), config=config)
        browser = ImportBrowser(store, report=report)
        assert len(browser.filtered) == store.conversations().height
        browser.selection = 0
        row = store.conversations().row(0, named=True)
        assert (browser.conversation.source, browser.conversation.id) == (row["source"], row["id"])
        assert len(browser.conversation.messages) == row["message_count"]
        content = browser.conversation.messages[0].content
        browser.filters = {"text": content[:20].upper()}
        assert 0 in browser.filtered
        assert ImportBrowser(store, filters={"decision": "imported"}).filtered


def test_pages_are_windows_on_the_list_and_selection_follows():
    browser = ImportBrowser(Corpus([entry_of(n) for n in range(250)], []))
    rows = browser._table.control.rows
    assert len(rows) == 100
    browser.selection = 230
    assert (browser.page, browser._table.control.selected) == (2, 30)
    browser._turn(-1)
    assert (browser.page, browser.selection) == (1, 199)
    browser._turn(1)
    assert (browser.page, browser.selection) == (2, 200)
    browser._turn(1)
    browser.page = 99
    assert browser.page == 2
    browser._table.control.selected = 5
    assert browser.selection == 205
    browser.filters = {"project": "p1"}
    assert (browser.page, browser.selection) == (0, 205)


def test_messages_are_windowed():
    p = entry_of(0)
    many = Conversation("codex", "c0", tuple(Message("user", f"message {n}") for n in range(10_000)))
    fates = tuple(Fate("dropped", "x", "y") for _ in range(5_000))
    corpus = Corpus([ParsedConversation(p.candidate, many, fates, cnb.content_hash(many), "codex@1")], [])
    browser = ImportBrowser(corpus, selection=0)
    assert browser._result.value.count('class="cnb-message') == 50
    assert browser._result.value.count("<tr") < 90
    browser._later()
    assert browser.message == 50
    browser.message = 9_990
    assert "messages 9,991 to 10,000 of 10,000" in browser.to_html()
    browser._later()
    assert browser.message == 9_990


def test_the_inspector_opens_on_the_message_that_is_shown():
    browser = ImportBrowser(CORPUS, selection=0)
    browser._open_inspector()
    assert browser._inspector.value == CORPUS.parsed[0].content_hash
    browser.selection = 1
    assert browser._inspect.children == ()


def test_twenty_thousand_are_filtered_quickly():
    browser = ImportBrowser(Corpus([entry_of(n, text=f"words {n}") for n in range(20_000)], []))
    start = time.perf_counter()
    browser.filters = {"text": "words 1234"}
    took = time.perf_counter() - start
    assert len(browser.filtered) == 11
    assert took < 5


def test_without_anywidget_a_plain_list_stands_in(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    record_table._grid_class.cache_clear()
    try:
        browser = ImportBrowser(CORPUS)
        control = browser._table.control
        assert isinstance(control, ipywidgets.Select)
        assert len(control.options) == 5
        control.value = 1
        assert browser.selection == 1
        browser.selection = 3
        assert control.value == 3
    finally:
        record_table._grid_class.cache_clear()


def test_wrong_traits_are_refused():
    browser = ImportBrowser(CORPUS)
    with pytest.raises(traitlets.TraitError, match="no filter 'colour'; there are source"):
        browser.filters = {"colour": 1}
    with pytest.raises(traitlets.TraitError, match="no row 9"):
        browser.selection = 9
    with pytest.raises(ConfigError, match="needs a Corpus or a Store, not list"):
        ImportBrowser([])
    with pytest.raises(TypeError, match="did you mean 'selection'"):
        ImportBrowser(CORPUS, selected=1)


def test_an_empty_corpus_is_browsed():
    browser = ImportBrowser(Corpus([], []))
    browser._turn(1)
    assert "0 of 0 conversations" in browser.to_html()


@given(texts)
def test_a_row_is_printable(text):
    p = entry_of(0)
    conversation = Conversation(text, text, (Message("user", text),), slug=text, project_name=text)
    for cell in view.row_of(
        view.entries_of(Corpus([ParsedConversation(p.candidate, conversation, (), "", "")], []))[0]
    ):
        assert cell.isprintable()


def test_a_hostile_import_shows_as_text():
    call = cnb.ToolCall(HOSTILE, HOSTILE, HOSTILE)
    details = cnb.Details(tools=(call,), model=HOSTILE, marks=(HOSTILE,))
    message = Message(HOSTILE, HOSTILE, role=HOSTILE, thinking=HOSTILE, timestamp=HOSTILE, details=details)
    conversation = Conversation(HOSTILE, HOSTILE, (message,), slug=HOSTILE, project_name=HOSTILE)
    candidate = Candidate(HOSTILE, HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE)
    fates = (Fate("dropped", HOSTILE, HOSTILE, key=HOSTILE, head=HOSTILE.encode("utf-8", "replace")),)
    parsed = ParsedConversation(candidate, conversation, fates, HOSTILE, HOSTILE)
    browser = ImportBrowser(Corpus([parsed], [Failure(candidate, HOSTILE, HOSTILE)]), selection=0)
    for selection in (0, 1):
        browser.selection = selection
        html = browser.to_html()
        assert "<script" not in html
        assert html.replace("\n", "").isprintable()
        assert html.encode()


@pytest.mark.parametrize("report", [5, "x", [], AuditReport(())], ids=lambda r: type(r).__name__)
def test_what_is_no_report_of_an_import_is_refused_with_what_is(report):
    with pytest.raises(ConfigError, match=r"cnb\.import_all gives.* not a"):
        ImportBrowser(CORPUS, report=report)


def test_a_rehearsal_shows_its_decisions(tmp_path):
    config = cnb.samples.config()
    candidates = cnb.scan("codex", config=config)
    with cnb.open_store(tmp_path / "s.db") as store:
        rehearsal = cnb.rehearse(candidates, store, config=config)
    browser = ImportBrowser(cnb.parse(candidates, config=config), report=rehearsal)
    assert "insert" in {entry.decision for entry in browser._entries}


@pytest.mark.parametrize("name", view.FILTERS)
@pytest.mark.parametrize("value", [5, True, [1], {"a": 1}, object(), 0.5, b"x", "no"], ids=lambda v: type(v).__name__)
def test_a_filter_of_a_wrong_type_is_refused_and_leaves_the_state(name, value):
    if isinstance(value, bool if name == "losses" else str):
        return
    browser = ImportBrowser(CORPUS, filters={"source": "cursor"})
    with pytest.raises(traitlets.TraitError, match=f"the filter {name} must be"):
        browser.filters = {name: value}
    assert (browser.filters, browser.filtered) == ({"source": "cursor"}, (1, 3))


def test_a_closed_store_is_said_and_what_was_shown_stays(tmp_path):
    config = cnb.samples.config()
    store = cnb.open_store(tmp_path / "s.db")
    cnb.import_all(store, cnb.scan(config=config), config=config, progress=False)
    browser = ImportBrowser(store, selection=0)
    before = browser.to_html()
    store.close()
    with pytest.raises(cnb.StoreError, match="closed"):
        browser.selection = 1
    with pytest.raises(cnb.StoreError, match="closed"):
        browser.filters = {"text": "x"}
    assert (browser.selection, browser.filters, browser.to_html()) == (0, {}, before)
    browser._filters["text"].value = "zzz"
    assert "closed" in browser._alert.value
    assert browser._filters["text"].value == ""
