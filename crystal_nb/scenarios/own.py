"""A person's own conversation as the subject of a scenario: a copy, the original is only read."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from crystal_nb import hashing, importer
from crystal_nb.adapters import get_adapter
from crystal_nb.adapters.base import read_file
from crystal_nb.config import Config, checked
from crystal_nb.errors import ConfigError
from crystal_nb.records import Candidate, Fate
from crystal_nb.scenarios.subjects import Ability, Variant

__all__ = ["OwnSubject", "own_subject"]

_WORD = re.compile(rb"[A-Za-z]{4,}")
_TRIES = 50


class OwnSubject(Struct, frozen=True):
    """Bytes of a conversation's file and where they can be changed."""

    source: str
    data: bytes
    place: Path
    """Where the file stands below the home folder."""
    word: tuple[int, int]
    """A word of a message."""
    cut: int | None
    """Where the last message's record begins; None where the file has no such place."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the variants of this subject can be."""
        return frozenset({"append"} if self.cut is not None else ())

    def put(self, home: Path, variant: Variant, *, id: str | None = None, shared: bool = False) -> Path:
        """See `subjects.Subject`; there is only the one conversation."""
        path = home / self.place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._bytes(variant))
        return path

    def _bytes(self, variant: Variant) -> bytes:
        base = self.data if self.cut is None else self.data[: self.cut]
        start, stop = self.word
        word = self.data[start:stop]
        if variant == "appended":
            return self.data
        if variant == "same-size-edit":
            return base[:start] + _another(word) + base[stop:]
        if variant == "edited":
            return base[:start] + word + b"Edited" + base[stop:]
        return base + b" \n" if variant == "padded" else base


def _another(word: bytes) -> bytes:
    return word[:-1] + (b"x" if word[-1:] != b"x" else b"y")


def own_subject(candidate: Candidate, *, config: Config | None = None) -> OwnSubject:
    """Make a subject of one's own candidate.

    Parameters
    ----------
    candidate
        A candidate in a file of its own below the home folder.
    config
        The configuration that the scan had.

    Raises
    ------
    ConfigError
        If it has no file of its own there, or no word in it can be changed so that a message changes.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> from crystal_nb.candidates import as_candidates
    >>> config = cnb.samples.config()
    >>> own_subject(as_candidates(cnb.scan("codex", config=config))[0], config=config).place.parts[:2]
    ('.codex', 'sessions')
    """
    config = checked(config)
    path = Path(candidate.file_path)
    try:
        place = path.resolve().relative_to(config.home_path.resolve())
    except ValueError:
        raise ConfigError(
            f"{path} is not below the home folder {config.home_path}, where a copy would be found"
        ) from None
    if path.suffix not in (".json", ".jsonl"):
        raise ConfigError(f"{path} holds many conversations; a subject needs a file of its own")
    data = read_file(path)
    subject = OwnSubject(candidate.source, data, place, (0, 0), _last_record(candidate, config))
    for word in _words(data, candidate, config):
        tried = OwnSubject(candidate.source, data, place, word, subject.cut)
        if _changes_messages(tried):
            return tried
    raise ConfigError(f"{path}: no word found whose change changes a message")


def _fates(candidate: Candidate, config: Config) -> tuple[Fate, ...]:
    corpus = importer.parse([candidate], config=config)
    if corpus.failed:
        raise ConfigError(corpus.failed[0].message)
    return corpus.parsed[0].fates


def _last_record(candidate: Candidate, config: Config) -> int | None:
    """Where the record of the last of at least three messages begins."""
    kept = [f.offset for f in _fates(candidate, config) if f.status == "kept" and f.line is not None]
    return kept[-1] if len(kept) > 2 else None


def _words(data: bytes, candidate: Candidate, config: Config) -> Iterator[tuple[int, int]]:
    """Places of words, those of kept records only where a file has lines."""
    kept = [f for f in _fates(candidate, config) if f.status == "kept"]
    first = kept[0] if kept and kept[0].offset is not None and kept[0].size else None
    start, stop = (first.offset or 0, (first.offset or 0) + (first.size or 0)) if first else (0, len(data))
    words = [match.span() for match in _WORD.finditer(data, start, stop)]
    yield from reversed(words[-_TRIES:])
    yield from words[:_TRIES]


def _changes_messages(subject: OwnSubject) -> bool:
    hashes = set()
    for variant in ("base", "same-size-edit", "edited"):
        with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
            subject.put(Path(folder), variant)
            config = Config(home=folder, platform="linux", cache_seconds=0)
            corpus = importer.parse(importer.find_candidates(get_adapter(subject.source), config=config), config=config)
            hashes |= {hashing.content_hash(c) for c in corpus if len(c.messages) >= 2}
    return len(hashes) == 3
