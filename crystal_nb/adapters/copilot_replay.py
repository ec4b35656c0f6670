"""Reading a log file line by line, and what became of each line.

Every line has one fate, with its place; together they tile the file. A fate names the first message
that its line brought (kept) or changed (merged); where there are more, its note lists them. Parts of
the replayed session have fates of their own only where they are lost: a line can't name those.

A damaged line ends the replay, as the lines behind it count on what it did; a later initial state
begins it anew. Source: ``formats/copilot.md`` section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct

from crystal_nb import ecma
from crystal_nb.adapters.copilot_log import Damage, Log
from crystal_nb.adapters.copilot_turns import Turns
from crystal_nb.adapters.copilot_values import as_dict, as_list
from crystal_nb.adapters.jsonl import HEAD_BYTES
from crystal_nb.records import Fate, FateStatus

__all__ = ["Replay", "decode", "line_bounds", "replay"]

_BOM = b"\xef\xbb\xbf"
_KINDS = ("initial", "set", "push", "delete")
_PROMPT_FIELDS = ("message", "variableData", "timestamp")


class _Touch(NamedTuple):
    """A turn that a line brought or changed."""

    request: dict[str, Any]
    is_prompt: bool
    is_answer: bool
    parts: list[Any]
    """Response parts that it brought."""


class _Line(Struct):
    number: int
    start: int
    stop: int
    kind: str = "line"
    problem: str | None = None
    note: str | None = None
    touches: list[_Touch] = []  # msgspec copies it for each line


class Replay(Struct):
    """A replayed log."""

    data: bytes
    lines: list[_Line]
    state: Any
    """The session; ``UNSET`` when no line gave an initial state."""
    is_partial: bool
    """Whether lines were left out that the state would need."""

    def fates(self, turns: Turns | None, lost: str) -> list[Fate]:
        """Fates of the lines.

        Parameters
        ----------
        turns
            What the session's turns gave; None when they were not read.
        lost
            Why a line is lost that was replayed in vain.
        """
        ledger = _Ledger(self.state, turns or Turns([], [], {}, {}))
        return [self._fate(line, ledger, lost) for line in self.lines]

    def _fate(self, line: _Line, ledger: _Ledger, lost: str) -> Fate:
        size = line.stop - line.start
        place: dict[str, Any] = {"line": line.number, "offset": line.start, "size": size}
        found = [ledger.messages_of(touch) for touch in line.touches]
        brought, rewritten = _sorted(f for f, _ in found), _sorted(r for _, r in found)
        is_in_vain = (line.touches or not isinstance(self.state, dict)) and not (brought or rewritten)
        reason = line.problem or (lost if is_in_vain else None)
        if reason is not None:
            head = self.data[line.start : min(line.stop, line.start + HEAD_BYTES)]
            return Fate("dropped", line.kind, reason, head=head, note=line.note, **place)
        if not line.touches:
            return Fate("metadata", line.kind, note=line.note, **place)
        fresh = [index for index in brought if ledger.claim(index)]
        every = sorted({*brought, *rewritten})
        status: FateStatus = "kept" if fresh else "merged"
        reason = None if brought else "rewritten by a later line"
        first, *_ = fresh or brought or rewritten
        also = tuple(index for index in every if index != first)
        return Fate(status, line.kind, reason, first, note=_listing(every), also=also, **place)


def replay(data: bytes, *, state: Any = UNSET, only_first: bool = False) -> Replay:
    r"""Replay a log.

    Parameters
    ----------
    data
        The file.
    state
        State to begin with, where the log has no initial one of its own.
    only_first
        Read the first line only.

    >>> replay(b'{"kind":0,"v":{"requests":[]}}\n{"kind":1,"k":["customTitle"],"v":"T"}\n{"kind"').state
    {'requests': [], 'customTitle': 'T'}
    """
    log = Log(state)
    has_initial, damaged_at = False, 0
    lines = []
    for number, (start, stop) in enumerate(line_bounds(data), 1):
        line = _Line(number, start, stop)
        lines.append(line)
        if only_first and number > 1:
            line.kind, line.problem = "log line", "only the first line of a log is read"
            continue
        try:
            entry = _entry(data[start:stop], line)
        except ValueError:
            is_damage = _note_broken(data, line)
            if is_damage and has_initial:
                damaged_at = damaged_at or number
            continue
        is_initial = isinstance(entry, dict) and entry.get("kind") == 0 and entry["kind"] is not False
        if damaged_at and not is_initial:
            line.problem = f"not replayed, as line {damaged_at} is damaged"
            line.kind = _label(entry)
            continue
        try:
            log.apply(entry)
        except Damage as damage:
            line.kind, line.problem = _label(entry), str(damage)
            damaged_at = number if has_initial else 0
            continue
        has_initial, damaged_at = has_initial or is_initial, 0
        line.kind, line.touches = _label(entry), list(_touches(log.state, entry))
    return Replay(data, lines, log.state, bool(damaged_at) or not has_initial)


def line_bounds(data: bytes) -> Iterator[tuple[int, int]]:
    r"""Where each line begins and ends, its ``\n`` included.

    >>> list(line_bounds(b"a\n\nb"))
    [(0, 2), (2, 3), (3, 4)]
    """
    start = 0
    while start < len(data):
        stop = data.find(b"\n", start) + 1 or len(data)
        yield start, stop
        start = stop


def decode(text: bytes) -> Any:
    r"""One JSON value as tolerantly as ``JSON.parse``; a BOM before it does not matter.

    Raises
    ------
    ValueError
        If it is no JSON.

    >>> decode(b'\xef\xbb\xbf{"a":"\\ud83d"}')
    {'a': '\ud83d'}
    """
    text = text.removeprefix(_BOM)
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ecma.parse_json(text.decode("utf-8", "replace"))


def _entry(text: bytes, line: _Line) -> Any:
    """The entry of a line; a whole session in place of one counts as an initial state, as pinned."""
    if text.startswith(_BOM):
        line.note = "begins with a BOM"
    value = decode(text)
    is_session = isinstance(value, dict) and "kind" not in value and isinstance(value.get("requests"), list)
    return {"kind": 0, "v": value} if is_session else value


def _note_broken(data: bytes, line: _Line) -> bool:
    """Say why a line is no JSON; whether that is damage: a blank line is none, nor is a last line half written."""
    text = data[line.start : line.stop]
    if not text.strip():
        line.problem = "blank line"
        return False
    if line.stop == len(data) and not text.endswith(b"\n"):
        line.problem = "torn last line"
        return False
    line.problem = "invalid JSON" if text.strip(b"\0\r\n") else "NUL bytes"
    return True


def _label(entry: Any) -> str:
    """Kind of a line for its fate, such as ``set requests/#/result``."""
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if isinstance(kind, bool) or not isinstance(kind, (int, float)) or kind not in range(len(_KINDS)):
        return "line" if kind is None else f"log kind {ecma.to_text(kind)[:40]}"
    steps = [step[:40] if isinstance(step, str) else "#" for step in as_list(entry.get("k"))[:3]]
    return " ".join([_KINDS[int(kind)], "/".join(steps)]).strip()


