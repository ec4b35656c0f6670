"""State of one careful Codex parse: the messages so far, the turn, open calls, facts of the session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from crystal_nb import ecma
from crystal_nb.adapters.base import Outcome
from crystal_nb.adapters.codex_drafts import COMPLETED, ITEM, Call, Copies, Draft, Thought
from crystal_nb.adapters.codex_rules import CodexRules
from crystal_nb.adapters.codex_shapes import Usage, as_text
from crystal_nb.details import Link
from crystal_nb.records import Message

__all__ = ["Thread", "as_time"]


def as_time(value: Any) -> str | int | float | None:
    """A record's time as it stands there, None where it is none.

    >>> as_time("2026-01-01T00:00:00Z"), as_time(""), as_time(5), as_time(True), as_time(float("inf"))
    ('2026-01-01T00:00:00Z', None, 5, None, None)
    """
    if isinstance(value, str):
        return value or None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and abs(value) < 1e300 else None


@dataclass(slots=True)
class Thread:
    """Messages are added in file order and never move, so a fate can name its message at once."""

    rules: CodexRules
    path: str
    own_place: str
    """What comes before line numbers in ids."""
    place: str = ""
    """The same of the record at hand; other files' lines and a document's items need their own."""
    line: int = 0
    time: str | int | float | None = None
    """Time of the record at hand."""
    drafts: list[Draft] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    """Positions of the messages that no rollback undid."""
    id: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    title: str | None = None
    history_base: Any = None
    forked_from: str | None = None
    copied_from: str | None = None
    """Thread whose session_meta stands here as a copy."""
    looked_at: set[str] = field(default_factory=set)
    """Parents whose turns were compared."""
    parent_id: str | None = None
    links: list[Link] = field(default_factory=list)
    has_meta: bool = False
    skips_until: str | None = None
    """Turn with which the own part of a fork begins; what comes before is the parent's."""
    turn: str | None = None
    model: str | None = None
    turn_cwd: str | None = None
    answer: Draft | None = None
    """Last assistant message of the turn."""
    prompts: Copies[Draft] = field(default_factory=Copies)
    answers: Copies[Draft] = field(default_factory=Copies)
    notes: Copies[Draft] = field(default_factory=Copies)
    summaries: Copies[Thought] = field(default_factory=Copies)
    raw_thoughts: Copies[Thought] = field(default_factory=Copies)
    calls: dict[str, Call] = field(default_factory=dict)
    totals: Usage | None = None
    pending: list[str] = field(default_factory=list)
    """Marks for the next message."""
    has_answered: bool = False

    def __post_init__(self) -> None:
        self.place = self.own_place

    def add(self, type: str, text: str, *, role: str = "", id: Any = None, kept: bool = True) -> Draft:
        """Append a message of the record at hand."""
        drafts = self.drafts
        at, key = len(drafts), f"{self.place}{self.line}"
        model = self.model if type == "assistant" else None
        draft = Draft(type, role or type, at, text, as_text(id) or None, key, self.time, 0, kept, self.turn, model)
        if type == "assistant":
            self.answer, self.has_answered = draft, True
        if self.pending:
            draft.marks, self.pending = tuple(self.pending), []
        self.live.append(at)
        drafts.append(draft)
        return draft

    def start_turn(self, turn: Any) -> None:
        """A new turn begins, where the id says so."""
        if not (isinstance(turn, str) and turn) or turn == self.turn:
            return
        self.turn = turn
        self._part()
        if self.has_answered:
            self.prompts.clear()
            self.has_answered = False

    def _part(self) -> None:
        self.answer = None
        self.answers.clear()
        self.notes.clear()
        self.summaries.clear()
        self.raw_thoughts.clear()

    def prompt(self, kind: str, text: str, place: int, id: Any = None, marks: list[str] | None = None) -> Outcome:
        """A typed prompt, or another copy of it."""
        if self.turn is None and self.has_answered:
            self.prompts.clear()
        draft = self.prompts.find(text, place, as_text(id) or None)
        if draft is not None:
            draft.id = draft.id or as_text(id) or None
            if marks:
                draft.mark(*marks)
            return "merged", kind, "copy of the prompt", draft.at
        if self.turn is None:
            self._part()
        self.answer, self.has_answered = None, False
        draft = self.add("user", text, id=id)
        draft.channels = 1 << place
        if marks:
            draft.mark(*marks)
        self.prompts.add(draft, place)
        return "kept", kind, None, draft.at

    def say(self, kind: str, text: str, place: int, id: Any = None, marks: list[str] | None = None) -> Outcome:
        """A text of the assistant, or another copy of it."""
        record_id = id if type(id) is str and id else None
        draft = self.answers.find(text, place, record_id)
        if draft is not None:
            draft.id = draft.id or record_id
            if marks:
                draft.mark(*marks)
            return "merged", kind, "copy of the answer", draft.at
        draft = self.answer
        if draft is None or draft.is_kept:
            draft = self.add("assistant", text, id=record_id)
        else:  # so far there was only reasoning
            draft.text, draft.id, draft.key, draft.time = text, record_id, f"{self.place}{self.line}", self.time
            draft.is_kept = True
        draft.channels = 1 << place
        if marks:
            draft.mark(*marks)
        self.answers.add(draft, place)
        return "kept", kind, None, draft.at

    def think(self, kind: str, texts: list[str], place: int, form: str = "summary") -> Outcome:
        """Reasoning; it belongs to the message that follows, and begins it."""
        at, copied, thoughts = None, 0, self.summaries if form == "summary" else self.raw_thoughts
        for text in texts:
            found = thoughts.find(text, place)
            if found is None:
                draft = self.answer
                if draft is None or draft.is_kept:
                    draft = self.add("assistant", "", kept=False)
                draft.thinking.append(text)
                thoughts.add(Thought(draft.at, text, 1 << place), place)
                at = draft.at
            else:
                at, copied = found.at, copied + 1
        return "merged", kind, "copy of reasoning" if copied == len(texts) else "reasoning", at

    def note(self, kind: str, text: str, place: int, *marks: str, role: str = "system", id: Any = None) -> Outcome:
        """Something that happened, or was said by neither the user nor the assistant."""
        draft = self.notes.find(text, place, as_text(id) or None)
        if draft is not None:
            draft.mark(*marks)
            return "merged", kind, "copy of the event", draft.at
        draft = self.add("system", text, role=role, id=id)
        draft.channels = 1 << place
        draft.mark(*marks)
        self.notes.add(draft, place)
        return "kept", kind, None, draft.at

    def call(self, kind: str, call: Call, place: int) -> Outcome:
        """A tool call; one that is known already is filled up."""
        known = self.calls.get(call.id) if call.id else None
        if known is not None and (place != ITEM or not known.is_called or known.input == call.input):
            return "merged", kind, "more of a call", self._fill(known, call, place)
        draft, status = self.answer, "merged"
        if draft is None:
            draft, status = self.add("assistant", ""), "kept"
        elif not draft.is_kept:
            draft.is_kept, draft.key, status = True, f"{self.place}{self.line}", "kept"
        call.at = draft.at
        draft.calls.append(call)
        if call.id:
            self.calls[call.id] = call
        return ("kept", kind, None, draft.at) if status == "kept" else ("merged", kind, "call", draft.at)

    def _fill(self, known: Call, more: Call, place: int) -> int:
        if place == ITEM and more.is_called and not known.is_called:
            known.name, known.input, known.is_called = more.name or known.name, more.input, True
        known.input = more.input if known.input is None else known.input
        if more.result is not None and (known.result is None or (more.has_output and not known.has_output)):
            known.result, known.has_output = more.result, more.has_output
        if known.is_error is None or place == COMPLETED:
            known.is_error = more.is_error if more.is_error is not None else known.is_error
        return known.at

    def result(
        self, kind: str, id: Any, result: str | bytes | None, is_error: bool | None, marks: list[str] | None = None
    ) -> Outcome:
        """A tool's answer; without its call it stands for the call until that comes."""
        call_id = id if type(id) is str else None
        known = self.calls.get(call_id) if call_id else None
        if known is None:
            outcome = self.call(kind, Call("", call_id, None, result, is_error, 0, False, True), ITEM)
            return outcome if outcome[0] == "kept" else ("merged", kind, "result without its call", outcome[3])
        if not known.has_output:
            known.result, known.has_output = result, True
        if is_error is not None:
            known.is_error = is_error
        if marks:
            self.drafts[known.at].mark(*marks)
        return "merged", kind, "result of the call", known.at

    def count(self, usage: Usage | None, totals: Usage | None) -> str:
        """Add the tokens of one response to its message; repeated snapshots don't count again."""
        before, draft = self.totals, self.answer
        if type(totals) is Usage:
            self.totals = totals
        if type(usage) is not Usage:
            return "no usage of the last response"
        if before is not None and totals == before:
            return "repeated snapshot"
        if draft is None:
            return "no message to count it for"
        draft.input_tokens = _sum(draft.input_tokens, usage.input_tokens)
        draft.output_tokens = _sum(draft.output_tokens, usage.output_tokens)
        draft.cache_tokens = _sum(draft.cache_tokens, usage.cached_input_tokens)
        return f"tokens of message {draft.at}"

    def roll_back(self, turns: int) -> int:
        """Mark the last user turns as reverted; returns how many messages that were."""
        count = 0
        while turns > 0 and self.live:
            draft = self.drafts[self.live.pop()]
            draft.mark("reverted")
            turns -= draft.type == "user"
            count += 1
        self.prompts.clear()
        self._part()
        return count

    def messages(self) -> tuple[Message, ...]:
        """The finished messages; ids are the records' own where they are unique."""
        side = True if self.parent_id is not None else None
        used: set[str] = set()
        numbers: dict[str, int] = {}
        made = []
        for draft in self.drafts:
            id = own = draft.id or draft.key
            while id in used:
                numbers[own] = numbers.get(own, 1) + 1
                id = f"{own}#{numbers[own]}"
            used.add(id)
            made.append(draft.message(id, side))
        return tuple(made)

    def title_or(self, name: Any) -> str | None:
        """The index's name for the thread, else the last one that an event gave."""
        return name if isinstance(name, str) and ecma.trim(name) else self.title


def _sum(before: int | None, more: Any) -> int | None:
    if type(more) is not int:
        return before
    return more if before is None else before + more
