"""The turns of a run whose evidence turned out to be incomplete after it was read."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from ci_evals.support.documentation import see

LATE = (
    "a span of a tool or a model came after the turn was read; let the agent end its spans before it "
    f"replies, and set OTEL_BSP_SCHEDULE_DELAY=200 ({see('traces')})"
)


def nobody_listens(traces: Collection[str], *, earlier: bool) -> None:
    """Do nothing."""


@dataclass
class Gaps:
    """The gaps in the evidence of a run's turns, each named by its header `traceparent`.

    A span that cannot be attributed may belong to any turn that had begun when it came, and to no later one.
    """

    listen: Callable[..., None] = nobody_listens
    """Called with the traces of trials that have a new gap; `earlier` if all that have ended have one too."""
    _numbers: dict[str, int] = field(default_factory=dict)
    _reasons: dict[str, str] = field(default_factory=dict)
    _begun: int = 0
    """Turns numbered below have the reason `_reason`."""
    _reason: str = ""

    @property
    def turns(self) -> int:
        """The number of turns that have begun."""
        return len(self._numbers)

    @property
    def found(self) -> bool:
        """True if there is any gap."""
        return bool(self._reasons or self._begun)

    def begin(self, turn: str) -> None:
        """Number a turn that begins."""
        self._numbers[turn] = len(self._numbers)

    def add(self, turn: str, reason: str) -> None:
        """Note why a turn's evidence is incomplete."""
        if turn not in self._reasons:
            self._reasons[turn] = reason
            self.listen({turn.split("-")[1]}, earlier=False)

    def suspect(self, trace: str) -> None:
        """Say that a trial may turn out to have a gap: a run that resumes could not know."""
        self.listen({trace}, earlier=False)

    def add_before(self, number: int, reason: str, under_way: Collection[str]) -> None:
        """Note why the evidence of all turns with lower numbers is incomplete, also in trials `under_way`."""
        if number > self._begun:
            self._begun, self._reason = number, reason
            self.listen(under_way, earlier=True)

    def reason(self, turn: str | None) -> str | None:
        """Return why a turn's evidence is incomplete; None if it is not known to be."""
        if turn is None or turn not in self._numbers:
            return None
        return self._reasons.get(turn) or (self._reason if self._numbers[turn] < self._begun else None)
