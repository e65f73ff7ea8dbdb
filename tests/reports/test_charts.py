"""The charts of the page: what they show, their scales, and that no results can break them."""

import math
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from xml.etree import ElementTree as ET

import builders as build
import cases
import hostile_text
from each_row import each_row
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.domain.base import Interval
from ci_evals.domain.results.process import ProcessSummary, Times
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import ScoreGroup
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.reports.page.charts.frame import Figure
from ci_evals.reports.page.charts.quality import PricedRun, frontier
from ci_evals.reports.page.charts.scale import Scale, above, decades, ticks
from ci_evals.reports.page.overview import overview
from ci_evals.reports.story.comparison_runs import ComparisonRun, ComparisonRuns
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.reports.story.story import story_of
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.usage import latency_of

SVG = "{http://www.w3.org/2000/svg}"
ACROSS = {"x", "x1", "x2", "cx", "width", "r"}
DOWN = {"y", "y1", "y2", "cy", "height"}
DRAWN = {"svg", "title", "desc", "g", "text", "line", "polyline", "polygon", "circle", "rect"}


def score_trial(points: float, index: int = 1, *, seconds=(1.0,), **fields):
    """A trial with this score, whose replies took these seconds."""
    parts = [("passed", points)] * (points > 0) + [("failed", 100 - points)] * (points < 100)
    findings = tuple(build.finding(outcome, weight=weight, category="tone") for outcome, weight in parts)
    text = tuple(build.turn(n, latency_seconds=each) for n, each in enumerate(seconds, start=1))
    return build.trial_result(index, **{"findings": findings, "turns": text} | fields)


def run(tests: dict[str, tuple], run_id: str = "head", suite: str = "S", **fields) -> Results:
    """Results of one suite, with tests of these trials."""
    made = [build.test_result(name, trials=trials) for name, trials in tests.items()]
    trials = [trial for test in made for trial in test.trials]
    fields = {"run": build.run_info(id=run_id), "latency": latency_of(trials)} | fields
    tone = (ScoreGroup(name="tone", score=50, tests=1, passed=1, failed=1, undecided=0),)
    return build.results(build.suite_result(suite, *made, categories=tone), **fields)


def charts_of(head: Results, base: Results | None = None, others=()) -> dict[str, Figure]:
    """All charts of a run by their names, compared with `base` if it is given."""
    if base:
        head = replace(head, comparison=RunComparer(head, base).comparison())
    made = overview.figures(story_of(head, ComparisonRuns(base, others)))
    for figure in made:
        check(figure)
    assert len({figure.id for figure in made}) == len(made)
    return {figure.id.removeprefix("chart-"): figure for figure in made}


def check(figure: Figure) -> None:
    """Asserts that a chart has sound markup, without style or link, all within its view."""
    root = ET.fromstring(figure.svg)
    width, height = [float(part) for part in root.attrib["viewBox"].split()][2:]
    assert root.attrib["role"] == "img"
    assert root.find(f"{SVG}title").text
    assert figure.says.endswith(".")
    assert figure.reading.endswith(".")
    assert all(len(row) == len(figure.headers) for row in figure.rows)
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in DRAWN
        for name, value in element.attrib.items():
            assert name in {"class", "id", "viewBox", "role", "points"} | ACROSS | DOWN or name[:5] == "aria-"
            if name in ACROSS:
                assert 0 <= float(value) <= width, (element.tag, name, value)
            if name in DOWN:
                assert 0 <= float(value) <= height, (element.tag, name, value)
        if "points" in element.attrib:
            numbers = list(map(float, element.attrib["points"].replace(",", " ").split()))
            assert all(-7 <= number <= width + 7 for number in numbers[::2])
            assert all(0 <= number <= height for number in numbers[1::2])
        if element.tag == f"{SVG}rect":
            right = float(element.attrib["x"]) + float(element.attrib["width"])
            low = float(element.attrib["y"]) + float(element.attrib["height"])
            assert right <= width + 0.2
            assert low <= height + 0.2


