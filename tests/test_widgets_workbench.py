"""The parser workbench: its model and its traits, without a browser."""

from __future__ import annotations

import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import ipywidgets
import pytest
import traitlets

import crystal_nb as cnb
from crystal_nb.errors import ConfigError
from crystal_nb.widgets import ParserWorkbench, record_table, workbench_html
from crystal_nb.widgets import workbench_view as view

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e</pre>"


def parser(version: int = 1, *, failing: bool = False, upper: bool = False):
    @cnb.jsonl_adapter("mytool", root="~/.mytool", glob="**/*.jsonl", version=f"mytool@{version}")
    def mytool(record, session):
        if record["kind"] == "say":
            text = record["text"].upper() if upper else record["text"]
            yield cnb.Message(id=record["id"], type=record["who"], content=text)
        elif record["kind"] == "boom" and failing:
            raise ValueError(record["text"])

    return mytool


@pytest.fixture
def file(tmp_path: Path) -> Path:
    said = [
        {"kind": "say", "who": "user", "id": "1", "text": "hello"},
        {"kind": "noise", "text": "nothing"},
        {"kind": "say", "who": "assistant", "id": "2", "text": HOSTILE},
        {"kind": "boom", "text": HOSTILE},
        {"kind": "say", "who": "user", "id": "3", "text": "bye"},
    ]
    path = tmp_path / "chat.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in said), encoding="utf-8")
    return path


def test_every_record_is_in_one_of_the_counts(file):
    bench = view.Bench(cnb.try_parser(parser(), file))
    assert sum(bench.counts.values()) == len(bench.rows) == 5
    assert (bench.counts["kept"], bench.counts["dropped"], len(bench.messages)) == (3, 2, 3)
    assert sorted(n for what in view.SHOWN[1:] for n in bench.shown(what)) == bench.shown("all")


@pytest.mark.parametrize("source", ["claude-code", "codex", "cursor", "trae", "copilot"])
def test_the_books_close_for_every_built_in(source):
    config = cnb.samples.config()
    for candidate in cnb.scan(source, config=config).to_dicts():
        record = cnb.Candidate(**{name: candidate.get(name) for name in cnb.Candidate.__struct_fields__})
        bench = view.Bench(cnb.try_parser(source, record, config=config))
        assert sum(bench.counts.values()) == len(bench.rows)
        assert set(bench.records_of) <= set(range(len(bench.messages)))


def test_a_record_and_its_message_are_chosen_together(file):
    bench = ParserWorkbench(parser(), file)
    bench.record = 2
    assert bench.message == 1
    bench.message = 2
    assert bench.record == 4
    assert bench._records.control.marked == [4]
    assert bench._messages.control.selected == 2
    bench.record = 1
    assert bench.message is None
    assert "No message came from it" in bench.to_html()
    bench.message = None
    assert bench.record == 1


def test_dropped_records_say_why(file):
    bench = ParserWorkbench(parser(), file, shown="dropped")
    assert bench.dropped == (1, 3)
    assert [cells[0] for cells in bench._records.control.rows] == ["line 2", "line 4"]
    assert all(cells[2].startswith("✗ dropped: ") for cells in bench._records.control.rows)


def test_an_error_is_shown_in_its_place(file):
    bench = ParserWorkbench(parser(failing=True), file)
    assert bench.errors == (3,)
    assert 'data-error="ValueError"' in bench.to_html()
    assert "! error: ValueError in mytool, line " in bench.to_html()
    assert len(bench.messages) == 3
    bench.run(parser())
    assert (bench.errors, bench.trial.error) == ((), None)


def test_running_again_reads_the_file_again(file):
    bench = ParserWorkbench(parser(), file, message=2)
    file.write_text(file.read_text().splitlines()[0] + "\n")
    bench.run()
    assert (len(bench.messages), bench.message) == (1, None)


def test_a_parser_that_is_defined_anew_is_taken(file):
    first, second = parser(), parser(2, upper=True)
    bench = ParserWorkbench(first, file)
    bench._redefined({"x": 1, "mytool": first})
    assert bench.messages[0].content == "hello"
    bench._redefined({"mytool": second, "other": parser})
    assert bench.messages[0].content == "HELLO"
    bench.auto = False
    bench._redefined({"mytool": first})
    assert bench.messages[0].content == "HELLO"


