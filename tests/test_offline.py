"""Nothing is sent anywhere, and no message text is shown unless it is asked for."""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

import crystal_nb as cnb
from crystal_nb import cli
from crystal_nb.adapters.base import Parsed
from crystal_nb.audit import read_store, reparse
from crystal_nb.scenarios.subjects import Sample, SampleMessage, write_claude_code, write_codex, write_copilot
from crystal_nb.widgets import browse_filters, browse_view, hash_view, lab_view, workbench_view

FORBIDDEN = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request")
_watch = {"installed": False, "on": False}


def _refuse(event: str, _: object) -> None:
    if _watch["on"] and event in FORBIDDEN:
        raise AssertionError(f"the network was asked for: {event}")


@pytest.fixture
def offline():
    """Any use of the network is an error; it is noticed below Python's own socket class, too."""
    if not _watch["installed"]:
        sys.addaudithook(_refuse)
        _watch["installed"] = True
    _watch["on"] = True
    yield
    _watch["on"] = False


@pytest.fixture
def samples(tmp_path: Path) -> cnb.Config:
    return cnb.samples.config()


def test_the_guard_notices_the_network(offline):
    with pytest.raises(AssertionError, match="the network"), socket.socket() as s:
        s.connect(("127.0.0.1", 9))
    with pytest.raises(AssertionError, match="the network"):
        urllib.request.urlopen("http://127.0.0.1:9")


def test_reading_needs_no_network(offline, samples):
    assert cnb.sources(config=samples).height >= 5
    for profile in ("chatcrystal", "careful"):
        corpus = cnb.parse(cnb.scan(profile=profile, config=samples), config=samples)
        assert corpus.messages.height > 10
        assert corpus.losses().height + corpus.books().height > 0
        corpus.redacted()
        cnb.ablate(corpus)


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
def test_importing_and_auditing_need_no_network(offline, samples, tmp_path, profile):
    cands = cnb.scan(profile=profile, config=samples)
    with cnb.open_store(tmp_path / "imports.db", profile=profile, config=samples) as store:
        cnb.plan(cands, store, config=samples)
        cnb.rehearse(cands, store, config=samples)
        assert cnb.import_all(store, cands, config=samples).imported > 4
        cnb.compare_policies(cands, store, config=samples)
        assert cnb.audit(store, config=samples).parsed > 4


def test_remote_payloads_need_no_network(offline, samples, tmp_path):
    built = cnb.build_remote(config=samples)
    payload = cnb.remote_json(built.batches[0])
    assert cnb.validate_remote(payload).height > 0
    with cnb.open_store(tmp_path / "server.db", config=samples) as store:
        cnb.ingest(store, payload)


def test_scenarios_need_no_network(offline):
    assert cnb.run_scenarios(names=["changed-unseen", "same-id-two-sources"]).height > 0


def talk(folder: Path, *texts: str) -> Path:
    """A file that `said` reads."""
    path = folder / ".mytool" / "chat.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    records = ({"kind": "say", "id": f"m{n}", "who": "user", "text": text} for n, text in enumerate(texts))
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@cnb.jsonl_adapter("mytool", root="~/.mytool", glob="**/*.jsonl")
def said(record, session):
    if record["text"].startswith("fail"):
        raise ValueError(record["text"])
    if record["text"].startswith("moves"):
        yield cnb.Message(id=os.urandom(4).hex(), type="user", content=record["text"] + os.urandom(4).hex())
    else:
        yield cnb.Message(id=record["id"], type=record["who"], content=record["text"])


def test_prototypes_need_no_network(offline, samples, tmp_path):
    trial = cnb.try_parser(said, talk(tmp_path, "hello", "hi", "fail now"))
    assert trial.error is not None
    assert texts_of(trial)
    assert cnb.compare_parsers(cnb.scan("copilot", config=samples), "copilot@1", "copilot@2", config=samples).height
    frame = cnb.check_adapter(said, write_home(tmp_path))
    assert frame.height > 20


