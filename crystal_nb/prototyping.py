"""A parser of a new source from one function: `jsonl_adapter`, `json_adapter`, `sqlite_adapter`.

Each decorator turns a function that takes a raw record and a `ParserSession` and yields `Message`
values into an adapter, which is used unregistered, as in ``cnb.scan(mytool)``, or handed to
``cnb.register``. Every raw record has a fate. Missing message ids come from the position, missing
times stay null; nothing is taken from the clock or from chance.

>>> from crystal_nb.records import Message
>>> @jsonl_adapter("mytool", root="~/.mytool", glob="**/*.jsonl")
... def mytool(record, session):
...     if record.get("kind") == "say":
...         yield Message(id=record["id"], type=record["who"], content=record["text"], timestamp=record.get("at"))
>>> mytool.name, mytool.parser_version
('mytool', 'mytool@1')
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from crystal_nb.adapters.base import Adapter, Parsed, file_candidate
from crystal_nb.config import Config
from crystal_nb.errors import AdapterError, ConfigError
from crystal_nb.parse_session import OnError, ParserFunction, ParserRules, ParserSession, RawRecord, run_parser
from crystal_nb.raw_records import document_records, line_records, read_document, row_records, sqlite_candidates
from crystal_nb.records import Candidate

__all__ = [
    "ParserSession",
    "Prototype",
    "RawRecord",
    "find_files",
    "json_adapter",
    "jsonl_adapter",
    "line_records",
    "read_document",
    "sqlite_adapter",
]

Root: TypeAlias = str | os.PathLike[str] | Callable[[Config], Path]
"""A folder, ``~`` being the configuration's home, or what gives it for a configuration."""
Order = Literal["file", "time"]
Decorator: TypeAlias = Callable[[ParserFunction], "Prototype"]


@dataclass(frozen=True)
class Prototype(Adapter):
    """An adapter around a parser function.

    Parameters
    ----------
    function
        The person's function.
    records
        Gives a candidate's raw records, for looking at them beside what the function makes of them.
    candidates_in
        Gives the candidates of one file below the data folder.
    write_sample
        Writes a sample conversation below a home folder, for `check_adapter` and the scenarios.
    sample_abilities
        What such samples can be beyond the usual; see `scenarios.subjects.Ability`.
    """

    function: ParserFunction
    records: Callable[[Candidate], Iterator[RawRecord]]
    candidates_in: Callable[[Path], list[Candidate]]
    write_sample: Callable[[Path, Any], Path] | None = None
    sample_abilities: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise AdapterError(f"a parser is a function of a record and a session, not {self.function!r}")


