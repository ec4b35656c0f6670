"""The parser workbench: its model and its traits, without a browser."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import traitlets

import crystal_nb as cnb
from crystal_nb.errors import ConfigError
from crystal_nb.widgets import ParserWorkbench, workbench_html
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
    assert (bench.message, bench._records.control.rows[bench._records.control.selected][0]) == (4_000, "line 4001")
    bench._turn("record", 1)
    assert bench.record == bench._starts["record"] + bench._records.control.selected
    bench._records.control.selected = 3
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
