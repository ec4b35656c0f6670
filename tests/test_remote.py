from __future__ import annotations

import asyncio
import copy
import hashlib
import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace
from strategies import conversations, json_values, texts

import crystal_nb as cnb
from crystal_nb import Candidate, Conversation, Message, adapters, ecma
from crystal_nb.errors import RemotePayloadError
from crystal_nb.remote import (
    build_remote,
    build_remote_async,
    read_item,
    read_request,
    remote_batches,
    remote_item,
    remote_json,
    validate_remote,
)
from crystal_nb.remote_check import RULES, SUPPORTED_SOURCES
from crystal_nb.remote_frames import REMOTE_ITEMS

SECRET = "correct horse battery staple"
CANDIDATE = Candidate("codex", "7", "/f.jsonl", 12, "2026-01-01T00:00:00.000Z", "/srv/demo")
PAIR = (
    Message("user", SECRET, role="user", id="a", thinking=UNSET, timestamp=1),
    Message("assistant", "yes", role=None, id="b", parent_uuid="a"),
)
ITEM = remote_item(CANDIDATE, Conversation("codex", "other", PAIR, slug="t"), parser_version="codex@1")
HASHED = ("type", "role", "content", "hasToolUse", "hasCode", "thinking")


def request(*items) -> dict:
    return {"version": 1, "items": list(items)}


def row_of(item) -> dict:
    (row,) = validate_remote(request(item)).iter_rows(named=True)
    return row


def changed(path: tuple, value, item=ITEM):
    """A copy of the item with another value at a place; UNSET takes the key away."""
    item = copy.deepcopy(item)
    *parents, last = path
    place = item
    for key in parents:
        place = place[key]
    if value is UNSET:
        del place[last]
    else:
        place[last] = value
    return item


def places(value, at=()):
    yield at
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        yield from places(inner, (*at, key))


# --- one item ---------------------------------------------------------------------------------------------------


def test_an_item_has_the_keys_of_the_contract_in_their_order():
    assert list(ITEM) == [
        "source",
        "sourceConversationId",
        "conversationId",
        "contentHash",
        "parserVersion",
        "meta",
        "parsed",
    ]
    assert ITEM["meta"] == {
        "id": "7",
        "source": "codex",
        "filePath": "/f.jsonl",
        "fileSize": 12,
        "fileMtime": "2026-01-01T00:00:00.000Z",
        "projectDir": "/srv/demo",
    }
    keys = "id slug source projectDir projectName cwd gitBranch messages firstMessageAt lastMessageAt"
    assert " ".join(ITEM["parsed"]) == keys
    keys = "id parentUuid type role content hasToolUse hasCode thinking timestamp"
    assert " ".join(ITEM["parsed"]["messages"][1]) == keys


def test_a_missing_value_has_no_key():
    assert "thinking" not in ITEM["parsed"]["messages"][0]
    assert ITEM["parsed"]["messages"][1]["thinking"] is None


def test_the_candidate_names_the_item_whatever_the_conversation_says():
    item = remote_item(CANDIDATE, Conversation("my tool", "x", PAIR), parser_version="codex@1")
    assert (item["parsed"]["id"], item["parsed"]["source"]) == ("codex:7", "codex")
    assert row_of(item)["status"] == "ok"


@pytest.mark.parametrize(("id", "text"), [(None, "null"), (UNSET, "undefined"), (5.0, "5"), ([1, 2], "1,2")])
def test_message_ids_become_the_text_that_javascript_makes_of_them(id, text):
    odd = replace(PAIR[0], id=id), replace(PAIR[1], parent_uuid=id)
    messages = remote_item(CANDIDATE, Conversation("codex", "7", odd), parser_version="")["parsed"]["messages"]
    assert messages[0]["id"] == f"codex:7:{text}"
    assert messages[1]["parentUuid"] == (f"codex:7:{text}" if id else None)


@pytest.mark.parametrize("id", [None, 7, UNSET, ["7"]])
def test_a_candidate_without_a_text_as_id_makes_no_item(id):
    with pytest.raises(RemotePayloadError, match="id is no text") as caught:
        remote_item(replace(CANDIDATE, id=id), Conversation("codex", "7", PAIR), parser_version="codex@1")
    assert caught.value.rule == "source-conversation-id"


