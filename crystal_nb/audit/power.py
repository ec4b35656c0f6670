"""Hash power: what each hashed field tells apart, what the others hide, which conversations are the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from crystal_nb.audit.findings import Answer, Finding, finding
from crystal_nb.audit.reparse import Reparsed, Reparses
from crystal_nb.audit.stored import EXCLUDED, Stored, StoredFacts, as_facts
from crystal_nb.hashing import HASH_FIELDS
from crystal_nb.identity import namespace
from crystal_nb.records import counted
from crystal_nb.store import Store

__all__ = ["hash_power"]

_SHOWN = 3


def hash_power(store: Store, candidates: Reparses | None = None, *, facts: StoredFacts | None = None) -> Answer:
    """What each field of the hash tells apart among what is stored, and which changes the hash ignored.

    Parameters
    ----------
    store
        What is stored.
    candidates
        What `reparse` gave, to compare the stored and the present version of each conversation. Default:
        the store alone.
    facts
        What `read_store` gave, where it was called already.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> with cnb.Store.in_memory(cnb.PINNED, config) as store:
    ...     _ = cnb.import_all(store, config=config)
    ...     hash_power(store).tables["power"]["field"].to_list()[:3]
    ['source', 'index', 'type']
    """
    from crystal_nb.audit.tables import table

    known = as_facts(facts or store)
    pairs = list(_versions(known, () if candidates is None else candidates.parsed))
    changed = [(s, r) for s, r in pairs if s.keys[0] != r.keys[0]]
    same = [(s, r) for s, r in pairs if s.keys[0] == r.keys[0]]
    ignored = {  # what moves by itself has not changed
        f: [s for s, r in same if s.marks[n] != r.marks[n] and f not in r.moved] for n, f in enumerate(EXCLUDED)
    }
    rows = [_included(n, field, known.conversations, changed) for n, field in enumerate(HASH_FIELDS, 1)]
    rows += [{"field": f, "hashed": False, "ignored": len(found)} for f, found in ignored.items()]
    findings = [*_duplicates(known.conversations), *_ignored(ignored)]
    useless = sum(not (row["groups"] or row["versions"]) for row in rows if row["hashed"])
    touched = {(s.source, s.id) for found in ignored.values() for s in found}
    changes = f"{counted(len(touched), 'conversation')} changed in ways that the hash ignores"
    if candidates is None or not candidates.parsed:
        changes = "changes that the hash ignores are not known, as nothing was parsed"
    elif candidates.is_sample:
        changes = f"of a sample of {len(candidates.parsed):,}, {changes}"
    sentence = (
        f"Hash power: {len(HASH_FIELDS) - useless} of {len(HASH_FIELDS)} hashed fields tell conversations or versions"
        f" apart that nothing else does; {changes}."
    )
    return Answer("hash power", sentence, tuple(findings), {"power": table("power", rows)})


def _versions(known: StoredFacts, parsed: Sequence[Reparsed]) -> Iterator[tuple[Stored, Reparsed]]:
    """Stored and present version of each conversation, where both are by the same rules and whole."""
    by_key = known.by_key()
    for r in parsed:
        row = r.stored or r.pinned
        stored = None if row is None or row.is_short else by_key.get((row.source, row.id))
        if stored is None or r.error is not None or "content_hash" in r.moved:
            continue
        if stored.parser_version in (None, r.parser_version) and stored.message_count in (None, stored.rows):
            yield stored, r


def _included(
    place: int, field: str, known: Sequence[Stored], changed: Sequence[tuple[Stored, Reparsed]]
) -> dict[str, Any]:
    groups: dict[int, dict[int, Stored]] = defaultdict(dict)
    for c in known:
        groups[c.keys[place]].setdefault(c.keys[0], c)
    met = [list(g.values()) for g in groups.values() if len(g) > 1]
    example = [namespace(c.source, c.id) for c in met[0][:2]] if met else [None, None]
    return {
        "field": field,
        "hashed": True,
        "groups": len(met),
        "conversations": sum(map(len, met)),
        "pairs": sum(len(g) * (len(g) - 1) // 2 for g in met),
        "versions": sum(s.keys[place] == r.keys[place] for s, r in changed),
        "example_a": example[0],
        "example_b": example[1],
    }


def _duplicates(known: Sequence[Stored]) -> Iterator[Finding]:
    """Conversations with rows that differ in nothing hashed, or in the source only."""
    without_source = HASH_FIELDS.index("source") + 1
    groups: dict[int, list[Stored]] = defaultdict(list)
    for c in known:
        if c.rows:
            groups[c.keys[without_source]].append(c)
    for group in groups.values():
        by_source: dict[str, list[Stored]] = defaultdict(list)
        for c in group:
            by_source[c.source].append(c)
        for source, found in by_source.items():
            if len(found) > 1:
                yield finding("duplicate", source, found[0].id, _names(found), len(found))
        if len(by_source) > 1:
            yield finding("duplicate-across-sources", None, None, _names(group), len(group))


def _names(found: Sequence[Stored]) -> str:
    names = [namespace(c.source, c.id) for c in found]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _ignored(ignored: dict[str, list[Stored]]) -> Iterator[Finding]:
    for field, found in ignored.items():
        for source, number in Counter(s.source for s in found).items():
            example = next(s for s in found if s.source == source)
            evidence = f"{field}; such as {namespace(source, example.id)}"
            yield finding("ignored-change", source, example.id if number == 1 else None, evidence, number)
