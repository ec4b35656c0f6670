"""Where Trae keeps conversations, in every product and layout, and what one database holds of them.

A database (of a window, or the global one) has conversations under several keys. Each gets a name that
is unique in its database: its own id, ``<id>#2`` for a second one of that id.

Source: ``formats/trae.md`` sections 1, 2 and 6.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from crystal_nb import ecma
from crystal_nb.adapters import vscdb
from crystal_nb.adapters.trae_facts import encoded, members, text_of, window_project
from crystal_nb.adapters.trae_rules import TraeRules
from crystal_nb.adapters.vscode import window_folders, workspace_folder
from crystal_nb.config import Config

__all__ = [
    "NAME",
    "Database",
    "Entry",
    "Store",
    "container_name",
    "databases",
    "is_configured",
    "modular_state",
    "product_users",
    "read_store",
    "unique",
    "users",
]

NAME = "trae"
_PRODUCTS = ("Trae", "Trae CN", "TRAE SOLO", "TRAE SOLO CN")
_AGENT_KEY = "memento/icube-ai-agent-storage"
_PREFIXES = (_AGENT_KEY, "memento/icube-ai-ng-chat-storage", "memento/icube-ai-chat-storage", "ChatStore")
"""In the order in which conversations of one database are listed."""
_LISTS = ("list", "sessions", "entries")
_GLOBAL = "globalStorage"
_SQLITE = b"SQLite format 3\0"
_ROWS = """
    SELECT key, typeof(value), length(CAST(value AS BLOB)),
        CASE WHEN ?1 = 0 OR length(CAST(value AS BLOB)) <= ?1 THEN value END
    FROM ItemTable
    WHERE key = 'ChatStore' OR (key >= 'memento/icube-ai-' AND key < 'memento/icube-ai.')
    ORDER BY rowid
"""


class Database(NamedTuple):
    """A database that may hold conversations, and the project of its window."""

    path: Path
    project: str


class Entry(NamedTuple):
    """One conversation of a list."""

    name: str
    """Its id, made unique in its database."""
    id: str
    """Its id as the list has it, or the place where it has none."""
    key: str
    """Row of the database and JSON pointer in its value."""
    value: dict[str, Any]
    states: tuple[bytes, ...] = ()
    """Digest of its messages up to each of them, so that an earlier state of it can be told."""

    @property
    def is_stub(self) -> bool:
        """Whether no message is there, as in builds that keep them elsewhere."""
        return not self.value.get("messages")


class Store(NamedTuple):
    """What one database holds."""

    entries: tuple[Entry, ...]
    outdated: tuple[Entry, ...]
    """Equal or earlier states of those."""
    problems: dict[str, str]
    """Why a row of that key can't be read."""


def users(root: Path, config: Config, rules: TraeRules) -> list[Path]:
    """The ``User`` folders to look into: a configured one alone, else those of every product."""
    if not rules.every_product or is_configured(config):
        return [root]
    return [user for user in product_users(config) if os.path.exists(user.parent)]


def is_configured(config: Config) -> bool:
    """Whether a folder was named, so that nothing else is looked into."""
    return config.folders.get(NAME) is not None or bool(config.env("TRAE_DATA_DIR"))


def product_users(config: Config) -> list[Path]:
    """Where each product's ``User`` folder would be."""
    xdg = config.env("XDG_CONFIG_HOME") if config.platform not in ("win32", "darwin") else ""
    if os.path.isabs(xdg):
        return [Path(xdg, product, "User") for product in _PRODUCTS]
    return [config.user_data(product) for product in _PRODUCTS]


def databases(user: Path, rules: TraeRules) -> Iterator[Database]:
    """Databases of the windows in byte order, then the global one; empty files are none.

    Raises
    ------
    OSError
        If the windows can't be listed.
    """
    for folder in window_folders(user):
        description = folder / "workspace.json"
        if _is_there(folder / "state.vscdb") and (rules.every_window or os.path.exists(description)):
            yield Database(folder / "state.vscdb", _project(description, rules))
    path = user / _GLOBAL / "state.vscdb"
    if rules.every_store and _is_there(path):
        yield Database(path, "")


def _is_there(path: Path) -> bool:
    """An empty file that has a log is a database whose first pages are all in the log."""
    return any(_size(name) for name in (str(path), f"{path}-wal"))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _project(description: Path, rules: TraeRules) -> str:
    if rules.uri_projects:
        return window_project(description)
    try:
        return workspace_folder(description)
    except (OSError, ValueError):
        return ""


def container_name(path: str | os.PathLike[str]) -> str:
    """Short name of a database, unique among the products: product and window.

    >>> container_name("/c/Trae CN/User/workspaceStorage/0f/state.vscdb")
    'Trae CN/0f'
    >>> container_name("/c/Trae/User/globalStorage/state.vscdb")
    'Trae/globalStorage'
    >>> container_name("/c/TRAE SOLO/ModularData/ai-agent/database.db")
    'TRAE SOLO/ModularData'
    """
    folders = Path(path).parts[:-1]
    if folders[-1:] == (_GLOBAL,):
        return "/".join((*folders[-3:-2], _GLOBAL))
    if folders[-2:] == ("ModularData", "ai-agent"):
        return "/".join((*folders[-3:-2], "ModularData"))
    return "/".join((*folders[-4:-3], *folders[-1:]))


def modular_state(path: str | os.PathLike[str]) -> str | None:
    """What the conversation store of a modular build is; None when there is none.

    Only the first bytes are looked at. Nothing is copied and no key is tried.

    Raises
    ------
    OSError
        If it is there and can't be read.
    """
    try:
        head = vscdb.header(path, len(_SQLITE))
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not head:
        return None
    if head == _SQLITE:
        return "unknown layout: Trae keeps its conversations in this database, in tables that no rule reads"
    return (
        "encrypted: Trae keeps its conversations in this database under a key of its own; "
        "none can be read, and what was imported earlier stays"
    )