def chart_texts(figure: Figure) -> list[str]:
    """Everything that is written in a chart."""
    return [element.text or "" for element in ET.fromstring(figure.svg).iter(f"{SVG}text")]


def count_of_class(figure: Figure, kind: str) -> int:
    """How many elements have this class, those of the key apart."""
    return sum(kind in element.get("class", "").split() for element in ET.fromstring(figure.svg).iter())


def comparison_run(number: int, score=90.0, cost=0.5, **fields) -> ComparisonRun:
    """A run of so many days before."""
    at, name = build.STARTED_AT - timedelta(days=number), f"run-{number}"
    known = {"label": name, "id": name, "at": at, "commit": f"{number:x}" * 40, "interval": None}
    known |= {"score": score, "cost_usd": cost, "run_outcome": RunOutcome.PASSED}
    return ComparisonRun(**known | fields)


PRICED = run({"a": (score_trial(85),)}, usage=Usage(cost_usd=0.4))


def test_score_chart_marks_scores_below_minimum_also_with_undecided_as_failed():
    minimum = build.decision(build.check(name="min-score", required=80, seen=60, passed=False))
    figure = charts_of(run({"a": (score_trial(60),)}, gate=minimum))["scores"]
    assert "60.0, minimum 80" in chart_texts(figure)
    assert figure.rows == [("S", "60.0", "n/a", "80", "")]
    assert count_of_class(figure, "c-bad") == 2
    figure = charts_of(cases.made("undecided"))["scores"]
    assert "50.0, minimum 80" in chart_texts(figure)
    assert "100.0, minimum 80" not in chart_texts(figure)
    assert figure.says == "Refunds: 100.0; 1 suite below the minimum if undecided counts as failed."


def test_score_chart_lists_run_before_suites_and_names_the_lowest_and_highest():
    def suites(*points):
        tests = (build.test_result(trials=(score_trial(score),)) for score in points)
        return list(map(build.suite_result, ("one", "two"), tests))

    base = build.results(*suites(90, 90), run=build.run_info(id="base"))
    figure = charts_of(build.results(*suites(40, 80)), base)["scores"]
    rows = [("All suites", "60.0", "90.0"), ("one", "40.0", "90.0"), ("two", "80.0", "90.0")]
    assert [(row[0], row[1], row[4]) for row in figure.rows] == rows
    assert "Lowest: one, 40.0; highest: two, 80.0" in figure.says


def test_changes_chart_orders_changed_tests_and_truncates_only_the_picture():
    before = {"a": (score_trial(100),), "b": (score_trial(50),), "c": (score_trial(70),), "d": ()}
    after = {"a": (score_trial(90),), "b": (score_trial(60),), "c": (score_trial(70),), "d": ()}
    after["e"] = before["e"] = (score_trial(20),)
    after["a2"], before["a2"] = (score_trial(10),), (score_trial(100),)
    figure = charts_of(run(after), run(before, "base"))["changes"]
    shown = [" ".join(row[1:]) for row in figure.rows]
    assert shown == ["a2 100.0 10.0 −90.0", "a 100.0 90.0 −10.0", "b 50.0 60.0 +10.0"]
    assert figure.says == "2 tests dropped, 1 rose, 2 unchanged."
    many = {f"t{number}": (score_trial(number),) for number in range(40)}
    figure = charts_of(run(many), run(dict.fromkeys(many, (score_trial(100),)), "base"))["changes"]
    assert "and 15 more tests" in chart_texts(figure)
    assert len(figure.rows) == 40


