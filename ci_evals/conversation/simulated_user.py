"""The user's side of a conversation: the messages of `auto` turns."""

from collections.abc import Sequence
from typing import Protocol

from ci_evals.domain.errors import LLMAnswerError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Turn
from ci_evals.ports import LLM, Completion, Prompt, ask_twice
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import render
from ci_evals.support.text import is_blank

STOP_MARKER = "###STOP###"
"""Text with which a simulated user ends the conversation; a message that contains it is not sent."""

MAX_CHARACTERS = 100_000
"""Limit of a user's message: no person writes more."""

SYSTEM_TEMPLATE = "conversation/prompts/simulated_user_system.md.j2"
TEMPLATE = "conversation/prompts/simulated_user.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE)


class SimulatedUser(Protocol):
    """The author of the messages of `auto` turns."""

    async def next_message(self, test: Test, turns: Sequence[Turn]) -> str:
        """Return the user's next message; `###STOP###` in it ends the conversation.

        Raises:
            LLMError: the model cannot be asked, or gives no usable message.
        """


class ModelUser:
    """A user played by a model. It sees its role and the conversation, never how it is graded."""

    def __init__(self, llm: LLM, redactor: Redactor) -> None:
        self._llm = llm
        self._redactor = redactor
        self._role: tuple[Test, str] | None = None
        """The last test, and the system prompt for it."""

    async def next_message(self, test: Test, turns: Sequence[Turn]) -> str:
        """Ask the model, once more if its message is empty or too long."""
        names = {"user": "you", "assistant": "agent"}
        conversation = [{names[message["role"]]: message["content"]} for message in test.history]
        conversation += shown(turns)
        prompt = Prompt(
            system=self._system_prompt(test),
            text=render(TEMPLATE, conversation=self._redactor.json(conversation)),
        )
        return await ask_twice(self._llm, prompt, _read)

    def _system_prompt(self, test: Test) -> str:
        """Return the role in this test; it is rendered once for all of its messages."""
        if self._role is None or self._role[0] is not test:
            role = self._redactor.json({"guidelines": test.guidelines, "user_info": test.user_info})
            self._role = (test, render(SYSTEM_TEMPLATE, **role))
        return self._role[1]


def shown(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Return turns in the words of the prompt."""
    return [{"you": turn.user, "agent": turn.agent} for turn in turns]


def _read(completion: Completion) -> str:
    message = completion.text.strip()
    if len(message) > MAX_CHARACTERS:
        raise LLMAnswerError(f"the simulated user's message is longer than {MAX_CHARACTERS:,} characters")
    if is_blank(message):
        raise LLMAnswerError("the simulated user's model gave an empty message")
    return message
