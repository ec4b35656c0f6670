"""Parser functions that yield, note or raise what they should not: an error that names field, line and record."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from datetime import datetime

import pytest

import crystal_nb as cnb
from crystal_nb.details import Details, ToolCall
from crystal_nb.prototyping import json_adapter, jsonl_adapter, sqlite_adapter
from crystal_nb.raw_records import line_records
from crystal_nb.records import Message
from crystal_nb.trial import try_parser

RECORD = {"kind": "say", "text": "hi"}
GOOD = {"type": "user", "content": "hi"}
WRONG_FIELDS = {
    "content": (5, b"hi", None, ["hi"], {"text": "hi"}),
    "type": (None, 1, b"user", ["user"], "robot", "x" * 10_000),
    "role": (5, b"user", ["user"], {}),
    "has_tool_use": (None, 1, "yes"),
    "has_code": (None, 0, []),
    "thinking": (5, b"hm", ["hm"]),
    "id": (b"1", ["1"], {"id": 1}, True),
    "parent_uuid": (b"1", ["1"], {"id": 1}),
    "timestamp": (datetime(2026, 1, 1), b"2026", ["2026"], False),
    "timestamp_from_clock": (None, 1),
    "details": ({"model": "m"}, "m", [Details()]),
}
WRONG_DETAILS = {
    "tools": ([ToolCall("t")], ("t",), None, ToolCall("t")),
    "model": (5, b"m"),
    "input_tokens": ("5", 5.5, 2**63, True),
    "output_tokens": ("5", [], -(2**63)),
    "cache_tokens": ("5", {}),
    "is_sidechain": (1, "no"),
    "request_id": (5, b"r"),
    "marks": (["m"], (5,), None, "m"),
}
WRONG_TOOL = {
    "name": (None, 5),
    "input": ({"a": 1}, b"{}"),
    "raw_result": ({"a": 1}, 5),
    "id": (5, b"1"),
    "is_error": (1, "no"),
}
MESSAGES = [
    *((f"{name}", Message(**{**GOOD, name: value})) for name, values in WRONG_FIELDS.items() for value in values),
    *(
        (f"details.{name}", Message(**GOOD, details=Details(**{name: value})))
        for name, values in WRONG_DETAILS.items()
        for value in values
    ),
    *(
        (f"details.tools.{name}", Message(**GOOD, details=Details((ToolCall(**{"name": "t", name: value}),))))
        for name, values in WRONG_TOOL.items()
        for value in values
    ),
]
FACTS = ("slug", "cwd", "git_branch", "project_dir", "project_name", "id", "parent_id")


@pytest.fixture
def run(tmp_path):
    """Try a function on lines, by default on one."""

    def tried(function, records=(RECORD,), **settings):
        path = tmp_path / ".mytool" / "p" / "a.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        return try_parser(jsonl_adapter("mytool", root="~/.mytool", **settings)(function), path)

    return tried


def line_of(function, text):
    """Number of the line of a function that holds a text."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if text in line)


def assert_points_at(trial, function, text):
    error = trial.problem()
    assert isinstance(trial.error, cnb.ParseError)
    assert f"in {function.__name__}, line {line_of(function, text)} at " in error
    assert 'raw record: {"kind": "say", "text": "hi"}' in error
    assert error.isprintable() or error.replace("\n", "").isprintable()
    assert len(error) < 1500


def test_every_field_of_a_message_has_a_wrong_value():
    assert set(WRONG_FIELDS) == set(Message.__struct_fields__)
    assert set(WRONG_DETAILS) == set(Details.__struct_fields__)
    assert set(WRONG_TOOL) == set(ToolCall.__struct_fields__)


@pytest.mark.parametrize(("name", "message"), MESSAGES)
def test_a_field_of_a_wrong_type_is_named_where_it_is_yielded(run, name, message):
    def parser(record, session):
        made = message
        yield made  # here

    trial = run(parser)
    assert_points_at(trial, parser, "# here")
    assert f"a message's {name} is " in trial.problem()


@pytest.mark.parametrize(("name", "message"), MESSAGES)
def test_a_field_of_a_wrong_type_is_named_where_it_is_amended(run, name, message):
    changes = {f: getattr(message, f) for f in Message.__struct_fields__}

    def parser(record, session):
        yield Message("user", "hi")
        session.amend(**changes)  # here

    trial = run(parser)
    assert_points_at(trial, parser, "# here")
    assert f"a message's {name} is " in trial.problem()


@pytest.mark.parametrize("wrong", [{"a": 1}, b"x", ["x"], {"x"}, object()])
@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_of_a_wrong_type_is_named_where_it_is_noted(run, fact, wrong):
    def parser(record, session):
        session.metadata(**{fact: wrong})  # here

    trial = run(parser)
    assert_points_at(trial, parser, "# here")
    assert f"a conversation's {fact} is text" in trial.problem()


