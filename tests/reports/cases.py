"""The runs whose reports stand, whole, under golden/."""

from dataclasses import replace
from datetime import date, timedelta
from functools import cache

import builders as build
import reliability_cases

from ci_evals.domain.base import Interval
from ci_evals.domain.choices import Regression
from ci_evals.domain.results.gate import Odds
from ci_evals.domain.results.run import Git, Results
from ci_evals.domain.results.suite import ScoreGroup, TestResult
from ci_evals.domain.results.trial import Attempt
from ci_evals.domain.results.usage import Latency, RoleUsage, Tokens, Usage
from ci_evals.domain.run_ending import RunEnding
from ci_evals.domain.transcript import EndState, Integration, ProbeResult
from ci_evals.domain.verdict import Cause, Outcome
from ci_evals.gate.decision import decide
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.odds import evaluated_checks, odds_of
from ci_evals.gate.policy import Policy
from ci_evals.gate.selectors import read_drops
from ci_evals.job.conclude import to_record
from ci_evals.scoring import coverage
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.statistics import mean_interval

GROUPS = {
    "categories": (
        ScoreGroup(name="accuracy", score=100.0, tests=2, passed=2, failed=0, undecided=0),
        ScoreGroup(name="tone", score=50.0, tests=2, passed=1, failed=1, undecided=0),
    ),
    "aui_logic": (
        ScoreGroup(name="R1_refund_window", score=200 / 3, tests=2, passed=2, failed=1, undecided=0),
    ),
    "tags": (ScoreGroup(name="refunds", score=79.96, tests=2, passed=3, failed=1, undecided=0),),
    "difficulties": (ScoreGroup(name="easy", score=None, tests=1, passed=0, failed=0, undecided=1),),
}


def role_usage(role: str, model: str, calls: int, sent: int, received: int, cost: float | None = None):
    """The usage of one role, in tokens and US dollars."""
    fields = {"input_tokens": sent, "output_tokens": received, "cost_usd": cost}
    return RoleUsage(role=role, model=model, calls=calls, **fields)


USER, JUDGE = role_usage("user", "gpt-5-mini", 3, 2000, 110), role_usage("judge", "gpt-5-mini", 2, 3200, 500)
USAGE = Usage(calls=9, tokens=Tokens(input=5200, output=610), cost_usd=0.0312, by_role=(USER, JUDGE))
PRAISE = "Both replies are polite, and the second one offers more help."
KIND = build.finding(criterion="The agent stays kind", kind="judged", category="tone", reason=PRAISE)
TALK = build.transcript(
    "user: I want my money back for order 1042."
    "| agent: I can help with that. Why do you return it? [REFUND_REQUEST]"
    "| user: It is too small."
    "| agent: Done: you get 29.99 USD within five days. [REFUND_REQUEST]"
).turns
ACTIONS_TURN = TALK[1].model_copy(
    update={
        "params": {"refund-reason": "too_small", "amount": 29.99, "partial": False},
        "rules": ("refund-window-open",),
        "integrations": (Integration(code="order-lookup", status=200), Integration(code="faq", type="RAG")),
    }
)
GOOD_TEST = build.test_result(
    tags=("refunds", "happy path"),
    difficulty="easy",
    user_info={"name": "Dana", "orders": [1042]},
    trials=(
        build.trial_result(
            turns=(TALK[0], ACTIONS_TURN),
            findings=(build.finding(reason="REFUND_REQUEST was executed in turn 1", evidence=(1,)), KIND),
            closing_remark="Thanks, that is all.",
            probes={
                "order": ProbeResult(value=[{"id": 1042, "status": "refunded", "amount": 29.99}]),
                "outbox": ProbeResult(error="the http step got no answer from mail:8080: refused"),
            },
            status=EndState.STOPPED,
        ),
    ),
)


@cache
def good() -> Results:
    """Everything passed and the gate holds."""
    fields = GROUPS | {"description": "What a shop owes its customers.", "judge_model": "gpt-5-mini"}
    suite = build.suite_result("Refunds", GOOD_TEST, **fields)
    return build.results(suite, interval=Interval(low=88.04, high=100.0), usage=USAGE)


