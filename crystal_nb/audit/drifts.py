"""Drift: record kinds, empty fields and the mix of messages, by month and by rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from crystal_nb.audit.findings import Answer, Finding, finding
from crystal_nb.audit.reparse import Reparsed, Reparses
from crystal_nb.records import counted
from crystal_nb.store import Store
from crystal_nb.store_schema import columns_of

__all__ = ["drift"]

_MOVED = 0.5
"""Change of a share from one month to the next that is a finding."""
_ENOUGH = 20
"""Messages that a month needs to be compared."""
_EMPTY = ("no_role", "no_thinking", "no_parent", "no_text")
_MIX = ("user", "assistant", "tool_use")


def drift(store: Store, candidates: Reparses | None = None) -> Answer:
    """How what is read changes over time and from version to version of the tools, with the kinds that no rule knows.

    A share that moves by half or more between neighbouring months of one source and parser version,
    each with 20 messages or more, is a finding. Which kinds of records and parts of records are
    unknown is what the newest rules say, whichever rules the store follows.

    Parameters
    ----------
    store
        Its messages give the mix by month.
    candidates
        What `reparse` gave; its records give the kinds and the tools' versions. Default: the store alone.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> with cnb.Store.in_memory(cnb.PINNED, config) as store:
    ...     _ = cnb.import_all(store, config=config)
    ...     drift(store).tables["mix"].filter(source="trae")["messages"].to_list()
    [2]
    """
    from crystal_nb.audit.tables import table

    parsed = () if candidates is None else candidates.parsed
    with store.reported():
        mix = _mix(store, _tool_versions(parsed))
    kinds = list(_kinds(parsed))
    findings = [*_unknown(kinds), *_moved(mix)]
    told = [row for row in kinds if row["known"] is not None]
    unknown, records = sum(row["records"] for row in told if not row["known"]), sum(row["records"] for row in told)
    months = len({row["month"] for row in mix if row["month"]})
    sentence = f"Drift: {counted(sum(row['messages'] for row in mix), 'message')} of {counted(months, 'month')}"
    if tools := len({(row["source"], row["tool_version"]) for row in kinds if row["tool_version"]}):
        sentence += f" and {counted(tools, 'tool version')}"
    sentence += f"; {unknown:,} of {counted(records, 'raw record')} of kinds that no rule knows." if records else "."
    tables = {"mix": table("mix", map(_shares, mix)), "kinds_read": table("kinds_read", kinds)}
    return Answer("drift", sentence, tuple(findings), tables)


def _tool_versions(parsed: Iterable[Reparsed]) -> dict[tuple[str, str], str]:
    """Version of the tool by source and id of the stored row."""
    rows = ((r.stored or r.pinned, r.tool_version) for r in parsed)
    return {(row.source, row.id): version for row, version in rows if row is not None and version is not None}


_MONTH = "CASE WHEN m.timestamp GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-*' THEN substr(m.timestamp, 1, 7) END"


_COUNTS = ("messages", "user", "assistant", "tool_use", "code", *_EMPTY)


def _mix(store: Store, tools: Mapping[tuple[str, str], str]) -> list[dict[str, Any]]:
    """Counts of messages by source, parser version, tool version and month."""
    sums: dict[tuple[Any, ...], list[float]] = {}
    for source, id, by, when, *counts in _counts(store, by_conversation=bool(tools)):
        key = (source, by, tools.get((source, id)), when)
        known = sums.get(key)
        sums[key] = counts if known is None else [a + b for a, b in zip(known, counts, strict=True)]
    names = ("source", "parser_version", "tool_version", "month", *_COUNTS)
    return [
        dict(zip(names, (*key, *sums[key]), strict=True))
        for key in sorted(sums, key=lambda key: [(v is not None, str(v)) for v in key])
    ]


def _counts(store: Store, *, by_conversation: bool) -> Iterator[tuple[Any, ...]]:
    known = columns_of(store.connection, "messages")
    heads = columns_of(store.connection, "conversations")
    column = {n: f"m.{n}" if n in known else "NULL" for n in ("type", "role", "content", "thinking", "parent_uuid")}
    flags = {n: f"m.{n}" if n in known else "0" for n in ("has_tool_use", "has_code")}
    month = _MONTH if "timestamp" in known else "NULL"
    version = "c.parser_version" if "parser_version" in heads else "NULL"
    id = "c.id" if by_conversation else "NULL"
    match = " AND ".join(f"c.{'source' if n == 'source' else 'id'} = m.{n}" for n in store.layout.owner)
    query = f"""
        SELECT c.source, {id}, {version}, {month}, count(*),
          total({column["type"]} = 'user'), total({column["type"]} = 'assistant'),
          total({flags["has_tool_use"]} <> 0), total({flags["has_code"]} <> 0),
          total({column["role"]} IS NULL), total({column["thinking"]} IS NULL),
          total({column["parent_uuid"]} IS NULL), total(coalesce({column["content"]}, '') = '')
        FROM messages m JOIN conversations c ON {match} GROUP BY 1, 2, 3, 4"""
    yield from store.connection.execute(query)


def _shares(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, **{name: row[name] / row["messages"] for name in _COUNTS[1:]}}


def _kinds(parsed: Iterable[Reparsed]) -> Iterator[dict[str, Any]]:
    """By the rules that stored a conversation, and by the newest ones where these are others."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for r in parsed:
        old = r.newest is not None
        ways = [(r.parser_version, r.records, not old), *([(r.newest, r.newest_records, True)] if old else [])]
        for version, records, tells in ways:
            for (kind, status, reason), number in records.items():
                key = (r.candidate.source, version, r.tool_version, r.month, kind, status, reason, tells)
                counts[key] += number
    names = ("source", "parser_version", "tool_version", "month", "kind", "status", "reason")
    for key in sorted(counts, key=lambda key: [(v is not None, str(v)) for v in key]):
        *values, reason, tells = key
        known = not _says_unknown(reason) if tells else None
        row = dict(zip(names, (*values, reason or None), strict=True))
        yield {**row, "records": counts[key], "known": known}


