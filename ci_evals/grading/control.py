"""Control questions: criteria on bundled conversations whose answers are known, to show that a judge judges.

They are asked and read exactly as the criteria of a suite. docs/judge.md derives the numbers below.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Literal

from ci_evals.domain.evaluation import Judged
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource
from ci_evals.domain.verdict import UNUSABLE, Cause, Outcome, Verdict
from ci_evals.grading import judge
from ci_evals.grading.judge import Judge
from ci_evals.ports import LLM
from ci_evals.support import templates
from ci_evals.support.redaction import Redactor

FILE = "grading/control_questions.json"
REQUIRED = 3 / 4
"""Share of all questions that a judge must answer right."""
REQUIRED_OF_EACH = 2 / 3
"""The same of those that pass, and of those that fail."""
AT_A_TIME = 4
"""Questions under way: the conversations of the run go first."""

Answer = Literal["pass", "fail", "cannot_tell"]


@dataclass(frozen=True)
class Question:
    """A criterion on a bundled conversation, with its answer."""

    test: Test
    transcript: Transcript
    criterion: Judged
    answer: Answer


@dataclass(frozen=True)
class Marks:
    """The verdicts of a judge on the control questions, in their order, compared with the answers."""

    answers: Sequence[Answer]
    verdicts: Sequence[Verdict]

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
        """Whether the judge may judge."""
        return self.why is None

    @property
    def why(self) -> str | None:
        """Why the judge did not pass, in words; None if it did."""
        void = [verdict for verdict in self.verdicts if verdict.cause in UNUSABLE]
        unusable = f"; {len(void)} without a usable answer: {void[0].reason}" if void else ""
        if self.right < self.required:
            return f"{self._tally}, {self.required} required{unusable}"
        for answer in ("pass", "fail"):
            right, asked = self._right[answer], Counter(self.answers)[answer]
            if right < (least := ceil(REQUIRED_OF_EACH * asked)):
                return (
                    f"{self._tally}, but only {right} of the {asked} whose answer is {answer!r} "
                    f"({least} required){unusable}"
                )
        return None

    @property
    def _tally(self) -> str:
        return f"answered {self.right} of {self.asked} control questions right"

    @property
    def _right(self) -> Mapping[str, int]:
        pairs = zip(self.answers, self.verdicts, strict=True)
        return Counter(answer for answer, verdict in pairs if answer == _answer_of(verdict))


def _answer_of(verdict: Verdict) -> Answer | None:
    match verdict.outcome:
        case Outcome.PASSED:
            return "pass"
        case Outcome.FAILED:
            return "fail"
        case Outcome.UNDECIDED:
            return "cannot_tell" if verdict.cause is Cause.CANNOT_TELL else None


@cache
def questions() -> tuple[Question, ...]:
    """All control questions."""
    found: list[Question] = []
    for number, entry in enumerate(json.loads(_text()), 1):
        said = entry["conversation"]
        criteria = [Judged(criterion=one["criterion"]) for one in entry["questions"]]
        test = Test(
            name=f"Control conversation {number}",
            guidelines="",
            turns=[{"user": one["user"]} for one in said],
            evaluations=criteria,
        )
        turns = tuple(
            Turn(index=index, user_source=UserSource.FIXED, latency_seconds=0, **one)
            for index, one in enumerate(said, 1)
        )
        transcript = Transcript(turns=turns, status=EndState.COMPLETED)
        pairs = zip(criteria, entry["questions"], strict=True)
        found += [Question(test, transcript, criterion, one["answer"]) for criterion, one in pairs]
    return tuple(found)


def prompt_digest() -> str:
    """SHA-256 of what a check depends on besides the model: the judge's prompt and the questions."""
    return templates.digest(*judge.TEMPLATES, FILE)


async def ask(llm: LLM, redactor: Redactor) -> Marks:
    """Ask a judge all control questions, some at a time, one vote each."""
    examined = Judge([llm], redactor, sample_id="control")
    slots = asyncio.Semaphore(AT_A_TIME)

    async def verdict(question: Question) -> Verdict:
        async with slots:
            heard = examined.context(question.test, question.test.turns, question.transcript)
            return await heard.decide(question.criterion)

    verdicts = await asyncio.gather(*map(verdict, questions()))
    return Marks([question.answer for question in questions()], verdicts)


def _text() -> str:
    return files("ci_evals").joinpath(FILE).read_text(encoding="utf-8")
