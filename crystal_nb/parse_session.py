"""Running a person's parser function over raw records: fates, ids, and errors that point into the function."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import Parsed, Rules, last_path_part
from crystal_nb.config import Config
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Conversation, Fate, FateStatus, Message, excerpt

__all__ = ["HEAD_BYTES", "OnError", "ParserFunction", "ParserRules", "ParserSession", "RawRecord", "run_parser"]

OnError = Literal["raise", "drop"]
HEAD_BYTES = 96
_SHOWN_BYTES = 240
_TYPES = ("user", "assistant", "system")
_KIND_KEYS = ("type", "kind", "role", "event")
_Outcome: TypeAlias = tuple[FateStatus, str | None, int | None]
_NOTHING: _Outcome = ("dropped", "the parser yielded nothing", None)


class RawRecord(Struct, frozen=True):
    """One raw record and where it stands.

    Attributes
    ----------
    value : Any
        What it holds, as ``json`` or SQLite gives it.
    data : bytes
        Its bytes; of a database row, its JSON text.
    problem : str | None
        Why it holds no record that a parser function could be given.
    line : int | None
        1-based line of a text file.
    offset : int | None
        Byte offset in the file.
    size : int | None
        Bytes, line end included.
    key : str | None
        JSON pointer, or the row's number in the query's result.
    """

    value: Any
    data: bytes
    problem: str | None = None
    line: int | None = None
    offset: int | None = None
    size: int | None = None
    key: str | None = None

    @property
    def excerpt(self) -> str:
        """Its beginning as one harmless line."""
        shown = excerpt(self.data[:_SHOWN_BYTES])
        return f"{shown}…" if len(self.data) > _SHOWN_BYTES else shown

    @property
    def kind(self) -> str:
        """Kind as the record names it, by the keys ``type``, ``kind``, ``role`` or ``event``."""
        if isinstance(self.value, Mapping):
            found = (self.value.get(key) for key in _KIND_KEYS)
            return next((name for name in found if isinstance(name, str)), "")
        return "line" if self.line is not None else "record"


class ParserRules(Rules, frozen=True):
    """Rules of a parser function."""

    on_error: OnError = "raise"
    """Whether an exception in the function fails the candidate, or drops the record with the reason ``error: …``."""


class ParserSession:
    """What a parser function is given beside the record: one per candidate.

    Attributes
    ----------
    candidate : Candidate
        What is parsed.
    config : Config
        The configuration of the run.
    document : Any
        The whole document, for a parser of JSON documents.
    messages : list of Message
        What was yielded so far, in order.
    state : dict
        The function's own, for what it has to remember between records.
    """

    def __init__(self, candidate: Candidate, config: Config, document: Any = None) -> None:
        self.candidate, self.config, self.document = candidate, config, document
        self.messages: list[Message] = []
        self.state: dict[Any, Any] = {}
        self.facts: dict[str, Any] = {}
        self.fates: list[Fate] = []
        self._outcome: _Outcome | None = None
        self._amended: set[int] = set()

    def metadata(
        self,
        *,
        id: Any = None,
        slug: Any = None,
        cwd: Any = None,
        git_branch: Any = None,
        project_dir: str | None = None,
        project_name: str | None = None,
        parent_id: Any = None,
    ) -> None:
        """Note facts about the conversation; None leaves a fact as it was, else the last one wins."""
        given = {
            "id": id,
            "slug": slug,
            "cwd": cwd,
            "git_branch": git_branch,
            "project_dir": project_dir,
            "project_name": project_name,
            "parent_id": parent_id,
        }
        self.facts |= {name: value for name, value in given.items() if value is not None}
        self._outcome = self._outcome or ("metadata", None, None)

    def drop(self, reason: str) -> None:
        """Say why the record becomes no message."""
        self._outcome = ("dropped", reason, None)

    def amend(self, index: int = -1, *, reason: str = "merged into an earlier message", **changes: Any) -> None:
        """Put the record into a message that was yielded before, the last one unless an index says otherwise.

        Raises
        ------
        IndexError
            If there is no such message.
        """
        at = index + len(self.messages) if index < 0 else index
        if not 0 <= at < len(self.messages):
            raise IndexError(f"no message {index}; {len(self.messages)} were yielded so far")
        self.messages[at] = _checked(replace(self.messages[at], **changes))
        self._outcome = ("merged", reason, at)
        self._amended.add(at)

    def take(self, record: RawRecord, function: ParserFunction, rules: ParserRules) -> None:
        """Run the function on one record and note the record's fate."""
        self._outcome, self._amended, before = None, set(), len(self.messages)
        note = None
        if record.problem is not None:
            self.drop(record.problem)
        else:
            try:
                for message in _messages_of(function(record.value, self)):
                    self._add(message)
            except Exception as error:  # a person's function may raise anything
                if rules.on_error == "raise":
                    raise _located(error, function, record, self.candidate) from error
                self.drop(f"error: {describe_error(error, function)}")
        if len(self.messages) > before:
            added = len(self.messages) - before
            note = f"{added} messages" if added > 1 else None
            note = self._outcome[1] if self._outcome and self._outcome[0] == "dropped" else note
            self._outcome = ("kept", None, before)
        status, reason, index = self._outcome or _NOTHING
        further = {*range(before, len(self.messages)), *self._amended} - {index}
        also = () if index is None else tuple(sorted(further))
        head = record.data[:HEAD_BYTES] if status == "dropped" else b""
        place = (record.line, record.offset, record.size, record.key)
        self.fates.append(Fate(status, record.kind, reason, index, *place, head, note, also))

    def _add(self, message: Any) -> None:
        message = _checked(message)
        if message.id is None:
            # by position among the messages, so that a record of another kind in between moves no id
            message = replace(message, id=f"{ecma.to_text(self.candidate.id)}:{len(self.messages)}")
        self.messages.append(message)

    def finished(self, *, by_time: bool) -> Parsed:
        """The conversation of all that was yielded, with the fates."""
        fates, messages = self.fates, tuple(self.messages)
        if by_time:
            order = _order_in_time(messages)
            place = {old: new for new, old in enumerate(order)}
            messages = tuple(messages[old] for old in order)
            fates = [_moved(f, place) for f in fates]
        facts = {"id": self.candidate.id, "project_dir": self.candidate.project_dir, **self.facts}
        facts.setdefault("project_name", last_path_part(facts["project_dir"]))
        first, last = (messages[0].timestamp, messages[-1].timestamp) if messages else (None, None)
        return Parsed(
            Conversation(
                source=self.candidate.source, messages=messages, first_message_at=first, last_message_at=last, **facts
            ),
            tuple(fates),
        )