def of_trials(name: str, *trials, **fields) -> TestResult:
    return build.test_result(name, trials=trials, **fields)


@cache
def bad() -> Results:
    """Two suites; one test fails in one of two trials, another in its only one; the gate does not hold."""
    rude = build.finding(
        "failed",
        criterion="The agent stays kind",
        kind="judged",
        category="tone",
        weight=2,
        aui_logic=("R7_tone",),
        reason="In its second reply the agent blames the customer.\n\nIt also ends without a greeting.",
        evidence=(2,),
    )
    flaky = of_trials(
        "Refund after the window",
        build.trial_result(1, turns=TALK, findings=(build.finding(), KIND)),
        build.trial_result(2, turns=TALK, findings=(build.finding(), rude)),
        critical=True,
        line=40,
    )
    never = "TURN was never executed; REFUND_REQUEST was, in turn 1"
    idle = build.finding("failed", criterion="The exchange workflow starts", reason=never)
    wrong = of_trials("Exchange for another size", build.trial_result(turns=TALK, findings=(idle, rude)))
    run = build.results(
        build.suite_result("Refunds", GOOD_TEST, flaky, **GROUPS),
        build.suite_result("Exchanges", wrong, file="evals/exchanges.yaml"),
        gate=build.decision(
            build.check(name="min-score", required=80, seen=55.5555, passed=False),
            build.check(name="category:tone", required=79.5, seen=50.0, passed=False),
            build.check(name="max-errors", required=0, seen=0, passed=True),
            build.check(name="max-cost", required=0.5, seen=0.0312, passed=True),
            build.check(name="max-drop", required=2, seen=None, passed=None, note="there is no baseline"),
        ),
        usage=USAGE,
    )
    return build.with_process(run)


@cache
def undecided() -> Results:
    """No judge was configured; one trace never came; what strict checks could see is fine."""
    reason = "no judge was configured"
    unjudged = replace(KIND, outcome=Outcome.UNDECIDED, cause=Cause.NO_JUDGE, reason=reason)
    fields = {"cause": Cause.NO_EVIDENCE, "reason": "no reply had a trace"}
    traceless = build.finding("undecided", criterion="The discount rule stays quiet", **fields)
    no_trace = dict.fromkeys(("workflows", "params", "rules", "integrations"))
    untraced = [turn.model_copy(update=no_trace) for turn in TALK]
    gate = build.decision(
        build.check("min-score", 80, 100.0, seen_if_undecided_failed=50.0, passed=False),
        build.check("max-errors", 0, 1, passed=False),
        exit_code=3,
        reasons=("1 of 2 trials could not be judged",),
    )
    traced = build.trial_result(turns=TALK, findings=(build.finding(), unjudged))
    silent = build.trial_result(turns=untraced, findings=(traceless, unjudged))
    tests = build.test_result(trials=(traced,)), of_trials("No discount unasked", silent)
    return build.results(build.suite_result("Refunds", *tests), gate=gate)


@cache
def invalid() -> Results:
    """The agent was not there: nothing was scored, and part of the plan was not run."""
    refused = "the agent at http://127.0.0.1:9/api refused the connection"
    lost = build.trial_result(
        status=EndState.FAILED,
        error=refused,
        turns=(),
        findings=(),
        duration_seconds=0.0,
        attempts=(Attempt(status=EndState.FAILED, error=refused),) * 2,
    )
    overloaded = build.turn(agent="", error_response=True, error_detail="model overloaded")
    erred = build.trial_result(status=EndState.AGENT_ERROR, turns=(overloaded,), findings=())
    tests = [of_trials(f"Lost order {number}", lost) for number in range(1, 7)]
    tests += [of_trials("Overloaded", erred), of_trials("Never begun", not_run=2)]
    stopped = "--max-duration of 120 s was reached"
    gate = build.decision(
        build.check("min-score", 80, None, passed=False),
        build.check("max-errors", 0, 7, passed=False),
        exit_code=3,
        reasons=(f"the run stopped early: {stopped}", "2 of 9 trials did not run", "7 of 7 trials errored"),
    )
    run = build.run_info(status="stopped", stopped_because=stopped)
    return build.results(build.suite_result("Orders", *tests), run=run, gate=gate)


