"""Gemini's log replayed: as a naive replayer does it, and with work that grows with the log and no faster."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crystal_nb.adapters import gemini
from crystal_nb.prototyping import RawRecord

IDS = st.sampled_from("abcd")
MESSAGES = st.builds(lambda id, text: {"id": id, "content": text, "type": "user"}, IDS, st.text("xyz", max_size=2))
LINES = st.one_of(
    MESSAGES,
    st.builds(lambda id: {"$rewindTo": id}, st.sampled_from("abcde")),
    st.builds(lambda messages: {"$set": {"messages": messages}}, st.lists(MESSAGES, max_size=5)),
    st.just({"$set": {"summary": "s"}}),
    st.just({"sessionId": "s"}),
    st.just({"other": 1}),
)


def records_of(lines: list[dict[str, Any]]) -> list[RawRecord]:
    return [RawRecord(line, json.dumps(line).encode(), line=number) for number, line in enumerate(lines, 1)]


def naive(lines: list[dict[str, Any]]) -> tuple[list[tuple[str, Any, set[int]]], set[int]]:
    """Messages as (id, value, lines that made it) after all lines, and the lines that only made lost ones."""
    held: list[tuple[str, Any, set[int]]] = []
    lost: set[int] = set()
    for number, line in enumerate(lines):
        ids = [id for id, _, _ in held]
        if "$rewindTo" in line:
            at = ids.index(line["$rewindTo"]) if line["$rewindTo"] in ids else 0
            lost |= {n for _, _, made in held[at:] for n in made}
            held = held[:at]
        elif "id" in line:
            at = ids.index(line["id"]) if line["id"] in ids else len(held)
            made = held[at][2] if at < len(held) else set()
            held[at : at + 1] = [(line["id"], line, made | {number})]
        elif "messages" in line.get("$set", {}):
            listed = line["$set"]["messages"]
            before = {id: made for id, _, made in held}
            order = list(dict.fromkeys(m["id"] for m in listed))
            last = {m["id"]: m for m in listed}
            lost |= {n for id, made in before.items() if id not in last for n in made}
            held = [(id, last[id], before.get(id, set()) | {number}) for id in order]
    return held, {n for n in lost if "id" in lines[n]}


@given(st.lists(LINES, max_size=14))
def test_a_log_is_replayed_as_a_naive_replayer_does_it(lines):
    replay = gemini._Replay()
    for number, record in enumerate(records_of(lines)):
        replay.read(number, record)
    held, lost = naive(lines)
    assert [(id, e.value, set(e.records)) for id, e in replay.entries.items()] == held
    assert all(len(e.records) == len(set(e.records)) for e in replay.entries.values())
    assert {n for n, (_, why) in replay.outcomes.items() if why and ("rewind" in why or "left out" in why)} == lost


class Work:
    """Counts what is done with the entries and their records, item by item."""

    def __init__(self) -> None:
        work = self
        self.done = 0

        class Records(list):
            def __iter__(self):
                work.done += len(self)
                return super().__iter__()

            def append(self, item):
                work.done += 1
                super().append(item)

        class Entry(gemini._Entry):
            def __init__(self, value, records):
                super().__init__(value, Records(records))

        class Entries(dict):
            def __iter__(self):
                work.done += len(self)
                return super().__iter__()

            def keys(self):
                work.done += len(self)
                return super().keys()

            def popitem(self):
                work.done += 1
                return super().popitem()

        self.entry, self.entries = Entry, Entries

    def of(self, lines: list[dict[str, Any]]) -> int:
        replay = gemini._Replay(entries=self.entries())
        for number, record in enumerate(records_of(lines)):
            replay.read(number, record)
        gemini._messages(replay)
        return self.done


def say(id: object) -> dict[str, Any]:
    return {"id": str(id), "type": "user", "content": "hi"}


HOSTILE = {
    "one message again and again": lambda n: [say(1)] * n,
    "many messages, and one taken back again and again": lambda n: [
        *map(say, range(n)),
        *[say("x"), {"$rewindTo": "x"}] * n,
    ],
    "one list again and again": lambda n: [{"$set": {"messages": [say(1), say(2), say(1)]}}] * n,
    "a list and a message again and again": lambda n: [say(1), {"$set": {"messages": [say(1)]}}] * n,
    "all taken back again and again": lambda n: [say(1), {"$rewindTo": "gone"}] * n,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_work_grows_with_the_log_and_no_faster(name, monkeypatch):
    done = []
    for size in (500, 1000):
        work = Work()
        monkeypatch.setattr(gemini, "_Entry", work.entry)
        done.append(work.of(HOSTILE[name](size)))
        monkeypatch.undo()
    assert 500 <= done[0] <= 500 * 10
    assert done[1] <= done[0] * 2.2
