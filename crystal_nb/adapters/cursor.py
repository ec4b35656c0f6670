"""Cursor: ``globalStorage/state.vscdb`` holds every bubble, ``workspaceStorage`` lists the conversations.

Source: ``formats/cursor.md`` section 3; the numbers in comments are its rules.
"""

from __future__ import annotations

import dataclasses
import os
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters import cursor_careful, vscdb
from crystal_nb.adapters.base import Adapter, Draft, Outcome, Parsed, Rules, TimedCache, file_candidate, has_fence
from crystal_nb.adapters.cursor_index import BubbleIndex, bubble_index, bubble_rows
from crystal_nb.adapters.cursor_rules import V1, V2
from crystal_nb.adapters.jsonl import HEAD_BYTES
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder
from crystal_nb.adapters.vscode import date_time, finish, item, readable_windows
from crystal_nb.config import Config
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Fate, Message

__all__ = ["ADAPTER", "CAREFUL", "LATER"]

NAME = "cursor"
_NEWEST_VERSION = 3
_ORPHAN_ROWS = 20


class Head(Struct, gc=False, rename="camel"):
    composer_id: str | UnsetType | None = UNSET
    created_at: float | None = None


class WindowData(Struct, gc=False, rename="camel"):
    all_composers: list[Head] | None = None


class Element(Struct, gc=False):
    """A value of which only the presence counts."""


class RawBubble(Struct, gc=False, rename="camel"):
    version: float | None = field(name="_v", default=None)
    type: float | None = None
    text: str | None = None
    created_at: str | None = None
    bubble_id: str | None = None
    is_agentic: bool | None = None
    tool_results: list[Raw] | None = None
    tool_former_data: Element | None = None
    code_blocks: list[Raw] | None = None
    suggested_code_blocks: list[Raw] | None = None
    all_thinking_blocks: list[dict[str, Any]] | None = None
    thinking: str | dict[str, Any] | None = None


_WINDOW_DECODER = TypedDecoder(WindowData)
_BUBBLE_DECODER = TypedDecoder(RawBubble)


class Window(NamedTuple):
    """A window and the conversations that it lists."""

    folder: str
    heads: list[Head]


_WINDOWS: TimedCache[list[Window]] = TimedCache()
_ORPHANS: TimedCache[list[str] | None] = TimedCache()


def _root(config: Config) -> Path:
    return config.folder(NAME, "CURSOR_DATA_DIR", config.user_data("Cursor"))


def _database(root: Path) -> Path:
    return root / "globalStorage" / "state.vscdb"


def _count(root: Path, config: Config) -> int:
    """Rule 11."""
    if not os.path.exists(_database(root)):
        return 0
    try:
        known = {_identity(head.composer_id) for window in _windows(root, config) for head in window.heads}
        return len(known) + len(_orphans(root, known, config))
    except ValueError:
        return 0


def _candidates(root: Path, config: Config) -> list[Candidate]:
    """Rules 12 to 14."""
    path = _database(root)
    if not os.path.exists(path):
        return []
    windows = _windows(root, config)
    whole = file_candidate(NAME, "", path, os.stat(path), "")
    found, known = [], set()
    for window in windows:
        for head in window.heads:
            known.add(_identity(head.composer_id))
            mtime = date_time(head.created_at) if ecma.truthy(head.created_at) else whole.file_mtime
            name = None if head.composer_id is UNSET else "null" if head.composer_id is None else head.composer_id
            found.append(replace(whole, id=name, file_mtime=mtime, project_dir=window.folder))
    found += (replace(whole, id=name) for name in _orphans(root, known, config))
    return found


def _identity(value: Any) -> tuple[Any, ...]:
    """What a JavaScript ``Set`` tells values apart by."""
    return (None, id(value)) if isinstance(value, (list, dict)) else (isinstance(value, bool), value)


