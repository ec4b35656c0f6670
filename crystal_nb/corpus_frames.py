"""The frames of a corpus, built column by column since they can be long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import polars as pl

from crystal_nb import ecma
from crystal_nb.details import Details, Link
from crystal_nb.frames import (
    CONVERSATIONS,
    DETAILS,
    FAILURES,
    FATES,
    MESSAGES,
    columns_frame,
    list_series,
    repeat_index,
    running_index,
    text_series,
    to_frame,
)
from crystal_nb.identity import namespace
from crystal_nb.records import Conversation, Message, excerpt

if TYPE_CHECKING:
    from crystal_nb.corpus import Failure, ParsedConversation

__all__ = ["conversations", "failures", "fates", "messages"]


def conversations(parsed: Sequence[ParsedConversation]) -> pl.DataFrame:
    """One row per conversation."""
    return to_frame(CONVERSATIONS, map(_conversation_row, range(len(parsed)), parsed))


def _conversation_row(index: int, p: ParsedConversation) -> dict[str, Any]:
    c = p.conversation
    counts = Counter([fate.status for fate in p.fates])
    return {
        "conversation_index": index,
        "source": c.source,
        "id": c.id,
        "conversation_id": p.conversation_id,
        "candidate_id": p.candidate.id,
        "slug": c.slug,
        "project_name": c.project_name,
        "project_dir": c.project_dir,
        "cwd": c.cwd,
        "git_branch": c.git_branch,
        "message_count": len(c.messages),
        "first_message_at": _raw_time(c.messages[:1]),
        "last_message_at": _raw_time(c.messages[-1:]),
        "content_hash": p.content_hash,
        "parent_conversation_id": _parent_id(c),
        "links": [_link_text(link) for link in c.links] or None,
        "parser_version": p.parser_version,
        "records": len(p.fates),
        "kept": counts["kept"],
        "merged": counts["merged"],
        "metadata": counts["metadata"],
        "dropped": counts["dropped"],
        "file_path": p.candidate.file_path,
    }


def _parent_id(c: Conversation) -> str | None:
    return None if c.parent_id is None else namespace(c.source, ecma.to_text(c.parent_id))


def _link_text(link: Link) -> str:
    certain = "" if link.is_certain else ", undecidable"
    target = "?" if link.target is None else ecma.to_utf8_safe(ecma.to_text(link.target))
    return f"{link.kind} {target} ({link.evidence}{certain})"


def _raw_time(messages: Sequence[Message]) -> Any:
    """Time of the one message given, unless there is none or it is the clock's."""
    return next((m.timestamp for m in messages if not m.timestamp_from_clock), None)


def messages(parsed: Sequence[ParsedConversation]) -> pl.DataFrame:
    """One row per message."""
    counts = [len(p.conversation.messages) for p in parsed]
    rows = [m for p in parsed for m in p.conversation.messages]
    columns: dict[str, Sequence[Any] | pl.Series] = {  # written out, as an attribute by name takes twice as long
        "type": [m.type for m in rows],
        "role": [m.role for m in rows],
        "content": [m.content for m in rows],
        "has_tool_use": [m.has_tool_use for m in rows],
        "has_code": [m.has_code for m in rows],
        "thinking": [m.thinking for m in rows],
        "id": [m.id for m in rows],
        "parent_uuid": [m.parent_uuid for m in rows],
        "timestamp": [None if m.timestamp_from_clock else m.timestamp for m in rows],
    }
    columns |= _details(parsed, rows)
    return columns_frame(MESSAGES, {**_place(parsed, counts), "index": running_index(counts), **columns})


def _details(parsed: Sequence[ParsedConversation], rows: list[Message]) -> dict[str, Sequence[Any] | pl.Series]:
    """Columns that only careful rules fill."""
    details = [m.details for m in rows]
    if not any(details):
        return {n: pl.repeat(None, len(rows), dtype=column.dtype, eager=True) for n, column in DETAILS.items()}
    known = [d or _NO_DETAILS for d in details]
    tools = [d.tools for d in known]
    calls, counts = [call for t in tools for call in t], list(map(len, tools))
    parents = [parent for p in parsed for parent in repeat(_parent_id(p.conversation), len(p.conversation.messages))]
    return {
        "tool_name": list_series("tool_name", [call.name for call in calls], counts),
        "tool_input": list_series("tool_input", [call.input for call in calls], counts),
        "tool_result": list_series("tool_result", [call.result for call in calls], counts),
        "model": [d.model for d in known],
        "input_tokens": [d.input_tokens for d in known],
        "output_tokens": [d.output_tokens for d in known],
        "cache_tokens": [d.cache_tokens for d in known],
        "is_sidechain": [d.is_sidechain for d in known],
        "parent_conversation_id": parents,
        "request_id": [d.request_id for d in known],
        "marks": list_series("marks", [mark for d in known for mark in d.marks], [len(d.marks) for d in known]),
    }


_NO_DETAILS = Details()


def fates(parsed: Sequence[ParsedConversation]) -> pl.DataFrame:
    """One row per raw record."""
    counts = [len(p.fates) for p in parsed]
    rows = [f for p in parsed for f in p.fates]
    columns: dict[str, list[Any] | pl.Series] = {
        "status": [f.status for f in rows],
        "kind": [f.kind for f in rows],
        "reason": [f.reason for f in rows],
        "message_index": [f.message_index for f in rows],
        "line": [f.line for f in rows],
        "offset": [f.offset for f in rows],
        "size": [f.size for f in rows],
        "key": [f.key for f in rows],
        "excerpt": _excerpts([f.head for f in rows]),
        "note": [f.note for f in rows],
    }
    return columns_frame(FATES, {**_place(parsed, counts), "record": running_index(counts), **columns})


def _excerpts(heads: list[bytes]) -> pl.Series:
    """Heads as harmless text, null where there is none; those of plain ASCII, nearly all, at once."""
    plain = pl.Series([h if h and h.isascii() else None for h in heads], dtype=pl.Binary).cast(pl.String)
    harmless = plain.set(plain.str.contains("[^ -~]"), None)
    odd = [i for i in harmless.is_null().arg_true() if heads[i]]
    return harmless.scatter(odd, pl.Series([excerpt(heads[i]) for i in odd], dtype=pl.String)) if odd else harmless


def _place(parsed: Sequence[ParsedConversation], counts: Sequence[int]) -> dict[str, pl.Series]:
    """The columns that say where a row belongs."""
    index = repeat_index(counts)
    sources = text_series("source", [p.conversation.source for p in parsed])
    ids = text_series("conversation_id", [p.conversation_id for p in parsed])
    return {"source": sources.gather(index), "conversation_id": ids.gather(index), "conversation_index": index}


def failures(failed: Sequence[Failure]) -> pl.DataFrame:
    """One row per candidate that could not be parsed."""
    return to_frame(FAILURES, map(_failure_row, failed))


def _failure_row(failure: Failure) -> dict[str, Any]:
    candidate = failure.candidate
    return {
        "source": candidate.source,
        "id": candidate.id,
        "error": failure.error,
        "message": failure.message,
        "line": failure.line,
        "offset": failure.offset,
        "file_path": candidate.file_path,
    }
