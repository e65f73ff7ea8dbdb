"""The work of a start, a conversation and the reports stays within `bench/budget.json`, counted in calls."""

import json
import sys

import pytest

from bench.calls import BUDGET, SLACK, measure


def test_no_change_makes_the_product_slower_unseen():
    """Who makes it slower for a reason, or faster, records a new budget: `python -m bench.calls`."""
    budget = json.loads(BUDGET.read_text())
    if budget["python"] != f"{sys.version_info.major}.{sys.version_info.minor}":
        pytest.skip(f"the budget is of Python {budget['python']}: others call functions in other numbers")
    calls = measure()
    spent = {name: round(calls[name] / most, 3) for name, most in budget["calls"].items()}
    assert max(spent.values()) <= SLACK, spent
    assert min(spent.values()) > 0.8, f"much faster: record a new budget, {spent}"
