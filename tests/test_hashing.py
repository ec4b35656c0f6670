from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import conversations, json_values, maybe_missing, messages, texts, times

import crystal_nb as cnb
from crystal_nb import UNSET, Conversation, Message, _hasher, ecma
from crystal_nb.hashing import ablate

EXCLUDED_OF_CONVERSATION = {
    "id": texts,
    "slug": st.none() | texts,
    "project_dir": texts,
    "project_name": texts,
    "cwd": st.none() | texts,
    "git_branch": st.none() | texts,
    "first_message_at": times,
    "last_message_at": times,
}
EXCLUDED_OF_MESSAGE = {
    "id": texts,
    "parent_uuid": st.none() | texts,
    "timestamp": times,
    "timestamp_from_clock": st.booleans(),
}
INCLUDED = {
    "type": texts,
    "role": maybe_missing | json_values,
    "content": texts,
    "has_tool_use": st.booleans(),
    "has_code": st.booleans(),
    "thinking": maybe_missing | json_values,
}
odd_messages = st.builds(Message, type=texts, content=texts, role=json_values, thinking=json_values)
some_conversation = conversations.filter(lambda c: c.messages)


@given(conversations)
def test_the_hash_is_sha256_of_the_canonical_text(conversation):
    text = cnb.canonical_json(conversation)
    assert cnb.content_hash(conversation) == hashlib.sha256(text).hexdigest()


def test_long_conversations_have_the_same_text_as_short_ones():
    messages = tuple(Message("user", f"text {i} é", role="user", thinking=None) for i in range(3000))
    conversation = Conversation("codex", "x", messages)
    assert cnb.canonical_json(conversation).decode() == ecma.json_text(cnb.hash_input(conversation))


@given(st.builds(Conversation, source=texts, id=texts, messages=st.lists(odd_messages, max_size=3).map(tuple)))
def test_roles_and_thoughts_of_any_type_are_written_as_node_does(node, conversation):
    test_the_canonical_text_is_node_s.hypothesis.inner_test(node, conversation)


@given(conversations)
def test_the_canonical_text_is_node_s(node, conversation):
    value = cnb.hash_input(conversation)
    value["messages"] = [{k: v for k, v in m.items() if v is not UNSET} for m in value["messages"]]
    assert cnb.canonical_json(conversation).decode() == node("stringify", value)


@given(conversations, st.sampled_from(sorted(EXCLUDED_OF_CONVERSATION)), st.data())
def test_fields_of_the_conversation_outside_the_hash_leave_it_alone(conversation, field, data):
    changed = replace(conversation, **{field: data.draw(EXCLUDED_OF_CONVERSATION[field])})
    assert cnb.content_hash(changed) == cnb.content_hash(conversation)


@given(some_conversation, st.sampled_from(sorted(EXCLUDED_OF_MESSAGE)), st.data())
def test_fields_of_a_message_outside_the_hash_leave_it_alone(conversation, field, data):
    changed = with_message(conversation, data, **{field: data.draw(EXCLUDED_OF_MESSAGE[field])})
    assert cnb.content_hash(changed) == cnb.content_hash(conversation)


@given(some_conversation, st.sampled_from(sorted(INCLUDED)), st.data())
def test_each_field_in_the_hash_changes_it(conversation, field, data):
    value = data.draw(INCLUDED[field])
    index = data.draw(st.integers(0, len(conversation.messages) - 1))
    old = getattr(conversation.messages[index], field)
    assume(ecma.json_text({"v": old}) != ecma.json_text({"v": value}))
    changed = with_message(conversation, data, index=index, **{field: value})
    assert cnb.content_hash(changed) != cnb.content_hash(conversation)


@given(conversations)
def test_the_source_is_in_the_hash(conversation):
    assert cnb.content_hash(replace(conversation, source="other")) != cnb.content_hash(conversation)


@given(some_conversation, st.permutations(range(5)))
def test_the_order_is_in_the_hash(conversation, order):
    moved = tuple(conversation.messages[i] for i in order if i < len(conversation.messages))
    same = cnb.canonical_json(replace(conversation, messages=moved)) == cnb.canonical_json(conversation)
    texts_now = [hashed(m) for m in moved]
    assert same == (texts_now == [hashed(m) for m in conversation.messages])


def hashed(message: Message) -> bytes:
    return cnb.canonical_json(Conversation("s", "x", (message,)))


