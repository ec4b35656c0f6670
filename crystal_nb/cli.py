"""The ``crystal-nb`` command: sources, scan, parse, import, plan, audit, scenarios, remote, lab.

Exit codes: 0 all went well, 1 some conversations failed or a check did, 2 could not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from crystal_nb import cli_audit, cli_reimport, discovery, importer, samples, show
from crystal_nb._version import __version__
from crystal_nb.candidates import candidate_row
from crystal_nb.cli_common import Home, Json, Names, ProfileName, configuration, run, stop

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """See what an import of AI-coding-agent conversations really does."""


@app.command()
def sources(home: Home = None, json: Json = False) -> None:
    """Show which tools have histories here."""
    rows = run(discovery.source_rows, config=configuration(home))
    show.rows("Sources", rows, show.SOURCE_COLUMNS, json=json)


@app.command()
def scan(names: Names = None, home: Home = None, json: Json = False, profile: ProfileName = "chatcrystal") -> None:
    """List the conversations that are there, without parsing any."""
    found = run(importer.find_candidates, *names or (), profile=profile, config=configuration(home))
    show.rows("Candidates", [candidate_row(c) for c in found], show.CANDIDATE_COLUMNS, json=json)


app.command(name="parse")(cli_reimport.parse)
app.command(name="import")(cli_reimport.import_)
app.command(name="plan")(cli_reimport.plan)
app.command(name="audit")(cli_audit.audit)
app.command(name="scenarios")(cli_reimport.run_scenarios)
app.add_typer(cli_reimport.remote_app, name="remote")


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    options_metavar="[OPTIONS] [JUPYTERLAB OPTIONS]...",
)
def lab(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Where they are copied; files that are there are kept.")
    ] = Path("crystal_nb-notebooks"),
) -> None:
    """Open JupyterLab on the notebooks; further options go to JupyterLab.

    In an installed package the notebooks are copied to --folder first; in an editable checkout they
    are opened where they are. (As root, JupyterLab wants --allow-root.)
    """
    source = samples.notebooks()
    place = source
    if source.is_relative_to(samples.PACKAGE):
        place = _copy_notebooks(source, folder)
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={place.resolve()}", *context.args]
    raise typer.Exit(_become(command))


def _become(command: list[str]) -> int:
    """Run a command in place of this process, so that whoever stops this one stops it."""
    if os.name == "posix":
        os.execv(command[0], command)
    return subprocess.run(command, check=False).returncode


def _copy_notebooks(source: Path, folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for notebook in sorted(source.glob("*.ipynb")):
            if not (folder / notebook.name).exists():
                shutil.copyfile(notebook, folder / notebook.name)
    except OSError as error:
        stop(f"can't copy the notebooks to {folder}: {error.strerror or error}")
    show.note(f"Notebooks are in {folder.resolve()}")
    return folder
