from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import crystal_nb as cnb

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def test_the_python_code_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for code in blocks("python"):
        exec(code, {})


def test_the_output_shown_is_the_samples_output():
    config = cnb.samples.config()
    shown = blocks("text")[0].splitlines()
    real = repr(cnb.parse(cnb.scan(config=config), config=config)).splitlines()
    assert shown[-1].strip() == "…"
    assert real[: len(shown) - 1] == shown[:-1]


@pytest.mark.parametrize("name", re.findall(r"`cnb\.([\w.]+)", README))
def test_every_name_exists(name):
    value = cnb
    for part in name.split("."):
        value = getattr(value, part)


def test_there_are_exactly_two_set_up_commands_of_one_line_each():
    commands = [text for text in blocks("sh") if "venv" in text]
    assert [c.count("\n") for c in commands] == [1, 1]


def test_the_sample_writer_shown_gives_a_contract_without_gaps(tmp_path):
    names: dict[str, object] = {}
    for code in blocks("python"):
        if "mytool" in code:
            exec(code, names)
    adapter = replace(names["mytool"], write_sample=names["write_sample"])
    frame = cnb.check_adapter(adapter)
    assert frame.filter(~frame["ok"].fill_null(False))["check"].to_list() == ["hash seed"]  # no module has it


def test_the_message_asked_for_in_an_example_is_in_the_samples():
    config = cnb.samples.config()
    corpus = cnb.parse(cnb.scan("codex", config=config), config=config)
    (index,) = re.findall(r'source_of\("codex", id, (\d+), "content"\)', README)
    assert corpus.source_of("codex", corpus.parsed[0].candidate.id, int(index), "content")


def test_the_folders_of_the_table_are_those_that_are_read(tmp_path):
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| `~/([^`]*)` \| [`–]", README, flags=re.MULTILINE)
    assert len(rows) == 6
    config = cnb.Config(home=tmp_path, platform="linux")
    shown = dict(cnb.sources(config=config).select("source", "folder").rows())
    assert {name: str(tmp_path / folder) for name, folder in rows} == shown
