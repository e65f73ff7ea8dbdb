"""The closed sets of words that options take. A word that is none of them is refused with the list."""

from enum import StrEnum


class SuiteTrust(StrEnum):
    """The trust in a suite: may it name endpoints and read the environment?"""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class CommentMode(StrEnum):
    """The conditions on which a comment is posted on the pull request."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class CommentOn(StrEnum):
    """The results that a new comment is worth."""

    ALWAYS = "always"
    CHANGE = "change"
    FAILURE = "failure"


class RerunMode(StrEnum):
    """Uses of the trials of earlier attempts in a rerun of a commit."""

    POOL = "pool"
    """They count with those of this run."""
    REPLACE = "replace"
    """This run alone counts."""


class MissingSecrets(StrEnum):
    """The ways to treat a pull request that is given no secrets."""

    SKIP = "skip"
    FAIL = "fail"


class OutputFormat(StrEnum):
    """The form of what a command prints."""

    TEXT = "text"
    JSON = "json"
    """One JSON object on standard output, and all else on standard error."""
