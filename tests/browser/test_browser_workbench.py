"""The parser workbench in JupyterLab."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")
from playwright.sync_api import expect

FILE = r"""
import json, pathlib, tempfile
import crystal_nb as cnb
bad = "</td></pre><script>alert(1)</script><img src=x onerror=alert(2)><img src=http://example.org/a.png>\x1b[31m\u202eevil"
said = [{"kind": "say", "who": "user", "id": "1", "text": "hello"}, {"kind": "noise", "text": bad},
        {"kind": "say", "who": "assistant", "id": "2", "text": bad + "x" * 1_000_000}, {"kind": "boom", "text": bad}]
file = pathlib.Path(tempfile.mkdtemp()) / "chat.jsonl"
_ = file.write_text("".join(json.dumps(record) + "\n" for record in said), encoding="utf-8")
"""
PARSER = """
@cnb.jsonl_adapter("mytool", root="~/.mytool", glob="**/*.jsonl")
def mytool(record, session):
    if record["kind"] == "say":
        yield cnb.Message(id=record["id"], type=record["who"], content=record["text"])
"""
FAILING = PARSER + '    elif record["kind"] == "boom":\n        raise ValueError(record["text"])\n'
SHOW = """
bench = cnb.widgets.ParserWorkbench(mytool, file)
bench
"""


def rows(page, name):
    return page.get_by_role("grid", name=name).locator("tbody tr")


def test_choosing_a_record_shows_its_message_and_the_other_way(lab):
    page = lab.run(FILE, PARSER, SHOW).page
    expect(page.locator("[data-records]")).to_contain_text("4 raw records = 2 kept, 2 dropped; 2 messages")
    rows(page, "Raw records").nth(2).click()
    expect(rows(page, "Messages").nth(1)).to_have_attribute("aria-selected", "true")
    expect(page.locator("[data-record='2'][data-message='1']")).to_contain_text("Message 1")
    assert lab.kernel("bench.message") == "1"
    rows(page, "Messages").nth(0).click()
    expect(rows(page, "Raw records").nth(0)).to_have_attribute("aria-selected", "true")
    assert lab.kernel("bench.record") == "0"
    page.get_by_role("combobox", name="Show").select_option("dropped")
    expect(rows(page, "Raw records")).to_have_count(2)
    expect(rows(page, "Raw records").nth(0)).to_contain_text("✗ dropped")
    lab.quiet()


def test_running_the_parsers_cell_again_runs_it_on_the_file(lab):
    page = lab.run(FILE, PARSER, SHOW, "0").page
    expect(rows(page, "Raw records")).to_have_count(4)
    lab.show(FAILING)
    expect(page.locator("[data-error=ValueError]")).to_contain_text("in mytool, line")
    expect(rows(page, "Raw records").nth(3)).to_contain_text("! error: ValueError")
    assert lab.kernel("bench.errors") == "(3,)"
    lab.show(PARSER)
    expect(page.locator("[data-error=ValueError]")).to_have_count(0)
    lab.quiet()


def test_the_keyboard_is_enough(lab):
    page = lab.run(FILE, PARSER, SHOW).page
    page.get_by_role("button", name="Run again").click()
    expect(page.locator("[data-record='None']")).to_be_visible()
    page.get_by_role("grid", name="Raw records").focus()
    page.keyboard.press("End")
    expect(page.locator("[data-record='3']")).to_contain_text("No message came from it")
    page.keyboard.press("ArrowUp")
    expect(page.locator("[data-record='2']")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("grid", name="Messages")).to_be_focused()
    page.keyboard.press("Home")
    expect(page.locator("[data-record='0'][data-message='0']")).to_be_visible()
    lab.quiet()


def test_a_hostile_file_shows_as_text_and_runs_nothing(lab):
    page = lab.run(FILE, FAILING, SHOW).page
    rows(page, "Raw records").nth(2).click()
    expect(page.locator("[data-record='2']")).to_contain_text("<script>alert(1)</script>")
    rows(page, "Raw records").nth(3).click()
    expect(page.locator("[data-record='3']")).to_contain_text("! error")
    assert page.locator(".jp-OutputArea-output :is(script, img)").count() == 0
    assert "\u202e" not in page.locator(".jp-OutputArea-output").last.inner_text()
    lab.quiet()


def test_axe_finds_nothing_in_any_theme(lab, accessible):
    show = 'bench = cnb.widgets.ParserWorkbench(mytool, file, other="codex", record=2)\nbench'
    lab.run(FILE, FAILING, show)
    expect(lab.page.locator("[data-differing]")).to_be_visible()
    accessible(lab, ".cnb-widget")
