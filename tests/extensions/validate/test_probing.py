"""Criteria that are vacuous by construction, and such as are not, before conversations of other tests."""

import json
from dataclasses import replace

import builders as build
import fakes
import pytest
import seeded_judges
import world
from each_row import each_row
from study_judges import STUDY_TIME, as_saved_run, judged_trial, study_asking

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.suite import Suite
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Finding
from ci_evals.extensions.validate.study import probe, questions_for

CRITERIA = ("Nothing is deleted", "The order {} is cancelled", "One in two are glad")


def criteria(test: int) -> list[str]:
    return [one.format(test) for one in CRITERIA]


def suite(name: str, tests: range, *more: dict) -> Suite:
    def test(number: int) -> dict:
        judged = ({"criterion": f"{one} ({number})"} for one in criteria(number))
        evaluations = [{"criterion": "No person is called", "strict": "not_escalated"}, *judged, *more]
        common = {"guidelines": "g", "turns": [{"user": "x"}]}
        return common | {"name": f"T{number}", "evaluations": evaluations}

    return Suite.model_validate({"name": name, "tests": [test(number) for number in tests]})


def played_suite(name: str, tests: range, trials: int = 2, **fields):
    """The run of such a suite: in each conversation the order of its own test is cancelled."""

    def test(number: int):
        texts = [f"{one} ({number})" for one in criteria(number)]
        judged = [build.finding(kind="judged", criterion=text, outcome="passed") for text in texts]
        common = {"findings": (build.finding(), *judged)} | fields
        indexes = range(1, trials + 1)
        return build.test_result(
            f"T{number}",
            guidelines=f"You want order {number} cancelled.",
            user_info={"order": number},
            trials=tuple(
                judged_trial(f"Order {number} is cancelled.", index=index, **common) for index in indexes
            ),
        )

    return build.suite_result(name, *map(test, tests))


def with_findings(run: Results, tests: range, *findings: Finding, keep: bool = True) -> Results:
    """The run, with these findings in all trials of some tests, after or in place of their own."""

    def changed(test: TestResult) -> TestResult:
        kept = [(*(trial.findings if keep else ()), *findings) for trial in test.trials]
        trials = (replace(trial, findings=some) for trial, some in zip(test.trials, kept, strict=True))
        return replace(test, trials=tuple(trials))

    (only,) = run.suites
    results = (changed(test) if number in tests else test for number, test in enumerate(only.tests))
    return build.results(replace(only, tests=tuple(results)))


def judge(asked: world.ModelRequest) -> str:
    """What must not happen passes; what must happen passes where it did; of the glad half pass."""
    criterion = seeded_judges.prompt_block(asked.text, "criterion")
    text = repr(seeded_judges.prompt_block(asked.text, "conversation"))
    if "deleted" in criterion:
        return fakes.judge_answer("pass")
    if "glad" in criterion:
        return fakes.judge_answer("pass" if seeded_judges.seeded_chance(criterion, text) < 0.5 else "fail")
    own = criterion.removeprefix("The order ").partition(" ")[0]
    return fakes.judge_answer("pass" if f"Order {own} is" in text else "fail")


async def probe_run(monkeypatch, run, suites, answer=judge, each=5, **fields):
    questions, _ = questions_for(as_saved_run(run), suites, each, 0)
    with world.llm(answer) as models:
        async with study_asking(models, monkeypatch, **fields) as ask:
            return questions, await probe(ask, questions, STUDY_TIME), models


async def test_criterion_is_vacuous_only_if_all_of_many_probes_pass(monkeypatch):
    run = build.results(played_suite("A", range(12)))
    result, report, models = await probe_run(monkeypatch, run, [suite("A", range(12))])
    vacuous = [one.criterion for one in report.vacuous if "deleted" in one.criterion]
    assert vacuous == [f"Nothing is deleted ({test})" for test in range(12)]
    assert not any("cancelled" in one.criterion for one in report.vacuous)
    assert len(report.vacuous) - 12 == sum("glad" in one.criterion for one in report.vacuous) <= 2
    glad = [one for one in report.criteria if "glad" in one.criterion]
    assert sum(one.share.low <= 0.5 <= one.share.high for one in glad) >= 10
    assert {one.tried for one in report.criteria} == {5}
    vacuous = [question.indexes for question, one in zip(result, report.criteria, strict=True) if one.vacuous]
    assert (vacuous[:2], len(models.asked)) == ([(0, 0, 1), (0, 1, 1)], 12 * 3 * 5)
    run = build.results(played_suite("A", range(3), trials=1))
    _, report, _ = await probe_run(monkeypatch, run, [suite("A", range(3))])
    assert {one.tried for one in report.criteria} == {2}
    assert not report.vacuous
    run = build.results(played_suite("A", range(6)))
    answer = fakes.judge_answer("cannot_tell")
    _, report, _ = await probe_run(monkeypatch, run, [suite("A", range(6))], lambda _: answer, parallel=2)
    assert {(one.tried, one.share, one.vacuous) for one in report.criteria} == {(0, None, False)}
    assert {one.undecided for one in report.criteria} == {5}


