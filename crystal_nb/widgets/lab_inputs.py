"""What a reimport lab is set to, how its inputs stay at one with each other, and what acting them out gives."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb.config import PROFILES
from crystal_nb.errors import ConfigError
from crystal_nb.policy import Policy
from crystal_nb.scenarios import SCENARIOS
from crystal_nb.scenarios.subjects import Subject
from crystal_nb.scenarios.world import Scene
from crystal_nb.widgets.lab_view import COMPOSED, checked_steps, flipped, positions, side_by_side

__all__ = ["Inputs", "Played", "played"]


class Inputs(Struct, frozen=True):
    """What is acted out, and by which rules.

    A scenario has steps of its own, so steps are a composition; a profile has rules of its own.

    >>> Inputs().having(steps=("touch",)).scenario
    'compose your own'
    >>> Inputs().having(steps=("touch",)).having(scenario="edited").steps
    ()
    """

    scenario: str = "changed-unseen"
    steps: tuple[str, ...] = ()
    profile: str = PROFILES[0]
    rules: dict[str, Any] = {}

    def having(self, **given: Any) -> Inputs:
        """These inputs with some of them set, and with those that follow from that.

        Raises
        ------
        ConfigError
            If a scenario is given and steps, too.
        """
        if given.get("steps") and given.get("scenario", COMPOSED) != COMPOSED:
            raise ConfigError(f"{given['scenario']!r} has steps of its own; give a scenario or steps, not both")
        follows: dict[str, Any] = {}
        if given.get("steps"):
            follows["scenario"] = COMPOSED
        elif given.get("scenario", COMPOSED) != COMPOSED:
            follows["steps"] = ()
        if "profile" in given:
            follows["rules"] = {}
        return replace(self, **(follows | given))

    def changed(self, now: dict[str, Any]) -> Inputs:
        """The inputs after some of them were set to what they are now."""
        return self.having(**{name: value for name, value in now.items() if value != getattr(self, name)})

    def check(self, subject: Subject | None, playable: Container[str]) -> None:
        """Refuse what means nothing or can't be done with the subject."""
        if self.scenario != COMPOSED and self.scenario not in playable:
            known = ", ".join(s.name for s in SCENARIOS if s.name in playable)
            raise ConfigError(f"no scenario {self.scenario!r} here; {COMPOSED!r} or {known}")
        checked_steps(self.steps, subject)
        flipped(self.profile, self.rules)


class Played(Struct, frozen=True):
    """What acting inputs out gave."""

    inputs: Inputs
    policy: Policy
    found: dict[str, list[Scene]]
    """The scenes by every policy."""

    @property
    def scenes(self) -> tuple[Scene, ...]:
        """The scenes by the chosen policy."""
        return tuple(self.found[self.policy.name])

    @property
    def places(self) -> list[tuple[int, int, int]]:
        """Every place where one can stand."""
        return positions(self.scenes)


def played(inputs: Inputs, subject: Subject | None) -> Played:
    """Act inputs out by the pinned, the careful and their own policy.

    >>> [scene.name for scene in played(Inputs(), None).scenes]
    ['first import', 'again']
    """
    policy = flipped(inputs.profile, inputs.rules)
    return Played(inputs, policy, side_by_side(inputs.scenario, inputs.steps, policy, subject))