def test_two_versions_stand_side_by_side(file):
    found = view.Versions(*(view.Bench(cnb.try_parser(p, file)) for p in (parser(), parser(2, upper=True))))
    assert [a.number for a, _ in found.differing] == [0, 2, 4]
    assert found.alignment.changed == 3
    bench = ParserWorkbench(parser(), file, other=parser(2, upper=True))
    html = bench.to_html()
    assert "mytool@1" in html
    assert "mytool@2" in html
    assert 'data-differing="3"' in html
    assert "3 changed" in html
    assert 'data-differing="0"' in ParserWorkbench(parser(), file, other=parser()).to_html()


def test_released_versions_can_be_compared_by_name():
    config = cnb.samples.config()
    file = cnb.scan("claude-code", config=config)["file_path"][0]
    html = ParserWorkbench("claude-code@1", file, other="claude-code@2", config=config).to_html()
    assert "claude-code@2" in html


def test_records_are_windowed(tmp_path):
    path = tmp_path / "long.jsonl"
    line = json.dumps({"kind": "say", "who": "user", "id": "1", "text": "x"}) + "\n"
    path.write_text(line * 5_000)
    bench = ParserWorkbench(parser(), path)
    assert len(bench._records.control.rows) == len(bench._messages.control.rows) == 90
    bench.record = 4_000
    assert (bench.message, bench._records.control.selected) == (4_000, 4_000)
    assert bench._records.control.rows[bench._records.control.row_keys.index(4_000)][0] == "line 4001"
    control = bench._records.control
    control.selected = control.beyond[1]  # rows 3955 to 4044 were shown, with 4000 in their midst
    assert (bench.record, bench.message) == (4_045, 4_045)
    control.selected = control.beyond[0]
    assert bench.record == 3_999
    bench._records.control.selected = bench._records.control.row_keys[3]
    assert bench.record == bench._starts["record"] + 3


def test_wrong_traits_are_refused(file):
    bench = ParserWorkbench(parser(), file)
    with pytest.raises(traitlets.TraitError, match="no record 9; there are 5"):
        bench.record = 9
    with pytest.raises(TypeError, match="did you mean 'record'"):
        ParserWorkbench(parser(), file, records=1)
    with pytest.raises(ConfigError, match="No such file"):
        ParserWorkbench(parser(), file.with_name("none.jsonl"))


def test_a_file_that_is_nothing_shows_its_error(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"\xff\xfe{{{\n")
    assert ParserWorkbench(parser(), path).messages == ()
    assert ParserWorkbench("codex", path).to_html().encode()


def test_a_hostile_file_shows_as_text(file):
    bench = ParserWorkbench(parser(failing=True), file, other=parser(2))
    for record in range(5):
        bench.record = record
        html = bench.to_html() + bench._head.value + "".join(map("".join, bench._records.control.rows))
        assert "<script" not in bench.to_html() + bench._head.value
        assert html.replace("\n", "").isprintable()
    assert workbench_html.pair(bench._bench, None, None)


def test_a_run_that_can_not_be_made_leaves_everything_as_it_was(file):
    bench = ParserWorkbench(parser(), file, message=1)
    before = bench.to_html()
    with pytest.raises(cnb.errors.UnknownAdapterError):
        bench.run("nobody")
    text = file.read_bytes()
    file.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        bench.run()
    assert (bench.message, bench.record, bench.to_html()) == (1, 2, before)
    file.write_bytes(text)
    bench.run()
    assert len(bench.messages) == 3


@pytest.mark.parametrize(
    "raised", [SystemExit(3), MemoryError(), RecursionError(), ValueError(HOSTILE * 1000)], ids=repr
)
def test_a_parser_that_ends_or_raises_anything_is_shown_at_its_record(file, raised):
    @cnb.jsonl_adapter("mytool", root="~/.mytool", glob="**/*.jsonl")
    def mytool(record, session):
        raise raised

    bench = ParserWorkbench(mytool, file)
    assert bench.errors == (0, 1, 2, 3, 4)
    assert f'data-error="{type(raised).__name__}"' in bench.to_html()
    assert "<script" not in bench.to_html()


