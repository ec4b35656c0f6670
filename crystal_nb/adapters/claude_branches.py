"""The tree of records: which messages lie beside the path to the last one."""

from __future__ import annotations

from crystal_nb.adapters.claude_draft import Session
from crystal_nb.records import Fate

__all__ = ["mark_reverted"]


def mark_reverted(session: Session, fates: list[Fate]) -> None:
    """Mark messages on branches that were left (rewound, retried, edited).

    Records of every kind are steps of the tree. Only what branches off the path counts: a tree of its
    own (after ``/clear``, or where records are missing) says nothing.
    """
    parents = session.parents
    if len(set(parents.values())) == len(parents):
        return  # no two records with one parent
    leaf = session.leaf if session.leaf in parents else _newest(session, fates)
    path = _path(parents, leaf)
    beside: dict[str, bool] = dict.fromkeys(path, False)
    on_path: set[int] = set()
    left: set[int] = set()
    for uuid, fate in zip(session.uuids, fates, strict=True):
        at = fate.message_index
        if at is not None and uuid is not None:
            (left if _branches_off(uuid, parents, path, beside) else on_path).add(at)
    for at in left - on_path:
        if session.sketches[at].role in ("user", "assistant"):
            session.sketches[at].mark("reverted")


def _newest(session: Session, fates: list[Fate]) -> str | None:
    pairs = zip(reversed(session.uuids), reversed(fates), strict=True)
    return next((uuid for uuid, fate in pairs if uuid is not None and fate.message_index is not None), None)


def _path(parents: dict[str, str | None], leaf: str | None) -> set[str]:
    path: set[str] = set()
    while leaf is not None and leaf in parents and leaf not in path:
        path.add(leaf)
        leaf = parents[leaf]
    return path


def _branches_off(uuid: str, parents: dict[str, str | None], path: set[str], known: dict[str, bool]) -> bool:
    """Whether a record beside the path hangs on it; every step is answered for at once."""
    steps: list[str] = []
    at: str | None = uuid
    while at is not None and at in parents and at not in known:
        known[at] = False  # also ends a cycle
        steps.append(at)
        at = parents[at]
    answer = at is not None and (at in path or known.get(at, False))
    for step in steps:
        known[step] = answer
    return answer if steps else known.get(uuid, False)
