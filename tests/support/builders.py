"""Domain values for tests, with sensible defaults; what a test is about is what it names.

Use it as a module (`import builders as build`): pytest would take an imported `test_result` for a test.
"""

import dataclasses
import re
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from statistics import fmean, stdev
from typing import TypeVar

from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.gate import CheckKind, CheckOdds, Decision, GateCheck
from ci_evals.domain.results.run import Digests, Results, RunInfo, Shard, Tool
from ci_evals.domain.results.suite import Counts, ScoreSummary, Statistics, SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import Usage
from ci_evals.domain.suite import AUTO, PlannedTurn
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource
from ci_evals.domain.verdict import Cause, Finding, Outcome
from ci_evals.scoring import process
from ci_evals.scoring.coverage import coverage_of
from ci_evals.scoring.scorecard import Scorecard
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.statistics import pass_at_k, pass_hat_k
from ci_evals.support import dataclass_json

STARTED_AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
T = TypeVar("T")
_WORKFLOW_MARKS = re.compile(r"\[([A-Z_0-9]+)\]")


def from_fields(kind: type[T], /, **fields) -> T:
    """A value of results from fields as JSON has them: a text for an enumerated value, a list for a tuple."""
    unknown = fields.keys() - {field.name for field in dataclasses.fields(kind)}
    assert not unknown, unknown
    return dataclass_json.from_value(kind, fields)


def transcript(drawing: str, status: EndState = EndState.COMPLETED, **fields) -> Transcript:
    """`"user: hi | agent: ok [REFUND]"`: one turn per pair; a name in brackets is a workflow.

    Every reply carries a full trace. `user: ...` without an agent's line after it is an error.
    """
    lines = [line.strip() for line in drawing.split("|") if line.strip()]
    turns = []
    for number, (user, agent) in enumerate(zip(lines[::2], lines[1::2], strict=True), start=1):
        assert user.startswith("user:"), user
        assert agent.startswith("agent:"), agent
        result = agent.removeprefix("agent:")
        turns.append(turn(
            number, user=user.removeprefix("user:").strip(), agent=_WORKFLOW_MARKS.sub("", result).strip(),
            workflows=tuple(_WORKFLOW_MARKS.findall(result)),
        ))  # fmt: skip
    return Transcript(turns=tuple(turns), status=status, **fields)


def turn(index: int = 1, **fields) -> Turn:
    """A fixed line of the user, and a reply with an empty but present trace."""
    fields = {
        "user": "I want my money back.", "user_source": UserSource.FIXED,
        "agent": "I have started the refund.", "latency_seconds": 1.25, "workflows": (), "params": {},
        "rules": (), "integrations": (), "error_response": False,
    } | fields  # fmt: skip
    return Turn(index=index, **fields)


def finding(outcome: str = "passed", **fields) -> Finding:
    """A strict finding, `tool_used`; with `kind="judged"` a judged one."""
    fields = {"criterion": "The refund workflow starts", "kind": "strict", "reason": "because"} | fields
    if fields["kind"] == "strict":
        fields = {"strict": "tool_used"} | fields
    return from_fields(Finding, outcome=outcome, **fields)


def trial_result(index: int = 1, **fields) -> TrialResult:
    """A completed trial of one turn that passed its one finding."""
    fields = {
        "status": EndState.COMPLETED, "duration_seconds": 3.5, "turns": (turn(),), "findings": (finding(),),
    } | fields  # fmt: skip
    return from_fields(TrialResult, index=index, **fields)


def test_result(name: str = "Refund for a cancelled order", **fields) -> TestResult:  # noqa: PT028  # no test
    """A test of one passed trial; score, outcome and so on follow from `trials` unless given."""
    trials = fields.setdefault("trials", (trial_result(),))
    sound = [trial for trial in trials if trial.scored]
    passes = [all(f.outcome is Outcome.PASSED for f in trial.findings) for trial in sound]
    outcomes = {f.outcome for trial in trials for f in trial.findings}
    if not trials:
        outcome = "not_run"
    elif Outcome.FAILED in outcomes:
        outcome = "failed"
    elif any(
        trial.status in {EndState.AGENT_ERROR, EndState.FAILED, EndState.INTERRUPTED} for trial in trials
    ):
        outcome = "error"
    else:
        outcome = "undecided" if Outcome.UNDECIDED in outcomes else "passed"
    fields = {
        "line": 12, "digest": "t" * 64, "guidelines": "Be brief.",
        "turns": (PlannedTurn(user="I want my money back."), PlannedTurn(user=AUTO)),
        "score": _mean([trial.exact_score() for trial in sound]),
        "pass_rate": sum(passes) / len(passes) if passes else None, "passed": outcome == "passed",
        "outcome": outcome,
        "flaky": any(passes) and any(f.outcome is Outcome.FAILED for trial in sound for f in trial.findings),
        "statistics": _statistics([trial.score for trial in sound], passes),
    } | fields  # fmt: skip
    return from_fields(TestResult, name=name, **fields)