@pytest.fixture
def shell(monkeypatch):
    """What a workbench uses of a notebook's shell."""
    from IPython.core import getipython
    from IPython.core.events import EventManager

    made = SimpleNamespace(user_ns={})
    made.events = EventManager(made, {"post_run_cell": lambda *result: None})

    def run(cell_id, **defined):
        made.user_ns.update(defined)
        made.events.trigger("post_run_cell", SimpleNamespace(info=SimpleNamespace(cell_id=cell_id)))

    made.run = run
    monkeypatch.setattr(getipython, "get_ipython", lambda: made)
    return made


@pytest.mark.parametrize("cell_id", ["cell-7", None])
def test_a_workbench_of_a_cell_that_is_run_again_parses_no_more(shell, file, cell_id):
    first, benches = parser(), []
    for _ in range(5):
        benches.append(ParserWorkbench(first, file))
        shell.run(cell_id, mytool=first)
    shell.run("another", mytool=parser(2, upper=True))
    taken = [bench.messages[0].content == "HELLO" for bench in benches]
    assert taken == ([False] * 4 + [True] if cell_id else [True] * 5)


def test_a_cell_that_defines_the_parser_and_shows_it_can_be_run_again_and_again(shell, file):
    for upper in (False, True, False):
        adapter = parser(upper=upper)
        bench = ParserWorkbench(adapter, file)
        shell.run("cell-1", mytool=adapter)
        assert bench.messages[0].content == ("HELLO" if upper else "hello")
    shell.run("cell-2", mytool=parser(upper=True))
    assert bench.messages[0].content == "HELLO"


# One record of several messages ---------------------------------------------------------------------------


def turns(*, loud: bool = False):
    """A parser whose record can give a question and its answer, or add to the answer before it."""

    @cnb.jsonl_adapter("turns", root="~/.turns", glob="**/*.jsonl")
    def turns(record, session):
        if "more" in record:
            session.amend(content=session.messages[-1].content + record["more"])
        for who in ("user", "assistant"):
            if who in record:
                yield cnb.Message(type=who, content=record[who].upper() if loud and who == "assistant" else record[who])

    return turns


@pytest.fixture
def turned(tmp_path: Path) -> Path:
    said = [{"user": "hello"}, {"user": "how?", "assistant": "so"}, {"noise": 1}, {"more": "!"}, {"user": "thanks"}]
    path = tmp_path / "turns.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in said), encoding="utf-8")
    return path


def test_every_message_says_which_records_it_came_from_and_every_record_what_it_gave(turned):
    bench = view.Bench(cnb.try_parser(turns(), turned))
    assert bench.records_of == {0: [0], 1: [1], 2: [1, 3], 3: [4]}
    assert [bench.messages_of(n) for n in range(5)] == [(0,), (1, 2), (), (2,), (3,)]
    assert [row.status for row in bench.rows] == ["kept", "kept", "dropped", "merged", "kept"]
    assert bench.rows[1].fate == "→ kept 1, 2"


def test_all_that_belongs_to_a_choice_is_marked_on_the_other_side(turned):
    bench = ParserWorkbench(turns(), turned, record=1)
    assert (bench.message, bench._messages.control.marked) == (1, [1, 2])
    bench.message = 2
    assert (bench.record, bench._records.control.marked) == (1, [1, 3])
    bench.record = 3
    assert (bench.message, bench._messages.control.marked) == (2, [2])
    bench.record = 2
    assert (bench.message, bench._messages.control.marked) == (None, [])


@pytest.mark.parametrize("source", ["claude-code", "codex", "cursor", "trae", "copilot", "gemini"])
def test_what_a_record_gave_is_what_its_fate_says(source):
    config = cnb.samples.config()
    for found in cnb.parse(cnb.scan(source, config=config), config=config).parsed:
        bench = view.Bench(cnb.try_parser(source, found.candidate, config=config))
        said = {n for fate in found.fates if fate.status in ("kept", "merged") for n in fate.messages}
        assert set(bench.records_of) == said


