"""Asking models many things: what is drawn, and how it may end."""

import asyncio

import fakes
import pytest
import seeded_judges
import world
from each_row import each_row
from study_judges import STUDY_TIME, run_of_agent

from ci_evals.domain.errors import LLMAccessError
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.extension_support.asking import Asking, QuestionBudget, spread_evenly
from ci_evals.extensions.preference.study import pair_runs, prefer
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor

USED = JudgeUsed(provider="openai", models=("m",), prompt="p")


def ask_with(llm, **fields) -> Asking:
    return Asking(fakes.Judges(llm), ("m",), USED, Redactor(), **fields)


@each_row("most", [0, 1, 3, 5, 7, 100])
def test_sample_is_spread_evenly_over_groups_by_the_seed(most):
    groups = [["a1", "a2", "a3", "a4"], ["b1"], [], ["c1", "c2"]]
    taken = spread_evenly(groups, most, "seed")
    assert len(taken) == len(set(taken)) == min(most, 7)
    counts = [sum(one in taken for one in group) for group in groups if group]
    assert max(counts) - min(counts) <= 1 or most > 4
    assert taken == spread_evenly(groups, most, "seed")
    assert most < 2 or any(taken != spread_evenly(groups, most, f"seed {number}") for number in range(5))


async def test_preference_results_are_equal_at_any_concurrency():
    judge = seeded_judges.pairwise_judge(0.6, 0.2)
    result = pair_runs(run_of_agent("ours"), run_of_agent("theirs"), 40, 0)

    def answer(prompt):
        return judge(world.ModelRequest("", "", prompt.system, prompt.text, "", {}, {}))

    asks = [ask_with(fakes.ScriptedLLM(answer), parallel=parallel) for parallel in (1, 7, 40)]
    texts = [await prefer(ask, result, STUDY_TIME) for ask in asks]
    assert texts[0] == texts[1] == texts[2]
    assert texts[0].wins > 5


async def test_refused_key_interruption_or_bug_stops_questions_and_keeps_answers():
    asking = ask_with(fakes.ScriptedLLM(["x"]))

    async def ask(number: int) -> int:
        await asyncio.sleep(0)
        return 10 // (3 - number)

    answers = await asking.each(range(6), ask, lambda _: None)
    assert answers == [3, 5, 10, None, None, None]
    assert isinstance(asking.stop.bug, ZeroDivisionError)
    asking = ask_with(fakes.ScriptedLLM(["x", "x", LLMAccessError("no credit left")]))

    async def ask(number: int) -> str:
        try:
            return (await asking.llms[0].complete(Prompt(system="s", text=str(number)))).text
        except LLMAccessError as error:
            return str(error)

    answers = await asking.each(range(9), ask, lambda _: None)
    assert answers == ["x", "x", "no credit left", *[None] * 6]
    assert (asking.stop.reason, asking.stop.outage) == ("no credit left", True)
    assert asking.usage[0].calls == 3
    asking = ask_with(fakes.ScriptedLLM(["x"]))
    asking.stop.interrupt()
    assert await asking.each(range(3), asyncio.sleep, lambda _: None) == [None] * 3


async def cost_of_asking(most: float, costs: list[float]) -> tuple[float, Asking]:
    """What questions cost in total that are all asked at once if the budget lets them."""
    llm = fakes.ScriptedLLM([Completion("x", 1, 1, cost_usd=cost) for cost in costs])
    budget = QuestionBudget(most, PriceTable(models={}))
    asking = ask_with(llm, parallel=len(costs), budget=budget)

    async def ask(number: int) -> str:
        await asyncio.sleep(0)  # all that may begin have begun
        return (await asking.llms[0].complete(Prompt(system="s", text=str(number)))).text

    await asking.each(range(len(costs)), ask, lambda _: None)
    return budget.spent(asking.usage), asking


async def test_budget_reserves_highest_cost_so_far_before_each_question():
    spent, asking = await cost_of_asking(3.5, [0.01] + [1.0] * 99)
    assert asking.usage[0].calls == 4
    assert (spent, asking.budget.refused) == (pytest.approx(3.01), True)
    spent, _ = await cost_of_asking(10, [0.01, 0.01, 2.0] + [0.01, 3.0] * 50)
    assert spent <= 10
    spent, asking = await cost_of_asking(1.05, [0.1] * 20)
    assert (spent, asking.usage[0].calls) == (pytest.approx(1.0), 10)
    _, asking = await cost_of_asking(1, [0.0] * 20)
    assert (asking.usage[0].calls, asking.budget.refused) == (20, False)
