from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import traceback
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values

import crystal_nb as cnb
from crystal_nb import adapters as registry
from crystal_nb.adapters import plugins
from crystal_nb.errors import PluginWarning
from crystal_nb.prototyping import json_adapter, jsonl_adapter, sqlite_adapter
from crystal_nb.raw_records import line_records
from crystal_nb.trial import try_parser

SAYS = '{"kind":"say","id":"1","who":"user","text":"hi"}\n'


@jsonl_adapter("mytool", display_name="My Tool", root="~/.mytool", glob="**/*.jsonl")
def mytool(record, session):
    if record.get("kind") == "say":
        yield cnb.Message(id=record["id"], type=record["who"], content=record["text"], timestamp=record.get("at"))


@pytest.fixture
def home(tmp_path):
    (tmp_path / ".mytool" / "p").mkdir(parents=True)
    return tmp_path


def put(home, text, name="a.jsonl"):
    path = home / ".mytool" / "p" / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def parse(adapter, home):
    config = cnb.Config(home=home)
    return cnb.parse(cnb.scan(adapter, config=config), config=config)


def test_a_parser_is_used_unregistered(home):
    put(home, SAYS + SAYS.replace('"1"', '"2"'))
    corpus = parse(mytool, home)
    assert corpus["mytool", "a"].messages[1].id == "2"
    assert corpus["mytool", "a"].project_name == "p"
    assert corpus.parsed[0].parser_version == "mytool@1"
    assert "mytool" not in cnb.adapters.registered()


def test_every_line_has_a_fate(home):
    put(home, SAYS + '{"kind":"other"}\n\n[1]\n{"ki')
    fates = parse(mytool, home).parsed[0].fates
    assert [f.reason for f in fates] == [
        None,
        "the parser yielded nothing",
        "blank line",
        "not an object",
        "invalid JSON",
    ]


def test_an_error_points_into_the_function_with_the_raw_record(home):
    path = put(home, SAYS + '{"kind":"say","who":"user","text":"no id \\u001b[31m"}\n')
    trial = try_parser(mytool, path)
    assert isinstance(trial.error, cnb.ParseError)
    assert (trial.error.line, trial.error.offset) == (2, len(SAYS))
    assert isinstance(trial.error.__cause__, KeyError)
    assert 'raw record: {"kind":"say","who":"user","text":"no id' in trial.problem()
    assert "no id" not in str(trial.error)  # as that goes into failures, logs and reports
    assert "KeyError in mytool, line" in str(trial.error)
    assert 'record["id"]' in "".join(traceback.format_exception(trial.error))
    assert trial.records["status"].to_list() == ["kept", "error"]


def test_dropping_errors_lets_the_rest_go_on(home):
    @jsonl_adapter("mytool", root="~/.mytool", on_error="drop")
    def lenient(record, session):
        yield cnb.Message(record["who"], record["text"])

    put(home, '{"who":"user"}\n' + SAYS)
    (parsed,) = parse(lenient, home).parsed
    assert parsed.fates[0].reason.startswith("error: KeyError in lenient, line ")
    assert len(parsed.conversation.messages) == 1


def test_what_an_exception_says_is_in_no_report(home):
    @jsonl_adapter("mytool", root="~/.mytool")
    def counting(record, session):
        yield cnb.Message("user", str(int(record["text"])))

    path = put(home, '{"kind":"say","text":"my diary"}\n')
    config = cnb.Config(home=home)
    assert "my diary" in try_parser(counting, path).problem()
    corpus = cnb.parse(cnb.scan(counting, config=config), config=config, adapters=[counting])
    with cnb.Store.in_memory(cnb.PINNED, config) as store:
        report = cnb.import_all(store, cnb.scan(counting, config=config), config=config, adapters=[counting])
        shown = [repr(corpus), corpus._repr_html_(), str(corpus.failures.rows()), repr(report), report._repr_html_()]
        shown += [str(report.decisions.rows()), str(store.import_log().rows())]
    assert len(corpus.failed) == 1
    assert all("ValueError in counting, line" in text for text in shown[:3])
    assert not [text for text in shown if "diary" in text]


@pytest.mark.parametrize(
    ("yielded", "said"),
    [
        ({"type": "user"}, "yields Message values, not dict"),
        (cnb.Message("robot", "hi"), "not 'robot'"),
        (cnb.Message("user", None), "content is text, not NoneType"),
    ],
)
def test_what_is_no_message_is_refused_where_it_is_yielded(home, yielded, said):
    @jsonl_adapter("mytool", root="~/.mytool")
    def wrong(record, session):
        yield yielded

    assert said in try_parser(wrong, put(home, SAYS)).problem()


