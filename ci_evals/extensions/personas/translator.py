"""The question to a model: the lines of one test in another language."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel, ConfigDict

from ci_evals.domain.errors import LLMAnswerError
from ci_evals.extensions.personas.fixed_lines import FixedLine, is_untranslated
from ci_evals.extensions.personas.lock_file import fault_in
from ci_evals.ports import LLM, Completion, Prompt, ask_twice
from ci_evals.support.json_text import strict_object
from ci_evals.support.model_answer import parse_answer
from ci_evals.support.templates import render

_SYSTEM_TEMPLATE = "extensions/personas/prompts/translate_system.md.j2"
_TEMPLATE = "extensions/personas/prompts/translate.md.j2"
_ENTRY = strict_object({"number": {"type": "integer"}, "text": {"type": "string"}})
_SCHEMA = strict_object({"translations": {"type": "array", "items": _ENTRY}})


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    number: int
    text: str


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    translations: list[_Entry]


@dataclass(frozen=True)
class Question:
    """Lines of one test to translate into one language."""

    test: str
    language: str
    conversation: Sequence[FixedLine]
    """All fixed lines of the test, in order."""
    wanted: Sequence[str]
    """The texts of those to translate, each once."""

    def numbers(self) -> dict[int, str]:
        """Return the lines to translate by the number of the turn where each stands first."""
        first: dict[str, int] = {}
        for line in self.conversation:
            first.setdefault(line.text, line.turn + 1)
        return {first[text]: text for text in self.wanted}


async def translate(llm: LLM, question: Question, sample_id: str) -> dict[str, str]:
    """Return the translations by their lines.

    Raises:
        LLMError: the model cannot be asked, or gave no usable answer twice.
    """
    numbers = question.numbers()
    conversation = [
        {"number": line.turn + 1, "from": "user" if line.key == "user" else "agent", "text": line.text}
        for line in question.conversation
    ]
    prompt = Prompt(
        system=render(_SYSTEM_TEMPLATE),
        text=render(_TEMPLATE, language=question.language, conversation=conversation, wanted=[*numbers]),
        schema=_SCHEMA,
        schema_name="translations",
        sample_id=sample_id,
    )
    return await ask_twice(llm, prompt, partial(_read, numbers=numbers, shown=prompt.text))


def _read(completion: Completion, numbers: dict[int, str], shown: str) -> dict[str, str]:
    answer = parse_answer(_Answer, completion.text, shown)
    if answer is None:
        raise LLMAnswerError("the model's answer cannot be read")
    given: dict[str, str] = {}
    for entry in answer.translations:
        line = numbers.get(entry.number)
        if line is None:
            raise LLMAnswerError(f"the model translated line {entry.number}, which was not asked for")
        if line in given:
            raise LLMAnswerError(f"the model translated {line!r} twice")
        if fault := fault_in(line, entry.text):
            raise LLMAnswerError(f"the model's translation of {line!r} {fault}")
        if is_untranslated(line, entry.text):
            raise LLMAnswerError(f"the model left {line!r} as it is")
        given[line] = entry.text.strip()
    for line in numbers.values():
        if line not in given:
            raise LLMAnswerError(f"the model left out {line!r}")
    return given
