from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import crystal_nb as cnb
from crystal_nb import cli, samples, show

HOSTILE = "<b>\x1b[31m[red]x[/red]\u202e"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(cli.app, list(words), catch_exceptions=False)


@pytest.fixture
def hostile_home(tmp_path) -> Path:
    """A home with a good session of hostile content and one that fails."""
    project = tmp_path / "home" / ".claude" / "projects" / "-p"
    project.mkdir(parents=True)
    line = {"type": "user", "uuid": "u", "timestamp": "x", "slug": HOSTILE, "message": {"content": "hi"}}
    good = json.dumps(line) + "\n" + json.dumps({**line, "type": HOSTILE}) + "\n"
    (project / "good.jsonl").write_text(good)
    (project / "bad.jsonl").write_text("null\n".ljust(120))
    return tmp_path / "home"


def test_no_histories_reads_the_samples_and_says_so(run):
    result = run("import")
    assert result.exit_code == 0
    assert "No histories found here; reading the bundled samples" in result.stderr
    header, *rows = result.stdout.splitlines()
    assert header.split("\t")[:2] == ["source", "id"]
    assert {row.split("\t")[0] for row in rows} == set(cnb.Config().enabled_sources)


@pytest.mark.parametrize("words", [["parse"], ["import", "--dry-run"]])
def test_the_summary_says_what_a_shell_can_do(run, words):
    summary = run(*words).stderr
    assert "more reasons: --json lists them" in summary
    assert ".loss_reasons()" not in summary
    assert "cnb." not in run(*words, "--home", ".").stderr


def test_what_failed_beyond_the_first_ones_is_told_in_a_shell_s_words(run, tmp_path):
    folder = tmp_path / "home" / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    for number in range(30):
        (folder / f"{number}.jsonl").write_text("null\n".ljust(120))
    summary = run("import", "--dry-run", "--home", str(tmp_path / "home")).stderr
    assert summary.count(" more: --json lists them") == 2
    assert ".problems()" not in summary


@pytest.mark.parametrize("words", [["codex"], ["--home", "."]])
def test_the_samples_never_stand_in_for_what_was_asked_for(run, words):
    result = run("import", *words)
    assert result.exit_code == 0
    assert "No histories found of" in result.stderr
    assert len(result.stdout.splitlines()) == 1


def test_json_of_the_samples_says_so(run):
    assert json.loads(run("import", "--json").stdout)["samples"] is True


def test_columns_are_the_same_without_rows(run, tmp_path):
    empty, full = run("sources"), run("sources", "--home", str(samples.home()))
    assert empty.stdout.splitlines()[0] == full.stdout.splitlines()[0]
    assert run("scan").stdout.split() == list(show.CANDIDATE_COLUMNS)


def test_sources_and_scan_of_another_home(run):
    home = str(samples.home())
    rows = json.loads(run("sources", "--home", home, "--json").stdout)
    assert [row["status"] for row in rows] == ["found"] * 6
    scanned = run("scan", "codex", "--home", home).stdout.splitlines()
    assert len(scanned) == 4


def test_a_scan_lists_what_its_profile_s_rules_find(run):
    def listed(profile):
        home = ["--home", str(Path(__file__).parents[1] / "fixtures/codex/cold/home"), "--profile", profile, "--json"]
        return len(json.loads(run("scan", "codex", *home).stdout))

    assert listed("careful") > listed("chatcrystal")


def test_import_as_json_gives_what_the_frames_give(run):
    home = str(samples.home())
    document = json.loads(run("import", "--home", home, "--json").stdout)
    config = samples.config()
    frame = cnb.parse(cnb.scan(config=config), config=config).conversations
    assert [c["content_hash"] for c in document["conversations"]] == frame["content_hash"].to_list()
    shown = {"samples", "conversations", "sources", "losses", "failures"}
    decided = {"store", "policy", "counts", "decisions", "summarisation_candidates"}
    ids = {"imported_ids", "replaced_ids", "skipped_ids", "error_ids"}
    assert set(document) == shown | decided | ids
    assert document["samples"] is False


