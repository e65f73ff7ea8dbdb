"""A cluster of Ray: of this machine, or one that runs. The only module that imports Ray.

Ray writes what it knows of a driver into logs, and keeps large arguments where they may be written to a disk.
So secrets go to workers in small pieces and in memory only, Ray's own processes on this machine have no
environment but the machine's, and Ray is not shown the command line.
"""

import asyncio
import concurrent.futures
import os
import pickle
import re
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

from ci_evals._version import __version__
from ci_evals.adapters.processes.environments import OF_THE_MACHINE
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.ray_cluster.cluster import Worker, WorkerLostError
from ci_evals.support.documentation import extra

LOCAL = "ray"
"""The address of a cluster that a run starts on this machine."""
_PREFIX = "ray://"

_PIECE = 64 * 1024
"""Bytes of one argument. Above 100 kB Ray would put it into its store of objects."""
_REACH_SECONDS = 10.0
"""The time to wait for an answer of the cluster's head."""
_START_SECONDS = 60.0
"""The time to wait for a processor that is free, and a worker on it."""
_DRIVER_GONE_SECONDS = 45.0
"""The time after which a worker that nobody listens to ends by itself."""
_STORE_BYTES = 200_000_000
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S": f"{_REACH_SECONDS:.0f}",
}
_LEFT_OUT = [".git", ".venv", "__pycache__", ".env", ".env.*", "node_modules"]
"""Of the working folder; also what .gitignore and .rayignore name."""


_OTHER_VERSIONS = re.compile(
    r"ersion mismatch.*?Ray: (\S+)\s+Python: (\S+).*?Ray: (\S+)\s+Python: (\S+)", re.DOTALL
)
"""Ray's message when it connects: versions there and here."""


class _ActorLostError(WorkerLostError):
    """A process of Ray has ended: another one may do better."""


class _Host:
    """A worker within a process of Ray: an actor."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._pieces: list[bytes] = []
        self._ending: asyncio.TimerHandle | None = None

    async def version(self) -> str:
        return __version__

    async def order(self, piece: bytes, last: bool) -> None:
        self._pieces.append(piece)
        if not last:
            return
        data, self._pieces = b"".join(self._pieces), []
        if self._worker is None:
            self._worker = pickle.loads(data)()  # noqa: S301  # of the run itself
            self._end_if_alone()
        else:
            await self._worker.order(pickle.loads(data))  # noqa: S301  # likewise

    async def news(self) -> bytes:
        self._end_if_alone()
        return pickle.dumps(await self._worker.news() if self._worker else ())

    def _end_if_alone(self) -> None:
        """End this process if nobody asks for news any more."""
        if self._ending:
            self._ending.cancel()
        self._ending = asyncio.get_running_loop().call_later(_DRIVER_GONE_SECONDS, os._exit, 1)


class _RayWorker:
    """The outer side of a worker. Implements `RemoteWorker`."""

    def __init__(self, ray: ModuleType, actor: Any) -> None:
        self._ray, self._actor = ray, actor

    async def order(self, orders: Sequence[Any]) -> None:
        await self.send(orders)

    async def send(self, value: Any) -> None:
        """Send a value in pieces, one after the other."""
        data = pickle.dumps(value)
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            with _losses():
                await _awaited(self._actor.order.remote(piece, start + _PIECE >= len(data)))

    async def news(self) -> Sequence[Any]:
        with _losses():
            data = await _awaited(self._actor.news.remote())
        news: Sequence[Any] = pickle.loads(data)  # noqa: S301  # of a worker of ours
        return news

    async def version(self) -> str:
        """Return the version of ci-evals where the worker runs."""
        with _losses():
            version: str = await _awaited(self._actor.version.remote())
        return version

    def end(self) -> None:
        with suppress(Exception):  # Ray raises all kinds of errors for what is gone
            self._ray.kill(self._actor)


@contextmanager
def _losses() -> Iterator[None]:
    """Raise `WorkerLostError` for what Ray raises: errors of its own, of gRPC and of the other side."""
    try:
        yield
    except Exception as error:
        if "No module named 'ci_evals'" in str(error):
            reason = "ci-evals is not installed on its machines; install the same version there"
            raise WorkerLostError(reason) from error
        raise _ActorLostError(f"Ray lost a worker: {_first_line(error)}") from error


async def _awaited(reference: Any) -> Any:
    """Wait for a result of Ray. Its own future is never canceled: that ends the thread that serves all."""
    loop = asyncio.get_running_loop()
    result = loop.create_future()

    def hand_over(done: "concurrent.futures.Future[Any]") -> None:
        if result.cancelled():
            return
        if error := done.exception():
            result.set_exception(error)
        else:
            result.set_result(done.result())

    def end(done: "concurrent.futures.Future[Any]") -> None:
        with suppress(RuntimeError):  # the event loop has ended
            loop.call_soon_threadsafe(hand_over, done)

    reference.future().add_done_callback(end)
    return await result


class RayCluster:
    """Processes of Ray, while the block lasts. Implements the port `Cluster`."""

    def __init__(self, address: str) -> None:
        """`address` is `ray`, for this machine, or `ray://HOST:PORT`. Raise `UsageError` for any other."""
        self.name = address
        self._ray: ModuleType | None = None
        self._folder: str | None = None
        check_address(address)

    def __enter__(self) -> Self:
        """Start Ray, or connect to it; raise `UsageError` if that fails."""
        os.environ.update({name: value for name, value in _SETTINGS.items() if name not in os.environ})
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self._ray = ray = _import()
        if self.name != LOCAL:
            reach(self.name)
        try:
            with _own_signals():
                if self.name == LOCAL:
                    self._start(ray)
                else:
                    self._connect(ray)
        except Exception as error:  # of whatever kind: Ray and gRPC have many
            self.__exit__(None, None, None)
            raise UsageError(f"`cluster={self.name}`: {_advice(error)}") from error
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End what was started, and leave nothing on the disk."""
        if self._ray:
            with suppress(Exception):  # the results are there; Ray may be gone
                self._ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def processors(self) -> int:
        """Return how many processors the cluster has."""
        return int(self._module.cluster_resources().get("CPU", 1))

    async def start(self, make: Callable[[], Worker]) -> _RayWorker:
        """Start a worker on a processor that is free."""
        lost: WorkerLostError | None = None
        try:
            async with asyncio.timeout(_START_SECONDS):
                while True:
                    try:
                        return await self._try_to_start(make)
                    except _ActorLostError as error:  # such as on a node that is not yet known to be gone
                        lost = error
                        await asyncio.sleep(1)
        except TimeoutError:
            raise lost or WorkerLostError(f"no processor became free within {_START_SECONDS:.0f} s") from None

    async def _try_to_start(self, make: Callable[[], Worker]) -> _RayWorker:
        ray = self._module
        with _losses():
            actor = ray.remote(num_cpus=1, max_restarts=0, max_concurrency=16)(_Host).remote()
        worker = _RayWorker(ray, actor)
        try:
            _check_version(await worker.version())
            await worker.send(make)
        except BaseException:
            worker.end()
            raise
        return worker

    @property
    def _module(self) -> ModuleType:
        if self._ray is None:
            raise RuntimeError("the cluster is used outside its block")
        return self._ray

    def _start(self, ray: ModuleType) -> None:
        # Paths of sockets must be short, whatever TMPDIR says.
        self._folder = tempfile.mkdtemp(prefix="ci-evals-", dir="/tmp" if os.name == "posix" else None)  # noqa: S108
        with _machine_only():
            ray.init(
                address="local",
                include_dashboard=False,
                log_to_driver=False,
                configure_logging=False,
                object_store_memory=_STORE_BYTES,
                _temp_dir=self._folder,
            )

    def _connect(self, ray: ModuleType) -> None:
        ray.init(
            address=self.name,
            log_to_driver=False,
            configure_logging=False,
            runtime_env={"working_dir": str(Path.cwd()), "excludes": _LEFT_OUT},
        )


