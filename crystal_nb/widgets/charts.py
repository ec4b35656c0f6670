"""Counts as bars beside their numbers: tables that read without colours and without a style sheet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from crystal_nb.widgets.browse_view import Entry
from crystal_nb.widgets.markup import table, text

__all__ = ["bars", "decisions", "losses", "over_time", "stacked"]

_MOST = 12
_PERIODS = (10, 7, 4)
"""Lengths of a day, a month and a year at the beginning of a time."""


def bars(caption: str, head: str, counts: Mapping[str, int]) -> str:
    """The largest counts, each with a bar.

    >>> "2 more" in bars("Things", "thing", {str(n): 20 - n for n in range(14)})
    True
    """
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    largest = max(counts.values(), default=1)
    rows = [[text(name or "–", 80), f"{n:,}", _bar([(n, 0)], largest)] for name, n in listed[:_MOST]]
    if rest := listed[_MOST:]:
        rows.append([f"{len(rest):,} more", f"{sum(n for _, n in rest):,}", ""])
    return f'<div class="cnb-chart">{table(caption, [head, "number", "bar"], rows)}</div>'


def stacked(caption: str, head: str, counts: Mapping[str, Mapping[str, int]], names: Sequence[str]) -> str:
    """Counts per row, each with a bar of one part per name.

    >>> "codex 2" in stacked("Over time", "day", {"2026-01-01": {"codex": 2}}, ["codex"])
    True
    """
    largest = max((sum(row.values()) for row in counts.values()), default=1)
    rows = []
    for label, row in counts.items():
        told = ", ".join(f"{name} {row[name]:,}" for name in names if row.get(name))
        parts = [(row[name], number) for number, name in enumerate(names) if row.get(name)]
        rows.append([text(label, 40), text(told, 200), _bar(parts, largest)])
    return f'<div class="cnb-chart">{table(caption, [head, "number", "bar"], rows)}</div>'


def _bar(parts: Iterable[tuple[int, int]], largest: int) -> str:
    widths = ((100 * count / largest, number % 6) for count, number in parts)
    cells = "".join(f'<span class="cnb-bar cnb-bar{n}" style="width:{width:.2f}%"></span>' for width, n in widths)
    return f'<div class="cnb-bars" aria-hidden="true">{cells}</div>'


def over_time(entries: Sequence[Entry]) -> str:
    """Conversations over time by source: by day, month or year, whichever has room."""
    known = [e for e in entries if e.time]
    for length in _PERIODS:
        counts: dict[str, Counter[str]] = {}
        for entry in known:
            counts.setdefault(entry.time[:length], Counter())[entry.source] += 1
        if len(counts) <= 2 * _MOST:
            break
    names = [name for name, _ in Counter(e.source for e in known).most_common()]
    latest = dict(sorted(counts.items())[-2 * _MOST :])
    return stacked("Conversations over time by source", {10: "day", 7: "month", 4: "year"}[length], latest, names)


def losses(entries: Iterable[Entry]) -> str:
    """Lost records by reason."""
    found = Counter(f"{e.source}: {f.reason or f.kind}" for e in entries for f in e.fates if f.status == "dropped")
    return bars("Lost records by reason", "reason", found)


def decisions(entries: Iterable[Entry]) -> str:
    """Conversations by what was decided."""
    return bars("Decisions", "decision", Counter(e.decision or "none known" for e in entries))
