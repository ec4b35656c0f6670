"""The audit as a whole: its report, the command, databases that are in use, and sampling."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import combinations, takewhile
from pathlib import Path

import jsonschema
import pytest
import strategies
from audit_plants import World
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import crystal_nb as cnb
from crystal_nb import cli
from crystal_nb.audit import (
    KINDS,
    QUESTIONS,
    Answer,
    AuditReport,
    Finding,
    hash_power,
    integrity,
    reparse,
    stale_skips,
    upper_bound,
)
from crystal_nb.audit.findings import cause_of
from crystal_nb.audit.stored import hash_keys
from crystal_nb.policy import policy_of
from crystal_nb.scenarios.world import Staged

SCHEMA = json.loads((cnb.samples.fixtures() / "audit" / "schema.json").read_text(encoding="utf-8"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, "chatcrystal")
    world.import_all()
    return world


@pytest.fixture
def faulty(world: World) -> World:
    world.edit("s1", "blue", "pink", seen=False)
    return world


def ask(world: World, **more: object) -> AuditReport:
    return cnb.audit(world.path, world.scan(), config=world.config, progress=False, **more)


# The report


def test_findings_tables_and_sentences(faulty):
    report = ask(faulty)
    assert not report.ok
    assert report.findings.filter(severity="fault")["conversation_id"].to_list() == ["claude-code:s1"]
    assert report.findings["question"].dtype.categories.to_list() == list(QUESTIONS)
    assert report.tables["skips"].filter(source="claude-code")["stale"].to_list() == [1]
    assert report.summary()[1] == (
        "Stale skips: of the 12 candidates the pinned check would skip 12; 1 of them is stale."
    )


def test_notes_leave_it_ok(world):
    report = ask(world)
    assert (report.ok, report.counts()) == (True, {"fault": 0, "note": 1})


def test_a_page_in_a_folder_that_is_not_there_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No such file") as caught:
        AuditReport(()).to_html(tmp_path / "gone" / "audit.html")
    assert Path(caught.value.filename) == tmp_path / "gone" / "audit.html"


def test_a_path_may_begin_at_the_home_folder(world, monkeypatch):
    monkeypatch.setenv("HOME", str(world.path.parent))
    report = cnb.audit("~/imports.db", [], config=world.config)
    assert report.store == str(world.path)
    report.to_html("~/audit.html")
    assert (world.path.parent / "audit.html").exists()


def test_the_questions_are_named_where_they_are_looked_for():
    assert [q for q in QUESTIONS if f"``{q}``" not in cnb.audit.__doc__] == []


# What it can't know


def test_what_only_a_parse_tells_is_not_known_without_one(world):
    alone = cnb.audit(world.path, [], config=world.config)
    assert alone.answer("identity").sentence == (
        "Identity: 12 stored conversations; 0 with other numbers of rows than messages, "
        "ids inside and messages under other conversations not known, as nothing was parsed."
    )
    assert "ignores are not known, as nothing was parsed." in alone.answer("hash power").sentence
    some = ask(world, sample=2)
    assert "of a sample of 2: 0 with another id inside than outside" in some.answer("identity").sentence
    assert "of a sample of 2, 0 conversations changed" in some.answer("hash power").sentence


def test_the_sentence_about_identity_has_what_is_found(world):
    world.claude("s2x", "other", "words", ids="s2")
    world.import_all()
    world.sql("UPDATE conversations SET message_count = 1 WHERE id = 's3'")
    sentence = ask(world).answer("identity").sentence
    assert "2 with other numbers of rows than messages" in sentence
    assert "2 message ids that several have, 2 messages under another conversation." in sentence


def test_the_sentence_about_integrity_says_where_the_rest_is(world):
    world.sql(
        "UPDATE conversations SET message_count = 3, content_hash = 'x' WHERE id = 's1'",
        "UPDATE conversations SET content_hash = 'x' WHERE id = 's2'",
        "UPDATE conversations SET content_hash = NULL WHERE id = 's3'",
    )
    answer = ask(world).answer("integrity")
    assert answer.sentence.startswith(
        "Integrity: the rows of 9 of 12 conversations hash to the stored hash, 1 with other messages, "
        "1 with another number of messages (row-count, a question of identity), 1 without a stored hash;"
    )
    assert answer.kinds() == {"hash-differs": 1, "hash-missing": 1}


@pytest.mark.parametrize("sample", [None, 1])
def test_a_history_that_is_gone_is_told(world, sample):
    world.file("s1").unlink()
    world.sql("INSERT INTO conversations (source, id) VALUES ('gemini', '8')")
    answer = cnb.audit(world.path, config=world.config, sample=sample).answer("identity")
    found = [(f.kind, f.severity, f.conversation_id, f.count) for f in answer.findings if f.kind == "history-gone"]
    assert found == [("history-gone", "note", "claude-code:s1", 1)]
    assert "1 without a candidate any more" in answer.sentence
    assert answer.sentence.endswith("Not looked for: histories of gemini.")
    chosen = ask(world).answer("identity")
    assert ("any more" in chosen.sentence, "history-gone" in chosen.kinds()) == (False, False)


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
@pytest.mark.parametrize("asked", ["chatcrystal", "careful"])
def test_no_history_of_the_samples_is_gone_by_any_rules(profile, asked):
    config = cnb.samples.config()
    with cnb.Store.in_memory(policy_of(profile), config) as store:
        cnb.import_all(store, config=config, progress=False)
        report = cnb.audit(store, config=config, profile=asked, questions=["identity"], progress=False)
    assert "history-gone" not in report.answer("identity").kinds()


def test_the_policy_of_a_careful_store_is_not_said_to_skip_by_size_and_time(tmp_path):
    world = World(tmp_path, "careful")
    world.import_all()
    assert ask(world).answer("stale skips").sentence == (
        "Stale skips: of the 12 candidates by size and time alone, which the policy careful does not trust, "
        "the pinned check would skip 12; 0 of them are stale."
    )


def test_a_store_with_a_source_that_chatcrystal_lacks_can_be_clean(world):
    world.sql("INSERT INTO conversations (source, id, message_count) VALUES ('gemini', '8', 0)")
    report = ask(world)
    assert report.ok
    assert report.answer("coverage").kinds()["not-supported"] == 1


def test_one_of_the_five_that_a_place_lacks_is_a_fault(monkeypatch):
    from crystal_nb.audit import coverage, places

    monkeypatch.setattr(places, "SUPPORTED_SOURCES", ("codex",))
    assert {f.severity for f in coverage(["trae"]).findings} == {"fault"}


def test_the_report_escapes_what_it_shows():
    text = "<script>alert(1)</script>\x1b[31m"
    found = Finding("stale-skip", text, text, text, text, 1, "fault")
    report = AuditReport((Answer("stale skips", text, (found,)),), text)
    for shown in (report.to_html(), report._repr_html_()):
        assert "<script>" not in shown
        assert "\x1b" not in shown
    assert "\x1b" not in repr(report)


def test_the_store_alone_can_be_asked(world):
    report = cnb.audit(world.path, [], config=world.config)
    assert (report.candidates, report.ok) == (0, True)
    assert report.tables["integrity"]["equal"].sum() == 12
    assert report.tables["costs"].is_empty()
    assert "Stale skips: not known, as nothing was parsed." in report.summary()


def test_without_candidates_all_that_is_here_is_asked(world):
    assert cnb.audit(world.path, config=world.config).candidates == 12


def test_it_can_be_awaited(world):
    assert asyncio.run(cnb.audit_async(world.path, [], config=world.config)).ok


def test_single_questions_take_a_store(faulty):
    with cnb.open_store(faulty.path) as store:
        assert stale_skips(store, faulty.scan(), config=faulty.config).kinds() == {"stale-skip": 1}
        assert integrity(store).findings == ()
        parsed = reparse(store, faulty.scan(), config=faulty.config)
        content = hash_power(store, parsed).tables["power"].filter(field="content")
        assert (content["versions"].to_list(), content["groups"].to_list()) == ([1], [2])


@pytest.mark.parametrize(
    "wrong",
    [{"questions": ["why"]}, {"sample": 0}, {"profile": "bold"}, {"config": 7}],
)
def test_wrong_settings_are_refused(world, wrong):
    with pytest.raises(cnb.ConfigError):
        cnb.audit(world.path, [], **{"config": world.config, **wrong})


def test_a_database_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(cnb.StoreError, match="no such database"):
        cnb.audit(tmp_path / "none.db", [])
    assert not list(tmp_path.iterdir())


# What each field tells apart


def test_the_pairs_have_one_for_each_hashed_field_by_records_and_by_rows():
    config = cnb.samples.pairs()
    found = cnb.ablate(cnb.parse(cnb.scan(config=config), config=config))
    with cnb.Store.in_memory(cnb.PINNED, config) as store:
        cnb.import_all(store, config=config)
        power = hash_power(store).tables["power"].filter(hashed=True)
    assert found["field"].to_list() == list(cnb.HASH_FIELDS)
    assert found["groups"].to_list() == [1] * 8
    assert power.select("field", "groups", "conversations").equals(found.select("field", "groups", "conversations"))


@settings(max_examples=60)
@given(st.lists(strategies.conversations, max_size=6))
def test_rows_tell_apart_what_records_do(conversations):
    keys = [hash_keys(c.source, c.messages) for c in conversations]
    for place, field in enumerate((None, *cnb.HASH_FIELDS)):
        texts = [cnb.canonical_json(c, without=[field] if field else []) for c in conversations]
        for a, b in combinations(range(len(texts)), 2):
            assert (keys[a][place] == keys[b][place]) == (texts[a] == texts[b])


# Sampling


@pytest.mark.parametrize(
    ("found", "drawn", "share"), [(0, 59, 0.0495), (1, 20, 0.2161), (5, 100, 0.1022), (0, 1, 0.95)]
)
def test_the_bound_is_that_of_clopper_and_pearson(found, drawn, share):
    assert upper_bound(found, drawn) == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize("found", [0, 3, 40])
def test_the_bound_is_the_same_for_large_samples_by_logarithms(found):
    from crystal_nb.audit import skips

    exact = upper_bound(found, 1000)
    assert upper_bound(found, 1001) == pytest.approx(exact, rel=2e-3)
    assert skips._tail(found, 1000, exact) == pytest.approx(0.05, abs=1e-9)


def test_a_sample_is_drawn_by_its_seed_and_says_how_sure_it_is(faulty):
    report = ask(faulty, sample=8)
    assert (report.parsed, report.candidates) == (8, 12)
    *_, total = report.tables["skips"].iter_rows(named=True)
    assert total["upper_bound"] == upper_bound(total["stale"], 8)
    assert "with 95 % confidence at most" in report.summary()[1]
    assert ask(faulty, sample=8).found == report.found


@pytest.mark.parametrize("drawn", [10, 40, 199])
def test_the_bound_holds_in_95_of_100_draws_whatever_the_share(drawn):
    """By counting all outcomes of drawing from 200, not by chance."""
    from math import comb

    for stale in range(201):
        fails = sum(
            comb(stale, found) * comb(200 - stale, drawn - found)
            for found in range(max(0, drawn - 200 + stale), min(stale, drawn) + 1)
            if upper_bound(found, drawn) < stale / 200
        )
        assert fails / comb(200, drawn) <= 0.05


def test_what_can_not_be_decided_makes_no_sample_surer(faulty):
    faulty.sql("UPDATE conversations SET content_hash = NULL WHERE source = 'codex'")
    report = ask(faulty, sample=11)
    *_, total = report.tables["skips"].iter_rows(named=True)
    assert total["undecidable"] >= 5
    assert total["upper_bound"] == upper_bound(total["stale"], 11 - total["undecidable"])
    codex = report.tables["skips"].filter(source="codex")
    assert codex["upper_bound"].to_list() == [1.0]
    assert "and that can be decided (seed 0)" in report.summary()[1]


def test_what_is_skipped_and_can_not_be_parsed_is_told(world):
    class Failing(Staged):
        async def parse(self, candidate, config):
            raise ValueError("no")

    asked = ["stale skips", "wasted work"]
    report = ask(world, adapters=[Failing(cnb.get_adapter("codex"))], questions=asked)
    assert report.answer("stale skips").kinds() == {"unreadable": 6}
    assert report.tables["skips"].filter(source="codex")["undecidable"].to_list() == [6]
    assert "6 can't be decided" in report.summary()[1]
    assert report.answer("wasted work").findings == ()


# What is shown of errors


@pytest.mark.parametrize(
    "message",
    [
        """Unexpected token 'x', ..."tent": "dear diary" x"... is not valid JSON""",
        "can't read 'it's dear diary' now",
        '"dear diary',
        "“of “inner” dear diary” bad",
        "«dear diary» is odd",
        "‘dear diary’ is odd",
        "no sense in `dear\ndiary`",
        "open 'dear diary",
        '"x" * 7 or "' + "dear diary " * 2000,
    ],
)
def test_no_quoted_text_of_an_error_is_shown_however_it_is_quoted(message):
    shown = cause_of(message)
    assert "dear" not in shown
    assert "diary" not in shown
    assert cause_of(shown) == shown


