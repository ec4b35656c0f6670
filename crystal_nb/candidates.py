"""Candidates as rows of a frame and back."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from crystal_nb import ecma
from crystal_nb.errors import ConfigError
from crystal_nb.records import Candidate

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Candidates", "as_candidates", "candidate_row", "wrong_in_candidate"]

Candidates: TypeAlias = Union["pl.DataFrame", "pl.LazyFrame", Iterable[Candidate]]
"""What the importer takes: a frame made by a scan, or records."""

_NEEDED = ("source", "id", "file_path")
_COMPARED = ("file_size", "file_mtime_text")


def as_candidates(candidates: Candidates, *, for_store: bool = False) -> list[Candidate]:
    """Records of a frame or of an iterable; for a store, with what says whether a file changed.

    Raises
    ------
    ConfigError
        If the frame lacks a column, or something else than a `Candidate` comes.

    >>> as_candidates([Candidate("codex", "7", "/f", 1, "", "")])[0].id
    '7'
    """
    if isinstance(candidates, Candidate):
        return checked_candidates([candidates])
    frame: Any = candidates.collect() if hasattr(candidates, "collect") else candidates
    if hasattr(frame, "iter_rows"):
        needed = _NEEDED + (_COMPARED if for_store else ())
        missing = [name for name in needed if name not in frame.columns]
        if missing:
            raise ConfigError(f"the candidates frame lacks {', '.join(missing)}; it needs {', '.join(needed)}")
        return checked_candidates([_candidate(row) for row in frame.iter_rows(named=True)])
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        hint = " (an await is missing)" if isinstance(candidates, Awaitable) else ""
        raise ConfigError(f"{_WANTED}, not {type(candidates).__name__}{hint}")
    listed: list[Any] = list(candidates)
    for wrong in (c for c in listed if not isinstance(c, Candidate)):
        raise ConfigError(f"{_WANTED}, not {type(wrong).__name__}")
    return checked_candidates(listed)


def checked_candidates(listed: list[Candidate]) -> list[Candidate]:
    """The candidates themselves, when their fields are of the documented types.

    Raises
    ------
    ConfigError
        With the first that is not.
    """
    for number, candidate in enumerate(listed):
        for problem in wrong_in_candidate(candidate):
            raise ConfigError(f"candidates[{number}] of {ecma.to_text(candidate.source)}: {problem}")
    return listed


_WANTED = "candidates are a frame made by scan or Candidate records"


_EXACT: dict[tuple[str, Any, Any], tuple[Any, Any]] = {}
"""Ids and paths that a frame can't hold (a number, bytes that are no UTF-8), by what it shows."""


def _candidate(row: Mapping[str, Any]) -> Candidate:
    shown = (row["source"], row.get("candidate_id", row["id"]), row["file_path"])  # one of conversations will do
    source, id, file_path = shown
    try:
        id, file_path = _EXACT.get(shown, (id, file_path))
    except TypeError as error:
        raise ConfigError("source, id and file_path of candidates must be texts") from error
    return Candidate(
        source=source,
        id=id,
        file_path=file_path,
        file_size=row.get("file_size") or 0,
        file_mtime=row.get("file_mtime_text") or "",
        project_dir=row.get("project_dir") or "",
        parser_version=row.get("parser_version"),
    )


def wrong_in_candidate(candidate: Candidate) -> Iterator[str]:
    """What is not of its documented type in a candidate; sources, ids and paths are what a tool's list has.

    >>> list(wrong_in_candidate(Candidate("codex", "7", "/f", "12", "", None)))
    ['file_size is a whole number, not str', 'project_dir is text, not NoneType']
    """
    if not isinstance(candidate.file_size, int) or isinstance(candidate.file_size, bool):
        yield f"file_size is a whole number, not {type(candidate.file_size).__name__}"
    for field in ("file_mtime", "project_dir"):
        value = getattr(candidate, field)
        if not isinstance(value, str):
            yield f"{field} is text, not {type(value).__name__}"


def _shown(value: Any) -> str:
    return ecma.to_utf8_safe(ecma.to_text(value))


def candidate_row(c: Candidate) -> dict[str, Any]:
    """Row of a candidates frame."""
    shown = (c.source, None if c.id is None else _shown(c.id), _shown(c.file_path))
    if shown != (c.source, c.id, c.file_path):
        _EXACT[shown] = (c.id, c.file_path)
    return {
        "source": c.source,
        "id": c.id,
        "project_dir": c.project_dir,
        "file_size": c.file_size,
        "file_mtime": c.file_mtime,
        "file_mtime_text": c.file_mtime,
        "file_path": c.file_path,
        "parser_version": c.parser_version,
    }
