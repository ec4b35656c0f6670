from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import json_values, texts

import crystal_nb as cnb
from crystal_nb.adapters import cursor, cursor_index, vscdb
from crystal_nb.adapters.base import Draft, Parsed
from crystal_nb.adapters.cursor import ADAPTER
from crystal_nb.config import Config
from crystal_nb.errors import ParseError, ScanError
from crystal_nb.records import Candidate, Fate, Message

NOW = "2027-01-15T08:00:00.000Z"
Rows = Iterable[tuple[Any, Any]]


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vscdb, "RETRY_SECONDS", 0)
    cursor._WINDOWS.clear()
    cursor._ORPHANS.clear()


def user_folder(home: Path) -> Path:
    return home / ".config/Cursor/User"


def global_database(home: Path) -> Path:
    return user_folder(home) / "globalStorage" / "state.vscdb"


def config(home: Path, cache_seconds: float = 0) -> Config:
    return Config(home=home, platform="linux", cache_seconds=cache_seconds, clock=lambda: 1_800_000_000_000)


def write(path: Path, table: str, rows: Rows, mode: str = "MEMORY") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        connection.executemany(f"INSERT INTO {table} VALUES (CAST(? AS TEXT), ?)", rows)


def bubbles(home: Path, rows: Rows) -> None:
    write(global_database(home), "cursorDiskKV", rows)


def window(home: Path, heads: Any, name: str = "w", folder: Any = "file:///home/ada/app") -> Path:
    place = user_folder(home) / "workspaceStorage" / name
    write(place / "state.vscdb", "ItemTable", [("composer.composerData", json.dumps({"allComposers": heads}))])
    (place / "workspace.json").write_text(json.dumps({"folder": folder}), encoding="utf-8")
    return place


def parse(home: Path, id: Any = "c") -> Parsed:
    candidate = Candidate("cursor", id, str(global_database(home)), 1, NOW, "home/ada/app")
    return ADAPTER._parse(candidate, config(home))


def parse_values(home: Path, *values: Any) -> Parsed:
    """Parse a conversation of these values; what is no str, bytes or None becomes JSON."""
    path = global_database(home)
    path.unlink(missing_ok=True)
    raw = [v if v is None or isinstance(v, (str, bytes)) else json.dumps(v) for v in values]
    bubbles(home, [(f"bubbleId:c:b{i}", value) for i, value in enumerate(raw)])
    return parse(home)


def message(home: Path, **bubble: Any) -> Message:
    return parse_values(home, {"type": 1, "text": "hello"} | bubble).conversation.messages[0]


def fate(home: Path, value: Any) -> Fate:
    return parse_values(home, value).fates[0]


def scan(home: Path) -> list[Any]:
    return [candidate.id for candidate in ADAPTER._scan(config(home))]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


TEXT_BUBBLE = '{"type": 1, "text": "hello"}'


# Detect and scan


def test_heads_come_first_then_orphans_in_key_order(tmp_path: Path) -> None:
    window(tmp_path, [{"composerId": "b", "createdAt": 1_700_000_000_000.9}, {"composerId": "a"}])
    bubbles(tmp_path, [("bubbleId:z:1", TEXT_BUBBLE), ("bubbleId:o:1", TEXT_BUBBLE), ("bubbleId:a:1", TEXT_BUBBLE)])
    os.utime(global_database(tmp_path), ns=(0, 123_500_000))
    found = ADAPTER._scan(config(tmp_path))
    assert [(c.id, c.file_mtime[-13:], c.project_dir) for c in found] == [
        ("b", "22:13:20.000Z", "home/ada/app"),
        ("a", "00:00:00.124Z", "home/ada/app"),
        ("o", "00:00:00.124Z", ""),
        ("z", "00:00:00.124Z", ""),
    ]
    assert {c.file_size for c in found} == {global_database(tmp_path).stat().st_size}


def test_detect_counts_distinct_ids_where_scan_repeats_them(tmp_path: Path) -> None:
    for name in ("w1", "w2"):
        window(tmp_path, [{"composerId": "a"}, {"composerId": 1}, {"composerId": True}, {}, 5], name)
    bubbles(tmp_path, [("bubbleId:o:1", TEXT_BUBBLE)])
    info = ADAPTER._detect(config(tmp_path))
    assert info is not None
    assert info.conversation_count == 5
    assert scan(tmp_path) == ["a", 1, True, None, None] * 2 + ["o"]


