"""Sessions of TRAE CLI, which writes the rollouts of Codex CLI: read by the rules of ``codex@2``.

Source: ``formats/trae.md`` section 1 and 5 ("TRAE CLI 2.0").
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from msgspec.structs import replace

from crystal_nb.adapters.base import Parsed
from crystal_nb.adapters.codex import LATER
from crystal_nb.config import Config
from crystal_nb.errors import ParseError
from crystal_nb.records import Candidate

__all__ = ["CODEX", "cli_candidates", "cli_folders", "cli_sessions_of", "read_cli"]

CODEX = next(adapter for adapter in LATER if adapter.parser_version == "codex@2")
_HOMES = (".trae", ".trae-cn")
_FOLDERS = ("sessions", "archived_sessions")


def cli_folders(config: Config) -> list[Path]:
    """Folders of sessions that are there."""
    folders = (config.home_path / home / "cli" / "sessions" for home in _HOMES)
    return [folder for folder in folders if folder.is_dir()]


def cli_candidates(folder: Path, config: Config) -> list[Candidate]:
    """Sessions of one folder, as Codex's rules list them.

    Raises
    ------
    OSError
        If a folder can't be listed.
    """
    here = _as_codex(folder, config)
    return [replace(candidate, source="trae") for candidate in CODEX.candidates(CODEX.root(here), here)]


def cli_sessions_of(path: str) -> Path | None:
    """The folder of sessions to which a file belongs; None for any other file.

    >>> cli_sessions_of("/home/ada/.trae/cli/archived_sessions/rollout-1.jsonl").as_posix()
    '/home/ada/.trae/cli/sessions'
    >>> cli_sessions_of("/home/ada/state.vscdb") is None
    True
    """
    parents = (folder for folder in Path(path).parents if folder.name in _FOLDERS and folder.parent.name == "cli")
    return next((folder.with_name("sessions") for folder in parents), None)


def read_cli(candidate: Candidate, folder: Path, config: Config) -> Parsed:
    """Parse one session.

    Raises
    ------
    ParseError, OSError
        As Codex's parser does.
    """
    try:
        parsed = CODEX.read(replace(candidate, source=CODEX.name), CODEX.rules, _as_codex(folder, config))
    except ParseError as error:
        ours = ParseError(error.reason, source="trae", path=error.path)
        ours.line, ours.offset, ours.row = error.line, error.offset, error.row
        raise ours from error
    return replace(parsed, conversation=replace(parsed.conversation, source="trae"))


def _as_codex(folder: Path, config: Config) -> Config:
    """The configuration under which Codex's rules look into that folder and nowhere else."""
    return dataclasses.replace(config, folders={CODEX.name: folder}, environ={})
