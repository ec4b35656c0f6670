"""Remote payloads: what the remote path would send of the histories here, and what a server makes of a payload.

Source: ``pinned-importer.md`` section 6. Nothing is sent; the rules of a server stand in `remote_check`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Struct
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb._loop import twins
from crystal_nb.adapters import registered
from crystal_nb.adapters.base import Parsed, SourceAdapter
from crystal_nb.candidates import as_candidates
from crystal_nb.config import Config, checked
from crystal_nb.errors import AdapterError, RemotePayloadError
from crystal_nb.identity import namespace, namespace_conversation
from crystal_nb.records import Candidate, Conversation, Message, counted
from crystal_nb.remote_check import (
    MESSAGE_KEYS,
    META_KEYS,
    PARSED_KEYS,
    SUPPORTED_SOURCES,
    RemoteItem,
    exact_hash,
    read_item,
    read_request,
)
from crystal_nb.remote_pack import RemoteBatches, TooLarge, pack, remote_batches, remote_json, sized

if TYPE_CHECKING:
    import polars as pl

    from crystal_nb.importer import OnProgress
    from crystal_nb.remote_pack import Sized

__all__ = [
    "SUPPORTED_SOURCES",
    "RemoteBatches",
    "RemoteBuild",
    "RemoteFailure",
    "RemoteItem",
    "TooLarge",
    "build_remote",
    "build_remote_async",
    "read_item",
    "read_request",
    "remote_batches",
    "remote_item",
    "remote_json",
    "validate_remote",
]

_MIN_MESSAGES = 2
_PAUSE_SECONDS = 0.05
Stage = Literal["detect", "scan", "parse"]


def remote_item(candidate: Candidate, conversation: Conversation, *, parser_version: str) -> dict[str, Any]:
    """What the remote path sends of one conversation.

    Parameters
    ----------
    candidate
        Where it comes from. Its source and id name the item, whatever the conversation says.
    conversation
        What the parse made of it, with raw ids: they are namespaced here.
    parser_version
        Rules that parsed it.

    Returns
    -------
    dict
        Plain JSON values; a value that is missing (`UNSET`) has no key.

    Raises
    ------
    RemotePayloadError
        If the candidate's id is no text, or a hashed value is nested too deep.

    Examples
    --------
    >>> pair = (Message("user", "hi", id="a"), Message("assistant", "yes", id="b", parent_uuid="a"))
    >>> candidate = Candidate("codex", "7", "/f", 1, "2026-01-01T00:00:00.000Z", "")
    >>> item = remote_item(candidate, Conversation("codex", "7", pair), parser_version="codex@1")
    >>> item["conversationId"], [m["id"] for m in item["parsed"]["messages"]]
    ('codex:7', ['codex:7:a', 'codex:7:b'])
    """
    if not isinstance(candidate.id, str):
        reason = "the candidate's id is no text; allowed: a text that is not blank"
        raise RemotePayloadError(reason, path="$.sourceConversationId", rule="source-conversation-id")
    named = replace(conversation, source=candidate.source, messages=tuple(map(_with_text_ids, conversation.messages)))
    normalised = namespace_conversation(named, candidate.id)
    messages = [_members(MESSAGE_KEYS, m) for m in normalised.messages]
    return {
        "source": candidate.source,
        "sourceConversationId": candidate.id,
        "conversationId": normalised.id,
        "contentHash": _hash_of(normalised),
        "parserVersion": parser_version,
        "meta": _members(META_KEYS, candidate),
        "parsed": {**_members(PARSED_KEYS, normalised), "messages": messages},
    }


def _with_text_ids(message: Message) -> Message:
    """The message with its ids as the text that JavaScript's templates make of them."""
    parent = ecma.to_text(message.parent_uuid) if ecma.truthy(message.parent_uuid) else None
    return replace(message, id=ecma.to_text(message.id), parent_uuid=parent)


def _members(keys: Mapping[str, str], record: Struct) -> dict[str, Any]:
    return {key: value for key, field in keys.items() if (value := getattr(record, field)) is not UNSET}


def _hash_of(conversation: Conversation) -> str:
    try:
        return exact_hash(conversation)
    except RecursionError:
        reason = "a hashed value is nested deeper than Python can follow"
        raise RemotePayloadError(reason, path="$.parsed.messages", rule="content-hash") from None


class RemoteFailure(Struct, frozen=True):
    """A source or a candidate that could not be read; the others went on.

    Attributes
    ----------
    source : str
        Adapter name.
    id : str | None
        Id of the candidate; None where the whole source failed, or the scan gave no id.
    stage : Stage
        ``detect``, ``scan`` or ``parse`` (making the item included).
    error : str
        Kind of error and what it says.
    """

    source: str
    id: str | None
    stage: Stage
    error: str


