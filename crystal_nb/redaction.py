"""Masking secrets and home paths in texts, records and frames that are to be shared.

A secret becomes ``[masked: its kind]``, a home folder ``~``. What is known by its form is found anywhere,
the rest (``password=…``) by what stands before it. Nothing is looked up or sent. That nothing else is
secret in a text can't be promised.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from crystal_nb.errors import ConfigError
from crystal_nb.home_paths import without_homes
from crystal_nb.secret_rules import HARMLESS, KINDS, NAMES, RULES, Rule

__all__ = ["HOME_PATH", "KINDS", "Masker", "Redaction", "describe_masked", "redact"]

HOME_PATH = "home path"
"""What a masked home folder counts as."""
_ROUNDS = 9
_MASKS = re.compile(rf"(\[masked: (?:{'|'.join(map(re.escape, KINDS))})\])")
_TEXTLESS = (int, float, complex, Decimal, date, time, timedelta, Enum, UnsetType, type(None))


def _between_masks(change: Callable[[str], str], text: str) -> str:
    """Each part alone, so that no rule sees a mask, and takes its words for a name or a secret."""
    if "[masked: " not in text:
        return change(text)
    parts = _MASKS.split(text)
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


class Masker:
    """Masks, and counts what it masked by kind.

    >>> masker = Masker()
    >>> masker.text("curl -u ada:s3cret99 /home/ada/x"), dict(masker.masked)
    ('curl -u ada:[masked: curl password] ~/x', {'curl password': 1, 'home path': 1})
    """

    def __init__(self) -> None:
        self.masked: Counter[str] = Counter()

    def text(self, text: str) -> str:
        """The text with what is to be masked masked; again, as a mask may set free what stood against it."""
        for _ in range(_ROUNDS):
            before, text = text, self._once(text)
            if text == before:
                break
        return text

    def _once(self, text: str) -> str:
        low = text.lower()
        for rule in RULES:
            if any(needle in low for needle in rule.needles):
                text = _between_masks(partial(rule.pattern.sub, partial(self._mask, rule)), text)
        return _between_masks(partial(without_homes, mask=self._home), text)

    def _mask(self, rule: Rule, match: re.Match[str]) -> str:
        secret = match.groupdict().get("secret")
        if secret is None:
            self.masked[rule.kind] += 1
            return f"[masked: {rule.kind}]"
        if rule.kind in ("password", "secret") and HARMLESS.fullmatch(secret):
            return match[0]
        self.masked[rule.kind] += 1
        start, end = (at - match.start() for at in match.span("secret"))
        return f"{match[0][:start]}[masked: {rule.kind}]{match[0][end:]}"

    def _home(self, short: str) -> str:
        self.masked[HOME_PATH] += 1
        return short

    def named(self, name: Any, value: Any) -> Any:
        """A value under its name, such as ``password``, which makes all of a text a secret.

        >>> Masker().named("dbPassword", "correct horse"), Masker().named("token", "of my love")
        ('[masked: password]', 'of my love')
        """
        known = NAMES.search(name) if isinstance(name, str) and isinstance(value, str) else None
        if known is None or "[masked: " in value or HARMLESS.fullmatch(value):
            return self.value(value)
        is_password = known["password"] is not None
        if len(value) < (4 if is_password else 8) or not (is_password or re.fullmatch(r"\S+", value)):
            return self.value(value)
        kind = "password" if is_password else "secret"
        masked = self.text(value)
        if masked != value:
            return masked
        self.masked[kind] += 1
        return f"[masked: {kind}]"

    def _mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        """With the secret of ``{"name": "PASSWORD", "value": …}``, too."""
        name = next((value[key] for key in ("name", "key") if isinstance(value.get(key), str)), None)
        return {self.value(key): self.named(name if key == "value" else key, inner) for key, inner in value.items()}

    def value(self, value: Any) -> Any:
        """Texts, bytes, records, lists, dicts and frames with all text in them masked; numbers and times as they are.

        Raises
        ------
        ConfigError
            If there is a value in it that can't be looked into.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.text(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if isinstance(value, Struct):
            return replace(value, **{name: self.value(getattr(value, name)) for name in value.__struct_fields__})
        if isinstance(value, Mapping):
            return self._mapping(value)
        if hasattr(value, "_make"):
            return value._make(map(self.value, value))
        if isinstance(value, (list, tuple, set, frozenset)):
            return type(value)(map(self.value, value))
        if hasattr(value, "get_columns"):
            return type(value)(self._distinct([self._column(column) for column in value.get_columns()]))
        if hasattr(value, "to_list") and hasattr(value, "dtype"):
            return self._column(value)
        if isinstance(value, _TEXTLESS):
            return value
        raise ConfigError(f"can't look for secrets in a value of type {type(value).__name__}")

    def _distinct(self, columns: list[Any]) -> list[Any]:
        """Columns whose names were masked to the same one get numbers."""
        names = Counter(column.name for column in columns)
        return [c.alias(f"{c.name} {n}") if names[c.name] > 1 else c for n, c in enumerate(columns)]

    def _column(self, column: Any) -> Any:
        """A polars column; each text of it is looked at once, and counts as often as it stands there."""
        return self._cells(column).alias(self.text(column.name))

    def _cells(self, column: Any) -> Any:
        kind, name = str(column.dtype.base_type()), column.name
        if kind in ("Categorical", "Enum"):
            return self._categories(column)
        if kind == "String":
            counts = dict(zip(*column.value_counts().get_columns(), strict=True))
            changed = {text: new for text in counts if text and (new := self._often(name, text, counts[text])) != text}
            return column.replace(changed) if changed else column
        if column.dtype.is_nested():
            return type(column)(name, [self.named(name, v) for v in column.to_list()], dtype=_as_text(column.dtype))
        if kind in ("Binary", "Object"):
            return type(column)(name, [self.named(name, v) for v in column.to_list()], dtype=column.dtype)
        return column

    def _categories(self, column: Any) -> Any:
        """Of an enum also the categories that no row has."""
        import polars as pl

        cells = self._cells(column.cast(pl.String))
        if not isinstance(column.dtype, pl.Enum):
            return cells.cast(column.dtype)
        silent = Masker()
        known = dict.fromkeys(silent.named(column.name, text) for text in column.dtype.categories)
        return cells.cast(pl.Enum(list(known)))

    def _often(self, name: str, text: str, times: int) -> str:
        before = self.masked.copy()
        masked: str = self.named(name, text)
        found = self.masked - before
        self.masked = before + Counter({kind: n * times for kind, n in found.items()})
        return masked


