"""The reimport lab: its model and its traits, without a browser."""

from __future__ import annotations

import ipywidgets
import msgspec
import pytest
import traitlets
from hypothesis import given, settings
from hypothesis import strategies as st

import crystal_nb as cnb
from crystal_nb.decisions import Step
from crystal_nb.errors import ConfigError
from crystal_nb.scenarios import SCENARIOS, own_subject, play, run_scenarios
from crystal_nb.widgets import ReimportLab, lab_html
from crystal_nb.widgets import lab_view as view
from crystal_nb.widgets.lab_inputs import Inputs
from crystal_nb.widgets.lab_rows import RowChange, row_changes

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\ud83d"


@pytest.mark.parametrize("name", [s.name for s in SCENARIOS])
@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
def test_the_decisions_shown_are_those_of_the_scenario(name, profile):
    lab = ReimportLab(scenario=name, profile=profile)
    scenes = play(name, policy=cnb.PINNED if profile == "chatcrystal" else cnb.CAREFUL)
    assert [s.decided for s in lab.scenes] == [s.decided for s in scenes]
    assert [s.stored for s in lab.scenes] == [s.stored for s in scenes]
    assert lab.scene == len(scenes) - 1
    last = scenes[-1].decisions
    assert (lab.decision and lab.decision.action) == (last[0].action if last else None)


@pytest.mark.parametrize(
    ("steps", "pinned", "careful"),
    [
        (["import again"], "skip", "skip"),
        (["touch"], "metadata-update", "metadata-update"),
        (["same-size edit"], "skip", "replace"),
        (["edit"], "replace", "replace"),
        (["append"], "replace", "replace"),
        (["short"], "skip-short", "skip-short"),
        (["edit", "original"], "replace", "replace"),
        (["version bump"], "skip", "metadata-update"),
        (["failing parse"], "error", "error"),
        (["failing parse", "works again"], "metadata-update", "metadata-update"),
        (["failing scan"], None, None),
        (["edited note"], "replace", "replace"),
    ],
)
def test_composed_steps_decide_as_expected(steps, pinned, careful):
    for policy, wanted in ((cnb.PINNED, pinned), (cnb.CAREFUL, careful)):
        last = view.composed(steps, policy)[-1]
        assert next((d.action for d in last.decisions), None) == wanted


@pytest.mark.parametrize(
    ("steps", "policy", "stored"),
    [
        (["crash"], cnb.PINNED, "conversations 1"),
        (["edited note"], cnb.PINNED, "notes 1"),
        (["duplicate id"], cnb.PINNED, "conversations 1, messages 2"),
        (["duplicate id"], cnb.CAREFUL, "conversations 2, messages 4"),
        (["failing detect", "works again"], cnb.CAREFUL, "conversations 1"),
    ],
)
def test_composed_steps_store_what_is_expected(steps, policy, stored):
    assert stored in view.composed(steps, policy)[-1].stored


def test_a_failing_source_ends_the_pinned_import_only():
    assert view.composed(["failing scan"], cnb.PINNED)[-1].decided == "the import ended: ScanError"
    assert "failed: ScanError" in view.composed(["failing scan"], cnb.CAREFUL)[-1].decided


@settings(max_examples=15)
@given(st.lists(st.sampled_from([s for s in view.STEPS if s != "edited note"]), max_size=5))
def test_any_steps_can_be_composed_and_every_place_shown(steps):
    scenes = view.composed(steps, cnb.CAREFUL)
    assert len(scenes) == len(steps) + 1
    for place in view.positions(scenes):
        assert lab_html.scene({"careful": scenes}, "careful", place, False).encode()


def test_every_step_of_a_decision_has_words_for_both_branches():
    decided = [d for s in SCENARIOS for scene in s.play(policy=cnb.CAREFUL) for d in scene.decisions]
    assert {step.name for d in decided for step in d.steps} <= set(view.BRANCHES)


def test_rows_are_told_apart_by_what_became_of_them():
    before = {"import_log": [{"id": 1, "status": "a"}, {"id": 2, "status": "b"}, {"id": 3, "status": "c"}]}
    after = {"import_log": [{"id": 1, "status": "a"}, {"id": 2, "status": "x"}, {"id": 4, "status": "d"}]}
    changes = row_changes(before, after)
    assert [c.kind for c in changes] == ["same", "changed", "removed", "added"]
    assert changes[1].columns == ("status",)


