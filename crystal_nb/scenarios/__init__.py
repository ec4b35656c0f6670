"""Acceptance scenarios of the reimport policy, on real files in a temporary home.

Source: ``pinned-importer.md`` section 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from crystal_nb.adapters import get_adapter
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.errors import ConfigError
from crystal_nb.policy import CAREFUL, PINNED, Policy
from crystal_nb.scenarios.catalogue import SCENARIOS, Expected, Scenario
from crystal_nb.scenarios.own import OwnSubject, own_subject
from crystal_nb.scenarios.subjects import Sample, SampleMessage, Subject, subject_for
from crystal_nb.scenarios.world import Scene, staged

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "SCENARIOS",
    "OwnSubject",
    "Sample",
    "SampleMessage",
    "Scenario",
    "Scene",
    "get_scenario",
    "own_subject",
    "play",
    "run_scenarios",
]

_USUAL = ("claude-code", "codex")


def get_scenario(name: str) -> Scenario:
    """The scenario of that name.

    Raises
    ------
    ConfigError
        If there is none.

    >>> get_scenario("unchanged").title
    'Nothing changed since the last import'
    """
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    raise ConfigError(f"no scenario named {name!r}; known: {', '.join(s.name for s in SCENARIOS)}")


def play(
    scenario: Scenario | str,
    *,
    policy: Policy = PINNED,
    adapter: SourceAdapter | str | None = None,
    subject: Subject | None = None,
) -> list[Scene]:
    """Act a scenario out and give its scenes.

    Parameters
    ----------
    scenario
        A scenario or its name.
    policy
        The rules to follow.
    adapter
        Whose files are imported; default: the first built-in that can play it.
    subject
        What is imported, such as an `own_subject`; default: a made-up conversation.

    Raises
    ------
    ConfigError
        If the adapter or the subject can't play it.

    Examples
    --------
    >>> [(scene.name, scene.decisions[0].action) for scene in play("changed-unseen")]
    [('first import', 'insert'), ('again', 'skip')]
    """
    scenario = get_scenario(scenario) if isinstance(scenario, str) else scenario
    cast = _cast(scenario, adapter, subject)
    if cast is None:
        raise ConfigError(f"{scenario.name} needs a subject that can have {', '.join(sorted(scenario.needs))}")
    with staged(policy, *cast) as world:
        return list(scenario.act(world))


def _cast(
    scenario: Scenario, adapter: SourceAdapter | str | None, subject: Subject | None
) -> tuple[SourceAdapter, Subject] | None:
    """Adapter and subject that can play a scenario, or None."""
    if subject is not None:
        adapter = adapter if adapter is not None else subject.source
    for candidate in _USUAL if adapter is None else (adapter,):
        found = get_adapter(candidate) if isinstance(candidate, str) else candidate
        chosen = subject or subject_for(found, inner_id=scenario.inner_id)
        if scenario.needs <= chosen.abilities:
            return found, chosen
    return None


def run_scenarios(
    *,
    adapter: SourceAdapter | str | None = None,
    subject: Subject | None = None,
    policies: Iterable[Policy] = (PINNED, CAREFUL),
    names: Iterable[str] | None = None,
) -> pl.DataFrame:
    """Act out every scenario and compare with what has to come out.

    Parameters
    ----------
    adapter
        Whose files are imported: a name or an adapter with an attribute ``write_sample(home, sample)``;
        default: for each scenario the first built-in that can play it.
    subject
        What is imported, such as an `own_subject`; default: a made-up conversation.
    policies
        Rules to follow; the expectation is that of the policy's name.
    names
        Scenarios to act out; default: all.

    Returns
    -------
    polars.DataFrame
        Two rows per scene, for the decisions and for the database; columns: ``scenario_frames.SCENARIO_ROWS``.
        A scenario that the subject can't play is one row whose ``ok`` is null.

    Examples
    --------
    >>> run_scenarios(names=["unchanged"])["ok"].all()
    True
    """
    from crystal_nb import scenario_frames

    chosen = SCENARIOS if names is None else tuple(map(get_scenario, names))
    rows = (row for s in chosen for policy in policies for row in _rows(s, policy, adapter, subject))
    return scenario_frames.scenario_rows(rows)


def _rows(
    scenario: Scenario, policy: Policy, adapter: SourceAdapter | str | None, subject: Subject | None
) -> Iterator[dict[str, Any]]:
    cast = _cast(scenario, adapter, subject)
    place = {"scenario": scenario.name, "policy": policy.name}
    if cast is None:
        needs = ", ".join(sorted(scenario.needs))
        yield {**place, "source": _name(adapter, subject), "why": f"needs a subject that can have {needs}"}
        return
    place["source"] = cast[0].name
    missing = dict.fromkeys(scenario.expected)
    with staged(policy, *cast) as world:
        try:
            for scene in scenario.act(world):
                missing.pop(scene.name, None)
                yield from _compare(place, scene, _expected(scenario, scene.name, policy, cast[0].name))
        except Exception as error:
            yield {
                **place,
                "step": "act",
                "observed": f"{type(error).__name__}: {error}",
                "ok": False,
                "why": "it broke",
            }
    for name in missing:
        yield {**place, "step": name, "ok": False, "why": "the scene never came"}


def _name(adapter: SourceAdapter | str | None, subject: Subject | None) -> str | None:
    if adapter is None:
        return subject.source if subject is not None else None
    return adapter if isinstance(adapter, str) else adapter.name


def _expected(scenario: Scenario, scene: str, policy: Policy, source: str) -> Expected | None:
    found = scenario.expected.get(scene, {}).get(policy.name)
    return found and Expected(found.decided.replace("{source}", source), found.stored)


def _compare(place: dict[str, Any], scene: Scene, expected: Expected | None) -> Iterator[dict[str, Any]]:
    for step in ("decided", "stored"):
        observed, wanted = getattr(scene, step), getattr(expected, step, None)
        ok = observed == wanted
        why = scene.text if ok else f"{scene.text} {'Nothing is expected here.' if wanted is None else 'It differs.'}"
        yield {**place, "step": f"{scene.name}: {step}", "expected": wanted, "observed": observed, "ok": ok, "why": why}
