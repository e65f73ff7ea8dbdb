"""Writes a recording: listens to agent and models of each trial, and appends it when it has finished."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ci_evals.adapters import files, json_lines
from ci_evals.adapters.recording import reading
from ci_evals.adapters.recording.tape import (
    NAME,
    Answer,
    Attempt,
    Choice,
    Completed,
    Embedded,
    Fault,
    Found,
    Header,
    Key,
    RecordedSuite,
    Take,
    Vectors,
    Words,
    key_of,
    of_evaluation,
    of_prompt,
    of_texts,
)
from ci_evals.domain import journal
from ci_evals.domain.base import Record
from ci_evals.domain.errors import AgentError, LLMError, UsageError
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.results import TrialResult
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import LLM, Agent, Completion, Embedder, Embeddings, Prompt
from ci_evals.redaction import Redactor

T = TypeVar("T")


@dataclass
class _Attempt:
    fault: Fault | None = None
    answers: list[Answer] = field(default_factory=list)
    closing: Fault | None = None


@dataclass
class _Slot:
    """A question to a model, in the order of asking; its answer may come after that of a later one."""

    digest: str
    answer: Any = None

    async def hear(self, call: Awaitable[T], redactor: Redactor) -> T:
        """Waits for the answer, and keeps an error that comes in its place."""
        try:
            return await call
        except LLMError as error:
            self.answer = Fault.of(error, redactor)
            raise


@dataclass
class Listening:
    """What was heard of a trial that is under way."""

    redactor: Redactor
    attempts: list[_Attempt] = field(default_factory=list)
    user: list[_Slot] = field(default_factory=list)
    auditor: list[_Slot] = field(default_factory=list)
    judge: list[_Slot] = field(default_factory=list)
    embedder: list[_Slot] = field(default_factory=list)

    def take(self, key: Key, found: tuple[Found, ...]) -> Take:
        """All of it, with what was found."""
        return Take(
            **asdict(key),
            attempts=tuple(
                Attempt(fault=one.fault, answers=tuple(one.answers), closing=one.closing)
                for one in self.attempts
            ),
            user=tuple(Completed(prompt=one.digest, answer=one.answer) for one in self.user),
            auditor=tuple(Completed(prompt=one.digest, answer=one.answer) for one in self.auditor),
            judge=tuple(Completed(prompt=one.digest, answer=one.answer) for one in self.judge),
            embedder=tuple(Embedded(texts=one.digest, answer=one.answer) for one in self.embedder),
            found=found,
        )


class Recorder:
    """The recording in a folder. `begin` comes before the first trial, `close` last."""

    def __init__(
        self, folder: Path, plan: Plan, models: Choice, redactor: Redactor, say: Callable[[str], None]
    ) -> None:
        """Opens nothing yet.

        Args:
            folder: Where the recording is to be.
            plan: The plan that is played.
            models: What the run was told of models.
            redactor: Takes the secrets out of all that is written.
            say: Takes a line for the user.
        """
        self._path = folder / NAME
        self._plan, self._models, self._redactor, self._say = plan, models, redactor, say
        self._fd: int | None = None
        self._under_way: dict[Trial, Listening] = {}
        self._lost = 0

    def begin(self, run: journal.Header) -> None:
        """Begins the recording of a run, or goes on with it where the run was taken up again.

        Raises:
            UsageError: there is a recording of another run, or it cannot be written.
        """
        size = 0
        if os.path.lexists(self._path):
            earlier = reading.Recording(self._path)
            if earlier.count and earlier.header.run != run.run:
                raise UsageError(
                    f"--record: {str(self._path)!r} is there already, of the run of "
                    f"{earlier.header.started_at:%Y-%m-%d %H:%M} UTC, and not written over; name another "
                    "folder, or delete that file first"
                )
            size = earlier.size if earlier.count else 0
        header = Header(
            tool=run.tool,
            run=run.run,
            started_at=run.started_at,
            models=self._models,
            suites=tuple(RecordedSuite.of(planned, self._redactor) for planned in self._plan.suites),
        )
        try:
            self._fd = files.open_to_append(self._path)
            os.ftruncate(self._fd, size)
            if not size:
                self._append(header)
        except OSError as error:
            raise UsageError(
                f"--record: cannot write {str(self._path)!r}: {error.strerror or error}"
            ) from error

    def listen(self, trial: Trial) -> Listening:
        """Begins to listen to a trial."""
        heard = self._under_way[trial] = Listening(self._redactor)
        return heard

    async def keep(self, trial: Trial, result: TrialResult) -> None:
        """Appends a finished trial. One that cannot be written is told of and left out; the run goes on."""
        heard = self._under_way.pop(trial, None)
        if heard is None:
            return
        evaluations = self._plan.test_of(trial).evaluations
        found = tuple(
            Found(evaluation=of_evaluation(evaluation, self._redactor), outcome=finding.outcome)
            # Of a trial whose user broke its role nothing was found.
            for evaluation, finding in zip(evaluations, result.findings, strict=bool(result.findings))
        )
        try:
            self._append(heard.take(key_of(self._plan, trial, self._redactor), found))
        except OSError as error:
            if not self._lost:
                self._say(
                    f"warning: {self._path} cannot be written ({error.strerror or error}): the run goes on, "
                    "but its recording will have gaps"
                )
            self._lost += 1

    def close(self) -> None:
        """Lets go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        if self._lost:
            self._say(f"warning: {self._path} lacks {self._lost} of the trials that were played")

    def _append(self, record: Record) -> None:
        """Writes a whole line or nothing."""
        if self._fd is None:
            raise OSError("it is not open")
        json_lines.append(self._fd, json_lines.line(record))