def test_ids_come_from_the_position_and_times_stay_null(home):
    @jsonl_adapter("mytool", root="~/.mytool")
    def plain(record, session):
        session.metadata(slug="A talk", cwd="/srv")
        yield cnb.Message("user", "hi")
        yield cnb.Message("assistant", "ho")

    put(home, SAYS * 2)
    conversation = parse(plain, home)["mytool", "a"]
    assert [m.id for m in conversation.messages] == ["a:0", "a:1", "a:2", "a:3"]
    assert conversation.messages[0].timestamp is conversation.first_message_at is None
    assert (conversation.slug, conversation.cwd) == ("A talk", "/srv")


def test_a_session_merges_drops_and_notes(home):
    @jsonl_adapter("mytool", root="~/.mytool")
    def talk(record, session):
        if record["kind"] == "say":
            return [cnb.Message("user", record["text"])]
        if record["kind"] == "more":
            session.amend(content=session.messages[-1].content + "!")
        elif record["kind"] == "title":
            session.metadata(slug="t")
        else:
            session.drop("of no use")
        return None

    kinds = ("title", "more", "noise")
    put(home, SAYS + "".join(json.dumps({"kind": k}) + "\n" for k in kinds))
    (parsed,) = parse(talk, home).parsed
    assert [f.status for f in parsed.fates] == ["kept", "metadata", "merged", "dropped"]
    assert parsed.conversation.messages[0].content == "hi!"
    assert parsed.fates[-1].reason == "of no use"


FACTS = [{"slug": "t"}, {"id": 7}, {"cwd": "/srv"}, {"parent_id": "p"}, {"slug": "t", "git_branch": "main"}]


@pytest.mark.parametrize("facts", FACTS)
def test_only_what_is_new_makes_a_record_metadata(home, facts):
    @jsonl_adapter("mytool", root="~/.mytool")
    def repeats(record, session):
        session.metadata(**(facts if record["kind"] != "none" else dict.fromkeys(facts)))

    put(home, "".join(f'{{"kind":"{kind}"}}\n' for kind in ("none", "open", "again", "none")))
    statuses = [(f.status, f.reason) for f in parse(repeats, home).parsed[0].fates]
    nothing = ("dropped", "the parser yielded nothing")
    assert statuses == [nothing, ("metadata", None), nothing, nothing]


def test_an_unknown_fact_is_refused_with_those_that_are_known(home):
    @jsonl_adapter("mytool", root="~/.mytool")
    def titled(record, session):
        session.metadata(title="T")

    assert "metadata takes id, slug (the title), cwd" in try_parser(titled, put(home, SAYS)).problem()


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"cwd": "/home/x/shop"}, "shop"),
        ({"cwd": "/home/x/shop", "project_dir": "/srv/api"}, "api"),
        ({"cwd": "/home/x/shop", "project_name": "Mine"}, "Mine"),
        ({"slug": "T"}, "p"),
    ],
)
def test_the_project_s_name_comes_from_the_working_directory(home, facts, name):
    @jsonl_adapter("mytool", root="~/.mytool")
    def there(record, session):
        session.metadata(**facts)

    put(home, SAYS)
    assert parse(there, home).parsed[0].conversation.project_name == name


@pytest.mark.parametrize("records", ["turns", "turns/0", "#/turns", 5])
def test_what_is_no_json_pointer_is_refused(records):
    with pytest.raises(cnb.ConfigError, match='begins with "/"'):
        json_adapter("mytool", root="~/.mytool", records=records)


def test_messages_can_be_put_in_the_order_of_time(home):
    @jsonl_adapter("mytool", root="~/.mytool", order="time")
    def timed(record, session):
        yield cnb.Message("user", record["text"], timestamp=record.get("at"))

    lines = [{"text": "late", "at": "2026-01-02"}, {"text": "later, no time"}, {"text": "early", "at": "2026-01-01"}]
    put(home, "".join(json.dumps(line) + "\n" for line in lines))
    (parsed,) = parse(timed, home).parsed
    assert [m.content for m in parsed.conversation.messages] == ["early", "late", "later, no time"]
    assert [f.message_index for f in parsed.fates] == [1, 2, 0]


def test_names_that_are_alike_give_paths_as_ids(home):
    (home / ".mytool" / "q").mkdir()
    put(home, SAYS)
    put(home, SAYS, "b.jsonl")
    (home / ".mytool" / "q" / "a.jsonl").write_text(SAYS)
    ids = cnb.scan(mytool, config=cnb.Config(home=home))["id"].to_list()
    assert ids == ["p/a.jsonl", "b", "q/a.jsonl"]


