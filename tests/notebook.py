"""Run a notebook and give it the outputs that are committed: ``python tests/notebook.py notebooks/*.ipynb``."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with fresh outputs, without anything that differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", record_timing=False, resources=where).execute()
    notebook.metadata = KERNEL | {"language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02d}"
        cell.metadata = {}
    return notebook


if __name__ == "__main__":
    for name in sys.argv[1:]:
        text = nbformat.writes(executed(Path(name)))
        Path(name).write_text(text + "\n", encoding="utf-8")
