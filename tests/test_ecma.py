from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import json_values, scalars, texts

from crystal_nb import UNSET, ecma
from crystal_nb.ecma import json as json_module


@given(texts)
@example('"\\\b\f\n\r\t\x01\x1f\x7f\u2028/é😀\x00\ud83d')
def test_json_text_is_node_s_for_any_string(node, text):
    assert ecma.json_text(text) == node("stringify", text)


@given(json_values)
@example({"b": 1, "10": 2, "2": 3, "4294967295": 4, "01": 5})
@example([1.0, -0.0, 1e21, 1.5e-7])
def test_json_text_is_node_s_for_any_value(node, value):
    assert ecma.json_text(value) == node("stringify", value)


def test_undefined_drops_its_key_and_is_null_in_an_array():
    assert ecma.json_text({"a": UNSET, "b": 1}) == '{"b":1}'
    assert ecma.json_text([UNSET]) == "[null]"


near_json = st.one_of(
    texts,
    json_values.map(ecma.json_text),
    st.builds(lambda t, i, c: t[:i] + c + t[i:], json_values.map(ecma.json_text), st.integers(0, 20), texts),
    st.sampled_from(
        ["NaN", "[1e999]", "\ufeff1", "01", "1.", "-", '{"a":1,"a":2}', '"\\ud83d"', "\xa01", "[1]x", " 1\n"]
    ),
)


@given(near_json)
def test_json_is_read_as_node_reads_it(node, text):
    answer = node("parse", text)
    if "error" in answer:
        with pytest.raises(ValueError):
            ecma.parse_json(text)
    else:
        assert ecma.json_text(ecma.parse_json(text)) == answer["ok"]


deep_json = st.builds(
    lambda parts, leaf, damage: (
        "".join(parts) + leaf + "".join("]" if p == "[" else "}" for p in reversed(parts)) + damage
    ),
    st.lists(st.sampled_from(["[", '{"a":']), max_size=30),
    st.sampled_from(["1", '"x"', "[]", "{}", "", ",", '{"a":1,"a":[2,{"b":3}]}', "[1,]", '{"a"}', "nul"]),
    st.sampled_from(["", "", "]", " ", ",", "1"]),
)


@given(deep_json | near_json)
def test_the_reader_without_recursion_agrees_with_the_quick_one(text):
    def outcome(read):
        try:
            return read()
        except ValueError:
            return "invalid"

    def without_recursion():
        value, end = json_module.decode_deep(text, json_module._decoder)
        if text[end:].strip(" \t\n\r"):
            raise ValueError
        return value

    assert repr(outcome(without_recursion)) == repr(outcome(lambda: ecma.parse_json(text)))


def test_depth_is_no_limit():
    value = ecma.parse_json('{"a":' + "[" * 100_000 + "7" + "]" * 100_000 + ',"b":1}')
    assert value["b"] == 1
    assert ecma.to_text(value["a"]) == "7"


@given(texts)
def test_trim_is_node_s(node, text):
    assert ecma.trim(text) == node("trim", text)


@given(
    st.lists(
        st.sampled_from([0, 1, 2])
        | st.builds(
            lambda day, change: change(f"2026-01-{day:02}T00:00:00.000Z"),
            st.integers(1, 32),
            st.sampled_from([str, str, str, lambda t: t[1:], lambda t: f"0{t}", lambda t: t.replace("T", " ")]),
        )
    )
)
@example(["026-01-01T00:00:00.000Z", "02026-01-01T00:00:00.000Z"])
def test_times_are_found_in_order_only_where_a_sort_leaves_them(values):
    times = [ecma.date_ms(v) for v in values]
    if None not in times:
        order = sorted(range(len(values)), key=times.__getitem__)
        assert (ecma.date_order(values) or list(range(len(values)))) == order


@pytest.mark.parametrize("number", [10**400, -(10**400), 10**308], ids=["huge", "huge and negative", "large"])
def test_integers_beyond_a_double_are_infinite(number):
    assert ecma.to_text(number) in ("Infinity", "-Infinity", "1e+308")
    assert ecma.date_ms(number) is None
    assert (ecma.length({"length": number}) > 0) == (number > 0)
    assert ecma.json_text(number) in ("null", "1e+308")


