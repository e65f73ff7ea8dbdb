"""Samples, and many questions to models at a time: the parts that studies of the judge share."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ci_evals.domain.errors import LLMAccessError
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.grading.judge import Judge
from ci_evals.metering import MeteredLLM
from ci_evals.ports import LLM
from ci_evals.scoring.usage import usage_of_roles
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.models import RunModels

_MAX_FAILURES_IN_ROW = 10
"""After this many failed questions in a row the models are taken to be gone."""

_LOOK_SECONDS = 0.5
"""The interval at which questions that wait for others check whether the study was stopped."""

_used_by_question: ContextVar[list[RoleUsage]] = ContextVar("used_by_question")
"""The usage of the question that the current task asks."""

X = TypeVar("X")
Y = TypeVar("Y")


def shuffled(items: Sequence[X], seed: str) -> list[X]:
    """The items in an order that depends on the seed alone: the same seed, the same order."""
    return random.Random(seed).sample(items, len(items))  # noqa: S311  # a sample, not a secret


def spread_evenly(groups: Sequence[Sequence[X]], most: int, seed: str) -> list[X]:
    """Draw at most `most` items by the seed, as evenly over the groups as possible."""
    waiting = [shuffled(group, f"{seed} {index}") for index, group in enumerate(groups)]
    taken: list[X] = []
    while len(taken) < most and (waiting := [group for group in waiting if group]):
        taken += [group.pop() for group in shuffled(waiting, f"{seed} {len(taken)}")][: most - len(taken)]
    return taken


@dataclass
class QuestionBudget:
    """The most that questions may cost. None begins that could exceed it, as far as those before tell."""

    most: float
    """US dollars."""
    prices: PriceTable
    refused: bool = False
    """True once a question was not asked because of it."""

    def __post_init__(self) -> None:
        self._under_way = self._paid = 0
        self._highest = 0.0
        self._one_ended = asyncio.Event()

    def count(self, usage: Sequence[RoleUsage]) -> None:
        """Count a question that has ended, by what it used."""
        cost = self.spent(usage) or 0.0
        self._highest = max(self._highest, cost)
        self._under_way -= 1
        self._paid += cost > 0
        self._one_ended.set()

    async def admits(self, usage: Callable[[], Sequence[RoleUsage]], stop: Stop) -> bool:
        """Return whether one more question fits, if each under way costs as much as the highest so far.

        No more are under way at a time than have shown a cost, and one until then: a cheap question says
        little of the others. Those that may fit later wait.
        """
        while not stop.requested:
            spent = self.spent(usage())
            if spent is None or spent >= self.most or spent + self._highest > self.most:
                self.refused = True
                return False
            reserved = self._highest * (self._under_way + 1)
            if self._under_way < max(1, self._paid) and spent + reserved <= self.most:
                self._under_way += 1
                return True
            self._one_ended.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._one_ended.wait(), _LOOK_SECONDS)
        return False

    def spent(self, usage: Sequence[RoleUsage]) -> float | None:
        """Return the cost until now in US dollars; None if it is unknown."""
        return usage_of_roles(usage, self.prices).cost_usd if usage else 0.0


@dataclass
class Asking:
    """Models that are asked for a study, and when it ends."""

    judges: RunModels
    panel: Sequence[str]
    """The models that vote in turn."""
    used: JudgeUsed
    """The same, as their answers are kept with."""
    redactor: Redactor
    parallel: int = 1
    stop: Stop = field(default_factory=Stop)
    done: Callable[[], None] = lambda: None
    """Called after each question."""
    expect: Callable[[int], None] = lambda _: None
    """Called with the number of questions, before the first."""
    budget: QuestionBudget | None = None

    def __post_init__(self) -> None:
        self._meters = {
            name: MeteredLLM(self.judges.judge(name), "judge", _count_for_question) for name in self.panel
        }
        self._failures_in_row = 0

    @property
    def votes(self) -> int:
        """At the most, on one question."""
        return self.used.votes

    @property
    def llms(self) -> tuple[LLM, ...]:
        """The models that vote in turn, each under its meter."""
        return tuple(self._meters[name] for name in self.panel)

    def judge(self, sample_id: str) -> Judge:
        """The judge. `sample_id` sets apart equal questions that are each to be answered by itself."""
        return Judge(self.llms, self.redactor, votes=self.votes, sample_id=sample_id)

    @property
    def usage(self) -> tuple[RoleUsage, ...]:
        """The usage so far."""
        return tuple(meter.usage for meter in self._meters.values() if meter.calls)

    async def each(
        self,
        items: Sequence[X],
        ask: Callable[[X], Coroutine[Any, Any, Y]],
        missing: Callable[[Y], str | None],
    ) -> list[Y | None]:
        """Return the answer of `ask` for each item, in order; None for those that the study ended before.

        Args:
            items: What to ask about.
            ask: Asks about one. An error that it raises is a bug of ours: it ends the study in order, and
                stands in the stop.
            missing: Why a model could not be asked or read, of an answer that is none; else None.
        """
        self.expect(len(items))
        answers: list[Y | None] = [None] * len(items)

        async def ask_about(index: int) -> None:
            used: list[RoleUsage] = []
            _used_by_question.set(used)
            answers[index] = answer = await self.stop.run_until_stopped(ask(items[index]))
            if self.budget:
                self.budget.count(used)
            if answer is not None:
                self._record(missing(answer))

        try:  # a key that is known to be invalid ends the study before it begins
            await self.stop.run_until_stopped(self.judges.check())
        except LLMAccessError as error:
            self.stop.request(str(error), outage=True)
        await self.stop.for_each(
            range(len(items)), ask_about, parallel=self.parallel, admit=self._admits if self.budget else None
        )
        return answers

    async def _admits(self) -> bool:
        return self.budget is None or await self.budget.admits(lambda: self.usage, self.stop)

    def _record(self, missing: str | None) -> None:
        self.done()
        for meter in self._meters.values():
            if meter.refusal:
                self.stop.request(meter.refusal, outage=True)
        self._failures_in_row = self._failures_in_row + 1 if missing else 0
        if self._failures_in_row >= max(_MAX_FAILURES_IN_ROW, self.parallel):
            self.stop.request(
                f"{self._failures_in_row} times in a row the judge could not be asked, the last time because "
                f"{missing}",
                outage=True,
            )


def _count_for_question(answer: RoleUsage) -> None:
    used = _used_by_question.get(None)
    if used is not None:
        used.append(answer)
