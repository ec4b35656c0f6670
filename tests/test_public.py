"""What the package offers, and what importing it costs."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import crystal_nb as cnb

WALKED = (m.name for m in pkgutil.walk_packages(cnb.__path__, "crystal_nb."))
MODULES = sorted(n for n in WALKED if "_data" not in n and not n.endswith("__main__"))


@pytest.mark.parametrize("name", ["crystal_nb", *MODULES])
def test_public_names_exist_and_are_sorted(name):
    module = importlib.import_module(name)
    names = getattr(module, "__all__", [])
    assert [n for n in names if not hasattr(module, n)] == []
    assert list(names) == sorted(names, key=lambda n: (not n.isupper(), n.lstrip("_")[:1].islower(), n))


def test_every_public_function_says_what_it_does_with_an_example():
    functions = [getattr(cnb, n) for n in cnb.__all__ if inspect.isfunction(getattr(cnb, n))]
    assert [f.__name__ for f in functions if ">>>" not in (f.__doc__ or "")] == ["register"]


def test_importing_is_light():
    heavy = "polars ipywidgets jupyterlab hypothesis rich typer sqlite3"
    code = f"import sys, crystal_nb; print(*[m for m in '{heavy}'.split() if m in sys.modules])"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) <= {"sqlite3"}


def test_blocking_twins_have_the_documentation_and_the_name_of_one():
    assert cnb.scan.__name__ == "scan"
    assert cnb.scan.__doc__ == cnb.scan_async.__doc__
