"""Planning and importing through the public functions."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import crystal_nb as cnb
from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_claude_code
from crystal_nb.store_schema import Layout


@pytest.fixture
def config(tmp_path: Path) -> cnb.Config:
    """A home with three small Claude Code conversations."""
    home = tmp_path / "home"
    for n in range(3):
        put(home, f"s{n}")
    return cnb.Config(home=home, platform="linux", cache_seconds=0)


def put(home: Path, id: str, *texts: str) -> Path:
    texts = texts or ("hello", "hi there")
    messages = tuple(
        SampleMessage("assistant" if n % 2 else "user", t, f"{id}-{n}", f"2026-01-05T10:00:0{n}.000Z")
        for n, t in enumerate(texts)
    )
    return write_claude_code(home, Sample(id, messages))


@pytest.fixture(params=["chatcrystal", "careful"])
def profile(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def store(tmp_path: Path, profile: str, config: cnb.Config):
    with cnb.open_store(tmp_path / "imports.db", profile=profile, config=config) as opened:
        yield opened


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_a_report_counts_and_names_what_was_done(store, profile, config):
    first = cnb.import_all(store, profile=profile, config=config)
    assert (first.total, first.imported, first.skipped, first.errors) == (3, 3, 0, 0)
    assert first.imported_ids == first.summarisation_candidates == ["s0", "s1", "s2"]
    put(config.home_path, "s1", "hello", "hi there", "more")
    second = cnb.import_all(store, profile=profile, config=config)
    assert (second.replaced_ids, second.skipped_ids) == (["s1"], ["s0", "s2"])
    assert second.summarisation_candidates == ["s1"]
    assert "1 replaced" in repr(second)
    assert "<table>" in second._repr_html_()


def test_a_plan_says_what_the_import_then_does_and_writes_nothing(store, profile, config):
    before = dump(store.path)
    plan = cnb.plan(cnb.scan(config=config), store, profile=profile, config=config)
    assert dump(store.path) == before
    done = cnb.import_all(store, profile=profile, config=config).decisions
    assert plan.select("candidate_id", "action", "path", "content_hash").equals(
        done.select("candidate_id", "action", "path", "content_hash")
    )


def test_only_what_was_asked_for_is_imported(store, profile, config):
    cands = cnb.scan(config=config).filter(pl.col("id") == "s1")
    assert cnb.import_all(store, cands, profile=profile, config=config).imported_ids == ["s1"]


def test_the_steps_hold_the_values_that_were_compared(store, profile, config):
    cnb.import_all(store, profile=profile, config=config)
    size = put(config.home_path, "s0", "hello", "hi there", "more").stat().st_size
    plan = cnb.plan(cnb.scan(config=config), store, profile=profile, config=config)
    steps = {s["step"]: s for s in plan.row(0, named=True)["steps"]}
    assert steps["same size"]["now"] == str(size)
    assert steps["same size"]["answer"] is False


def test_progress_is_told_to_whoever_asks(store, profile, config):
    seen: list[tuple[int, int, str, str]] = []
    cnb.import_all(
        store,
        profile=profile,
        config=config,
        on_progress=lambda done, total, candidate, decision: seen.append((done, total, candidate.id, decision.action)),
    )
    assert seen == [(1, 3, "s0", "insert"), (2, 3, "s1", "insert"), (3, 3, "s2", "insert")]


def test_an_interrupted_import_goes_on_when_it_runs_again(store, profile, config):
    def stop(done: int, *_: object) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cnb.import_all(store, profile=profile, config=config, on_progress=stop)
    kept = store.conversations().height
    assert kept == {"chatcrystal": 0, "careful": 2}[profile]
    again = cnb.import_all(store, profile=profile, config=config)
    assert (again.imported, store.conversations().height) == (3 - kept, 3)


def test_a_cancelled_import_stops_between_two_conversations(tmp_path, config):
    for n in range(3, 400):
        put(config.home_path, f"s{n}")

    async def cancel_soon(store: cnb.Store) -> None:
        task = asyncio.create_task(cnb.import_all_async(store, profile="careful", config=config))
        while store.conversations().height < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.3)

    with cnb.open_store(tmp_path / "c.db", profile="careful", config=config) as store:
        asyncio.run(cancel_soon(store))
        rows = store.conversations()
        assert 3 <= rows.height < 400
        assert store.messages().height == rows["message_count"].sum()


def test_a_store_of_the_other_layout_is_refused(store, profile, config):
    other = {"chatcrystal": "careful", "careful": "chatcrystal"}[profile]
    with pytest.raises(cnb.ConfigError, match="create another store"):
        cnb.import_all(store, profile=other, config=config)


def test_a_copy_to_look_at_is_refused(store, profile, config):
    cnb.import_all(store, profile=profile, config=config)
    with (
        cnb.open_store(store.path, read_only=True) as copy,
        pytest.raises(cnb.StoreError, match="to be looked at"),
    ):
        cnb.import_all(copy, profile=profile, config=config)


def test_an_unknown_profile_is_refused(store, config):
    with pytest.raises(cnb.ConfigError, match="chatcrystal, careful"):
        cnb.plan([], store, profile="reckless", config=config)


def test_a_candidate_of_an_unknown_source_is_an_error_and_the_others_go_on(store, profile, config):
    stranger = cnb.Candidate("nobody", "x", "/nowhere", 1, "", "")
    known = cnb.scan(config=config)
    from crystal_nb.candidates import as_candidates

    report = cnb.import_all(store, [stranger, *as_candidates(known)], profile=profile, config=config)
    assert (report.error_ids, report.imported) == (["x"], 3)
    assert store.import_log()["status"].to_list() == ["error", "success", "success", "success"]


def test_a_message_of_another_conversation_is_reported_as_stolen(tmp_path, config):
    put(config.home_path, "s0", "hello", "hi there")
    twin = write_claude_code(
        config.home_path,
        Sample(
            "t",
            (
                SampleMessage("user", "hello", "s0-0", "2026-01-05T10:00:00.000Z"),
                SampleMessage("assistant", "new", "t-1", "2026-01-05T10:00:01.000Z"),
            ),
        ),
    )
    assert twin.exists()
    with cnb.open_store(tmp_path / "imports.db", config=config) as store:
        report = cnb.import_all(store, config=config)
        assert report.stolen.rows() == [("claude-code", "t", "s0-0", "s0")]
        assert "1 message taken" in report.headline()


def test_layouts_follow_the_profile(store, profile):
    assert store.layout == {"chatcrystal": Layout(False, False), "careful": Layout(True, True)}[profile]
