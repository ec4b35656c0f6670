"""What happens to a candidate: pure decisions, nothing is read or written here.

Source: ``pinned-importer.md`` section 3, steps a to h, and section 10; `Policy` has the rules.
"""

from __future__ import annotations

from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.decisions import Decision, Step, StoredConversation
from crystal_nb.policy import Policy
from crystal_nb.records import Candidate, Conversation, Fate, counted

__all__ = [
    "after_parse",
    "before_parse",
    "failed",
    "nothing_known",
    "row_id",
    "wants_fingerprint",
    "with_fingerprint",
    "with_reading",
]


def wants_fingerprint(candidate: Candidate, stored: StoredConversation | None, policy: Policy) -> bool:
    """Tell whether `before_parse` will look at the fingerprint, which costs reading the file.

    >>> from crystal_nb.policy import CAREFUL
    >>> wants_fingerprint(Candidate("codex", "7", "/f", 1, "t", ""), None, CAREFUL)
    False
    """
    if stored is None or not (policy.fingerprint and policy.trust_size_and_time):
        return False
    return (stored.file_size, stored.file_mtime) == (candidate.file_size, candidate.file_mtime)


def before_parse(
    candidate: Candidate,
    stored: StoredConversation | None,
    policy: Policy,
    *,
    parser_version: str | None,
    fingerprint: str | None = None,
) -> Decision:
    """Decide what can be decided without opening the file, its fingerprint aside.

    Parameters
    ----------
    candidate
        The candidate.
    stored
        The row that the policy's lookup finds for it.
    policy
        The rules.
    parser_version
        Of the registered adapter; None when there is none of that name.
    fingerprint
        SHA-256 of the file's bytes, where `wants_fingerprint` says so.

    Returns
    -------
    Decision
        ``skip``, ``skip-short``, ``error``, or ``parse`` to go on with `after_parse`.

    Examples
    --------
    >>> from crystal_nb.policy import PINNED
    >>> known = StoredConversation("codex", "7", file_size=1, file_mtime="t")
    >>> before_parse(Candidate("codex", "7", "/f", 1, "t", ""), known, PINNED, parser_version="codex@1").action
    'skip'
    """
    steps = [Step("stored", stored.id if stored else None, ecma.to_text(candidate.id), stored is not None)]
    if stored is not None and policy.trust_size_and_time:
        unchanged = _look_unchanged(steps, candidate, stored, policy, parser_version, fingerprint)
        if unchanged and stored.is_short:
            return _decision(candidate, "skip-short", "It had too few messages and looks unchanged.", steps)
        if unchanged:
            return _decision(candidate, "skip", "It looks unchanged, so it is not parsed.", steps)
    steps.append(Step("adapter registered", None, parser_version, parser_version is not None))
    if parser_version is None:
        return _decision(candidate, "error", f"No adapter named {candidate.source} is registered.", steps)
    return _decision(candidate, "parse", "It has to be parsed.", steps, parser_version, fingerprint)


def _look_unchanged(
    steps: list[Step],
    candidate: Candidate,
    stored: StoredConversation,
    policy: Policy,
    parser_version: str | None,
    fingerprint: str | None,
) -> bool:
    """Compare in turn, up to the first difference."""
    steps.append(_compare("same size", stored.file_size, candidate.file_size))
    if steps[-1].answer:
        steps.append(_compare("same time", stored.file_mtime, candidate.file_mtime))
    if steps[-1].answer and policy.fingerprint:
        known = stored.fingerprint is not None
        steps.append(_compare("same bytes" if known else "bytes known", stored.fingerprint, fingerprint))
    if steps[-1].answer and policy.reparse_new_parser:
        steps.append(_compare("same parser", stored.parser_version, parser_version))
    return steps[-1].answer


def _compare(name: str, before: object, now: object) -> Step:
    """What the store does not know differs."""
    return Step(name, before, now, before is not None and before == now)