def suite_result(name: str = "Refunds", *tests: TestResult, **fields) -> SuiteResult:
    """A suite of these tests (one passed test by default); score and counts follow from them."""
    tests = tests or (test_result(),)
    fields = {
        "file": "evals/refunds.json", "digest": "s" * 64, "agent_id": "agent-1", "adapter": "aui",
        "folder": f"{name}/2026-11-21T09-30-00Z",
        "score": _mean([Fraction(repr(test.score)) for test in tests if test.score is not None]),
        "counts": _counts(tests), **_chances(tests),
    } | fields  # fmt: skip
    return from_fields(SuiteResult, name=name, tests=tests, **fields)


def results(*suites: SuiteResult, **fields) -> Results:
    """A run of these suites (one that passed by default) that the gate lets through."""
    suites = suites or (suite_result(),)
    tests = [test for suite in suites for test in suite.tests]
    score = _mean([Fraction(repr(test.score)) for test in tests if test.score is not None])
    fields = {
        "tool": Tool(version="0.1.0"), "run": run_info(), "score": score, "counts": _counts(tests),
        "gate": decision(check("min-score", 80, score)), "usage": Usage(), **_chances(tests),
    } | fields  # fmt: skip
    return from_fields(Results, suites=suites, **fields)


def arm(name: str, of: Results | Scorecard, *, gated: bool = False) -> Arm:
    """An agent of a run with the numbers of these results."""
    names = {field.name for field in dataclasses.fields(ScoreSummary)} | {"usage", "latency"}
    if not gated:
        names.add("suites")
    return from_fields(Arm, name=name, gated=gated, **{field: getattr(of, field) for field in names})


def results_of_scorecard(card: Scorecard, **info) -> Results:
    """The results that a run with this scorecard makes, as far as they do not depend on the gate."""
    names = {field.name for field in dataclasses.fields(card)} - {"suites"}
    numbers = {name: getattr(card, name) for name in names}
    return results(*card.suites, run=run_info(**info), **numbers)


def with_process(results: Results) -> Results:
    """The results with what their conversations tell: every trial's process, and all numbers of process."""
    rule = ScoreRule(offline=False)
    suites = tuple(_with_process(suite, rule) for suite in results.suites)
    tests = [test for suite in suites for test in suite.tests]
    whole = process.of_tests(tests, rule)
    return replace(
        results, process=process.of_run(whole, results.score, results.usage, results.counts.trials),
        coverage=coverage_of(suites, frozenset()), suites=suites,
    )  # fmt: skip


def _with_process(suite: SuiteResult, rule: ScoreRule) -> SuiteResult:
    tests = []
    for test in suite.tests:
        measures = [process.of_turns(trial.turns, test.optimal_tools) for trial in test.trials]
        trials = tuple(
            replace(trial, process=one.process, fired=one.fired)
            for trial, one in zip(test.trials, measures, strict=True)
        )
        summary = process.summary(trials, len(trials) + test.not_run, rule)
        tests.append(replace(test, process=summary, trials=trials))
    return replace(suite, process=process.of_tests(tests, rule), tests=tuple(tests))


def run_info(**fields) -> RunInfo:
    """A run of two minutes that went through."""
    fields = {
        "id": "run-1", "started_at": STARTED_AT, "finished_at": STARTED_AT.replace(minute=32, second=3),
        "duration_seconds": 123.0, "status": "completed", "config": {"provider": "openai", "parallel": 4},
        "digests": Digests(**{field.name: field.name[0] * 64 for field in dataclasses.fields(Digests)}),
    } | fields  # fmt: skip
    return from_fields(RunInfo, **fields)


