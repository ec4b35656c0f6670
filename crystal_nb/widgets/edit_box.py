"""Values of a conversation in an edit box, and back."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from crystal_nb import ecma
from crystal_nb.errors import ConfigError
from crystal_nb.widgets.hash_view import value_json

__all__ = ["editable", "parse_value"]

_EDITABLE = 20_000


def editable(value: Any) -> tuple[str, str]:
    r"""How a value goes into an edit box: ``text``, ``JSON`` or ``absent``, and the box's text.

    Text that a box would alter or hide is edited as JSON.

    >>> editable("a\nb"), editable("\u202e"), editable(True), editable(UNSET)
    (('text', 'a\nb'), ('JSON', '"\\u202e"'), ('JSON', 'true'), ('absent', ''))
    """
    if value is UNSET:
        return "absent", ""
    if isinstance(value, str) and len(value) > _EDITABLE:
        return "text", ""
    if isinstance(value, str) and value.replace("\n", "").isprintable():
        return "text", value
    text = value_json(value)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii_json(c) for c in text)
    return "JSON", text


def ascii_json(character: str) -> str:
    r"""The escape of a character in JSON text.

    >>> ascii_json("\u202e")
    '\\u202e'
    """
    code = ord(character)
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"


def parse_value(kind: str, text: str) -> Any:
    """The value of an edit box.

    Raises
    ------
    ConfigError
        If it is said to be JSON and isn't.

    >>> parse_value("text", "1"), parse_value("JSON", "1"), parse_value("absent", "")
    ('1', 1, UNSET)
    """
    if kind == "absent":
        return UNSET
    if kind == "text":
        return text
    try:
        return ecma.parse_json(text)
    except ValueError as error:
        raise ConfigError(f"not JSON: {error}; write text in double quotes, or choose 'text'") from None
