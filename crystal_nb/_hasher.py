"""Content hashes of many conversations, while the parsing of the next ones goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future

from crystal_nb import hashing
from crystal_nb.records import Conversation

__all__ = ["Hasher"]

_LONG_TEXT, _WAITING_TEXTS = 1 << 16, 4


class Hasher:
    """Content hashes, long ones in a helper thread: SHA-256 lets the interpreter go on meanwhile.

    Only a few texts wait, so memory stays bounded by the longest conversations.
    """

    def __init__(self, helper: Executor) -> None:
        self._helper = helper
        self._waiting: deque[tuple[Future[str], bytearray]] = deque()
        self._spare: list[bytearray] = []

    def start(self, conversation: Conversation) -> Callable[[], str]:
        """Begin to hash; what is returned gives the hash when it is called."""
        buffer = self._spare.pop() if self._spare else bytearray()
        hashing.canonical_into(conversation, buffer)
        if len(buffer) < _LONG_TEXT:
            digest = hashing.digest(buffer)
            self._spare.append(buffer)
            return lambda: digest
        if len(self._waiting) == _WAITING_TEXTS:
            done, spare = self._waiting.popleft()
            done.result()
            self._spare.append(spare)
        future = self._helper.submit(hashing.digest, buffer)
        self._waiting.append((future, buffer))
        return future.result
