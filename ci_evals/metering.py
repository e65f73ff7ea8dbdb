"""Counts the calls, tokens and reported costs of the models of a trial."""

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from math import fsum
from typing import TypeVar

from ci_evals.domain.base import MOST_DOLLARS, token_count
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError
from ci_evals.domain.results.usage import Role, RoleUsage
from ci_evals.ports import LLM, Completion, Embedder, Embeddings, Prompt

T = TypeVar("T")


class Meter:
    """Counts a model's calls and how long they take, and remembers that its provider refused the key."""

    def __init__(
        self,
        model: str,
        role: Role,
        spent: Callable[[RoleUsage], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.model = model
        self._role = role
        self._spent, self._clock = spent, clock
        self._input_tokens = self._output_tokens = self._uncounted = 0
        self._costs: list[float | None] = []
        self.calls = self.cached = 0
        self.refusal: str | None = None
        self.seconds = 0.0
        """Waited for its answers; if several are asked at a time, for each by itself."""

    async def _timed(self, call: Awaitable[T]) -> T:
        self.calls += 1
        begun = self._clock()
        try:
            return await call
        except LLMAccessError as error:
            self.refusal = str(error)
            raise
        except LLMAnswerError as error:
            if error.paid:  # an answer of no use costs as much as any other
                self._count(*error.paid)
            raise
        finally:
            self.seconds += self._clock() - begun

    def _count(
        self,
        input_tokens: int | None,
        output_tokens: int | None,
        cost_usd: float | None = None,
        *,
        cached: bool = False,
    ) -> None:
        """Count what an answer took, and report it. Numbers that cannot be true count as unknown."""
        read, written, cost_usd = token_count(input_tokens), token_count(output_tokens), _dollars(cost_usd)
        uncounted = not cached and (read is None or written is None)
        input_tokens, output_tokens = read or 0, written or 0
        self.cached += cached
        self._uncounted += uncounted
        self._input_tokens += input_tokens
        self._output_tokens += output_tokens
        self._costs += [] if cached else [cost_usd]  # a cached answer says nothing about the costs of others
        self._spent(
            RoleUsage(
                role=self._role,
                model=self.model,
                calls=1,
                cached=int(cached),
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                uncounted=int(uncounted),
                cost_usd=cost_usd,
            )
        )

    @property
    def usage(self) -> RoleUsage:
        """The usage so far, with the cost if every answer reported its own."""
        costs = [cost for cost in self._costs if cost is not None]
        known = costs or self.cached == self.calls > 0
        return RoleUsage(
            role=self._role,
            model=self.model,
            calls=self.calls,
            cached=self.cached,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
            uncounted=self._uncounted,
            cost_usd=fsum(costs) if known and len(costs) == len(self._costs) else None,
        )


class MeteredLLM(Meter):
    """An LLM under a meter."""

    def __init__(
        self,
        llm: LLM,
        role: Role,
        spent: Callable[[RoleUsage], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(llm.model, role, spent, clock)
        self._llm = llm

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask the model."""
        completion = await self._timed(self._llm.complete(prompt))
        self._count(
            completion.input_tokens,
            completion.output_tokens,
            completion.cost_usd,
            cached=completion.cached,
        )
        return completion


class MeteredEmbedder(Meter):
    """An embedding model under a meter."""

    def __init__(self, embedder: Embedder, role: Role, spent: Callable[[RoleUsage], None]) -> None:
        super().__init__(embedder.model, role, spent)
        self._embedder = embedder

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Ask the model."""
        embeddings = await self._timed(self._embedder.embed(texts))
        self._count(embeddings.input_tokens, 0)
        return embeddings


def _dollars(cost: object) -> float | None:
    """The cost if it can be true."""
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if math.isfinite(cost) and 0 <= cost <= MOST_DOLLARS else None