def jsonl_adapter(
    name: str,
    *,
    root: Root,
    glob: str = "**/*.jsonl",
    display_name: str | None = None,
    version: str | None = None,
    on_error: OnError = "raise",
    order: Order = "file",
    write_sample: Callable[[Path, Any], Path] | None = None,
) -> Decorator:
    r"""Make an adapter of JSON lines from a function that gets each line's object.

    One file is one candidate; its id is the file's name without the ending, or its path below the
    root where two names are alike. Lines that are blank, broken or no object don't reach the
    function; they are dropped with that reason. Numbers and duplicate keys come as ``json`` reads
    them, bytes that are no UTF-8 as U+FFFD, lone surrogates as they are.

    Parameters
    ----------
    name
        Adapter name, as in frames and hashes.
    root
        The tool's data folder; ``Config(folders={name: …})`` wins over it.
    glob
        Which files below it hold conversations.
    display_name
        Name for people.
    version
        Parser version; default: ``<name>@1``. Give another one when the function's results change.
    on_error
        ``raise``: an exception in the function fails the candidate with a `ParseError` that shows the
        raw record and the function's line; ``drop``: the record is dropped and the rest goes on.
    order
        Order of the messages: that of the ``file``, or of their ``time``.
    write_sample
        ``write_sample(home, sample)`` writes a made-up conversation below the folder ``home`` as the tool
        would, in a file of its own, again over what it wrote before, and returns the file's path;
        `check_adapter` and the scenarios ask for it. ``sample`` is a `scenarios.Sample`: ``id`` is what the
        scan has to find, ``messages`` have ``role``, ``text``, ``id`` and ``time``, and ``padding`` is about
        how many bytes to add that change no message. More messages have to make a larger file, which a
        database is only by more than a page of 4096 bytes.

    Returns
    -------
    Callable
        The decorator; the function's name then is the adapter, a `Prototype`. The function gets a record
        and a `ParserSession`: ``session.metadata(slug=…)`` notes facts (``id``, ``slug``, which is the title,
        ``cwd``, ``git_branch``, ``project_dir``, ``project_name``, ``parent_id``), ``session.drop(reason)``
        says why the record becomes no message, ``session.amend(content=…)`` changes the last message that
        was yielded, or the one at an index; ``session.state`` is a dict of the function's own,
        ``session.messages`` is what was yielded so far, ``session.candidate`` what is parsed, and
        ``session.document`` the whole of a JSON document.

    Examples
    --------
    >>> from crystal_nb.records import Message
    >>> @jsonl_adapter("mytool", root="~/.mytool")
    ... def mytool(record, session):
    ...     yield Message(record["who"], record["text"])
    >>> mytool.display_name
    'mytool'
    """
    made = partial(_prototype, name, root, glob, display_name, version, on_error, write_sample)
    return lambda function: made(
        function, lambda c: line_records(c.file_path), lambda c: (None, line_records(c.file_path)), order
    )


def json_adapter(
    name: str,
    *,
    root: Root,
    glob: str = "**/*.json",
    records: str | None = None,
    display_name: str | None = None,
    version: str | None = None,
    on_error: OnError = "raise",
    order: Order = "file",
    write_sample: Callable[[Path, Any], Path] | None = None,
) -> Decorator:
    """Make an adapter of JSON documents from a function that gets the document, or each of its records.

    Parameters
    ----------
    records
        JSON pointer to the list (or object) whose items are the raw records, such as ``/messages``;
        ``session.document`` then is the whole. Default: the document is the only record.
    name, root, glob, display_name, version, on_error, order, write_sample
        As in `jsonl_adapter`.

    Returns
    -------
    Callable
        The decorator; as in `jsonl_adapter`, which says what the session offers.

    Raises
    ------
    ConfigError
        If ``records`` is no JSON pointer.

    Examples
    --------
    >>> from crystal_nb.records import Message
    >>> @json_adapter("mytool", root="~/.mytool", records="/turns")
    ... def mytool(record, session):
    ...     session.metadata(slug=session.document.get("title"))
    ...     yield Message(record["who"], record["text"])
    >>> mytool.parser_version
    'mytool@1'
    """
    if records is not None and not (isinstance(records, str) and records[:1] in ("", "/")):
        raise ConfigError(f'records is a JSON pointer, which begins with "/", such as "/messages", not {records!r}')

    def opened(candidate: Candidate) -> tuple[Any, Iterator[RawRecord]]:
        document = read_document(candidate)
        return document.value, document_records(document, records)

    made = partial(_prototype, name, root, glob, display_name, version, on_error, write_sample)
    return lambda function: made(function, lambda c: opened(c)[1], opened, order)