def test_what_is_nested_too_deep_is_refused_and_no_recursion_error():
    deep = ecma.parse_json("[" * 5000 + "]" * 5000)
    with pytest.raises(RemotePayloadError, match="deeper"):
        remote_item(CANDIDATE, Conversation("codex", "7", (replace(PAIR[0], role=deep),)), parser_version="")
    with pytest.raises(RemotePayloadError, match="deeper"):
        remote_json(deep)


big_conversations = conversations.filter(lambda c: len(c.messages) >= 2)
good_ids = texts.filter(lambda id: ecma.trim(id))


@given(big_conversations, good_ids, st.sampled_from(SUPPORTED_SOURCES))
def test_whatever_is_built_is_accepted_and_read_back(conversation, id, source):
    candidate = Candidate(source, id, "/f", 1, "", "")
    item = remote_item(candidate, conversation, parser_version="x@1")
    text = remote_json(request(item))
    frame = validate_remote(text)
    assert frame.select("status", "rule").row(0) == ("ok", None)
    read = read_item(read_request(text)[0])
    sent = replace(conversation, source=source)
    assert cnb.canonical_json(read.conversation) == cnb.canonical_json(sent)
    assert read.content_hash == cnb.content_hash(sent)
    renamed = cnb.namespace_conversation(sent, id)
    for ours, theirs in zip(read.conversation.messages, renamed.messages, strict=True):
        assert ecma.json_text([ours.id, ours.parent_uuid, ours.timestamp]) == ecma.json_text(
            [theirs.id, theirs.parent_uuid, theirs.timestamp]
        )


def test_an_item_is_read_as_records():
    read = read_item(ITEM)
    assert read.candidate == CANDIDATE
    assert read.parser_version == "codex@1"
    assert read.source_conversation_id == "7"
    assert (read.conversation.id, read.conversation.slug) == ("codex:7", "t")
    assert read.conversation.messages[0].thinking is UNSET


def test_samples_go_through_and_keep_their_hashes():
    config = cnb.samples.config()
    built = build_remote(config=config)
    frames = [validate_remote(remote_json(batch)) for batch in built.batches]
    assert [set(f["status"]) for f in frames] == [{"ok"}]
    corpus = cnb.parse(cnb.scan(config=config), config=config)
    long_enough = corpus.conversations.filter(corpus.conversations["message_count"] >= 2)
    assert frames[0]["content_hash"].to_list() == long_enough["content_hash"].to_list()
    assert len(built.short) == len(corpus) - long_enough.height


# --- requests ---------------------------------------------------------------------------------------------------


def sized_item(size: int) -> dict:
    return {"conversationId": "x" * (size - len('{"conversationId":""}'))}


def test_a_request_takes_25_items():
    batches = remote_batches([sized_item(40)] * 51).batches
    assert [len(b["items"]) for b in batches] == [25, 25, 1]
    assert batches[0]["version"] == 1


@pytest.mark.parametrize(("size", "left_out"), [(8 << 20, 0), ((8 << 20) + 1, 1)])
def test_an_item_of_8_mib_still_fits(size, left_out):
    packed = remote_batches([sized_item(40), sized_item(size)])
    assert [(t.index, t.bytes, t.id[:1]) for t in packed.too_large] == [(1, size, "x")] * left_out
    assert len(packed.batches[0]["items"]) == 2 - left_out


@pytest.mark.parametrize(("limit", "sizes"), [(105, [2, 1]), (104, [1, 1, 1]), (145, [2, 1]), (146, [3])])
def test_a_request_s_limit_counts_its_whole_json(limit, sizes):
    items = [sized_item(40)] * 3
    assert len(remote_json(request(*items[:2]))) == 105
    assert len(remote_json(request(*items))) == 146
    batches = remote_batches(items, max_batch_bytes=limit).batches
    assert [len(b["items"]) for b in batches] == sizes


def test_sizes_are_bytes_and_not_characters():
    item = {"conversationId": "é" * 10}
    assert remote_batches([item], max_item_bytes=41).too_large == ()
    assert remote_batches([item], max_item_bytes=40).too_large[0].bytes == 41


