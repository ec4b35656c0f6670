from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from notebook import executed

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_notebook_runs_and_gives_its_committed_outputs(path, monkeypatch, tmp_path):
    for name in [n for n in os.environ if n.startswith(("JUPYTER", "IPYTHON", "POLARS"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert nbformat.writes(executed(path)) + "\n" == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_notebook_runs_on_one_s_own_histories_too(path, tmp_path, monkeypatch):
    """With the one line changed as it says, on a home that has a single Claude Code session."""
    project = tmp_path / ".claude" / "projects" / "-p"
    project.mkdir(parents=True)
    line = '{"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:00.000Z","message":{"content":"hello"}}\n'
    (project / "s.jsonl").write_text(line * 2, encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    text = path.read_text(encoding="utf-8")
    own = tmp_path / "own.ipynb"
    own.write_text(text.replace("config = cnb.samples.config()", "config = cnb.Config()"), encoding="utf-8")
    assert own.read_text(encoding="utf-8") != text
    executed(own)


def test_there_are_notebooks():
    assert NOTEBOOKS
