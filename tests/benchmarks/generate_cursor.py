"""A Cursor home folder: one ``state.vscdb`` with bubbles and other rows, and one workspace window."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from texts import Texts

_TABLES = (
    "CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
    "CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
)
_EMPTY = {
    name: [] for name in ("codeBlocks", "suggestedCodeBlocks", "toolResults", "allThinkingBlocks", "images", "lints")
}
_ROWS_PER_TURN = 12
Row = tuple[str, str]


def user_folder(home: Path) -> Path:
    """Where Cursor keeps its data on Linux; the benchmark asks for that platform."""
    return home / ".config" / "Cursor" / "User"


def generate(home: Path, conversations: int, total: int, seed: int = 7) -> int:
    """Write a database of about ``total`` bytes and return how many messages the rules keep.

    Four conversations at a time are written side by side.
    """
    rng = random.Random(f"cursor {seed}")
    texts = Texts(rng)
    heads = [_head(texts, number) for number in range(conversations)]
    base = user_folder(home)
    database = _create(base / "globalStorage" / "state.vscdb")
    turns = 0
    with database:
        for at in range(0, conversations, 4):
            rows = [_rows(texts, head, total / conversations * 0.87) for head in heads[at : at + 4]]
            turns += sum(len(r) // _ROWS_PER_TURN for r in rows)
            database.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", _interleave(rows))
    database.close()
    _window(base / "workspaceStorage" / texts.hex(32), heads)
    return 2 * turns


def _create(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path)
    for statement in _TABLES:
        database.execute(statement)
    return database


def _window(folder: Path, heads: list[dict[str, Any]]) -> None:
    database = _create(folder / "state.vscdb")
    with database:
        value = json.dumps({"allComposers": heads, "selectedComposerId": heads[0]["composerId"]})
        database.execute("INSERT INTO ItemTable VALUES ('composer.composerData', ?)", (value,))
    database.close()
    (folder / "workspace.json").write_text(json.dumps({"folder": "file:///srv/demo"}))


def _head(texts: Texts, number: int) -> dict[str, Any]:
    created = 1_767_225_600_000 + number * 3_600_000
    head = {"type": "head", "composerId": texts.uuid(), "name": texts.words(4), "createdAt": created}
    return {**head, "lastUpdatedAt": created + 900_000, "unifiedMode": "agent", "isArchived": False}


def _interleave(conversations: list[list[Row]]) -> Iterator[Row]:
    for at in range(max(map(len, conversations))):
        yield from (rows[at] for rows in conversations if at < len(rows))


def _rows(texts: Texts, head: dict[str, Any], size: float) -> list[Row]:
    """Bubbles, and about a quarter of the bytes in rows of other families."""
    composer, rows, headers = head["composerId"], [], []
    time = datetime(2026, 1, 1) + timedelta(milliseconds=head["createdAt"] - 1_767_225_600_000)
    while size > 0:
        for bubble in _turn(texts, time):
            headers.append({"bubbleId": bubble["bubbleId"], "type": bubble["type"]})
            rows.append((f"bubbleId:{composer}:{bubble['bubbleId']}", json.dumps(bubble, ensure_ascii=False)))
        rows += _other_rows(texts, composer)
        time += timedelta(minutes=2)
        size -= sum(len(key) + len(value) for key, value in rows[-_ROWS_PER_TURN:])
    data = {"_v": 10, "composerId": composer, "name": head["name"], "createdAt": head["createdAt"]}
    rows.append((f"composerData:{composer}", json.dumps({**data, "fullConversationHeadersOnly": headers})))
    return rows


def _turn(texts: Texts, time: datetime) -> list[dict[str, Any]]:
    """Ten bubbles: prompt, thinking, seven tool calls, answer."""
    prompt, answer = texts.prose(texts.size(250)), texts.prose(texts.size(900))
    kinds: list[dict[str, Any]] = [
        {"type": 1, "text": prompt, "richText": json.dumps({"root": {"children": [{"text": prompt}]}})},
        {
            "type": 2,
            "text": "",
            "capabilityType": 30,
            "thinking": {"text": texts.prose(texts.size(400)), "signature": ""},
        },
        *({"type": 2, "text": "", "capabilityType": 15, "toolFormerData": _tool(texts)} for _ in range(7)),
        {"type": 2, "text": answer, "tokenCount": {"inputTokens": 900, "outputTokens": 80}},
    ]
    return [
        {"_v": 3, "bubbleId": texts.uuid(), **_EMPTY, **kind, "isAgentic": True, "createdAt": _stamp(time, at)}
        for at, kind in enumerate(kinds)
    ]


def _stamp(time: datetime, seconds: int) -> str:
    return f"{(time + timedelta(seconds=seconds)).isoformat(timespec='milliseconds')}Z"


def _tool(texts: Texts) -> dict[str, Any]:
    arguments = json.dumps({"target_file": texts.path()})
    result = json.dumps({"contents": texts.code(texts.size(2_500, 1.1))})
    tool = {"tool": 40, "name": "read_file_v2", "status": "completed", "toolCallId": f"call_{texts.hex(24)}"}
    return {**tool, "rawArgs": arguments, "params": arguments, "result": result}


def _other_rows(texts: Texts, composer: str) -> list[Row]:
    checkpoint = json.dumps({"files": [], "note": texts.code(texts.size(1_500))})
    return [
        (f"agentKv:blob:{texts.hex(64)}", texts.opaque(texts.size(5_000))),
        (f"checkpointId:{composer}:{texts.uuid()}", checkpoint),
    ]
