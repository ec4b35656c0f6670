"""Where the tools' folders are, which sources are on, which clock is asked.

Source: ``pinned-importer.md`` section 7 and the "Where the files live" part of each format page.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from crystal_nb.errors import ConfigError

__all__ = ["BUILT_IN_SOURCES", "PROFILES", "Config", "Profile", "checked"]

BUILT_IN_SOURCES = ("claude-code", "codex", "cursor", "trae", "copilot")
"""The five sources that ChatCrystal supports, in the order in which it imports them."""

Profile = Literal["chatcrystal", "careful"]
PROFILES: tuple[Profile, ...] = ("chatcrystal", "careful")
"""Sets of rules: ``chatcrystal`` is the pinned importer's. (``careful`` comes with its parsers.)"""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of a scan or parse; everything has a default.

    Parameters
    ----------
    home
        Home folder to read. Default: the user's, together with the environment's overrides
        (``CLAUDE_PROJECTS_DIR`` and the like). When given, the environment is left aside unless
        `environ` is given too, so that another home is really what is read.
    folders
        Data folder per adapter name; wins over home and environment. It must exist.
    enabled_sources
        Names of the adapters that a scan without names uses. Default: the five built-ins.
    platform
        ``sys.platform`` style name that decides where VS Code-like tools keep their files.
    environ
        Environment variables.
    cache_seconds
        How long Codex file lists, Cursor window and orphan lists and Copilot session lists are kept,
        counted from the end of their reading; 0 switches the cache off. Pinned: 5.
    clock
        Gives the current time in ms since the epoch; the pinned rules put it where a time is missing.

    >>> Config(home="/home/ada", platform="linux").user_data("Cursor").as_posix()
    '/home/ada/.config/Cursor/User'
    """

    home: str | os.PathLike[str] | None = None
    folders: Mapping[str, str | os.PathLike[str]] = field(default_factory=dict)
    enabled_sources: Sequence[str] = BUILT_IN_SOURCES
    platform: str = sys.platform
    environ: Mapping[str, str] | None = None
    cache_seconds: float = 5.0
    clock: Callable[[], int] = _now_ms

    def __post_init__(self) -> None:
        if self.home is not None and not isinstance(self.home, (str, os.PathLike)):
            raise ConfigError(f"home must be a path, not {type(self.home).__name__}")
        if not isinstance(self.folders, Mapping):
            raise ConfigError(f"folders must map adapter names to paths, not {type(self.folders).__name__}")
        if isinstance(self.enabled_sources, str) or not isinstance(self.enabled_sources, Sequence):
            raise ConfigError(f"enabled_sources must be a list of names, not {self.enabled_sources!r}")
        if not isinstance(self.cache_seconds, (int, float)) or not self.cache_seconds >= 0:
            raise ConfigError(f"cache_seconds must be 0 (off) or more, not {self.cache_seconds!r}")

    @property
    def home_path(self) -> Path:
        """The home folder in use."""
        try:
            if self.home is None:
                return Path.home()
            home = os.fspath(self.home)
            return _same_anywhere(home) if os.path.isabs(home) else _absolute(home)
        except RuntimeError as error:
            raise ConfigError(f"home: {error} Name one by Config(home=…) or --home.") from None

    def env(self, name: str) -> str:
        """Value of an environment variable, ``""`` when unset or set aside."""
        if self.environ is not None:
            return self.environ.get(name, "")
        return os.environ.get(name, "") if self.home is None else ""

    def folder(self, adapter: str, variable: str, default: Path) -> Path:
        """Folder of an adapter: configured, else from the environment, else the default.

        Raises
        ------
        ConfigError
            If a configured folder is missing or is no folder.
        """
        configured = self.folders.get(adapter)
        if configured is not None:
            path = Path(configured).expanduser()
            if not path.is_dir():
                what = "is not a folder" if path.exists() else "does not exist"
                raise ConfigError(f"folders[{adapter!r}]: {path} {what}")
            return path
        override = self.env(variable) if variable else ""
        return self.expand(override) if override else default

    def expand(self, value: str) -> Path:
        """Read a path setting as the pinned importer does: ``~x`` is home plus what follows the first two characters.

        >>> Config(home="/home/ada").expand("~/logs").as_posix()
        '/home/ada/logs'
        """
        if value.startswith("~"):
            return self.home_path / value[2:]
        return Path(os.path.abspath(value))

    def user_data(self, product: str) -> Path:
        """The ``User`` folder of a VS Code-like product on this platform."""
        if self.platform == "win32":
            return Path(self.env("APPDATA") or self._windows_app_data()) / product / "User"
        if self.platform == "darwin":
            return self.home_path / "Library" / "Application Support" / product / "User"
        return self.home_path / ".config" / product / "User"

    def _windows_app_data(self) -> str:
        return str(self.home_path / "AppData" / "Roaming") if self.home is not None else ""

    @classmethod
    def load(cls, path: str | os.PathLike[str], **overrides: Any) -> Config:
        """Read ``enabledSources`` and ``folders`` from a JSON file, as ChatCrystal's configuration has them.

        Built-in sources that the list lacks are appended, as the pinned importer does: a source that
        a person had switched off comes back.

        Parameters
        ----------
        path
            JSON file; other keys in it are ignored.
        overrides
            Settings that win over the file's.

        Raises
        ------
        ConfigError
            If the file can't be read, is no JSON object, or a key has the wrong type.
        """
        values = {**_read_settings(Path(path)), **overrides}
        enabled = list(cls(**values).enabled_sources)
        values["enabled_sources"] = enabled + [name for name in BUILT_IN_SOURCES if name not in enabled]
        return cls(**values)


def _absolute(home: str) -> Path:
    return Path(os.path.abspath(Path(home).expanduser()))


_same_anywhere = functools.lru_cache(maxsize=8)(_absolute)
"""For a home that depends on neither the folder nor the user; each candidate's parse asks for it."""


def checked(config: Config | None) -> Config:
    """The configuration, or the default one for None.

    Raises
    ------
    ConfigError
        If it is something else, or its home is no folder.
    """
    if config is None:
        return Config()
    if not isinstance(config, Config):
        raise ConfigError(f"config must be a Config, not {type(config).__name__}")
    if config.home is not None and not config.home_path.is_dir():
        raise ConfigError(f"home: {config.home_path} is no folder")
    return config


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must hold a JSON object, not {type(document).__name__}")
    enabled = document.get("enabledSources", list(BUILT_IN_SOURCES))
    folders = document.get("folders", {})
    if not (isinstance(enabled, list) and all(isinstance(name, str) for name in enabled)):
        raise ConfigError(f"{path}: enabledSources must be a list of adapter names")
    if not (isinstance(folders, dict) and all(isinstance(folder, str) for folder in folders.values())):
        raise ConfigError(f"{path}: folders must map adapter names to paths")
    return {"enabled_sources": enabled, "folders": folders}