BASE_COMMIT = "3aceb90018667fc15c6a5de9e5af1227deadbeef"
ROLES = (
    role_usage("user", "gpt-5-mini", 81, 20_000, 1_100, 0.0451),
    role_usage("judge", "gpt-5", 36, 32_000, 5_000, 0.2672),
)
TOKENS = Tokens(input=52_000, output=6_100)
COSTLY = Usage(calls=117, tokens=TOKENS, cost_usd=0.3123, by_role=ROLES, prices_as_of=date(2026, 11, 1))
BLAME = "In its second reply the agent blames the customer for the size."
UNKIND = replace(KIND, outcome=Outcome.FAILED, reason=BLAME, evidence=(2,))
IDLE = build.finding("failed", reason="REFUND_REQUEST was never executed", evidence=(1,))
UNHEARD = replace(KIND, outcome=Outcome.UNDECIDED, cause=Cause.JUDGE_ERROR, reason="the judge timed out")
USED = build.finding()
FINDINGS = {"p": (USED, KIND), "h": (USED, UNKIND), "f": (IDLE, UNKIND), "u": (USED, UNHEARD)}


def played(name: str, drawing: str, **fields) -> TestResult:
    """A test by its trials, a letter each: passed, half passed, failed, undecided."""
    drawn = enumerate(drawing, start=1)
    trials = (build.trial_result(index, turns=TALK, findings=FINDINGS[letter]) for index, letter in drawn)
    return build.test_result(name, trials=tuple(trials), **fields)


def base_run(*suites, **fields) -> Results:
    """An earlier run, by 26 hours, of a commit."""
    at = build.STARTED_AT - timedelta(hours=26)
    info = {"id": "run-0", "started_at": at, "git": Git(commit=BASE_COMMIT)} | fields
    latency = Latency(replies=72, median=1.1, p95=2.8, slowest=4)
    usage = replace(COSTLY, cost_usd=0.2988)
    return build.results(*suites, run=build.run_info(**info), usage=usage, latency=latency)


def against(head: Results, base: Results, **fields) -> Results:
    """The run with its comparison, in which `fields` replace those of run and suites alike."""
    result = RunComparer(head, base).comparison()
    suites = tuple(replace(suite, **fields if suite.tests else {}) for suite in result.suites)
    return replace(head, comparison=replace(result, **(fields | {"suites": suites})))


def decided(head: Results, base: Results, policy: Policy, *, of_base_commit: bool = True) -> Results:
    """The run with its comparison, gate, odds and process as they are computed."""
    head = build.with_process(head)
    base = build.with_process(base)
    comparer = RunComparer(head, base, of_base_commit=of_base_commit)
    gate = to_record(decide(GateInput(head, comparer), policy, RunEnding()))
    noise = odds_of(head, evaluated_checks(gate.checks))
    reached = coverage.compared(head.coverage, comparer.pairs)
    comparison = {"comparison": comparer.comparison(), "gate": gate, "odds": noise, "coverage": reached}
    return replace(head, **comparison)


def interval_of(*tests: TestResult) -> Interval | None:
    """The interval of their mean score."""
    return mean_interval([test.score for test in tests if test.score is not None])


SIX = ("Refund in time", "Refund too late", "Lost parcel", "Wrong size", "Gift card", "Angry customer")


def first_of_six(*trials: str) -> list[TestResult]:
    """The first of the six tests, by their trials."""
    return [played(name, letters) for name, letters in zip(SIX, trials, strict=False)]


