"""Parsing candidates twice by two clocks, to compare with what is stored and with each other.

Of each parse only numbers stay, no text.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as with_settings
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import decide, ecma
from crystal_nb._loop import twins
from crystal_nb.adapters import for_profile, versions
from crystal_nb.adapters.base import Parsed, SourceAdapter
from crystal_nb.audit.counting import Counts, counted, watched_places
from crystal_nb.audit.findings import error_text
from crystal_nb.audit.newest import Records, month_of, records_of, tool_version
from crystal_nb.audit.stored import HEADERS, excluded_marks, hash_keys
from crystal_nb.candidates import Candidates, as_candidates
from crystal_nb.config import Config, checked
from crystal_nb.decisions import StoredConversation
from crystal_nb.errors import AdapterError, ConfigError, CrystalError
from crystal_nb.fingerprint import Fingerprints
from crystal_nb.hashing import content_hash
from crystal_nb.policy import PINNED, Policy
from crystal_nb.progress import shown
from crystal_nb.records import Candidate, Conversation
from crystal_nb.runs import Parsers
from crystal_nb.states import States
from crystal_nb.store import Store

__all__ = ["Reparsed", "Reparses", "as_reparses", "reparse", "reparse_async"]

_LATER_MS = 86_400_000
_PAUSE_SECONDS = 0.05
_MESSAGE_FIELDS = ("id", "parent_uuid", "timestamp", "type", "role", "content", "has_tool_use", "has_code", "thinking")


class Reparsed(Struct, frozen=True):
    """What two parses of a candidate gave, without its text.

    Attributes
    ----------
    candidate : Candidate
        The candidate.
    parser_version : str | None
        Rules that parsed it: those that stored it where they are here, else those that listed it.
    stored : StoredConversation | None
        The row that the store's policy finds for it.
    pinned : StoredConversation | None
        The row that the pinned lookup finds for it.
    is_skipped : bool
        Whether the pinned check of size and time skips it.
    is_parsed_anew : bool
        Whether the store's policy parses it at the next import.
    error : str | None
        Why the parse failed; then what follows is empty.
    content_hash, parsed_id : str | None
        Of the first parse.
    message_ids : tuple[str, ...]
        Ids of the messages, in order.
    message_count : int
        Messages.
    keys, marks : tuple[int, ...]
        As in `audit.stored.Stored`.
    moved : tuple[str, ...]
        Fields that the second parse gave another value; ``content_hash`` and ``order`` among them.
    records : Mapping[tuple[str, str, str], int]
        Raw records by kind, status and reason.
    newest : str | None
        The newest rules, where they are others and were asked, too, what kinds of records they know.
    newest_records : Mapping[tuple[str, str, str], int]
        Raw records as those see them.
    tool_version : str | None
        Version of the tool that wrote it, where its files say it.
    month : str | None
        Year and month of its first message.
    is_taken : bool
        Whether the id under which it would be inserted has a row already.
    is_clean : bool
        False where records of the file could not be read, so that too few messages are not remembered.
    """

    candidate: Candidate
    parser_version: str | None
    stored: StoredConversation | None = None
    pinned: StoredConversation | None = None
    is_skipped: bool = False
    is_parsed_anew: bool = True
    error: str | None = None
    content_hash: str | None = None
    parsed_id: str | None = None
    message_ids: tuple[str, ...] = ()
    message_count: int = 0
    keys: tuple[int, ...] = ()
    marks: tuple[int, ...] = ()
    moved: tuple[str, ...] = ()
    records: Records = {}
    newest: str | None = None
    newest_records: Records = {}
    tool_version: str | None = None
    month: str | None = None
    is_taken: bool = False
    is_clean: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """Source and id of the candidate, as stores have them."""
        return self.candidate.source, ecma.key_text(ecma.to_text(self.candidate.id))


class Reparses(Struct, frozen=True):
    """All that were parsed, of how many, by what policy."""

    parsed: tuple[Reparsed, ...]
    candidates: tuple[Candidate, ...]
    policy: Policy
    is_sample: bool = False
    seed: int = 0
    costs: Mapping[str, Counts] = {}
    """What the first parses cost, by source."""
    scanned: tuple[str, ...] | None = None
    """Sources of which these are all candidates by the store's own rules; None: somebody chose others."""


