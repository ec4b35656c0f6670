"""What the import browser knows: the entries of a corpus or a store, and one conversation in parts.

Pure: no widget is needed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct

from crystal_nb import charts, ecma
from crystal_nb.corpus import Corpus, Failure, ParsedConversation
from crystal_nb.decisions import Decision
from crystal_nb.errors import ConfigError
from crystal_nb.records import Conversation, Fate, Message, printable
from crystal_nb.rehearsal import Rehearsal
from crystal_nb.report import ImportReport
from crystal_nb.store import Store
from crystal_nb.widgets.browse_store import StoredRows

__all__ = [
    "COLUMNS",
    "Entry",
    "Part",
    "charts_of",
    "choices",
    "difference",
    "entries_of",
    "parts",
    "row_of",
]

COLUMNS = ("time", "source", "project", "title", "messages", "lost", "decision", "hash")
"""Of the list of conversations."""


class Entry(Struct, frozen=True):
    """One candidate of an import and what is known of it."""

    source: str
    id: str
    project: str
    title: str
    time: str
    """ISO 8601: of its last message, else of its file; empty where there is neither."""
    messages: int | None
    """None where the parse failed."""
    losses: int | None
    """Dropped records; None where nobody counted."""
    decision: str
    """Action of the report, status in the store, or ``failed``."""
    content_hash: str
    load: Callable[[], Conversation | None]
    """Gives the conversation; of a store, reads it."""
    fates: tuple[Fate, ...] = ()
    why: Decision | None = None
    error: str = ""
    has_file_time: bool = False
    """Whether the time is that of the file."""
    stored: StoredRows | None = None
    """Where it stands, of a store; its messages are read only when they are asked for."""


def entries_of(subject: Corpus | Store, report: ImportReport | Rehearsal | None = None) -> list[Entry]:
    """Every conversation of a corpus or a store, in the order of its ``conversations`` frame; failures come last.

    >>> entries_of(Corpus([], []))
    []
    """
    outcomes = _report_of(report).outcomes if report is not None else ()
    decisions = {(o.decision.source, o.decision.candidate_id, o.candidate.file_path): o.decision for o in outcomes}
    if isinstance(subject, Corpus):
        parsed = [_parsed_entry(p, decisions) for p in subject.parsed]
        return parsed + [_failed_entry(f, decisions) for f in subject.failed]
    if isinstance(subject, Store):
        return _stored_entries(subject, decisions)
    raise ConfigError(f"ImportBrowser needs a Corpus or a Store, not {type(subject).__name__}")


def _report_of(given: Any) -> ImportReport:
    """The report of an import, or the one inside a rehearsal of it."""
    report = given.report if isinstance(given, Rehearsal) else given
    if not isinstance(report, ImportReport):
        allowed = "the ImportReport that cnb.import_all gives, or the Rehearsal of cnb.rehearse"
        raise ConfigError(f"ImportBrowser's report is {allowed}, not a {type(given).__name__}")
    return report


_Decisions = Mapping[tuple[str, str, str], Decision]


def _parsed_entry(p: ParsedConversation, decisions: _Decisions) -> Entry:
    c, id = p.conversation, ecma.to_text(p.candidate.id)
    why = decisions.get((c.source, id, p.candidate.file_path))
    return Entry(
        source=c.source,
        id=id,
        project=ecma.to_text(c.project_name),
        title=_title(c),
        time=p.time or p.candidate.file_mtime,
        messages=len(c.messages),
        losses=sum(f.status == "dropped" for f in p.fates),
        decision=why.action if why else "",
        content_hash=p.content_hash,
        load=lambda: c,
        fates=p.fates,
        why=why,
        has_file_time=not p.time,
    )


def _failed_entry(f: Failure, decisions: _Decisions) -> Entry:
    c = f.candidate
    id = ecma.to_text(c.id)
    why = decisions.get((c.source, id, c.file_path))
    return Entry(
        source=c.source,
        id=id,
        project=c.project_dir,
        title=f.error,
        time=c.file_mtime,
        messages=None,
        losses=None,
        decision=why.action if why else "failed",
        content_hash="",
        load=lambda: None,
        why=why,
        has_file_time=True,
        error=f.message,
    )


def _title(c: Conversation) -> str:
    if isinstance(c.slug, str) and c.slug:
        return c.slug
    return next((m.content for m in c.messages if m.type == "user" and m.content), "")[:200]


def _stored_entries(store: Store, decisions: _Decisions) -> list[Entry]:
    found, stored = [], StoredRows(store)
    by_id = {key[:2]: decision for key, decision in decisions.items()}
    for row in store.conversations().to_dicts():
        key = (row["source"], row["source_conversation_id"] or row["id"])
        why = decisions.get((*key, row["file_path"]), by_id.get(key))  # a rehearsal leaves the row its old path
        found.append(
            Entry(
                source=row["source"] or "",
                id=row["id"] or "",
                project=row["project_name"] or "",
                title=row["slug"] or "",
                time=_iso(row["last_message_at"]) or row["file_mtime"] or "",
                messages=row["message_count"],
                losses=None,
                decision=why.action if why else row["status"] or "",
                content_hash=row["content_hash"] or "",
                load=partial(stored.conversation, row["source"] or "", row["id"] or ""),
                why=why,
                has_file_time=row["last_message_at"] is None,
                stored=stored,
            )
        )
    return found


def _iso(time: datetime | None) -> str:
    return "" if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def difference(entry: Entry, loaded: Conversation | None) -> tuple[str, str] | None:
    """Of a stored conversation whose rows no longer have the stored hash: theirs, and why.

    >>> difference(Entry("codex", "7", "", "", "", 0, 0, "", "", lambda: None), None)
    """
    if entry.stored is None or loaded is None:
        return None
    return entry.stored.difference(entry.content_hash, entry.messages, loaded)


def charts_of(entries: Sequence[Entry], *, losses: bool = True) -> list[charts.Chart]:
    """Conversations over time by source, lost records by reason where losses are known, decisions.

    >>> [chart.caption for chart in charts_of([])][1:]
    ['Lost records by reason', 'Decisions']
    """
    lost = Counter(f"{e.source}: {f.reason or f.kind}" for e in entries for f in e.fates if f.status == "dropped")
    decided = Counter(e.decision or "none known" for e in entries)
    return [
        charts.over_time(("" if e.has_file_time else e.time, e.source) for e in entries),
        *([charts.counted("Lost records by reason", "reason", lost)] if losses else []),
        charts.counted("Decisions", "decision", decided),
    ]


def choices(entries: Iterable[Entry], name: str, most: int = 200) -> list[str]:
    """Values of a field, for a list to choose from; no more than there is room for.

    >>> choices([], "source")
    []
    """
    return sorted({value for e in entries if (value := getattr(e, name))})[:most]


def row_of(entry: Entry) -> list[str]:
    """An entry as a row of `COLUMNS`, harmless and short."""
    counts = ["–" if n is None else f"{n:,}" for n in (entry.messages, entry.losses)]
    time = entry.time[:19].replace("T", " ") + (" (file)" if entry.has_file_time and entry.time else "")
    values = [time, entry.source, entry.project, entry.title, *counts, entry.decision]
    return [printable(value[:80]) for value in (*values, entry.content_hash[:8])]


class Part(Struct, frozen=True):
    """A message and what was lost before the next one; the first part has what was lost before any message."""

    index: int | None
    message: Message | None
    lost: tuple[Fate, ...]


def parts(conversation: Conversation, fates: Sequence[Fate]) -> list[Part]:
    """The conversation with its losses where they happened.

    >>> c = Conversation("codex", "7", (Message("user", "hi"),))
    >>> [(p.index, len(p.lost)) for p in parts(c, [Fate("kept", "x", message_index=0), Fate("dropped", "y", "z")])]
    [(None, 0), (0, 1)]
    """
    lost: dict[int, list[Fate]] = {}
    at = -1
    for fate in fates:
        if fate.status == "dropped":
            lost.setdefault(at, []).append(fate)
        elif fate.message_index is not None:
            at = max(at, *fate.messages)
    first = [Part(None, None, tuple(lost.get(-1, ())))]
    return first + [Part(n, m, tuple(lost.get(n, ()))) for n, m in enumerate(conversation.messages)]
