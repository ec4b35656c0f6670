"""Careful rules for Trae: every product and store, whole answers, and stores that can't be read as such.

Candidates are named by the conversation's id. Copies of one id (in several databases, or lists of one) where
one goes on from the other are one conversation, the longest. Where they differ otherwise, the first keeps the
plain id (products, then windows, as listed; the global database last), the others are ``<id>#2`` in the same
database and ``<id>@<product>/<window>`` in another, and are linked to it. Sessions of TRAE CLI have the ids
that ``codex@2`` gives them. A stub, a conversation without messages, is no candidate.

What can't be read is a candidate, too, so that it is a row of the failures: ``modular-store@<product>``,
``unreadable@<product>/<window>``, ``unreadable:<key>@<product>/<window>``. Its parse says why, each time.

Source: ``formats/trae.md`` sections 4 to 6.
"""

from __future__ import annotations

import dataclasses
import os
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from crystal_nb import ecma
from crystal_nb.adapters.base import Adapter, Parsed, last_path_part
from crystal_nb.adapters.trae_cli import cli_candidates, cli_folders, cli_sessions_of, read_cli
from crystal_nb.adapters.trae_facts import id_time, text_of, time_of
from crystal_nb.adapters.trae_rules import V2, TraeRules
from crystal_nb.adapters.trae_stores import (
    NAME,
    Database,
    Entry,
    Store,
    container_name,
    databases,
    is_configured,
    modular_state,
    outdated,
    read_store,
    unique,
    users,
)
from crystal_nb.adapters.trae_turns import read_turns
from crystal_nb.config import Config
from crystal_nb.details import Link
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate, Conversation, Fate

__all__ = ["careful"]

_MODULAR = "database.db"
_UNREADABLE = "unreadable"
_MULTI_ROOT = ".code-workspace"


def careful(adapter: Adapter, rules: TraeRules = V2) -> Adapter:
    """The adapter with other rules.

    >>> from crystal_nb.adapters.trae import ADAPTER
    >>> careful(ADAPTER).parser_version
    'trae@2'
    """
    return dataclasses.replace(
        adapter,
        root=partial(_root, usual=adapter.root, rules=rules),
        count=partial(_count, rules=rules),
        candidates=partial(_candidates, rules=rules),
        read=_read,
        rules=rules,
    )


def _root(config: Config, usual: Any, rules: TraeRules) -> Path:
    """The first folder that is there, a product's or the CLI's."""
    root: Path = usual(config)
    return next(iter((*users(root, config, rules), *_cli_folders(config, rules))), root)


def _cli_folders(config: Config, rules: TraeRules) -> list[Path]:
    return cli_folders(config) if rules.cli_sessions and not is_configured(config) else []


def _count(root: Path, config: Config, rules: TraeRules) -> int:
    """Candidates, those that only report something unreadable included, as nothing is scanned where this is 0."""
    return len(_candidates(root, config, rules))


def _candidates(root: Path, config: Config, rules: TraeRules) -> list[Candidate]:
    listing = _Listing(rules)
    for user in users(root, config, rules):
        listing.add_product(user)
    for folder in _cli_folders(config, rules):
        listing.add_cli(folder, config)
    return listing.candidates()


class _Listing:
    """Candidates of one scan, in the order of the products and their databases."""

    def __init__(self, rules: TraeRules) -> None:
        self.rules = rules
        self._found: list[tuple[Database, Entry]] = []
        self._sessions: list[tuple[str, Candidate]] = []
        self._problems: list[tuple[Database, str]] = []

    def candidates(self) -> list[Candidate]:
        """Conversations, then what can't be read."""
        entries = [entry for _, entry in self._found]
        old = outdated(entries) if self.rules.join_copies else frozenset()
        taken: set[str] = set()
        listed = []
        for at, (database, entry) in enumerate(self._found):
            if at not in old:
                if not database.project:
                    database = database._replace(project=self._project(entry, old))
                is_free = entry.name not in taken
                name = entry.name if is_free else f"{entry.name}@{container_name(database.path)}"
                listed.append(self._candidate(unique(name, taken), database, time_of(entry.value.get("updatedAt"))))
        for home, session in self._sessions:
            is_free = session.id not in taken
            listed.append(replace(session, id=unique(session.id if is_free else f"{session.id}@{home}", taken)))
        if self.rules.report_unreadable:
            listed += [self._candidate(unique(name, taken), database, None) for database, name in self._problems]
        return listed

    def _project(self, entry: Entry, old: frozenset[int]) -> str:
        """Project that a conversation of no window has from an earlier state of it in a window."""
        earlier = (self._found[at] for at in sorted(old))
        projects = (db.project for db, e in earlier if e.id == entry.id and e.states[-1] in entry.states)
        return next(filter(None, projects), "")

    def add_product(self, user: Path) -> None:
        """Add what a product's ``User`` folder and the modular store beside it hold."""
        product = user.parent.name
        try:
            for database in databases(user, self.rules):
                self._add_database(database)
        except OSError:
            self._problems.append((Database(user / "workspaceStorage", ""), f"{_UNREADABLE}@{product}"))
        modular = user.parent / "ModularData" / "ai-agent" / _MODULAR
        try:
            is_there = modular_state(modular) is not None
        except OSError:
            is_there = True
        if is_there:
            self._problems.append((Database(modular, ""), f"modular-store@{product}"))

    def add_cli(self, folder: Path, config: Config) -> None:
        """Add the sessions of a CLI."""
        home = folder.parent.parent.name
        try:
            self._sessions += [(home, session) for session in cli_candidates(folder, config)]
        except OSError:
            self._problems.append((Database(folder, ""), f"{_UNREADABLE}@{home}"))

    def _add_database(self, database: Database) -> None:
        container = container_name(database.path)
        try:
            store = read_store(database.path, self.rules)
        except (OSError, ValueError, sqlite3.Error):
            self._problems.append((database, f"{_UNREADABLE}@{container}"))
            return
        used = (entry for entry in store.entries if not entry.is_stub)
        self._found += [(database, _without_messages(entry)) for entry in used]
        self._problems += [(database, f"{_UNREADABLE}:{key}@{container}") for key in store.problems]

    def _candidate(self, id: str, database: Database, time: str | None) -> Candidate:
        """Size and time are those of the file and its log together, the time the conversation's own if it has one."""
        files = list(_stats(database.path, self.rules))
        size = sum(status.st_size for status in files)
        newest = max((ecma.file_time_ms(status.st_mtime_ns) for status in files), default=0)
        return Candidate(NAME, id, str(database.path), size, time or ecma.iso_time(newest), database.project)


