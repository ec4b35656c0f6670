"""Running a person's parser function over raw records: fates, ids, and errors that point into the function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import Parsed, Rules, last_path_part
from crystal_nb.blame import describe_error
from crystal_nb.config import Config
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Conversation, Fate, FateStatus, Message, excerpt, said
from crystal_nb.yielded import ReadOnly, checked_facts, checked_message, checked_reason, values_of

__all__ = ["HEAD_BYTES", "OnError", "ParserFunction", "ParserRules", "ParserSession", "RawRecord", "run_parser"]

OnError = Literal["raise", "drop"]
HEAD_BYTES = 96
_SHOWN_BYTES = 240
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

    `metadata` notes facts, `drop` says why a record becomes no message, `amend` changes an earlier one.

    Attributes
    ----------
    candidate : Candidate
        What is parsed.
    config : Config
        The configuration of the run.
    document : Any
        The whole document, for a parser of JSON documents.
    messages : ReadOnly
        What was yielded so far, in order; `amend` changes one.
    state : dict
        The function's own, for what it has to remember between records.
    """

    def __init__(self, candidate: Candidate, config: Config, document: Any = None) -> None:
        self._candidate, self.config, self.document = candidate, config, document
        self.state: dict[Any, Any] = {}
        self._messages: list[Message] = []
        self._facts: dict[str, Any] = {}
        self._fates: list[Fate] = []
        self._outcome: _Outcome | None = None
        self._amended: set[int] = set()

    @property
    def candidate(self) -> Candidate:
        """What is parsed."""
        return self._candidate

    @property
    def messages(self) -> ReadOnly:
        """What was yielded so far, in order."""
        return ReadOnly(self._messages)

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
        **unknown: Any,
    ) -> None:
        """Note facts about the conversation; None leaves a fact as it was, else the last one wins.

        A record that yields nothing is ``metadata`` when it brings a fact that was not known, and
        dropped when it only says again what is noted already.

        Parameters
        ----------
        id
            Its own id; default: the candidate's.
        slug, cwd, git_branch
            Its title, working directory and branch.
        project_dir
            Its project's folder; default: the candidate's.
        project_name
            Short name of the project; default: the last part of ``project_dir`` where that was noted,
            else of ``cwd``, else of the candidate's folder.
        parent_id
            Id of the conversation that it is a part of.

        Raises
        ------
        TypeError
            If one is no text, or no fact of a conversation; an id may be a number, too.
        """
        given = {
            "id": id,
            "slug": slug,
            "cwd": cwd,
            "git_branch": git_branch,
            "project_dir": project_dir,
            "project_name": project_name,
            "parent_id": parent_id,
            **unknown,
        }
        known, self._facts = self._facts, self._facts | checked_facts(given)
        if self._facts != known:
            self._outcome = self._outcome or ("metadata", None, None)

    def drop(self, reason: str) -> None:
        """Say why the record becomes no message."""
        self._outcome = ("dropped", checked_reason(reason), None)

    def amend(self, index: int = -1, *, reason: str = "merged into an earlier message", **changes: Any) -> None:
        """Put the record into a message that was yielded before, the last one unless an index says otherwise.

        Raises
        ------
        IndexError
            If there is no such message.
        """
        messages = self._messages
        at = range(len(messages))[index] if -len(messages) <= index < len(messages) else None
        if at is None:
            raise IndexError(f"no message {index}; {len(messages)} were yielded so far")
        messages[at] = checked_message(replace(messages[at], **changes))
        self._outcome = ("merged", checked_reason(reason), at)
        self._amended.add(at)

    def take(self, record: RawRecord, function: ParserFunction, rules: ParserRules) -> None:
        """Run the function on one record and note the record's fate."""
        self._outcome, self._amended, before, kind = None, set(), len(self._messages), record.kind
        note, result = None, None
        if record.problem is not None:
            self.drop(record.problem)
        else:
            try:
                result = function(record.value, self)
                for message in values_of(result):
                    self._add(message)
            except (Exception, SystemExit) as error:  # a person's function may raise anything
                described, note = describe_error(error, function, result), said(error) or None
                if rules.on_error == "raise":
                    raise _located(described, note, record, self._candidate) from error
                self.drop(f"error: {described}")
        if len(self._messages) > before:
            added = len(self._messages) - before
            note = f"{added} messages" if added > 1 else None
            if self._outcome and self._outcome[0] == "dropped":
                note = self._outcome[1]
            self._outcome = ("kept", None, before)
        outcome = self._outcome or _NOTHING
        further = {*range(before, len(self._messages)), *self._amended} - {outcome[2]}
        also = () if outcome[2] is None else tuple(sorted(further))
        self._fates.append(_fate(record, kind, outcome, note, also))

    def _add(self, message: Any) -> None:
        message = checked_message(message)
        if message.id is None:
            # by position among the messages, so that a record of another kind in between moves no id
            message = replace(message, id=f"{ecma.to_text(self._candidate.id)}:{len(self._messages)}")
        self._messages.append(message)

    def finished(self, *, by_time: bool) -> Parsed:
        """The conversation of all that was yielded, with the fates."""
        fates, messages = self._fates, tuple(self._messages)
        if by_time:
            order = _order_in_time(messages)
            place = {old: new for new, old in enumerate(order)}
            messages = tuple(messages[old] for old in order)
            fates = [_moved(f, place) for f in fates]
        facts = {"id": self._candidate.id, "project_dir": self._candidate.project_dir, **self._facts}
        project = self._facts.get("project_dir") or self._facts.get("cwd") or facts["project_dir"]
        facts.setdefault("project_name", last_path_part(project))
        first, last = (messages[0].timestamp, messages[-1].timestamp) if messages else (None, None)
        return Parsed(
            Conversation(
                source=self._candidate.source, messages=messages, first_message_at=first, last_message_at=last, **facts
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


def _fate(record: RawRecord, kind: str, outcome: _Outcome, note: str | None, also: tuple[int, ...]) -> Fate:
    status, reason, index = outcome
    head = record.data[:HEAD_BYTES] if status == "dropped" else b""
    return Fate(status, kind, reason, index, record.line, record.offset, record.size, record.key, head, note, also)


def _moved(fate: Fate, place: dict[int, int]) -> Fate:
    """The fate with its messages where they stand now."""
    if fate.message_index is None:
        return fate
    return replace(fate, message_index=place[fate.message_index], also=tuple(sorted(place[at] for at in fate.also)))


def _located(described: str, said: str | None, record: RawRecord, candidate: Candidate) -> ParseError:
    """The error as logs and reports show it; what it said and the record, a traceback and a trial show as well."""
    error = ParseError(
        described,
        source=candidate.source,
        path=candidate.file_path,
        line=record.line,
        offset=record.offset,
        row=record.key,
    )
    if said:
        error.add_note(said)
    error.add_note(f"raw record: {record.excerpt}")
    return error
