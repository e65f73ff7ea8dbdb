"""Replays a recording instead of the agent and the models of a trial.

A message or question that was not recorded has no answer but an error: the trial fails, or the verdict is
undecided. Nothing passes on an answer that was never given.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from ci_evals._version import __version__
from ci_evals.adapters.journal.answers import (
    AnswerRecord,
    AttemptRecord,
    ErrorRecord,
    ReplyRecord,
    TextRecord,
    TrialAnswers,
    VectorsRecord,
    evaluation_digest,
    key_of,
    prompt_digest,
    same,
    texts_digest,
)
from ci_evals.adapters.journal.reading import RecordedTrial, Recording
from ci_evals.domain.errors import AgentError, LLMError, WorldError
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import ProbeResult, Reply, Turn
from ci_evals.domain.verdict import Cause, Finding, Outcome, Verdict
from ci_evals.domain.world import AGENT_STATE, Names, World
from ci_evals.ports import Completion, Embeddings, Prompt
from ci_evals.support import payload
from ci_evals.support.redaction import MASK, Redactor

A = TypeVar("A", TextRecord, VectorsRecord)

_NO_RESULT = ProbeResult(error="the recording has no result of it; record again")
_MAX_VERSION = 40
"""Characters of a version that a message quotes."""


class Replay:
    """A part of a recording, and the first question that it has no answer to."""

    def __init__(self, recording: Recording, redactor: Redactor) -> None:
        self.redactor = redactor
        self.missing: str | None = None
        """The first missing answer: further attempts fail for the same reason."""
        self._version = recording.header.tool.version[:_MAX_VERSION]

    def miss(self, question: str) -> str:
        """Note a missing answer, and return a message about it."""
        message = f"the recording has no answer to this: {question}"
        if self._version != __version__:
            message += f" (it was made by ci-evals {self._version}, this is {__version__})"
        message += "; record again"
        self.missing = self.missing or message
        return message


class TrialReplay(Replay):
    """One trial of a recording, replayed once."""

    def __init__(self, recording: Recording, plan: Plan, trial: Trial, redactor: Redactor) -> None:
        """Load a trial of the current plan from the recording, if it is there.

        `redactor` removes secrets from what is compared.
        """
        key = key_of(plan, trial, redactor)
        super().__init__(recording, redactor)
        recorded = recording.trial(key)
        if recorded is None:
            self.miss(f"it has no trial {key.index} of the test {key.test!r} of the suite {key.suite!r}")
        self.answers = _answers_of(recorded) if recorded else TrialAnswers(trial=key)
        self._outcomes = _outcomes_of(recorded) if recorded else {}
        self._probes = recorded.result.probes if recorded else {}
        self.probes_before = recorded.result.probes_before if recorded else {}
        self.canaries = recorded.result.canaries if recorded else {}
        self._evaluations = plan.test_of(trial).evaluations
        self.tried = 0
        """The number of attempts that have begun."""

    def attempt(self, number: int) -> AttemptRecord | None:
        """Return an attempt by its number, counted from 1; None if there was none."""
        if 1 <= number <= len(self.answers.attempts):
            return self.answers.attempts[number - 1]
        return None

    def probe(self, name: str) -> ProbeResult:
        """Return what a probe returned after the last attempt: those after earlier ones count nowhere."""
        return self._probes.get(name, _NO_RESULT)

    def adjust_findings(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return the findings without passes that result only from secrets removed from the answers.

        A check that no secret leaks fails on a secret but passes on `***`, so it keeps its recorded outcome.
        """
        if not any(MASK in attempt.model_dump_json() for attempt in self.answers.attempts):
            return tuple(findings)
        adjusted = []
        for evaluation, finding in zip(self._evaluations, findings, strict=True):
            recorded = self._outcomes.get(evaluation_digest(evaluation, self.redactor))
            adjusted.append(_without_new_pass(finding, recorded))
        return tuple(adjusted)


def _answers_of(recorded: RecordedTrial) -> TrialAnswers:
    """Return the answers of a trial, with the gaps in its evidence that showed after they were recorded."""
    gaps = {
        turn.traceparent: turn for turn in recorded.result.turns if turn.traceparent and turn.trace_missing
    }
    if not gaps:
        return recorded.answers
    attempts = []
    for attempt in recorded.answers.attempts:
        answers = tuple(_with_gap(answer, gaps) for answer in attempt.answers)
        attempts.append(attempt.copy_with(answers=answers))
    return recorded.answers.copy_with(attempts=tuple(attempts))


def _with_gap(answer: ReplyRecord, gaps: Mapping[str, Turn]) -> ReplyRecord:
    """Return an answer of the agent's with the gap of its turn."""
    reply = answer.answer
    turn = gaps.get(reply.traceparent or "") if isinstance(reply, Reply) else None
    if turn is None or not isinstance(reply, Reply):
        return answer
    incomplete = reply.copy_with(
        tool_calls_partial=turn.tool_calls_partial,
        trace_missing=turn.trace_missing,
        handed_over_apart=turn.handed_over_apart,
    )
    return answer.copy_with(answer=incomplete)


def _outcomes_of(recorded: RecordedTrial) -> dict[str, Outcome]:
    """Return the outcome of each evaluation by its digest; none if the user broke character."""
    findings = recorded.result.findings
    return {
        evaluation: finding.outcome
        for evaluation, finding in zip(recorded.answers.evaluations, findings, strict=False)
    }


