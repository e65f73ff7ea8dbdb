"""Clusters without Ray, behind the same port: of processes, or of workers in this event loop."""

import asyncio
import pickle
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ci_evals.extensions.ray_cluster.cluster import Worker, WorkerLostError

_LENGTH = struct.Struct("!I")


class ProcessWorker:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def order(self, orders: Sequence[Any]) -> None:
        _write(self.process.stdin, orders)
        with suppress(ConnectionError):
            await self.process.stdin.drain()
            return
        raise WorkerLostError("its process has ended")

    async def news(self) -> Sequence[Any]:
        try:
            return await _read(self.process.stdout)
        except asyncio.IncompleteReadError:
            raise WorkerLostError("its process has ended") from None

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()


class ProcessCluster:
    name = "some"

    def __init__(self, processors: int) -> None:
        self._processors = processors
        self.workers: list[ProcessWorker] = []
        self.broken = False
        """True if no worker can be started any more."""

    def processors(self) -> int:
        return self._processors

    async def start(self, make: Callable[[], Worker]) -> ProcessWorker:
        if self.broken:
            raise WorkerLostError("no processor is free")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, stdin=pipe, stdout=pipe, cwd=Path.cwd()
        )
        _write(process.stdin, make)
        self.workers.append(ProcessWorker(process))
        return self.workers[-1]

    async def close(self) -> None:
        for worker in self.workers:
            worker.end()
            await worker.process.communicate()


class LoopWorker:
    """A worker in this event loop. All messages are pickled, as those of others are."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.frozen = False
        self._lost = asyncio.Event()

    async def order(self, orders: Sequence[Any]) -> None:
        if self._lost.is_set():
            raise WorkerLostError("it was ended")
        await self.worker.order(pickle.loads(pickle.dumps(orders)))

    async def news(self) -> Sequence[Any]:
        waits = [asyncio.create_task(self._lost.wait()), asyncio.create_task(self.worker.news())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if self._lost.is_set():
                raise WorkerLostError("it was ended")
            if self.frozen:
                await asyncio.Event().wait()
            return pickle.loads(pickle.dumps(waits[1].result()))
        finally:
            for wait in waits:
                wait.cancel()

    def end(self) -> None:
        self._lost.set()
        for task in self.worker._tasks:
            task.cancel()


class LoopCluster(ProcessCluster):
    async def start(self, make: Callable[[], Worker]) -> LoopWorker:
        if self.broken:
            raise WorkerLostError("no processor is free")
        self.workers.append(LoopWorker(pickle.loads(pickle.dumps(make))()))
        return self.workers[-1]

    async def close(self) -> None:
        for worker in self.workers:
            worker.end()
            await worker.worker._stack.aclose()


def _write(writer: Any, value: Any) -> None:
    data = pickle.dumps(value)
    writer.write(_LENGTH.pack(len(data)) + data)


async def _read(reader: asyncio.StreamReader) -> Any:
    (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return pickle.loads(await reader.readexactly(size))


async def _serve() -> None:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=2**26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    out = sys.stdout.buffer
    worker = (await _read(reader))()

    async def tell() -> None:
        while True:
            _write(out, await worker.news())
            out.flush()

    telling = asyncio.create_task(tell())
    with suppress(asyncio.IncompleteReadError):
        while True:
            await worker.order(await _read(reader))
    telling.cancel()


if __name__ == "__main__":
    asyncio.run(_serve())
