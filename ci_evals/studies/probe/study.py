"""Criteria before conversations of other tests: one that passes there too measures nothing."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.domain.errors import UsageError
from ci_evals.domain.evaluation import Judged
from ci_evals.domain.suite import Suite, Test
from ci_evals.domain.verdict import UNUSABLE, Finding, Outcome
from ci_evals.grading.grade import grade
from ci_evals.scoring.agreement.clustered import wilson_share
from ci_evals.studies.asking import Asking, spread_evenly
from ci_evals.studies.conversations import JudgedConversation, check_judged, conversations_of
from ci_evals.studies.probe.result import Probe, Probed

LEAST = 3
"""Conversations by which it must have been decided before a criterion is said to measure nothing."""


@dataclass(frozen=True)
class ProbeQuestion:
    """A judged criterion of a suite that stands in the run, and the conversations to try it on."""

    place: tuple[int, int, int]
    """The suite among those that are checked, its test, and the evaluation, counted from 0."""
    suite: str
    test: str
    evaluation: Judged
    others: tuple[JudgedConversation, ...]


@dataclass(frozen=True)
class ProbeQuestions:
    """The questions of a probe."""

    found: tuple[ProbeQuestion, ...]
    unknown: int
    """Judged criteria of the suites that the run does not hold."""


def questions(run: SavedRun, suites: Sequence[Suite], each: int, seed: int) -> ProbeQuestions:
    """Every judged criterion of the suites that the run holds, with at most `each` conversations of others.

    They are of other tests of the same suite, and only where there are too few of other suites; of tests that
    have the very same criterion there are none.

    Raises:
        UsageError: the run holds none of the criteria, or no conversation of another test.
    """
    check_judged(run)
    conversations = _RunConversations.of(run)
    found, unknown = [], 0
    for place, suite, test, evaluation in _judged(suites):
        if evaluation.criterion not in conversations.criteria.get((suite, test), ()):
            unknown += 1
            continue
        others = conversations.without((suite, test), evaluation.criterion, each, f"probe {seed} {place}")
        found.append(ProbeQuestion(place, suite, test, evaluation, others))
    _check(run, found)
    return ProbeQuestions(tuple(found), unknown)


def _judged(suites: Sequence[Suite]) -> Iterator[tuple[tuple[int, int, int], str, str, Judged]]:
    for s, suite in enumerate(suites):
        for t, test in enumerate(suite.tests):
            for e, evaluation in enumerate(test.evaluations):
                if isinstance(evaluation, Judged):
                    yield (s, t, e), suite.name, test.name, evaluation


@dataclass(frozen=True)
class _RunConversations:
    """The conversations of a run, by the names of suite and test, and the judged criteria of each test."""

    by_test: Mapping[tuple[str, str], Sequence[JudgedConversation]]
    criteria: Mapping[tuple[str, str], frozenset[str]]

    @classmethod
    def of(cls, run: SavedRun) -> Self:
        found: defaultdict[tuple[str, str], list[JudgedConversation]] = defaultdict(list)
        for one in conversations_of(run):
            found[one.suite, one.test.name].append(one)
        return cls(
            found,
            {
                test: frozenset(finding.criterion for one in conversations for finding in one.judged)
                for test, conversations in found.items()
            },
        )

    def without(
        self, own: tuple[str, str], criterion: str, most: int, seed: str
    ) -> tuple[JudgedConversation, ...]:
        """Conversations of other tests, those of the same suite first."""
        foreign = {
            test: conversations
            for test, conversations in self.by_test.items()
            if test != own and criterion not in self.criteria[test]
        }
        near = spread_evenly(
            [conversations for test, conversations in foreign.items() if test[0] == own[0]],
            most,
            seed,
        )
        far = spread_evenly(
            [conversations for test, conversations in foreign.items() if test[0] != own[0]],
            most - len(near),
            seed,
        )
        return (*near, *far)


def _check(run: SavedRun, found: Sequence[ProbeQuestion]) -> None:
    if not found:
        raise UsageError(
            f"--probe: {run.file} holds no judged criterion of these suites: they are found by the names "
            "of suite and test, and by their words; play them first"
        )
    if not any(question.others for question in found):
        raise UsageError(
            f"--probe: {run.file} holds no conversations of other tests to hold the criteria against"
        )


async def probe(asking: Asking, found: ProbeQuestions, at: datetime) -> Probe:
    """Ask the judge about every criterion on each of its conversations.

    Raises:
        UsageError: a trial is none that a run leaves; nobody was asked then.
    """
    tries = [(question, other.case(), other.test) for question in found.found for other in question.others]

    async def ask(place: int) -> Finding:
        question, case, test = tries[place]
        # All but the criterion is the conversation's own: with other data and guidelines than those it was
        # held by, what was said would be strange by itself, and any criterion might fail for that.
        asked = Test(
            name=test.name,
            user_info=test.user_info,
            guidelines=test.guidelines,
            turns=test.turns,
            evaluations=(question.evaluation,),
        )
        (finding,) = await grade(asked, case.turns, case.transcript, asking.judge(f"probe/{place}"))
        return finding

    told = await asking.each(range(len(tries)), ask, _missing)
    answers = iter(told)
    return Probe(
        judge=asking.used,
        at=at,
        criteria=tuple(
            _probed(question, [next(answers) for _ in question.others]) for question in found.found
        ),
    )


def vacuous(found: ProbeQuestions, probe: Probe) -> Iterator[tuple[ProbeQuestion, Probed]]:
    """The criteria that measure nothing, with where they stand."""
    return (
        (question, probed)
        for question, probed in zip(found.found, probe.criteria, strict=True)
        if probed.vacuous
    )


def _probed(question: ProbeQuestion, answers: Iterable[Finding | None]) -> Probed:
    given = [finding for finding in answers if finding]
    outcomes = [finding.outcome for finding in given if finding.outcome is not Outcome.UNDECIDED]
    passed = outcomes.count(Outcome.PASSED)
    return Probed(
        suite=question.suite,
        test=question.test,
        criterion=question.evaluation.criterion,
        tried=len(outcomes),
        passed=passed,
        undecided=len(given) - len(outcomes),
        share=wilson_share(passed, len(outcomes)),
        vacuous=passed == len(outcomes) >= LEAST,
    )


def _missing(finding: Finding) -> str | None:
    return finding.reason if finding.cause in UNUSABLE else None
