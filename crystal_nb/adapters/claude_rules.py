"""The parsing rules of Claude Code as values: what is pinned, and the repairs of ``claude-code@2``."""

from __future__ import annotations

import msgspec

from crystal_nb.adapters.base import Rules

__all__ = ["V1", "V2", "ClaudeRules"]


class ClaudeRules(Rules, frozen=True):
    """One switch per repair; all off are the pinned rules.

    Attributes
    ----------
    more_roots : bool
        Follow ``CLAUDE_CONFIG_DIR`` and look into the other folders that builds of the tool write to.
    subagents : bool
        List sub-agents' transcripts and link them to the session that started them.
    split_sidechains : bool
        Make a conversation of its own of each side chain that lies inside a session's file.
    join_streamed : bool
        Join the lines of one answer.
    pair_tools : bool
        Keep tool calls with their results.
    mark_harness : bool
        Tell what the harness wrote from what people typed; only whole envelopes count, quoted tags stay.
    keep_system : bool
        Keep compaction boundaries and other system records that hold text.
    queued_prompts : bool
        Keep prompts that were typed while a tool ran.
    copies_once : bool
        Leave out records that another session of the project folder holds, and link to it.
    mark_reverted : bool
        Mark messages that lie beside the path to the last message.
    name_media : bool
        Name images and documents.
    mend_lines : bool
        Read lines that are padded with NUL, preceded by a BOM or spliced.
    titles : bool
        Take the conversation's title from title records.
    place_from_cwd : bool
        Take the project from the working directory.
    """

    more_roots: bool = False
    subagents: bool = False
    split_sidechains: bool = False
    join_streamed: bool = False
    pair_tools: bool = False
    mark_harness: bool = False
    keep_system: bool = False
    queued_prompts: bool = False
    copies_once: bool = False
    mark_reverted: bool = False
    name_media: bool = False
    mend_lines: bool = False
    titles: bool = False
    place_from_cwd: bool = False


V1 = ClaudeRules("claude-code@1")
V2 = msgspec.structs.replace(
    V1,
    version="claude-code@2",
    more_roots=True,
    subagents=True,
    split_sidechains=True,
    join_streamed=True,
    pair_tools=True,
    mark_harness=True,
    keep_system=True,
    queued_prompts=True,
    copies_once=True,
    mark_reverted=True,
    name_media=True,
    mend_lines=True,
    titles=True,
    place_from_cwd=True,
)
