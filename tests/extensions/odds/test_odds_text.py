"""Texts of `odds`, and how much another run like a saved one plays and costs."""

from dataclasses import replace

import builders as build
import report_texts
from each_row import each_row

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.results.gate import Odds
from ci_evals.domain.results.run import Results, Rounds
from ci_evals.domain.results.usage import Usage
from ci_evals.extensions.odds.extent import extent
from ci_evals.extensions.odds.odds import odds, odds_text
from ci_evals.extensions.odds.settings import OddsSettings


def test_odds_text_has_table_of_checks_and_summary():
    checks = [
        build.check(name="min-score", required=80, seen=85, passed=True),
        *[build.check(name="critical:x", required=100, seen=100, passed=True)] * 2,
        build.check(name="max-cost", required=1, seen=None, passed=True),
        build.check(name="regression", required=0.05, seen=None, passed=True),
    ]
    shares = (("min-score", 0.08), ("critical:x", 0.02), ("critical:x", 0.0))
    odds_of_checks = tuple(build.check_odds(name=name, share=share) for name, share in shares)
    result = Odds(share=0.095, checks=odds_of_checks, floor=78.5, loops=3)
    assert odds_text(result, checks) == (
        "  check       required                            would fail\n"
        "  ----------  ----------------------------------  -------------\n"
        "  min-score   at least 80                         8 %\n"
        "  critical:x  all trials pass                     2 %\n"
        "  critical:x  all trials pass                     less than 1 %\n"
        "  max-cost    at most $1.00                       not estimated\n"
        "  regression  no significant drop (p above 0.05)  not estimated\n"
        "  any check                                       10 %\n"
        "\n"
        "The same agent, run again, would fail this gate in about 10 % of runs (mostly min-score). "
        "It would score below 78.5 in fewer than 5 % of runs.\n"
        "The highest min-score that fewer than 5 % of such runs would miss: 78.5.\n"
        "Simulated from the noise of the saved run, with up to 3 trials of each test.\n"
        "Not estimated: cost, regression (up to 5 % more by its own level).\n"
    )


def test_odds_text_of_single_trials_says_that_their_noise_is_unknown():
    single = Odds(share=0.0, checks=(build.check_odds(name="min-score", share=0.0),), floor=None, loops=1)
    text = odds_text(single, [build.check(name="min-score", required=0, seen=85, passed=True)])
    assert "The same agent, run again, would fail this gate in fewer than 1 % of runs." in text
    assert "Each test has one trial, so its own noise is unknown." in text
    assert "would miss: n/a." in text


def test_odds_of_an_impossible_min_score_are_printed(tmp_path, capsys):
    file = tmp_path / "_results.json"
    results = build.results(run=build.run_info(config={"minScore": 10**400}))
    file.write_text(report_texts.results_json_text(results))
    odds(OddsSettings(results=file), RunContext())
    assert "min-score" in capsys.readouterr().out


def test_extent_of_run_with_taken_trials_has_no_cost():
    results = in_rounds()
    results = replace(results, counts=replace(results.counts, taken_trials=1), usage=Usage(cost_usd=0.3))
    assert extent(results, 7) == "Such a run has 2 to 7 trials of each test."


CONFIGURED = {"against": True, "bothSides": "auto"}
ALWAYS = {"bothSides": "always"}
BASE_TOO = ", those of the base agent included"


def with_arms(results: Results, *, config: dict, base: bool, **fields) -> Results:
    """The results with a configuration, and with the arms of head and base if the base agent ran too."""
    arms = [build.arm(name, results, gated=name == "head") for name in ("head", "base")] if base else []
    return replace(results, run=replace(results.run, config=config), arms=tuple(arms), **fields)


def in_rounds() -> Results:
    """A run that was decided after three trials of at most seven."""
    results = build.results()
    return replace(results, run=replace(results.run, rounds=Rounds(looks=(2, 3, 5, 7), played=3)))


@each_row(("cost", "config", "base", "text"), [
    (None, {}, False, "2 to 7 trials of each test."),
    (0.30, {}, False, "2 to 7 trials of each test, for about $0.20 to $0.70."),
    (0.60, {}, True, f"2 to 14 trials of each test{BASE_TOO}, for about $0.20 to $1.40."),
    (0.30, CONFIGURED, False, f"2 to 14 trials of each test{BASE_TOO}, for about $0.20 to $1.40."),
    (0.60, ALWAYS, True, f"4 to 14 trials of each test{BASE_TOO}, for about $0.40 to $1.40."),
])  # fmt: skip
def test_extent_of_run_with_rounds_is_shown_as_range(cost, config, base, text):
    results = with_arms(in_rounds(), config=config, base=base, usage=Usage(cost_usd=cost))
    assert extent(results, 7) == f"Such a run has {text}"


@each_row(("config", "base", "text"), [
    ({}, False, None),
    ({"against": False, "bothSides": "auto"}, False, None),
    (CONFIGURED, False, f"3 to 6 trials of each test{BASE_TOO}, for about $0.30 to $0.60."),
    (CONFIGURED, True, f"3 to 6 trials of each test{BASE_TOO}, for about $0.15 to $0.30."),
    (CONFIGURED | ALWAYS, True, f"6 trials of each test{BASE_TOO}, for about $0.30."),
])  # fmt: skip
def test_extent_without_rounds_is_shown_only_with_base_agent(config, base, text):
    results = with_arms(build.results(), config=config, base=base, usage=Usage(cost_usd=0.3))
    assert extent(results, 3) == (text and f"Such a run has {text}")
