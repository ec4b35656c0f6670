"""Sample histories of every source, bundled with the package.

They are invented, small, and show what each tool's files look like, including what the pinned rules
lose. Reading them is reading copies in a temporary folder, which is removed when Python ends.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

from crystal_nb.config import Config

__all__ = ["PACKAGE", "config", "fixtures", "home", "notebooks", "pairs"]

PACKAGE = Path(__file__).parent
"""Folder of the installed package."""
_SAMPLE_TIME_NS = 1_767_225_600_123_400_000
_USER_DATA = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}


def fixtures() -> Path:
    """Folder of the bundled fixtures: in the package of a wheel, beside it in a checkout."""
    return _bundled("fixtures")


def notebooks() -> Path:
    """Folder of the bundled notebooks."""
    return _bundled("notebooks")


def _bundled(name: str) -> Path:
    packed = PACKAGE / "_data" / name
    return packed if packed.is_dir() else PACKAGE.parent / name


@functools.cache
def home() -> Path:
    """A home folder with sample histories of every source, laid out as on this platform.

    File times are fixed, so that results are the same everywhere.

    >>> (home() / ".claude" / "projects").is_dir()
    True
    """
    return _copied("*/sample/home")


def _copied(pattern: str) -> Path:
    """A temporary copy of some homes together."""
    import atexit
    import shutil
    import tempfile

    target = Path(tempfile.mkdtemp(prefix="crystal_nb-samples-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    for scenario in sorted(fixtures().glob(pattern)):
        shutil.copytree(scenario, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
    _settle(target)
    return target


def _settle(target: Path) -> None:
    """Move the VS Code-like folders to where this platform has them and fix all file times."""
    linux = target / ".config"
    if sys.platform in _USER_DATA and linux.is_dir():
        place = target / _USER_DATA[sys.platform]
        place.parent.mkdir(parents=True, exist_ok=True)
        linux.rename(place)
    for folder, _, names in os.walk(target):
        for name in names:
            os.utime(os.path.join(folder, name), ns=(_SAMPLE_TIME_NS, _SAMPLE_TIME_NS))


def config() -> Config:
    """A configuration that reads the samples and nothing of the user's.

    >>> config().home_path == home()
    True
    """
    return Config(home=home())


@functools.cache
def _pairs_home() -> Path:
    return _copied("audit/pairs/home")


def pairs() -> Config:
    """A configuration that reads conversations which only one field of the content hash tells apart.

    They are no part of the samples. `ablate` finds a pair for each of the eight fields.

    >>> import crystal_nb as cnb
    >>> config = pairs()
    >>> cnb.ablate(cnb.parse(cnb.scan(config=config), config=config))["groups"].min()
    1
    """
    return Config(home=_pairs_home())
