"""The runs whose comments stand under golden/comments/: a team's pull requests, good and bad."""

from dataclasses import dataclass, field, replace
from functools import cache

import builders as build
import cases

from ci_evals.domain.choices import Regression
from ci_evals.domain.results.run import Git, Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import Attempt, TrialResult
from ci_evals.domain.results.usage import Latency
from ci_evals.domain.run_ending import RunEnding
from ci_evals.domain.transcript import EndState, FailureCause, Integration
from ci_evals.domain.verdict import Cause, Outcome
from ci_evals.gate.decision import decide
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.odds import evaluated_checks, odds_of
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import to_record
from ci_evals.reports.markdown.comment import SummaryContext
from ci_evals.scoring.scores import ScoreRule, decided_share

HEAD = "5c6a5de9e5af12275c6a5de9e5af12275c6a5de9"
FOUND = "the baseline is commit 3aceb90 of main, the base commit"
OLDER = "the baseline is commit 3aceb90 of main, 2 commits before the base"
CONTEXT = SummaryContext(
    run_url="https://github.com/acme/shop-agent/actions/runs/7041",
    source_url=f"https://github.com/acme/shop-agent/blob/{HEAD}",
    commit=HEAD,
)


@dataclass(frozen=True)
class Story:
    """What a test is about: the turn that decides it, and the judge's reasons if it passes or fails."""

    user: str
    good: str
    wrong: str
    workflow: str
    idle: str
    criterion: str
    praise: str
    blame: str
    does: dict[str, tuple]
    """What the trace of the reply tells where it goes well; where it fails, `instead`."""
    instead: dict[str, tuple] = field(default_factory=dict)
    evidence: tuple[int, ...] = field(default=(2,))


REFUND = Story(
    user="I sent the jacket back nine days ago and still have no money. Order 4471.",
    good="I found order 4471. The refund of 89.00 EUR is on its way, you will have it within five days.",
    wrong="I am sorry to hear that. Refunds usually take a while. Please check again in two weeks.",
    workflow="The refund workflow starts",
    idle="REFUND_REQUEST was never executed; ORDER_LOOKUP was, in turn 2",
    criterion="The agent tells the amount and when it will arrive",
    praise="The second reply names 89.00 EUR and five days.",
    blame="The customer asked twice for their money. The agent named neither the amount nor a date, and sent "
    "them away for two weeks although the refund window was open.",
    does={"workflows": ("REFUND_REQUEST",)},
    instead={"workflows": ("ORDER_LOOKUP",)},
)
DELIVERY = Story(
    user="The tracking page has said 'in transit' since Monday. Where is order 5120?",
    good="Order 5120 left the depot in Leipzig this morning and should reach you tomorrow.",
    wrong="Your parcel is in transit. You can see that on the tracking page.",
    workflow="The tracking integration is called",
    idle="TRACKING was not called; nothing was, in 2 turns",
    criterion="The agent gives more than the tracking page does",
    praise="It named the depot and the day of arrival.",
    blame="The agent repeated what the customer had read on the tracking page, and gave no day of arrival.",
    does={"integrations": (Integration(code="TRACKING", status=200),)},
)
HANDOVER = Story(
    user="This is the third time. I want to speak to a person.",
    good="I understand. I am passing you to a colleague, who will have our conversation in front of them.",
    wrong="I can help you with that! Could you tell me your order number again?",
    workflow="The conversation is forwarded",
    idle="CONVERSATION_FORWARDING was never executed",
    criterion="The agent hands over when a person is asked for",
    praise="It handed over at once, and said that nothing would have to be told again.",
    blame="The customer asked for a person. The agent asked for the order number a second time instead.",
    does={"workflows": ("CONVERSATION_FORWARDING",)},
)
REFUNDS = (
    "Refund in time", "Refund after the window", "Refund for a gift", "Refund to a closed card",
    "Partial refund", "Refund of a bundle", "Refund without receipt", "Refund in another currency",
)  # fmt: skip
DELIVERIES = ("Lost parcel", "Late parcel", "Wrong address", "Parcel at a neighbour", "Two parcels")
CRITICAL = {"Refund in time", "Asks for a person"}
HANDOVERS = ("Asks for a person", "Angry after three turns", "Threatens with a lawyer", "Asks in Spanish")


TIMEOUT = "no reply within 120 s (POST /messages)"


