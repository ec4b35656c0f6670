"""Namespaced identity: the ids that the remote path uses, and where ids meet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.records import Conversation

__all__ = ["namespace", "namespace_collisions", "namespace_conversation"]


def namespace(source: str, id: str) -> str:
    """Put a source before an id, unless it stands there already.

    Idempotent, exact and case-sensitive; not one-to-one: ``7`` and ``codex:7`` meet.
    Source: ``pinned-importer.md`` section 5.

    >>> namespace("codex", "7"), namespace("codex", "codex:7"), namespace("codex", "Codex:7")
    ('codex:7', 'codex:7', 'codex:Codex:7')
    """
    prefix = f"{source}:"
    return id if id.startswith(prefix) else prefix + id


def namespace_conversation(conversation: Conversation, candidate_id: str) -> Conversation:
    """Rename a conversation and its messages as the remote path does.

    Message ids always get the new id as prefix, so applying it twice prefixes twice. A parent that
    is among the messages keeps pointing at it; null and empty parents become None. The content hash
    stays the same.

    >>> from crystal_nb.records import Message
    >>> pair = (Message("user", "hi", id="a"), Message("assistant", "yes", id="b", parent_uuid="a"))
    >>> renamed = namespace_conversation(Conversation("codex", "7", pair), "7")
    >>> [(m.id, m.parent_uuid) for m in renamed.messages]
    [('codex:7:a', None), ('codex:7:b', 'codex:7:a')]
    """
    new_id = namespace(conversation.source, candidate_id)
    messages = tuple(
        replace(
            m,
            id=f"{new_id}:{ecma.to_text(m.id)}",
            parent_uuid=f"{new_id}:{ecma.to_text(m.parent_uuid)}" if ecma.truthy(m.parent_uuid) else None,
        )
        for m in conversation.messages
    )
    return replace(conversation, id=new_id, messages=messages)


def namespace_collisions(ids: Iterable[tuple[str, str]]) -> Mapping[str, list[str]]:
    """Find the namespaced ids that several raw ids of a source share.

    Parameters
    ----------
    ids
        Pairs of source and raw id.

    Returns
    -------
    Mapping
        Namespaced id to its raw ids, in order of appearance; only where there are several.

    >>> namespace_collisions([("codex", "7"), ("codex", "codex:7"), ("cursor", "7")])
    {'codex:7': ['7', 'codex:7']}
    """
    met: dict[str, dict[str, None]] = defaultdict(dict)
    for source, raw in ids:
        met[namespace(source, raw)][raw] = None
    return {named: list(raws) for named, raws in met.items() if len(raws) > 1}
