"""The calls of a start, conversations, spans, reports and gated rows stay within `bench/budget.json`."""

import json
import sys

import pytest

from bench.calls import BUDGET, SLACK, measure

pytestmark = pytest.mark.slow


def test_function_calls_stay_within_budget():
    """Who makes it slower for a reason, or faster, records a new budget: `python -m bench.calls`."""
    budget = json.loads(BUDGET.read_text())
    if budget["python"] != f"{sys.version_info.major}.{sys.version_info.minor}":
        pytest.skip(f"the budget is of Python {budget['python']}: others call functions in other numbers")
    calls = measure()
    spent = {name: round(calls[name] / most, 3) for name, most in budget["calls"].items()}
    assert max(spent.values()) <= SLACK, spent
    assert min(spent.values()) > 0.8, f"much faster: record a new budget, {spent}"