def write_home(folder: Path) -> Path:
    home = folder / "samples"
    talk(home, "hello", "hi", "more")
    return home


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
def test_the_models_of_widgets_need_no_network(offline, samples, tmp_path, profile):
    corpus = cnb.parse(cnb.scan(profile=profile, config=samples), config=samples)
    inspection = hash_view.Inspection(corpus[0], [("set", 0, "content", "hi")])
    assert inspection.changed
    assert inspection.verdict
    scenes = lab_view.side_by_side("changed-unseen", (), cnb.PINNED)
    assert all(map(lab_view.positions, scenes.values()))
    assert lab_view.composed(["edit"] if "edit" in lab_view.STEPS else list(lab_view.STEPS)[:1], cnb.CAREFUL)
    bench = workbench_view.Bench(cnb.try_parser(said, talk(tmp_path, "hello", "fail")))
    assert sum(bench.counts.values()) == len(bench.rows)
    with cnb.open_store(tmp_path / "imports.db", profile=profile, config=samples) as store:
        report = cnb.import_all(store, config=samples)
        for subject in (corpus, store):
            entries = browse_view.entries_of(subject, report)
            assert browse_filters.matching(entries, {"text": "the"})
            assert all(browse_view.parts(c, e.fates) for e in entries if (c := e.load()) is not None and c.messages)


def test_widgets_need_no_network_and_make_pages(offline, samples, tmp_path):
    corpus = cnb.parse(cnb.scan("codex", config=samples), config=samples)
    bench = cnb.widgets.ParserWorkbench(said, str(talk(tmp_path, "hello", "fail")))
    for widget in (
        cnb.widgets.HashInspector(corpus),
        cnb.widgets.ImportBrowser(corpus),
        cnb.widgets.ReimportLab(),
        bench,
    ):
        assert "http" not in widget.to_html().replace("http://www.w3.org", "")


COMMANDS = (
    "sources",
    "scan",
    "parse",
    "import --store {store}",
    "plan --store {store}",
    "audit --db {store}",
    "remote build",
)


def test_the_command_needs_no_network(offline, samples, tmp_path):
    for words in COMMANDS:
        words = [*words.format(store=tmp_path / "s.db").split(), "--home", str(samples.home_path)]
        assert CliRunner().invoke(cli.app, words).exit_code in (0, 1), words


# What is shown

