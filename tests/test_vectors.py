"""The pinned system's own results: facts that no change may move."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import TREE_FOLDERS, VECTORS

import crystal_nb as cnb

HASH_VECTORS = json.loads((VECTORS / "hash_vectors.json").read_text(encoding="utf-8"))
SOURCES = list(TREE_FOLDERS)


@pytest.fixture(scope="module")
def candidates(tree_config):
    return cnb.scan(config=tree_config)


@pytest.fixture(scope="module")
def corpus(candidates, tree_config):
    return cnb.parse(candidates, config=tree_config)


def test_detect_counts(tree: Path, tree_config, expected):
    for info in cnb.detect_all_sources(config=tree_config):
        wanted = expected["sources"][info.name]
        found = (info.display_name, os.path.relpath(info.data_dir, tree), info.conversation_count)
        assert found == (wanted["display_name"], wanted["data_dir"], wanted["conversation_count"])


def test_candidates(tree: Path, candidates, expected):
    names = {"id": "candidate_id", "file_mtime_text": "file_mtime"}
    columns = ["source", "id", "file_path", "file_size", "file_mtime_text", "project_dir"]
    rows = candidates.select(columns).rows(named=True)
    found = [{names.get(k, k): v for k, v in row.items()} for row in rows]
    for row in found:
        row["file_path"] = Path(row["file_path"]).relative_to(tree).as_posix()
    wanted = [{names.get(k, k): c[names.get(k, k)] for k in columns} for c in expected["candidates"]]
    assert found == wanted


def test_conversations(corpus, expected):
    assert corpus.failures.is_empty()
    for parsed, wanted in zip(corpus.parsed, expected["candidates"], strict=True):
        c = parsed.conversation
        found = (c.id, c.slug, c.project_dir, c.project_name, c.cwd, c.git_branch, parsed.content_hash)
        keys = ("id", "slug", "parsed_project_dir", "project_name", "cwd", "git_branch", "content_hash")
        assert found == tuple(wanted[k] for k in keys)


def test_messages(corpus, expected):
    for parsed, wanted in zip(corpus.parsed, expected["candidates"], strict=True):
        assert len(parsed.conversation.messages) == len(wanted["messages"])
        for message, row in zip(parsed.conversation.messages, wanted["messages"], strict=True):
            assert {k: getattr(message, k) for k in row} == row


@pytest.mark.parametrize("number", range(len(HASH_VECTORS)))
def test_hash(number):
    vector = HASH_VECTORS[number]
    messages = tuple(
        cnb.Message(
            m["type"],
            m["content"],
            role=m.get("role", cnb.UNSET),
            has_tool_use=m["hasToolUse"],
            has_code=m["hasCode"],
            thinking=m.get("thinking", cnb.UNSET),
        )
        for m in vector["messages"]
    )
    conversation = cnb.Conversation(vector["source"], "x", messages)
    assert cnb.canonical_json(conversation).decode() == vector["canonical"]
    assert cnb.content_hash(conversation) == vector["content_hash"]


def test_there_are_150_hash_vectors():
    assert len(HASH_VECTORS) == 150
