"""What became of each candidate of a run: counts, id lists, decisions as a frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from crystal_nb import charts, ecma
from crystal_nb.adapters.base import Parsed
from crystal_nb.decisions import Decision, Step
from crystal_nb.records import Candidate, counted, printable
from crystal_nb.store_writes import Applied

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ImportReport", "Outcome", "SourceFailure", "decisions_frame"]

_SHOWN = 8


class Outcome(Struct, frozen=True):
    """One candidate, what was decided, and what the writing did."""

    candidate: Candidate
    decision: Decision
    parsed: Parsed | None = None
    applied: Applied = Applied()

    def without_parsed(self) -> Outcome:
        """The same without the messages, so that a long run stays small."""
        return Outcome(self.candidate, self.decision, None, self.applied)


class SourceFailure(Struct, frozen=True):
    """A source that could not be looked through."""

    source: str
    error: str
    message: str


class ImportReport(Struct, frozen=True):
    """Result of an import, named as the pinned importer names it.

    Attributes
    ----------
    policy : str
        Name of the policy.
    outcomes : tuple[Outcome, ...]
        One per candidate, in order.
    source_failures : tuple[SourceFailure, ...]
        Sources that could not be looked through, where the policy goes on.
    title : str
        What it is the report of.
    """

    policy: str
    outcomes: tuple[Outcome, ...]
    source_failures: tuple[SourceFailure, ...] = ()
    title: str = "Import"

    @property
    def total(self) -> int:
        """Candidates."""
        return len(self.outcomes)

    @property
    def imported(self) -> int:
        """Conversations inserted."""
        return len(self.imported_ids)

    @property
    def replaced(self) -> int:
        """Conversations replaced."""
        return len(self.replaced_ids)

    @property
    def skipped(self) -> int:
        """Candidates skipped, those whose metadata was updated and the short ones included."""
        return len(self.skipped_ids)

    @property
    def errors(self) -> int:
        """Candidates that failed."""
        return len(self.error_ids)

    @property
    def imported_ids(self) -> list[str]:
        """Ids of the rows inserted."""
        return self._ids("insert")

    @property
    def replaced_ids(self) -> list[str]:
        """Ids of the rows replaced."""
        return self._ids("replace")

    @property
    def skipped_ids(self) -> list[str]:
        """Ids of the candidates skipped."""
        return self._ids("skip", "skip-short", "metadata-update")

    @property
    def error_ids(self) -> list[str]:
        """Ids of the candidates that failed."""
        return self._ids("error")

    @property
    def summarisation_candidates(self) -> list[str]:
        """Every inserted id, and every replaced one whose row then has the status ``imported``."""
        return [
            o.decision.id or o.decision.candidate_id
            for o in self.outcomes
            if o.decision.action == "insert" or (o.decision.action == "replace" and o.applied.status == "imported")
        ]

    def _ids(self, *actions: str) -> list[str]:
        wrote = ("insert", "replace")
        return [
            (o.decision.id if o.decision.action in wrote else None) or o.decision.candidate_id
            for o in self.outcomes
            if o.decision.action in actions
        ]

    @property
    def decisions(self) -> pl.DataFrame:
        """One row per candidate; columns: ``decision_frames.DECISIONS``."""
        return decisions_frame(self.outcomes)

    @property
    def stolen(self) -> pl.DataFrame:
        """Messages that were taken from another conversation; columns: ``decision_frames.STOLEN``."""
        from crystal_nb import decision_frames

        return decision_frames.stolen(self.outcomes)

    def actions(self) -> Counter[str]:
        """How often each action was decided."""
        return Counter(o.decision.action for o in self.outcomes)

    def chart(self) -> charts.Chart:
        """How often each action was decided, by source."""
        counts: dict[str, Counter[str]] = {action: Counter() for action, _ in self.actions().most_common()}
        for o in self.outcomes:
            counts[o.decision.action][o.decision.source] += 1
        return charts.stacked("Decisions", "decision", "source", counts)

    def headline(self) -> str:
        """The counts in one line."""
        counts = ", ".join(f"{getattr(self, name):,} {name}" for name in ("imported", "replaced", "skipped"))
        counts += f", {counted(self.errors, 'error')}"
        text = f"{printable(self.title)} ({printable(self.policy)}): {counted(self.total, 'candidate')}: {counts}"
        taken = sum(len(o.applied.stolen) for o in self.outcomes)
        return f"{text}; {counted(taken, 'message')} taken from other conversations" if taken else text

    def problems(self) -> list[str]:
        """What failed, a line each."""
        sources = [f"{f.source}: {f.error}: {f.message}" for f in self.source_failures]
        failed = [o for o in self.outcomes if o.decision.action == "error"]
        return sources + [f"{o.candidate.source} {o.decision.candidate_id}: {o.decision.reason}" for o in failed]

    def __repr__(self) -> str:
        return self.told(".problems()")

    def told(self, all_problems: str) -> str:
        """Its representation, with other words for what gives the problems that it has no room for."""
        lines = [self.headline()]
        lines += [f"  {action:<15} {number:>7,}" for action, number in self.actions().most_common()]
        problems = self.problems()
        lines += [f"  failed  {printable(problem)}" for problem in problems[:_SHOWN]]
        if len(problems) > _SHOWN:
            lines.append(f"  failed  {len(problems) - _SHOWN:,} more: {all_problems}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        problems = "".join(f"<li>{escape(printable(p))}</li>" for p in self.problems()[:_SHOWN])
        failed = f"<p>Failed, {len(self.problems()):,}:</p><ul>{problems}</ul>" if problems else ""
        return f"<p><b>{escape(self.headline())}</b></p>{self.chart().to_html()}{failed}"


def decisions_frame(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Decisions as rows; columns: ``decision_frames.DECISIONS``.

    >>> decisions_frame([]).height
    0
    """
    from crystal_nb import decision_frames

    return decision_frames.decisions(outcomes)


def step_text(step: Step) -> str:
    """A step as a person reads it.

    >>> step_text(Step("same size", 3, 4, False))
    'same size? 3 / 4: no'
    """
    return f"{step.name}? {_short(step.before)} / {_short(step.now)}: {'yes' if step.answer else 'no'}"


def _short(value: Any) -> str:
    text = "–" if value is None else printable(ecma.to_text(value))
    return text if len(text) <= 40 else f"{text[:40]}…"
