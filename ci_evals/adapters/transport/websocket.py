"""The WebSocket of one conversation. Its messages are read all the time, so that pings are answered."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress

import aiohttp

from ci_evals.adapters.transport.network import NetworkError
from ci_evals.support.payload import MAX_ANSWER_BYTES, AnswerTooLargeError

QUIET_SECONDS = 0.1
"""Silence before a message is sent, so that what still comes cannot be taken for its answer."""
CLOSE_SECONDS = 1.0

Open = Callable[[], Awaitable[aiohttp.ClientWebSocketResponse]]


class HandshakeRefusedError(Exception):
    """The server did not open a WebSocket, and answered like this."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status, self.headers, self.body = status, headers, body


class WebSocket:
    """Sends messages, and opens the connection if there is none."""

    def __init__(self) -> None:
        self._connection: aiohttp.ClientWebSocketResponse | None = None
        self._reading: asyncio.Task[None] | None = None
        self._arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        """Messages that were not read yet; None after the last one."""
        self._unread_bytes, self._last_arrival = 0, 0.0

    async def send(self, open_connection: Open, text: str) -> None:
        """Send a message, and open the connection before that if there is none.

        Raise `NetworkError` or what opening raises. What came before is left to `leftover`.
        """
        if self._connection is None or self._connection.closed:
            await self.close()
            self._connection = await open_connection()
            self._arrived, self._unread_bytes = asyncio.Queue(), 0
            self._reading = asyncio.create_task(self._read(self._connection))
        try:
            await self._connection.send_str(text)
        except (aiohttp.ClientError, OSError) as error:
            raise NetworkError(f"the WebSocket is closed ({error})") from error

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield the messages of one answer; raise `NetworkError` once the server closes the connection."""
        left = MAX_ANSWER_BYTES
        while (message := await self._arrived.get()) is not None:
            left -= len(message)
            self._unread_bytes -= len(message)
            if left < 0:
                raise AnswerTooLargeError
            yield message
        self._arrived.put_nowait(None)
        code = self._connection.close_code if self._connection else None
        if code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
            raise AnswerTooLargeError
        reason = f" (code {code})" if code else ""
        raise NetworkError(f"the server closed the WebSocket{reason}")

    async def leftover(self) -> list[bytes]:
        """Return the messages that came after the last answer, once there is silence, or too little of it."""
        if self._reading is None:
            return []
        end = time.perf_counter() + CLOSE_SECONDS
        while not self._reading.done() and (now := time.perf_counter()) < end:
            quiet = now - self._last_arrival
            if quiet >= QUIET_SECONDS:
                break
            await asyncio.sleep(QUIET_SECONDS - quiet)
        messages = []
        while not self._arrived.empty():
            if (message := self._arrived.get_nowait()) is not None:
                messages.append(message)
        self._unread_bytes = 0
        if self._reading.done():
            self._arrived.put_nowait(None)
        return messages

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        reading, self._reading = self._reading, None
        if reading:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if connection:
            # Each message that still comes would start the time for closing again.
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await connection.close()

    async def _read(self, connection: aiohttp.ClientWebSocketResponse) -> None:
        async for message in connection:
            if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                break  # an error
            data = message.data if isinstance(message.data, bytes) else message.data.encode(errors="replace")
            self._unread_bytes += len(data)
            if self._unread_bytes > MAX_ANSWER_BYTES:
                await connection.close(code=aiohttp.WSCloseCode.MESSAGE_TOO_BIG)
                break
            self._last_arrival = time.perf_counter()
            self._arrived.put_nowait(data)
        self._arrived.put_nowait(None)