def test_a_record_whose_second_message_is_another_one_differs(turned):
    bench = ParserWorkbench(turns(), turned, other=turns(loud=True))
    assert [a.number for a, _ in bench._versions.differing] == [1, 3]
    assert "<code>how?</code><br><code>so!</code>" in bench.to_html()
    assert "<code>how?</code><br><code>SO!</code>" in bench.to_html()


def test_a_record_that_is_dropped_for_another_reason_differs(file):
    def reason(why):
        @cnb.jsonl_adapter("mytool", root="~/.mytool", glob="**/*.jsonl")
        def mytool(record, session):
            if record["kind"] == "noise":
                session.drop(why)

        return mytool

    benches = [view.Bench(cnb.try_parser(reason(why), file)) for why in ("loud", "silent")]
    assert [a.number for a, _ in view.Versions(*benches).differing] == [1]


# What is shown --------------------------------------------------------------------------------------------


def test_the_whole_record_is_shown_and_not_its_beginning(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"kind": "say", "who": "user", "id": "1", "text": "x" * 3_000 + "the end"}) + "\n")
    bench = ParserWorkbench(parser(), path)
    left = workbench_html.pair(bench._bench, 0, None)
    assert left.count("x") > 3_000
    assert "the end&quot;}</pre>" in left


def test_the_failure_of_the_other_parser_is_shown(file):
    html = ParserWorkbench(parser(), file, other=parser(2, failing=True)).to_html()
    assert '<div class="cnb-alert" data-error="ValueError"><b>mytool@2 fails: ValueError</b>' in html
    assert html.count('cnb-alert" data-error') == 1


def listed(bench: ParserWorkbench) -> list[list[str]]:
    """First cells of the two lists of the page."""
    return [re.findall(r'<th scope="row">(.*?)</th>', part) for part in bench.body().split("<table>")[1:3]]


def test_a_page_shows_what_the_panel_shows(file):
    bench = ParserWorkbench(parser(), file, shown="dropped", record=3)
    assert listed(bench) == [["line 2", "▸ line 4"], ["0", "1", "2"]]
    assert "<caption>Raw records, dropped: 2</caption>" in bench.body()
    bench.shown = "all"
    bench.message = 1
    assert listed(bench) == [["line 1", "line 2", "▸ line 3", "line 4", "line 5"], ["0", "▸ 1", "2"]]
    assert '<tr class="cnb-hit"><th scope="row">▸ line 3</th>' in bench.body()