def test_an_error_of_a_clean_up_is_shown_whole_without_secrets(world):
    tasks = (("boom 12 password=hunter22", 1), ("boom 13 password=other-one", 2), ("no server", 3))
    for text, number in tasks:
        world.sql(
            "INSERT INTO vector_cleanup_tasks (target_type, target_id, status, attempts, last_error, created_at) "
            f"VALUES ('note', '{number}', 'pending', 3, '{text}', '2026-01-01')"
        )
    found = cnb.audit(world.path, [], config=world.config, questions=["integrity"]).found
    assert [(f.evidence, f.count) for f in found] == [
        ("note, since 2026-01-01; boom 13 password=[masked: password]", 2),
        ("note, since 2026-01-01; no server", 1),
    ]


def test_a_cause_has_no_part_of_a_secret():
    assert cause_of("boom 7 password=hunter22") == "boom n password=[masked: password]"


# Databases of ChatCrystal and in use


def as_chatcrystal(world: World) -> Path:
    """The same rows as ChatCrystal itself has them: no mark, no columns and tables of this package."""
    path = world.path.parent / "data" / "chatcrystal.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(world.path)) as own, closing(sqlite3.connect(path)) as other:
        own.backup(other)
        other.executescript(
            "PRAGMA application_id = 0; PRAGMA user_version = 0; DROP TABLE migrations; DROP TABLE short_candidates;"
            "ALTER TABLE conversations DROP COLUMN fingerprint; ALTER TABLE conversations DROP COLUMN parsed_id;"
            "ALTER TABLE messages DROP COLUMN exact;"
        )
    return path


