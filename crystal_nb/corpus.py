"""What a parse gave: conversations with their hashes, the fate of every raw record, the failures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import charts, ecma
from crystal_nb.details import without_text
from crystal_nb.errors import SourceError, UnknownConversationError
from crystal_nb.hashing import content_hash
from crystal_nb.html_table import html_table
from crystal_nb.identity import namespace
from crystal_nb.provenance import SourceText, sources_of
from crystal_nb.records import Candidate, Conversation, Fate, counted, printable
from crystal_nb.redaction import Masker, describe_masked

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Corpus", "Failure", "ParsedConversation"]

_STATUSES = ("kept", "merged", "metadata", "dropped")
_LOSSES_SHOWN = 8
_LONGEST_NAME, _LONGEST, _ROWS = 100, 2_000, 200


class ParsedConversation(Struct, frozen=True):
    """One candidate and what its parse gave."""

    candidate: Candidate
    conversation: Conversation
    fates: tuple[Fate, ...]
    content_hash: str
    parser_version: str

    def __repr__(self) -> str:
        return without_text(self, "fates")

    @property
    def conversation_id(self) -> str:
        """Id with the source before it."""
        return namespace(self.conversation.source, ecma.to_text(self.conversation.id))

    @property
    def time(self) -> str:
        """When its last message was written, as far as the records say; empty where they don't, never the clock's."""
        c = self.conversation
        told = bool(c.messages) and not any(m.timestamp_from_clock for m in c.messages)
        known = (m.timestamp for m in reversed(c.messages) if not m.timestamp_from_clock)
        return next((t for t in (c.last_message_at if told else None, *known) if isinstance(t, str)), "")


class Failure(Struct, frozen=True):
    """A candidate whose parse failed."""

    candidate: Candidate
    error: str
    message: str
    line: int | None = None
    offset: int | None = None


class Corpus:
    """Parsed conversations as frames and records.

    Frames are built when first asked for. ``corpus[source, id]`` gives a conversation record by its
    candidate's id or else its own; where several share it, the last one. ``corpus[index]`` gives
    the one in that row of `conversations`. Iterating gives the records in that order.

    Parameters
    ----------
    parsed
        What was parsed, in order.
    failures
        What could not be.

    >>> Corpus([], [])
    Corpus: nothing was parsed; cnb.samples.config() is a configuration that reads bundled samples
    """

    masked: Mapping[str, int] | None = None
    """What `redacted` masked, by kind; None where nothing was looked for."""

    def __init__(self, parsed: Sequence[ParsedConversation], failures: Sequence[Failure]) -> None:
        self.parsed = tuple(parsed)
        self.failed = tuple(failures)

    def __len__(self) -> int:
        return len(self.parsed)

    def __iter__(self) -> Iterator[Conversation]:
        return (p.conversation for p in self.parsed)

    def __getitem__(self, key: tuple[str, str] | int) -> Conversation:
        try:
            found = self.parsed[key] if isinstance(key, int) else self._by_id[key]
        except (LookupError, TypeError):
            keys = sorted(self._by_id, key=lambda known: not (isinstance(key, tuple) and known[:1] == key[:1]))
            near = "; ".join(f"{source!r}, {id!r}" for source, id in keys[:3])
            raise UnknownConversationError(
                f"no conversation {key!r}; ask by corpus[source, id] or by a row of corpus.conversations; "
                f"there are {len(self)}: {near or 'none'}{', …' if len(keys) > 3 else ''}"
            ) from None
        return found.conversation

    def __contains__(self, key: object) -> bool:
        return key in self._by_id

    @cached_property
    def _by_id(self) -> dict[Any, ParsedConversation]:
        own = {(p.conversation.source, ecma.to_text(p.conversation.id)): p for p in self.parsed}
        return {**own, **{(p.candidate.source, ecma.to_text(p.candidate.id)): p for p in self.parsed}}

    @cached_property
    def conversations(self) -> pl.DataFrame:
        """One row per conversation; columns: ``frames.CONVERSATIONS``."""
        from crystal_nb import corpus_frames

        return corpus_frames.conversations(self.parsed)

    @cached_property
    def messages(self) -> pl.DataFrame:
        """One row per message; columns: ``frames.MESSAGES``."""
        from crystal_nb import corpus_frames

        return corpus_frames.messages(self.parsed)

    @cached_property
    def fates(self) -> pl.DataFrame:
        """One row per raw record; columns: ``frames.FATES``."""
        from crystal_nb import corpus_frames

        return corpus_frames.fates(self.parsed)

    @cached_property
    def failures(self) -> pl.DataFrame:
        """One row per candidate that could not be parsed; columns: ``frames.FAILURES``."""
        from crystal_nb import corpus_frames

        return corpus_frames.failures(self.failed)

    def losses(self, *, characters: bool = True) -> pl.DataFrame:
        """What the rules dropped: per conversation, kind and reason; columns: ``losses.LOSSES``.

        Parameters
        ----------
        characters
            Whether to count characters, for which the records are read again from their files; a
            redacted corpus reads none.
        """
        from crystal_nb import losses

        return losses.losses(self.parsed, characters=characters and self.masked is None)

    def books(self) -> pl.DataFrame:
        """Where every byte of each file went; columns: ``losses.BOOKS``."""
        from crystal_nb import losses

        return losses.books(self.parsed)

    def source_of(self, source: str, id: str, index: int, field: str | None = None) -> list[SourceText]:
        """Raw text in the tool's own file behind a message.

        Parameters
        ----------
        source, id
            The conversation, as in ``corpus[source, id]``.
        index
            Position of the message.
        field
            ``content``, ``thinking``, ``tool_input`` or another one of ``provenance.FIELDS``, for the parts
            of the records that gave it; default: the whole records.

        Returns
        -------
        list of SourceText
            In reading order; one per record, or per part of it.

        Raises
        ------
        UnknownConversationError
            If there is no such conversation, message or field.
        SourceError
            If a record can't be read again; from a redacted corpus none is.
        """
        conversation = self[source, id]
        p = self._by_id[source, id]
        if not 0 <= index < len(conversation.messages):
            raise UnknownConversationError(f"{source}, {id} has {len(conversation.messages)} messages, none at {index}")
        if self.masked is not None:
            reason = "a redacted corpus reads no file again, as the raw text is not masked"
            raise SourceError(reason, source=source, path=p.candidate.file_path)
        return sources_of(p.candidate, p.fates, index, conversation.messages[index], field)

    def redacted(self) -> Corpus:
        """A corpus to share: secrets and home paths masked in all its texts; ``masked`` says how many of which.

        A conversation in which something was masked has the hash of its masked messages, since a short
        password could be guessed from the true one; all others keep theirs. No file is read again from
        it. The last word of an excerpt that was cut off is left out, as it may be half a secret. See
        `redact` for what is found.

        >>> Corpus([], []).redacted().masked
        {}
        """
        masker = Masker()
        shared = Corpus([_redacted(p, masker) for p in self.parsed], [masker.value(f) for f in self.failed])
        shared.masked = dict(masker.masked)
        return shared

    def summary(self) -> list[dict[str, Any]]:
        """Counts per source: conversations, messages, raw records by fate, failures."""
        return list(self._counts.values())

    @cached_property
    def _counts(self) -> dict[str, dict[str, Any]]:
        counts: dict[str, dict[str, Any]] = {}
        for p in self.parsed:
            row = counts.setdefault(p.conversation.source, _empty_row(p.conversation.source))
            row["conversations"] += 1
            row["messages"] += len(p.conversation.messages)
            row["records"] += len(p.fates)
            for status, number in Counter(f.status for f in p.fates).items():
                row[status] += number
        for failure in self.failed:
            counts.setdefault(failure.candidate.source, _empty_row(failure.candidate.source))["failures"] += 1
        return counts

    def loss_reasons(self) -> list[tuple[str, str, str, int]]:
        """Source, kind, reason and number of dropped records, most frequent first."""
        return [(*key, number) for key, number in self._losses.most_common()]

    @cached_property
    def _losses(self) -> Counter[tuple[str, str, str]]:
        return Counter(
            (p.conversation.source, f.kind, f.reason or "")
            for p in self.parsed
            for f in p.fates
            if f.status == "dropped"
        )

    def __repr__(self) -> str:
        return self.told(".loss_reasons()", ".failures")

    def told(self, all_reasons: str, all_failures: str) -> str:
        """Its representation, with other words for what gives the reasons and failures that it has no room for."""
        if not (self.parsed or self.failed):
            return "Corpus: nothing was parsed; cnb.samples.config() is a configuration that reads bundled samples"
        lines = [self.headline(), "", *_text_table(self.summary())]
        for source, kind, reason, number in self.loss_reasons()[:_LOSSES_SHOWN]:
            lines.append(f"  dropped {number:>7,} × {source} {_cut(kind)}: {_cut(reason)}")
        if rest := self.loss_reasons()[_LOSSES_SHOWN:]:
            lines.append(f"  dropped {sum(n for *_, n in rest):>7,} × for {len(rest)} more reasons: {all_reasons}")
        for failure in self.failed[:_LOSSES_SHOWN]:
            lines.append(f"  failed  {_cut(failure.message, _LONGEST)}")
        if len(self.failed) > _LOSSES_SHOWN:
            lines.append(f"  failed  {len(self.failed) - _LOSSES_SHOWN:,} more: {all_failures}")
        return "\n".join(lines)

    def headline(self) -> str:
        """What was read in one line."""
        messages = sum(len(p.conversation.messages) for p in self.parsed)
        short = sum(len(p.conversation.messages) < 2 for p in self.parsed)
        parts = [f"Corpus: {counted(len(self.parsed), 'conversation')}, {counted(messages, 'message')}"]
        if short:
            parts.append(f"{short:,} with fewer than 2 messages, which an import skips")
        if self.failed:
            parts.append(f"{len(self.failed):,} failed")
        if self.masked is not None:
            parts.append(describe_masked(self.masked))
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        if not (self.parsed or self.failed):
            return f"<p>{escape(repr(self))}</p>"
        losses = [
            {"source": source, "kind": _cut(kind), "reason": _cut(reason), "dropped": number}
            for source, kind, reason, number in self.loss_reasons()
        ]
        failures = [{"source": f.candidate.source, "failure": _cut(f.message, _LONGEST)} for f in self.failed]
        times = charts.over_time((p.time, p.conversation.source) for p in self.parsed)
        tables = [html_table("What was read", self.summary(), _html_cell), times.to_html() if times.rows else ""]
        tables.append(charts.bars("What was lost", losses, "dropped", _ROWS).to_html() if losses else "")
        tables.append(html_table(f"What failed, {len(failures):,}", failures[:_ROWS], _html_cell))
        return f"<p><b>{escape(self.headline())}</b></p>{''.join(tables)}"


def _redacted(p: ParsedConversation, masker: Masker) -> ParsedConversation:
    conversation = masker.value(p.conversation)
    same = conversation.messages == p.conversation.messages
    return ParsedConversation(
        candidate=masker.value(p.candidate),
        conversation=conversation,
        fates=tuple(_without_half_words(fate, masker.value(fate)) for fate in p.fates),
        content_hash=p.content_hash if same else content_hash(conversation),
        parser_version=p.parser_version,
    )


_LAST_WORD = re.compile(rb"[\w~+/=.%-]+\Z")


def _without_half_words(fate: Fate, masked: Fate) -> Fate:
    if not fate.head or fate.size == len(fate.head):
        return masked
    return replace(masked, head=_LAST_WORD.sub("…".encode(), masked.head))


def _cut(text: str, room: int = _LONGEST_NAME) -> str:
    """A name that a file gives, which may be of any length and hold anything."""
    return printable(text if len(text) <= room else f"{text[:room]}…")


def _empty_row(source: str) -> dict[str, Any]:
    counts = dict.fromkeys(("conversations", "messages", "records", *_STATUSES, "failures"), 0)
    return {"source": source, **counts}


def _text_table(rows: list[dict[str, Any]]) -> list[str]:
    cells = [list(rows[0]), *([f"{v:,}" if isinstance(v, int) else v for v in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in cells
    ]


def _html_cell(value: Any) -> str:
    if isinstance(value, int):
        return f'<td style="text-align:right">{value:,}</td>'
    return f'<td style="text-align:left">{escape(printable(str(value)))}</td>'
