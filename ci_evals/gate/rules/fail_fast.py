"""`fail-fast`: the failure that stopped a run. It has no limit; the way in which the run ended is checked."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.gate_input import GatedRun
from ci_evals.gate.rule import Nature, Rule


@dataclass(frozen=True)
class FailFast(Rule):
    """The failure that stopped a run with the option `fail_fast`."""

    kind: ClassVar[CheckKind] = CheckKind.FAIL_FAST
    nature: ClassVar[Nature] = Nature.ENDING

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield nothing: see `ended`."""
        del run
        yield from ()

    @classmethod
    def ended(cls, ending: RunEnding) -> GateCheck:
        """Return the check of a run that was stopped since a trial had failed."""
        note = ending.stopped_because or "a trial failed"
        return GateCheck(name=cls.kind, kind=cls.kind, required=None, seen=None, passed=False, note=note)

    @classmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """Return the reason."""
        del value, limit
        return f"{check.name}: {check.note}"
