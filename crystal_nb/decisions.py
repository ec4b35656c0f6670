"""The records that decisions about a reimport are made of and made in."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

__all__ = ["Action", "Decision", "Step", "StoredConversation"]


class StoredConversation(Struct, frozen=True):
    """What a store knows of a conversation and a decision looks at.

    Attributes
    ----------
    source : str
        Adapter name.
    id : str
        Id of the row.
    candidate_id : str | None
        Id of the candidate that it came from; None in databases that are too old to say.
    file_size : int | None
        Size that the file had.
    file_mtime : str | None
        Time that the file had, as text.
    content_hash : str | None
        Hash of what was parsed; None in old databases.
    parser_version : str | None
        Rules that parsed it.
    fingerprint : str | None
        SHA-256 of the file's bytes; None where it was never taken.
    is_short : bool
        True where nothing is stored but that the candidate has too few messages.
    """

    source: str
    id: str
    candidate_id: str | None = None
    file_size: int | None = None
    file_mtime: str | None = None
    content_hash: str | None = None
    parser_version: str | None = None
    fingerprint: str | None = None
    is_short: bool = False


Action = Literal["parse", "skip", "skip-short", "metadata-update", "replace", "insert", "error"]


class Step(Struct, frozen=True):
    """One question on the way to a decision, with the values that answered it.

    Attributes
    ----------
    name : str
        Short name, such as ``same size``.
    before : Any
        What the store has.
    now : Any
        What the candidate or its parse has.
    answer : bool
        The branch that was taken.
    """

    name: str
    before: Any
    now: Any
    answer: bool


class Decision(Struct, frozen=True):
    """What happens to one candidate, and why.

    Attributes
    ----------
    source : str
        Adapter name.
    candidate_id : str
        Id of the candidate.
    action : Action
        What is to be done; ``parse`` only as long as nothing has been parsed.
    reason : str
        One sentence.
    steps : tuple[Step, ...]
        The path that led there.
    id : str | None
        Id of the row that is written; None when nothing was parsed.
    content_hash : str | None
        Hash of what was parsed.
    parser_version : str | None
        Rules that parsed it.
    message_count : int | None
        Messages that were parsed.
    fingerprint : str | None
        SHA-256 of the file's bytes, where the policy asks for it.
    is_clean : bool
        False where records of the file could not be read.
    """

    source: str
    candidate_id: str
    action: Action
    reason: str
    steps: tuple[Step, ...] = ()
    id: str | None = None
    content_hash: str | None = None
    parser_version: str | None = None
    message_count: int | None = None
    fingerprint: str | None = None
    is_clean: bool = True

    @property
    def is_short_reading(self) -> bool:
        """Whether a complete reading found too few messages, which may be remembered."""
        return self.action == "skip-short" and self.message_count is not None and self.is_clean

    @property
    def path(self) -> str:
        """The steps in a line.

        >>> Decision("codex", "7", "skip", "…", (Step("stored", None, "7", True),)).path
        'stored: yes'
        """
        return ", ".join(f"{step.name}: {'yes' if step.answer else 'no'}" for step in self.steps)
