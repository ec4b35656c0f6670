"""The import browser: its model and its traits, without a browser."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta, timezone

import ipywidgets
import pytest
import traitlets
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import texts

import crystal_nb as cnb
from crystal_nb import Candidate, Conversation, Fate, Message
from crystal_nb.audit.report import AuditReport
from crystal_nb.corpus import Corpus, Failure, ParsedConversation
from crystal_nb.errors import ConfigError
from crystal_nb.report import ImportReport, Outcome
from crystal_nb.store import Store
from crystal_nb.widgets import ImportBrowser, browse_html, record_table
from crystal_nb.widgets import browse_filters as filters_of
from crystal_nb.widgets import browse_view as view

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\ud83d</pre></details>"


def entry_of(number: int, source: str = "codex", text: str = "hello", lost: int = 0) -> ParsedConversation:
    candidate = Candidate(source, f"c{number}", f"/f{number}", 1, f"2026-01-{number % 28 + 1:02d}T10:00:00.000Z", "p")
    messages = (Message("user", text, role="user"), Message("assistant", "answer", role="assistant", thinking="deep"))
    conversation = Conversation(
        source,
        f"c{number}",
        messages,
        slug=f"title {number}",
        project_name=f"p{number % 3}",
        last_message_at=candidate.file_mtime,
    )
    fates = (Fate("kept", "m", message_index=0), *[Fate("dropped", "tool", "no place", line=2, head=b"{}")] * lost)
    return ParsedConversation(candidate, conversation, fates, cnb.content_hash(conversation), f"{source}@1")


def widgets_in(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from widgets_in(child)


def press(browser, label):
    (found,) = (w for w in widgets_in(browser) if isinstance(w, ipywidgets.Button) and w.description == label)
    found.click()


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
        ({"since": "2026-01-02T10:00:00Z", "until": "2026-01-02T10:00:00Z"}, [1]),
        ({"since": "2026-01-02T12:00:00+02:00", "until": "2026-01-02T05:00:00.000-05:00"}, [1]),
        ({"since": "2026-01-02 10:00:00", "until": "2026-01-02 10:00"}, [1]),
        ({"since": "2026-1-2", "until": "2026-1-3"}, [1, 2]),
        ({"since": "2026-01-02T10:00:00.001Z"}, [2, 3, 4]),
        ({"until": "2026-01-02T09:59:59.999Z"}, [0]),
        ({"since": "2026-02"}, [4]),
        ({"until": "2026"}, [0, 1, 2, 3, 4]),
        ({"source": "cursor", "losses": True, "text": "hello"}, [1]),
        ({"source": "nobody"}, []),
        ({"source": "", "text": None, "losses": False}, [0, 1, 2, 3, 4]),
    ],
)
def test_filters_leave_what_passes_them_all(filters, rows):
    assert filters_of.matching(view.entries_of(CORPUS), filters) == rows
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
    assert "2026-01-03" in times
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
    assert len(rows) == 50
    browser.selection = 230
    assert (browser.page, browser._table.control.selected, browser._table.control.row_keys[30]) == (4, 230, 230)
    control = browser._table.control
    assert control.beyond == [199, -1]
    control.selected = control.beyond[0]
    assert (browser.page, browser.selection, control.beyond) == (3, 199, [149, 200])
    control.selected = control.beyond[1]
    assert (browser.page, browser.selection) == (4, 200)
    browser._turn(1)
    browser.page = 99
    assert browser.page == 4
    browser._table.control.selected = 205
    assert browser.selection == 205


def test_a_row_is_selected_by_what_it_stands_for_although_the_list_is_another_by_then():
    """The kernel may hear of a filter before it hears of the row that was picked before it."""
    browser = ImportBrowser(Corpus([entry_of(n) for n in range(250)], []), filters={"project": "p1"})
    picked = browser._table.control.row_keys[3]
    browser.filters = {"text": "title 7"}
    browser._table.control.selected = picked
    assert (browser.selection, browser._table.control.selected) == (picked, -1)
    browser._table.control.selected = browser.filtered[0]
    assert browser.selection == browser.filtered[0]


@pytest.mark.parametrize("wanted", [{"project": "p2"}, {"text": "title"}, {"project": "p1"}, {}])
@pytest.mark.parametrize("before", [{}, {"text": "title 1"}, {"project": "p2"}])
def test_the_page_follows_the_selection_through_every_change_of_filters(wanted, before):
    browser = ImportBrowser(Corpus([entry_of(n) for n in range(250)], []), filters=before)
    browser.selection = 200
    browser.filters = {"project": "p0"}
    assert (browser.page, browser._table.control.selected) == (0, -1)
    browser.filters = wanted
    place = browser.filtered.index(200) if 200 in browser.filtered else None
    at = (0, -1) if place is None else (place // 50, 200)
    assert (browser.page, browser._table.control.selected) == at


@pytest.mark.parametrize(
    "traits",
    [
        {"selection": 150},
        {"selection": 150, "message": 60},
        {"message": 60, "selection": 150},
        {"selection": 150, "page": 1},
        {"filters": {"project": "p0"}, "selection": 150, "message": 200},
        {"filters": {"project": "p1"}, "selection": 150},
        {"page": 3},
        {"message": 3},
    ],
    ids=str,
)
def test_the_constructor_gives_the_state_that_traits_set_in_turn_give(traits):
    messages = tuple(Message("user", f"m{n}") for n in range(120))
    parsed = [entry_of(n) for n in range(250)]
    parsed[150] = replace(parsed[150], conversation=replace(parsed[150].conversation, messages=messages))
    made, driven = ImportBrowser(Corpus(parsed, []), **traits), ImportBrowser(Corpus(parsed, []))
    for name in ("filters", "selection", "page", "message"):
        if name in traits:
            setattr(driven, name, traits[name])
    states = [
        (b.filters, b.filtered, b.selection, b.page, b.message, b._table.control.selected, b.to_html())
        for b in (made, driven)
    ]
    assert states[0] == states[1]
    if "message" in traits and "selection" in traits:
        assert made.message == min(traits["message"], 119)


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
    browser = ImportBrowser(CORPUS, selection=0, message=1)
    press(browser, "Inspect the hash")
    assert (browser._inspector.value, browser._inspector.message) == (CORPUS.parsed[0].content_hash, 1)
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
    assert "0 conversations" in browser.to_html()


def test_a_page_says_which_rows_it_has():
    many = ImportBrowser(Corpus([entry_of(n) for n in range(121)], []), page=1)
    assert "<caption>51 to 100 of 121 conversations</caption>" in many.to_html()
    many.page = 2
    assert "<caption>101 to 121 of 121 conversations</caption>" in many.to_html()
    assert "<caption>5 conversations</caption>" in ImportBrowser(CORPUS).to_html()


def test_a_time_that_is_only_the_files_says_so_and_is_in_no_chart():
    timeless = replace(entry_of(4).conversation, last_message_at=None)
    p = replace(entry_of(4), conversation=timeless)
    entries = view.entries_of(Corpus([p, entry_of(5)], CORPUS.failed))
    assert [view.row_of(e)[0] for e in entries] == [
        "2026-01-05 10:00:00 (file)",
        "2026-01-06 10:00:00",
        "2026-02-01 00:00:00 (file)",
    ]
    assert "no time" in (times := str(view.charts_of(entries)[0]))
    assert "2026-01-05" not in times
    assert "2026-02-01" not in times
    assert "2026-01-06" in times
    assert "(of its file: no record says when)" in browse_html.head(entries[0])
    assert "of its file" not in browse_html.head(entries[1])


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


@pytest.mark.parametrize("name", filters_of.FILTERS)
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


NO_DATES = [
    "yesterday",
    "31.01.2026",
    "2026-13-01",
    "2026-02-30",
    "2026-1-1T1:0",
    "26-01-01",
    " ",
    "2026-01-01T10:00+99:00",
    "0000",
]


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("text", NO_DATES)
def test_what_is_no_date_is_refused_by_trait_and_in_the_panel(name, text):
    browser = ImportBrowser(CORPUS, filters={"source": "cursor"})
    with pytest.raises(traitlets.TraitError, match="is no date; write year, month and day"):
        browser.filters = {name: text}
    browser._filters[name].value = text
    assert "is no date; write year, month and day" in browser._alert.value
    assert (browser.filters, browser.filtered) == ({"source": "cursor"}, (1, 3))


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.sampled_from([4, 7, 10, 16, 19, 23]))
def test_a_period_is_all_times_that_begin_with_it(time, length):
    whole = time.isoformat(timespec="milliseconds")
    named = filters_of.period(whole[:length])
    at = cnb.ecma.date_ms(f"{whole}Z")
    assert at in named
    for edge, inside in ((named.start, True), (named.stop - 1, True), (named.start - 1, False), (named.stop, False)):
        assert cnb.ecma.iso_time(edge).startswith(whole[:length]) is inside


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
def test_offsets_name_the_same_instant(time, offset):
    minutes = timedelta(minutes=offset // timedelta(minutes=1))
    shifted = time.replace(microsecond=0, tzinfo=UTC).astimezone(timezone(minutes))
    named = filters_of.period(shifted.isoformat())
    assert named.start == cnb.ecma.date_ms(shifted.astimezone(UTC).isoformat().replace("+00:00", "Z"))


def test_the_page_says_which_filters_are_on():
    browser = ImportBrowser(CORPUS)
    assert "<b>Filters</b>" not in browser.to_html()
    browser.filters = {"source": "cursor", "since": "2026-01", "losses": True, "text": "<b>"}
    assert "<p><b>Filters</b>: source: cursor; since: 2026-01; has losses; text: &lt;b&gt;</p>" in browser.to_html()


def test_clear_filters_shows_all_again():
    browser = ImportBrowser(CORPUS, filters={"source": "cursor", "losses": True, "text": "hello"})
    press(browser, "Clear filters")
    assert (browser.filters, browser.filtered) == ({}, (0, 1, 2, 3, 4))
    assert [browser._filters[name].value for name in ("source", "losses", "text")] == ["", False, ""]


def test_a_row_has_its_values_under_their_columns():
    entry = view.entries_of(Corpus([replace(entry_of(1, "cursor", lost=3), content_hash="0123456789abcdef")], []))[0]
    assert dict(zip(view.COLUMNS, view.row_of(replace(entry, decision="skip")), strict=True)) == {
        "time": "2026-01-02 10:00:00",
        "source": "cursor",
        "project": "p1",
        "title": "title 1",
        "messages": "2",
        "lost": "3",
        "decision": "skip",
        "hash": "01234567",
    }


def test_the_head_has_the_values_of_its_names():
    shown = browse_html.head(view.entries_of(CORPUS)[1])
    for name, value in {
        "source": "cursor",
        "id": "<code>c1</code>",
        "project": "p1",
        "time": "<code>2026-01-02T10:00:00.000Z</code>",
        "content hash": f'<code data-hash="entry">{CORPUS.parsed[1].content_hash}</code>',
        "decision": "none: no report was given",
    }.items():
        assert f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' in shown


def claude_twins(folder):
    """Two project folders that each hold a session of the same id."""
    for name, words in (("-a", "apples"), ("-b", "pears")):
        place = folder / ".claude" / "projects" / name
        place.mkdir(parents=True)
        lines = [
            {"type": kind, "uuid": f"{name}{n}", "sessionId": "same", "timestamp": "2026-01-01T10:00:00.000Z",
             "cwd": "/w", "message": {"role": kind, "content": f"{words} {n}"}}
            for n, kind in enumerate(("user", "assistant") * 2)
        ]  # fmt: skip
        (place / "same.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return cnb.Config(home=folder)


def test_candidates_of_one_id_have_each_its_own_decision(tmp_path):
    config = claude_twins(tmp_path)
    candidates = cnb.scan("claude-code", config=config)
    with cnb.open_store(tmp_path / "s.db", profile="pinned") as store:
        report = cnb.import_all(store, candidates, config=config, progress=False)
        decided = {o.candidate.file_path: o.decision.action for o in report.outcomes}
        assert sorted(decided.values()) == ["insert", "replace"]
        corpus = cnb.parse(candidates, config=config)
        entries = view.entries_of(corpus, report)
        assert [e.decision for e in entries] == [decided[p.candidate.file_path] for p in corpus.parsed]
        (stored,) = view.entries_of(store, report)
        assert stored.decision == decided[store.conversations()["file_path"][0]]


# Stores ---------------------------------------------------------------------------------------------------


def store_with(conversations, profile):
    policy = cnb.PINNED if profile == "pinned" else cnb.CAREFUL
    store = Store.in_memory(policy, cnb.samples.config())
    for c in conversations:
        digest, count = cnb.content_hash(c), len(c.messages)
        decision = cnb.Decision(
            c.source, c.id, "insert", "new", id=c.id, content_hash=digest, parser_version="x@1", message_count=count
        )
        store.apply(decision, Candidate(c.source, c.id, f"/{c.id}", 1, "", ""), c, policy)
    return store


ODD = [
    Message("user", "hi", id="1", role="user"),
    Message("assistant", "well", id="2", thinking="Deep thought", has_tool_use=True, has_code=True, parent_uuid="1"),
    Message("assistant", "x", id="3", role=cnb.UNSET, thinking=cnb.UNSET, timestamp="2026-01-01T10:00:00.000Z"),
    Message("assistant", "x", id="4", role=7, thinking={"a": "\ud83d"}),
]


@pytest.mark.parametrize("profile", ["pinned", "careful"])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "as another program has it"])
def test_a_stored_conversation_has_its_stored_hash(profile, exact):
    messages = tuple(ODD) if exact else (*ODD[:2], replace(ODD[2], role=None))
    given = Conversation("codex", "7", messages, slug="Title", project_dir="/p", project_name="p", cwd="/p/x")
    store = store_with([given], profile)
    if not exact:
        store.connection.execute("UPDATE messages SET exact = NULL")
        fitting = replace(given, messages=tuple(replace(m, thinking=m.thinking or cnb.UNSET) for m in messages))
        store.connection.execute("UPDATE conversations SET content_hash = ?", (cnb.content_hash(fitting),))
    browser = ImportBrowser(store, selection=0)
    assert cnb.content_hash(browser.conversation) == store.conversations()["content_hash"][0]
    assert browser.conversation.messages[:2] == messages[:2] if exact else browser.conversation.messages[1] == ODD[1]
    assert browser.conversation.slug == "Title"
    html = browser.to_html()
    assert "Deep thought" in html
    assert "Two hashes" not in html


@pytest.mark.parametrize("profile", ["pinned", "careful"])
def test_every_sample_in_a_store_has_its_stored_hash(tmp_path, profile):
    config = cnb.samples.config()
    with cnb.open_store(tmp_path / "s.db", profile=profile) as store:
        cnb.import_all(store, cnb.scan(config=config), config=config, progress=False)
        differing = []
        for entry in view.entries_of(store):
            loaded = entry.load()
            same = cnb.content_hash(loaded) == entry.content_hash
            assert same is (len(loaded.messages) == entry.messages)
            if not same:
                differing.append(view.difference(entry, loaded)[1])
        assert len(differing) == (1 if profile == "pinned" else 0)
        assert all("Parsed and hashed: 2 messages. Left: 1." in why for why in differing)


@pytest.mark.parametrize("profile", ["pinned", "careful"])
def test_a_selection_reads_the_rows_of_its_conversation_alone(profile):
    conversations = [Conversation("codex", f"c{n}", (Message("user", f"words {n}", id=f"m{n}"),)) for n in range(50)]
    store = store_with(conversations, profile)
    browser = ImportBrowser(store)
    asked: list[str] = []
    store.connection.set_trace_callback(asked.append)
    browser.selection = 7
    store.connection.set_trace_callback(None)
    reads = [query for query in asked if query.startswith("SELECT") and "FROM messages" in query]
    assert len(reads) == 1
    plan = [row[3] for row in store.connection.execute(f"EXPLAIN QUERY PLAN {reads[0]}")]
    assert all(step.startswith("SEARCH") for step in plan)
    assert browser.conversation.messages[0].content == f"words {browser.conversation.id[1:]}"


@pytest.mark.parametrize("profile", ["pinned", "careful"])
def test_a_text_is_found_in_a_store_and_its_messages_are_read_once(profile, monkeypatch):
    monkeypatch.setattr("crystal_nb.store_frames._AT_ONCE", 2)
    words = ["Straße", "STRASSE", "a.b", "thinking\x00", "", "İx", "50%"]
    conversations = [
        Conversation(
            "codex", f"c{n}", (Message("user", "-", id=f"a{n}"), Message("user", word, id=f"b{n}", thinking=word))
        )
        for n, word in enumerate(words)
    ]
    store = store_with(conversations, profile)
    browser = ImportBrowser(store)
    corpus = Corpus(
        [ParsedConversation(Candidate("codex", c.id, "/f", 1, "", ""), c, (), "", "") for c in conversations], []
    )
    asked: list[str] = []
    store.connection.set_trace_callback(asked.append)
    for needle in ("strasse", "STRASSE", "a.b", ".", "%", "i\u0307x", "\x00", "c3", "\ud83d", "nowhere"):
        browser.filters = {"text": needle}
        assert browser.filtered == tuple(filters_of.matching(view.entries_of(corpus), {"text": needle})), needle
    store.connection.set_trace_callback(None)
    assert sum("content" in query for query in asked) == 1


def test_a_store_says_that_it_keeps_no_losses_and_offers_no_filter_for_them():
    store = store_with([Conversation("codex", "7", tuple(ODD[:1]))], "careful")
    browser = ImportBrowser(store)
    labels = [w.description for w in widgets_in(browser) if isinstance(w, (ipywidgets.Checkbox, ipywidgets.Text))]
    assert labels == ["Since", "Until", "Text"]
    shown = "".join(w.value for w in widgets_in(browser) if isinstance(w, ipywidgets.HTML))
    for html in (shown, browser.to_html()):
        assert "A store keeps neither tool calls nor what was lost; a corpus" in html
        assert "Lost records by reason" not in html
    with pytest.raises(traitlets.TraitError, match=r"losses can't be used here\. A store keeps"):
        browser.filters = {"losses": True}
    with pytest.raises(traitlets.TraitError, match="losses can't be used here"):
        ImportBrowser(store, filters={"losses": True})
    browser.filters = {"losses": False}
    assert browser.filtered == (0,)
    browser._filters["text"].value = "nowhere"
    assert browser.filtered == ()
    assert "A store keeps" not in ImportBrowser(CORPUS).to_html()


def test_a_conversation_that_lost_a_message_to_another_one_shows_both_hashes_and_why():
    first = Conversation("codex", "7", tuple(ODD[:2]))
    store = store_with([first, Conversation("codex", "8", (ODD[1],))], "pinned")
    browser = ImportBrowser(store, selection=0)
    left = cnb.content_hash(replace(first, messages=first.messages[:1]))
    press(browser, "Inspect the hash")
    note, inspector = browser._inspect.children
    assert inspector.value == left
    for html in (browser.to_html(), browser._result.value, note.value):
        assert f"Stored: <code>{cnb.content_hash(first)}</code>" in html
        assert f'<code data-hash="rows">{left}</code>' in html
        assert "Parsed and hashed: 2 messages. Left: 1. This store has one row for each message id" in html
    browser.selection = 1
    assert "Two hashes" not in browser.to_html()
    press(browser, "Inspect the hash")
    assert len(browser._inspect.children) == 1


def test_rows_that_were_changed_are_said_to_be():
    store = store_with([Conversation("codex", "7", tuple(ODD[:2]))], "careful")
    store.connection.execute("UPDATE messages SET content = 'other' WHERE sort_order = 1")
    assert "The rows were changed after they were hashed." in ImportBrowser(store, selection=0).to_html()


def test_a_conversation_that_is_gone_from_the_store_is_said_and_what_was_shown_stays():
    store = store_with([Conversation("codex", str(n), (Message("user", "x", id=str(n)),)) for n in range(2)], "careful")
    browser = ImportBrowser(store, selection=0)
    store.connection.execute("DELETE FROM conversations WHERE id = '1'")
    with pytest.raises(cnb.UnknownConversationError, match="no conversation"):
        browser.selection = 1
    assert (browser.selection, browser.conversation.id) == (0, "0")


# Rows in the page -----------------------------------------------------------------------------------------


def crowded():
    """Every list, chart and table of the browser as long as it can get."""
    messages = tuple(Message("user", f"m{n}") for n in range(120))
    fates = tuple(
        fate
        for n in range(120)
        for fate in (Fate("kept", "m", message_index=n), *[Fate("dropped", f"kind {n}", line=n)] * (1 + n % 3))
    )
    parsed, outcomes = [], []
    for n in range(200):
        month = f"{2024 + n % 24 // 12}-{n % 12 + 1:02d}"
        time = f"{month}-{n % 28 + 1:02d}T10:00:00.000Z" if n else ""
        candidate = Candidate(f"source {n % 9}", f"c{n}", f"/f{n}", 1, time, "p")
        conversation = Conversation(candidate.source, candidate.id, messages if n < 2 else messages[:1])
        parsed.append(ParsedConversation(candidate, conversation, fates if n < 2 else (), "0", "x@1"))
        steps = tuple(cnb.Step(f"step {k}", "a", "b", True) for k in range(20))
        decision = cnb.Decision(candidate.source, candidate.id, f"action {n % 20}", "why", steps)
        outcomes.append(Outcome(candidate, decision))
    return ImportBrowser(Corpus(parsed, []), report=ImportReport("pinned", tuple(outcomes)), selection=1)


@pytest.mark.parametrize("message", [0, 30, 70])
@pytest.mark.parametrize("inspecting", [False, True])
def test_no_state_has_more_than_two_hundred_rows_in_the_page(message, inspecting):
    browser = crowded()
    browser.message = message
    if inspecting:
        press(browser, "Inspect the hash")
        browser._inspector.edits = [("set", 0, "content", "other"), ("drop", 1)]
        browser._inspector.other = 0
    html = "".join(w.value for w in widgets_in(browser) if isinstance(w, ipywidgets.HTML))
    assert html.count('class="cnb-message') == 50
    assert html.count('class="cnb-lost') >= 50
    assert "no time" in html
    assert "8 more" in html
    assert html.count("<tr") + len(browser._table.control.rows) + 1 <= 200
