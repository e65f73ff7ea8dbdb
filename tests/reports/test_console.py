"""The console's text: short, grouped, and honest about colours."""

import re

import builders as build
import cases
import comment_cases
import pytest

from ci_evals.domain.base import Interval
from ci_evals.domain.results.gate import Odds
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.reports import console
from ci_evals.reports.markdown import documents


def test_one_cause_is_told_once():
    """An agent that is not there makes one message, however many trials it spoils."""
    lost = build.trial_result(
        status=EndState.FAILED, error="the agent at http://localhost:9 refused the connection", findings=()
    )
    tests = [build.test_result(f"Test {number}", trials=(lost, lost)) for number in range(12)]
    text = console.render(build.results(build.suite_result("Refunds", *tests)))
    assert text.count("refused the connection") == 1
    assert "24 trials failed: the agent at http://localhost:9 refused the connection" in text
    assert "Test 0; Test 1; Test 2; and 9 more tests" in text


def test_an_error_that_the_test_wants_is_no_trouble():
    """A test of how the agent errs passes when it errs."""
    wanted = build.finding(strict="escalated_due_to_error")
    trial = build.trial_result(status=EndState.AGENT_ERROR, findings=(wanted,))
    test = build.test_result(trials=(trial,), outcome="passed", passed=True)
    assert "error of the agent" not in console.render(build.results(build.suite_result("Refunds", test)))


def test_a_pass_without_a_judge_names_what_is_undecided():
    """Offline a test may pass with judged criteria open; the table says so."""
    unjudged = build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge")
    trial = build.trial_result(findings=(build.finding(), unjudged))
    test = build.test_result(trials=(trial,), outcome="passed", passed=True)
    text = console.render(build.results(build.suite_result("Refunds", test)))
    assert "passed, 1 verdict undecided  100.0" in text
    assert "No judge was configured: 1 judged criterion is undecided." in text


def test_the_first_failed_criterion_is_named_and_verbose_names_all():
    """Short by default, complete when asked."""
    findings = [build.finding("failed", criterion=f"Rule {n}", reason=f"broken {n}") for n in (1, 2, 3)]
    results = build.results(
        build.suite_result(
            "Refunds", build.test_result("Pays", trials=(build.trial_result(findings=findings),))
        )
    )
    short, long = console.render(results), console.render(results, verbose=True)
    assert "Rule 1" in short
    assert "Rule 2" not in short
    assert "and 2 more criteria failed (--verbose names them)" in short
    assert all(f"Rule {n}\n      broken {n}" in long for n in (1, 2, 3))


def test_a_failure_is_shown_by_a_trial_that_was_played_to_its_end():
    """What a trial that was cut off lacks made no test fail."""
    lost = build.trial_result(1, status=EndState.FAILED, findings=(build.finding("failed", reason="cut"),))
    played = build.trial_result(2, findings=(build.finding("failed", reason="never executed"),))
    text = console.render(
        build.results(build.suite_result("Refunds", build.test_result(trials=(lost, played)))), verbose=True
    )
    assert "The refund workflow starts\n      never executed" in text


def test_colours_are_paint_and_nothing_else():
    """With and without colours the words are the same."""
    for make in cases.CASES.values():
        painted, plain = console.render(make(), color=True), console.render(make())
        assert "\x1b" not in plain
        assert painted != plain
        assert re.sub(r"\x1b\[\d+m", "", painted) == plain


def test_an_escape_of_the_agent_is_not_painted():
    """Only our own colours reach the terminal."""
    results = build.results(build.suite_result("\x1b[5mblink\x1b[0m", build.test_result("\x1b]0;title\x07x")))
    assert re.findall(r"\x1b[^m]*m", console.render(results, color=True)).count("\x1b[5m") == 0
    assert "\x1b]" not in console.render(results, color=True)


def test_a_floor_shows_both_scores_where_they_differ():
    """The score that decides stands beside the one shown."""
    check = build.check(name="min-score", required=80, seen=100, seen_if_undecided_failed=79.96, holds=False)
    text = console.render(build.results(gate=build.decision(check)))
    assert "at least 80  100.0 (79.9 if undecided counts as failed)  does not hold" in text