def told(report: AuditReport) -> list[object]:
    return [(f.kind, f.conversation_id, f.evidence, f.count) for f in report.found]


def test_a_chatcrystal_database_gives_the_same_answers(faulty):
    other = cnb.audit(as_chatcrystal(faulty), faulty.scan(), config=faulty.config)
    assert told(other) == told(ask(faulty))


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA wal_autocheckpoint = 0")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE conversations SET status = 'summarizing'")
connection.execute("UPDATE messages SET content = 'changed' WHERE id = 's2-0'")
connection.execute("COMMIT")
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE messages SET content = 'not yet' WHERE id = 's3-0'")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("own", [False, True])
def test_a_database_that_another_process_holds_open_stays_as_it_is(faulty, own):
    path = faulty.path if own else as_chatcrystal(faulty)
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout.readline() == "ready\n"
        before = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
        assert any(name.endswith("-wal") for name in before)
        report = cnb.audit(path, faulty.scan(), config=faulty.config)
        assert {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()} == before
        holder.stdin.close()
    assert {(f.kind, f.conversation_id) for f in report.found if f.severity == "fault"} == {
        ("stale-skip", "claude-code:s1"),
        ("hash-differs", "claude-code:s2"),
    }


def test_an_old_database_without_hashes_can_be_asked(world):
    path = as_chatcrystal(world)
    with closing(sqlite3.connect(path)) as connection:
        for column in ("source_conversation_id", "content_hash", "parser_version"):
            connection.execute(f"ALTER TABLE conversations DROP COLUMN {column}")
    report = cnb.audit(path, world.scan(), config=world.config)
    assert report.answer("integrity").kinds() == {"hash-missing": 2}
    assert report.answer("stale skips").kinds() == {"unhashed": 12}
    assert report.ok


