"""Non-determinism: what moves between two parses of the same bytes."""

from __future__ import annotations

from collections import defaultdict

from crystal_nb.audit.findings import Answer, finding
from crystal_nb.audit.reparse import Reparsed, Reparses, as_reparses
from crystal_nb.candidates import Candidates
from crystal_nb.config import Config
from crystal_nb.records import counted
from crystal_nb.store import Store

__all__ = ["non_determinism"]


def non_determinism(
    store: Store, candidates: Candidates | Reparses, *, config: Config | None = None, sample: int | None = None
) -> Answer:
    """Fields and hashes that two parses of the same bytes give differently: by the clock, by chance, in order.

    Parameters
    ----------
    store, candidates, config, sample
        As for `stale_skips`.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> with cnb.Store.in_memory(cnb.PINNED, config) as store:
    ...     non_determinism(store, cnb.scan("codex", config=config), config=config).tables["moves"]["field"].to_list()
    ['message id']
    """
    from crystal_nb.audit.tables import table

    reparses = as_reparses(store, candidates, config, sample)
    parsed: dict[tuple[str, str], int] = defaultdict(int)
    moved: dict[tuple[str, str, str], list[Reparsed]] = defaultdict(list)
    for r in reparses.parsed:
        if r.error is None:
            by = (r.candidate.source, r.parser_version or "")
            parsed[by] += 1
            for field in r.moved:
                moved[*by, field].append(r)
    findings = [
        finding(
            "hash-moves" if field == "content_hash" else "field-moves",
            source,
            found[0].key[1] if len(found) == 1 else None,
            f"{field}, by {version}; such as {found[0].key[1]}",
            len(found),
        )
        for (source, version, field), found in moved.items()
    ]
    rows = [
        {"source": s, "parser_version": v, "field": f, "conversations": len(found), "parsed": parsed[s, v]}
        for (s, v, f), found in moved.items()
    ]
    hashes = sum(f.count for f in findings if f.kind == "hash-moves")
    touched = sum(bool(r.moved) for r in reparses.parsed)
    sentence = "Non-determinism: not known, as nothing was parsed."
    if reparses.parsed:
        twice = f"of {counted(sum(parsed.values()), 'conversation')} parsed twice"
        sentence = f"Non-determinism: {twice}, {touched:,} came out differently, {hashes:,} with another hash."
    return Answer("non-determinism", sentence, tuple(findings), {"moves": table("moves", rows)})
