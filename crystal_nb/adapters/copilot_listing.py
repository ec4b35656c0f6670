"""Which sessions there are, and their ids.

A session keeps the name of its file as id. Where several window folders hold one id, the file with
the longest session keeps it, and each other one is ``<window folder>/<id>``.
"""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from crystal_nb.adapters.base import TimedCache, file_candidate
from crystal_nb.adapters.copilot_pinned import NAME
from crystal_nb.adapters.copilot_places import (
    LEGACY_KEY,
    SessionFile,
    databases,
    index_entries,
    legacy_sessions,
    project_of,
    roots,
    session_files,
    transcripts,
    window_of,
)
from crystal_nb.adapters.copilot_reading import whole_length
from crystal_nb.adapters.copilot_rules import CopilotRules
from crystal_nb.adapters.copilot_values import as_dict, text_of, unique
from crystal_nb.config import Config
from crystal_nb.records import Candidate

__all__ = ["candidates", "longest", "root"]

_LISTS: TimedCache[list[Candidate]] = TimedCache()


def root(config: Config, rules: CopilotRules) -> Path:
    """The ``User`` folder to name: the first that exists, else the usual one."""
    known = roots(config, rules)
    return next((path for path in known if path.is_dir()), known[0])


def candidates(config: Config, rules: CopilotRules) -> list[Candidate]:
    """Sessions of all folders: files, then those in databases, then transcripts without a file.

    >>> from crystal_nb.adapters.copilot_rules import V2
    >>> candidates(Config(home="/nowhere", platform="linux"), V2)
    []
    """
    folders = tuple(roots(config, rules))
    return _LISTS.get((folders, rules), config.cache_seconds, lambda: _list(folders, config, rules))


def _list(folders: tuple[Path, ...], config: Config, rules: CopilotRules) -> list[Candidate]:
    files = [file for folder in folders for file in session_files(folder, rules)]
    taken: set[str] = set()
    found = list(_present(_named(files, rules, taken), rules))
    known = {file.stem for file in files}
    if rules.lists_all_stores:
        stored = (database for folder in folders for database in databases(folder))
        found += [candidate for database in stored for candidate in _stored_in(database, rules, known, taken)]
    if rules.lists_transcripts:
        left = (file for folder in folders for file in transcripts(folder) if file.stem not in known)
        found += _present(((_unique_in(file, taken), file) for file in left), rules)
    if rules.asks_index:
        indexes = (database for folder in folders for database in databases(folder))
        known |= {candidate.id for candidate in found}
        found += [candidate for database in indexes for candidate in _gone(database, config, rules, known)]
    return found


def _gone(database: Path, config: Config, rules: CopilotRules, known: set[str]) -> Iterator[Candidate]:
    """Sessions that only the index still knows: they had turns here, and no file is left."""
    for id, entry in index_entries(database, config.cache_seconds).items():
        is_elsewhere = any(entry.get(flag) is True for flag in ("isEmpty", "isExternal", "deleted"))
        if id not in known and not is_elsewhere:
            known.add(id)
            candidate = _candidate(id, database, project_of(window_of(database), rules))
            if candidate is not None:
                yield candidate


def _named(files: list[SessionFile], rules: CopilotRules, taken: set[str]) -> Iterator[tuple[str, SessionFile]]:
    """Ids of the files, in their order."""
    groups = defaultdict(list)
    for file in files:
        groups[file.stem].append(file)
    if not rules.links_copies:
        yield from ((file.stem, file) for file in files)
        return
    plain = {longest(group, rules) for group in groups.values()}
    taken.update(groups)
    yield from ((file.stem if file in plain else _qualified(file, taken), file) for file in files)


def longest(files: list[SessionFile], rules: CopilotRules) -> SessionFile:
    """The file with the longest session, the first of several."""
    return files[0] if len(files) == 1 else max(files, key=lambda file: whole_length(file.path, rules))


def _unique_in(file: SessionFile, taken: set[str]) -> str:
    """The file's own name, or a qualified one where that is taken."""
    if file.stem in taken:
        return _qualified(file, taken)
    taken.add(file.stem)
    return file.stem


def _qualified(file: SessionFile, taken: set[str]) -> str:
    return unique(f"{file.owner}/{file.stem}", taken)


def _present(named: Iterable[tuple[str, SessionFile]], rules: CopilotRules) -> Iterator[Candidate]:
    projects: dict[Path | None, str] = {}
    for id, file in named:
        if file.window not in projects:
            projects[file.window] = project_of(file.window, rules)
        candidate = _candidate(id, file.path, projects[file.window])
        if candidate is not None:
            yield candidate


def _candidate(id: str, path: Path, project: str) -> Candidate | None:
    """A candidate, unless its file has just vanished."""
    try:
        return file_candidate(NAME, id, path, os.stat(path), project)
    except OSError:
        return None


def _stored_in(database: Path, rules: CopilotRules, known: set[str], taken: set[str]) -> Iterator[Candidate]:
    """Sessions of a window's database that have no file; one that can't be read is listed as such, to fail by name."""
    owner = database.parent.name
    try:
        ids = [text_of(as_dict(session).get("sessionId")) for session in legacy_sessions(database)]
    except (OSError, ValueError, sqlite3.Error):
        ids = [""]
    for index, id in enumerate(ids):
        if id not in known:
            place = f"{owner}/{LEGACY_KEY}/{index}"
            name = unique(id, taken) if id and id not in taken else unique(place, taken)
            candidate = _candidate(name, database, project_of(window_of(database), rules))
            if candidate is not None:
                yield candidate
