"""Counts the calls, tokens and reported costs of the models of a trial."""

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from math import fsum
from typing import Generic, TypeVar

from ci_evals.domain.base import MOST_DOLLARS, token_count
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, Paid
from ci_evals.domain.results.usage import Role, RoleUsage
from ci_evals.ports import LLM, Completion, Embedder, Embeddings, Prompt

T = TypeVar("T")
M = TypeVar("M", LLM, Embedder)


class Meter(Generic[M]):
    """Counts a model's calls and how long they take, and remembers that its provider refused the key."""

    def __init__(
        self,
        metered: M,
        role: Role,
        spent: Callable[[RoleUsage], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.model = metered.model
        self._metered: M = metered
        self._role, self._spent, self._clock = role, spent, clock
        self._answers: list[RoleUsage] = []
        self.calls = 0
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
                self._count(error.paid)
            raise
        finally:
            self.seconds += self._clock() - begun

    def _count(self, paid: Paid, *, cached: bool = False) -> None:
        """Count what an answer took, and report it. Numbers that cannot be true count as unknown."""
        read, written = token_count(paid.input_tokens), token_count(paid.output_tokens)
        answer = RoleUsage(
            role=self._role,
            model=self.model,
            calls=1,
            cached=int(cached),
            input_tokens=read or 0,
            output_tokens=written or 0,
            cached_input_tokens=min(paid.cached_input_tokens, read or 0),
            cache_write_tokens=min(paid.cache_write_tokens, read or 0),
            uncounted=int(not cached and (read is None or written is None)),
            cost_usd=_dollars(paid.cost_usd),
        )
        self._answers.append(answer)
        self._spent(answer)

    @property
    def usage(self) -> RoleUsage:
        """The usage so far, with the cost if every answer reported its own."""
        cached = sum(answer.cached for answer in self._answers)
        # A cached answer says nothing about the costs of others.
        costs = [answer.cost_usd for answer in self._answers if not answer.cached]
        known = [cost for cost in costs if cost is not None]
        all_known = len(known) == len(costs) and (known or cached == self.calls > 0)
        return RoleUsage(
            role=self._role,
            model=self.model,
            calls=self.calls,
            cached=cached,
            input_tokens=sum(answer.input_tokens for answer in self._answers),
            output_tokens=sum(answer.output_tokens for answer in self._answers),
            cached_input_tokens=sum(answer.cached_input_tokens for answer in self._answers),
            cache_write_tokens=sum(answer.cache_write_tokens for answer in self._answers),
            uncounted=sum(answer.uncounted for answer in self._answers),
            cost_usd=fsum(known) if all_known else None,
        )


class MeteredLLM(Meter[LLM]):
    """An LLM under a meter."""

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask the model."""
        answer = await self._timed(self._metered.complete(prompt))
        paid = Paid(
            answer.input_tokens,
            answer.output_tokens,
            answer.cost_usd,
            answer.cached_input_tokens,
            answer.cache_write_tokens,
        )
        self._count(paid, cached=answer.cached)
        return answer


class MeteredEmbedder(Meter[Embedder]):
    """An embedding model under a meter."""

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Ask the model."""
        embeddings = await self._timed(self._metered.embed(texts))
        self._count(Paid(embeddings.input_tokens, 0))
        return embeddings


def _dollars(cost: object) -> float | None:
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if math.isfinite(cost) and 0 <= cost <= MOST_DOLLARS else None
