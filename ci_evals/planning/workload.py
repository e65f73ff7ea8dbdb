"""How much work a plan is, before anything runs."""

from dataclasses import dataclass

from ci_evals.domain.evaluation import Judged, compares_meanings
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.domain.suite import Test


@dataclass(frozen=True)
class Estimate:
    """Counts of a plan. Calls are upper bounds: a conversation may end before its last turn."""

    tests: int
    trials: int
    turns: int
    auto_turns: int
    strict: int
    judged: int
    semantic: int = 0
    """Those of the strict ones that compare meanings."""
    simulated: int = 0
    """Trials in which the simulated user writes a line."""

    @property
    def agent_calls(self) -> int:
        """Requests to the agent: one to open each session, one for each turn."""
        return self.trials + self.turns

    @property
    def user_calls(self) -> int:
        """Calls of the simulated user."""
        return self.auto_turns

    @property
    def auditor_calls(self) -> int:
        """Calls of the model that looks at the simulated user, where that is wanted."""
        return self.simulated

    @property
    def judge_calls(self) -> int:
        """Calls of the judge."""
        return self.judged

    @property
    def embedder_calls(self) -> int:
        """Calls of the embedding model."""
        return self.semantic

    @property
    def needs_llm(self) -> bool:
        """Whether any part of the plan asks a model."""
        return bool(self.auto_turns or self.judged)

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(
            tests=self.tests + other.tests,
            trials=self.trials + other.trials,
            turns=self.turns + other.turns,
            auto_turns=self.auto_turns + other.auto_turns,
            strict=self.strict + other.strict,
            judged=self.judged + other.judged,
            semantic=self.semantic + other.semantic,
            simulated=self.simulated + other.simulated,
        )


NOTHING = Estimate(tests=0, trials=0, turns=0, auto_turns=0, strict=0, judged=0)


def of_test(plan: Plan, planned: PlannedSuite, test: Test) -> Estimate:
    """The work of one test of a suite, over all its trials."""
    trials, turns = plan.loops_of(test), planned.suite.turns_of(test)
    judged = sum(isinstance(evaluation, Judged) for evaluation in test.evaluations)
    semantic = sum(compares_meanings(evaluation) for evaluation in test.evaluations)
    return Estimate(
        tests=1,
        trials=trials,
        turns=trials * len(turns),
        auto_turns=trials * sum(turn.auto for turn in turns),
        strict=trials * (len(test.evaluations) - judged),
        judged=trials * judged,
        semantic=trials * semantic,
        simulated=trials * any(turn.auto for turn in turns),
    )


def of_suite(plan: Plan, planned: PlannedSuite) -> Estimate:
    """The work of one suite of the plan."""
    return sum((of_test(plan, planned, test) for test in planned.tests), NOTHING)


def of_plan(plan: Plan) -> Estimate:
    """The work of the whole plan."""
    return sum((of_suite(plan, planned) for planned in plan.suites), NOTHING)