ParserFunction: TypeAlias = Callable[[Any, ParserSession], Iterable[Message] | None]
"""Takes a raw record and the session; yields messages, or nothing."""


def run_parser(
    function: ParserFunction,
    records: Iterable[RawRecord],
    candidate: Candidate,
    rules: ParserRules,
    config: Config,
    *,
    document: Any = None,
    by_time: bool = False,
) -> Parsed:
    """Run a parser function over the records of one candidate.

    Raises
    ------
    ParseError
        If the function raises and the rules say so; it names the place, the function's line and the
        raw record, and its cause is the function's own exception.

    >>> def say(record, session):
    ...     yield Message("user", record["text"])
    >>> lines = [RawRecord({"text": "hi"}, b'{"text":"hi"}', line=1)]
    >>> parsed = run_parser(say, lines, Candidate("mine", "7", "/f", 1, "", ""), ParserRules("mine@1"), Config())
    >>> parsed.conversation.messages[0].id, parsed.fates[0].status
    ('7:0', 'kept')
    """
    session = ParserSession(candidate, config, document)
    for record in records:
        session.take(record, function, rules)
    return session.finished(by_time=by_time)


def _order_in_time(messages: tuple[Message, ...]) -> list[int]:
    """Positions in the order of time; a message without a time stays behind the one before it."""
    times, known = [], float("-inf")
    for message in messages:
        time = None if message.timestamp is None else ecma.date_ms(message.timestamp)
        known = known if time is None else time
        times.append(known)
    return sorted(range(len(times)), key=times.__getitem__)


def _messages_of(result: Any) -> Iterable[Any]:
    if result is None:
        return ()
    return (result,) if isinstance(result, Message) else iter(result)


def _checked(message: Any) -> Message:
    if not isinstance(message, Message):
        raise TypeError(f"a parser yields Message values, not {type(message).__name__}")
    if message.type not in _TYPES:
        raise ValueError(f"a message's type is one of {', '.join(_TYPES)}, not {message.type!r}")
    if not isinstance(message.content, str):
        raise TypeError(f"a message's content is text, not {type(message.content).__name__}")
    return message


def _moved(fate: Fate, place: dict[int, int]) -> Fate:
    """The fate with its messages where they stand now."""
    if fate.message_index is None:
        return fate
    return replace(fate, message_index=place[fate.message_index], also=tuple(sorted(place[at] for at in fate.also)))


def _located(error: Exception, function: ParserFunction, record: RawRecord, candidate: Candidate) -> ParseError:
    return ParseError(
        f"{describe_error(error, function)}\n  raw record: {record.excerpt}",
        source=candidate.source,
        path=candidate.file_path,
        line=record.line,
        offset=record.offset,
        row=record.key,
    )


def describe_error(error: BaseException, function: Any) -> str:
    """An exception with the line of the function that it came from.

    >>> def broken(record, session):
    ...     return record["id"]
    >>> try:
    ...     broken({}, None)
    ... except KeyError as error:
    ...     print(describe_error(error, broken).partition(":")[0])
    KeyError in broken, line 2
    """
    said = str(error)
    line = _line_in(error.__traceback__, function)
    name = getattr(function, "__name__", "the parser")
    where = f" in {name}" if line is None else f" in {name}, line {line[0]}"
    source = f" at `{line[1]}`" if line is not None and line[1] else ""
    return f"{type(error).__name__}{where}: {said}{source}" if said else f"{type(error).__name__}{where}{source}"


def _line_in(traceback: TracebackType | None, function: Any) -> tuple[int, str] | None:
    """Number and text of the deepest line in the function's own file; its module or cell counts from 1."""
    code = getattr(function, "__code__", None)
    found = None
    while traceback is not None and code is not None:
        if traceback.tb_frame.f_code.co_filename == code.co_filename:
            found = (traceback.tb_lineno, linecache.getline(code.co_filename, traceback.tb_lineno).strip())
        traceback = traceback.tb_next
    return found
