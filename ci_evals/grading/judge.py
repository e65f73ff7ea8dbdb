"""The judge: the votes on one criterion, each over the whole conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, TypeVar

from ci_evals.domain.errors import LLMAnswerError
from ci_evals.domain.evaluation import Judged
from ci_evals.domain.suite import PlannedTurn, Test
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Verdict, Vote
from ci_evals.grading import grounds, transcript_view
from ci_evals.grading.grounds import Citation, Grounds, StatedGrounds
from ci_evals.grading.voting import JudgePanel, Majority, VoidAnswerError
from ci_evals.ports import LLM, Prompt
from ci_evals.support.json_text import parse_answer, strict_object
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import Data, as_data, render
from ci_evals.support.text import has_words

T = TypeVar("T")

SYSTEM_TEMPLATE = "grading/prompts/judge_system.md.j2"
TEMPLATE = "grading/prompts/judge.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE)

UNREADABLE = "the judge's answer could not be read"

PARTS = ("background", "conversation", "criterion")
"""The parts of a prompt, in the order of the first vote."""


class JudgeAnswer(StatedGrounds):
    """The form of a judge's answer, reasoning before verdict."""

    reasoning: str
    met: bool
    evidence: list[Citation]
    verdict: Literal["pass", "fail", "cannot_tell"]


@dataclass(frozen=True)
class Judge:
    """Models to ask about criteria. They see neither weights, nor other criteria, nor secrets."""

    llms: Sequence[LLM]
    redactor: Redactor
    votes: int = 1
    sample_id: str = ""

    def context(self, test: Test, turns: Sequence[PlannedTurn], transcript: Transcript) -> "JudgeContext":
        """Return a conversation as it is put to this judge."""
        panel = JudgePanel(self.llms, self.votes, self.sample_id)
        return JudgeContext(panel, self.redactor, test, turns, transcript)


@dataclass(frozen=True)
class JudgeContext:
    """One conversation before a judge, whatever the criteria."""

    panel: JudgePanel
    redactor: Redactor
    test: Test
    turns: Sequence[PlannedTurn]
    transcript: Transcript
    actions: bool = False
    """Show the judge the agent's actions too."""

    @cached_property
    def prompt_data(self) -> Mapping[str, Data]:
        """The parts of the prompt that are the same for every criterion."""
        background = {"user_info": self.test.user_info, "guidelines": self.test.guidelines}
        return {
            "background": as_data(self.redactor.json(background)),
            "conversation": as_data(self._conversation),
        }

    @cached_property
    def _conversation(self) -> list[dict[str, Any]]:
        shown = transcript_view.conversation(self.turns, self.transcript, actions=self.actions)
        clean: list[dict[str, Any]] = self.redactor.json(shown)
        return clean

    @cached_property
    def _texts(self) -> Mapping[int, Sequence[str]]:
        return transcript_view.texts_by_turn(self._conversation)

    async def decide(self, evaluation: Judged) -> Verdict:
        """Return the verdict of the majority; undecided without one, or if the judge cannot tell."""

        async def vote(index: int) -> Vote:
            prompt = self._prompt(evaluation, self.panel.rotation(index))
            return await self.panel.ask(index, prompt, self._read)

        return await self.panel.poll(vote, Majority())

    def _prompt(self, evaluation: Judged, rotation: int) -> Prompt:
        verdicts = ("fail", "pass") if rotation % 2 else ("pass", "fail")
        return Prompt(
            system=_system(verdicts),
            text=render(
                TEMPLATE,
                parts=rotated(PARTS, rotation),
                verdicts=verdicts,
                criterion=self.redactor.text(evaluation.criterion),
                **self.prompt_data,
            ),
            schema=_schema(verdicts),
            schema_name="verdict",
        )

    def _read(self, text: str) -> Verdict:
        answer = parse_answer(JudgeAnswer, text)
        if answer is None:
            raise LLMAnswerError(UNREADABLE)
        reason = answer.reasoning.strip()
        if not has_words(reason):
            raise VoidAnswerError(grounds.NO_WORDS)
        if answer.met is not (answer.verdict == "pass"):
            met = str(answer.met).lower()
            raise VoidAnswerError(grounds.CONTRADICTION.format(verdict=answer.verdict, met=met))
        checked = self.grounds(answer, answer.evidence)
        match answer.verdict:
            case "pass" if checked.rests_on is None:
                raise VoidAnswerError(grounds.NOTHING)
            case "pass":
                verdict = Verdict.passed(reason)
            case "fail":
                verdict = Verdict.failed(reason)
            case "cannot_tell":
                verdict = Verdict.undecided(Cause.CANNOT_TELL, reason)
        return checked.of(verdict)

    def grounds(self, stated: StatedGrounds, citations: Sequence[Citation]) -> Grounds:
        """Return the grounds of an answer; see `grounds.check`."""
        return grounds.check(stated, citations, self._texts)


def _schema(verdicts: Sequence[str]) -> dict[str, Any]:
    """Return the schema of an answer. The order of its properties is the order of writing."""
    return strict_object(
        {
            "reasoning": {"type": "string"},
            "met": {"type": "boolean"},
            "evidence": grounds.CITATIONS_SCHEMA,
            **grounds.GROUNDS_SCHEMA,
            "verdict": {"type": "string", "enum": [*verdicts, "cannot_tell"]},
        }
    )


@cache
def _system(verdicts: tuple[str, str]) -> str:
    return render(SYSTEM_TEMPLATE, verdicts=verdicts)


def rotated(parts: Sequence[T], rotation: int) -> Sequence[T]:
    """Return the parts with `rotation` of them moved from the front to the back."""
    start = rotation % len(parts)
    return [*parts[start:], *parts[:start]]