def test_a_gate_that_is_only_reported_says_so():
    """--no-gate exits 0, but the gate does not hold for all that."""
    check = build.check(name="min-score", required=80, seen=10, holds=False)
    text = console.render(build.results(gate=build.decision(check, exit_code=0)))
    assert "The gate does not hold (min-score): score" in text
    assert "--no-gate" in text


def test_each_exit_code_has_its_own_words():
    """A run that a bug of ours ended is not called a gate that does not hold."""

    def said(code: int, *, passed: bool = False) -> str:
        return console.render(build.results(gate=build.decision(passed=passed, exit_code=code))).casefold()

    assert "the gate holds" in said(0, passed=True)
    assert "the gate does not hold" in said(1)
    assert "the run cannot be trusted" in said(3)
    assert "the run cannot be trusted" in said(70)
    assert "the run was interrupted" in said(130)


def gate_row(**fields) -> list[str]:
    """What the table says of a check: required, seen, decision."""
    check = build.check(**{"name": "min-score", "required": 80, "seen": 90, "holds": True} | fields)
    text = console.render(build.results(gate=build.decision(check)))
    (row,) = [line for line in text.splitlines() if line.startswith(f"  {check.name}")]
    return re.split(r" {2,}", row.removeprefix(f"  {check.name}").strip())[:2]


@pytest.mark.parametrize(
    ("check", "row"),
    [
        ({"interval": Interval(low=79.04, high=91)}, ["at least 80", "90.0 (79.0 to 91.0)"]),
        (
            {"seen_if_undecided_failed": 79.96, "interval": Interval(low=70, high=85)},
            ["at least 80", "90.0 (79.9, 70.0 to 85.0 if undecided counts as failed)"],
        ),
        ({"name": "max-drop", "required": 5, "seen": 3.65}, ["at most 5", "3.7"]),
        ({"name": "max-drop", "required": 5, "seen": 5.000000000000001}, ["at most 5", "5"]),
        ({"name": "max-drop suite:X", "required": 5, "seen": -2.15}, ["at most 5", "-2.1 (rose)"]),
        (
            {"name": "max-drop", "required": 5, "seen": 1, "interval": Interval(low=-3, high=5)},
            ["at most 5", "1"],
        ),
        (
            {"name": "max-drop", "required": 5, "seen": -1, "seen_if_undecided_failed": 6.01},
            ["at most 5", "-1 (6.1 if undecided counts as failed)"],
        ),
        ({"name": "regression", "required": 0, "seen": 2}, ["at most 0", "2"]),
        ({"name": "regression", "required": 0.05, "seen": 0.062}, ["p above 0.05", "p = 0.06"]),
        ({"name": "regression", "required": 0.05, "seen": 0.0001}, ["p above 0.05", "p below 0.001"]),
        ({"name": "regression", "required": 0.05, "seen": None}, ["p above 0.05", "n/a"]),
        ({"name": "max-cost", "required": 0.5, "seen": 0.50001}, ["at most $0.50", "$0.5001"]),
        ({"name": "max-p95-latency", "required": 2.5, "seen": 2.51}, ["at most 2.5 s", "2.51 s"]),
        ({"name": "max-p95-latency", "required": 0.05, "seen": 0.08}, ["at most 0.05 s", "0.080 s"]),
        ({"name": "max-drop", "required": 2.25, "seen": 2.251}, ["at most 2.25", "2.26"]),
        ({"required": 79.95, "seen": 79.96}, ["at least 79.95", "79.96"]),
        ({"name": "max-errors", "required": 0, "seen": 3}, ["at most 0", "3"]),
        ({"name": "critical:x", "required": 100, "seen": 66.66}, ["at least 100", "66.6"]),
    ],
)
def test_each_check_is_told_in_its_own_unit(check, row):
    """What it asks, and what was seen, which never looks better than it was."""
    assert gate_row(**check) == row


def odds_of(**shares) -> Odds:
    """Odds of these checks, with the floor 78.5."""
    checks = tuple(
        build.check_odds(name=name.replace("_", "-"), share=share) for name, share in shares.items()
    )
    return Odds(share=min(1.0, sum(shares.values())), checks=checks, floor=78.5, loops=3)