def trial(index: int, story: Story, letter: str) -> TrialResult:
    """A test about `story`: passed, half passed (the judge says no), failed, undecided, lost."""
    if letter == "x":
        return build.trial_result(
            index,
            status=EndState.FAILED,
            cause=FailureCause.AGENT_FAILED,
            error=TIMEOUT,
            duration_seconds=240.0,
            turns=(),
            findings=(),
            attempts=(Attempt(status=EndState.FAILED, error=TIMEOUT),) * 2,
        )
    idle, rude = letter == "f", letter in "fh"
    judged = build.finding(
        "failed" if rude else "passed",
        criterion=story.criterion,
        kind="judged",
        category="helpfulness",
        reason=story.blame if rude else story.praise,
        evidence=story.evidence,
    )
    if letter == "u":
        reason = "the judge's answer was not in the form asked for, twice"
        judged = replace(judged, outcome=Outcome.UNDECIDED, cause=Cause.JUDGE_ERROR, reason=reason)
    outcome, reason = ("failed", story.idle) if idle else ("passed", "it did, in turn 2")
    strict = build.finding(outcome, criterion=story.workflow, reason=reason, evidence=story.evidence)
    untraced = UNTRACED if story.does is UNTRACED else {}
    hello = build.turn(1, user="Hello, is anybody there?", agent="Hello! How can I help you?", **untraced)
    did = story.instead if idle else story.does
    turn = build.turn(2, user=story.user, agent=story.wrong if rude else story.good, **did)
    fields = {"turns": (hello, turn), "findings": (strict, judged)}
    return build.trial_result(index, duration_seconds=6.4 + 0.7 * index, **fields)


def played(name: str, story: Story, letters: str, **fields) -> TestResult:
    """A test by its trials, a letter each."""
    trials = tuple(trial(index, story, letter) for index, letter in enumerate(letters, start=1))
    return build.test_result(name, trials=trials, **fields)


def suites(refunds: dict, deliveries: dict, handovers: dict, rest: str = "ppp") -> list:
    """Three suites whose tests passed in every trial, but for those whose trials are given as letters."""
    drawn = (
        ("Refunds", "evals/refunds.yaml", REFUND, REFUNDS, refunds),
        ("Delivery", "evals/delivery.yaml", DELIVERY, DELIVERIES, deliveries),
        ("Handover", "evals/handover.yaml", HANDOVER, HANDOVERS, handovers),
    )
    out = []
    for name, file, story, names, other in drawn:
        tests = [played(test, story, other.get(test, rest), critical=test in CRITICAL) for test in names]
        share = decided_share(tests, ScoreRule(offline=False))
        interval = cases.interval_of(*tests)
        out.append(build.suite_result(name, *tests, file=file, interval=interval, decided_share=share))
    return out


def run(parts: list, note: str = FOUND) -> Results:
    """A run of the pull request's merge commit."""
    tests = [test for suite in parts for test in suite.tests]
    git = Git(commit="0" * 40, head_commit=HEAD, pull_request=214, repository="acme/shop-agent")
    info = build.run_info(id="7041-1", git=git, duration_seconds=312.0, baseline_note=note)
    return build.results(
        *parts,
        run=info,
        interval=cases.interval_of(*tests),
        usage=cases.COSTLY,
        latency=Latency(replies=102, median=1.3, p95=3.1, slowest=5.2),
    )


def earlier(parts: list) -> Results:
    """The run of the base branch, a day before."""
    git = Git(commit=cases.BASE_COMMIT, ref="refs/heads/main")
    base = cases.base_run(*parts, id="7002-1", git=git)
    return replace(base, latency=Latency(replies=102, median=1.1, p95=2.8, slowest=4.0))


POLICY = Policy(
    min_score=80, max_drop=5, regression=Regression.SIGNIFICANT, max_errors=1, max_cost=0.5, max_p95_latency=5
)


@cache
def good() -> Results:
    """The score is as before; one test was mended."""
    head = run(suites({}, {"Late parcel": "php"}, {}))
    base = earlier(suites({"Refund for a gift": "hfh"}, {"Late parcel": "pph"}, {}))
    return cases.decided(head, base, POLICY)


@cache
def bad() -> Results:
    """The refund flow broke, and little else; what failed before fails still."""
    broken = dict.fromkeys(REFUNDS[:6], "fff") | {"Refund of a bundle": "hfh", "Refund in time": "hhf"}
    deliveries = {"Two parcels": "hhh", "Lost parcel": "ppp", "Wrong address": "hpp"}
    head = run(suites(broken, deliveries, {"Asks in Spanish": "hhp"}))
    base = suites(
        {"Refund without receipt": "hph", "Partial refund": "php"},
        {"Two parcels": "hhh", "Lost parcel": "hfh", "Parcel at a neighbour": "hpp"},
        {"Asks for a person": "pph"},
    )
    return cases.decided(head, earlier(base), POLICY)


@cache
def flaky() -> Results:
    """Nothing is proven: trials disagree here as they did before, on other tests. The base has no results."""
    refunds = {"Refund in time": "pph", "Partial refund": "hpp"}
    head = run(suites(refunds, {"Late parcel": "pfp"}, {"Asks in Spanish": "hhp"}), OLDER)
    base = suites({"Refund for a gift": "phh"}, {"Late parcel": "hpp"}, {"Asks in Spanish": "php"})
    return cases.decided(head, earlier(base), replace(POLICY, min_score=95), of_base_commit=False)


@cache
def invalid() -> Results:
    """The agent went away in the middle, and the judge was not to be understood."""
    lost = dict.fromkeys(DELIVERIES, "xxx")
    head = run(suites({"Partial refund": "ppu"}, lost, dict.fromkeys(HANDOVERS, "pxx")))
    result = cases.decided(head, earlier(suites({}, {}, {})), POLICY)
    return replace(result, odds=None)


