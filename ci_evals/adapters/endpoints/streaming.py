"""Sends requests whose answers are streamed, and reads these as far as the answer goes."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx2

from ci_evals.adapters.transport import payload
from ci_evals.adapters.transport.connections import Client
from ci_evals.adapters.transport.streams import IsLast, StreamReader, completes

REST_SECONDS = 1.0
"""Time that a server has to end its stream after the answer is complete. It counts as nobody's."""


class SurplusError(Exception):
    """A whole answer came that nobody had asked for."""


async def send_and_read(
    client: Client, request: httpx2.Request, reader: StreamReader
) -> tuple[httpx2.Response, AsyncIterator[bytes]]:
    """Return the response and the rest of its body, after the answer; an error status is read whole."""
    began = time.perf_counter()
    response = await client.send(request, stream=True)
    pieces = aiter(response.stream)  # type: ignore[arg-type]  # an asynchronous one, of an AsyncClient
    try:
        if not response.is_success:
            await response.aread()
        else:
            reader.begin(response.headers.get("content-type", ""))
            await _read(pieces, reader, began)
    except BaseException:
        await _leave(response)
        raise
    return response, pieces


async def let_end(response: httpx2.Response, rest: AsyncIterator[bytes]) -> None:
    """Give the server time to end its stream: many stop their work if a client leaves before that."""
    try:
        with suppress(TimeoutError, httpx2.HTTPError, payload.AnswerTooLargeError):
            async with asyncio.timeout(REST_SECONDS):
                async for _ in rest:
                    pass
    finally:
        await _leave(response)


async def converse(client: Client, request: httpx2.Request, reader: StreamReader) -> httpx2.Response:
    """Send a request's body over the client's WebSocket, and read the answer.

    Headers and address are those of the handshake. Its refusal is returned as a response.
    Raise `SurplusError` if more answers came than messages were sent.
    """
    from ci_evals.adapters.transport.websocket import HandshakeRefusedError  # noqa: PLC0415  # with aiohttp

    socket = client.socket
    if reader.is_last and await has_more(client, reader.is_last):
        raise SurplusError
    handshake = client.build_request("GET", request.url, headers=request.headers)
    for name in ("content-length", "content-type"):
        handshake.headers.pop(name, None)
    began = time.perf_counter()
    try:
        await socket.send(handshake, request.content.decode())
    except HandshakeRefusedError as refusal:
        if refusal.response.is_success:
            reason = f"expected a WebSocket, found an answer with status {refusal.response.status_code}"
            raise httpx2.RemoteProtocolError(reason) from None
        return refusal.response
    await _read(socket.messages(), reader, began)
    return httpx2.Response(200)


async def has_more(client: Client, is_last: IsLast) -> bool:
    """Return whether another answer came over the WebSocket after the last one. Other messages do no harm."""
    return any(completes(message, is_last) for message in await client.socket.leftover())


async def _read(pieces: AsyncIterator[bytes], reader: StreamReader, began: float) -> None:
    async for piece in pieces:
        reader.feed(piece, time.perf_counter() - began)
        if reader.is_complete:
            break
    reader.end(time.perf_counter() - began)


async def _leave(response: httpx2.Response) -> None:
    with suppress(httpx2.HTTPError, OSError):
        await response.aclose()
