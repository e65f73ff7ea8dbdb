"""Writes a recording: captures the answers of each trial, and appends them when it has finished."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import JsonValue

from ci_evals.adapters import files, json_lines
from ci_evals.adapters.recording.reader import Recording
from ci_evals.adapters.recording.records import (
    JUDGE_CHECK,
    NAME,
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
from ci_evals.domain.base import Record
from ci_evals.domain.errors import AgentError, LLMError, UsageError, WorldError
from ci_evals.domain.journal import JournalHeader
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import ProbeResult, Reply, Turn
from ci_evals.domain.world import AGENT_STATE, Names, World, probe_result
from ci_evals.ports import LLM, Agent, Completion, Embedder, Embeddings, Prompt, WorldSteps, read_state
from ci_evals.support.redaction import Redactor

T = TypeVar("T")
_Kept = Callable[[T], Record]

_HEAD = b'{"recordingVersion":'
"""The first bytes of every recording."""


class TrialCapture:
    """The record of a trial that is under way: as in its line, but growing."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.attempts: list[dict[str, Any]] = []
        self.questions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        """By role; each with its answer, as soon as there is one."""

    def record(self, key: TrialKey, outcomes: tuple[OutcomeRecord, ...] = ()) -> TrialRecord:
        """Return the record so far, without questions that have no answer yet."""
        answered = {
            role: [question for question in questions if "answer" in question]
            for role, questions in self.questions.items()
        }
        return TrialRecord.model_validate(
            {**asdict(key), "attempts": self.attempts, **answered, "outcomes": outcomes}
        )

    async def ask(
        self, role: str, question: dict[str, Any], call: Callable[[], Awaitable[T]], kept: _Kept[T]
    ) -> T:
        """Ask a model, and keep the answer in the order of the questions, which is not that of answers."""
        self.questions[role].append(question)
        await asyncio.sleep(0)  # questions sent together come before any answer, as in a replay
        try:
            answer = await call()
        except LLMError as error:
            question["answer"] = ErrorRecord.of(error, self.redactor)
            raise
        question["answer"] = kept(answer)
        return answer