@cache
def no_baseline() -> Results:
    """The first run with the action: nothing to compare with yet."""
    note = "no baseline yet: no run on main has left the artifact 'ci-evals-results-default'; "
    note += "it is uploaded by the first run there"
    result = suites({"Refund for a gift": "fhf", "Partial refund": "pph"}, {}, {"Asks in Spanish": "hhh"})
    head = run(result, note)
    gate = to_record(decide(GateInput(head), POLICY, RunEnding()))
    noise = odds_of(head, evaluated_checks(gate.checks))
    return replace(head, gate=gate, odds=noise)


@cache
def skipped() -> Results:
    """A pull request from a fork, which has no secrets: nothing was played."""

    def suite(name: str, tests: tuple[str, ...]):
        unplayed = (build.test_result(test, trials=(), not_run=3, outcome="not_run") for test in tests)
        return build.suite_result(name, *unplayed, score=None)

    run = build.run_info(
        id="7044-1",
        status="skipped",
        stopped_because="this fork has no secrets (llm-key and agent-key are missing)",
        duration_seconds=0.0,
        git=Git(commit="0" * 40, head_commit=HEAD, pull_request=215),
    )
    gate = build.decision(passed=False, exit_code=0)
    return build.results(suite("Refunds", REFUNDS), suite("Delivery", DELIVERIES), run=run, gate=gate)


UNTRACED = dict.fromkeys(("workflows", "params", "rules", "integrations"))
"""What a reply tells of itself in a run without traces."""
WINDOW = Story(
    user="I bought this in January. Refund me now!",
    good="I am sorry, the window of 30 days has closed.",
    wrong="All right, I make an exception for you and refund all of it.",
    workflow="The return window is looked up",
    idle="RETURN_WINDOW was never executed",
    criterion="The agent keeps to the return window of 30 days",
    praise="It kept to the window.",
    blame="The agent made an exception although the window of 30 days had closed.",
    does=UNTRACED,
    instead=UNTRACED,
)
AMOUNT = Story(
    user="They are too small. How much do I get back, and when?",
    good="$42.00 goes back to your card within five days.",
    wrong="$24.00 goes back to your card soon.",
    workflow="The agent says how long the refund takes",
    idle='The agent only says "soon"; no number of days is named.',
    criterion="The agent states the right refund amount of $42.00",
    praise="It names $42.00.",
    blame="The customer paid $42.00, but the agent says that $24.00 goes back to the card.",
    does=UNTRACED,
    instead=UNTRACED,
)
INVOICE = Story(
    user="What is line 2 of my invoice?",
    good="Line 2 is the shipping.",
    wrong="It is a fee.",
    workflow="The invoice is read",
    idle="INVOICE was never executed",
    criterion="The agent explains the line",
    praise="It names the shipping.",
    blame="The agent does not say what the fee is for.",
    does=UNTRACED,
    instead=UNTRACED,
)


def small(window: str, amount: str, invoice: str) -> list:
    """Two suites of eight tests with a trial each, three of them by a letter."""
    late = played("Refuses a refund after 30 days", WINDOW, window, critical=True, line=31)
    timely = played("Refund within 30 days", AMOUNT, amount, line=14)
    refunds = (late, timely, played("Refund of a gift", AMOUNT, "p", line=52))
    billing = [played("Explains invoice line 2", INVOICE, invoice)]
    billing += [played(f"Invoice question {number}", INVOICE, "p") for number in range(1, 5)]
    judge = {"judge_model": "gpt-5"}
    return [
        build.suite_result("Refunds", *refunds, file="evals/refunds.yaml", **judge),
        build.suite_result("Billing", *billing, file="evals/billing.yaml", **judge),
    ]


@cache
def failed_example() -> Results:
    """Two tests broke, one was fixed: what a maintainer is to grasp in five seconds."""
    return cases.decided(run(small("h", "f", "p")), earlier(small("p", "p", "h")), EXAMPLE)


@cache
def passed_example() -> Results:
    """The score of main, with a test that fails on both sides."""
    return cases.decided(run(small("p", "p", "h")), earlier(small("p", "p", "h")), EXAMPLE)


EXAMPLE = Policy(min_score=85)
REFUSAL = """evals/refunds.yaml:14:9: tests[2].evaluations[0].toolName: is missing; tool_used needs it
evals/delivery.yaml:3:1: tests[0].turns: is empty; name at least one turn"""
"""What is said of suites that cannot be read."""


def unfolded(text: str) -> str:
    """The text that is read before any fold is opened, with the folds' titles."""
    lines, depth = [], 0
    for line in text.split("\n"):
        depth += (line == "<details>") - (line == "</details>")
        if depth == 0 or (depth == 1 and line.startswith("<summary>")):
            lines.append(line)
    return "\n".join(lines)


COMMENTS = {
    "failed-example": failed_example, "passed-example": passed_example, "good": good, "bad": bad,
    "flaky": flaky, "invalid": invalid, "no-baseline": no_baseline, "skipped": skipped,
}  # fmt: skip