def _touches(state: Any, entry: dict[str, Any]) -> Iterator[_Touch]:
    """Turns that an applied entry brought or changed."""
    path = [] if entry["kind"] == 0 else entry["k"]
    for name in ("requests", "pendingRequests"):
        turns = as_dict(state).get(name)
        if not isinstance(turns, list) or (path and path[0] != name):
            continue
        if len(path) < 2:
            brought = as_list(entry.get("v")) if entry["kind"] == 2 else turns
            yield from map(_whole, _objects(brought))
        else:
            turn = turns[int(path[1])] if path[1] < len(turns) else None
            if isinstance(turn, dict):
                yield _whole(turn) if len(path) == 2 else _field(turn, path, entry.get("v"))


def _objects(values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    return (v for v in values if isinstance(v, dict))


def _whole(request: dict[str, Any]) -> _Touch:
    response = request.get("response")
    return _Touch(request, True, bool(response or request.get("result")), list(as_list(response)))


def _field(request: dict[str, Any], path: list[Any], value: Any) -> _Touch:
    is_prompt = path[2] in _PROMPT_FIELDS or path[0] == "pendingRequests"
    parts = as_list(value) if path[2:] == ["response"] else [value] if path[2:3] == ["response"] else []
    return _Touch(request, is_prompt, not is_prompt, list(parts))


class _Ledger:
    """Which messages the turns of a session became, and which of them a line has claimed."""

    def __init__(self, state: Any, turns: Turns) -> None:
        requests = as_list(as_dict(state).get("requests"))
        self._turns = turns
        self._present = {id(r) for r in [*requests, *as_list(as_dict(state).get("pendingRequests"))]}
        self._by_id = {r["requestId"]: id(r) for r in requests if _has_id(r)}
        self._parts = {id(p) for r in _objects(requests) for p in as_list(r.get("response"))}
        self._claimed: set[int] = set()

    def claim(self, message: int) -> bool:
        """Whether nobody claimed the message before."""
        is_free = message not in self._claimed
        self._claimed.add(message)
        return is_free

    def messages_of(self, touch: _Touch) -> tuple[list[int], list[int]]:
        """Messages that hold what a line brought, and those where later lines rewrote it."""
        request = id(touch.request)
        if request not in self._present:
            newer = self._by_id.get(touch.request["requestId"]) if _has_id(touch.request) else None
            return [], [] if newer is None else self._both(newer, touch)
        objects = [p for p in touch.parts if isinstance(p, dict)]
        is_stale = bool(objects) and not any(id(p) in self._parts for p in objects)
        if not is_stale:
            return self._both(request, touch), []
        prompt = self._both(request, touch._replace(is_answer=False)) if touch.is_prompt else []
        return prompt, self._both(request, touch._replace(is_prompt=False))

    def _both(self, request: int, touch: _Touch) -> list[int]:
        """Messages of a turn; what has no message of its own goes to the other one."""
        prompt, answer = self._turns.prompts.get(request), self._turns.answers.get(request)
        if touch.is_prompt and touch.is_answer:
            wanted = [prompt, answer]
        elif touch.is_prompt:
            wanted = [answer if prompt is None else prompt]
        else:
            wanted = [prompt if answer is None else answer]
        return [message for message in wanted if message is not None]


def _has_id(request: Any) -> bool:
    return isinstance(as_dict(request).get("requestId"), str)


def _sorted(found: Iterable[list[int]]) -> list[int]:
    return sorted({index for indexes in found for index in indexes})


def _listing(indexes: list[int]) -> str | None:
    """Messages as a person lists them; None when there is only one.

    >>> _listing([0, 1, 2, 5])
    'messages 0-2, 5'
    """
    if len(indexes) < 2:
        return None
    runs: list[list[int]] = []
    for index in indexes:
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return "messages " + ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
