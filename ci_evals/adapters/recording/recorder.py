"""Writes a recording: listens to agent and models of each trial, and appends it when it has finished."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ci_evals.adapters import files, json_lines
from ci_evals.adapters.recording import reading
from ci_evals.adapters.recording.tape import (
    JUDGE_CHECK,
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
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import LLM, Agent, Completion, Embedder, Embeddings, Prompt
from ci_evals.support.redaction import Redactor

T = TypeVar("T")

_HEAD = b'{"recordingVersion":'
"""The first bytes of every recording."""


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
        self._check = Listening(redactor)
        self._lost = 0
        self._syncing = json_lines.Syncing()

    def begin(self, run: journal.JournalHeader, done: Collection[Trial] = ()) -> frozenset[Trial]:
        """Begins the recording of a run, or goes on with it where the run is resumed.

        Args:
            run: The run, as its journal has it.
            done: What the journal holds.

        Returns:
            The trials among these that the recording lacks: to be whole it needs them played again.

        Raises:
            UsageError: there is a recording of another run, none of a run that is resumed, or it cannot be
                written, as while another run writes it.
        """
        was_there = os.path.lexists(self._path)
        try:
            self._fd = files.open_to_append(self._path)
            earlier = self._take_up(self._fd, run, done)
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
            trial for trial in done if not earlier.holds(key_of(self._plan, trial, self._redactor))
        )
        if lacking:
            self._say(
                f"{len(lacking)} of the finished trials are not in the recording {self._path}: they are "
                "played again"
            )
        return lacking

    def _take_up(
        self, fd: int, run: journal.JournalHeader, done: Collection[Trial]
    ) -> reading.Recording | None:
        """Begins the recording, or goes on with what is there, which it gives back."""
        if not json_lines.lock(fd):
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

    def _earlier(self, run: journal.JournalHeader) -> reading.Recording | None:
        """What is there already; None if it is nothing, or was killed before its first line was whole."""
        with self._path.open("rb") as file:
            head = file.readline()
        if not head or (not head.endswith(b"\n") and head.startswith(_HEAD[: len(head)])):
            return None
        earlier = reading.Recording(self._path)
        if earlier.count and earlier.header.run != run.run:
            raise UsageError(
                f"--record: {str(self._path)!r} is there already, of the run of "
                f"{earlier.header.started_at:%Y-%m-%d %H:%M} UTC, and not written over; name another "
                "folder, or delete that file first"
            )
        return earlier

    def _continue(self, run: journal.JournalHeader, earlier: reading.Recording | None) -> None:
        """Cuts off what is torn, and begins the file if it is not of this run."""
        if self._fd is None:
            return
        own = earlier is not None and earlier.header.run == run.run
        size = earlier.size if earlier and own else 0
        if earlier and own and earlier.torn:
            self._say(f"the last line of {self._path} is torn: it is cut off, and its trial played again")
        header = Header(
            tool=run.tool,
            run=run.run,
            started_at=run.started_at,
            models=self._models,
            suites=tuple(RecordedSuite.of(planned, self._redactor) for planned in self._plan.suites),
        )
        os.ftruncate(self._fd, size)
        if not size:
            self._append(header)
        os.fsync(self._fd)

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
            # On the disk before the journal has the trial: what the journal has is not played again.
            if self._fd is not None:
                await self._syncing.sync(self._fd)
        except OSError as error:
            if not self._lost:
                self._say(
                    f"warning: {self._path} cannot be written ({error.strerror or error}): the run goes on, "
                    "but its recording will have gaps"
                )
            self._lost += 1

    def examine(self, llm: LLM) -> LLM:
        """Listen to a judge that is asked control questions."""
        return RecordedLLM(llm, self._check.judge, self._redactor)

    def keep_check(self) -> None:
        """Append the answers to control questions, if any were given."""
        if not self._check.judge:
            return
        try:
            self._append(self._check.take(JUDGE_CHECK, ()))
        except OSError as error:
            self._say(f"warning: {self._path} lacks the judge check: {error.strerror or error}")

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
        self._syncing.wrote()


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
