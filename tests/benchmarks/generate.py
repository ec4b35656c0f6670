"""Make a corpus and measure what is in it.

python tests/benchmarks/generate.py claude-code /tmp/home --mix tool-heavy --mb 300
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import generate_claude
import generate_codex
import generate_cursor
import msgspec

MIXES = ("tool-heavy", "text-rich")
_encode = msgspec.json.encode
_CODEX_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def generate(source: str, home: Path, mix: str, megabytes: float, conversations: int) -> dict[str, Any]:
    """Write a home folder of one source and say what is in it."""
    total = int(megabytes * 1e6)
    facts: dict[str, Any] = {}
    if source == "cursor":
        facts["messages"] = generate_cursor.generate(home, conversations, total)
    elif source == "codex":
        generate_codex.generate(home, mix, total)
    else:
        generate_claude.generate(home, mix, total)
    sizes = [path.stat().st_size for path in data_files(source, home)]
    facts |= {"files": len(sizes), "bytes": sum(sizes), "largest": max(sizes)}
    return facts if source == "cursor" else facts | shares(source, home)


def data_folder(source: str, home: Path) -> Path:
    """The folder in a home that a source's files are in."""
    if source == "cursor":
        return generate_cursor.user_folder(home)
    return home / (".codex/sessions" if source == "codex" else ".claude/projects")


def data_files(source: str, home: Path) -> list[Path]:
    """All files of a corpus."""
    pattern = "*/state.vscdb" if source == "cursor" else "*.jsonl"
    return sorted(data_folder(source, home).rglob(pattern))


def shares(source: str, home: Path) -> dict[str, float]:
    """Shares of the bytes, as they stand in the files, that are tool results and text that the rules keep."""
    measure = _codex_bytes if source == "codex" else _claude_bytes
    total = results = kept = lines = 0
    for path in data_files(source, home):
        total += path.stat().st_size
        for record in _records(path):
            lines += 1
            in_results, in_text = measure(record)
            results += in_results
            kept += in_text
    return {"lines": lines, "tool_results": results / total, "kept_text": kept / total}


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue


def _claude_bytes(record: dict[str, Any]) -> tuple[int, int]:
    if record["type"] not in ("user", "assistant"):
        return 0, 0
    content = record["message"]["content"]
    results = len(_encode(record["toolUseResult"])) if "toolUseResult" in record else 0
    if isinstance(content, str):
        return results, len(_encode(content))
    results += sum(len(_encode(b["content"])) for b in content if b["type"] == "tool_result")
    return results, sum(len(_encode(b[b["type"]])) for b in content if b["type"] in ("text", "thinking"))


def _codex_bytes(record: dict[str, Any]) -> tuple[int, int]:
    payload = record["payload"]
    if payload["type"] in _CODEX_OUTPUTS if "type" in payload else False:
        return len(_encode(payload["output"])), 0
    if payload.get("type") in ("user_message", "agent_message"):
        return 0, len(_encode(payload["message"]))
    return 0, 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", choices=("claude-code", "codex", "cursor"))
    parser.add_argument("home", type=Path, help="folder to write to; must not exist yet")
    parser.add_argument("--mix", choices=MIXES, default="tool-heavy")
    parser.add_argument("--mb", type=float, default=300)
    parser.add_argument("--conversations", type=int, default=500, help="of cursor")
    options = parser.parse_args()
    if options.home.exists():
        sys.exit(f"{options.home} exists; name a new folder")
    facts = generate(options.source, options.home, options.mix, options.mb, options.conversations)
    print(msgspec.json.encode(facts).decode())


if __name__ == "__main__":
    main()
