"""Closed sets of words that options take. Nothing slow is imported here: the help shows them."""

from enum import StrEnum


class CheckMode(StrEnum):
    """Modes of the control questions to a judge (option `judge_check`)."""

    AUTO = "auto"
    """Asks, unless the baseline or the judge's cache holds a recent passed check of the same judge."""
    ALWAYS = "always"
    WARN = "warn"
    """Like `auto`, but a judge that does not pass is a warning only."""
    OFF = "off"


class Regression(StrEnum):
    """Changes against the baseline that fail the gate."""

    OFF = "off"
    ANY = "any"
    """A test that passed in the baseline does not pass now."""
    SIGNIFICANT = "significant"
    """The score fell, and chance does not explain it."""


class WeakenedMode(StrEnum):
    """The consequence if suites or gate require less than in the baseline (option `weakened`)."""

    OFF = "off"
    """They are not compared."""
    WARN = "warn"
    FAIL = "fail"


class BothSides(StrEnum):
    """When the base agent (option `against`) is played too."""

    AUTO = "auto"
    """If the earlier runs of the base branch, or the lack of them, leave a drop possible."""
    ALWAYS = "always"


class AgentIdLocation(StrEnum):
    """The position of the agent's id in the body that creates a task, which depends on the server's age."""

    TOP = "top"
    NESTED = "nested"
    BOTH = "both"
    NONE = "none"
