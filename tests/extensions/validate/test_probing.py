"""Criteria that are vacuous by construction, and such as are not, before conversations of other tests."""

import json
from dataclasses import replace

import builders as build
import fakes
import pytest
import seeded_judges
import world
from study_judges import STUDY_TIME, as_saved_run, judged_trial, study_asking

from ci_evals.domain.errors import UsageError
from ci_evals.domain.suite import Suite
from ci_evals.domain.transcript import EndState
from ci_evals.extensions.validate.study import probe, questions_for

CRITERIA = ("Nothing is deleted", "The order {} is cancelled", "One in two are glad")


def criteria(test: int) -> list[str]:
    return [one.format(test) for one in CRITERIA]


def suite(name: str, tests: range, *more: dict) -> Suite:
    return Suite.model_validate(
        {
            "name": name,
            "tests": [
                {
                    "name": f"T{test}",
                    "guidelines": "g",
                    "turns": [{"user": "x"}],
                    "evaluations": [
                        {"criterion": "No person is called", "strict": "not_escalated"},
                        *({"criterion": f"{one} ({test})"} for one in criteria(test)),
                        *more,
                    ],
                }
                for test in tests
            ],
        }
    )


def played(name: str, tests: range, trials: int = 2, **fields):
    """The run of such a suite: in each conversation the order of its own test is cancelled."""

    def findings(test: int):
        judged = [
            build.finding(kind="judged", criterion=f"{one} ({test})", outcome="passed")
            for one in criteria(test)
        ]
        return (build.finding(), *judged)

    return build.suite_result(
        name,
        *(
            build.test_result(
                f"T{test}",
                guidelines=f"You want order {test} cancelled.",
                user_info={"order": test},
                trials=tuple(
                    judged_trial(
                        f"Order {test} is cancelled.", index=index, **{"findings": findings(test)} | fields
                    )
                    for index in range(1, trials + 1)
                ),
            )
            for test in tests
        ),
    )


def judge(asked: world.ModelRequest) -> str:
    """What must not happen passes; what must happen passes where it did; of the glad half pass."""
    criterion, text = (
        seeded_judges.prompt_block(asked.text, "criterion"),
        repr(seeded_judges.prompt_block(asked.text, "conversation")),
    )
    if "deleted" in criterion:
        return fakes.judge_answer("pass")
    if "glad" in criterion:
        return fakes.judge_answer("pass" if seeded_judges.seeded_chance(criterion, text) < 0.5 else "fail")
    own = criterion.removeprefix("The order ").partition(" ")[0]
    return fakes.judge_answer("pass" if f"Order {own} is" in text else "fail")


async def probed(monkeypatch, run, suites, answer=judge, each=5, **fields):
    questions, _ = questions_for(as_saved_run(run), suites, each, 0)
    with world.llm(answer) as models:
        async with study_asking(models, monkeypatch, **fields) as ask:
            return questions, await probe(ask, questions, STUDY_TIME), models


async def test_what_passes_everywhere_is_found_and_nothing_else(monkeypatch):
    """By construction every first criterion is vacuous, no second one is; of the third the share is known."""
    run = build.results(played("A", range(12)))
    found, report, models = await probed(monkeypatch, run, [suite("A", range(12))])
    assert [one.criterion for one in report.vacuous if "deleted" in one.criterion] == [
        f"Nothing is deleted ({test})" for test in range(12)
    ]
    assert not any("cancelled" in one.criterion for one in report.vacuous)
    assert len(report.vacuous) - 12 == sum("glad" in one.criterion for one in report.vacuous) <= 2
    glad = [one for one in report.criteria if "glad" in one.criterion]
    assert sum(one.share.low <= 0.5 <= one.share.high for one in glad) >= 10
    assert {one.tried for one in report.criteria} == {5}
    vacuous = [question.indexes for question, one in zip(found, report.criteria, strict=True) if one.vacuous]
    assert vacuous[:2] == [(0, 0, 1), (0, 1, 1)]
    assert len(models.asked) == 12 * 3 * 5


async def test_all_but_the_criterion_is_the_conversation_s_own(monkeypatch):
    """Five conversations of five other tests, each with the data and guidelines it was held by."""
    run = build.results(played("A", range(12)))
    _, _, models = await probed(monkeypatch, run, [suite("A", range(1))])
    asked = [one.text for one in models.asked if "The order 0 is cancelled" in one.text]
    orders = [seeded_judges.prompt_block(text, "background")["user_info"]["order"] for text in asked]
    assert 0 not in orders
    assert len(set(orders)) == 5
    for order, text in zip(orders, asked, strict=True):
        assert seeded_judges.prompt_block(text, "conversation")[0]["agent"] == f"Order {order} is cancelled."
        assert (
            seeded_judges.prompt_block(text, "background")["guidelines"]
            == f"You want order {order} cancelled."
        )


