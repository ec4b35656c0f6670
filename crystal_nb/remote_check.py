"""What a server accepts of a remote payload: the rules in their order, and which one an item breaks first.

Source: ``pinned-importer.md`` section 6. Values may be of any JSON type and come from anybody: they are
compared exactly, shown escaped and cut, and the text of messages is never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from msgspec import UNSET, Struct

from crystal_nb import ecma, hashing
from crystal_nb.config import BUILT_IN_SOURCES
from crystal_nb.errors import RemotePayloadError
from crystal_nb.identity import namespace
from crystal_nb.records import Candidate, Conversation, Message, printable

__all__ = [
    "MESSAGE_KEYS",
    "META_KEYS",
    "PARSED_KEYS",
    "RULES",
    "SUPPORTED_SOURCES",
    "RemoteItem",
    "exact_hash",
    "read_item",
    "read_request",
]

SUPPORTED_SOURCES = BUILT_IN_SOURCES
"""The sources that a server accepts: exactly the five built-ins."""

RULES: Mapping[str, str] = {
    "json": "a payload is UTF-8 JSON",
    "request": "a request is an object",
    "version": "its version is the number 1",
    "items": "its items are a list",
    "item": "an item is an object",
    "supported-source": "its source is one of the five built-ins",
    "source-conversation-id": "sourceConversationId is a text that is not blank",
    "conversation-id": "conversationId and parsed.id are both the source conversation id with its source before it",
    "parsed-source": "parsed.source is the source",
    "hash-form": "contentHash is 64 lower-case hex digits",
    "message-count": "parsed.messages is a list of at least 2",
    "message-ids": "every message id is a text that starts with the conversation id and a colon",
    "content-hash": "contentHash is the hash of what is in parsed",
    "meta": "meta is an object (the pinned server checks it last, by failing on it)",
}
"""Every rule by name, in the order in which they are checked; the first four concern the request as a whole."""

META_KEYS = {
    "id": "id",
    "source": "source",
    "filePath": "file_path",
    "fileSize": "file_size",
    "fileMtime": "file_mtime",
    "projectDir": "project_dir",
}
PARSED_KEYS = {
    "id": "id",
    "slug": "slug",
    "source": "source",
    "projectDir": "project_dir",
    "projectName": "project_name",
    "cwd": "cwd",
    "gitBranch": "git_branch",
    "messages": "messages",
    "firstMessageAt": "first_message_at",
    "lastMessageAt": "last_message_at",
}
MESSAGE_KEYS = {
    "id": "id",
    "parentUuid": "parent_uuid",
    "type": "type",
    "role": "role",
    "content": "content",
    "hasToolUse": "has_tool_use",
    "hasCode": "has_code",
    "thinking": "thinking",
    "timestamp": "timestamp",
}
"""Keys of the JSON objects, in the order in which they are written, and the fields of the records."""

_HASH_FORM = re.compile("[0-9a-f]{64}")
_SHOWN_CHARACTERS = 80


class RemoteItem(Struct, frozen=True):
    """An item that broke no rule, as records.

    Values that no rule looks at (times, folders, the types of hashed fields) are what the item has,
    of whatever JSON type; `UNSET` where it has none.

    Attributes
    ----------
    source_conversation_id : str
        Id as the sender's scan gave it.
    content_hash : str
        Hash as given; the check computed the same.
    parser_version : Any
        Rules that the sender parsed it with; no rule looks at it.
    candidate : Candidate
        The item's ``meta``, with the item's own source and source conversation id.
    conversation : Conversation
        The item's ``parsed``; ids are the namespaced ones.
    """

    source_conversation_id: str
    content_hash: str
    parser_version: Any
    candidate: Candidate
    conversation: Conversation


def read_request(payload: bytes | bytearray | str | Mapping[str, Any]) -> list[Any]:
    """The items of a request, unchecked.

    Raises
    ------
    RemotePayloadError
        If the request as a whole is refused.

    >>> read_request(b'{"version": 1.0, "items": [null]}')
    [None]
    """
    request = _parse(payload) if isinstance(payload, (bytes, bytearray, str)) else payload
    if not isinstance(request, Mapping):
        _refuse("request", "$", request, "an object with version 1 and a list of items")
    version, items = request.get("version", UNSET), request.get("items", UNSET)
    if type(version) not in (int, float) or version != 1:  # JavaScript's === 1: 1.0 is, true is not
        _refuse("version", "$.version", version, "the number 1")
    if not isinstance(items, list):
        _refuse("items", "$.items", items, "a list")
    return items


def read_item(item: Any, *, at: str = "$") -> RemoteItem:
    """Check one item by the rules, in their order, and read it.

    Parameters
    ----------
    item
        The item as ``ecma.parse_json`` gives it, or as ``remote_item`` made it.
    at
        Where the item stands, for the error's path.

    Raises
    ------
    RemotePayloadError
        If it breaks a rule; names the first.

    >>> read_item({"source": "codex", "sourceConversationId": " "})
    Traceback (most recent call last):
    crystal_nb.errors.RemotePayloadError: $.sourceConversationId: found ' '; allowed: a text that is not blank
    """
    item = _object(item, "item", at, "an object")
    source, source_id = _check_origin(item, at)
    wanted = namespace(source, source_id)
    parsed = _check_identity(item, source, wanted, at)
    given_hash = item.get("contentHash", UNSET)
    if not (isinstance(given_hash, str) and _HASH_FORM.fullmatch(given_hash)):
        _refuse("hash-form", f"{at}.contentHash", given_hash, "64 lower-case hex digits")
    messages = _check_messages(parsed, wanted, f"{at}.parsed.messages")
    conversation = Conversation(**{**_fields(PARSED_KEYS, parsed), "messages": messages})
    _check_hash(given_hash, conversation, at)
    meta = _object(item.get("meta", UNSET), "meta", f"{at}.meta", "an object")
    return RemoteItem(
        source_conversation_id=source_id,
        content_hash=given_hash,
        parser_version=item.get("parserVersion", UNSET),
        candidate=Candidate(**{**_fields(META_KEYS, meta), "id": source_id, "source": source}),
        conversation=conversation,
    )


def exact_hash(conversation: Conversation) -> str:
    """The content hash, also where the hashed fields have types that no parser gives them.

    Raises
    ------
    RecursionError
        If a hashed value is nested deeper than Python can follow.

    >>> number = Conversation("codex", "7", (Message("user", 1.0, role="user"),))
    >>> exact_hash(number) == hashing.digest(
    ...     b'{"source":"codex","messages":[{"index":0,"type":"user","role":"user","content":1,'
    ...     b'"hasToolUse":false,"hasCode":false,"thinking":null}]}'
    ... )
    True
    """
    if all(map(_has_usual_types, conversation.messages)):
        return hashing.content_hash(conversation)
    return hashing.digest(ecma.json_text(hashing.hash_input(conversation)).encode())


def _has_usual_types(message: Message) -> bool:
    return (type(message.type), type(message.content), type(message.has_tool_use), type(message.has_code)) == _USUAL


_USUAL = (str, str, bool, bool)


def _parse(payload: bytes | bytearray | str) -> Any:
    try:
        return ecma.parse_json(payload if isinstance(payload, str) else payload.decode("utf-8"))
    except ValueError as error:
        raise RemotePayloadError(f"no JSON: {error}; allowed: one JSON object", path="$", rule="json") from None


def _check_origin(item: Mapping[str, Any], at: str) -> tuple[str, str]:
    source, source_id = item.get("source", UNSET), item.get("sourceConversationId", UNSET)
    if source not in SUPPORTED_SOURCES:
        _refuse("supported-source", f"{at}.source", source, ", ".join(SUPPORTED_SOURCES))
    if not (isinstance(source_id, str) and ecma.trim(source_id)):
        _refuse("source-conversation-id", f"{at}.sourceConversationId", source_id, "a text that is not blank")
    return source, source_id


def _check_identity(item: Mapping[str, Any], source: str, wanted: str, at: str) -> Mapping[str, Any]:
    """Check the ids and sources that must agree; gives the parsed object."""
    if (given := item.get("conversationId", UNSET)) != wanted:
        _refuse("conversation-id", f"{at}.conversationId", given, _shown(wanted))
    parsed = _object(item.get("parsed", UNSET), "conversation-id", f"{at}.parsed", "an object")
    if (given := parsed.get("id", UNSET)) != wanted:
        _refuse("conversation-id", f"{at}.parsed.id", given, _shown(wanted))
    if (given := parsed.get("source", UNSET)) != source:
        _refuse("parsed-source", f"{at}.parsed.source", given, _shown(source))
    return parsed


def _check_messages(parsed: Mapping[str, Any], conversation_id: str, at: str) -> tuple[Message, ...]:
    messages = parsed.get("messages", UNSET)
    if not (isinstance(messages, list) and len(messages) >= 2):
        _refuse("message-count", at, messages, "a list of at least 2 messages")
    prefix = f"{conversation_id}:"
    for index, message in enumerate(messages):
        members = _object(message, "message-ids", f"{at}[{index}]", "an object with an id")
        id = members.get("id", UNSET)
        if not (isinstance(id, str) and id.startswith(prefix)):
            _refuse("message-ids", f"{at}[{index}].id", id, f"a text that starts with {_shown(prefix)}")
    return tuple(Message(**_fields(MESSAGE_KEYS, message)) for message in messages)


def _check_hash(given: str, conversation: Conversation, at: str) -> None:
    try:
        computed = exact_hash(conversation)
    except (RecursionError, TypeError, AttributeError):  # the last two: an object made in Python, not by JSON
        reason = "parsed.messages holds what can't be hashed; allowed: JSON values that Python's stack can follow"
        raise RemotePayloadError(reason, path=f"{at}.parsed.messages", rule="content-hash") from None
    if given != computed:
        _refuse("content-hash", f"{at}.contentHash", given, f"{_shown(computed)}, the hash of what is in parsed")


def _object(value: Any, rule: str, path: str, allowed: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(rule, path, value, allowed)
    return value


def _fields(keys: Mapping[str, str], members: Mapping[str, Any]) -> dict[str, Any]:
    return {field: members.get(key, UNSET) for key, field in keys.items()}


def _refuse(rule: str, path: str, found: Any, allowed: str) -> NoReturn:
    raise RemotePayloadError(f"found {_shown(found)}; allowed: {allowed}", path=path, rule=rule)


def _shown(value: Any) -> str:
    """A value as a short, harmless text; containers by their kind only, since they may hold message text."""
    if value is UNSET:
        return "nothing"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if not isinstance(value, (str, bool, int, float, type(None))):
        return "an object" if isinstance(value, Mapping) else f"a value of type {type(value).__name__}"
    text = printable(ecma.to_text(value)[: _SHOWN_CHARACTERS + 1])
    text = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
    return f"'{text}'" if isinstance(value, str) else text
