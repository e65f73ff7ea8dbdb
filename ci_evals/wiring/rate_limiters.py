"""One rate limiter for each agent server and key of a run, whichever suites name them."""

from collections.abc import Iterator

from ci_evals.adapters.transport.connections import host_of
from ci_evals.adapters.transport.rate_limiter import RateLimiter, Waiting


class RateLimiters:
    """The rate limiters of a run's agents."""

    def __init__(self) -> None:
        self._limiters: dict[tuple[str, str], RateLimiter] = {}

    def of(self, url: str, key: str) -> RateLimiter:
        """The rate limiter of all calls to the server of an address with a key."""
        return self._limiters.setdefault((host_of(url), key.strip()), RateLimiter())

    def waits(self) -> Iterator[tuple[str, Waiting | None]]:
        """How long each agent's server is waited for now."""
        for (host, _), limiter in self._limiters.items():
            yield f"the agent at {host}", limiter.waiting()

    def notes(self) -> tuple[str, ...]:
        """What a person should know of limits that agents set to the rate."""
        told = (limiter.note(f"the agent at {host}") for (host, _), limiter in self._limiters.items())
        return tuple(note for note in told if note)
