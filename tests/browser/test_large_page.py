"""A page of 2,000 trials opens at once and decompresses only the conversations that are opened."""

from dataclasses import replace
from random import Random
from statistics import median

import pytest

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.reports.page import page as pages
from ci_evals.reports.story.story import story_of

pytestmark = pytest.mark.browser
TRIALS = 2_000
MOST_LOOPS = 4
"""The longest that it may take, in times of a fixed loop: 2 seconds where the loop takes half a second."""
LOOP = """
  () => {
    const began = performance.now();
    let sum = 0;
    for (let number = 0; number < 3e7; number += 1) sum += Math.sqrt(number) % 3;
    window.sum = sum;
    return (performance.now() - began) / 1000;
  }
"""
COUNT = """
  addEventListener("DOMContentLoaded", () => requestAnimationFrame(() =>
    setTimeout(() => { window.usable = performance.now() / 1000; })));
  window.unpacked = 0;
  const Real = window.DecompressionStream;
  window.DecompressionStream = class extends Real {
    constructor(format) {
      super(format);
      window.unpacked += 1;
    }
  };
"""
"""Tells when the table had been drawn, in seconds from the navigation, and how often the page unpacked."""


@pytest.fixture
def large(compared, tmp_path):
    """The page of a run like a real one, but with many times its suites and trials."""
    file = tmp_path / "report.html"
    file.write_text("".join(pages.render(story_of(many(compared.head)))), "utf-8")
    return file


def many(results: Results) -> Results:
    """The suite of `results` again and again, with ten trials of each test.

    Each has a remark that nothing is like: packed, a trial then takes as much room as one of a real run does.
    """
    (suite,) = results.suites
    luck = Random(1)

    def again(test: TestResult) -> TestResult:
        trials = [test.trials[place % len(test.trials)] for place in range(10)]
        for place, trial in enumerate(trials):
            remark = luck.randbytes(1_500).hex()
            trials[place] = replace(trial, index=place + 1, closing_remark=remark)
        return replace(test, trials=tuple(trials))

    names = [f"{suite.name} {number}" for number in range(1, TRIALS // (10 * len(suite.tests)) + 2)]
    suites = [replace(suite, name=name, tests=tuple(map(again, suite.tests))) for name in names]
    return replace(results, suites=tuple(suites))


def test_page_of_2000_trials_opens_at_once_and_decompresses_on_demand(profile, large):
    """The median of three times from the address to a table that answers, on a machine of any speed."""
    loops = []
    for _ in range(3):
        page = profile.new_page()
        page.add_init_script(COUNT)
        page.goto(large.as_uri())
        page.wait_for_function("() => window.usable")
        loops.append(page.evaluate("usable") / page.evaluate(LOOP))
        page.locator("#filters").get_by_label("Result").select_option("failed")
        assert page.evaluate("TESTS.reduce((sum, one) => sum + one.trials, 0)") >= TRIALS
        shown = page.locator("#tests tbody tr").filter(visible=True).count()
        assert 0 < shown < page.evaluate("TESTS.length")
        assert page.evaluate("unpacked") == 0
        page.evaluate("location.hash = addressOf(100, 7)")
        page.wait_for_selector("#test .turn")
        assert page.evaluate("unpacked") == 2
        page.close()
    assert median(loops) < MOST_LOOPS
