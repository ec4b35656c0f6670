"""Blocking and awaitable twins of one coroutine function; no running event loop is patched or blocked."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

__all__ = ["twins"]


def twins(core: Callable[P, Coroutine[Any, Any, T]]) -> tuple[Callable[P, T], Callable[P, Coroutine[Any, Any, T]]]:
    """Derive a blocking function and an ``…_async`` one from a coroutine function named ``_…``.

    The blocking twin runs a loop of its own, inside a running loop (a notebook's) in another thread.
    The awaitable one always runs in another thread, so that work without a pause holds no loop up.
    An interrupt or a cancellation stops the work at its next await.

    >>> async def _answer():
    ...     return 42
    >>> answer, answer_async = twins(_answer)
    >>> answer(), asyncio.run(answer_async()), answer.__name__
    (42, 42, 'answer')
    """

    @functools.wraps(core)
    def blocking(*args: P.args, **kwargs: P.kwargs) -> T:
        work = core(*args, **kwargs)
        return _wait_in_thread(work) if _in_a_loop() else _run(work)

    @functools.wraps(core)
    async def awaitable(*args: P.args, **kwargs: P.kwargs) -> T:
        return await _await_in_thread(core(*args, **kwargs))

    name = core.__name__.removeprefix("_")
    for function, suffix in ((core, ""), (blocking, ""), (awaitable, "_async")):  # the core's shows in TypeErrors
        function.__name__ = function.__qualname__ = name + suffix
    return blocking, awaitable


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run(work: Coroutine[Any, Any, T]) -> T:
    """As ``asyncio.run``, but its task gives nothing: giving SIGINT back, it has the finished task's result formatted.

    For a large `Corpus` that takes as long as some parsing.
    """
    results: list[T] = []

    async def keep_result() -> None:
        results.append(await work)

    asyncio.run(keep_result())
    return results[0]


def _wait_in_thread(work: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    thread = threading.Thread(target=_drive, args=(loop, task), name="crystal_nb")
    thread.start()
    try:
        thread.join()
    except BaseException:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    return task.result()


async def _await_in_thread(work: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    try:
        await asyncio.to_thread(_drive, loop, task)
    except asyncio.CancelledError:
        if not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)
        raise
    return task.result()


def _drive(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    """Run the loop until the task is done, whatever its outcome, and close it."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(asyncio.wait([task]))
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
