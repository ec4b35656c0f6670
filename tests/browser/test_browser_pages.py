"""Pages that widgets, reports and audits write, opened without a kernel or a server."""

from __future__ import annotations

import pytest

import crystal_nb as cnb
from crystal_nb import Candidate, Conversation, Fate, Message
from crystal_nb.corpus import Corpus, ParsedConversation
from crystal_nb.report import ImportReport, Outcome

pytest.importorskip("playwright", reason="playwright is not installed")
BAD = (
    "</td></pre></details></title><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
    "<a href='javascript:alert(4)'>x</a><img src=http://example.org/a.png></option></select></textarea>"
    "<style>*{display:none}</style>\x1b[31m\u202eevil\u2066\ud83d"
)
LONG = BAD + "x" * 1_000_000
MESSAGE = Message(
    BAD,
    LONG,
    role=BAD,
    thinking=LONG,
    timestamp=BAD,
    details=cnb.Details(tools=(cnb.ToolCall(BAD, LONG, LONG),), model=BAD, marks=(BAD,)),
)
CONVERSATION = Conversation(BAD, BAD, (MESSAGE, MESSAGE), slug=BAD, project_name=BAD, last_message_at=BAD)
CANDIDATE = Candidate(BAD, BAD, BAD, 1, BAD, BAD)
SAMPLES = cnb.samples.config()
FATES = (
    Fate("kept", BAD, message_index=0),
    Fate("dropped", BAD, BAD, key=BAD, head=BAD.encode("utf-8", "replace")),
)
CORPUS = Corpus([ParsedConversation(CANDIDATE, CONVERSATION, FATES, BAD, BAD)] * 2, [])


def hostile_file(tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_bytes(
        cnb.ecma.json_text({"text": BAD}).encode("utf-8", "replace") + b"\n" + BAD.encode("utf-8", "replace")
    )
    return path


def audited(tmp_path):
    path = tmp_path / "store.db"
    with cnb.open_store(path) as store:
        cnb.import_all(store, cnb.scan("codex", config=SAMPLES), config=SAMPLES, progress=False)
    return cnb.audit(path, [], config=SAMPLES, questions=["integrity", "hash power"])


@cnb.jsonl_adapter("hostile", root="~/.hostile", glob="*.jsonl")
def hostile(record, session):
    session.drop(BAD) if session.messages else None
    yield Message(BAD, record["text"], role=BAD)


PAGES = {
    "hash": lambda tmp_path: cnb.widgets.HashInspector([CONVERSATION, CONVERSATION], other=1, edits=[("drop", 0)]),
    "browser": lambda tmp_path: cnb.widgets.ImportBrowser(CORPUS, selection=1),
    "workbench": lambda tmp_path: cnb.widgets.ParserWorkbench(hostile, hostile_file(tmp_path), record=1),
    "lab": lambda tmp_path: cnb.widgets.ReimportLab(rules={"fingerprint": True}),
    "report": lambda tmp_path: ImportReport("pinned", (Outcome(CANDIDATE, cnb.Decision(BAD, BAD, "skip", BAD, ())),)),
    "corpus": lambda tmp_path: CORPUS,
    "audit": lambda tmp_path: audited(tmp_path),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs_nothing_fits_a_thousand_pixels_and_is_accessible(serverless, axe, tmp_path, name):
    made = PAGES[name](tmp_path)
    html = made.to_html() if hasattr(made, "to_html") else made._repr_html_()
    if "<html" not in html:  # a part of a notebook's page
        html = f'<!doctype html><html lang="en"><title>page</title><body><main><h1>page</h1>{html}</main></body></html>'
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    page = serverless.page
    page.goto(path.as_uri())
    assert page.locator("script, img, svg, a, iframe").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run()).violations")
    assert not [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found]
    serverless.quiet()
