"""Trying a parser on one file: raw records, messages and fates side by side.

Nothing is kept between two calls, and the adapter is used as given, so a cell that defines a parser
can be changed, run again and tried again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from crystal_nb._loop import twins
from crystal_nb.adapters import get_adapter
from crystal_nb.adapters.base import Parsed, SourceAdapter, file_candidate, read_file
from crystal_nb.adapters.usable import usable
from crystal_nb.config import Config, checked
from crystal_nb.corpus import ParsedConversation
from crystal_nb.errors import ConfigError, CrystalError, ParseError
from crystal_nb.hashing import content_hash
from crystal_nb.parse_session import ParserRules, RawRecord
from crystal_nb.prototyping import Prototype
from crystal_nb.raw_records import document_records, read_document
from crystal_nb.records import Candidate, Fate, Message, counted, printable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ParserTrial", "try_parser", "try_parser_async"]

_SHOWN = 40
_TEXT = 120


@dataclass(frozen=True, repr=False)
class ParserTrial:
    """What a parser makes of one candidate.

    Parameters
    ----------
    candidate
        What was parsed.
    parsed
        The conversation and the fates; where the parser failed on a record, what is left when that
        record is left out. None where nothing could be parsed at all.
    error
        What an import would fail with; its ``__cause__`` is the exception of the parser's function.
    raw
        The raw records, as far as they could be read.
    others
        Ids of other conversations in the same file.
    """

    candidate: Candidate
    parsed: Parsed | None
    error: Exception | None
    raw: tuple[RawRecord, ...]
    others: tuple[str, ...] = ()

    @cached_property
    def records(self) -> pl.DataFrame:
        """One row per raw record; columns: ``trial_frames.TRIAL_RECORDS``."""
        from crystal_nb import trial_frames

        return trial_frames.trial_records(self._rows())

    @cached_property
    def messages(self) -> pl.DataFrame:
        """One row per message; columns: ``frames.MESSAGES``."""
        from crystal_nb import corpus_frames, trial_frames

        found = self._conversation()
        return corpus_frames.messages([found]) if found else trial_frames.empty_messages()

    @cached_property
    def fates(self) -> pl.DataFrame:
        """One row per raw record; columns: ``frames.FATES``."""
        from crystal_nb import corpus_frames, trial_frames

        found = self._conversation()
        return corpus_frames.fates([found]) if found else trial_frames.empty_fates()

    def _conversation(self) -> ParsedConversation | None:
        if self.parsed is None:
            return None
        conversation = self.parsed.conversation
        version = self.candidate.parser_version or ""
        return ParsedConversation(self.candidate, conversation, self.parsed.fates, content_hash(conversation), version)

    def _rows(self) -> Iterator[dict[str, Any]]:
        fates = self.parsed.fates if self.parsed else ()
        for number, (raw, fate) in enumerate(zip_longest(self.raw, fates)):
            yield _row(number, raw, fate, self.error)

    def _message(self, index: int | None) -> Message | None:
        messages = self.parsed.conversation.messages if self.parsed else ()
        return messages[index] if index is not None and index < len(messages) else None

    def headline(self) -> str:
        """The counts in one line."""
        failed = sum(_is_error(f) for f in self.parsed.fates) if self.parsed else 0
        messages = len(self.parsed.conversation.messages) if self.parsed else 0
        lost = sum(f.status == "dropped" for f in self.parsed.fates) if self.parsed else len(self.raw)
        lost -= failed
        text = f"{self.candidate.source} on {Path(self.candidate.file_path).name}: "
        text += f"{counted(len(self.raw), 'raw record')}, {counted(messages, 'message')}, {lost:,} dropped"
        if self.others:
            text += f"; {counted(len(self.others), 'more conversation')} in the file"
        return f"{text}; it fails" if self.error else text

    def problem(self) -> str:
        """What the parser failed on, with the raw record; nothing where it did not fail."""
        return "\n  ".join([str(self.error), *getattr(self.error, "__notes__", ())]) if self.error is not None else ""

    def __repr__(self) -> str:
        lines = [printable(self.headline())]
        for row in list(self._rows())[:_SHOWN]:
            place = f"line {row['line']}" if row["line"] is not None else row["key"] or "document"
            lines.append(
                f"  {place:<10} {_cut(row['raw'], 60):<62} {_verdict(row, self._message(row['message_index']))}"
            )
        if self.error is not None:
            lines += ["", *printable_lines(self.problem())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = list(self._rows())
        body = "".join(map(self._html_row, rows[:_SHOWN]))
        more = f"<p>… and {len(rows) - _SHOWN:,} more: .records</p>" if len(rows) > _SHOWN else ""
        failed = f"<pre>{escape(chr(10).join(printable_lines(self.problem())))}</pre>" if self.error else ""
        head = "<tr><th>place</th><th>raw record</th><th>fate</th><th>message</th></tr>"
        title = escape(printable(self.headline()))
        return f"<p><b>{title}</b></p>{failed}<table><thead>{head}</thead><tbody>{body}</tbody></table>{more}"

    def _html_row(self, row: Mapping[str, Any]) -> str:
        place = str(row["line"]) if row["line"] is not None else row["key"] or ""
        fate = row["status"] if row["reason"] is None else f"{row['status']}: {row['reason']}"
        message = self._message(row["message_index"])
        shown = "" if message is None else f"{message.type}: {_cut(message.content, _TEXT)}"
        cells = (place, _cut(row["raw"], _TEXT), fate, shown)
        left = ' style="text-align:left;vertical-align:top"'
        return f"<tr>{''.join(f'<td{left}>{escape(printable(str(c)))}</td>' for c in cells)}</tr>"


def printable_lines(text: str) -> list[str]:
    r"""Lines of a text, each of them harmless.

    >>> printable_lines("a\n\x1bb")
    ['a', '\\x1bb']
    """
    return [printable(line) for line in text.split("\n")]


def _cut(text: str | None, length: int) -> str:
    text = printable(text or "")
    return text if len(text) <= length else f"{text[:length]}…"


def _verdict(row: Mapping[str, Any], message: Message | None) -> str:
    if message is not None and row["status"] in ("kept", "merged"):
        return f"{row['status']} {row['message_index']} {message.type}: {_cut(message.content, 40)}"
    return str(row["status"]) if row["reason"] is None else f"{row['status']}: {printable(row['reason'])}"


def _is_error(fate: Fate) -> bool:
    return fate.status == "dropped" and (fate.reason or "").startswith("error: ")


def _row(number: int, raw: RawRecord | None, fate: Fate | None, error: Exception | None) -> dict[str, Any]:
    raw = raw if raw is not None else RawRecord(None, fate.head if fate else b"")
    status: str | None = fate.status if fate else None
    reason = fate.reason if fate else None
    line, offset, key = raw.line, raw.offset, raw.key
    if fate is not None:
        line, offset, key = fate.line, fate.offset, fate.key
    failed = str(error).partition(": ")[2] if error is not None and fate is None else None
    if fate is not None and reason is not None and _is_error(fate):
        status, failed = "error", reason.removeprefix("error: ")
    elif failed is not None and isinstance(error, ParseError) and error.line == line and line is not None:
        status = "error"
    return {
        "record": number,
        "line": line,
        "offset": offset,
        "key": key,
        "kind": fate.kind if fate else raw.kind,
        "status": status,
        "reason": failed if status == "error" else reason,
        "message_index": fate.message_index if fate else None,
        "raw": raw.excerpt,
    }


async def _try_parser(
    adapter: SourceAdapter | str,
    path: str | os.PathLike[str] | Candidate,
    *,
    conversation: str | None = None,
    config: Config | None = None,
) -> ParserTrial:
    """Parse one file and show raw records, messages and fates side by side.

    What the parser raises is shown in its place and not raised.

    Parameters
    ----------
    adapter
        The adapter, or the name of a registered one.
    path
        A file, wherever it is, or a candidate.
    conversation
        Id of the conversation in a file that holds several; default: the first.
    config
        The configuration to parse with.

    Returns
    -------
    ParserTrial
        With the frames ``records``, ``messages`` and ``fates``, and ``error``.

    Raises
    ------
    ConfigError
        If there is no such file or no such conversation in it, or the path is none.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> file = cnb.samples.home() / ".claude/projects/-home-ada-projects-orchard"
    >>> trial = try_parser("claude-code", sorted(file.glob("*.jsonl"))[0])
    >>> trial.records.columns[:4], trial.error
    (['record', 'line', 'offset', 'key'], None)
    """
    config = checked(config)
    adapter = get_adapter(adapter) if isinstance(adapter, str) else usable(adapter)
    listed, error = await _candidates(adapter, path, config)
    chosen = next((c for c in listed if conversation is None or c.id == conversation), None)
    if chosen is None:
        raise ConfigError(
            f"no conversation {conversation!r} in {path}; there are {', '.join(str(c.id) for c in listed)}"
        )
    others = tuple(str(c.id) for c in listed if c is not chosen)
    chosen = msgspec.structs.replace(chosen, parser_version=adapter.parser_version)
    if error is not None:
        return ParserTrial(chosen, None, error, ())
    parsed, error = await _outcome(adapter, chosen, config)
    if error is not None and isinstance(adapter, Prototype) and isinstance(adapter.rules, ParserRules):
        lenient = replace(adapter, rules=msgspec.structs.replace(adapter.rules, on_error="drop"))
        parsed, _ = await _outcome(lenient, chosen, config)
    raw = await asyncio.to_thread(_raw, adapter, chosen, parsed, error)
    return ParserTrial(chosen, parsed, error, tuple(raw), others)


async def _outcome(
    adapter: SourceAdapter, candidate: Candidate, config: Config
) -> tuple[Parsed | None, Exception | None]:
    try:
        return await adapter.parse(candidate, config), None
    except Exception as error:  # whatever a parser raises is shown
        return None, error


async def _candidates(
    adapter: SourceAdapter, path: str | os.PathLike[str] | Candidate, config: Config
) -> tuple[list[Candidate], Exception | None]:
    """Candidates that the file holds; with the error, where its list can't be read."""
    if isinstance(path, Candidate):
        return [path], None
    if not isinstance(path, (str, os.PathLike)):
        raise ConfigError(f"path must be a file's path or a Candidate, not {type(path).__name__}")
    file = Path(path).expanduser()
    try:
        plain = file_candidate(adapter.name, file.stem, file, os.stat(file), file.parent.name)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None
    if isinstance(adapter, Prototype):
        try:
            return adapter.candidates_in(file) or [plain], None
        except (OSError, CrystalError) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
            return [plain], ParseError(reason, source=adapter.name, path=file)
    try:
        found = await adapter.scan(config)
    except CrystalError:
        found = []
    return [c for c in found if Path(c.file_path) == file] or [plain], None