def test_import_writes_parquet(run, tmp_path):
    result = run("parse", "--home", str(samples.home()), "--parquet", str(tmp_path / "out" / "deep"))
    assert result.exit_code == 0
    names = ("conversations", "messages", "fates", "failures")
    heights = [pl.read_parquet(tmp_path / "out" / "deep" / f"{n}.parquet").height for n in names]
    assert all(heights[:3])
    (tmp_path / "file").touch()
    failed = run("parse", "--parquet", str(tmp_path / "file"))
    assert (failed.exit_code, "can't write to" in failed.stderr) == (2, True)


def test_a_failed_parse_is_told_and_gives_exit_code_1(run, hostile_home):
    result = run("import", "--home", str(hostile_home))
    assert result.exit_code == 1
    assert "bad.jsonl: line 1 (byte 0): the line is null" in result.stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_hostile_text_reaches_no_terminal(run, hostile_home, options):
    result = run("import", "--home", str(hostile_home), *options)
    assert not set("\x1b\u202e") & set(result.stderr)
    assert "\x1b" not in result.stdout
    assert "[red]x[/red]" in result.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["import", "cody"], "no adapter named 'cody'; known: claude-code"),
        (["scan", "--home", "/gone"], "/gone is no folder"),
    ],
)
def test_what_can_t_run_says_why_with_exit_code_2(run, words, told):
    result = run(*words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


def test_a_failing_scan_says_why_with_exit_code_2(run, hostile_home):
    (hostile_home / ".claude" / "projects" / "dead.json").symlink_to("gone")
    result = run("scan", "--home", str(hostile_home))
    assert (result.exit_code, "dead.json: No such file" in result.stderr) == (2, True)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_any_output_encoding_will_do(hostile_home, encoding, options):
    command = [sys.executable, "-m", "crystal_nb", "import", "--home", str(hostile_home), *options]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"[red]x[/red]" in done.stdout


def test_a_line_break_in_an_argument_forges_no_line(run):
    assert run("scan", "--home", "/x\nError: fake").stderr.count("\n") == 1


def test_json_is_json_and_shows_no_controls(run, tmp_path):
    chats = tmp_path / "h" / ".config" / "Code" / "User" / "globalStorage" / "emptyWindowChatSessions"
    chats.mkdir(parents=True)
    title, requests = '"\\u009b31m\\u202eX\\u007f"', '[{"timestamp":1,"message":{"text":"x"}}]'
    text = f'{{"sessionId":1e999,"customTitle":{title},"requests":{requests}}}'
    (chats / "s.json").write_text(text.ljust(120))
    result = run("import", "copilot", "--home", str(tmp_path / "h"), "--json")
    (row,) = json.loads(result.stdout, parse_constant=pytest.fail)["conversations"]
    assert (row["id"], row["slug"]) == ("Infinity", "\x9b31m\u202eX\x7f")
    assert all(line.isprintable() for line in result.stdout.splitlines())


def test_version(run):
    assert run("--version").stdout.strip() == cnb.__version__


def on_terminal(tmp_path: Path, columns: int, *words: str) -> tuple[int, str]:
    """Run the command on a terminal of that width."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "crystal_nb", *words]
    environment = {**os.environ, "HOME": str(tmp_path), "COLUMNS": str(columns), "TERM": "xterm"}
    environment["XDG_DATA_HOME"] = str(tmp_path / "data")
    with subprocess.Popen(command, stdout=child, stderr=child, env=environment) as process:
        os.close(child)
        shown = b""
        while True:
            try:
                chunk = os.read(parent, 65536)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
    os.close(parent)
    return process.returncode, shown.decode()


def test_on_a_terminal_there_are_tables(tmp_path):
    code, text = on_terminal(tmp_path, 140, "import")
    assert code == 0
    assert "What was lost" in text
    assert "─" in text
    assert "Corpus: 10 conversations" in text
    assert "…" in text


@pytest.mark.parametrize(
    ("words", "readable"),
    [
        (["plan"], ["claude-code", "insert", "It is new."]),
        (["scenarios", "changed-unseen"], ["changed-unseen", "pinned", "careful", "again: decided", "yes"]),
        (["scan", "--home", str(samples.home())], ["claude-code", "copilot", "file_size"]),
        (["sources"], ["absent"]),
    ],
    ids=lambda value: value[0],
)
def test_what_matters_is_readable_on_a_narrow_terminal(tmp_path, words, readable):
    _, text = on_terminal(tmp_path, 80, *words)
    assert [wanted for wanted in readable if wanted not in text] == []


def test_lab_opens_the_notebooks(run, monkeypatch, tmp_path):
    commands = []
    monkeypatch.setattr(cli, "_become", lambda command: commands.append(command) or 0)
    assert run("lab", "--no-browser").exit_code == 0
    assert commands[0][1:3] == ["-m", "jupyterlab"]
    assert commands[0][3] == f"--ServerApp.root_dir={samples.notebooks()}"
    assert commands[0][4:] == ["--no-browser"]


def test_lab_copies_the_notebooks_of_a_wheel_and_keeps_edited_ones(run, monkeypatch, tmp_path):
    shutil.copytree(samples.notebooks(), tmp_path / "installed" / "_data" / "notebooks")
    monkeypatch.setattr(cli.samples, "PACKAGE", tmp_path / "installed")
    monkeypatch.setattr(cli, "_become", lambda command: 0)
    edited = tmp_path / "crystal_nb-notebooks" / "01_explore_imports.ipynb"
    edited.parent.mkdir()
    edited.write_text("mine")
    assert run("lab").exit_code == 0
    assert edited.read_text() == "mine"
    assert run("lab", "--folder", "other").exit_code == 0
    assert (tmp_path / "other" / "01_explore_imports.ipynb").stat().st_size > 1000


@pytest.fixture
def codex_home(tmp_path) -> Path:
    """A home with two sound conversations."""
    from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_codex

    for id in ("a", "b"):
        times = ("2026-01-05T10:00:00.000Z", "2026-01-05T10:00:01.000Z")
        messages = (SampleMessage("user", HOSTILE, "1", times[0]), SampleMessage("assistant", "hi", "2", times[1]))
        write_codex(tmp_path / "home", Sample(id, messages))
    return tmp_path / "home"


def test_an_import_is_stored_and_the_next_one_skips(run, codex_home, tmp_path):
    words = ("import", "--home", str(codex_home), "--store", str(tmp_path / "s.db"), "--json")
    first, second = (json.loads(run(*words).stdout) for _ in range(2))
    assert (first["counts"]["imported"], second["counts"]["skipped"]) == (2, 2)
    assert first["store"] == str(tmp_path / "s.db")
    assert second["conversations"] == []


def test_without_a_store_one_is_kept_per_profile_and_named(run, codex_home, tmp_path):
    for profile in ("chatcrystal", "careful"):
        shutil.copytree(codex_home / ".codex", tmp_path / "empty" / ".codex", dirs_exist_ok=True)
        result = run("import", "--profile", profile)
        path = tmp_path / "data" / "crystal_nb" / f"imports-{profile}.db"
        assert f"Stored in {path}" in result.stderr
        assert path.exists()


@pytest.mark.parametrize("words", [[], ["--home", "home"]])
def test_samples_and_another_home_are_stored_only_on_request(run, codex_home, tmp_path, words):
    result = run("import", *words)
    assert "Nothing was stored; --store FILE does that." in result.stderr
    assert not (tmp_path / "data").exists()


def test_a_conversation_that_can_not_be_stored_is_named_and_is_an_error(run, tmp_path):
    result = run("import", "--home", str(samples.home()))
    assert (result.exit_code, "codex 0190aaaa" in result.stderr, "is taken by" in result.stderr) == (1, True, True)


def test_a_dry_run_writes_nothing(run, codex_home, tmp_path):
    result = run("import", "--home", str(codex_home), "--store", str(tmp_path / "s.db"), "--dry-run", "--json")
    assert json.loads(result.stdout)["counts"]["imported"] == 2
    assert not (tmp_path / "s.db").exists()
    run("import", "--home", str(codex_home), "--store", str(tmp_path / "s.db"))
    before = (tmp_path / "s.db").read_bytes()
    again = run("import", "--home", str(codex_home), "--store", str(tmp_path / "s.db"), "--dry-run", "--json")
    assert json.loads(again.stdout)["counts"]["skipped"] == 2
    assert (tmp_path / "s.db").read_bytes() == before


def test_a_plan_names_the_path_to_each_decision(run, codex_home, tmp_path):
    rows = json.loads(run("plan", "--home", str(codex_home), "--json").stdout)
    assert [row["action"] for row in rows] == ["insert", "insert"]
    assert rows[0]["path"].startswith("stored: no, adapter registered: yes")
    run("import", "--home", str(codex_home), "--store", str(tmp_path / "s.db"))
    rows = json.loads(run("plan", "--home", str(codex_home), "--store", str(tmp_path / "s.db"), "--json").stdout)
    assert [row["action"] for row in rows] == ["skip", "skip"]


def test_a_plan_against_a_store_that_is_not_there_is_refused(run, codex_home, tmp_path):
    result = run("plan", "--home", str(codex_home), "--store", str(tmp_path / "slip.db"))
    assert (result.exit_code, "there is no" in result.stderr) == (2, True)


def test_a_plan_by_rules_that_the_store_is_not_made_for_says_so(run, codex_home, tmp_path):
    store = str(tmp_path / "imports.db")
    run("import", "--home", str(codex_home), "--store", store)
    told = "An import by these rules needs a store of its own"
    assert told in run("plan", "--home", str(codex_home), "--store", store, "--profile", "careful").stderr
    assert told not in run("plan", "--home", str(codex_home), "--store", store).stderr
    assert told not in run("plan", "--home", str(codex_home), "--profile", "careful").stderr


def test_nothing_to_send_is_said_and_makes_no_folder(run, tmp_path):
    result = run("remote", "build", "--out", "requests")
    assert result.exit_code == 0
    assert "no histories were found" in result.stderr
    assert not (tmp_path / "requests").exists()


def test_a_plan_on_the_samples_is_no_failure(run):
    result = run("plan")
    assert (result.exit_code, "error" in result.stdout) == (0, True)


def test_scenarios_hold_and_say_so(run):
    result = run("scenarios", "unchanged", "--json")
    assert result.exit_code == 0
    assert all(row["ok"] for row in json.loads(result.stdout))
    assert run("scenarios", "nonsense").exit_code == 2


def test_remote_requests_are_built_and_validated(run, codex_home, tmp_path):
    built = run("remote", "build", "--home", str(codex_home), "--out", str(tmp_path / "out"))
    assert built.exit_code == 0
    file = tmp_path / "out" / "request-001.json"
    valid = run("remote", "validate", str(file), "--json")
    assert [row["status"] for row in json.loads(valid.stdout)] == ["ok", "ok"]
    file.write_bytes(file.read_bytes().replace(b'"codex:a:', b'"codex:x:', 1))
    broken = run("remote", "validate", str(file))
    assert (broken.exit_code, "message-ids" in broken.stdout or "content-hash" in broken.stdout) == (1, True)
    file.write_bytes(b"[]")
    odd = run("remote", "validate", str(file))
    assert (odd.exit_code, str(file) in odd.stderr.replace("\n", "")) == (2, True)
    assert run("remote", "validate", str(tmp_path / "missing")).exit_code == 2


@pytest.mark.parametrize("words", [["import", "--profile", "x"], ["plan", "--profile", "x"]])
def test_an_unknown_profile_is_named(run, words):
    result = run(*words)
    assert (result.exit_code, "chatcrystal, careful" in result.stderr) == (2, True)


def test_a_store_that_is_none_is_refused(run, codex_home, tmp_path):
    (tmp_path / "s.db").write_text("no database")
    result = run("import", "--home", str(codex_home), "--store", str(tmp_path / "s.db"))
    assert (result.exit_code, "no SQLite database" in result.stderr) == (2, True)


def test_the_pinned_rules_have_two_names(run, codex_home, tmp_path):
    for words in (["parse"], ["plan"], ["import", "--store", str(tmp_path / "s.db")]):
        assert run(*words, "--home", str(codex_home), "--profile", "pinned").exit_code == 0