def test_a_page_shows_the_same_window_as_the_panel(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_text('{"kind": "say", "who": "user", "id": "1", "text": "x"}\n' * 5_000)
    bench = ParserWorkbench(parser(), path, record=4_000)
    for side, cells in zip((bench._records, bench._messages), listed(bench), strict=True):
        assert [c.removeprefix("▸ ") for c in cells] == [row[0] for row in side.control.rows]
    assert "▸ line 4001" in listed(bench)[0]
    assert "<caption>Raw records: 3,956 to 4,045 of 5,000</caption>" in bench.body()


# Controls -------------------------------------------------------------------------------------------------


def button(bench: ParserWorkbench, label: str) -> ipywidgets.Button:
    waiting = [bench]
    for widget in waiting:
        waiting += getattr(widget, "children", ())
    return next(w for w in waiting if isinstance(w, ipywidgets.Button) and w.description == label)


def test_controls_and_traits_are_at_one(file):
    bench = ParserWorkbench(parser(), file)
    bench.auto = False
    assert bench._auto.value is False
    bench._auto.value = True
    assert bench.auto is True
    bench._shown.value = "dropped"
    assert bench.shown == "dropped"
    bench.shown = "errors"
    assert bench._shown.value == "errors"


def test_the_button_reads_and_parses_again(file):
    bench = ParserWorkbench(parser(), file)
    file.write_text(file.read_text().splitlines()[0] + "\n")
    button(bench, "Run again").click()
    assert len(bench.messages) == 1
    file.unlink()
    button(bench, "Run again").click()
    assert "No such file" in bench._alert.value
    assert len(bench.messages) == 1


def test_a_key_guard_is_in_the_panel_where_anywidget_is_there(file):
    pytest.importorskip("anywidget")
    assert [type(child).__name__ for child in ParserWorkbench(parser(), file).children][-1] == "KeyGuard"


def test_without_anywidget_plain_lists_have_all_rows_and_marks(tmp_path, monkeypatch):
    path = tmp_path / "long.jsonl"
    path.write_text('{"kind": "say", "who": "user", "id": "1", "text": "x"}\n' * 200)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    record_table._grid_class.cache_clear()
    try:
        bench = ParserWorkbench(parser(), path)
    finally:
        record_table._grid_class.cache_clear()
    earlier, later = (button(bench, f"{way} raw records") for way in ("Earlier", "Later"))
    assert (earlier.disabled, later.disabled) == (True, False)
    seen = []
    while not later.disabled:
        later.click()
        seen.append(bench.record)
    assert (seen, bench._records.control.options[-1][0].split(" · ")[0]) == ([90, 135, 180], "line 200")
    assert bench._records.control.label.startswith("• line 181 · ")
    assert [o[0][:2] for o in bench._records.control.options].count("• ") == 1
    while not earlier.disabled:
        earlier.click()
    assert bench._records.control.options[0][0].startswith("line 1 · ")
    button(bench, "Later messages").click()
    assert (bench.message, bench.record) == (90, 90)


# Parsers that are set or defined anew ---------------------------------------------------------------------


def test_parsers_and_files_are_traits(file, turned):
    heard = []
    bench = ParserWorkbench(parser(), file, message=1)
    bench.observe(lambda change: heard.append((change.name, len(bench.messages))), ["adapter", "other", "path"])
    bench.other = second = parser(2, upper=True)
    assert 'data-differing="3"' in bench._result.value
    bench.adapter = second
    assert (bench.messages[0].content, bench.message) == ("HELLO", None)
    assert 'data-differing="0"' in bench._result.value
    bench.other = None
    assert "data-differing" not in bench._result.value
    bench.path = turned
    assert (bench.errors, heard) == ((0, 1, 2, 3, 4), [("other", 3), ("adapter", 3), ("other", 3), ("path", 0)])


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("adapter", "nobody", cnb.errors.UnknownAdapterError),
        ("adapter", None, cnb.errors.CrystalError),
        ("other", 5, cnb.errors.CrystalError),
        ("path", "/nowhere/x", ConfigError),
        ("id", "nobody", ConfigError),
    ],
)
@pytest.mark.parametrize("held", [False, True])
def test_inputs_that_can_not_be_tried_leave_everything_as_it_was(file, name, value, kind, held):
    bench = ParserWorkbench(parser(), file, other=parser(2), message=1)
    inputs = ("adapter", "other", "path", "id", "trial", *bench.keywords)
    before = [getattr(bench, n) for n in inputs], bench.to_html()
    with pytest.raises(kind), bench.hold_trait_notifications() if held else nullcontext():
        setattr(bench, name, value)
    assert ([getattr(bench, n) for n in inputs], bench.to_html()) == before


DEFINED = """
@cnb.jsonl_adapter("mytool", root="~/.mytool", glob="**/*.jsonl", version="mytool@VERSION")
def NAME(record, session):
    if record["kind"] == "say":
        yield cnb.Message(id=record["id"], type=record["who"], content="SAYS")
"""


def cell(name: str, version: int, says: str) -> str:
    return DEFINED.replace("NAME", name).replace("VERSION", str(version)).replace("SAYS", says)


