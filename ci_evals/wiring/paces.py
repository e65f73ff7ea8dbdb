"""How fast the agents of a run are asked: one pace for each server and key, whichever suites name them."""

from collections.abc import Iterator

from ci_evals.adapters.transport.connections import host_of
from ci_evals.adapters.transport.pace import Pace, Waiting


class Paces:
    """The paces of a run's agents."""

    def __init__(self) -> None:
        self._paces: dict[tuple[str, str], Pace] = {}

    def of(self, url: str, key: str) -> Pace:
        """The pace of all calls to the server of an address with a key."""
        return self._paces.setdefault((host_of(url), key.strip()), Pace())

    def waits(self) -> Iterator[tuple[str, Waiting | None]]:
        """How long each agent's server is waited for now."""
        for (host, _), pace in self._paces.items():
            yield f"the agent at {host}", pace.waiting()

    def notes(self) -> tuple[str, ...]:
        """What a person should know of limits that agents set to the rate."""
        told = (pace.note(f"the agent at {host}") for (host, _), pace in self._paces.items())
        return tuple(note for note in told if note)
