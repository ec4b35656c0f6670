"""Passes in processes of their own, and the check that they compute the same."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora import Corpus

HERE = Path(__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join((str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")))}


class Mismatch(Exception):
    """Two passes that should give the same result don't."""


@dataclass(frozen=True)
class Pass:
    """One pass of one contestant."""

    whole: float
    """Seconds of the whole process, less what is timed apart."""
    inner: float
    """Seconds that the process itself counted, without start-up."""
    report: dict[str, Any]
    """All that it printed."""


class Checked:
    """What the hash checks have seen."""

    files = 0
    messages = 0

    def check(self, ours: Pass, reference: Pass) -> None:
        """Compare ids, hashes and numbers of messages file by file.

        Raises
        ------
        Mismatch
            With the first difference.
        """
        found, expected = _rows(ours), _rows(reference)
        if found != expected:
            differing = sorted(set(found) ^ set(expected))
            raise Mismatch(f"{len(differing)} rows (id, hash, messages) are only on one side, first: {differing[0]}")
        self.files, self.messages = len(found), sum(row[2] for row in found)


def _rows(done: Pass) -> list[tuple[str, str, int]]:
    return sorted((f["id"], f["hash"], f["messages"]) for f in done.report["files"])


def round_of(names: Iterable[str], source: str, corpus: Corpus, checked: Checked) -> dict[str, Pass]:
    """Let every contestant run once, one after the other."""
    passes = {}
    for name in names:
        if name == "reference":
            passes[name] = run_reference(source, corpus)
        elif name != "orjson" or importlib.util.find_spec("orjson"):
            passes[name] = run_worker(name, source, corpus.home)
    checked.check(passes["ours"], passes["reference"])
    return passes


def run_worker(task: str, source: str, home: Path) -> Pass:
    return _timed([sys.executable, str(HERE / "worker.py"), task, source, str(home)])


def run_reference(source: str, corpus: Corpus) -> Pass:
    return _timed([_node(), str(HERE / "reference.mjs"), source, str(corpus.folder)])


def run_node(*arguments: str) -> str:
    return subprocess.run([_node(), *arguments], check=True, capture_output=True, text=True).stdout.strip()


def time_command(command: Sequence[str]) -> float:
    """Seconds of a whole process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    return time.perf_counter() - start


def _timed(command: Sequence[str]) -> Pass:
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, env=ENVIRONMENT, check=False)
    whole = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed")
    report = json.loads(done.stdout)
    return Pass(whole - report.get("fates_ms", 0) / 1e3, report["ms"] / 1e3, report)


def _node() -> str:
    return shutil.which("node") or sys.exit("node is needed for the reference; nothing was measured")