def _says_unknown(reason: str) -> bool:
    """Careful rules say so; pinned ones drop what they don't import without knowing what it is."""
    return reason.startswith("unknown ") or reason == "kind is not known"


def _unknown(kinds: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in kinds:
        if row["known"] is False:
            counts[row["source"], row["kind"], row["reason"], row["parser_version"]] += row["records"]
    for (source, kind, reason, version), number in counts.items():
        yield finding("unknown-kind", source, None, f"{kind}: {reason}, by {version}", number)


def _moved(mix: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    for (source, version), rows in _series(mix).items():
        for before, after in pairwise(rows):
            for name in (*_EMPTY, *_MIX):
                if abs(after[name] - before[name]) >= _MOVED:
                    months = f"{before['month']} {before[name]:.0%}, {after['month']} {after[name]:.0%}"
                    tools = [", ".join(sorted(row["tools"])) or "?" for row in (before, after)]
                    written = f", written by {tools[0]} and {tools[1]}" if before["tools"] | after["tools"] else ""
                    kind = "nulls-moved" if name in _EMPTY else "mix-moved"
                    yield finding(kind, source, None, f"{name}: {months}, by {version}{written}", after["messages"])


def _series(mix: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str | None], list[dict[str, Any]]]:
    """Shares month by month, of all tool versions together; months with few messages are left out."""
    months: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in mix:
        if row["month"] is None:
            continue
        key = (row["source"], row["parser_version"], row["month"])
        sums = months.setdefault(key, {"month": row["month"], "tools": set(), **dict.fromkeys(_COUNTS, 0)})
        sums["tools"] |= {row["tool_version"]} - {None}
        for name in _COUNTS:
            sums[name] += row[name]
    series: dict[tuple[str, str | None], list[dict[str, Any]]] = defaultdict(list)
    for source, version, month in sorted(months, key=lambda key: [(v is not None, str(v)) for v in key]):
        sums = months[source, version, month]
        if sums["messages"] >= _ENOUGH:
            series[source, version].append({**_shares(sums), "messages": sums["messages"]})
    return series
