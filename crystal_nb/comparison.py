"""Two versions of a parser over the same conversations, message by message."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from crystal_nb import ecma, importer
from crystal_nb._loop import twins
from crystal_nb.adapters import get_adapter
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.candidates import Candidates, as_candidates
from crystal_nb.config import Config, checked
from crystal_nb.corpus import Corpus, ParsedConversation
from crystal_nb.errors import ConfigError
from crystal_nb.records import Candidate, Message

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Alignment", "align", "compare_parsers", "compare_parsers_async"]


class Alignment(Struct, frozen=True):
    """How the messages of one parse stand to those of another.

    Attributes
    ----------
    same : int
        Messages that both have, in the same order.
    moved : int
        Messages that both have, in another order.
    changed : int
        Messages with the same id and other content.
    removed : int
        Messages that only the first has.
    added : int
        Messages that only the second has.
    """

    same: int
    moved: int
    changed: int
    removed: int
    added: int


def align(a: Sequence[Message], b: Sequence[Message]) -> Alignment:
    """Match the messages of two parses by what is hashed of them, then by their ids.

    >>> hi, ho, new = Message("user", "hi"), Message("user", "ho"), Message("user", "new")
    >>> align([hi, ho], [ho, hi, new])
    Alignment(same=1, moved=1, changed=0, removed=0, added=1)
    """
    places: dict[Any, list[int]] = defaultdict(list)
    for place, message in reversed(list(enumerate(b))):
        places[_hashed(message)].append(place)
    matched, rest = [], []
    for message in a:
        waiting = places[_hashed(message)]
        if waiting:
            matched.append(waiting.pop())
        else:
            rest.append(message)
    ids = {_id(b[place]) for waiting in places.values() for place in waiting} - {None}
    changed = len({_id(m) for m in rest} & ids)
    same = _longest_rise(matched)
    return Alignment(same, len(matched) - same, changed, len(rest) - changed, len(b) - len(matched) - changed)


def _hashed(m: Message) -> tuple[Any, ...]:
    return m.type, ecma.json_text([m.role]), m.content, m.has_tool_use, m.has_code, ecma.json_text([m.thinking])


def _id(m: Message) -> str | None:
    return None if m.id is None else ecma.to_text(m.id)


def _longest_rise(places: Sequence[int]) -> int:
    """Length of the longest rising part."""
    tails: list[int] = []
    for place in places:
        at = bisect_left(tails, place)
        tails[at : at + 1] = [place]
    return len(tails)


async def _compare_parsers(
    candidates: Candidates,
    a: str | SourceAdapter,
    b: str | SourceAdapter,
    *,
    config: Config | None = None,
) -> pl.DataFrame:
    """Parse candidates with two versions of a parser and compare what each makes of them.

    Parameters
    ----------
    candidates
        A frame made by `scan`, or records; those of other sources are left out.
    a, b
        Released versions such as ``copilot@1``, or adapter values, of one source.
    config
        The configuration that the scan had.

    Returns
    -------
    polars.DataFrame
        One row per candidate; columns: ``comparison_frames.COMPARISONS``.

    Raises
    ------
    UnknownAdapterError
        If there is no such version.
    ConfigError
        If the two are not of one source.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> compare_parsers(cnb.scan("codex", config=config), "codex@1", "codex@1", config=config)["equal"].all()
    True
    """
    from crystal_nb import comparison_frames

    one, two = (get_adapter(v) if isinstance(v, str) else v for v in (a, b))
    if one.name != two.name:
        raise ConfigError(f"two parsers of one source are compared, not {one.name} and {two.name}")
    listed, config = [c for c in as_candidates(candidates) if c.source == one.name], checked(config)
    return comparison_frames.comparisons([await _compare_one(c, one, two, config) for c in listed])


async def _compare_one(candidate: Candidate, a: SourceAdapter, b: SourceAdapter, config: Config) -> dict[str, Any]:
    parses = [await importer.parse_async([candidate], adapters=[adapter], config=config) for adapter in (a, b)]
    row = {"source": candidate.source, "candidate_id": candidate.id, "file_path": candidate.file_path}
    found = [_only(parse) for parse in parses]
    for letter, parse, p in zip("ab", parses, found, strict=True):
        row[f"hash_{letter}"] = None if p is None else p.content_hash
        row[f"messages_{letter}"] = None if p is None else len(p.conversation.messages)
        row[f"error_{letter}"] = parse.failed[0].message if parse.failed else None
    first, second = found
    if first is not None and second is not None:
        row["equal"] = first.content_hash == second.content_hash
        alignment = align(first.conversation.messages, second.conversation.messages)
        row |= {name: getattr(alignment, name) for name in alignment.__struct_fields__}
    return row


def _only(corpus: Corpus) -> ParsedConversation | None:
    return next(iter(corpus.parsed), None)


compare_parsers, compare_parsers_async = twins(_compare_parsers)
