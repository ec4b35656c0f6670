r"""Where Claude Code's transcripts lie, and what their candidates are called.

- A session: its file's name. Where several project folders hold that name, the first in byte order
  keeps it, the others are ``<folder>/<name>``.
- A sub-agent below a session: ``<session>/<path below subagents>``; one in a flat file: the file's name.
- A side chain inside a session's file: ``<session>/side-<agent id, or id of its first record>``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from crystal_nb.adapters.base import file_candidate, open_file
from crystal_nb.adapters.claude_records import LineDecoder
from crystal_nb.adapters.claude_rules import ClaudeRules
from crystal_nb.adapters.jsonl import read_blocks
from crystal_nb.config import Config
from crystal_nb.records import Candidate

__all__ = [
    "NAME",
    "Head",
    "SideChains",
    "careful_root",
    "head",
    "list_candidates",
    "plain_name",
    "project_name",
    "session_id_of",
]

NAME = "claude-code"
_VARIABLE = "CLAUDE_PROJECTS_DIR"
_DESKTOP = "local-agent-mode-sessions"
_DEPTH = 5
_SUFFIX = ".jsonl"
_JOURNAL = "journal.jsonl"


def careful_root(config: Config) -> Path:
    """The folder of projects; unlike the pinned rule it follows ``CLAUDE_CONFIG_DIR``."""
    moved = config.env("CLAUDE_CONFIG_DIR")
    home = config.expand(moved) if moved else config.home_path / ".claude"
    return config.folder(NAME, _VARIABLE, home / "projects")


def _roots(root: Path, config: Config) -> Iterator[Path]:
    """That folder and, unless it was chosen, those that other builds and the desktop app write to."""
    yield root
    if config.folders.get(NAME) is not None or config.env(_VARIABLE) or config.env("CLAUDE_CONFIG_DIR"):
        return
    for base in (config.env("XDG_CONFIG_HOME"), str(config.home_path / ".config")):
        if base:
            yield Path(base) / "claude" / "projects"
    yield from _inner_projects(str(config.user_data("Claude").parent / _DESKTOP), _DEPTH)


def _inner_projects(folder: str, depth: int) -> Iterator[Path]:
    for entry in _entries(folder):
        if entry.name == ".claude":
            yield Path(entry.path) / "projects"
        elif depth and entry.is_dir(follow_symlinks=False):
            yield from _inner_projects(entry.path, depth - 1)


def _entries(folder: str | os.PathLike[str]) -> list[os.DirEntry[str]]:
    """What a folder holds, in byte order; nothing where it can't be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except (OSError, ValueError):
        return []


def list_candidates(root: Path, rules: ClaudeRules, config: Config) -> list[Candidate]:
    """All conversations. Links that lead nowhere are passed over; an unreadable project folder is listed itself."""
    found: dict[str, Candidate] = {}
    roots = dict.fromkeys(map(str, _roots(root, config) if rules.more_roots else [root]))
    for folder in (entry for base in roots for entry in _entries(base) if _is_folder(entry)):
        for candidate in _in_folder(folder, rules):
            id = candidate.id
            for longer in (f"{folder.name}/{id}", f"{folder.path}/{id}"):
                id = longer if id in found else id
            found[id] = candidate if id == candidate.id else _renamed(candidate, id)
    return list(found.values())


def _renamed(c: Candidate, id: str) -> Candidate:
    return Candidate(c.source, id, c.file_path, c.file_size, c.file_mtime, c.project_dir)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _in_folder(folder: os.DirEntry[str], rules: ClaudeRules) -> Iterator[Candidate]:
    try:
        os.scandir(folder.path).close()
    except OSError:
        yield file_candidate(NAME, folder.name, folder.path, folder.stat(), folder.name)
        return
    for entry in _entries(folder.path):
        if entry.name.endswith(_SUFFIX):
            yield from _in_file(entry, entry.name.removesuffix(_SUFFIX), folder.name, rules)
        elif rules.subagents and _is_folder(entry):
            yield from _below(f"{entry.path}/subagents", entry.name, folder.name, rules)


def _below(path: str, id: str, project: str, rules: ClaudeRules) -> Iterator[Candidate]:
    for entry in _entries(path):
        inner = f"{id}/{entry.name.removesuffix(_SUFFIX)}"
        if entry.name.endswith(_SUFFIX) and entry.name != _JOURNAL:
            yield from _in_file(entry, inner, project, rules, is_agent=True)
        elif entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, inner, project, rules)


