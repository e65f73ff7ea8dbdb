"""The ports, played from a list. `tests/agents/test_contract.py` holds them to what the real ones do."""

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from every_turn import EveryTurnAnswer, fill_looked_at

from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import Completion, Embeddings, Prompt
from ci_evals.wiring.models import CheckedJudge

Line = Reply | str | Exception
"""What an agent says: a whole reply, only its text, or an error to raise."""
Script = Sequence[Line] | Callable[[Test, Sequence[str]], Line]
"""An agent's lines in order (the last one again and again), or a function of test and messages."""


def judge_answer(
    verdict: str = "pass",
    reasoning: str = "It is so.",
    *quotes: tuple[int, str],
    looked_at: Sequence[object] | None = None,
    **changes: Any,
) -> str:
    """What a judge answers on a plain criterion; without `quotes` it rests on an absence from all turns."""
    answer = {
        "reasoning": reasoning, "met": verdict == "pass",
        "evidence": [{"turn": turn, "quote": words} for turn, words in quotes],
        "rests_on": "quotes" if quotes else "absence",
        "looked_at": ([] if quotes else [1]) if looked_at is None else [*looked_at], "verdict": verdict,
    }  # fmt: skip
    text = json.dumps(answer | changes)
    return text if quotes or looked_at is not None or "looked_at" in changes else EveryTurnAnswer(text)


def reply(text: str, **fields: Any) -> Reply:
    """A reply with full evidence of nothing at all, unless `fields` say otherwise."""
    evidence = {"workflows": (), "params": {}, "rules": (), "integrations": (), "error_response": False}
    return Reply(**{"agent": text, "latency_seconds": 0.25, **evidence, **fields})


@dataclass
class ScriptedSession:
    """One conversation with a `ScriptedAgent`, as it went."""

    test: Test
    heard: list[str] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    closed: bool = False


def _at(script: Sequence[Any], asked: Sequence[Any]) -> Any:
    """The line that is due after so many questions, the last one again and again."""
    return script[min(len(asked), len(script)) - 1]


class ScriptedAgent:
    """Says its script, from the start in every session, and remembers all sessions."""

    def __init__(self, script: Script = ("Hello.",), *, opening: AgentError | None = None) -> None:
        self._script = script
        self._opening = opening
        self.sessions: list[ScriptedSession] = []

    async def open_session(self, test: Test) -> ScriptedSession:
        if self._opening:
            raise self._opening
        session = ScriptedSession(test)
        self.sessions.append(session)
        return session

    async def send_message(self, session: ScriptedSession, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        session.heard.append(text)
        session.timeouts.append(timeout)
        heard = session.heard
        line = (
            self._script(session.test, tuple(heard)) if callable(self._script) else _at(self._script, heard)
        )
        if isinstance(line, Exception):
            raise line
        return reply(line) if isinstance(line, str) else line

    async def close(self, session: ScriptedSession) -> None:
        session.closed = True


class ScriptedLLM:
    """Answers from a list (the last one again and again) or by a function; remembers what it was asked."""

    def __init__(
        self,
        answers: Sequence[str | Completion | Exception] | Callable[[Prompt], str | Completion | Exception],
        model: str = "scripted-model",
    ) -> None:
        self.model = model
        self._answers = answers
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        answer = self._answers(prompt) if callable(self._answers) else _at(self._answers, self.prompts)
        if isinstance(answer, Exception):
            raise answer
        answer = fill_looked_at(answer, prompt.text)
        return Completion(answer, input_tokens=100, output_tokens=10) if isinstance(answer, str) else answer


class Judges:
    """One model under every name, in place of a provider's."""

    def __init__(
        self,
        llm: Any,
        check: Callable[[], Coroutine[Any, Any, None]] | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.judge = lambda _: llm
        self.checked_judge = lambda _: CheckedJudge(llm)
        self.check, self.notes, self.waits = check or self._good, lambda: notes, tuple

    async def _good(self) -> None:
        """Say nothing against the key."""


class ScriptedEmbedder:
    """Gives each text its vector, out of a table or by a function, or raises; remembers what it was asked."""

    def __init__(
        self,
        vectors: Mapping[str, Sequence[float]] | Callable[[str], Sequence[float]] | Exception,
        model: str = "scripted-vectors",
    ) -> None:
        self.model = model
        self._vectors = vectors
        self.asked: list[tuple[str, ...]] = []

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        self.asked.append(tuple(texts))
        if isinstance(self._vectors, Exception):
            raise self._vectors
        look = self._vectors if callable(self._vectors) else self._vectors.__getitem__
        return Embeddings(tuple(tuple(look(text)) for text in texts), input_tokens=10 * len(texts))