@cache
def unproven() -> Results:
    """Six tests of three trials, a little worse than the baseline, as chance might have it."""
    head = first_of_six("ppp", "pph", "ppp", "php", "ppp", "hph")
    base = first_of_six("ppp", "ppp", "ppp", "pph", "ppp", "hpp")
    bounds = interval_of(*head)
    suite = build.suite_result("Refunds", *head, interval=bounds)
    info = build.run_info(git=Git(commit="5c6a5de9e5af12275c6a5de9e5af12275c6a5de9"))
    latency = Latency(replies=72, median=1.25, p95=3.4, slowest=7.5)
    run = build.results(suite, interval=bounds, run=info, usage=COSTLY, latency=latency)
    limits = {"min_score": 90, "max_drop": 5, "max_cost": 0.5, "max_p95_latency": 5}
    policy = Policy(regression=Regression.SIGNIFICANT, **limits)
    return decided(run, base_run(build.suite_result("Refunds", *base)), policy)


@cache
def proven() -> Results:
    """Two suites of five trials: a flow broke, another was mended, and the suites themselves changed."""
    broken, lost = played("Refund in time", "fffff", critical=True), played("Lost parcel", "ppuup")
    refunds = (broken, played("Refund too late", "ppppp"), lost, played("Store credit", "ppppp"))
    turns = (played("Wrong size", "hphhp"), played("Two items", "ppppp", digest="u" * 64))
    head = [
        build.suite_result("Refunds", *refunds, interval=interval_of(*refunds), min_score=70),
        build.suite_result("Exchanges", *turns, file="evals/exchanges.yaml", interval=interval_of(*turns)),
    ]
    base_refunds = {"Refund in time": "ppppp", "Refund too late": "ppfhp", "Lost parcel": "ppppp"}
    base_exchanges = dict.fromkeys(("Wrong size", "Two items", "Three items"), "ppppp")
    base = [
        build.suite_result("Refunds", *(played(*test) for test in base_refunds.items())),
        build.suite_result("Exchanges", *(played(*test) for test in base_exchanges.items())),
    ]
    usage = replace(COSTLY, cost_usd=None, unpriced=("gpt-next",))
    run = build.results(*head, interval=interval_of(*refunds, *turns), usage=usage)
    policy = Policy(max_drops=read_drops("suite:Exchanges=40")[1], regression=Regression.ANY, max_errors=2)
    return decided(run, base_run(*base, git=Git()), policy)


@cache
def incomparable() -> Results:
    """The judge's prompt is another one, and so is the model of the simulated user."""
    digests = build.run_info().digests
    suite = build.suite_result("Refunds", GOOD_TEST)
    base = base_run(suite, digests=replace(digests, judge_prompt="x", models="y"))
    return decided(build.results(suite), base, Policy(max_drop=5))


@cache
def unsure() -> Results:
    """Five trials against three; two tests are flaky; nothing is proven."""
    head = first_of_six("ppppp", "pphph", "ppppp", "fpppp")
    base = first_of_six("ppp", "ppp", "hpp", "ppp")
    bounds, own = Interval(low=66.9, high=97.1), Interval(low=62.5, high=98.44)
    groups = {
        name: tuple(replace(group, interval=own) if group.score else group for group in result)
        for name, result in GROUPS.items()
    }
    suite = build.suite_result("Refunds", *head, interval=bounds, **groups)
    latency = Latency(replies=40, median=0.95, p95=1.9, slowest=2.2)
    odds = Odds(share=0.3, checks=(build.check_odds(name="regression", share=0.3),), floor=81.5, loops=5)
    run = build.results(suite, interval=bounds, usage=COSTLY, latency=latency, odds=odds)
    return against(
        run,
        base_run(build.suite_result("Refunds", *base)),
        p=0.21,
        smallest_p=0.0001,
        interval=Interval(low=-16.2, high=2.9),
        detectable=12.02,
        trials_needed=14,
    )


COMPARED = {"unproven": unproven, "proven": proven, "incomparable": incomparable, "unsure": unsure}
CASES = {
    "good": good, "bad": bad, "undecided": undecided, "invalid": invalid,
    "trusted": reliability_cases.results_with_all_studies, **COMPARED,
}  # fmt: skip


@cache
def made(name: str) -> Results:
    """The results of a case, drawn up once: nothing changes them."""
    return CASES[name]()
