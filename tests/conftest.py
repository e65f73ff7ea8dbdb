"""For all tests: what is slow on a busy machine is not wrong."""

import sys

import pytest
from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session", autouse=True)
def nursery_is_ready():
    """No test's own clock runs while the commands are prepared that any of them may start."""
    if commands := sys.modules.get("commands"):
        commands.ready()
