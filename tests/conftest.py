from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import crystal_nb as cnb

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

VECTORS = Path(__file__).parent.parent / "fixtures" / "vectors"
TREE_FOLDERS = {
    "claude-code": "claude/projects",
    "codex": "codex/sessions",
    "cursor": "cursor/User",
    "trae": "trae/User",
    "copilot": "vscode/User",
}


def require(command: str) -> str:
    """Path of a program; the test skips without it, or fails where CI promises it."""
    path = shutil.which(command)
    if path is None:
        if command in os.environ.get("CRYSTAL_NB_REQUIRE", "").split(","):
            pytest.fail(f"{command} is required here and missing")
        pytest.skip(f"{command} is not installed")
    return path


@pytest.fixture(scope="session")
def node() -> Iterator[Callable[[str, Any], Any]]:
    """Ask a Node process what JavaScript does with a value."""
    program = [require("node"), str(Path(__file__).parent / "node_peer.mjs")]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None

        def ask(question: str, value: Any) -> Any:
            peer.stdin.write(json.dumps({"ask": question, "value": value}) + "\n")
            peer.stdin.flush()
            return json.loads(peer.stdout.readline())["answer"]

        yield ask
        peer.stdin.close()


@pytest.fixture(scope="session")
def expected() -> dict[str, Any]:
    """What the pinned system made of the vector tree."""
    return json.loads((VECTORS / "pinned" / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory, expected: dict[str, Any]) -> Path:
    """A copy of the vector tree with the file times that the pinned system saw."""
    target = tmp_path_factory.mktemp("vectors") / "tree"
    shutil.copytree(VECTORS / "pinned" / "tree", target)
    for name, ns in expected["file_mtime_ns"].items():
        os.utime(target / name, ns=(ns, ns))
    return target


@pytest.fixture(scope="session")
def tree_config(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> cnb.Config:
    """A configuration that reads the vector tree and nothing else."""
    folders = {source: tree / folder for source, folder in TREE_FOLDERS.items()}
    return cnb.Config(home=tmp_path_factory.mktemp("no-home"), folders=folders)


FIXED_CLOCK = 1_800_000_000_000


@pytest.fixture
def parse_file(tmp_path: Path) -> Callable[..., Any]:
    """Parse bytes as one file of a source, with a fixed clock."""
    places = {
        "claude-code": ".claude/projects/-srv-demo/session.jsonl",
        "codex": ".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-session.jsonl",
        "copilot": ".config/Code/User/workspaceStorage/w/chatSessions/session.json",
    }

    def parse(source: str, data: bytes, name: str | None = None) -> Any:
        path = tmp_path / places[source]
        path = path.with_name(name) if name else path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        adapter = cnb.get_adapter(source)
        project = "" if source == "codex" else "-srv-demo"
        candidate = cnb.Candidate(source, "session", str(path), len(data), "2026-01-01T00:00:00.000Z", project)
        return adapter._parse(candidate, cnb.Config(home=tmp_path, clock=lambda: FIXED_CLOCK))

    return parse
