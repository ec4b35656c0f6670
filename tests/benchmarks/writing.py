"""Writing the corpora: how large the sessions are, and files of JSON lines with the damage that real ones have."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

_encode = msgspec.json.encode
_SMALLEST, _LARGEST_ORDINARY = 3_000, 8_000_000


def session_sizes(rng: random.Random, total: int) -> Iterator[int]:
    """A few long sessions hold much of the bytes (up to 12 %), most are short; a tiny corpus has three equal ones."""
    if total < 100_000:
        yield from (total // 3,) * 3
        return
    left = total
    for share in (0.12, 0.07, 0.04):
        left -= int(total * share)
        yield int(total * share)
    median = min(300_000, total / 60)
    while left > 0:
        size = min(_LARGEST_ORDINARY, max(_SMALLEST, int(rng.lognormvariate(math.log(median), 1.4))))
        left -= size
        yield min(size, max(left + size, _SMALLEST))


class LineFile:
    """Appends JSON lines as ``JSON.stringify`` would: no spaces, characters beyond ASCII as they are."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.size, self._lines = path, 0, 0
        self._file = path.open("wb", buffering=1 << 20)

    def __enter__(self) -> LineFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, record: dict[str, Any]) -> None:
        line = _encode(record)
        self._lines += 1
        if self._lines % 20_000 == 7_000:  # output cut inside a surrogate pair: legal JSON, a trap for strict decoders
            line = line[:-1] + b',"cut":"\\ud83d"}'
        self._file.write(line + b"\n")
        self.size += len(line) + 1

    def tear(self) -> None:
        """End in the middle of a line, as after a crash."""
        self._file.write(b'{"parentUuid":"torn","type":"user","message":{"role":"us')
