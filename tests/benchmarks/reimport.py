"""An import of nothing new: what a candidate costs that is skipped, for 1,000 to 20,000 of them.

Tiny Claude Code conversations are written and imported once per policy; then scan and import are timed in alternating
rounds. Each import must ask the store by one SELECT and parse nothing, or the run ends with an error.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from report import heading, spread, table

import crystal_nb as cnb
from crystal_nb import importer
from crystal_nb.adapters.base import Parsed
from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_claude_code
from crystal_nb.scenarios.world import Staged

SIZES = (1_000, 5_000, 20_000)
SMOKE_SIZES = (50, 100, 200)
POLICIES = (cnb.PINNED, cnb.CAREFUL)


class Counted(Staged):
    """An adapter that counts its parses."""

    parses: int = 0

    async def parse(self, candidate: cnb.Candidate, config: cnb.Config) -> Parsed:
        self.parses += 1
        return await Staged.parse(self, candidate, config)


class Round(NamedTuple):
    """Seconds of one pass over unchanged files."""

    scan: float
    load: float
    plan: float


class Bench:
    """Homes of growing size and the stores that hold what is in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.adapter = Counted(cnb.get_adapter("claude-code"))
        self.first: dict[tuple[str, int], float] = {}

    def config(self, size: int) -> cnb.Config:
        return cnb.Config(home=self.folder / str(size), platform="linux", enabled_sources=())

    def write(self, sizes: tuple[int, ...]) -> None:
        """Write the conversations; a larger home has hard links to the smaller one's files."""
        for smaller, size in pairwise((0, *sizes)):
            home = self.folder / str(size)
            if smaller:
                shutil.copytree(self.folder / str(smaller), home, copy_function=os.link)
            for n in range(smaller, size):
                write_claude_code(home, sample(n))

    def store(self, policy: cnb.Policy, size: int) -> cnb.Store:
        return cnb.open_store(self.folder / f"{policy.name}-{size}.db", profile=policy)

    def load(
        self, store: cnb.Store, candidates: list[cnb.Candidate], policy: cnb.Policy, size: int
    ) -> cnb.ImportReport:
        given = {"adapters": [self.adapter], "profile": policy, "config": self.config(size), "progress": False}
        return cnb.import_all(store, candidates, **given)

    def import_once(self, policy: cnb.Policy, size: int) -> None:
        with self.store(policy, size) as store:
            begun = time.perf_counter()
            report = self.load(store, self.scan(size), policy, size)
            self.first[policy.name, size] = time.perf_counter() - begun
        check(report.imported == size, f"{report.imported} of {size} imported")

    def scan(self, size: int) -> list[cnb.Candidate]:
        return importer.find_candidates(self.adapter, config=self.config(size))

    def measure(self, policy: cnb.Policy, size: int) -> Round:
        """Scan and import again, in a store that was opened for that; what it asked and parsed is counted."""
        begun = time.perf_counter()
        candidates = self.scan(size)
        scanned = time.perf_counter()
        with self.store(policy, size) as store:
            asked: list[str] = []
            store._connection.set_trace_callback(asked.append)
            self.adapter.parses = 0
            opened = time.perf_counter()
            report = self.load(store, candidates, policy, size)
            done = time.perf_counter()
            queries = sum(q.startswith("SELECT") for q in asked)
            check(report.actions() == {"skip": size}, f"not all skipped: {report.actions()}")
            check(queries == 1, f"{queries} queries: {asked[:5]}")
            check(self.adapter.parses == 0, f"{self.adapter.parses} parses")
            store._connection.set_trace_callback(None)
            planning = time.perf_counter()
            cnb.plan(candidates, store, profile=policy, adapters=[self.adapter], config=self.config(size))
            return Round(scanned - begun, done - opened, time.perf_counter() - planning)


def sample(n: int) -> Sample:
    messages = (
        SampleMessage("user", f"Question {n}", f"{n}-q", "2026-01-05T10:00:00.000Z"),
        SampleMessage("assistant", f"Answer {n}", f"{n}-a", "2026-01-05T10:00:01.000Z"),
    )
    return Sample(f"c{n:05}", messages)


def check(right: bool, problem: str) -> None:
    if not right:
        raise SystemExit(f"NOT AS PROMISED: {problem}")


def show(bench: Bench, policy: cnb.Policy, rounds: dict[int, list[Round]]) -> None:
    heading(f"{policy.name}: one query and no parse in each import; microseconds per candidate, median [range]")
    smallest = min(rounds)
    ratios = {
        size: [
            there.load / size / (first.load / smallest) for there, first in zip(found, rounds[smallest], strict=True)
        ]
        for size, found in rounds.items()
    }
    head = ("candidates", "first import, s", "scan", "import of nothing new", "x smallest", "plan")
    table(head, [row(bench, policy, size, found, ratios[size]) for size, found in rounds.items()])
    print(f"largest / smallest: {median(ratios[max(rounds)]):.2f} (1 = flat)")


def row(bench: Bench, policy: cnb.Policy, size: int, found: list[Round], ratios: list[float]) -> tuple[str, ...]:
    cost = {name: [getattr(r, name) / size * 1e6 for r in found] for name in Round._fields}
    return (
        f"{size:,}",
        f"{bench.first[policy.name, size]:.2f}",
        spread(cost["scan"], 1),
        spread(cost["load"], 1),
        spread(ratios, 2),
        spread(cost["plan"], 1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="alternating rounds (default 7)")
    parser.add_argument("--smoke", action="store_true", help="one round of few candidates, only to see that it runs")
    options = parser.parse_args()
    sizes, rounds = (SMOKE_SIZES, 1) if options.smoke else (SIZES, options.rounds)
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        bench = Bench(Path(folder))
        bench.write(sizes)
        found: dict[str, dict[int, list[Round]]] = {p.name: {size: [] for size in sizes} for p in POLICIES}
        for policy in POLICIES:
            for size in sizes:
                bench.import_once(policy, size)
        for _ in range(rounds):
            for policy in POLICIES:
                for size in sizes:
                    found[policy.name][size].append(bench.measure(policy, size))
        for policy in POLICIES:
            show(bench, policy, found[policy.name])


if __name__ == "__main__":
    main()