async def _reparse(
    store: Store,
    candidates: Candidates,
    *,
    profile: str | Policy | None = None,
    adapters: Iterable[SourceAdapter] = (),
    config: Config | None = None,
    sample: int | None = None,
    seed: int = 0,
    newest: bool = True,
    progress: bool | None = False,
) -> Reparses:
    """Parse candidates, each twice by clocks that are a day apart; nothing is written.

    Parameters
    ----------
    store
        What is stored; says whether a candidate would be skipped, and by which rules it was parsed.
    candidates
        A frame made by `scan`, or records.
    profile
        Policy whose next import is foreseen; default: the store's.
    adapters, config
        As for `parse`.
    sample
        Parse as many only, drawn by chance; default: all.
    seed
        Of the draw.
    newest
        Whether the newest rules are asked, too, which kinds of records are unknown.
    progress
        Whether to show a bar; None: in notebooks and on terminals.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> with cnb.Store.in_memory(cnb.PINNED, config) as store:
    ...     found = reparse(store, cnb.scan("codex", config=config), config=config)
    >>> sorted({field for r in found.parsed for field in r.moved})
    ['message id']
    """
    config, listed = checked(config), as_candidates(candidates, for_store=True)
    if sample is not None and (type(sample) is not int or sample < 1):
        raise ConfigError(f"sample must be 1 or more, or None for all, not {sample!r}")
    policy = store.policy(profile)
    is_sample = sample is not None and sample < len(listed)
    drawn = sorted(random.Random(seed).sample(range(len(listed)), sample or 0)) if is_sample else range(len(listed))
    work = _Work(store.states(), policy, Parsers(policy, adapters), config, for_profile("careful") if newest else {})
    found, paused = [], time.monotonic()
    with shown(len(drawn), "Auditing", progress) as step:
        for number in drawn:
            found.append(await work.parse(listed[number]))
            step()
            if time.monotonic() - paused > _PAUSE_SECONDS:
                await asyncio.sleep(0)  # where a cancellation can come in
                paused = time.monotonic()
    return Reparses(tuple(found), tuple(listed), policy, is_sample, seed, work.costs)


class _Work:
    """What all candidates share."""

    def __init__(
        self, states: States, policy: Policy, parsers: Parsers, config: Config, newest: Mapping[str, SourceAdapter]
    ) -> None:
        self._states, self._policy, self._parsers, self._newest = states, policy, parsers, newest
        now = config.clock()
        self._now = with_settings(config, clock=lambda: now)
        self._later = with_settings(config, clock=lambda: now + _LATER_MS)
        self._fingerprints = Fingerprints()
        self.costs: dict[str, Counts] = {}

    async def parse(self, candidate: Candidate) -> Reparsed:
        stored, pinned = (self._states.find(candidate, p) for p in (self._policy, PINNED))
        adapter = self._adapter(candidate, stored or pinned)
        found = Reparsed(
            candidate,
            None if adapter is None else adapter.parser_version,
            stored,
            pinned,
            is_skipped=self._before(candidate, pinned, PINNED) == "skip",
            is_parsed_anew=self._before(candidate, stored, self._policy) == "parse",
        )
        if adapter is None:
            return replace(found, error=f"no adapter named {candidate.source} is registered")
        found = replace(found, **await self._by_newest(candidate, found.parser_version))
        try:
            first = await self._counted(adapter, candidate)
            second = await _checked(adapter, candidate, self._later)
            return replace(
                found, **_compared(candidate, first, second), is_taken=self._is_taken(found, first.conversation)
            )
        except Exception as error:  # whatever one candidate raises, the others go on
            seen = records_of(error) if isinstance(error, CrystalError) else {}
            return replace(found, error=error_text(error), records=seen)

    async def _by_newest(self, candidate: Candidate, version: str | None) -> dict[str, Any]:
        """What the newest rules make of the records, where they are not those that parse it anyway."""
        adapter = None if candidate.source in self._parsers.given else self._newest.get(candidate.source)
        if adapter is None or adapter.parser_version == version:
            return {}
        try:
            seen = records_of(await _checked(adapter, candidate, self._now))
        except CrystalError as error:
            seen = records_of(error)
        except Exception:  # then they know nothing of it
            return {}
        return {"newest": adapter.parser_version, "newest_records": seen}

    def _is_taken(self, found: Reparsed, conversation: Conversation) -> bool:
        if found.stored is not None:
            return False
        row = decide.row_id(decide.nothing_known(found.candidate), None, conversation, self._policy)
        return self._states.owner(found.candidate.source, row, self._policy) is not None

    async def _counted(self, adapter: SourceAdapter, candidate: Candidate) -> Parsed:
        counts = self.costs.setdefault(candidate.source, Counts())
        with counted(counts, watched_places(adapter, self._now)):
            parsed = await _checked(adapter, candidate, self._now)
        counts.conversations += 1
        return parsed

    def _adapter(self, candidate: Candidate, stored: StoredConversation | None) -> SourceAdapter | None:
        """Who parses it: the rules that stored it, so that a difference is the content's, else who would anyway."""
        usual = self._parsers.of(candidate)
        released = versions().get((stored and stored.parser_version) or "")
        if candidate.source in self._parsers.given or released is None or released.name != candidate.source:
            return usual
        return released

    def _before(self, candidate: Candidate, stored: StoredConversation | None, policy: Policy) -> str:
        mark = self._fingerprints(candidate) if decide.wants_fingerprint(candidate, stored, policy) else None
        usual = self._parsers.of(candidate)
        version = None if usual is None else usual.parser_version
        return decide.before_parse(candidate, stored, policy, parser_version=version, fingerprint=mark).action


