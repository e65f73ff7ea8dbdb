"""A run of which all is known that can be: votes, quotes, grades, left-out users, and every study."""

from dataclasses import replace
from datetime import UTC, datetime

import builders as build

from ci_evals.domain.results.judge import Estimate, JudgeUsed, PartAgreement, VoteAgreement
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.simulated_user import UserAudit, UserChecks, Violation
from ci_evals.domain.results.trial import Attempt
from ci_evals.domain.results.usage import RoleUsage, Tokens, Usage
from ci_evals.domain.transcript import EndState, UserSource
from ci_evals.domain.verdict import Cause, DimensionGrade, Finding, Grade, Outcome, Quote, Vote
from ci_evals.extensions.attack.result import AttackKind, Attacks
from ci_evals.extensions.calibration.result import Calibration, Counted, Rater
from ci_evals.extensions.mutate.result import (
    FaultResult,
    GateUsed,
    IdleCriterion,
    Mutations,
    NullAgents,
    TestResult,
)
from ci_evals.extensions.noise.result import Noise, NoiseShare
from ci_evals.extensions.personas.result import Personas, SuitePersonas, TraitCount, UserScore
from ci_evals.extensions.preference.result import Preference, Preferred
from ci_evals.extensions.validate.result import Probe, Probed

STUDY_TIME = datetime(2026, 11, 20, 14, 5, tzinfo=UTC)
MODELS = ("claude-haiku-4-5", "gpt-5-mini")
JUDGE = JudgeUsed(provider="openai", models=MODELS, votes=3, prompt="j" * 64)
KIND, TOLD, CLEAR = "The agent stays kind", "The agent names the amount", "The answer is clear and complete"
IN_TIME, TOO_LATE, LOST = "Refund in time", "Refund too late", "Lost parcel"
TURNS = (
    build.turn(
        1, user="I sent the jacket back nine days ago and still have no money.", user_source=UserSource.AUTO,
        agent="I found order 4471. The refund of **89.00 EUR** is on its way.",
    ),
    build.turn(
        2, user="And when will it be there?", user_source=UserSource.AUTO,
        agent="Within five days. You could have read that on our page.",
    ),
)  # fmt: skip


def estimate(value: float, low: float | None = None, high: float | None = None, count: int = 40) -> Estimate:
    return Estimate(value=value, low=low, high=high, count=count)


def vote(outcome: str, reason: str, *quotes: tuple[int, str], model: str = MODELS[0], **fields) -> Vote:
    result = tuple(Quote(turn=number, text=text) for number, text in quotes)
    evidence = tuple(sorted({number for number, _ in quotes}))
    return Vote(
        model=model, outcome=Outcome(outcome), reason=reason, quotes=result, evidence=evidence, **fields
    )


def voted(criterion: str, *votes: Vote) -> Finding:
    """A criterion with what the majority of these votes says."""
    outcomes = [one.outcome for one in votes]
    most = max(set(outcomes), key=outcomes.count)
    first = next(one for one in votes if one.outcome is most)
    return build.finding(
        most, criterion=criterion, kind="judged", category="tone", reason=first.reason,
        evidence=first.evidence, quotes=first.quotes, grade=first.grade, cause=first.cause, votes=votes,
        agreement=outcomes.count(most) / len(outcomes),
    )  # fmt: skip


POLITE_VOTE = vote("passed", "Both replies are polite.", (1, "The refund of 89.00 EUR is on its way"))
RUDE_VOTE = vote(
    "failed", "The second reply blames the customer.", (2, "You could have read that on our page.")
)
GRADE = Grade(
    score=0.75,
    pass_at=0.7,
    dimensions=(
        DimensionGrade(name="correctness", level="right", score=1, weight=2, reason="The amount is right."),
        DimensionGrade(name="clarity", level="some gaps", score=0.25, reason="The day is named | late."),
    ),
)
GRADED_FINDING = build.finding(
    criterion=CLEAR, kind="judged", reason="Right, and a little late.", grade=GRADE, evidence=(2,),
    quotes=(Quote(turn=2, text="within five … days"),),
)  # fmt: skip
VIOLATIONS = (
    Violation(
        rule="repeats", turn=2, text="I sent the jacket back nine days ago",
        reason="it says again what it said in turn 1",
    ),
    Violation(
        rule="meta_text", turn=3, text="As an AI language model", reason="it speaks of itself as a model",
    ),
)  # fmt: skip
BROKE_CHARACTER = (
    "the simulated user broke character in turn 2 (repeats): it says again what it said in turn 1"
)


def judged_trial(index: int = 1, *findings: Finding, **fields):
    """A trial of the talk, whose user kept to its role."""
    fields = {"user_audit": UserAudit(by_model=True)} | fields
    return build.trial_result(index, turns=TURNS, findings=findings, **fields)


def excluded_trial(index: int = 1):
    """A trial whose user broke its role, twice."""
    return build.trial_result(
        index, status=EndState.INVALID_USER, error=BROKE_CHARACTER, turns=TURNS, findings=(),
        closing_remark="As an AI language model I am done.",
        attempts=(
            Attempt(status=EndState.INVALID_USER, error=BROKE_CHARACTER),
            Attempt(status=EndState.INVALID_USER, error=BROKE_CHARACTER),
        ),
        user_audit=UserAudit(violations=VIOLATIONS),
    )  # fmt: skip


