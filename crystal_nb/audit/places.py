"""Coverage of a source: which of the places that a new source must be added to know it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from crystal_nb.adapters import registered
from crystal_nb.audit.findings import Answer, Severity, finding
from crystal_nb.config import BUILT_IN_SOURCES, Config, checked
from crystal_nb.discovery import data_folder
from crystal_nb.errors import CrystalError, RemotePayloadError
from crystal_nb.identity import namespace
from crystal_nb.remote_check import SUPPORTED_SOURCES, read_item

__all__ = ["coverage"]

_PLACES = {
    "registered": "not-registered",
    "supported": "not-supported",
    "default": "not-default",
    "restored": "not-restored",
    "validated": "not-validated",
    "watched": "not-watched",
}


def coverage(sources: Iterable[str] | None = None, *, config: Config | None = None) -> Answer:
    """In which of the places that must know a source each of these is.

    Each place is asked: a configuration without any source is loaded, a payload of the source is checked.
    A place that lacks one of the five pinned sources is a fault. That it lacks another one is a note: the
    pinned importer has no such source.

    Parameters
    ----------
    sources
        Names; default: the registered adapters.
    config
        Folders and settings.

    Examples
    --------
    >>> coverage(["codex"]).findings, coverage(["mytool"]).kinds()["not-supported"]
    ((), 1)
    """
    from crystal_nb.audit.tables import table

    config = checked(config)
    names = (
        list(registered())
        if sources is None
        else list(dict.fromkeys([sources] if isinstance(sources, str) else sources))
    )
    restored = _restored()
    rows: list[dict[str, Any]] = []
    for name in names:
        adapter = registered().get(name)
        rows.append(
            {
                "source": name,
                "registered": adapter is not None,
                "supported": name in SUPPORTED_SOURCES,
                "default": name in Config().enabled_sources,
                "restored": name in restored,
                "validated": _is_validated(name),
                "watched": adapter is not None and data_folder(adapter, config) is not None,
            }
        )
    findings = [
        finding(kind, row["source"], severity=_severity(row["source"]))
        for row in rows
        for place, kind in _PLACES.items()
        if not row[place]
    ]
    full = sum(all(row[place] for place in _PLACES) for row in rows)
    sentence = f"Coverage: all of the {len(_PLACES)} places that must know a source have {full:,} of {len(rows):,}."
    return Answer("coverage", sentence, tuple(findings), {"coverage": table("coverage", rows)})


def _severity(source: str) -> Severity | None:
    return None if source in BUILT_IN_SOURCES else "note"


def _restored() -> tuple[str, ...]:
    """What loading a configuration brings back that has no source at all."""
    with tempfile.TemporaryDirectory(prefix="crystal-nb-") as folder:
        path = Path(folder, "config.json")
        path.write_text(json.dumps({"enabledSources": []}), encoding="utf-8")
        try:
            return tuple(Config.load(path).enabled_sources)
        except CrystalError:
            return ()


def _is_validated(source: str) -> bool:
    """Whether the check of payloads gets past the source's name."""
    named = namespace(source, "1")
    item = {
        "source": source,
        "sourceConversationId": "1",
        "conversationId": named,
        "parsed": {"id": named, "source": source},
    }
    try:
        read_item(item)
    except RemotePayloadError as error:
        return error.rule not in ("supported-source", "parsed-source")
    return True
