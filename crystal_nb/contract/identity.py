"""Identity: ids stay, are unique, and survive being namespaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from crystal_nb import ecma
from crystal_nb.contract.reading import ids_of, moved, reading
from crystal_nb.contract.stage import Check, Failed, Stage, check
from crystal_nb.identity import namespace, namespace_collisions
from crystal_nb.records import counted

__all__ = ["CHECKS"]


@check("identity", "ids stable")
def stable(stage: Stage) -> str:
    """Two readings give the same ids of candidates, conversations, messages and their parents."""
    first, second = (ids_of(reading(stage.adapter, stage.config())) for _ in range(2))
    if gone := moved(first, second):
        raise Failed("from one reading to the next these move", gone)
    return f"{len(first):,} ids are the same in two readings"


@check("identity", "candidate ids unique")
def candidates_unique(stage: Stage) -> str:
    """No two candidates of the samples have one id."""
    if double := _double(s.id for s in stage.samples):
        raise Failed("several candidates have one id", double)
    return f"{counted(len(stage.samples), 'candidate')}, as many ids"


@check("identity", "message ids unique")
def messages_unique(stage: Stage) -> str:
    """Every message has an id, and no two messages of a conversation have the same."""
    wrong, count = [], 0
    for candidate, parsed in stage.parsed:
        ids = [m.id for m in parsed.conversation.messages]
        count += len(ids)
        name = ecma.to_text(candidate.id)
        wrong += [f"{name}: several messages have the id {id}" for id in _double(map(ecma.to_text, ids))]
        wrong += [f"{name}: message {n} has no id" for n, id in enumerate(ids) if not ecma.truthy(id)]
    if wrong:
        raise Failed("not unique", wrong)
    return f"{counted(count, 'message')}, each with an id of its own"


def _double(ids: Iterable[Hashable]) -> list[str]:
    return [str(id) for id, number in Counter(ids).items() if number > 1]


@check("identity", "namespace")
def namespaced(stage: Stage) -> str:
    """Namespacing an id twice is as once, and no two candidates meet under one namespaced id."""
    name = stage.adapter.name
    ids = list(dict.fromkeys(s.id for s in stage.samples))
    if twice := [id for id in ids if namespace(name, namespace(name, id)) != namespace(name, id)]:
        raise Failed("namespaced twice, these differ", twice)
    if met := namespace_collisions((name, id) for id in ids):
        raise Failed("several candidates meet", met)
    return f"{len(ids)} ids stay apart"


@check("identity", "candidate id = parsed id")
def same_id(stage: Stage) -> str:
    """The id that the scan gives is the one that the parse gives."""
    apart = [
        f"{ecma.to_text(c.id)} becomes {ecma.to_text(p.conversation.id)}"
        for c, p in stage.parsed
        if c.id != p.conversation.id
    ]
    if apart:
        raise Failed("the parse gives another id", apart)
    return f"{counted(len(stage.parsed), 'conversation')} with the candidate's id"


CHECKS: tuple[Check, ...] = (stable, candidates_unique, messages_unique, namespaced, same_id)
