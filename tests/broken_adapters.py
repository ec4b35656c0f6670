"""A sound adapter and others, each broken in one way; a module of its own, so that another process can import it."""

from __future__ import annotations

import json
import locale
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
from crystal_nb.prototyping import Prototype, jsonl_adapter
from crystal_nb.records import Candidate, Fate
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


class Misnamed(Prototype):
    async def detect(self, config):
        info = await super().detect(config)
        return info and changed(info, display_name="Another")


def listing(change: Callable[[list[Candidate], Config], list[Candidate]]) -> Any:
    """The sound adapter with something done to what it lists."""
    return replace(sound, candidates=lambda folder, config: change(sound.candidates(folder, config), config))


def each(**changes: Any) -> Callable[[list[Candidate], Config], list[Candidate]]:
    return lambda found, config: [changed(c, **changes) for c in found]


def second(**changes: Any) -> Callable[[list[Candidate], Config], list[Candidate]]:
    """Only the second one of the samples."""
    return lambda found, config: [changed(c, **changes) if c.id == "s2" else c for c in found]


def backwards(parsed: Parsed, config: Config) -> Parsed:
    messages = parsed.conversation.messages[::-1]
    last = len(messages) - 1
    fates = [f if f.message_index is None else changed(f, message_index=last - f.message_index) for f in parsed.fates]
    return Parsed(changed(parsed.conversation, messages=messages), tuple(fates))


def refuses_the_second(candidate: Candidate, rules: Any, config: Config) -> Parsed:
    if candidate.id == "s2":
        raise cnb.ParseError("too long", source="mytool", path=candidate.file_path)
    return sound.read(candidate, rules, config)


def stumbles_inside(candidate: Candidate, rules: Any, config: Config) -> Parsed:
    parsed = sound.read(candidate, rules, config)
    if any(f.reason == "invalid JSON" for f in parsed.fates[1:-1]):
        raise KeyError("a line in the middle")
    return parsed


def loses_the_rest_behind_a_repetition(parsed: Parsed, config: Config) -> Parsed:
    messages = parsed.conversation.messages
    if len({m.id for m in messages}) == len(messages):
        return parsed
    fates = [f if not f.message_index else changed(f, message_index=0) for f in parsed.fates]
    return Parsed(changed(parsed.conversation, messages=messages[:1]), tuple(fates))


def takes_the_mark_for_text(candidate: Candidate, rules: Any, config: Config) -> Parsed:
    parsed = sound.read(candidate, rules, config)
    if not Path(candidate.file_path).read_bytes().startswith(b"\xef\xbb\xbf"):
        return parsed
    return with_messages(parsed, lambda n, m: changed(m, content="\ufeff" + m.content))


def stops_at_two(parsed: Parsed, config: Config) -> Parsed:
    late = "2026-01-05T10:00:02"
    messages = tuple(m for m in parsed.conversation.messages if str(m.timestamp) < late)
    fates = [
        Fate("dropped", f.kind, "late", None, f.line, f.offset, f.size)
        if f.message_index is not None and str(parsed.conversation.messages[f.message_index].timestamp) >= late
        else f
        for f in parsed.fates
    ]
    return Parsed(changed(parsed.conversation, messages=messages), tuple(fates))


def by_version(candidate: Candidate, rules: Any, config: Config) -> Parsed:
    parsed = sound.read(candidate, rules, config)
    suffix = "" if candidate.parser_version in (None, "mytool@1") else candidate.parser_version
    return with_messages(parsed, lambda n, m: changed(m, content=m.content + suffix))


BROKEN: dict[str, Any] = {
    "absent": replace(
        sound, count=lambda folder, config: len(sound.candidates(folder, config)) if folder.is_dir() else 1
    ),
    "found": Misnamed(**vars(sound)),
    "candidates": listing(lambda found, config: [changed(c, file_mtime=f"{c.file_mtime}+00:00") for c in found]),
    "switched off": replace(
        sound,
        count=lambda folder, config: 0 if "mytool" in config.enabled_sources else len(sound.candidates(folder, config)),
    ),
    "locale": rereading(
        lambda p, config: changed(p, conversation=changed(p.conversation, slug=locale.setlocale(locale.LC_ALL)))
    ),
    "candidate ids unique": listing(second(id="s1")),
    "namespace": listing(second(id="mytool:s1")),
    "samples parse": replace(sound, read=refuses_the_second),
    "order": rereading(backwards),
    "garbled": replace(sound, read=stumbles_inside),
    "duplicated line": rereading(loses_the_rest_behind_a_repetition),
    "BOM": replace(sound, read=takes_the_mark_for_text),
    "touch": listing(each(file_mtime="2026-01-01T00:00:00.000Z")),
    "append": rereading(stops_at_two),
    "same-size edit": rereading(lambda p, config: with_messages(p, lambda n, m: changed(m, content=m.content[:5]))),
    "version bump": replace(sound, read=by_version),
    "stored rows": rereading(lambda p, config: with_messages(p, lambda n, m: changed(m, id=f"message-{n}"))),
    "payload": listing(second(id=" ")),
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

NO_ADAPTER_CAN_BREAK: dict[str, str] = {
    "default": "it is about the configuration's default, which an adapter has no say in",
    "restored": "it is about loading a configuration, which an adapter has no say in",
    "unsupported source": "a server looks at the source before all else that an adapter gives",
    "reimport": "the same list is skipped by size and time; only an id that is never found again shows here",
}
"""Checks for which there is no adapter that fails them alone, and why."""

BY_HASH_SEED = BROKEN["hash seed"]
