"""Charts in the pages of a corpus and of a report, in JupyterLab."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")
from playwright.sync_api import expect

CORPUS = """
import crystal_nb as cnb
config = cnb.samples.config()
cands = cnb.scan(config=config)
cnb.parse(cands, config=config)
"""
REPORT = """
with cnb.Store.in_memory(cnb.PINNED, config) as store:
    report = cnb.import_all(store, cands, config=config, progress=False)
report
"""


def test_bars_take_the_theme_s_colours_and_axe_finds_nothing(lab, accessible):
    page = lab.run(CORPUS, REPORT).page
    expect(page.locator(".cnb-chart")).to_have_count(3)
    row = page.locator(".cnb-chart tr", has=page.get_by_role("rowheader", name="skip-short"))
    expect(row).to_contain_text("codex 1, claude-code 1, copilot 1")
    bar = row.get_by_role("img", name="50 % of the longest bar")
    expect(bar).to_have_text("████▓▓▓▓▒▒▒▒")
    accessible(lab, ".cnb-chart")
    lab.theme("JupyterLab Light")
    drawn = "e => getComputedStyle(e.firstElementChild).color"
    wanted = """() => { const e = document.createElement('i'); document.body.append(e);
        e.style.color = 'var(--jp-brand-color1)'; return getComputedStyle(e).color; }"""
    assert bar.evaluate(drawn) == page.evaluate(wanted)
    lab.quiet()
