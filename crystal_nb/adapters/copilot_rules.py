"""Released parsing rules of GitHub Copilot Chat.

Source: ``formats/copilot.md``; section 3 is `V1`, section 4 lists what `V2` repairs, a field per repair.
"""

from __future__ import annotations

from msgspec.structs import replace

from crystal_nb.adapters.base import Rules

__all__ = ["V1", "V2", "CopilotRules"]


class CopilotRules(Rules, frozen=True):
    """Which losses of the pinned rules are repaired.

    >>> V1.replays_log, V2.replays_log
    (False, True)
    """

    replays_log: bool = False
    """Replay the whole mutation log instead of reading its first line."""
    log_wins: bool = False
    """Of ``<id>.json`` and ``<id>.jsonl`` in one folder list the log only."""
    rescues: bool = False
    """Where a log is no whole state, or holds no turn: the flat file beside it, then the transcript."""
    bears_gaps: bool = False
    """A turn of an odd shape (no time, a text as message, null) costs nothing but itself."""
    reads_every_kind: bool = False
    """Read all kinds of response parts, not only plain text, thinking and tools."""
    joins_as_shown: bool = False
    """Join text as the tool shows it: parts without separator, references inside their sentence."""
    details_tools: bool = False
    """Tool calls and edits with arguments and results, not only a flag."""
    keeps_bare_answers: bool = False
    """Keep answers without text: only tools, edits or an error."""
    marks_turns: bool = False
    """Note cancelled, failed, reverted and hidden turns, attachments, mode, votes and the like."""
    times_answers: bool = False
    """Time of an answer from its own records instead of the prompt's plus 1 ms."""
    looks_everywhere: bool = False
    """Insiders, VSCodium, Flatpak and server folders beside Code's own."""
    lists_all_stores: bool = False
    """Sessions handed to another window, and those of databases older than the files."""
    lists_transcripts: bool = False
    """The extension's transcripts of conversations that have no file of their own."""
    lists_small_files: bool = False
    """Files below 100 bytes, too."""
    reads_uris: bool = False
    """Projects by any URI, with their leading slash, multi-root workspaces included."""
    asks_index: bool = False
    """Titles and working folders from the window's index, and sessions that only the index still knows."""
    links_copies: bool = False
    """One session under several window folders: ids of their own, turns kept once, an edge between them."""


V1 = CopilotRules("copilot@1")
V2 = replace(V1, version="copilot@2", **{name: True for name in CopilotRules.__struct_fields__ if name != "version"})
