"""The estimate of tokens, cost and time in `plan`, from the sizes of the real prompts."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

from ci_evals.conversation.audit import Auditor
from ci_evals.conversation.simulated_user import ModelUser, shown
from ci_evals.domain import numbers
from ci_evals.domain.checks.evaluation import Graded, Judged
from ci_evals.domain.choices import CheckMode
from ci_evals.domain.errors import LLMError
from ci_evals.domain.plan import Plan, SuiteModels
from ci_evals.domain.prices import PriceTable, unpriced
from ci_evals.domain.suite import AUTO, PlannedTurn, Suite, Test
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource
from ci_evals.extensions.plan.forecast import (
    Forecast,
    PromptSizes,
    Range,
    Spending,
    duration,
    of_check,
    of_trial,
    votes_of,
    with_votes,
)
from ci_evals.grading import control, transcript_view
from ci_evals.grading.grade import judged
from ci_evals.grading.judge import Judge
from ci_evals.planning.workload import judges_claims, of_test
from ci_evals.ports import Completion, Prompt
from ci_evals.reports import sanitize
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import as_data
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.providers import runs_here


@dataclass(frozen=True)
class Estimate:
    """The models, tokens, cost and time that a plan takes, from the least that is played to the most."""

    spent: dict[str, Spending]
    """By model, of those that are asked."""
    seconds: Range
    parallel: int
    prices: PriceTable
    reports_cost: bool
    """True if the provider reports the cost with each answer."""

    @property
    def tokens(self) -> Range:
        """Tokens of all models, read and written."""
        return sum((spending.input + spending.output for spending in self.spent.values()), Range())

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models without a price: the cost is unknown if there are any."""
        return tuple(unpriced(self.spent, self.prices))

    @property
    def dollars(self) -> Range | None:
        """The cost in US dollars; None if it is unknown."""
        if self.unpriced:
            return None
        cost = Range()
        for model, spending in self.spent.items():
            price = self.prices.price_of(model)
            assert price is not None  # noqa: S101  # else it were among those without
            low = price.cost(spending.input.low, spending.output.low)
            cost += Range(low, price.cost(spending.input.high, spending.output.high))
        return cost

    def in_words(self) -> str:
        """Return tokens, cost and duration, a line each."""
        seconds = numbers.extent(self.seconds.low, self.seconds.high, numbers.about)
        return (
            f"tokens      {self._tokens_in_words()}\n"
            f"cost        {self._cost_in_words()}\n"
            f"duration    {seconds} at --parallel={self.parallel}\n"
            "estimated: conversations may end early; retries are not included"
        )

    def _tokens_in_words(self) -> str:
        if not self.tokens.high:
            return "none"
        return numbers.extent(self.tokens.low, self.tokens.high, numbers.tokens)

    def _cost_in_words(self) -> str:
        if not self.spent:
            return "none"
        dollars = self.dollars
        if dollars is None:
            names = _listed(self.unpriced)
            if self.reports_cost:
                return f"known only afterwards ({names}): the provider reports it with each answer"
            return f"unknown: no price for {names}. Add it with --prices=FILE."
        day = f"; prices of {self.prices.as_of.isoformat()}" if self.prices.as_of else ""
        cost = numbers.extent(dollars.low, dollars.high, numbers.money)
        return f"{cost} ({_listed(sorted(self.spent))}{day})"


def _listed(models: Iterable[str]) -> str:
    return ", ".join(sanitize.log_line(name, 80) for name in models)


async def estimate(
    plans: tuple[Plan, Plan],
    connections: Connections,
    prices: PriceTable,
    parallel: int,
    check: CheckMode = CheckMode.OFF,
) -> Estimate:
    """Estimate what is played, from the first of these plans, which is the least, to the second."""
    shortest, plan = plans
    spent: dict[str, Spending] = {}
    trials: list[Forecast] = []
    few: list[Forecast] = []
    for place, planned in enumerate(plan.suites):
        spared = shortest.first_arm_only and plan.arm_of(place) > 0
        models = connections.models(planned.suite)
        for test in planned.tests:
            audited = connections.audit_user or test.audit_user
            sizes = (
                None if connections.offline else await measure_prompts(planned.suite, test, audited=audited)
            )
            trial = with_votes(of_trial(planned.suite, test, sizes), connections.judge_votes)
            loops = plan.played_of(planned, test)
            fewest = 0 if spared else shortest.loops_of(test)
            trials += [trial] * loops
            few += [trial] * fewest
            by_model = list(_judging(models, trial))
            if models.user:
                by_model.append((models.user, trial.user))
            if models.auditor:
                by_model.append((models.auditor, trial.auditor))
            if connections.embedder and not runs_here(connections.embedder):
                by_model.append((connections.embedder, trial.embedder))
            for model, spending in by_model:
                spent[model] = spent.get(model, Spending()) + spending.between(Range(fewest, loops))
    seconds = Range(duration(few, parallel).low, duration(trials, parallel).high)
    if judges := checked_judges(plan, connections, check):
        subjects = control.subjects(with_claims=judges_claims(plan))
        questions = sum(len(control.questions(subject)) for subject in subjects)
        checking = of_check(questions, await _measure_check(subjects), control.CONCURRENT)
        likely = Range(check is CheckMode.ALWAYS, 1)  # a passed check of before saves the questions
        for judge in judges:
            spent[judge] = spent.get(judge, Spending()) + checking.judge.between(likely)
        meanwhile = checking.judging * likely
        seconds = Range(max(seconds.low, meanwhile.low), max(seconds.high, meanwhile.high))
    of_models = {model: spending for model, spending in spent.items() if spending.calls.high}
    return Estimate(of_models, seconds, parallel, prices, connections.reports_cost)


