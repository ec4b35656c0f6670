"""Listing Cursor's conversations wherever they are, each once, by careful rules.

Source: ``formats/cursor.md`` sections 1, 2.6 to 2.8, 4 and 5.3. Ids are those of the tool; a second
conversation of the same id gets the place before it: ``<window>/<tab>``, ``<slug>/<transcript>``,
``<project hash>/<agent>``. A database that can't be read is listed as ``<folder>/state.vscdb``, and
fails when it is parsed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from crystal_nb import ecma
from crystal_nb.adapters import vscdb
from crystal_nb.adapters.cursor_chat import tab_id, tab_times, tabs_in
from crystal_nb.adapters.cursor_cli import sidecar
from crystal_nb.adapters.cursor_overview import Composer, Overview, overview
from crystal_nb.adapters.cursor_places import (
    NAME,
    agent_root,
    database,
    folders_in,
    path_of_slug,
    readable_uri,
    stat_or_none,
    window_project,
)
from crystal_nb.adapters.cursor_rules import CursorRules
from crystal_nb.adapters.cursor_snapshot import ask, last_change_ns, mark_of, total_size
from crystal_nb.adapters.cursor_values import dicts, json_of, members, raw_of, string
from crystal_nb.adapters.vscode import item
from crystal_nb.config import Config
from crystal_nb.records import Candidate

__all__ = ["is_unreadable", "list_candidates", "look_into"]

_TRANSCRIPT_KINDS = (".jsonl", ".txt")
_FAILURES = (OSError, ValueError, sqlite3.Error)


class _Window(NamedTuple):
    folder: Path
    project: str
    heads: list[str]
    tabs: list[Any]
    is_readable: bool


@dataclass
class _Listing:
    root: Path
    rules: CursorRules
    config: Config
    found: dict[str, Candidate] = field(default_factory=dict)

    def add(self, id: str, qualifier: str, path: Path, changed: Any = None, project: str = "") -> None:
        """List a conversation; the second of an id gets the qualifier before it."""
        id = id if id not in self.found else f"{qualifier}/{id}"
        if id not in self.found:
            self.found[id] = Candidate(NAME, id, str(path), *self._state(path, changed), project)

    def unreadable(self, path: Path) -> None:
        """List a file under its path."""
        self.add(_path_id(path), "unreadable", path)

    def _state(self, path: Path, changed: Any) -> tuple[int, str]:
        """Size, log included, and time of the last change as the conversation, else the file has it."""
        try:
            mark = mark_of(path, logs=self.rules.read_log)
        except (OSError, ValueError):
            return 0, ""
        ms = None if changed is None else ecma.date_ms(changed)
        return total_size(mark), ecma.iso_time(ecma.file_time_ms(last_change_ns(mark)) if ms is None else ms)


def list_candidates(root: Path, config: Config, rules: CursorRules) -> list[Candidate]:
    """Every conversation, those of the databases first."""
    listing = _Listing(root, rules, config)
    windows = [_window(folder, rules, config) for folder in folders_in(root / "workspaceStorage", strict=True)]
    agents = agent_root(config)
    files = transcript_files(agents) if rules.transcripts else []
    stores = list(_stores(agents)) if rules.cli_stores else []
    elsewhere = {file.stem for _, file in files} | {store.parent.name for store in stores}
    known = _add_composers(listing, windows, elsewhere)
    for window in windows:
        _add_tabs(listing, window)
    for store in stores:
        _add_store(listing, store, known)
    _add_transcripts(listing, agents, files, known, windows)
    return list(listing.found.values())


def is_unreadable(candidate: Candidate) -> bool:
    """Whether the candidate stands for a file that could not be read when it was listed."""
    return bool(candidate.id == _path_id(Path(candidate.file_path)))


def _path_id(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def look_into(path: Path, rules: CursorRules, config: Config) -> None:
    """Read a database as the listing does; raises what the listing met."""
    if path.parent.name == "globalStorage":
        overview(path, rules, config)
    else:
        ask(path, _read_window, config, logs=rules.read_log)


def _window(folder: Path, rules: CursorRules, config: Config) -> _Window:
    project, path = window_project(folder), folder / "state.vscdb"
    if stat_or_none(path) is None:
        return _Window(folder, project, [], [], is_readable=True)
    try:
        heads, tabs = ask(path, _read_window, config, logs=rules.read_log)
    except _FAILURES:
        return _Window(folder, project, [], [], is_readable=False)
    return _Window(folder, project, heads, tabs if rules.legacy_chats else [], is_readable=True)


def _read_window(connection: vscdb.Connection) -> tuple[list[str], list[Any]]:
    row = item(connection, "composer.composerData")
    heads = dicts(members(json_of(raw_of(row[1]))).get("allComposers")) if row and row[1] is not None else []
    return [id for head in heads if (id := string(head.get("composerId")))], tabs_in(connection)


def _add_composers(listing: _Listing, windows: list[_Window], elsewhere: set[str]) -> Overview:
    """Composers of windows, then of the global database, but those whose only bodies are in another file."""
    path = database(listing.root)
    if stat_or_none(path) is None:
        return Overview({}, ())
    try:
        known = overview(path, listing.rules, listing.config)
    except _FAILURES:
        listing.unreadable(path)
        return Overview({}, ())
    projects = _projects_of(windows)
    by_window = {window.folder.name: window.project for window in windows}
    for id in dict.fromkeys([*projects, *known.composers]):
        composer = known.composers.get(id, Composer())
        is_listed = composer.has_body or id in projects or listing.rules.list_empty
        if is_listed and (id not in elsewhere or composer.has_body):
            listing.add(
                id, "composer", path, composer.updated or composer.created, _project(id, composer, projects, by_window)
            )
    return known


def _projects_of(windows: list[_Window]) -> dict[str, str]:
    """Project of each composer that a window lists; of several windows the first that has one."""
    projects: dict[str, str] = {}
    for window in windows:
        for id in window.heads:
            projects[id] = projects.get(id) or window.project
    return projects


def _project(id: str, composer: Composer, projects: dict[str, str], by_window: dict[str, str]) -> str:
    by_id = by_window.get(composer.workspace_id or "", "")
    return composer.project or by_id or projects.get(id, "")


def _add_tabs(listing: _Listing, window: _Window) -> None:
    path = window.folder / "state.vscdb"
    if not window.is_readable:
        listing.unreadable(path)
    for number, tab in enumerate(window.tabs):
        listing.add(tab_id(tab, number), window.folder.name, path, tab_times(tab)[1], window.project)


def _stores(agents: Path) -> Iterator[Path]:
    for project in folders_in(agents / "chats", strict=True):
        for chat in folders_in(project):
            if stat_or_none(chat / "store.db") is not None:
                yield chat / "store.db"


def _add_store(listing: _Listing, store: Path, known: Overview) -> None:
    id = store.parent.name
    composer = known.composers.get(id, Composer())
    if not composer.has_body:
        project = readable_uri(string(sidecar(store).get("cwd")) or composer.project)
        listing.add(id, store.parent.parent.name, store, project=project)


def transcript_files(agents: Path) -> list[tuple[str, Path]]:
    """Slug and file of each transcript; of one transcript in several forms the nested, then the JSONL one."""
    found: dict[tuple[str, str, str], Path] = {}
    for project in folders_in(agents / "projects", strict=True):
        for parent, file in _transcripts_in(project / "agent-transcripts"):
            found.setdefault((project.name, parent, file.stem), file)
    return [(slug, file) for (slug, _, _), file in found.items()]


def _transcripts_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Parent and file, the form to prefer first."""
    nested = folders_in(folder)
    for kind in _TRANSCRIPT_KINDS:
        own = [place / f"{place.name}{kind}" for place in nested]
        yield from (("", file) for file in own if file.is_file())
        yield from (("", file) for file in _files(folder, kind))
        for place in nested:
            yield from ((place.name, file) for file in _files(place / "subagents", kind))


def _files(folder: Path, kind: str) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == kind and path.is_file())
    except OSError:
        return []


def _add_transcripts(
    listing: _Listing, agents: Path, files: list[tuple[str, Path]], known: Overview, windows: list[_Window]
) -> None:
    """Transcripts of conversations that no database holds, the main ones first."""
    stored = {id for id, c in known.composers.items() if c.has_body}
    stored |= {c.id for c in listing.found.values() if c.file_path.endswith("store.db")}
    folders = _working_folders(agents)
    projects = {p for p in (*(w.project for w in windows), *folders.values()) if p}
    for slug, file in sorted(files, key=lambda entry: entry[1].parent.name == "subagents"):
        if file.stem not in stored:
            composer = known.composers.get(file.stem, Composer())
            project = composer.project or folders.get(file.stem) or path_of_slug(slug, projects)
            listing.add(file.stem, slug, file, project=project)


def _working_folders(agents: Path) -> dict[str, str]:
    """Working folder of each chat of the command line agent that says it."""
    chats = [chat for project in folders_in(agents / "chats") for chat in folders_in(project)]
    places = {chat.name: string(sidecar(chat / "store.db").get("cwd")) for chat in chats}
    return {id: readable_uri(place) for id, place in places.items() if place}