def test_changes_chart_needs_a_comparison_but_no_results_of_the_baseline():
    head = run({"a": (score_trial(20),), "b": (score_trial(100),)})
    base = run({"a": (score_trial(100),), "b": (score_trial(100),)}, "base")
    comparison = RunComparer(head, base).comparison()
    figures = charts_of(replace(head, comparison=comparison))
    assert [row[1] for row in figures["changes"].rows] == ["a"]
    assert figures["changes"].says == "1 test dropped, 0 rose, 1 unchanged."
    assert "changes" not in charts_of(head)


def test_latency_chart_counts_replies_and_marks_median_and_p95():
    near = run({"a": (score_trial(100, seconds=(1, 2, 2, 3)),)})
    figure = charts_of(near, run({"a": (score_trial(100, seconds=(4,)),)}, "base"))["latency"]
    assert sum(int(row[1]) for row in figure.rows) == 4
    assert "this run: median 2.00 s, p95 3.00 s" in chart_texts(figure)
    assert "baseline: median 4.00 s, p95 4.00 s" in chart_texts(figure)
    far = charts_of(run({"a": (score_trial(100, seconds=(0, 0.1, 0.2, 300)),)}))["latency"]
    assert sum(int(row[1]) for row in far.rows) == 4
    assert far.headers[0] == "seconds"


def test_cost_chart_names_pareto_frontier_of_priced_runs_and_who_beats_this_run():
    others = (comparison_run(1, 95, 1.5), comparison_run(2, 70, 0.9), comparison_run(3, None, 0.9))
    others += (comparison_run(4, 70, None),)
    figure = charts_of(PRICED, others=others)["cost"]
    assert [row[0] for row in figure.rows] == ["this run", "run-2", "run-1"]
    assert figure.rows[1][4] == "this run"
    assert figure.says == "2 of 3 runs on the Pareto frontier: this run; run-1."
    dearer = run({"a": (score_trial(60),)}, usage=PRICED.usage)
    beaten = charts_of(dearer, others=(comparison_run(1, 70, 0.1, models=("m",)),))["cost"]
    assert beaten.says == "1 of 2 runs on the Pareto frontier: run-1. This run is beaten by run-1."
    assert "cost" not in charts_of(run({"a": (score_trial(85),)}), others=others)


def test_cost_chart_needs_third_run_or_other_model_and_shortens_unambiguous_paths():
    assert "cost" not in charts_of(PRICED, others=(comparison_run(1),))
    assert "cost" in charts_of(PRICED, others=(comparison_run(1, models=("another",)),))
    assert "cost" in charts_of(PRICED, others=(comparison_run(1), comparison_run(2)))
    paths = ("past/large", "past/small/", "a/x", "b/x")
    others = tuple(comparison_run(number, label=path) for number, path in enumerate(paths, start=1))
    names = {row[0] for row in charts_of(PRICED, others=others)["cost"].rows}
    assert names == {"this run", "large", "small", "a/x", "b/x"}


def test_trend_chart_needs_three_runs_and_shows_them_in_order_of_time():
    head = run({"a": (score_trial(85),)})
    failed = comparison_run(1, 70, run_outcome=RunOutcome.FAILED)
    two = (failed, comparison_run(2, 90, interval=Interval(low=80, high=95)))
    figure = charts_of(head, others=two)["trend"]
    assert [row[3] for row in figure.rows] == ["90.0", "70.0", "85.0"]
    assert figure.says == "3 runs, 2026-11-19 to 2026-11-21: scores 70.0 to 90.0; 2 passed, 1 failed."
    assert "trend" not in charts_of(head, others=two[:1])


def test_runs_without_a_verdict_are_in_the_trend_but_not_in_the_cost_chart():
    comparison_runs = (
        comparison_run(1, 99, 0.01, run_outcome=RunOutcome.NO_VERDICT),
        comparison_run(2, 70, models=("another",)),
        comparison_run(3, None, run_outcome=RunOutcome.SKIPPED),
    )
    figures = charts_of(PRICED, others=comparison_runs)
    assert [row[0] for row in figures["cost"].rows] == ["this run", "run-2"]
    outcomes = (RunOutcome.PASSED, RunOutcome.NO_VERDICT, RunOutcome.PASSED)
    assert [row[5] for row in figures["trend"].rows] == [outcome.value.words for outcome in outcomes]
    assert figures["trend"].says.endswith("; 2 passed, 1 without a verdict.")
    unsure = replace(PRICED, gate=build.decision(passed=False, exit_code=3))
    assert "cost" not in charts_of(unsure, others=comparison_runs)