CANARY = "xylophone marmalade"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Conversations of three sources whose every message holds the canary, damaged and whole."""
    home = tmp_path / "home"
    for id in ("s1", "s2"):
        messages = tuple(
            SampleMessage(
                "assistant" if n % 2 else "user", f"{n} {CANARY} {id}", f"m{n}", f"2026-01-05T10:00:0{n}.000Z"
            )
            for n in range(4)
        )
        for write in (write_claude_code, write_codex, write_copilot):
            path = write(home, Sample(f"{write.__name__}-{id}", messages))
            if id == "s2":
                damage(path)
    return home


def damage(path: Path) -> None:
    """Break some lines of a log, or a whole document, so that parsers complain about text with the canary."""
    data = path.read_bytes()
    half = data.replace(b'"message": {"role"', b'"message": {role', 1)
    if half == data:
        half = data.replace(b'"payload": {"type": "user_message"', b'"payload": {"type": "user_message" x', 1)
    path.write_bytes(half + b'{"type": "user", "message": {"content": "' + CANARY.encode())


@pytest.fixture
def config(home) -> cnb.Config:
    return cnb.Config(home=home, platform="linux", cache_seconds=0)


def texts_of(value: object) -> str:
    """All that a notebook or a terminal would show of a value."""
    return f"{value!r} {value!s} {getattr(value, '_repr_html_', str)()}"


def test_the_canary_is_in_the_messages(config):
    corpus = cnb.parse(cnb.scan(config=config), config=config)
    assert corpus.messages["content"].str.contains(CANARY).all()
    assert set(corpus.messages["source"]) == {"claude-code", "codex", "copilot"}


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
def test_no_representation_shows_message_text(config, tmp_path, profile, caplog):
    caplog.set_level(logging.DEBUG)
    cands = cnb.scan(profile=profile, config=config)
    corpus = cnb.parse(cands, config=config)
    shown = [corpus, corpus.redacted(), corpus.failures, corpus.loss_reasons(), cands]
    with cnb.open_store(tmp_path / "imports.db", profile=profile, config=config) as store:
        shown += [store, cnb.plan(cands, store, config=config), cnb.rehearse(cands, store, config=config)]
        report = cnb.import_all(store, cands, config=config)
        audit = cnb.audit(store, cands, config=config)
        shown += [report, report.decisions, report.stolen, store.import_log(), audit, audit.findings, *audit.answers]
        shown += [audit.to_html(), json.dumps(audit.document()), audit.summary(), cnb.redact(audit)]
        shown += list(audit.tables.values())
    built = cnb.build_remote(config=config)
    shown += [built, cnb.validate_remote(cnb.remote_json(built.batches[0]))]
    assert [type(value).__name__ for value in shown if CANARY in texts_of(value)] == []
    assert CANARY not in caplog.text


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
def test_no_record_shows_message_text(config, tmp_path, profile):
    """Not even in an assertion or a log: the representation says how long a text is."""
    cands = cnb.scan(profile=profile, config=config)
    corpus = cnb.parse(cands, config=config)
    shown = [*corpus.parsed, *corpus.failed, *corpus, *cnb.scan(config=config).to_dicts()]
    shown += [m for c in corpus for m in c.messages]
    shown += [m.details for c in corpus for m in c.messages] + [f for p in corpus.parsed for f in p.fates]
    shown += [Parsed(p.conversation, p.fates) for p in corpus.parsed]
    shown += [corpus.losses().drop("example"), corpus.books()]
    built = cnb.build_remote(config=config)
    shown += [*built.failures, *map(cnb.read_item, built.items)]
    with cnb.open_store(tmp_path / "imports.db", profile=profile, config=config) as store:
        rehearsal = cnb.rehearse(cands, store, config=config)
        report = cnb.import_all(store, cands, config=config)
        shown += [*report.outcomes, *(o.decision for o in report.outcomes), *rehearsal.report.outcomes]
        shown += rehearsal.changed
        shown += [store.states(), reparse(store, cands, config=config), read_store(store)]
    shown += list(
        cnb.scenarios.play(
            "changed-unseen", subject=cnb.own_subject(cnb.scan("codex", config=config).head(1), config=config)
        )
    )
    assert [f"{type(value).__name__}" for value in shown if CANARY in texts_of(value)] == []


def test_no_widget_shows_message_text_in_a_log(config, tmp_path):
    corpus = cnb.parse(cnb.scan("codex", config=config), config=config)
    shown = [
        cnb.widgets.HashInspector(corpus),
        cnb.widgets.ImportBrowser(corpus),
        cnb.widgets.ReimportLab(cnb.scan("codex", config=config).head(1), config=config),
        cnb.widgets.ParserWorkbench(said, str(talk(tmp_path, CANARY, f"fail {CANARY}"))),
    ]
    assert [type(widget).__name__ for widget in shown if CANARY in f"{widget!r} {widget!s}"] == []


def test_no_check_of_an_adapter_shows_message_text(tmp_path):
    home = tmp_path / "samples"
    talk(home, f"moves {CANARY}", CANARY, CANARY)
    frame = cnb.check_adapter(said, home)
    assert not frame["ok"].all()
    assert CANARY not in frame.write_json()


def test_no_error_shows_message_text(config, tmp_path):
    corpus = cnb.parse(cnb.scan(config=config), config=config)
    (request,) = cnb.build_remote(config=config).batches
    item = json.loads(cnb.remote_json(request))["items"][0]
    errors = [f"{f.error} {f.message}" for f in corpus.failed]
    for wrong in (
        lambda: corpus["codex", "no such id"],
        lambda: cnb.content_hash(corpus),
        lambda: cnb.read_item({**item, "contentHash": "0" * 64}),
        lambda: cnb.read_item({**item, "parsed": item["parsed"]["messages"]}),
    ):
        with pytest.raises((cnb.CrystalError, TypeError)) as caught:
            wrong()
        errors.append(str(caught.value))
    assert [text for text in errors if CANARY in text] == []


@pytest.mark.parametrize("profile", ["chatcrystal", "careful"])
@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_the_command_shows_titles_and_no_other_text(home, tmp_path, profile, json_too):
    """A title is how a person knows a conversation; careful rules may take it from the first prompt."""
    for words in ("sources", "scan", "parse", "import --store {store}", "plan --store {store}", "audit --db {store}"):
        command = [*words.format(store=tmp_path / "s.db").split(), "--home", str(home), *json_too]
        if words.split()[0] in ("parse", "import", "plan", "audit"):
            command += ["--profile", profile]
        result = CliRunner().invoke(cli.app, command)
        assert result.exit_code in (0, 1), result.output
        shown = without_titles(result.stdout, bool(json_too)) + result.stderr
        assert CANARY not in shown, words


def without_titles(output: str, is_json: bool) -> str:
    if is_json:
        document = json.loads(output)
        for row in document.get("conversations", []) if isinstance(document, dict) else []:
            row.pop("slug")
        return json.dumps(document)
    rows = [line.split("\t") for line in output.splitlines()]
    place = rows[0].index("slug") if "slug" in rows[0] else None
    return "\n".join("\t".join(c for n, c in enumerate(row) if n != place) for row in rows)