# The command


@pytest.fixture
def run(world):
    def run(*words: str):
        return CliRunner().invoke(cli.app, ["audit", "--home", str(world.home), *words])

    return run


def test_the_exit_codes(run, world, tmp_path):
    assert run("--db", str(world.path)).exit_code == 0
    world.edit("s1", "blue", "pink", seen=False)
    assert run("--db", str(world.path)).exit_code == 1
    assert run("--db", str(tmp_path / "none.db")).exit_code == 2
    assert run().exit_code == 2


def test_a_command_that_breaks_says_that_it_could_not_run(run, world, monkeypatch):
    from crystal_nb import cli_audit

    def broken(*_, **__):
        raise ZeroDivisionError('over "dear diary"')

    monkeypatch.setattr(cli_audit, "ask", broken)
    result = run("--db", str(world.path))
    assert result.exit_code == 2
    assert "dear diary" not in result.output + result.stderr


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 200, None, "foreign", "cut"])
@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_what_is_no_database_of_imports_can_not_be_asked(run, world, tmp_path, content, json_too):
    path = tmp_path / "odd.db"
    if content is None:
        path.mkdir()
    elif content == "foreign":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE messages (id)")
    elif content == "cut":
        path.write_bytes(world.path.read_bytes()[:5000])
    else:
        path.write_bytes(content)
    result = run("--db", str(path), *json_too)
    assert (result.exit_code, result.stdout) == (2, "")
    assert str(path) in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_full_disk_is_exit_code_2(world, json_too):
    words = ["audit", "--db", world.path, "--home", world.home, *json_too]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "crystal_nb", *words], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_a_page_that_can_not_be_written_is_exit_code_2_also_with_faults(run, world, tmp_path):
    world.edit("s1", "blue", "pink", seen=False)
    assert run("--db", str(world.path), "--html", str(tmp_path)).exit_code == 2
    assert run("--db", str(world.path), "--html", str(tmp_path / "a.html")).exit_code == 1


