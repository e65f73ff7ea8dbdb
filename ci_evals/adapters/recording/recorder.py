"""Writes a recording: captures the answers of each trial, and appends them when it has finished."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ci_evals.adapters import files, json_lines
from ci_evals.adapters.recording import reader
from ci_evals.adapters.recording.records import (
    JUDGE_CHECK,
    NAME,
    AttemptRecord,
    CompletionRecord,
    EmbeddingRecord,
    ErrorRecord,
    ModelsRecord,
    OutcomeRecord,
    RecordedSuite,
    RecordingHeader,
    ReplyRecord,
    TextRecord,
    TrialKey,
    TrialRecord,
    VectorsRecord,
    evaluation_digest,
    key_of,
    prompt_digest,
    texts_digest,
)
from ci_evals.domain import journal
from ci_evals.domain.errors import AgentError, LLMError, UsageError
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import LLM, Agent, Completion, Embedder, Embeddings, Prompt
from ci_evals.support.redaction import Redactor

T = TypeVar("T")

_HEAD = b'{"recordingVersion":'
"""The first bytes of every recording."""


@dataclass
class _OpenAttempt:
    fault: ErrorRecord | None = None
    answers: list[ReplyRecord] = field(default_factory=list)
    closing: ErrorRecord | None = None


@dataclass
class _PendingAnswer:
    """A question to a model. Kept in the order of questions, which is not that of answers."""

    digest: str
    answer: Any = None

    async def wait_for(self, call: Awaitable[T], redactor: Redactor) -> T:
        """Wait for the answer, and keep an error in its place."""
        try:
            return await call
        except LLMError as error:
            self.answer = ErrorRecord.of(error, redactor)
            raise


@dataclass
class TrialCapture:
    """The answers so far of a trial that is under way."""

    redactor: Redactor
    attempts: list[_OpenAttempt] = field(default_factory=list)
    user: list[_PendingAnswer] = field(default_factory=list)
    auditor: list[_PendingAnswer] = field(default_factory=list)
    judge: list[_PendingAnswer] = field(default_factory=list)
    embedder: list[_PendingAnswer] = field(default_factory=list)

    def record(self, key: TrialKey, outcomes: tuple[OutcomeRecord, ...]) -> TrialRecord:
        """Return the record of the finished trial."""
        return TrialRecord(
            **asdict(key),
            attempts=tuple(
                AttemptRecord(fault=item.fault, answers=tuple(item.answers), closing=item.closing)
                for item in self.attempts
            ),
            user=_completions(self.user),
            auditor=_completions(self.auditor),
            judge=_completions(self.judge),
            embedder=tuple(EmbeddingRecord(texts=item.digest, answer=item.answer) for item in self.embedder),
            outcomes=outcomes,
        )


def _completions(answers: Sequence[_PendingAnswer]) -> tuple[CompletionRecord, ...]:
    return tuple(CompletionRecord(prompt=item.digest, answer=item.answer) for item in answers)


class Recorder:
    """The recording in a folder. `begin` comes before the first trial, `close` last."""

    def __init__(
        self, folder: Path, plan: Plan, models: ModelsRecord, redactor: Redactor, say: Callable[[str], None]
    ) -> None:
        """Create a recorder without opening the file.

        Args:
            folder: Folder of the recording.
            plan: The plan of the run.
            models: The models in the settings of the run.
            redactor: Removes secrets from all that is written.
            say: Shows a line to the user.
        """
        self._path = folder / NAME
        self._plan, self._models, self._redactor, self._say = plan, models, redactor, say
        self._file = json_lines.LineFile(self._path)
        self._under_way: dict[Trial, TrialCapture] = {}
        self._check = TrialCapture(redactor)
        self._missing = 0

    def begin(self, run: journal.JournalHeader, done: Collection[Trial] = ()) -> frozenset[Trial]:
        """Begin the recording of a run, or continue it if the run is resumed.

        Args:
            run: The run, as in its journal.
            done: The finished trials in the journal.

        Returns:
            The finished trials that the recording lacks, which have to be rerun.

        Raises:
            UsageError: there is a recording of another run, none of a resumed run, or it cannot be written.
        """
        was_there = os.path.lexists(self._path)
        try:
            self._file.open()
            earlier = self._begin_or_continue(run, done)
        except OSError as error:
            raise UsageError(
                f"--record: cannot write {str(self._path)!r}: {error.strerror or error}"
            ) from error
        except UsageError:
            self.close()
            if not was_there:
                files.remove(self._path)
            raise
        if earlier is None:
            return frozenset()
        lacking = frozenset(
            trial for trial in done if not earlier.has(key_of(self._plan, trial, self._redactor))
        )
        if lacking:
            self._say(
                f"{len(lacking)} of the finished trials are not in the recording {self._path}: they are "
                "played again"
            )
        return lacking

    def _begin_or_continue(
        self, run: journal.JournalHeader, done: Collection[Trial]
    ) -> reader.Recording | None:
        """Begin the recording, or continue and return the earlier one."""
        if not self._file.lock():
            raise UsageError(
                f"--record: another run is recording to {str(self._path)!r}; wait for its end, or name "
                "another folder"
            )
        earlier = self._earlier(run)
        if done and (earlier is None or earlier.header.run != run.run):
            raise UsageError(
                f"--record: {str(self._path)!r} holds no recording of this run, of which {len(done)} trials "
                "have finished; leave --record out to resume, or leave --resume out to record from the start"
            )
        self._continue(run, earlier)
        return earlier

    def _earlier(self, run: journal.JournalHeader) -> reader.Recording | None:
        """Return the earlier recording; None if not even its first line is complete."""
        with self._path.open("rb") as file:
            head = file.readline()
        if not head or (not head.endswith(b"\n") and head.startswith(_HEAD[: len(head)])):
            return None
        earlier = reader.Recording(self._path)
        if earlier.count and earlier.header.run != run.run:
            raise UsageError(
                f"--record: {str(self._path)!r} is there already, of the run of "
                f"{earlier.header.started_at:%Y-%m-%d %H:%M} UTC, and not written over; name another "
                "folder, or delete that file first"
            )
        return earlier

    def _continue(self, run: journal.JournalHeader, earlier: reader.Recording | None) -> None:
        """Cut off an incomplete line, or begin the file if it is not of this run."""
        own = earlier is not None and earlier.header.run == run.run
        size = earlier.size if earlier and own else 0
        if earlier and own and earlier.torn:
            self._say(f"the last line of {self._path} is torn: it is cut off, and its trial played again")
        header = RecordingHeader(
            tool=run.tool,
            run=run.run,
            started_at=run.started_at,
            models=self._models,
            suites=tuple(RecordedSuite.of(planned, self._redactor) for planned in self._plan.suites),
        )
        self._file.truncate(size)
        if not size:
            self._file.append(json_lines.line(header))
        self._file.flush()

    def capture(self, trial: Trial) -> TrialCapture:
        """Begin to capture a trial."""
        capture = self._under_way[trial] = TrialCapture(self._redactor)
        return capture

    async def keep(self, trial: Trial, result: TrialResult) -> None:
        """Append a finished trial. If it cannot be written, warn the user and go on."""
        capture = self._under_way.pop(trial, None)
        if capture is None:
            return
        evaluations = self._plan.test_of(trial).evaluations
        outcomes = tuple(
            OutcomeRecord(evaluation=evaluation_digest(evaluation, self._redactor), outcome=finding.outcome)
            # A trial whose user broke character has no findings.
            for evaluation, finding in zip(evaluations, result.findings, strict=bool(result.findings))
        )
        try:
            record = capture.record(key_of(self._plan, trial, self._redactor), outcomes)
            self._file.append(json_lines.line(record))
            # On the disk before the journal has the trial: a trial in the journal is not rerun.
            await self._file.sync()
        except OSError as error:
            if not self._missing:
                self._say(
                    f"warning: {self._path} cannot be written ({error.strerror or error}): the run goes on, "
                    "but its recording will have gaps"
                )
            self._missing += 1

    def record_judge(self, llm: LLM) -> LLM:
        """Record a judge that answers control questions."""
        return RecordedLLM(llm, self._check.judge, self._redactor)

    def keep_check(self) -> None:
        """Append the answers to control questions, if there are any."""
        if not self._check.judge:
            return
        try:
            self._file.append(json_lines.line(self._check.record(JUDGE_CHECK, ())))
        except OSError as error:
            self._say(f"warning: {self._path} lacks the judge check: {error.strerror or error}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._missing:
            self._say(f"warning: {self._path} lacks {self._missing} of the trials that were played")


class RecordedAgent:
    """An agent whose answers are recorded."""

    def __init__(self, agent: Agent, capture: TrialCapture) -> None:
        self._agent, self._capture = agent, capture

    async def open_session(self, test: Test) -> Any:
        """Open a session: a new attempt."""
        attempt = _OpenAttempt()
        self._capture.attempts.append(attempt)
        try:
            return await self._agent.open_session(test)
        except AgentError as error:
            attempt.fault = ErrorRecord.of(error, self._capture.redactor)
            raise

    async def send_message(self, session: Any, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send the message."""
        redactor, answers = self._capture.redactor, self._capture.attempts[-1].answers
        try:
            reply = await self._agent.send_message(session, text, timeout=timeout)
        except AgentError as error:
            answers.append(ReplyRecord(message=redactor.text(text), answer=ErrorRecord.of(error, redactor)))
            raise
        answers.append(ReplyRecord(message=redactor.text(text), answer=redactor.model(reply)))
        return reply

    async def close(self, session: Any) -> None:
        """End the conversation."""
        attempt = self._capture.attempts[-1]
        try:
            await self._agent.close(session)
        except AgentError as error:
            attempt.closing = ErrorRecord.of(error, self._capture.redactor)
            raise