def test_absent_without_the_global_database(tmp_path: Path) -> None:
    window(tmp_path, [{"composerId": "a"}])
    assert ADAPTER._detect(config(tmp_path)) is None
    assert scan(tmp_path) == []


@pytest.mark.parametrize("heads", [[None], [{"composerId": "a"}, None]])
def test_a_null_head_hides_the_source_and_fails_the_scan(tmp_path: Path, heads: Any) -> None:
    window(tmp_path, heads)
    bubbles(tmp_path, [("bubbleId:o:1", TEXT_BUBBLE)])
    assert ADAPTER._detect(config(tmp_path)) is None
    with pytest.raises(ScanError):
        scan(tmp_path)


@pytest.mark.parametrize("created_at", ["1700000000000", "soon", 1e16, {}])
def test_an_invalid_date_fails_the_scan_only(tmp_path: Path, created_at: Any) -> None:
    window(tmp_path, [{"composerId": "a", "createdAt": created_at}])
    bubbles(tmp_path, [])
    assert ADAPTER._detect(config(tmp_path)) is not None
    with pytest.raises(ScanError, match="no valid date"):
        scan(tmp_path)


@pytest.mark.parametrize("value", [None, b"{}", "null", "{", '{"allComposers":{}}', "[]", 5, "[" * 100_000])
def test_windows_without_usable_heads_are_left_out(tmp_path: Path, value: Any) -> None:
    place = window(tmp_path, [{"composerId": "a"}], "bad")
    write(place / "state.vscdb", "ItemTable", [("composer.composerData", value)])
    window(tmp_path, [{"composerId": "b"}], "good")
    bubbles(tmp_path, [])
    assert scan(tmp_path) == ["b"]


def test_heads_of_a_string_are_its_characters(tmp_path: Path) -> None:
    window(tmp_path, "ab")
    bubbles(tmp_path, [])
    assert scan(tmp_path) == [None, None]


@pytest.mark.parametrize(
    "value", [None, b'{"text": "x"}', "{", '{"text": 5}', '{"text": " "}', "null", '"text"', '{"type": 1}', 7]
)
def test_bubbles_without_text_make_no_orphan(tmp_path: Path, value: Any) -> None:
    bubbles(tmp_path, [("bubbleId:o:1", value)])
    assert ADAPTER._detect(config(tmp_path)) is None
    assert scan(tmp_path) == []


@pytest.mark.parametrize(("place", "found"), [(19, ["o"]), (20, [])])
def test_only_the_first_twenty_rows_make_an_orphan(tmp_path: Path, place: int, found: list[str]) -> None:
    rows = [(f"bubbleId:o:{99 - i}", TEXT_BUBBLE if i == place else "{}") for i in range(30)]
    bubbles(tmp_path, rows)
    assert scan(tmp_path) == found


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("BUBBLEID:o:1", ["o"]),
        ("bubbleId::1", [""]),
        ("bubbleId:o", []),
        ("bubbleId:::x", [":", ""]),
        (b"bubbleId:o\0x:1", []),
        ("bubbleIdo:1", []),
        ("xbubbleId:o:1", []),
    ],
)
def test_orphan_ids_are_cut_out_as_sqlite_does(tmp_path: Path, key: Any, found: list[str]) -> None:
    bubbles(tmp_path, [(key, TEXT_BUBBLE), ("bubbleId:", "{}"), ("agentKv:blob:1", "x")])
    assert scan(tmp_path) == found


def test_a_quote_in_an_orphan_id_hides_the_source_and_fails_the_scan(tmp_path: Path) -> None:
    bubbles(tmp_path, [("bubbleId:o'o:1", TEXT_BUBBLE)])
    assert ADAPTER._detect(config(tmp_path)) is None
    with pytest.raises(ScanError, match="statement"):
        scan(tmp_path)


def test_a_quote_in_a_known_id_fails_its_parse_only(tmp_path: Path) -> None:
    window(tmp_path, [{"composerId": "o'o"}])
    bubbles(tmp_path, [("bubbleId:o'o:1", TEXT_BUBBLE)])
    assert scan(tmp_path) == ["o'o"]
    with pytest.raises(ParseError, match="statement"):
        parse(tmp_path, "o'o")