def test_json_and_a_page_at_once(run, world, tmp_path):
    result = run("--db", str(world.path), "--json", "--html", str(tmp_path / "a.html"))
    jsonschema.validate(json.loads(result.stdout), SCHEMA)
    assert (result.exit_code, result.stderr) == (0, f"Wrote {tmp_path / 'a.html'}\n")
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_some_sources_only(run, world):
    document = json.loads(run("codex", "--db", str(world.path), "--json").stdout)
    assert (document["candidates"], document["ok"]) == (6, True)
    assert any("Not looked for: histories of claude-code." in sentence for sentence in document["summary"])
    wrong = run("cody", "--db", str(world.path))
    assert (wrong.exit_code, "no adapter named 'cody'" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_shows_what_matters_of_each_finding(world, tmp_path, width):
    from test_cli import on_terminal

    world.claude("alone", "one")
    world.edit("s1", "blue", "pink", seen=False)
    words = ("audit", "--db", str(world.path), "--home", str(world.home))
    code, text = on_terminal(tmp_path, width, *words)
    _, _, table = text.partition("Findings")
    header, _, *lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in table.splitlines()[1:]]
    assert (code, header.split()) == (1, ["severity", "kind", "source", "conversation", "detail"])
    rows = list(takewhile(lambda line: not line.startswith("Audit of"), lines))
    first, second = (next(n for n, row in enumerate(rows) if row.startswith(s)) for s in ("fault", "note"))
    assert rows[first].split()[1:4] == ["stale-skip", "claude-code", f"…{'claude-code:s1'[-11:]}"]
    at = header.index("detail")
    told = "".join(row[at:] for row in rows[first:second])
    assert "".join(told.split()) == KINDS["stale-skip"].meaning.replace(" ", "").capitalize() + "."
    assert "Question, evidence and count of each finding: pipe the output" in text


