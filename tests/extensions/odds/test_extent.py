"""How much another run like a saved one plays and costs."""

from dataclasses import replace

import builders as build
from each_row import each_row

from ci_evals.domain.results.run import Results, Rounds
from ci_evals.domain.results.usage import Usage
from ci_evals.extensions.odds.extent import extent

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


@each_row(
    ("cost", "config", "base", "text"),
    [
        (None, {}, False, "2 to 7 trials of each test."),
        (0.30, {}, False, "2 to 7 trials of each test, for about $0.20 to $0.70."),
        (0.60, {}, True, f"2 to 14 trials of each test{BASE_TOO}, for about $0.20 to $1.40."),
        (0.30, CONFIGURED, False, f"2 to 14 trials of each test{BASE_TOO}, for about $0.20 to $1.40."),
        (0.60, ALWAYS, True, f"4 to 14 trials of each test{BASE_TOO}, for about $0.40 to $1.40."),
    ],
)
def test_extent_of_run_with_rounds_is_shown_as_range(cost, config, base, text):
    results = with_arms(in_rounds(), config=config, base=base, usage=Usage(cost_usd=cost))
    assert extent(results, 7) == f"Such a run has {text}"


@each_row(
    ("config", "base", "text"),
    [
        ({}, False, None),
        ({"against": False, "bothSides": "auto"}, False, None),
        (CONFIGURED, False, f"3 to 6 trials of each test{BASE_TOO}, for about $0.30 to $0.60."),
        (CONFIGURED, True, f"3 to 6 trials of each test{BASE_TOO}, for about $0.15 to $0.30."),
        (CONFIGURED | ALWAYS, True, f"6 trials of each test{BASE_TOO}, for about $0.30."),
    ],
)
def test_extent_without_rounds_is_shown_only_with_base_agent(config, base, text):
    results = with_arms(build.results(), config=config, base=base, usage=Usage(cost_usd=0.3))
    assert extent(results, 3) == (text and f"Such a run has {text}")


def test_trials_taken_from_earlier_run_leave_cost_unknown():
    results = in_rounds()
    counts = replace(results.counts, taken_trials=1)
    results = replace(results, counts=counts, usage=Usage(cost_usd=0.3))
    assert extent(results, 7) == "Such a run has 2 to 7 trials of each test."
