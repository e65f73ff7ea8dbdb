"""The audit: a model checks whether a simulated user kept to its instructions.

It is one cheap question after a conversation in which the rules found no violation. A violation counts only
with words that the simulated user wrote.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ci_evals.conversation.user_checks import (
    can_skip_lines,
    is_checked,
    skipped_lines,
    spoken,
    violations,
)
from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.results.simulated_user import UserAudit, Violation
from ci_evals.domain.suite import Test, unsent_lines
from ci_evals.domain.transcript import END_REASONS, Transcript, UserSource
from ci_evals.ports import LLM, Completion, Prompt, ask_twice
from ci_evals.support.json_text import strict_object
from ci_evals.support.model_answer import parse_answer
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import render
from ci_evals.support.text import has_words

SYSTEM_TEMPLATE = "conversation/prompts/audit_system.md.j2"
TEMPLATE = "conversation/prompts/audit.md.j2"
TEMPLATES = (SYSTEM_TEMPLATE, TEMPLATE)

RULE = "audit"
"""The rule of a violation that a model found."""


class _ReportedViolation(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    turn: int
    quote: str
    what: str


class AuditAnswer(BaseModel):
    """The form of an auditor's answer, reasoning before verdict."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reasoning: str
    violations: list[_ReportedViolation]
    verdict: Literal["kept", "broke", "cannot_tell"]


SCHEMA = strict_object(
    {
        "reasoning": {"type": "string"},
        "violations": {
            "type": "array",
            "items": strict_object(
                {"turn": {"type": "integer"}, "quote": {"type": "string"}, "what": {"type": "string"}}
            ),
        },
        "verdict": {"type": "string", "enum": ["kept", "broke", "cannot_tell"]},
    }
)


async def check(test: Test, transcript: Transcript, auditor: "Auditor | None") -> UserAudit | None:
    """Check a simulated user by rules, and ask the auditor only if they find no violation.

    None if the simulated user wrote nothing, or the conversation broke off.
    """
    if not is_checked(transcript):
        return None
    if found := violations(test, transcript):
        return UserAudit(violations=found)
    return await auditor.audit(test, transcript) if auditor else UserAudit()


def check_script(test: Test, transcript: Transcript) -> UserAudit | None:
    """Check that a scripted user, which always stays in character, did not stop before lines of the test.

    None if the test has no line that it could skip, or the conversation broke off.
    """
    if not can_skip_lines(test) or not is_checked(transcript):
        return None
    return UserAudit(violations=tuple(skipped_lines(test, transcript)))


def reason(audit: UserAudit) -> str:
    """Return why a conversation is excluded, from the first violation."""
    first = audit.violations[0]
    return f"the simulated user broke character in turn {first.turn} ({first.rule}): {first.reason}"


class Auditor:
    """Asks a model. It sees the simulated user's instructions and the conversation, but no criterion."""

    def __init__(self, llm: LLM, redactor: Redactor) -> None:
        self._llm = llm
        self._redactor = redactor

    async def audit(self, test: Test, transcript: Transcript) -> UserAudit:
        """Return what the model finds; `by_model` is false if it cannot be asked or read. Raises nothing."""
        data = {
            "unsent": _lines_never_sent(test, transcript),
            "guidelines": test.guidelines,
            "user_info": test.user_info,
            "conversation": _conversation(transcript),
        }
        prompt = Prompt(
            system=render(SYSTEM_TEMPLATE),
            text=render(TEMPLATE, **self._redactor.json(data), end=END_REASONS[transcript.status]),
            schema=SCHEMA,
            schema_name="audit",
        )
        try:
            answer = await ask_twice(self._llm, prompt, partial(_read, shown=prompt.text))
        except LLMError:
            return UserAudit(by_model=False)
        # The model was shown the messages without secrets, and so it quotes them.
        messages = self._redactor.json(_own_messages(transcript))
        return UserAudit(violations=tuple(_confirmed(answer, messages)), by_model=True)


def _read(completion: Completion, shown: str) -> AuditAnswer:
    """Return the answer, unless it gives no reason in words or its verdict contradicts its violations."""
    answer = parse_answer(AuditAnswer, completion.text, shown)
    if answer is None or not has_words(answer.reasoning):
        raise LLMAnswerError("the auditor's answer could not be read")
    if answer.verdict != "cannot_tell" and bool(answer.violations) is not (answer.verdict == "broke"):
        raise LLMAnswerError("the auditor contradicted itself")
    return answer


def _conversation(transcript: Transcript) -> Sequence[Mapping[str, object]]:
    authors = {UserSource.AUTO: "simulated user", UserSource.FIXED: "test's author"}
    turns: list[Mapping[str, object]] = [
        {
            "turn": turn.index,
            "written_by": authors[turn.user_source],
            "user": turn.user,
            "agent": turn.agent,
        }
        for turn in transcript.turns
    ]
    if transcript.closing_remark:
        turns.append(
            {
                "turn": len(turns) + 1,
                "written_by": authors[UserSource.AUTO],
                "closing_remark_that_was_not_sent": transcript.closing_remark,
            }
        )
    return turns


def _lines_never_sent(test: Test, transcript: Transcript) -> Sequence[Mapping[str, object]]:
    planned = test.planned_turns
    lines = unsent_lines(planned, len(transcript.turns))
    return [{"turn": line, "user": planned[line - 1].user} for line in lines if planned[line - 1].fixed]


def _own_messages(transcript: Transcript) -> dict[int, str]:
    messages = {turn.index: turn.user for turn in transcript.turns if turn.user_source is UserSource.AUTO}
    if transcript.closing_remark:
        messages[len(transcript.turns) + 1] = transcript.closing_remark
    return messages


def _confirmed(answer: AuditAnswer, messages: Mapping[int, str]) -> list[Violation]:
    """Return the violations whose words occur in the message that they name."""
    if answer.verdict != "broke":
        return []
    return [
        Violation(rule=RULE, turn=reported.turn, text=reported.quote, reason=reported.what)
        for reported in answer.violations
        if (quote := spoken(reported.quote))
        and f" {quote} " in f" {spoken(messages.get(reported.turn, ''))} "
    ]
