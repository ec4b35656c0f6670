"""Stale skips and wasted work: where the check before a parse is wrong, in both directions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import comb, exp, lgamma, log
from typing import Any

from crystal_nb.audit.findings import Answer, Finding, finding
from crystal_nb.audit.reparse import Reparsed, Reparses, as_reparses
from crystal_nb.candidates import Candidates
from crystal_nb.config import Config
from crystal_nb.records import counted
from crystal_nb.store import Store

__all__ = ["stale_skips", "upper_bound", "wasted_work"]

_LEVEL = 0.05
_EXACT_UP_TO = 1000


def upper_bound(found: int, drawn: int) -> float:
    """Exact 95 % upper confidence bound of a share (Clopper and Pearson, one-sided).

    The largest share by which so few, or fewer, would be found in 5 of 100 draws.

    Parameters
    ----------
    found
        How many of those drawn have it.
    drawn
        How many were drawn.

    Examples
    --------
    >>> round(upper_bound(0, 100), 4), upper_bound(3, 3)
    (0.0295, 1.0)
    """
    if found >= drawn:
        return 1.0
    low, high = found / drawn, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _tail(found, drawn, middle) > _LEVEL:
            low = middle
        else:
            high = middle
    return high


def _tail(found: int, drawn: int, share: float) -> float:
    """Chance to find at most so many."""
    if share in (0.0, 1.0):
        return 1.0 - share
    if drawn <= _EXACT_UP_TO:
        return sum(comb(drawn, i) * share**i * (1 - share) ** (drawn - i) for i in range(found + 1))
    return sum(
        exp(lgamma(drawn + 1) - lgamma(i + 1) - lgamma(drawn - i + 1) + i * log(share) + (drawn - i) * log(1 - share))
        for i in range(found + 1)
    )


def stale_skips(
    store: Store, candidates: Candidates | Reparses, *, config: Config | None = None, sample: int | None = None
) -> Answer:
    """Candidates that the pinned check of size and time skips although their messages are not what is stored.

    Parameters
    ----------
    store
        What is stored.
    candidates
        What to parse, or what `reparse` gave.
    config
        The configuration that the scan had.
    sample
        Parse as many only, drawn by chance; the table then has an exact upper bound for all.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> with cnb.Store.in_memory(cnb.PINNED, config) as store:
    ...     stale_skips(store, cnb.scan(config=config), config=config).sentence
    'Stale skips: the pinned check would skip none of the 10 candidates.'
    """
    from crystal_nb.audit.tables import table

    reparses = as_reparses(store, candidates, config, sample)
    findings: list[Finding] = []
    rows: list[dict[str, Any]] = []
    skipped = [r for r in reparses.parsed if r.is_skipped]
    for r in skipped:
        findings += _stale(r)
    kinds = Counter((f.source, f.kind == "stale-skip") for f in findings)
    for source in dict.fromkeys(c.source for c in reparses.candidates):
        rows.append(_row(reparses, source, [r for r in skipped if r.candidate.source == source], kinds))
    total = {
        name: sum(row[name] for row in rows) for name in ("candidates", "parsed", "skipped", "stale", "undecidable")
    }
    bound = _bound(reparses, total)
    rows.append({"source": None, **total, "upper_bound": bound})
    return Answer("stale skips", _sentence(reparses, total, bound), tuple(findings), {"skips": table("skips", rows)})


def _bound(reparses: Reparses, counts: Mapping[str, int]) -> float | None:
    """Of those that can be decided; the others say nothing, in either direction."""
    if not (reparses.is_sample and counts["skipped"]):
        return None
    return upper_bound(counts["stale"], counts["skipped"] - counts["undecidable"])


def _stale(r: Reparsed) -> Iterator[Finding]:
    known = r.pinned
    assert known is not None
    source, id = r.key
    if r.error is not None:
        yield finding("unreadable", source, id, r.error)
        return
    if known.content_hash == r.content_hash:
        return
    hashes = f"stored {_cut(known.content_hash)}, now {_cut(r.content_hash)}"
    evidence = f"{hashes}; size {known.file_size}, time {known.file_mtime}"
    if known.content_hash is None:
        yield finding("unhashed", source, id, evidence)
    elif "content_hash" in r.moved:
        yield finding("undecidable", source, id, evidence)
    elif known.parser_version not in (None, r.parser_version):
        yield finding(
            "other-parser", source, id, f"{evidence}; stored by {known.parser_version}, now {r.parser_version}"
        )
    else:
        yield finding("stale-skip", source, id, evidence)


def _row(reparses: Reparses, source: str, skipped: Sequence[Reparsed], kinds: Counter[Any]) -> dict[str, Any]:
    counts = {"skipped": len(skipped), "stale": kinds[source, True], "undecidable": kinds[source, False]}
    return {
        "source": source,
        "candidates": sum(c.source == source for c in reparses.candidates),
        "parsed": sum(r.candidate.source == source for r in reparses.parsed),
        **counts,
        "upper_bound": _bound(reparses, counts),
    }


def _sentence(reparses: Reparses, counts: Mapping[str, int], bound: float | None) -> str:
    skipped, stale, open_ = (counts[name] for name in ("skipped", "stale", "undecidable"))
    parsed, all_of = len(reparses.parsed), len(reparses.candidates)
    if not parsed:
        return "Stale skips: not known, as nothing was parsed."
    of = f"a sample of {parsed:,} of the {all_of:,}" if reparses.is_sample else f"the {all_of:,}"
    candidates = "candidate" if all_of == 1 else "candidates"
    policy, check = reparses.policy, "the pinned check"
    if policy.fingerprint:
        check = f"by size and time alone, which the policy {policy.name} does not trust, the pinned check"
    if not skipped:
        return f"Stale skips: {check} would skip none of {of} {candidates}."
    found = f"{stale:,} of them {'is' if stale == 1 else 'are'} stale"
    text = f"Stale skips: of {of} {candidates} {check} would skip {skipped:,}; {found}"
    if open_:
        text += f", {open_:,} can't be decided"
    if bound is None:
        return f"{text}."
    of_all = f"of all that it would skip{' and that can be decided' if open_ else ''}"
    return f"{text}; with 95 % confidence at most {100 * bound:.2f} % {of_all} (seed {reparses.seed})."


def _cut(digest: str | None) -> str:
    return "nothing" if digest is None else digest[:12]


def wasted_work(
    store: Store, candidates: Candidates | Reparses, *, config: Config | None = None, sample: int | None = None
) -> Answer:
    """Candidates that the next import parses for nothing, as does the one after it.

    Parameters
    ----------
    store, candidates, config, sample
        As for `stale_skips`; of a sample, only what is in it counts.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> with cnb.Store.in_memory(cnb.PINNED, config) as store:
    ...     _ = cnb.import_all(store, config=config)
    ...     wasted_work(store, cnb.scan(config=config), config=config).kinds()
    {'short': 3, 'never-found': 1}
    """
    from crystal_nb.audit.tables import table

    reparses = as_reparses(store, candidates, config, sample)
    wasted = [(kind, r) for r in reparses.parsed if r.is_parsed_anew and (kind := _waste(r, reparses))]
    shared = Counter(r.candidate.file_path for r in reparses.parsed)
    findings = [_wasted(kind, r) for kind, r in wasted]
    groups: dict[tuple[str, str, str | None], list[Reparsed]] = defaultdict(list)
    for kind, r in wasted:
        path = r.candidate.file_path
        groups[r.candidate.source, kind, path if shared[path] > 1 else None].append(r)
    rows = [
        {
            "source": source,
            "reason": kind,
            "file_path": path,
            "candidates": len(found),
            "bytes": sum({r.candidate.file_path: r.candidate.file_size for r in found}.values()),
        }
        for (source, kind, path), found in groups.items()
    ]
    of = f"{'a sample of ' if reparses.is_sample else ''}{counted(len(reparses.parsed), 'candidate')}"
    counts = ", ".join(f"{n:,} {kind}" for kind, n in Counter(kind for kind, _ in wasted).items())
    named = f" ({counts})" if counts else ""
    sentence = f"Wasted work: of {of} the next import parses {len(wasted):,} for nothing{named}."
    if not reparses.parsed:
        sentence = "Wasted work: not known, as nothing was parsed."
    return Answer("wasted work", sentence, tuple(findings), {"waste": table("waste", rows)})


def _waste(r: Reparsed, reparses: Reparses) -> str | None:
    policy = reparses.policy
    if r.error is not None:
        return "parse-fails"
    if r.message_count < policy.min_messages:
        return None if policy.remember_short and r.is_clean else "short"
    if r.stored is None:
        return "never-found" if r.is_taken else None
    return "churn" if r.stored.content_hash == r.content_hash and not _only_versions_differ(r) else None


def _only_versions_differ(r: Reparsed) -> bool:
    """Parsed anew because the rules are newer, not because of the file."""
    assert r.stored is not None
    return (r.stored.file_size, r.stored.file_mtime) == (r.candidate.file_size, r.candidate.file_mtime)


def _wasted(kind: str, r: Reparsed) -> Finding:
    source, id = r.key
    evidence = {
        "parse-fails": r.error or "",
        "short": counted(r.message_count, "message"),
        "never-found": f"candidate {id}, inside {r.parsed_id}",
        "churn": f"size {r.candidate.file_size}, time {r.candidate.file_mtime}; the messages are those stored",
    }[kind]
    return finding(kind, source, id, evidence)
