"""What the hash inspector's lists offer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from crystal_nb import ecma
from crystal_nb.errors import ConfigError
from crystal_nb.records import Conversation, Message, printable
from crystal_nb.widgets.hash_view import CONVERSATION_FIELDS, MESSAGE_FIELDS, hash_name

__all__ = ["conversations", "field_options", "label", "searched"]


def conversations(subject: Any) -> Sequence[Conversation]:
    """What was given as a list of conversations.

    Raises
    ------
    ConfigError
        If there is none, or it is something else.

    >>> conversations([])
    Traceback (most recent call last):
    crystal_nb.errors.ConfigError: HashInspector has nothing to show: the corpus is empty, it holds no conversation
    """
    if isinstance(subject, Conversation):
        return [subject]
    found: list[Any] = list(subject) if isinstance(subject, Iterable) and not isinstance(subject, str) else [None]
    if not found:
        raise ConfigError("HashInspector has nothing to show: the corpus is empty, it holds no conversation")
    if not all(isinstance(c, Conversation) for c in found):
        raise ConfigError("HashInspector needs a Conversation or some of them, as corpus[0] or a whole corpus")
    return found


def field_options() -> list[tuple[str, str]]:
    """Every field that can be edited, by its name in the canonical text where it has one."""
    own = [(hash_name(0, f) or f, f) for f in MESSAGE_FIELDS]
    return own + [(f"conversation: {f}", f"conversation.{f}") for f in CONVERSATION_FIELDS]


def label(position: int, message: Message) -> str:
    """A message in a list."""
    return f"{position} {printable(message.type)} {printable(message.content[:40])}"


def searched(conversation: Conversation) -> str:
    """What a conversation is found by."""
    parts = [conversation.source, ecma.to_text(conversation.id), ecma.to_text(conversation.slug)]
    return "\n".join([*parts, *(m.content[:2000] for m in conversation.messages[:1])]).casefold()