def sample_tests() -> tuple:
    """Three tests: one passes, one fails by two votes of three, of one no trial is valid."""
    result = voted(TOLD, POLITE_VOTE, vote("passed", "89.00 EUR", (1, "89.00 EUR"), model=MODELS[1]))
    rude = voted(KIND, RUDE_VOTE, replace(POLITE_VOTE, model=MODELS[1]), RUDE_VOTE)
    torn = voted(
        KIND,
        vote("undecided", "It depends on the tone.", cause=Cause.CANNOT_TELL),
        vote("undecided", "Nothing says how.", cause=Cause.CANNOT_TELL, model=MODELS[1]),
    )
    return (
        build.test_result(
            IN_TIME, trials=(judged_trial(1, result, GRADED_FINDING), judged_trial(2, result, GRADED_FINDING))
        ),
        build.test_result(
            TOO_LATE,
            line=31,
            trials=(judged_trial(1, result, rude), judged_trial(2, result, torn), excluded_trial(3)),
        ),
        build.test_result(
            LOST, line=55, trials=(excluded_trial(1), excluded_trial(2)), outcome="error", passed=False
        ),
    )


AGREEMENT = VoteAgreement(
    votes=3, models=MODELS,
    whole=PartAgreement(
        name="all", share=estimate(0.875, 0.78, 0.94), alpha=estimate(0.712, 0.55, 0.83), verdicts=40,
        low=False,
    ),
    effective_votes=estimate(1.238, 1.128, 1.429), levels=estimate(0.641, 0.43, 0.79),
    criteria=(
        PartAgreement(
            name=KIND, suite="Refunds", test=TOO_LATE, share=estimate(0.6, 0.31, 0.83, 10),
            alpha=estimate(0.05, -0.3, 0.4, 10), verdicts=10, low=True,
        ),
        PartAgreement(
            name=TOLD, suite="Refunds", test=IN_TIME, share=estimate(1), alpha=None, verdicts=30, low=False,
        ),
    ),
    categories=(
        PartAgreement(
            name="tone", share=estimate(0.875, 0.78, 0.94), alpha=estimate(0.712), verdicts=40, low=False,
        ),
    ),
)  # fmt: skip
USER_CHECKS = UserChecks(
    conversations=9, rerun=3, invalid=3, audited=5, not_audited=1, by_rule={"repeats": 4, "meta_text": 6},
    violation_rate=estimate(0.42, 0.12, 0.79, 7),
)  # fmt: skip
CALIBRATION = Calibration(
    judge=JUDGE, at=STUDY_TIME, run="run-0", people=2, labels=120, cannot_tell=5, ties=1, unknown=2,
    parts=(
        Rater(
            name="all", items=60, accuracy=estimate(0.9, 0.8, 0.95, 60),
            sensitivity=estimate(0.95, 0.85, 0.99, 40), specificity=estimate(0.8, 0.58, 0.92, 20),
            kappa=estimate(0.768, 0.59, 0.91, 60), alpha=estimate(0.8, 0.7, 0.9, 60),
            people=estimate(0.82, 0.7, 0.92, 60), people_kappa=estimate(0.83, 0.69, 0.93, 60),
            counted=Counted(
                passes_passed=38, passes_failed=4, fails_passed=2, fails_failed=16, passes=70, fails=18,
                design=1.2,
            ),
            pass_rate=0.8, corrected=estimate(0.76, 0.68, 0.84, 60), may_gate=True,
            why="kappa is at least 0.6, and so is what people reach among themselves",
        ),
        Rater(
            name=KIND, kind="criterion", items=20, accuracy=estimate(0.7, 0.48, 0.85, 20), sensitivity=None,
            specificity=None, kappa=estimate(0.31, 0.0, 0.6, 20), alpha=None, may_gate=False,
            why="kappa may be below 0.4",
        ),
    ),
)  # fmt: skip
NOISE = Noise(
    judge=JUDGE, at=STUDY_TIME, tests=3, plays=12, judgments=48, tests_left_out=1, left_out=2, cost_usd=0.31,
    standard_error=2.34,
    parts=(
        NoiseShare(source="agent", variance=estimate(120.4, 60, 200), share=estimate(0.6, 0.4, 0.75)),
        NoiseShare(source="user", variance=estimate(20.1, 0, 60), share=estimate(0.1, 0, 0.3)),
        NoiseShare(source="judge", variance=estimate(60.2, 30, 100), share=estimate(0.3, 0.2, 0.5)),
    ),
    between_tests=estimate(310.5, 100, 800), best="loops", gains={"loops": 14.1, "votes": 12.2, "tests": 0},
    best_in_general="tests", gains_in_general={"loops": 14.1, "votes": 12.2, "tests": 23.9},
    why="60 % of the noise is the agent's, and one more loop removes 1.2 times as much of it per dollar "
    "as two more votes. To know how good the agent is in general, beyond these tests, spend it on more "
    "tests.",
)  # fmt: skip
PREFERENCE = Preference(
    judge=JUDGE, at=STUDY_TIME, other="run-0", other_commit="3aceb90018667fc15c6a5de9e5af1227deadbeef",
    pairs=20, wins=11, losses=4, ties=4, undecided=1, share=estimate(0.684, 0.46, 0.85, 19),
    first=estimate(0.7, 0.52, 0.84, 30), swapped=3, p=0.344,
    tests=(
        Preferred(suite="Refunds", test=IN_TIME, wins=8, losses=1, ties=1, reasons=("It names the day.",)),
        Preferred(suite="Refunds", test=TOO_LATE, wins=3, losses=3, ties=3),
    ),
)  # fmt: skip
ATTACKS = Attacks(
    judge=JUDGE, at=STUDY_TIME, verdicts=10,
    kinds=(
        AttackKind(name="fake_verdict", tried=10, turned=3, share=estimate(0.3, 0.1, 0.6, 10), p=0.012),
        AttackKind(name="closed_fence", tried=10, turned=0, undecided=7, share=estimate(0, 0, 0.28, 10)),
    ),
    whole=AttackKind(name="all", tried=20, turned=3, share=estimate(0.15, 0.05, 0.36, 20)),
    control=AttackKind(name="control", tried=10, turned=1, share=estimate(0.1, 0.01, 0.4, 10)),
)  # fmt: skip
PROBE = Probe(
    judge=JUDGE, at=STUDY_TIME,
    criteria=(
        Probed(
            suite="Refunds", test=IN_TIME, criterion=CLEAR, tried=8, passed=8, share=estimate(1, 0.68, 1, 8),
            vacuous=True,
        ),
        Probed(
            suite="Refunds", test=IN_TIME, criterion=TOLD, tried=8, passed=1, undecided=6,
            share=estimate(0.125, 0.02, 0.47, 8), vacuous=False,
        ),
    ),
)  # fmt: skip
MUTATIONS = Mutations(
    run="run-1", gate=GateUsed(passed=True, options={"min-score": 70}, shares=(0.05, 0.5)),
    faults=(
        FaultResult(kind="call_dropped", planted=3, noticed=2, undecided=0, not_asked=1, needed_share=0.5),
        FaultResult(kind="fact_changed", planted=3, noticed=0, undecided=1, not_asked=2, needed_share=None),
    ),
    tests=(TestResult(suite="Refunds", name=IN_TIME, unnoticed=("fact_changed",)),),
    criteria=(IdleCriterion(suite="Refunds", test=IN_TIME, criterion=CLEAR),),
    null_agents=NullAgents(refuses=26.5, claims=31.0), suggestions=(),
)  # fmt: skip
PERSONAS = Personas(suites=(
    SuitePersonas(
        suite="Refunds",
        personas=(
            UserScore(
                name="rude", score=75.0, interval=None, tests=2, passed=1, failed=0, undecided=1,
                traits=(TraitCount(trait="hostile", conversations=6, shown=5),),
            ),
        ),
        languages=(
            UserScore(name="de", score=None, interval=None, tests=1, passed=0, failed=0, undecided=1),
        ),
    ),
))  # fmt: skip
USAGE = Usage(
    calls=140,
    tokens=Tokens(input=90_000, output=9_100),
    by_role=(
        RoleUsage(role="user", model="gpt-5-mini", calls=36, input_tokens=20_000, output_tokens=1_100),
        RoleUsage(
            role="judge", model=MODELS[0], calls=64, cached=30, input_tokens=50_000, output_tokens=5_000
        ),
        RoleUsage(role="judge", model=MODELS[1], calls=32, input_tokens=16_000, output_tokens=2_600),
        RoleUsage(role="auditor", model="gpt-5-nano", calls=8, input_tokens=4_000, output_tokens=400),
    ),
)


SUITE_MODELS = {"judge_model": MODELS[0], "judge_panel": MODELS, "judge_votes": 3, "user_model": "gpt-5-mini"}
"""Who judged a suite, and who played the user."""


def results_with_all_studies(**fields) -> Results:
    """All that can be known of judge and simulated user, good and bad."""
    suite = build.suite_result("Refunds", *sample_tests(), **SUITE_MODELS)
    fields = {
        "usage": USAGE, "vote_agreement": AGREEMENT, "user_checks": USER_CHECKS,
        "studies": (CALIBRATION, NOISE, PREFERENCE, ATTACKS, PROBE, MUTATIONS, PERSONAS),
        "gate": build.decision(
            build.check(name="min-score", required=70, seen=75.0, passed=True),
            build.check(name="max-invalid-users", required=1, seen=3, passed=False), exit_code=3,
            reasons=("3 trials are left out for their simulated user, and --max-invalid-users allows 1.",),
        ),
    } | fields  # fmt: skip
    results = build.results(suite, **fields)
    counts = {"invalid_users": 3}
    return replace(
        results,
        counts=replace(results.counts, **counts),
        suites=tuple(replace(one, counts=replace(one.counts, **counts)) for one in results.suites),
    )
