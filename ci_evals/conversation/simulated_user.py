"""The user's side of a conversation: what an `auto` turn says."""

from collections.abc import Sequence
from typing import Protocol

from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Turn
from ci_evals.ports import LLM, Prompt
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import render
from ci_evals.support.text import is_blank

STOP_MARKER = "###STOP###"
"""What a simulated user writes when the conversation is over for it; the message is then not sent."""

MOST_CHARACTERS = 100_000
"""Of a user's message: no person writes more."""

SYSTEM_TEMPLATE = "conversation/prompts/simulated_user_system.md.j2"
TEMPLATE = "conversation/prompts/simulated_user.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE)


class SimulatedUser(Protocol):
    """Whoever writes the lines of `auto` turns."""

    async def next_message(self, test: Test, turns: Sequence[Turn]) -> str:
        """The user's next line; `###STOP###` in it ends the conversation.

        Raises:
            LLMError: there is no line to be had.
        """


class ModelUser:
    """A user played by a model. It is told who it is and what was said, never how it is graded."""

    def __init__(self, llm: LLM, redactor: Redactor) -> None:
        self._llm = llm
        self._redactor = redactor
        self._role: tuple[Test, str] | None = None
        """Who it was last, and how that was put."""

    async def next_message(self, test: Test, turns: Sequence[Turn]) -> str:
        """Asks the model, once more if it says nothing."""
        conversation = [{"you": turn.user, "agent": turn.agent} for turn in turns]
        prompt = Prompt(
            system=self._role_in(test),
            text=render(TEMPLATE, conversation=self._redactor.json(conversation)),
        )
        trouble = "the simulated user's model gave an empty message"
        for _ in range(2):
            try:
                answer = (await self._llm.complete(prompt)).text.strip()
            except LLMAnswerError as error:
                trouble = str(error)
                continue
            if len(answer) > MOST_CHARACTERS:
                trouble = f"the simulated user's message is longer than {MOST_CHARACTERS:,} characters"
            elif not is_blank(answer):
                return answer
        raise LLMError(f"{trouble} (asked twice)")

    def _role_in(self, test: Test) -> str:
        """Who the model is in this test; the same before every message."""
        if self._role is None or self._role[0] is not test:
            told = self._redactor.json({"guidelines": test.guidelines, "user_info": test.user_info})
            self._role = (test, render(SYSTEM_TEMPLATE, **told))
        return self._role[1]