@each_row("text", hostile_text.CORPUS)
def test_hostile_names_do_not_break_charts(text):
    name = text or "x"
    role = RoleUsage(role="judge", model=name, calls=2, input_tokens=900, output_tokens=100)
    head = run({name: (score_trial(10),)}, suite=name, usage=Usage(cost_usd=1, by_role=(role,)))
    base = run({name: (score_trial(100),)}, "base", name)
    others = tuple(comparison_run(n, label=name, commit=name, cost=n) for n in range(1, 5))
    assert {"scores", "changes", "cost", "trend"} <= set(charts_of(head, base, others))


def test_charts_without_data_are_omitted_and_extreme_numbers_are_charted():
    assert charts_of(run({"a": ()})) == {}
    least = 5e-324
    head = run({"a": (score_trial(60, seconds=(least, least)),)}, usage=Usage(cost_usd=least))
    assert charts_of(head, others=(comparison_run(1, cost=least),))["latency"].rows == [("0 to 1", "2")]
    others = (comparison_run(1, cost=1.0), comparison_run(2, cost=least))
    assert {"cost", "latency"} <= set(charts_of(head, others=others))
    unscored = build.suite_result("S", build.test_result(trials=(build.trial_result(status="failed"),)))
    minimum = build.decision(build.check(name="min-score", required=1e300, seen=None, passed=False))
    assert "scores" not in charts_of(build.results(unscored, unscored, score=50, gate=minimum))
    assert charts_of(run({"a": (score_trial(60),)}, gate=minimum))["scores"].rows[0][1] == "60.0"


seconds = st.sampled_from([0.0, 5e-324, 1e-12, 0.004, 0.5, 1.0, 1.1, 7.0, 3600.0, 1e9])
scores = st.one_of(st.sampled_from([0.0, 50.0, 99.96, 100.0]), st.floats(0, 100).map(lambda s: round(s, 2)))
dollars = st.one_of(st.none(), st.sampled_from([0.0, 5e-324, 1e-9, 0.01, 0.3, 1.0, 1e12]))
intervals = st.one_of(st.none(), st.tuples(scores, scores).map(lambda s: Interval(low=min(s), high=max(s))))
trials = st.builds(
    lambda score, state, seconds: score_trial(score, status=state, seconds=seconds),
    scores,
    st.sampled_from(["completed", "stopped", "failed", "agent_error", "interrupted"]),
    st.lists(seconds, max_size=3),
)
runs = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(trials, max_size=3).map(tuple), max_size=6)
others = st.lists(
    st.builds(
        lambda number, score, cost, interval, run_outcome: comparison_run(
            number, score, cost, interval=interval, run_outcome=run_outcome
        ),
        st.integers(0, 400),
        st.one_of(st.none(), scores),
        dollars,
        intervals,
        st.sampled_from(RunOutcome),
    ),
    max_size=6,
).map(tuple)
times = st.builds(Times, agent=seconds, user=seconds, judge=seconds, other=seconds)


@settings(max_examples=examples(60))
@given(runs, st.none() | runs, others, st.none() | times, dollars, intervals)
def test_charts_of_any_results_are_valid(head, base, comparison_runs, spent, cost, interval):
    known = {"process": ProcessSummary(times=spent), "usage": Usage(cost_usd=cost), "interval": interval}
    here = run({**head, "z": ()}, **known)
    charts_of(here, run({**base, "z": ()}, "base") if base is not None else None, comparison_runs)


