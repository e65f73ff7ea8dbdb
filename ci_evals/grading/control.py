"""Control questions: criteria on bundled conversations with known answers, to check a judge.

Those on claims are asked only for suites that have such criteria, and count by themselves: being good at
other criteria does not make up for overlooked claims. All are asked and read exactly as the criteria of a
suite. docs/judge-statistics.md derives the numbers below.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Any, Literal

from ci_evals.domain.checks.evaluation import ClaimsBacked, Judged
from ci_evals.domain.suite import PlannedTurn, Test
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource
from ci_evals.domain.verdict import UNUSABLE, Cause, Outcome, Verdict
from ci_evals.grading import claims, judge
from ci_evals.grading.grade import judged
from ci_evals.grading.judge import Judge
from ci_evals.ports import LLM
from ci_evals.support import templates
from ci_evals.support.redaction import Redactor

REQUIRED = 3 / 4
"""Share of all questions that a judge must answer correctly."""
REQUIRED_OF_EACH = 2 / 3
"""The same share of those that pass, and of those that fail."""
CONCURRENT = 4
"""Questions asked at once: the conversations of the run go first."""


@dataclass(frozen=True)
class Subject:
    """A set of control questions, which are counted by themselves."""

    noun: str
    file: str
    templates: tuple[str, ...]
    """The prompt that they are asked by."""


CRITERIA = Subject("control questions", "grading/control_questions.json", judge.TEMPLATES)
CLAIMS = Subject("control questions on claims", "grading/claims_questions.json", claims.TEMPLATES)


def subjects(*, with_claims: bool) -> tuple[Subject, ...]:
    """Return the sets that a judge is asked, `with_claims` if it is to judge claims."""
    return (CRITERIA, CLAIMS) if with_claims else (CRITERIA,)


KnownAnswer = Literal["pass", "fail", "cannot_tell"]


@dataclass(frozen=True)
class ControlQuestion:
    """A criterion on a bundled conversation, with its answer."""

    test: Test
    transcript: Transcript
    criterion: Judged
    answer: KnownAnswer


@dataclass(frozen=True)
class ControlResult:
    """A judge's verdicts on the control questions, in their order, with the known answers."""

    answers: Sequence[KnownAnswer]
    verdicts: Sequence[Verdict]
    noun: str = CRITERIA.noun

    @property
    def asked(self) -> int:
        """Number of questions."""
        return len(self.answers)

    @property
    def right(self) -> int:
        """Number of right answers."""
        return sum(self._right.values())

    @property
    def required(self) -> int:
        """Number of right answers that it takes."""
        return ceil(REQUIRED * self.asked)

    @property
    def passed(self) -> bool:
        """True if the judge may judge."""
        return self.failure is None

    @property
    def failure(self) -> str | None:
        """The reason for which the judge did not pass; None if it did."""
        void = [verdict for verdict in self.verdicts if verdict.cause in UNUSABLE]
        unusable = f"; {len(void)} without a usable answer: {void[0].reason}" if void else ""
        tally = f"answered {self.right} of {self.asked} {self.noun} right"
        if self.right < self.required:
            return f"{tally}, {self.required} required{unusable}"
        for answer in ("pass", "fail"):
            right, asked = self._right[answer], Counter(self.answers)[answer]
            if right < (required := ceil(REQUIRED_OF_EACH * asked)):
                return (
                    f"{tally}, but only {right} of the {asked} whose answer is {answer!r} "
                    f"({required} required){unusable}"
                )
        return None

    @property
    def _right(self) -> Mapping[str, int]:
        pairs = zip(self.answers, self.verdicts, strict=True)
        return Counter(answer for answer, verdict in pairs if answer == _answer_of(verdict))


def _answer_of(verdict: Verdict) -> KnownAnswer | None:
    match verdict.outcome:
        case Outcome.PASSED:
            return "pass"
        case Outcome.FAILED:
            return "fail"
        case Outcome.UNDECIDED:
            return "cannot_tell" if verdict.cause is Cause.CANNOT_TELL else None


@cache
def questions(subject: Subject = CRITERIA) -> tuple[ControlQuestion, ...]:
    """Return all control questions of a set."""
    entries = json.loads(files("ci_evals").joinpath(subject.file).read_text(encoding="utf-8"))
    read = _about_claims if subject is CLAIMS else _read
    return tuple(question for number, entry in enumerate(entries, 1) for question in read(number, entry))


def _read(number: int, entry: Any) -> Iterator[ControlQuestion]:
    criteria = [Judged(criterion=question["criterion"]) for question in entry["questions"]]
    test, transcript = _conversation(number, entry["conversation"], criteria)
    for criterion, question in zip(criteria, entry["questions"], strict=True):
        yield ControlQuestion(test, transcript, criterion, question["answer"])


def _about_claims(number: int, entry: Any) -> Iterator[ControlQuestion]:
    criterion = ClaimsBacked(criterion="A tool call backs each claim", claims="backed")
    test, transcript = _conversation(number, entry["conversation"], [criterion])
    yield ControlQuestion(test, transcript, criterion, entry["answer"])


def _conversation(number: int, turns: Sequence[Any], criteria: Sequence[Judged]) -> tuple[Test, Transcript]:
    test = Test(
        name=f"Control conversation {number}",
        guidelines="",
        turns=tuple(PlannedTurn(user=turn["user"]) for turn in turns),
        evaluations=tuple(criteria),
    )
    played = tuple(
        Turn(index=index, user_source=UserSource.FIXED, latency_seconds=0, **turn)
        for index, turn in enumerate(turns, 1)
    )
    return test, Transcript(turns=played, status=EndState.COMPLETED)


def prompt_digest(asked: Sequence[Subject] = (CRITERIA,)) -> str:
    """Return the SHA-256 of all that a check depends on besides the model: prompts and questions."""
    names = [name for subject in asked for name in (*subject.templates, subject.file)]
    return templates.digest(*names)


async def ask(llm: LLM, redactor: Redactor, subject: Subject = CRITERIA) -> ControlResult:
    """Ask a judge all control questions of a set, a few at once, one vote each."""
    examined = Judge([llm], redactor, sample_id="control")
    slots = asyncio.Semaphore(CONCURRENT)

    async def verdict(question: ControlQuestion) -> Verdict:
        async with slots:
            context = examined.context(question.test, question.test.planned_turns, question.transcript)
            return await judged(context, question.criterion)

    asked = questions(subject)
    verdicts = await asyncio.gather(*map(verdict, asked))
    return ControlResult([question.answer for question in asked], verdicts, subject.noun)