@pytest.mark.parametrize("data", [b"", b"garbage" * 1000, b"SQLite format 3\0" + b"\1" * 4080])
def test_an_unsound_global_database(tmp_path: Path, data: bytes) -> None:
    window(tmp_path, [{"composerId": "a"}])
    global_database(tmp_path).parent.mkdir()
    global_database(tmp_path).write_bytes(data)
    assert ADAPTER._detect(config(tmp_path)) is None
    with pytest.raises(ScanError):
        scan(tmp_path)
    with pytest.raises(ParseError):
        parse(tmp_path)


def test_an_unreadable_global_database_has_no_orphans_and_fails_the_parse(tmp_path: Path) -> None:
    window(tmp_path, [{"composerId": "a"}])
    global_database(tmp_path).mkdir(parents=True)
    assert ADAPTER._detect(config(tmp_path)) is not None
    assert scan(tmp_path) == ["a"]
    with pytest.raises(ParseError):
        parse(tmp_path)


def test_window_and_orphan_lists_are_kept(tmp_path: Path) -> None:
    window(tmp_path, [{"composerId": "a"}])
    bubbles(tmp_path, [("bubbleId:o:1", TEXT_BUBBLE)])
    kept = config(tmp_path, cache_seconds=5)
    ADAPTER._detect(kept)
    window(tmp_path, [{"composerId": "b"}], "w2")
    bubbles(tmp_path, [("bubbleId:o2:1", TEXT_BUBBLE)])
    assert [c.id for c in ADAPTER._scan(kept)] == ["a", "o"]
    assert scan(tmp_path) == ["a", "b", "o2", "o"]


def test_kept_orphans_do_not_ask_what_is_known(tmp_path: Path) -> None:
    bubbles(tmp_path, [("bubbleId:o:1", TEXT_BUBBLE)])
    kept = config(tmp_path, cache_seconds=5)
    ADAPTER._detect(kept)
    cursor._WINDOWS.clear()
    window(tmp_path, [{"composerId": "o"}])
    assert [c.id for c in ADAPTER._scan(kept)] == ["o", "o"]


def test_no_bubbles_are_not_kept(tmp_path: Path) -> None:
    bubbles(tmp_path, [])
    kept = config(tmp_path, cache_seconds=5)
    assert ADAPTER._scan(kept) == []
    bubbles(tmp_path, [("bubbleId:o:1", TEXT_BUBBLE)])
    assert [c.id for c in ADAPTER._scan(kept)] == ["o"]


# Parse


def test_no_rows_make_an_empty_conversation(tmp_path: Path) -> None:
    bubbles(tmp_path, [("bubbleId:other:1", TEXT_BUBBLE)])
    parsed = parse(tmp_path)
    assert parsed.fates == parsed.conversation.messages == ()
    assert (parsed.conversation.project_name, parsed.conversation.first_message_at) == ("app", NOW)


def test_rows_come_in_row_order_and_then_by_time(tmp_path: Path) -> None:
    at = "2026-01-01T00:00:0{}.000Z".format
    rows = [("b", at(2)), ("a", at(2)), ("c", at(1))]
    bubbles(tmp_path, [(f"bubbleId:c:{k}", json.dumps({"type": 1, "text": k, "createdAt": t})) for k, t in rows])
    parsed = parse(tmp_path)
    assert [m.content for m in parsed.conversation.messages] == ["c", "b", "a"]
    assert [(f.key, f.message_index) for f in parsed.fates] == [
        ("cursorDiskKV/bubbleId:c:b", 1),
        ("cursorDiskKV/bubbleId:c:a", 2),
        ("cursorDiskKV/bubbleId:c:c", 0),
    ]


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        ("{broken", "bubble", "not JSON"),
        ("", "bubble", "not JSON"),
        (TEXT_BUBBLE[:-1] + "\0}", "bubble", "not JSON"),
        (TEXT_BUBBLE.encode(), "bubble", "BLOB value"),
        ("[]", "bubble", "not an object"),
        ("[" * 100_000, "bubble", "not JSON"),
        ('{"type": 2, "text": " \ufeff"}', "assistant", "assistant bubble without text"),
        ('{"type": 2, "toolFormerData": {"name": "x"}}', "assistant", "assistant bubble without text: tool call"),
        ('{"type": 2, "thinking": {"text": "x"}}', "assistant", "assistant bubble without text: thinking"),
        ('{"type": true}', "assistant", "assistant bubble without text"),
    ],
)
def test_dropped_rows_say_why(tmp_path: Path, value: Any, kind: str, reason: str) -> None:
    got = fate(tmp_path, value)
    raw = value if isinstance(value, bytes) else value.encode()
    assert (got.status, got.kind, got.reason, got.size, got.head) == ("dropped", kind, reason, len(raw), raw[:96])


