"""What all widgets share, without a browser."""

from __future__ import annotations

import subprocess
import sys

import pytest

import crystal_nb as cnb
from crystal_nb.widgets import markup
from crystal_nb.widgets.base import Panel

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202eevil\ud83d</td>"


class Odd(Panel):
    title = "Odd"
    keywords = ("colour",)

    def body(self):
        return "<p>body</p>"


def test_widgets_come_with_the_first_use_of_their_name():
    loaded = "'ipywidgets' in sys.modules"
    code = f"import sys, crystal_nb as c; print({loaded}, c.widgets.__name__, {loaded})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "crystal_nb.widgets", "True"]


def test_an_unknown_keyword_is_refused_with_a_hint():
    with pytest.raises(TypeError, match="no keyword 'color'; did you mean 'colour'"):
        Odd(color=1)


@pytest.mark.parametrize(
    ("widget", "given", "near"),
    [
        ("HashInspector", "messages", "message"),
        ("ReimportLab", "confg", "config"),
        ("ImportBrowser", "reprot", "report"),
        ("ParserWorkbench", "othr", "other"),
    ],
)
def test_the_hint_knows_every_argument(widget, given, near):
    arguments = {"ParserWorkbench": ("codex", "x"), "ReimportLab": ()}.get(widget, ([],))
    with pytest.raises(TypeError, match=f"no keyword {given!r}; did you mean {near!r}"):
        getattr(cnb.widgets, widget)(*arguments, **{given: 1})


def test_an_error_goes_when_a_cell_succeeds():
    panel = Odd()
    panel._alert.value = "<p>This did not work</p>"
    panel.render()
    assert panel._alert.value == ""


def test_a_page_can_be_written_below_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    page = Odd().to_html("~/page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page


def test_an_error_in_a_handler_is_shown_escaped_and_goes_with_the_next_success():
    def fails():
        raise ValueError(HOSTILE)

    panel = Odd()
    panel.guarded(fails)(None)
    assert 'role="alert"' in panel._alert.value
    assert "ValueError: &lt;script&gt;" in panel._alert.value
    panel.guarded(lambda: None)(None)
    assert panel._alert.value == ""


def test_a_panel_has_a_page_that_needs_no_kernel():
    bundle = Odd()._repr_mimebundle_()
    assert bundle["text/html"].endswith("<p>body</p></div>")
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert ".cnb" in bundle["text/html"]


@pytest.mark.parametrize("shown", [markup.text, markup.block, markup.code, markup.alert])
def test_text_of_a_history_is_escaped(shown):
    html = shown(HOSTILE)
    assert "<script" not in html
    assert "<img" not in html
    assert "</td>" not in html
    assert html.replace("\n", "").isprintable()
    assert html.encode()


def test_long_text_is_cut_and_counted():
    assert markup.text("x" * 1_000_000).endswith("<em>… 998,000 more characters</em>")


def test_the_package_names_its_widgets():
    assert cnb.widgets.__all__ == sorted(cnb.widgets.__all__)


def test_every_widget_gives_a_page_of_its_own(tmp_path):
    config = cnb.samples.config()
    corpus = cnb.parse(cnb.scan("codex", config=config), config=config)
    file = cnb.scan("codex", config=config)["file_path"][0]
    widgets = cnb.widgets
    shown = [
        widgets.HashInspector(corpus),
        widgets.ReimportLab(),
        widgets.ImportBrowser(corpus, selection=0),
        widgets.ParserWorkbench("codex", file),
    ]
    for number, widget in enumerate(shown):
        path = tmp_path / f"{number}.html"
        page = widget.to_html(path)
        assert page.startswith('<!doctype html><html lang="en"><head><meta charset="utf-8"><title>')
        assert page.endswith("</body></html>\n")
        assert path.read_bytes() == page.encode()
        assert "<html" not in widget._repr_html_()
