"""Side effects: nothing in the home changes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from crystal_nb.contract.reading import moved, reading
from crystal_nb.contract.stage import Check, Failed, Stage, check, copy_home

__all__ = ["CHECKS", "state"]


def state(home: Path) -> dict[str, Any]:
    """Every file and folder below: mode, time and bytes.

    >>> state(Path(tempfile.mkdtemp()))
    {}
    """
    found: dict[str, Any] = {}
    for folder, folders, names in os.walk(home):
        for name in (*folders, *names):
            path = Path(folder, name)
            status = os.lstat(path)
            data = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[path.relative_to(home).as_posix()] = (status.st_mode, status.st_mtime_ns, status.st_size, data)
    return found


@check("side effects", "home untouched")
def untouched(stage: Stage) -> str:
    """After detect, scan and parse every file and folder of the home is as before: names, bytes, times, modes.

    That is looked at in a copy; the author's own files must not have changed either in all these checks.
    """
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        home = Path(folder, "home")
        copy_home(stage.home, home)
        before = state(home)
        reading(stage.adapter, stage.config(home))
        gone = moved(before, state(home))
    gone += [f"the author's own {name}" for name in moved(stage.author_state, state(stage.author_home))]
    if gone:
        raise Failed("changed", gone)
    return f"{len(before)} files and folders as before"


CHECKS: tuple[Check, ...] = (untouched,)