def test_charts_of_thousands_of_suites_stay_small_and_their_table_lists_all():
    tests = (build.test_result(trials=(score_trial(number // 20),)) for number in range(2000))
    suites = [build.suite_result(f"suite {number}", test) for number, test in enumerate(tests)]
    figures = charts_of(build.results(*suites))
    assert len(figures["scores"].rows) == 2001
    assert sum(len(figure.svg) for figure in figures.values()) < 40_000


def test_scale_clips_values_at_its_ends():
    up = Scale(0, 100, 200, 0)
    assert (up(0), up(50), up(100), up(-3), up(1e9)) == (200, 100, 0, 200, 0)
    logarithmic = Scale(1, 100, 0, 10, log=True)
    assert (logarithmic(1), logarithmic(10), logarithmic(1000)) == (0, 5, 10)
    assert Scale(7, 7, 0, 10)(7) == 5


def test_linear_and_logarithmic_ticks_are_at_round_numbers():
    assert ticks(0, 100) == (0, 20, 40, 60, 80, 100)
    assert ticks(0, 1) == (0, 0.2, 0.4, 0.6, 0.8, 1)
    assert ticks(70, 100) == (70, 80, 90, 100)
    assert ticks(0, 3e-7) == (0, 1e-7, 2e-7, 3e-7)
    assert ticks(5, 5) == (5,)
    assert decades(0.03, 1.2) == (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)
    assert decades(1e-3, 1e3) == (1e-3, 1e-2, 1e-1, 1, 10, 100, 1000)
    assert decades(5, 5) == (5, 10)


@given(st.floats(1e-12, 1e12), st.floats(1, 1e9))
def test_axis_ends_close_above_value_and_log_ticks_cover_range_in_few_steps(value, factor):
    high = above(value)
    assert value * (1 - 1e-6) <= high <= 2.01 * value
    assert 2 <= len(ticks(0, high)) <= 7
    result = decades(value, value * factor)
    assert 2 <= len(result) <= 9
    assert result[0] <= value * (1 + 1e-6)
    assert result[-1] >= value * factor * (1 - 1e-6)
    assert all(math.log10(b / a) > 0.2 for a, b in pairwise(result))


def names(runs) -> str:
    return "".join(one.name for one in runs)


def test_frontier_of_five_agents_excludes_the_dominated_one():
    """The exercise of the lecture on evaluation: E costs more than B, C and D, and is worse than all."""
    costs, points = (1.50, 0.80, 0.40, 0.30, 0.90), (95, 90, 85, 80, 70)
    *better, worst = agents = list(map(PricedRun, "ABCDE", costs, points))
    assert names(frontier(agents)) == "DCBA"
    assert names(one for one in better if one.dominates(worst)) == "BCD"


@each_row(("runs", "best"), [
    ([], ""),
    ([("a", 1, 50)], "a"),
    ([("a", 1, 50), ("b", 1, 50)], "ab"),
    ([("a", 1, 50), ("b", 1, 60)], "b"),
    ([("a", 1, 50), ("b", 2, 50)], "a"),
    ([("a", 0, 0), ("b", 5, 100)], "ab"),
])  # fmt: skip
def test_pareto_frontier_keeps_equal_runs_and_drops_worse_run_at_same_value(runs, best):
    assert names(frontier(PricedRun(*one) for one in runs)) == best


candidates = st.lists(
    st.builds(PricedRun, st.text(max_size=1), st.sampled_from([0.0, 0.1, 0.5, 2.0]), st.integers(0, 4)),
    max_size=8,
)


@given(candidates)
def test_pareto_frontier_contains_exactly_the_undominated_runs(found):
    best = frontier(found)
    for one in found:
        assert (one in best) is not any(other.dominates(one) for other in found)
    assert list(map(id, best)) == list(map(id, sorted(best, key=lambda one: (one.cost, -one.score))))
