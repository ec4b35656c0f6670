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
        if cell.cell_type == "code":
            cell.outputs = _whole_streams(cell.outputs)
            for output in cell.outputs:  # a widget's model has a random id; its page stays
                output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
        cell.id = f"cell-{number:02d}"
        cell.metadata = {}
    return notebook


def _whole_streams(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """A stream that came in pieces, as on a busy machine, in one."""
    whole: list[nbformat.NotebookNode] = []
    for output in outputs:
        if whole and output.output_type == whole[-1].output_type == "stream" and output.name == whole[-1].name:
            whole[-1].text += output.text
        else:
            whole.append(output)
    return whole


if __name__ == "__main__":
    for name in sys.argv[1:]:
        text = nbformat.writes(executed(Path(name)))
        Path(name).write_text(text + "\n", encoding="utf-8")
