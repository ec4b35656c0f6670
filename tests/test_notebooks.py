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


def test_there_are_notebooks():
    assert NOTEBOOKS
