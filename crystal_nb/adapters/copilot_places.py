"""Where chat sessions are: products, windows, files, projects, the windows' databases.

Source: ``formats/copilot.md`` sections 1 and 2.5.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from crystal_nb import ecma
from crystal_nb.adapters import vscdb
from crystal_nb.adapters.base import TimedCache, last_path_part, list_names, read_file
from crystal_nb.adapters.copilot_pinned import NAME
from crystal_nb.adapters.copilot_replay import decode
from crystal_nb.adapters.copilot_rules import CopilotRules
from crystal_nb.adapters.copilot_values import as_dict, as_list, place
from crystal_nb.adapters.vscode import item, workspace_folder
from crystal_nb.config import Config

__all__ = [
    "DATABASE",
    "INDEX_KEY",
    "LEGACY_KEY",
    "SessionFile",
    "databases",
    "index_entries",
    "legacy_sessions",
    "project_name",
    "project_of",
    "roots",
    "session_files",
    "transcript_of",
    "transcripts",
    "window_of",
]

PRODUCTS = ("Code", "Code - Insiders", "Code - OSS", "VSCodium", "VSCodium - Insiders")
DATABASE = "state.vscdb"
LEGACY_KEY = "interactive.sessions"
INDEX_KEY = "chat.ChatSessionStore.index"
_HOMES = {"emptyWindowChatSessions": "lists_small_files", "transferredChatSessions": "lists_all_stores"}
_TRANSCRIPTS = Path("GitHub.copilot-chat", "transcripts")
_PINNED_MIN_BYTES = 100
_INDEXES: TimedCache[dict[str, dict[str, Any]]] = TimedCache()


class SessionFile(NamedTuple):
    """A file that may hold a session."""

    path: Path
    stem: str
    owner: str
    """Name of the window's folder, or of the folder of sessions without window."""
    window: Path | None


def roots(config: Config, rules: CopilotRules) -> list[Path]:
    """``User`` folders to look through, existing or not: the one that is configured, else every product's.

    >>> from crystal_nb.adapters.copilot_rules import V1
    >>> [p.as_posix() for p in roots(Config(home="/home/ada", platform="linux"), V1)]
    ['/home/ada/.config/Code/User']
    """
    default = config.user_data("Code")
    chosen = config.folder(NAME, "COPILOT_DATA_DIR", default)
    if chosen != default or NAME in config.folders or not rules.looks_everywhere:
        return [chosen]
    found = [config.user_data(product) for product in PRODUCTS]
    if config.platform not in ("win32", "darwin"):
        if other := config.env("XDG_CONFIG_HOME"):
            found += [Path(other, product, "User") for product in PRODUCTS]
        found.append(config.home_path / ".var/app/com.visualstudio.code/config/Code/User")
    found += [config.home_path / name / "data" / "User" for name in (".vscode-server", ".vscode-server-insiders")]
    return list(dict.fromkeys(found))


def session_files(root: Path, rules: CopilotRules) -> Iterator[SessionFile]:
    """Session files below one ``User`` folder, windows first, each folder in byte order.

    A folder that can't be listed hides nothing but itself, and stands for its sessions.
    """
    for window in map((root / "workspaceStorage").joinpath, _names(root / "workspaceStorage")):
        yield from _files_in(window / "chatSessions", window.name, window, rules)
    for home, needed in _HOMES.items():
        if home == "emptyWindowChatSessions" or getattr(rules, needed):
            yield from _files_in(root / "globalStorage" / home, home, None, rules)


def _names(folder: Path) -> list[str]:
    try:
        return list_names(folder)
    except OSError:
        return []


def _files_in(folder: Path, owner: str, window: Path | None, rules: CopilotRules) -> Iterator[SessionFile]:
    try:
        names = [name for name in list_names(folder) if name.endswith((".json", ".jsonl"))]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:  # listed as one session, which then fails by the folder's name
        yield SessionFile(folder, f"{owner}/{folder.name}", owner, window)
        return
    for name in names:
        stem = name[: name.rindex(".")]
        if rules.log_wins and name.endswith(".json") and f"{stem}.jsonl" in names:
            continue
        path = folder / name
        if rules.lists_small_files or _size(path) >= _PINNED_MIN_BYTES:
            yield SessionFile(path, stem, owner, window)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def transcripts(root: Path) -> Iterator[SessionFile]:
    """The extension's transcripts of all windows below one ``User`` folder."""
    for window in map((root / "workspaceStorage").joinpath, _names(root / "workspaceStorage")):
        for name in _names(window / _TRANSCRIPTS):
            if name.endswith(".jsonl"):
                yield SessionFile(window / _TRANSCRIPTS / name, name.removesuffix(".jsonl"), window.name, window)


