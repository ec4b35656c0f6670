"""`ReimportLab`: what a reimport does, step by step, by several policies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ipywidgets as w
import traitlets as t

from crystal_nb.candidates import Candidates
from crystal_nb.config import PROFILES, Config
from crystal_nb.decisions import Decision
from crystal_nb.errors import ConfigError
from crystal_nb.policy import PINNED
from crystal_nb.records import printable
from crystal_nb.widgets import lab_html, lab_view
from crystal_nb.widgets.base import Panel, button, options, row
from crystal_nb.widgets.lab_inputs import Inputs, played
from crystal_nb.widgets.lab_view import COMPOSED, STEPS
from crystal_nb.widgets.markup import text

__all__ = ["ReimportLab"]

_INPUTS = ("scenario", "steps", "profile", "rules")


class ReimportLab(Panel):
    """Act a reimport out on real files in a temporary home and walk through its decisions.

    Parameters
    ----------
    candidate : candidate, optional
        One's own conversation, copied; default: a made-up one.
    config : Config, optional
        The configuration that its scan had.
    scenario : str
        Name of a scenario, or ``"compose your own"``. To set one leaves no steps.
    steps : sequence of str
        Steps of a composition, such as ``("touch", "append")``; `lab_view.STEPS` has them all.
    profile : str
        ``chatcrystal`` or ``careful``. To set it leaves no rules.
    rules : dict
        Single rules of the policy that are to be others, such as ``{"fingerprint": True}``.
    scene, which, step : int
        Place: scene, decision in it, step of that decision.
    all_steps : bool
        Whether the whole path is shown at once.

    Attributes
    ----------
    decision : Decision or None
        What was decided at this place; read-only, as are the next two.
    scenes : tuple of Scene
        Every scene by the chosen policy.
    policy : str
        Name of that policy.

    Examples
    --------
    >>> lab = ReimportLab(scenario="changed-unseen")
    >>> lab.decision.action
    'skip'
    >>> lab.rules = {"fingerprint": True}
    >>> lab.decision.action, lab.policy
    ('replace', 'pinned with fingerprint=True')
    """

    title = "Reimport"
    keywords = (*_INPUTS, "scene", "which", "step", "all_steps")

    scenario = t.Unicode("changed-unseen")
    steps = t.Tuple()
    profile = t.Enum(PROFILES, PROFILES[0])
    rules = t.Dict()
    scene = t.Int(0)
    which = t.Int(0)
    step = t.Int(0)
    all_steps = t.Bool(False)
    decision = t.Instance(Decision, allow_none=True, read_only=True)
    scenes = t.Tuple(read_only=True)
    policy = t.Unicode(read_only=True)

    def __init__(self, candidate: Candidates | None = None, *, config: Config | None = None, **traits: Any) -> None:
        super().__init__(**traits)
        self._subject = lab_view.subject_of(candidate, config)
        self._playable = {s.name: s.title for s in lab_view.casts(self._subject)}
        self._doable = lab_view.doable_steps(self._subject)
        self._waiting = True
        for name in _INPUTS:
            if name in traits:
                setattr(self, name, traits[name])
        self._waiting = False
        given = {name: getattr(self, name) for name in _INPUTS if name in traits}
        self._ready = self._played = played(self._checked(Inputs().having, **given), self._subject)
        self._make_controls()
        self._take()
        for name in ("scene", "which", "step", "all_steps"):
            if name in traits:
                setattr(self, name, traits[name])
        self._refresh()
        self.observe(self._on_input, list(_INPUTS))
        self.observe(self._on_place, ["scene", "which", "step", "all_steps"])

    def __repr__(self) -> str:
        decided = self.decision.action if self.decision else "nothing decided"
        return printable(f"ReimportLab({self.scenario}, {self.policy}, scene {self.scene}: {decided})")

    @t.validate(*_INPUTS)
    def _check_input(self, proposal: Any) -> Any:
        """Act it out before anything is changed, so that nothing is where it fails."""
        if not self._waiting:
            now = {name: getattr(self, name) for name in _INPUTS} | {proposal.trait.name: proposal.value}
            inputs = self._checked(self._played.inputs.changed, now)
            if inputs != self._ready.inputs:
                self._ready = played(inputs, self._subject)
        return proposal.value

    def _checked(self, made: Callable[..., Inputs], *args: Any, **given: Any) -> Inputs:
        try:
            inputs = made(*args, **given)
            inputs.check(self._subject, self._playable)
        except ConfigError as error:
            raise t.TraitError(str(error)) from None
        return inputs

    @t.validate("scene", "which", "step")
    def _check_place(self, proposal: Any) -> Any:
        name, at = proposal.trait.name, {"scene": self.scene, "which": self.which, "step": self.step}
        places = {(s, w, n)[("scene", "which", "step").index(name)] for s, w, n in self._fitting(name, at)}
        if proposal.value not in places:
            raise t.TraitError(f"there is no {name} {proposal.value} here; from 0 to {max(places)}")
        return proposal.value

    def _fitting(self, name: str, at: dict[str, int]) -> list[tuple[int, int, int]]:
        """Places that share what stands before the named part."""
        return [
            p
            for p in self._played.places
            if name == "scene" or (p[0] == at["scene"] and (name == "which" or p[1] == at["which"]))
        ]

    def next(self) -> None:
        """Go one step on, into the next decision or scene after the last step."""
        self._go(1)

    def previous(self) -> None:
        """Go one step back."""
        self._go(-1)

    def body(self) -> str:
        """What the panel shows, as HTML."""
        shown = lab_html.scene(self._played.found, self.policy, self._place(), self.all_steps)
        told = self._playable.get(self.scenario, f"First import, then: {', '.join(self.steps) or 'nothing yet'}")
        head = f"<p><b>{text(self.scenario)}</b>: {text(told)}</p>{self._warning()}"
        return f"{head}{shown}{lab_html.rules_table(self._played.policy)}"

    def _warning(self) -> str:
        if self._subject is None or not self._subject.drifts or self._played.policy.row_id != PINNED.row_id:
            return ""
        return "<p>The file names another id than its own name; by the pinned rules this hides everything else.</p>"

    def _place(self) -> tuple[int, int, int]:
        return self.scene, self.which, self.step

    def _go(self, by: int) -> None:
        places = self._played.places
        at = places.index(self._place()) + by
        if 0 <= at < len(places):
            self._stand(places[at])

    def _stand(self, place: tuple[int, int, int]) -> None:
        self._waiting = True
        try:
            with self.hold_trait_notifications():
                self.scene, self.which, self.step = place
        finally:
            self._waiting = False
        self._refresh()

    def _on_input(self, change: Any) -> None:
        if self._waiting:
            return
        if self._ready is self._played:  # what was held back could not be done
            self._set_inputs()
        else:
            self._take()
        self._refresh()

    def _on_place(self, change: Any) -> None:
        if self._waiting:
            return
        parts = {"scene": (self.scene, 0, 0), "which": (self.scene, self.which, 0)}
        if change.name in parts:
            self._stand(parts[change.name])
        else:
            self._refresh()

    def _take(self) -> None:
        """Go over to what was acted out, to the beginning of its last scene."""
        self._played = self._ready
        self._set_inputs()
        self._waiting = True
        try:
            self.set_trait("scenes", self._played.scenes)
            self.set_trait("policy", self._played.policy.name)
            with self.hold_trait_notifications():
                self.scene, self.which, self.step = len(self.scenes) - 1, 0, 0
        finally:
            self._waiting = False

    def _set_inputs(self) -> None:
        self._waiting = True
        try:
            for name in _INPUTS:
                self.set_trait(name, getattr(self._played.inputs, name))
        finally:
            self._waiting = False

    def show_again(self) -> None:
        """See `Panel.show_again`."""
        with self.quiet():
            self._show_state()

    def _refresh(self) -> None:
        self.set_trait("decision", lab_view.decision_at(self.scenes, self._place()))
        with self.quiet():
            self._show_state()
        self.render()

    # Controls ---------------------------------------------------------------------------------------------

    def _make_controls(self) -> None:
        listed = [(f"{name}: {title}", name) for name, title in self._playable.items()]
        self._scenario = w.Dropdown(
            description="Scenario", options=[(COMPOSED, COMPOSED), *listed], layout=w.Layout(width="620px")
        )
        self._profile = w.Dropdown(description="Profile", options=PROFILES)
        self._values = lab_view.rules()
        self._rule = w.Dropdown(description="Rule", options=list(self._values))
        self._value = w.Dropdown(description="Value")
        # A button for each step: a list with one button would need its choice to reach the kernel before the click.
        self._adders = {n: button(n, self.guarded(partial(self._add, n)), STEPS[n][0]) for n in self._doable}
        self._scene = w.Dropdown(description="Scene", layout=w.Layout(width="320px"))
        self._which = w.Dropdown(description="Candidate", layout=w.Layout(width="260px"))
        self._all = w.Checkbox(description="all steps at once", indent=False)
        b = {name: button(name, self.guarded(act), hint) for name, (act, hint) in self._actions().items()}
        self.on_change(self._scenario, lambda: self.set_trait("scenario", self._scenario.value))
        self.on_change(self._profile, lambda: self.set_trait("profile", self._profile.value))
        self.on_change(self._rule, self._show_value_quietly)
        self.on_change(self._value, self._flip)
        self.on_change(self._scene, lambda: self.set_trait("scene", self._scene.value))
        self.on_change(self._which, lambda: self.set_trait("which", self._which.value))
        self.on_change(self._all, lambda: self.set_trait("all_steps", self._all.value))
        names = w.HTML('<div class="cnb"><b>Add a step</b></div>')
        self._composer = row(names, *self._adders.values(), b["Remove last"], b["Clear steps"])
        self.show(
            row(self._scenario),
            self._composer,
            row(self._profile, self._rule, self._value, b["Reset rules"]),
            row(self._scene, self._which, b["Prev"], b["Next"], self._all),
        )

    def _actions(self) -> dict[str, tuple[Any, str]]:
        return {
            "Remove last": (lambda: self.set_trait("steps", self.steps[:-1]), "Take the last step back"),
            "Clear steps": (lambda: self.set_trait("steps", ()), "Take all steps back"),
            "Reset rules": (lambda: self.set_trait("rules", {}), "All rules as the profile has them"),
            "Prev": (self.previous, "One step back"),
            "Next": (self.next, "One step on"),
        }

    def _add(self, step: str) -> None:
        self.steps = (*self.steps, step)

    def _flip(self) -> None:
        flips = {**self.rules, self._rule.value: self._value.value}
        profile = lab_view.flipped(self.profile, {})
        self.rules = {name: value for name, value in flips.items() if getattr(profile, name) != value}

    def _show_value_quietly(self) -> None:
        with self.quiet():
            self._show_value()

    def _show_value(self) -> None:
        now = getattr(self._played.policy, self._rule.value)
        values = dict.fromkeys((*self._values[self._rule.value], now))
        options(self._value, [(str(v), v) for v in values], now)

    def _show_state(self) -> None:
        self._scenario.value, self._profile.value, self._all.value = self.scenario, self.profile, self.all_steps
        self._composer.layout.display = None if self.scenario == COMPOSED else "none"
        self._show_value()
        options(self._scene, [(f"{n + 1}: {printable(s.name)}", n) for n, s in enumerate(self.scenes)], self.scene)
        decisions = self.scenes[self.scene].decisions
        listed = [(printable(f"{d.source} {d.candidate_id[:40]}"), n) for n, d in enumerate(decisions)]
        options(self._which, listed or [("none", 0)], self.which)
