"""Two parsers compared, message by message."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import messages

import crystal_nb as cnb
from crystal_nb.adapters.base import Adapter, Parsed, Rules
from crystal_nb.comparison import Alignment, align


@given(st.lists(messages, max_size=6))
def test_the_same_messages_are_the_same(found):
    assert align(found, found) == Alignment(len(found), 0, 0, 0, 0)


@given(st.lists(messages, max_size=6), st.lists(messages, max_size=6))
def test_every_message_is_counted_once_on_each_side(a, b):
    found = align(a, b)
    assert found.same + found.moved + found.changed + found.removed == len(a)
    assert found.same + found.moved + found.changed + found.added == len(b)
    assert min(found.same, found.moved, found.changed, found.removed, found.added) >= 0


@given(st.lists(messages, max_size=6, unique_by=lambda m: m.content))
def test_a_reversal_keeps_one_in_place(found):
    back = align(found, found[::-1])
    assert (back.same, back.moved) == (min(1, len(found)), max(0, len(found) - 1))


def test_an_equal_id_with_other_content_has_changed():
    a = [cnb.Message("user", "one", id="1"), cnb.Message("user", "two", id="2")]
    b = [cnb.Message("user", "one!", id="1"), cnb.Message("user", "three", id="3")]
    assert align(a, b) == Alignment(same=0, moved=0, changed=1, removed=1, added=1)


def without_first(adapter: Adapter) -> Adapter:
    def read(candidate, rules, config):
        parsed = adapter.read(candidate, adapter.rules, config)
        conversation = parsed.conversation
        return Parsed(replace(conversation, messages=conversation.messages[1:]), parsed.fates)

    return dataclasses.replace(adapter, read=read, rules=Rules("claude-code@9"))


def test_parsers_are_compared_per_candidate():
    config = cnb.samples.config()
    cands = cnb.scan(config=config)
    short = without_first(cnb.get_adapter("claude-code"))
    found = cnb.compare_parsers(cands, "claude-code@1", short, config=config)
    assert set(found["source"]) == {"claude-code"}
    assert found["removed"].to_list() == [1, 1]
    assert (found["messages_a"] - found["messages_b"]).to_list() == [1, 1]
    assert not found["equal"].any()


def test_a_failing_parse_is_a_row(tmp_path):
    def read(candidate, rules, config):
        raise ValueError("told to fail")

    failing = dataclasses.replace(cnb.get_adapter("codex"), read=read)
    config = cnb.samples.config()
    found = cnb.compare_parsers(cnb.scan("codex", config=config), "codex@1", failing, config=config)
    assert found["equal"].null_count() == found.height
    assert all("told to fail" in error for error in found["error_b"])


def test_parsers_of_two_sources_are_refused():
    with pytest.raises(cnb.ConfigError, match="of one source"):
        cnb.compare_parsers([], "codex@1", "cursor@1")
    with pytest.raises(cnb.UnknownAdapterError, match="codex@1"):
        cnb.compare_parsers([], "codex@99", "codex@1")
