"""Fixtures of tests of checks."""

import pytest

from ci_evals.domain.checks import matching
from ci_evals.support import json_schema_keywords


@pytest.fixture
def short_searches(monkeypatch):
    """A search for a pattern without an end stops after a tenth of a second, not after a whole one."""
    for module in (matching, json_schema_keywords):
        monkeypatch.setattr(module, "PATTERN_SECONDS", 0.1)