@dataclass(frozen=True, repr=False)
class RemoteBuild:
    """What the remote path would send.

    Parameters
    ----------
    items
        Every item, in order, also those that are too large.
    batches
        Requests with the items that fit.
    too_large
        Items that no request takes, by their position in ``items``.
    short
        Namespaced ids of conversations with fewer than 2 messages, which are left out.
    failures
        Sources and candidates that failed.
    """

    items: tuple[Mapping[str, Any], ...]
    batches: tuple[dict[str, Any], ...]
    too_large: tuple[TooLarge, ...]
    short: tuple[str, ...]
    failures: tuple[RemoteFailure, ...]

    def __repr__(self) -> str:
        made = f"{counted(len(self.items), 'item')}, {counted(len(self.batches), 'request')}"
        left = {"too large": self.too_large, "too short": self.short, "failed": self.failures}
        return f"RemoteBuild: {made}, " + ", ".join(f"{len(listed):,} {what}" for what, listed in left.items())


async def _build_remote(*, config: Config | None = None, on_progress: OnProgress | None = None) -> RemoteBuild:
    """Parse the enabled sources that a server supports and make the requests that would be sent.

    Unlike a scan, which fails as a whole, a source that fails is noted and the next one goes on, as
    pinned; so does a candidate.

    Parameters
    ----------
    config
        Folders and settings; ``enabled_sources`` chooses.
    on_progress
        Called after each candidate with the number done, the total and the candidate.

    Returns
    -------
    RemoteBuild
        Items in registry order, requests, and what was left out and why.

    Raises
    ------
    ConfigError
        If the configuration is none, or its home is no folder.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> build_remote(config=cnb.samples.config())
    RemoteBuild: 7 items, 1 request, 0 too large, 3 too short, 0 failed
    """
    config = checked(config)
    draft = _Draft(config)
    listed = [(adapter, candidate) for adapter in _chosen(config) for candidate in await draft.find(adapter)]
    paused = time.monotonic()
    for number, (adapter, candidate) in enumerate(listed, 1):
        await draft.add(adapter, candidate)
        if on_progress is not None:
            on_progress(number, len(listed), candidate)
        if time.monotonic() - paused > _PAUSE_SECONDS:
            await asyncio.sleep(0)  # where a cancellation can come in
            paused = time.monotonic()
    packed = pack(draft.made)
    items = tuple(item for item, _ in draft.made)
    return RemoteBuild(items, packed.batches, packed.too_large, tuple(draft.short), tuple(draft.failures))


def _chosen(config: Config) -> list[SourceAdapter]:
    """Adapters that are enabled and supported, in registry order."""
    known = registered().items()
    return [a for name, a in known if name in config.enabled_sources and name in SUPPORTED_SOURCES]


@dataclass
class _Draft:
    """Items, omissions and failures while they are collected."""

    config: Config
    made: list[Sized] = field(default_factory=list)
    short: list[str] = field(default_factory=list)
    failures: list[RemoteFailure] = field(default_factory=list)

    async def find(self, adapter: SourceAdapter) -> list[Candidate]:
        """Candidates of a source; none where it is absent or fails."""
        stage: Stage = "detect"
        try:
            if await adapter.detect(self.config) is None:
                return []
            stage = "scan"
            return [replace(c, source=adapter.name) for c in as_candidates(await adapter.scan(self.config))]
        except Exception as error:  # the pinned per-source guard
            self.failures.append(_failure(adapter.name, None, stage, error))
            return []

    async def add(self, adapter: SourceAdapter, candidate: Candidate) -> None:
        """Parse a candidate and make its item."""
        try:
            result = await adapter.parse(candidate, self.config)
            if not isinstance(result, Parsed):
                raise AdapterError("parse gave no Parsed")
            if len(result.conversation.messages) < _MIN_MESSAGES:
                self.short.append(namespace(candidate.source, ecma.to_text(candidate.id)))
            else:
                item = remote_item(candidate, result.conversation, parser_version=adapter.parser_version)
                self.made.append(sized(item))
        except Exception as error:  # the pinned per-candidate guard
            self.failures.append(_failure(candidate.source, candidate.id, "parse", error))


def _failure(source: str, id: Any, stage: Stage, error: Exception) -> RemoteFailure:
    said = f"{type(error).__name__}: {error}"
    return RemoteFailure(source, None if id is None else ecma.to_text(id), stage, said)


def validate_remote(payload: bytes | bytearray | str | Mapping[str, Any]) -> pl.DataFrame:
    """Say for each item of a request whether a server accepts it, and if not, which rule it breaks first.

    Parameters
    ----------
    payload
        The request as JSON (text or UTF-8 bytes), or the object itself.

    Returns
    -------
    polars.DataFrame
        One row per item; columns: ``remote_frames.REMOTE_ITEMS``; rules: ``remote_check.RULES``.

    Raises
    ------
    RemotePayloadError
        If the request as a whole is refused: no JSON, no object, another version, items that are no list.

    Examples
    --------
    >>> frame = validate_remote('{"version": 1, "items": [{"source": "aider"}]}')
    >>> frame.select("status", "rule", "path").row(0)
    ('error', 'supported-source', '$.items[0].source')
    """
    from crystal_nb import remote_frames

    return remote_frames.remote_items(read_request(payload))


build_remote, build_remote_async = twins(_build_remote)
