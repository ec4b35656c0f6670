"""The items of a remote payload as a frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from crystal_nb.errors import RemotePayloadError
from crystal_nb.frames import Column, Table, to_frame
from crystal_nb.remote_check import read_item

__all__ = ["REMOTE_ITEMS", "remote_items"]

REMOTE_ITEMS: Table = {
    "index": Column(pl.UInt32, "Position in the request's items."),
    "source": Column(pl.String, "Source as the item says it; here and below null where it is no text."),
    "source_conversation_id": Column(pl.String, "Id as the sender's scan gave it."),
    "conversation_id": Column(pl.String, "Namespaced id as the item says it."),
    "content_hash": Column(pl.String, "Hash as the item says it."),
    "message_count": Column(pl.UInt32, "Messages in it; null where they are no list."),
    "status": Column(pl.Enum(["ok", "error"]), "Whether a server accepts the item."),
    "rule": Column(pl.String, "First rule that it breaks, a key of remote_check.RULES; null where it breaks none."),
    "path": Column(pl.String, "Place in the payload where that shows."),
    "error": Column(pl.String, "What was found there and what is allowed."),
}


def remote_items(items: Iterable[Any]) -> pl.DataFrame:
    """One row per item, checked; columns: ``REMOTE_ITEMS``.

    >>> remote_items([None]).select("status", "rule", "path", "error").row(0)
    ('error', 'item', '$.items[0]', 'found null; allowed: an object')
    """
    return to_frame(REMOTE_ITEMS, [_row(index, item) for index, item in enumerate(items)])


def _row(index: int, item: Any) -> dict[str, Any]:
    """Row of an item: what it says of itself, and the first rule that it breaks."""
    members = item if isinstance(item, Mapping) else {}
    parsed = members.get("parsed")
    messages = parsed.get("messages") if isinstance(parsed, Mapping) else None
    row = {
        "index": index,
        "source": _text(members.get("source")),
        "source_conversation_id": _text(members.get("sourceConversationId")),
        "conversation_id": _text(members.get("conversationId")),
        "content_hash": _text(members.get("contentHash")),
        "message_count": len(messages) if isinstance(messages, list) else None,
        "status": "ok",
    }
    try:
        read_item(item, at=f"$.items[{index}]")
    except RemotePayloadError as error:
        row |= {"status": "error", "rule": error.rule, "path": error.path, "error": error.reason}
    return row


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