@given(some_conversation, messages)
def test_a_message_more_or_less_changes_the_hash(conversation, message):
    longer = replace(conversation, messages=(*conversation.messages, message))
    shorter = replace(conversation, messages=conversation.messages[:-1])
    assert len({cnb.content_hash(c) for c in (conversation, longer, shorter)}) == 3


def with_message(conversation: Conversation, data: st.DataObject, index: int | None = None, **fields) -> Conversation:
    index = data.draw(st.integers(0, len(conversation.messages) - 1)) if index is None else index
    listed = list(conversation.messages)
    listed[index] = replace(listed[index], **fields)
    return replace(conversation, messages=tuple(listed))


PAIRS = {
    "source": (Conversation("a", 1, (Message("user", "x"),)), Conversation("b", 1, (Message("user", "x"),))),
    "index": (
        Conversation("a", 1, (Message("user", "x"), Message("system", "y"))),
        Conversation("a", 1, (Message("system", "y"), Message("user", "x"))),
    ),
    "type": (Conversation("a", 1, (Message("user", "x"),)), Conversation("a", 1, (Message("system", "x"),))),
    "role": (
        Conversation("a", 1, (Message("user", "x", role="user"),)),
        Conversation("a", 1, (Message("user", "x", role=UNSET),)),
    ),
    "content": (Conversation("a", 1, (Message("user", "x"),)), Conversation("a", 1, (Message("user", "y"),))),
    "hasToolUse": (
        Conversation("a", 1, (Message("user", "x"),)),
        Conversation("a", 1, (Message("user", "x", has_tool_use=True),)),
    ),
    "hasCode": (
        Conversation("a", 1, (Message("user", "x"),)),
        Conversation("a", 1, (Message("user", "x", has_code=True),)),
    ),
    "thinking": (
        Conversation("a", 1, (Message("user", "x", thinking=UNSET),)),
        Conversation("a", 1, (Message("user", "x", thinking=None),)),
    ),
}


@pytest.mark.parametrize("field", cnb.HASH_FIELDS)
def test_each_field_is_necessary(field):
    """A canonical form that drops the field makes a pair collide that the real one tells apart."""
    one, two = PAIRS[field]
    assert cnb.content_hash(one) != cnb.content_hash(two)
    assert cnb.canonical_json(one, without=[field]) == cnb.canonical_json(two, without=[field])
    others = [f for f in cnb.HASH_FIELDS if f != field]
    assert all(cnb.canonical_json(one, without=[f]) != cnb.canonical_json(two, without=[f]) for f in others)


def test_ablation_finds_the_pair_that_only_a_field_tells_apart():
    one, two = PAIRS["thinking"]
    found = {row.field: row for row in ablate([one, replace(two, id=2)])}
    assert found["thinking"].groups == 1
    assert found["thinking"].example == (("a", 1), ("a", 2))
    assert sum(row.groups for row in found.values()) == 1


def test_an_unknown_field_is_refused_with_the_allowed_ones():
    with pytest.raises(cnb.ConfigError, match=r"\['id'\]; allowed: source, index"):
        cnb.canonical_json(PAIRS["type"][0], without=["id"])


@given(conversations, conversations)
def test_a_difference_is_explained_where_it_is(a, b):
    found = cnb.explain_difference(a, b)
    text_a, text_b = cnb.canonical_json(a), cnb.canonical_json(b)
    assert found.equal == (text_a == text_b) == (found.hash_a == found.hash_b)
    if not found.equal:
        assert text_a[: found.byte] == text_b[: found.byte]
        assert text_a[found.byte : found.byte + 1] != text_b[found.byte : found.byte + 1]
        assert found.field is not None


@given(st.lists(conversations, max_size=12), st.sampled_from([0, 1 << 16]))
def test_hashes_taken_in_the_helper_thread_are_the_same(listed, long_text):
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as helper:
        patch.setattr(_hasher, "_LONG_TEXT", long_text)
        hasher = _hasher.Hasher(helper)
        started = [hasher.start(c) for c in listed]
        assert [digest() for digest in started] == list(map(cnb.content_hash, listed))


def test_a_missing_value_differs_from_null():
    one, two = PAIRS["thinking"]
    found = cnb.explain_difference(one, two)
    assert (found.field, found.value_a, found.value_b) == ("messages[0].thinking", UNSET, None)
    assert "different from byte" in str(found)
