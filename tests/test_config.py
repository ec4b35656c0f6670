from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values

import crystal_nb as cnb
from crystal_nb import Config
from crystal_nb.config import BUILT_IN_SOURCES

HOME = Path("/home/ada")


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", ".config/Cursor/User"),
        ("darwin", "Library/Application Support/Cursor/User"),
        ("win32", "AppData/Roaming/Cursor/User"),
    ],
)
def test_each_platform_has_its_own_user_data_folder(platform, folder):
    assert Config(home=HOME, platform=platform).user_data("Cursor") == HOME / folder


def test_windows_user_data_comes_from_appdata():
    config = Config(home=HOME, platform="win32", environ={"APPDATA": "/roaming"})
    assert config.user_data("Trae") == Path("/roaming/Trae/User")


def test_an_environment_variable_beats_the_default():
    config = Config(home=HOME, environ={"CODEX_SESSIONS_DIR": "/other"})
    assert config.folder("codex", "CODEX_SESSIONS_DIR", HOME) == Path("/other")


def test_the_machine_s_environment_does_not_reach_another_home(monkeypatch):
    monkeypatch.setenv("CODEX_SESSIONS_DIR", "/mine")
    assert Config().env("CODEX_SESSIONS_DIR") == "/mine"
    assert Config(home=HOME).env("CODEX_SESSIONS_DIR") == ""


def test_a_tilde_stands_for_the_home_and_takes_two_characters():
    assert Config(home=HOME).expand("~/x") == HOME / "x"
    assert Config(home=HOME).expand("~") == HOME


def test_a_configured_folder_beats_both(tmp_path):
    config = Config(home=HOME, folders={"codex": tmp_path}, environ={"CODEX_SESSIONS_DIR": "/other"})
    assert config.folder("codex", "CODEX_SESSIONS_DIR", HOME) == tmp_path


@pytest.mark.parametrize(("name", "what"), [("gone", "does not exist"), ("file", "is not a folder")])
def test_a_configured_folder_must_be_one(tmp_path, name, what):
    (tmp_path / "file").touch()
    config = Config(folders={"codex": tmp_path / name})
    with pytest.raises(cnb.ConfigError, match=rf"folders\['codex'\].*{name} {what}"):
        cnb.scan("codex", config=config)


def test_settings_of_the_wrong_kind_are_refused():
    with pytest.raises(cnb.ConfigError, match="list of names"):
        Config(enabled_sources="codex")
    with pytest.raises(cnb.ConfigError, match="cache_seconds"):
        Config(cache_seconds=-1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"folders": None},
        {"folders": "/tmp"},
        {"enabled_sources": 5},
        {"cache_seconds": "5"},
        {"cache_seconds": float("nan")},
        {"home": 5},
    ],
)
def test_settings_of_another_type_are_refused_at_once(wrong):
    with pytest.raises(cnb.ConfigError, match=next(iter(wrong))):
        Config(**wrong)


def test_a_machine_without_a_home_is_a_clear_error(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    found = cnb.sources()
    assert set(found["status"]) == {"failed"}
    assert found["error"].str.contains("Name one by").all()
    with pytest.raises(cnb.ConfigError, match="Name one by"):
        cnb.scan()


@given(st.lists(st.sampled_from([*BUILT_IN_SOURCES, "mine"]), unique=True))
def test_loading_brings_back_every_missing_built_in(tmp_path, enabled):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"enabledSources": enabled, "more": 1}))
    loaded = list(Config.load(file).enabled_sources)
    assert loaded[: len(enabled)] == enabled
    assert set(loaded) == {*enabled, *BUILT_IN_SOURCES}


@given(json_values)
def test_a_wrong_file_is_a_clear_error_or_loads(tmp_path, value):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(value))
    try:
        Config.load(file)
    except cnb.ConfigError as error:
        assert str(file) in str(error)  # noqa: PT017


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 100_000])
def test_a_file_that_is_no_json_is_a_clear_error(tmp_path, content):
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(cnb.ConfigError, match=r"config\.json"):
        Config.load(file)
    with pytest.raises(cnb.ConfigError, match="gone"):
        Config.load(tmp_path / "gone")


@pytest.mark.parametrize(
    "wrong", [{"enabledSources": "codex"}, {"enabledSources": [1]}, {"folders": []}, {"folders": {"a": 1}}]
)
def test_wrong_keys_say_what_they_must_be(tmp_path, wrong):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(wrong))
    with pytest.raises(cnb.ConfigError, match="must"):
        Config.load(file)