@given(scalars | st.lists(scalars, max_size=3))
def test_values_become_text_as_in_node(node, value):
    assert ecma.to_text(value) == node("text", value)


@given(st.lists(json_values, max_size=3))
def test_join_is_node_s(node, values):
    assert ecma.join(values, "\n") == node("join", values)


@given(
    st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", "\u2028".encode(), b"\x0b", b"\x85", b"a", "é".encode(), b"\xff"]))
)
def test_lines_are_node_s_readline_s(node, pieces):
    if node("version", None) >= 24:
        pieces = [p for p in pieces if p != "\u2028".encode()]
    data = b"".join(pieces)
    assert ecma.split_lines(data.decode("utf-8", "replace")) == node("lines", base64.b64encode(data).decode())


@given(texts | st.lists(st.sampled_from(["%", "%2", "%20", "%C3%A9", "%ff", "a", "é"])).map("".join))
def test_percent_decoding_is_node_s(node, text):
    answer = node("decode", text)
    if "error" in answer:
        with pytest.raises(ValueError):
            ecma.decode_uri_component(text)
    else:
        assert ecma.decode_uri_component(text) == answer["ok"]


iso_like = st.builds(
    lambda y, mo, d, h, mi, s, f, z: f"{y:04d}-{mo:02d}-{d:02d}T{h:02d}:{mi:02d}:{s:02d}{f}{z}",
    st.integers(0, 9999),
    st.integers(0, 13),
    st.integers(0, 32),
    st.integers(0, 25),
    st.integers(0, 60),
    st.integers(0, 60),
    st.sampled_from(["", ".1", ".12", ".123", ".9999", ",5", "."]),
    st.sampled_from(["Z", "", "+02:00", "-23:59", "+24:00", "+0200"]),
)
DATES = [
    *("2026-01-01 10:00:00", "2026-01-01 10:00:00.5", "2026/1/2 3:04", "2026-02-30", "2026-01", "2026"),
    *("Thu, 01 Jan 2026 00:00:00 GMT", "1 January 2026 10:11:12", "Jan 1, 2026", "7", "13", "2025", "1234567"),
    *("2026-01-01T24:00:00.0001Z", "2026-01-01T24:00:00.000Z", "2026-01-01+10:00", "2026-01-01Z"),
    *("", "x", " 2026-01-01", "20250101T000000Z", "+002026-01-01T00:00:00Z"),
]


@given(iso_like | st.sampled_from(DATES) | st.integers(-(9 * 10**15), 9 * 10**15) | st.booleans() | st.none())
def test_dates_are_node_s(node, value):
    assert ecma.date_ms(value) == node("date", value)


@given(
    st.lists(st.sampled_from([*DATES, "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z", 5, None]), max_size=40)
)
def test_order_by_date_is_node_s_also_with_invalid_dates(node, values):
    assert (ecma.date_order(values) or list(range(len(values)))) == node("order", values)


@given(st.integers(-8_640_000_000_000_000, 8_640_000_000_000_000))
def test_iso_time_and_date_ms_are_inverse(ms):
    assert ecma.date_ms(ecma.iso_time(ms)) == ms


def test_a_time_beyond_the_last_date_is_an_error():
    with pytest.raises(ValueError, match="invalid time"):
        ecma.iso_time(8_640_000_000_000_001)


@pytest.mark.parametrize(("ns", "ms"), [(123_400_000, 123), (123_499_999, 123), (999_500_000, 1000), (500_000, 1)])
def test_small_file_times_round_half_up(ns, ms):
    assert ecma.file_time_ms(ns) == ms


def test_file_times_of_today_round_as_the_double_does():
    assert ecma.iso_time(ecma.file_time_ms(1_767_225_600_123_499_999)).endswith(".124Z")
    assert ecma.iso_time(ecma.file_time_ms(1_767_225_600_999_500_000)).endswith("01.000Z")


@given(texts)
def test_surrogates_are_paired_and_replaced(text):
    paired = ecma.pair_surrogates(text)
    assert ecma.pair_surrogates(paired) == paired
    ecma.to_utf8_safe(paired).encode()
    assert ecma.well_formed(text) == (ecma.to_utf8_safe(text) == text)
