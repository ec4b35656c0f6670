"""Remote items as requests: their exact JSON, its size, how many go into one.

Source: ``pinned-importer.md`` section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec import UNSET, Struct

from crystal_nb import ecma
from crystal_nb.errors import ConfigError, RemotePayloadError
from crystal_nb.records import counted

__all__ = [
    "MAX_BATCH_BYTES",
    "MAX_ITEMS",
    "MAX_ITEM_BYTES",
    "RemoteBatches",
    "TooLarge",
    "pack",
    "remote_batches",
    "remote_json",
    "sized",
]

MAX_ITEMS = 25
"""Items in one request."""
MAX_ITEM_BYTES = 8 << 20
"""UTF-8 bytes of one item's JSON; a larger one is set aside."""
MAX_BATCH_BYTES = 20 << 20
"""UTF-8 bytes of one request's JSON, its frame and commas included."""


def remote_json(value: Any) -> bytes:
    r"""Write an item or a request exactly as ``JSON.stringify`` does, in UTF-8.

    Raises
    ------
    RemotePayloadError
        If a value is nested deeper than Python can follow.

    >>> remote_json({"version": 1, "items": ["é\ud83d"]})
    b'{"version":1,"items":["\xc3\xa9\\ud83d"]}'
    """
    try:
        return ecma.json_text(value).encode()
    except RecursionError:
        reason = "a value is nested deeper than Python can follow"
        raise RemotePayloadError(reason, path="$", rule="json") from None


class TooLarge(Struct, frozen=True):
    """An item that no request takes.

    Attributes
    ----------
    index : int
        Position among the items.
    id : str
        Its conversation id.
    bytes : int
        UTF-8 bytes of its JSON.
    """

    index: int
    id: str
    bytes: int


@dataclass(frozen=True, repr=False)
class RemoteBatches:
    """Items as requests.

    Parameters
    ----------
    batches
        Requests ``{"version": 1, "items": […]}`` in order.
    too_large
        Items that were set aside.
    """

    batches: tuple[dict[str, Any], ...]
    too_large: tuple[TooLarge, ...]

    def __repr__(self) -> str:
        items = sum(len(request["items"]) for request in self.batches)
        told = f"{counted(len(self.batches), 'request')} with {counted(items, 'item')}"
        return f"RemoteBatches: {told}; {len(self.too_large):,} too large"


def remote_batches(
    items: Iterable[Mapping[str, Any]],
    *,
    max_items: int = MAX_ITEMS,
    max_item_bytes: int = MAX_ITEM_BYTES,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> RemoteBatches:
    """Pack items into requests, in order; none is split.

    All sizes are UTF-8 bytes of the JSON text. Equal to the limit still fits. An item that fits alone
    goes alone, even where its request then passes ``max_batch_bytes``, as pinned.

    Parameters
    ----------
    items
        What `remote_item` made.
    max_items
        Items in a request.
    max_item_bytes
        Larger items are set aside.
    max_batch_bytes
        Bytes of a whole request: its items, the commas between them and the 24 bytes round them.

    Raises
    ------
    ConfigError
        If a limit is no whole number from 1 on.
    RemotePayloadError
        If an item is no object.

    Examples
    --------
    >>> remote_batches([{"conversationId": "codex:7"}, {"conversationId": "codex:8"}], max_items=1)
    RemoteBatches: 2 requests with 2 items; 0 too large
    """
    limits = {"max_items": max_items, "max_item_bytes": max_item_bytes, "max_batch_bytes": max_batch_bytes}
    for name, limit in limits.items():
        if type(limit) is not int or limit < 1:
            raise ConfigError(f"{name} must be a whole number from 1 on, not {limit!r}")
    return pack(list(map(sized, items)), **limits)


Sized: TypeAlias = tuple[Mapping[str, Any], int]
"""An item and the size of its JSON."""


def sized(item: Mapping[str, Any]) -> Sized:
    """Measure an item once; raises as `remote_batches` does."""
    if not isinstance(item, Mapping):
        raise RemotePayloadError(f"found {type(item).__name__}; allowed: an object", path="$", rule="item")
    return item, len(remote_json(item))


def pack(
    listed: list[Sized],
    *,
    max_items: int = MAX_ITEMS,
    max_item_bytes: int = MAX_ITEM_BYTES,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> RemoteBatches:
    """`remote_batches` of measured items."""
    too_large = tuple(
        TooLarge(index, ecma.to_text(item.get("conversationId", UNSET)), size)
        for index, (item, size) in enumerate(listed)
        if size > max_item_bytes
    )
    fitting = [(item, size) for item, size in listed if size <= max_item_bytes]
    groups = _groups(fitting, max_items, max_batch_bytes)
    return RemoteBatches(tuple({"version": 1, "items": group} for group in groups), too_large)


def _groups(listed: list[Sized], max_items: int, max_bytes: int) -> Iterator[list[Mapping[str, Any]]]:
    frame = len(remote_json({"version": 1, "items": []}))
    group: list[Mapping[str, Any]] = []
    total = frame
    for item, size in listed:
        if group and (len(group) == max_items or total + 1 + size > max_bytes):
            yield group
            group, total = [], frame
        total += size + (1 if group else 0)
        group.append(item)
    if group:
        yield group
