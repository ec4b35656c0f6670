"""Every acceptance scenario holds, by both policies, and each rule of a policy is what some of them depend on."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from msgspec.structs import replace

import crystal_nb as cnb
from crystal_nb import scenarios
from crystal_nb.adapters.base import Adapter, Rules
from crystal_nb.candidates import as_candidates
from crystal_nb.policy import Policy
from crystal_nb.scenarios.catalogue import SCENARIOS
from crystal_nb.scenarios.subjects import subject_for, write_claude_code

SECTION_9 = {
    "unchanged": "unchanged",
    "content changed with size and mtime unchanged": "changed-unseen",
    "time only": "time-only",
    "size changed, messages equal": "size-only",
    "content appended": "appended",
    "content edited": "edited",
    "parser version only": "new-parser",
    "parser version and touched file": "new-parser-and-touched",
    "same raw id in two sources": "same-id-two-sources",
    "candidate id ≠ parsed id": "candidate-id-differs",
    "message id shared by two conversations": "shared-message-id",
    "duplicate registration": "duplicate-registration",
    "detect fails": "detect-fails",
    "scan fails": "scan-fails",
    "one parse fails, others go on": "parse-fails",
    "one parse fails and the log cannot be written": "parse-fails-log-broken",
    "fewer than two messages": "short",
    "edited note kept, unedited note dropped with a clean-up task": "notes",
    "user-rejected kept": "rejected",
    "crash before the final save": "crash",
    "raw ids 7 and codex:7 sent to remote": "meeting-ids",
    "each remote validation failure": "remote-validation",
    "configuration that lost a built-in": "lost-built-in",
}
FLIPS: dict[str, tuple[object, set[str]]] = {
    "parsers": ("newest", {"newest-rules"}),
    "trust_size_and_time": (
        False,
        {
            *("unchanged", "changed-unseen", "time-only", "size-only", "appended", "edited", "new-parser", "rejected"),
            *("new-parser-and-touched", "same-id-two-sources", "shared-message-id", "parse-fails", "notes"),
            "tags-of-notes",
        },
    ),
    "fingerprint": (
        True,
        {
            *("unchanged", "changed-unseen", "time-only", "new-parser", "same-id-two-sources"),
            *("shared-message-id", "parse-fails"),
        },
    ),
    "reparse_new_parser": (
        True,
        {
            "unchanged",
            "changed-unseen",
            "time-only",
            "new-parser",
            "same-id-two-sources",
            "shared-message-id",
            "parse-fails",
        },
    ),
    "min_messages": (1, {"short"}),
    "remember_short": (True, {"short"}),
    "lookup": ("source_conversation_id", {"candidate-id-differs", "row-of-another-id"}),
    "row_id": ("candidate-id", {"candidate-id-differs"}),
    "conversation_key": ("source+id", {"same-id-two-sources"}),
    "message_key": ("conversation+index", {"shared-message-id"}),
    "failing_source": ("collect", {"detect-fails", "scan-fails"}),
    "guard_log": (True, {"parse-fails-log-broken"}),
    "save": ("each", {"crash"}),
    "foreign_keys": ("on", {"tags-of-notes", "notes"}),
    "keep_edited_notes": (False, {"notes"}),
    "keep_rejected": (False, {"rejected"}),
}


FLIPS_OF_CAREFUL: dict[str, tuple[object, set[str]]] = {
    "parsers": ("registered", {"newest-rules"}),
    "fingerprint": (
        False,
        {
            *("unchanged", "changed-unseen", "time-only", "new-parser", "same-id-two-sources", "candidate-id-differs"),
            *("row-of-another-id", "shared-message-id", "parse-fails", "short", "crash"),
        },
    ),
    "reparse_new_parser": (
        False,
        {
            *("unchanged", "time-only", "new-parser", "same-id-two-sources", "candidate-id-differs"),
            *("row-of-another-id", "shared-message-id", "parse-fails", "short", "crash"),
        },
    ),
    "remember_short": (False, {"short"}),
    "lookup": ("id", {"row-of-another-id"}),
    "row_id": ("parsed-id", {"candidate-id-differs"}),
    "conversation_key": ("id", {"same-id-two-sources"}),
    "message_key": ("id", {"shared-message-id"}),
    "failing_source": ("abort", {"detect-fails", "scan-fails"}),
    "guard_log": (False, {"parse-fails-log-broken"}),
    "save": ("at-end", {"crash"}),
    "foreign_keys": ("until-saved", {"notes", "tags-of-notes"}),
}


def failing(policy: Policy) -> set[str]:
    rows = cnb.run_scenarios(policies=[policy])
    return set(rows.filter(~pl.col("ok"))["scenario"])


def test_every_scenario_of_section_9_is_there():
    assert set(SECTION_9.values()) <= {s.name for s in SCENARIOS}


@pytest.mark.parametrize("policy", [cnb.PINNED, cnb.CAREFUL], ids=lambda p: p.name)
def test_every_scenario_holds(policy):
    rows = cnb.run_scenarios(policies=[policy])
    assert rows.filter(pl.col("ok").is_null() | ~pl.col("ok")).is_empty()
    assert set(rows["scenario"]) == {s.name for s in SCENARIOS}


def test_every_rule_is_flipped_below():
    assert set(FLIPS) == set(Policy.__struct_fields__) - {"name"}


@pytest.mark.parametrize("field", FLIPS)
def test_one_rule_flipped_breaks_the_scenarios_that_depend_on_it(field):
    value, broken = FLIPS[field]
    assert failing(replace(cnb.PINNED, **{field: value})) == broken


@pytest.mark.parametrize("field", FLIPS_OF_CAREFUL)
def test_one_repair_taken_back_breaks_the_scenarios_that_depend_on_it(field):
    value, broken = FLIPS_OF_CAREFUL[field]
    assert failing(replace(cnb.CAREFUL, **{field: value})) == broken


@pytest.mark.parametrize("source", ["claude-code", "codex", "copilot"])
def test_each_source_with_a_writer_plays_all_that_it_can(source):
    rows = cnb.run_scenarios(adapter=source)
    assert rows["ok"].drop_nulls().all()
    played = set(rows.filter(pl.col("ok").is_not_null())["scenario"])
    assert len(played) >= len(SCENARIOS) - 2


def claude_like(**fields: object) -> Adapter:
    inner = cnb.get_adapter("claude-code")
    adapter = Adapter("mine", "Mine", inner.root, inner.count, inner.candidates, inner.read, Rules("mine@1"))
    for name, value in fields.items():
        object.__setattr__(adapter, name, value)
    return adapter


def test_an_adapter_without_a_writer_is_told_what_it_needs():
    with pytest.raises(cnb.ConfigError, match="write_sample"):
        subject_for(claude_like())


def test_an_unknown_scenario_names_the_known_ones():
    with pytest.raises(cnb.ConfigError, match="unchanged"):
        scenarios.get_scenario("nonsense")


def test_a_scenario_that_breaks_is_a_row_and_the_others_go_on():
    def broken_writer(home: Path, sample: object) -> Path:
        raise OSError("told to fail")

    rows = cnb.run_scenarios(adapter=claude_like(write_sample=broken_writer), names=["unchanged", "lost-built-in"])
    assert set(rows.filter(~pl.col("ok"))["observed"]) == {"OSError: told to fail", None}
    assert rows.filter(pl.col("scenario") == "lost-built-in")["ok"].all()


def test_a_wrong_expectation_is_seen(monkeypatch):
    monkeypatch.setattr(scenarios, "SCENARIOS", (replace(SCENARIOS[0], expected={}),))
    assert not cnb.run_scenarios()["ok"].any()


def own(tmp_path: Path, source: str) -> tuple[cnb.Config, list[cnb.Candidate]]:
    home = tmp_path / "home"
    shutil.copytree(cnb.samples.home(), home)
    config = cnb.Config(home=home)
    return config, as_candidates(cnb.scan(source, config=config))


@pytest.mark.parametrize("source", ["claude-code", "codex"])
def test_ones_own_conversation_can_be_the_subject(tmp_path, source):
    config, candidates = own(tmp_path, source)
    before = {p: p.read_bytes() for p in config.home_path.rglob("*") if p.is_file()}
    subject = cnb.own_subject(candidates[0], config=config)
    rows = cnb.run_scenarios(subject=subject)
    assert rows["ok"].drop_nulls().all()
    assert {"unchanged", "changed-unseen", "appended", "edited"} <= set(rows.drop_nulls("ok")["scenario"])
    assert {p: p.read_bytes() for p in config.home_path.rglob("*") if p.is_file()} == before


def test_a_subject_with_another_id_inside_is_said_to_hide_the_rest(tmp_path):
    config, _ = own(tmp_path, "codex")
    drifting = cnb.parse(cnb.scan("codex", config=config), config=config).conversations
    drifting = drifting.filter(pl.col("id") != pl.col("candidate_id"))
    rows = cnb.run_scenarios(subject=cnb.own_subject(drifting, config=config), names=["unchanged"])
    assert rows.filter(pl.col("policy") == "pinned")["why"][0].startswith("the file names another id")
    assert rows.filter(pl.col("policy") == "careful")["ok"].all()


def test_a_subject_is_one_candidate(tmp_path):
    config, candidates = own(tmp_path, "codex")
    with pytest.raises(cnb.ConfigError, match="one candidate, not 3"):
        cnb.own_subject(candidates, config=config)


def test_a_conversation_in_a_shared_database_is_refused_as_a_subject(tmp_path):
    config, candidates = own(tmp_path, "cursor")
    with pytest.raises(cnb.ConfigError, match="a file of its own"):
        cnb.own_subject(candidates[0], config=config)


def test_a_conversation_outside_the_home_is_refused_as_a_subject(tmp_path):
    _, candidates = own(tmp_path, "codex")
    (tmp_path / "other").mkdir()
    with pytest.raises(cnb.ConfigError, match="not below the home folder"):
        cnb.own_subject(candidates[0], config=cnb.Config(home=tmp_path / "other"))


def test_the_writers_write_what_their_adapters_read(tmp_path):
    from crystal_nb.scenarios.subjects import Sample, SampleMessage

    messages = (SampleMessage("user", "hello", "a", "2026-01-05T10:00:00.000Z"),)
    write_claude_code(tmp_path, Sample("s1", messages))
    corpus = cnb.parse(cnb.scan("claude-code", config=cnb.Config(home=tmp_path)), config=cnb.Config(home=tmp_path))
    assert [m.content for m in corpus[0].messages] == ["hello"]


def test_scenes_of_one_s_own_conversation_are_readable_and_hold_no_text_of_it():
    config = cnb.samples.config()
    candidates = cnb.scan("codex", config=config).head(1)
    subject = cnb.own_subject(candidates, config=config)
    shown = repr(subject) + "".join(map(repr, cnb.scenarios.play("edited", subject=subject)))
    texts = [m.content for c in cnb.parse(candidates, config=config) for m in c.messages]
    assert texts
    assert not [text for text in texts if text[:12] in shown]
    assert max(map(len, shown.split("\n"))) < 600
    assert "  stored   conversations 1" in shown
    assert "Decision(" not in shown