def test_a_configured_folder_wins(tmp_path):
    (tmp_path / "a.jsonl").write_text(SAYS)
    config = cnb.Config(folders={"mytool": tmp_path})
    assert cnb.scan(mytool, config=config)["id"].to_list() == ["a"]
    assert cnb.detect_all_sources(adapters=[mytool], config=config)[0].conversation_count == 1


def test_an_absent_tool_is_no_error(tmp_path):
    assert cnb.scan(mytool, config=cnb.Config(home=tmp_path)).height == 0


@given(
    st.lists(st.dictionaries(st.text(max_size=5), json_values, max_size=3), max_size=4), st.sampled_from(["\n", "\r\n"])
)
def test_lines_are_read_as_json_reads_them_and_tile_the_file(tmp_path, records, end):
    path = tmp_path / "a.jsonl"
    texts = [json.dumps(r) for r in records]
    path.write_bytes(end.join(texts).encode())
    found = list(line_records(path))
    assert [r.value for r in found] == [json.loads(t) for t in texts]
    assert sum(r.size for r in found) == path.stat().st_size


@pytest.mark.parametrize(
    "line", [b'{"a":1e999}', b'{"a":"\xff"}', b'{"a":"\\ud83d"}', b'\xef\xbb\xbf{"a":1}', b'{"a":NaN}']
)
def test_lines_are_read_tolerantly(tmp_path, line):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line + b"\n")
    (record,) = line_records(path)
    assert (record.problem, list(record.value)) == (None, ["a"])