def checked_judges(plan: Plan, connections: Connections, check: CheckMode) -> set[str]:
    """Return the judges that may be asked the control questions."""
    if check is CheckMode.OFF:
        return set()
    judging = [
        planned.suite
        for planned in plan.suites
        if any(of_test(plan, planned, test).judge_calls for test in planned.tests)
    ]
    return {judge for suite in judging for judge in connections.models(suite).judges}


def _judging(models: SuiteModels, trial: Forecast) -> Iterator[tuple[str, Spending]]:
    """Yield what each of the models that vote in turn uses."""
    for index, judge in enumerate(models.judges):
        yield judge, trial.judge.between(votes_of(index, len(models.judges), models.votes))


async def measure_prompts(suite: Suite, test: Test, *, audited: bool = False) -> PromptSizes:
    """Measure the prompts of judge and simulated user for this test, in characters. Calls no model.

    With `audited` also those of the model that checks the simulated user.
    """
    sizes = await _measure_trial(suite, test)
    if not audited:
        return sizes
    one, two = [await _measure_audit(test, turns) for turns in (1, 2)]
    return replace(sizes, auditor=2 * one - two, auditor_turn=two - one)


class _Ruler:
    """A model that measures its prompts, and answers none."""

    model = "ruler"

    def __init__(self) -> None:
        self.characters = self.total = 0

    async def complete(self, prompt: Prompt) -> Completion:
        schema = json.dumps(prompt.schema) if prompt.schema else ""
        self.characters = len(prompt.system) + len(prompt.text) + len(schema)
        self.total += self.characters
        raise LLMError


async def _measure_check(subjects: Iterable[control.Subject]) -> int:
    """Measure all prompts of the judge check."""
    ruler = _Ruler()
    for subject in subjects:
        await control.ask(ruler, Redactor(), subject)
    return ruler.total


async def _measure_audit(test: Test, turns: int) -> int:
    ruler = _Ruler()
    transcript = Transcript(turns=_wordless(turns), status=EndState.COMPLETED)
    await Auditor(ruler, Redactor()).audit(test, transcript)
    return ruler.characters


async def _measure_trial(suite: Suite, test: Test) -> PromptSizes:
    ruler = _Ruler()
    planned_turns, sizes, judge_turn = suite.turns_of(test), list[int](), 0
    transcript = Transcript(turns=_wordless(len(planned_turns)), status=EndState.COMPLETED)
    context = Judge([ruler], Redactor()).context(test, planned_turns, transcript)
    for evaluation in test.evaluations:
        if isinstance(evaluation, Judged):
            await judged(context, evaluation)
            sizes.append(ruler.characters)
            actions = isinstance(evaluation, Graded) and evaluation.whole_rubric.steps
            judge_turn = max(judge_turn, _judged_turn(actions=actions))
    with suppress(LLMError):
        await ModelUser(ruler, Redactor()).next_message(test, _wordless(1))
    return PromptSizes(
        user=ruler.characters - _users_turn(),
        user_turn=_users_turn(),
        judge=tuple(size - len(planned_turns) * judge_turn for size in sizes),
        judge_turn=judge_turn,
    )


@cache
def _users_turn() -> int:
    """Return what a wordless turn adds to a prompt of the simulated user, whatever the test."""
    one, two = (as_data(shown(_wordless(turns))) for turns in (1, 2))
    return len(two) - len(one)


@cache
def _judged_turn(*, actions: bool) -> int:
    """Return what a wordless turn adds to a judge's prompt, whatever the test and the criterion."""
    planned = (PlannedTurn(user=AUTO),) * 2
    transcripts = (Transcript(turns=_wordless(turns), status=EndState.COMPLETED) for turns in (1, 2))
    views = (transcript_view.conversation(planned, each, actions=actions) for each in transcripts)
    one_turn, two_turns = (as_data(view.listed()) for view in views)
    return len(two_turns) - len(one_turn)


@cache
def _wordless(count: int) -> tuple[Turn, ...]:
    return tuple(
        Turn(
            index=number,
            user="",
            user_source=UserSource.AUTO,
            agent="",
            latency_seconds=0,
            # A trace with all calls, without which no judge is asked of an agent's steps and claims.
            workflows=(),
            integrations=(),
        )
        for number in range(1, count + 1)
    )
