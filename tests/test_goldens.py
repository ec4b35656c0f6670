"""Frozen results of each released parser version on each scenario under ``fixtures``.

A released version's golden never changes. For a new scenario or version write it once with
``python tests/test_goldens.py <source>/<scenario>`` and read it before committing.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import crystal_nb as cnb
from crystal_nb import ecma

FIXTURES = Path(__file__).parent.parent / "fixtures"
SCENARIOS = sorted(p.parent for p in FIXTURES.glob("*/*/scenario.toml"))
CLOCK = 1_800_000_000_000


def result(scenario: Path) -> list[dict[str, Any]]:
    """Everything that a parse of the scenario's home gives, without what depends on place or chance."""
    source = scenario.parent.name
    config = cnb.Config(home=scenario / "home", platform="linux", cache_seconds=0, clock=lambda: CLOCK)
    corpus = cnb.parse(cnb.scan(source, config=config), config=config)
    failures = [{"candidate": f.candidate.id, "error": f.error, "line": f.line} for f in corpus.failed]
    return [conversation(p) for p in corpus.parsed] + failures


def conversation(p) -> dict[str, Any]:
    c = p.conversation
    names = ("id", "slug", "project_dir", "project_name", "cwd", "git_branch", "first_message_at", "last_message_at")
    fates = [[f.status, f.kind, f.reason, f.message_index, f.line, f.offset, f.size, f.key, f.note] for f in p.fates]
    return {
        "candidate": p.candidate.id,
        **{name: getattr(c, name) for name in names},
        "content_hash": p.content_hash,
        "messages": [message(m, random_id=c.source == "codex") for m in c.messages],
        "fates": fates,
    }


def message(m: cnb.Message, *, random_id: bool) -> dict[str, Any]:
    names = (
        "type",
        "role",
        "content",
        "has_tool_use",
        "has_code",
        "thinking",
        "parent_uuid",
        "timestamp",
        "timestamp_from_clock",
    )
    return {"id": None if random_id else m.id, **{name: getattr(m, name) for name in names}}


def golden(scenario: Path) -> Path:
    return scenario / "expected" / f"{cnb.get_adapter(scenario.parent.name).parser_version}.json"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: f"{s.parent.name}/{s.name}")
def test_the_result_is_the_frozen_one(scenario):
    assert json.loads(ecma.json_text(result(scenario))) == json.loads(golden(scenario).read_text(encoding="utf-8"))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: f"{s.parent.name}/{s.name}")
def test_a_scenario_says_what_it_shows_and_where_the_fact_comes_from(scenario):
    told = tomllib.loads((scenario / "scenario.toml").read_text(encoding="utf-8"))
    assert set(told) == {"shows", "format_facts"}
    assert all(told.values())


def test_every_source_has_a_scenario():
    assert {s.parent.name for s in SCENARIOS} >= set(cnb.adapters.registered())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = golden(FIXTURES / name)
        if file.exists():
            sys.exit(f"{file} is frozen")
        file.parent.mkdir(exist_ok=True)
        file.write_text(
            json.dumps(json.loads(ecma.json_text(result(FIXTURES / name))), indent=1, ensure_ascii=True) + "\n"
        )