def test_json_is_as_the_schema_says(run, world):
    world.edit("s1", "blue", "pink", seen=False)
    document = json.loads(run("--db", str(world.path), "--json").stdout)
    jsonschema.validate(document, SCHEMA)
    assert [f["kind"] for f in document["findings"] if f["severity"] == "fault"] == ["stale-skip"]


def test_json_of_the_samples_is_as_the_schema_says():
    config = cnb.samples.config()
    with cnb.Store.in_memory(cnb.PINNED, config) as store:
        cnb.import_all(store, config=config)
        document = cnb.audit(store, config=config).document()
    jsonschema.validate(json.loads(json.dumps(document)), SCHEMA)
    assert {name for q in document["questions"] for name in q["tables"]} == tables_of_the_schema()


def tables_of_the_schema() -> set[str]:
    return set(SCHEMA["properties"]["questions"]["items"]["properties"]["tables"]["properties"])


def test_what_the_schema_does_not_say_is_refused():
    document = AuditReport(()).document()
    jsonschema.validate(document, SCHEMA)
    for wrong in ({"format": 2}, {"ok": "yes"}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, **wrong}, SCHEMA)


def test_a_page_is_written(run, world, tmp_path):
    result = run("--db", str(world.path), "--html", str(tmp_path / "audit.html"))
    assert result.exit_code == 0
    assert (tmp_path / "audit.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_pipe_gets_lines_and_the_summary_beside_them(run, world):
    world.edit("s1", "blue", "pink", seen=False)
    result = run("--db", str(world.path))
    first, *rows = result.stdout.splitlines()
    assert first.split("\t")[:3] == ["severity", "question", "kind"]
    assert rows[0].split("\t")[:5] == ["fault", "stale skips", "stale-skip", "claude-code", "claude-code:s1"]
    assert "Stale skips: of the 12 candidates" in result.stderr


def test_the_database_of_chatcrystal_is_the_usual_one(run, world):
    place = world.home / ".chatcrystal" / "data"
    place.mkdir(parents=True)
    as_chatcrystal(world).rename(place / "chatcrystal.db")
    assert f"Audit of {place / 'chatcrystal.db'}" in run().stderr


# Databases that hold anything

FOREIGN = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, source, content_hash, message_count, parser_version, updated_at,
 source_conversation_id, twice TEXT GENERATED ALWAYS AS (id || id) STORED);
CREATE TABLE messages (id, conversation_id, type, content, role, thinking, has_code, sort_order, timestamp, exact);
CREATE TABLE notes (id, conversation_id, created_at, source_type);
CREATE TABLE tags (note_id, "a""b");
CREATE TABLE import_log (status, message, created_at);
CREATE TABLE vector_cleanup_tasks (status, attempts);
INSERT INTO conversations (id, source, content_hash, message_count) VALUES
 ('s1', 'codex', 7, 'many'), (NULL, NULL, NULL, NULL), (x'00ff', x'ff', x'ff', -1), (3, 4.5, 'x', 1e300),
 ('', '', '', '');
INSERT INTO messages VALUES ('a', 's1', NULL, x'c328', x'00', 4, 'yes', NULL, 5, '{'),
 (NULL, NULL, 5, 6, 7, 8, 9, 'x', x'01', 'null'), (x'ff', x'00ff', '', '', '', '', '', -1, '2026-13-99', '[7]'),
 ('a', 's1', 'user', char(0) || 'x', '', '', 0, 0, '2026-01', '{"no": 1}');
