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


# What one bad value, adapter or neighbour may not do


def made(*conversations: cnb.Conversation, **fields: object) -> cnb.Adapter:
    """An adapter that gives conversations as they are."""
    by_id = {c.id: c for c in conversations}

    def read(candidate: cnb.Candidate, rules: object, config: cnb.Config) -> cnb.Parsed:
        return cnb.Parsed(by_id[candidate.id], ())

    return cnb.Adapter(
        "made",
        "Made",
        lambda c: Path("/"),
        lambda *_: 1,
        lambda *_: list(map(listed, by_id)),
        read,
        cnb.Rules("made@1"),
    )


def listed(id: object, **fields: object) -> cnb.Candidate:
    values = {"file_path": "/f", "file_size": 1, "file_mtime": "t", "project_dir": "", **fields}
    return cnb.Candidate("made", id, **values)  # type: ignore[arg-type]


def talk(name: str, **fields: object) -> cnb.Conversation:
    first = cnb.Message(**{"type": "user", "content": "hello", "id": f"{name}-0", **fields})  # type: ignore[arg-type]
    return cnb.Conversation("made", name, (first, cnb.Message("assistant", "hi", id=f"{name}-1")))


ODD_FIELDS = [
    *({"type": v} for v in (7, None, "\ud800", ["x"])),
    *({"role": v} for v in (7.5, "\ud800", {"a": 1}, cnb.UNSET)),
    *({"content": v} for v in (5, None, "\ud800")),
    *({"thinking": v} for v in (5, "\ud800", cnb.UNSET, ["x"])),
    *({name: v} for name in ("has_tool_use", "has_code") for v in (None, "yes", cnb.UNSET, 1)),
    *({"id": v} for v in (None, 7, "\ud800", "a\0b", ["x"])),
    *({"timestamp": v} for v in (2**70, "\ud800", {"a": 1})),
]


@pytest.mark.parametrize("fields", ODD_FIELDS, ids=repr)
def test_an_odd_value_costs_at_most_its_own_conversation(store, profile, config, fields):
    adapter = made(talk("odd", **fields), talk("sound"))
    report = cnb.import_all(store, list(map(listed, ("odd", "sound"))), adapters=[adapter], config=config)
    assert "sound" in report.imported_ids
    assert report.total == 2
    if "odd" in report.imported_ids:
        (row,) = store.conversations().filter(pl.col("id") == "odd").iter_rows(named=True)
        assert row["content_hash"] in store.rehash("made", "odd")


ODD_CANDIDATES = [
    {"file_size": 2**63},
    {"file_size": -(2**70)},
    {"file_mtime": "\ud800"},
    {"file_path": "\ud800"},
    {"file_path": "a\0b"},
    {"project_dir": "\ud800"},
]


@pytest.mark.parametrize("fields", ODD_CANDIDATES, ids=repr)
def test_an_odd_candidate_costs_at_most_itself(store, profile, config, fields):
    candidates = [listed("odd", **fields), listed("sound")]
    report = cnb.import_all(store, candidates, adapters=[made(talk("odd"), talk("sound"))], config=config)
    assert "sound" in report.imported_ids
    assert cnb.plan(candidates, store, adapters=[made()], config=config).height == 2


def test_a_source_that_is_no_text_is_an_error(store, config):
    strange = cnb.Candidate(["made"], "x", "/f", 1, "t", "")  # type: ignore[arg-type]
    report = cnb.import_all(store, [strange, listed("sound")], adapters=[made(talk("sound"))], config=config)
    assert (report.errors, report.imported) == (1, 1)


def test_a_conversation_of_another_source_is_an_error(store, config):
    stray = cnb.Conversation("other", "x", talk("x").messages)
    report = cnb.import_all(store, [listed("x")], adapters=[made(stray)], config=config)
    assert "not 'made'" in report.problems()[0]


@pytest.mark.parametrize("error", [ValueError("v"), RecursionError(), MemoryError(), StopIteration()], ids=repr)
def test_whatever_a_parse_raises_is_an_error_of_its_own(store, config, error):
    def read(*_: object) -> cnb.Parsed:
        raise error

    adapter = made(talk("a"))
    object.__setattr__(adapter, "read", read)
    report = cnb.import_all(store, [listed("a")], adapters=[adapter], config=config)
    assert report.errors == 1