def _stats(path: Path, rules: TraeRules) -> Iterator[os.stat_result]:
    for name in (str(path), f"{path}-wal") if rules.read_log else (str(path),):
        try:
            yield os.stat(name)
        except OSError:
            continue


def _without_messages(entry: Entry) -> Entry:
    """What a listing needs, so that it need not hold all messages of all windows."""
    return entry._replace(value={"updatedAt": entry.value.get("updatedAt")})


def _entry_time(entry: Entry) -> str | None:
    return time_of(entry.value.get("updatedAt")) or time_of(entry.value.get("createdAt"))


def _read(candidate: Candidate, rules: TraeRules, config: Config) -> Parsed:
    """Parse a conversation; where there is none to read, say why (it is never just empty)."""
    path = candidate.file_path
    if os.path.basename(path) == _MODULAR:
        raise ParseError(modular_state(path) or "the database is gone", source=NAME, path=path)
    if (sessions := cli_sessions_of(path)) is not None:
        return _read_session(candidate, sessions, config)
    try:
        store = read_store(path, rules)
    except sqlite3.Error as error:
        raise ParseError(f"damaged: {error}", source=NAME, path=path) from error
    entry = _find(store, candidate)
    messages = entry.value.get("messages")
    if not isinstance(messages, (list, dict)):
        kind = type(messages).__name__
        raise ParseError(f"unknown layout: messages is {kind}", source=NAME, path=path, row=entry.key)
    older = [e for e in store.outdated if e.id == entry.id]
    return _parsed(candidate, entry, older, rules)


def _read_session(candidate: Candidate, sessions: Path, config: Config) -> Parsed:
    """A session of the CLI, under its candidate's id where another one has the plain one."""
    id = text_of(candidate.id)
    plain = id.removesuffix(f"@{sessions.parent.parent.name}")
    parsed = read_cli(replace(candidate, id=plain), sessions, config)
    return parsed if id == plain else replace(parsed, conversation=replace(parsed.conversation, id=id))


def _find(store: Store, candidate: Candidate) -> Entry:
    """The conversation that a candidate names, the container's name behind its own or not."""
    path, wanted = candidate.file_path, text_of(candidate.id)
    suffix = f"@{container_name(path)}"
    known = {entry.name: entry for entry in store.entries}
    entry: Entry | None = known.get(wanted) or known.get(wanted.removesuffix(suffix))
    if entry is not None and not entry.is_stub:
        return entry
    if entry is not None:
        reason = "the list has the conversation, but none of its messages (newer builds keep them elsewhere)"
        raise ParseError(reason, source=NAME, path=path, row=entry.key)
    key = wanted.removesuffix(suffix).removeprefix(f"{_UNREADABLE}:")
    for row in (key, *store.problems):
        if row in store.problems:
            raise ParseError(store.problems[row], source=NAME, path=path, row=row)
    if wanted.startswith(_UNREADABLE):
        raise ParseError("it could not be read when it was listed and can be now; scan again", source=NAME, path=path)
    raise ParseError("the database has no conversation of that id", source=NAME, path=path)


def _parsed(candidate: Candidate, entry: Entry, older: list[Entry], rules: TraeRules) -> Parsed:
    id = text_of(candidate.id)
    messages, fates = read_turns(entry, id, rules)
    facts = [_fact(entry, "title and times"), *(_fact(e, "an equal or earlier state") for e in older)]
    times = sorted(filter(None, (m.timestamp for m in messages)))
    project = candidate.project_dir
    is_multi_root = project.endswith(_MULTI_ROOT)
    conversation = Conversation(
        source=NAME,
        id=candidate.id,
        messages=tuple(messages),
        slug=_title(entry.value) if rules.facts else None,
        project_dir=project,
        project_name=last_path_part(project).removesuffix(_MULTI_ROOT),
        cwd=None if is_multi_root else project or None,
        first_message_at=next(iter(times), None) or _created(entry, rules),
        last_message_at=times[-1] if times else _entry_time(entry) or _created(entry, rules),
        links=_links(entry, candidate),
    )
    return Parsed(conversation, (*facts, *fates))


def _fact(entry: Entry, reason: str) -> Fate:
    return Fate("metadata", "conversation", reason, key=entry.key)


def _title(value: dict[str, Any]) -> str | None:
    return text_of(value.get("title")) or text_of(value.get("name")) or None


def _created(entry: Entry, rules: TraeRules) -> str | None:
    return time_of(entry.value.get("createdAt")) or (id_time(entry.id) if rules.time_from_id else None)


def _links(entry: Entry, candidate: Candidate) -> tuple[Link, ...]:
    """A second conversation of the same id: nothing in the files says which one came first."""
    if candidate.id == entry.id:
        return ()
    return (Link("copy-of", entry.id, "same sessionId, other messages", is_certain=False),)