def test_rules_are_flipped_one_by_one():
    for name, values in view.rules().items():
        for value in values:
            assert getattr(view.flipped("careful", {name: value}), name) == value
    assert set(view.rules()) == set(cnb.Policy.__struct_fields__) - {"name"}
    assert view.flipped("careful", {"save": "each"}) == cnb.CAREFUL


@pytest.mark.parametrize(
    ("rules", "hint"),
    [
        ({"colour": 1}, "no rule 'colour'; it has parsers"),
        ({"save": "never"}, "save must be"),
        ({"fingerprint": 1}, "true or false"),
    ],
)
def test_other_rules_are_refused(rules, hint):
    with pytest.raises(ConfigError, match=hint):
        view.flipped("careful", rules)
    with pytest.raises(traitlets.TraitError, match=hint):
        ReimportLab().rules = rules


def test_walking_goes_through_every_place_and_back():
    lab = ReimportLab(scenario="time-only")
    lab.scene = 0
    seen = [(lab.scene, lab.which, lab.step)]
    for _ in range(50):
        lab.next()
        if seen[-1] != (lab.scene, lab.which, lab.step):
            seen.append((lab.scene, lab.which, lab.step))
    assert seen == view.positions(lab.scenes)
    for _ in range(50):
        lab.previous()
    assert (lab.scene, lab.step) == (0, 0)


def test_the_decision_is_said_at_the_last_step_only():
    decision = play("changed-unseen", policy=cnb.CAREFUL)[-1].decisions[0]
    last = len(decision.steps) - 1
    assert 'data-action="open"' in lab_html.path(decision, 0, False)
    assert "Decision:" not in lab_html.path(decision, 0, False)
    assert 'data-action="replace"' in lab_html.path(decision, last, False)
    assert 'data-action="replace"' in lab_html.path(decision, 0, True)
    assert lab_html.path(decision, 1, False).count('class="cnb-later"') == last - 1


def test_the_branch_that_was_taken_is_marked():
    decision = msgspec.structs.replace(play("unchanged")[-1].decisions[0], steps=(Step("same hash", "a", "b", False),))
    html = lab_html.path(decision, 0, False)
    assert '<span class="cnb-taken">✓ <b>no → replace what is stored</b></span>' in html
    assert '<span class="cnb-other">yes → note' in html


def test_pinned_and_careful_stand_side_by_side():
    html = ReimportLab(scenario="changed-unseen").to_html()
    assert "pinned (chosen)" in html
    assert "≠ differs" in html
    lab = ReimportLab(scenario="changed-unseen", rules={"fingerprint": True})
    assert "pinned with fingerprint=True (chosen)" in lab.to_html()


def test_steps_given_are_a_composition():
    lab = ReimportLab(steps=["touch"])
    assert (lab.scenario, lab.decision.action) == (view.COMPOSED, "metadata-update")
    lab = ReimportLab()
    lab.steps = ["append"]
    assert (lab.scenario, lab.decision.action) == (view.COMPOSED, "replace")
    with pytest.raises(traitlets.TraitError, match="no step named 'jump'"):
        lab.steps = ["jump"]


def test_a_step_that_fails_leaves_the_state_before_it():
    lab = ReimportLab(steps=["touch"], rules={"min_messages": 10})
    with pytest.raises(ConfigError, match="no conversation to have a note"):
        lab.steps = ["edited note"]
    assert lab.steps == ("touch",)
    assert [s.name for s in lab.scenes] == ["first import", "1. touch"]


def test_wrong_places_are_refused():
    lab = ReimportLab()
    for name in ("scene", "which", "step"):
        with pytest.raises(traitlets.TraitError, match=f"no {name} 99 here"):
            setattr(lab, name, 99)
    with pytest.raises(traitlets.TraitError, match="no scenario 'x' here"):
        lab.scenario = "x"
    with pytest.raises(TypeError, match="did you mean 'scenario'"):
        ReimportLab(scenarios="x")


def test_ones_own_conversation_plays():
    config = cnb.samples.config()
    lab = ReimportLab(cnb.scan("claude-code", config=config).head(1), config=config, scenario="edited")
    assert lab.decision.action == "replace"
    assert set(lab._playable) < {s.name for s in SCENARIOS}
    with pytest.raises(traitlets.TraitError, match="no scenario 'shared-message-id' here"):
        lab.scenario = "shared-message-id"