def _raw(
    adapter: SourceAdapter, candidate: Candidate, parsed: Parsed | None, error: Exception | None
) -> Iterator[RawRecord]:
    """The raw records: those that a prototype reads, else those that the fates tell the places of."""
    try:
        if isinstance(adapter, Prototype):
            yield from adapter.records(candidate)
            return
        data = read_file(candidate.file_path)
        document = _document(candidate, parsed)
        for fate in parsed.fates if parsed else ():
            start, size = fate.offset, fate.size
            known = start is not None and size is not None and fate.key is None
            record = data[start : start + size] if known else fate.head  # type: ignore[operator]
            if not record and fate.key is not None:
                record = next((r.data for r in document if r.key == fate.key), b"")
            yield RawRecord(None, record.rstrip(b"\r\n"), None, fate.line, fate.offset, fate.size, fate.key)
        if parsed is None and isinstance(error, ParseError) and error.offset is not None:
            record = data[error.offset :].partition(b"\n")[0]
            yield RawRecord(None, record, None, error.line, error.offset, len(record))
    except (OSError, ValueError, CrystalError):
        return  # then there is nothing to show; the parse has said why


def _document(candidate: Candidate, parsed: Parsed | None) -> list[RawRecord]:
    """Items of the document's lists, where fates name their places by JSON pointers."""
    places = [f.key for f in parsed.fates if f.key is not None] if parsed else []
    keys = {place.rpartition("/")[0] for place in places if place.startswith("/")}
    if not keys:
        return []
    document = read_document(candidate)
    return [record for key in sorted(keys) for record in document_records(document, key)]


try_parser, try_parser_async = twins(_try_parser)
