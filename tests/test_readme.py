from __future__ import annotations

import re
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
