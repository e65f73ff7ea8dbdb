"""Tests whose trials are reused from an earlier run instead of being played."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ci_evals.domain.plan import PlannedSuite
from ci_evals.domain.results.reused import Reason, ReusedTest, TakenFrom
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.suite import Suite, Test
from ci_evals.job.chosen import Chosen
from ci_evals.job.job import Job
from ci_evals.job.playing import not_played
from ci_evals.scoring.comparison.pairing import SuitePair, differences, pair, partners
from ci_evals.scoring.scores import ScoreRule, Validity, validity

CanReuse = Callable[[Suite, Test, TestResult], bool]
"""Says whether the earlier result of a test can be reused."""


@dataclass(frozen=True)
class EarlierRun:
    """An earlier run, and which of its tests can be reused."""

    results: Results
    reason: Reason
    can_reuse: CanReuse


@dataclass(frozen=True)
class Reuse:
    """A job whose plan reuses tests of an earlier run."""

    job: Job
    comparable: int
    """The number of tests of the plan that the earlier run has with the same definition."""
    differences: tuple[str, ...] = ()
    """The reasons why nothing of the earlier run can be reused."""
    notes: tuple[str, ...] = ()
    """The reasons why all tests of a suite are played."""


def reuse(job: Job, chosen: Chosen, earlier: EarlierRun) -> Reuse:
    """Reuse the tests that `can_reuse` allows, if they would be played and judged in the same way here.

    Only decided tests are reused: none with a trial that broke off or an undecided verdict, and none with
    fewer trials than it would have here.
    """
    head, there = not_played(job, chosen, ""), earlier.results
    pairs, partner_of_each = pair(head, there), partners(head.suites, there.suites)
    comparable = sum(len(suite.pairs) for suite in pairs)
    different = [*map(_named, differences(head, there))]
    if there.run.origin:
        different.append(f"the conversations there belong to a {there.run.origin.how}")
    if different:
        return Reuse(job, comparable, tuple(different))
    suites: list[PlannedSuite] = []
    reused: dict[tuple[str, str], ReusedTest] = {}
    notes: list[str] = []
    # The pairs of this run's suites come first, in its order.
    for planned, here, partner, suite in zip(
        job.plan.suites, head.suites, partner_of_each, pairs, strict=False
    ):
        reasons = [*map(_named, suite.reasons), *_other_agent(here, partner)]
        notes += [f"{suite.name}: {reason}" for reason in reasons]
        tests: dict[str, ReusedTest] = {}
        if not reasons:
            tests = dict(_reused_of(job, planned, suite, earlier))
        suites.append(replace(planned, reused=frozenset(tests)))
        for name, test in tests.items():
            reused[planned.file, name] = test
    plan = replace(job.plan, suites=tuple(suites))
    return Reuse(replace(job, plan=plan, reused=reused), comparable, notes=tuple(notes))


def _named(reason: str) -> str:
    return reason.replace("the baseline", "the earlier run")


def _other_agent(here: SuiteResult, there: SuiteResult | None) -> tuple[str, ...]:
    if there is None or (here.adapter, here.agent_id) == (there.adapter, there.agent_id):
        return ()
    return (f"the agent is {_agent(here)}, in the earlier run it was {_agent(there)}",)


def _agent(suite: SuiteResult) -> str:
    return f"{suite.agent_id or 'not named'} ({suite.adapter})"


def _reused_of(
    job: Job, planned: PlannedSuite, suite: SuitePair, earlier: EarlierRun
) -> Iterator[tuple[str, ReusedTest]]:
    rule = ScoreRule(offline=earlier.results.run.offline)
    for tests in suite.pairs:
        test, base = planned.tests[tests.numbers[1] - 1], tests.base
        decided = not base.not_run and all(validity(trial, rule) is Validity.VALID for trial in base.trials)
        required = job.plan.looks[0] if job.plan.looks else job.plan.loops_of(test)
        if decided and len(base.trials) >= required and earlier.can_reuse(planned.suite, test, base):
            trials = tuple(map(job.redactor.model, base.trials))
            yield test.name, ReusedTest(trials, _source(earlier, base))


def _source(earlier: EarlierRun, test: TestResult) -> TakenFrom:
    """The run that played the test: the earlier run, or the run it was reused from."""
    if test.taken_from:
        return replace(test.taken_from, reason=earlier.reason)
    run = earlier.results.run
    return TakenFrom(
        reason=earlier.reason,
        run=run.id,
        started_at=run.started_at,
        commit=run.git.head_commit or run.git.commit,
        uncommitted_changes=run.git.uncommitted_changes,
    )
