"""The hash inspector: its model and its traits, without a browser."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
import traitlets
from hypothesis import given
from hypothesis import strategies as st
from strategies import conversations, json_values, texts

import crystal_nb as cnb
from crystal_nb import Conversation, Message
from crystal_nb.errors import ConfigError
from crystal_nb.hashing import canonical_json
from crystal_nb.widgets import HashInspector, edit_box, hash_html
from crystal_nb.widgets import hash_view as view

HELLO = Message("user", "hello", role="user", id="m1", timestamp="2026-01-01T10:00:00.000Z")
REPLY = Message("assistant", "hi <b>there</b>", role="assistant", id="m2", thinking="hm")
CHAT = Conversation("codex", "7", (HELLO, REPLY), slug="greeting")
OTHER = msgspec.structs.replace(CHAT, id="8", messages=(HELLO, msgspec.structs.replace(REPLY, content="hi thére")))
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e\ud83d"


@st.composite
def edited(draw):
    """A conversation and edits that can be done to it."""
    conversation = draw(conversations)
    count, edits = len(conversation.messages), []
    for _ in range(draw(st.integers(0, 5))):
        kinds = ["add", "slug"] + ["set", "role", "move", "drop"] * (count > 0)
        kind = draw(st.sampled_from(kinds))
        at = draw(st.integers(0, max(0, count - 1)))
        if kind == "add":
            edits.append(("add", draw(st.integers(0, count)), "user", draw(texts)))
        elif kind == "slug":
            edits.append(("set", None, "slug", draw(json_values)))
        elif kind == "set":
            edits.append(("set", at, "content", draw(texts)))
        elif kind == "role":
            edits.append(("set", at, "role", draw(json_values | st.just(cnb.UNSET))))
        elif kind == "move":
            edits.append(("move", at, draw(st.integers(0, count - 1))))
        else:
            edits.append(("drop", at))
        count += (kind == "add") - (kind == "drop")
    return conversation, edits


@given(edited())
def test_the_value_is_the_hash_of_the_edited_conversation(drawn):
    conversation, edits = drawn
    inspector = HashInspector(conversation, edits=edits)
    assert inspector.edited == view.apply_edits(conversation, edits)
    assert inspector.value == cnb.content_hash(inspector.edited)
    assert inspector.changed == (inspector.value != cnb.content_hash(conversation))
    assert inspector.to_html().encode()


@given(conversations, st.sets(st.sampled_from(cnb.HASH_FIELDS)))
def test_the_lines_joined_are_the_canonical_text(conversation, without):
    lines = view.canonical_lines(conversation, without)
    assert "".join(text for _, text in lines).encode() == canonical_json(conversation, without=without)


@given(texts | json_values | st.just(cnb.UNSET))
def test_an_edit_box_gives_back_the_value_that_it_was_given(value):
    kind, text = edit_box.editable(value)
    assert text.encode("utf-8", "strict") is not None
    assert text.replace("\n", "").isprintable()
    back = edit_box.parse_value(kind, text)
    assert view.value_json(back) == view.value_json(value)


@pytest.mark.parametrize(
    ("edits", "without", "verdict"),
    [
        ([], (), "nothing is edited: this is the hash"),
        ([("set", 0, "timestamp", "x")], (), "timestamp is not part of the hash: unchanged"),
        ([("set", 0, "content", "x")], (), "content is part of the hash: changed"),
        ([("set", 0, "content", "x")], ("content",), "content is switched out: unchanged"),
        ([("set", 0, "hasCode", True)], (), "hasCode is part of the hash: changed"),
        ([("set", None, "slug", "x")], (), "slug is not part of the hash: unchanged"),
        ([("set", None, "source", "x")], (), "source is part of the hash: changed"),
        ([("set", 0, "content", "x"), ("set", 0, "content", "hello")], (), "the edits cancel out: this is the hash"),
        ([("move", 0, 1)], (), "the order is part of the hash: changed"),
        ([("move", 0, 1)], ("index",), "the order is switched out: unchanged"),
        ([("drop", 1)], (), "which messages there are is part of the hash: changed"),
        ([("add", 0, "user", "x")], (), "which messages there are is part of the hash: changed"),
        ([("drop", 1), ("add", 1, "user", "x")], (), "which messages there are is part of the hash: changed"),
        (
            [("set", 0, "id", "x"), ("set", 0, "role", None)],
            (),
            "id is not part of the hash, role is part of the hash: changed",
        ),
        ([], ("role",), "nothing is edited: the hash without those fields; role is switched out of the canonical text"),
    ],
)
def test_the_verdict_says_why(edits, without, verdict):
    fields = [f for f in cnb.HASH_FIELDS if f not in without]
    assert view.Inspection(CHAT, edits, fields).verdict == verdict


@pytest.mark.parametrize(
    ("edit", "hint"),
    [
        (("set", 5, "content", "x"), "no message 5; they are numbered from 0 to 1"),
        (("set", 0, "colour", "x"), "no field 'colour' to edit; it has type, role"),
        (("set", None, "messages", ()), "a conversation has no field"),
        (("set", 0, "content", None), "content must be text, not null"),
        (("set", 0, "hasCode", "yes"), 'has_code must be true or false, not "yes"'),
        (("set", 0, "details", {"tools": 1}), "details: Expected"),
        (("drop", -1), "no message -1"),
        (("shout", 1), "an edit is"),
    ],
)
def test_what_is_no_edit_is_refused_with_what_is_one(edit, hint):
    with pytest.raises(ConfigError, match=hint):
        view.apply_edit(CHAT, edit)


def test_details_can_be_edited_as_json():
    changed = view.apply_edit(CHAT, ("set", 0, "details", {"model": "m", "tools": [{"name": "read"}]}))
    assert changed.messages[0].details == cnb.Details(model="m", tools=(cnb.ToolCall("read"),))
    assert cnb.content_hash(changed) == cnb.content_hash(CHAT)


def test_details_and_links_show_as_json():
    details = cnb.Details(model="m", tools=(cnb.ToolCall("read", raw_result=b'"a\\ud83d"'),))
    known = msgspec.structs.replace(HELLO, details=details)
    text = view.value_json(known.details)
    assert '"result":"a\\ud83d"' in text
    back = view.apply_edit(CHAT, ("set", 0, "details", edit_box.parse_value("JSON", text)))
    assert view.value_json(back.messages[0].details) == text
    linked = msgspec.structs.replace(CHAT, links=(cnb.Link("copy-of", "1", "uuids"),))
    assert view.value_json(linked.links) == '[{"kind":"copy-of","target":"1","evidence":"uuids","is_certain":true}]'
    assert (
        view.apply_edit(CHAT, ("set", None, "links", edit_box.parse_value("JSON", view.value_json(linked.links))))
        == linked
    )
    assert view.value_json(()) == "[]"


def test_what_is_not_hashed_is_greyed_and_what_is_switched_out_too():
    found = view.Inspection(CHAT, (), [f for f in cnb.HASH_FIELDS if f != "role"])
    html = hash_html.fields(found, 0)
    assert '<tr class="cnb-in"><th scope="row"><code>content</code>' in html
    assert '<tr class="cnb-out"><th scope="row"><code>timestamp</code>' in html
    assert (
        '<tr class="cnb-out"><th scope="row"><code>role</code></th><td><code>&quot;user&quot;</code></td><td>✗' in html
    )


def test_the_difference_shows_the_changed_line_only():
    html = hash_html.difference(view.Inspection(CHAT, [("set", 1, "content", "ho")]))
    assert html.count('class="cnb-del"') == html.count('class="cnb-add"') == 1
    assert "+       &quot;content&quot;:&quot;ho&quot;," in html


def test_a_difference_in_a_long_text_is_cut_to_where_it_is():
    long = view.apply_edit(CHAT, ("set", 0, "content", "x" * 1_000_000))
    html = hash_html.difference(view.Inspection(long, [("set", 0, "content", "x" * 500_000 + "HERE" + "x" * 499_996)]))
    assert "HERE" in html
    assert len(html) < 3_000


def test_a_difference_of_many_messages_stays_small_and_quick():
    many = msgspec.structs.replace(CHAT, messages=(HELLO, *[REPLY] * 10_000))
    inspector = HashInspector(many)
    inspector.edit("drop", 0)
    assert inspector.value == cnb.content_hash(inspector.edited)
    assert "more lines" in inspector.to_html()
    assert len(inspector._message.options) == 200
    inspector.message = 9_000
    assert inspector._message.value == 9_000


def test_comparing_shows_the_first_differing_byte_in_its_context():
    html = hash_html.comparison(CHAT, OTHER, ("a", "b"))
    found = cnb.explain_difference(CHAT, OTHER)
    assert f'data-byte="{found.byte}"' in html
    assert "hi <mark>&lt;</mark>b&gt;there" in html
    assert "hi <mark>t</mark>hére" in html
    assert "are equal" in hash_html.comparison(CHAT, CHAT, ("a", "b"))


def test_one_text_that_begins_the_other_ends_at_the_mark():
    assert hash_html._marked(b"ab", 2) == "<code>ab<mark>(end)</mark></code>"


def test_a_difference_inside_a_character_marks_the_character():
    assert hash_html._marked("aéb".encode(), 2) == "<code>a<mark>é</mark>b</code>"


def test_traits_drive_the_inspector():
    inspector = HashInspector([CHAT, OTHER], message=1, other=1)
    assert "Round that byte" in inspector.to_html()
    inspector.edit("set", 1, "content", "hi thére")
    assert inspector.value == cnb.content_hash(OTHER)
    inspector.undo()
    inspector.fields = tuple(f for f in cnb.HASH_FIELDS if f != "content")
    assert inspector.value != cnb.content_hash(CHAT)
    assert not inspector._checks["content"].value
    inspector.reset()
    assert inspector.value == cnb.content_hash(CHAT)
    inspector.conversation = 1
    assert (inspector.message, inspector.value) == (0, cnb.content_hash(OTHER))


def test_changes_can_be_watched():
    seen = []
    inspector = HashInspector(CHAT)
    inspector.observe(lambda change: seen.append(change.new), "value")
    inspector.edits = [("drop", 0)]
    inspector.edits = [("drop", 0), ("set", 0, "id", "x")]
    assert seen == [cnb.content_hash(inspector.edited)]


def test_wrong_traits_are_refused_and_leave_the_state():
    inspector = HashInspector(CHAT)
    with pytest.raises(traitlets.TraitError, match="no message 9"):
        inspector.edits = [("drop", 9)]
    with pytest.raises(traitlets.TraitError, match="not fields of the hash"):
        inspector.fields = ["colour"]
    with pytest.raises(traitlets.TraitError, match="there is no conversation 3"):
        inspector.conversation = 3
    with pytest.raises(traitlets.TraitError, match=f"no message 99; there are {len(CHAT.messages)}, from 0 on"):
        inspector.message = 99
    with pytest.raises(traitlets.TraitError, match="read-only"):
        inspector.value = "x"
    assert (inspector.edits, inspector.message, inspector.value) == ((), 0, cnb.content_hash(CHAT))


def test_a_message_that_an_edit_adds_can_be_shown_at_once():
    added = len(CHAT.messages)
    inspector = HashInspector(CHAT, message=added, edits=[("add", added, "user", "more")])
    assert inspector.message == added
    with pytest.raises(traitlets.TraitError, match="no message"):
        HashInspector(CHAT, message=added)


@pytest.mark.parametrize("subject", ["text", [1], None, 5, {}.keys, b"text", {"a": CHAT}])
def test_something_else_is_refused(subject):
    with pytest.raises(ConfigError, match="needs a Conversation"):
        HashInspector(subject)


def test_buttons_do_what_they_say():
    inspector = HashInspector(CHAT)
    inspector._step(1)
    inspector._move(-1)
    assert [m.id for m in inspector.edited.messages] == ["m2", "m1"]
    inspector._add()
    assert [m.id for m in inspector.edited.messages] == ["m2", None, "m1"]
    inspector._drop()
    inspector._drop()
    inspector._drop()
    assert inspector.edited.messages == ()
    with pytest.raises(ConfigError, match="has no message"):
        inspector._drop()
    inspector._step(1)
    inspector._add()
    inspector._field.value = "has_code"
    assert (inspector._kind.value, inspector._text.value) == ("JSON", "false")
    inspector._text.value = "true"
    assert inspector.edited.messages[0].has_code
    inspector._field.value = "conversation.slug"
    assert inspector._text.value == "greeting"


MANY = msgspec.structs.replace(CHAT, messages=tuple(msgspec.structs.replace(HELLO, content=str(n)) for n in range(60)))


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("Move up", "1023"),
        ("Move down", "0213"),
        ("Drop", "023"),
        ("Add after", "01a23"),
        ("Undo", "013"),
        ("Reset", "0123"),
    ],
)
def test_each_button_does_what_it_says(name, order):
    edits = [("drop", 2), ("drop", 0)] if name in ("Undo", "Reset") else []
    edits = [("drop", 2), ("set", 0, "content", "gone")] if name == "Undo" else edits
    inspector = HashInspector(msgspec.structs.replace(MANY, messages=MANY.messages[:4]), edits=edits, message=1)
    inspector._buttons[name].click()
    assert "".join(m.content[0] for m in inspector.edited.messages) == order
    assert inspector._alert.value == ""


def test_the_buttons_beside_the_message_walk_through_them():
    inspector = HashInspector(MANY, message=1)
    for name, at in [("Later", 2), ("Earlier", 1), ("Earlier", 0), ("Earlier", 0)]:
        inspector._buttons[name].click()
        assert (inspector.message, inspector._message.value) == (at, at)


def test_each_list_and_box_sets_its_trait():
    inspector = HashInspector([CHAT, OTHER])
    inspector._other.value = 1
    inspector._message.value = 1
    assert (inspector.other, inspector.message) == (1, 1)
    inspector._checks["role"].value = False
    assert inspector.fields == tuple(f for f in cnb.HASH_FIELDS if f != "role")
    inspector._conversation.value = 1
    assert (inspector.conversation, inspector.value) == (1, view.Inspection(OTHER, (), inspector.fields).hashes[1])


def test_another_conversation_begins_without_the_edits():
    inspector = HashInspector([CHAT, OTHER], edits=[("drop", 0)])
    inspector.conversation = 1
    assert (inspector.edits, inspector.edited) == ((), OTHER)


def test_the_message_trait_follows_what_is_left():
    inspector = HashInspector(MANY, message=59)
    inspector.edits = [("drop", 59)]
    assert (inspector.message, inspector._message.value) == (58, 58)
    inspector.edits = [("drop", 0)] * 60
    assert (inspector.message, inspector.edited.messages) == (0, ())


@pytest.mark.parametrize("without", [(), ("index",), ("source",), tuple(f for f in cnb.HASH_FIELDS if f != "content")])
def test_the_canonical_text_shows_the_chosen_message(without):
    fields = [f for f in cnb.HASH_FIELDS if f not in without]
    for at in (0, 31, 59):
        shown = hash_html.canonical(view.Inspection(MANY, (), fields), at)
        assert f"&quot;content&quot;:&quot;{at}&quot;" in shown


def test_both_sizes_are_shown():
    shown = HashInspector(CHAT, edits=[("set", 0, "content", "hello!!")]).body()
    size = len(canonical_json(CHAT))
    assert shown.index(f"{size} bytes") < shown.index(f"{size + 2} bytes")


def test_a_comparison_leaves_out_what_is_switched_out():
    other = msgspec.structs.replace(CHAT, source="cursor")
    inspector = HashInspector([CHAT, other], other=1)
    assert 'data-byte="12"' in inspector.body()
    inspector.fields = [f for f in cnb.HASH_FIELDS if f != "source"]
    shown = inspector.body()
    assert 'data-byte="none"' in shown
    assert shown.count(inspector.value) == 4  # before, after, and both of the comparison


def test_the_page_shows_long_texts_to_their_end():
    long = msgspec.structs.replace(CHAT, messages=(msgspec.structs.replace(HELLO, content="x" * 5000 + "END"),))
    inspector = HashInspector(long)
    assert "END&quot;" in inspector.to_html()
    assert "END&quot;" not in inspector.body()


def test_leaving_the_box_applies_it_and_the_button_does_not_do_it_twice():
    inspector = HashInspector(CHAT)
    inspector._apply()
    assert inspector.edits == ()
    inspector._text.value = "hey"
    inspector._apply()
    assert inspector.edits == (("set", 0, "content", "hey"),)
    inspector._field.value = "thinking"
    inspector._kind.value = "absent"
    assert inspector.edits[1:] == (("set", 0, "thinking", cnb.UNSET),)
    inspector._field.value = "content"
    inspector._kind.value, inspector._text.value = "JSON", "5"
    assert "content must be text" in inspector._alert.value
    assert len(inspector.edits) == 2


def test_finding_a_conversation_offers_those_that_match():
    inspector = HashInspector([CHAT, OTHER])
    inspector._find.value = "8"
    assert [value for _, value in inspector._conversation.options] == [0, 1]
    inspector._find.value = "greet"
    assert [value for _, value in inspector._conversation.options] == [0, 1]
    inspector = HashInspector([OTHER, MANY, msgspec.structs.replace(MANY, messages=(REPLY,))])
    inspector._find.value = "<B>there"
    assert [value for _, value in inspector._conversation.options] == [0, 2]  # the one that is shown, too


def test_a_hostile_conversation_shows_as_text():
    bad = Conversation(HOSTILE, HOSTILE, (Message(HOSTILE, HOSTILE, role=HOSTILE, thinking=HOSTILE, id=HOSTILE),))
    inspector = HashInspector([bad, CHAT], other=1)
    inspector.edit("set", 0, "content", HOSTILE + "!")
    html = inspector.to_html() + inspector._result.value
    assert "<script" not in html
    shown = html + inspector._text.value
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.encode()
    assert repr(inspector).isprintable()


def test_a_page_without_a_style_sheet_still_reads():
    html = HashInspector(CHAT, edits=[("set", 0, "content", "x")]).to_html()
    assert "● <b>hash changed</b>. content is part of the hash: changed" in html
    assert html.count("<table>") == 3


@pytest.mark.parametrize("subject", [[], cnb.corpus.Corpus([], [])])
def test_an_empty_corpus_is_said_to_be_empty(subject):
    with pytest.raises(ConfigError, match="the corpus is empty"):
        HashInspector(subject)


def test_the_page_has_every_line_of_the_canonical_text(tmp_path):
    many = msgspec.structs.replace(CHAT, messages=(HELLO, REPLY) * 30)
    inspector = HashInspector(many)
    page = inspector.to_html(tmp_path / "page.html")
    lines = len(view.canonical_lines(many))
    assert f"lines 1 to {lines} of {lines})" in page
    assert page.count("&quot;index&quot;:") == 60
    assert f"lines 1 to 40 of {lines})" in inspector._repr_html_()
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page


def test_a_page_says_how_many_lines_it_leaves_out(monkeypatch):
    monkeypatch.setattr(hash_html, "PAGE_LINES", 60)
    many = msgspec.structs.replace(CHAT, messages=(HELLO, REPLY) * 30)
    left = len(view.canonical_lines(many)) - 60
    assert f"the other {left} are left out here" in HashInspector(many).to_html()


NOT_JSON = [object(), b"b", {1: 2}, {"a": [b"b"]}, len]
ANY_FIELD = [(0, name) for name in view.MESSAGE_FIELDS] + [(None, name) for name in view.CONVERSATION_FIELDS]


@pytest.mark.parametrize("value", NOT_JSON, ids=repr)
@pytest.mark.parametrize(("index", "field"), ANY_FIELD)
def test_a_value_that_json_does_not_have_is_refused_for_every_field(index, field, value):
    with pytest.raises(ConfigError, match=field):
        view.apply_edit(CHAT, ("set", index, field, value))


@pytest.mark.parametrize("value", [HOSTILE, "\ud83d", 5, None, [], {"tools": [HOSTILE]}, [{"kind": HOSTILE}]], ids=repr)
@pytest.mark.parametrize(("index", "field"), ANY_FIELD)
def test_any_json_value_is_taken_or_refused_with_a_reason(index, field, value):
    inspector = HashInspector(CHAT)
    with contextlib.suppress(traitlets.TraitError):
        inspector.edit("set", index, field, value)
    assert inspector.value == cnb.content_hash(inspector.edited)
    assert "<script" not in inspector.to_html()


@pytest.mark.parametrize("name", ["fields", "edits"])
@pytest.mark.parametrize("value", [[5], [None], [[]], [[{}]], (5, "x"), ["drop"], ("drop", 0), [{"a": 1}]], ids=repr)
def test_what_is_no_list_of_fields_or_edits_is_refused_with_a_hint(name, value):
    inspector = HashInspector(CHAT)
    with pytest.raises(traitlets.TraitError, match=r"not fields of the hash|not an edit"):
        setattr(inspector, name, value)
    assert inspector.value == cnb.content_hash(CHAT)


@pytest.mark.parametrize(
    ("role", "new", "verdict"),
    [
        (True, 1, "role is part of the hash: changed"),
        (0, False, "role is part of the hash: changed"),
        (1, 1.0, "the edits cancel out: this is the hash"),
    ],
)
def test_values_that_python_takes_for_equal_are_told_apart_as_the_hash_does(role, new, verdict):
    found = view.Inspection(Conversation("codex", "7", (Message("user", "x", role=role),)), [("set", 0, "role", new)])
    assert (found.verdict, found.changed) == (verdict, verdict.endswith("changed"))


@given(edited())
def test_the_verdict_never_says_part_of_the_hash_and_unchanged_without_why(drawn):
    found = view.Inspection(*drawn)
    if found.verdict.endswith(": unchanged") and " is part of the hash" in found.verdict:
        assert "but the canonical text comes out the same: unchanged" in found.verdict
    assert found.changed == found.verdict.endswith(": changed")


def test_the_message_that_is_shown_does_not_cost_the_hash_of_the_whole_conversation(monkeypatch):
    inspector = HashInspector([CHAT, OTHER])
    before = inspector.inspection
    inspector.message = 1
    inspector.other = 1
    assert inspector.inspection is before
    assert "Message 1" in inspector._result.value
    assert "Round that byte" in inspector._result.value


def test_a_representation_stays_short():
    long = Conversation("x" * 10**6, "7" * 10**6, (HELLO,))
    assert len(repr(HashInspector(long))) < 300
