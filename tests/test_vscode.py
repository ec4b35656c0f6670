from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from strategies import json_values

from crystal_nb import ecma
from crystal_nb.adapters.vscode import date_time, item, readable_windows, window_folders, workspace_folder


@pytest.mark.parametrize(
    ("folder", "project"),
    [
        ("file:///home/u/my%20app", "home/u/my app"),
        ("file:///c%3A/x", "c:/x"),
        ("file:///file:///x", "file:///x"),
        ("File:///x", "File:///x"),
        ("file://srv/share/p", "file://srv/share/p"),
        ("vscode-remote://wsl%2Bubuntu/p", "vscode-remote://wsl+ubuntu/p"),
        ("", ""),
        (None, ""),
        (0, ""),
        (False, ""),
        ("\ud83d", "\ud83d"),
    ],
)
def test_project_of_a_window(tmp_path: Path, folder: Any, project: str) -> None:
    path = tmp_path / "workspace.json"
    path.write_text(json.dumps({"folder": folder}), encoding="utf-8")
    assert workspace_folder(path) == project


@pytest.mark.parametrize(
    "document", ["{}", "[]", "5", '"folder"', '{"workspace": "file:///x"}', '{"configuration": 1}']
)
def test_windows_without_a_folder_have_no_project(tmp_path: Path, document: str) -> None:
    (tmp_path / "workspace.json").write_text(document, encoding="utf-8")
    assert workspace_folder(tmp_path / "workspace.json") == ""


@pytest.mark.parametrize(
    "document",
    [
        b"null",
        b"",
        b"{",
        b'\xef\xbb\xbf{"folder":""}',
        b'{"folder":5}',
        b'{"folder":[]}',
        b'{"folder":"%"}',
        b'{"folder":"%ff"}',
    ],
)
def test_what_the_pinned_importer_chokes_on_is_a_value_error(tmp_path: Path, document: bytes) -> None:
    (tmp_path / "workspace.json").write_bytes(document)
    with pytest.raises(ValueError):
        workspace_folder(tmp_path / "workspace.json")


def test_great_depth_is_a_value_error(tmp_path: Path) -> None:
    (tmp_path / "workspace.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ValueError):
        workspace_folder(tmp_path / "workspace.json")


def test_a_missing_description_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        workspace_folder(tmp_path / "workspace.json")


@given(json_values)
def test_any_json_gives_text_or_a_value_error(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "workspace.json"
    path.write_text(json.dumps({"folder": document}), encoding="utf-8")
    try:
        assert isinstance(workspace_folder(path), str)
    except ValueError:
        assert ecma.truthy(document)


def test_windows_come_in_byte_order(tmp_path: Path) -> None:
    for name in ("b", "a", "B", "é", "10", "9"):
        (tmp_path / "workspaceStorage" / name).mkdir(parents=True)
    assert [folder.name for folder in window_folders(tmp_path)] == ["10", "9", "B", "a", "b", "é"]


def test_no_windows_without_their_folder(tmp_path: Path) -> None:
    assert window_folders(tmp_path / "missing") == []
    (tmp_path / "workspaceStorage").write_text("a file")
    with pytest.raises(OSError):
        window_folders(tmp_path)


@pytest.mark.parametrize("error", [OSError("x"), ValueError("x"), sqlite3.DatabaseError("x")])
def test_a_window_where_anything_fails_is_left_out(tmp_path: Path, error: Exception) -> None:
    for name in ("a", "b", "c"):
        folder = tmp_path / "workspaceStorage" / name
        folder.mkdir(parents=True)
        (folder / "state.vscdb").touch()
        if name != "c":
            (folder / "workspace.json").write_text('{"folder": "file:///p"}', encoding="utf-8")

    def read(database: Path) -> str:
        if database.parent.name == "a":
            raise error
        return database.parent.name

    assert [(project, name) for project, _, name in readable_windows(tmp_path, read)] == [("p", "b")]


def test_an_item_is_found_by_its_exact_key() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.text_factory = bytes
        connection.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        connection.execute("INSERT INTO ItemTable VALUES ('key', 'text'), ('blob', x'00'), ('null', NULL)")
        found = [item(connection, key) for key in ("key", "blob", "null", "KEY")]
    assert found == [("text", b"text"), ("blob", b"\0"), ("null", None), None]


@pytest.mark.parametrize("value", ["1700000000000", "yesterday", 8.64e15 + 1, -8.65e15, {}, [None, None]])
def test_invalid_dates_are_value_errors(value: Any) -> None:
    with pytest.raises(ValueError):
        date_time(value)
