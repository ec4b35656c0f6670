"""Drift: record kinds, empty fields and the mix of messages, by month and by rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from crystal_nb.audit.findings import Answer, Finding, counted, finding
from crystal_nb.audit.reparse import Reparses
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
    """How what is read changes over time, with the kinds of records that no rule knows.

    A share that moves by half or more between neighbouring months of one source and parser version,
    each with 20 messages or more, is a finding.

    Parameters
    ----------
    store
        Its messages give the mix by month.
    candidates
        What `reparse` gave; its records give the kinds. Default: the store alone.

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

    with store.reported():
        mix = list(_mix(store))
    kinds = [] if candidates is None else list(_kinds(candidates))
    findings = [*_unknown(kinds), *_moved(mix)]
    unknown = sum(row["records"] for row in kinds if not row["known"])
    months = len({row["month"] for row in mix if row["month"]})
    messages, records = sum(row["messages"] for row in mix), sum(row["records"] for row in kinds)
    sentence = f"Drift: {counted(messages, 'message')} of {counted(months, 'month')}"
    sentence += f"; {unknown:,} of {counted(records, 'raw record')} of kinds that no rule knows." if records else "."
    return Answer(
        "drift", sentence, tuple(findings), {"mix": table("mix", mix), "kinds_read": table("kinds_read", kinds)}
    )


_MONTH = "CASE WHEN m.timestamp GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-*' THEN substr(m.timestamp, 1, 7) END"


def _mix(store: Store) -> Iterator[dict[str, Any]]:
    known = columns_of(store.connection, "messages")
    heads = columns_of(store.connection, "conversations")
    column = {n: f"m.{n}" if n in known else "NULL" for n in ("type", "role", "content", "thinking", "parent_uuid")}
    flags = {n: f"m.{n}" if n in known else "0" for n in ("has_tool_use", "has_code")}
    month = _MONTH if "timestamp" in known else "NULL"
    version = "c.parser_version" if "parser_version" in heads else "NULL"
    match = " AND ".join(f"c.{'source' if n == 'source' else 'id'} = m.{n}" for n in store.layout.owner)
    query = f"""
        SELECT c.source, {version}, {month}, count(*),
          total({column["type"]} = 'user'), total({column["type"]} = 'assistant'),
          total({flags["has_tool_use"]} <> 0), total({flags["has_code"]} <> 0),
          total({column["role"]} IS NULL), total({column["thinking"]} IS NULL),
          total({column["parent_uuid"]} IS NULL), total(coalesce({column["content"]}, '') = '')
        FROM messages m JOIN conversations c ON {match} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
    for source, by, when, count, *shares in store.connection.execute(query):
        named = zip(("user", "assistant", "tool_use", "code", *_EMPTY), (s / count for s in shares), strict=True)
        yield {"source": source, "parser_version": by, "month": when, "messages": count, **dict(named)}


def _kinds(reparses: Reparses) -> Iterator[dict[str, Any]]:
    counts: Counter[tuple[str, str, str, str, str]] = Counter()
    for r in reparses.parsed:
        for (kind, status, reason), number in r.records.items():
            counts[r.candidate.source, r.parser_version or "", kind, status, reason] += number
    for (source, version, kind, status, reason), number in sorted(counts.items()):
        yield {
            "source": source,
            "parser_version": version,
            "kind": kind,
            "status": status,
            "reason": reason or None,
            "records": number,
            "known": not _says_unknown(reason),
        }


def _says_unknown(reason: str) -> bool:
    """Careful rules say so; pinned ones drop what they don't import without knowing what it is."""
    return reason.startswith("unknown ") or reason == "kind is not known"


def _unknown(kinds: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    for row in kinds:
        if not row["known"]:
            evidence = f"{row['kind']}: {row['reason']}, by {row['parser_version']}"
            yield finding("unknown-kind", row["source"], None, evidence, row["records"])


def _moved(mix: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    series: dict[tuple[str, str | None], list[dict[str, Any]]] = defaultdict(list)
    for row in mix:
        if row["month"] is not None and row["messages"] >= _ENOUGH:
            series[row["source"], row["parser_version"]].append(row)
    for (source, version), rows in series.items():
        for before, after in pairwise(rows):
            for name in (*_EMPTY, *_MIX):
                if abs(after[name] - before[name]) >= _MOVED:
                    months = f"{before['month']} {before[name]:.0%}, {after['month']} {after[name]:.0%}"
                    kind = "nulls-moved" if name in _EMPTY else "mix-moved"
                    yield finding(kind, source, None, f"{name}: {months}, by {version}", after["messages"])
