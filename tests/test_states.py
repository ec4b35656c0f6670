"""Finding what is stored, and keeping up with a run's own decisions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crystal_nb.decisions import Decision, StoredConversation
from crystal_nb.policy import CAREFUL, PINNED
from crystal_nb.records import Candidate
from crystal_nb.states import States


def candidate(id: str, source: str = "codex", size: int = 1) -> Candidate:
    return Candidate(source, id, "/f", size, "t", "")


def decision(action: str, id: str | None, candidate_id: str = "a", count: int | None = 2) -> Decision:
    return Decision("codex", candidate_id, action, "", id=id, content_hash="h", message_count=count)


@pytest.mark.parametrize("policy", [PINNED, CAREFUL])
def test_a_row_is_found_by_source_and_id(policy):
    row = StoredConversation("codex", "a", "a")
    states = States([row, StoredConversation("copilot", "b", "b")])
    assert [states.find(candidate(id), policy) for id in ("a", "b", "c")] == [row, None, None]
    assert len(states) == 2


def test_careful_finds_the_row_that_a_candidate_became():
    row = StoredConversation("codex", "codex:a", "a")
    states = States([row])
    assert (states.find(candidate("a"), CAREFUL), states.find(candidate("a"), PINNED)) == (row, None)


def test_careful_finds_a_row_by_its_own_id_only_where_nothing_says_what_it_came_from():
    old, other = StoredConversation("codex", "a"), StoredConversation("codex", "b", "c")
    states = States([old, other])
    assert (states.find(candidate("a"), CAREFUL), states.find(candidate("b"), CAREFUL)) == (old, None)
    assert states.find(candidate("b"), PINNED) == other


def test_what_was_too_short_is_found_by_a_policy_that_remembers_it():
    short = StoredConversation("codex", "a", "a", is_short=True)
    assert (States([short]).find(candidate("a"), CAREFUL), States([short]).find(candidate("a"), PINNED)) == (
        short,
        None,
    )
    row = StoredConversation("codex", "a", "a")
    assert States([row, short]).find(candidate("a"), CAREFUL) == row
    assert len(States([short])) == 0


def test_an_id_is_taken_by_any_source_or_by_the_same_one():
    row = StoredConversation("copilot", "a", "a")
    states = States([row])
    assert (states.owner("codex", "a", PINNED), states.owner("codex", "a", CAREFUL)) == (row, None)
    assert states.owner("copilot", "a", CAREFUL) == row


def test_a_remote_item_prefers_what_came_from_its_id_then_that_id_then_the_namespaced_one():
    rows = [
        StoredConversation("codex", "x", "a"),
        StoredConversation("codex", "a"),
        StoredConversation("codex", "codex:a"),
    ]
    assert [States(rows[n:]).find_remote("codex", "a") for n in range(3)] == rows
    assert States(rows).find_remote("copilot", "a") is None


def test_ids_of_other_types_are_found_as_the_text_that_is_stored():
    states = States([StoredConversation("codex", "7", "7")])
    assert states.find(Candidate("codex", 7, "/f", 1, "t", ""), PINNED) is not None


@pytest.mark.parametrize("policy", [PINNED, CAREFUL])
def test_an_insert_is_found_afterwards(policy):
    states = States()
    states.note(candidate("a", size=5), decision("insert", "a"), policy)
    found = states.find(candidate("a"), policy)
    assert (found.file_size, found.content_hash, found.candidate_id) == (5, "h", "a")


@given(st.sampled_from(["skip", "error", "replace", "metadata-update"]), st.sampled_from(["b", None]))
def test_what_writes_no_row_changes_nothing(action, id):
    states = States([StoredConversation("codex", "a", "a", 1)])
    states.note(candidate("a", size=5), decision(action, id), PINNED)
    assert states.find(candidate("a"), PINNED).file_size == 1
    assert states.find(candidate("b"), PINNED) is None


def test_a_short_reading_is_noted_until_it_has_grown():
    states = States()
    states.note(candidate("a"), decision("skip-short", "a", count=1), PINNED)
    assert states.find(candidate("a"), CAREFUL) is None
    states.note(candidate("a"), decision("skip-short", "a", count=1), CAREFUL)
    assert states.find(candidate("a"), CAREFUL).is_short
    states.note(candidate("a"), decision("insert", "a"), CAREFUL)
    assert not states.find(candidate("a"), CAREFUL).is_short
