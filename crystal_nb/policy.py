"""The rules of a reimport, one field each, so that a scenario can flip exactly one.

Source: ``pinned-importer.md`` sections 3 and 10; letters in the field texts are its steps.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from crystal_nb.config import PROFILES
from crystal_nb.errors import ConfigError

__all__ = ["CAREFUL", "PINNED", "Policy", "policy_of"]


class Policy(Struct, frozen=True, kw_only=True):
    """What decides about each candidate, and how a decision is written.

    Derive another one with ``msgspec.structs.replace(PINNED, fingerprint=True)``.

    Attributes
    ----------
    name : str
        Name in reports.
    parsers : {"registered", "newest"}
        Whose rules read: the registered adapters', or the built-ins' newest ones.
    trust_size_and_time : bool
        Equal size and time skip a candidate without parsing it (b).
    fingerprint : bool
        Before that, the file's bytes are compared by their SHA-256, too.
    reparse_new_parser : bool
        A new parser version parses again what is unchanged.
    min_messages : int
        Conversations with fewer messages are not stored (e).
    remember_short : bool
        Such a reading is remembered, so that an unchanged file is not parsed every time.
    lookup : {"id", "source_conversation_id"}
        What finds the stored row (a): the row whose id is the candidate's, or the row that this
        candidate became. By the former, changes go to the row of the parsed id, whatever was found.
    row_id : {"parsed-id", "candidate-id"}
        The id under which a new conversation is stored.
    conversation_key : {"id", "source+id"}
        Primary key of conversations; by ``id`` the same raw id of two sources is an error.
    message_key : {"id", "conversation+index"}
        Primary key of messages; by ``id`` a shared message id moves the row to the later conversation.
    failing_source : {"abort", "collect"}
        Whether a failing detect or scan ends the import before any parse or is a row of the report.
    guard_log : bool
        Whether an import log that can't be written is survived (i).
    save : {"at-end", "each"}
        When the database file changes: once after the last candidate, or with each conversation.
    foreign_keys : {"until-saved", "on"}
        Whether cascades stop after the first save.
    keep_edited_notes : bool
        A replace leaves notes that a person edited.
    keep_rejected : bool
        A replace keeps the status of a conversation that a person rejected.
    """

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} must be {' or '.join(map(repr, allowed))}, not {getattr(self, name)!r}")
        if type(self.min_messages) is not int or self.min_messages < 0:
            raise ConfigError(f"min_messages must be 0 or more, not {self.min_messages!r}")

    name: str
    parsers: Literal["registered", "newest"] = "registered"
    trust_size_and_time: bool = True
    fingerprint: bool = False
    reparse_new_parser: bool = False
    min_messages: int = 2
    remember_short: bool = False
    lookup: Literal["id", "source_conversation_id"] = "id"
    row_id: Literal["parsed-id", "candidate-id"] = "parsed-id"
    conversation_key: Literal["id", "source+id"] = "id"
    message_key: Literal["id", "conversation+index"] = "id"
    failing_source: Literal["abort", "collect"] = "abort"
    guard_log: bool = False
    save: Literal["at-end", "each"] = "at-end"
    foreign_keys: Literal["until-saved", "on"] = "until-saved"
    keep_edited_notes: bool = True
    keep_rejected: bool = True


_ALLOWED: dict[str, tuple[object, ...]] = {
    "parsers": ("registered", "newest"),
    "lookup": ("id", "source_conversation_id"),
    "row_id": ("parsed-id", "candidate-id"),
    "conversation_key": ("id", "source+id"),
    "message_key": ("id", "conversation+index"),
    "failing_source": ("abort", "collect"),
    "save": ("at-end", "each"),
    "foreign_keys": ("until-saved", "on"),
}

PINNED = Policy(name="pinned")
"""What the pinned importer does."""

CAREFUL = Policy(
    name="careful",
    parsers="newest",
    fingerprint=True,
    reparse_new_parser=True,
    remember_short=True,
    lookup="source_conversation_id",
    row_id="candidate-id",
    conversation_key="source+id",
    message_key="conversation+index",
    failing_source="collect",
    guard_log=True,
    save="each",
    foreign_keys="on",
)
"""The same with every repair of section 10."""

_BY_PROFILE = {"chatcrystal": PINNED, "pinned": PINNED, "careful": CAREFUL}


def policy_of(profile: str | Policy) -> Policy:
    """The policy of a profile, or the one given; ``pinned`` is another name of ``chatcrystal``.

    Raises
    ------
    ConfigError
        If there is no profile of that name.

    >>> policy_of("chatcrystal").name
    'pinned'
    """
    if isinstance(profile, Policy):
        return profile
    if profile not in _BY_PROFILE:
        raise ConfigError(f"unknown profile {profile!r}; allowed: {', '.join(PROFILES)}, or a Policy")
    return _BY_PROFILE[profile]
