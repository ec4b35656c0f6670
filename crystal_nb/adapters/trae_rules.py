"""The parsing rules of Trae as values: what ``trae@1`` does, and each repair of ``trae@2`` by name.

Source: ``formats/trae.md`` sections 4 and 5.
"""

from __future__ import annotations

from msgspec.structs import replace

from crystal_nb.adapters.base import Rules

__all__ = ["V1", "V2", "TraeRules"]


class TraeRules(Rules, frozen=True, kw_only=True):
    """What is repaired; all of it is off in the pinned rules.

    >>> V1.read_log, V2.read_log
    (False, True)
    """

    every_product: bool = False
    """Trae CN, TRAE SOLO and TRAE SOLO CN count, too; ``XDG_CONFIG_HOME`` is followed."""
    every_store: bool = False
    """The older chat lists, ``ChatStore`` and the global database are read, too."""
    every_window: bool = False
    """A window without ``workspace.json`` is read; its project is unknown."""
    read_log: bool = False
    """What only the write-ahead log holds is seen, and the log counts for size and time."""
    uri_projects: bool = False
    """Projects keep their first slash, their host and their scheme; multi-root windows have one."""
    cli_sessions: bool = False
    """Sessions of TRAE CLI are read, by the rules of ``codex@2``."""
    join_copies: bool = False
    """Of the copies of a conversation in several lists the longest counts, once; others are linked."""
    report_unreadable: bool = False
    """Encrypted stores, unknown layouts and damage are candidates whose parse says so."""
    array_order: bool = False
    """A turn number missing on some messages leaves all in the order of the list."""
    more_roles: bool = False
    """System messages are kept; ``human``, ``ai`` and ``agent`` are read as what they mean."""
    whole_answer: bool = False
    """Every thought, reasoning and body of an answer is read, also beside a final text."""
    steps_apart: bool = False
    """Each step of an answer is a message of its own, so that text, reasoning and calls keep their order."""
    tool_calls: bool = False
    """Calls are kept with arguments and results."""
    facts: bool = False
    """Title, model, turn, agent, status and attachments are kept."""
    time_from_id: bool = False
    """A conversation without times begins when its id was made, which an ObjectId tells."""
    distinct_ids: bool = False
    """Message ids are unique in their conversation, and answers name the prompt of their turn as parent."""
    max_value_bytes: int = 0
    """A value that is longer is reported, not read; 0: no limit."""


V1 = TraeRules(version="trae@1")
"""The pinned rules."""

V2 = replace(
    V1,
    version="trae@2",
    every_product=True,
    every_store=True,
    every_window=True,
    read_log=True,
    uri_projects=True,
    cli_sessions=True,
    join_copies=True,
    report_unreadable=True,
    array_order=True,
    more_roles=True,
    whole_answer=True,
    steps_apart=True,
    tool_calls=True,
    facts=True,
    time_from_id=True,
    distinct_ids=True,
    max_value_bytes=256 << 20,
)
"""The careful rules."""
