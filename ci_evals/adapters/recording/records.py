"""The lines of a recording: a header, and for each finished trial all answers of its agent and models.

Secrets are removed before anything comes here. A prompt is kept as a digest of its text without secrets and
without invisible characters, so a recording can be replayed where no secret is known.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from ci_evals.domain.base import Amount, CleanText, Dollars, Instant, Positive, Record
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
from ci_evals.domain.plan import Plan, PlannedSuite, Trial
from ci_evals.domain.results.run import Tool
from ci_evals.domain.transcript import ProbeResult, Reply
from ci_evals.domain.verdict import Outcome
from ci_evals.ports import Prompt
from ci_evals.support.digest import digest
from ci_evals.support.redaction import Redactor
from ci_evals.support.text import bare

NAME = "recording.jsonl"
"""The file, in the folder that `--record` and `--replay` name."""

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
        paid = error.paid if isinstance(error, LLMAnswerError) else None
        spent = UsageRecord(**paid._asdict()) if paid else None
        return cls(error=name, message=redactor.text(str(error)), paid=spent)

    def to_error(self, base: type[AgentError | LLMError]) -> AgentError | LLMError:
        """Return the recorded error, as `base` if it is no subclass of it."""
        error = _ERRORS.get(self.error, base)
        if error is LLMAnswerError and issubclass(error, base):
            return LLMAnswerError(self.message, self.paid.paid if self.paid else None)
        return (error if issubclass(error, base) else base)(self.message)


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
    probes: dict[str, ProbeResult] = Field(default_factory=dict)
    """The results of probes after it."""


class TextRecord(UsageRecord):
    """A model's answer."""

    text: str


class CompletionRecord(Record):
    """A model's answer to one prompt."""

    prompt: CleanText
    """Digest of the prompt."""
    answer: TextRecord | ErrorRecord


class VectorsRecord(Record):
    """The vectors of some texts."""

    vectors: tuple[tuple[float, ...], ...]
    input_tokens: Amount | None = None


class EmbeddingRecord(Record):
    """An embedding model's answer."""

    texts: CleanText
    """Digest of the texts."""
    answer: VectorsRecord | ErrorRecord


@dataclass(frozen=True)
class TrialKey:
    """Identifies a trial independently of the plan."""

    file: str
    suite: str
    test: str
    index: int
    arm: str = ""
    """Empty for the first of several agents."""


JUDGE_CHECK = TrialKey(file="", suite="", test="judge check", index=0)
"""Stands for the control questions to the judges. No suite has an empty name."""


def key_of(plan: Plan, trial: Trial, redactor: Redactor) -> TrialKey:
    """Return the key of a trial of this plan."""
    planned = plan.suites[trial.suite]
    return TrialKey(
        file=planned.file,
        suite=redactor.text(planned.suite.name),
        test=redactor.text(plan.test_of(trial).name),
        index=trial.index,
        arm=plan.arms[number] if (number := plan.arm_of(trial.suite)) else "",
    )


class OutcomeRecord(Record):
    """The outcome of a verdict."""

    evaluation: CleanText
    """Digest of the evaluation."""
    outcome: Outcome


class TrialRecord(Record):
    """One finished trial."""

    file: CleanText
    suite: str
    test: str
    index: int
    arm: str = ""
    attempts: tuple[AttemptRecord, ...] = ()
    user: tuple[CompletionRecord, ...] = ()
    auditor: tuple[CompletionRecord, ...] = ()
    judge: tuple[CompletionRecord, ...] = ()
    embedder: tuple[EmbeddingRecord, ...] = ()
    outcomes: tuple[OutcomeRecord, ...] = ()

    @property
    def key(self) -> TrialKey:
        """The key of the trial."""
        return TrialKey(self.file, self.suite, self.test, self.index, self.arm)


class RecordedSuite(Record):
    """A suite of the recorded run, and its agent."""

    file: CleanText
    name: str
    adapter: str
    agent_id: str | None = None
    model: str | None = None

    @classmethod
    def of(cls, planned: PlannedSuite, redactor: Redactor) -> "RecordedSuite":
        """Record a suite without secrets."""
        suite = planned.suite
        return redactor.model(
            cls(
                file=planned.file,
                name=suite.name,
                adapter=suite.adapter,
                agent_id=suite.agent_id,
                model=suite.model,
            )
        )


class ModelsRecord(Record):
    """The models in the settings of the recorded run; null if left to suites and provider."""

    provider: str
    judge_model: str | None = None
    user_model: str | None = None
    embedding_model: str | None = None
    judge_votes: Positive = 1
    judge_panel: tuple[str, ...] = ()
    audit_user: bool = False


RECORDING_VERSION: Final = 2
"""The form of recordings. A replay of another form would drop what that keeps under other keys."""


class RecordingHeader(Record):
    """The run that was recorded."""

    recording_version: Literal[2] = RECORDING_VERSION
    tool: Tool
    run: CleanText
    started_at: Instant
    models: ModelsRecord
    suites: tuple[RecordedSuite, ...]


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
    excluded |= set() if isinstance(evaluation, Judged) else {"criterion"}
    fields = redactor.json(evaluation.model_dump(mode="json", exclude=excluded))
    return digest(bare(json.dumps(fields, ensure_ascii=False)))


def same(message: str, recorded: str, redactor: Redactor) -> bool:
    """Return whether a message is the recorded one, secrets apart."""
    return _clean(message, redactor) == _clean(recorded, redactor)


def _clean(text: str, redactor: Redactor) -> str:
    return bare(redactor.text(text))