def check_address(address: str) -> None:
    """Raise `UsageError` unless an address names a cluster."""
    host, _, port = address.removeprefix(_PREFIX).rpartition(":")
    if address != LOCAL and not (address.startswith(_PREFIX) and host and port.isdecimal()):
        raise UsageError(
            f"`cluster={address}`: give `ray` to use all processors of this machine, or ray://HOST:PORT for "
            "a cluster that runs"
        )


def _check_version(version: str) -> None:
    if version != __version__:
        raise WorkerLostError(
            f"its machines have ci-evals {version}, and this has {__version__}; install that version there"
        )


def _import() -> ModuleType:
    try:
        import ray  # noqa: PLC0415  # an extra that takes a second
        from ray._private import utils, worker  # noqa: PLC0415  # as above
    except ImportError as error:
        raise UsageError(f"`cluster=` needs the package ray: {extra('ray')} ({error})") from error
    # Ray has no public setting for either: it shows the command line of a driver, which may have keys on it,
    # and prints on standard output that a worker was lost.
    utils.get_entrypoint_name = lambda: "ci-evals run"
    worker._worker_logs_enabled = False  # noqa: SLF001
    module: ModuleType = ray
    return module


def reach(address: str) -> None:
    """Raise `UsageError` if nobody answers at an address: Ray itself would wait for long."""
    host, _, port = address.removeprefix(_PREFIX).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"`cluster={address}`: cannot be reached: {reason}. Is Ray running there, with its client server "
            "on this port (10001 by default)?"
        ) from error


def _advice(error: Exception) -> str:
    if found := _OTHER_VERSIONS.search(str(error)):
        there, here = (f"Ray {found[n]} and Python {found[n + 1]}" for n in (1, 3))
        return f"its machines have {there}, and this has {here}; use the same versions on both sides"
    return f"Ray cannot be used: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our handlers: Ray sets its own, which ends the process at once."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # else it was not set by Python
                signal.signal(number, handler)


@contextmanager
def _machine_only() -> Iterator[None]:
    """Hide all variables but those of the machine from the processes that Ray starts."""
    before = dict(os.environ)
    kept = {
        name: value for name, value in before.items() if name in OF_THE_MACHINE or name.startswith("RAY_")
    }
    os.environ.clear()
    os.environ.update(kept)
    try:
        yield
    finally:
        added = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
        os.environ.clear()
        os.environ.update(before | added)
