"""Determinism: what is read does not depend on where and when it is read."""

from __future__ import annotations

import json
import locale
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from crystal_nb.adapters import versions
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.contract.reading import moved, reading, without_ids
from crystal_nb.contract.stage import CLOCK_MS, CannotCheck, Check, Failed, Stage, check, copy_home, some

__all__ = ["CHECKS"]

_YEAR_MS = 366 * 24 * 3600 * 1000
_ZONES = ("Pacific/Kiritimati", "America/St_Johns")
_LOCALES = ("C", "tr_TR.UTF-8", "de_DE.UTF-8", "C.UTF-8")
_TIMEOUT = 30
_PROBING = "CRYSTAL_NB_PROBING"
"""Set in the other process, so that a module that checks itself while it is imported starts no further one."""


def _compare(stage: Stage, what: str, read_again: Callable[[], dict[str, str]]) -> str:
    """Say what moves under another setting, beyond what moves from one reading to the next anyway."""
    before = reading(stage.adapter, stage.config())
    restless = set(moved(before, reading(stage.adapter, stage.config())))
    gone = [name for name in moved(without_ids(before), without_ids(read_again())) if name not in restless]
    if gone:
        raise Failed(f"under {what} these move", gone)
    return f"{len(before):,} values stay under {what}"


@check("determinism", "same again")
def same_again(stage: Stage) -> str:
    """Two readings under the same settings give the same, ids aside."""
    first, second = (without_ids(reading(stage.adapter, stage.config())) for _ in range(2))
    if gone := moved(first, second):
        raise Failed("from one reading to the next these move", gone)
    return f"{len(first):,} values are the same in two readings"


@check("determinism", "clock")
def clock(stage: Stage) -> str:
    """Another time on the configuration's clock gives the same."""
    return _compare(
        stage,
        "another clock",
        lambda: reading(stage.adapter, stage.config(clock=lambda: CLOCK_MS + _YEAR_MS)),
    )


@check("determinism", "time zone")
def time_zone(stage: Stage) -> str:
    """Another time zone of the process gives the same."""
    if not hasattr(time, "tzset"):
        raise CannotCheck("this platform can't change a process's time zone")

    def read_again() -> dict[str, str]:
        with _time_zone(_other_zone()):
            return reading(stage.adapter, stage.config())

    return _compare(stage, "another time zone", read_again)


def _other_zone() -> str:
    return next(zone for zone in _ZONES if zone != os.environ.get("TZ"))


@contextmanager
def _time_zone(name: str) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


@check("determinism", "locale")
def other_locale(stage: Stage) -> str:
    """Another locale of the process gives the same."""
    names = []

    def read_again() -> dict[str, str]:
        found: dict[str, str] = {}
        for name in _LOCALES:
            with _locale(name) as is_there:
                if is_there:
                    names.append(name)
                    found |= {} if found else reading(stage.adapter, stage.config())
                    again = reading(stage.adapter, stage.config())
                    found |= {key: again.get(key, "") for key in moved(found, again)}
        return found

    _compare(stage, "another locale", read_again)
    return f"the same under {some(names)}"


@contextmanager
def _locale(name: str) -> Iterator[bool]:
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error:
        yield False
        return
    try:
        yield True
    finally:
        locale.setlocale(locale.LC_ALL, before)


@check("determinism", "directory order")
def directory_order(stage: Stage) -> str:
    """Folders that list their names in another order give the same."""
    return some(
        [_compare(stage, f"names {way}", partial(_read_listed, stage, way)) for way in ("forwards", "backwards")]
    )


def _read_listed(stage: Stage, way: str) -> dict[str, str]:
    """Read a copy whose folders list their names that way."""
    backwards = way == "backwards"
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        home = Path(folder, "home")
        copy_home(stage.home, home, backwards=backwards)
        with _listing(backwards):
            found = reading(stage.adapter, stage.config(home))
        return {name: value.replace(str(home), str(stage.home)) for name, value in found.items()}


class _Listed:
    """What ``os.scandir`` gives, in an order of names."""

    def __init__(self, entries: Any, backwards: bool) -> None:
        with entries:
            self._entries = iter(sorted(entries, key=lambda e: e.name, reverse=backwards))

    def __iter__(self) -> _Listed:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Listed:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


@contextmanager
def _listing(backwards: bool) -> Iterator[None]:
    """Have this process list folders in an order of names, as far as they are asked by ``os``."""
    names, entries = os.listdir, os.scandir
    os.listdir = lambda *args: sorted(names(*args), reverse=backwards)  # type: ignore[assignment]
    os.scandir = lambda *args: _Listed(entries(*args), backwards)  # type: ignore[assignment]
    try:
        yield
    finally:
        os.listdir, os.scandir = names, entries


@check("determinism", "hash seed")
def hash_seed(stage: Stage) -> str:
    """A process with another hash seed (order of sets) gives the same."""
    place = None if _PROBING in os.environ else _place_of(stage.adapter)
    if place is None:
        raise CannotCheck("another process can't import the adapter: it is no attribute of a module in a file")
    return _compare(stage, "another hash seed", lambda: _read_elsewhere(stage, place))


def _place_of(adapter: SourceAdapter) -> tuple[str, str] | None:
    """File of a module and name in it, or ``""`` and a released version, under which others find the adapter."""
    for version, released in versions().items():
        if released is adapter:
            return "", version
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        # a script would run itself again and again
        if file and str(file).endswith(".py") and module.__name__ != "__main__":
            for name, value in list(vars(module).items()):
                if value is adapter:
                    return str(file), name
    return None


def _read_elsewhere(stage: Stage, place: tuple[str, str]) -> dict[str, str]:
    config = stage.config()
    folders = {name: str(path) for name, path in config.folders.items()}
    task = [*place, str(stage.home), config.platform, json.dumps(folders), str(CLOCK_MS)]
    environ = {
        **os.environ,
        _PROBING: "1",
        "PYTHONHASHSEED": "4711" if os.environ.get("PYTHONHASHSEED") != "4711" else "1",
    }
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*map(str, sys.path), environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "crystal_nb.contract.probe", *task]
    run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if run.returncode:
        last = run.stderr.strip().splitlines()[-1:] or ["no message"]
        raise CannotCheck(f"another process could not import the adapter: {last[0]}")
    found: dict[str, str] = json.loads(run.stdout)
    return found


CHECKS: tuple[Check, ...] = (same_again, clock, time_zone, other_locale, hash_seed, directory_order)
