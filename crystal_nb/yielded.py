"""What a parser function may yield and note: checks that name the field, and copies that nobody can alter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from types import NoneType
from typing import Any, NamedTuple, TypeVar, overload

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from crystal_nb.details import Details, ToolCall
from crystal_nb.records import Message

__all__ = ["ReadOnly", "checked_facts", "checked_message", "checked_reason", "values_of", "wrong_in", "wrong_in_typed"]

S = TypeVar("S", bound=Struct)
_LONGEST = 400
_MOST = 2**63
TYPES = ("user", "assistant", "system")


class _Kind(NamedTuple):
    words: str
    types: tuple[type, ...]

    def fits(self, value: Any) -> bool:
        return isinstance(value, self.types) and (bool in self.types or not isinstance(value, bool))


_TEXT = _Kind("text", (str,))
_MAYBE_TEXT = _Kind("text or None", (str, NoneType))
_KEY_OR_TEXT = _Kind("text or None", (str, NoneType, UnsetType))
_FLAG = _Kind("True or False", (bool,))
_MAYBE_FLAG = _Kind("True, False or None", (bool, NoneType))
_ID = _Kind("text, a number or None", (str, int, float, NoneType))
_COUNT = _Kind("a whole number or None", (int, NoneType))
_ANSWER = _Kind("text, bytes or None", (str, bytes, NoneType))
_DETAILS = _Kind("a Details or None", (Details, NoneType))

_MESSAGE = {
    "type": _TEXT,
    "content": _TEXT,
    "role": _KEY_OR_TEXT,
    "has_tool_use": _FLAG,
    "has_code": _FLAG,
    "thinking": _KEY_OR_TEXT,
    "id": _ID,
    "parent_uuid": _ID,
    "timestamp": _ID,
    "timestamp_from_clock": _FLAG,
    "details": _DETAILS,
}
_IN_DETAILS = {
    "tools": _Kind("a tuple of ToolCall", (tuple,)),
    "model": _MAYBE_TEXT,
    "input_tokens": _COUNT,
    "output_tokens": _COUNT,
    "cache_tokens": _COUNT,
    "is_sidechain": _MAYBE_FLAG,
    "request_id": _MAYBE_TEXT,
    "marks": _Kind("a tuple of texts", (tuple,)),
}
_TOOL = {
    "name": _TEXT,
    "input": _MAYBE_TEXT,
    "raw_result": _ANSWER,
    "id": _MAYBE_TEXT,
    "is_error": _MAYBE_FLAG,
}
_FACTS = {
    "id": _ID,
    "slug": _TEXT,
    "cwd": _TEXT,
    "git_branch": _TEXT,
    "project_dir": _TEXT,
    "project_name": _TEXT,
    "parent_id": _ID,
}


def checked_message(message: Any) -> Message:
    """A copy of a message whose fields have the documented types.

    Raises
    ------
    TypeError, ValueError
        With the field and what it holds.

    >>> checked_message(Message("user", 5))
    Traceback (most recent call last):
    TypeError: a message's content is text, not int
    """
    if not isinstance(message, Message):
        raise TypeError(f"a parser yields Message values, not {type(message).__name__}")
    values = _values(message)
    if (signature := tuple(map(type, values))) not in _SOUND:
        for problem in wrong_in(message):
            raise TypeError(f"a message's {problem}")
        if message.details is None:
            _SOUND.add(signature)
    if message.type not in TYPES:
        raise ValueError(f"a message's type is one of {', '.join(TYPES)}, not {_shown(message.type)}")
    details = message.details
    if details is None:
        return Message(*values)
    details = _copied(details, Details, tools=tuple(_copied(tool, ToolCall) for tool in details.tools))
    return replace(Message(*values), details=details)


_values = attrgetter(*Message.__struct_fields__)
_SOUND: set[tuple[type, ...]] = set()
"""Types of fields that were right before, in the fields' order; without details, which have fields of their own."""


_ANY = ("role", "thinking", "id", "parent_uuid", "timestamp")
"""Fields of a message that may hold any value of a transcript."""


def wrong_in_typed(message: Message) -> Iterator[str]:
    """`wrong_in`, but for fields that come from a transcript as they are.

    >>> list(wrong_in_typed(Message("user", None, id=["?"])))
    ['content is text, not NoneType']
    """
    return (problem for problem in wrong_in(message) if problem.partition(" ")[0] not in _ANY)


