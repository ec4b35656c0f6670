"""The frames of a corpus, built column by column since they can be long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import polars as pl

from crystal_nb.frames import (
    CONVERSATIONS,
    FAILURES,
    FATES,
    MESSAGES,
    columns_frame,
    repeat_index,
    running_index,
    text_series,
    to_frame,
)
from crystal_nb.records import excerpt

if TYPE_CHECKING:
    from crystal_nb.corpus import Failure, ParsedConversation
    from crystal_nb.records import Message

__all__ = ["conversations", "failures", "fates", "messages"]


def conversations(parsed: Sequence[ParsedConversation]) -> pl.DataFrame:
    """One row per conversation."""
    return to_frame(CONVERSATIONS, map(_conversation_row, parsed))


def _conversation_row(p: ParsedConversation) -> dict[str, Any]:
    c = p.conversation
    counts = Counter(fate.status for fate in p.fates)
    return {
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
        "parser_version": p.parser_version,
        "records": len(p.fates),
        "kept": counts["kept"],
        "merged": counts["merged"],
        "metadata": counts["metadata"],
        "dropped": counts["dropped"],
        "file_path": p.candidate.file_path,
    }


def _raw_time(messages: Sequence[Message]) -> Any:
    """Time of the one message given, unless there is none or it is the clock's."""
    return next((m.timestamp for m in messages if not m.timestamp_from_clock), None)


def messages(parsed: Sequence[ParsedConversation]) -> pl.DataFrame:
    """One row per message."""
    counts = [len(p.conversation.messages) for p in parsed]
    rows = list(chain.from_iterable(p.conversation.messages for p in parsed))
    columns = {name: list(map(attrgetter(name), rows)) for name in _MESSAGE_FIELDS}
    columns["timestamp"] = [None if m.timestamp_from_clock else m.timestamp for m in rows]
    return columns_frame(MESSAGES, {**_place(parsed, counts), "index": running_index(counts), **columns})


_MESSAGE_FIELDS = ("type", "role", "content", "has_tool_use", "has_code", "thinking", "id", "parent_uuid")


def fates(parsed: Sequence[ParsedConversation]) -> pl.DataFrame:
    """One row per raw record."""
    counts = [len(p.fates) for p in parsed]
    rows = list(chain.from_iterable(p.fates for p in parsed))
    columns: dict[str, list[Any]] = {name: list(map(attrgetter(name), rows)) for name in _FATE_FIELDS}
    columns["excerpt"] = [excerpt(head) if head else None for head in map(attrgetter("head"), rows)]
    return columns_frame(FATES, {**_place(parsed, counts), "record": running_index(counts), **columns})


_FATE_FIELDS = ("status", "kind", "reason", "message_index", "line", "offset", "size", "key", "note")


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
