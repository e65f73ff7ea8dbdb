"""The odds that an unchanged agent fails the gate, estimated from the noise of recorded trials.

`noise` draws runs like the recorded one, and each rule says which of them fail its check.
"""

import math
from collections.abc import Iterable
from statistics import fmean

from ci_evals.domain.results.gate import CheckOdds, GateCheck, Odds
from ci_evals.domain.results.run import Results
from ci_evals.gate.noise import DRAWS, TrialNoise
from ci_evals.gate.rules import rule_of

WORTH_TELLING = 0.05
"""Odds above which a run speaks of them; a floor is proposed that keeps them below."""
MOST_TESTS = 5_000


def odds_of(results: Results, checks: Iterable[GateCheck]) -> Odds | None:
    """The odds that another run of the same agent fails these checks; None if they are not known.

    Floors are looked at, critical tests, and, as if the recorded run were the baseline, drops and newly
    failing tests. Errors, cost and latency are not.

    Nor are they computed for a run of more than `MOST_TESTS` tests, where drawing takes minutes.
    """
    if len(results.tests) > MOST_TESTS:
        return None
    noise = TrialNoise(results)
    whole = noise.scores(tuple(range(len(noise.tests))), None)
    if whole is None:
        return None
    failing = [
        (check, fails)
        for check in checks
        if (fails := rule_of(check).fails_by_noise(check, noise)) is not None
    ]
    together = [any(run) for run in zip(*(fails for _, fails in failing), strict=True)]
    lowest = sorted(whole.drawn)[math.ceil(WORTH_TELLING * DRAWS) - 1]
    return Odds(
        share=fmean(together) if together else 0.0,
        checks=tuple(
            CheckOdds(
                name=check.name,
                kind=check.kind,
                suite=check.suite,
                suite_number=check.suite_number,
                test=check.test,
                test_number=check.test_number,
                selector=check.selector,
                share=fmean(fails),
            )
            for check, fails in failing
        ),
        floor=math.floor(10 * lowest) / 10,
        loops=max(noise.planned),
    )


def evaluated_checks(checks: Iterable[GateCheck]) -> tuple[GateCheck, ...]:
    """The checks that decided something: without a baseline, say, a drop was looked at by none."""
    return tuple(
        check
        for check in checks
        if check.seen is not None or check.seen_if_undecided_failed is not None or check.passed is False
    )
