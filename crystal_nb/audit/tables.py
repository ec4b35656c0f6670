"""The frames of an audit: the findings, and the counts behind each question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from crystal_nb.audit.findings import QUESTIONS, Finding
from crystal_nb.frames import Column, Table, to_frame

__all__ = [
    "CAUSES",
    "COSTS",
    "COVERAGE",
    "FINDINGS",
    "IDS",
    "INTEGRITY",
    "KINDS_READ",
    "MIX",
    "MOVES",
    "POWER",
    "SKIPS",
    "WASTE",
    "findings_frame",
    "table",
]

_SOURCE = Column(pl.String, "Adapter name.")
_VERSION = Column(pl.String, "Rules that parsed it.")
_TOOL = Column(pl.String, "Version of the tool that wrote the conversation; null where nothing says it.")

FINDINGS: Table = {
    "question": Column(pl.Enum(list(QUESTIONS)), "Question that it answers."),
    "kind": Column(pl.String, "Kind of finding; audit.KINDS says what each means."),
    "severity": Column(pl.Enum(["fault", "note"]), "fault: something is wrong; note: worth knowing."),
    "source": _SOURCE,
    "conversation_id": Column(pl.String, "Namespaced id; null where it concerns several conversations."),
    "detail": Column(pl.String, "One sentence."),
    "evidence": Column(pl.String, "The values that show it; never the text of a message."),
    "count": Column(pl.Int64, "Conversations, messages or rows concerned."),
}
SKIPS: Table = {
    "source": Column(pl.String, "Adapter name; all of them together: null."),
    "candidates": Column(pl.UInt32, "Candidates there are."),
    "parsed": Column(pl.UInt32, "Those that were parsed; all, or the sample."),
    "skipped": Column(pl.UInt32, "Those of them that the pinned check of size and time would skip."),
    "stale": Column(pl.UInt32, "Those of them whose messages differ from what is stored."),
    "undecidable": Column(pl.UInt32, "Those that fail, whose hash moves, that have none stored or another parser's."),
    "upper_bound": Column(
        pl.Float64,
        "Exact 95 % upper confidence bound of the share that is stale, of those that can be decided; null: all parsed.",
    ),
}
WASTE: Table = {
    "source": _SOURCE,
    "reason": Column(pl.String, "short, never-found, churn or parse-fails."),
    "file_path": Column(pl.String, "File or database; null where each has its own."),
    "candidates": Column(pl.UInt32, "Candidates that are parsed for nothing."),
    "bytes": Column(pl.Int64, "Size of their files, each counted once."),
}
IDS: Table = {
    "source": _SOURCE,
    "conversations": Column(pl.UInt32, "Stored conversations."),
    "message_count": Column(pl.Int64, "Messages that they say they have."),
    "rows": Column(pl.Int64, "Messages that are there."),
    "incomplete": Column(pl.UInt32, "Conversations with fewer rows than they say."),
    "drifted": Column(pl.UInt32, "Conversations whose candidate has another id."),
}
POWER: Table = {
    "field": Column(pl.String, "Field of a conversation or message."),
    "hashed": Column(pl.Boolean, "Whether the hash has it."),
    "groups": Column(pl.UInt32, "Groups of stored conversations that only this field tells apart; hashed ones only."),
    "conversations": Column(pl.UInt32, "Conversations in those groups."),
    "pairs": Column(pl.Int64, "Pairs of such conversations."),
    "versions": Column(pl.UInt32, "Conversations whose stored and present version only this field tells apart."),
    "ignored": Column(pl.UInt32, "Conversations in which it changed and the hash did not; fields that are not hashed."),
    "example_a": Column(pl.String, "One conversation of such a group, namespaced."),
    "example_b": Column(pl.String, "Another one."),
}
INTEGRITY: Table = {
    "source": _SOURCE,
    "conversations": Column(pl.UInt32, "Stored conversations."),
    "equal": Column(pl.UInt32, "Those whose rows hash to the stored hash."),
    "different": Column(pl.UInt32, "Those whose rows don't."),
    "unknown": Column(pl.UInt32, "Those without a stored hash."),
}
CAUSES: Table = {
    "cause": Column(pl.String, "Message of the import log without paths, ids, numbers and quoted text."),
    "entries": Column(pl.UInt32, "Entries of the log."),
    "files": Column(pl.UInt32, "Files concerned."),
    "first_at": Column(pl.String, "When the first one was written."),
    "last_at": Column(pl.String, "When the last one was written."),
}
MOVES: Table = {
    "source": _SOURCE,
    "parser_version": _VERSION,
    "field": Column(pl.String, "What moves: content_hash, a field of the conversation, or of its messages."),
    "conversations": Column(pl.UInt32, "Conversations in which it does."),
    "parsed": Column(pl.UInt32, "Conversations that were parsed twice by these rules."),
}
KINDS_READ: Table = {
    "source": _SOURCE,
    "parser_version": _VERSION,
    "tool_version": _TOOL,
    "month": Column(pl.String, "Year and month of the conversation's first message; null where it has no valid time."),
    "kind": Column(pl.String, "Kind of raw record as the tool names it."),
    "status": Column(pl.String, "What became of it."),
    "reason": Column(pl.String, "Why it was dropped, how merged, or what of it is unknown."),
    "records": Column(pl.UInt32, "Raw records."),
    "known": Column(
        pl.Boolean, "Whether the newest rules know the kind; null: these are older ones, which can't tell."
    ),
}
_SHARE = "Share of the messages, 0 to 1: "
MIX: Table = {
    "source": _SOURCE,
    "parser_version": _VERSION,
    "tool_version": _TOOL,
    "month": Column(pl.String, "Year and month of the messages; null where they have no valid time."),
    "messages": Column(pl.UInt32, "Stored messages."),
    "user": Column(pl.Float64, f"{_SHARE}of the type user."),
    "assistant": Column(pl.Float64, f"{_SHARE}of the type assistant."),
    "tool_use": Column(pl.Float64, f"{_SHARE}with a tool call."),
    "code": Column(pl.Float64, f"{_SHARE}with a code fence."),
    "no_role": Column(pl.Float64, f"{_SHARE}without a role."),
    "no_thinking": Column(pl.Float64, f"{_SHARE}without reasoning."),
    "no_parent": Column(pl.Float64, f"{_SHARE}without a message before it."),
    "no_text": Column(pl.Float64, f"{_SHARE}with no or empty text."),
}
COSTS: Table = {
    "source": _SOURCE,
    "phase": Column(pl.String, "detect, scan, parse, or scan again: a second scan with what the first one kept."),
    "conversations": Column(pl.UInt32, "Conversations counted, listed or parsed."),
    "seconds": Column(pl.Float64, "Wall-clock time."),
    "files_opened": Column(pl.UInt32, "Files opened by Python, databases aside."),
    "bytes_read": Column(
        pl.Int64, "Bytes of files read or copied by Python; SQLite's own reading shows in queries and steps."
    ),
    "folders_listed": Column(pl.UInt32, "Folders listed."),
    "databases_opened": Column(pl.UInt32, "SQLite connections made to the tool's databases or copies of them."),
    "queries": Column(pl.UInt32, "SQL statements run on them."),
    "steps": Column(pl.Int64, "Thousands of steps of SQLite's machine."),
}
_PLACE = "Whether it is in "
COVERAGE: Table = {
    "source": _SOURCE,
    "registered": Column(pl.Boolean, f"{_PLACE}the registry of adapters."),
    "supported": Column(pl.Boolean, f"{_PLACE}the list of sources that a remote store accepts."),
    "default": Column(pl.Boolean, f"{_PLACE}the default of enabled sources."),
    "restored": Column(pl.Boolean, "Whether loading a configuration that lacks it brings it back."),
    "validated": Column(pl.Boolean, "Whether the check of payloads takes its name."),
    "watched": Column(pl.Boolean, "Whether its folder is known on this platform."),
}


def findings_frame(findings: Iterable[Finding]) -> pl.DataFrame:
    """One row per finding.

    >>> findings_frame([]).columns[:3]
    ['question', 'kind', 'severity']
    """
    return to_frame(FINDINGS, map(_row, findings))


def _row(f: Finding) -> dict[str, Any]:
    return {
        "question": f.question,
        "kind": f.kind,
        "severity": f.severity,
        "source": f.source,
        "conversation_id": f.conversation_id,
        "detail": f.detail,
        "evidence": f.evidence,
        "count": f.count,
    }


def table(name: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """A frame of one of the tables here, by its lower-case name.

    >>> table("integrity", []).height
    0
    """
    known: Table = globals()[name.upper()]
    return to_frame(known, rows)