@given(st.lists(st.integers(25, 60)), st.integers(1, 4), st.integers(25, 60), st.integers(1, 200))
def test_no_item_is_lost_split_or_moved(sizes, max_items, max_item_bytes, max_batch_bytes):
    items = [{**sized_item(size), "n": n} for n, size in enumerate(sizes)]
    limits = {"max_items": max_items, "max_item_bytes": max_item_bytes, "max_batch_bytes": max_batch_bytes}
    packed = remote_batches(items, **limits)
    sent = [item["n"] for batch in packed.batches for item in batch["items"]]
    aside = [t.index for t in packed.too_large]
    assert sorted(sent) == sent
    assert sorted(sent + aside) == list(range(len(items)))
    assert all((len(remote_json(items[n])) > max_item_bytes) == (n in aside) for n in range(len(items)))
    for batch in packed.batches:
        assert len(batch["items"]) <= max_items
        assert len(remote_json(batch)) <= max_batch_bytes or len(batch["items"]) == 1


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, None])
def test_a_senseless_limit_is_refused(limit):
    with pytest.raises(cnb.ConfigError, match="max_items must be a whole number from 1 on"):
        remote_batches([], max_items=limit)


def test_only_objects_are_packed():
    with pytest.raises(RemotePayloadError, match="found str; allowed: an object"):
        remote_batches("abc")


# --- building ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fake:
    """An adapter that does as it is told."""

    name: str
    detects: object = field(default_factory=lambda: cnb.SourceInfo("", "", "/f", 1))
    scans: object = (CANDIDATE,)
    parses: object = PAIR
    display_name: str = "Fake"
    parser_version: str = "fake@1"

    async def detect(self, config):
        return answer(self.detects)

    async def scan(self, config):
        return answer(self.scans)

    async def parse(self, candidate, config):
        messages = answer(self.parses)
        return cnb.Parsed(Conversation("fake", candidate.id, messages), ()) if messages is not None else None


def answer(value):
    if isinstance(value, Exception):
        raise value
    return value


@pytest.fixture
def build(monkeypatch):
    """Register just these adapters and build."""

    def run(*fakes, enabled=SUPPORTED_SOURCES, **keywords):
        monkeypatch.setattr(adapters, "_REGISTRY", {a.name: a for a in fakes})
        return build_remote(config=cnb.Config(enabled_sources=enabled), **keywords)

    return run


def test_sources_come_in_registry_order_if_enabled_and_supported(build):
    built = build(*map(Fake, ["trae", "mytool", "codex", "cursor"]), enabled=["cursor", "trae", "mytool"])
    assert [item["conversationId"] for item in built.items] == ["trae:7", "cursor:7"]
    assert built.items[0]["parserVersion"] == "fake@1"
    assert built.failures == ()


@pytest.mark.parametrize(
    ("broken", "stage", "error"),
    [
        ({"detects": KeyError("bug")}, "detect", "KeyError: 'bug'"),
        ({"scans": cnb.ScanError("no", source="codex", path="/f")}, "scan", "ScanError: codex: /f: no"),
        ({"scans": [5]}, "scan", "ConfigError: "),
        ({"scans": None}, "scan", "ConfigError: "),
    ],
)
def test_a_failing_source_is_noted_and_the_next_goes_on(build, broken, stage, error):
    built = build(Fake("codex", **broken), Fake("cursor"))
    (failure,) = built.failures
    assert (failure.source, failure.id, failure.stage) == ("codex", None, stage)
    assert failure.error.startswith(error)
    assert [item["source"] for item in built.items] == ["cursor"]


@pytest.mark.parametrize("parses", [ValueError("x"), None, RecursionError()])
def test_a_failing_parse_is_noted_and_the_next_goes_on(build, parses):
    built = build(Fake("codex", parses=parses), Fake("cursor"))
    assert [(f.source, f.id, f.stage) for f in built.failures] == [("codex", "7", "parse")]
    assert len(built.items) == 1


def test_a_candidate_that_makes_no_item_is_a_failure_of_its_parse(build):
    deep = ecma.parse_json("[" * 5000 + "]" * 5000)
    nameless = Fake("codex", scans=[replace(CANDIDATE, id=None), replace(CANDIDATE, id=8)])
    built = build(nameless, Fake("trae", parses=(PAIR[0], replace(PAIR[1], timestamp=deep))), Fake("cursor"))
    assert [(f.source, f.id, f.stage) for f in built.failures] == [
        ("codex", None, "parse"),
        ("codex", "8", "parse"),
        ("trae", "7", "parse"),
    ]
    assert [item["source"] for item in built.items] == ["cursor"]


