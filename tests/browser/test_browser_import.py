"""The import browser in JupyterLab."""

from __future__ import annotations

import time

import pytest

import crystal_nb as cnb

pytest.importorskip("playwright", reason="playwright is not installed")
from playwright.sync_api import expect

SETUP = """
import crystal_nb as cnb
config = cnb.samples.config()
corpus = cnb.parse(cnb.scan(config=config), config=config)
browser = cnb.widgets.ImportBrowser(corpus)
browser
"""
MANY = """
import crystal_nb as cnb
from crystal_nb import Candidate, Conversation, Fate, Message
from crystal_nb.corpus import Corpus, ParsedConversation
def parsed(n, count=3):
    messages = tuple(Message("user", f"words {n} {m}", role="user") for m in range(count))
    source, project = "codex" if n % 2 else "cursor", f"p{n % 9}"
    conversation = Conversation(source, f"c{n}", messages, slug=f"title {n}", project_name=project)
    candidate = Candidate(source, f"c{n}", "/f", 1, "2026-01-01T10:00:00.000Z", "p")
    fates = tuple(Fate("dropped", "x", "y") for _ in range(n % 5))
    return ParsedConversation(candidate, conversation, fates, cnb.content_hash(conversation), "codex@1")
corpus = Corpus([parsed(0, 10_000), *(parsed(n) for n in range(1, 20_000))], [])
"""
HOSTILE = r"""
import crystal_nb as cnb
from crystal_nb import Candidate, Conversation, Fate, Message
from crystal_nb.corpus import Corpus, ParsedConversation
bad = ("</td></pre></details><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
       "<a href='javascript:alert(4)'>x</a><img src=http://example.org/a.png></option></select>"
       "<style>*{display:none}</style>\x1b[31m\u202eevil\u2066\ud83d")
big = bad + "x" * 1_000_000
call = cnb.ToolCall(bad, big, big)
details = cnb.Details(tools=(call,), model=bad, marks=(bad,))
message = Message(bad, big, role=bad, thinking=big, timestamp=bad, details=details)
conversation = Conversation(bad, bad, (message, message), slug=bad, project_name=bad, last_message_at=bad)
fates = (Fate("kept", bad, message_index=0), Fate("dropped", bad, bad, key=bad, head=bad.encode("utf-8", "replace")))
parsed = ParsedConversation(Candidate(bad, bad, bad, 1, bad, bad), conversation, fates, bad, bad)
browser = cnb.widgets.ImportBrowser(Corpus([parsed, parsed], []), selection=1)
browser
"""


def rows(page):
    return page.get_by_role("grid", name="Conversations").locator("tbody tr")


def test_filtering_and_reading_go_through_the_kernel(lab):
    page = lab.run(SETUP).page
    config = cnb.samples.config()
    corpus = cnb.parse(cnb.scan(config=config), config=config)
    codex = [n for n, c in enumerate(corpus) if c.source == "codex"]
    expect(rows(page)).to_have_count(len(corpus) + len(corpus.failed))
    page.get_by_role("combobox", name="Source").select_option("codex")
    expect(rows(page)).to_have_count(len(codex))
    assert lab.kernel("browser.filtered") == repr(tuple(codex))
    rows(page).nth(1).click()
    expect(page.locator("[data-hash=entry]")).to_have_text(corpus.parsed[codex[1]].content_hash)
    assert lab.kernel("browser.selection") == str(codex[1])
    expect(page.get_by_role("region", name="Messages")).to_contain_text("0 user")
    page.get_by_role("button", name="Inspect the hash").click()
    expect(page.locator("[data-hash=after]")).to_have_text(corpus.parsed[codex[1]].content_hash)
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_role("checkbox", name="has losses").check()
    lost = [n for n, p in enumerate(corpus.parsed) if any(f.status == "dropped" for f in p.fates)]
    expect(rows(page)).to_have_count(len(lost))
    lab.kernel(f"browser.selection = {lost[0]}")
    expect(page.locator(".cnb-lost summary").first).to_contain_text("lost here")
    lab.quiet()


