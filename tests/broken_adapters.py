"""A sound adapter and others, each broken in one way; a module of its own, so that another process can import it."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

import crystal_nb as cnb
from crystal_nb import ecma
from crystal_nb.adapters.base import Parsed, file_candidate
from crystal_nb.config import Config
from crystal_nb.prototyping import jsonl_adapter
from crystal_nb.records import Candidate
from crystal_nb.scenarios import Sample

changed = msgspec.structs.replace


def write_sample(home: Path, sample: Sample) -> Path:
    lines: list[dict[str, Any]] = [{"kind": "open", "title": "A talk"}]
    lines += [{"kind": "say", "id": m.id, "who": m.role, "text": m.text, "at": m.time} for m in sample.messages]
    path = home / ".mytool" / "talks" / f"{sample.id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + " " * sample.padding, encoding="utf-8")
    return path


@jsonl_adapter("mytool", display_name="My Tool", root="~/.mytool", write_sample=write_sample)
def sound(record, session):
    if record.get("kind") == "open":
        session.metadata(slug=record.get("title"))
    if record.get("kind") == "say":
        yield cnb.Message(id=record["id"], type=record["who"], content=record["text"], timestamp=record.get("at"))


@jsonl_adapter("mytool", root="~/.mytool", write_sample=write_sample)
def knows_all_kinds(record, session):
    if record["kind"] != "open":
        yield cnb.Message(id=record["id"], type=record["who"], content=record["text"], timestamp=record.get("at"))


def rereading(change: Callable[[Parsed, Config], Parsed]) -> Any:
    """The sound adapter with something done to what it parses."""
    return replace(sound, read=lambda c, rules, config: change(sound.read(c, rules, config), config))


def with_messages(parsed: Parsed, change: Callable[[int, cnb.Message], cnb.Message]) -> Parsed:
    messages = tuple(change(n, m) for n, m in enumerate(parsed.conversation.messages))
    return changed(parsed, conversation=changed(parsed.conversation, messages=messages))


def by_clock(parsed: Parsed, config: Config) -> Parsed:
    now = ecma.iso_time(config.clock())
    return with_messages(
        parsed, lambda n, m: changed(m, timestamp=now) if n == len(parsed.conversation.messages) - 1 else m
    )


def strict_last_line(candidate: Candidate, rules: Any, config: Config) -> Parsed:
    parsed = sound.read(candidate, rules, config)
    if any(f.reason == "invalid JSON" for f in parsed.fates[-1:]):
        raise ValueError("the file ends in the middle of a line")
    return parsed


def only_unix_lines(candidate: Candidate, rules: Any, config: Config) -> Parsed:
    parsed = sound.read(candidate, rules, config)
    if b"\r\n" not in Path(candidate.file_path).read_bytes():
        return parsed
    return with_messages(parsed, lambda n, m: changed(m, content=m.content + "\r"))


def writes_an_index(candidate: Candidate, rules: Any, config: Config) -> Parsed:
    Path(candidate.file_path).with_suffix(".index").write_text("seen", encoding="utf-8")
    return sound.read(candidate, rules, config)


def as_listed(folder: Path, config: Config) -> list[Candidate]:
    paths = [folder / "talks" / name for name in os.listdir(folder / "talks")]
    return [file_candidate("mytool", p.stem, p, p.stat(), "talks") for p in paths if p.suffix == ".jsonl"]


_SEEN: dict[tuple[str, str], Parsed] = {}


def remembers(candidate: Candidate, rules: Any, config: Config) -> Parsed:
    key = (candidate.file_path, Path(candidate.file_path).read_bytes()[:200].decode("utf-8", "replace"))
    return _SEEN.setdefault(key, sound.read(candidate, rules, config))


def by_hash(parsed: Parsed, config: Config) -> Parsed:
    return changed(parsed, conversation=changed(parsed.conversation, slug=str(hash("oak"))))


BROKEN: dict[str, Any] = {
    "empty": replace(
        sound, count=lambda folder, config: len(list(folder.rglob("*.jsonl"))) or int((folder / "talks").is_dir())
    ),
    "detect agrees with scan": replace(sound, count=lambda folder, config: 3 * len(sound.candidates(folder, config))),
    "clock": rereading(by_clock),
    "time zone": rereading(lambda p, config: changed(p, conversation=changed(p.conversation, cwd=time.tzname[0]))),
    "hash seed": rereading(by_hash),
    "directory order": replace(sound, candidates=as_listed),
    "same again": rereading(
        lambda p, config: changed(p, conversation=changed(p.conversation, slug=str(time.monotonic_ns())))
    ),
    "ids stable": rereading(lambda p, config: with_messages(p, lambda n, m: changed(m, id=str(uuid.uuid4())))),
    "schema": rereading(lambda p, config: with_messages(p, lambda n, m: changed(m, timestamp="once upon a time"))),
    "fates": rereading(lambda p, config: changed(p, fates=p.fates[:1] + p.fates[2:])),
    "truncated": replace(sound, read=strict_last_line),
    "CRLF": replace(sound, read=only_unix_lines),
    "unknown record": knows_all_kinds,
    "home untouched": replace(sound, read=writes_an_index),
}
"""By the one check that each has to fail."""

WITH_CONSEQUENCES: dict[str, Any] = {
    "message ids unique": rereading(
        lambda p, config: with_messages(p, lambda n, m: m if n < 3 else changed(m, id=p.conversation.messages[2].id))
    ),
    "candidate id = parsed id": rereading(
        lambda p, config: changed(p, conversation=changed(p.conversation, id=f"inner-{p.conversation.id}"))
    ),
    "half-written": replace(sound, read=remembers),
}
"""By the check that is meant for them; an import goes wrong with these, too, which other checks show."""

BY_HASH_SEED = BROKEN["hash seed"]
