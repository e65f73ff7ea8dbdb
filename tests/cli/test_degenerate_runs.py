"""Comparisons of very few trials or of agents that are down: each has a defined result.

The agents are functions: one says yes, one no, one is down for half of the tests, and one for all.
"""

import json
from pathlib import Path

import pytest
from commands import ci_evals, comment_and_page_show, read_results
from each_row import each_row

pytestmark = pytest.mark.slow
AGENTS = {
    "good": 'return "yes"',
    "bad": 'return "no"',
    "half": 'assert int(message) % 2, "down"; return "yes"',
    "down": 'assert False, "down"',
}
GOOD, BAD, HALF, DOWN = (f"adapter=python:{name}:reply" for name in AGENTS)
ONE_RUN = ("--baseline=one/0", "--history=one")
AUTO, ALWAYS = "--both-sides=auto", "--both-sides=always"
TOO_FEW = "too few trials to tell a drop from chance."
NO_VERDICT = f"! No verdict: regression was not checked: the score fell, but there are {TOO_FEW[:-1]}"
BROKE = "Passed in the baseline, failed now"
PROVEN = "Proven: the score fell by more than chance explains"
NO_CHANGE = "Evals passed: 100 / 100, no change seen against the baseline"
MAY_GO_UNSEEN = "can go unseen."


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The agents, and recorded runs of them: four of each, of six tests with three trials."""
    path = tmp_path_factory.mktemp("runs")
    for name, body in AGENTS.items():
        (path / f"{name}.py").write_text(f"def reply(message, session):\n    {body}\n")
    for name, agent in (("good", GOOD), ("bad", BAD)):
        for number in range(4):
            record(path, f"{name}/{number}", 6, 3, head=agent)
    record(path, "one/0", 6, 3)
    return path


def run(folder: Path, tests: int, *options: str, head: str = GOOD):
    suite = {"name": "Yes", "tests": [_test(number) for number in range(tests)]}
    (folder / f"{tests}.json").write_text(json.dumps(suite))
    common = ("--provider=offline", "--agent-in-process", "--quiet", "--min-score=0", f"--{head}")
    ran = ci_evals("run", f"{tests}.json", *common, *options, cwd=folder)
    return ran.returncode, " ".join((ran.stdout + ran.stderr).split())


def _test(number: int) -> dict:
    check = {"criterion": "Says yes", "strict": "contains", "text": "yes"}
    test = {"name": f"Test {number}", "turns": [{"user": str(number)}], "evaluations": [check]}
    return test | {"maxTurns": 1, "guidelines": "Ask."}


def record(folder: Path, name: str, tests: int, trials: int, head: str = GOOD) -> None:
    assert run(folder, tests, f"--loops={trials}", f"--output-dir={name}", "--no-gate", head=head)[0] == 0


def compare(folder: Path, tests: int, *options: str, head: str = GOOD):
    return run(folder, tests, "--regression=significant", *options, head=head)


@each_row(
    ("tests", "trials", "head", "code", "says"),
    [
        (1, 1, GOOD, 0, (NO_CHANGE, f"One trial per test; {TOO_FEW}")),
        (1, 1, BAD, 3, (NO_VERDICT, BROKE)),
        (1, 3, BAD, 1, (f"{PROVEN} (3 trials per test).",)),
        (4, 1, BAD, 3, (NO_VERDICT, BROKE)),
        (5, 1, BAD, 1, (f"{PROVEN} (one trial per test).",)),
    ],
)
def test_drop_fails_from_five_single_trials_or_three_of_one_test_else_no_verdict(
    folder, tests, trials, head, code, says
):
    """1 / 2^5 is below 0.05."""
    record(folder, "main", tests, trials)
    exit_code, comparison = compare(folder, tests, "--baseline=main", f"--loops={trials}", head=head)
    assert exit_code == code, comparison
    assert all(sentence in comparison for sentence in says), comparison


def options(path: str, base: str) -> tuple[str, ...]:
    if path == "both sides":
        return "--rounds=auto", ALWAYS, f"--against={base}"
    runs = "good" if base == GOOD else "bad"
    history = runs if path == "history" else 0
    played = "--rounds=auto" if path == "rounds" else "--loops=3"
    return f"--baseline={runs}/3", f"--history={history}", played


@pytest.mark.parametrize("agent", [GOOD, BAD])
@pytest.mark.parametrize("path", ["recorded", "rounds", "history", "both sides"])
def test_equal_scores_pass_without_change_and_drop_from_100_to_0_fails(folder, agent, path):
    exit_code, comparison = compare(folder, 6, *options(path, agent), head=agent)
    results = read_results(folder)
    assert (exit_code, results["comparison"]["p"]) == (0, 1), comparison
    score = 100 if agent == GOOD else 0
    name = "base agent" if path == "both sides" else "baseline"
    assert f"Evals passed: {score} / 100, no change seen against the {name}" in comparison
    assert (MAY_GO_UNSEEN if score else f"the {name} scores too low for a drop to show.") in comparison
    assert results["comparison"]["method"] == path.replace(" ", "-")
    decided = f"Decided after {2 if path == 'rounds' else 3} of at most 7 trials of each test, which saved up"
    assert comment_and_page_show(folder, f"{decided} to .+: no sign of a drop\\.") == (
        path in {"rounds", "both sides"}
    )
    played = {"rounds": "2 of at most 7", "both sides": "3 of at most 7"}.get(path, "3")
    assert f"{played} trials per test; {'drops below' if score else f'the {name} scores'}" in comparison
    assert ("36 trials (18 of the tested agent), " in comparison) == (path == "both sides")
    if agent == GOOD:
        exit_code, comparison = compare(folder, 6, *options(path, GOOD), head=BAD)
        assert exit_code == 1, comparison
        assert "the score fell by more than chance explains" in comparison
        assert read_results(folder)["comparison"]["delta"] == -100


@each_row(
    ("more", "head", "code", "method", "says"),
    [
        ((), GOOD, 0, None, "regression was not checked: there is no baseline."),
        ((), BAD, 0, None, "regression was not checked: there is no baseline."),
        (("--baseline=required",), GOOD, 3, None, "no baseline"),
        ((f"--against={GOOD}",), GOOD, 0, "both-sides", "no change seen against the base agent"),
        ((f"--against={GOOD}",), BAD, 1, "both-sides", "6 tests broke compared with the base agent"),
        (("--baseline=one/0", "--history=0"), BAD, 1, "recorded", "6 tests broke since the baseline"),
        (ONE_RUN, GOOD, 0, "recorded", "no change seen against the baseline"),
        (ONE_RUN, BAD, 1, "recorded", "6 tests broke since the baseline"),
        ((*ONE_RUN, f"--against={DOWN}"), GOOD, 0, "recorded", "no change seen against the"),
        ((*ONE_RUN, f"--against={GOOD}"), BAD, 1, "both-sides", "the base agent"),
    ],
)
def test_baseline_decides_alone_or_screens_for_base_agent_which_runs_without_it(
    folder, more, head, code, method, says
):
    """Without one the base agent runs; one alone screens, and decides if there is no base agent."""
    exit_code, comparison = compare(folder, 6, "--loops=3", *more, head=head)
    assert exit_code == code, comparison
    assert says in comparison
    assert (read_results(folder)["comparison"] or {}).get("method") == method


def test_comparison_uses_tests_that_baseline_has_and_reports_their_number(folder):
    record(folder, "main", 3, 3)
    for head, code in ((GOOD, 0), (BAD, 1)):
        exit_code, comparison = compare(folder, 6, "--baseline=main", "--loops=3", head=head)
        assert exit_code == code, comparison
        assert "ompared on 3 of 6 tests" in comparison


LOST = "of 18 trials of the base agent errored or could not be judged"


@each_row(
    ("options", "base", "head", "reason"),
    [
        ([AUTO], HALF, GOOD, f"9 {LOST}"),
        ([ALWAYS], HALF, GOOD, f"9 {LOST}"),
        ([AUTO], DOWN, GOOD, f"18 {LOST}"),
        ([ALWAYS], DOWN, GOOD, f"18 {LOST}"),
        (["--baseline=one/0"], DOWN, BAD, "regression was not checked: no test was scored on both sides"),
    ],
)
def test_base_agent_that_is_down_or_loses_half_its_trials_gives_no_verdict(
    folder, options, base, head, reason
):
    """Also if it is only needed later, since the score fell."""
    exit_code, comparison = compare(folder, 6, "--loops=3", *options, f"--against={base}", head=head)
    assert exit_code == 3, comparison
    assert reason in comparison


def test_arms_file_with_fewer_than_two_agents_is_rejected(folder):
    for single in ({}, {"today": {"adapter": "python:good:reply"}}):
        (folder / "arms.yaml").write_text(json.dumps(single))
        exit_code, completed = run(folder, 1, "--arms=arms.yaml")
        assert (exit_code, "arms.yaml: name at least two agents" in completed) == (2, True)


def test_drop_of_an_arm_in_one_trial_of_one_test_proves_nothing(folder):
    arms = {"today": {}, "other": {"adapter": "python:bad:reply"}}
    (folder / "arms.yaml").write_text(json.dumps(arms))
    exit_code, completed = run(folder, 1, "--arms=arms.yaml")
    assert exit_code == 0, completed
    today, other = read_results(folder)["arms"]
    assert (today["score"], other["score"]) == (100, 0)  # one without settings is the suite's own
    assert (other["delta"], other["pAdjusted"]) == (-100, 1)
    assert "−100.0 above 0.99" in completed
