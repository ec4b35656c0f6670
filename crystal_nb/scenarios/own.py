"""A person's own conversation as the subject of a scenario: a copy, the original is only read."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from crystal_nb import ecma, hashing, importer
from crystal_nb.adapters import get_adapter
from crystal_nb.adapters.base import read_file
from crystal_nb.candidates import Candidates, as_candidates
from crystal_nb.config import Config, checked
from crystal_nb.corpus import ParsedConversation
from crystal_nb.details import without_text
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
    counts: tuple[int, int] = (2, 4)
    """Messages of the base and of the appended variant."""
    drifts: bool = False
    """Whether the id inside is not the candidate's, which by the pinned rules hides everything else."""

    def __repr__(self) -> str:
        return without_text(self, "data")

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


def own_subject(candidate: Candidates, *, config: Config | None = None) -> OwnSubject:
    """Make a subject of one's own candidate.

    Parameters
    ----------
    candidate
        A candidate in a file of its own below the home folder: a frame of one row, or a record.
    config
        The configuration that the scan had.

    Raises
    ------
    ConfigError
        If it is not one candidate, has no file of its own there, or no word in it can be changed so
        that a message changes.

    Examples
    --------
    >>> import crystal_nb as cnb
    >>> config = cnb.samples.config()
    >>> own_subject(cnb.scan("codex", config=config).head(1), config=config).place.parts[:2]
    ('.codex', 'sessions')
    """
    config, listed = checked(config), as_candidates(candidate)
    if len(listed) != 1:
        raise ConfigError(f"a subject is one candidate, not {len(listed)}; filter the frame, or .head(1)")
    return _subject(listed[0], config)


def _subject(candidate: Candidate, config: Config) -> OwnSubject:
    path = Path(ecma.to_text(candidate.file_path))
    try:
        place = path.resolve().relative_to(config.home_path.resolve())
    except ValueError:
        raise ConfigError(
            f"{path} is not below the home folder {config.home_path}, where a copy would be found"
        ) from None
    if path.suffix not in (".json", ".jsonl"):
        raise ConfigError(f"{path} is a database; a subject needs a file of its own, which can be changed")
    try:
        data = read_file(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    parsed = _parsed(candidate, config)
    kept = [f.offset for f in parsed.fates if f.status == "kept" and f.line is not None]
    cut = kept[-1] if len(kept) > 2 else None
    for word in _words(data, parsed.fates):
        tried = OwnSubject(candidate.source, data, place, word, cut)
        counts = _counts_if_it_changes(tried)
        if counts is not None:
            drifts = parsed.conversation.id != candidate.id
            return replace(tried, counts=(counts, len(parsed.conversation.messages)), drifts=drifts)
    raise ConfigError(f"{path}: no word found whose change changes a message")


def _parsed(candidate: Candidate, config: Config) -> ParsedConversation:
    corpus = importer.parse([candidate], config=config)
    if corpus.failed:
        raise ConfigError(corpus.failed[0].message)
    return corpus.parsed[0]


def _words(data: bytes, fates: Sequence[Fate]) -> Iterator[tuple[int, int]]:
    """Places of words, of the first kept record where a file has lines; the last ones are most likely text."""
    first = next((f for f in fates if f.status == "kept"), None)
    start, stop = 0, len(data)
    if first is not None and first.offset is not None and first.size:
        start, stop = first.offset, first.offset + first.size
    words = [match.span() for match in _WORD.finditer(data, start, stop)]
    yield from reversed(words[-_TRIES:])
    yield from words[:_TRIES]


def _counts_if_it_changes(subject: OwnSubject) -> int | None:
    """Messages of the base, if the edits give conversations of as many with other hashes."""
    found: list[tuple[str, int]] = []
    variants: tuple[Variant, ...] = ("base", "same-size-edit", "edited")
    for variant in variants:
        with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
            subject.put(Path(folder), variant)
            config = Config(home=folder, platform="linux", cache_seconds=0)
            corpus = importer.parse(importer.find_candidates(get_adapter(subject.source), config=config), config=config)
            found += [(hashing.content_hash(c), len(c.messages)) for c in corpus]
    digests, numbers = {digest for digest, _ in found}, {number for _, number in found}
    return numbers.pop() if len(digests) == len(found) == len(variants) and len(numbers) == 1 else None
