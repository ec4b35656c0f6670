"""The append log of a chat session: each line changes a JSON value, the session.

Source: ``formats/copilot.md`` section 2.4. The owner refuses a whole log for one bad line; here the
bad line alone is refused (`Damage`) and leaves the state as it was, so the caller decides what follows.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

__all__ = ["MAX_DEPTH", "MAX_PADDING", "Damage", "Log", "entry_kind"]

MAX_DEPTH = 1000
"""Longest path that is followed."""
MAX_PADDING = 100_000
"""How far behind the end of an array an index may point: the gap is filled with null, so a huge one costs memory."""
INITIAL, SET, PUSH, DELETE = range(4)

Path = list[str | int]


class Damage(ValueError):
    """A log line that can't be applied."""


def entry_kind(entry: Any) -> int:
    """Kind of a log entry.

    Raises
    ------
    Damage
        If the value is no entry, or of an unknown kind.

    >>> entry_kind({"kind": 2})
    2
    """
    if not isinstance(entry, dict):
        raise Damage("not an object")
    kind = entry.get("kind", UNSET)
    if kind is UNSET:
        raise Damage("no kind")
    if isinstance(kind, bool) or not isinstance(kind, (int, float)) or kind not in (INITIAL, SET, PUSH, DELETE):
        raise Damage(f"unknown log kind {str(kind)[:40]}")
    return int(kind)


class Log:
    """A session while its log is replayed.

    ``state`` is ``UNSET`` until the first initial entry.

    >>> log = Log()
    >>> log.apply({"kind": 0, "v": {"requests": []}})
    >>> log.apply({"kind": 2, "k": ["requests"], "v": [1, 2]})
    >>> log.apply({"kind": 2, "k": ["requests"], "v": [3], "i": 1})
    >>> log.apply({"kind": 1, "k": ["customTitle"], "v": "T"})
    >>> log.state
    {'requests': [1, 3], 'customTitle': 'T'}
    """

    def __init__(self, state: Any = UNSET) -> None:
        self.state = state

    def apply(self, entry: Any) -> None:
        """Apply one entry; the state takes over the entry's values.

        Raises
        ------
        Damage
            If the entry is none, or does not fit the state, which then stays as it was.
        """
        kind = entry_kind(entry)
        if kind == INITIAL:
            self.state = entry.get("v", UNSET)
            return
        if self.state is UNSET:
            raise Damage("a change before the initial state")
        path = _path(entry)
        if not path:
            return
        container, key = _walk(self.state, path)
        if kind == PUSH:
            _push(container, key, entry)
        else:
            _set(container, key, entry.get("v", UNSET) if kind == SET else UNSET)


def _path(entry: dict[str, Any]) -> Path:
    path = entry.get("k")
    if not isinstance(path, list):
        raise Damage("no path")
    if len(path) > MAX_DEPTH:
        raise Damage("the path is too deep")
    return path


def _walk(state: Any, path: Path) -> tuple[Any, str | int]:
    """Container of the last step of a path, and that step as the container takes it."""
    for step in path[:-1]:
        state = _member(state, _key(state, step))
    return state, _key(state, path[-1])


def _key(container: Any, step: Any) -> str | int:
    """A step as key of the container: an index of a list, a name in an object."""
    is_number = isinstance(step, (int, float)) and not isinstance(step, bool) and step == step // 1
    if isinstance(container, list):
        if not is_number or step < 0:
            raise Damage(f"no index of a list: {str(step)[:40]}")
        return int(step)
    if isinstance(container, dict):
        if not is_number and not isinstance(step, str):
            raise Damage(f"no name in an object: {str(step)[:40]}")
        return str(int(step)) if is_number else step
    raise Damage("the path leads through no container")


def _member(container: Any, key: Any) -> Any:
    if isinstance(container, list):
        return container[key] if key < len(container) else UNSET
    return container.get(key, UNSET)


def _set(container: Any, key: Any, value: Any) -> None:
    """Assign; *undefined* means that an object loses the member and a list has null there."""
    if isinstance(container, list):
        _pad(container, key + 1)
        container[key] = None if value is UNSET else value
    elif value is UNSET:
        container.pop(key, None)
    else:
        container[key] = value


def _push(container: Any, key: Any, entry: dict[str, Any]) -> None:
    """Cut the array at ``i`` where that is given, then append ``v``; no splice that overwrites."""
    array, values, start = _member(container, key), entry.get("v", []), entry.get("i", UNSET)
    if not isinstance(array, list):
        if array is not UNSET and array not in (None, False, 0, ""):
            raise Damage("a push to something else than an array")
        array = []
    if not isinstance(values, list):
        raise Damage("the values of a push are no array")
    length = len(array) if start is UNSET else _length(start)
    _check_padding(len(array), length)
    if isinstance(container, list):
        _check_padding(len(container), key + 1)
    del array[length:]
    _pad(array, length)
    array += values
    _set(container, key, array)


def _length(start: Any) -> int:
    if isinstance(start, bool) or not isinstance(start, (int, float)) or start < 0 or start != start // 1:
        raise Damage(f"a push from {str(start)[:40]} on")
    return int(start)


def _pad(array: list[Any], length: int) -> None:
    _check_padding(len(array), length)
    array.extend([None] * (length - len(array)))


def _check_padding(length: int, wanted: int) -> None:
    if wanted - length > MAX_PADDING:
        raise Damage(f"an index {wanted - length:,} beyond the end of an array")