def test_controls_drive_the_traits():
    lab = ReimportLab()
    lab._rule.value, lab._value.value = "fingerprint", True
    assert lab.rules == {"fingerprint": True}
    lab._value.value = False
    assert (lab.rules, lab.policy) == ({}, "pinned")
    lab._rule.value, lab._value.value = "fingerprint", True
    lab._profile.value = "careful"
    assert (lab.rules, lab.policy) == ({}, "careful")
    lab._scenario.value = view.COMPOSED
    button(lab, "edit").click()
    assert (lab.steps, lab.decision.action) == (("edit",), "replace")


def test_hostile_values_show_as_text():
    decision = cnb.Decision(HOSTILE, HOSTILE, "error", HOSTILE, (Step(HOSTILE, HOSTILE, HOSTILE, True),))
    scene = msgspec.structs.replace(
        play("unchanged")[0],
        decisions=(decision,),
        decided=HOSTILE,
        stored=HOSTILE,
        rows={HOSTILE: [{HOSTILE: HOSTILE}]},
    )
    html = lab_html.scene({HOSTILE: [scene]}, HOSTILE, (0, 0, 0), False)
    assert "<script" not in html
    assert html.isprintable()
    assert html.encode()


@pytest.mark.parametrize("scenario", ["edited", "changed-unseen", "rejected"])
def test_a_line_of_a_million_characters_is_cut_and_counted(tmp_path, scenario):
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    line = '{"type":"%s","uuid":"%s","timestamp":"2026-01-01T00:00:00.000Z","message":{"content":"%s"}}\n'
    text = "<img src=x onerror=alert(1)>" + "x" * 1_000_000
    (folder / "s.jsonl").write_text("".join(line % (kind, kind, text) for kind in ("user", "assistant")))
    config = cnb.Config(home=tmp_path)
    lab = ReimportLab(cnb.scan("claude-code", config=config), config=config, scenario=scenario)
    html = lab.to_html()
    assert "&lt;img src=x" in html
    assert "… 1,000,028 characters, " in html
    assert "<img" not in html
    assert len(html) < 100_000


def test_a_change_far_behind_what_is_shown_of_a_message_is_a_change(tmp_path):
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    line = '{"type":"%s","uuid":"%s","timestamp":"2026-01-01T00:00:00.000Z","message":{"content":"%s"}}\n'
    (folder / "s.jsonl").write_text("".join(line % (k, k, "word " * 100) for k in ("user", "assistant")))
    config = cnb.Config(home=tmp_path)
    lab = ReimportLab(cnb.scan("claude-code", config=config), config=config, scenario="edited")
    changes = row_changes(lab.scenes[0].rows, lab.scenes[1].rows)
    assert [c.kind for c in changes if c.table == "messages"] == ["changed", "same"]


@pytest.mark.parametrize("name", view.STEPS)
@pytest.mark.parametrize("policy", [cnb.PINNED, cnb.CAREFUL], ids=lambda p: p.name)
def test_every_step_can_be_done_twice_and_after_a_crash(name, policy):
    assert len(view.composed([name, name, "crash", name], policy)) == 5


@pytest.mark.parametrize("steps", [[5], [[]], [{}], [None], ["fly"]], ids=repr)
def test_what_is_no_step_is_refused_with_those_that_are(steps):
    lab = ReimportLab()
    with pytest.raises(traitlets.TraitError, match=r"no step named .*; known: import again"):
        lab.steps = steps


# Refused and failing inputs -------------------------------------------------------------------------------


INPUTS = ("scenario", "steps", "profile", "rules")
PLACES = ("scene", "which", "step", "all_steps", "decision", "scenes", "policy")


def state(lab: ReimportLab) -> list:
    """All that a person sees and a cell reads."""
    controls = (lab._scenario, lab._profile, lab._rule, lab._value, lab._scene, lab._which, lab._all)
    shown = [(c.value, getattr(c, "options", None)) for c in controls]
    return [*(getattr(lab, n) for n in (*INPUTS, *PLACES)), shown, lab._composer.layout.display, lab._result.value]


def button(lab: ReimportLab, label: str) -> ipywidgets.Button:
    waiting = [lab]
    for widget in waiting:
        waiting += getattr(widget, "children", ())
    return next(w for w in waiting if isinstance(w, ipywidgets.Button) and w.description == label)


