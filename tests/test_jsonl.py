from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw, Struct
from strategies import json_values, texts

from crystal_nb import ecma
from crystal_nb.adapters import jsonl
from crystal_nb.adapters.claude_code import RawLine
from crystal_nb.adapters.jsonl import Broken, read_blocks
from crystal_nb.adapters.typed import NotAnObject, TypedDecoder

DECODER = TypedDecoder(RawLine)

records = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["user", "assistant"]) | json_values,
        "uuid": texts | json_values,
        "timestamp": texts,
        "message": st.fixed_dictionaries(
            {},
            optional={
                "role": texts,
                "content": texts
                | st.lists(st.fixed_dictionaries({"type": texts}, optional={"text": texts}))
                | json_values,
            },
        ),
        "more": json_values,
    },
)
good_lines = records.map(lambda r: json.dumps(r, ensure_ascii=False).encode("utf-8", "surrogatepass")) | records.map(
    lambda r: json.dumps(r).encode()
)
damaged_lines = st.builds(
    lambda line, at, what: line[:at] + what + line[at:],
    good_lines,
    st.integers(0, 60),
    st.sampled_from([b"\xff", b"\x00", b"\n", b"\r", b"{", b"}", b'"', b"{}", b"\xe2\x80\xa8", b" ", b"\xef\xbb\xbf"]),
)
torn_lines = st.builds(lambda line, n: line[:n], good_lines, st.integers(0, 60))
any_line = (
    good_lines
    | damaged_lines
    | torn_lines
    | st.sampled_from([b"", b"  ", b"null", b"[]", b"{}{}", b"\xc2\xa0", b'{"a":'])
)
line_ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r"])
files = (
    st.lists(st.tuples(any_line, line_ends)).map(lambda pairs: b"".join(line + end for line, end in pairs))
    | st.binary()
)


def tolerant(text: str) -> object:
    """What one line holds, by stdlib json alone."""
    try:
        return DECODER.decode_text(text)
    except ValueError:
        return Broken("invalid JSON" if ecma.trim(text) else "blank line")


@given(files, st.sampled_from([1, 7, 64, 4 << 20]))
@example(b'{}{}\n{"a":\n{"b":1}}\n', 64)
@example(b"{}{}\n\n", 64)
@example(b'{"a":{}\n}\n{}{}\n', 64)
@example(b"{}\r\r\n{}\n", 64)
@example(b'{"type":\r"a"}\n', 64)
@example(b'{"type":\r"a"}\n', 4 << 20)
def test_fast_and_tolerant_decoding_agree(tmp_path, data, block_bytes):
    file = tmp_path / "x.jsonl"
    file.write_bytes(data)
    found = [r for block in read_blocks(file, DECODER, block_bytes) for r in block.records]
    assert found == [tolerant(line) for line in ecma.split_lines(data.decode("utf-8", "replace"))]


@given(files, st.sampled_from([1, 7, 64, 4 << 20]))
def test_every_byte_belongs_to_exactly_one_line(tmp_path, data, block_bytes):
    file = tmp_path / "x.jsonl"
    file.write_bytes(data)
    blocks = list(read_blocks(file, DECODER, block_bytes))
    spans = [(b.offset + start, b.offset + stop) for b in blocks for start, stop in zip(b.starts, b.stops, strict=True)]
    assert b"".join(data[start:stop] for start, stop in spans) == data
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    lines = [b.first_line + i for b in blocks for i in range(len(b.records))]
    assert lines == list(range(1, len(lines) + 1))


def test_clean_blocks_take_the_fast_path(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "_decode_lines", lambda *_: pytest.fail("the slow path was taken"))
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"type":"user"}\n' * 1001)
    assert sum(len(block.records) for block in read_blocks(file, DECODER, 64)) == 1001


@pytest.mark.parametrize("end", ["\u2028", "\u2029"])
def test_a_line_that_node_24_splits_is_noted(tmp_path, end):
    file = tmp_path / "x.jsonl"
    file.write_text(f'{{}}\n{{"type":"a{end}b"}}\n{{"type":"é"}}\n', encoding="utf-8")
    (block,) = read_blocks(file, DECODER)
    assert block.node24_lines == {2}


@pytest.mark.parametrize("filler", ["é", "è" * 600, "漢" * 600])
def test_the_mark_is_found_among_any_other_characters(tmp_path, filler):
    file = tmp_path / "x.jsonl"
    file.write_text(f'{{"type":"{filler}"}}\n{{"type":"{filler}\u2029"}}\n', encoding="utf-8")
    assert [block.node24_lines for block in read_blocks(file, DECODER)] == [{2}]


def test_blocks_stay_as_small_as_they_are_said_to_be(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"type":"user"}\n' * 200_000)
    assert max(block.end for block in read_blocks(file, DECODER)) <= jsonl.BLOCK_BYTES <= 4 << 20


def test_two_readers_at_once_don_t_disturb_each_other(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(b'{"type":"%b"}\n' % name.encode() * 200_000)
    pairs = zip(*(read_blocks(tmp_path / name, DECODER) for name in "ab"), strict=True)
    kinds = [{r.type for r in block.records} | {bytes(block.data[9:10]).decode()} for pair in pairs for block in pair]
    assert kinds == [{"a"}, {"b"}] * (len(kinds) // 2)


def test_a_long_line_is_read_whole(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"type":"' + b"x" * (50 << 20) + b'"}\n{}\n')
    kinds = [r.type for block in read_blocks(file, DECODER) for r in block.records]
    assert [len(kinds[0]), kinds[1]] == [50 << 20, None]


class Undecoded(Struct):
    type: Raw


def test_a_long_line_is_read_while_earlier_ones_are_kept_undecoded(tmp_path):
    path = tmp_path / "file.jsonl"
    path.write_bytes(b'{"type":"first"}\n{"type":"%s"}\n{"type":"last"}\n' % (b"x" * (3 << 20)))
    kept = []
    for block in read_blocks(path, TypedDecoder(Undecoded)):
        kept += [(bytes(record.type), record) for record in block.records]
    assert [len(value) for value, _ in kept] == [7, (3 << 20) + 2, 6]


def test_deep_nesting_is_read_whatever_the_stack(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"type":"user","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n{}\n")
    assert list(next(read_blocks(file, DECODER)).records) == [RawLine(type="user"), RawLine()]


class Inner(Struct):
    text: str | None = None


class Outer(Struct, rename="camel"):
    some_name: str | None = None
    inner: list[Inner] | None = None


@given(st.dictionaries(st.sampled_from(["someName", "inner", "x"]), json_values))
def test_a_struct_is_filled_with_what_is_there(value):
    text = ecma.json_text(value)
    found = TypedDecoder(Outer).decode(text.encode())
    assert found.some_name == value.get("someName")
    if isinstance(value.get("inner"), list):
        assert len(found.inner) == len(value["inner"])


def test_other_values_than_objects_are_named():
    assert TypedDecoder(Outer).decode(b"5") == NotAnObject(5)


@given(st.lists(st.integers(0, 100)), st.booleans())
def test_a_dropped_line_s_head_is_its_first_bytes(parse_file, lengths, ended):
    lines = [b'{"type":"%b"}' % (b"x" * length) for length in lengths]
    data = b"\n".join(lines) + b"\n" * ended
    fates = parse_file("claude-code", data).fates
    assert [f.head for f in fates] == [line[:96] for line in data.splitlines(keepends=True)]
