"""`validate --probe`: a criterion that passes on conversations of other tests too measures nothing."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.files.suite_loading import values_of
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.checks.evaluation import ClaimsBacked, Judged
from ci_evals.domain.errors import Problem, UsageError
from ci_evals.domain.suite import Suite, Test
from ci_evals.domain.verdict import UNUSABLE, Finding, Outcome
from ci_evals.extension_support.asking import Asking, spread_evenly
from ci_evals.extension_support.conversations import JudgedConversation, check_judged, conversations_of
from ci_evals.extension_support.judging import judging
from ci_evals.extension_support.settings import JudgeSettings
from ci_evals.extensions.validate.result import Probe, Probed
from ci_evals.extensions.validate.settings import ValidateSettings
from ci_evals.extensions.validate.suite_findings import Rule, SuiteFinding
from ci_evals.grading.grade import grade
from ci_evals.planning.parse import LoadedSuite
from ci_evals.reports import sanitize
from ci_evals.scoring.agreement.clustered import wilson_share

_MIN_DECIDED = 3
"""Conversations by which it must have been decided before a criterion is said to measure nothing."""
_SEED = 0
_WHAT_TO_DO = (
    "A criterion that passes in every conversation measures nothing. Usually it names what must not happen, "
    "so it also passes if nothing happens at all. Word it so that the situation must arise, add a strict "
    "check, or let the user press for it (an adversarial user). A criterion on any conversation, such as its "
    "tone, may stay, but it does not distinguish tests."
)


_TestKey = tuple[str, str]
"""The names of suite and test."""


@dataclass(frozen=True)
class ProbeQuestion:
    """A judged criterion of a suite that stands in the run, and the conversations to try it on."""

    indexes: tuple[int, int, int]
    """Of the suite among those that are checked, its test, and the evaluation."""
    suite: str
    test: str
    evaluation: Judged
    others: tuple[JudgedConversation, ...]


def probe_suites(
    suites: Sequence[LoadedSuite],
    results: Path,
    settings: ValidateSettings,
    context: RunContext,
    note: Callable[[SuiteFinding], None],
) -> None:
    """Try every judged criterion on a few conversations, and note those that measure nothing.

    Raises:
        UsageError: before anybody is asked; nothing is written then.
    """
    models = JudgeSettings(
        provider=settings.provider,
        llm_key=settings.llm_key,
        judge_model=settings.judge_model,
        parallel=settings.parallel,
        quiet=settings.quiet,
    )
    judge = judging(results, models, context)
    # What of a suite came from the environment stands in the run as `***`, and no judge may see it.
    redactor = judge.redactor.knowing(values=values_of(suites, context.environ))
    context.redactor = redactor
    judge = replace(judge, redactor=redactor)
    console = context.console
    clean = [redactor.model(loaded.suite) for loaded in suites]
    questions, unknown = questions_for(judge.run, clean, settings.probe_with, _SEED)
    if unknown:
        criteria = numbers.count(unknown, "judged criterion", "judged criteria")
        console.say(f"Not probed, since {judge.run.file} does not hold them: {criteria}")
    probed, asking = judge.carry_out(lambda asking: probe(asking, questions, datetime.now(UTC)), "verdict")
    for question, criterion in zip(questions, probed.criteria, strict=True):
        if criterion.vacuous:
            note(SuiteFinding(Rule.VACUOUS, _problem(suites, question, criterion)))
    if probed.vacuous:
        console.say(_WHAT_TO_DO)
    if few := sum(criterion.tried < _MIN_DECIDED for criterion in probed.criteria):
        criteria = numbers.count(few, "criterion was", "criteria were")
        console.say(f"{criteria} decided by fewer than {_MIN_DECIDED} conversations, which says too little")
    decided = sum(criterion.tried for criterion in probed.criteria)
    judge.finish(asking, probed, decided=decided, warnings=False)  # each criterion has one already


def _problem(suites: Sequence[LoadedSuite], question: ProbeQuestion, probed: Probed) -> Problem:
    """Return the problem of a criterion where it stands, as `--strict` does."""
    suite, test, evaluation = question.indexes
    criterion = sanitize.one_line(question.evaluation.criterion, 80)
    message = (
        f"{criterion!r} passes before {probed.passed} of {probed.tried} conversations of other tests too: it "
        "measures nothing"
    )
    path = ("tests", test, "evaluations", evaluation, "criterion")
    return suites[suite].document.problem(path, message)


def questions_for(
    run: SavedRun, suites: Sequence[Suite], each: int, seed: int
) -> tuple[list[ProbeQuestion], int]:
    """Every judged criterion of the suites that the run holds, and the number of those that it does not hold.

    Each is tried on at most `each` conversations of other tests of the same suite, and only where there are
    too few of other suites; of tests that have the very same criterion there are none.

    Raises:
        UsageError: the run holds none of the criteria, or no conversation of another test.
    """
    check_judged(run)
    conversations: defaultdict[_TestKey, list[JudgedConversation]] = defaultdict(list)
    criteria: defaultdict[_TestKey, set[str]] = defaultdict(set)
    for conversation in conversations_of(run):
        key = (conversation.suite, conversation.test.name)
        conversations[key].append(conversation)
        criteria[key].update(finding.criterion for finding in conversation.judged)
    questions, unknown = [], 0
    for indexes, suite, test, evaluation in _judged(suites):
        if evaluation.criterion not in criteria.get((suite, test), ()):
            unknown += 1
            continue
        near: list[list[JudgedConversation]] = []
        far: list[list[JudgedConversation]] = []
        for key, of_test in conversations.items():
            if key != (suite, test) and evaluation.criterion not in criteria[key]:
                (near if key[0] == suite else far).append(of_test)
        draw = f"probe {seed} {indexes}"
        others = spread_evenly(near, each, draw)
        others += spread_evenly(far, each - len(others), draw)
        questions.append(ProbeQuestion(indexes, suite, test, evaluation, tuple(others)))
    if not questions:
        raise UsageError(
            f"`probe=`: {run.file} holds no judged criterion of these suites: they are found by the names "
            "of suite and test, and by their words; run them first"
        )
    if not any(question.others for question in questions):
        raise UsageError(
            f"`probe=`: {run.file} holds no conversations of other tests to check the criteria on"
        )
    return questions, unknown


def _judged(suites: Sequence[Suite]) -> Iterator[tuple[tuple[int, int, int], str, str, Judged]]:
    """Yield the judged criteria. Claims are left out: they are asked of any conversation alike."""
    for s, suite in enumerate(suites):
        for t, test in enumerate(suite.tests):
            for e, evaluation in enumerate(test.evaluations):
                if isinstance(evaluation, Judged) and not isinstance(evaluation, ClaimsBacked):
                    yield (s, t, e), suite.name, test.name, evaluation


async def probe(asking: Asking, questions: Sequence[ProbeQuestion], at: datetime) -> Probe:
    """Ask the judge about every criterion on each of its conversations.

    Raises:
        UsageError: a trial is none that a run leaves; nobody was asked then.
    """
    tries = [(question, other.case(), other.test) for question in questions for other in question.others]

    async def ask(index: int) -> Finding:
        question, case, test = tries[index]
        # All but the criterion is the conversation's own: with other data and guidelines than those it was
        # held by, what was said would be strange by itself, and any criterion might fail for that.
        judged_test = Test(
            name=test.name,
            user_info=test.user_info,
            guidelines=test.guidelines,
            turns=test.turns,
            evaluations=(question.evaluation,),
        )
        (finding,) = await grade(judged_test, case.turns, case.transcript, asking.judge(f"probe/{index}"))
        return finding

    findings = await asking.each(
        range(len(tries)), ask, lambda finding: finding.reason if finding.cause in UNUSABLE else None
    )
    answers = iter(findings)
    return Probe(
        judge=asking.used,
        at=at,
        criteria=tuple(_probed(question, [next(answers) for _ in question.others]) for question in questions),
    )


def _probed(question: ProbeQuestion, answers: Iterable[Finding | None]) -> Probed:
    outcomes = [finding.outcome for finding in answers if finding]
    passed, undecided = outcomes.count(Outcome.PASSED), outcomes.count(Outcome.UNDECIDED)
    decided = len(outcomes) - undecided
    return Probed(
        suite=question.suite,
        test=question.test,
        criterion=question.evaluation.criterion,
        tried=decided,
        passed=passed,
        undecided=undecided,
        share=wilson_share(passed, decided),
        vacuous=passed == decided >= _MIN_DECIDED,
    )