INSERT INTO notes VALUES (1, 's1', 'yesterday', 5), (NULL, NULL, NULL, NULL), ('x', x'ff', 1e9, x'00');
INSERT INTO tags VALUES (1, 1), (NULL, 2), ('gone', 3);
INSERT INTO import_log VALUES ('error', NULL, NULL), ('error', x'ff00', 5), (NULL, 1, 2), ('success', 5, 'never');
INSERT INTO vector_cleanup_tasks VALUES ('pending', 'often'), (NULL, NULL), ('failed', 3);
"""


def test_a_database_that_holds_anything_can_be_asked(world, tmp_path):
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FOREIGN)
    report = cnb.audit(path, world.scan(), config=world.config)
    jsonschema.validate(json.loads(json.dumps(report.document())), SCHEMA)
    assert report.answer("integrity").kinds()["orphan-messages"] == 1
    assert not report.ok


def test_an_error_of_a_foreign_adapter_is_shown_without_what_it_quotes(world):
    class Quoting(Staged):
        async def parse(self, candidate, config):
            raise ValueError('no sense in "dear diary"')

    report = cnb.audit(world.path, world.scan(), config=world.config, adapters=[Quoting(cnb.get_adapter("codex"))])
    failing = [f.evidence for f in report.found if f.kind == "parse-fails"]
    assert failing == []
    world.sql("UPDATE conversations SET file_size = 0 WHERE id = 'c0'")
    report = cnb.audit(world.path, world.scan(), config=world.config, adapters=[Quoting(cnb.get_adapter("codex"))])
    assert [f.evidence for f in report.found if f.kind == "parse-fails"] == ["ValueError: no sense in ‘…’"]


def test_numbers_that_are_no_counts_are_counts_that_differ(world):
    for n, wrong in enumerate((-1, 2**62, 3)):
        world.sql(f"UPDATE conversations SET message_count = {wrong} WHERE id = 's{n}'")
    report = cnb.audit(world.path, [], config=world.config)
    assert report.answer("identity").kinds() == {"row-count": 3}


def test_a_row_that_went_to_another_source_is_said_to_be_there(world):
    world.claude("s9", "one", "two")
    world.import_all()
    world.sql("UPDATE messages SET conversation_id = 'c0', sort_order = 9 WHERE id = 's9-1'")
    (stolen,) = [f for f in ask(world).found if f.kind == "stolen-rows"]
    assert (stolen.conversation_id, stolen.evidence) == ("claude-code:s9", "1 under codex:c0")


def test_one_id_in_two_sources_is_no_fault_where_rows_are_keyed_by_source(tmp_path):
    world = World(tmp_path, "careful")
    world.claude("twin", "a", "b")
    world.codex("twin", "c", "d")
    world.import_all()
    report = ask(world)
    assert ([f.kind for f in report.found], report.ok) == (["id-in-sources"], True)


ORDER = """
import json, re, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
import crystal_nb as cnb
from audit_plants import PLANTS, World
world = World(Path(sys.argv[1]), "chatcrystal")
plants = [p for question in ("identity", "hash power", "integrity", "drift") for p in PLANTS[question]]
for plant in plants:
    if "parent" not in plant.what:
        plant.before(world)
world.import_all()
for plant in plants:
    if "parent" not in plant.what and "notes" not in plant.what:
        plant.after(world)
document = cnb.audit(world.path, config=world.config).document()
for question in document["questions"]:
    for row in question["tables"].get("costs", []):
        row["seconds"] = 0
print(re.sub(r"time 20[0-9TZ.:-]+", "time", json.dumps(document).replace(sys.argv[1], "")))
"""


def test_a_report_is_the_same_whatever_the_seed_of_hashes(tmp_path):
    shown = []
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        command = [sys.executable, "-c", ORDER, tmp_path / seed, Path(__file__).parent, cnb.samples.PACKAGE.parent]
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True)
        shown.append(json.loads(done.stdout))
    assert len(shown[0]["findings"]) > 15
    assert shown[0] == shown[1]


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
def test_a_damaged_database_is_reported_or_refused_and_nothing_else(tmp_path, profile):
    import random

    world = World(tmp_path, profile)
    world.import_all()
    world.sql("PRAGMA journal_mode = DELETE")
    sound, chance, refused = world.path.read_bytes(), random.Random(1), 0
    path = tmp_path / "damaged.db"
    for number in range(40):
        data = bytearray(sound)
        for _ in range(chance.choice((1, 3, 20, 200))):
            data[chance.randrange(100, len(data))] = chance.randrange(256)
        path.write_bytes(data[: chance.randrange(len(data)) if number % 10 == 0 else len(data)])
        try:
            report = cnb.audit(path, [], config=world.config)
            jsonschema.validate(json.loads(json.dumps(report.document())), SCHEMA)
        except cnb.StoreError:
            refused += 1
    assert 0 < refused < 40
