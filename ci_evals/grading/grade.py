"""All evaluations of a test on one transcript."""

import asyncio
from collections.abc import Sequence
from itertools import starmap

from pydantic import JsonValue

from ci_evals.domain.canaries import filled
from ci_evals.domain.checks.evaluation import ClaimsBacked, Graded, Judged
from ci_evals.domain.checks.replies import NO_REPLY
from ci_evals.domain.checks.strict.disclosure import NotDisclosed
from ci_evals.domain.checks.strict.expected_answers import NO_MODEL, compares_meanings
from ci_evals.domain.checks.strict.functions import PythonCheck
from ci_evals.domain.checks.strict_check import StrictCheck, unknown_canary
from ci_evals.domain.suite import PlannedTurn, Test, unsent_lines
from ci_evals.domain.transcript import END_REASONS, EndState, Transcript
from ci_evals.domain.verdict import Cause, Finding, Outcome, Verdict
from ci_evals.grading import claims, code_check, graded_criteria
from ci_evals.grading.judge import Judge, JudgeContext, shares_prompt
from ci_evals.grading.semantic import SemanticMatcher
from ci_evals.grading.unsent_lines import UnsentLines
from ci_evals.ports import CallFunction

NO_JUDGE = Verdict.undecided(Cause.NO_JUDGE, "no judge is configured (provider offline)")
NO_USER = Verdict.undecided(
    Cause.NO_USER, "nobody played the simulated user, who needs a model (provider offline)"
)


async def grade(
    test: Test,
    turns: Sequence[PlannedTurn],
    transcript: Transcript,
    judge: Judge | Verdict,
    semantic_matcher: SemanticMatcher | Verdict = NO_MODEL,
    *,
    call_function: CallFunction | None = None,
) -> tuple[Finding, ...]:
    """Return a finding for each evaluation of the test, in its order; models are asked concurrently.

    A verdict instead of `judge` or `semantic_matcher` says why nobody is asked, and is that of every
    evaluation that needs one. Without `call_function` checks that are code are undecided.
    """
    written = test.evaluations
    test = filled(test, transcript.canaries)
    # Where a hand-over is allowed, what was said until then decides: no other line is shown to the judge.
    due = turns[: len(transcript.turns)] if _handed_over_as_allowed(test, transcript) else turns
    context = judge if isinstance(judge, Verdict) else judge.context(test, due, transcript)
    unsent = _kept_from(test, turns, transcript)

    async def decide(evaluation: Judged | StrictCheck) -> Verdict:
        if unknown := unknown_canary(evaluation):
            verdict = unknown
        elif isinstance(evaluation, Judged):
            verdict = await asked(evaluation)
        else:
            verdict = await _checked(evaluation, test, transcript, semantic_matcher, call_function)
        return unsent.limit(evaluation, verdict) if unsent else verdict

    async def asked(evaluation: Judged) -> Verdict:
        if isinstance(context, Verdict):
            return context
        return await judged(context, evaluation) if transcript.turns else NO_REPLY

    judged_first: dict[int, Verdict] = {}
    for first in _asked_first(test, transcript, context):
        judged_first[first] = await decide(test.evaluations[first])

    async def verdict_of(index: int, evaluation: Judged | StrictCheck) -> Verdict:
        return judged_first.get(index) or await decide(evaluation)

    verdicts = await asyncio.gather(*starmap(verdict_of, enumerate(test.evaluations)))
    return tuple(Finding.of(e, verdict) for e, verdict in zip(written, verdicts, strict=True))


async def _checked(
    check: StrictCheck,
    test: Test,
    transcript: Transcript,
    semantic_matcher: SemanticMatcher | Verdict,
    call_function: CallFunction | None,
) -> Verdict:
    if compares_meanings(check):
        if isinstance(semantic_matcher, Verdict):
            return semantic_matcher
        return await semantic_matcher.decide(check, transcript)
    if isinstance(check, PythonCheck):
        return await code_check.decide(check, transcript, call_function)
    verdict = check.decide(transcript)
    if isinstance(check, NotDisclosed):
        given: list[JsonValue] = [test.guidelines, test.user_info, *test.history]
        return check.unless_known(verdict, transcript, given)
    return verdict


def _asked_first(test: Test, transcript: Transcript, context: JudgeContext | Verdict) -> Sequence[int]:
    """Return the place of the criterion to ask about before the others; none if nothing is gained by it.

    Once the provider has read the conversation, it reads it for a fraction of the price.
    """
    if isinstance(context, Verdict) or not (transcript.turns and context.is_worth_keeping):
        return ()
    return [place for place, each in enumerate(test.evaluations) if shares_prompt(each)][:1]


_BY_THE_AGENT = frozenset({EndState.ESCALATED, EndState.AGENT_ERROR})
"""The ends that an agent brings about."""


def _kept_from(test: Test, turns: Sequence[PlannedTurn], transcript: Transcript) -> UnsentLines | None:
    """Return the lines that the agent ended the conversation before; None if the test expects that end."""
    lines = unsent_lines(turns, len(transcript.turns))
    if transcript.status not in _BY_THE_AGENT or not lines:
        return None
    for check in test.evaluations:
        if not isinstance(check, StrictCheck) or check.expects_end is not transcript.status:
            continue
        if check.decide(transcript).outcome is Outcome.PASSED:
            return None
    allowed = _handed_over_as_allowed(test, transcript)
    return UnsentLines(lines, END_REASONS[transcript.status], allowed)


def _handed_over_as_allowed(test: Test, transcript: Transcript) -> bool:
    return test.may_escalate and transcript.status is EndState.ESCALATED


async def judged(context: JudgeContext, evaluation: Judged) -> Verdict:
    """Return the judge's verdict on a criterion, with a grade if it has a rubric."""
    if isinstance(evaluation, ClaimsBacked):
        return await claims.decide(context, evaluation)
    if isinstance(evaluation, Graded):
        return await graded_criteria.decide(context, evaluation)
    return await context.decide(evaluation)
