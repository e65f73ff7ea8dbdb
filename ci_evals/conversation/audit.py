"""The audit: a model looks whether a simulated user kept to what it was told.

One cheap question after a conversation in which the rules have found nothing. What it finds counts only with
words that the simulated user wrote.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ci_evals.conversation.user_checks import is_looked_at, spoken, violations
from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.results.simulated_user import UserAudit, Violation
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, Transcript, UserSource
from ci_evals.ports import LLM, Prompt
from ci_evals.support.json_text import answered
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import render
from ci_evals.support.text import has_words

SYSTEM_TEMPLATE = "conversation/prompts/audit_system.md.j2"
TEMPLATE = "conversation/prompts/audit.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE)

RULE = "audit"
"""What a violation that a model has found says of its rule."""

_ENDS: Mapping[EndState, str] = {
    EndState.COMPLETED: "all messages that were planned had been sent",
    EndState.STOPPED: "the simulated user said that it is done",
    EndState.ESCALATED: "the agent handed over to a person",
    EndState.AGENT_ERROR: "the agent answered with an error",
}


class _Found(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    turn: int
    quote: str
    what: str


class Answer(BaseModel):
    """What the auditor must answer, reasoning before verdict."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reasoning: str
    violations: list[_Found]
    verdict: Literal["kept", "broke", "cannot_tell"]


SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "violations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "turn": {"type": "integer"},
                    "quote": {"type": "string"},
                    "what": {"type": "string"},
                },
                "required": ["turn", "quote", "what"],
                "additionalProperties": False,
            },
        },
        "verdict": {"type": "string", "enum": ["kept", "broke", "cannot_tell"]},
    },
    "required": ["reasoning", "violations", "verdict"],
    "additionalProperties": False,
}
"""The part of JSON Schema that every provider enforces."""


async def look(test: Test, transcript: Transcript, auditor: "Auditor | None") -> UserAudit | None:
    """Check, by rules and else by the auditor, a user that a model played.

    None where it wrote nothing, or the conversation broke off.
    """
    if not is_looked_at(transcript):
        return None
    if found := violations(test, transcript):
        return UserAudit(violations=found)
    return await auditor.audit(test, transcript) if auditor else UserAudit()


def reason(audit: UserAudit) -> str:
    """Why a conversation is left out, from the first violation."""
    first = audit.violations[0]
    return f"the simulated user broke its role in turn {first.turn} ({first.rule}): {first.reason}"


class Auditor:
    """Asks a model. It sees what the simulated user was told and what was said, and no criterion."""

    def __init__(self, llm: LLM, redactor: Redactor) -> None:
        self._llm = llm
        self._redactor = redactor

    async def audit(self, test: Test, transcript: Transcript) -> UserAudit:
        """What the model finds; `by_model` is false where it cannot be asked or read. Raises nothing."""
        told = self._redactor.json(
            {
                "guidelines": test.guidelines,
                "user_info": test.user_info,
                "conversation": _told(transcript),
            }
        )
        prompt = Prompt(
            system=render(SYSTEM_TEMPLATE),
            text=render(TEMPLATE, **told, end=_ENDS[transcript.status]),
            schema=SCHEMA,
            schema_name="audit",
        )
        for _ in range(2):
            try:
                answer = read_answer((await self._llm.complete(prompt)).text)
            except LLMAnswerError:
                continue
            except LLMError:
                break
            if answer and not _is_void(answer):
                # It was shown the words without secrets, and so it quotes them.
                written = self._redactor.json(_written(transcript))
                return UserAudit(violations=tuple(_violations(answer, written)), by_model=True)
        return UserAudit(by_model=False)


def read_answer(text: str) -> Answer | None:
    """The auditor's answer, or None where it is not exactly what was asked for."""
    try:
        return Answer.model_validate(answered(text))
    except (ValueError, RecursionError, ValidationError):
        return None


def _is_void(answer: Answer) -> bool:
    """True for an answer that gives no reason in words, or whose verdict contradicts its violations."""
    contradicts = answer.verdict != "cannot_tell" and bool(answer.violations) is not (
        answer.verdict == "broke"
    )
    return contradicts or not has_words(answer.reasoning)


def _told(transcript: Transcript) -> Sequence[Mapping[str, object]]:
    by = {UserSource.AUTO: "simulated user", UserSource.FIXED: "test's author"}
    said: list[Mapping[str, object]] = [
        {"turn": one.index, "written_by": by[one.user_source], "user": one.user, "agent": one.agent}
        for one in transcript.turns
    ]
    if transcript.closing_remark:
        remark = {
            "written_by": by[UserSource.AUTO],
            "closing_remark_that_was_not_sent": transcript.closing_remark,
        }
        said.append({"turn": len(said) + 1, **remark})
    return said


def _written(transcript: Transcript) -> dict[int, str]:
    """What the simulated user itself wrote, by the turn."""
    own = {one.index: one.user for one in transcript.turns if one.user_source is UserSource.AUTO}
    remark = {len(transcript.turns) + 1: transcript.closing_remark} if transcript.closing_remark else {}
    return own | remark


def _violations(answer: Answer, written: Mapping[int, str]) -> list[Violation]:
    """Those whose words stand in the message that they name; of a user that kept to its role none."""
    if answer.verdict != "broke":
        return []
    return [
        Violation(rule=RULE, turn=one.turn, text=one.quote, reason=one.what)
        for one in answer.violations
        if spoken(one.quote) and f" {spoken(one.quote)} " in f" {spoken(written.get(one.turn, ''))} "
    ]