def shard(index: int = 1, of: int = 2, tests: tuple[int, ...] = (1,), **fields) -> Shard:
    """A part of a plan of one suite."""
    fields = {"plan": "p" * 64, "split": "s" * 64, "suites": ("evals/refunds.json",)} | fields
    return from_fields(Shard, index=index, of=of, tests=tests, **fields)


def check(name: str, required: float | None = 80, seen: float | None = None, **fields) -> GateCheck:
    """A check that holds, of the kind that its name begins with, such as `max-drop suite:Refunds`."""
    fields = {"required": required, "seen": seen, "passed": True} | _identity(name) | fields
    return from_fields(GateCheck, **fields)


def check_odds(name: str, share: float) -> CheckOdds:
    return from_fields(CheckOdds, **_identity(name), share=share)


def _identity(name: str) -> dict[str, str]:
    kind, *part = re.split("[: ]", name, maxsplit=1)
    if kind not in list(CheckKind):
        return {"name": name, "kind": CheckKind.THRESHOLD, "selector": name}
    key = "test" if kind == CheckKind.CRITICAL else "selector"
    return {"name": name, "kind": kind} | ({key: part[0]} if part else {})


def decision(*checks: GateCheck, **fields) -> Decision:
    """What the gate says of these checks: exit code 0 if all hold, else 1."""
    passed = all(check.passed is not False for check in checks)
    fields = {"passed": passed, "exit_code": 0 if passed else 1, "checks": checks} | fields
    return from_fields(Decision, **fields)


def _mean(scores: list[Fraction]) -> float | None:
    return float(sum(scores, Fraction()) / len(scores)) if scores else None


def _statistics(scores: list[float], passes: list[bool]) -> Statistics | None:
    if not scores:
        return None
    tried, passed = len(scores), sum(passes)
    return Statistics(
        mean=fmean(scores), standard_deviation=stdev(scores) if tried > 1 else None, min=min(scores),
        max=max(scores), pass_at_k={k: pass_at_k(tried, passed, k) for k in range(1, tried + 1)},
        pass_hat_k={k: pass_hat_k(tried, passed, k) for k in range(1, tried + 1)},
    )  # fmt: skip


def _chances(tests) -> dict[str, dict[int, float]]:
    result = [test.statistics for test in tests if test.statistics]
    most = min((len(one.pass_hat_k) for one in result), default=0)
    return {
        name: {k: fmean(getattr(one, name)[k] for one in result) for k in range(1, most + 1)}
        for name in ("pass_at_k", "pass_hat_k")
    }


def _counts(tests) -> Counts:
    trials = [trial for test in tests for trial in test.trials]
    result = [f for trial in trials for f in trial.findings]
    unsound = {EndState.AGENT_ERROR, EndState.FAILED, EndState.INTERRUPTED}
    return Counts(
        tests=len(tests), passed=sum(test.passed for test in tests),
        failed=sum(
            any(f.outcome is Outcome.FAILED for t in test.trials for f in t.findings) for test in tests
        ),
        errors=sum(
            trial.status in unsound
            or any(f.outcome is Outcome.UNDECIDED and f.cause is not Cause.NO_JUDGE for f in trial.findings)
            for trial in trials
        ),
        undecided=sum(
            any(f.outcome is Outcome.UNDECIDED for t in test.trials for f in t.findings) for test in tests
        ),
        flaky=sum(test.flaky for test in tests), trials=len(trials),
        scored_trials=sum(trial.scored for trial in trials), not_run=sum(test.not_run for test in tests),
        by_status={state: n for state in EndState if (n := sum(trial.status is state for trial in trials))},
        by_outcome={o: n for o in Outcome if (n := sum(f.outcome is o for f in result))},
    )  # fmt: skip


_OUTCOMES = {True: "passed", False: "failed", None: "undecided"}


def results_of_verdicts(name: str, verdicts) -> Results:
    """A run by the verdicts of its tests' trials: true, false, or None for an undecided one."""
    tests = [
        test_result(
            f"Test {number}",
            trials=tuple(
                trial_result(
                    index,
                    findings=tuple(
                        finding(_OUTCOMES[passed], criterion=f"c{place}")
                        for place, passed in enumerate(trial)
                    ),
                )
                for index, trial in enumerate(trials, 1)
            ),
        )
        for number, trials in enumerate(verdicts, 1)
    ]
    run = with_process(results(suite_result("Refunds", *tests)))
    return replace(run, run=replace(run.run, id=name))
