"""What an audit says: findings as a frame, sentences, HTML and JSON."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from crystal_nb import charts
from crystal_nb.audit.findings import KINDS, Answer, Finding
from crystal_nb.errors import ConfigError
from crystal_nb.html_table import html_table
from crystal_nb.records import counted, printable
from crystal_nb.store_open import expanded

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMAT", "AuditReport"]

FORMAT = 1
"""Version of the JSON document; ``fixtures/audit/schema.json`` describes it."""
_SHOWN = 10


class AuditReport(Struct, frozen=True):
    """Answers to an auditor's questions; no text of a message is in it.

    Attributes
    ----------
    answers : tuple[Answer, ...]
        One per question that was asked, in order.
    store : str
        What was audited.
    candidates : int
        Candidates that there were.
    parsed : int
        Those of them that were parsed; fewer in a sample.
    """

    answers: tuple[Answer, ...]
    store: str = "in memory"
    candidates: int = 0
    parsed: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; notes don't count."""
        return not any(f.severity == "fault" for f in self.found)

    @property
    def found(self) -> list[Finding]:
        """All findings as records, question by question."""
        return [f for answer in self.answers for f in answer.findings]

    @property
    def findings(self) -> pl.DataFrame:
        """One row per finding; columns: ``audit.tables.FINDINGS``."""
        from crystal_nb.audit.tables import findings_frame

        return findings_frame(self.found)

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The counts behind the answers by the tables' names; columns: ``audit.tables``."""
        return {name: frame for answer in self.answers for name, frame in answer.tables.items()}

    def answer(self, question: str) -> Answer:
        """The answer to one question.

        Raises
        ------
        ConfigError
            If it was not asked.
        """
        for answer in self.answers:
            if answer.question == question:
                return answer
        raise ConfigError(f"{question!r} was not asked; asked: {', '.join(a.question for a in self.answers)}")

    def counts(self) -> dict[str, int]:
        """How many faults and notes."""
        found = Counter(f.severity for f in self.found)
        return {"fault": found["fault"], "note": found["note"]}

    def headline(self) -> str:
        """The outcome in one line."""
        counts = self.counts()
        parsed = f"{self.parsed:,} of " if self.parsed != self.candidates else ""
        return (
            f"Audit of {printable(self.store)}: {counted(counts['fault'], 'fault')}, "
            f"{counted(counts['note'], 'note')}; {parsed}{counted(self.candidates, 'candidate')} parsed"
        )

    def summary(self) -> list[str]:
        """The answers as sentences, the outcome first."""
        return [f"{self.headline()}.", *(printable(answer.sentence) for answer in self.answers)]

    def __repr__(self) -> str:
        lines = [self.headline(), *(f"  {printable(answer.sentence)}" for answer in self.answers)]
        kinds = Counter((f.severity, f.kind) for f in self.found)
        for (severity, kind), number in sorted(kinds.items())[:_SHOWN]:
            lines.append(f"  {severity:<5} {number:>6,} × {kind}: {KINDS[kind].meaning}")
        if len(kinds) > _SHOWN:
            lines.append(f"  and {len(kinds) - _SHOWN} more kinds: .findings")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        kinds = Counter((f.severity, f.kind) for f in self.found)
        rows = [
            {"severity": s, "kind": k, "findings": n, "what it means": KINDS[k].meaning}
            for (s, k), n in sorted(kinds.items())
        ]
        sentences = "".join(f"<li>{escape(printable(answer.sentence))}</li>" for answer in self.answers)
        found = charts.bars("Found", rows, "findings").to_html() if rows else ""
        return f"<p><b>{escape(self.headline())}</b></p><ul>{sentences}</ul>{found}{self._scans_html()}"

    def scans(self) -> charts.Chart:
        """Bytes that the scan of each source read, and a second one within the time that lists are kept.

        >>> AuditReport(()).scans().rows
        ()
        """
        counts: dict[str, Counter[str]] = {}
        costs = self.tables.get("costs")
        for row in costs.iter_rows(named=True) if costs is not None else ():
            if row["phase"] in ("scan", "scan again"):
                counts.setdefault(row["source"], Counter())[row["phase"]] += row["bytes_read"]
        return charts.stacked("Bytes read by scans", "source", "phase", counts)

    def _scans_html(self) -> str:
        chart = self.scans()
        return chart.to_html() if chart.rows else ""

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """A page of its own with every finding and every table, all text escaped.

        Parameters
        ----------
        path
            Where to write it, too; "~" is the home folder.

        Raises
        ------
        OSError
            If it can't be written there, such as into a folder that is not there; it names the file.

        >>> AuditReport(()).to_html().startswith("<!doctype html>")
        True
        """
        kinds = charts.counted("Findings by kind", "kind", Counter(f"{f.severity}: {f.kind}" for f in self.found))
        found = (kinds.to_html() if self.found else "") + self._scans_html()
        found += html_table("Findings", self._finding_rows(), _html_cell)
        tables = "".join(
            f"<h2>{escape(a.question.capitalize())}</h2><p>{escape(printable(a.sentence))}</p>"
            + "".join(
                html_table(name, list(frame.iter_rows(named=True)), _html_cell) for name, frame in a.tables.items()
            )
            for a in self.answers
        )
        page = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(self.headline())}</title>'
            f"<style>{_STYLE}</style></head><body><main><h1>{escape(self.headline())}</h1>{found}{tables}</main></body></html>\n"
        )
        if path is not None:
            expanded(path).write_text(page, encoding="utf-8")
        return page

    def document(self) -> dict[str, Any]:
        """The report as plain values for JSON, in the form of ``fixtures/audit/schema.json``.

        >>> sorted(AuditReport(()).document())[:4]
        ['candidates', 'counts', 'findings', 'format']
        """
        return {
            "format": FORMAT,
            "store": printable(self.store),
            "ok": self.ok,
            "candidates": self.candidates,
            "parsed": self.parsed,
            "counts": self.counts(),
            "summary": self.summary(),
            "questions": [
                {
                    "question": a.question,
                    "sentence": printable(a.sentence),
                    "tables": {name: list(frame.iter_rows(named=True)) for name, frame in a.tables.items()},
                }
                for a in self.answers
            ],
            "findings": self._finding_rows(),
        }

    def _finding_rows(self) -> list[dict[str, Any]]:
        return list(self.findings.iter_rows(named=True))


_STYLE = (
    "body{font:14px/1.5 sans-serif;margin:2em;max-width:100em}table{border-collapse:collapse;margin:1em 0}"
    "td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left;vertical-align:top}caption{text-align:left}"
)


def _html_cell(value: Any) -> str:
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int):
        return f'<td style="text-align:right">{value:,}</td>'
    if isinstance(value, float):
        return f'<td style="text-align:right">{value:.3g}</td>'
    return f"<td>{'' if value is None else escape(printable(str(value)))}</td>"
