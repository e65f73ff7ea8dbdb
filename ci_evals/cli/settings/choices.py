"""The closed sets of words that options take. A word that is none of them is refused with the list."""

from enum import StrEnum


class Provider(StrEnum):
    """The LLM behind judge and simulated user."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    CLAUDE_CODE = "claude-code"
    OFFLINE = "offline"


class SuiteTrust(StrEnum):
    """Whether a suite may name endpoints and read the environment."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class CommentMode(StrEnum):
    """When a comment is posted on the pull request."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class MissingSecrets(StrEnum):
    """What to do in a pull request that is given no secrets."""

    SKIP = "skip"
    FAIL = "fail"


class ImportFormat(StrEnum):
    """Whose files can be made a suite."""

    GAIA = "gaia"
    PROMPTFOO = "promptfoo"
    DEEPEVAL = "deepeval"
    CSV = "csv"


class ComparisonFormat(StrEnum):
    """How a comparison is told."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
