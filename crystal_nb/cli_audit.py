"""The command ``crystal-nb audit``."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from crystal_nb import show
from crystal_nb.adapters import get_adapter
from crystal_nb.audit import AuditReport
from crystal_nb.audit import audit as ask
from crystal_nb.audit.findings import error_text
from crystal_nb.cli_common import Home, Json, Names, OptionalProfile, configuration, default_store, run, stop
from crystal_nb.config import Config

__all__ = ["FINDING_COLUMNS", "audit"]

FINDING_COLUMNS = ("severity", "question", "kind", "source", "conversation_id", "count", "detail", "evidence")


def audit(
    names: Names = None,
    db: Annotated[
        Path | None,
        typer.Option(
            "--db", metavar="PATH", help="Database; default: ChatCrystal's, else the one of crystal-nb import."
        ),
    ] = None,
    home: Home = None,
    json: Json = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with every finding.")] = None,
    profile: OptionalProfile = None,
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Parse N conversations only, drawn by chance.")
    ] = None,
) -> None:
    """Say where imports were blind, wasteful or wrong: a database, and the histories behind it.

    The database is read as a copy and may be in use; every history is parsed again, and nothing is
    written but --html. No text of a message is shown. A terminal gets the findings without question,
    evidence and count; a pipe, --json and --html (both at once, too) have all.

    What --json prints is described by the JSON Schema fixtures/audit/schema.json, which is in the
    package, too: crystal_nb.samples.fixtures() / "audit" / "schema.json".

    Exit codes: 0 nothing is wrong, 1 there are findings of the severity fault, 2 could not run.
    """
    config = _of_sources(configuration(home), names)
    path = db or _usual(config)
    if path is None:
        stop("there is no database of ChatCrystal or of crystal-nb import here; name one by --db")
    try:
        report = run(ask, path, config=config, profile=profile, sample=sample)
        _tell(report, json=json, html=html)
    except (typer.Exit, BrokenPipeError):
        raise
    except Exception as error:  # to a script, exit code 1 would say that something is wrong in the database
        stop(f"the audit itself failed: {error_text(error)}")
    if not report.ok:
        raise typer.Exit(1)


def _of_sources(config: Config, names: list[str] | None) -> Config:
    wanted = [run(get_adapter, name).name for name in names or ()]
    return replace(config, enabled_sources=wanted) if wanted else config


def _usual(config: Config) -> Path | None:
    folder = config.env("DATA_DIR")
    place = config.expand(folder) if folder else config.home_path / ".chatcrystal" / "data"
    own = [default_store(profile) for profile in ("chatcrystal", "careful")] if config.home is None else []
    return next((path for path in (place / "chatcrystal.db", *own) if path.is_file()), None)


def _tell(report: AuditReport, *, json: bool, html: Path | None) -> None:
    if html is not None:
        _write(report, html, summary=not json)
    if json:
        print(json_module.dumps(report.document(), indent=2))
    elif html is None:
        _show(report)
    sys.stdout.flush()


_ELSEWHERE = "Question, evidence and count of each finding: pipe the output, or use --json or --html FILE."


def _show(report: AuditReport) -> None:
    rows: list[dict[str, Any]] = list(report.findings.iter_rows(named=True))
    if sys.stdout.isatty():
        show.rows("Findings", sorted(rows, key=lambda row: row["severity"] != "fault"), FINDING_COLUMNS)
        print(*report.summary(), _ELSEWHERE, sep="\n")
    else:
        show.rows("Findings", rows, FINDING_COLUMNS)
        show.note(*report.summary())


def _write(report: AuditReport, path: Path, *, summary: bool) -> None:
    try:
        report.to_html(path)
    except OSError as error:
        stop(f"can't write {path}: {error.strerror or error}")
    show.note(*(report.summary() if summary else ()), f"Wrote {path}")