def after_parse(
    before: Decision,
    stored: StoredConversation | None,
    conversation: Conversation,
    content_hash: str,
    policy: Policy,
    *,
    owner: StoredConversation | None = None,
) -> Decision:
    """Decide with the parse's result.

    Parameters
    ----------
    before
        The decision ``parse`` of `before_parse`.
    stored
        The row that the lookup found.
    conversation, content_hash
        What the parse gave.
    policy
        The rules.
    owner
        The row that already has the key under which a new conversation would be stored, if any.

    Examples
    --------
    >>> from crystal_nb.policy import PINNED
    >>> candidate = Candidate("codex", "7", "/f", 1, "t", "")
    >>> start = before_parse(candidate, None, PINNED, parser_version="codex@1")
    >>> after_parse(start, None, Conversation("codex", "7"), "00", PINNED).action
    'skip-short'
    """
    known = stored if stored is not None and not stored.is_short else None
    count = len(conversation.messages)
    before = replace(
        before, id=row_id(before, known, conversation, policy), content_hash=content_hash, message_count=count
    )
    enough = Step("enough messages", policy.min_messages, count, count >= policy.min_messages)
    if not enough.answer:
        reason = f"It has {counted(count, 'message')}; {policy.min_messages} are needed."
        return _with(before, enough, "skip-short", reason)
    if known is not None:
        same = _compare("same hash", known.content_hash, content_hash)
        if same.answer:
            return _with(before, enough, "metadata-update", "The messages are what is stored; its data is noted.", same)
        return _with(before, enough, "replace", "The messages differ from what is stored.", same)
    free = Step("id free", owner and owner.id, before.id, owner is None)
    if owner is not None:
        reason = f"The id {before.id} is taken by a conversation of {owner.source} from candidate {owner.candidate_id}."
        return _with(before, enough, "error", reason, free)
    return _with(before, enough, "insert", "It is new.", free)


def row_id(before: Decision, stored: StoredConversation | None, conversation: Conversation, policy: Policy) -> str:
    """Id of the row that a decision writes.

    >>> from crystal_nb.policy import CAREFUL, PINNED
    >>> start, parsed = Decision("codex", "file", "parse", ""), Conversation("codex", "inner")
    >>> row_id(start, None, parsed, PINNED), row_id(start, None, parsed, CAREFUL)
    ('inner', 'file')
    """
    if stored is not None and policy.lookup == "source_conversation_id":
        return stored.id
    if stored is None and policy.row_id == "candidate-id":
        return before.candidate_id
    return _key(conversation.id)


def with_fingerprint(decision: Decision, fingerprint: str | None) -> Decision:
    """The decision with the fingerprint that the file had before its parse."""
    return replace(decision, fingerprint=fingerprint)


_DAMAGE = frozenset({"line", "session", "zstd"})
"""Kinds of records that could not be read as what they should be."""


def with_reading(decision: Decision, fates: tuple[Fate, ...]) -> Decision:
    """The decision with a note whether everything could be read, without which too few messages prove nothing."""
    broken = any(f.status == "dropped" and f.kind in _DAMAGE and f.reason != "blank line" for f in fates)
    return replace(decision, is_clean=False) if broken else decision


def nothing_known(candidate: Candidate) -> Decision:
    """Where deciding begins."""
    return Decision(_key(candidate.source), _key(candidate.id), "parse", "Nothing has been looked at.")


def _key(value: object) -> str:
    return ecma.key_text(ecma.to_text(value))


def failed(decision: Decision, reason: str) -> Decision:
    """The decision turned into an error, as when its parse or its writing failed.

    >>> failed(Decision("codex", "7", "parse", "…"), "no such file").action
    'error'
    """
    return replace(decision, action="error", reason=reason)


def _decision(
    candidate: Candidate,
    action: str,
    reason: str,
    steps: list[Step],
    parser_version: str | None = None,
    fingerprint: str | None = None,
) -> Decision:
    return Decision(
        candidate.source,
        _key(candidate.id),
        action,  # type: ignore[arg-type]
        reason,
        tuple(steps),
        parser_version=parser_version,
        fingerprint=fingerprint,
    )


def _with(before: Decision, first: Step, action: str, reason: str, *more: Step) -> Decision:
    return replace(before, action=action, reason=reason, steps=(*before.steps, first, *more))