@pytest.mark.parametrize(
    "value",
    [
        None,
        "null",
        '{"text": 5}',
        '{"text": []}',
        '{"type":1,"allThinkingBlocks":[null]}',
        '{"type":1,"allThinkingBlocks":"a"}',
        '{"type":1,"allThinkingBlocks":{"length":1}}',
    ],
)
def test_what_the_pinned_parser_chokes_on_loses_the_conversation(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ParseError) as error:
        parse_values(tmp_path, TEXT_BUBBLE, value)
    assert error.value.row == "cursorDiskKV/bubbleId:c:b1"


def test_user_bubbles_without_text_are_kept(tmp_path: Path) -> None:
    for bubble in ({"type": 1}, {"type": 1.0, "text": None}, {"type": 1, "text": False}):
        kept = parse_values(tmp_path, bubble).conversation.messages
        assert [(m.type, m.content) for m in kept] == [("user", "")]


def test_text_is_trimmed_as_javascript_does(tmp_path: Path) -> None:
    assert message(tmp_path, text="\ufeff\u2028\x85 a \x1c\xa0").content == "\x85 a \x1c"


@pytest.mark.parametrize(
    ("bubble", "tools", "code"),
    [
        ({"toolResults": [{}]}, True, False),
        ({"toolResults": "x"}, True, False),
        ({"toolResults": []}, False, False),
        ({"toolResults": {"length": 2}}, True, False),
        ({"isAgentic": True}, True, False),
        ({"isAgentic": 1}, False, False),
        ({"toolFormerData": {"name": "x"}}, False, False),
        ({"codeBlocks": [1]}, False, True),
        ({"suggestedCodeBlocks": [None]}, False, True),
        ({"text": "a```b"}, False, True),
    ],
)
def test_tool_and_code_marks(tmp_path: Path, bubble: dict[str, Any], tools: bool, code: bool) -> None:
    got = message(tmp_path, **bubble)
    assert (got.has_tool_use, got.has_code) == (tools, code)


@pytest.mark.parametrize(
    ("bubble", "thinking"),
    [
        (
            {"allThinkingBlocks": [{"thinking": "a", "text": "x"}, {"text": "b"}, {}, 5, {"thinking": ["c", 1]}]},
            "a\nb\nc,1",
        ),
        ({"allThinkingBlocks": [{"thinking": 0, "text": []}]}, ""),
        ({"allThinkingBlocks": [{}], "thinking": "unread"}, None),
        ({"allThinkingBlocks": [], "thinking": "read"}, "read"),
        ({"allThinkingBlocks": {}, "thinking": "read"}, "read"),
        ({"thinking": {"text": "t", "n": 1}}, {"text": "t", "n": 1}),
        ({"thinking": ["t"]}, ["t"]),
        ({"thinking": ""}, None),
    ],
)
def test_thinking(tmp_path: Path, bubble: dict[str, Any], thinking: Any) -> None:
    assert message(tmp_path, **bubble).thinking == thinking


def test_time_and_id_fall_back(tmp_path: Path) -> None:
    bare = message(tmp_path, createdAt="", bubbleId=0)
    assert (bare.id, bare.timestamp, bare.timestamp_from_clock) == ("b0", NOW, True)
    full = message(tmp_path, createdAt=1_700_000_000_000, bubbleId="own")
    assert (full.id, full.timestamp, full.timestamp_from_clock) == ("own", 1_700_000_000_000, False)


def test_a_newer_bubble_version_is_noted(tmp_path: Path) -> None:
    assert fate(tmp_path, {"_v": 4, "type": 1}).note == "bubble version 4 is newer than the rules"
    assert fate(tmp_path, {"_v": 3, "type": 1}).note is None


def test_lone_surrogates_and_broken_utf8(tmp_path: Path) -> None:
    assert message(tmp_path, text="\ud83d").content == "\ud83d"
    bubbles(tmp_path, [("bubbleId:c:b0", "")])
    with closing(sqlite3.connect(global_database(tmp_path), isolation_level=None)) as connection:
        connection.execute(
            "UPDATE cursorDiskKV SET value = CAST(? AS TEXT)", (b'\xef\xbb\xbf{"type":1,"text":"a\xff"}',)
        )
    assert parse(tmp_path).conversation.messages[0].content == "a\ufffd"