class Recorder:
    """The recording in a folder. `begin` comes before the first trial, `close` last."""

    def __init__(
        self, folder: Path, plan: Plan, models: ModelsRecord, redactor: Redactor, say: Callable[[str], None]
    ) -> None:
        """Create a recorder without opening the file. `say` shows a line to the user."""
        self._path = folder / NAME
        self._plan, self._models, self._redactor, self._say = plan, models, redactor, say
        self._file = json_lines.LineFile(self._path)
        self._under_way: dict[Trial, TrialCapture] = {}
        self.judge_check = TrialCapture(redactor)
        """The answers of judges to control questions."""
        self._missing = 0

    def begin(self, run: JournalHeader, done: Collection[Trial] = ()) -> frozenset[Trial]:
        """Begin the recording of a run, or continue it if the run is resumed.

        Returns those trials of the journal (`done`) that the recording lacks, which have to be rerun.

        Raises:
            UsageError: there is a recording of another run, none of a resumed run, or it cannot be written.
        """
        was_there = os.path.lexists(self._path)
        with files.os_errors(f"--record: cannot write {str(self._path)!r}"):
            try:
                self._file.open()
                earlier = self._earlier(run, done)
                self._continue(run, earlier)
            except UsageError:
                self.close()
                if not was_there:
                    files.remove(self._path)
                raise
        keys = {trial: key_of(self._plan, trial, self._redactor) for trial in done}
        lacking = frozenset(trial for trial, key in keys.items() if earlier and not earlier.has(key))
        if lacking:
            self._say(
                f"{len(lacking)} of the finished trials are not in the recording {self._path}: they are rerun"
            )
        return lacking

    def _earlier(self, run: JournalHeader, done: Collection[Trial]) -> Recording | None:
        """Return the recording of this run that is there already; None if it has not begun."""
        if not self._file.lock():
            raise UsageError(
                f"--record: another run is recording to {str(self._path)!r}; wait until it ends, or name "
                "another folder"
            )
        with self._path.open("rb") as file:
            head = file.readline()
        begun = head and (head.endswith(b"\n") or not head.startswith(_HEAD[: len(head)]))
        earlier = Recording(self._path) if begun else None
        if earlier and earlier.header.run == run.run:
            return earlier
        if earlier and earlier.count:
            raise UsageError(
                f"--record: {str(self._path)!r} is there already, of the run of "
                f"{earlier.header.started_at:%Y-%m-%d %H:%M} UTC, and not overwritten; name another "
                "folder, or delete that file first"
            )
        if done:
            raise UsageError(
                f"--record: {str(self._path)!r} holds no recording of this run, of which {len(done)} trials "
                "have finished; remove --record to resume, or remove --resume to record from the start"
            )
        return None

    def _continue(self, run: JournalHeader, earlier: Recording | None) -> None:
        """Cut off an incomplete line, or begin the file."""
        if earlier and earlier.torn:
            self._say(f"the last line of {self._path} is incomplete: it is removed, and its trial is rerun")
        self._file.truncate(earlier.size if earlier else 0)
        if not earlier:
            suites = tuple(RecordedSuite.of(planned, self._redactor) for planned in self._plan.arm(0).suites)
            header = RecordingHeader(
                tool=run.tool, run=run.run, started_at=run.started_at, models=self._models, suites=suites
            )
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
        await self._append(capture.record(key_of(self._plan, trial, self._redactor), outcomes))

    async def _append(self, record: TrialRecord) -> None:
        try:
            self._file.append(json_lines.line(record))
            # On the disk before the journal has the trial: a trial in the journal is not rerun.
            await self._file.sync()
        except OSError as error:
            if not self._missing:
                self._say(
                    f"warning: {self._path} cannot be written ({error.strerror or error}): "
                    "the run continues, but its recording will have gaps"
                )
            self._missing += 1

    async def correct(self, trial: Trial, result: TrialResult) -> None:
        """Append a trial again with the gaps that its result has in its evidence: the last one counts."""
        gaps = {turn.traceparent: turn for turn in result.turns if turn.traceparent and turn.trace_missing}
        try:
            self._file.flush()
            record = Recording(self._path).trial(key_of(self._plan, trial, self._redactor))
        except (OSError, UsageError):
            record = None
        if record is None:
            return  # keep has warned of it
        attempts = tuple(
            attempt.model_copy(
                update={"answers": tuple(_with_gap(answer, gaps) for answer in attempt.answers)}
            )
            for attempt in record.attempts
        )
        outcomes = tuple(
            outcome.model_copy(update={"outcome": finding.outcome})
            for outcome, finding in zip(record.outcomes, result.findings, strict=True)
        )
        await self._append(record.model_copy(update={"attempts": attempts, "outcomes": outcomes}))

    def keep_judge_check(self) -> None:
        """Append the answers to control questions, if there are any."""
        record = self.judge_check.record(JUDGE_CHECK)
        if not record.judge:
            return
        try:
            self._file.append(json_lines.line(record))
        except OSError as error:
            self._say(f"warning: {self._path} lacks the judge check: {error.strerror or error}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._missing:
            self._say(f"warning: {self._path} lacks {self._missing} of the played trials")


def _with_gap(answer: ReplyRecord, gaps: Mapping[str, Turn]) -> ReplyRecord:
    """Return an answer of the agent's with the gap of its turn."""
    reply = answer.answer
    turn = gaps.get(reply.traceparent or "") if isinstance(reply, Reply) else None
    if turn is None or not isinstance(reply, Reply):
        return answer
    fields = ("tool_calls_partial", "trace_missing", "handed_over_apart")
    return answer.model_copy(update={"answer": reply.like(**{name: getattr(turn, name) for name in fields})})


class RecordedAgent:
    """An agent whose answers are recorded."""

    def __init__(self, agent: Agent, capture: TrialCapture) -> None:
        self._agent, self._capture = agent, capture

    async def open_session(self, test: Test) -> Any:
        """Open a session: a new attempt."""
        attempt: dict[str, Any] = {"answers": []}
        self._capture.attempts.append(attempt)
        try:
            return await self._agent.open_session(test)
        except AgentError as error:
            attempt["fault"] = ErrorRecord.of(error, self._capture.redactor)
            raise

    async def send_message(self, session: Any, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send the message."""
        redactor, answers = self._capture.redactor, self._capture.attempts[-1]["answers"]
        try:
            reply = await self._agent.send_message(session, text, timeout=timeout)
        except AgentError as error:
            answers.append(ReplyRecord(message=redactor.text(text), answer=ErrorRecord.of(error, redactor)))
            raise
        answers.append(ReplyRecord(message=redactor.text(text), answer=redactor.model(reply)))
        return reply

    async def read_state(self, session: Any) -> JsonValue:
        """Return the agent's state, which is recorded as the probe that it is."""
        redactor, attempt = self._capture.redactor, self._capture.attempts[-1]
        try:
            state = await read_state(self._agent, session)
        except AgentError as error:
            attempt["probes"] = {AGENT_STATE: ProbeResult(error=redactor.text(str(error)))}
            raise
        attempt["probes"] = {AGENT_STATE: redactor.model(probe_result(state))}
        return state

    async def close(self, session: Any) -> None:
        """End the conversation."""
        attempt = self._capture.attempts[-1]
        try:
            await self._agent.close(session)
        except AgentError as error:
            attempt["closing"] = ErrorRecord.of(error, self._capture.redactor)
            raise


class RecordedWorld:
    """The steps of a trial's world, of which failed setups and the results of probes are recorded."""

    def __init__(self, steps: WorldSteps, capture: TrialCapture) -> None:
        self._steps, self._capture = steps, capture

    async def set_up(self, world: World, names: Names) -> None:
        """Do the setup: if it fails, that is the whole attempt."""
        try:
            await self._steps.set_up(world, names)
        except WorldError as error:
            self._capture.attempts.append({"setup_error": self._capture.redactor.text(str(error))})
            raise

    async def probe_before(self, world: World, names: Names) -> dict[str, ProbeResult]:
        """Return what the probes return. It is not recorded, since no verdict needs it."""
        return await self._steps.probe_before(world, names)

    async def probe(self, world: World, names: Names) -> dict[str, ProbeResult]:
        """Return what the probes return."""
        probes = await self._steps.probe(world, names)
        redactor = self._capture.redactor
        recorded = self._capture.attempts[-1].setdefault("probes", {})
        recorded.update({name: redactor.model(one) for name, one in probes.items()})
        return probes

    async def tear_down(self, world: World, names: Names) -> None:
        """Do the teardown."""
        await self._steps.tear_down(world, names)

    def notes(self) -> Sequence[str]:
        """Return the warnings."""
        return self._steps.notes()


class RecordedLLM:
    """A model whose answers are recorded under its role."""

    def __init__(self, llm: LLM, role: str, capture: TrialCapture) -> None:
        self.model = llm.model
        self._llm, self._role, self._capture = llm, role, capture

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask the model."""
        question = {"prompt": prompt_digest(self.model, prompt, self._capture.redactor)}
        return await self._capture.ask(self._role, question, lambda: self._llm.complete(prompt), self._kept)

    def _kept(self, completion: Completion) -> TextRecord:
        return TextRecord(
            text=self._capture.redactor.text_to_read(completion.text),
            input_tokens=completion.input_tokens,
            output_tokens=completion.output_tokens,
            cost_usd=completion.cost_usd,
        )


class RecordedEmbedder:
    """An embedding model whose answers are recorded."""

    def __init__(self, embedder: Embedder, capture: TrialCapture) -> None:
        self.model = embedder.model
        self._embedder, self._capture = embedder, capture

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Ask the model."""

        def kept(embeddings: Embeddings) -> VectorsRecord:
            return VectorsRecord(vectors=embeddings.vectors, input_tokens=embeddings.input_tokens)

        question = {"texts": texts_digest(self.model, texts, self._capture.redactor)}
        return await self._capture.ask("embedder", question, lambda: self._embedder.embed(texts), kept)
