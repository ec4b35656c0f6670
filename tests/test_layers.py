"""A module imports only from rows above its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "crystal_nb"
ROWS = [
    ["errors", "_version", "details", "decisions", "ecma.text", "blame", "html_table"],
    ["ecma.value"],
    ["ecma.json", "ecma.date", "ecma.operators"],
    ["ecma"],
    ["records", "_loop", "config", "progress", "home_paths", "secret_rules"],
    ["redaction"],
    ["charts", "frames", "hashing", "identity", "candidates", "policy", "contract", "contract.known"],
    ["decide", "states", "ablation", "trial_frames", "contract.frames", "yielded"],
    ["_hasher"],
    ["adapters.base"],
    ["adapters.usable"],
    ["adapters.typed", "adapters.uuids", "adapters.vscode", "adapters.plugins", "parse_session"],
    ["adapters.jsonl", "adapters.vscdb"],
    ["raw_records"],
    ["prototyping"],
    ["adapters.gemini"],
    ["adapters.copilot_rules", "adapters.copilot_log", "adapters.copilot_values"],
    ["adapters.copilot_pinned", "adapters.copilot_tools", "adapters.copilot_marks"],
    ["adapters.copilot_parts"],
    ["adapters.copilot_turns"],
    ["adapters.copilot_replay"],
    ["adapters.copilot_places", "adapters.copilot_transcript"],
    ["adapters.copilot_reading"],
    ["adapters.copilot_listing"],
    ["adapters.copilot_careful"],
    ["adapters.cursor_index", "adapters.cursor_rules", "adapters.cursor_values"],
    ["adapters.cursor_places", "adapters.cursor_snapshot", "adapters.cursor_draft"],
    ["adapters.cursor_bubble", "adapters.cursor_parts", "adapters.cursor_overview"],
    ["adapters.cursor_composer", "adapters.cursor_chat", "adapters.cursor_cli", "adapters.cursor_transcript"],
    ["adapters.cursor_listing"],
    ["adapters.cursor_careful"],
    ["adapters.codex_rules", "adapters.codex_shapes", "adapters.codex_names", "adapters.zstd_frames"],
    ["adapters.codex_pinned", "adapters.codex_text", "adapters.codex_files", "adapters.codex_drafts"],
    ["adapters.codex_results", "adapters.codex_lineage", "adapters.codex_thread"],
    ["adapters.codex_items"],
    ["adapters.codex_events"],
    ["adapters.codex_lines"],
    ["adapters.codex_reading"],
    ["adapters.codex_careful"],
    ["adapters.claude_rules", "adapters.claude_records", "adapters.claude_lines", "adapters.claude_envelopes"],
    ["adapters.claude_places", "adapters.claude_draft"],
    ["adapters.claude_answers", "adapters.claude_prompts", "adapters.claude_branches", "adapters.claude_copies"],
    ["adapters.claude_others", "adapters.claude_links"],
    ["adapters.claude_session"],
    ["adapters.claude_split"],
    ["adapters.claude_careful"],
    ["adapters.trae_rules", "adapters.trae_facts"],
    ["adapters.trae_stores", "adapters.trae_blocks"],
    ["adapters.trae_turns"],
    ["adapters.claude_code", "adapters.codex", "adapters.cursor", "adapters.copilot"],
    ["adapters.trae_cli"],
    ["adapters.trae_careful"],
    ["adapters.trae"],
    ["adapters"],
    ["foreign"],
    ["corpus_frames", "discovery", "rereading", "comparison_frames"],
    ["provenance", "losses"],
    ["corpus"],
    ["importer", "samples", "fingerprint", "store_schema", "trial", "contract.stage"],
    ["comparison"],
    ["contract.reading", "contract.discovery", "contract.parsing", "contract.damage"],
    ["contract.determinism", "contract.identity", "contract.effects", "contract.probe"],
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
    ["contract.writers"],
    ["contract.reimports"],
    ["testing"],
    ["audit.findings", "audit.counting"],
    ["audit.tables", "audit.stored", "audit.newest"],
    ["audit.reparse", "audit.rows", "audit.places", "audit.report"],
    ["audit.gone"],
    ["audit.skips", "audit.ids", "audit.power", "audit.moves", "audit.drifts", "audit.costs"],
    ["audit"],
    ["widgets.markup", "widgets.record_table", "widgets.cells", "widgets.lab_rows", "widgets.browse_store"],
    ["widgets.hash_view", "widgets.lab_view", "widgets.browse_view", "widgets.workbench_view"],
    ["widgets.base", "widgets.hash_html", "widgets.hash_choices", "widgets.lab_html", "widgets.workbench_html"],
    ["widgets.lab_inputs", "widgets.browse_filters", "widgets.edit_box"],
    ["widgets.hash_inspector", "widgets.reimport_lab", "widgets.browse_html", "widgets.parser_workbench"],
    ["widgets.import_browser"],
    ["widgets"],
    ["show"],
    ["cli_common"],
    ["cli_audit", "cli_reimport"],
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