@pytest.mark.parametrize(
    ("id", "matches"),
    [
        ("c_1", ["C_1", "c_1", "cx1"]),
        ("%", ["C_1", "c:d", "c_1", "cx1", "q'", "é"]),
        ("c:d", ["c:d"]),
        ("C_1", ["C_1", "c_1", "cx1"]),
        ("q''", ["q'"]),
        ("é", ["é"]),
        ("É", []),
        ("", []),
        ("c", ["c:d"]),
        (None, []),
        (5.0, []),
        ("\ud83d", []),
    ],
)
def test_the_id_is_a_like_pattern(tmp_path: Path, id: Any, matches: list[str]) -> None:
    names = ["c_1", "cx1", "C_1", "c:d", "é", "q'"]
    bubbles(tmp_path, [(f"bubbleId:{name}:b", TEXT_BUBBLE) for name in names])
    found = sorted(
        str(f.key).removeprefix("cursorDiskKV/bubbleId:").removesuffix(":b") for f in parse(tmp_path, id).fates
    )
    assert found == matches


names = st.text(st.sampled_from("aAkK\u212ac:_%é .-\ud83d"), max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["bubbleId:", "BUBBLEID:", "bubbleId"]), names), max_size=8), names)
@example([("bubbleId:", "\u212a:"), ("bubbleId:", "k:")], "k")
def test_the_index_answers_like_for_like(tmp_path: Path, keys: list[tuple[str, str]], id: str) -> None:
    path = tmp_path / "like.vscdb"
    path.unlink(missing_ok=True)
    raw = [(prefix + name + ":x").encode("utf-8", "surrogatepass") for prefix, name in keys]
    write(path, "cursorDiskKV", [(key, None) for key in raw])
    pattern = f"bubbleId:{id}:%".encode("utf-8", "surrogatepass")
    query = "SELECT rowid FROM cursorDiskKV WHERE key LIKE CAST(? AS TEXT) ORDER BY rowid"
    found, expected = vscdb.read(
        path,
        lambda c: (
            cursor_index.bubble_index(c, path).rowids(c, id),
            [rowid for (rowid,) in c.execute(query, (pattern,))],
        ),
    )
    assert found == expected


def test_the_index_follows_the_file(tmp_path: Path) -> None:
    bubbles(tmp_path, [("bubbleId:c:1", TEXT_BUBBLE)])
    assert len(parse(tmp_path).fates) == 1
    status = global_database(tmp_path).stat()
    bubbles(tmp_path, [("bubbleId:c:2", TEXT_BUBBLE)])
    os.utime(global_database(tmp_path), ns=(status.st_atime_ns, status.st_mtime_ns))
    assert global_database(tmp_path).stat().st_size == status.st_size
    assert len(parse(tmp_path).fates) == 2


def test_nothing_in_the_tools_folder_changes(tmp_path: Path) -> None:
    scene, home = tmp_path / "scene", tmp_path / "home"
    place = window(scene, [{"composerId": "c"}])
    for path, table in ((global_database(scene), "cursorDiskKV"), (place / "state.vscdb", "ItemTable")):
        write(path, table, [("bubbleId:c:1", TEXT_BUBBLE)], mode="WAL")
    with closing(sqlite3.connect(global_database(scene), isolation_level=None)) as connection:
        connection.execute("INSERT INTO cursorDiskKV VALUES ('bubbleId:c:2', ?)", (TEXT_BUBBLE,))
        shutil.copytree(scene, home)
    before = contents(home)
    assert len(before) == 5
    assert ADAPTER._detect(config(home)) is not None
    assert scan(home) == ["c"]
    assert len(parse(home).fates) == 1
    path = global_database(home)
    assert vscdb.read(path, lambda c: c.execute("SELECT count(*) FROM cursorDiskKV").fetchone(), wal=True) == (2,)
    assert contents(home) == before


# Any JSON

