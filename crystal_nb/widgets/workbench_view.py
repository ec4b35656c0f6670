"""What the parser workbench knows: raw records and messages of a trial, which came from which, two trials side by side.

Pure: no widget is needed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.comparison import Alignment, align
from crystal_nb.hashing import content_hash
from crystal_nb.records import Message, counted, printable
from crystal_nb.trial import ParserTrial

__all__ = ["MESSAGE_COLUMNS", "RECORD_COLUMNS", "SHOWN", "Bench", "Row", "Side", "Versions"]

SHOWN = ("all", "messages", "metadata", "dropped", "errors")
"""Raw records that can be listed."""
RECORD_COLUMNS = ("place", "raw record", "fate")
MESSAGE_COLUMNS = ("message", "type", "text")
_SIGNS = {"kept": "→", "merged": "↗", "metadata": "·", "dropped": "✗", "error": "!"}
_STATUSES = {
    "messages": ("kept", "merged"),
    "metadata": ("metadata",),
    "dropped": ("dropped",),
    "errors": ("error", ""),
}


class Row(Struct, frozen=True):
    """One raw record and what became of it."""

    number: int
    place: str
    raw: str
    """Beginning of the record, escaped."""
    status: str
    """kept, merged, metadata, dropped, error, or nothing where the parse never came to it."""
    reason: str
    messages: tuple[int, ...] = ()
    """All messages that it became or went into."""

    @property
    def message(self) -> int | None:
        """The first one of them."""
        return self.messages[0] if self.messages else None

    @property
    def fate(self) -> str:
        """What became of it, in words."""
        if self.status in ("kept", "merged"):
            told = f"{_SIGNS[self.status]} {self.status} {', '.join(map(str, self.messages))}"
            return f"{told}: {self.reason}" if self.reason else told
        if not self.status:
            return "not reached"
        return f"{_SIGNS[self.status]} {self.status}{': ' if self.reason else ''}{self.reason}"


class Side(Struct, frozen=True):
    """The rows of one side that are shown."""

    label: str
    columns: tuple[str, ...]
    rows: list[list[str]]
    """Cells of the rows in the window."""
    keys: Sequence[int]
    """Numbers of their records or messages."""
    first: int
    """Place of the first one of them."""
    total: int
    """Rows that there are, with those beyond the window."""
    beyond: tuple[int, int] = (-1, -1)
    """Numbers of the records or messages before and after them."""
    selected: int | None = None
    """Which one of the shown rows is selected."""
    marked: tuple[int, ...] = ()
    """Those of the shown rows that belong to what is selected on the other side."""


class Bench:
    """A trial as rows on both sides.

    Parameters
    ----------
    trial
        What `try_parser` gave.
    """

    def __init__(self, trial: ParserTrial) -> None:
        self.trial = trial
        fates = trial.parsed.fates if trial.parsed else ()
        became = [fate.messages for fate in fates]
        became += [()] * (trial.records.height - len(became))
        self.rows = [_row(row, to) for row, to in zip(trial.records.to_dicts(), became, strict=True)]
        self.messages: tuple[Message, ...] = trial.parsed.conversation.messages if trial.parsed else ()

    @cached_property
    def records_of(self) -> dict[int, list[int]]:
        """Records behind each message."""
        found: dict[int, list[int]] = {}
        for row in self.rows:
            for message in self.messages_of(row.number):
                found.setdefault(message, []).append(row.number)
        return found

    def messages_of(self, number: int) -> tuple[int, ...]:
        """Messages that a record became or went into."""
        row = self.rows[number]
        return row.messages if row.status in ("kept", "merged") else ()

    @cached_property
    def counts(self) -> dict[str, int]:
        """Records by fate; they add up to all records."""
        counts = {status: sum(row.status == status for row in self.rows) for status in _SIGNS}
        return {**counts, "not reached": sum(not row.status for row in self.rows)}

    def shown(self, what: str) -> list[int]:
        """Numbers of the records to list."""
        if what == "all":
            return [row.number for row in self.rows]
        return [row.number for row in self.rows if row.status in _STATUSES[what]]

    def raw(self, number: int) -> str:
        """The whole record as text; its beginning where it can't be read."""
        if number < len(self.trial.raw):
            return self.trial.raw[number].data.decode("utf-8", "backslashreplace")
        return self.rows[number].raw

    def headline(self) -> str:
        """The books of the trial in a line: every record is in one of the counts."""
        told = ", ".join(f"{number:,} {name}" for name, number in self.counts.items() if number)
        return f"{counted(len(self.rows), 'raw record')} = {told or 'none'}; {counted(len(self.messages), 'message')}"

    @property
    def content_hash(self) -> str:
        """Hash of what was parsed; empty where nothing was."""
        return content_hash(self.trial.parsed.conversation) if self.trial.parsed else ""

    def record_cells(self, number: int) -> list[str]:
        """A record as cells of `RECORD_COLUMNS`."""
        row = self.rows[number]
        return [printable(cell[:160]) for cell in (row.place, row.raw, row.fate)]

    def message_cells(self, index: int) -> list[str]:
        """A message as cells of `MESSAGE_COLUMNS`."""
        message = self.messages[index]
        return [printable(cell[:160]) for cell in (str(index), ecma.to_text(message.type), message.content[:160])]


def _row(row: dict[str, Any], messages: tuple[int, ...]) -> Row:
    place = f"line {row['line']}" if row["line"] is not None else row["key"] or f"record {row['record']}"
    return Row(row["record"], place, row["raw"] or "", row["status"] or "", row["reason"] or "", messages)


class Versions:
    """Two trials of the same file, record by record and message by message.

    Parameters
    ----------
    a, b
        The trials.
    """

    def __init__(self, a: Bench, b: Bench) -> None:
        self.a, self.b = a, b

    @cached_property
    def alignment(self) -> Alignment:
        """How the messages stand to one another."""
        return align(self.a.messages, self.b.messages)

    @cached_property
    def differing(self) -> list[tuple[Row | None, Row | None]]:
        """Records with another fate, or whose message is another one."""
        places = {row.place: row for row in self.b.rows}
        pairs: list[tuple[Row | None, Row | None]] = [(row, places.pop(row.place, None)) for row in self.a.rows]
        pairs += [(None, row) for row in places.values()]
        return [pair for pair in pairs if self._differ(*pair)]

    def _differ(self, a: Row | None, b: Row | None) -> bool:
        if a is None or b is None or (a.status, a.reason) != (b.status, b.reason):
            return True
        return _hashed(self.a.messages, a.messages) != _hashed(self.b.messages, b.messages)


def _hashed(messages: Sequence[Message], places: Sequence[int]) -> list[Any]:
    found = [messages[n] for n in places if n < len(messages)]
    return [(m.type, m.role, m.content, m.has_tool_use, m.has_code, m.thinking) for m in found]
