"""What a remote store makes of a payload: each item inserted, replaced, noted, or refused.

Source: ``pinned-importer.md`` section 6, "Ingest".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.decisions import Decision, Step, StoredConversation
from crystal_nb.errors import RemotePayloadError, StoreError
from crystal_nb.policy import Policy
from crystal_nb.records import Candidate, Conversation, Message
from crystal_nb.remote_check import RemoteItem, read_item, read_request
from crystal_nb.report import ImportReport, Outcome
from crystal_nb.states import States
from crystal_nb.store import Store
from crystal_nb.store_writes import Applied

__all__ = ["ingest"]


def ingest(
    store: Store, payload: bytes | bytearray | str | Mapping[str, Any], *, profile: str | Policy | None = None
) -> ImportReport:
    """Take a remote payload into a store; an item that fails is an error, the others go on.

    Parameters
    ----------
    store
        A store that `open_store` made with the same profile.
    payload
        A request ``{version: 1, items: […]}``, as bytes, text or value.
    profile
        ``chatcrystal``, ``careful`` or a `Policy`; default: what the store was made for.

    Raises
    ------
    RemotePayloadError
        If the request fails as a whole.
    StoreError
        If the store is a copy to look at or can't be saved.

    Examples
    --------
    >>> import crystal_nb as cnb, tempfile
    >>> items = cnb.build_remote(config=cnb.samples.config()).batches[0]
    >>> with tempfile.TemporaryDirectory() as folder, cnb.open_store(f"{folder}/remote.db") as store:
    ...     cnb.ingest(store, items).errors
    0
    """
    policy = store.policy(profile)
    store.check_policy(policy)
    items = read_request(payload)
    with store.batch(policy):
        states = store.states()
        outcomes = [_ingest_one(store, states, policy, item, f"$.items[{n}]") for n, item in enumerate(items)]
    return ImportReport(policy.name, tuple(outcomes), title="Ingest")


def _ingest_one(store: Store, states: States, policy: Policy, raw: Any, at: str) -> Outcome:
    try:
        item = read_item(raw, at=at)
    except RemotePayloadError as error:
        return Outcome(*_refused(raw, str(error)))
    stored = states.find_remote(item.candidate.source, item.source_conversation_id)
    decision = _decide(item, stored, states, policy)
    candidate = _storable(item.candidate)
    conversation = _under(item.conversation, decision.id or "")
    try:
        applied = store.apply(decision, candidate, conversation, policy)
    except Exception as error:
        if isinstance(error, StoreError) and (error.is_locked or store.batch_lost):
            raise
        decision, applied = replace(decision, action="error", reason=str(error)), Applied()
    states.note(candidate, decision, policy)
    return Outcome(candidate, decision, None, applied)


def _refused(raw: Any, reason: str) -> tuple[Candidate, Decision]:
    """Names as far as a refused item has any."""
    members = raw if isinstance(raw, Mapping) else {}
    source, id = (v if isinstance(v, str) else "" for v in map(members.get, ("source", "sourceConversationId")))
    return Candidate(source, id, "", 0, "", ""), Decision(source, id, "error", reason)


def _decide(item: RemoteItem, stored: StoredConversation | None, states: States, policy: Policy) -> Decision:
    found = Step("stored", stored.id if stored else None, item.source_conversation_id, stored is not None)
    start = Decision(
        source=item.candidate.source,
        candidate_id=ecma.key_text(item.source_conversation_id),
        action="parse",
        reason="",
        steps=(found,),
        id=stored.id if stored else ecma.key_text(str(item.conversation.id)),
        content_hash=item.content_hash,
        parser_version=item.parser_version if isinstance(item.parser_version, str) else None,
        message_count=len(item.conversation.messages),
    )
    if stored is not None:
        same = Step("same hash", stored.content_hash, item.content_hash, stored.content_hash == item.content_hash)
        action, reason = ("metadata-update", "The messages are what is stored; its data is noted.")
        if not same.answer:
            action, reason = ("replace", "The messages differ from what is stored.")
        return replace(start, action=action, reason=reason, steps=(found, same))
    owner = states.owner(start.source, start.id or "", policy)
    free = Step("id free", owner and owner.id, start.id, owner is None)
    if owner is not None:
        return replace(start, action="error", reason=f"The id {start.id} is taken.", steps=(found, free))
    return replace(start, action="insert", reason="It is new.", steps=(found, free))


def _storable(candidate: Candidate) -> Candidate:
    """A candidate whose values, which no rule checks, fit the columns."""
    size, texts = candidate.file_size, (candidate.file_path, candidate.file_mtime, candidate.project_dir)
    path, mtime, project = (t if isinstance(t, str) else "" for t in texts)
    whole = isinstance(size, int) and not isinstance(size, bool) and abs(size) < 2**63
    return replace(candidate, file_path=path, file_size=size if whole else 0, file_mtime=mtime, project_dir=project)


def _under(conversation: Conversation, row_id: str) -> Conversation:
    """The conversation with message ids that begin with the row's id."""
    old, new = f"{conversation.id}:", f"{row_id}:"
    if old == new:
        return conversation
    return replace(conversation, messages=tuple(_renamed(m, old, new) for m in conversation.messages))


def _renamed(message: Message, old: str, new: str) -> Message:
    def moved(id: Any) -> Any:
        return new + id.removeprefix(old) if isinstance(id, str) and id.startswith(old) else id

    return replace(message, id=moved(message.id), parent_uuid=moved(message.parent_uuid))
