"""Captures the answers of a trial's agent and models, to be kept with its result."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from pydantic import JsonValue

from ci_evals.adapters.journal.answers import (
    ErrorRecord,
    ReplyRecord,
    TextRecord,
    TrialAnswers,
    VectorsRecord,
    evaluation_digest,
    key_of,
    prompt_digest,
    texts_digest,
)
from ci_evals.adapters.journal.records import JudgeCheckAnswers
from ci_evals.domain.base import Record
from ci_evals.domain.errors import AgentError, LLMError, WorldError
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import ProbeResult, Reply
from ci_evals.domain.world import Names, World
from ci_evals.ports import LLM, Agent, Completion, Embedder, Embeddings, Prompt, WorldSteps, read_state
from ci_evals.support.json_text import JsonObject
from ci_evals.support.redaction import Redactor

T = TypeVar("T")
_Kept = Callable[[T], Record]


class TrialCapture:
    """The answers of a trial that is under way."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.attempts: list[JsonObject] = []
        self.questions: dict[str, list[JsonObject]] = defaultdict(list)
        """By role; each with its answer, as soon as there is one."""

    def answers(self) -> JsonObject:
        """Return the answers so far, without questions that have none yet."""
        answered: JsonObject = {"attempts": self.attempts}
        for role in ("user", "auditor", "judge", "embedder"):
            answered[role] = [question for question in self.questions[role] if "answer" in question]
        return answered

    async def ask(
        self, role: str, question_digest: str, call: Callable[[], Awaitable[T]], kept: _Kept[T]
    ) -> T:
        """Ask a model, and keep the answer in the order of the questions, which is not that of answers."""
        question: JsonObject = {"question": question_digest}
        self.questions[role].append(question)
        await asyncio.sleep(0)  # questions sent together come before any answer, as in a replay
        try:
            answer = await call()
        except LLMError as error:
            question["answer"] = ErrorRecord.of(error, self.redactor)
            raise
        question["answer"] = kept(answer)
        return answer


class RunCapture:
    """The answers of all trials under way, and those to control questions."""

    def __init__(self, plan: Plan, redactor: Redactor) -> None:
        self._plan, self._redactor = plan, redactor
        self._under_way: dict[Trial, TrialCapture] = {}
        self.judge_check = TrialCapture(redactor)
        """The answers of judges to control questions."""

    def begin(self, trial: Trial) -> TrialCapture:
        """Begin to capture a trial."""
        capture = self._under_way[trial] = TrialCapture(self._redactor)
        return capture

    def finish(self, trial: Trial) -> TrialAnswers | None:
        """Return the answers of a trial that has finished; None if that was done before."""
        capture = self._under_way.pop(trial, None)
        if capture is None:
            return None
        evaluations = self._plan.test_of(trial).evaluations
        return TrialAnswers.model_validate(
            {
                "trial": key_of(self._plan, trial, self._redactor),
                **capture.answers(),
                "evaluations": [evaluation_digest(item, self._redactor) for item in evaluations],
            }
        )

    def judge_check_answers(self) -> JudgeCheckAnswers:
        """Return the answers to control questions until now."""
        return JudgeCheckAnswers.model_validate({"judge_check": self.judge_check.answers()["judge"]})


class RecordedAgent:
    """An agent whose answers are recorded."""

    def __init__(self, agent: Agent, capture: TrialCapture) -> None:
        self._agent, self._capture = agent, capture

    async def open_session(self, test: Test) -> Any:
        """Open a session: a new attempt."""
        attempt: JsonObject = {"answers": []}
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
        """Return the agent's state. The trial's result has it among the probes."""
        return await read_state(self._agent, session)

    async def close(self, session: Any) -> None:
        """End the conversation."""
        attempt = self._capture.attempts[-1]
        try:
            await self._agent.close(session)
        except AgentError as error:
            attempt["closing"] = ErrorRecord.of(error, self._capture.redactor)
            raise


class RecordedWorld:
    """The steps of a trial's world, of which failed setups are recorded. The result has the probes."""

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
        """Return what the probes return before the first message."""
        return await self._steps.probe_before(world, names)

    async def probe(self, world: World, names: Names) -> dict[str, ProbeResult]:
        """Return what the probes return."""
        return await self._steps.probe(world, names)

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
        question = prompt_digest(self.model, prompt, self._capture.redactor)
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

        question = texts_digest(self.model, texts, self._capture.redactor)
        return await self._capture.ask("embedder", question, lambda: self._embedder.embed(texts), kept)
