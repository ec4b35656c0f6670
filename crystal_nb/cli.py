"""The ``crystal-nb`` command: sources, scan, import, lab.

Exit codes: 0 all read, 1 some conversations failed to parse, 2 could not run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn, ParamSpec, TypeVar

import typer

from crystal_nb import importer, samples, show
from crystal_nb._version import __version__
from crystal_nb.candidates import candidate_row
from crystal_nb.config import Config
from crystal_nb.corpus import Corpus
from crystal_nb.errors import CrystalError
from crystal_nb.records import Candidate

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

P = ParamSpec("P")
T = TypeVar("T")
Names = Annotated[list[str] | None, typer.Argument(metavar="[SOURCE]...", help="Adapters to read; default: all.")]
Home = Annotated[Path | None, typer.Option(metavar="DIR", help="Read this home folder instead of your own.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


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
    rows = _run(importer.source_rows, config=_config(home))
    show.rows("Sources", rows, show.SOURCE_COLUMNS, json=json)


@app.command()
def scan(names: Names = None, home: Home = None, json: Json = False) -> None:
    """List the conversations that are there, without parsing any."""
    found = _run(importer.find_candidates, *names or (), config=_config(home))
    show.rows("Candidates", [candidate_row(c) for c in found], show.CANDIDATE_COLUMNS, json=json)


@app.command(name="import")
def import_(
    names: Names = None,
    home: Home = None,
    json: Json = False,
    parquet: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the four frames as Parquet files into this folder.")
    ] = None,
) -> None:
    """Parse what is there: conversations, content hashes, and what was lost.

    Nothing is stored and no tool's file is touched. Without SOURCE and --home, and with no histories
    on the machine, the bundled samples are read instead; it says so, and JSON has "samples": true.
    """
    config = _config(home)
    found = _run(importer.find_candidates, *names or (), config=config)
    use_samples = not found and home is None and not names
    if use_samples:
        show.note("No histories found here; reading the bundled samples instead. (See: crystal-nb sources)")
        config = samples.config()
        found = _run(importer.find_candidates, config=config)
    elif not found:
        show.note(f"No histories found of {', '.join(names or ['any source'])} in {config.home_path}")
    with show.progress(len(found)) as step:
        corpus = _run(importer.parse, found, config=config, on_progress=_each(step))
    if parquet is not None:
        _write_parquet(corpus, parquet)
    show.corpus(corpus, json=json, samples=use_samples)
    if corpus.failed:
        raise typer.Exit(1)


def _each(step: Callable[[], None]) -> Callable[[int, int, Candidate], None]:
    def on_progress(done: int, total: int, candidate: Candidate) -> None:
        step()

    return on_progress


def _write_parquet(corpus: Corpus, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("conversations", "messages", "fates", "failures"):
            getattr(corpus, name).write_parquet(folder / f"{name}.parquet")
    except OSError as error:
        _stop(f"can't write to {folder}: {error.strerror or error}")
    show.note(f"Wrote conversations, messages, fates and failures to {folder}")


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
    raise typer.Exit(subprocess.run(command, check=False).returncode)


def _copy_notebooks(source: Path, folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for notebook in sorted(source.glob("*.ipynb")):
            if not (folder / notebook.name).exists():
                shutil.copyfile(notebook, folder / notebook.name)
    except OSError as error:
        _stop(f"can't copy the notebooks to {folder}: {error.strerror or error}")
    show.note(f"Notebooks are in {folder.resolve()}")
    return folder


def _config(home: Path | None) -> Config:
    if home is not None and not home.is_dir():
        _stop(f"--home: {home} is no folder")
    return Config(home=home)


def _run(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return work(*args, **kwargs)
    except CrystalError as error:
        _stop(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _stop(message: str) -> NoReturn:
    show.note(f"Error: {message}")
    raise typer.Exit(2)