async def test_other_suites_help_out(monkeypatch):
    """Where a suite has too few other tests; its own come first."""
    run = build.results(played("A", range(3), trials=1), played("B", range(20, 30), trials=1))
    questions, _ = questions_for(as_saved_run(run), [suite("A", range(3))], 5, 0)
    for question in questions:
        assert [other.suite for other in question.others] == ["A", "A", "B", "B", "B"]
        assert question.test not in {other.test.name for other in question.others[:2]}


async def test_too_few_conversations_prove_nothing(monkeypatch):
    """Two that pass are no proof, and neither are undecided ones."""
    run = build.results(played("A", range(3), trials=1))
    _, report, _ = await probed(monkeypatch, run, [suite("A", range(3))])
    assert {one.tried for one in report.criteria} == {2}
    assert not report.vacuous
    run = build.results(played("A", range(6)))
    _, report, _ = await probed(
        monkeypatch, run, [suite("A", range(6))], lambda _: fakes.judge_answer("cannot_tell"), parallel=2
    )
    assert {(one.tried, one.share, one.vacuous) for one in report.criteria} == {(0, None, False)}
    assert {one.undecided for one in report.criteria} == {5}


async def test_a_criterion_of_several_tests_is_not_held_against_itself():
    """Before conversations of a test that asks the very same it should pass."""
    shared = build.finding(kind="judged", criterion="It is polite")
    run = build.results(played("A", range(6)))
    tests = [
        replace(
            test, trials=tuple(replace(trial, findings=(*trial.findings, shared)) for trial in test.trials)
        )
        if number < 4
        else test
        for number, test in enumerate(run.suites[0].tests)
    ]
    run = build.results(replace(run.suites[0], tests=tuple(tests)))
    questions, unknown = questions_for(
        as_saved_run(run), [suite("A", range(6), {"criterion": "It is polite"})], 5, 0
    )
    polite = [one for one in questions if one.evaluation.criterion == "It is polite"]
    assert [one.test for one in polite] == ["T0", "T1", "T2", "T3"]
    assert {other.test.name for one in polite for other in one.others} == {"T4", "T5"}
    assert unknown == 2


async def test_a_criterion_with_a_rubric_is_graded(monkeypatch):
    """It passes where its grade does; the levels are the suite's."""
    levels = [{"name": "no", "score": 0}, {"name": "some", "score": 0.6}, {"name": "yes", "score": 1}]
    graded = {"criterion": "It is done", "rubric": levels, "passAt": 0.6}
    graded_too = graded | {"criterion": "It is well done", "passAt": 0.9}
    run = build.results(played("A", range(6)))
    tests = tuple(
        replace(
            test,
            trials=tuple(
                replace(
                    trial,
                    findings=tuple(
                        build.finding(kind="judged", criterion=one["criterion"])
                        for one in (graded, graded_too)
                    ),
                )
                for trial in test.trials
            ),
        )
        if not number
        else test
        for number, test in enumerate(run.suites[0].tests)
    )
    run = build.results(replace(run.suites[0], tests=tests))

    def answer(asked: world.ModelRequest) -> str:
        (name,) = [one["dimension"] for one in seeded_judges.prompt_block(asked.text, "rubric")]
        level = {"dimension": name, "reason": "So.", "evidence": [], "level": "some"}
        answer = {"reasoning": "So.", "dimensions": [level], "rests_on": "absence", "looked_at": [1]}
        return json.dumps(answer)

    _, report, _ = await probed(monkeypatch, run, [suite("A", range(1), graded, graded_too)], answer)
    assert [(one.criterion, one.passed, one.tried, one.vacuous) for one in report.criteria] == [
        ("It is done", 5, 5, True),
        ("It is well done", 0, 5, False),
    ]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (build.results(played("Other", range(3))), "holds no judged criterion of these suites"),
        (build.results(played("A", range(1))), "holds no conversations of other tests"),
        (build.results(played("A", range(3), turns=())), "no finished conversation to judge again"),
        (build.results(played("A", range(3), status=EndState.FAILED)), "no finished conversation"),
        (build.results(), "it has no judged verdict to judge again"),
    ],
)
def test_where_there_is_nothing_to_probe(run, message):
    """Told before anybody is asked."""
    with pytest.raises(UsageError, match=message):
        questions_for(as_saved_run(run), [suite("A", range(3))], 5, 0)
