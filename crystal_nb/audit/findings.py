"""What an audit found: one record per finding, every kind with its question and its weight."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.errors import ConfigError, CrystalError
from crystal_nb.identity import namespace
from crystal_nb.records import printable
from crystal_nb.redaction import Masker

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "KINDS",
    "QUESTIONS",
    "Answer",
    "Finding",
    "Kind",
    "Question",
    "Severity",
    "checked_questions",
    "finding",
]

Severity = Literal["fault", "note"]
Question = Literal[
    "stale skips",
    "wasted work",
    "identity",
    "hash power",
    "integrity",
    "non-determinism",
    "drift",
    "scan cost",
    "coverage",
]
QUESTIONS: tuple[Question, ...] = (
    "stale skips",
    "wasted work",
    "identity",
    "hash power",
    "integrity",
    "non-determinism",
    "drift",
    "scan cost",
    "coverage",
)


class Kind(NamedTuple):
    """A kind of finding."""

    question: Question
    severity: Severity
    meaning: str


KINDS: Mapping[str, Kind] = {
    "stale-skip": Kind(
        "stale skips", "fault", "the pinned check would skip it, and its messages are others than stored"
    ),
    "undecidable": Kind("stale skips", "note", "its hash moves from parse to parse, so it can't be compared"),
    "unreadable": Kind("stale skips", "note", "the pinned check would skip it, and its parse fails"),
    "unhashed": Kind("stale skips", "note", "the stored row has no hash to compare with"),
    "other-parser": Kind(
        "stale skips", "note", "stored by rules that are not here, and its messages differ by the present ones"
    ),
    "short": Kind("wasted work", "note", "too few messages to be stored, so it is parsed at every import"),
    "never-found": Kind(
        "wasted work", "fault", "the id inside is not the candidate's, so it is parsed and fails at every import"
    ),
    "churn": Kind("wasted work", "note", "size or time of the file changed and the messages did not"),
    "parse-fails": Kind("wasted work", "fault", "its parse fails, at every import"),
    "namespace-collision": Kind("identity", "fault", "raw ids that are the same one with their source before them"),
    "id-in-sources": Kind("identity", "fault", "the same raw id in several sources"),
    "id-differs": Kind("identity", "fault", "the id of the candidate is not that of the conversation"),
    "shared-message-id": Kind("identity", "fault", "message ids that several conversations have"),
    "stolen-rows": Kind("identity", "fault", "messages of the conversation that stand under another one"),
    "collapsed-rows": Kind("identity", "fault", "messages of the conversation that have one id and became one row"),
    "history-gone": Kind("identity", "note", "stored conversations that have no candidate any more"),
    "row-count": Kind(
        "identity", "fault", "the conversation says that it has another number of messages than it has rows"
    ),
    "duplicate": Kind("hash power", "note", "conversations of one source with the same hash"),
    "duplicate-across-sources": Kind(
        "hash power", "note", "conversations that differ in nothing hashed but the source"
    ),
    "ignored-change": Kind("hash power", "note", "a field that is not hashed changed, and the hash did not"),
    "hash-differs": Kind("integrity", "fault", "the stored hash is not that of the stored rows"),
    "hash-missing": Kind("integrity", "note", "the row has no hash"),
    "note-outlived": Kind(
        "integrity", "note", "a note that was kept is older than what its conversation was replaced by"
    ),
    "note-left": Kind("integrity", "fault", "an unedited note of an import, which the replace should have deleted"),
    "clean-up-waits": Kind("integrity", "note", "clean-up tasks that wait"),
    "clean-up-fails": Kind("integrity", "fault", "clean-up tasks that were tried and failed"),
    "log-error": Kind("integrity", "fault", "errors in the import log"),
    "orphan-messages": Kind("integrity", "fault", "messages without the row of their conversation"),
    "orphan-notes": Kind("integrity", "fault", "notes without the row of their conversation"),
    "orphan-rows": Kind("integrity", "fault", "rows that hang on a note that is gone"),
    "hash-moves": Kind("non-determinism", "fault", "two parses of the same bytes give two hashes"),
    "field-moves": Kind("non-determinism", "note", "two parses of the same bytes give two values of a field"),
    "unknown-kind": Kind("drift", "note", "raw records of a kind that no rule knows"),
    "nulls-moved": Kind("drift", "note", "how often a field is empty changed from one month to the next"),
    "mix-moved": Kind("drift", "note", "the mix of message types changed from one month to the next"),
    "scan-reads": Kind(
        "scan cost", "note", "the scan opens files or databases, it does not only look at names, sizes and times"
    ),
    "detect-reads": Kind("scan cost", "note", "the detect opens files or databases"),
    "read-again": Kind("scan cost", "note", "the parse opens one file again for each of its conversations"),
    "source-fails": Kind("scan cost", "fault", "a source that can't be looked through"),
    "not-registered": Kind("coverage", "fault", "no adapter of that name is registered"),
    "not-supported": Kind("coverage", "fault", "remote payloads of it are not accepted"),
    "not-default": Kind("coverage", "fault", "the default configuration does not enable it"),
    "not-restored": Kind("coverage", "fault", "a saved configuration without it does not get it back"),
    "not-validated": Kind("coverage", "fault", "the check of remote payloads refuses its name"),
    "not-watched": Kind("coverage", "fault", "its folder is not known, so nobody can watch it"),
}
"""Every kind of finding: its question, its usual severity, what it means."""


class Finding(Struct, frozen=True):
    """One thing that an audit found.

    No text of a message is in it.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    source : str | None
        Adapter name; None where it concerns no single one.
    conversation_id : str | None
        Namespaced id of the conversation; None where it concerns several.
    detail : str
        One sentence.
    evidence : str
        The values that show it.
    count : int
        Conversations, messages or rows concerned.
    severity : Severity
        ``fault``: something is wrong; ``note``: worth knowing.
    """

    kind: str
    source: str | None
    conversation_id: str | None
    detail: str
    evidence: str
    count: int
    severity: Severity

    @property
    def question(self) -> Question:
        """The question that it answers."""
        return KINDS[self.kind].question


def finding(
    kind: str,
    source: str | None = None,
    id: str | None = None,
    evidence: str = "",
    count: int = 1,
    *,
    detail: str | None = None,
    severity: Severity | None = None,
) -> Finding:
    """A finding with its kind's usual severity and meaning.

    >>> finding("short", "codex", "7").conversation_id
    'codex:7'
    """
    known = KINDS[kind]
    named = namespace(source, id) if source is not None and id is not None else id
    text = known.meaning[0].upper() + known.meaning[1:]
    return Finding(
        kind,
        source,
        None if named is None else ecma.to_utf8_safe(named),
        f"{detail or text}.",
        printable(evidence),
        count,
        severity or known.severity,
    )


class Answer(Struct, frozen=True):
    """What one question found.

    Attributes
    ----------
    question : Question
        The question.
    sentence : str
        The answer in words.
    findings : tuple[Finding, ...]
        What is wrong or worth knowing.
    tables : dict[str, pl.DataFrame]
        The counts behind it, by name; columns: `audit.tables`.
    """

    question: Question
    sentence: str
    findings: tuple[Finding, ...]
    tables: dict[str, pl.DataFrame] = {}

    def kinds(self) -> dict[str, int]:
        """How many findings of each kind."""
        counts: dict[str, int] = {}
        for found in self.findings:
            counts[found.kind] = counts.get(found.kind, 0) + 1
        return counts

    def __repr__(self) -> str:
        lines = [self.sentence]
        lines += [f"  {number:>7,} × {kind}: {KINDS[kind].meaning}" for kind, number in self.kinds().items()]
        return "\n".join(lines)


_CAUSE_LENGTH = 120
_CAUSE_STEPS = (
    (re.compile(r"(?s)[\"“„«`](?:.*[\"”»`]|.*)"), "‘…’"),
    (re.compile(r"(?s)(?<!\w)['‘](?:.*['’](?!\w)|.*)"), "‘…’"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:;,()]+){2,}[\\/]?"), "<path>"),
    (re.compile(r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b"), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,}\b"), "<id>"),
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def cause_of(message: Any, *, numbers: bool = False) -> str:
    """An error's message without what differs from case to case, without quoted text and secrets.

    From the first quotation mark to the last, since a quoted text may hold some of its own. Secrets are
    masked first, as their rules know them with their digits; with `numbers`, other digits stay.

    >>> cause_of('/srv/a/b.jsonl: line 7: "hello" is not valid JSON')
    '<path>: line n: ‘…’ is not valid JSON'
    """
    text = "no message" if message is None else ecma.to_text(message)
    text = Masker().text(text[:10_000])
    for pattern, name in _CAUSE_STEPS:
        text = pattern.sub(name, text)
    if not numbers:
        text = _NUMBER.sub("n", text)
    text = printable(" ".join(text.split()))
    return text if len(text) <= _CAUSE_LENGTH else f"{text[:_CAUSE_LENGTH]}…"


def error_text(error: BaseException) -> str:
    """What an error says: this package's own as they are, of any other only its cause, as it may quote a message.

    >>> error_text(ValueError("can't read 'dear diary'"))
    "ValueError: can't read ‘…’"
    """
    text = str(error) if isinstance(error, CrystalError) else cause_of(str(error)) if str(error) else "no message"
    return f"{type(error).__name__}: {text}"


def checked_questions(wanted: Iterable[str] | None) -> tuple[Question, ...]:
    """The questions in their order; raises `ConfigError` at one that is none."""
    if wanted is None:
        return QUESTIONS
    asked = [wanted] if isinstance(wanted, str) else list(wanted)
    if unknown := [q for q in asked if q not in QUESTIONS]:
        raise ConfigError(f"no question {unknown[0]!r}; allowed: {', '.join(QUESTIONS)}")
    return tuple(q for q in QUESTIONS if q in asked)