def test_a_line_that_is_too_deep_is_broken(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":' + b"[" * 100_000 + b"\n")
    assert next(line_records(path)).problem == "invalid JSON"


def test_documents_give_their_items(home):
    @json_adapter("mytool", root="~/.mytool", records="/turns")
    def turns(record, session):
        session.metadata(slug=session.document["title"])
        yield cnb.Message(record["who"], record["text"])

    put(home, json.dumps({"title": "T", "turns": [{"who": "user", "text": "hi"}, {"who": "user"}]}), "a.json")
    trial = try_parser(turns, home / ".mytool/p/a.json")
    assert trial.error.row == "/turns/1"
    assert trial.parsed.conversation.slug == "T"
    put(home, json.dumps({"title": "T"}), "a.json")
    assert parse(turns, home).parsed[0].fates[0].reason == "the document has no list at /turns"
    put(home, '{"ti', "a.json")
    assert "no JSON" in parse(turns, home).failed[0].message


def test_a_document_can_be_one_record(home):
    @json_adapter("mytool", root="~/.mytool")
    def whole(document, session):
        for text in document:
            yield cnb.Message("user", text)

    put(home, '["a", "b"]', "a.json")
    (parsed,) = parse(whole, home).parsed
    assert [m.content for m in parsed.conversation.messages] == ["a", "b"]
    assert parsed.fates[0].note == "2 messages"


@sqlite_adapter("mytool", root="~/.mytool", query="SELECT * FROM said ORDER BY n", conversation="chat")
def rows(row, session):
    yield cnb.Message(row["who"], row["text"], id=str(row["n"]))


@pytest.fixture
def database(home):
    path = home / ".mytool" / "history.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE said (n INTEGER PRIMARY KEY, chat TEXT, who TEXT, text TEXT)")
        connection.executemany(
            "INSERT INTO said VALUES (?, ?, 'user', ?)", [(1, "x", "one"), (2, "y", "two"), (3, "x", "three")]
        )
        connection.commit()
    return path


def test_rows_are_grouped_by_conversation(home, database):
    corpus = parse(rows, home)
    assert [[m.content for m in c.messages] for c in corpus] == [["one", "three"], ["two"]]
    assert [f.key for f in corpus.parsed[0].fates] == ["row 1", "row 3"]
    assert try_parser(rows, database, conversation="y").others == ("x",)


def test_the_write_ahead_log_is_seen_and_nothing_is_left_behind(home, database):
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("INSERT INTO said VALUES (4, 'x', 'user', 'four')")
        connection.commit()
        before = sorted(p.name for p in database.parent.iterdir())
        assert parse(rows, home)["mytool", "x"].messages[-1].content == "four"
        assert sorted(p.name for p in database.parent.iterdir()) == before


def test_a_database_without_the_column_is_refused(home, database):
    @sqlite_adapter("mytool", root="~/.mytool", query="SELECT n FROM said", conversation="chat")
    def wrong(row, session):
        pass

    with pytest.raises(cnb.SourceError, match="no column 'chat'; it has n"):
        cnb.scan(wrong, config=cnb.Config(home=home))
    error = try_parser(wrong, database).error
    assert "no column 'chat'" in str(error)
    assert str(error).count(str(database)) == 1
    with pytest.raises(cnb.DetectError) as caught:
        cnb.detect_all_sources(adapters=[wrong], config=cnb.Config(home=home))
    assert str(caught.value).count(str(database)) == 1


def test_a_changed_parser_is_used_at_once(home):
    path = put(home, SAYS)
    for text in ("first", "second"):

        @jsonl_adapter("mytool", root="~/.mytool")
        def parser(record, session, text=text):
            yield cnb.Message("user", text)

        assert try_parser(parser, path).messages["content"].to_list() == [text]
        assert parse(parser, home)["mytool", "a"].messages[0].content == text


def test_a_trial_shows_records_and_messages_harmlessly(home):
    trial = try_parser(mytool, put(home, SAYS.replace("hi", "<script>\\u001b[31m")))
    assert "<script>" not in trial._repr_html_()
    assert "\x1b" not in repr(trial) + trial._repr_html_()
    assert trial.records["raw"][0].startswith('{"kind":"say"')
    assert trial.fates.height == trial.messages.height == 1


@pytest.mark.parametrize("source", ["claude-code", "copilot", "gemini", "trae"])
def test_built_ins_can_be_tried_too(source):
    config = cnb.samples.config()
    path = cnb.scan(source, config=config)["file_path"][0]
    trial = try_parser(source, path, config=config)
    assert trial.error is None
    assert trial.records.height == trial.fates.height > 0


def test_no_line_of_a_trial_ends_in_a_colon(home):
    @jsonl_adapter("mytool", root="~/.mytool")
    def titled(record, session):
        session.metadata(slug="T")

    assert repr(try_parser(titled, put(home, SAYS))).endswith(" metadata")


@pytest.mark.parametrize("path", [5, None, b"x"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(cnb.ConfigError, match="path must be a file's path or a Candidate, not"):
        cnb.try_parser("claude-code", path)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(cnb.ConfigError, match="No such file"):
        try_parser(mytool, tmp_path / "gone.jsonl")


class Point:
    """An entry point that gives something."""

    value = "somewhere:adapter"

    def __init__(self, given):
        self.given, self.name = given, getattr(given, "name", None) or "mine"

    def load(self):
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


@pytest.fixture
def announce(monkeypatch):
    def given(*adapters):
        monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
        monkeypatch.setattr(registry, "_asked_for_plugins", False)
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point(a) for a in adapters])

    return given


def test_adapters_of_other_packages_are_found_by_name(announce):
    announce(mytool)
    assert cnb.get_adapter("mytool") is mytool


def test_a_function_that_gives_an_adapter_will_do(announce):
    announce(lambda: mytool)
    with pytest.warns(PluginWarning, match="entry point 'mine' gives the adapter 'mytool', .* by that name"):
        assert cnb.adapters.registered()["mytool"] is mytool


async def inside_a_loop():
    cnb.scan(config=cnb.Config(home=cnb.samples.home()))


@pytest.mark.parametrize("look", [cnb.sources, lambda: cnb.get_adapter("mytool"), lambda: asyncio.run(inside_a_loop())])
def test_a_warning_about_a_package_points_to_the_line_that_came_here(announce, look):
    announce(5, mytool)
    with pytest.warns(PluginWarning, match="left out") as caught:
        look()
    assert caught[0].filename == __file__


@pytest.mark.parametrize("wrong", [ImportError("no such thing"), 5, lambda: None])
def test_an_announced_adapter_that_fails_is_left_out_with_a_warning(announce, wrong):
    announce(wrong, mytool)
    with pytest.warns(PluginWarning, match="'mine' .* left out"):
        assert "mytool" in cnb.adapters.registered()


def test_a_name_that_is_taken_stays_whose_it_is(announce):
    from dataclasses import replace

    announce(replace(mytool, name="codex"))
    with pytest.warns(PluginWarning, match="the name is taken"):
        assert cnb.adapters.registered()["codex"].display_name == "Codex CLI"
    assert plugins.GROUP == "crystal_nb.adapters"


def test_entry_points_are_not_looked_for_on_import():
    code = "import sys, crystal_nb; crystal_nb.get_adapter('codex'); print('importlib.metadata' in sys.modules)"
    run = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.strip() in ("False", "")
