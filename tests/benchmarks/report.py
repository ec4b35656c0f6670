"""Plain tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * min(len(text), 120)}", flush=True)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """First column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join((first.strip().ljust(widths[0]), *others)).rstrip())
    print(flush=True)


def spread(values: Sequence[float], digits: int) -> str:
    """Median with the range of all rounds."""
    middle = f"{median(values):,.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} [{min(values):,.{digits}f}-{max(values):,.{digits}f}]"


def share(value: float) -> str:
    return f"{value * 100:.0f} %"
