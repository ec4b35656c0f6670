"""The rule sets of Cursor: ``cursor@1`` repairs nothing, ``cursor@2`` is derived from it, repair by repair.

Source: ``formats/cursor.md`` section 4.
"""

from __future__ import annotations

from msgspec.structs import replace

from crystal_nb.adapters.base import Rules

__all__ = ["V1", "V2", "CursorRules"]


class CursorRules(Rules, frozen=True):
    """Parsing rules of Cursor; every repair is off by default.

    Attributes
    ----------
    read_log : bool
        See what is still in the write-ahead log.
    list_empty : bool
        List composers without a body too (drafts, bodies that are gone), even if no window names them.
    header_order : bool
        Order by the conversation's own header list, and mark bubbles that it doesn't name.
    inline_bodies : bool
        Read bubbles that stand inside ``composerData`` (``conversation``, ``conversationMap``, ``tabs``).
    other_texts : bool
        Read ``rawText``, ``content``, ``message`` and ``richText`` where ``text`` is empty.
    tool_calls : bool
        Read ``toolFormerData``; only that makes a message use tools.
    thinking_bubbles : bool
        Merge reasoning that has a bubble of its own into the answer after it.
    other_times : bool
        Read the header's time, ``timestamp`` and ``timingInfo`` where ``createdAt`` is missing.
    facts : bool
        Read title, model, tokens, attachments, errors and compaction.
    readable_projects : bool
        Parse URIs, ask every place that knows the project.
    subagents : bool
        Link the conversations of sub-agents to their parent.
    legacy_chats : bool
        Read the chat panel from before Composer.
    transcripts : bool
        Read agent transcripts of conversations that have no body in a database.
    cli_stores : bool
        Read the ``store.db`` of the command line agent.

    >>> V1.tool_calls, V2.tool_calls
    (False, True)
    """

    read_log: bool = False
    list_empty: bool = False
    header_order: bool = False
    inline_bodies: bool = False
    other_texts: bool = False
    tool_calls: bool = False
    thinking_bubbles: bool = False
    other_times: bool = False
    facts: bool = False
    readable_projects: bool = False
    subagents: bool = False
    legacy_chats: bool = False
    transcripts: bool = False
    cli_stores: bool = False


V1 = CursorRules("cursor@1")
V2 = replace(
    V1,
    version="cursor@2",
    read_log=True,
    list_empty=True,
    header_order=True,
    inline_bodies=True,
    other_texts=True,
    tool_calls=True,
    thinking_bubbles=True,
    other_times=True,
    facts=True,
    readable_projects=True,
    subagents=True,
    legacy_chats=True,
    transcripts=True,
    cli_stores=True,
)
