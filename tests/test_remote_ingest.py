"""What a remote store makes of payloads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from strategies import json_values

import crystal_nb as cnb
from crystal_nb.records import Candidate, Conversation, Message


def item(id: str, *texts: str, **changes: object) -> dict[str, object]:
    messages = tuple(
        Message("user", text, id=f"m{n}", parent_uuid=f"m{n - 1}" if n else None) for n, text in enumerate(texts)
    )
    candidate = Candidate("codex", id, "/f", 10, "2026-01-05T10:00:00.000Z", "")
    return {**cnb.remote_item(candidate, Conversation("codex", id, messages), parser_version="codex@1"), **changes}


def request(*items: dict[str, object]) -> dict[str, object]:
    return {"version": 1, "items": list(items)}


@pytest.fixture(params=["chatcrystal", "careful"])
def store(tmp_path: Path, request: pytest.FixtureRequest):
    with cnb.open_store(tmp_path / "remote.db", profile=request.param) as opened:
        opened.profile = request.param
        yield opened


def actions(store: cnb.Store, *items: dict[str, object]) -> list[str]:
    report = cnb.ingest(store, request(*items), profile=store.profile)
    return report.decisions["action"].to_list()


def test_a_new_item_is_inserted_and_the_same_again_only_noted(store):
    assert actions(store, item("7", "a", "b")) == ["insert"]
    assert actions(store, item("7", "a", "b")) == ["metadata-update"]
    assert store.messages()["id"].to_list() == ["codex:7:m0", "codex:7:m1"]


def test_other_content_replaces(store):
    actions(store, item("7", "a", "b"))
    assert actions(store, item("7", "a", "c", "d")) == ["replace"]
    assert store.messages()["content"].to_list() == ["a", "c", "d"]


def test_a_legacy_row_is_upgraded_and_keeps_its_id(store):
    actions(store, item("7", "a", "b"))
    store.connection.execute("PRAGMA foreign_keys = OFF")
    store.connection.execute("UPDATE conversations SET id = '7', source_conversation_id = NULL, content_hash = NULL")
    store.connection.execute("UPDATE messages SET conversation_id = '7'")
    assert actions(store, item("7", "a", "b")) == ["replace"]
    assert store.conversations()["id"].to_list() == ["7"]
    assert store.messages()["id"].to_list() == ["7:m0", "7:m1"]
    assert store.messages()["parent_uuid"].to_list() == [None, "7:m0"]


def test_the_id_that_it_came_from_is_preferred(store):
    actions(store, item("7", "a", "b"), item("8", "c", "d"))
    store.connection.execute("UPDATE conversations SET source_conversation_id = '7' WHERE id = 'codex:8'")
    report = cnb.ingest(store, request(item("7", "x", "y")), profile=store.profile)
    assert report.decisions["id"].to_list() == ["codex:8"]


def test_a_broken_item_is_an_error_and_the_others_go_on(store):
    assert actions(store, item("7", "a", "b", contentHash="0" * 64), item("8", "a", "b")) == ["error", "insert"]


def test_a_broken_request_fails_whole(store):
    with pytest.raises(cnb.RemotePayloadError, match="version"):
        cnb.ingest(store, {"version": 2, "items": [item("7", "a", "b")]}, profile=store.profile)
    assert store.conversations().is_empty()


def test_bytes_of_all_samples_are_taken(store):
    built = cnb.build_remote(config=cnb.samples.config())
    for batch in built.batches:
        assert cnb.ingest(store, cnb.remote_json(batch), profile=store.profile).errors == 0
    assert store.conversations().height == len(built.items)


@given(meta=json_values, slug=json_values)
def test_values_that_no_rule_checks_never_break_the_store(meta, slug):
    sound = item("7", "a", "b")
    sound["parsed"] = {**sound["parsed"], "slug": slug, "cwd": slug, "firstMessageAt": slug}  # type: ignore[dict-item]
    sound["meta"] = {"fileSize": meta, "fileMtime": meta, "filePath": meta, "projectDir": meta}
    with cnb.Store.in_memory(cnb.PINNED, cnb.Config()) as store:
        report = cnb.ingest(store, cnb.remote_json(request(sound)))
        assert report.actions().total() == 1
        json.dumps(store.conversations().drop("created_at", "updated_at").to_dicts(), default=str)


def test_an_id_with_a_surrogate_is_found_again(store):
    first, again = (actions(store, item("\ud800", "a", "b")) for _ in range(2))
    assert (first, again) == (["insert"], ["metadata-update"])
