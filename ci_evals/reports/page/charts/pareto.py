"""The runs that no other run beats in both cost and score."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A run with known cost and known score."""

    name: str
    cost: float
    """US dollars a trial."""
    score: float
    """0 to 100."""

    def dominates(self, other: "Candidate") -> bool:
        """True if it costs no more and scores no less, and is not the same in both."""
        return (
            self.cost <= other.cost
            and self.score >= other.score
            and (self.cost, self.score) != (other.cost, other.score)
        )


def frontier(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The candidates that no other dominates, the cheapest first; of equal ones all."""
    best: list[Candidate] = []
    for one in sorted(candidates, key=lambda one: (one.cost, -one.score)):
        last = best[-1] if best else None
        if last is None or one.score > last.score or (one.cost, one.score) == (last.cost, last.score):
            best.append(one)
    return tuple(best)


def dominated(candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, tuple[Candidate, ...]]]:
    """The other candidates, each with those of the frontier that dominate it."""
    best = frontier(candidates)
    for one in candidates:
        if better := tuple(other for other in best if other.dominates(one)):
            yield one, better