async def test_criterion_is_probed_with_user_data_of_other_tests_its_own_suite_first(monkeypatch):
    run = build.results(played_suite("A", range(12)))
    _, _, models = await probe_run(monkeypatch, run, [suite("A", range(1))])
    asked = [one.text for one in models.asked if "The order 0 is cancelled" in one.text]
    orders = [seeded_judges.prompt_block(text, "background")["user_info"]["order"] for text in asked]
    assert (0 in orders, len(set(orders))) == (False, 5)
    for order, text in zip(orders, asked, strict=True):
        assert seeded_judges.prompt_block(text, "conversation")[0]["agent"] == f"Order {order} is cancelled."
        wanted = seeded_judges.prompt_block(text, "background")["guidelines"]
        assert wanted == f"You want order {order} cancelled."
    run = build.results(played_suite("A", range(3), trials=1), played_suite("B", range(20, 30), trials=1))
    questions, _ = questions_for(as_saved_run(run), [suite("A", range(3))], 5, 0)
    for question in questions:
        assert [other.suite for other in question.others] == ["A", "A", "B", "B", "B"]
        assert question.test not in {other.test.name for other in question.others[:2]}
    polite = {"criterion": "It is polite"}
    shared = build.finding(kind="judged", **polite)
    run = with_findings(build.results(played_suite("A", range(6))), range(4), shared)
    questions, unknown = questions_for(as_saved_run(run), [suite("A", range(6), polite)], 5, 0)
    probes = [one for one in questions if one.evaluation.criterion == "It is polite"]
    assert [one.test for one in probes] == ["T0", "T1", "T2", "T3"]
    assert ({other.test.name for one in probes for other in one.others}, unknown) == ({"T4", "T5"}, 2)


async def test_rubric_criterion_counts_as_passed_in_probe_from_its_pass_at_grade(monkeypatch):
    levels = [{"name": "no", "score": 0}, {"name": "some", "score": 0.6}, {"name": "yes", "score": 1}]
    graded = {"criterion": "It is done", "rubric": levels, "passAt": 0.6}
    graded_too = graded | {"criterion": "It is well done", "passAt": 0.9}
    findings = [build.finding(kind="judged", criterion=one["criterion"]) for one in (graded, graded_too)]
    run = with_findings(build.results(played_suite("A", range(6))), range(1), *findings, keep=False)

    def answer(asked: world.ModelRequest) -> str:
        (name,) = [one["dimension"] for one in seeded_judges.prompt_block(asked.text, "rubric")]
        level = {"dimension": name, "reason": "So.", "evidence": [], "level": "some"}
        answer = {"reasoning": "So.", "dimensions": [level], "rests_on": "absence", "looked_at": [1]}
        return json.dumps(answer)

    _, report, _ = await probe_run(monkeypatch, run, [suite("A", range(1), graded, graded_too)], answer)
    numbers = [(one.criterion, one.passed, one.tried, one.vacuous) for one in report.criteria]
    assert numbers == [("It is done", 5, 5, True), ("It is well done", 0, 5, False)]


@each_row(("run", "message"), [
    (build.results(played_suite("Other", range(3))), "holds no judged criterion of these suites"),
    (build.results(played_suite("A", range(1))), "holds no conversations of other tests"),
    (build.results(played_suite("A", range(3), turns=())), "no finished conversation to judge again"),
    (build.results(played_suite("A", range(3), status=EndState.FAILED)), "no finished conversation"),
    (build.results(), "it has no judged verdict to judge again"),
])  # fmt: skip
def test_results_without_anything_to_probe_are_refused(run, message):
    with pytest.raises(UsageError, match=message):
        questions_for(as_saved_run(run), [suite("A", range(3))], 5, 0)
