"""Decisions and what their writing did, as frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import polars as pl

from crystal_nb import ecma
from crystal_nb.frames import Column, Table, to_frame

if TYPE_CHECKING:
    from crystal_nb.decisions import Step
    from crystal_nb.report import Outcome
    from crystal_nb.store_changes import Change

__all__ = ["CHANGES", "DECISIONS", "POLICY_SCORES", "STOLEN", "changes", "decisions", "policy_scores", "stolen"]

_STEP = pl.Struct({"step": pl.String, "stored": pl.String, "now": pl.String, "answer": pl.Boolean})
DECISIONS: Table = {
    "source": Column(pl.String, "Adapter name."),
    "candidate_id": Column(pl.String, "Id of the candidate."),
    "action": Column(pl.String, "skip, skip-short, metadata-update, replace, insert or error."),
    "reason": Column(pl.String, "Why, in a sentence."),
    "path": Column(pl.String, "The questions and answers that led there."),
    "id": Column(pl.String, "Id of the row that is written; null when nothing was parsed."),
    "content_hash": Column(pl.String, "Hash of what was parsed; null when nothing was."),
    "parser_version": Column(pl.String, "Rules that parsed it."),
    "message_count": Column(pl.Int64, "Messages that were parsed."),
    "stolen": Column(pl.UInt32, "Messages taken from other conversations by the writing."),
    "notes_deleted": Column(pl.UInt32, "Notes dropped by the writing."),
    "file_path": Column(pl.String, "File or database of the candidate."),
    "steps": Column(pl.List(_STEP), "The path with the values compared."),
}
STOLEN: Table = {
    "source": Column(pl.String, "Adapter name of the conversation that took the message."),
    "conversation_id": Column(pl.String, "Id of its row."),
    "message_id": Column(pl.String, "The shared message id."),
    "from_conversation": Column(pl.String, "Id of the conversation that lost the row."),
}

CHANGES: Table = {
    "table": Column(pl.String, "Name of the table."),
    "change": Column(pl.String, "added, changed, removed, or stolen from another conversation."),
    "key": Column(pl.String, "What identifies the row."),
    "source": Column(pl.String, "Source of the conversation it belongs to, where the table says it."),
    "conversation_id": Column(pl.String, "Conversation it belongs to; of a removed row, belonged to."),
    "from_conversation": Column(pl.String, "Conversation that a stolen message belonged to."),
    "columns": Column(pl.List(pl.String), "Columns with other values, of a row that changed."),
}
POLICY_SCORES: Table = {
    "policy": Column(pl.String, "Name of the policy."),
    "candidates": Column(pl.UInt32, "Candidates."),
    "parses": Column(pl.UInt32, "Candidates that are parsed."),
    "needless_parses": Column(pl.UInt32, "Of these, those that bring no new content."),
    "false_skips": Column(pl.UInt32, "Skipped as unchanged, although a parse gives another hash than the stored one."),
    "replaces": Column(pl.UInt32, "Conversations that are replaced."),
    "needless_replaces": Column(pl.UInt32, "Of these, those whose stored rows are equal already."),
    "errors": Column(pl.UInt32, "Candidates that fail."),
    "rows_stolen": Column(pl.UInt32, "Messages taken from other conversations."),
    "incomplete": Column(pl.UInt32, "Conversations with fewer or more message rows than their count says, afterwards."),
    "duplicates": Column(pl.UInt32, "Conversations whose content their source has already, afterwards."),
}


def decisions(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """One row per candidate."""
    return to_frame(DECISIONS, map(_decision_row, outcomes))


def _decision_row(outcome: Outcome) -> dict[str, Any]:
    d = outcome.decision
    return {
        "source": d.source,
        "candidate_id": d.candidate_id,
        "action": d.action,
        "reason": d.reason,
        "path": d.path,
        "id": d.id,
        "content_hash": d.content_hash,
        "parser_version": d.parser_version,
        "message_count": d.message_count,
        "stolen": len(outcome.applied.stolen),
        "notes_deleted": outcome.applied.notes_deleted,
        "file_path": outcome.candidate.file_path,
        "steps": [_step_row(step) for step in d.steps],
    }


def _step_row(step: Step) -> dict[str, Any]:
    return {"step": step.name, "stored": _text(step.before), "now": _text(step.now), "answer": step.answer}


def _text(value: Any) -> str | None:
    return None if value is None else ecma.to_utf8_safe(ecma.to_text(value))


def stolen(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """One row per message that changed its conversation."""
    rows = [
        {"source": o.decision.source, "conversation_id": o.decision.id, "message_id": m, "from_conversation": owner}
        for o in outcomes
        for m, owner in o.applied.stolen
    ]
    return to_frame(STOLEN, rows)


def changes(found: Iterable[Change]) -> pl.DataFrame:
    """One row per row that changed, tables and keys in order."""
    rows = sorted(found, key=lambda c: (c.table, c.key, c.change))
    return to_frame(CHANGES, (_change_row(c) for c in rows))


def _change_row(c: Change) -> dict[str, Any]:
    return {
        "table": c.table,
        "change": c.change,
        "key": c.key,
        "source": c.source,
        "conversation_id": c.conversation_id,
        "from_conversation": c.from_conversation,
        "columns": list(c.columns),
    }


def policy_scores(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """One row per policy."""
    return to_frame(POLICY_SCORES, rows)
