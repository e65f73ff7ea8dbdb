"""The tiers of tests, which the Makefile picks by marks and by the files that have them."""

import re
from pathlib import Path

TESTS = Path(__file__).parent


def test_tier_marks_are_set_in_test_files_only():
    """The Makefile looks for them there, so a mark set by a helper would leave its test out of every tier."""
    helpers = [path for path in TESTS.rglob("*.py") if not path.name.startswith("test_")]
    marking = [path for path in helpers if re.search(r"mark\.(slow|browser|container)\b", path.read_text())]
    assert marking == []