def _windows(root: Path, config: Config) -> list[Window]:
    """Rule 8; a head that is null fails the caller, every time."""
    windows = _WINDOWS.get(str(root), config.cache_seconds, lambda: _find_windows(root))
    if any(head is None for window in windows for head in window.heads):
        raise ValueError("composer.composerData: allComposers holds null")
    return windows


def _find_windows(root: Path) -> list[Window]:
    """Rules 4 to 7."""
    found = readable_windows(root, _read_heads)
    return [Window(project, heads) for project, _, heads in found if heads]


def _read_heads(database: Path) -> list[Any]:
    """Rule 6."""
    row = vscdb.read(database, lambda connection: item(connection, "composer.composerData"))
    type, value = row or ("text", b"{}")
    if type in ("null", "blob"):
        raise ValueError(f"composer.composerData is of type {type}")
    data = _WINDOW_DECODER.decode(vscdb.utf8(value)) if type == "text" else NotAnObject(value)
    if isinstance(data, NotAnObject):
        if data.value is None:
            raise ValueError("composer.composerData is null")
        return []
    heads: Any = data.all_composers
    if not isinstance(heads, (list, str)):
        return []
    return [head if isinstance(head, Head) or head is None else Head() for head in heads]


def _orphans(root: Path, known: set[tuple[Any, ...]], config: Config) -> list[str]:
    """Conversations that only the bubbles tell of; the cache asks not which were known (rule 8)."""
    try:
        found = _ORPHANS.get(
            str(root), config.cache_seconds, lambda: _find_orphans(_database(root), known), keep=lambda v: v is not None
        )
    except sqlite3.Error as error:
        raise ValueError(f"{_database(root)}: {error}") from error
    return found or []


def _find_orphans(path: Path, known: set[tuple[Any, ...]]) -> list[str] | None:
    """Rules 9 and 10; None where there is no database or no bubble."""

    def query(connection: vscdb.Connection) -> list[str] | None:
        index = bubble_index(connection, path)
        unknown = [name for name in index.names if _identity(name) not in known]
        return [name for name in unknown if _shows_text(connection, index, name)] if index.names else None

    try:
        return vscdb.read(path, query)
    except OSError:
        return None


def _shows_text(connection: sqlite3.Connection, index: BubbleIndex, name: str) -> bool:
    """Rule 10."""
    rows = bubble_rows(connection, index.rowids(connection, name)[:_ORPHAN_ROWS])
    bubbles = (_decode(type, value) for _, type, value in rows)
    texts = (bubble.text for bubble in bubbles if isinstance(bubble, RawBubble))
    return any(isinstance(text, str) and ecma.trim(text) for text in texts)


def _read(candidate: Candidate, rules: Rules, config: Config) -> Parsed:
    try:
        draft = vscdb.read(candidate.file_path, lambda connection: _read_bubbles(connection, candidate, config))
    except sqlite3.Error as error:
        raise ParseError(str(error), source=NAME, path=candidate.file_path) from error
    return finish(candidate, draft, draft.by_time())


def _read_bubbles(connection: vscdb.Connection, candidate: Candidate, config: Config) -> Draft:
    """Rules 16 to 26."""
    path, draft = candidate.file_path, Draft(config)
    name = "undefined" if candidate.id is None else ecma.to_text(candidate.id)
    try:
        rowids = bubble_index(connection, path).rowids(connection, name)
    except ValueError as error:
        raise ParseError(str(error), source=NAME, path=path) from None
    for raw_key, type, value in bubble_rows(connection, rowids):
        key = vscdb.decode(raw_key)
        row, bubble = f"cursorDiskKV/{key}", _decode(type, value)
        try:
            status, kind, reason, index = _read_bubble(bubble, key, draft)
        except ValueError as error:
            raise ParseError(str(error), source=NAME, path=path, row=row) from None
        raw = value if isinstance(value, bytes) else ecma.to_text(value).encode()
        head = raw[:HEAD_BYTES] if status == "dropped" else b""
        draft.fates.append(Fate(status, kind, reason, index, size=len(raw), key=row, head=head, note=_note(bubble)))
    return draft