@pytest.mark.parametrize("start", [{"scenario": "edited"}, {"steps": ["touch"]}, {"profile": "careful"}], ids=str)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", ["edited note"]),
        ("steps", ["jump"]),
        ("scenario", "nobody"),
        ("scenario", 5),
        ("profile", "bold"),
        ("rules", {"colour": 1}),
        ("rules", {"save": "never"}),
        ("scene", 9),
        ("step", -1),
    ],
)
def test_what_is_refused_or_fails_leaves_everything_as_it_was(start, name, value):
    lab = ReimportLab(**start, rules={"min_messages": 10}, scene=0, all_steps=True)
    before, heard = state(lab), []
    lab.observe(lambda change: heard.append(change.name), [*INPUTS, *PLACES])
    with pytest.raises((traitlets.TraitError, ConfigError)):
        setattr(lab, name, value)
    assert (state(lab), heard) == (before, [])


def test_inputs_that_are_held_back_and_fail_leave_everything_as_it_was():
    lab = ReimportLab(scenario="edited", rules={"min_messages": 10}, scene=0)
    before = state(lab)
    for steps, rules in ((["edited note"], {"min_messages": 9}), (["jump"], {}), (["touch"], {"colour": 1})):
        with pytest.raises((traitlets.TraitError, ConfigError)), lab.hold_trait_notifications():
            lab.steps, lab.rules = steps, rules
        assert state(lab) == before
    with lab.hold_trait_notifications():
        lab.steps, lab.rules = ["touch"], {"fingerprint": True}
    assert (lab.scenario, lab.steps, lab.policy) == (view.COMPOSED, ("touch",), "pinned with fingerprint=True")


def test_a_control_that_asks_for_what_fails_goes_back(monkeypatch):
    lab = ReimportLab(steps=["edited note"])
    lab._rule.value = "min_messages"
    before = state(lab)
    lab._value.value = 10  # then there is no conversation to have a note
    assert "no conversation to have a note" in lab._alert.value
    assert state(lab) == before
    lab._value.value = 3
    assert "no conversation to have a note" in lab._alert.value
    assert state(lab) == before
    button(lab, "Clear steps").click()
    assert (lab.steps, lab._alert.value) == ((), "")


# Inputs that follow from each other -----------------------------------------------------------------------


def test_steps_and_scenarios_take_turns():
    lab = ReimportLab()
    for _ in range(2):
        lab.steps = ["touch"]
        assert (lab.scenario, [s.name for s in lab.scenes]) == (view.COMPOSED, ["first import", "1. touch"])
        lab.scenario = "edited"
        assert (lab.steps, lab.decision.action) == ((), "replace")
    lab.steps = ["touch"]
    lab._scenario.value = "edited"
    assert (lab.scenario, lab.steps) == ("edited", ())


@pytest.mark.parametrize("scenario", ["edited", "changed-unseen"])
def test_a_scenario_and_steps_at_once_are_refused(scenario):
    with pytest.raises(traitlets.TraitError, match=f"'{scenario}' has steps of its own; give a scenario or steps"):
        ReimportLab(scenario=scenario, steps=["touch"])
    assert ReimportLab(scenario=view.COMPOSED, steps=["touch"]).steps == ("touch",)
    assert ReimportLab(scenario=scenario, steps=[]).scenario == scenario
    lab = ReimportLab()
    with pytest.raises(traitlets.TraitError, match="not both"), lab.hold_trait_notifications():
        lab.steps, lab.scenario = ["touch"], "edited"
    assert (lab.scenario, lab.steps) == ("changed-unseen", ())


def test_the_profile_has_its_own_rules_by_trait_and_by_control():
    by_trait, by_control = (ReimportLab(rules={"fingerprint": True}) for _ in range(2))
    by_trait.profile = "careful"
    by_control._profile.value = "careful"
    assert state(by_trait) == state(by_control)
    assert (by_trait.rules, by_trait.policy) == ({}, "careful")
    assert ReimportLab(profile="careful", rules={"fingerprint": False}).policy == "careful with fingerprint=False"


@given(st.lists(st.sampled_from([{"scenario": "edited"}, {"steps": ("touch",)}, {"steps": ()}, {"profile": "careful"},
                                 {"profile": "chatcrystal"}, {"rules": {"fingerprint": True}}])))  # fmt: skip
def test_inputs_are_always_at_one(changes):
    inputs = Inputs()
    for change in changes:
        inputs = inputs.having(**change)
        assert {name: getattr(inputs, name) for name in change} == change
        assert not inputs.steps or inputs.scenario == view.COMPOSED


