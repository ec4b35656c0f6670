"""Measure crystal_nb against a JavaScript reference, JSON libraries and a limit; see README.md.

python tests/benchmarks/run.py [--mb 300] [--rounds 5] [--only claude,codex,cursor,startup,memory] [--smoke]
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from corpora import CONVERSATIONS, Corpora
from measuring import Checked, Mismatch, Pass, round_of, run_node, run_worker, time_command
from report import heading, share, spread, table

HERE = Path(__file__).parent
CONTESTANTS = {
    "ours": "ours: scan, parse, hash, frames",
    "reference": "JavaScript reference: same result",
    "json": "json.loads per line, nothing else",
    "orjson": "orjson.loads per line, nothing else",
    "limit": "limit: msgspec, lines to empty Struct",
}
AGAINST_REFERENCE = {"tool-heavy": (5.0, 10.0), "text-rich": (3.0, 6.0)}
AGAINST_LIMIT = 0.5


class Options(NamedTuple):
    rounds: int
    smoke: bool


def claude(corpora: Corpora, options: Options) -> None:
    for mix in AGAINST_REFERENCE:
        throughput(corpora, "claude-code", mix, options)


def codex(corpora: Corpora, options: Options) -> None:
    for mix in AGAINST_REFERENCE:
        throughput(corpora, "codex", mix, options)


def throughput(corpora: Corpora, source: str, mix: str, options: Options) -> None:
    """Rates of all contestants in alternating rounds, and the ratios that the goals are about."""
    corpus = corpora.logs(source, mix)
    facts = corpus.facts
    heading(
        f"{source}, {mix}: {facts['bytes'] / 1e6:.0f} MB in {facts['files']} files, {facts['lines']:,} lines, "
        f"{share(facts['tool_results'])} of the bytes in tool results, {share(facts['kept_text'])} in kept text"
    )
    corpus.warm()
    checked = Checked()
    rounds = [round_of(CONTESTANTS, source, corpus, checked) for _ in range(options.rounds)]
    table(
        ("", "MB/s", "MB/s whole process", "start-up ms"),
        [_rate_row(name, [r[name] for r in rounds if name in r], facts["bytes"]) for name in rounds[0]],
    )
    print(f"hashes: ours = reference for all {checked.files} files ({checked.messages:,} messages), every round")
    fates = spread([r["ours"].report["fates_ms"] for r in rounds], 0)
    print(f"not in the rates, as it is built only when asked for: the frame of all raw records' fates, {fates} ms")
    if not options.smoke:
        _ratios(rounds, mix)


def _rate_row(name: str, passes: list[Pass], size: int) -> tuple[str, ...]:
    rate = spread([size / 1e6 / p.inner for p in passes], 0)
    whole = spread([size / 1e6 / p.whole for p in passes], 0)
    return CONTESTANTS[name], rate, whole, spread([(p.whole - p.inner) * 1e3 for p in passes], 0)


def _ratios(rounds: list[dict[str, Pass]], mix: str) -> None:
    floor, goal = AGAINST_REFERENCE[mix]
    wanted = f"{floor:g} / {goal:g}"
    whole = [r["reference"].whole / r["ours"].whole for r in rounds]
    inner = [r["reference"].inner / r["ours"].inner for r in rounds]
    limit = [r["limit"].inner / r["ours"].inner for r in rounds]
    rows = [
        ("ours / reference, without start-up", spread(inner, 2), wanted, _verdict(inner, floor, goal)),
        ("ours / reference, whole process", spread(whole, 2), wanted, _verdict(whole, floor, goal)),
    ]
    if mix == "tool-heavy":
        rows.append(("ours / limit, without start-up", spread(limit, 2), f"{AGAINST_LIMIT}", _verdict(limit, 0.5, 0.5)))
    else:
        rows.append(("ours / limit, without start-up", spread(limit, 2), "", ""))
    table(("ratio of rates per round", "median [range]", "floor / goal", ""), rows)


def _verdict(ratios: list[float], floor: float, goal: float) -> str:
    if median(ratios) >= goal:
        return "goal reached"
    return "floor reached" if median(ratios) >= floor else "BELOW THE FLOOR"


def cursor(corpora: Corpora, options: Options) -> None:
    """Time for growing numbers of conversations of the same size in one database."""
    heading("cursor: conversations in one state.vscdb; one indexed pass keeps ms per conversation level")
    built = [corpora.cursor(n) for n in CONVERSATIONS]
    for corpus in built:
        corpus.warm()
    seconds: dict[int, list[float]] = {n: [] for n in CONVERSATIONS}
    for _ in range(options.rounds):
        for n, corpus in zip(CONVERSATIONS, built, strict=True):
            done = run_worker("ours", "cursor", corpus.home)
            _check_cursor(done, n, corpus.facts["messages"])
            seconds[n].append(done.inner)
    first = median(seconds[CONVERSATIONS[0]])
    rows = [_cursor_row(n, c.facts["bytes"], seconds[n], first) for n, c in zip(CONVERSATIONS, built, strict=True)]
    table(
        ("conversations", "MB", "seconds", "ms per conversation", "MB/s", "time x", "linear x", "conversations x size"),
        rows,
    )


def _check_cursor(done: Pass, conversations: int, messages: int) -> None:
    found = (len(done.report["files"]), sum(f["messages"] for f in done.report["files"]))
    if found != (conversations, messages):
        raise Mismatch(f"cursor: {found} conversations and messages instead of {(conversations, messages)}")


def _cursor_row(n: int, size: int, seconds: list[float], first: float) -> tuple[str, ...]:
    times = n / CONVERSATIONS[0]
    each = spread([s / n * 1e3 for s in seconds], 2)
    rate = spread([size / 1e6 / s for s in seconds], 0)
    growth = (f"{median(seconds) / first:.2f}", f"{times:.2f}", f"{times**2:.2f}")
    return str(n), f"{size / 1e6:.0f}", spread(seconds, 2), each, rate, *growth


def startup(corpora: Corpora, options: Options) -> None:
    """Bare interpreters, imports, and a job of three small files."""
    heading("start-up: whole processes, ms")
    python, node = [sys.executable], shutil.which("node") or "node"
    corpus = corpora.small()
    small = [str(HERE / "worker.py"), "ours", "claude-code", str(corpus.home)]
    reference = [node, str(HERE / "reference.mjs"), "claude-code", str(corpus.folder)]
    commands = {
        "python -c pass": [*python, "-c", "pass"],
        "python -c 'import crystal_nb'": [*python, "-c", "import crystal_nb"],
        "python -c 'import crystal_nb, polars'": [*python, "-c", "import crystal_nb, polars"],
        "node -e 0": [node, "-e", "0"],
        f"small job ({corpus.facts['bytes'] / 1e3:.0f} kB), ours": [*python, *small],
        "small job, JavaScript reference": reference,
    }
    rounds = [
        {name: time_command(command) for name, command in commands.items()} for _ in range(2 * options.rounds + 1)
    ]
    table(("", "ms"), [(name, spread([r[name] * 1e3 for r in rounds], 0)) for name in commands])


def memory(corpora: Corpora, options: Options) -> None:
    """Peak of our process against three times the largest file plus the result."""
    heading("memory, MB: peak <= 3 x largest file + result (records and frames)")
    rows = [_memory_row(corpora, source, mix) for source in ("claude-code", "codex") for mix in AGAINST_REFERENCE]
    head = ("", "after import", "peak", "largest file", "records", "frames", "allowed", "")
    table(head, [(*row[:-1], "") for row in rows] if options.smoke else rows)


def _memory_row(corpora: Corpora, source: str, mix: str) -> tuple[str, ...]:
    corpus = corpora.logs(source, mix)
    done = run_worker("memory", source, corpus.home).report
    largest = corpus.facts["largest"]
    allowed = 3 * largest + done["records"] + done["frames"]
    sizes = (done["base"], done["peak"], largest, done["records"], done["frames"], allowed)
    verdict = "kept" if done["peak"] - done["base"] <= allowed else "TOO MUCH"
    return f"{source}, {mix}", *(f"{size / 1e6:.0f}" for size in sizes), verdict


PARTS: dict[str, Callable[[Corpora, Options], None]] = {
    "claude": claude,
    "codex": codex,
    "cursor": cursor,
    "startup": startup,
    "memory": memory,
}


def machine() -> str:
    node = run_node("--version")
    return f"Python {platform.python_version()}, node {node}, {os.cpu_count()} cores, {platform.platform()}"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=300, help="size of each corpus")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, separated by commas: {', '.join(PARTS)}")
    parser.add_argument("--dir", type=Path, help="folder for the corpora, which are kept there and used again")
    parser.add_argument("--smoke", action="store_true", help="one round with 8 MB: equal results count, speed does not")
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - set(PARTS):
        parser.error(f"no such parts: {', '.join(sorted(unknown))}")
    if options.smoke:
        options.mb, options.rounds = 8, 1
    return options


def main() -> None:
    arguments = parse_arguments()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="crystal-nb-benchmark-") as fresh:
        corpora = Corpora(arguments.dir or Path(fresh), arguments.mb)
        for part in arguments.only.split(","):
            PARTS[part](corpora, Options(arguments.rounds, arguments.smoke))
    if arguments.smoke:
        print("\nsmoke: all results are equal; 8 MB say nothing about speed")


if __name__ == "__main__":
    try:
        main()
    except Mismatch as error:
        sys.exit(f"\nRESULTS DIFFER, so the figures mean nothing: {error}")
