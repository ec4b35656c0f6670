"""What a scenario is: acts, what has to come out, and who can play it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from crystal_nb.adapters import get_adapter
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.errors import ConfigError
from crystal_nb.importer import checked_adapters
from crystal_nb.policy import PINNED, Policy
from crystal_nb.scenarios.subjects import Ability, Subject, lacking, messages_at_first, subject_for
from crystal_nb.scenarios.world import Act, Scene, staged

__all__ = ["By", "Expected", "Scenario", "apart", "both"]


class Expected(Struct, frozen=True):
    """What one scene has to show."""

    decided: str
    stored: str


By = Mapping[str, Expected]
"""Expectation per policy name."""


class Scenario(Struct, frozen=True):
    """One acceptance scenario."""

    name: str
    """Short name."""
    title: str
    """What it is about."""
    act: Act
    """What happens."""
    expected: Mapping[str, By]
    """What each scene has to show, by policy name."""
    needs: frozenset[Ability] = frozenset()
    """What the subject has to be able to."""
    inner_id: str | None = None
    """The id that the file gives itself, where that is the point."""

    def cast(
        self, adapter: SourceAdapter | str | None = None, subject: Subject | None = None
    ) -> tuple[SourceAdapter, Subject] | None:
        """Adapter and subject that can play it, or None."""
        if subject is not None:
            adapter = adapter if adapter is not None else subject.source
        for name in _USUAL if adapter is None else (adapter,):
            found = get_adapter(name) if isinstance(name, str) else checked_adapters([name])[0]
            chosen = subject or subject_for(found, inner_id=self.inner_id)
            if self.needs <= chosen.abilities and messages_at_first(chosen) >= 2:
                return found, chosen
        return None

    def play(
        self,
        *,
        policy: Policy = PINNED,
        adapter: SourceAdapter | str | None = None,
        subject: Subject | None = None,
    ) -> list[Scene]:
        """Act it out and give its scenes.

        Parameters
        ----------
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
        >>> from crystal_nb.scenarios import get_scenario
        >>> scenario = get_scenario("changed-unseen")
        >>> [(scene.name, scene.decisions[0].action) for scene in scenario.play()]
        [('first import', 'insert'), ('again', 'skip')]
        """
        cast = self.cast(adapter, subject)
        if cast is None:
            raise ConfigError(f"{self.name} {lacking(self.needs, subject)}")
        with staged(policy, *cast) as world:
            return list(self.act(world))


_USUAL = ("claude-code", "codex")


def both(decided: str, stored: str) -> By:
    """The same by every policy."""
    return {"pinned": Expected(decided, stored), "careful": Expected(decided, stored)}


def apart(pinned: tuple[str, str], careful: tuple[str, str]) -> By:
    """One for each policy."""
    return {"pinned": Expected(*pinned), "careful": Expected(*careful)}