def test_absent_tools_and_short_conversations_are_no_failures(build):
    built = build(Fake("codex", detects=None), Fake("trae", parses=PAIR[:1]), Fake("cursor", parses=()))
    assert built.short == ("trae:7", "cursor:7")
    assert (built.items, built.batches, built.failures) == ((), (), ())


def test_an_item_that_is_too_large_is_an_item_but_in_no_request(build):
    huge = (replace(PAIR[0], content="x" * (8 << 20)), PAIR[1])
    built = build(Fake("codex", parses=huge), Fake("cursor"))
    assert [(t.index, t.id) for t in built.too_large] == [(0, "codex:7")]
    assert [[i["source"] for i in b["items"]] for b in built.batches] == [["cursor"]]
    assert len(built.items) == 2


def test_progress_is_told(build):
    seen = []
    build(Fake("codex", parses=KeyError()), Fake("cursor"), on_progress=lambda *step: seen.append(step))
    assert [(done, total, c.source) for done, total, c in seen] == [(1, 2, "codex"), (2, 2, "cursor")]


def test_results_show_no_message_text(build):
    built = build(Fake("codex"), Fake("cursor", scans=ValueError()))
    assert repr(built) == "RemoteBuild: 1 item, 1 request, 0 too large, 0 too short, 1 failed"
    assert SECRET not in repr(remote_batches(built.items))


def test_the_awaitable_twin_does_the_same():
    config = cnb.samples.config()
    built = asyncio.run(build_remote_async(config=config))
    assert [i["contentHash"] for i in built.items] == [i["contentHash"] for i in build_remote(config=config).items]


# --- requests that fail whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "path", "rule"),
    [
        (b"\xff", "$", "json"),
        (b'\xef\xbb\xbf{"version":1,"items":[]}', "$", "json"),
        (b"", "$", "json"),
        ("{", "$", "json"),
        ('{"version":1,"items":[NaN]}', "$", "json"),
        ("[" * 100_000, "$", "json"),
        ("[" * 100_000 + "]" * 100_000, "$", "request"),
        ("null", "$", "request"),
        ('"version"', "$", "request"),
        ([1], "$", "request"),
        (None, "$", "request"),
        ({}, "$.version", "version"),
        ({"version": True, "items": []}, "$.version", "version"),
        ({"version": "1", "items": []}, "$.version", "version"),
        ({"version": 2, "items": 5}, "$.version", "version"),
        ({"version": 1}, "$.items", "items"),
        ({"version": 1, "items": {"0": ITEM}}, "$.items", "items"),
        ({"version": 1, "items": None}, "$.items", "items"),
        ('{"version":1,"version":2,"items":[]}', "$.version", "version"),
    ],
)
def test_a_request_is_refused_as_a_whole(payload, path, rule):
    with pytest.raises(RemotePayloadError, match="allowed: ") as caught:
        validate_remote(payload)
    assert (caught.value.path, caught.value.rule) == (path, rule)


@pytest.mark.parametrize("version", ["1", "1.0", "1e0", '2,"version":1'])
def test_version_1_is_whatever_number_javascript_takes_for_1(version):
    frame = validate_remote(f'{{"version":{version},"items":[]}}'.encode())
    assert frame.shape == (0, len(REMOTE_ITEMS))


# --- items that fail --------------------------------------------------------------------------------------------

BREAKS = {
    "supported-source": ("$.items[0].source", ("source",), "aider"),
    "source-conversation-id": ("$.items[0].sourceConversationId", ("sourceConversationId",), " \ufeff\u2028"),
    "conversation-id": ("$.items[0].conversationId", ("conversationId",), "codex:8"),
    "parsed-source": ("$.items[0].parsed.source", ("parsed", "source"), "cursor"),
    "hash-form": ("$.items[0].contentHash", ("contentHash",), "A" * 64),
    "message-count": ("$.items[0].parsed.messages", ("parsed", "messages", 1), UNSET),
    "message-ids": ("$.items[0].parsed.messages[0].id", ("parsed", "messages", 0, "id"), "codex:70:a"),
    "content-hash": ("$.items[0].contentHash", ("parsed", "messages", 0, "content"), "other"),
    "meta": ("$.items[0].meta", ("meta",), None),
}


