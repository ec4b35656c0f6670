"""SHA-256 of a candidate's bytes: what equal size and time can't prove.

Source: ``pinned-importer.md`` section 10. A database's write-ahead log counts as a part of it.
"""

from __future__ import annotations

import hashlib
import os

from crystal_nb.adapters.base import open_file
from crystal_nb.records import Candidate

__all__ = ["Fingerprints"]


class Fingerprints:
    """Fingerprints of one run; many conversations of one database cost one reading.

    >>> Fingerprints()(Candidate("codex", "7", "/no/such/file", 1, "", "")) is None
    True
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int, int], str] = {}

    def __call__(self, candidate: Candidate) -> str | None:
        """Fingerprint of the candidate's file as it is now; None when it can't be read."""
        try:
            status = os.stat(candidate.file_path)
            log = _log(candidate.file_path)
            key = (candidate.file_path, status.st_size, status.st_mtime_ns, log.st_mtime_ns if log else 0)
            if key not in self._known:
                self._known = {key: _digest(candidate.file_path, with_log=log is not None)}
            return self._known[key]
        except (OSError, ValueError, TypeError):
            return None


def _log(path: str) -> os.stat_result | None:
    try:
        return os.stat(f"{path}-wal")
    except OSError:
        return None


def _digest(path: str, *, with_log: bool) -> str:
    with open_file(path) as file:
        digest = hashlib.file_digest(file, "sha256")
    if with_log:
        with open_file(f"{path}-wal") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
