"""Reads a home in a process of its own and prints what it found, for the check of the hash seed."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

from crystal_nb.adapters import get_adapter
from crystal_nb.adapters.base import SourceAdapter
from crystal_nb.config import Config
from crystal_nb.contract.reading import reading

__all__ = ["main"]


def _load(file: str, name: str) -> SourceAdapter:
    if not file:
        return get_adapter(name)
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    adapter: SourceAdapter = getattr(module, name)
    return adapter


def main(file: str, name: str, home: str, platform: str, folders: str, clock: str) -> None:
    """Print the reading as JSON."""
    config = Config(
        home=home, folders=json.loads(folders), platform=platform, cache_seconds=0, clock=lambda: int(clock)
    )
    json.dump(reading(_load(file, name), config), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
