"""What a recording holds: a header, and for each finished trial all that its agent and its models answered.

Secrets are taken out of everything before it comes here. Of prompts a digest is enough, made of the prompt
without its secrets and without what cannot be seen: so a recording can be played where no secret is known.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ci_evals.domain.base import Amount, CleanText, Dollars, Instant, Positive, Record
from ci_evals.domain.errors import (
    AgentAccessError,
    AgentError,
    CiEvalsError,
    LLMAccessError,
    LLMAnswerError,
    LLMError,
    Paid,
)
from ci_evals.domain.evaluation import Judged, Strict
from ci_evals.domain.plan import Plan, PlannedSuite, Trial
from ci_evals.domain.results.run import Tool
from ci_evals.domain.transcript import Reply
from ci_evals.domain.verdict import Outcome
from ci_evals.ports import Prompt
from ci_evals.support.digest import digest
from ci_evals.support.redaction import Redactor
from ci_evals.support.text import bare

NAME = "recording.jsonl"
"""The file, in the folder that `--record` and `--replay` name."""

FAULTS: dict[str, type[AgentError | LLMError]] = {
    error.__name__: error
    for error in (AgentError, AgentAccessError, LLMError, LLMAccessError, LLMAnswerError)
}


class Spent(Record):
    """The use of an answer; null where it is not known."""

    input_tokens: Amount | None = None
    output_tokens: Amount | None = None
    cost_usd: Dollars | None = None

    @property
    def paid(self) -> Paid:
        """The same as a model has it."""
        return Paid(self.input_tokens, self.output_tokens, self.cost_usd)


class Fault(Record):
    """An error in place of an answer."""

    error: CleanText
    """Its name in the tree of errors."""
    message: str
    paid: Spent | None = None
    """The use of an answer that could not be used."""

    @classmethod
    def of(cls, error: CiEvalsError, redactor: Redactor) -> "Fault":
        """The error, under the nearest name that the tree has for it."""
        name = next(one.__name__ for one in type(error).__mro__ if one.__name__ in FAULTS)
        paid = error.paid if isinstance(error, LLMAnswerError) else None
        spent = Spent(**paid._asdict()) if paid else None
        return cls(error=name, message=redactor.text(str(error)), paid=spent)

    def raised(self, otherwise: type[AgentError | LLMError]) -> AgentError | LLMError:
        """The error as it was, or one of another kind where such an error has no place."""
        error = FAULTS.get(self.error, otherwise)
        if error is LLMAnswerError and issubclass(error, otherwise):
            return LLMAnswerError(self.message, self.paid.paid if self.paid else None)
        return (error if issubclass(error, otherwise) else otherwise)(self.message)


class Answer(Record):
    """What the agent answered to one message."""

    message: str
    answer: Reply | Fault


class Attempt(Record):
    """One try at the trial, in a session of its own."""

    fault: Fault | None = None
    """Why no session could be opened."""
    answers: tuple[Answer, ...] = ()
    closing: Fault | None = None
    """Why the answers do not count, if that was learned at the end of the session."""


class Words(Spent):
    """A model's answer."""

    text: str


class Completed(Record):
    """What a model answered to one prompt."""

    prompt: CleanText
    answer: Words | Fault


class Vectors(Record):
    """What an embedding model made of some texts."""

    vectors: tuple[tuple[float, ...], ...]
    input_tokens: Amount | None = None


class Embedded(Record):
    """The same with the question."""

    texts: CleanText
    answer: Vectors | Fault


@dataclass(frozen=True)
class Key:
    """Which trial it is, in whichever plan."""

    file: str
    suite: str
    test: str
    index: int


JUDGE_CHECK = Key(file="", suite="", test="judge check", index=0)
"""In place of a trial: the control questions to the judges. No suite has an empty name."""


def key_of(plan: Plan, trial: Trial, redactor: Redactor) -> Key:
    """The key of a trial of this plan."""
    planned = plan.suites[trial.suite]
    return Key(
        file=planned.file,
        suite=redactor.text(planned.suite.name),
        test=redactor.text(plan.test_of(trial).name),
        index=trial.index,
    )


class Named(Record):
    """The names that make a trial's key."""

    file: CleanText
    suite: str
    test: str
    index: int

    @property
    def key(self) -> Key:
        """Which trial it is."""
        return Key(self.file, self.suite, self.test, self.index)


class Found(Record):
    """What a verdict was then."""

    evaluation: CleanText
    """The digest of what was evaluated."""
    outcome: Outcome


class Take(Named):
    """One finished trial."""

    attempts: tuple[Attempt, ...] = ()
    user: tuple[Completed, ...] = ()
    auditor: tuple[Completed, ...] = ()
    judge: tuple[Completed, ...] = ()
    embedder: tuple[Embedded, ...] = ()
    found: tuple[Found, ...] = ()


class RecordedSuite(Record):
    """A suite of the recorded run, and the agent that it was played with."""

    file: CleanText
    name: str
    adapter: str
    agent_id: str | None = None
    model: str | None = None

    @classmethod
    def of(cls, planned: PlannedSuite, redactor: Redactor) -> "RecordedSuite":
        """The suite, without secrets."""
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


class Choice(Record):
    """Which models the recorded run was told to use; null where that was left to suites and provider."""

    provider: str
    judge_model: str | None = None
    user_model: str | None = None
    embedding_model: str | None = None
    judge_votes: Positive = 1
    judge_panel: tuple[str, ...] = ()
    audit_user: bool = False
    audit_model: str | None = None


class Header(Record):
    """The run that was recorded."""

    recording_version: Literal[1] = 1
    tool: Tool
    run: CleanText
    started_at: Instant
    models: Choice
    suites: tuple[RecordedSuite, ...]


def of_prompt(model: str, prompt: Prompt, redactor: Redactor) -> str:
    """The digest by which an answer to this prompt is found again."""
    asked = [model, _clean(prompt.system, redactor), _clean(prompt.text, redactor), prompt.schema]
    return digest([*asked, prompt.sample_id] if prompt.sample_id else asked)


def of_texts(model: str, texts: Sequence[str], redactor: Redactor) -> str:
    """The digest by which the vectors of these texts are found again."""
    return digest([model, *(_clean(text, redactor) for text in texts)])


def of_evaluation(evaluation: Judged | Strict, redactor: Redactor) -> str:
    """The digest by which the verdict on an evaluation is found again: of what it hangs on."""
    told = {"weight", "category", "aui_logic"} | (set() if isinstance(evaluation, Judged) else {"criterion"})
    fields = redactor.json(evaluation.model_dump(mode="json", exclude=told))
    return digest(bare(json.dumps(fields, ensure_ascii=False)))


def same(message: str, recorded: str, redactor: Redactor) -> bool:
    """Whether a message is the recorded one, secrets apart."""
    return _clean(message, redactor) == _clean(recorded, redactor)


def _clean(text: str, redactor: Redactor) -> str:
    return bare(redactor.text(text))
