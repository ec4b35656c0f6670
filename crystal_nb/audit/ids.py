"""Identity: ids that meet, drift or are shared, and the rows that get lost by it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from crystal_nb.audit.findings import Answer, Finding, Severity, finding
from crystal_nb.audit.gone import gone, not_scanned
from crystal_nb.audit.reparse import Reparsed, Reparses
from crystal_nb.audit.stored import Stored, StoredFacts, as_facts
from crystal_nb.identity import namespace, namespace_collisions
from crystal_nb.records import counted
from crystal_nb.store import Store

__all__ = ["identity"]

_IDS_AT_ONCE = 500
_SHOWN = 3


def identity(store: Store, candidates: Reparses | None = None, *, facts: StoredFacts | None = None) -> Answer:
    """Ids that several conversations or messages share, and rows that are missing by it.

    Parameters
    ----------
    store
        What is stored.
    candidates
        What `reparse` gave, for what the store alone can't show: ids of the same conversations inside
        and outside, and whose messages stand under another conversation. Default: the store alone.
    facts
        What `read_store` gave, where it was called already.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> with cnb.Store.in_memory(cnb.PINNED, config) as store:
    ...     _ = cnb.import_all(store, config=config)
    ...     identity(store).kinds()
    {'row-count': 1}
    """
    from crystal_nb.audit.tables import table

    known, reparses = as_facts(facts or store).conversations, candidates or Reparses((), (), store.policy(None))
    parsed, listed = reparses.parsed, [(c.source, str(c.id)) for c in reparses.candidates]
    drifted = {(c.source, c.candidate_id or c.id): c.parsed_id or c.id for c in known if _drifts(c)}
    drifted |= {r.key: str(r.parsed_id) for r in parsed if r.error is None and r.parsed_id != r.key[1]}
    findings = [
        *_meeting([*((c.source, c.candidate_id or c.id) for c in known), *listed], harmless=store.layout.by_source),
        *_drift(drifted, harmless=store.layout.by_source),
        *_shared(store, parsed),
        *_counts(known),
    ]
    with store.reported():
        findings += [] if store.layout.by_position else _lost(store, parsed)
    findings += gone(known, reparses)
    rows = [_row(source, [c for c in known if c.source == source], drifted) for source in _sources(known)]
    sentence = f"Identity: {counted(len(known), 'stored conversation')}; {', '.join(_told(findings, reparses))}."
    if unseen := not_scanned(known, reparses):
        sentence += f" Not looked for: histories of {', '.join(unseen)}."
    return Answer("identity", sentence, tuple(findings), {"ids": table("ids", rows)})


def _told(findings: Sequence[Finding], reparses: Reparses) -> Iterator[str]:
    """What the sentence says of them; where not all was parsed, also of how many."""
    number, messages = Counter(f.kind for f in findings), Counter[str]()
    for f in findings:
        messages[f.kind] += f.count
    yield f"{number['row-count']:,} with other numbers of rows than messages"
    if reparses.scanned is not None:
        yield f"{messages['history-gone']:,} without a candidate any more"
    if not reparses.parsed:
        yield "ids inside and messages under other conversations not known, as nothing was parsed"
        return
    of = f"of a sample of {len(reparses.parsed):,}: " if reparses.is_sample else ""
    yield f"{of}{number['id-differs']:,} with another id inside than outside"
    yield f"{counted(messages['shared-message-id'], 'message id')} that several have"
    yield f"{counted(messages['stolen-rows'], 'message')} under another conversation"


def _sources(known: Iterable[Stored]) -> list[str]:
    return list(dict.fromkeys(c.source for c in known))


def _drifts(c: Stored) -> bool:
    """Whether a row says that the candidate had another id than what was inside; namespaced ones are the same."""
    if c.parsed_id is not None and c.candidate_id is not None:
        return c.parsed_id != c.candidate_id and c.parsed_id != namespace(c.source, c.candidate_id)
    return c.candidate_id is not None and c.id not in (c.candidate_id, namespace(c.source, c.candidate_id))


def _meeting(ids: Sequence[tuple[str, str]], *, harmless: bool) -> Iterator[Finding]:
    """Ids that are one with their source before them, which a remote store does; and those of several sources."""
    for named, raws in namespace_collisions(ids).items():
        yield finding("namespace-collision", named.partition(":")[0], named, ", ".join(map(repr, raws)), len(raws))
    sources: dict[str, dict[str, None]] = defaultdict(dict)
    for source, id in ids:
        sources[id][source] = None
    for id, met in sources.items():
        if len(met) > 1:
            severity: Severity | None = "note" if harmless else None
            yield finding("id-in-sources", None, id, ", ".join(met), len(met), severity=severity)


def _drift(drifted: Mapping[tuple[str, str], str], *, harmless: bool) -> Iterator[Finding]:
    for (source, id), inside in drifted.items():
        evidence = f"candidate {id}, inside {inside}"
        yield finding("id-differs", source, id, evidence, severity="note" if harmless else None)


def _counts(known: Iterable[Stored]) -> Iterator[Finding]:
    for c in known:
        if c.message_count is not None and c.message_count != c.rows:
            evidence = f"message_count {c.message_count:,}, rows {c.rows:,}"
            yield finding("row-count", c.source, c.id, evidence, abs(c.message_count - c.rows))


def _shared(store: Store, parsed: Sequence[Reparsed]) -> Iterator[Finding]:
    """Message ids of several conversations, a finding per set of conversations."""
    owners: dict[str, set[tuple[str, str]]] = defaultdict(set)
    with store.reported():
        for id, owner in _stored_shared(store):
            owners[id].add(owner)
    for r in () if store.layout.by_position else parsed:
        for id in r.message_ids:
            owners[id].add(r.key)
    sets = Counter(tuple(sorted(found)) for found in owners.values() if len(found) > 1)
    for keys, number in sets.items():
        names = [namespace(source, id) for source, id in keys]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        sources = {source for source, _ in keys}
        source = sources.pop() if len(sources) == 1 else None
        severity: Severity | None = "note" if store.layout.by_position else None
        evidence = f"{', '.join(names[:_SHOWN])}{more}"
        yield finding("shared-message-id", source, None, evidence, number, severity=severity)


_COPY = "id, length(content), substr(content, 1, 80)"


def _stored_shared(store: Store) -> Iterator[tuple[str, tuple[str, str]]]:
    """Ids of messages that stand under several conversations; only a store that keys them by position has any.

    Their beginning has to be the same, too: careful rules derive ids from the position where a tool has none.
    """
    if not store.layout.by_position:
        return
    owner = "source || char(0) || conversation_id" if store.layout.by_source else "char(0) || conversation_id"
    query = (
        f"WITH shared AS (SELECT id FROM messages WHERE id IS NOT NULL GROUP BY {_COPY}"
        f" HAVING count(DISTINCT {owner}) > 1) SELECT DISTINCT m.id, {owner} FROM messages m JOIN shared USING (id)"
    )
    for id, key in store.connection.execute(query):
        source, _, conversation = key.partition("\0")
        yield id, (source, conversation)


def _lost(store: Store, parsed: Sequence[Reparsed]) -> Iterator[Finding]:
    """Messages of stored conversations whose rows stand under another one, or became one row."""
    stored = [(r, r.stored or r.pinned) for r in parsed]
    current = [(r, s.id) for r, s in stored if s is not None and not s.is_short and s.content_hash == r.content_hash]
    wanted = {id for r, _ in current for id in r.message_ids}
    owners = {id: (owner, source) for id, owner, source in _owners(store, wanted)}
    for r, row in current:
        elsewhere = (owners[id] for id in dict.fromkeys(r.message_ids) if owners.get(id, (row, None))[0] != row)
        stolen = Counter((namespace(source, id) if source else id) for id, source in elsewhere)
        if stolen:
            evidence = ", ".join(f"{n:,} under {name}" for name, n in stolen.items())
            yield finding("stolen-rows", r.candidate.source, row, evidence, stolen.total())
        if collapsed := len(r.message_ids) - len(set(r.message_ids)):
            yield finding("collapsed-rows", r.candidate.source, row, f"{collapsed:,} rows fewer", collapsed)


def _owners(store: Store, ids: set[str]) -> Iterator[tuple[str, str, str | None]]:
    """Message, its conversation, and the source of that one."""
    wanted = sorted(ids)
    for start in range(0, len(wanted), _IDS_AT_ONCE):
        some = wanted[start : start + _IDS_AT_ONCE]
        marks = ", ".join("?" * len(some))
        yield from store.connection.execute(
            "SELECT m.id, m.conversation_id, c.source FROM messages m LEFT JOIN conversations c"
            f" ON c.id = m.conversation_id WHERE m.id IN ({marks})",
            some,
        )


def _row(source: str, known: Sequence[Stored], drifted: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    return {
        "source": source,
        "conversations": len(known),
        "message_count": sum(max(c.message_count or 0, 0) for c in known),
        "rows": sum(c.rows for c in known),
        "incomplete": sum(c.rows < (c.message_count or 0) for c in known),
        "drifted": sum((c.source, c.candidate_id or c.id) in drifted for c in known),
    }
