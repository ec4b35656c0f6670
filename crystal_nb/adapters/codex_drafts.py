"""Messages in the making, and the copies of one text that Codex writes on several lines."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from msgspec import Struct

from crystal_nb.adapters.base import has_fence
from crystal_nb.details import Details, ToolCall
from crystal_nb.records import Message

__all__ = ["COMPLETED", "EVENT", "ITEM", "LAST", "Call", "Copies", "Draft", "Thought"]

EVENT, ITEM, COMPLETED, LAST = range(4)
"""Where a text can stand: an event, an item for the model, a completed item, a turn's last message."""


class Call(Struct, gc=False):
    """A tool call and what is known of it so far."""

    name: str
    id: str | None
    input: str | None = None
    result: str | bytes | None = None
    is_error: bool | None = None
    at: int = 0
    """Position of the message that it belongs to."""
    is_called: bool = True
    """False as long as only its result, or what the front end saw of it, is known."""
    has_output: bool = False
    """Whether the result is the one that the model saw; an event's may be cut."""


class Draft(Struct, gc=False):
    """A message that may still grow."""

    type: str
    role: str
    at: int
    """Position among the messages."""
    text: str = ""
    id: str | None = None
    key: str = ""
    """Id by position, where the record has none of its own."""
    time: str | int | float | None = None
    channels: int = 0
    """Bits of the places where the text was seen."""
    is_kept: bool = False
    """Whether a record has become this message; until then only reasoning has."""
    turn: str | None = None
    model: str | None = None
    thinking: list[str] = []
    calls: list[Call] = []
    marks: tuple[str, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_tokens: int | None = None

    def mark(self, *marks: str) -> None:
        """Add marks that it doesn't have yet."""
        self.marks += tuple([m for m in marks if m not in self.marks])

    def message(self, id: str, is_sidechain: bool | None) -> Message:
        """The finished message."""
        calls, thoughts = self.calls, self.thinking
        tools = tuple([ToolCall(c.name, c.input, c.result, c.id, c.is_error) for c in calls]) if calls else ()
        return Message(
            self.type,
            self.text,
            self.role,
            bool(tools),
            has_fence(self.text),
            "\n\n".join(thoughts) if thoughts else None,
            id,
            None,
            self.time,
            False,
            Details(
                tools,
                self.model,
                self.input_tokens,
                self.output_tokens,
                self.cache_tokens,
                is_sidechain,
                self.turn,
                self.marks,
            ),
        )


class Thought(Struct, gc=False):
    """A piece of reasoning and the message that it belongs to."""

    at: int
    text: str
    channels: int
    id: str | None = None


D = TypeVar("D", Draft, Thought)


class Copies(Generic[D]):
    """Finds the message that a text repeats: the same text in another place, each place once.

    Both orders of event and item occur, and a real repetition must survive: a text is a copy only of
    a message that was not yet seen in this text's place, and whose record's id, where both have
    one, is the same. Texts are hashed only when some message still lacks the place asked for.

    >>> copies, first = Copies(), Draft("assistant", "assistant", 0, "hi", channels=1 << EVENT)
    >>> copies.add(first, EVENT)
    >>> copies.find("hi", ITEM) is first, copies.find("hi", ITEM), copies.find("hi", EVENT)
    (True, None, None)
    """

    def __init__(self) -> None:
        self._by_id: dict[str, D] = {}
        self._reset()

    def _reset(self) -> None:
        self._drafts: list[D] = []
        self._seen = [0, 0, 0, 0]
        self._indexed = [0, 0, 0, 0]
        self._indexes: dict[int, dict[str, deque[D]]] = {}

    def __bool__(self) -> bool:
        return bool(self._drafts)

    def clear(self) -> None:
        """A turn is over: from now on only an equal id makes a copy of what was said in it."""
        if self._drafts:
            self._reset()

    def add(self, draft: D, place: int) -> None:
        """Note a new message that was seen in a place."""
        self._drafts.append(draft)
        self._seen[place] += 1
        if draft.id is not None:
            self._by_id[draft.id] = draft

    def find(self, text: str, place: int, id: str | None = None) -> D | None:
        """The message that this text is a copy of; it then counts as seen in this place."""
        drafts, bit = self._drafts, 1 << place
        found: D | None = None
        if id is not None and (found := self._by_id.get(id)) and (found.channels & bit or found.text != text):
            found = None
        if found is None and drafts and self._seen[place] < len(drafts):
            last = drafts[-1]
            found = last if last.text == text and _fits(last, bit, id) else self._look_up(text, place, id)
        if found is not None:
            found.channels |= bit
            self._seen[place] += bool(drafts) and found.at >= drafts[0].at
            if id is not None:
                self._by_id[id] = found
        return found

    def _look_up(self, text: str, place: int, id: str | None) -> D | None:
        index, bit = self._indexes.setdefault(place, {}), 1 << place
        for draft in self._drafts[self._indexed[place] :]:
            index.setdefault(draft.text, deque()).append(draft)
        self._indexed[place] = len(self._drafts)
        waiting = index.get(text)
        while waiting:
            draft = waiting[0]
            if _fits(draft, bit, id):
                return draft
            if not draft.channels & bit:
                return None  # another record's: its own copy may still come
            waiting.popleft()
        return None


def _fits(draft: Draft | Thought, bit: int, id: str | None) -> bool:
    return not draft.channels & bit and (id is None or draft.id is None or draft.id == id)
