"""The runs whose reports stand, whole, under golden/."""

import builders as build

from ci_evals.domain.base import Interval
from ci_evals.domain.results import Attempt, GateCheck, Group, Results, RoleUsage, Tokens, Usage
from ci_evals.domain.transcript import EndState, Integration
from ci_evals.domain.verdict import Cause, Outcome

GROUPS = {
    "categories": (
        Group(name="accuracy", score=100.0, tests=2, passed=2, failed=0, undecided=0),
        Group(name="tone", score=50.0, tests=2, passed=1, failed=1, undecided=0),
    ),
    "aui_logic": (
        Group(name="R1_refund_window", score=66.66666666666667, tests=2, passed=2, failed=1, undecided=0),
    ),
    "tags": (Group(name="refunds", score=79.96, tests=2, passed=3, failed=1, undecided=0),),
    "difficulties": (Group(name="easy", score=None, tests=1, passed=0, failed=0, undecided=1),),
}
USAGE = Usage(
    calls=9,
    tokens=Tokens(input=5200, output=610),
    cost_usd=0.0312,
    by_role=(
        RoleUsage(role="user", model="gpt-5-mini", calls=3, input_tokens=2000, output_tokens=110),
        RoleUsage(role="judge", model="gpt-5-mini", calls=2, input_tokens=3200, output_tokens=500),
    ),
)
KIND = build.finding(
    criterion="The agent stays kind",
    kind="judged",
    category="tone",
    reason="Both replies are polite, and the second one offers more help.",
)
TALK = build.transcript(
    "user: I want my money back for order 1042."
    "| agent: I can help with that. Why do you return it? [REFUND_REQUEST]"
    "| user: It is too small."
    "| agent: Done: you get 29.99 USD within five days. [REFUND_REQUEST]"
).exchanges
TOLD = TALK[1].model_copy(
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
            exchanges=(TALK[0], TOLD),
            findings=(build.finding(reason="REFUND_REQUEST was executed in exchange 1", evidence=(1,)), KIND),
            closing_remark="Thanks, that is all.",
            status=EndState.STOPPED,
        ),
    ),
)


def good() -> Results:
    """Everything passed and the gate holds."""
    suite = build.suite_result(
        "Refunds",
        GOOD_TEST,
        description="What a shop owes its customers.",
        **GROUPS,
        judge_model="gpt-5-mini",
    )
    return build.results(suite, interval=Interval(low=88.04, high=100.0), usage=USAGE)


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
    flaky = build.test_result(
        "Refund after the window",
        critical=True,
        line=40,
        trials=(
            build.trial_result(1, exchanges=TALK, findings=(build.finding(), KIND)),
            build.trial_result(2, exchanges=TALK, findings=(build.finding(), rude)),
        ),
    )
    wrong = build.test_result(
        "Exchange for another size",
        trials=(
            build.trial_result(
                exchanges=TALK,
                findings=(
                    build.finding(
                        "failed",
                        criterion="The exchange workflow starts",
                        reason="EXCHANGE was never executed; REFUND_REQUEST was, in exchange 1",
                    ),
                    rude,
                ),
            ),
        ),
    )
    return build.results(
        build.suite_result("Refunds", GOOD_TEST, flaky, **GROUPS),
        build.suite_result("Exchanges", wrong, file="evals/exchanges.yaml"),
        gate=build.decision(
            GateCheck(name="min-score", required=80, seen=55.5555, holds=False),
            GateCheck(name="category:tone", required=79.5, seen=50.0, holds=False),
            GateCheck(name="max-errors", required=0, seen=0, holds=True),
            GateCheck(name="max-cost", required=0.5, seen=0.0312, holds=True),
            GateCheck(name="max-drop", required=2, seen=None, holds=True, note="not applied: no baseline"),
        ),
        usage=USAGE,
    )


def undecided() -> Results:
    """No judge was configured; one trace never came; what strict checks could see is fine."""
    unjudged = KIND.model_copy(
        update={"outcome": Outcome.UNDECIDED, "cause": Cause.NO_JUDGE, "reason": "no judge was configured"}
    )
    traceless = build.finding(
        "undecided",
        criterion="The discount rule stays quiet",
        cause=Cause.NO_EVIDENCE,
        reason="no reply had a trace",
    )
    silent = [
        talk.model_copy(update=dict.fromkeys(("workflows", "params", "rules", "integrations")))
        for talk in TALK
    ]
    return build.results(
        build.suite_result(
            "Refunds",
            build.test_result(
                trials=(build.trial_result(exchanges=TALK, findings=(build.finding(), unjudged)),)
            ),
            build.test_result(
                "No discount unasked",
                trials=(build.trial_result(exchanges=silent, findings=(traceless, unjudged)),),
            ),
        ),
        gate=build.decision(
            GateCheck(name="min-score", required=80, seen=100.0, seen_if_undecided_failed=50.0, holds=False),
            GateCheck(name="max-errors", required=0, seen=1, holds=False),
            exit_code=3,
            reasons=("1 trial is unsound, and --max-errors allows none.",),
        ),
    )


def invalid() -> Results:
    """The agent was not there: nothing was scored, and part of the plan was not run."""
    refused = "the agent at http://127.0.0.1:9/api refused the connection"
    lost = build.trial_result(
        status=EndState.FAILED,
        error=refused,
        exchanges=(),
        findings=(),
        duration_seconds=0.0,
        attempts=(
            Attempt(status=EndState.FAILED, error=refused),
            Attempt(status=EndState.FAILED, error=refused),
        ),
    )
    erred = build.trial_result(
        status=EndState.AGENT_ERROR,
        exchanges=(build.exchange(agent="", error_response=True, error_detail="model overloaded"),),
        findings=(),
    )
    tests = [build.test_result(f"Lost order {number}", trials=(lost,)) for number in range(1, 7)]
    return build.results(
        build.suite_result(
            "Orders",
            *tests,
            build.test_result("Overloaded", trials=(erred,)),
            build.test_result("Never begun", trials=(), not_run=2),
        ),
        run=build.run_info(status="stopped", stopped_because="--max-duration of 120 s was reached"),
        gate=build.decision(
            GateCheck(name="min-score", required=80, seen=None, holds=False),
            GateCheck(name="max-errors", required=0, seen=7, holds=False),
            exit_code=3,
            reasons=("Nothing could be scored.", "7 trials are unsound, and --max-errors allows none."),
        ),
    )


CASES = {"good": good, "bad": bad, "undecided": undecided, "invalid": invalid}
