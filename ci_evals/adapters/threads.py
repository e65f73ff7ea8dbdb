"""Work that would hold up the event loop, in a thread beside it."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ci_evals.domain.errors import exhausted

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call a function in a thread; on a machine that can start none, here, where the loop waits for it.

    The function may then be called once more when a thread is there again: it must bear that.
    """
    try:
        return await asyncio.to_thread(function, *args, **options)
    except RuntimeError as error:
        if not exhausted(error):
            raise
        return function(*args, **options)
