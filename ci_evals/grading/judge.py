"""The judge: the votes on one criterion, each over the whole conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ci_evals.domain.errors import LLMAnswerError
from ci_evals.domain.evaluation import Judged
from ci_evals.domain.suite import PlannedTurn, Test
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.verdict import Cause, Outcome, Quote, Verdict, Vote
from ci_evals.grading import grounds, quotes
from ci_evals.grading.steps import did, texts
from ci_evals.grading.voting import JudgePanel, Majority
from ci_evals.ports import LLM, Prompt
from ci_evals.support.json_text import answered
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import Data, as_data, render
from ci_evals.support.text import has_words

T = TypeVar("T")

SYSTEM_TEMPLATE = "grading/prompts/judge_system.md.j2"
TEMPLATE = "grading/prompts/judge.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE)

UNREADABLE = "the judge's answer could not be read"

PARTS = ("background", "conversation", "criterion")
"""What a prompt is made of, in the first vote's order."""

_ENDS = {
    EndState.COMPLETED: "all planned messages of the user were sent",
    EndState.STOPPED: "the user had nothing more to say",
    EndState.ESCALATED: "the agent handed over to a person",
    EndState.AGENT_ERROR: "the agent answered with an error",
    EndState.INVALID_USER: "the user did not keep to its role",
    EndState.FAILED: "the agent or the user could not be reached any more",
    EndState.INTERRUPTED: "the conversation was cut off",
}


class Evidence(BaseModel):
    """Words of a turn that the judge rests on. Empty ones are no grounds."""

    model_config = ConfigDict(extra="forbid", strict=True)

    turn: int
    quote: str


class Answer(grounds.Stated):
    """What the judge must answer, reasoning before verdict."""

    reasoning: str
    met: bool
    evidence: list[Evidence]
    verdict: Literal["pass", "fail", "cannot_tell"]


EVIDENCE = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"turn": {"type": "integer"}, "quote": {"type": "string"}},
        "required": ["turn", "quote"],
        "additionalProperties": False,
    },
}


