"""Deciding about one candidate after the other; what is done with each decision is the caller's.

Source: ``pinned-importer.md`` section 3, steps a to h.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from crystal_nb import decide, foreign, importer
from crystal_nb.adapters import for_profile, versions
from crystal_nb.adapters.base import Parsed, SourceAdapter
from crystal_nb.config import Config
from crystal_nb.decisions import Decision
from crystal_nb.errors import AdapterError
from crystal_nb.fingerprint import Fingerprints
from crystal_nb.hashing import content_hash
from crystal_nb.policy import Policy
from crystal_nb.records import Candidate
from crystal_nb.report import Outcome
from crystal_nb.states import States

__all__ = ["Parsers", "Run", "decide_anew", "new_run", "outcomes", "reason_of"]

_PAUSE_SECONDS = 0.05


class Parsers:
    """Who parses a candidate: a given adapter, else the newest one where the policy says so, else as `parse` does.

    >>> from crystal_nb.policy import PINNED
    >>> Parsers(PINNED).of(Candidate("codex", "7", "/f", 1, "", "")).parser_version
    'codex@1'
    """

    def __init__(self, policy: Policy, adapters: Iterable[SourceAdapter] = ()) -> None:
        self.given = {a.name: a for a in importer.checked_adapters(adapters)}
        self._newest = policy.parsers == "newest"
        self.known = {**importer.unregistered(), **for_profile("careful" if self._newest else "chatcrystal")}

    def of(self, candidate: Candidate) -> SourceAdapter | None:
        """The adapter, or None when there is none."""
        if candidate.source in self.given:
            return self.given[candidate.source]
        listed_by = versions().get(candidate.parser_version or "")
        if not self._newest and listed_by is not None and listed_by.name == candidate.source:
            return listed_by
        return self.known.get(candidate.source)


@dataclass
class Run:
    """What holds for all candidates of a run."""

    policy: Policy
    states: States
    config: Config
    parsers: Parsers
    fingerprints: Fingerprints = field(default_factory=Fingerprints)


async def outcomes(
    run: Run, candidates: list[Candidate], write: Callable[[Outcome], Outcome]
) -> AsyncIterator[Outcome]:
    """Decide about one candidate after the other; ``write`` does what is to be done with each.

    A cancellation comes in between two candidates.
    """
    paused = time.monotonic()
    for candidate in candidates:
        outcome = write(await _decide(run, candidate))
        run.states.note(candidate, outcome.decision, run.policy)
        yield outcome
        if time.monotonic() - paused > _PAUSE_SECONDS:
            await asyncio.sleep(0)
            paused = time.monotonic()


async def _decide(run: Run, candidate: Candidate) -> Outcome:
    """Steps a to h up to the writing; whatever one candidate raises, the others go on."""
    decision = decide.nothing_known(candidate)
    try:
        adapter = run.parsers.of(candidate)
        version = None if adapter is None else adapter.parser_version or f"{adapter.name}@1"
        decision = _before_parse(run, candidate, version)
        if decision.action != "parse" or adapter is None:
            return Outcome(candidate, decision)
        parsed = await _parse(adapter, candidate, run.config)
        decided = _after_parse(run, candidate, decision, parsed, content_hash(parsed.conversation))
    except (Exception, SystemExit) as error:
        return Outcome(candidate, decide.failed(decision, reason_of(error)))
    return Outcome(candidate, decided, parsed)


def _before_parse(run: Run, candidate: Candidate, version: str | None) -> Decision:
    policy, stored = run.policy, run.states.find(candidate, run.policy)
    mark = run.fingerprints(candidate) if decide.wants_fingerprint(candidate, stored, policy) else None
    decision = decide.before_parse(candidate, stored, policy, parser_version=version, fingerprint=mark)
    if decision.action == "parse" and policy.fingerprint and mark is None:
        return decide.with_fingerprint(decision, run.fingerprints(candidate))
    return decision


def _after_parse(run: Run, candidate: Candidate, before: Decision, parsed: Parsed, digest: str) -> Decision:
    stored, conversation = run.states.find(candidate, run.policy), parsed.conversation
    known = None if stored is None or stored.is_short else stored
    owner = run.states.owner(candidate.source, decide.row_id(before, known, conversation, run.policy), run.policy)
    decided = decide.after_parse(before, stored, conversation, digest, run.policy, owner=owner)
    return decide.with_reading(decided, parsed.fates)


def decide_anew(run: Run, outcome: Outcome) -> Outcome:
    """The decision again, since another program changed the store after it was made."""
    d, parsed = outcome.decision, outcome.parsed
    if parsed is None or d.content_hash is None:
        return outcome
    before = _before_parse(run, outcome.candidate, d.parser_version)
    if before.action == "parse":
        before = _after_parse(run, outcome.candidate, before, parsed, d.content_hash)
    return Outcome(outcome.candidate, before, parsed)


async def _parse(adapter: SourceAdapter, candidate: Candidate, config: Config) -> Parsed:
    parsed = foreign.checked_parsed(adapter, await adapter.parse(candidate, config))
    if parsed.conversation.source != candidate.source:
        raise AdapterError(f"parse gave a conversation of {parsed.conversation.source!r}, not {candidate.source!r}")
    return parsed


def reason_of(error: BaseException) -> str:
    """What an error says, or at least its kind."""
    return foreign.error_text(error)


def new_run(policy: Policy, config: Config, adapters: Iterable[SourceAdapter] = ()) -> Run:
    """A run against an empty store."""
    return Run(policy, States(), config, Parsers(policy, adapters))