def read_store(path: str | os.PathLike[str], rules: TraeRules) -> Store:
    """Read the conversations of one database; the last one read is kept, as parses come one by one.

    Raises
    ------
    OSError, sqlite3.Error
        If the database can't be read.
    """
    mark = (str(path), rules, *map(_mark, (path, f"{path}-wal", f"{path}-journal")))
    for known, store in _LAST:
        if known == mark:
            return store
    rows = vscdb.read(path, lambda connection: _rows(connection, rules), wal=rules.read_log)
    store = _store(rows, rules)
    _LAST[:] = [(mark, store)]
    return store


_LAST: list[tuple[Any, Store]] = []


def _mark(path: str | os.PathLike[str]) -> Any:
    """What changes when a file does; where it can't be told, nothing that is kept fits."""
    try:
        status = os.stat(path)
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, vscdb.header(path, 32)
    except FileNotFoundError:
        return None
    except OSError:
        return object()


class _Row(NamedTuple):
    key: str
    type: str
    size: int
    value: Any


def _rows(connection: sqlite3.Connection, rules: TraeRules) -> list[_Row]:
    """Rows with conversations; of rows with the same key the first, as pinned."""
    rows: dict[str, _Row] = {}
    for key, type, size, value in connection.execute(_ROWS, (rules.max_value_bytes,)):
        row = _Row(vscdb.decode(key) if isinstance(key, bytes) else text_of(key), type.decode(), size or 0, value)
        if row.type != "null" and (row.key == _AGENT_KEY or (rules.every_store and row.key.startswith(_PREFIXES))):
            rows.setdefault(row.key, row)
    return sorted(rows.values(), key=lambda row: (_rank(row.key), row.key))


def _rank(key: str) -> int:
    return next(at for at, prefix in enumerate(_PREFIXES) if key.startswith(prefix))


def _store(rows: list[_Row], rules: TraeRules) -> Store:
    found: list[Entry] = []
    problems: dict[str, str] = {}
    for row in rows:
        try:
            found += [Entry(id, id, f"{row.key}#{at}", value, _states(value)) for at, id, value in _listed(row)]
        except ValueError as error:
            problems[row.key] = str(error)
    old = outdated(found) if rules.join_copies else frozenset()
    latest = [entry for at, entry in enumerate(found) if at not in old]
    taken: set[str] = set()
    named = [e._replace(name=unique(e.id, taken)) for e in sorted(latest, key=lambda e: e.is_stub)]
    return Store(tuple(named), tuple(found[at] for at in sorted(old)), problems)


def _states(value: dict[str, Any]) -> tuple[bytes, ...]:
    """None where a message is too deep to be written, so that it equals nothing."""
    states: list[bytes] = []
    digest = hashlib.sha256()
    for _, message in members(value.get("messages")):
        text = encoded(message)
        if not text:
            return ()
        digest.update(hashlib.sha256(text).digest())
        states.append(digest.digest())
    return tuple(states)


def outdated(entries: Sequence[Entry]) -> frozenset[int]:
    """Positions of those that another of the same id equals or goes on from; of equal ones the first stays.

    >>> one, two = Entry("a", "a", "k", {}, (b"1",)), Entry("a", "a", "k", {}, (b"1", b"2"))
    >>> outdated([one, two, two])
    frozenset({0, 2})
    """
    earlier = {(entry.id, state) for entry in entries for state in entry.states[:-1]}
    seen: set[tuple[str, bytes]] = set()
    old = set()
    for at, entry in enumerate(entries):
        last = [(entry.id, state) for state in entry.states[-1:]]
        if any(state in earlier or state in seen for state in last):
            old.add(at)
        seen.update(last)
    return frozenset(old)


def unique(name: str, taken: set[str]) -> str:
    """The name, or the first of ``name#2``, ``name#3``, … that is free; it is taken then.

    >>> taken = {"a", "a#2"}
    >>> unique("a", taken), unique("b", taken)
    ('a#3', 'b')
    """
    if name in taken:
        name = next(n for n in (f"{name}#{number}" for number in count(2)) if n not in taken)
    taken.add(name)
    return name


def _listed(row: _Row) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Pointer, id and value of each conversation in a row's value; what is no object is none."""
    document = _document(row)
    if isinstance(document, list):
        yield from _conversations(row.key, "", document)
    elif isinstance(document, dict):
        for name in _LISTS:
            if document.get(name) and not isinstance(document[name], (list, dict)):
                raise ValueError(f"unknown layout: {name} is neither a list nor an object")
            yield from _conversations(row.key, f"/{name}", document.get(name))
    elif document is not None:
        raise ValueError(f"unknown layout: the value is {type(document).__name__}, not an object")


def _conversations(key: str, pointer: str, listed: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for step, value in members(listed):
        if isinstance(value, dict):
            given = text_of(value.get("sessionId")) or text_of(value.get("id"))
            by_key = step if isinstance(listed, dict) else ""
            yield f"{pointer}/{step}", given or by_key or f"{key}#{pointer}/{step}", value


def _document(row: _Row) -> Any:
    if row.value is None:
        raise ValueError(f"too large: the value has {row.size:,} bytes")
    if not isinstance(row.value, bytes):
        raise ValueError(f"unknown layout: the value is of type {row.type}")
    try:
        return ecma.parse_json(row.value.strip(b"\0").decode("utf-8-sig", "replace"))
    except ValueError as error:
        raise ValueError(f"damaged: {error}") from None
    except RecursionError:
        raise ValueError("damaged: the value is nested too deeply") from None
