"""The hash inspector in JupyterLab."""

from __future__ import annotations

import pytest

import crystal_nb as cnb

pytest.importorskip("playwright", reason="playwright is not installed")
from playwright.sync_api import expect

SETUP = """
import crystal_nb as cnb
from crystal_nb import Conversation, Message
first = Message("user", "hello", role="user", id="m1", timestamp="2026-01-01T10:00:00.000Z")
reply = Message("assistant", "hi there", role="assistant", id="m2", thinking="hm")
chats = [Conversation("codex", "7", (first, reply)), Conversation("codex", "8", (first,))]
inspector = cnb.widgets.HashInspector(chats)
inspector
"""
HOSTILE = """
import crystal_nb as cnb
from crystal_nb import Conversation, Message
bad = ("<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
       "<a href='javascript:alert(4)'>x</a></textarea></option></code><img src=http://example.org/a.png>"
       "<style>*{display:none}</style>\\x1b[31m\\u202eevil\\u2066\\ud83d")
big = bad + "x" * 1_000_000
message = Message(bad, bad, role=bad, thinking=big, id=bad)
chats = [Conversation(bad, bad, (message, Message("user", big)), slug=bad), Conversation(bad, "b", (message,))]
inspector = cnb.widgets.HashInspector(chats, other=1)
inspector
"""


def apply(page, text, old):
    box = page.get_by_role("textbox", name="New value")
    expect(box).to_have_value(old)
    box.fill(text)
    page.get_by_role("button", name="Apply", exact=True).click()


def test_editing_goes_through_the_kernel_and_shows_the_right_hash(lab):
    page = lab.run(SETUP).page
    status, after = page.locator(".cnb [role=status]"), page.locator("[data-hash=after]")
    expect(status).to_contain_text("nothing is edited")
    apply(page, "hello!", "hello")
    expect(status).to_have_attribute("data-changed", "yes")
    expect(status).to_contain_text("content is part of the hash: changed")
    chat = cnb.Conversation("codex", "7", (cnb.Message("user", "hello!", role="user"),))
    reply = cnb.Message("assistant", "hi there", role="assistant", thinking="hm")
    wanted = cnb.content_hash(cnb.Conversation("codex", "7", (*chat.messages, reply)))
    expect(after).to_have_text(wanted)
    assert lab.kernel("inspector.value") == repr(wanted)

    page.get_by_role("button", name="Undo").click()
    expect(status).to_have_attribute("data-changed", "no")
    page.get_by_role("combobox", name="Field").select_option("timestamp")
    apply(page, "2027", "2026-01-01T10:00:00.000Z")
    expect(status).to_contain_text("timestamp is not part of the hash: unchanged")

    page.get_by_role("checkbox", name="content").uncheck()
    expect(page.locator("tr.cnb-out", has_text="switched out")).to_have_count(1)
    assert lab.kernel("inspector.fields.count('content')") == "0"

    page.get_by_role("combobox", name="Compare with").select_option("codex 8: hello")
    expect(page.locator("[data-byte]")).to_contain_text("messages.length")
    lab.quiet()


def test_a_cell_drives_the_page_and_an_error_is_shown(lab):
    page = lab.run(SETUP).page
    assert lab.kernel("inspector.edits = [('drop', 0)]") == ""
    expect(page.locator("[data-hash=after]")).to_have_text(lab.kernel("inspector.value").strip("'"))
    page.get_by_role("combobox", name="Field").select_option("hasCode")
    apply(page, "maybe", "false")
    expect(page.get_by_role("alert")).to_contain_text("not JSON")
    apply(page, "true", "maybe")
    expect(page.locator(".cnb [role=status]")).to_contain_text("hasCode is part of the hash")
    expect(page.get_by_role("alert")).to_have_count(0)
    lab.quiet()


def test_the_keyboard_is_enough(lab):
    page = lab.run(SETUP).page
    box = page.get_by_role("textbox", name="New value")
    expect(box).to_have_value("hello")
    page.get_by_role("combobox", name="Field").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(box).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("typed")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Apply", exact=True)).to_be_focused()
    expect(page.locator(".cnb [role=status]")).to_have_attribute("data-changed", "yes")
    assert lab.kernel("inspector.edited.messages[0].content") == "'typed'"
    check = page.get_by_role("checkbox", name="content")
    check.focus()
    page.keyboard.press("Space")
    expect(page.locator(".cnb [role=status]")).to_contain_text("content is switched out: unchanged")
    lab.quiet()


def test_a_hostile_transcript_shows_as_text_and_runs_nothing(lab):
    page = lab.run(HOSTILE).page
    expect(page.locator("table", has_text="Message 0")).to_contain_text("<script>alert(1)</script>")
    page.get_by_role("combobox", name="Field").select_option("thinking")
    page.get_by_role("button", name="Later").click()
    expect(page.locator(".cnb caption", has_text="Message 1")).to_be_visible()
    page.get_by_role("button", name="Move up").click()
    expect(page.locator(".cnb [role=status]")).to_contain_text("the order is part of the hash")
    assert page.locator(".jp-OutputArea-output :is(script, img, svg[onload], a)").count() == 0
    assert "\u202e" not in page.locator(".jp-OutputArea-output").last.inner_text()
    lab.quiet()


def test_axe_finds_nothing_in_any_theme(lab, accessible):
    lab.run(SETUP)
    lab.kernel("inspector.other = 1")
    lab.kernel("inspector.edits = [('set', 0, 'content', 'x'), ('set', 0, 'timestamp', 'y')]")
    expect(lab.page.locator(".cnb [role=status]")).to_have_attribute("data-changed", "yes")
    accessible(lab, ".cnb-widget")