# One's own conversation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["claude-code", "codex", "copilot"])
def test_every_step_that_is_offered_can_be_done(source):
    config = cnb.samples.config()
    lab = ReimportLab(cnb.scan(source, config=config).head(1), config=config, scenario=view.COMPOSED)
    offered = list(lab._adders)
    assert "short" not in offered
    for name in offered:
        assert len(view.composed([name], cnb.CAREFUL, lab._subject)) == 2
    for name in set(view.STEPS) - set(offered):
        with pytest.raises(traitlets.TraitError, match=f"the step '{name}' can't be done .* it needs a subject that"):
            lab.steps = [name]
    assert list(ReimportLab()._adders) == list(view.STEPS)


@pytest.mark.parametrize("given", [{}, {"scenario": "edited"}, {"steps": ["touch"]}, {"scenario": view.COMPOSED}])
def test_a_conversation_too_short_to_import_says_so(tmp_path, given):
    folder = tmp_path / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    line = '{"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:00.000Z","message":{"content":"hello there"}}\n'
    (folder / "s.jsonl").write_text(line)
    config = cnb.Config(home=tmp_path)
    found, lacks = cnb.scan("claude-code", config=config), "needs two messages or more at its first import, and has 1$"
    with pytest.raises(ConfigError, match="nothing can be acted out with this conversation: it " + lacks):
        ReimportLab(found, config=config, **given)
    subject = own_subject(found, config=config)
    with pytest.raises(ConfigError, match="^edited " + lacks):
        play("edited", subject=subject)
    assert run_scenarios(subject=subject, names=["edited"])["why"].str.contains(lacks).all()


def test_what_a_scenario_needs_and_a_subject_has_is_not_asked_of_it():
    config = cnb.samples.config()
    subject = own_subject(cnb.scan("claude-code", config=config).head(1), config=config)
    for scenario in SCENARIOS:
        if scenario.cast(None, subject) is None:
            with pytest.raises(ConfigError, match=f"^{scenario.name} needs a subject that has [a-z]"):
                scenario.play(subject=subject)


# What is shown --------------------------------------------------------------------------------------------


def test_what_was_is_struck_out_and_what_is_now_is_inserted():
    change = RowChange("import_log", "changed", {"id": 1, "status": "was"}, {"id": 1, "status": "is"})
    assert lab_html._cell(change, "status") == "<del><code>was</code></del> <ins><code>is</code></ins>"
    assert lab_html._cell(change, "id") == "<code>1</code>"


def test_a_step_shows_what_is_stored_before_what_is_now():
    decision = msgspec.structs.replace(play("unchanged")[-1].decisions[0], steps=(Step("same size", 1, 2, False),))
    assert "<b>same size?</b> stored <code>1</code>, now <code>2</code>" in lab_html.path(decision, 0, False)


def test_the_rows_before_are_those_of_the_scene_before():
    lab = ReimportLab(steps=["append", "import again"])
    stored = [scene.stored for scene in lab.scenes]
    assert stored[0] != stored[1] == stored[2]
    assert f"<p>Before: {stored[1]}<br>After: {stored[2]}</p>" in lab.body()
    assert "0 added, 0 changed, 0 removed" in lab.body()
    lab.scene = 1
    assert f"<p>Before: {stored[0]}<br>After: {stored[1]}</p>" in lab.body()
    lab.scene = 0
    assert f"<p>Before: empty<br>After: {stored[0]}</p>" in lab.body()


def test_steps_are_added_and_taken_back_at_the_end():
    lab = ReimportLab(scenario=view.COMPOSED)
    for name in ("touch", "append", "edit"):
        button(lab, name).click()
    assert lab.steps == ("touch", "append", "edit")
    button(lab, "Remove last").click()
    assert lab.steps == ("touch", "append")
    button(lab, "Clear steps").click()
    assert (lab.steps, lab.scenario) == ((), view.COMPOSED)


def test_every_control_of_the_place_is_wired():
    lab = ReimportLab(steps=["touch", "duplicate id"])
    lab._which.value = 1
    assert lab.which == 1
    lab._scene.value = 1
    assert (lab.scene, lab.which, lab.step) == (1, 0, 0)
    assert 'data-scene="1"' in lab._result.value
    button(lab, "Next").click()
    assert lab.step == 1
    button(lab, "Prev").click()
    assert lab.step == 0
    lab._all.value = True
    assert lab.all_steps is True
    lab.rules = {"fingerprint": True}
    button(lab, "Reset rules").click()
    assert lab.rules == {}
