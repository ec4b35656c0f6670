"""Cursor by careful rules: every conversation of every store, read by the reader of its file.

Source: ``formats/cursor.md`` sections 2, 4 and 5.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from crystal_nb.adapters.base import Parsed, TimedCache
from crystal_nb.adapters.cursor_chat import read_tab
from crystal_nb.adapters.cursor_cli import read_store
from crystal_nb.adapters.cursor_composer import links_of, read_composer
from crystal_nb.adapters.cursor_listing import is_unreadable, list_candidates, look_into
from crystal_nb.adapters.cursor_overview import Composer, Overview, overview
from crystal_nb.adapters.cursor_places import NAME, agent_root, data_root, database, stat_or_none
from crystal_nb.adapters.cursor_rules import V2, CursorRules
from crystal_nb.adapters.cursor_transcript import read_transcript
from crystal_nb.config import Config
from crystal_nb.details import Link
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate

__all__ = ["candidates", "count", "read"]

_LISTS: TimedCache[list[Candidate]] = TimedCache()


def count(root: Path, config: Config, rules: CursorRules = V2) -> int:
    """Conversations that a scan lists."""
    return len(candidates(root, config, rules))


def candidates(root: Path, config: Config, rules: CursorRules = V2) -> list[Candidate]:
    """Every conversation, listed once; kept for the time that the configuration says."""
    key = (str(root), str(agent_root(config)), rules)
    return list(_LISTS.get(key, config.cache_seconds, lambda: list_candidates(root, config, rules)))


def read(candidate: Candidate, rules: CursorRules, config: Config) -> Parsed:
    """Parse one conversation.

    Raises
    ------
    OSError, ParseError
        If its file can't be read.
    """
    try:
        return _read(candidate, rules, config)
    except sqlite3.Error as error:
        raise ParseError(str(error), source=NAME, path=candidate.file_path) from error


def _read(candidate: Candidate, rules: CursorRules, config: Config) -> Parsed:
    path = Path(candidate.file_path)
    if path.name == "store.db":
        links = _copy_links(candidate, path.parent.name)
        return read_store(candidate, links, logs=rules.read_log)
    if path.suffix in (".jsonl", ".txt"):
        return _read_transcript(candidate, path, rules, config)
    if is_unreadable(candidate):
        return _refuse(candidate, rules, config)
    if path.parent.name == "globalStorage":
        return read_composer(candidate, overview(path, rules, config), rules, config)
    window, _, tab = str(candidate.id).partition("/")
    wanted = tab if tab and window == path.parent.name else str(candidate.id)
    return read_tab(candidate, wanted, _copy_links(candidate, wanted), rules, config)


def _refuse(candidate: Candidate, rules: CursorRules, config: Config) -> Parsed:
    """Fail with the reason why the file could not be read, or because it can be by now."""
    look_into(Path(candidate.file_path), rules, config)
    raise ParseError("it could not be read when it was listed; scan again", source=NAME, path=candidate.file_path)


def _copy_links(candidate: Candidate, id: str) -> tuple[Link, ...]:
    """Edge from a conversation that shares its id with an earlier one, which the files don't explain."""
    if candidate.id == id:
        return ()
    return (Link("copy-of", id, "the same id in another place", is_certain=False),)


def _read_transcript(candidate: Candidate, path: Path, rules: CursorRules, config: Config) -> Parsed:
    composer = _known(config, rules).composers.get(path.stem, Composer())
    links = _copy_links(candidate, path.stem) + (_parent_links(composer, path) if rules.subagents else ())
    return read_transcript(
        candidate,
        title=composer.title if rules.facts else None,
        links=links,
        created=composer.created,
        updated=composer.updated,
    )


def _parent_links(composer: Composer, path: Path) -> tuple[Link, ...]:
    if path.parent.name == "subagents":
        return (Link("subagent-of", path.parent.parent.name, "folder agent-transcripts/<parent>/subagents"),)
    return links_of(composer)


def _known(config: Config, rules: CursorRules) -> Overview:
    """What the global database knows; nothing where there is none to be read."""
    path = database(data_root(config))
    try:
        return overview(path, rules, config) if stat_or_none(path) is not None else Overview({}, ())
    except (OSError, ValueError, sqlite3.Error):
        return Overview({}, ())
