"""Everything that crystal_nb raises or warns with.

::

    CrystalError
    ├── ConfigError                 a setting is wrong: names the key, the value and what is allowed
    ├── AdapterError
    │   └── UnknownAdapterError     no adapter of that name: carries the known names
    ├── StoreError                  a store can't be opened, read or written: carries the path
    ├── UnknownConversationError    a corpus has no such conversation (also a KeyError)
    ├── RemotePayloadError          a remote payload breaks a rule: carries the path and the rule
    └── SourceError                 reading a source failed: carries the source and the path
        ├── DetectError             while looking whether the tool is there
        ├── ScanError               while listing candidates
        └── ParseError              while parsing one candidate: carries line, byte offset or row

    DuplicateAdapterWarning         an adapter name was registered twice
    PluginWarning                   an adapter of another package was left out, or has another name
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "AdapterError",
    "ConfigError",
    "CrystalError",
    "DetectError",
    "DuplicateAdapterWarning",
    "ParseError",
    "PluginWarning",
    "RemotePayloadError",
    "ScanError",
    "SourceError",
    "StoreError",
    "UnknownAdapterError",
    "UnknownConversationError",
]


class CrystalError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigError(CrystalError, ValueError):
    """A setting is wrong."""


class AdapterError(CrystalError):
    """An adapter can't be used as it is."""


class StoreError(CrystalError):
    """A store can't be opened, read or written.

    Parameters
    ----------
    message
        What went wrong.
    path
        The database, or a word for it.
    """

    def __init__(self, message: str, *, path: object) -> None:
        self.path = path
        self.is_locked = "locked" in message
        """Whether another program is writing to it: every further try would wait as long."""
        super().__init__(f"{_shown(path)}: {message}{_hint(message)}")


def _shown(path: object) -> str:
    """A path that no terminal obeys."""
    text = str(path)
    return text if text.isprintable() else text.encode("unicode_escape", "backslashreplace").decode("ascii")


_HINTS = {
    "locked": "another program is writing to it; try again when it is done",
    "full": "no room is left on the disk; nothing of this was written",
    "readonly": "the file or its folder can't be written",
    "malformed": "the database is damaged",
}


def _hint(message: str) -> str:
    return next((f" ({hint})" for word, hint in _HINTS.items() if word in message), "")


class UnknownAdapterError(AdapterError, LookupError):
    """No adapter of that name is registered.

    Parameters
    ----------
    name
        The name that was asked for.
    known
        The names that would have been accepted.
    """

    def __init__(self, name: object, known: Iterable[str]) -> None:
        self.name = name
        self.known = sorted(known)
        super().__init__(f"no adapter named {name!r}; known: {', '.join(self.known) or 'none'}")


class UnknownConversationError(CrystalError, KeyError):
    """A corpus has no conversation under that (source, id)."""

    def __str__(self) -> str:
        return str(self.args[0])


class RemotePayloadError(CrystalError, ValueError):
    """A remote payload, or an item of it, breaks a rule.

    Parameters
    ----------
    message
        What was found and what is allowed, without the path.
    path
        Place in the payload, such as ``$.items[3].parsed.messages[0].id``.
    rule
        Name of the rule, a key of ``remote_check.RULES``.
    """

    def __init__(self, message: str, *, path: str, rule: str) -> None:
        self.path = path
        self.rule = rule
        self.reason = message
        super().__init__(f"{path}: {message}")


class SourceError(CrystalError):
    """Reading a source failed.

    Parameters
    ----------
    message
        What went wrong, without the path.
    source
        Adapter name.
    path
        The file or folder concerned.
    """

    stage = "read"

    def __init__(self, message: str, *, source: str, path: object) -> None:
        self.source = source
        self.path = str(path)
        self.reason = message
        super().__init__(f"{source}: {self.path}: {message}")


class DetectError(SourceError):
    """Looking whether a tool's folder is there failed."""

    stage = "detect"


class ScanError(SourceError):
    """Listing the candidates of a source failed as a whole."""

    stage = "scan"


class ParseError(SourceError):
    """One candidate could not be parsed.

    Parameters
    ----------
    line
        1-based line of a text file, where there is one.
    offset
        Byte offset of that line.
    row
        What names the place in a database or document: a key, a row or a JSON pointer.
    """

    stage = "parse"

    def __init__(
        self,
        message: str,
        *,
        source: str,
        path: object,
        line: int | None = None,
        offset: int | None = None,
        row: str | None = None,
    ) -> None:
        self.line = line
        self.offset = offset
        self.row = row
        place = f"line {line} (byte {offset}): " if line is not None else f"{row}: " if row else ""
        super().__init__(place + message, source=source, path=path)


class DuplicateAdapterWarning(UserWarning):
    """An adapter was registered under a name that was taken; the new one replaces it."""


class PluginWarning(UserWarning):
    """An adapter that another package announces was left out, or has another name than it is announced by."""
