"""The lines of a run's journal: a header, an entry for each finished trial, and marks between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Final, Literal

from pydantic import JsonValue

from ci_evals.adapters.journal.answers import AnswerRecord, TrialAnswers
from ci_evals.domain.base import Amount, CleanText, Instant, Positive, Record, Seconds
from ci_evals.domain.plan import Plan, PlannedSuite, Trial
from ci_evals.domain.results.run import Digests, Origin, Tool
from ci_evals.domain.results.trial import TrialResult
from ci_evals.support.redaction import Redactor

JOURNAL, RECORDING = "journal.jsonl", "recording.jsonl"
"""The journal in the output folder, and its copy in the folder that the option `record` names."""
VERSION: Final = 4
"""The form of journals. Neither `resume` nor `replay` reads another."""

_OF_DIGESTS: Mapping[str, str] = {
    "suites": "the suites, or which of their tests are played (`test=`, `tag=`, `shard=`)",
    "agents": "the agent",
    "models": "the provider or a model",
    "user_prompt": "the audit of the user (`audit_user=`, auditModel), or the version of ci-evals",
    "loops": "the number of trials (`loops=`)",
}


class RunIdentity(Record):
    """The CI run and the commit that trials belong to. None for everything that is not known."""

    ci: bool = False
    """True if a CI service runs the program."""
    run_id: CleanText | None = None
    """GitHub's id of the workflow run: the same for all its attempts."""
    attempt: Amount | None = None
    commit: CleanText | None = None
    """The commit that the CI service names."""
    checkout: CleanText | None = None
    """The commit that is checked out in the working folder."""

    def refusal(self, earlier: "RunIdentity") -> str | None:
        """Return why a run here must not use the trials of an earlier one; None if it may.

        In CI a journal has to be of the same run and commit: nobody can write a commit's own hash into it, so
        no journal that was committed, or left behind by another run, is ever used.
        """
        if not self.ci:
            return None
        if self.run_id is None and self.commit is None and self.checkout is None:
            return "neither the CI run nor the commit is known here, so the journal cannot be checked"
        if self.run_id != earlier.run_id:
            return f"it is of {_run(earlier)}, and this is {_run(self)}"
        if self.attempt is not None and (earlier.attempt or 0) > self.attempt:
            return f"it is of attempt {earlier.attempt}, and this is attempt {self.attempt}"
        for now, then in ((self.commit, earlier.commit), (self.checkout, earlier.checkout)):
            if now != then:
                return f"it is of {_commit(then)}, and this is {_commit(now)}"
        return None

    def caution(self, earlier: "RunIdentity") -> str | None:
        """Return what to warn of where such trials are used all the same, as outside CI."""
        then, now = earlier.checkout or earlier.commit, self.checkout or self.commit
        if then is None or now is None or then == now:
            return None
        return f"the resumed trials were played at commit {then[:12]}, and this is commit {now[:12]}"


def _run(context: RunIdentity) -> str:
    return f"run {context.run_id}" if context.run_id else "no GitHub run"


def _commit(sha: str | None) -> str:
    return f"commit {sha[:12]}" if sha else "an unknown commit"


class RecordedSuite(Record):
    """A suite of a recorded run, and its agent."""

    file: CleanText
    name: str
    adapter: str
    agent_id: str | None = None
    model: str | None = None

    @classmethod
    def of(cls, planned: PlannedSuite, redactor: Redactor) -> "RecordedSuite":
        """Record a suite without secrets."""
        fields = planned.suite.model_dump(include={"name", "adapter", "agent_id", "model"})
        return redactor.model(cls(file=planned.file, **fields))


class RecordedModels(Record):
    """The models in the options of a recorded run; null if left to suites and provider."""

    provider: str | None = None
    judge_model: str | None = None
    user_model: str | None = None
    embedding_model: str | None = None
    judge_votes: Positive = 1
    judge_panel: str | None = None
    audit_user: bool = False


class Recorded(Record):
    """The agents and models whose answers a journal holds."""

    models: RecordedModels
    suites: tuple[RecordedSuite, ...]

    @classmethod
    def of(cls, plan: Plan, options: Mapping[str, JsonValue], redactor: Redactor) -> "Recorded":
        """Name the agents of a plan and the models in the options of a run, without secrets."""
        return cls(
            models=RecordedModels.model_validate(dict(options)),
            suites=tuple(RecordedSuite.of(planned, redactor) for planned in plan.arm(0).suites),
        )


class JournalHeader(Record):
    """The run that a journal is of, and all that its results depend on."""

    journal_version: Literal[4] = VERSION
    tool: Tool
    run: CleanText
    started_at: Instant
    digests: Digests
    origin: Origin | None = None
    """The run whose answers these trials have; none where they were played."""
    tests: tuple[int, ...] = ()
    """The number of tests played of each suite: entries tell them by their places, which digests do not."""
    connection: CleanText = ""
    """The digest of the options that decide how agents are reached."""
    context: RunIdentity = RunIdentity()
    recorded: Recorded | None = None
    """None if the journal holds no answers, so that it cannot be replayed."""

    def unlike(self, other: "JournalHeader") -> tuple[str, ...]:
        """The differences, in words, because of which neither run can use trials of the other."""
        differing = [
            part.name
            for part in fields(Digests)
            if getattr(self.digests, part.name) != getattr(other.digests, part.name)
        ]
        if "suites" in differing or self.tests != other.tests:
            differing = ["suites"]  # agents, models and loops are told suite by suite
        words = [_OF_DIGESTS.get(name, "the version of ci-evals") for name in differing]
        if self.connection != other.connection:
            words.append("how the agent is reached (`agent_headers=` and the like)")
        if self.origin != other.origin:
            words.append("where its answers are from (`replay=`)")
        return tuple(dict.fromkeys(words))


class JournalEntry(Record):
    """A finished trial, by its place in the plan."""

    suite: int
    test: int
    index: int
    elapsed: Seconds
    """The time that the run had gone on by then, without the time in which it was interrupted."""
    at: Instant | None = None
    """The time at which it was written."""
    result: TrialResult
    answers: TrialAnswers | None = None
    """The answers that led to the result. A later entry of the trial without answers corrects the result."""

    @property
    def trial(self) -> Trial:
        """The trial that it is of."""
        return Trial(suite=self.suite, test=self.test, index=self.index)


class JournalMark(Record):
    """Something that happened to the run as a whole."""

    mark: Literal["outage", "ended", "judge_check_failed", "resumed", "late_evidence"]
    """`outage`: the run was stopped by an agent or model that could not be used, so what had broken off is
    to be played again. `ended`: the whole plan was played, and its reports are written. `judge_check_failed`:
    a judge did not pass its check, so what it judged before and after is to be played again. `resumed`: what
    follows was played when the run resumed, with a judge that is checked again. `late_evidence`: evidence of
    trials came after they had been read, so those that do not say so are to be played again."""
    traces: tuple[str, ...] = ()
    """The traces of these trials."""
    earlier: bool = False
    """True if trials that were kept before may be concerned, too."""


class JudgeCheckAnswers(Record):
    """The answers of judges to control questions."""

    judge_check: tuple[AnswerRecord, ...]


@dataclass(frozen=True)
class Past:
    """The state of a run that is resumed from its journal."""

    header: JournalHeader
    done: Mapping[Trial, TrialResult] = field(default_factory=dict)
    elapsed: float = 0
    written_at: datetime | None = None
    """The time at which the last of the trials was written."""
