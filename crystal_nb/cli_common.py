"""What the commands share: options, configuration, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn, ParamSpec, TypeVar

import typer

from crystal_nb import show
from crystal_nb.config import Config
from crystal_nb.errors import CrystalError

P = ParamSpec("P")
T = TypeVar("T")
Names = Annotated[list[str] | None, typer.Argument(metavar="[SOURCE]...", help="Adapters to read; default: all.")]
Home = Annotated[Path | None, typer.Option(metavar="DIR", help="Read this home folder instead of your own.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
StorePath = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="Database of imports; default: one in the user data folder."),
]
ProfileName = Annotated[str, typer.Option("--profile", help="Rules to follow: chatcrystal or careful.")]
OptionalProfile = Annotated[
    str | None, typer.Option("--profile", help="Rules to follow: chatcrystal or careful; default: the store's own.")
]


def configuration(home: Path | None) -> Config:
    """The configuration of a command."""
    if home is not None and not home.is_dir():
        stop(f"--home: {home} is no folder")
    return Config(home=home)


def run(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run something; its errors end the command with exit code 2."""
    try:
        return work(*args, **kwargs)
    except CrystalError as error:
        stop(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def stop(message: str) -> NoReturn:
    """End the command, as it can't run."""
    show.note(f"Error: {message}")
    raise typer.Exit(2)


def default_store(profile: str) -> Path:
    """Where imports are kept when nobody says where; each profile has a file of its own."""
    from platformdirs import user_data_path

    return user_data_path("crystal_nb", appauthor=False) / f"imports-{profile}.db"
