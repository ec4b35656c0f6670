"""Discovery and enablement: the tool is found where it is, and only there, and can be switched off."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from crystal_nb import ecma, importer
from crystal_nb.config import BUILT_IN_SOURCES, Config
from crystal_nb.contract.stage import CannotCheck, Check, Failed, Stage, check, detect_now, scan_now
from crystal_nb.errors import ScanError
from crystal_nb.records import Candidate, SourceInfo, counted

__all__ = ["CHECKS"]

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@check("discovery", "absent")
def absent(stage: Stage) -> str:
    """In a home without the tool's folder detect gives None; a scan finds nothing or fails with ScanError."""
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        return _nothing(stage, stage.config(Path(folder)), "in an empty home")


@check("discovery", "empty")
def empty(stage: Stage) -> str:
    """With the tool's folders there and no file in them detect gives None, and a scan finds nothing."""
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        for place, _, _ in os.walk(stage.home):
            Path(folder, Path(place).relative_to(stage.home)).mkdir(exist_ok=True)
        return _nothing(stage, stage.config(Path(folder)), "in folders without files")


def _nothing(stage: Stage, config: Config, where: str) -> str:
    info = detect_now(stage.adapter, config)
    if info is not None:
        raise Failed(f"detect counts {counted(info.conversation_count, 'conversation')} {where}")
    try:
        found = scan_now(stage.adapter, config)
    except ScanError as error:
        return f"detect gives None {where}; scan refuses: {error.reason}"
    if found:
        raise Failed(f"scan lists {counted(len(found), 'candidate')} {where}")
    return f"detect gives None and scan lists nothing {where}"


@check("discovery", "found")
def found(stage: Stage) -> str:
    """In the sample home detect gives a SourceInfo with the adapter's names."""
    info, adapter = detect_now(stage.adapter, stage.config()), stage.adapter
    if not isinstance(info, SourceInfo):
        raise Failed(f"detect gives {info!r} for the sample home")
    if (info.name, info.display_name) != (adapter.name, adapter.display_name):
        raise Failed(f"detect names {info.name!r}, {info.display_name!r}; the adapter {adapter.name!r}")
    return f"{counted(info.conversation_count, 'conversation')} in {info.data_dir.replace(str(stage.home), '~')}"


@check("discovery", "detect agrees with scan")
def agrees(stage: Stage) -> str:
    """Detect counts as many conversations as a scan lists."""
    info, listed = detect_now(stage.adapter, stage.config()), scan_now(stage.adapter, stage.config())
    count = info.conversation_count if info else 0
    if count != len(listed):
        raise Failed(f"detect counts {counted(count, 'conversation')}, scan lists {len(listed)}")
    return f"both have {count}"


@check("discovery", "candidates")
def candidates(stage: Stage) -> str:
    """Candidates are of this source, name a file that is there, and have its time as text."""
    listed = scan_now(stage.adapter, stage.config())
    wrong = [what for candidate in listed for what in _wrong(candidate, stage.adapter.name)]
    if wrong:
        raise Failed("not as documented", wrong)
    if not listed:
        raise CannotCheck("the scan finds no conversation in the sample home")
    return f"the file of {counted(len(listed), 'candidate')} is named"


def _wrong(candidate: Candidate, name: str) -> Iterator[str]:
    if not isinstance(candidate, Candidate):
        yield f"a {type(candidate).__name__} is no Candidate"
    else:
        yield from (f"{ecma.to_text(candidate.id)}: {what}" for what in _wrong_fields(candidate, name))


def _wrong_fields(c: Candidate, name: str) -> Iterator[str]:
    if c.source != name:
        yield f"source is {c.source!r}"
    if not isinstance(c.file_path, str) or not os.path.isfile(c.file_path):
        yield f"no file at {c.file_path!r}"
    if not isinstance(c.file_size, int) or c.file_size < 0:
        yield f"file_size is {c.file_size!r}"
    if not isinstance(c.file_mtime, str) or not _TIME.fullmatch(c.file_mtime):
        yield f"file_mtime is {c.file_mtime!r}, not such as 2026-01-01T00:00:00.000Z"
    if not isinstance(c.project_dir, str):
        yield f"project_dir is {c.project_dir!r}"


@check("enablement", "default")
def default(stage: Stage) -> str:
    """The default configuration enables the five sources of ChatCrystal and no other."""
    name, is_on = stage.adapter.name, stage.adapter.name in Config().enabled_sources
    if is_on != (name in BUILT_IN_SOURCES):
        raise Failed(f"{name!r} is {'on' if is_on else 'off'} by default")
    return "on by default" if is_on else "off by default; asked for by name or by Config(enabled_sources=…)"


@check("enablement", "restored")
def restored(stage: Stage) -> str:
    """A saved configuration that lost a built-in gets it back on loading; another source stays as saved."""
    name = stage.adapter.name
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        file = Path(folder, "config.json")
        seen = []
        for saved in ([], [name]):
            file.write_text(json.dumps({"enabledSources": saved}), encoding="utf-8")
            seen.append(name in Config.load(file, home=stage.home).enabled_sources)
    expected = [name in BUILT_IN_SOURCES, True]
    if seen != expected:
        raise Failed(f"lost and saved: {seen}, expected {expected}")
    return "comes back after being lost" if expected[0] else "stays as saved"


@check("enablement", "switched off")
def switched(stage: Stage) -> str:
    """A scan without names lists the source where it is enabled, and nothing of it where it is not."""
    name, count = stage.adapter.name, len(stage.samples)
    with stage.registered():
        on = importer.find_candidates(config=stage.config(enabled_sources=(name,)))
        off = importer.find_candidates(config=stage.config(enabled_sources=()))
    if len(on) != count or any(c.source != name for c in on):
        raise Failed(f"enabled, a scan lists {counted(len(on), 'candidate')} of {sorted({str(c.source) for c in on})}")
    if off:
        raise Failed(f"switched off, a scan still lists {counted(len(off), 'candidate')}")
    return f"{counted(len(on), 'candidate')} when on, none when off"


CHECKS: tuple[Check, ...] = (absent, empty, found, agrees, candidates, default, restored, switched)
