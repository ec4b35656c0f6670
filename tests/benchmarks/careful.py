"""Careful rules against the pinned ones: processor time of a parse, in alternating rounds of fresh processes.

python tests/benchmarks/careful.py [--mb 300] [--rounds 9] [--dir FOLDER] [--smoke]

The ratio is pinned / careful within a round, so 1 means that careful costs nothing more; the floor is 0.6. Processor
time of the process, all threads, stands for speed, since others may use the machine. ``--dir`` may be one that
``run.py`` made. Careful has more to do: it keeps the results of tools, which can be most of a file, and each fresh
page of memory for them costs time; so the ratio also says how dear memory is on the machine.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from corpora import Corpora, Corpus
from measuring import Mismatch, run_worker
from report import heading, share, spread, table

SOURCES, MIXES = ("claude-code", "codex"), ("tool-heavy", "text-rich")
FLOOR = 0.6


def measure(corpus: Corpus, rounds: int) -> tuple[list[float], list[float]]:
    """Processor seconds of both profiles; which of them begins changes from round to round."""
    corpus.warm()
    seconds: dict[str, list[float]] = {"pinned": [], "careful": []}
    for number in range(rounds):
        for name in sorted(seconds, reverse=number % 2 == 0):
            report = run_worker(name, corpus.source, corpus.home).report
            if report["conversations"] < corpus.facts["files"]:
                raise Mismatch(f"{name}: {report['conversations']} conversations of {corpus.facts['files']} files")
            seconds[name].append(report["cpu"])
    return seconds["pinned"], seconds["careful"]


def row(corpus: Corpus, mix: str, rounds: int) -> tuple[str, ...]:
    pinned, careful = measure(corpus, rounds)
    ratios = [p / c for p, c in zip(pinned, careful, strict=True)]
    verdict = "floor reached" if median(ratios) >= FLOOR else "BELOW THE FLOOR"
    name = f"{corpus.source}, {mix} ({share(corpus.facts['tool_results'])} tool results)"
    return name, spread(pinned, 2), spread(careful, 2), spread(ratios, 2), f"{FLOOR}", verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=300, help="size of each corpus")
    parser.add_argument("--rounds", type=int, default=9, help="alternating rounds (default 9)")
    parser.add_argument("--dir", type=Path, help="folder for the corpora, which are kept there and used again")
    parser.add_argument("--smoke", action="store_true", help="one round with 8 MB, only to see that it runs")
    options = parser.parse_args()
    megabytes, rounds = (8, 1) if options.smoke else (options.mb, options.rounds)
    with tempfile.TemporaryDirectory(prefix="crystal-nb-benchmark-") as fresh:
        corpora = Corpora(options.dir or Path(fresh), megabytes)
        heading(f"parse by pinned and by careful rules: processor seconds, median [range] of {rounds} rounds")
        rows = [row(corpora.logs(source, mix), mix, rounds) for source in SOURCES for mix in MIXES]
        head = ("", "pinned", "careful", "pinned / careful", "floor", "")
        table(head, [(*cells[:-1], "") for cells in rows] if options.smoke else rows)


if __name__ == "__main__":
    main()
