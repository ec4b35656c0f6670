"""A module imports only from rows above its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "crystal_nb"
ROWS = [
    ["errors", "_version", "details", "decisions", "ecma.text"],
    ["ecma.value"],
    ["ecma.json", "ecma.date", "ecma.operators"],
    ["ecma"],
    ["records", "_loop", "config", "progress"],
    ["frames", "hashing", "identity", "candidates", "policy"],
    ["decide", "states", "ablation"],
    ["_hasher"],
    ["adapters.base"],
    ["adapters.typed", "adapters.uuids", "adapters.vscode"],
    ["adapters.jsonl", "adapters.vscdb"],
    ["adapters.cursor_index"],
    ["adapters.claude_code", "adapters.codex", "adapters.cursor", "adapters.trae", "adapters.copilot"],
    ["adapters"],
    ["corpus_frames", "discovery", "provenance", "comparison_frames"],
    ["losses"],
    ["corpus"],
    ["importer", "samples", "fingerprint", "store_schema"],
    ["comparison"],
    ["store_frames", "store_copy", "store_writes", "store_changes", "rehash"],
    ["store", "decision_frames"],
    ["report", "store_open"],
    ["runs"],
    ["reimport"],
    ["remote_check", "remote_pack", "rehearsal"],
    ["remote_frames"],
    ["remote"],
    ["remote_ingest", "scenarios.subjects"],
    ["scenarios.own", "scenarios.world"],
    ["scenarios.acts", "scenarios.remote_acts"],
    ["scenarios.scenario"],
    ["scenarios.catalogue", "scenario_frames"],
    ["scenarios"],
    ["show"],
    ["cli_common"],
    ["cli_reimport"],
    ["cli"],
    [""],
    ["__main__"],
]
LEVEL = {name: level for level, row in enumerate(ROWS) for name in row}


def module_name(file: Path) -> str:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(p for p in parts if p != "__init__")


FILES = {module_name(f): f for f in sorted(PACKAGE.rglob("*.py"))}


def imports(file: Path) -> set[str]:
    """Modules of the package that a file imports when it runs; ``TYPE_CHECKING`` blocks aside."""
    found = set()
    nodes = [ast.parse(file.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "crystal_nb":
            base = node.module.removeprefix("crystal_nb").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                found.add(inner if inner in FILES else base)
        if isinstance(node, ast.Import):
            names = (alias.name.removeprefix("crystal_nb.") for alias in node.names if "crystal_nb" in alias.name)
            found.update(name for name in names if name in FILES)
        nodes += ast.iter_child_nodes(node)
    return found


def test_every_module_has_a_row():
    assert set(FILES) == set(LEVEL)


@pytest.mark.parametrize("name", sorted(FILES))
def test_imports_go_upwards_only(name):
    wrong = {other for other in imports(FILES[name]) if LEVEL[other] >= LEVEL[name]}
    assert not wrong


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_module_is_longer_than_comfortable_reading(name):
    assert FILES[name].read_text(encoding="utf-8").count("\n") <= 350
