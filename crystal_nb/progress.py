"""A progress bar where somebody looks: tqdm in notebooks, rich on terminals, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["shown"]


@contextmanager
def shown(total: int, title: str, wanted: bool | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar while the block runs; yields what to call at each step.

    Parameters
    ----------
    total
        Number of steps.
    title
        What is going on.
    wanted
        False: never; True: also where nobody may look; None: in notebooks and on terminals.

    >>> with shown(3, "Importing", False) as step:
    ...     step()
    """
    if wanted is False or total == 0:
        yield lambda: None
    elif _in_notebook():
        from tqdm.auto import tqdm

        with tqdm(total=total, desc=title, leave=False) as bar:
            yield lambda: _ignore(bar.update())
    elif wanted or sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as rich_bar:
            task = rich_bar.add_task(title, total=total)
            yield lambda: rich_bar.advance(task)
    else:
        yield lambda: None


def _ignore(_: object) -> None:
    pass


def _in_notebook() -> bool:
    """Tell whether a notebook's kernel runs this, without importing anything for it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"
