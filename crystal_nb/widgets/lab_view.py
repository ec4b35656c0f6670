"""What the reimport lab knows: scenes of a scenario or of composed steps, by several policies, and paths through them.

Pure: no widget is needed here. Every scene is acted out on real files in a temporary home; what is shown is
what the importer itself decided and wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from crystal_nb.candidates import Candidates
from crystal_nb.config import Config
from crystal_nb.decisions import Decision, Step
from crystal_nb.errors import ConfigError
from crystal_nb.policy import CAREFUL, PINNED, Policy, policy_of
from crystal_nb.scenarios import SCENARIOS, OwnSubject, get_scenario, own_subject
from crystal_nb.scenarios.acts import add_note
from crystal_nb.scenarios.scenario import Scenario
from crystal_nb.scenarios.subjects import Ability, Subject, lacking
from crystal_nb.scenarios.world import Scene, World, named, staged

__all__ = [
    "BRANCHES",
    "COMPOSED",
    "STEPS",
    "branch",
    "casts",
    "checked_steps",
    "composed",
    "decision_at",
    "doable_steps",
    "flipped",
    "perform",
    "positions",
    "rules",
    "side_by_side",
    "subject_of",
]

COMPOSED = "compose your own"
"""Stands for composed steps where a scenario's name could."""

BRANCHES: Mapping[str, tuple[str, str]] = {
    "stored": ("compare with what is stored", "it is new"),
    "same size": ("go on comparing", "it has changed: parse it"),
    "same time": ("it looks unchanged so far", "it may have changed: parse it"),
    "same bytes": ("it is unchanged so far", "it has changed: parse it"),
    "same parser": ("nothing can have changed", "other rules may see more: parse it"),
    "adapter registered": ("parse it", "an error: nobody can read it"),
    "enough messages": ("look at the hash or the id", "skip it, it is too short"),
    "same hash": ("note the file's data only", "replace what is stored"),
    "id free": ("insert it", "an error: another one has the id"),
}
"""Where yes and no lead at each step of a decision."""


def branch(step: Step) -> tuple[str, str]:
    """Where yes and no lead at a step.

    >>> branch(Step("same hash", "a", "b", False))[0]
    "note the file's data only"
    """
    return BRANCHES.get(step.name, ("go on", "stop"))


def flipped(profile: str, rules: Mapping[str, Any]) -> Policy:
    """The policy of a profile with some rules flipped.

    Raises
    ------
    ConfigError
        If there is no such profile, rule or value.

    >>> flipped("chatcrystal", {"fingerprint": True}).name
    'pinned with fingerprint=True'
    """
    policy = policy_of(profile)
    unknown = [name for name in rules if name == "name" or name not in Policy.__struct_fields__]
    if unknown:
        known = ", ".join(name for name in Policy.__struct_fields__ if name != "name")
        raise ConfigError(f"a policy has no rule {unknown[0]!r}; it has {known}")
    for name, value in rules.items():
        if isinstance(getattr(policy, name), bool) and not isinstance(value, bool):
            raise ConfigError(f"{name} must be true or false, not {value!r}")
    changed = {name: value for name, value in rules.items() if getattr(policy, name) != value}
    if not changed:
        return policy
    told = ", ".join(f"{name}={value}" for name, value in changed.items())
    return msgspec.structs.replace(policy, name=f"{policy.name} with {told}", **changed)


def rules() -> dict[str, tuple[Any, ...]]:
    """Every rule of a policy with the values that it can have.

    >>> rules()["save"], rules()["fingerprint"]
    (('at-end', 'each'), (False, True))
    """
    found: dict[str, tuple[Any, ...]] = {}
    for field in msgspec.inspect.type_info(Policy).fields:  # type: ignore[attr-defined]
        if isinstance(field.type, msgspec.inspect.LiteralType):
            found[field.name] = tuple(sorted(field.type.values, key=str))
        elif isinstance(field.type, msgspec.inspect.BoolType):
            found[field.name] = (False, True)
        elif isinstance(field.type, msgspec.inspect.IntType):
            found[field.name] = (0, 1, 2, 3, 5, 10)
    return found


def subject_of(candidate: Candidates | None, config: Config | None = None) -> OwnSubject | None:
    """The subject that scenarios are acted out with; None stands for a made-up conversation.

    Raises
    ------
    ConfigError
        If nothing can be acted out with the candidate.
    """
    subject = None if candidate is None else own_subject(candidate, config=config)
    if subject is not None and not casts(subject):
        raise ConfigError(f"nothing can be acted out with this conversation: it {lacking((), subject)}")
    return subject


def casts(subject: Subject | None) -> list[Scenario]:
    """Scenarios that the subject can play."""
    return [s for s in SCENARIOS if s.cast(None, subject) is not None]


class _Place(Struct):
    """Where a composition stands."""

    world: World
    path: Any = None
    id: str = "s1"

    def first(self) -> Scene:
        self.path = self.world.put()
        scene = self.world.load()
        own = [d.candidate_id for d in scene.decisions if d.source == self.world.subject.source]
        self.id = own[0] if own else self.id
        return named(scene, "first import", "A conversation is imported for the first time.")


def _put(variant: Any, *, keep_time: bool = False) -> Callable[[_Place], None]:
    def act(place: _Place) -> None:
        place.path = place.world.put(variant, keep_time=keep_time)

    return act


def _touch(place: _Place) -> None:
    place.world.touch(place.path)


def _new_version(place: _Place) -> None:
    place.world.adapter.version += 1


def _same_id(place: _Place) -> None:
    place.world.put(id=place.id, of_other=True)