def sqlite_adapter(
    name: str,
    *,
    root: Root,
    query: str,
    conversation: str,
    glob: str = "**/*.db",
    display_name: str | None = None,
    version: str | None = None,
    on_error: OnError = "raise",
    order: Order = "file",
    write_sample: Callable[[Path, Any], Path] | None = None,
) -> Decorator:
    """Make an adapter of SQLite databases from a function that gets each row as a dict.

    A database is only read, a write-ahead log included, and never locked. Each candidate is read by
    the whole query, so a prototype over many conversations is slow.

    Parameters
    ----------
    query
        ``SELECT`` that gives the rows in the order in which messages are to come.
    conversation
        Column of it that says to which conversation a row belongs; every distinct value is a
        candidate, its text the id (``NULL`` for null).
    name, root, glob, display_name, version, on_error, order, write_sample
        As in `jsonl_adapter`; ``write_sample`` writes a database of its own per conversation.

    Returns
    -------
    Callable
        The decorator; as in `jsonl_adapter`, which says what the session offers.

    Examples
    --------
    >>> from crystal_nb.records import Message
    >>> @sqlite_adapter("mytool", root="~/.mytool", query="SELECT * FROM said ORDER BY id", conversation="chat")
    ... def mytool(row, session):
    ...     yield Message(row["who"], row["text"])
    >>> mytool.name
    'mytool'
    """
    rows = partial(row_records, query, conversation)
    listed = partial(sqlite_candidates, name, query, conversation)
    made = partial(_prototype, name, root, glob, display_name, version, on_error, write_sample)
    return lambda function: made(function, rows, lambda c: (None, rows(c)), order, listed)


def _prototype(
    name: str,
    root: Root,
    glob: str,
    display_name: str | None,
    version: str | None,
    on_error: OnError,
    write_sample: Callable[[Path, Any], Path] | None,
    function: ParserFunction,
    records: Callable[[Candidate], Iterator[RawRecord]],
    opened: Callable[[Candidate], tuple[Any, Iterator[RawRecord]]],
    order: Order,
    candidates_in: Callable[[Path], list[Candidate]] | None = None,
) -> Prototype:
    if on_error not in ("raise", "drop") or order not in ("file", "time"):
        raise AdapterError(f"on_error is raise or drop, order file or time, not {on_error!r} and {order!r}")

    def read(candidate: Candidate, rules: ParserRules, config: Config) -> Parsed:
        document, found = opened(candidate)
        return run_parser(function, found, candidate, rules, config, document=document, by_time=order == "time")

    def candidates(folder: Path, config: Config) -> list[Candidate]:
        if candidates_in is None:
            return find_files(name, folder, glob)
        return [c for path in _matching(folder, glob) for c in candidates_in(path)]

    return Prototype(
        name=name,
        display_name=display_name or name,
        root=partial(_root_in, name, root),
        count=lambda folder, config: len(candidates(folder, config)) if folder.is_dir() else 0,
        candidates=candidates,
        read=read,
        rules=ParserRules(version or f"{name}@1", on_error),
        function=function,
        records=records,
        candidates_in=candidates_in or (lambda path: [file_candidate(name, path.stem, path, os.stat(path), "")]),
        write_sample=write_sample,
    )


def _root_in(name: str, root: Root, config: Config) -> Path:
    if callable(root):
        return root(config)
    text = os.fspath(root)
    return config.folder(name, "", config.expand(text) if text.startswith("~") else Path(text))


def find_files(name: str, folder: Path, glob: str) -> list[Candidate]:
    """Candidates of the files below a folder that a pattern matches, one each, in the order of their paths.

    The id is the file's name without the ending; where names are alike, the path below the folder.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for place in ("a/x.jsonl", "b/x.jsonl", "b/y.jsonl"):
    ...     (folder / place).parent.mkdir(exist_ok=True)
    ...     _ = (folder / place).write_text("")
    >>> [c.id for c in find_files("mytool", folder, "**/*.jsonl")]
    ['a/x.jsonl', 'b/x.jsonl', 'y']
    """
    paths = _matching(folder, glob)
    stems = Counter(path.stem for path in paths)
    found = []
    for path in paths:
        below = path.relative_to(folder)
        id = path.stem if stems[path.stem] == 1 else below.as_posix()
        project = below.parent.as_posix()
        found.append(file_candidate(name, id, path, os.stat(path), "" if project == "." else project))
    return found


def _matching(folder: Path, glob: str) -> list[Path]:
    """Regular files that the pattern matches, in byte order of their paths; an unreadable folder is an error."""
    os.listdir(folder)
    return sorted((p for p in folder.glob(glob) if p.is_file()), key=lambda p: os.fsencode(p.as_posix()))
