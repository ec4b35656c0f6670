"""The reimport lab's panels as HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from crystal_nb import ecma
from crystal_nb.decisions import Decision, Step
from crystal_nb.policy import CAREFUL, PINNED, Policy
from crystal_nb.scenarios.world import Scene
from crystal_nb.widgets.lab_rows import RowChange, row_changes
from crystal_nb.widgets.lab_view import branch, decision_at
from crystal_nb.widgets.markup import code, region, table, text

__all__ = ["path", "policies", "rows", "rules_table", "scene"]

_DIGEST = re.compile("[0-9a-f]{64}")
_SIGNS = {"added": "+", "changed": "~", "removed": "−", "same": "="}
_CLASSES = {"added": "cnb-add", "changed": "cnb-hit", "removed": "cnb-del", "same": ""}


def scene(found: Mapping[str, Sequence[Scene]], name: str, place: tuple[int, int, int], whole: bool) -> str:
    """One scene by the chosen policy, its decision as far as it is walked, and the others beside it."""
    scenes = found[name]
    here, before = scenes[place[0]], scenes[place[0] - 1] if place[0] else None
    decision = decision_at(scenes, place)
    decided = _decided(here) if decision is None else path(decision, place[2], whole)
    head = (
        f'<p data-scene="{place[0]}"><b>Scene {place[0] + 1} of {len(scenes)}: {text(here.name)}.</b> '
        f"{text(here.text)}</p>"
    )
    return (
        f'{head}<div class="cnb-pair"><div>{decided}</div><div>{policies(found, place[0], name)}</div></div>'
        f"{rows(before, here)}"
    )


def _decided(here: Scene) -> str:
    says = f"No candidate was decided on: {text(here.decided)}"
    return f'<div class="cnb-status" role="status" data-action="none">{says}</div>'


def path(decision: Decision, step: int, whole: bool) -> str:
    """A decision as a diagram of its steps: up to one of them, or all."""
    last = len(decision.steps) - 1
    shown = last if whole else min(step, last)
    boxes = "".join(_box(n, s, shown, whole) for n, s in enumerate(decision.steps))
    at_end = shown >= last
    action = decision.action if at_end else "open"
    says = (
        f"<b>Decision: {text(decision.action)}</b>. {text(decision.reason)}"
        if at_end
        else f"Step {shown + 1} of {last + 1}; not decided yet."
    )
    return (
        f"<p>Candidate {code(decision.candidate_id, 60)} of {text(decision.source)}</p>"
        f'<ol class="cnb-path">{boxes}</ol>'
        f'<div class="cnb-status cnb-yes" role="status" data-action="{escape(action)}" data-step="{shown}">{says}</div>'
    )


def _box(number: int, step: Step, shown: int, whole: bool) -> str:
    if number > shown:
        return f'<li class="cnb-later"><b>{text(step.name)}?</b></li>'
    here = ' class="cnb-here" aria-current="step"' if number == shown and not whole else ""
    return (
        f"<li{here}><b>{text(step.name)}?</b> stored {code(_value(step.before), 70)}, now {code(_value(step.now), 70)}"
        f'<div class="cnb-branches">{_branch(True, step)} {_branch(False, step)}</div></li>'
    )


def _branch(answer: bool, step: Step) -> str:
    says = f"{'yes' if answer else 'no'} → {escape(branch(step)[0 if answer else 1])}"
    if answer == step.answer:
        return f'<span class="cnb-taken">✓ <b>{says}</b></span>'
    return f'<span class="cnb-other">{says}</span>'


def _value(value: Any) -> str:
    shown = "–" if value is None else ecma.to_text(value)
    return f"{shown[:16]}…" if _DIGEST.fullmatch(shown) else shown


def rows(before: Scene | None, after: Scene) -> str:
    """Rows of the store before and after, changed ones marked."""
    changes = row_changes(before.rows if before else {}, after.rows)
    counts = [sum(c.kind == kind for c in changes) for kind in ("added", "changed", "removed", "same")]
    told = ", ".join(f"{n} {kind}" for n, kind in zip(counts, ("added", "changed", "removed", "the same"), strict=True))
    body = "".join(
        _table(name, [c for c in changes if c.table == name]) for name in dict.fromkeys(c.table for c in changes)
    )
    facts = f"<p>Before: {text(before.stored if before else 'empty')}<br>After: {text(after.stored)}</p>"
    return f"<p><b>Rows of the store</b>: {told}</p>{facts}" + (region("Rows of the store", body) if body else "")


def _table(name: str, changes: Sequence[RowChange]) -> str:
    columns = list(dict.fromkeys(c for change in changes for c in (change.after or change.before or {})))
    cells = [[_mark(change), *(_cell(change, column) for column in columns)] for change in changes]
    return table(name, ["row", *columns], cells, [_CLASSES[change.kind] for change in changes])


def _mark(change: RowChange) -> str:
    return f"{_SIGNS[change.kind]} {change.kind}"


def _cell(change: RowChange, column: str) -> str:
    now = (change.after or change.before or {}).get(column)
    if column not in change.columns or change.before is None:
        return code(_value(now), 80)
    return f"<del>{code(_value(change.before.get(column)), 80)}</del> <ins>{code(_value(now), 80)}</ins>"


def policies(found: Mapping[str, Sequence[Scene]], number: int, chosen: str) -> str:
    """The same scene by every policy, side by side."""
    scenes = {name: acts[number] if number < len(acts) else None for name, acts in found.items()}
    cells, classes = [], []
    pinned = scenes.get(PINNED.name)
    for name, here in scenes.items():
        differs = (
            here is not None and pinned is not None and (here.decided, here.stored) != (pinned.decided, pinned.stored)
        )
        mark = " (chosen)" if name == chosen else ""
        mark += "<br>≠ differs from pinned" if differs else ""
        decided, stored = (here.decided, here.stored) if here else ("this scene never comes", "")
        cells.append([f"{text(name)}{mark}", f"{_decisions(decided)}<br>Stored: {text(stored)}"])
        classes.append("cnb-hit" if differs else "")
    shown = table("This scene by each policy", ["policy", "decided, and stored afterwards"], cells, classes)
    return f'<div class="cnb-wrap">{shown}</div>'


def _decisions(decided: str) -> str:
    return "<br>".join(text(part) for part in decided.split(" | "))


def rules_table(policy: Policy) -> str:
    """The rules in which the chosen policy, pinned and careful are not at one."""
    cells, classes = [], []
    for name in Policy.__struct_fields__[1:]:
        values = [getattr(p, name) for p in (PINNED, CAREFUL, policy)]
        if values.count(values[0]) < 3:
            cells.append([code(name), *(code(v if isinstance(v, str) else str(v)) for v in values)])
            classes.append("cnb-hit" if values[2] not in values[:2] else "")
    return table("Rules in which policies differ", ["rule", "pinned", "careful", "chosen"], cells, classes)
