"""Plans whose findings are given, and their scorecards: what scoring and gate are tested on."""

from dataclasses import fields

import builders as build

from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.run_ending import RunEnding
from ci_evals.domain.suite import Suite
from ci_evals.gate.decision import decide
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import to_record
from ci_evals.scoring.scorecard import Scorecard, SuiteFacts, score
from ci_evals.scoring.scores import ScoreRule


def make_plan(*tests: dict, loops: int = 1, name: str = "S", **fields) -> Plan:
    """A plan of one suite with these tests; what they evaluate does not matter, the findings are given."""
    suite = Suite.model_validate({
        "name": name,
        "tests": [
            {"guidelines": "g", "turns": [{"user": "x"}], "evaluations": [{"criterion": "c"}]} | test
            for test in tests
        ],
        **fields,
    })  # fmt: skip
    count = len(suite.tests)
    whole = PlannedSuite(
        suite=suite, file="s.json", digest="d", tests=suite.tests, test_digests=("t",) * count,
        test_lines=tuple(range(1, count + 1)),
    )  # fmt: skip
    return Plan(suites=(whole,), loops=loops)


def scorecard_of_results(results: Results) -> Scorecard:
    """The scorecard that these results could be made of."""
    return Scorecard(**{field.name: getattr(results, field.name) for field in fields(Scorecard)})


def scorecard(plan: Plan, *trials: TrialResult | None, offline: bool = False) -> Scorecard:
    facts = [SuiteFacts("S/x")] * len(plan.suites)
    return score(plan, trials, facts, ScoreRule(offline=offline))


def trial(*outcomes: str, status: str = "completed", index: int = 1, **fields) -> TrialResult:
    """A trial with a finding for each outcome: `passed`, `failed`, `no_judge`, …; `failed*3` weighs 3."""
    findings = []
    for text in outcomes:
        kind, _, weight = text.partition("*")
        decided = (
            {"outcome": kind} if kind in {"passed", "failed"} else {"outcome": "undecided", "cause": kind}
        )
        findings.append(build.finding(weight=float(weight or 1), **decided, **fields))
    return build.trial_result(index, status=status, findings=tuple(findings))


TEST_A = {"name": "a"}
TEST_B = {"name": "b"}


def gate_decision(plan, *trials, offline=False, ending=None, comparer=None, **policy) -> Decision:
    """What the gate says of these trials."""
    config = {"provider": "offline" if offline else "openai"}
    results = build.results_of_scorecard(scorecard(plan, *trials, offline=offline), config=config)
    case = GateInput(results, comparer)
    return to_record(decide(case, Policy(**policy), ending or RunEnding()))
