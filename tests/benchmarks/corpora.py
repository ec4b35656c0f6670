"""The corpora of a run, made when first asked for, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import generate

HERE = Path(__file__).parent
CONVERSATIONS = (125, 250, 500)


@dataclass(frozen=True)
class Corpus:
    """A home folder with the logs of one source."""

    source: str
    home: Path
    facts: dict[str, Any]
    """What its generator measured."""

    @property
    def folder(self) -> Path:
        """Where the source's files are."""
        return generate.data_folder(self.source, self.home)

    def warm(self) -> None:
        """Read everything once, so that no pass pays for the disk."""
        for path in generate.data_files(self.source, self.home):
            with path.open("rb") as file:
                while file.read(1 << 20):
                    pass


class Corpora:
    """Makes corpora below a folder; what is there already is used again."""

    def __init__(self, folder: Path, megabytes: float) -> None:
        self.base, self.megabytes = folder, megabytes
        self.logs = cache(self._logs)

    def _logs(self, source: str, mix: str) -> Corpus:
        name = f"{source}-{mix}-{self.megabytes:g}"
        return self._make(name, source, "--mix", mix, "--mb", str(self.megabytes))

    def cursor(self, conversations: int) -> Corpus:
        """Conversations of the same size, however many."""
        megabytes = self.megabytes * conversations / CONVERSATIONS[-1]
        name = f"cursor-{conversations}-{megabytes:g}"
        return self._make(name, "cursor", "--mb", str(megabytes), "--conversations", str(conversations))

    def small(self) -> Corpus:
        """Three small files of Claude Code."""
        return self._make("small", "claude-code", "--mix", "text-rich", "--mb", "0.06")

    def _make(self, name: str, source: str, *options: str) -> Corpus:
        folder = self.base / name
        facts = folder / "facts.json"
        if not facts.exists():
            folder.mkdir(parents=True)
            command = [sys.executable, str(HERE / "generate.py"), source, str(folder / "home"), *options]
            facts.write_bytes(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return Corpus(source, folder / "home", json.loads(facts.read_bytes()))
