"""Acts about the remote payload."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from crystal_nb.records import Candidate, Conversation, Message
from crystal_nb.remote import remote_item, validate_remote
from crystal_nb.remote_ingest import ingest
from crystal_nb.scenarios.world import Scene, World, named

__all__ = ["BROKEN_RULES", "meeting_ids", "validation"]


def _item(id: str, *texts: str) -> dict[str, Any]:
    messages = tuple(
        Message("assistant" if n % 2 else "user", text, role=None, id=f"m{n}", timestamp=f"2026-01-05T10:00:0{n}.000Z")
        for n, text in enumerate(texts)
    )
    candidate = Candidate("codex", id, f"/srv/{id}.jsonl", 100, "2026-01-05T10:00:00.000Z", "")
    return remote_item(candidate, Conversation("codex", id, messages), parser_version="codex@1")


def meeting_ids(world: World) -> Iterator[Scene]:
    items = [_item("7", "Paint it blue", "Done"), _item("codex:7", "Paint it pink", "Done")]
    report = ingest(world.store, {"version": 1, "items": items}, profile=world.policy)
    decisions = tuple(outcome.decision for outcome in report.outcomes)
    decided = " | ".join(f"{d.candidate_id}: {d.action}" for d in decisions)
    yield named(world.scene(decided, decisions), "sent", "Two conversations whose namespaced ids meet are sent.")


Breaker = Callable[[dict[str, Any]], None]


def _set(*path: str) -> Callable[[Any], Breaker]:
    def with_value(value: Any) -> Breaker:
        def breaker(item: dict[str, Any]) -> None:
            for key in path[:-1]:
                item = item[key]
            item[path[-1]] = value

        return breaker

    return with_value


def _rename_messages(item: dict[str, Any]) -> None:
    item["parsed"]["messages"][1]["id"] = "m1"


def _edit_message(item: dict[str, Any]) -> None:
    item["parsed"]["messages"][1]["content"] = "Undone"


def _drop_message(item: dict[str, Any]) -> None:
    del item["parsed"]["messages"][1]


_BREAKERS: Mapping[str, Breaker] = {
    "unknown source": _set("source")("mytool"),
    "blank id": _set("sourceConversationId")("  "),
    "other conversation id": _set("conversationId")("codex:8"),
    "other parsed id": _set("parsed", "id")("7"),
    "other parsed source": _set("parsed", "source")("cursor"),
    "upper-case hash": _set("contentHash")("A" * 64),
    "one message": _drop_message,
    "bare message id": _rename_messages,
    "edited message": _edit_message,
}
BROKEN_RULES: Mapping[str, str] = {
    "unknown source": "supported-source",
    "blank id": "source-conversation-id",
    "other conversation id": "conversation-id",
    "other parsed id": "conversation-id",
    "other parsed source": "parsed-source",
    "upper-case hash": "hash-form",
    "one message": "message-count",
    "bare message id": "message-ids",
    "edited message": "content-hash",
}
"""Which rule each broken payload has to fail at."""


def validation(world: World) -> Iterator[Scene]:
    sound = _item("7", "Paint it blue", "Done")
    for name, breaker in _BREAKERS.items():
        item = copy.deepcopy(sound)
        breaker(item)
        row = validate_remote({"version": 1, "items": [item]}).row(0, named=True)
        yield named(world.scene(f"{row['status']}: {row['rule']}"), name, f"A sound item with one fault: {name}.")