def test_two_ids_with_surrogates_stay_two(tmp_path, config):
    adapter = made(talk("\ud800"), talk("\ud801"))
    with cnb.open_store(tmp_path / "c.db", profile="careful", config=config) as store:
        candidates = list(map(listed, ("\ud800", "\ud801")))
        assert cnb.import_all(store, candidates, adapters=[adapter], config=config).imported == 2
        again = cnb.plan(candidates, store, adapters=[adapter], config=config)
        assert store.conversations()["id"].to_list() == ["\\ud800", "\\ud801"]
        assert again["id"].drop_nulls().n_unique() == 2


@pytest.mark.parametrize("name", ["a\0b", "\u2028", "null", "\ud800", "'", ""])
def test_theft_is_reported_whatever_the_id(tmp_path, config, name):
    messages = (cnb.Message("user", "1", id=name), cnb.Message("user", "2", id="own"))
    adapter = made(*(cnb.Conversation("made", k, (messages[0], cnb.Message("user", k, id=k))) for k in "ab"))
    with cnb.open_store(tmp_path / "p.db", config=config) as store:
        report = cnb.import_all(store, list(map(listed, "ab")), adapters=[adapter], config=config)
        assert report.stolen.height == 1


def test_a_scan_that_yields_is_listened_to(store, config):
    adapter = made(talk("a"), talk("b"))
    object.__setattr__(adapter, "candidates", lambda *_: (listed(k) for k in "ab"))
    assert cnb.import_all(store, adapters=[adapter], config=cnb.Config(home=config.home, enabled_sources=())).total == 2


def test_a_detect_that_breaks_is_a_detect_error(tmp_path, config):
    def broken(*_: object) -> int:
        raise ZeroDivisionError

    adapter = made(talk("a"))
    object.__setattr__(adapter, "count", broken)
    lone = cnb.Config(home=config.home, enabled_sources=())
    with cnb.open_store(tmp_path / "p.db") as store, pytest.raises(cnb.DetectError, match="ZeroDivisionError"):
        cnb.import_all(store, adapters=[adapter], config=lone)
    with cnb.open_store(tmp_path / "c.db", profile="careful") as store:
        report = cnb.import_all(store, adapters=[adapter], config=lone)
        assert [f.source for f in report.source_failures] == ["made"]


@pytest.mark.parametrize("adapters", ["t", ["t"], None, 5])
def test_adapters_that_are_none_are_refused(store, config, adapters):
    for work in (cnb.import_all, lambda s, c, **k: cnb.plan(c, s, **k), lambda s, c, **k: cnb.rehearse(c, s, **k)):
        with pytest.raises(cnb.AdapterError, match="list of adapters"):
            work(store, [], adapters=adapters, config=config)


def test_a_frame_without_size_and_time_is_refused(store, config):
    frame = cnb.scan(config=config).drop("file_size")
    with pytest.raises(cnb.ConfigError, match="file_size"):
        cnb.plan(frame, store, config=config)


def test_a_second_import_into_the_same_store_is_refused_while_one_runs(store, config):
    def again(*_: object) -> None:
        cnb.import_all(store, config=config)

    with pytest.raises(cnb.StoreError, match="another import is running"):
        cnb.import_all(store, config=config, on_progress=again)
    assert cnb.import_all(store, config=config).errors == 0


def test_what_another_process_imported_meanwhile_is_seen(tmp_path, config):
    with (
        cnb.open_store(tmp_path / "c.db", profile="careful", config=config) as one,
        cnb.open_store(tmp_path / "c.db", config=config) as two,
    ):

        def neighbour(done: int, *_: object) -> None:
            if done == 1:
                assert cnb.import_all(two, config=config).errors == 0

        report = cnb.import_all(one, config=config, on_progress=neighbour)
        assert (report.imported, report.errors, report.skipped) == (1, 0, 2)
        assert one.conversations().height == 3


