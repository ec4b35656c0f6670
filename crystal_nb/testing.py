"""Checks that an adapter keeps the contract, for notebooks and for tests.

In a notebook ``check_adapter(my_adapter, home="samples")`` gives a frame. In a test file one line is
enough::

    from crystal_nb.testing import adapter_contract

    test_contract = adapter_contract(my_adapter, "samples")
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crystal_nb import samples
from crystal_nb.adapters import get_adapter
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.adapters.usable import usable
from crystal_nb.config import Config, checked
from crystal_nb.contract import damage, determinism, discovery, effects, identity, parsing, reimports
from crystal_nb.contract.known import known_for
from crystal_nb.contract.stage import CannotCheck, Check, Failed, Stage, copy_home, detect_now, scan_now
from crystal_nb.errors import ConfigError
from crystal_nb.foreign import data_folder
from crystal_nb.records import said
from crystal_nb.scenarios.subjects import subject_for

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CHECKS", "adapter_contract", "check_adapter"]

CHECKS: tuple[Check, ...] = (
    *discovery.CHECKS,
    *determinism.CHECKS,
    *identity.CHECKS,
    *parsing.CHECKS,
    *damage.CHECKS,
    *reimports.CHECKS,
    *effects.CHECKS,
)
"""All checks in the order of the frame; the docstring of each one's ``run`` states what has to hold."""


def check_adapter(
    adapter: SourceAdapter | str,
    home: str | os.PathLike[str] | None = None,
    *,
    config: Config | None = None,
) -> pl.DataFrame:
    """Run the contract on an adapter; on copies only.

    Parameters
    ----------
    adapter
        An adapter, registered or not, or a name or released version such as ``codex@1``.
    home
        A home folder with sample files where the tool would have them. The more kinds of records
        they hold, the more is checked. Default: the bundled samples of a built-in source, else what
        the adapter's ``write_sample(home, sample)`` writes: a conversation below the folder ``home``, of
        which it returns the file. ``sample`` has ``id``, ``messages`` with ``role``, ``text``, ``id`` and
        ``time``, ``inner_id`` and ``padding``; see `jsonl_adapter`. An adapter of another kind has it as an
        attribute. Without it the checks of the change policy edit a copy of a sample, which has to be a
        file of JSON lines with three messages or more for all of them.
    config
        Settings to start from, such as the platform; its home is left aside.

    Returns
    -------
    polars.DataFrame
        One row per check; columns: ``contract.frames.CONTRACT``. ``ok`` is null where a check can't be made
        here. What released rules are known to do otherwise (``contract.known.KNOWN``) counts as ok, and says so.

    Raises
    ------
    ConfigError
        If there are no sample files where the adapter looks for them.

    Examples
    --------
    >>> frame = check_adapter("trae")
    >>> frame.columns, frame["ok"].all()
    (['group', 'check', 'ok', 'detail'], True)
    """
    from crystal_nb.contract import frames

    adapter = get_adapter(adapter) if isinstance(adapter, str) else usable(adapter)
    with _stage(adapter, home, checked(config)) as stage:
        return frames.contract_rows([_row(stage, check) for check in CHECKS])


def adapter_contract(
    adapter: SourceAdapter | str,
    home: str | os.PathLike[str] | None = None,
    *,
    config: Config | None = None,
) -> Callable[[], None]:
    """Make a test of an adapter, for a test runner to collect: it fails with the checks that do not hold.

    Parameters
    ----------
    adapter, home, config
        As in `check_adapter`.

    Returns
    -------
    Callable
        A function without arguments.

    Examples
    --------
    >>> test_contract = adapter_contract("codex@1")
    >>> test_contract.__name__
    'test_codex_contract'
    """

    def test() -> None:
        frame = check_adapter(adapter, home, config=config)
        failed = frame.filter(~frame["ok"].fill_null(True))
        lines = [f"{r['group']}: {r['check']}: {r['detail']}" for r in failed.iter_rows(named=True)]
        if lines:
            raise AssertionError("the adapter breaks its contract:\n" + "\n".join(lines))

    name = adapter.partition("@")[0] if isinstance(adapter, str) else adapter.name
    test.__name__ = test.__qualname__ = f"test_{name.replace('-', '_')}_contract"
    return test


def _row(stage: Stage, check: Check) -> dict[str, Any]:
    ok: bool | None
    items: tuple[str, ...] = ()
    try:
        ok, detail = True, check.run(stage)
    except CannotCheck as error:
        ok, detail = None, str(error)
    except Failed as error:
        ok, detail, items = False, str(error), error.items
    except (Exception, SystemExit) as error:  # an adapter may raise anything; that fails the check that met it
        ok, detail = False, f"{type(error).__name__}: {said(error)}"
        items = (detail,)
    detail = detail.replace(str(stage.home), "~")
    if ok is False and (known := known_for(stage.adapter.parser_version, check.name, items)):
        ok, detail = True, f"known: {known.why}: {detail}"
    return {"group": check.group, "check": check.name, "ok": ok, "detail": detail}


@contextmanager
def _stage(adapter: SourceAdapter, home: str | os.PathLike[str] | None, base: Config) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        author = _sample_home(adapter, None if home is None else Path(home), Path(folder, "written"))
        bundled = author.is_relative_to(samples.fixtures())
        copy = Path(folder, "home")
        copy_home(author, copy)
        # the bundled samples are laid out as on Linux
        base = Config(platform="linux", folders=base.folders) if bundled else base
        stage = Stage(adapter, copy, author, base, effects.state(author))
        _refuse_empty(stage)
        yield stage


def _refuse_empty(stage: Stage) -> None:
    """Without a file of the adapter's no check says anything about it."""
    folder = Path(data_folder(stage.adapter, stage.config()) or stage.home)
    if folder.is_file() or any(path.is_file() for path in folder.rglob("*")):
        return
    try:
        is_there = detect_now(stage.adapter, stage.config()) is not None
    except (Exception, SystemExit):  # a check says it
        return
    with suppress(Exception, SystemExit):  # a missing folder may be an error of a scan
        is_there = is_there or bool(scan_now(stage.adapter, stage.config()))
    if not is_there:
        place = str(folder).replace(str(stage.home), "~")
        raise ConfigError(f"no sample files of {stage.adapter.name!r} in {stage.author_home}; it looks into {place}")


def _sample_home(adapter: SourceAdapter, home: Path | None, target: Path) -> Path:
    if home is not None:
        if not home.is_dir():
            raise ConfigError(f"home: {home} is no folder")
        return home.resolve()
    bundled = samples.fixtures() / adapter.name / "sample" / "home"
    if bundled.is_dir():
        return bundled
    subject = subject_for(adapter)
    target.mkdir()
    subject.put(target, "base", id="s1")
    subject.put(target, "appended", id="s2")
    return target
