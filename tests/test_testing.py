from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from broken_adapters import BROKEN, NO_ADAPTER_CAN_BREAK, WITH_CONSEQUENCES, sound, write_sample

import crystal_nb as cnb
from crystal_nb import samples
from crystal_nb.contract.effects import state
from crystal_nb.contract.frames import CONTRACT
from crystal_nb.prototyping import jsonl_adapter
from crystal_nb.scenarios import Sample, SampleMessage
from crystal_nb.testing import CHECKS, adapter_contract, check_adapter

VERSIONS = list(cnb.adapters.versions())
DEVIATIONS = {
    "claude-code@2": ["stored rows"],
    "codex@1": ["ids stable", "candidate id = parsed id", "stored rows"],
    "copilot@1": ["clock", "truncated"],
    "copilot@2": ["unknown record"],
    "cursor@1": ["touch", "stored rows"],
    "cursor@2": ["stored rows"],
    "trae@1": ["touch"],
}
"""Checks that show on the samples what `known` lists; any other one is a fault."""


def failed(frame: pl.DataFrame) -> list[str]:
    return frame.filter(~pl.col("ok").fill_null(True))["check"].to_list()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_built_ins_keep_the_contract(version):
    frame = check_adapter(version)
    assert failed(frame) == []
    known = frame.filter(pl.col("detail").str.starts_with("known:"))["check"].to_list()
    assert known == DEVIATIONS.get(version, [])


def test_a_sound_prototype_passes_every_check():
    frame = check_adapter(sound)
    assert list(frame.columns) == list(CONTRACT)
    assert frame.filter(pl.col("ok").is_null() | ~pl.col("ok")).to_dicts() == []
    assert frame["check"].to_list() == [c.name for c in CHECKS]
    assert frame["check"].is_unique().all()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_adapter_fails_exactly_the_check_meant_for_it(name):
    assert failed(check_adapter(BROKEN[name])) == [name]


@pytest.mark.parametrize("name", WITH_CONSEQUENCES)
def test_a_broken_adapter_with_consequences_fails_the_check_meant_for_it_first(name):
    assert failed(check_adapter(WITH_CONSEQUENCES[name]))[0] == name


def test_every_check_has_a_broken_adapter_or_a_reason_why_there_is_none():
    assert sorted([*BROKEN, *WITH_CONSEQUENCES, *NO_ADAPTER_CAN_BREAK]) == sorted(c.name for c in CHECKS)


def test_every_check_states_what_has_to_hold():
    assert [c.name for c in CHECKS if not c.run.__doc__] == []


def test_what_moves_is_named():
    detail = check_adapter(BROKEN["clock"]).filter(pl.col("check") == "clock")["detail"].item()
    assert "conversations[0].messages[1].timestamp" in detail


def test_an_author_s_home_is_read_and_left_alone(tmp_path):
    message = SampleMessage("user", "hello", "m1", "2026-01-05T10:00:00.000Z")
    write_sample(tmp_path, Sample("own", (message,)))
    before = state(tmp_path)
    frame = check_adapter(sound, tmp_path)
    assert failed(frame) == []
    assert frame.filter(pl.col("check") == "candidates")["detail"].item() == "the file of 1 candidate is named"
    assert state(tmp_path) == before


def test_without_samples_nothing_can_be_checked(tmp_path):
    @jsonl_adapter("nothing", root="~/.nothing")
    def nothing(record, session):
        pass

    with pytest.raises(cnb.ConfigError, match="write_sample"):
        check_adapter(nothing)
    with pytest.raises(cnb.ConfigError, match="no folder"):
        check_adapter(nothing, tmp_path / "gone")
    with pytest.raises(cnb.ConfigError, match=r"no sample files of 'nothing' .* looks into ~.\.nothing"):
        check_adapter(nothing, tmp_path)
    (tmp_path / ".nothing").mkdir()
    (tmp_path / "other.jsonl").touch()
    with pytest.raises(cnb.ConfigError, match="no sample files"):
        check_adapter(nothing, tmp_path)
    (tmp_path / ".nothing" / "notes.txt").touch()
    assert "found" in failed(check_adapter(nothing, tmp_path))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_home_without_the_tool_s_files_is_refused(tmp_path, version):
    with pytest.raises(cnb.ConfigError, match="no sample files of"):
        check_adapter(version, tmp_path)


def test_what_a_check_of_the_change_policy_needs_is_said(tmp_path):
    messages = [SampleMessage("user", f"hello there {n}", f"m{n}", "2026-01-05T10:00:00.000Z") for n in range(2)]
    write_sample(tmp_path, Sample("own", tuple(messages)))
    frame = check_adapter(replace(sound, write_sample=None), tmp_path)
    detail = dict(frame.filter(group="change policy").select("check", "detail").rows())
    assert "three messages or more, each on a line of its own" in detail["append"]
    assert "write_sample(home, sample)" in detail["append"]
    payload = frame.filter(check="payload")["detail"].item()
    assert payload.startswith("1 item, sent as codex's, since a server takes no source of another name")


def test_what_is_no_adapter_is_refused():
    with pytest.raises(cnb.AdapterError, match="no adapter"):
        check_adapter(len)


def test_a_known_fault_does_not_cover_another_one():
    import msgspec

    codex = cnb.get_adapter("codex@1")

    def read(candidate, rules, config):
        parsed = codex.read(candidate, rules, config)
        slug = str(config.clock())
        return msgspec.structs.replace(parsed, conversation=msgspec.structs.replace(parsed.conversation, slug=slug))

    assert failed(check_adapter(replace(codex, read=read))) == ["clock"]


test_contract_in_one_line = adapter_contract(sound)


def test_the_one_line_fails_with_the_reasons():
    with pytest.raises(AssertionError, match="damage: unknown record: "):
        adapter_contract(BROKEN["unknown record"])()


@pytest.mark.parametrize("name", ["kind", "type", "text"])
def test_a_parser_that_takes_a_field_for_granted_fails_at_a_record_without_it(name):
    def read(record, session):
        if record[name] and record.get("kind") == "say":
            yield cnb.Message(id=record["id"], type=record["who"], content=record["text"], timestamp=record["at"])

    def write(home, sample):
        path = write_sample(home, sample)
        lines = [{**json.loads(line), "type": "x"} for line in path.read_text().splitlines()[1:] if line.strip()]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines) + " " * sample.padding)
        return path

    granted = jsonl_adapter("granted", root="~/.mytool", write_sample=write)(read)
    assert failed(check_adapter(granted)) == ["unknown record"]


def test_the_registry_is_as_before():
    before = dict(cnb.adapters.registered())
    check_adapter(sound)
    assert dict(cnb.adapters.registered()) == before
    assert samples.fixtures().is_dir()
