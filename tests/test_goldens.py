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
from msgspec import structs

import crystal_nb as cnb
from crystal_nb import ecma

FIXTURES = Path(__file__).parent.parent / "fixtures"
SCENARIOS = sorted(p.parent for p in FIXTURES.glob("*/*/scenario.toml"))
CLOCK = 1_800_000_000_000


def versions(scenario: Path) -> list[str]:
    """Released versions of the scenario's source, oldest first."""
    return [v for v, adapter in cnb.adapters.versions().items() if adapter.name == scenario.parent.name]


CASES = [pytest.param(s, v, id=f"{s.parent.name}/{s.name} {v}") for s in SCENARIOS for v in versions(s)]


def result(scenario: Path, version: str) -> list[dict[str, Any]]:
    """Everything that a parse of the scenario's home gives, without what depends on place or chance."""
    config = cnb.Config(home=scenario / "home", platform="linux", cache_seconds=0, clock=lambda: CLOCK)
    corpus = cnb.parse(cnb.scan(version, config=config), config=config)
    failures = [{"candidate": f.candidate.id, "error": f.error, "line": f.line} for f in corpus.failed]
    return [conversation(p) for p in corpus.parsed] + failures


def conversation(p) -> dict[str, Any]:
    c = p.conversation
    names = ("id", "slug", "project_dir", "project_name", "cwd", "git_branch", "first_message_at", "last_message_at")
    fates = [[f.status, f.kind, f.reason, f.message_index, f.line, f.offset, f.size, f.key, f.note] for f in p.fates]
    return {
        "candidate": p.candidate.id,
        **{name: getattr(c, name) for name in names},
        **({} if c.parent_id is None else {"parent_id": c.parent_id}),
        **({} if not c.links else {"links": [structs.asdict(link) for link in c.links]}),
        "content_hash": p.content_hash,
        "messages": [message(m, random_id=p.parser_version == "codex@1") for m in c.messages],
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
    details = {} if m.details is None else {"details": facts(m.details)}
    return {"id": None if random_id else m.id, **{name: getattr(m, name) for name in names}, **details}


TOOL_FIELDS = ("name", "input", "result", "id", "is_error")


def facts(details: cnb.Details) -> dict[str, Any]:
    tools = [{name: getattr(call, name) for name in TOOL_FIELDS} for call in details.tools]
    return {**structs.asdict(details), "tools": tools, "marks": list(details.marks)}


def golden(scenario: Path, version: str) -> Path:
    return scenario / "expected" / f"{version}.json"


@pytest.mark.parametrize(("scenario", "version"), CASES)
def test_the_result_is_the_frozen_one(scenario, version):
    frozen = golden(scenario, version).read_text(encoding="utf-8")
    assert json.loads(ecma.json_text(result(scenario, version))) == json.loads(frozen)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: f"{s.parent.name}/{s.name}")
def test_a_scenario_says_what_it_shows_and_where_the_fact_comes_from(scenario):
    told = tomllib.loads((scenario / "scenario.toml").read_text(encoding="utf-8"))
    assert set(told) == {"shows", "format_facts"}
    assert all(told.values())


def test_every_source_has_a_scenario():
    assert {s.parent.name for s in SCENARIOS} >= set(cnb.adapters.registered())


if __name__ == "__main__":
    for scenario in (FIXTURES / name for name in sys.argv[1:]):
        missing = [version for version in versions(scenario) if not golden(scenario, version).exists()]
        if not missing:
            sys.exit(f"{scenario}: its goldens are frozen")
        for version in missing:
            file = golden(scenario, version)
            file.parent.mkdir(exist_ok=True)
            text = json.dumps(json.loads(ecma.json_text(result(scenario, version))), indent=1, ensure_ascii=True)
            file.write_text(text + "\n")