def _decode(type: str, value: Any) -> RawBubble | NotAnObject | str:
    """The bubble, or the reason why there is none (rule 17)."""
    if type == "blob":
        return "BLOB value"
    if type != "text":
        return NotAnObject(value)
    try:
        return _BUBBLE_DECODER.decode(vscdb.utf8(value))
    except ValueError:
        return "not JSON"


def _note(bubble: RawBubble | NotAnObject | str) -> str | None:
    """Rule 18."""
    version = bubble.version if isinstance(bubble, RawBubble) else None
    newer = isinstance(version, (int, float)) and version > _NEWEST_VERSION
    return f"bubble version {ecma.to_text(version)} is newer than the rules" if newer else None


def _read_bubble(bubble: RawBubble | NotAnObject | str, key: str, draft: Draft) -> Outcome:
    """Rules 19 to 26; a ValueError stands for the pinned parser's TypeError, which loses the conversation."""
    if isinstance(bubble, str):
        return "dropped", "bubble", bubble, None
    if isinstance(bubble, NotAnObject):
        if bubble.value is None:
            raise ValueError("the value is null, which the pinned parser can't read")
        return "dropped", "bubble", "not an object", None
    role = "user" if bubble.type == 1 and not isinstance(bubble.type, bool) else "assistant"
    text = bubble.text if ecma.truthy(bubble.text) else ""
    if not isinstance(text, str):
        raise ValueError(f"text is no string: {type(text).__name__}")
    content = ecma.trim(text)
    if not content and role == "assistant":
        return "dropped", role, _why_empty(bubble), None
    clock = not ecma.truthy(bubble.created_at)
    draft.messages.append(
        Message(
            role,
            content,
            role,
            has_tool_use=ecma.length(bubble.tool_results) > 0 or bubble.is_agentic is True,
            has_code=_has_code(content, bubble),
            thinking=_thinking(bubble),
            id=bubble.bubble_id if ecma.truthy(bubble.bubble_id) else key.rpartition(":")[2],
            timestamp=draft.now() if clock else bubble.created_at,
            timestamp_from_clock=clock,
        )
    )
    return "kept", role, None, len(draft.messages) - 1


def _why_empty(bubble: RawBubble) -> str:
    if ecma.truthy(bubble.tool_former_data):
        return "assistant bubble without text: tool call"
    if ecma.truthy(bubble.thinking) or ecma.length(bubble.all_thinking_blocks) > 0:
        return "assistant bubble without text: thinking"
    return "assistant bubble without text"


def _has_code(content: str, bubble: RawBubble) -> bool:
    """Rule 23."""
    blocks = bubble.code_blocks, bubble.suggested_code_blocks
    return has_fence(content) or any(ecma.length(value) > 0 for value in blocks)


def _thinking(bubble: RawBubble) -> Any:
    """Rule 24."""
    blocks: Any = bubble.all_thinking_blocks
    if not ecma.length(blocks) > 0:
        return bubble.thinking if ecma.truthy(bubble.thinking) else None
    if not isinstance(blocks, list) or None in blocks:
        raise ValueError("allThinkingBlocks is no list of objects")
    pairs = [(b.get("thinking"), b.get("text")) for b in blocks if isinstance(b, dict)]
    texts = [text for pair in pairs if (text := next(filter(ecma.truthy, pair), None)) is not None]
    return ecma.join(texts, "\n") if texts else None


ADAPTER = Adapter(
    name=NAME,
    display_name="Cursor",
    root=_root,
    count=_count,
    candidates=_candidates,
    read=_read,
    rules=V1,
)
CAREFUL = dataclasses.replace(
    ADAPTER, count=cursor_careful.count, candidates=cursor_careful.candidates, read=cursor_careful.read, rules=V2
)
LATER = (CAREFUL,)
