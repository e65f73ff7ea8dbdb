"""The scores of agents that do nothing, by the strict checks of suites. No agent is asked."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ci_evals.domain.base import Percent
from ci_evals.domain.checks.evaluation import Judged
from ci_evals.domain.checks.strict.expected_answers import compares_meanings
from ci_evals.domain.checks.strict.functions import PythonCheck
from ci_evals.domain.null_agents import REFUSAL
from ci_evals.domain.results.trial import passed_share, points
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring import scores


def null_score(tests: Iterable[Test], words: str = REFUSAL) -> Percent | None:
    """Return the score of an agent that says only these words and calls nothing, 0 to 100.

    It is the mean over the tests that decide, by their strict checks. Criteria that need a model, the suite's
    own code or a probe are left out. None if nothing is left.
    """
    found = []
    for test in tests:
        share = None if test.quarantine else _score(test, words)
        if share is not None:
            found.append(share)
    return points(scores.mean(found))


def _score(test: Test, words: str) -> Fraction | None:
    transcript = Transcript(turns=_turns(test, words), status=EndState.COMPLETED)
    findings = []
    for evaluation in test.evaluations:
        if isinstance(evaluation, Judged | PythonCheck) or compares_meanings(evaluation):
            continue
        finding = Finding.of(evaluation, evaluation.decide(transcript))
        if finding.outcome is not Outcome.UNDECIDED:
            findings.append(finding)
    return passed_share(findings)


def _turns(test: Test, words: str) -> Sequence[Turn]:
    """Return the turns of an agent that reports everything, and did nothing."""
    return tuple(
        Turn(
            index=number,
            user=planned.user,
            user_source=UserSource.AUTO if planned.auto else UserSource.FIXED,
            agent=words,
            latency_seconds=0,
            handed_over=False,
            workflows=(),
            tool_calls=(),
            params={},
            rules=(),
            integrations=(),
            error_response=False,
        )
        for number, planned in enumerate(test.planned_turns, start=1)
    )
