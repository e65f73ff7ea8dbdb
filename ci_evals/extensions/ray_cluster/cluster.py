"""Clusters and their workers, as a run needs them. Ray is one; tests have others."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class WorkerLostError(Exception):
    """A worker of a cluster has ended, or cannot be reached any more. Its text is a clause."""


class Worker(Protocol):
    """The inner side of a worker, in its own process: it takes orders and has news."""

    async def order(self, orders: Sequence[Any]) -> None:
        """Carry out orders, or begin to."""

    async def news(self) -> Sequence[Any]:
        """Return the news since the last call; after some seconds without any, none."""


class RemoteWorker(Protocol):
    """The outer side of a worker. Both methods raise `WorkerLostError` once it is lost."""

    async def order(self, orders: Sequence[Any]) -> None:
        """Hand over orders, which can be pickled. They arrive in the order in which they are given."""

    async def news(self) -> Sequence[Any]:
        """Wait for news, and return them once."""

    def end(self) -> None:
        """End the worker's process, whatever it is doing. News of it may be lost."""


class Cluster(Protocol):
    """Processors, of this machine or of many, on which workers run."""

    name: str
    """As the user named it."""

    def processors(self) -> int:
        """Return how many workers can run at once."""

    async def start(self, make: Callable[[], Worker]) -> RemoteWorker:
        """Start a process with the worker that `make` returns, which can be imported there.

        Raises:
            WorkerLostError: it cannot be started in time.
        """