class RecordedAgent:
    """An agent that is listened to."""

    def __init__(self, agent: Agent, heard: Listening) -> None:
        self._agent, self._heard = agent, heard

    async def open_session(self, test: Test) -> Any:
        """Opens a session: a new attempt."""
        attempt = _Attempt()
        self._heard.attempts.append(attempt)
        try:
            return await self._agent.open_session(test)
        except AgentError as error:
            attempt.fault = Fault.of(error, self._heard.redactor)
            raise

    async def send_message(self, session: Any, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Says the message."""
        redactor, answers = self._heard.redactor, self._heard.attempts[-1].answers
        try:
            reply = await self._agent.send_message(session, text, timeout=timeout)
        except AgentError as error:
            answers.append(Answer(message=redactor.text(text), answer=Fault.of(error, redactor)))
            raise
        answers.append(Answer(message=redactor.text(text), answer=redactor.model(reply)))
        return reply

    async def close(self, session: Any) -> None:
        """Ends the conversation."""
        attempt = self._heard.attempts[-1]
        try:
            await self._agent.close(session)
        except AgentError as error:
            attempt.closing = Fault.of(error, self._heard.redactor)
            raise


class RecordedLLM:
    """A model that is listened to."""

    def __init__(self, llm: LLM, slots: list[_Slot], redactor: Redactor) -> None:
        self.model = llm.model
        self._llm, self._slots, self._redactor = llm, slots, redactor

    async def complete(self, prompt: Prompt) -> Completion:
        """Asks the model."""
        slot = _Slot(of_prompt(self.model, prompt, self._redactor))
        self._slots.append(slot)
        await asyncio.sleep(0)  # all that is asked together comes before any answer, here as in a replay
        completion = await slot.hear(self._llm.complete(prompt), self._redactor)
        slot.answer = Words(
            text=self._redactor.text_to_read(completion.text),
            input_tokens=completion.input_tokens,
            output_tokens=completion.output_tokens,
            cost_usd=completion.cost_usd,
        )
        return completion


class RecordedEmbedder:
    """An embedding model that is listened to."""

    def __init__(self, embedder: Embedder, slots: list[_Slot], redactor: Redactor) -> None:
        self.model = embedder.model
        self._embedder, self._slots, self._redactor = embedder, slots, redactor

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Asks the model."""
        slot = _Slot(of_texts(self.model, texts, self._redactor))
        self._slots.append(slot)
        await asyncio.sleep(0)  # all that is asked together comes before any answer, here as in a replay
        embeddings = await slot.hear(self._embedder.embed(texts), self._redactor)
        slot.answer = Vectors(vectors=embeddings.vectors, input_tokens=embeddings.input_tokens)
        return embeddings
