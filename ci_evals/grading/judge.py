"""The judge: one call for one criterion, over the whole conversation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ci_evals.domain.base import NonBlank
from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.evaluation import Judged
from ci_evals.domain.suite import Test, Turn
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.verdict import Cause, Verdict
from ci_evals.ports import LLM, Prompt
from ci_evals.redaction import Redactor
from ci_evals.templates import Data, as_data, render

SYSTEM_TEMPLATE = "grading/prompts/judge_system.md.j2"
TEMPLATE = "grading/prompts/judge.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE)

MOST_CHARACTERS = 100_000
"""Of an answer: a judge's reasoning takes some hundreds of words."""

_ENDS = {
    EndState.COMPLETED: "all planned messages of the user were sent",
    EndState.STOPPED: "the user had nothing more to say",
    EndState.ESCALATED: "the agent handed over to a person",
    EndState.AGENT_ERROR: "the agent answered with an error",
    EndState.INVALID_USER: "the user did not keep to its role",
    EndState.FAILED: "the agent or the user could not be reached any more",
    EndState.INTERRUPTED: "the conversation was cut off",
}


class Answer(BaseModel):
    """What the judge must answer, reasoning before verdict."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reasoning: NonBlank
    verdict: Literal["pass", "fail"]
    evidence: list[int]


SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "verdict": {"type": "string", "enum": ["pass", "fail"]},
        "evidence": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["reasoning", "verdict", "evidence"],
    "additionalProperties": False,
}
"""The part of JSON Schema that every provider enforces; the order of properties is the order of writing."""


class Judge:
    """Asks a model. It sees neither the weights nor the other criteria, and no secret."""

    def __init__(self, llm: LLM, redactor: Redactor) -> None:
        self._llm = llm
        self._redactor = redactor

    def hear(self, test: Test, turns: Sequence[Turn], transcript: Transcript) -> "Hearing":
        """A conversation, to decide criteria by."""
        return Hearing(self._llm, self._redactor, test, turns, transcript)


@dataclass(frozen=True)
class Hearing:
    """One conversation before a judge, whatever the criteria."""

    llm: LLM
    redactor: Redactor
    test: Test
    turns: Sequence[Turn]
    transcript: Transcript

    @cached_property
    def _shown(self) -> Mapping[str, Data]:
        """What stands in the prompt for every criterion."""
        told = _told(self.test, self.turns, self.transcript)
        return {name: as_data(self.redactor.json(value)) for name, value in told.items()}

    async def decide(self, evaluation: Judged) -> Verdict:
        """Passed or failed as the judge says; undecided (`judge_error`) where it cannot be asked or read."""
        prompt = Prompt(
            system=render(SYSTEM_TEMPLATE),
            text=render(TEMPLATE, criterion=self.redactor.text(evaluation.criterion), **self._shown),
            schema=SCHEMA,
            schema_name="verdict",
        )
        unreadable = "the judge's answer could not be read"
        for _ in range(2):
            try:
                answer = read_answer((await self.llm.complete(prompt)).text)
            except LLMAnswerError as error:
                unreadable = str(error)
                continue
            except LLMError as error:
                return Verdict.undecided(Cause.JUDGE_ERROR, str(error))
            if answer is not None and _within(answer.evidence, len(self.transcript.exchanges)):
                decided = Verdict.passed if answer.verdict == "pass" else Verdict.failed
                return decided(answer.reasoning.strip(), *sorted(set(answer.evidence)))
        return Verdict.undecided(Cause.JUDGE_ERROR, f"{unreadable} (asked twice)")


def read_answer(text: str) -> Answer | None:
    """The judge's answer, or None where it is not exactly what was asked for."""
    try:
        return Answer.model_validate(loaded(text))
    except (ValueError, RecursionError, ValidationError):
        return None


def loaded(text: str) -> object:
    """A model's answer as the JSON that it is.

    A code fence round the JSON is let pass, as models without a schema like to write one. Everything else is
    unreadable: searching prose for a verdict would be guessing, and would let quoted text decide.

    Raises:
        ValueError, RecursionError: it is no JSON, is longer than any answer, or has a key twice.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError("it is too long")
    lines = text.strip().splitlines()
    if len(lines) > 2 and lines[0].rstrip() in {"```", "```json"} and lines[-1] == "```":
        text = "\n".join(lines[1:-1])
    data: object = json.loads(text, object_pairs_hook=_no_duplicates)
    return data


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A second `verdict` must not quietly replace the first."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


def _within(evidence: Sequence[int], exchanges: int) -> bool:
    """Whether the evidence is of this conversation; a judge that names others has not read it."""
    return all(1 <= number <= exchanges for number in evidence)


def _told(test: Test, turns: Sequence[Turn], transcript: Transcript) -> dict[str, object]:
    return {
        "background": {"user_info": test.user_info, "guidelines": test.guidelines},
        "conversation": conversation(turns, transcript),
    }


def conversation(turns: Sequence[Turn], transcript: Transcript) -> list[dict[str, object]]:
    """A conversation as a judge is shown it: what was said, what was expected, and why it ended."""
    told = []
    for exchange in transcript.exchanges:
        turn = turns[exchange.index - 1]
        said: dict[str, object] = {"exchange": exchange.index, "user": exchange.user, "agent": exchange.agent}
        told.append(said | ({"expected": turn.expectation} if turn.expectation else {}))
    end: dict[str, object] = {"end": _ENDS[transcript.status]}
    if transcript.closing_remark:
        end["closing_remark_of_the_user"] = transcript.closing_remark
    return [*told, end]