@pytest.mark.parametrize(
    ("odds", "line"),
    [
        (
            odds_of(critical=0.04, max_drop=0.05, min_score=0.03),
            (
                "Another run of this same agent would fail this gate in about 12 % of runs "
                "(max-drop, critical and 1 more)."
            ),
        ),
        (odds_of(min_score=0.03), None),
        (
            odds_of(min_score=0.112),
            (
                "Another run of this same agent would fail this gate in about 12 % of runs (min-score); "
                "a floor of 78.5 would keep that below 5 %."
            ),
        ),
        (
            odds_of(max_drop=0.01, min_score=0.102),
            (
                "Another run of this same agent would fail this gate in about 12 % of runs "
                "(mostly min-score); a floor of 78.5 would keep min-score below 5 %."
            ),
        ),
        (
            odds_of(min_score=0.02, regression=0.1),
            "Another run of this same agent would fail this gate in about 12 % of runs (mostly regression).",
        ),
    ],
)
def test_a_gate_that_noise_fails_is_told_of(odds, line):
    """From one run in twenty on, with the floor that would hold."""
    text = console.render(build.results(odds=odds))
    told = [one.strip() for one in text.splitlines() if "this same agent" in one]
    assert told == ([line] if line else [])


def test_no_odds_are_told_where_the_gate_fails_on_more_than_noise():
    """A proven drop, or undecided verdicts, would be read as noise."""
    results = cases.unproven()
    said = "Another run of this same agent would fail this gate"
    assert said in console.render(results)
    proven = results.comparison.model_copy(update={"p": 0.05})
    assert said not in console.render(results.model_copy(update={"comparison": proven}))
    wanting = build.check(name="min-score", required=80, seen=90, seen_if_undecided_failed=70, holds=False)
    gate = build.decision(wanting)
    assert said not in console.render(results.model_copy(update={"gate": gate}))


def test_the_verdict_names_what_fails():
    """Two checks, and how many more; they stand first in the gate's table."""
    checks = [
        build.check(name=name, required=1, seen=0, holds=holds)
        for name, holds in (("min-score", True), ("max-drop", False), ("critical:X", False), ("b", False))
    ]
    results = build.results(gate=build.decision(*checks))
    text, page = console.render(results), documents.summary(results)
    assert "The gate does not hold (max-drop, critical:X and 1 more): score 100.0" in text
    assert text.index("  critical:X") < text.index("  min-score")
    assert page.startswith("## ❌ ci-evals: the gate does not hold (max-drop, critical:X and 1 more)\n")
    assert page.index("| critical:X") < page.index("| min-score")
    two = build.results(gate=build.decision(*checks[:3]))
    assert "The gate does not hold (max-drop, critical:X): score" in console.render(two)


def test_why_a_run_cannot_be_trusted_stands_under_the_verdict():
    """Before all numbers, whether it is a run or a comparison."""
    results = cases.unproven()
    gate = results.gate.model_copy(update={"exit_code": 3, "reasons": ("nothing could be scored",)})
    results = results.model_copy(update={"gate": gate})
    for text in (console.render(results), console.comparison(results)):
        assert "The run cannot be trusted\n  nothing could be scored\n  Score 88.8" in text
    for page in (documents.summary(results), documents.comparison(results)):
        under = page.partition("the run cannot be trusted")[2].partition("\n")[2]
        assert under.startswith("\n- nothing could be scored\n\nScore 88.8")


def test_the_count_names_unsound_and_flaky():
    """As the summary does."""
    text = console.render(cases.proven())
    assert "3 of 6 tests passed, 2 failed, 1 undecided, 2 unsound trials, 2 flaky, 30 trials" in text


def test_odds_are_a_table_and_what_it_means():
    """Check by check, those that noise does not fail named so, then the whole and the floor."""
    checks = [
        build.check(name="min-score", required=80, seen=85, holds=True),
        build.check(name="critical:x", required=100, seen=100, holds=True),
        build.check(name="critical:x", required=100, seen=100, holds=True),
        build.check(name="max-cost", required=1, seen=None, holds=True),
        build.check(name="regression", required=0.05, seen=None, holds=True),
    ]
    shares = (("min-score", 0.08), ("critical:x", 0.02), ("critical:x", 0.0))
    found = Odds(
        share=0.095,
        checks=tuple(build.check_odds(name=name, share=share) for name, share in shares),
        floor=78.5,
        loops=3,
    )
    assert console.odds(found, checks) == (
        "  check       required       would fail\n"
        "  ----------  -------------  -------------\n"
        "  min-score   at least 80    8 %\n"
        "  critical:x  at least 100   2 %\n"
        "  critical:x  at least 100   below 1 %\n"
        "  max-cost    at most $1.00  not looked at\n"
        "  regression  p above 0.05   not looked at\n"
        "  the gate                   10 %\n"
        "\n"
        "Another run of this same agent would fail this gate in about 10 % of runs (mostly min-score); "
        "a floor of 78.5 would keep min-score below 5 %.\n"
        "The highest min-score that fewer than 5 % of such runs would miss: 78.5.\n"
        "Runs are drawn from the noise of the recorded ones, with up to 3 trials of each test.\n"
        "Not looked at: cost, regression (up to 5 % more by its own level).\n"
    )


