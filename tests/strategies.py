"""What the property tests draw from."""

from __future__ import annotations

from hypothesis import strategies as st

from crystal_nb import UNSET, Conversation, Message

# Characters that the rules, JSON and JavaScript treat specially, surrogates included.
odd_characters = st.sampled_from(
    list('\x00\b\t\n\v\f\r\x1c\x1f "/\\`<>\x7f\x85\xa0é\u2028\u2029\ufeff\ud83d\ude00😀数')
)
texts = st.text(st.one_of(odd_characters, st.characters()), max_size=20)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
maybe_missing = st.one_of(st.none(), st.just(UNSET), texts)
times = st.one_of(
    st.datetimes().map(lambda d: d.isoformat(timespec="milliseconds") + "Z"), st.none(), st.integers(0, 10**13)
)
messages = st.builds(
    Message,
    type=st.sampled_from(["user", "assistant", "system"]),
    content=texts,
    role=maybe_missing,
    has_tool_use=st.booleans(),
    has_code=st.booleans(),
    thinking=maybe_missing,
    id=texts,
    parent_uuid=st.none() | texts,
    timestamp=times,
)
conversations = st.builds(
    Conversation,
    source=st.sampled_from(["codex", "cursor", "my tool"]),
    id=texts,
    messages=st.lists(messages, max_size=5).map(tuple),
    slug=st.none() | texts,
    project_dir=texts,
    project_name=texts,
    cwd=st.none() | texts,
    git_branch=st.none() | texts,
    first_message_at=times,
    last_message_at=times,
)