async def _checked(adapter: SourceAdapter, candidate: Candidate, config: Config) -> Parsed:
    parsed = await adapter.parse(candidate, config)
    if not isinstance(parsed, Parsed):
        raise AdapterError("parse gave no Parsed")
    return parsed


def _compared(candidate: Candidate, first: Parsed, second: Parsed) -> dict[str, Any]:
    a, b = first.conversation, second.conversation
    header = [getattr(a, name) for name in HEADERS]
    digest = content_hash(a)
    return {
        "content_hash": digest,
        "parsed_id": ecma.key_text(ecma.to_text(a.id)),
        "message_ids": tuple(ecma.key_text(ecma.to_text(m.id)) for m in a.messages if m.id is not None),
        "message_count": len(a.messages),
        "keys": hash_keys(a.source, a.messages),
        "marks": excluded_marks(header, a.messages),
        "moved": tuple(_moved(a, b, digest)),
        "is_clean": decide.with_reading(decide.nothing_known(candidate), first.fates).is_clean,
        "records": records_of(first),
        "tool_version": tool_version(candidate, first.fates),
        "month": month_of(a.messages),
    }


def _moved(a: Conversation, b: Conversation, digest: str) -> Iterable[str]:
    if a == b:
        return
    if content_hash(b) != digest:
        yield "content_hash"
    yield from (name for name in ("id", *HEADERS) if getattr(a, name) != getattr(b, name))
    bodies = [[(m.type, m.content) for m in c.messages] for c in (a, b)]
    if bodies[0] != bodies[1] and sorted(bodies[0]) == sorted(bodies[1]):
        yield "order"
        return
    for name in _MESSAGE_FIELDS:
        if _column(a.messages, name) != _column(b.messages, name):
            yield f"message {name}" if name == "id" else name


def _column(messages: Sequence[Any], name: str) -> list[Any]:
    return [getattr(m, name) for m in messages]


reparse, reparse_async = twins(_reparse)


def as_reparses(
    store: Store, candidates: Candidates | Reparses, config: Config | None = None, sample: int | None = None
) -> Reparses:
    """What was parsed already, or what `reparse` gives.

    >>> as_reparses(None, Reparses((), (), PINNED)).is_sample
    False
    """
    if isinstance(candidates, Reparses):
        return candidates
    return reparse(store, candidates, config=config, sample=sample)
