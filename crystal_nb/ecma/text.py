"""Strings: white space, lines, surrogates, percent-decoding."""

from __future__ import annotations

import re
from urllib.parse import unquote

WHITE_SPACE = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""Exactly what ``String.prototype.trim`` removes; Python's ``str.strip`` differs."""

_LINE_END = re.compile("\r\n|\n|\r")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BAD_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")


def trim(text: str) -> str:
    r"""Remove JavaScript's white space from both ends.

    >>> trim("\ufeff a\x85 \u2028")
    'a\x85'
    """
    return text.strip(WHITE_SPACE)


def split_lines(text: str) -> list[str]:
    r"""Split as Node's readline does: at ``\n``, ``\r\n`` and a lone ``\r``, nowhere else.

    Node 20 and 22; from Node 24 on U+2028 and U+2029 end a line too.

    >>> split_lines("a\r\nb\rc\u2028d\n")
    ['a', 'b', 'c\u2028d']
    """
    lines = _LINE_END.split(text)
    if lines[-1] == "":
        lines.pop()
    return lines


def well_formed(text: str) -> bool:
    r"""Tell whether UTF-8 can hold the text, that is, it has no surrogate.

    >>> well_formed("a\ud83d"), well_formed("a")
    (False, True)
    """
    return text.isascii() or _LONE_SURROGATE.search(text) is None


def to_utf8_safe(text: str) -> str:
    r"""Replace each surrogate by U+FFFD, for places that cannot hold it.

    >>> to_utf8_safe("a\ud83d")
    'a\ufffd'
    """
    return _LONE_SURROGATE.sub("\ufffd", text)


def key_text(text: str) -> str:
    r"""A text for a key that UTF-8 has to hold: surrogates as escapes, so that two keys stay two.

    >>> key_text("a\ud83d"), key_text("a")
    ('a\\ud83d', 'a')
    """
    return text if well_formed(text) else _LONE_SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def pair_surrogates(text: str) -> str:
    r"""Join a high and a low surrogate that stand side by side, as UTF-16 strings do by nature.

    >>> pair_surrogates("\ud83d\ude00")
    '😀'
    """
    if well_formed(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def decode_uri_component(text: str) -> str:
    """Percent-decode, strictly.

    Raises
    ------
    ValueError
        If a ``%`` is not followed by two hex digits or the bytes are no UTF-8.

    >>> decode_uri_component("c%3A/my%20app")
    'c:/my app'
    """
    if _BAD_PERCENT.search(text):
        raise ValueError("malformed percent-encoding")
    return unquote(text, errors="strict")
