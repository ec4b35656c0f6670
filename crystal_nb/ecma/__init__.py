"""What JavaScript does, for the rules that were written in it.

No other module knows JavaScript: parsers, hashing and decisions ask here. Values are what
``json`` gives (``str``, ``int``, ``float``, ``bool``, ``None``, ``list``, ``dict``) plus
``msgspec.UNSET`` for *undefined*.
"""

from crystal_nb.ecma.date import date_ms, date_order, file_time_ms, iso_time
from crystal_nb.ecma.json import decode_deep, json_text, parse_json
from crystal_nb.ecma.text import (
    decode_uri_component,
    key_text,
    pair_surrogates,
    split_lines,
    to_utf8_safe,
    trim,
    well_formed,
)
from crystal_nb.ecma.value import join, length, number_text, to_text, truthy

__all__ = [
    "date_ms",
    "date_order",
    "decode_deep",
    "decode_uri_component",
    "file_time_ms",
    "iso_time",
    "join",
    "json_text",
    "key_text",
    "length",
    "number_text",
    "pair_surrogates",
    "parse_json",
    "split_lines",
    "to_text",
    "to_utf8_safe",
    "trim",
    "truthy",
    "well_formed",
]
