"""One measured pass in a process of its own; prints JSON with the time without start-up.

python worker.py ours|memory|pinned|careful|json|orjson|limit <source> <home>
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

BLOCK = 4 << 20


def ours(source: str, home: Path) -> dict[str, Any]:
    """Scan, parse, hash, and the frames of candidates, conversations and messages; the one of fates apart."""
    with TemporaryDirectory() as empty:  # what costs the same however much there is to read: start-up, not work
        work(source, Path(empty))
    gc.collect()
    base = memory("VmRSS")
    start = time.perf_counter()
    frames, corpus = work(source, home)
    ms = (time.perf_counter() - start) * 1e3
    start = time.perf_counter()
    frames.append(corpus.fates)
    fates_ms = (time.perf_counter() - start) * 1e3
    peak = memory("VmHWM")
    if len(corpus.failures):
        sys.exit(f"{len(corpus.failures)} conversations failed, first: {corpus.failures.row(0)}")
    rows = corpus.conversations.select("id", "content_hash", "message_count").iter_rows()
    files = [{"id": id, "hash": digest, "messages": count} for id, digest, count in rows]
    report = {"ms": ms, "fates_ms": fates_ms, "files": files, "base": base, "peak": peak}
    return report | {"frames": sum(f.estimated_size() for f in frames), "corpus": corpus}


def work(source: str, home: Path) -> tuple[list[Any], Any]:
    """What is measured; gives the frames and the corpus."""
    import crystal_nb

    config = crystal_nb.Config(home=home, platform="linux")
    candidates = crystal_nb.scan(source, config=config)
    corpus = crystal_nb.parse(candidates, config=config)
    return [candidates, corpus.conversations, corpus.messages], corpus


def memory_use(source: str, home: Path) -> dict[str, Any]:
    """As `ours`, and how large the result is."""
    report = ours(source, home)
    return report | {"records": deep_size(report["corpus"].parsed)}


def parse_as(profile: str, source: str, home: Path) -> dict[str, Any]:
    """Processor seconds of a parse by a profile's rules, all threads.

    A full collection that the imports left due would fall on whichever pass allocates more, so it is done before.
    """
    import polars  # noqa: F401 - start-up, not work

    import crystal_nb

    config = crystal_nb.Config(home=home, platform="linux")
    candidates = crystal_nb.scan(source, config=config, profile=profile)
    gc.collect()
    start, cpu = time.perf_counter(), time.process_time()
    corpus = crystal_nb.parse(candidates, config=config)
    cpu = time.process_time() - cpu
    if corpus.failed:
        sys.exit(f"{len(corpus.failed)} conversations failed, first: {corpus.failed[0]}")
    return {"ms": (time.perf_counter() - start) * 1e3, "cpu": cpu, "conversations": len(corpus), "corpus": corpus}


def with_json(source: str, home: Path) -> dict[str, Any]:
    """``json.loads`` of every line, nothing else."""
    import json

    return load_lines(source, home, json.loads)


def with_orjson(source: str, home: Path) -> dict[str, Any]:
    """``orjson.loads`` of every line, nothing else."""
    import orjson

    return load_lines(source, home, orjson.loads)


def load_lines(source: str, home: Path, loads: Callable[[bytes], Any]) -> dict[str, Any]:
    """Decode every line; torn ones and lone surrogates fail, as they would in a real reader."""
    start = time.perf_counter()
    for path in log_files(source, home):
        with path.open("rb") as file:
            for line in file:
                try:
                    loads(line)
                except ValueError:
                    continue
    return {"ms": (time.perf_counter() - start) * 1e3}


def limit(source: str, home: Path) -> dict[str, Any]:
    """Reading and validating every line into a Struct without fields: the least that any typed reader must do."""
    import msgspec

    decoder = msgspec.json.Decoder(msgspec.defstruct("Empty", []))
    start = time.perf_counter()
    for path in log_files(source, home):
        for block in line_blocks(path):
            try:
                decoder.decode_lines(block)
            except msgspec.DecodeError:
                validate_lines(decoder.decode, block)
    return {"ms": (time.perf_counter() - start) * 1e3}


def validate_lines(decode: Callable[[bytes], Any], block: bytes) -> None:
    for line in block.splitlines():
        try:
            decode(line)
        except ValueError:
            continue


def line_blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        rest = b""
        while chunk := file.read(BLOCK):
            cut = chunk.rfind(b"\n") + 1
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        yield rest


def log_files(source: str, home: Path) -> list[Path]:
    return sorted((home / (".codex/sessions" if source == "codex" else ".claude/projects")).rglob("*.jsonl"))


def memory(key: str) -> int:
    """Resident bytes now (VmRSS) or at most so far (VmHWM).

    Linux keeps ``ru_maxrss`` across ``exec``, so there a child's figure may be its parent's.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    line = next(line for line in status.splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


def deep_size(root: Any) -> int:
    """Bytes of a tree of Structs, tuples and plain values, shared ones once."""
    seen: set[int] = set()
    total, waiting = 0, [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        if isinstance(value, tuple):
            waiting += value
        elif fields := getattr(value, "__struct_fields__", None):
            waiting += (getattr(value, name) for name in fields)
    return total


TASKS = {
    "ours": ours,
    "memory": memory_use,
    "pinned": partial(parse_as, "chatcrystal"),
    "careful": partial(parse_as, "careful"),
    "json": with_json,
    "orjson": with_orjson,
    "limit": limit,
}


def main() -> None:
    task, source, home = sys.argv[1:]
    report = TASKS[task](source, Path(home))
    report.pop("corpus", None)

    import json

    print(json.dumps(report))


if __name__ == "__main__":
    main()
