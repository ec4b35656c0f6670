"""Every message of every fixture, by every released parser, leads back to the text that it comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import TREE_FOLDERS

import crystal_nb as cnb
from crystal_nb.rereading import raw_record

FIXTURES = Path(__file__).parent.parent / "fixtures"
HOMES = sorted(p for p in FIXTURES.glob("**/home") if p.is_dir())
CLOCK = 1_800_000_000_000
TREE = FIXTURES / "vectors/pinned/tree"
CASES = [
    pytest.param(home, version, id=f"{home.parent.relative_to(FIXTURES)} {version}")
    for home in HOMES
    for version, adapter in cnb.adapters.versions().items()
    if adapter.name == home.parent.parent.name or home.parent.parent.name == "audit"
] + [pytest.param(TREE, version, id=f"vectors {version}") for version in cnb.adapters.versions()]
GONE = "named by the root, but not there"
WITHOUT_RECORD = {("trae", "665000000000000000000002", 2, "thinking")}
"""A proposal's reasoning stands beside it under a name that has no fate of its own."""


@cache
def corpus(home: Path, version: str) -> cnb.Corpus:
    folders = {source: home / folder for source, folder in TREE_FOLDERS.items()} if home == TREE else {}
    config = cnb.Config(home=home, folders=folders, platform="linux", cache_seconds=0, clock=lambda: CLOCK)
    return cnb.parse(cnb.scan(version, config=config), config=config)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


def decoded(raw: str) -> str:
    """All texts of a raw record: those of its JSON, or of each JSON text in it, or itself."""
    try:
        return "\n".join(texts(json.loads(raw, strict=False)))
    except ValueError:
        pass
    at = raw.find("{")
    try:
        return "\n".join(texts(json.JSONDecoder(strict=False).raw_decode(raw[at:])[0]))
    except ValueError:
        return raw


def overlap(value: str, raw: str) -> bool:
    """Whether a line of one is in the other, or all words of a value that the tool wraps word by word."""
    pairs = ((value, raw), (raw, value))
    shared = any(line.strip() in other for one, other in pairs for line in one.splitlines() if line.strip())
    return shared or all(word in raw for word in re.findall(r"\w+", value))


@pytest.mark.parametrize(("home", "version"), CASES)
def test_every_message_leads_back_to_text_that_holds_a_part_of_it(home, version):
    for p in corpus(home, version).parsed:
        alone = cnb.Corpus([p], [])  # ids can be shared
        for index, message in enumerate(p.conversation.messages):
            place = (p.candidate.source, p.candidate.id, index)
            records = alone.source_of(*place)
            assert records, place
            for field in ("content", "thinking"):
                value = getattr(message, field)
                if isinstance(value, str) and value.strip() and (*place, field) not in WITHOUT_RECORD:
                    assert overlap(value, "\n".join(decoded(record.text) for record in records)), (place, value)
                    parts = alone.source_of(*place, field)
                    assert any(overlap(value, decoded(part.text)) for part in parts), (place, value, parts)


@pytest.mark.parametrize(("home", "version"), CASES)
def test_every_record_of_every_fate_can_be_read_again(home, version):
    for p in corpus(home, version).parsed:
        for fate in p.fates:
            if fate.reason != GONE:
                data = raw_record(p.candidate, fate)
                assert data or fate.size == 0
                assert plain(fate.head)[:40] in plain(data), fate


def plain(data: bytes) -> bytes:
    """A JSON text however it was written: without blanks and escapes."""
    return re.sub(rb"\\u....|[^!-~]", b"", data).replace(b"\\", b"")


@pytest.mark.parametrize(("home", "version"), CASES)
def test_every_loss_is_counted_in_characters(home, version):
    losses = corpus(home, version).losses().filter(pl.col("reason") != GONE)
    assert losses["characters"].null_count() == 0
