from __future__ import annotations

import pytest

import crystal_nb as cnb
from crystal_nb.adapters import base
from crystal_nb.adapters.base import TimedCache


@pytest.fixture
def clock(monkeypatch):
    """A clock that only goes on when told."""
    now = [100.0]
    monkeypatch.setattr(base.time, "monotonic", lambda: now[0])
    return now


def test_a_result_is_kept_for_the_time_given_and_no_longer(clock):
    cache, calls = TimedCache(), []
    for moment, wanted in ((100.0, 1), (104.9, 1), (105.0, 2)):
        clock[0] = moment
        cache.get("key", 5, lambda: calls.append(1))
        assert len(calls) == wanted


def test_the_time_counts_from_the_end_of_the_work(clock):
    cache, calls = TimedCache(), []

    def slow():
        calls.append(1)
        clock[0] += 60

    cache.get("key", 5, slow)
    clock[0] += 4.9
    cache.get("key", 5, slow)
    assert len(calls) == 1


def test_a_call_in_flight_is_not_shared(clock):
    cache, calls = TimedCache(), []

    def asks_again():
        calls.append(1)
        return cache.get("key", 5, lambda: calls.append(2))

    cache.get("key", 5, asks_again)
    assert calls == [1, 2]


def test_keys_are_apart_zero_is_off_and_a_result_can_be_refused(clock):
    cache = TimedCache()
    assert [cache.get(key, 5, lambda key=key: key) for key in "ab"] == ["a", "b"]
    assert [cache.get("off", 0, lambda i=i: i) for i in range(2)] == [0, 1]
    assert [cache.get("no", 5, lambda i=i: i, keep=lambda _: False) for i in range(2)] == [0, 1]


def test_five_seconds_is_the_default():
    assert cnb.Config().cache_seconds == 5


@pytest.mark.parametrize(
    ("source", "variable"),
    [
        ("claude-code", "CLAUDE_PROJECTS_DIR"),
        ("codex", "CODEX_SESSIONS_DIR"),
        ("cursor", "CURSOR_DATA_DIR"),
        ("trae", "TRAE_DATA_DIR"),
        ("copilot", "COPILOT_DATA_DIR"),
    ],
)
def test_each_source_has_its_environment_variable(tmp_path, source, variable):
    config = cnb.Config(home=tmp_path, environ={variable: str(tmp_path / "x")})
    assert cnb.get_adapter(source).root(config) == tmp_path / "x"


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("darwin", "Library/Application Support"), ("win32", "AppData/Roaming"), ("linux", ".config")],
)
@pytest.mark.parametrize(("source", "product"), [("cursor", "Cursor"), ("trae", "Trae"), ("copilot", "Code")])
def test_editors_are_looked_for_where_the_platform_keeps_them(tmp_path, platform, folder, source, product):
    config = cnb.Config(home=tmp_path, platform=platform)
    assert cnb.get_adapter(source).root(config) == tmp_path / folder / product / "User"