def databases(root: Path) -> Iterator[Path]:
    """Databases of all windows below one ``User`` folder, and the one for windows without folder."""
    for name in _names(root / "workspaceStorage"):
        yield root / "workspaceStorage" / name / DATABASE
    yield root / "globalStorage" / DATABASE


def window_of(path: Path) -> Path | None:
    """The window's folder that a session file, transcript or database stands in; None for windows without folder."""
    parents = [path.parent, *path.parents[1:4]]
    return next((p for p in parents if p.parent.name == "workspaceStorage"), None)


def transcript_of(path: Path) -> Path | None:
    """Where the transcript of a session file's conversation would be."""
    window = window_of(path)
    return None if window is None else window / _TRANSCRIPTS / f"{path.stem}.jsonl"


def project_of(window: Path | None, rules: CopilotRules) -> str:
    """Project of a window: its folder, or its ``.code-workspace`` file; ``""`` when it has none.

    Local paths are plain (``/home/ada/app``, ``c:/w/app``, ``//server/share/app``), other addresses keep
    their scheme and are percent-decoded (``vscode-remote://wsl+ubuntu/home/ada/app``).
    """
    if window is None:
        return ""
    try:
        if not rules.reads_uris:
            return workspace_folder(window / "workspace.json")
        description = as_dict(decode(read_file(window / "workspace.json")))
    except (OSError, ValueError):
        return ""
    values = [description.get(key) for key in ("folder", "workspace", "configuration")]
    return next((path for path in map(project_path, values) if path), "")


def project_path(value: Any) -> str:
    """Path that a URI names, as text or as VS Code's object; a plain path as it is.

    >>> [project_path("file:///" + rest) for rest in ("home/u/my%20app", "c%3A/w/app")]
    ['/home/u/my app', 'c:/w/app']
    >>> project_path("file://server/share/app"), project_path("vscode-remote://wsl%2Bubuntu/home/u")
    ('//server/share/app', 'vscode-remote://wsl+ubuntu/home/u')
    """
    uri = place(value)
    try:
        text = ecma.decode_uri_component(uri) if "://" in uri else uri
    except ValueError:
        text = uri
    if not text.startswith("file://"):
        return text
    path = text.removeprefix("file://")
    if not path.startswith("/"):
        return f"//{path}"
    return path[1:] if path[2:3] == ":" else path


def project_name(project: str) -> str:
    """Short name of a project; ``Global`` without one, as pinned.

    >>> project_name("/w/team.code-workspace"), project_name("")
    ('team', 'Global')
    """
    return last_path_part(project).removesuffix(".code-workspace") if project else "Global"


def legacy_sessions(database: Path) -> list[Any]:
    """Sessions that a window's database holds, from before they had files; none when there is no database.

    Raises
    ------
    OSError, sqlite3.Error
        If it can't be read.
    ValueError
        If the value is no JSON.
    """
    if not database.exists():
        return []
    found = vscdb.read(database, lambda connection: _value(connection, LEGACY_KEY), wal=True)
    return [] if found is None else as_list(decode(found))


def _value(connection: sqlite3.Connection, key: str) -> bytes | None:
    has_table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'ItemTable'").fetchone()
    found = item(connection, key) if has_table else None
    return found[1] if found is not None and isinstance(found[1], bytes) else None


def index_entries(database: Path, cache_seconds: float) -> dict[str, dict[str, Any]]:
    """What a window's index says of its sessions, by id; nothing where it can't be asked."""
    try:
        mark = vscdb.fingerprint(database)
        return _INDEXES.get(mark, cache_seconds, lambda: _read_index(database))
    except (OSError, ValueError, sqlite3.Error):
        return {}


def _read_index(database: Path) -> dict[str, dict[str, Any]]:
    """The whole index; newest builds have a row per session, which wins."""
    rows = vscdb.read(database, _index_rows, wal=True)
    index: dict[str, Any] = {}
    for key, value in rows:
        if key == INDEX_KEY:
            index = {**as_dict(as_dict(value).get("entries")), **index}
        else:
            index[key.removeprefix(f"{INDEX_KEY}.entry.")] = value
    return {id: entry for id, entry in index.items() if isinstance(entry, dict)}


def _index_rows(connection: sqlite3.Connection) -> list[tuple[str, Any]]:
    query = "SELECT key, value FROM ItemTable WHERE key = ? OR substr(key, 1, ?) = ?"
    prefix = f"{INDEX_KEY}.entry."
    rows = connection.execute(query, (INDEX_KEY, len(prefix), prefix)).fetchall()
    return [(vscdb.decode(key), decode(value)) for key, value in rows if isinstance(value, bytes)]
