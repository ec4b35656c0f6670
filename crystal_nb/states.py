"""What a store knows of its conversations, looked up without asking it again.

Source: ``pinned-importer.md`` section 3 a; a run keeps it up to date with its own decisions.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.decisions import Decision, StoredConversation
from crystal_nb.identity import namespace
from crystal_nb.policy import Policy
from crystal_nb.records import Candidate

__all__ = ["States"]

_Key = tuple[str, str]


class States:
    """Stored conversations by id and by candidate.

    Parameters
    ----------
    rows
        What the store has, and what it remembers of candidates that are too short to store.

    >>> from crystal_nb.policy import PINNED
    >>> states = States([StoredConversation("codex", "7", file_size=1)])
    >>> states.find(Candidate("codex", "7", "/f", 1, "", ""), PINNED).file_size
    1
    """

    def __init__(self, rows: Iterable[StoredConversation] = ()) -> None:
        self._by_key: dict[_Key, StoredConversation] = {}
        self._by_candidate: dict[_Key, StoredConversation] = {}
        self._by_id: dict[str, StoredConversation] = {}
        self._short: dict[_Key, StoredConversation] = {}
        for row in rows:
            self._put(row)

    def __len__(self) -> int:
        return len(self._by_key)

    def _put(self, row: StoredConversation) -> None:
        if row.is_short:
            self._short[row.source, row.id] = row
            return
        self._by_key[row.source, row.id] = row
        self._by_id[row.id] = row
        if row.candidate_id is not None:
            self._by_candidate[row.source, row.candidate_id] = row

    def find(self, candidate: Candidate, policy: Policy) -> StoredConversation | None:
        """The row that the policy's lookup finds for a candidate, or what is remembered of a short one."""
        key = (candidate.source, ecma.key_text(ecma.to_text(candidate.id)))
        row = self._by_key.get(key)
        if policy.lookup == "source_conversation_id":
            own = row if row is not None and row.candidate_id is None else None
            row = self._by_candidate.get(key, own)
        return self._short.get(key) if row is None and policy.remember_short else row

    def find_remote(self, source: str, given: str) -> StoredConversation | None:
        """The row of a remote item: by the id it came from, by its own id, by its namespaced id."""
        ids = [ecma.key_text(id) for id in (given, namespace(source, given))]
        by_own = (self._by_key.get((source, id)) for id in ids)
        return next(filter(None, (self._by_candidate.get((source, ids[0])), *by_own)), None)

    def owner(self, source: str, id: str, policy: Policy) -> StoredConversation | None:
        """The row that has the key of a new conversation already."""
        return self._by_id.get(id) if policy.conversation_key == "id" else self._by_key.get((source, id))

    def note(self, candidate: Candidate, decision: Decision, policy: Policy) -> None:
        """Take in what a decision changed in the store."""
        if policy.remember_short and decision.is_short_reading:
            self._put(_state(candidate, decision, decision.candidate_id, is_short=True))
        elif decision.id is not None and self._is_written(decision):
            self._put(_state(candidate, decision, decision.id))
            self._short.pop((decision.source, decision.candidate_id), None)

    def _is_written(self, decision: Decision) -> bool:
        """Tell whether a row changed: by the parsed id, an update may meet none."""
        there = (decision.source, decision.id) in self._by_key
        return decision.action == "insert" or (decision.action in ("replace", "metadata-update") and there)


def _state(candidate: Candidate, decision: Decision, id: str, *, is_short: bool = False) -> StoredConversation:
    row = StoredConversation(
        source=decision.source,
        id=id,
        candidate_id=decision.candidate_id,
        file_size=candidate.file_size,
        file_mtime=candidate.file_mtime,
        content_hash=decision.content_hash,
        parser_version=decision.parser_version,
        fingerprint=decision.fingerprint,
    )
    return replace(row, is_short=True) if is_short else row