class RecordedLLM:
    """A model whose answers are recorded."""

    def __init__(self, llm: LLM, answers: list[_PendingAnswer], redactor: Redactor) -> None:
        self.model = llm.model
        self._llm, self._answers, self._redactor = llm, answers, redactor

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask the model."""
        pending = _PendingAnswer(prompt_digest(self.model, prompt, self._redactor))
        self._answers.append(pending)
        await asyncio.sleep(0)  # questions sent together come before any answer, as in a replay
        completion = await pending.wait_for(self._llm.complete(prompt), self._redactor)
        pending.answer = TextRecord(
            text=self._redactor.text_to_read(completion.text),
            input_tokens=completion.input_tokens,
            output_tokens=completion.output_tokens,
            cost_usd=completion.cost_usd,
        )
        return completion


class RecordedEmbedder:
    """An embedding model whose answers are recorded."""

    def __init__(self, embedder: Embedder, answers: list[_PendingAnswer], redactor: Redactor) -> None:
        self.model = embedder.model
        self._embedder, self._answers, self._redactor = embedder, answers, redactor

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Ask the model."""
        pending = _PendingAnswer(texts_digest(self.model, texts, self._redactor))
        self._answers.append(pending)
        await asyncio.sleep(0)  # questions sent together come before any answer, as in a replay
        embeddings = await pending.wait_for(self._embedder.embed(texts), self._redactor)
        pending.answer = VectorsRecord(vectors=embeddings.vectors, input_tokens=embeddings.input_tokens)
        return embeddings
