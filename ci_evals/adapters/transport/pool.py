"""The connections of an event loop, shared by all HTTP clients in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import ClientSession

KEEPALIVE_SECONDS = 4.0
"""Maximum idle time of a connection. Common servers close theirs after 5 s, and a request that crosses with
such a close fails although it may have been read."""


@dataclass
class PoolShare:
    """The connections of an event loop, closed when the last user releases them."""

    loop: asyncio.AbstractEventLoop
    users: int = 0
    session: "ClientSession | None" = None


_shares: dict[asyncio.AbstractEventLoop, PoolShare] = {}


def acquire() -> PoolShare:
    """Return the connections of the running event loop, to be released."""
    loop = asyncio.get_running_loop()
    share = _shares.setdefault(loop, PoolShare(loop))
    share.users += 1
    return share


async def release(share: PoolShare) -> None:
    """Close the connections if this was their last user."""
    share.users -= 1
    if share.users:
        return
    del _shares[share.loop]
    if share.session:
        await share.session.close()


@asynccontextmanager
async def kept_open() -> AsyncIterator[None]:
    """Keep the connections open even while no client uses them."""
    share = acquire()
    try:
        yield
    finally:
        await release(share)
