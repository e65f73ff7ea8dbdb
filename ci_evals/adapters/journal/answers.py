"""The answers of a trial's agent and models, as an entry of a recorded journal holds them.

Secrets are removed before anything comes here. A prompt is kept as a digest of its text without secrets and
without invisible characters, so a recording can be replayed where no secret is known.
"""

import json
from collections.abc import Sequence

from ci_evals.domain.base import Amount, CleanText, Dollars, Record
from ci_evals.domain.checks.evaluation import Judged
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.errors import (
    AgentAccessError,
    AgentError,
    CiEvalsError,
    LLMAccessError,
    LLMAnswerError,
    LLMError,
    Paid,
)
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.transcript import Reply
from ci_evals.ports import Prompt
from ci_evals.support.digest import digest
from ci_evals.support.redaction import Redactor
from ci_evals.support.text import bare

_ERRORS: dict[str, type[AgentError | LLMError]] = {
    error.__name__: error
    for error in (AgentError, AgentAccessError, LLMError, LLMAccessError, LLMAnswerError)
}


class UsageRecord(Record):
    """The usage of an answer; null if unknown."""

    input_tokens: Amount | None = None
    output_tokens: Amount | None = None
    cost_usd: Dollars | None = None
    cached_input_tokens: Amount = 0
    cache_write_tokens: Amount = 0

    @property
    def paid(self) -> Paid:
        """The usage as models report it."""
        return Paid(**{name: getattr(self, name) for name in Paid._fields})


class ErrorRecord(Record):
    """An error instead of an answer."""

    error: CleanText
    """Name of its class in `domain.errors`."""
    message: str
    paid: UsageRecord | None = None
    """The usage of an answer that could not be used."""

    @classmethod
    def of(cls, error: CiEvalsError, redactor: Redactor) -> "ErrorRecord":
        """Record an error under the nearest class that can be replayed."""
        name = next(base.__name__ for base in type(error).__mro__ if base.__name__ in _ERRORS)
        usage = None
        if isinstance(error, LLMAnswerError) and error.paid:
            usage = UsageRecord(**error.paid._asdict())
        return cls(error=name, message=redactor.text(str(error)), paid=usage)

    def to_error(self, base: type[AgentError | LLMError]) -> AgentError | LLMError:
        """Return the recorded error, as `base` if it is no subclass of it."""
        kind = _ERRORS.get(self.error, base)
        if not issubclass(kind, base):
            return base(self.message)
        if kind is LLMAnswerError and self.paid:
            return LLMAnswerError(self.message, self.paid.paid)
        return kind(self.message)


class ReplyRecord(Record):
    """The agent's answer to one message."""

    message: str
    answer: Reply | ErrorRecord


class AttemptRecord(Record):
    """One attempt at the trial, in its own session."""

    setup_error: str | None = None
    """The error, if a step of the setup failed; then nothing else was tried."""
    fault: ErrorRecord | None = None
    """The error, if no session could be opened."""
    answers: tuple[ReplyRecord, ...] = ()
    closing: ErrorRecord | None = None
    """The reason why the answers do not count, if that became clear at the end of the session."""


class TextRecord(UsageRecord):
    """A model's answer."""

    text: str


class VectorsRecord(Record):
    """The vectors of some texts."""

    vectors: tuple[tuple[float, ...], ...]
    input_tokens: Amount | None = None


class AnswerRecord(Record):
    """A model's answer to one question."""

    question: CleanText
    """Digest of the prompt, or of the texts."""
    answer: TextRecord | VectorsRecord | ErrorRecord


class TrialKey(Record):
    """Identifies a trial independently of the plan."""

    file: CleanText
    suite: str
    test: str
    index: int
    arm: str = ""
    """Empty for the first of several agents."""


def key_of(plan: Plan, trial: Trial, redactor: Redactor) -> TrialKey:
    """Return the key of a trial of this plan."""
    planned = plan.suites[trial.suite]
    arm = plan.arm_of(trial.suite)
    return TrialKey(
        file=planned.file,
        suite=redactor.text(planned.suite.name),
        test=redactor.text(plan.test_of(trial).name),
        index=trial.index,
        arm=plan.arms[arm] if arm > 0 else "",
    )


class TrialAnswers(Record):
    """All answers of one finished trial."""

    trial: TrialKey
    attempts: tuple[AttemptRecord, ...] = ()
    user: tuple[AnswerRecord, ...] = ()
    auditor: tuple[AnswerRecord, ...] = ()
    judge: tuple[AnswerRecord, ...] = ()
    embedder: tuple[AnswerRecord, ...] = ()
    evaluations: tuple[CleanText, ...] = ()
    """Digests of the test's evaluations, in the order of the findings on them."""


def prompt_digest(model: str, prompt: Prompt, redactor: Redactor) -> str:
    """Return the digest of a prompt to a model."""
    parts = [model, _clean(prompt.system, redactor), _clean(prompt.text, redactor), prompt.schema]
    return digest([*parts, prompt.sample_id] if prompt.sample_id else parts)


def texts_digest(model: str, texts: Sequence[str], redactor: Redactor) -> str:
    """Return the digest of texts to an embedding model."""
    return digest([model, *(_clean(text, redactor) for text in texts)])


def evaluation_digest(evaluation: Judged | StrictCheck, redactor: Redactor) -> str:
    """Return the digest of what the verdict on an evaluation depends on."""
    excluded = {"weight", "category", "aui_logic"}
    if not isinstance(evaluation, Judged):
        excluded.add("criterion")
    fields = redactor.json(evaluation.model_dump(mode="json", exclude=excluded))
    return digest(bare(json.dumps(fields, ensure_ascii=False)))


def same(message: str, recorded: str, redactor: Redactor) -> bool:
    """Return whether a message is the recorded one, secrets apart."""
    return _clean(message, redactor) == _clean(recorded, redactor)


def _clean(text: str, redactor: Redactor) -> str:
    return bare(redactor.text(text))
