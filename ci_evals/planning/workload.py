"""The amount of work in a plan, before anything runs."""

from dataclasses import dataclass
from operator import add

from ci_evals.domain.checks.evaluation import ClaimsBacked, Judged
from ci_evals.domain.checks.strict.expected_answers import compares_meanings
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.domain.suite import Test


@dataclass(frozen=True)
class Workload:
    """Counts of a plan. Calls are upper bounds: a conversation may end before its last turn."""

    tests: int = 0
    trials: int = 0
    fewest_turns: int = 0
    """Turns that are played if the simulated user has nothing to add."""
    turns: int = 0
    strict: int = 0
    """Strict evaluations."""
    user_calls: int = 0
    judge_calls: int = 0
    embedder_calls: int = 0
    auditor_calls: int = 0
    """Trials in which the simulated user has a message to write."""
    wanted_auditor_calls: int = 0
    """Those of them whose test asks for an audit (`auditUser`)."""

    @property
    def agent_calls(self) -> int:
        """Requests to the agent: one to open each session, one for each turn."""
        return self.trials + self.turns

    @property
    def needs_llm(self) -> bool:
        """True if any part of the plan asks an LLM."""
        return bool(self.user_calls or self.judge_calls)

    def __add__(self, other: "Workload") -> "Workload":
        return Workload(*map(add, vars(self).values(), vars(other).values()))


def of_test(plan: Plan, planned: PlannedSuite, test: Test) -> Workload:
    """Return the work of one test, over all its trials."""
    trials, turns = plan.played_of(planned, test), planned.suite.turns_of(test)
    judged = sum(isinstance(evaluation, Judged) for evaluation in test.evaluations)
    spoken_trials = trials * any(turn.auto for turn in turns)
    return Workload(
        tests=1,
        trials=trials,
        fewest_turns=trials * planned.suite.fewest_turns(test),
        turns=trials * len(turns),
        strict=trials * (len(test.evaluations) - judged),
        user_calls=trials * sum(turn.auto for turn in turns),
        judge_calls=trials * judged,
        embedder_calls=trials * sum(map(compares_meanings, test.evaluations)),
        auditor_calls=spoken_trials,
        wanted_auditor_calls=spoken_trials * test.audit_user,
    )


def of_suite(plan: Plan, planned: PlannedSuite) -> Workload:
    """Return the work of one suite of the plan."""
    return sum((of_test(plan, planned, test) for test in planned.tests), Workload())


def of_plan(plan: Plan) -> Workload:
    """Return the work of the whole plan."""
    return sum((of_suite(plan, planned) for planned in plan.suites), Workload())


def judges_claims(plan: Plan) -> bool:
    """Return whether a criterion of the plan is about claims."""
    tests = (test for planned in plan.suites for test in planned.tests)
    return any(isinstance(one, ClaimsBacked) for test in tests for one in test.evaluations)