def test_odds_told_from_single_trials_say_so():
    """Nothing is known then of how a test varies by itself."""
    single = Odds(share=0.0, checks=(build.check_odds(name="min-score", share=0.0),), floor=None, loops=1)
    text = console.odds(single, [build.check(name="min-score", required=0, seen=85, holds=True)])
    assert "Another run of this same agent would fail this gate in fewer than 1 % of runs." in text
    assert "Each test was played once, so how much one varies by itself is not known" in text
    assert "would miss: n/a." in text


def test_a_p_that_is_not_the_comparisons_is_explained():
    """The gate takes undecided verdicts for failed."""
    results = cases.unproven()
    checks = [check for check in results.gate.checks if check.name == "regression"]
    other = checks[0].model_copy(update={"seen": 0.01, "holds": False})
    said = "The gate counts undecided verdicts as failed, so its p is not that of the comparison."
    assert said not in console.render(results)
    told = results.model_copy(update={"gate": build.decision(other)})
    assert said in console.render(told)
    unseen = results.comparison.model_copy(update={"smallest_p": 0.5})
    assert said not in console.render(told.model_copy(update={"comparison": unseen}))


def test_a_test_in_which_nothing_failed_is_not_called_failing():
    """Where only the judge gave no answer."""
    head = [cases.played("Lost parcel", "ppu"), cases.played("Gift card", "ppp")]
    base = [cases.played(test.name, "ppp") for test in head]
    run = build.results(build.suite_result("Refunds", *head))
    run = cases.against(run, cases.base_run(build.suite_result("Refunds", *base)))
    text, told, page = console.render(run), console.comparison(run), documents.comparison(run)
    assert "passed in the baseline, not now (1): Lost parcel 100.0 → 100.0 (undecided)" in text
    assert "Passed in the baseline, not now\n  It passed in the baseline, and does not pass now.\n" in told
    assert "### 1 test that passed in the baseline does not pass now\n" in page
    assert "#### ❔ Lost parcel (100.0 → 100.0)\n\n2 of 3 trials passed, undecided.\n" in page
    assert not [one for one in (text, told, page) if "ewly failing" in one]


def test_a_comparison_without_checks_ends_with_the_sentence():
    """`compare` without options asks for nothing, so there is no verdict on the gate."""
    text = console.comparison(cases.confirmed().model_copy(update={"gate": build.decision()}))
    assert text.splitlines()[-1].startswith("Score 90.0 (66.9 to 97.1), baseline 95.8")
    assert "gate" not in text


def test_a_comparison_is_painted_like_a_run():
    """With and without colours the words are the same."""
    for make in cases.COMPARED.values():
        painted = console.comparison(make(), color=True)
        assert re.sub(r"\x1b\[\d+m", "", painted) == console.comparison(make())


def test_a_skipped_run_gives_its_reason_and_no_score():
    """Nothing was played: there is nothing to trust or not to trust, and nothing went wrong."""
    text = console.render(comment_cases.skipped())
    assert text == (
        "Not tested\n"
        "  The pull request comes from a fork, so GitHub gives it no secrets: "
        "--llm-key and --agent-key are missing.\n"
        "  13 tests, none of them played\n"
    )


def test_where_nothing_was_compared_no_heading_stands_alone():
    """The agent was down: the verdict says why there is no comparison."""
    found = cases.against(cases.invalid(), cases.invalid())
    text = console.render(found)
    assert "Against the baseline" not in text
    assert "Nothing was scored; not compared with the baseline: " in text
