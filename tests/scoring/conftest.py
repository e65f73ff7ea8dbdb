"""Fixtures of tests of scoring and gate."""

import pytest

from ci_evals.gate import noise, odds


@pytest.fixture(scope="module")
def few_draws_of_odds():
    """For tests of the gate's decision, which does not depend on the odds: these take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (noise, odds):
            patch.setattr(module, "DRAWS", 20)
        yield