def test_the_keyboard_is_enough(lab):
    page = lab.run(SETUP).page
    config = cnb.samples.config()
    second = cnb.parse(cnb.scan(config=config), config=config).parsed[1]
    page.get_by_role("textbox", name="Text").click()
    page.get_by_role("grid", name="Conversations").focus()
    page.keyboard.press("ArrowDown")
    expect(rows(page).nth(0)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(rows(page).nth(1)).to_have_attribute("aria-selected", "true")
    expect(page.locator("[data-messages]")).to_be_visible()
    page.get_by_role("region", name="Messages").focus()
    page.get_by_role("textbox", name="Text").focus()
    page.keyboard.type("harvest")
    page.keyboard.press("Enter")
    expect(page.locator("[data-count]")).not_to_have_attribute("data-count", "10")
    assert lab.kernel("browser.filters") == "{'text': 'harvest'}"
    # the last row may reach the kernel after the filter: a widget waits for the answer before it sends more
    expect(page.locator("[data-hash=entry]")).to_have_text(second.content_hash)
    assert lab.kernel("browser.selection") == "1"
    lab.quiet()


def test_twenty_thousand_candidates_stay_responsive(lab, record_property):
    page = lab.run(MANY, "0").page
    started = time.perf_counter()
    lab.show("browser = cnb.widgets.ImportBrowser(corpus); browser")
    expect(rows(page)).to_have_count(50)
    painted = time.perf_counter()
    page.get_by_role("combobox", name="Source").select_option("codex")
    expect(page.locator("[data-count='10000']")).to_be_visible()
    filtered = time.perf_counter()
    page.get_by_role("textbox", name="Text").fill("words 777 ")
    page.get_by_role("textbox", name="Text").press("Enter")
    expect(rows(page)).to_have_count(1)
    found = time.perf_counter()
    page.get_by_role("button", name="Clear filters").click()
    expect(page.locator("[data-count='20000']")).to_be_visible()
    rows(page).first.click()
    expect(page.locator("[data-messages]")).to_contain_text("messages 1 to 50 of 10,000")
    page.get_by_role("button", name="Later messages").click()
    expect(page.locator("[data-messages]")).to_contain_text("messages 51 to 100")
    page.get_by_role("grid", name="Conversations").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-count]")).to_contain_text("page 2 of 400")
    expect(rows(page).first).to_have_attribute("aria-selected", "true")
    assert lab.kernel("browser.selection") == "50"
    assert page.locator(".cnb-widget tr, .cnb-widget .cnb-message").count() <= 200
    times = {"first paint": painted - started, "filter": filtered - painted, "text search": found - filtered}
    print({name: round(seconds, 2) for name, seconds in times.items()})
    record_property("seconds", times)
    assert max(times.values()) < 20
    lab.quiet()


def test_a_hostile_import_shows_as_text_and_runs_nothing(lab):
    page = lab.run(HOSTILE).page
    expect(rows(page)).to_have_count(2)
    rows(page).first.click()
    expect(rows(page).first).to_have_attribute("aria-selected", "true")
    for summary in page.locator(".cnb-message").first.locator("summary").all():
        summary.click()
    expect(page.get_by_role("region", name="Messages")).to_contain_text("<script>alert(1)</script>")
    page.get_by_role("button", name="Inspect the hash").click()
    expect(page.locator("[data-hash=after]")).to_be_visible()
    assert page.locator(".jp-OutputArea-output :is(script, img, svg[onload], a)").count() == 0
    assert "\u202e" not in page.locator(".jp-OutputArea-output").last.inner_text()
    lab.quiet()


def test_axe_finds_nothing_in_any_theme(lab, accessible):
    lab.run(SETUP)
    lab.kernel("browser.selection = 1")
    expect(lab.page.locator("[data-messages]")).to_be_visible()
    lab.page.locator("summary").first.click()
    accessible(lab, ".cnb-widget")