def test_short_readings_do_not_hide_whose_id_it_is(tmp_path, config):
    from msgspec.structs import replace

    policy = replace(cnb.CAREFUL, row_id="parsed-id")
    inner = replace(talk("inner"), id="inner")
    short = replace(inner, messages=inner.messages[:1])
    adapter = made(talk("f1"), talk("f2"))
    readings = {"f1": inner, "f2": short}
    object.__setattr__(adapter, "read", lambda c, *_: cnb.Parsed(readings[c.id], ()))
    with cnb.open_store(tmp_path / "c.db", profile=policy, config=config) as store:
        cnb.import_all(store, list(map(listed, ("f1", "f2"))), profile=policy, adapters=[adapter], config=config)
        readings["f2"] = inner
        grown = [listed("f1"), listed("f2", file_size=2)]
        plan = cnb.plan(grown, store, profile=policy, adapters=[adapter], config=config)
        done = cnb.import_all(store, grown, profile=policy, adapters=[adapter], config=config).decisions
        assert plan["action"].to_list() == done["action"].to_list()


@pytest.mark.parametrize("field", ["lookup", "row_id", "conversation_key", "message_key", "failing_source", "save"])
def test_a_policy_of_unknown_values_is_refused(field):
    from msgspec.structs import replace

    with pytest.raises(cnb.ConfigError, match=field):
        replace(cnb.PINNED, **{field: "zz"})
    with pytest.raises(cnb.ConfigError, match="min_messages"):
        replace(cnb.PINNED, min_messages="2")


# What a replace and a metadata update leave and change


def columns(store: cnb.Store) -> dict[str, object]:
    (row,) = store.connection.execute("SELECT * FROM conversations")
    names = [c[0] for c in store.connection.execute("SELECT * FROM conversations").description]
    return dict(zip(names, row, strict=True))


def dressed(**changes: object) -> cnb.Conversation:
    from msgspec.structs import replace

    facts = {"slug": "t", "project_dir": "/p", "project_name": "p", "cwd": "/c", "git_branch": "b"}
    times = {"first_message_at": "2026-01-01T00:00:00.000Z", "last_message_at": "2026-01-01T00:00:01.000Z"}
    return replace(talk("a", thinking="why", timestamp=times["first_message_at"]), **{**facts, **times, **changes})


def take_in(store: cnb.Store, conversation: cnb.Conversation, **fields: object) -> str:
    adapter = made(conversation)
    report = cnb.import_all(store, [listed("a", **fields)], adapters=[adapter])
    return report.decisions["action"][0]


def test_what_is_stored_is_all_that_was_parsed(store):
    take_in(store, dressed())
    (first, _) = store.messages().iter_rows(named=True)
    assert (first["content"], first["thinking"], first["type"], first["id"]) == ("hello", "why", "user", "a-0")
    assert store.connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_metadata_update_changes_every_fact_and_no_message(store):
    take_in(store, dressed())
    before = store.messages()
    new = {"slug": "T", "project_dir": "/P", "project_name": "P", "cwd": "/C", "git_branch": "B"}
    assert take_in(store, dressed(**new), file_size=2, file_mtime="u") == "metadata-update"
    after = columns(store)
    assert {name: after[name] for name in new} == new
    assert (after["file_size"], after["file_mtime"], after["status"]) == (2, "u", "imported")
    assert store.messages().equals(before)


@pytest.mark.parametrize(
    ("status", "reason", "kept"),
    [
        ("filtered", "user-rejected-note", True),
        ("summarized", "user-rejected-note", False),
        ("filtered", "other", False),
    ],
)
def test_a_judgement_is_kept_only_of_what_a_person_rejected(store, status, reason, kept):
    take_in(store, dressed())
    judged = "experience_gate_reason = ?, experience_gate_details = 'd', experience_score = 5"
    store.connection.execute(f"UPDATE conversations SET status = ?, {judged}", (status, reason))
    created = columns(store)["created_at"]
    other = talk("a", content="other")
    assert take_in(store, other, file_size=3) == "replace"
    after = columns(store)
    judgement = (after["experience_score"], after["experience_gate_reason"], after["experience_gate_details"])
    assert judgement == ((5.0, reason, "d") if kept else (None, None, None))
    assert after["status"] == ("filtered" if kept else "imported")
    assert after["created_at"] == created