def _as_text(dtype: Any) -> Any:
    """A nested type with texts where it has categories, since masked ones are no longer among them."""
    import polars as pl

    if isinstance(dtype, pl.Struct):
        return pl.Struct([pl.Field(field.name, _as_text(field.dtype)) for field in dtype.fields])
    if isinstance(dtype, pl.Array):
        return pl.Array(_as_text(dtype.inner), dtype.size)
    if isinstance(dtype, pl.List):
        return pl.List(_as_text(dtype.inner))
    return pl.String if isinstance(dtype, (pl.Categorical, pl.Enum)) else dtype


class Redaction(Struct, frozen=True):
    """A value without what was masked in it.

    Attributes
    ----------
    value : Any
        Like what was given.
    masked : dict[str, int]
        How often each kind was masked; never what.
    """

    value: Any
    masked: dict[str, int]

    def __repr__(self) -> str:
        return f"Redaction: {describe_masked(self.masked)}; see .value"

    def __str__(self) -> str:
        return self.value if isinstance(self.value, str) else repr(self)


def describe_masked(masked: Mapping[str, int]) -> str:
    """Say what was masked, in words.

    >>> describe_masked({"JWT": 2}), describe_masked({})
    ('masked: 2 × JWT', 'nothing was masked')
    """
    counts = ", ".join(f"{n:,} × {kind}" for kind, n in sorted(masked.items(), key=lambda item: (-item[1], item[0])))
    return f"masked: {counts}" if counts else "nothing was masked"


def redact(value: Any) -> Redaction:
    r"""Mask secrets and home paths in a text, frame, record, report or corpus.

    What is found by its form: keys, tokens and webhooks of `redaction.KINDS`, private keys, JSON web
    tokens, passwords in URLs; by what stands before it: ``password=``, ``token:``, ``Authorization:`` and
    the like. Folders of a person (``/home/ada``, ``/Users/ada``, ``C:\Users\ada``) become ``~``.

    Parameters
    ----------
    value
        A text or bytes, a polars frame, a record, a list or dict of these, an `AuditReport`, a `Corpus`.

    Returns
    -------
    Redaction
        The masked value, and how often each kind was masked.

    Raises
    ------
    ConfigError
        If there is something in it that can't be looked into, such as a lazy frame.

    Examples
    --------
    >>> found = redact("password=hunter22 in /home/ada/.pgpass")
    >>> found.value, found
    ('password=[masked: password] in ~/.pgpass', Redaction: masked: 1 × home path, 1 × password; see .value)
    """
    if hasattr(value, "redacted"):
        shared = value.redacted()
        return Redaction(shared, dict(shared.masked))
    masker = Masker()
    masked = masker.value(value)
    return Redaction(masked, dict(masker.masked))