@pytest.mark.parametrize("wrong", [None, 5, b"noise", ["noise"], "", " "])
@pytest.mark.parametrize("way", ["drop", "amend"])
def test_a_reason_is_text(run, wrong, way):
    def parser(record, session):
        yield Message("user", "hi")
        session.drop(wrong) if way == "drop" else session.amend(reason=wrong)  # here

    trial = run(parser)
    assert_points_at(trial, parser, "# here")
    assert "reason" in trial.problem()


async def _coroutine(record, session):
    return Message("user", "hi")


async def _async_generator(record, session):
    yield Message("user", "hi")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_coroutine, "not an async one"),
        (_async_generator, "not an async one"),
        (lambda record, session: 5, "not int"),
        (lambda record, session: "hi", "not str"),
        (lambda record, session: {"type": "user"}, "not dict"),
        (lambda record, session: [Message("user", "hi"), None], "not NoneType"),
    ],
)
def test_a_result_that_holds_no_messages_is_told_with_the_function_s_line(run, function, said):
    trial = run(function)
    assert said in trial.problem()
    assert f"line {function.__code__.co_firstlineno} at " in trial.problem()
    assert "raw record: " in trial.problem()


def test_an_error_in_the_text_of_an_error_is_told(run):
    class Wordless(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    def parser(record, session):
        raise Wordless  # here

    assert_points_at(run(parser), parser, "# here")
    lenient = run(parser, on_error="drop")
    assert lenient.error is None
    assert "Wordless" in lenient.parsed.fates[0].reason


def test_an_error_s_text_is_one_harmless_line_of_bounded_length(run):
    def parser(record, session):
        raise ValueError("\x1b[31m\n" + "x" * 10_000)  # here

    assert_points_at(run(parser), parser, "# here")


def test_leaving_the_interpreter_is_an_error_as_any_other(run):
    def parser(record, session):
        raise SystemExit(3)  # here

    assert_points_at(run(parser), parser, "# here")


def test_a_message_that_changes_after_it_was_yielded_stays_as_it_was(run):
    from msgspec.structs import force_setattr

    tool = ToolCall("t", "1")
    mine = Message("user", "hi", id="1", details=Details((tool,), "m"))

    def parser(record, session):
        yield mine
        force_setattr(mine, "content", 5)
        force_setattr(mine.details, "model", 5)
        force_setattr(tool, "input", 5)

    (message,) = run(parser).parsed.conversation.messages
    assert (message.content, message.details.model, message.details.tools[0].input) == ("hi", "m", "1")


def test_what_was_yielded_can_be_looked_at_and_not_altered(run):
    changes = (
        lambda session: session.messages.append(5),
        lambda session: session.messages.clear(),
        lambda session: session.messages.__setitem__(0, 5),
        lambda session: setattr(session, "messages", []),
        lambda session: setattr(session, "candidate", None),
    )
    for change in changes:

        def parser(record, session, change=change):
            yield Message("user", "hi")
            change(session)

        assert "AttributeError in " in str(run(parser).error)


@pytest.mark.timeout(20)
def test_going_through_what_was_yielded_while_yielding_ends(run):
    def parser(record, session):
        yield Message("user", record["text"], id=str(len(session.messages)))
        for earlier in session.messages:
            yield Message("assistant", earlier.content)

    assert len(run(parser, [RECORD] * 3).parsed.conversation.messages) == 2 + 4 + 8


@pytest.mark.timeout(20)
@pytest.mark.parametrize("turns", [[{"a": 1}, {"a": 2}], {"x": {"a": 1}, "y": {"a": 2}}])
def test_a_document_that_is_altered_while_it_is_read_gives_the_records_that_it_had(tmp_path, turns):
    @json_adapter("mytool", root=tmp_path, records="/turns")
    def parser(record, session):
        held = session.document["turns"]
        held.append({"a": 3}) if isinstance(held, list) else held.update({f"z{len(held)}": {"a": 3}})
        yield Message("user", str(record["a"]))
        for one in held if isinstance(held, list) else held.values():
            one["a"] = one["type"] = "altered"
        session.drop("altered")

    file = tmp_path / "a.json"
    file.write_text(json.dumps({"turns": turns}))
    trial = try_parser(parser, file)
    assert trial.error is None
    assert [f.status for f in trial.parsed.fates] == ["kept", "kept"]
    assert [json.loads(r.data) for r in trial.raw] == [{"a": 1}, {"a": 2}]


def test_a_role_of_none_and_ids_of_numbers_go_all_the_way(run, tmp_path):
    def parser(record, session):
        session.metadata(id=7)
        yield Message("user", "hi", role=None, id=1, timestamp=1_767_225_600_000)
        yield Message("assistant", "ho", id=2.5, parent_uuid=1)

    assert run(parser).messages["id"].to_list() == ["1", "2.5"]
    adapter = jsonl_adapter("mytool", root=tmp_path / ".mytool")(parser)
    with cnb.open_store(tmp_path / "s.db") as store:
        report = cnb.import_all(store, cnb.scan(adapter), adapters=[adapter], progress=False)
        assert [o.decision.action for o in report.outcomes] == ["insert"]
        assert store.messages().height == 2


DEEP = 100_000


@pytest.mark.parametrize("inner", ["[%s]", '{"a":%s}'])
def test_lines_and_documents_of_any_depth_are_read(tmp_path, inner):
    begin, end = inner.split("%s")
    deep = begin * DEEP + "7" + end * DEEP
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"kind":"say","deep":{deep},"n":NaN,"big":{"9" * 5000}}}\n{deep}\n{{"deep":{deep}}} x\n')
    first, second, third = line_records(file)
    assert (first.problem, first.kind) == (None, "say")
    value = first.value["deep"]
    for _ in range(DEEP):
        value = next(iter(value.values())) if isinstance(value, dict) else value[0]
    assert value == 7
    assert second.problem == (None if "{" in inner else "not an object")
    assert third.problem == "invalid JSON"

    @jsonl_adapter("mytool", root=tmp_path)
    def parser(record, session):
        yield Message("user", record["kind"])

    assert try_parser(parser, file).parsed.conversation.messages[0].content == "say"


