"""The result of one trial, and its score."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import overload

from pydantic import computed_field

from ci_evals.domain.base import CleanText, Percent, ResultPart, Seconds, as_written
from ci_evals.domain.checks.evaluation import STRICT_CHECKS
from ci_evals.domain.results.process import Fired, Times, TrialProcess
from ci_evals.domain.results.simulated_user import UserAudit
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.domain.suite import MOST_LOOPS
from ci_evals.domain.transcript import EndState, FailureCause, ProbeResult, Turn, Turns
from ci_evals.domain.verdict import UNUSABLE, Finding, Outcome

_ENDS = frozenset({EndState.COMPLETED, EndState.STOPPED, EndState.ESCALATED})
_EXPECTING_AN_ERROR = {check.kind() for check in STRICT_CHECKS if check.expects_end is EndState.AGENT_ERROR}
"""The kinds of checks for which the agent must end the conversation with an error."""


MOST_TRIALS = 2 * MOST_LOOPS
"""The most trials of one test that are believed of a file: earlier versions played up to twice the loops."""


def passed_share(findings: Iterable[Finding]) -> Fraction | None:
    """The weighted share of the findings that passed, in points, exactly; None if nothing has weight.

    A graded one counts with its grade. The one formula behind every score.
    """
    return _passed_share(_weights(findings))


_Weights = tuple[tuple[float, Fraction | bool], ...]


def _weights(findings: Iterable[Finding]) -> _Weights:
    return tuple([(f.weight, _met(f)) for f in findings])  # a list takes half the time of a generator


def _met(finding: Finding) -> Fraction | bool:
    """The share to which a criterion is met; 0 if undecided."""
    if finding.grade is not None and finding.outcome is not Outcome.UNDECIDED:
        return finding.grade.exact()
    return finding.outcome is Outcome.PASSED


@overload
def points(exact: Fraction) -> Percent: ...
@overload
def points(exact: Fraction | None) -> Percent | None: ...
def points(exact: Fraction | None) -> Percent | None:
    """The number to show: never above the exact one, so that no floor seems reached that was missed."""
    if exact is None:
        return None
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, 0)


@lru_cache(10_000)
def _passed_share(weights: _Weights) -> Fraction | None:
    """Cached: in most trials of a test weights and outcomes are alike."""
    total = passed = Fraction()
    for number, met in weights:
        weight = as_written(number)
        total += weight
        passed += weight * met
    return 100 * passed / total if total else None


@lru_cache(10_000)
def _points(weights: _Weights) -> Percent | None:
    return points(_passed_share(weights))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(ResultPart):
    """One try at playing a trial."""

    status: EndState
    error: str | None = None
    cause: FailureCause | None = None
    user_audit: UserAudit | None = None
    """Of a conversation that was rerun because its simulated user broke character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult(ResultPart):
    """The result of one trial: its end, its turns and its verdicts."""

    index: int
    """Counted from 1 within its test."""
    run: CleanText | None = None
    """The id of the earlier attempt at this commit that played it. Null if this run did, or the run that the
    whole test is taken from."""
    status: EndState
    error: str | None = None
    """Why it failed."""
    cause: FailureCause | None = None
    """What errored: `agent_failed`, `model_failed` (the simulated user's model), or `setup_failed`
    (a step of its setup; then the agent was not called)."""
    duration_seconds: Seconds
    attempts: tuple[Attempt, ...] = ()
    """Every try, the last one being this result."""
    closing_remark: str | None = None
    turns: Turns = field(default_factory=Turns)
    probes: dict[str, ProbeResult] = field(default_factory=dict)
    """By name, what each probe returned after the conversation, or why it failed."""
    probes_before: dict[str, ProbeResult] = field(default_factory=dict)
    """The same before the first message, of the probes that `state` checks read."""
    canaries: dict[str, str] = field(default_factory=dict)
    """The values that were made for this trial, by name: what `{{canary.NAME}}` stood for."""
    findings: tuple[Finding, ...] = ()
    usage: tuple[RoleUsage, ...] = ()
    """Calls and tokens of the models, all attempts together."""
    times: Times | None = None
    """Null if they were not measured."""
    process: TrialProcess | None = None
    """Null if no reply carried a trace."""
    fired: Fired | None = None
    """Null if no reply carried a trace."""
    user_audit: UserAudit | None = None
    """Whether the simulated user stayed in character; null if no model played it."""

    # mypy does not know decorated properties (python/mypy#1362); pydantic documents them so.
    @computed_field(description="Weighted share of the decided verdicts that passed, in points.")  # type: ignore[prop-decorator]
    @property
    def score(self) -> Percent | None:
        """The trial's score, 0 to 100; None if nothing was decided."""
        return _points(_weights(self._decided()))

    def packed(self) -> "TrialResult":
        """The same in a small part of the memory: for one that is held while others are played."""
        return replace(self, turns=self.turns.packed())

    def exact_score(self) -> Fraction | None:
        """The score, unrounded."""
        return passed_share(self._decided())

    def _decided(self) -> Iterator[Finding]:
        return (finding for finding in self.findings if finding.outcome is not Outcome.UNDECIDED)

    def turn_of(self, finding: Finding) -> Turn | None:
        """The turn that shows a verdict: the first that it rests on, else the last one."""
        turns = tuple(self.turns)
        by_number = {turn.index: turn for turn in turns}
        named = [by_number[number] for number in finding.evidence if number in by_number]
        return next(iter([*named, *reversed(turns)]), None)

    @property
    def counts(self) -> bool:
        """True if the trial counts: it ended by itself, or in the error that its test asks for.

        Any other is left out of every score, and counted. This is the one definition for scores, gate,
        comparison, odds and reports.
        """
        if self.status is not EndState.AGENT_ERROR:
            return self.status in _ENDS
        return any(finding.strict in _EXPECTING_AN_ERROR for finding in self.findings)

    @property
    def scored(self) -> bool:
        """True if the trial has a part in its test's score."""
        return self.counts and self.exact_score() is not None

    @property
    def judged(self) -> bool:
        """True if a judge had a say in it."""
        return any(finding.kind == "judged" for finding in self.findings)

    @property
    def excluded(self) -> bool:
        """True if its simulated user broke character: it says nothing about the agent."""
        return self.status is EndState.INVALID_USER

    @property
    def complete(self) -> bool:
        """True if its conversation is whole; in others the agent may have had no time to act."""
        return self.status not in {EndState.FAILED, EndState.INTERRUPTED, EndState.INVALID_USER}

    @property
    def infrastructure_failed(self) -> bool:
        """True if something other than the agent failed: the trial broke off, or nothing could be judged."""
        judged = [finding for finding in self.findings if finding.kind == "judged"]
        return self.status is EndState.FAILED or (
            bool(judged) and all(finding.cause in UNUSABLE for finding in judged)
        )

    @property
    def needs_rerun(self) -> bool:
        """True if it broke off, or lacks a usable verdict: after an outage, a resumed run reruns it."""
        return self.status is EndState.FAILED or any(finding.cause in UNUSABLE for finding in self.findings)
