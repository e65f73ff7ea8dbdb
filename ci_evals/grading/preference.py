"""Which of two conversations a judge prefers: one call for each order in which they can be shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.results.studies import Better
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.suite import PlannedTurn
from ci_evals.domain.transcript import Transcript
from ci_evals.grading.grounds import NO_WORDS
from ci_evals.grading.judge import conversation
from ci_evals.ports import LLM, Prompt
from ci_evals.support.json_text import answered
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import Data, as_data, render
from ci_evals.support.text import has_words

SYSTEM_TEMPLATE = "grading/prompts/prefer_system.md.j2"
TEMPLATE = "grading/prompts/prefer.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE)

SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "better": {"type": "string", "enum": ["first", "second", "tie"]},
    },
    "required": ["reasoning", "better"],
    "additionalProperties": False,
}


class Answer(BaseModel):
    """What the judge must answer, reasoning first."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reasoning: str
    better: Better


class Choice(NamedTuple):
    """What a judge says of two conversations."""

    better: Better | None
    """None where it could not be asked or read."""
    reason: str


@dataclass(frozen=True)
class Talk:
    """One of the conversations."""

    turns: Sequence[PlannedTurn]
    transcript: Transcript


@dataclass(frozen=True)
class Contest:
    """Two conversations of the same test before a judge."""

    redactor: Redactor
    test: TestResult
    criteria: Sequence[str]
    """What matters to the test's author."""
    one: Talk
    other: Talk

    @cached_property
    def _shared(self) -> Mapping[str, Data]:
        """What stands in the prompt whatever the order."""
        told = {
            "background": {"user_info": self.test.user_info, "guidelines": self.test.guidelines},
            "criteria": list(self.criteria),
        }
        return {name: as_data(self.redactor.json(value)) for name, value in told.items()}

    @cached_property
    def _talks(self) -> Sequence[Data]:
        told = (conversation(talk.turns, talk.transcript) for talk in (self.one, self.other))
        return [as_data(self.redactor.json(value)) for value in told]

    @property
    def alike(self) -> bool:
        """Whether a judge would be shown the same words twice."""
        one, other = self._talks
        return one == other

    async def ask(self, llm: LLM, *, swapped: bool, sample_id: str = "") -> Choice:
        """Which is better, the other one shown first where `swapped`. What cannot be read is asked again."""
        first, second = reversed(self._talks) if swapped else self._talks
        text = render(TEMPLATE, first=first, second=second, **self._shared)
        unreadable = "the judge's answer could not be read"
        for attempt in range(2):
            prompt = Prompt(
                system=render(SYSTEM_TEMPLATE),
                text=text,
                schema=SCHEMA,
                schema_name="preference",
                sample_id=f"{sample_id}/{attempt}",
            )
            try:
                answer = read_answer((await llm.complete(prompt)).text)
            except LLMAnswerError as error:
                unreadable = str(error)
                continue
            except LLMError as error:
                return Choice(None, str(error))
            if answer and not has_words(answer.reasoning):
                unreadable = NO_WORDS
            elif answer:
                return Choice(answer.better, answer.reasoning.strip())
        return Choice(None, f"{unreadable} (asked twice)")


def read_answer(text: str) -> Answer | None:
    """The judge's answer, or None where it is not exactly what was asked for."""
    try:
        return Answer.model_validate(answered(text))
    except (ValueError, RecursionError):  # a ValidationError is a ValueError
        return None
