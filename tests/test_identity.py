from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from strategies import conversations, texts

import crystal_nb as cnb

sources = st.sampled_from(["codex", "cursor", "Codex", ""])


@given(sources, texts)
def test_namespacing_twice_changes_nothing_more(source, id):
    once = cnb.namespace(source, id)
    assert cnb.namespace(source, once) == once


@given(sources, texts)
def test_a_namespaced_id_is_the_id_or_the_source_before_it(source, id):
    assert cnb.namespace(source, id) in (id, f"{source}:{id}")
    assert cnb.namespace(source, id).startswith(f"{source}:")


def test_it_is_not_one_to_one():
    assert cnb.namespace("codex", "7") == cnb.namespace("codex", "codex:7")


def test_the_prefix_is_exact_and_case_sensitive():
    assert cnb.namespace("codex", "Codex:7") == "codex:Codex:7"
    assert cnb.namespace("codex", "codex7") == "codex:codex7"
    assert cnb.namespace("codex", "") == "codex:"


@given(st.lists(st.tuples(sources, texts)))
def test_collisions_are_exactly_the_raw_ids_that_meet(ids):
    found = cnb.namespace_collisions(ids)
    wanted = {}
    for source, raw in ids:
        wanted.setdefault(cnb.namespace(source, raw), set()).add(raw)
    assert {k: set(v) for k, v in found.items()} == {k: v for k, v in wanted.items() if len(v) > 1}


@given(conversations, texts)
def test_remote_renaming_leaves_the_hash_alone(conversation, id):
    assert cnb.content_hash(cnb.namespace_conversation(conversation, id)) == cnb.content_hash(conversation)


@given(conversations, texts)
def test_remote_renaming_keeps_parents_resolving(conversation, id):
    renamed = cnb.namespace_conversation(conversation, id)
    assert renamed.id == cnb.namespace(conversation.source, id)
    for old, new in zip(conversation.messages, renamed.messages, strict=True):
        assert new.id == f"{renamed.id}:{old.id}"
        assert (new.parent_uuid is None) == (not old.parent_uuid)
    old_ids, new_ids = ({m.id for m in c.messages} for c in (conversation, renamed))
    for old, new in zip(conversation.messages, renamed.messages, strict=True):
        if old.parent_uuid:
            assert (new.parent_uuid in new_ids) == (old.parent_uuid in old_ids)


@given(conversations.filter(lambda c: c.messages))
def test_applying_it_twice_prefixes_messages_twice(conversation):
    once = cnb.namespace_conversation(conversation, "7")
    twice = cnb.namespace_conversation(once, once.id)
    assert twice.id == once.id
    assert twice.messages[0].id == f"{once.id}:{once.messages[0].id}"