def test_every_rule_for_items_is_broken_here():
    assert [*RULES] == ["json", "request", "version", "items", "item", *BREAKS]


@pytest.mark.parametrize("rule", BREAKS)
@pytest.mark.parametrize("also_later", [True, False])
def test_the_first_broken_rule_is_named(rule, also_later):
    path, place, value = BREAKS[rule]
    item = changed(place, value)
    if also_later:
        for _, place, value in list(BREAKS.values())[list(BREAKS).index(rule) + 1 :]:
            item = changed(place, value, item)
    row = row_of(item)
    assert (row["status"], row["rule"], row["path"]) == ("error", rule, path)
    assert " allowed: " in row["error"]
    with pytest.raises(RemotePayloadError) as caught:
        read_item(item)
    assert (caught.value.rule, caught.value.path) == (rule, path.replace("$.items[0]", "$"))


@pytest.mark.parametrize(
    ("place", "value", "rule", "path"),
    [
        (("source",), "Codex", "supported-source", "source"),
        (("source",), ["codex"], "supported-source", "source"),
        (("source",), UNSET, "supported-source", "source"),
        (("sourceConversationId",), 7, "source-conversation-id", "sourceConversationId"),
        (("sourceConversationId",), "\x85", "conversation-id", "conversationId"),  # no white space in JavaScript
        (("conversationId",), UNSET, "conversation-id", "conversationId"),
        (("parsed",), None, "conversation-id", "parsed"),
        (("parsed", "id"), "7", "conversation-id", "parsed.id"),
        (("contentHash",), ITEM["contentHash"] + "\n", "hash-form", "contentHash"),
        (("contentHash",), [ITEM["contentHash"]], "hash-form", "contentHash"),
        (("contentHash",), "0" * 64, "content-hash", "contentHash"),
        (("parsed", "messages"), "ab", "message-count", "parsed.messages"),
        (("parsed", "messages", 1), None, "message-ids", "parsed.messages[1]"),
        (("parsed", "messages", 1, "id"), "codex:7", "message-ids", "parsed.messages[1].id"),
        (("parsed", "messages", 1, "id"), 7, "message-ids", "parsed.messages[1].id"),
        (("parsed", "messages", 0, "thinking"), None, "content-hash", "contentHash"),
        (("parsed", "messages", 1, "thinking"), UNSET, "content-hash", "contentHash"),
        (("parsed", "messages", 1, "hasCode"), 0, "content-hash", "contentHash"),
    ],
)
def test_other_ways_to_break_a_rule(place, value, rule, path):
    row = row_of(changed(place, value))
    assert (row["rule"], row["path"]) == (rule, f"$.items[0].{path}")


@pytest.mark.parametrize("item", [None, 5, "codex", [ITEM], True])
def test_an_item_that_is_no_object_is_a_row(item):
    row = row_of(item)
    assert (row["rule"], row["path"], row["source"], row["message_count"]) == ("item", "$.items[0]", None, None)


def test_good_items_go_on_beside_bad_ones():
    frame = validate_remote(remote_json(request(None, ITEM, {}, ITEM)))
    assert frame["status"].to_list() == ["error", "ok", "error", "ok"]
    assert frame["index"].to_list() == [0, 1, 2, 3]
    assert frame.row(1, named=True) == {
        "index": 1,
        "source": "codex",
        "source_conversation_id": "7",
        "conversation_id": "codex:7",
        "content_hash": ITEM["contentHash"],
        "message_count": 2,
        "status": "ok",
        "rule": None,
        "path": None,
        "error": None,
    }


def test_values_of_no_rule_may_be_anything():
    item = changed(("parsed", "slug"), {"a": [1]}, changed(("meta",), {}, changed(("parserVersion",), UNSET)))
    assert row_of(item)["status"] == "ok"
    read = read_item(item)
    assert (read.parser_version, read.candidate.file_path, read.candidate.id) == (UNSET, UNSET, "7")


