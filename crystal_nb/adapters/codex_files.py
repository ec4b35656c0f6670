"""Rollout files: which there are, whose they are, how a compressed one is read.

Source: ``formats/codex.md`` section 1. No file but a candidate's own is read unless its lineage asks
for it, and then only for what `head_of` and `turns_of` say; both are kept by path, time and size.
"""

from __future__ import annotations

import functools
import io
import os
import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import Struct

from crystal_nb import ecma
from crystal_nb.adapters.base import TimedCache, list_names, open_file
from crystal_nb.adapters.codex_shapes import HEAD, Head, HeadPayload, as_text
from crystal_nb.adapters.jsonl import read_blocks
from crystal_nb.adapters.zstd_frames import ends_midway
from crystal_nb.config import Config

__all__ = ["Opened", "Rollout", "head_of", "open_rollout", "rollouts", "sessions_root", "turns_of"]

_LONGEST_HEAD = 1 << 24
_STAMPED = re.compile("rollout-([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2})-(.+)", re.DOTALL)
_DATED = re.compile("rollout-([0-9]{4}-[0-9]{2}-[0-9]{2})-(.+)", re.DOTALL)
_UUID = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LONGEST_LINE = 256 << 20
_FREE_BYTES, _MOST_BYTES = 64 << 20, 200
_FREE_LINES, _MOST_LINES = 100_000, 1
"""What compressed data may unfold to in any case, and per compressed byte; histories give about 10 bytes for one."""


class Rollout(Struct, frozen=True):
    """One rollout file."""

    path: str
    thread: str
    """Id of the thread: from a name of the usual form, else from the first line, else the name."""
    rollout: str
    """Id of the rollout; the thread's for its first one."""
    stamp: str
    """Time in the name."""
    is_archived: bool
    id: str
    """The candidate's id."""


