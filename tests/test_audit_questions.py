"""Each question finds exactly what was planted, and nothing in a sound store."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from audit_plants import IN_BOTH, PLANTS, World, messages

import crystal_nb as cnb
from crystal_nb.audit import KINDS, QUESTIONS, audit, coverage, reparse, scan_cost
from crystal_nb.scenarios.world import Staged

HERE = sorted(PLANTS)


def planted(tmp_path, question: str, profile: str) -> World:
    world = World(tmp_path, profile)
    for plant in PLANTS[question]:
        plant.before(world)
    world.import_all()
    for plant in PLANTS[question]:
        plant.after(world)
    return world


@pytest.mark.parametrize(
    ("question", "profile"),
    [*((question, "chatcrystal") for question in HERE), *((question, "careful") for question in sorted(IN_BOTH))],
)
def test_a_question_finds_exactly_what_was_planted(tmp_path, question, profile):
    world = planted(tmp_path, question, profile)
    cands = None if question == "coverage" else world.scan()
    report = audit(
        world.path, cands, config=world.config, adapters=world.adapters, questions=[question], progress=False
    )
    expected = Counter(found for plant in PLANTS[question] for found in plant.found)
    assert Counter((f.kind, f.conversation_id, f.count) for f in report.found) == expected
    assert {f.question for f in report.found} == {question}


def test_every_question_has_plants():
    assert set(PLANTS) == set(QUESTIONS)


@pytest.mark.parametrize("question", HERE)
def test_at_least_three_things_are_planted_for_each_question(question):
    assert sum(len(plant.found) for plant in PLANTS[question]) >= 3


@pytest.mark.parametrize("question", QUESTIONS)
def test_nothing_is_found_in_what_the_careful_profile_made_of_sound_conversations(tmp_path, question):
    world = World(tmp_path, "careful")
    world.import_all()
    report = audit(world.path, world.scan(), config=world.config, questions=[question], progress=False)
    assert report.found == []
    assert report.ok


def test_every_kind_of_finding_is_planted_somewhere():
    known = {kind for plants in PLANTS.values() for plant in plants for kind, *_ in plant.found}
    assert set(KINDS) - known == {
        "undecidable",
        "unreadable",
        "other-parser",
        "parse-fails",
        "read-again",
        "history-gone",
    }


def test_a_hash_that_moves_is_no_stale_skip(tmp_path):
    from audit_plants import timeless

    world = World(tmp_path, "chatcrystal")
    timeless(world)
    world.import_all()
    world.sql("UPDATE conversations SET content_hash = '00' WHERE id = 's9'")
    report = audit(world.path, world.scan(), config=world.config, questions=["stale skips"])
    assert report.answer("stale skips").kinds() == {"undecidable": 1}


def test_rows_of_rules_that_are_not_here_are_told_apart(tmp_path):
    world = World(tmp_path, "chatcrystal")
    world.import_all()
    world.sql("UPDATE conversations SET content_hash = '00', parser_version = 'codex@99' WHERE id = 'c0'")
    report = audit(world.path, world.scan(), config=world.config, questions=["stale skips"])
    assert report.answer("stale skips").kinds() == {"other-parser": 1}


def test_rows_are_compared_with_a_parse_by_the_rules_that_stored_them(tmp_path):
    """So a newer parser alone is no stale skip."""
    world = World(tmp_path, "chatcrystal")
    world.import_all()
    newest = cnb.scan(config=world.config, profile="careful")
    assert audit(world.path, newest, config=world.config, questions=["stale skips"]).found == []


def test_a_parse_that_fails_does_so_at_every_import(tmp_path):
    world = World(tmp_path, "chatcrystal")
    world.import_all()
    cands = world.scan()
    world.edit("s1", "blue", "green and white")
    world.file("s1").unlink()
    world.sql("UPDATE conversations SET file_size = 0 WHERE id = 's1'")
    report = audit(world.path, cands, config=world.config, questions=["wasted work"])
    assert [(f.kind, f.conversation_id) for f in report.found] == [("parse-fails", "claude-code:s1")]


def test_scans_that_open_files_are_found():
    answer = scan_cost(config=cnb.samples.config())
    found = {(f.kind, f.source) for f in answer.findings}
    assert found == {(f"{phase}-reads", s) for phase in ("detect", "scan") for s in ("cursor", "trae", "copilot")}
    costs = answer.tables["costs"].rows_by_key(["source", "phase"], named=True)
    assert costs["claude-code", "scan"][0]["files_opened"] == 0
    assert costs["cursor", "scan"][0]["queries"] > 0
    assert costs["cursor", "scan again"][0]["databases_opened"] == 0


def test_a_database_that_is_opened_for_each_conversation_is_found():
    config = cnb.samples.config()
    with cnb.Store.in_memory(cnb.PINNED, config) as store:
        report = audit(store, cnb.scan("cursor", config=config), config=config, questions=["scan cost"])
    assert [f.source for f in report.found if f.kind == "read-again"] == ["cursor"]
    parse = report.tables["costs"].filter(source="cursor", phase="parse")
    assert parse["databases_opened"].to_list() == [2]


def test_a_source_that_fails_is_a_finding(tmp_path):
    world = World(tmp_path, "chatcrystal")
    world.import_all()
    failing = Staged(cnb.get_adapter("codex"), failing="scan")
    report = audit(world.path, config=world.config, adapters=[failing], questions=["scan cost"])
    assert [(f.kind, f.source) for f in report.found] == [("source-fails", "codex")]


def test_coverage_names_the_places_that_lack_a_source():
    assert coverage(["codex", "trae"]).findings == ()
    kinds = Counter((f.source, f.kind) for f in coverage(["codex", "gemini", "mytool"]).findings)
    everywhere = ("supported", "default", "restored", "validated")
    expected = [(source, f"not-{place}") for source in ("gemini", "mytool") for place in everywhere]
    assert kinds == Counter([*expected, ("mytool", "not-registered"), ("mytool", "not-watched")])


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
def test_no_field_changed_in_what_was_just_imported(tmp_path, profile):
    """Of all sources, also where some messages have no time."""
    config = cnb.samples.config()
    with cnb.open_store(tmp_path / "imports.db", profile=profile, config=config) as store:
        cnb.import_all(store, config=config)
        report = audit(store, config=config, questions=["stale skips", "hash power", "integrity", "drift"])
    assert [f.evidence for f in report.found if f.kind not in ("log-error", "duplicate")] == []


# Drift by the tools' versions


def test_kinds_and_shares_are_told_by_the_version_of_the_tool(tmp_path):
    from audit_plants import unknown_record

    world = World(tmp_path, "chatcrystal")
    for n in range(2):
        world.edit(f"s{n}", '"2.0.0"', '"2.1.9"')
    world.edit("c0", '"cwd"', '"cli_version": "0.99.0", "cwd"')
    unknown_record(world)
    world.import_all()
    report = audit(world.path, world.scan(), config=world.config, questions=["drift"])
    mix = report.tables["mix"].filter(tool_version="2.1.9")
    assert mix.select("source", "month", "messages").rows() == [("claude-code", "2026-01", 4)]
    kinds = report.tables["kinds_read"].filter(tool_version="2.1.9")
    assert set(kinds["parser_version"]) == {"claude-code@1", "claude-code@2"}
    assert kinds.filter(known=False).select("kind", "records", "month").rows() == [("telepathy", 1, "2026-01")]
    assert kinds.filter(parser_version="claude-code@1")["known"].null_count() > 0
    assert set(report.tables["kinds_read"].filter(source="codex")["tool_version"]) == {"0.99.0", None}


@pytest.mark.parametrize("as_log", [False, True])
def test_the_version_of_copilot_is_that_of_its_extension(tmp_path, as_log):
    from crystal_nb.scenarios.subjects import Sample, write_copilot

    path = write_copilot(tmp_path, Sample("v1", messages("v1")))
    document = json.loads(path.read_text())
    for request in document["requests"]:
        request["agent"] = {"id": "github.copilot.default", "extensionVersion": "0.31.0"}
    path.write_text(json.dumps(document))
    if as_log:
        path.unlink()
        path.with_suffix(".jsonl").write_text(json.dumps({"kind": 0, "v": document}) + "\n")
    config = cnb.Config(home=tmp_path, platform="linux", cache_seconds=0)
    for policy in (cnb.PINNED, cnb.CAREFUL):
        with cnb.Store.in_memory(policy, config) as store:
            parsed = reparse(store, cnb.scan("copilot", config=config), config=config).parsed
        assert [r.tool_version for r in parsed] == ["0.31.0"]


def test_a_layout_that_no_rule_knows_is_a_kind_that_no_rule_knows(tmp_path):
    for profile in ("chatcrystal", "careful"):
        (tmp_path / profile).mkdir()
        world = World(tmp_path / profile, profile)
        world.file("s1").write_text('{"strange": 1}\n' * 20)
        world.import_all()
        report = audit(world.path, world.scan(), config=world.config, questions=["drift"])
        assert [(f.kind, f.source, f.count) for f in report.found] == [("unknown-kind", "claude-code", 1)]
