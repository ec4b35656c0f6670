"""Asking an adapter, whoever wrote it: whatever it raises or gives becomes an error that names adapter and field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from msgspec.structs import replace

from crystal_nb.adapters import versions
from crystal_nb.adapters.base import Parsed, SourceAdapter
from crystal_nb.candidates import wrong_in_candidate
from crystal_nb.config import Config
from crystal_nb.details import Link
from crystal_nb.errors import AdapterError, CrystalError, DetectError, ScanError
from crystal_nb.records import Candidate, Conversation, Fate, FateStatus, Message, SourceInfo, said
from crystal_nb.yielded import wrong_in_typed

__all__ = ["checked_parsed", "data_folder", "detect", "error_text", "scan"]

_STATUSES = get_args(FateStatus)
_WHOLE = (int, type(None))


def data_folder(adapter: SourceAdapter, config: Config) -> str | None:
    """Where an adapter looks; None where it doesn't say."""
    try:
        root = getattr(adapter, "root", None)
        return None if root is None else str(root(config))
    except (Exception, SystemExit):  # the adapter says it in its own words when it is asked to look
        return None


async def detect(adapter: SourceAdapter, config: Config) -> SourceInfo | None:
    """Ask an adapter whether its tool is there.

    Raises
    ------
    DetectError
        Also for what an adapter from elsewhere raises or gives. Other errors of this package go through.
    """
    try:
        there = await adapter.detect(config)
    except CrystalError:
        raise
    except (Exception, SystemExit) as error:
        raise DetectError(_told(error), source=adapter.name, path=data_folder(adapter, config)) from error
    for problem in _wrong_info(there):
        raise DetectError(problem, source=adapter.name, path=data_folder(adapter, config))
    return there


def _wrong_info(there: Any) -> Iterator[str]:
    if there is None:
        return
    if not isinstance(there, SourceInfo):
        yield f"detect gave a {type(there).__name__}, neither a SourceInfo nor None"
        return
    for field in ("name", "display_name", "data_dir"):
        if not isinstance(getattr(there, field), str):
            yield f"detect gave a {field} that is no text, but {type(getattr(there, field)).__name__}"
    if not _is_whole(there.conversation_count):
        yield f"detect gave a conversation_count that is no whole number, but {type(there.conversation_count).__name__}"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


async def scan(adapter: SourceAdapter, config: Config) -> list[Candidate]:
    """Ask an adapter for its candidates; they carry its version.

    Raises
    ------
    ScanError
        Also for what an adapter from elsewhere raises or gives. Other errors of this package go through.
    """
    try:
        found = list(await adapter.scan(config))
    except CrystalError:
        raise
    except (Exception, SystemExit) as error:
        raise ScanError(_told(error), source=adapter.name, path=data_folder(adapter, config)) from error
    for problem in _wrong_candidates(found):
        raise ScanError(problem, source=adapter.name, path=data_folder(adapter, config))
    return [replace(c, parser_version=adapter.parser_version) for c in found]


def _wrong_candidates(found: Iterable[Any]) -> Iterator[str]:
    for number, candidate in enumerate(found):
        if not isinstance(candidate, Candidate):
            yield f"scan gave something else than candidates: a {type(candidate).__name__}"
        else:
            yield from (f"candidates[{number}].{problem}" for problem in wrong_in_candidate(candidate))
            if not isinstance(candidate.source, str):
                yield f"candidates[{number}].source is text, not {type(candidate.source).__name__}"


def checked_parsed(adapter: SourceAdapter, parsed: Any) -> Parsed:
    """What a parse gave, when it is what a parse should give.

    The built-ins' is not looked through: their tests do that, and it takes its time.

    Raises
    ------
    AdapterError
        With the adapter and the field.

    >>> from crystal_nb.adapters import get_adapter
    >>> checked_parsed(get_adapter("codex"), 5)
    Traceback (most recent call last):
    crystal_nb.errors.AdapterError: codex: parse gave no Parsed with a tuple of fates, but int
    """
    if not (isinstance(parsed, Parsed) and isinstance(parsed.fates, tuple)):
        raise AdapterError(f"{adapter.name}: parse gave no Parsed with a tuple of fates, but {type(parsed).__name__}")
    if not any(adapter is known for known in versions().values()):
        for problem in _wrong_conversation(parsed.conversation):
            raise AdapterError(f"{adapter.name}: {problem}")
        for number, fate in enumerate(parsed.fates):
            for problem in _wrong_fate(fate):
                raise AdapterError(f"{adapter.name}: fates[{number}]{problem}")
    return parsed


def _wrong_conversation(c: Any) -> Iterator[str]:
    if not isinstance(c, Conversation):
        yield f"parse gave a {type(c).__name__} for a Conversation"
        return
    for field in ("source", "project_dir", "project_name"):
        if not isinstance(getattr(c, field), str):
            yield f"conversation.{field} is text, not {type(getattr(c, field)).__name__}"
    if not (isinstance(c.links, tuple) and all(isinstance(link, Link) for link in c.links)):
        yield "conversation.links is a tuple of Link"
    if not isinstance(c.messages, tuple):
        yield f"conversation.messages is a tuple of Message, not {type(c.messages).__name__}"
        return
    for number, message in enumerate(c.messages):
        if not isinstance(message, Message):
            yield f"messages[{number}] is a Message, not {type(message).__name__}"
        else:
            yield from (f"messages[{number}].{problem}" for problem in wrong_in_typed(message))


def _wrong_fate(fate: Any) -> Iterator[str]:
    if not isinstance(fate, Fate):
        yield f" is a Fate, not {type(fate).__name__}"
        return
    if fate.status not in _STATUSES:
        yield f".status is one of {', '.join(_STATUSES)}, not {type(fate.status).__name__}"
    if not isinstance(fate.kind, str):
        yield f".kind is text, not {type(fate.kind).__name__}"
    for field in ("reason", "key", "note"):
        if not isinstance(getattr(fate, field), (str, type(None))):
            yield f".{field} is text or None, not {type(getattr(fate, field)).__name__}"
    for field in ("message_index", "line", "offset", "size"):
        if not isinstance(getattr(fate, field), _WHOLE):
            yield f".{field} is a whole number or None, not {type(getattr(fate, field)).__name__}"
    if not isinstance(fate.head, bytes):
        yield f".head is bytes, not {type(fate.head).__name__}"


def error_text(error: BaseException) -> str:
    """What a parse failed with, or at least its kind; an error of this package speaks in its own words.

    >>> error_text(KeyError()), error_text(AdapterError("no"))
    ('KeyError', 'no')
    """
    return (str(error) if isinstance(error, CrystalError) else said(error)) or type(error).__name__


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {said(error)}"