anything = json_values | st.sampled_from([[], {}, "", 0, 1, True, {"length": 1}, [None], [{}]])
bubble_values = st.fixed_dictionaries(
    {},
    optional={
        "_v": anything,
        "type": st.sampled_from([1, 2, 1.0, True, "1"]) | anything,
        "text": texts | anything,
        "createdAt": st.datetimes().map(lambda d: d.isoformat(timespec="milliseconds") + "Z") | anything,
        "bubbleId": texts | anything,
        "isAgentic": anything,
        "toolResults": anything,
        "toolFormerData": anything,
        "codeBlocks": anything,
        "suggestedCodeBlocks": anything,
        "allThinkingBlocks": st.lists(st.fixed_dictionaries({}, optional={"thinking": anything, "text": anything}))
        | anything,
        "thinking": anything,
    },
)
raw_values = (
    bubble_values.map(json.dumps)
    | bubble_values.map(lambda b: json.dumps(b, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    | anything.map(json.dumps)
    | st.binary(max_size=9)
    | st.sampled_from([5, 2.5, "{", "", TEXT_BUBBLE])
)


@given(st.lists(raw_values, max_size=5))
def test_every_row_has_one_fate_whatever_it_holds(tmp_path: Path, values: list[Any]) -> None:
    try:
        parsed = parse_values(tmp_path, *values)
    except ParseError:
        return
    assert [f.key for f in parsed.fates] == [f"cursorDiskKV/bubbleId:c:b{i}" for i in range(len(values))]
    kept = sorted(f.message_index for f in parsed.fates if f.status == "kept")
    assert kept == list(range(len(parsed.conversation.messages)))


@given(bubble_values)
def test_the_fast_and_the_tolerant_decoding_agree(bubble: dict[str, Any]) -> None:
    def outcome(decoded: Any) -> Any:
        draft = Draft(config(Path("/nowhere")))
        try:
            return cursor._read_bubble(decoded, "bubbleId:c:b", draft), draft.messages, cursor._note(decoded)
        except ValueError as error:
            return str(error)

    text = json.dumps(bubble)
    assert outcome(cursor._decode("text", text.encode())) == outcome(cursor._BUBBLE_DECODER.decode_text(text))


head_values = st.fixed_dictionaries({}, optional={"composerId": texts | anything, "createdAt": anything})


@given(st.lists(head_values | anything, max_size=3) | anything)
def test_any_heads_give_candidates_or_a_scan_error(tmp_path: Path, heads: Any) -> None:
    home = tmp_path / "heads"
    shutil.rmtree(home, ignore_errors=True)
    window(home, heads)
    bubbles(home, [("bubbleId:c:1", TEXT_BUBBLE)])
    ADAPTER._detect(config(home))
    try:
        found = ADAPTER._scan(config(home))
    except ScanError:
        return
    for candidate in found:
        with suppress(ParseError):
            ADAPTER._parse(candidate, config(home))


def test_a_file_replaced_while_it_is_read_leaves_no_stale_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of the old file may not be looked up in the new one, not even the next time."""

    def build(path: Path, keys: list[str]) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
            rows = [(f"bubbleId:{key}", json.dumps({"type": 1, "text": f"{path.stem} {key}"})) for key in keys]
            connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)

    old, new = tmp_path / "old.vscdb", tmp_path / "new.vscdb"
    build(old, ["a:0", "a:1", "b:0", "b:1"])
    build(new, ["b:0", "b:1", "b:2", "a:0", "a:1", "a:2"])
    make, done = cursor_index._index_bubbles, []

    def racing(connection: sqlite3.Connection) -> cursor_index.BubbleIndex:
        if not done:
            done.append(os.replace(new, old))
        return make(connection)

    monkeypatch.setattr(cursor_index, "_index_bubbles", racing)
    candidates = [cnb.Candidate("cursor", id, str(old), 1, "", "") for id in "ab"]
    for _ in range(2):
        corpus = cnb.parse(candidates, config=cnb.Config(home=tmp_path))
        wanted = [f"new {id}:{i}" for id in "ab" for i in range(3)]
        assert [m.content for c in corpus for m in c.messages] == wanted


def test_the_keys_are_gone_through_once_for_all_conversations(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "state.vscdb"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        rows = [(f"bubbleId:{id}:{i}", '{"type":1,"text":"x"}') for id in ("a", "B", "c") for i in range(3)]
        connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)
    make, calls = cursor_index._index_bubbles, []
    monkeypatch.setattr(cursor_index, "_index_bubbles", lambda c: calls.append(1) or make(c))
    candidates = [Candidate("cursor", id, str(path), 1, "", "") for id in ("a", "b", "C")]
    corpus = cnb.parse(candidates, config=Config(home=tmp_path))
    assert [len(c.messages) for c in corpus] == [3, 3, 3]  # LIKE asks for no case
    assert len(calls) == 1