def test_the_theft_of_many_rows_is_counted_in_full(tmp_path, config):
    messages = tuple(cnb.Message("user", "x", id=f"m{n}") for n in range(1201))
    adapter = made(cnb.Conversation("made", "a", messages), cnb.Conversation("made", "b", messages))
    with cnb.open_store(tmp_path / "p.db", config=config) as store:
        report = cnb.import_all(store, [listed("a"), listed("b")], adapters=[adapter], config=config)
        assert report.stolen.height == 1201


def test_a_broken_file_is_not_remembered_as_short(tmp_path, config):
    path = config.home_path / ".claude" / "projects" / "-srv-demo" / "torn.jsonl"
    path.write_text('{"type": "user", "uuid": "u", "message": {"content": "hi"}}\n' + '{"type": ' * 30)
    with cnb.open_store(tmp_path / "c.db", profile="careful", config=config) as store:
        for _ in range(2):
            decisions = cnb.import_all(store, cnb.scan("claude-code", config=config), config=config).decisions
            (row,) = decisions.filter(pl.col("candidate_id") == "torn").iter_rows(named=True)
            assert (row["action"], row["message_count"]) == ("skip-short", 1)


def test_by_the_careful_policy_no_time_is_the_clocks(tmp_path, config):
    conversation = dressed(messages=tuple(m for m in talk("a", timestamp="2026", timestamp_from_clock=True).messages))
    with cnb.open_store(tmp_path / "c.db", profile="careful", config=config) as store:
        take_in(store, conversation)
        assert columns(store)["first_message_at"] is None
        assert store.connection.execute("SELECT timestamp FROM messages WHERE sort_order = 0").fetchone() == (None,)


def test_a_fingerprint_is_taken_anew_when_the_file_changed(config):
    from crystal_nb.candidates import as_candidates
    from crystal_nb.fingerprint import Fingerprints

    marks, candidate = Fingerprints(), as_candidates(cnb.scan("claude-code", config=config))[0]
    before = marks(candidate)
    Path(candidate.file_path).write_text("other")
    assert marks(candidate) != before


def test_a_plan_foresees_a_foreign_key_in_the_way(tmp_path, config):
    from msgspec.structs import replace

    adapter = made(talk("a"))
    readings = {"a": talk("a")}
    object.__setattr__(adapter, "read", lambda c, *_: cnb.Parsed(readings[c.id], ()))
    with cnb.open_store(tmp_path / "p.db", config=config) as store:
        cnb.import_all(store, [listed("a")], adapters=[adapter], config=config)
    readings["a"] = replace(talk("a", content="new"), id="elsewhere")
    with cnb.open_store(tmp_path / "p.db", config=config) as store:
        changed = [listed("a", file_size=2)]
        plan = cnb.plan(changed, store, adapters=[adapter], config=config)
        report = cnb.import_all(store, changed, adapters=[adapter], config=config)
        assert plan["action"].to_list() == report.decisions["action"].to_list() == ["error"]


@pytest.mark.parametrize("kind", ["chatcrystal", "careful"])
def test_an_import_of_nothing_new_asks_the_same_however_many_there_are(tmp_path, config, kind):
    asked: dict[int, list[str]] = {}
    for number in (3, 30):
        for n in range(number):
            put(config.home_path, f"s{n}")
        with cnb.open_store(tmp_path / f"{number}.db", profile=kind, config=config) as store:
            cnb.import_all(store, config=config)
            store.connection.set_trace_callback(asked.setdefault(number, []).append)
            assert cnb.import_all(store, config=config).skipped == number
    assert asked[3] == asked[30]
    assert sum(statement.startswith("SELECT") for statement in asked[30]) == 1


def test_a_broken_file_is_not_remembered_either_when_a_neighbour_made_it_decide_anew(tmp_path, config):
    path = config.home_path / ".claude" / "projects" / "-srv-demo" / "s1-torn.jsonl"
    path.write_text('{"type": "user", "uuid": "u", "message": {"content": "hi"}}\n' + '{"type": ' * 30)
    with (
        cnb.open_store(tmp_path / "c.db", profile="careful", config=config) as one,
        cnb.open_store(tmp_path / "c.db", config=config) as two,
    ):

        def neighbour(done: int, *_: object) -> None:
            two.log_error("/f", "something")

        cnb.import_all(one, config=config, on_progress=neighbour)
        assert one.connection.execute("SELECT * FROM short_candidates").fetchall() == []