def _without_new_pass(finding: Finding, recorded: Outcome | None) -> Finding:
    """Return a finding that passes only if it passed in the recorded run, or was not recorded."""
    if finding.outcome is not Outcome.PASSED or recorded in {None, Outcome.PASSED}:
        return finding
    why = (
        f"as in the recorded run, in which it was {recorded}: secrets are removed from recorded "
        "answers, and without them it would pass"
    )
    verdict = Verdict.undecided(Cause.NO_EVIDENCE, why)
    if recorded is Outcome.FAILED:
        verdict = Verdict.failed(why)
    return finding.with_verdict(verdict)


@dataclass
class _ReplaySession:
    """The rest of one attempt."""

    answers: Iterator[ReplyRecord]
    closing: ErrorRecord | None


class ReplayedAgent:
    """The agent of a recorded trial. Implements the port `Agent`."""

    def __init__(self, replay: TrialReplay) -> None:
        self._replay = replay

    async def open_session(self, test: Test) -> _ReplaySession:  # noqa: ARG002  # as the port has it
        """Begin the next attempt."""
        if self._replay.missing:
            raise AgentError(self._replay.missing)
        self._replay.tried += 1
        attempt = self._replay.attempt(self._replay.tried)
        if attempt is None:
            question = f"there was no attempt {self._replay.tried} at this trial then"
            raise AgentError(self._replay.miss(question))
        if attempt.fault:
            raise attempt.fault.to_error(AgentError)
        return _ReplaySession(iter(attempt.answers), attempt.closing)

    async def send_message(self, session: _ReplaySession, text: str, *, timeout: float) -> Reply:  # noqa: ARG002, ASYNC109  # as the port has it
        """Return the recorded reply to this message, if this is the message."""
        message = payload.shorten(self._replay.redactor.text(text))
        recorded = next(session.answers, None)
        if recorded is None:
            raise AgentError(
                self._replay.miss(f"the user says {message!r} although the conversation had ended")
            )
        if not same(text, recorded.message, self._replay.redactor):
            before = payload.shorten(self._replay.redactor.text(recorded.message))
            raise AgentError(self._replay.miss(f"the user says {message!r}, and said {before!r} then"))
        if isinstance(recorded.answer, ErrorRecord):
            raise recorded.answer.to_error(AgentError)
        return recorded.answer

    async def read_state(self, session: _ReplaySession) -> JsonValue:  # noqa: ARG002  # as the port has it
        """Return the recorded state."""
        state = self._replay.probe(AGENT_STATE)
        if state.error is not None:
            raise AgentError(state.error)
        return state.value

    async def close(self, session: _ReplaySession) -> None:
        """End the session as recorded."""
        error, session.closing = session.closing, None
        if error:
            raise error.to_error(AgentError)


class ReplayedWorld:
    """The world of a recorded trial: nothing is done, and probes return what they did then."""

    def __init__(self, replay: TrialReplay) -> None:
        self._replay = replay

    async def set_up(self, world: World, names: Names) -> None:  # noqa: ARG002  # as the port has it
        """Fail if the recorded setup did: then that was the whole attempt."""
        coming = self._replay.attempt(self._replay.tried + 1)
        if coming and coming.setup_error:
            self._replay.tried += 1
            raise WorldError(coming.setup_error)

    async def probe_before(self, world: World, names: Names) -> dict[str, ProbeResult]:  # noqa: ARG002  # as the port has it
        """Return the recorded results."""
        recorded = self._replay.probes_before
        return {name: recorded[name] for name in world.probes if name in recorded}

    async def probe(self, world: World, names: Names) -> dict[str, ProbeResult]:  # noqa: ARG002  # as the port has it
        """Return the recorded results."""
        return {name: self._replay.probe(name) for name in world.probes}

    async def tear_down(self, world: World, names: Names) -> None:
        """Do nothing."""

    def notes(self) -> tuple[str, ...]:
        """Return nothing."""
        return ()


class _ReplayedModel:
    """A model of a recorded trial. Equal questions get their answers in the recorded order."""

    def __init__(self, model: str, recorded: Iterable[AnswerRecord], replay: Replay) -> None:
        self.model = model
        self._replay = replay
        self._queues: dict[str, deque[TextRecord | VectorsRecord | ErrorRecord]] = defaultdict(deque)
        for item in recorded:
            self._queues[item.question].append(item.answer)

    async def _next(self, digest: str, kind: type[A], missing: str) -> A:
        """Return the next answer to a question, or raise the recorded error; `missing` if there is none."""
        await asyncio.sleep(0)  # questions sent together are asked in their order, as in the recorded run
        queue = self._queues[digest]
        answer = queue.popleft() if queue else None
        if isinstance(answer, ErrorRecord):
            raise answer.to_error(LLMError)
        if not isinstance(answer, kind):
            raise LLMError(self._replay.miss(missing))
        return answer


class ReplayedLLM(_ReplayedModel):
    """A model that answers prompts."""

    def __init__(self, model: str, asks: str, recorded: Iterable[AnswerRecord], replay: Replay) -> None:
        """Replay the answers of a model. `asks` is the kind of its questions: `the judge's question`."""
        super().__init__(model, recorded, replay)
        self._missing = f"{asks} to {model} was not asked in the recorded run"

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the recorded answer to this prompt."""
        digest = prompt_digest(self.model, prompt, self._replay.redactor)
        answer = await self._next(digest, TextRecord, self._missing)
        return Completion.of(answer.text, answer.paid)


class ReplayedEmbedder(_ReplayedModel):
    """A model that gives vectors."""

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return the recorded vectors of these texts."""
        digest = texts_digest(self.model, texts, self._replay.redactor)
        missing = f"{self.model} was not asked to compare these answers in the recorded run"
        answer = await self._next(digest, VectorsRecord, missing)
        return Embeddings(answer.vectors, answer.input_tokens)
