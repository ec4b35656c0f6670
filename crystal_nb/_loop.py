"""Blocking twins of coroutine functions, also inside a running event loop, which is not patched."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

__all__ = ["blocking"]


def blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make the blocking twin of an ``…_async`` function.

    In a plain interpreter it runs a loop of its own; inside a running loop, such as a notebook's, it
    does so in another thread and waits. An interrupt cancels the work.

    >>> async def answer_async():
    ...     return 42
    >>> answer = blocking(answer_async)
    >>> answer(), answer.__name__
    (42, 'answer')
    """

    @functools.wraps(function)
    def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(function(*args, **kwargs))
        return _run_in_thread(function(*args, **kwargs))

    twin.__name__ = function.__name__.removesuffix("_async")
    twin.__qualname__ = function.__qualname__.removesuffix("_async")
    return twin


def _run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    outcome: list[Any] = []
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            outcome.append((True, loop.run_until_complete(task)))
        except BaseException as error:
            outcome.append((False, error))
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    thread = threading.Thread(target=run, name="crystal_nb")
    thread.start()
    try:
        thread.join()
    except BaseException:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    done, value = outcome[0]
    if not done:
        raise value
    return value  # type: ignore[no-any-return]
