"""The judge: the votes on one criterion, each over the whole conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, TypeVar

from ci_evals.domain.checks.evaluation import ClaimsBacked, Judged
from ci_evals.domain.criterion import Criterion
from ci_evals.domain.errors import LLMAnswerError
from ci_evals.domain.suite import PlannedTurn, Test
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Verdict, Vote
from ci_evals.grading import grounds, transcript_view
from ci_evals.grading.grounds import Citation, Grounds, StatedGrounds
from ci_evals.grading.transcript_view import ConversationView
from ci_evals.grading.voting import JudgePanel, Majority, VoidAnswerError
from ci_evals.ports import LEAST_SHARED, LLM, Prompt
from ci_evals.support.json_text import strict_object
from ci_evals.support.model_answer import parse_answer
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import Data, as_data, render
from ci_evals.support.text import has_words

T = TypeVar("T")

SYSTEM_TEMPLATE = "grading/prompts/judge_system.md.j2"
TEMPLATE = "grading/prompts/judge.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE)

MOST_KEPT = 4_000
"""Characters of an answer that could not be used, for the option `debug`."""
UNREADABLE = "the judge's answer could not be read"

_QUESTION = "<criterion>"
"""Where a prompt begins to differ from those on other criteria. No data in a prompt holds a `<`."""


class JudgeAnswer(StatedGrounds):
    """The form of a judge's answer, reasoning before verdict."""

    reasoning: str
    met: bool
    evidence: list[Citation]
    verdict: Literal["pass", "fail", "cannot_tell"]


_VERDICTS = ("pass", "fail")


def shares_prompt(evaluation: Criterion) -> bool:
    """Return whether its prompt begins like those of other criteria on the conversation."""
    return isinstance(evaluation, Judged) and not isinstance(evaluation, ClaimsBacked)


@dataclass(frozen=True)
class Judge:
    """Models to ask about criteria. They see neither weights, nor other criteria, nor secrets."""

    llms: Sequence[LLM]
    redactor: Redactor
    votes: int = 1
    sample_id: str = ""
    debug: bool = False
    """Keep what a judge wrote if it could not be used."""

    def context(self, test: Test, turns: Sequence[PlannedTurn], transcript: Transcript) -> "JudgeContext":
        """Return a conversation as it is put to this judge."""
        panel = JudgePanel(self.llms, self.votes, self.sample_id, self._kept if self.debug else None)
        questions = sum(map(shares_prompt, test.evaluations))
        return JudgeContext(panel, self.redactor, test, turns, transcript, questions=questions)

    def _kept(self, answer: str) -> str:
        text = self.redactor.text(answer)
        return text if len(text) <= MOST_KEPT else f"{text[:MOST_KEPT]} … ({len(text):,} characters)"


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
    questions: int = 1
    """The number of criteria whose prompts begin alike."""

    @cached_property
    def prompt_data(self) -> Mapping[str, Data]:
        """The parts of the prompt that are the same for every criterion."""
        background = transcript_view.background(self.test)
        return {
            "background": as_data(self.redactor.json(background)),
            "conversation": as_data(self._conversation.listed()),
        }

    @cached_property
    def _conversation(self) -> ConversationView:
        view = transcript_view.conversation(self.turns, self.transcript, actions=self.actions)
        return ConversationView(self.redactor.json(view.turns), self.redactor.json(view.end))

    @cached_property
    def texts(self) -> Mapping[int, Sequence[str]]:
        """The texts of each turn that a judge may quote, by its number."""
        return transcript_view.texts_by_turn(self._conversation)

    @cached_property
    def replies(self) -> Mapping[int, str]:
        """The agent's reply of each turn as a judge is shown it."""
        return {turn["turn"]: turn["agent"] for turn in self._conversation.turns}

    @property
    def shown(self) -> str:
        """The texts of others that a judge is shown: the user's situation, and the conversation."""
        return "".join(self.prompt_data.values())

    @property
    def is_worth_keeping(self) -> bool:
        """True if prompts begin alike for so long that providers keep that, and there are several."""
        characters = sum(map(len, self.prompt_data.values())) + len(_system(_VERDICTS))
        return self.questions > 1 and characters >= LEAST_SHARED

    def shared(self, text: str) -> int:
        """Return how many characters of a text those on other criteria begin with; 0 if there are none."""
        return text.index(_QUESTION) if self.questions > 1 else 0

    async def decide(self, evaluation: Judged) -> Verdict:
        """Return the verdict of the majority; undecided without one, or if the judge cannot tell."""

        async def vote(index: int) -> Vote:
            prompt = self._prompt(evaluation, self.panel.rotation(index))
            return await self.panel.ask(index, prompt, self._read)

        return await self.panel.poll(vote, Majority())

    def _prompt(self, evaluation: Judged, rotation: int) -> Prompt:
        verdicts = _VERDICTS[::-1] if rotation % 2 else _VERDICTS
        text = render(
            TEMPLATE,
            parts=parts_of(rotation),
            verdicts=verdicts,
            criterion=self.redactor.text(evaluation.criterion),
            **self.prompt_data,
        )
        return Prompt(
            system=_system(verdicts),
            text=text,
            schema=_schema(verdicts),
            schema_name="verdict",
            shared=self.shared(text),
        )

    def _read(self, text: str) -> Verdict:
        answer = parse_answer(JudgeAnswer, text, self.shown)
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
                raise VoidAnswerError(checked.missing)
            case "pass":
                verdict = Verdict.passed(reason)
            case "fail":
                verdict = Verdict.failed(reason)
            case "cannot_tell":
                verdict = Verdict.undecided(Cause.CANNOT_TELL, reason)
        return checked.of(verdict)

    def grounds(self, stated: StatedGrounds, citations: Sequence[Citation]) -> Grounds:
        """Return the grounds of an answer; see `grounds.check`."""
        return grounds.check(stated, citations, self.texts)


def _schema(verdicts: Sequence[str]) -> dict[str, object]:
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
def _system(verdicts: tuple[str, ...]) -> str:
    return render(SYSTEM_TEMPLATE, verdicts=verdicts)


def parts_of(rotation: int) -> Sequence[str]:
    """Return the parts of a prompt in the order of a vote.

    The criterion comes last in all of them, so that what is before it is the same for all criteria, and a
    provider reads it once.
    """
    if rotation % 2:
        return ("conversation", "background", "criterion")
    return ("background", "conversation", "criterion")


def rotated(parts: Sequence[T], rotation: int) -> Sequence[T]:
    """Return the parts with `rotation` of them moved from the front to the back."""
    start = rotation % len(parts)
    return [*parts[start:], *parts[:start]]