def wrong_in(message: Message) -> Iterator[str]:
    """What is not of its documented type in a message.

    >>> list(wrong_in(Message("user", "hi", thinking=b"?", details=Details(marks=[]))))
    ['thinking is text or None, not bytes', 'details.marks is a tuple of texts, not list']
    """
    yield from _wrong(message, _MESSAGE)
    details = message.details
    if not isinstance(details, Details):
        return
    yield from _wrong(details, _IN_DETAILS, "details.")
    for name in ("input_tokens", "output_tokens", "cache_tokens"):
        count = getattr(details, name)
        if isinstance(count, int) and abs(count) >= _MOST:
            yield f"details.{name} is a number of at most 63 bits, not {_shown(count)}"
    for mark in details.marks if isinstance(details.marks, tuple) else ():
        if not isinstance(mark, str):
            yield f"details.marks is a tuple of texts, not of {type(mark).__name__}"
    for tool in details.tools if isinstance(details.tools, tuple) else ():
        if isinstance(tool, ToolCall):
            yield from _wrong(tool, _TOOL, "details.tools.")
        else:
            yield f"details.tools is a tuple of ToolCall, not of {type(tool).__name__}"


def _wrong(record: Struct, kinds: dict[str, _Kind], place: str = "") -> Iterator[str]:
    for name, kind in kinds.items():
        value = getattr(record, name)
        if not kind.fits(value):
            yield f"{place}{name} is {kind.words}, not {type(value).__name__}"


def _copied(record: S, type: type[S], **changes: Any) -> S:
    return type(**{name: getattr(record, name) for name in type.__struct_fields__} | changes)


def checked_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts about a conversation that are not None, each of its documented type.

    >>> checked_facts({"slug": "A talk", "cwd": None})
    {'slug': 'A talk'}
    >>> checked_facts({"slug": {"a": 1}})
    Traceback (most recent call last):
    TypeError: a conversation's slug is text, not dict
    >>> checked_facts({"title": "A talk"})
    Traceback (most recent call last):
    TypeError: metadata takes id, slug (the title), cwd, git_branch, project_dir, project_name, parent_id, not 'title'
    """
    for name in facts:
        if name not in _FACTS:
            known = ", ".join(_FACTS).replace("slug", "slug (the title)")
            raise TypeError(f"metadata takes {known}, not {name!r}")
    given = {name: value for name, value in facts.items() if value is not None}
    for name, value in given.items():
        if not _FACTS[name].fits(value):
            raise TypeError(f"a conversation's {name} is {_FACTS[name].words}, not {type(value).__name__}")
    return given


def checked_reason(reason: Any) -> str:
    """A reason as text that says something.

    >>> checked_reason(None)
    Traceback (most recent call last):
    TypeError: a reason is text, not NoneType
    """
    if not isinstance(reason, str):
        raise TypeError(f"a reason is text, not {type(reason).__name__}")
    if not reason.strip():
        raise ValueError("a reason must not be blank")
    return reason


def values_of(result: Any) -> Iterable[Any]:
    """What a parser function gave, as something to go through.

    >>> values_of(None)
    ()
    """
    if result is None:
        return ()
    if isinstance(result, Message):
        return (result,)
    if hasattr(result, "__aiter__") or hasattr(result, "__await__"):
        getattr(result, "close", lambda: None)()  # an unawaited coroutine would warn
        raise TypeError("a parser is a plain function, not an async one")
    if isinstance(result, (str, bytes, dict)) or not isinstance(result, Iterable):
        raise TypeError(f"a parser yields Message values, not {type(result).__name__}")
    return result


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of too many digits
        return type(value).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class ReadOnly(Sequence[Message]):
    """A list to look at; going through it is going through what it held at the beginning.

    >>> held = [Message("user", "hi")]
    >>> ReadOnly(held)[-1].content, len(ReadOnly(held))
    ('hi', 1)
    """

    def __init__(self, held: list[Message]) -> None:
        self._held = held

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> list[Message]: ...
    def __getitem__(self, at: int | slice) -> Message | list[Message]:
        return self._held[at]

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Message]:
        return iter(tuple(self._held))

    def __repr__(self) -> str:
        return repr(self._held)
