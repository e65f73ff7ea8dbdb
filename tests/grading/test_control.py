"""Control questions: judges that do not judge are caught, judges that do are let through."""

import random
from collections import Counter
from itertools import product
from math import comb

import fakes
import pytest
from each_row import each_row
from seeded_judges import prompt_block

from ci_evals.domain.errors import LLMError
from ci_evals.grading import control
from ci_evals.support.redaction import Redactor

RUNS = 100
TRUTH = {one.criterion.criterion: one.answer for one in control.questions()}
ANSWERS = ("pass", "fail", "cannot_tell")


def judge_answering(decide, *, quoting: bool = True) -> fakes.ScriptedLLM:
    """A judge whose answers are all well-formed; `decide` gives the verdict, from the right one."""

    def answer(prompt):
        first = prompt_block(prompt.text, "conversation")[0]
        quotes = [(1, first["agent"][:30])] if quoting else []
        right = TRUTH[prompt_block(prompt.text, "criterion")]
        return fakes.judge_answer(decide(right), "So it is here.", *quotes)

    return fakes.ScriptedLLM(answer)


def judge_with_5_percent_errors(seed: int):
    """A judge that errs in 5 % of its answers."""
    luck = random.Random(f"good {seed}")

    def decide(right):
        return luck.choice([one for one in ANSWERS if one != right]) if luck.random() < 0.05 else right

    return judge_answering(decide)


def at_random(*answers):
    def judge(seed: int):
        luck = random.Random(f"{answers} {seed}")
        return judge_answering(lambda _: luck.choice(answers))

    return judge


async def count_passed(judge, runs: int = RUNS) -> int:
    """How many of so many judges pass the check."""
    return sum([(await control.ask(judge(seed), Redactor())).passed for seed in range(runs)])


@pytest.mark.slow  # it computes
@each_row("answers", [ANSWERS, ("pass", "fail"), ("pass", "pass", "pass", "fail")])
async def test_judge_that_answers_at_random_fails_in_99_of_100_runs(answers):
    assert await count_passed(at_random(*answers)) <= RUNS // 100


async def test_judge_with_constant_or_unusable_answers_fails():
    for verdict, quoting in product(ANSWERS, (True, False)):
        judge = judge_answering(lambda _, verdict=verdict: verdict, quoting=quoting)
        assert not await count_passed(lambda _, judge=judge: judge, runs=1), (verdict, quoting)
    for answers in ([fakes.judge_answer("pass", "][")], [LLMError("the judge is away")], ["gibberish"]):
        result = await control.ask(fakes.ScriptedLLM(answers), Redactor())
        assert (result.right, result.passed) == (0, False)
        assert "16 without a usable answer" in result.failure


async def test_judge_with_5_percent_errors_passes_in_99_of_100_runs():
    assert await count_passed(judge_with_5_percent_errors) >= RUNS - RUNS // 100


def chance(share_of: dict[str, float]) -> float:
    """The chance to pass of a judge that is right on each kind of question with these chances."""
    kinds = Counter(TRUTH.values())

    def exactly(kind: str, right: int) -> float:
        share, asked = share_of[kind], kinds[kind]
        return comb(asked, right) * share**right * (1 - share) ** (asked - right)

    return sum(
        exactly("pass", p) * exactly("fail", f) * exactly("cannot_tell", c)
        for p, f, c in product(*(range(kinds[kind] + 1) for kind in ANSWERS))
        if p + f + c >= 0.75 * kinds.total() and min(p / kinds["pass"], f / kinds["fail"]) >= 2 / 3
    )


def test_control_questions_have_all_answers_scripts_and_documented_chances():
    """docs/judge-statistics.md has these chances."""
    assert Counter(TRUTH.values()) == {"pass": 6, "fail": 6, "cannot_tell": 4}
    assert 1 - chance(dict.fromkeys(ANSWERS, 0.95)) == pytest.approx(0.0049, abs=0.0001)
    assert chance(dict.fromkeys(ANSWERS, 1 / 3)) == pytest.approx(0.0006, abs=0.0001)
    assert chance({"pass": 0.5, "fail": 0.5, "cannot_tell": 0}) == pytest.approx(0.0002, abs=0.0001)
    items = "".join(TRUTH)
    assert len(TRUTH) == len(control.questions()) >= 10
    assert set(TRUTH.values()) == set(ANSWERS)
    assert any("\u4e00" <= char <= "\u9fff" for char in items)
    assert any("\u0600" <= char <= "\u06ff" for char in items)


async def test_judge_that_passes_half_of_the_failing_questions_fails():
    turn = iter([True, False] * 3)

    def decide(right):
        return "pass" if right == "fail" and next(turn) else right

    result = await control.ask(judge_answering(decide), Redactor())
    assert (result.right, result.passed) == (13, False)
    reason = "but only 3 of the 6 whose answer is 'fail' (4 required)"
    assert result.failure == f"answered 13 of 16 control questions right, {reason}"
