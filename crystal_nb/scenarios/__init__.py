"""Acceptance scenarios of the reimport policy, on real files in a temporary home.

Source: ``pinned-importer.md`` section 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.errors import ConfigError
from crystal_nb.policy import CAREFUL, PINNED, Policy, policy_of
from crystal_nb.scenarios.catalogue import SCENARIOS
from crystal_nb.scenarios.own import OwnSubject, own_subject
from crystal_nb.scenarios.scenario import Expected, Scenario
from crystal_nb.scenarios.subjects import Sample, SampleMessage, Subject, lacking
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
    name: str, *, policy: Policy = PINNED, adapter: SourceAdapter | str | None = None, subject: Subject | None = None
) -> list[Scene]:
    """Act out the scenario of that name: `Scenario.play`.

    >>> [scene.name for scene in play("unchanged")]
    ['first import', 'again']
    """
    return get_scenario(name).play(policy=policy, adapter=adapter, subject=subject)


def run_scenarios(
    *,
    adapter: SourceAdapter | str | None = None,
    subject: Subject | None = None,
    policies: Iterable[str | Policy] = (PINNED, CAREFUL),
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

    names = [names] if isinstance(names, str) else names
    chosen, rules = SCENARIOS if names is None else tuple(map(get_scenario, names)), list(map(policy_of, policies))
    rows = (row for s in chosen for policy in rules for row in _rows(s, policy, adapter, subject))
    return scenario_frames.scenario_rows(rows)


def _rows(
    scenario: Scenario, policy: Policy, adapter: SourceAdapter | str | None, subject: Subject | None
) -> Iterator[dict[str, Any]]:
    cast = scenario.cast(adapter, subject)
    place = {"scenario": scenario.name, "title": scenario.title, "policy": policy.name}
    if cast is None:
        yield {**place, "source": _name(adapter, subject), "why": lacking(scenario.needs, subject)}
        return
    place["source"] = cast[0].name
    if getattr(cast[1], "drifts", False) and policy.row_id == "parsed-id":
        yield {**place, "why": "the file names another id than its own name, which hides everything else here"}
        return
    missing = dict.fromkeys(scenario.expected)
    with staged(policy, *cast) as world:
        try:
            for scene in scenario.act(world):
                missing.pop(scene.name, None)
                yield from _compare(place, scene, _expected(scenario, scene.name, policy, cast))
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


def _expected(scenario: Scenario, scene: str, policy: Policy, cast: tuple[SourceAdapter, Subject]) -> Expected | None:
    """The expectation with this cast's name and numbers of messages in it."""
    found = scenario.expected.get(scene, {}).get(policy.name)
    if found is None:
        return None
    base, appended = getattr(cast[1], "counts", (2, 4))
    stored = found.stored.replace("{base}", str(base)).replace("{appended}", str(appended))
    return Expected(found.decided.replace("{source}", cast[0].name), stored)


def _compare(place: dict[str, Any], scene: Scene, expected: Expected | None) -> Iterator[dict[str, Any]]:
    for step in ("decided", "stored"):
        observed, wanted = getattr(scene, step), getattr(expected, step, None)
        ok = observed == wanted
        why = scene.text if ok else f"{scene.text} {'Nothing is expected here.' if wanted is None else 'It differs.'}"
        yield {**place, "step": f"{scene.name}: {step}", "expected": wanted, "observed": observed, "ok": ok, "why": why}