def _failing(what: str) -> Callable[[_Place], None]:
    def act(place: _Place) -> None:
        place.world.adapter.failing, place.world.adapter.failing_id = what, place.id
        if what == "parse":
            place.world.touch(place.path)  # else a policy that trusts size and time never gets to the parse

    return act


def _edited_note(place: _Place) -> None:
    world = place.world
    names = [id for (id,) in world.sql("SELECT id FROM conversations WHERE source = ?", world.subject.source)]
    if not names:
        raise ConfigError("there is no conversation to have a note; import one first")
    if world.sql("SELECT 1 FROM notes WHERE conversation_id = ?", names[0]):
        world.sql("UPDATE notes SET is_edited = 1 WHERE conversation_id = ?", names[0])
    else:
        add_note(world, names[0], is_edited=1)
    place.path = world.put("edited")


def _nothing(place: _Place) -> None:
    pass


STEPS: Mapping[str, tuple[str, Callable[[_Place], None]]] = {
    "import again": ("Nothing changed; the import runs again.", _nothing),
    "touch": ("The file has another time.", _touch),
    "same-size edit": (
        "A word was replaced by one as long, and the file's time put back.",
        _put("same-size-edit", keep_time=True),
    ),
    "edit": ("A message was edited.", _put("edited")),
    "append": ("Messages were added.", _put("appended")),
    "short": ("The conversation has one message only.", _put("short")),
    "original": ("The file is again what it was at first, with another time.", _put("base")),
    "version bump": ("The adapter has a new parser version.", _new_version),
    "duplicate id": ("Another tool has a conversation of the same id.", _same_id),
    "failing detect": ("The adapter's detect fails from now on.", _failing("detect")),
    "failing scan": ("The adapter's scan fails from now on.", _failing("scan")),
    "failing parse": ("The parse of the conversation fails from now on; the file has another time.", _failing("parse")),
    "works again": ("The adapter no longer fails.", _failing("")),
    "edited note": ("A note on it was edited by a person; then a message was edited.", _edited_note),
    "crash": ("The process ends after the first candidate, before a save at the end.", _nothing),
}
"""What a composition can be made of: what is told, and what is done before the next import."""


def composed(steps: Sequence[str], policy: Policy, subject: Subject | None = None) -> list[Scene]:
    """Act out a first import and then each step, followed by an import.

    Raises
    ------
    ConfigError
        If there is no such step, or the subject can't do it.

    >>> [scene.decisions[0].action for scene in composed(["touch", "append"], PINNED)]
    ['insert', 'metadata-update', 'replace']
    """
    checked_steps(steps, subject)
    cast = get_scenario("unchanged").cast(None, subject)
    if cast is None:
        raise ConfigError(f"nothing can be acted out with this conversation: it {lacking((), subject)}")
    with staged(policy, *cast) as world:
        place = _Place(world)
        return [place.first(), *_scenes(place, steps)]


def _scenes(place: _Place, steps: Sequence[str]) -> Iterator[Scene]:
    for number, name in enumerate(steps, 1):
        told, act = STEPS[name]
        act(place)
        if name == "crash":
            decided = place.world.load(crash_after=1).decided
            place.world.reopen()
            scene = place.world.scene(decided)
        else:
            scene = place.world.load()
        yield named(scene, f"{number}. {name}", told)


def checked_steps(steps: Sequence[str], subject: Subject | None) -> None:
    """Refuse steps that can't be done.

    >>> checked_steps(["touch", "append"], None)
    """
    for name in steps:
        if not isinstance(name, str) or name not in STEPS:
            raise ConfigError(f"no step named {name!r}; known: {', '.join(STEPS)}")
    doable = doable_steps(subject)
    lacks = [name for name in steps if name not in doable]
    if lacks:
        words = lacking([_NEEDS[name] for name in lacks], subject)
        raise ConfigError(f"the step {lacks[0]!r} can't be done with this conversation: it {words}")


_NEEDS: Mapping[str, Ability] = {"append": "append", "short": "short"}


def doable_steps(subject: Subject | None) -> list[str]:
    """Steps that can be done with the subject.

    >>> doable_steps(None) == list(STEPS)
    True
    """
    return [name for name in STEPS if subject is None or name not in _NEEDS or _NEEDS[name] in subject.abilities]


def perform(scenario: str, steps: Sequence[str], policy: Policy, subject: Subject | None = None) -> list[Scene]:
    """Scenes of a scenario, or of composed steps."""
    if scenario == COMPOSED:
        return composed(steps, policy, subject)
    return get_scenario(scenario).play(policy=policy, subject=subject)


def positions(scenes: Sequence[Scene]) -> list[tuple[int, int, int]]:
    """Every place where one can stand: scene, decision, step; a scene without decisions is one place.

    >>> positions(composed([], PINNED))
    [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3)]
    """
    return [
        (number, which, step)
        for number, scene in enumerate(scenes)
        for which, decision in enumerate(scene.decisions or (None,))
        for step in range(max(1, len(decision.steps)) if decision is not None else 1)
    ]


def side_by_side(
    scenario: str, steps: Sequence[str], policy: Policy, subject: Subject | None = None
) -> dict[str, list[Scene]]:
    """The scenes by the pinned, the careful and the chosen policy."""
    chosen = {p.name: p for p in (PINNED, CAREFUL, policy)}
    return {name: perform(scenario, steps, p, subject) for name, p in chosen.items()}


def decision_at(scenes: Sequence[Scene], place: tuple[int, int, int]) -> Decision | None:
    """The decision at a place, if something was decided there."""
    decisions = scenes[place[0]].decisions
    return decisions[place[1]] if place[1] < len(decisions) else None
