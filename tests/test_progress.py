from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from crystal_nb import progress


def steps(total: int, wanted: bool | None) -> None:
    with progress.shown(total, "Importing", wanted) as step:
        for _ in range(total):
            step()


def test_nothing_is_shown_where_nobody_looks(capsys):
    steps(3, None)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    steps(3, None)
    assert "Importing" in capsys.readouterr().err


@pytest.mark.parametrize("wanted", [None, False])
def test_a_notebook_gets_a_bar_of_its_own_unless_told_not_to(monkeypatch, wanted):
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    made = []

    class Bar:
        def __init__(self, **options: object) -> None:
            made.append(options)

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def update(self) -> None:
            made.append("step")

    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=Bar))
    steps(2, wanted)
    assert made == ([] if wanted is False else [{"total": 2, "desc": "Importing", "leave": False}, "step", "step"])


def test_no_bar_for_nothing(capsys):
    steps(0, True)
    assert capsys.readouterr().err == ""
