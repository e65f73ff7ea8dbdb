"""Which tests are taken from an earlier run instead of being played."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ci_evals.domain.plan import PlannedSuite
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.taken import Reason, TakenFrom, TakenTest
from ci_evals.domain.suite import Suite, Test
from ci_evals.job.job import Job
from ci_evals.job.playing import not_played
from ci_evals.runner import Participants
from ci_evals.scoring.comparison.pairing import SuitePair, differences, pair, partners
from ci_evals.scoring.scores import ScoreRule, Validity, validity
from ci_evals.wiring.connections import Connections

MayTake = Callable[[Suite, Test, TestResult], bool]
"""Whether the earlier result of a test stands for it."""


@dataclass(frozen=True)
class EarlierRun:
    """An earlier run, and what may be taken of it."""

    results: Results
    reason: Reason
    may_stand: MayTake


@dataclass(frozen=True)
class Taking:
    """What came of taking tests from an earlier run."""

    job: Job
    """With the tests taken, if any are."""
    known: int
    """How many tests of the plan the earlier run has, defined alike."""
    different: tuple[str, ...] = ()
    """Why nothing of the earlier run can stand in this one."""
    played_whole: tuple[str, ...] = ()
    """Why all tests of a suite are played."""


def take(job: Job, clients: Connections | Participants, earlier: EarlierRun) -> Taking:
    """Take the tests that may stand, if they would be played and judged in the same way here.

    Only what was decided stands: of a test with a trial that broke off, or an undecided verdict, nothing is
    taken. Nor of one that had fewer trials than it would have here.
    """
    head, there = not_played(job, clients, ""), earlier.results
    pairs, of_each = pair(head, there), partners(head.suites, there.suites)
    known = sum(len(suite.pairs) for suite in pairs)
    different = [*map(_named, differences(head, there))]
    if there.run.origin:
        different.append(f"the conversations there belong to a {there.run.origin.how}")
    if different:
        return Taking(job, known, tuple(different))
    suites: list[PlannedSuite] = []
    taken: dict[tuple[str, str], TakenTest] = {}
    whole: list[str] = []
    # The pairs of this run's suites come first, in its order.
    for planned, here, partner, suite in zip(job.plan.suites, head.suites, of_each, pairs, strict=False):
        reasons = [*map(_named, suite.reasons), *_other_agent(here, partner)]
        whole += [f"{suite.name}: {why}" for why in reasons]
        own = {} if reasons else dict(_of_suite(job, planned, suite, earlier))
        suites.append(replace(planned, taken=frozenset(own)))
        taken |= {(planned.file, name): test for name, test in own.items()}
    plan = replace(job.plan, suites=tuple(suites))
    return Taking(replace(job, plan=plan, taken=taken), known, played_whole=tuple(whole))


def _named(reason: str) -> str:
    return reason.replace("the baseline", "the earlier run")


def _other_agent(here: SuiteResult, there: SuiteResult | None) -> tuple[str, ...]:
    if there is None or (here.adapter, here.agent_id) == (there.adapter, there.agent_id):
        return ()
    return (f"the agent is {_agent(here)}, in the earlier run it was {_agent(there)}",)


def _agent(suite: SuiteResult) -> str:
    return f"{suite.agent_id or 'not named'} ({suite.adapter})"


def _of_suite(
    job: Job, planned: PlannedSuite, suite: SuitePair, earlier: EarlierRun
) -> Iterator[tuple[str, TakenTest]]:
    rule = ScoreRule(offline=earlier.results.run.offline)
    for found in suite.pairs:
        test, base = planned.tests[found.numbers[1] - 1], found.base
        decided = not base.not_run and all(validity(trial, rule) is Validity.VALID for trial in base.trials)
        fewest = next(iter(job.plan.looks), None) or job.plan.loops_of(test)
        if decided and len(base.trials) >= fewest and earlier.may_stand(planned.suite, test, base):
            trials = tuple(map(job.redactor.model, base.trials))
            yield test.name, TakenTest(trials, _source(earlier, base))


def _source(earlier: EarlierRun, test: TestResult) -> TakenFrom:
    """The run that played the test, be it that the earlier run took it from there."""
    if test.taken_from:
        return test.taken_from.model_copy(update={"reason": earlier.reason})
    run = earlier.results.run
    return TakenFrom(
        reason=earlier.reason,
        run=run.id,
        started_at=run.started_at,
        commit=run.git.head_commit or run.git.commit,
    )
