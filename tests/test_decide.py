"""Decisions about candidates: which answers lead to which action."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crystal_nb import decide
from crystal_nb.decisions import Decision, StoredConversation
from crystal_nb.policy import CAREFUL, PINNED, Policy
from crystal_nb.records import Candidate, Conversation, Fate, Message

few = st.sampled_from(["a", "b"])
maybe = st.none() | few
sizes = st.none() | st.integers(0, 1)
candidates = st.builds(
    Candidate, st.just("codex"), few, st.just("/f"), st.integers(0, 1), st.sampled_from(["t1", "t2"]), st.just("")
)
stored = st.builds(
    StoredConversation, st.just("codex"), few, maybe, sizes, st.sampled_from([None, "t1", "t2"]), maybe, maybe, maybe
)
policies = st.builds(
    Policy,
    name=st.just("any"),
    trust_size_and_time=st.booleans(),
    fingerprint=st.booleans(),
    reparse_new_parser=st.booleans(),
    min_messages=st.integers(0, 3),
    remember_short=st.booleans(),
    lookup=st.sampled_from(["id", "source_conversation_id"]),
    row_id=st.sampled_from(["parsed-id", "candidate-id"]),
)
conversations = st.builds(
    Conversation, st.just("codex"), few, st.lists(st.just(Message("user", "x")), max_size=4).map(tuple)
)
AFTER_PARSE = {
    ("enough messages", False): "skip-short",
    ("same hash", True): "metadata-update",
    ("same hash", False): "replace",
    ("id free", True): "insert",
    ("id free", False): "error",
}


def start(
    candidate: Candidate, known: StoredConversation | None, policy: Policy, version: str | None = "v"
) -> Decision:
    return decide.before_parse(candidate, known, policy, parser_version=version, fingerprint="a")


def last(decision: Decision) -> tuple[str, bool]:
    return decision.steps[-1].name, decision.steps[-1].answer


@given(candidates, st.none() | stored, maybe, maybe)
def test_pinned_skips_what_is_stored_with_equal_size_and_time_and_nothing_else(candidate, known, version, mark):
    decision = decide.before_parse(candidate, known, PINNED, parser_version=version, fingerprint=mark)
    equal = known is not None and (known.file_size, known.file_mtime) == (candidate.file_size, candidate.file_mtime)
    assert (decision.action == "skip") == equal


@given(candidates, stored, maybe, maybe)
def test_careful_skips_only_equal_bytes_read_by_the_same_parser(candidate, known, version, mark):
    decision = decide.before_parse(candidate, known, CAREFUL, parser_version=version, fingerprint=mark)
    before = (known.file_size, known.file_mtime, known.fingerprint, known.parser_version)
    now = (candidate.file_size, candidate.file_mtime, mark, version)
    assert (decision.action == "skip") == (before == now and None not in now)


@given(candidates, st.none() | stored, policies, maybe)
def test_the_last_answer_before_the_parse_says_the_action(candidate, known, policy, version):
    decision = start(candidate, known, policy, version)
    asked, answer = last(decision)
    if asked == "adapter registered":
        assert decision.action == ("parse" if answer else "error")
    else:
        assert (decision.action, answer) == ("skip", True)


@given(candidates, st.none() | stored, policies, conversations, st.none() | stored, few)
def test_the_last_answer_after_the_parse_says_the_action(candidate, known, policy, conversation, owner, digest):
    before = replace(start(candidate, None, policy), steps=())
    decision = decide.after_parse(before, known, conversation, digest, policy, owner=owner)
    assert decision.action == AFTER_PARSE[last(decision)]
    assert [step.answer for step in decision.steps[:-1]] == [True] * (len(decision.steps) - 1)
    assert (decision.content_hash, decision.message_count) == (digest, len(conversation.messages))


@given(candidates, st.none() | stored, policies)
def test_a_file_is_read_for_its_fingerprint_only_where_size_and_time_say_nothing(candidate, known, policy):
    wanted = decide.wants_fingerprint(candidate, known, policy)
    asked = [step.name for step in start(candidate, known, policy).steps]
    assert wanted == bool({"same bytes", "bytes known"} & set(asked))


@given(candidates, policies.filter(lambda p: p.min_messages <= 2), few)
def test_a_stored_hash_of_none_never_equals(candidate, policy, digest):
    known = StoredConversation("codex", candidate.id, content_hash=None)
    conversation = Conversation("codex", candidate.id, (Message("user", "x"),) * 2)
    assert decide.after_parse(start(candidate, None, policy), known, conversation, digest, policy).action == "replace"


@pytest.mark.parametrize("policy", [PINNED, CAREFUL])
def test_too_few_messages_are_not_stored_whatever_is(policy):
    candidate = Candidate("codex", "a", "/f", 1, "t1", "")
    conversation = Conversation("codex", "a", (Message("user", "x"),))
    for known in (None, StoredConversation("codex", "a", content_hash="a")):
        decision = decide.after_parse(start(candidate, known, policy), known, conversation, "a", policy)
        assert (decision.action, decision.reason) == ("skip-short", "It has 1 message; 2 are needed.")


@pytest.mark.parametrize(
    ("reason", "clean"), [("invalid JSON", False), ("not an object", False), ("NUL run", False), ("blank line", True)]
)
def test_only_lines_with_something_in_them_make_a_reading_doubtful(reason, clean):
    before = Decision("codex", "a", "skip-short", "…")
    assert decide.with_reading(before, (Fate("dropped", "line", reason=reason),)).is_clean is clean


def test_what_was_too_short_and_looks_unchanged_stays_out_and_is_new_when_it_grew():
    candidate = Candidate("codex", "a", "/f", 1, "t1", "")
    short = StoredConversation("codex", "a", "a", 1, "t1", None, "v", "a", True)
    assert start(candidate, short, CAREFUL).action == "skip-short"
    grown = Conversation("codex", "a", (Message("user", "x"),) * 2)
    before = start(replace(candidate, file_size=2), short, CAREFUL)
    assert decide.after_parse(before, short, grown, "a", CAREFUL).action == "insert"


def test_the_row_is_that_of_the_parsed_id_or_the_one_that_the_candidate_became():
    before, parsed = Decision("codex", "file", "parse", ""), Conversation("codex", "inner")
    known = StoredConversation("codex", "row")
    assert [decide.row_id(before, row, parsed, PINNED) for row in (None, known)] == ["inner", "inner"]
    assert [decide.row_id(before, row, parsed, CAREFUL) for row in (None, known)] == ["file", "row"]


def test_an_unchanged_candidate_is_skipped_by_pinned_even_if_nobody_could_parse_it():
    candidate, known = Candidate("codex", "a", "/f", 1, "t1", ""), StoredConversation("codex", "a", "a", 1, "t1")
    assert start(candidate, known, PINNED, None).action == "skip"
    assert start(candidate, None, PINNED, None).action == "error"


def test_a_failure_keeps_the_path_that_led_there():
    decision = start(Candidate("codex", "a", "/f", 1, "t1", ""), None, PINNED)
    failed = decide.failed(decision, "no such file")
    assert (failed.action, failed.reason, failed.steps) == ("error", "no such file", decision.steps)