@given(st.sampled_from(list(places(ITEM))), json_values)
def test_any_value_at_any_place_gives_a_row(place, value):
    item = changed(place, value) if place else value
    frame = validate_remote(request(item))
    same = validate_remote(remote_json(request(item)))
    columns = ["status", "rule", "path", "message_count"]
    assert frame.select(columns).equals(same.select(columns))
    assert frame["status"][0] == "ok" or frame["rule"][0] in RULES


@given(st.sampled_from([p for p in places(ITEM) if p and isinstance(p[-1], str)]))
def test_any_missing_key_gives_a_row(place):
    assert row_of(changed(place, UNSET))["rule"] in {None, *BREAKS}


@given(json_values, json_values)
def test_any_json_is_a_frame_or_a_refusal(value, other):
    payloads = [value, remote_json(value), {"version": 1, "items": value}, {"version": value, "items": other}]
    for payload in [*payloads, remote_json(request(value, other))]:
        frame_or_refusal(payload)


@given(st.binary() | texts | st.binary().map(lambda b: b'{"version":1,"items":[' + b + b"]}"))
def test_any_bytes_are_a_frame_or_a_refusal(payload):
    frame_or_refusal(payload)
    frame_or_refusal(bytearray(payload) if isinstance(payload, bytes) else payload)


def frame_or_refusal(payload):
    try:
        assert list(validate_remote(payload).columns) == list(REMOTE_ITEMS)
    except RemotePayloadError as error:
        return error.rule
    return None


@pytest.mark.parametrize(
    ("place", "rule"),
    [
        (("source",), "supported-source"),
        (("parsed",), "conversation-id"),
        (("parsed", "messages"), "message-count"),
        (("parsed", "messages", 0, "content"), "content-hash"),
        (("parsed", "messages", 0, "timestamp"), None),
        (("meta", "more"), None),
    ],
)
def test_depth_is_the_matter_of_the_rule_that_has_to_follow_it(place, rule):
    deep = remote_json(request(changed(place, "HERE"))).replace(b'"HERE"', b"[" * 50_000 + b"]" * 50_000)
    assert validate_remote(deep)["rule"].to_list() == [rule]


@given(st.sampled_from(HASHED), json_values | st.just(UNSET))
def test_odd_types_are_hashed_as_node_writes_them(node, key, value):
    item = copy.deepcopy(ITEM)
    messages = item["parsed"]["messages"]
    messages[0][key] = value
    if value is UNSET:
        del messages[0][key]
    hashed = [{"index": i, **{k: m[k] for k in HASHED if k in m}} for i, m in enumerate(messages)]
    text = node("stringify", {"source": "codex", "messages": hashed})
    item["contentHash"] = hashlib.sha256(text.encode()).hexdigest()
    assert row_of(item)["status"] == "ok"
    assert validate_remote(remote_json(request(item)))["status"].to_list() == ["ok"]


@pytest.mark.parametrize("place", [p for p in places(ITEM) if p], ids=str)
def test_hostile_values_are_shown_escaped_and_short(place):
    row = row_of(changed(place, "\x1b[31m\u202e\ud83d" * 10_000))
    assert len(row["error"] or "") < 400
    assert (row["error"] or "").isprintable()


def test_message_text_is_never_shown():
    for place, value in [(p, v) for _, p, v in BREAKS.values()] + [(p, {"x": SECRET}) for p in places(ITEM) if p]:
        assert SECRET not in str(row_of(changed(place, value)))
    assert SECRET not in str(row_of([SECRET]))


def test_the_error_says_what_was_found_and_what_is_allowed():
    row = row_of(changed(("parsed", "messages", 1, "id"), "x" * 100))
    assert row["error"] == f"found '{'x' * 80}…'; allowed: a text that starts with 'codex:7:'"
    with pytest.raises(RemotePayloadError, match=r"^\$\.items: found nothing; allowed: a list$"):
        validate_remote({"version": 1})


def test_the_payload_may_be_text_bytes_or_an_object():
    payload = request(ITEM)
    text = json.dumps(payload)
    frames = [validate_remote(p) for p in (payload, text, text.encode(), bytearray(text.encode()))]
    assert all(f.equals(frames[0]) for f in frames)