def schema(verdicts: Sequence[str]) -> dict[str, Any]:
    """What the answer must be like, the verdicts in this order.

    It keeps to the part of JSON Schema that every provider enforces; the order of properties is the order of
    writing.
    """
    properties = {
        "reasoning": {"type": "string"},
        "met": {"type": "boolean"},
        "evidence": EVIDENCE,
        **grounds.SCHEMA,
        "verdict": {"type": "string", "enum": [*verdicts, "cannot_tell"]},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


class Judge:
    """Asks models. They see neither the weights nor the other criteria, and no secret."""

    def __init__(
        self, llms: Sequence[LLM], redactor: Redactor, *, votes: int = 1, sample_id: str = ""
    ) -> None:
        """Asks nobody yet.

        Args:
            llms: The models that vote in turn; at least one.
            redactor: Takes the secrets out of what they are shown.
            votes: On one criterion, at the most; odd.
            sample_id: Sets apart equal questions of different trials, so that each is answered by itself.
        """
        self._panel, self._redactor = JudgePanel(llms, votes, sample_id), redactor

    def context(self, test: Test, turns: Sequence[PlannedTurn], transcript: Transcript) -> "JudgeContext":
        """A conversation, to decide criteria by."""
        return JudgeContext(self._panel, self._redactor, test, turns, transcript)


@dataclass(frozen=True)
class JudgeContext:
    """One conversation before a judge, whatever the criteria."""

    panel: JudgePanel
    redactor: Redactor
    test: Test
    turns: Sequence[PlannedTurn]
    transcript: Transcript
    steps: bool = False
    """Whether a judge is shown what the agent did."""

    def with_steps(self) -> "JudgeContext":
        """The same, with what the trace says that the agent did."""
        return replace(self, steps=True)

    @property
    def traced(self) -> bool:
        """Whether any trace tells of that."""
        return any(did(turn) for turn in self.transcript.turns)

    @cached_property
    def _told(self) -> dict[str, Any]:
        """What a judge is told of the conversation, without secrets."""
        told = {
            "background": {"user_info": self.test.user_info, "guidelines": self.test.guidelines},
            "conversation": conversation(self.turns, self.transcript, steps=self.steps),
        }
        return {name: self.redactor.json(value) for name, value in told.items()}

    @cached_property
    def shown(self) -> Mapping[str, Data]:
        """What stands in the prompt for every criterion."""
        return {name: as_data(value) for name, value in self._told.items()}

    @cached_property
    def _said(self) -> Mapping[int, Sequence[str]]:
        """What was said in each turn, as it is shown; a closing remark counts to the last one."""
        *turns, end = self._told["conversation"]
        said = {one["turn"]: [one["user"], one["agent"], *texts(one.get("did"))] for one in turns}
        if said and "closing_remark_of_the_user" in end:
            said[max(said)].append(end["closing_remark_of_the_user"])
        return said

    async def decide(self, evaluation: Judged) -> Verdict:
        """What the majority of votes says; undecided without one, or where the judge cannot tell."""

        async def vote(index: int) -> Vote:
            return await self.panel.ask(index, self._prompt(evaluation, self.panel.turn(index)), self._read)

        return await self.panel.poll(vote, Majority())

    def _prompt(self, evaluation: Judged, turn: int) -> Prompt:
        """The question, its parts and the two verdicts in an order of their own for each turn."""
        verdicts = ("fail", "pass") if turn % 2 else ("pass", "fail")
        return Prompt(
            system=_system(verdicts),
            text=render(
                TEMPLATE,
                parts=turned(PARTS, turn),
                verdicts=verdicts,
                criterion=self.redactor.text(evaluation.criterion),
                **self.shown,
            ),
            schema=schema(verdicts),
            schema_name="verdict",
        )

    def _read(self, text: str) -> Verdict | str:
        """The verdict of an answer, or why it is void.

        Raises:
            LLMAnswerError: it cannot be read.
        """
        answer = read_answer(text)
        if answer is None:
            raise LLMAnswerError(UNREADABLE)
        reason = answer.reasoning.strip()
        if not has_words(reason):
            return grounds.NO_WORDS
        if answer.met is not (answer.verdict == "pass"):
            return grounds.CONTRADICTION.format(verdict=answer.verdict, met=str(answer.met).lower())
        found = self.grounds(answer, answer.evidence)
        if isinstance(found, str):
            return found
        match answer.verdict:
            case "pass" if found.rests_on is None:
                return grounds.NOTHING
            case "pass":
                verdict = Verdict.passed(reason)
            case "fail":
                verdict = Verdict.failed(reason)
            case "cannot_tell":
                verdict = Verdict.undecided(Cause.CANNOT_TELL, reason)
        return resting(verdict, found)

    def grounds(self, stated: grounds.Stated, evidence: Sequence[Evidence]) -> grounds.Grounds | str:
        """What an answer rests on, looked up in the conversation; or why the answer is void."""
        found = self._quotes(evidence)
        if isinstance(found, str):
            return found
        return grounds.checked(stated, found, [one.turn for one in evidence], self._said)

    def _quotes(self, evidence: Sequence[Evidence]) -> tuple[Quote, ...] | str:
        """The quotes, each once and in order, or why they are void: a judge that invents has not read."""
        found: dict[Quote, None] = {}
        for one in evidence:
            if one.turn not in self._said:
                return f"the judge named turn {one.turn}, which does not exist"
            if quotes.is_empty(one.quote):
                continue
            if not quotes.stands(one.quote, self._said[one.turn]):
                return f"the judge quoted words that do not stand in turn {one.turn}"
            found[Quote(turn=one.turn, text=one.quote.strip())] = None
        return tuple(sorted(found, key=lambda quote: quote.turn))


def resting(verdict: Verdict, found: grounds.Grounds) -> Verdict:
    """The verdict with its grounds."""
    rests_on = None if verdict.outcome is Outcome.UNDECIDED else found.rests_on
    update = {"evidence": found.turns, "quotes": found.quotes, "rests_on": rests_on}
    return verdict.model_copy(update=update)


@cache
def _system(verdicts: tuple[str, str]) -> str:
    """What is the same for all criteria."""
    return render(SYSTEM_TEMPLATE, verdicts=verdicts)


def turned(parts: Sequence[T], turn: int) -> Sequence[T]:
    """The parts, so many of them taken from the front to the back."""
    place = turn % len(parts)
    return [*parts[place:], *parts[:place]]


def read_answer(text: str) -> Answer | None:
    """The judge's answer, or None where it is not exactly what was asked for."""
    try:
        return Answer.model_validate(answered(text))
    except (ValueError, RecursionError, ValidationError):
        return None


def conversation(
    planned_turns: Sequence[PlannedTurn], transcript: Transcript, *, steps: bool = False
) -> list[dict[str, object]]:
    """A conversation as a judge is shown it, secrets apart: what was said and expected, and why it ended.

    With `steps` also what the agent did.
    """
    told = []
    for turn in transcript.turns:
        planned = planned_turns[turn.index - 1]
        said: dict[str, object] = {"turn": turn.index, "user": turn.user, "agent": turn.agent}
        said |= {"expected": planned.expectation} if planned.expectation else {}
        done = did(turn) if steps else None
        told.append(said | ({"did": done} if done else {}))
    end: dict[str, object] = {"end": _ENDS[transcript.status]}
    if transcript.closing_remark:
        end["closing_remark_of_the_user"] = transcript.closing_remark
    return [*told, end]
