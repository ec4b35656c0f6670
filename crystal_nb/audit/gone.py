"""Histories that are gone: what is stored and has no candidate any more, and what was not looked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from crystal_nb import ecma
from crystal_nb.audit.findings import Finding, finding
from crystal_nb.audit.reparse import Reparses
from crystal_nb.audit.stored import Stored
from crystal_nb.identity import namespace
from crystal_nb.records import counted

__all__ = ["gone", "not_scanned"]


def gone(known: Sequence[Stored], candidates: Reparses) -> Iterator[Finding]:
    """Stored conversations of the sources that were looked through which no candidate is found for.

    A finding per source, as a tool may have deleted very many.

    >>> from crystal_nb.policy import PINNED
    >>> list(gone([], Reparses((), (), PINNED, scanned=("codex",))))
    []
    """
    there = {key for c in candidates.candidates for key in _keys(c.source, ecma.key_text(ecma.to_text(c.id)))}
    there |= {(row.source, row.id) for r in candidates.parsed for row in (r.stored, r.pinned) if row is not None}
    lost: dict[str, list[Stored]] = defaultdict(list)
    for c in known:
        if c.source in (candidates.scanned or ()) and not {(c.source, c.id), (c.source, c.candidate_id)} & there:
            lost[c.source].append(c)
    for source, found in lost.items():
        first, number = found[0].id, len(found)
        evidence = f"{counted(number, 'conversation')}; such as {namespace(source, first)}"
        yield finding("history-gone", source, first if number == 1 else None, evidence, number)


def _keys(source: str, id: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (source, id), (source, namespace(source, id))


def not_scanned(known: Sequence[Stored], candidates: Reparses) -> list[str]:
    """Sources with stored conversations that were not looked through; none where the candidates were chosen.

    >>> from crystal_nb.policy import PINNED
    >>> not_scanned([], Reparses((), (), PINNED))
    []
    """
    if candidates.scanned is None:
        return []
    return [s for s in dict.fromkeys(c.source for c in known) if s not in candidates.scanned]
