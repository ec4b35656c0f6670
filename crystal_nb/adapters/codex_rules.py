"""Released rules of the Codex adapter; each field of them is one repair."""

from __future__ import annotations

from msgspec.structs import replace

from crystal_nb.adapters.base import Rules

__all__ = ["V1", "V2", "CodexRules"]


class CodexRules(Rules, frozen=True):
    """What is done beyond the pinned rules; without a field its records are dropped and say so.

    Source: ``formats/codex.md`` sections 4 and 5.

    >>> V1.tool_calls, V2.tool_calls, V2.context_as_messages
    (False, True, False)
    """

    cold_files: bool = False
    """List ``.zst``, archived and single-document rollouts, too."""
    revisions: bool = False
    """Several rollouts of one thread: the newest has its id, the others are its revisions."""
    own_identity: bool = False
    """The first session_meta says who this is; later ones are copies of a parent's."""
    skip_inherited: bool = False
    """Leave out the parent's turns that a fork copied."""
    history_base: bool = False
    """Read the rollouts before this one that hold the thread's beginning."""
    old_shapes: bool = False
    """Items without an envelope, as in 2025 and in foreign files."""
    mended_lines: bool = False
    """Byte order marks, NUL runs, and a torn record with its retry on one line."""
    completed_items: bool = False
    """``item_completed``, where paginated threads have their prompts."""
    user_items: bool = False
    """Prompts that only a user item holds."""
    tool_calls: bool = False
    """Calls with their input and result at the turn that made them."""
    reasoning: bool = False
    """Readable reasoning."""
    usage: bool = False
    """Model and tokens."""
    images: bool = False
    """Images named by kind and size."""
    rollbacks: bool = False
    """Undone turns are marked."""
    compactions: bool = False
    """Boundaries and summaries of compaction."""
    narrative: bool = False
    """Reviews, plans, errors, aborts and messages between agents."""
    context_as_messages: bool = False
    """Injected texts as messages of role ``context``; otherwise they are only found by their fates."""


V1 = CodexRules("codex@1")
V2 = replace(
    V1,
    version="codex@2",
    cold_files=True,
    revisions=True,
    own_identity=True,
    skip_inherited=True,
    history_base=True,
    old_shapes=True,
    mended_lines=True,
    completed_items=True,
    user_items=True,
    tool_calls=True,
    reasoning=True,
    usage=True,
    images=True,
    rollbacks=True,
    compactions=True,
    narrative=True,
)
