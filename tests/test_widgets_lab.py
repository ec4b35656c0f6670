"""The reimport lab: its model and its traits, without a browser."""

from __future__ import annotations

import msgspec
import pytest
import traitlets
from hypothesis import given, settings
from hypothesis import strategies as st

import crystal_nb as cnb
from crystal_nb.decisions import Step
from crystal_nb.errors import ConfigError
from crystal_nb.scenarios import SCENARIOS, play
from crystal_nb.widgets import ReimportLab, lab_html
from crystal_nb.widgets import lab_view as view

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
    changes = view.row_changes(before, after)
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
    lab._new_step.value = "edit"
    lab._add()
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
    changes = view.row_changes(lab.scenes[0].rows, lab.scenes[1].rows)
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
