"""A careful parse of one conversation: its state, and the messages in the making.

Order is file order: the tool only appends, and times of parallel writers may run backwards.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.claude_lines import Lines
from crystal_nb.adapters.claude_records import Block, ForkedFrom, Line, LineDecoder, Rare, Usage, media, result_text
from crystal_nb.adapters.claude_rules import ClaudeRules

__all__ = ["SAME_AGAIN", "Session", "Sketch", "orphan_call"]

_RARE = LineDecoder(Rare)
SAME_AGAIN = "the same record again"


class Sketch(Struct, gc=False):
    """A message in the making."""

    type: str
    role: str
    id: str
    parent: str | None
    time: Any
    side: bool | None
    texts: list[str] | None = None
    thoughts: list[str] | None = None
    tools: list[Block] | None = None
    marks: list[str] | None = None
    model: str | None = None
    request_id: str | None = None
    usage: Usage | None = None
    moved_to: int = -1
    """Sketch that this one turned out to be a part of."""
    moved_why: str | None = None

    def mark(self, text: str) -> None:
        """Note a fact once."""
        if self.marks is None:
            self.marks = [text]
        elif text not in self.marks:
            self.marks.append(text)

    def move(self, to: int, why: str) -> None:
        """Say that this is a part of another one."""
        self.moved_to, self.moved_why = to, why


def orphan_call(id: str | None) -> Block:
    """Stands for the call that a result without one answers."""
    return Block(id=id, name="", input=None)  # type: ignore[arg-type]


_PERSISTED = "<persisted-output>"
_PERSISTED_TOKEN = b'"<persisted-output>'


class Session:
    """State of one parse.

    Parameters
    ----------
    rules
        Which repairs are on.
    copied
        Ids of records that another conversation keeps.
    stored_result
        Gives a tool's result that lies in a file of its own, by the call's id.
    is_held
        Tells whether the session of that id, by its file, holds the record of that id.
    """

    def __init__(
        self,
        rules: ClaudeRules,
        copied: frozenset[str],
        stored_result: Callable[[str], str | None],
        is_held: Callable[[str, str], bool],
    ) -> None:
        self.rules, self.copied, self.stored_result, self.is_held = rules, copied, stored_result, is_held
        self.sketches: list[Sketch] = []
        self.results: dict[str, tuple[str | bytes, bool | None]] = {}
        self.calls: dict[str, int] = {}
        self.orphans: set[str] = set()
        self.answers: dict[str, int] = {}
        self.ids: dict[str, int] = {}
        self.parents: dict[str, str | None] = {}
        self.uuids: list[str | None] = []
        self.queued: dict[str, list[int]] = {}
        self.attached: dict[str, int] = {}
        self.titles: dict[str, str] = {}
        self.summaries: list[tuple[str, str | None]] = []
        self.fork_refs: list[tuple[str, str | None]] = []
        self.forked: dict[str, list[int]] = {}
        """By the session that records say they are forked from: how many it holds, how many not."""
        self.replaced: set[int] = set()
        """Sketches whose content came again in another form; the earlier records of them are lost."""
        self.first_prompt: str | None = None
        self.leaf: str | None = None
        self.cwd: str | None = None
        self.git_branch: str | None = None
        self.version: str | None = None
        self.session_id: str | None = None
        self.odd: str | None = None
        """What the record at hand has that nobody knows yet."""
        self.row = -1
        self.lines: Lines

    def note_place(self, record: Line) -> None:
        """Take the first of each."""
        self.cwd = self.cwd or record.cwd
        self.git_branch = self.git_branch or record.git_branch
        self.session_id = self.session_id or record.session_id

    def is_fork_copy(self, origin: ForkedFrom) -> bool:
        """Whether the session that a record was forked from holds it."""
        if not (self.rules.copies_once and origin.session_id):
            return False
        is_held = self.is_held(origin.session_id, origin.message_uuid or "")
        self.forked.setdefault(origin.session_id, [0, 0])[not is_held] += 1
        return is_held

    def add(self, sketch: Sketch, uuid: str | None) -> int:
        """Add a message; one without an id gets one from its line."""
        at = len(self.sketches)
        id = uuid or f"line-{self.lines.numbers[self.row]}"
        if id in self.ids:
            id = self._free_id(id)
        sketch.id = id
        self.ids[id] = at
        self.sketches.append(sketch)
        return at

    def _free_id(self, id: str) -> str:
        number = 2
        while f"{id}#{number}" in self.ids:
            number += 1
        return f"{id}#{number}"

    def add_text(self, type: str, role: str, record: Line, text: str | None, *marks: str) -> int:
        """Add a message of a rarer kind."""
        sketch = self.sketch(type, role, record)
        sketch.texts = [text] if text else None
        for mark in marks:
            sketch.mark(mark)
        return self.add(sketch, record.uuid)

    def sketch(self, type: str, role: str, record: Line) -> Sketch:
        """Begin a message."""
        return Sketch(type, role, "", record.parent_uuid, record.timestamp, record.is_sidechain)

    def repeated(self, record: Line, type: str) -> int | None:
        """Sketch of the same record, written a second time."""
        at = self.ids.get(record.uuid) if record.uuid else None
        return at if at is not None and self.sketches[at].type == type else None

    def take_result(self, block: Block) -> int | None:
        """Note a tool's result; the last one for a call wins. Returns the sketch that called, if it is known."""
        text = result_text(block.content)
        id = block.tool_use_id or ""
        if text.startswith(_PERSISTED if isinstance(text, str) else _PERSISTED_TOKEN):  # type: ignore[arg-type]
            text = self.stored_result(id) or text
        self.results[id] = text, block.is_error
        return self.calls.get(id)

    def note_block(self, sketch: Sketch, block: Block) -> bool:
        """Mark a block that has no text; True when that makes the message worth keeping."""
        kind = block.type or ""
        if kind in ("thinking", "redacted_thinking"):
            sketch.mark("thinking withheld")
        elif kind in ("image", "document"):
            if not self.rules.name_media:
                return False
            sketch.mark(media(kind, block.source))
        elif block.tool_use_id and kind.endswith("tool_result"):
            if not self.rules.pair_tools:
                return False
            if self.take_result(block) is None:
                sketch.tools = [*(sketch.tools or ()), orphan_call(block.tool_use_id)]
        else:
            if kind != "text":
                sketch.mark(f"unknown block {kind}")
                self.odd = f"unknown block kind {kind}{self._tool_version()}"
            return False
        return True

    def why_empty(self, content: str | list[Block]) -> str:
        """Why nothing is left of a message."""
        kinds = {block.type or "?" for block in content if isinstance(block, Block)} - {"text", "thinking"}
        if not kinds:
            return "no content"
        return f"unknown block kind {', '.join(sorted(kinds))}{self._tool_version()}"

    def rare(self) -> Rare:
        """The record at hand with the fields of rarer kinds."""
        try:
            found = _RARE.decode(self.lines.raw(self.row).strip(b"\x00 \t\r\n\xef\xbb\xbf"))
        except ValueError:
            return Rare()
        return found if isinstance(found, Rare) else Rare()

    def unknown(self, kind: str) -> Outcome:
        """Outcome of a record whose kind nobody knows yet."""
        return "dropped", sys.intern(kind), f"unknown kind{self._tool_version()}", None

    def _tool_version(self) -> str:
        return f" (tool version {self.version or 'unknown'})"
