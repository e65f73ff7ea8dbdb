"""How much another run like a saved one plays and costs."""

from dataclasses import replace

import builders as build
import pytest

from ci_evals.domain.results.run import Results, Rounds
from ci_evals.domain.results.usage import Usage
from ci_evals.extensions.odds.extent import extent

CONFIGURED = {"against": True, "bothSides": "auto"}
BASE_TOO = ", those of the base agent included"


def in_rounds() -> Results:
    """A run that was decided after three trials of at most seven."""
    results = build.results()
    return replace(results, run=replace(results.run, rounds=Rounds(looks=(2, 3, 5, 7), played=3)))


@pytest.mark.parametrize(
    ("cost", "config", "beside", "says"),
    [
        (None, {}, False, "2 to 7 trials of each test."),
        (0.30, {}, False, "2 to 7 trials of each test, for about $0.20 to $0.70."),
        (0.60, {}, True, f"2 to 14 trials of each test{BASE_TOO}, for about $0.20 to $1.40."),
        (0.30, CONFIGURED, False, f"2 to 14 trials of each test{BASE_TOO}, for about $0.20 to $1.40."),
        (
            0.60,
            {"bothSides": "always"},
            True,
            f"4 to 14 trials of each test{BASE_TOO}, for about $0.40 to $1.40.",
        ),
    ],
)
def test_the_extent_of_a_run_in_rounds(cost, config, beside, says):
    """From its first look to its last; earlier runs may spare the base agent, and spared it in this run."""
    results = in_rounds()
    arms = [build.arm(name, results, gated=name == "head") for name in ("head", "base")] if beside else []
    run = replace(results.run, config=config)
    update = {"run": run, "arms": tuple(arms), "usage": Usage(cost_usd=cost)}
    assert extent(replace(results, **update), 7) == f"Such a run has {says}"


@pytest.mark.parametrize(
    ("config", "beside", "says"),
    [
        ({}, False, None),
        ({"against": False, "bothSides": "auto"}, False, None),
        (CONFIGURED, False, f"3 to 6 trials of each test{BASE_TOO}, for about $0.30 to $0.60."),
        (CONFIGURED, True, f"3 to 6 trials of each test{BASE_TOO}, for about $0.15 to $0.30."),
        (CONFIGURED | {"bothSides": "always"}, True, f"6 trials of each test{BASE_TOO}, for about $0.30."),
    ],
)
def test_trials_and_cost_of_a_run_without_rounds_are_stated(config, beside, says):
    """Three trials for $0.30, of one agent or of both together."""
    results = build.results()
    arms = [build.arm(name, results, gated=name == "head") for name in ("head", "base")] if beside else []
    run = replace(results.run, config=config)
    results = replace(results, run=run, arms=tuple(arms), usage=Usage(cost_usd=0.3))
    assert extent(results, 3) == (says and f"Such a run has {says}")


def test_what_was_taken_from_an_earlier_run_has_no_cost_to_tell_from():
    """What such a run costs in full is not known."""
    results = in_rounds()
    counts = replace(results.counts, taken_trials=1)
    update = {"counts": counts, "usage": Usage(cost_usd=0.3)}
    assert extent(replace(results, **update), 7) == "Such a run has 2 to 7 trials of each test."
