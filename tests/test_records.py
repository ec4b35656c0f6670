from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from strategies import texts

from crystal_nb.records import Fate, excerpt, printable


@given(texts)
def test_printable_text_is_one_harmless_line(text):
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()


@given(st.binary())
def test_any_bytes_have_an_excerpt(data):
    assert excerpt(data).isprintable()


def test_what_is_harmless_stays():
    assert printable("é 😀 <b>") == "é 😀 <b>"


def test_a_fate_shows_its_head():
    assert Fate("dropped", "x", head=b'{"a\x1b').excerpt == '{"a\\x1b'
