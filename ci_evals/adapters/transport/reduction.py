"""How many calls to a service that limits the rate may be under way at once. Pure.

- Up to a tenth of refused calls are taken for random, as some servers refuse, and change nothing.
- Beyond that, each refusal lowers the number by one. If the server names a wait, the number is halved, once
  for all calls that were sent before.
- Every eight successes raise the number by one until it is where it was.

Several processes can share a service. Each counts every refusal, its own and those of the others, as the part
of one that it is of all: so the sum of their numbers changes as one process's would.
"""

from dataclasses import dataclass

_RANDOM_SHARE = 0.1
"""Share of concurrent calls that may be refused without a meaning for the others."""
_CREDIT = 3.0
"""Refusals beyond that share that mean nothing either, while a server has answered well for long."""
_RECOVERY = 1 / 8
"""Share of a refusal that a success makes up for: one refusal in nine calls keeps the number as it is."""
_WEIGHT = 0.2
"""Weight of a call's time in the mean of all."""


@dataclass
class Reduction:
    """How far concurrent calls are reduced, as refusals and successes have it."""

    limit: float | None = None
    """Concurrent calls; None while nothing is reduced."""
    peak: int = 0
    """Concurrent calls before the reduction."""
    steps: int = 0
    """Reductions so far, each by calls that were sent after the one before."""
    floor: float = 1.0
    """The lower bound of the last step."""
    strain: float = 0.0
    """Refusals that no successes have made up for; negative while there is credit for some."""
    call_seconds: float = 0.0
    """Mean time of a call."""
    part: float = 1.0
    """The part of all calls to the service that this process makes."""

    def count_refusal(self, requested_wait: float | None, sent_after: int, under_way: int) -> bool:
        """Reduce concurrent calls unless the refusal may be random. Return whether all calls have to wait."""
        limit = self.limit or max(under_way, self.part)
        self.strain = min(self.strain + self.part, limit)
        if self.strain <= _RANDOM_SHARE * limit:
            return False
        is_new = sent_after >= self.steps  # otherwise the last step was for this refusal too
        if is_new:
            self.steps = sent_after + 1
            self.floor = max(self.part, limit / 2)
        reduced = limit / 2 if is_new and requested_wait else limit - self.part
        self.limit = max(self.floor, reduced)
        self.peak = max(self.peak, under_way)
        return bool(requested_wait) or (is_new and self.strain >= self.limit)

    def count_success(self, seconds: float) -> None:
        """Let more calls go, until as many go as before."""
        self.call_seconds += (seconds - self.call_seconds) * (_WEIGHT if self.call_seconds else 1)
        least = -_CREDIT * self.part if self.limit is None else 0.0
        self.strain = max(self.strain - _RECOVERY, least)
        if self.limit is not None:
            self.limit += _RECOVERY
            if self.limit >= self.peak:
                self.limit, self.peak = None, 0