def test_a_deep_item_of_a_document_is_shown_in_the_error(tmp_path):
    @json_adapter("mytool", root=tmp_path, records="/turns")
    def parser(record, session):
        yield Message("user", record["text"])

    file = tmp_path / "a.json"
    file.write_text('{"turns":[{"who":"ada","deep":' + "[" * DEEP + "]" * DEEP + "}]}")
    assert 'raw record: {"who": "ada", "deep": [[[' in try_parser(parser, file).problem()


QUERIES = [
    "ATTACH '{0}/new.db' AS n",
    "ATTACH '{0}/other.db' AS n",
    "VACUUM INTO '{0}/new.db'",
    "DETACH main",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA writable_schema = 1",
    "PRAGMA query_only = 0",
    "SELECT chat FROM said, pragma_table_info('said')",
    "INSERT INTO said VALUES (9, 'x', 'user', 'y') RETURNING chat",
    "UPDATE said SET chat = 'z' RETURNING chat",
    "DELETE FROM said RETURNING chat",
    "DROP TABLE said",
    "CREATE TABLE t (chat)",
    "CREATE TEMP TABLE t (chat)",
    "CREATE VIRTUAL TABLE t USING fts5(chat)",
    "BEGIN",
    "REINDEX",
    "ANALYZE",
    "SELECT load_extension('{0}/x.so') AS chat",
]


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE said (n INTEGER PRIMARY KEY, chat TEXT, who TEXT, text TEXT)")
        connection.execute("CREATE INDEX by_chat ON said (chat)")
        connection.execute("INSERT INTO said VALUES (1, 'x', 'user', 'one')")
        connection.execute("CREATE VIRTUAL TABLE found USING fts5(chat, text)")
        connection.execute("INSERT INTO found VALUES ('x', 'hello world')")
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE secret (chat TEXT)")
    return path


def made_of(query, folder):
    @sqlite_adapter("mytool", root=folder, glob="history.db", query=query, conversation="chat")
    def parser(row, session):
        yield Message("user", row["text"])

    return parser


@pytest.mark.parametrize("with_log", [False, True])
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_that_does_more_than_read_is_refused(tmp_path, database, query, with_log):
    with closing(sqlite3.connect(database)) as writer:
        if with_log:
            writer.execute("PRAGMA journal_mode=WAL")
            writer.execute("INSERT INTO said VALUES (2, 'x', 'user', 'two')")
            writer.commit()
        before = {name: (tmp_path / name).read_bytes() for name in sorted(os.listdir(tmp_path))}
        adapter = made_of(query.format(tmp_path), tmp_path)
        with pytest.raises(cnb.SourceError, match=r"may do nothing but read this one database; it asks for [A-Zl]"):
            cnb.scan(adapter)
        assert "it asks for" in str(try_parser(adapter, database).error)
        assert {name: (tmp_path / name).read_bytes() for name in sorted(os.listdir(tmp_path))} == before


@pytest.mark.parametrize(
    "query", ["SELECT chat, text FROM said; DROP TABLE said", "SELECT", "nonsense", "", "SELECT 1"]
)
def test_a_query_that_is_none_is_a_scan_error(tmp_path, database, query):
    with pytest.raises(cnb.SourceError, match=r"mytool: .*history\.db: "):
        cnb.scan(made_of(query, tmp_path))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM said",
        "SELECT chat, text FROM found WHERE found MATCH 'hello'",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 3) SELECT chat, text FROM said, r",
        "SELECT chat, group_concat(upper(text)) AS text FROM said GROUP BY chat ORDER BY random()",
        "SELECT chat, json_extract('{\"a\":\"b\"}', '$.a') AS text FROM said",
    ],
)
def test_a_query_that_reads_is_not(tmp_path, database, query):
    adapter = made_of(query, tmp_path)
    assert cnb.parse(cnb.scan(adapter)).messages.height > 0
