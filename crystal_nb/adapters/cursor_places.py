"""Where Cursor's files are and which project they belong to.

Source: ``formats/cursor.md`` section 1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crystal_nb import ecma
from crystal_nb.adapters.base import list_names, read_file
from crystal_nb.adapters.cursor_values import json_of, members, string
from crystal_nb.config import Config

__all__ = [
    "NAME",
    "agent_root",
    "data_root",
    "database",
    "folders_in",
    "path_of_slug",
    "readable_uri",
    "window_project",
]

NAME = "cursor"
_VARIABLE = "CURSOR_DATA_DIR"
_DRIVE = re.compile("/[A-Za-z]:(?:/|$)")
_SEPARATORS = re.compile(r"[^A-Za-z0-9_]+")


def data_root(config: Config) -> Path:
    """Rule 3."""
    return config.folder(NAME, _VARIABLE, config.user_data("Cursor"))


def database(root: Path) -> Path:
    """The database with all bodies."""
    return root / "globalStorage" / "state.vscdb"


def agent_root(config: Config) -> Path:
    """Folder of the command line agent and the transcripts: the configured one if there is one, else the tool's."""
    if NAME in config.folders or config.env(_VARIABLE):
        return data_root(config)
    if own := config.env("CURSOR_CONFIG_DIR"):
        return config.expand(own)
    if config.platform not in ("win32", "darwin") and (shared := config.env("XDG_CONFIG_HOME")):
        return config.expand(shared) / "cursor"
    return config.home_path / ".cursor"


def folders_in(folder: Path, *, strict: bool = False) -> list[Path]:
    """Folders inside a folder in byte order; none where it is missing.

    Raises
    ------
    OSError
        If it is there but can't be listed, with ``strict``.
    """
    try:
        return [path for name in list_names(folder) if (path := folder / name).is_dir()] if folder.is_dir() else []
    except (OSError, ValueError):
        if strict:
            raise
        return []


def window_project(folder: Path) -> str:
    """Project that a window's ``workspace.json`` names; ``""`` when it names none or can't be read."""
    try:
        described = members(json_of(read_file(folder / "workspace.json")))
    except (OSError, ValueError):
        return ""
    return next(filter(None, (_place(described.get(k)) for k in ("folder", "workspace", "configuration"))), "")


def _place(value: Any) -> str:
    """Path of a URI, a path or a URI object."""
    if not isinstance(value, dict):
        return readable_uri(value) if isinstance(value, str) else ""
    if path := string(value.get("fsPath"), value.get("external")):
        return readable_uri(path)
    path, scheme, authority = (string(value.get(k)) or "" for k in ("path", "scheme", "authority"))
    if not path or scheme in ("", "file"):
        return _file_path(authority, path) if path else ""
    return f"{scheme}://{authority}{path}"


def workspace_place(value: Any) -> str:
    """Project of a ``workspaceIdentifier``.

    >>> workspace_place({"id": "7", "uri": {"fsPath": "/home/ada/app"}})
    '/home/ada/app'
    """
    identifier = members(value)
    return next(filter(None, (_place(identifier.get(k)) for k in ("uri", "configPath"))), "")


def readable_uri(uri: str) -> str:
    r"""Path of a ``file`` URI; other URIs percent-decoded, paths as they are.

    >>> readable_uri("file:///home/ada/my%20app"), readable_uri("file:///c%3A/app")
    ('/home/ada/my app', 'c:/app')
    >>> readable_uri("file://wsl%24/Ubuntu/app")
    '\\\\wsl$\\Ubuntu\\app'
    >>> readable_uri("vscode-remote://wsl%2Bubuntu/home/ada/app")
    'vscode-remote://wsl+ubuntu/home/ada/app'
    """
    scheme, colon, rest = uri.partition("://")
    if not colon:
        return uri
    try:
        rest = ecma.decode_uri_component(rest)
    except ValueError:
        return uri
    if scheme.lower() != "file":
        return f"{scheme}://{rest}"
    authority, slash, path = rest.partition("/")
    return _file_path(authority, slash + path)


def _file_path(authority: str, path: str) -> str:
    if authority and authority != "localhost":
        return f"//{authority}{path}".replace("/", "\\")
    return path[1:] if _DRIVE.match(path) else path


def slug_of(path: str) -> str:
    r"""Name of the transcript folder of a project.

    >>> slug_of("/home/ada/my.app"), slug_of("c:\\dev\\app"), slug_of("/mnt/d/1_x/y")
    ('home-ada-my-app', 'c-dev-app', 'mnt-d-1_x-y')
    """
    return _SEPARATORS.sub("-", path).strip("-")


def path_of_slug(slug: str, known: Iterable[str]) -> str:
    """The one known project that a transcript folder stands for; else its name, which can't be decoded.

    >>> path_of_slug("home-ada-app", ["/home/ada/app", "/srv/x"]), path_of_slug("srv-y", [])
    ('/home/ada/app', 'srv-y')
    """
    if slug == "empty-window":
        return ""
    wanted = slug.replace("_", "-").lower()
    fits = {path for path in known if slug_of(path).replace("_", "-").lower() == wanted}
    return fits.pop() if len(fits) == 1 else slug


def stat_or_none(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Status of a file; None where there is none."""
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None
