"""The connections of an event loop: all HTTP clients there share them, whichever neighbour they ask."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import ClientSession

KEEPALIVE_SECONDS = 4.0
"""An idle connection is not used again after this long. Common servers close theirs after 5 s, and a request
that crosses with such a close fails although it may have been read."""


@dataclass
class Share:
    """A share in the connections of an event loop. They are closed when the last one is given back."""

    loop: asyncio.AbstractEventLoop
    taken: int = 0
    session: "ClientSession | None" = None
    """What carries requests; none before the first."""


_shares: dict[asyncio.AbstractEventLoop, Share] = {}


def take() -> Share:
    """A share in the connections of the running event loop, to be given back."""
    loop = asyncio.get_running_loop()
    share = _shares.setdefault(loop, Share(loop))
    share.taken += 1
    return share


async def give_back(share: Share) -> None:
    """Closes the connections if nobody has a share in them any more."""
    share.taken -= 1
    if share.taken:
        return
    del _shares[share.loop]
    if share.session:
        await share.session.close()


@asynccontextmanager
async def kept_open() -> AsyncIterator[None]:
    """Keeps the connections until the end, though for a while no client may be there that uses them."""
    share = take()
    try:
        yield
    finally:
        await give_back(share)
