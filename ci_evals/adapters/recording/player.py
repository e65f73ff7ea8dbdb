"""Plays a recording: stands in for the agent and the models of a trial, and answers what they answered.

Strict: where another thing is said or asked than then, it has no answer. An error says so, and so the trial
fails or the verdict is undecided; nothing passes on an answer that was never given.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from ci_evals._version import __version__
from ci_evals.adapters.recording.reading import Recording
from ci_evals.adapters.recording.tape import (
    Answer,
    Completed,
    Embedded,
    Fault,
    Take,
    Vectors,
    Words,
    key_of,
    of_evaluation,
    of_prompt,
    of_texts,
    same,
)
from ci_evals.adapters.transport import payload
from ci_evals.domain.errors import AgentError, LLMError
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.domain.verdict import Cause, Finding, Outcome, Verdict
from ci_evals.ports import Completion, Embeddings, Prompt
from ci_evals.support.redaction import MASK, Redactor

_LONGEST_VERSION = 40
"""Characters of a version that a message quotes."""


class Played:
    """A part of a recording, and the first thing asked of it that it does not know."""

    def __init__(self, recording: Recording, redactor: Redactor) -> None:
        self.redactor = redactor
        self.lacks: str | None = None
        """What was said or asked that the recording does not know: no further attempt can mend that."""
        self._by = recording.header.tool.version[:_LONGEST_VERSION]

    def lack(self, what: str) -> str:
        """Why there is no answer, for a person. The first such reason is kept for later attempts."""
        other = (
            "" if self._by == __version__ else f" (it was made by ci-evals {self._by}, this is {__version__})"
        )
        why = f"the recording has no answer to this: {what}{other}; record again"
        self.lacks = self.lacks or why
        return why


class Playback(Played):
    """One trial of a recording, played once."""

    def __init__(self, recording: Recording, plan: Plan, trial: Trial, redactor: Redactor) -> None:
        """Takes the trial out of the recording.

        Args:
            recording: Where it is, or is not.
            plan: The plan that is played now.
            trial: One of its trials.
            redactor: Takes the secrets out of what is compared.
        """
        key = key_of(plan, trial, redactor)
        super().__init__(recording, redactor)
        take = recording.take(key)
        if take is None:
            self.lack(f"it has no trial {key.index} of the test {key.test!r} of the suite {key.suite!r}")
        self.take = take or Take(**asdict(key))
        self._evaluations = plan.test_of(trial).evaluations

    def adjust_findings(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """The findings, without passes that come only of secrets taken out of the answers.

        A check that no secret is told fails where one is, and passes where `***` stands in its place: it has
        the outcome of then.
        """
        if not any(MASK in attempt.model_dump_json() for attempt in self.take.attempts):
            return tuple(findings)
        then = {one.evaluation: one.outcome for one in self.take.found}
        return tuple(
            _held(finding, then.get(of_evaluation(evaluation, self.redactor)))
            for evaluation, finding in zip(self._evaluations, findings, strict=True)
        )


def _held(finding: Finding, then: Outcome | None) -> Finding:
    if finding.outcome is not Outcome.PASSED or then in {None, Outcome.PASSED}:
        return finding
    why = (
        f"as in the recorded run, where it was {then}: secrets are taken out of the recorded answers, and "
        "without them it would pass"
    )
    failed = then is Outcome.FAILED
    verdict = Verdict.failed(why) if failed else Verdict.undecided(Cause.NO_EVIDENCE, why)
    return finding.model_copy(update=dict(verdict))


@dataclass
class _Session:
    """What is left of one attempt."""

    answers: Iterator[Answer]
    closing: Fault | None


class ReplayedAgent:
    """The agent of a recorded trial. Implements the port `Agent`."""

    def __init__(self, playback: Playback) -> None:
        self._playback = playback
        self._attempts = iter(playback.take.attempts)
        self._tried = 0

    async def open_session(self, test: Test) -> _Session:  # noqa: ARG002  # as the port has it
        """Begins the next attempt."""
        if self._playback.lacks:
            raise AgentError(self._playback.lacks)
        self._tried += 1
        attempt = next(self._attempts, None)
        if attempt is None:
            why = f"there was no attempt {self._tried} at this trial then"
            raise AgentError(self._playback.lack(why))
        if attempt.fault:
            raise attempt.fault.raised(AgentError)
        return _Session(iter(attempt.answers), attempt.closing)

    async def send_message(self, session: _Session, text: str, *, timeout: float) -> Reply:  # noqa: ARG002, ASYNC109  # as the port has it
        """The recorded reply to this message, if this is the message."""
        said = payload.shorten(self._playback.redactor.text(text))
        recorded = next(session.answers, None)
        if recorded is None:
            raise AgentError(self._playback.lack(f"the user says {said!r} where the conversation had ended"))
        if not same(text, recorded.message, self._playback.redactor):
            was = payload.shorten(self._playback.redactor.text(recorded.message))
            raise AgentError(self._playback.lack(f"the user says {said!r}, and said {was!r} then"))
        if isinstance(recorded.answer, Fault):
            raise recorded.answer.raised(AgentError)
        return recorded.answer

    async def close(self, session: _Session) -> None:
        """End the session as it ended then."""
        fault, session.closing = session.closing, None
        if fault:
            raise fault.raised(AgentError)


class ReplayedLLM:
    """A model of a recorded trial: equal prompts are answered in the order in which they were."""

    def __init__(self, model: str, asks: str, recorded: Iterable[Completed], playback: Played) -> None:
        """Sorts what was recorded.

        Args:
            model: The model that is to be asked.
            asks: Who asks what of it, as in `the judge's question`.
            recorded: All that it answered.
            playback: The trial.
        """
        self.model = model
        self._asks, self._playback = asks, playback
        self._answers: dict[str, deque[Words | Fault]] = defaultdict(deque)
        for one in recorded:
            self._answers[one.prompt].append(one.answer)

    async def complete(self, prompt: Prompt) -> Completion:
        """The recorded answer to this prompt."""
        await asyncio.sleep(0)  # prompts that are sent together are asked in their order, as they were then
        answers = self._answers[of_prompt(self.model, prompt, self._playback.redactor)]
        if not answers:
            raise LLMError(self._playback.lack(f"{self._asks} to {self.model} was not asked then"))
        answer = answers.popleft()
        if isinstance(answer, Fault):
            raise answer.raised(LLMError)
        return Completion(answer.text, *answer.paid)


class ReplayedEmbedder:
    """The embedding model of a recorded trial."""

    def __init__(self, model: str, recorded: Iterable[Embedded], playback: Playback) -> None:
        self.model = model
        self._playback = playback
        self._answers: dict[str, deque[Vectors | Fault]] = defaultdict(deque)
        for one in recorded:
            self._answers[one.texts].append(one.answer)

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """The recorded vectors of these texts."""
        await asyncio.sleep(0)
        answers = self._answers[of_texts(self.model, texts, self._playback.redactor)]
        if not answers:
            raise LLMError(self._playback.lack(f"{self.model} was not asked to compare these answers then"))
        answer = answers.popleft()
        if isinstance(answer, Fault):
            raise answer.raised(LLMError)
        return Embeddings(answer.vectors, answer.input_tokens)