def _in_file(
    entry: os.DirEntry[str], id: str, project: str, rules: ClaudeRules, *, is_agent: bool = False
) -> Iterator[Candidate]:
    try:
        status = entry.stat()
    except OSError:
        return
    if not status.st_size:
        return
    candidate = file_candidate(NAME, id, entry.path, status, project)
    yield candidate
    if not rules.split_sidechains or is_agent or entry.name.startswith("agent-"):
        return
    for key in side_keys(entry.path, status.st_mtime_ns, status.st_size):
        yield _renamed(candidate, f"{id}/side-{key}")


def session_id_of(path: str) -> str:
    """Id of the candidate for a session's file, as the scan gives it: the folder before it if an earlier one has it."""
    folder, name = os.path.split(path)
    own = os.path.basename(folder)
    for entry in _entries(os.path.dirname(folder)):
        if os.fsencode(entry.name) >= os.fsencode(own):
            break
        if os.path.exists(os.path.join(entry.path, name)):
            return f"{own}/{name.removesuffix(_SUFFIX)}"
    return name.removesuffix(_SUFFIX)


_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")


def plain_name(name: str) -> bool:
    """Whether a name from a record can be part of a path."""
    return _PLAIN_NAME.fullmatch(name) is not None


class Head(Struct, frozen=True):
    """What the start of a file tells without decoding it."""

    first_uuid: str | None
    """Of its first record with a UUID; ids of other shapes, which other writers make, are not unique in the world."""
    is_boundary: bool
    """Whether that record is a compaction boundary."""
    may_hold_sides: bool
    """Whether versions that wrote side chains into the session's file may have written it."""


_HEADS = (1 << 14, 1 << 19)
_UUID = re.compile(rb'"uuid"\s*:\s*"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"')
_VERSION = re.compile(rb'"version"\s*:\s*"([0-9]+)\.')
_BOUNDARY = re.compile(rb'"subtype"\s*:\s*"compact_boundary"')


@lru_cache(maxsize=1 << 16)
def head(path: str, mtime_ns: int, size: int) -> Head:
    """Look at the start of a file; kept as long as the file does not change."""
    data, found = b"", None
    try:
        with open_file(path) as file:
            for length in _HEADS:
                data += file.read(length - len(data)) or b""
                found = _UUID.search(data)
                if found or len(data) >= size:
                    break
    except OSError:
        return Head(None, False, False)
    version = _VERSION.search(data)
    uuid = found[1].decode() if found else None
    line = data[data.rfind(b"\n", 0, found.start()) + 1 : data.find(b"\n", found.start())] if found else b""
    return Head(uuid, _BOUNDARY.search(line) is not None, version is None or int(version[1]) < 2)


class _SideLine(Struct, gc=False, rename="camel"):
    type: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    is_sidechain: bool | None = None
    agent_id: str | None = None


_SIDE_DECODER = LineDecoder(_SideLine)


class SideChains:
    """Tells which side chain a record belongs to; records in file order."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    def key(self, record: Any, number: int) -> str | None:
        """Key of the chain; None for records of the main conversation. A chain begins where no parent is in one."""
        if not record.is_sidechain:
            return None
        key: str = record.agent_id or self._of.get(record.parent_uuid or "") or record.uuid or f"line-{number}"
        if record.uuid:
            self._of[record.uuid] = key
        return key


@lru_cache(maxsize=1 << 12)
def side_keys(path: str, mtime_ns: int, size: int) -> tuple[str, ...]:
    """Keys of the side chains inside a session's file, in order.

    Versions from 2 on write files of their own; only a file whose start names an older version, or none, is read.
    A file of nothing else than side chains is a sub-agent's own.
    """
    if not head(path, mtime_ns, size).may_hold_sides:
        return ()
    chains, keys, has_main = SideChains(), dict[str, None](), False
    try:
        for block in read_blocks(path, _SIDE_DECODER):
            for number, record in enumerate(block.records, block.first_line):
                key = chains.key(record, number) if isinstance(record, _SideLine) else None
                if key is not None:
                    keys[key] = None
                elif isinstance(record, _SideLine) and record.type in ("user", "assistant"):
                    has_main = True
    except OSError:
        return ()
    return tuple(keys) if has_main else ()


def project_name(folder: str) -> str:
    """Guess a short name from the dashed folder name (rule 22).

    >>> [project_name(f) for f in ("-home-a-projects-shop-api", "-srv-demo", "-x")]
    ['shop-api', 'srv-demo', '-x']
    """
    parts = [part for part in folder.split("-") if part]
    at = next((i for i, part in enumerate(parts) if part.lower() in ("project", "projects")), len(parts))
    if at < len(parts) - 1:
        return "-".join(parts[at + 1 :])
    return "-".join(parts[-2:]) if len(parts) >= 2 else folder