@pytest.fixture
def ipython(file):
    """A real shell without a kernel; it runs a cell's text, whose first line names the cell."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    made = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))

    def run(source, cell_id=None):
        made.run_cell(source, store_history=True, cell_id=cell_id or source).raise_error()
        bench = made.user_ns.get("bench")
        return bench and [b.messages[0].content for b in (bench._bench, bench._versions and bench._versions.b) if b]

    made.user_ns.update(cnb=cnb, file=str(file))
    yield run
    InteractiveShell.clear_instance()


SHOW = "bench = cnb.widgets.ParserWorkbench(mytool, file)"
BOTH = "bench = cnb.widgets.ParserWorkbench(v1, file, other=v2)"


def test_each_of_two_adapters_of_one_name_is_followed_by_its_own_variable(ipython):
    ipython(cell("mytool", 1, "one"), "a")
    ipython(cell("another", 2, "two"), "b")
    assert ipython(SHOW) == ["one"]
    assert ipython(cell("another", 2, "three"), "b") == ["one"]
    assert ipython(cell("mytool", 1, "four"), "a") == ["four"]
    assert ipython(cell("another", 2, "five"), "b") == ["four"]


def test_both_sides_are_followed(ipython):
    ipython(cell("v1", 1, "one"), "a")
    ipython(cell("v2", 2, "two"), "b")
    assert ipython(BOTH) == ["one", "two"]
    assert ipython(cell("v1", 1, "new"), "a") == ["new", "two"]
    assert ipython(cell("v2", 2, "newer"), "b") == ["new", "newer"]
    assert ipython(cell("v1", 1, "x") + cell("v2", 2, "y"), "c") == ["x", "y"]


def test_outputs_and_other_variables_that_keep_the_old_parser_do_not_keep_the_bench(ipython):
    ipython(cell("mytool", 1, "one"), "a")
    ipython("mytool")  # Out and _2
    ipython("old = mytool")
    assert ipython(SHOW) == ["one"]
    assert ipython(cell("mytool", 1, "two"), "a") == ["two"]
    ipython("mytool")
    assert ipython(cell("mytool", 1, "three"), "a") == ["three"]


def test_the_parser_before_stands_beside_the_one_that_is_being_changed(ipython):
    ipython(cell("mytool", 1, "one"), "a")
    ipython("old = mytool")
    assert ipython("bench = cnb.widgets.ParserWorkbench(mytool, file, other=old)") == ["one", "one"]
    assert ipython(cell("mytool", 1, "two"), "a") == ["two", "one"]
    assert ipython("old = mytool") == ["two", "two"]
    assert ipython(cell("mytool", 1, "three"), "a") == ["three", "two"]


def test_an_output_of_another_parser_is_not_taken(ipython):
    ipython(cell("mytool", 1, "one") + cell("another", 2, "two"), "a")
    ipython("mytool")
    assert ipython(SHOW + "\nmytool") == ["one"]  # now _ is mytool
    assert ipython("another") == ["one"]  # and now it is another


def test_of_two_sides_with_one_parser_each_follows_its_own_variable(ipython):
    ipython(cell("mytool", 1, "one") + "old = mytool", "a")
    assert ipython("bench = cnb.widgets.ParserWorkbench(mytool, file, other=old)") == ["one", "one"]
    assert ipython(cell("old", 1, "two"), "b") == ["one", "two"]
    assert ipython(cell("mytool", 1, "three"), "c") == ["three", "two"]


def test_a_parser_that_is_set_is_not_undone_by_the_next_cell(ipython):
    ipython(cell("v1", 1, "one") + cell("v2", 2, "two"), "a")
    ipython("bench = cnb.widgets.ParserWorkbench(v1, file)")
    assert ipython("bench.adapter = v2") == ["two"]
    assert ipython(cell("v1", 1, "new"), "b") == ["two"]
    assert ipython(cell("v2", 2, "newer"), "c") == ["newer"]


def test_a_parser_that_was_not_taken_is_taken_once_it_may(ipython):
    ipython(cell("mytool", 1, "one"), "a")
    ipython(SHOW + "\nbench.auto = False")
    ipython("old = mytool")
    assert ipython(cell("mytool", 1, "two"), "a") == ["one"]
    assert ipython("bench.auto = True") == ["two"]


@pytest.mark.parametrize("value", ["5", "None", "'codex'", "type(mytool)", "[mytool]"])
def test_what_is_no_adapter_is_not_taken(ipython, value):
    ipython(cell("mytool", 1, "one"), "a")
    ipython(SHOW)
    assert ipython(f"mytool = {value}") == ["one"]
    assert ipython(cell("mytool", 1, "two"), "a") == ["two"]
    assert ipython("del mytool") == ["two"]
    assert ipython(cell("mytool", 1, "three"), "a") == ["three"]
