"""The reimport lab in JupyterLab."""

from __future__ import annotations

import pytest

import crystal_nb as cnb
from crystal_nb.scenarios import play

pytest.importorskip("playwright", reason="playwright is not installed")
from playwright.sync_api import expect

SETUP = """
import crystal_nb as cnb
lab = cnb.widgets.ReimportLab(scenario="changed-unseen")
lab
"""
HOSTILE = r"""
import json, pathlib, tempfile
import crystal_nb as cnb
bad = "</td><script>alert(1)</script><img src=x onerror=alert(2)><img src=http://example.org/a.png>\x1b[31m\u202eevil"
home = pathlib.Path(tempfile.mkdtemp())
folder = home / ".claude" / "projects" / "-srv-demo"
folder.mkdir(parents=True)
records = [{"type": kind, "uuid": bad + kind, "parentUuid": None, "timestamp": bad, "sessionId": "s", "cwd": bad,
            "message": {"role": kind, "content": [{"type": "text", "text": "words " + bad * 20}]}}
           for kind in ("user", "assistant")]
(folder / "<b>bad.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
config = cnb.Config(home=home)
lab = cnb.widgets.ReimportLab(cnb.scan("claude-code", config=config), config=config, scenario="edited")
lab
"""

LONG = r"""
import json, pathlib, tempfile
import crystal_nb as cnb
home = pathlib.Path(tempfile.mkdtemp())
folder = home / ".claude" / "projects" / "-srv-demo"
folder.mkdir(parents=True)
text = "<img src=x onerror=alert(1)>" + "x" * 1_000_000
records = [{"type": kind, "uuid": kind, "parentUuid": None, "timestamp": "2026-01-01T00:00:00.000Z", "sessionId": "s",
            "message": {"role": kind, "content": text}} for kind in ("user", "assistant")]
(folder / "long.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
config = cnb.Config(home=home)
lab = cnb.widgets.ReimportLab(cnb.scan("claude-code", config=config), config=config, scenario="edited")
lab
"""


def status(page):
    return page.locator(".cnb [role=status]")


def test_stepping_and_flipping_a_rule_show_the_right_decision(lab):
    page = lab.run(SETUP).page
    expect(status(page)).to_have_attribute("data-action", "open")
    decision = play("changed-unseen")[-1].decisions[0]
    forward = page.get_by_role("button", name="Next", exact=True)
    for step in range(1, len(decision.steps)):
        forward.click()
        expect(status(page)).to_have_attribute("data-step", str(step))
    expect(status(page)).to_have_attribute("data-action", decision.action)
    assert lab.kernel("lab.decision.action") == repr(decision.action)
    expect(page.locator("tr", has=page.get_by_role("rowheader", name="careful"))).to_contain_text("replace")

    page.get_by_role("combobox", name="Rule").select_option("fingerprint")
    page.get_by_role("combobox", name="Value").select_option("True")
    page.get_by_role("checkbox", name="all steps at once").check()
    expect(status(page)).to_have_attribute("data-action", "replace")
    assert lab.kernel("lab.rules") == "{'fingerprint': True}"
    changed = cnb.scenarios.play("changed-unseen", policy=cnb.CAREFUL)[-1].decisions[0]
    assert lab.kernel("lab.decision.content_hash") == repr(changed.content_hash)
    lab.quiet()


def test_steps_are_composed_in_the_page(lab):
    page = lab.run(SETUP).page
    page.get_by_role("combobox", name="Scenario").select_option("compose your own")
    expect(page.get_by_role("button", name="touch", exact=True)).to_be_visible()
    for number, name in enumerate(("touch", "crash"), 1):
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.locator("[data-scene]")).to_contain_text(f"Scene {number + 1} of {number + 1}: {number}. {name}.")
    assert lab.kernel("lab.steps") == "('touch', 'crash')"
    lab.kernel("lab.rules = {'min_messages': 10}")
    page.get_by_role("button", name="edited note", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("no conversation to have a note")
    lab.quiet()


def test_the_keyboard_is_enough(lab):
    page = lab.run(SETUP).page
    page.get_by_role("button", name="Prev", exact=True).click()
    expect(page.locator("[data-scene]")).to_contain_text("Scene 1 of 2")
    page.get_by_role("combobox", name="Scenario").focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator("[data-scene]")).to_contain_text("Scene 2 of 2: again. The same import runs again")
    page.get_by_role("button", name="Next", exact=True).focus()
    page.keyboard.press("Enter")
    expect(status(page)).to_have_attribute("data-step", "1")
    page.keyboard.press("Space")
    expect(status(page)).to_have_attribute("data-action", "skip")
    lab.quiet()


def test_a_hostile_conversation_shows_as_text_and_runs_nothing(lab):
    page = lab.run(HOSTILE).page
    page.get_by_role("checkbox", name="all steps at once").check()
    expect(status(page)).to_have_attribute("data-action", "replace")
    expect(page.get_by_role("region", name="Rows of the store")).to_contain_text("words </td><script>")
    assert page.locator(".jp-OutputArea-output :is(script, img)").count() == 0
    lab.quiet()


def test_a_line_of_a_million_characters_is_cut_and_the_page_stays_small(lab):
    page = lab.run(LONG).page
    stored = page.get_by_role("region", name="Rows of the store")
    expect(stored).to_contain_text("<img src=x onerror=alert(1)>xxx")
    expect(stored).to_contain_text("1,000,028 characters")
    assert page.locator(".jp-OutputArea-output img").count() == 0
    assert len(page.locator(".cnb-widget").inner_html()) < 100_000
    page.get_by_role("button", name="Next", exact=True).click()
    expect(status(page)).to_have_attribute("data-step", "1")
    pick = page.get_by_role("combobox", name="Scenario")
    pick.select_option(pick.locator("option", has_text="size-only").inner_text())
    page.get_by_role("checkbox", name="all steps at once").check()
    expect(status(page)).to_have_attribute("data-action", "metadata-update")
    lab.quiet()


def test_axe_finds_nothing_in_any_theme(lab, accessible):
    lab.run(SETUP)
    lab.kernel("lab.steps = ['append', 'duplicate id']")
    lab.kernel("lab.step = 1")
    expect(lab.page.locator("[data-scene]")).to_contain_text("duplicate id")
    accessible(lab, ".cnb-widget")