class Opened:
    """A file, decompressed where its name says so, for one pass from its beginning.

    What is damaged in the compressed data, or cut off from it, ends the reading and is told by `damage`.
    Data that unfolds without measure is refused with an ``OSError``.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.damage: str | None = None
        self._is_packed = str(path).endswith(".zst")
        zstandard = _zstandard() if self._is_packed else None
        self._file: Any = open_file(path)
        self._descriptor = self._file.fileno()
        self._packed = os.fstat(self._descriptor).st_size
        self._bytes = self._lines = self._line_bytes = 0
        if zstandard is not None:
            self._error: type[Exception] = zstandard.ZstdError
            self._file = zstandard.ZstdDecompressor().stream_reader(self._file, read_across_frames=True)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def readinto(self, buffer: Any) -> int:
        """Read on; 0 at the end."""
        if not self._is_packed:
            return self._file.readinto(buffer) or 0
        try:
            count = self._file.readinto(buffer) or 0
            if not count and self._is_cut():
                self.damage = "it ends in the middle of a frame"
        except self._error as error:
            self.damage = str(error)
            return 0
        self._refuse_bomb(bytes(buffer[:count]))
        return count

    def _is_cut(self) -> bool:
        with open(self._descriptor, "rb", closefd=False) as file:
            is_cut = ends_midway(file)
            file.seek(0, os.SEEK_END)  # who reads on is still at the end
            return is_cut

    def _refuse_bomb(self, data: bytes) -> None:
        """Stop where far more comes out than any history holds: each line is a record in memory."""
        self._bytes += len(data)
        self._lines += data.count(b"\n") + data.count(b"\r")
        self._line_bytes = len(data) - 1 - end if (end := data.rfind(b"\n")) >= 0 else self._line_bytes + len(data)
        if self._line_bytes > _LONGEST_LINE:
            raise OSError("too large: a line of more than 256 MB in compressed data")
        too_long = self._bytes > max(_FREE_BYTES, _MOST_BYTES * self._packed)
        if too_long or self._lines > _FREE_LINES + _MOST_LINES * self._packed:
            unfolded = f"{self._bytes:,} bytes with {self._lines:,} line ends and more"
            raise OSError(f"too large: {self._packed:,} compressed bytes unfold to {unfolded}")


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise OSError(f"compressed, not read: {error}") from error
    return zstandard


def open_rollout(path: str | PathLike[str]) -> Opened:
    """Open a rollout; raises OSError as `open_file` does, and where there is no zstd library."""
    return Opened(path)


def sessions_root(config: Config) -> Path:
    """The folder of rollouts: as pinned, but an override of the home counts, too.

    >>> sessions_root(Config(home="/home/ada", environ={"CODEX_HOME": "/data/codex"})).as_posix()
    '/data/codex/sessions'
    """
    home = config.env("CODEX_HOME")
    default = config.expand(home) if home else config.home_path / ".codex"
    return config.folder("codex", "CODEX_SESSIONS_DIR", default / "sessions")


_ROLLOUTS: TimedCache[list[Rollout]] = TimedCache()


def rollouts(root: Path, config: Config, *, cold: bool = True, revisions: bool = True) -> list[Rollout]:
    """All rollouts: the folder's, then the archived ones, each file once.

    Plain goes before its compressed sibling, live before an archived file of the same name. Of several
    rollouts of one thread the newest has the thread's id, the others ``<thread>/<rollout>``, and where
    that is taken, too, ``#2`` and so on.

    Raises
    ------
    OSError
        If the folder can't be listed.
    """
    key = (str(root), cold, revisions)
    return _ROLLOUTS.get(key, config.cache_seconds, lambda: _list(root, cold, revisions))


def _list(root: Path, cold: bool, revisions: bool) -> list[Rollout]:
    roots = [os.path.abspath(root)]
    archive = os.path.join(os.path.dirname(roots[0]), "archived_sessions")
    if cold and os.path.basename(roots[0]) == "sessions" and os.path.isdir(archive):
        roots.append(archive)
    found: dict[str, Rollout] = {}
    live: set[str] = set()
    for folder in roots:
        here = [path for path in _walk(folder, cold) if os.path.isfile(path)] if os.path.isdir(folder) else []
        plain = {path.removesuffix(".zst"): path for path in sorted(here, reverse=True)}
        for place, path in plain.items():
            one = _rollout(path, os.path.basename(place), folder == archive)
            name = os.path.basename(place)
            if not (one.is_archived and name in live and _UUID.search(name)):
                found[place] = one
        live = {os.path.basename(place) for place in plain}
    return _with_ids(sorted(found.values(), key=lambda r: (r.is_archived, os.fsencode(r.path))), revisions)


def _walk(root: str, cold: bool) -> Iterator[str]:
    """Depth first, names in byte order, folders behind links not entered."""
    endings = (".jsonl", ".jsonl.zst", ".json") if cold else (".jsonl",)
    waiting = [(os.path.dirname(root), os.path.basename(root))]
    while waiting:
        folder, name = waiting.pop()
        path = os.path.join(folder, name)
        if path == root or (os.path.isdir(path) and not os.path.islink(path)):
            waiting += ((path, inner) for inner in reversed(list_names(path)))
        elif name.startswith("rollout-") and name.endswith(endings):
            yield path


def _rollout(path: str, name: str, is_archived: bool) -> Rollout:
    stem = name.removesuffix(".jsonl").removesuffix(".json")
    match = _STAMPED.fullmatch(stem) or _DATED.fullmatch(stem)
    stamp, rest = (match[1], match[2]) if match else ("", stem)
    thread, _, rollout = rest.partition("_")
    if not (_UUID.fullmatch(thread) and (not rollout or _UUID.fullmatch(rollout))):
        head = None if name.endswith(".json") else head_of(path)
        thread, rollout = (head and head.id) or rest, ""
    return Rollout(path, thread, rollout or thread, stamp, is_archived, "")


def _with_ids(found: list[Rollout], revisions: bool) -> list[Rollout]:
    newest: dict[str, Rollout] = {}
    for one in found:
        before = newest.get(one.thread)
        if before is None or _age(one) > _age(before):
            newest[one.thread] = one
    used: set[str] = set()
    named = []
    for one in found:
        is_newest = newest[one.thread] is one or not revisions
        id = name = one.thread if is_newest else f"{one.thread}/{one.rollout}"
        number = 1
        while id in used or (id in newest and not is_newest):
            number += 1
            id = f"{name}#{number}"
        used.add(id)
        named.append(Rollout(one.path, one.thread, one.rollout, one.stamp, one.is_archived, id))
    return named


def _age(one: Rollout) -> tuple[bool, str, bool, str]:
    return not one.is_archived, one.stamp, one.rollout != one.thread, one.rollout


def head_of(path: str) -> HeadPayload | None:
    """What the first line says of the thread; None where it is no session_meta or can't be read."""
    try:
        status = os.stat(path)
        return _head(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return None


@functools.lru_cache(maxsize=4096)
def _head(path: str, mtime_ns: int, size: int) -> HeadPayload | None:
    with open_rollout(path) as file:
        line = _first_line(file)
    try:
        head = HEAD.decode(line.removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r\n"))
    except ValueError:
        return None
    if not isinstance(head, Head):
        return None
    if head.payload is None and head.type is None and as_text(head.id):
        return HeadPayload(head.id)  # the shape of mid 2025
    if not isinstance(head.payload, HeadPayload):
        return None
    payload = head.payload
    return payload if head.type == "session_meta" and as_text(payload.id) else None


def _first_line(file: Opened) -> bytes:
    """The first line, cut at 16 MiB."""
    buffer, data = bytearray(1 << 16), io.BytesIO()
    while data.tell() < _LONGEST_HEAD and (count := file.readinto(buffer)):
        data.write(buffer[:count])
        if b"\n" in buffer[:count]:
            break
    return data.getvalue().partition(b"\n")[0]


def turns_of(path: str) -> tuple[str, ...]:
    """Ids of the turns of a rollout in order; none where it can't be read."""
    try:
        status = os.stat(path)
        return _turns(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return ()


@functools.lru_cache(maxsize=64)
def _turns(path: str, mtime_ns: int, size: int) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for block in read_blocks(path, HEAD, open=open_rollout):
        for record in block.records:
            if isinstance(record, Head) and isinstance(payload := record.payload, HeadPayload):
                kind = record.type if record.type == "turn_context" else payload.type
                if kind in ("turn_context", "task_started", "turn_started") and as_text(payload.turn_id):
                    found[ecma.to_text(payload.turn_id)] = None
    return tuple(found)
