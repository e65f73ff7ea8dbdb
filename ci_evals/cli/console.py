"""What the program says while it works: standard error, sanitised and without secrets."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from ci_evals.redaction import Redactor
from ci_evals.reports import sanitize

KEY_VARIABLES = ("LLM_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
SECRET_VARIABLES = (
    *KEY_VARIABLES,
    "CI_EVALS_LLM_KEY",
    "CI_EVALS_AGENT_KEY",
    "GITHUB_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
)
"""Variables whose values are keys or tokens, whether this run uses them or not."""


@dataclass(frozen=True)
class Console:
    """A stream for people. Every line goes through the redactor and the sanitiser."""

    stream: TextIO
    redactor: Redactor
    color: bool = False

    def say(self, text: str) -> None:
        """Writes `text`, line by line."""
        self.stream.write(sanitize.log(self.redactor.text(text)) + "\n")
        self.stream.flush()


def environment_keys(environ: Mapping[str, str]) -> list[str]:
    """The keys and tokens that stand in the environment."""
    return [environ[name] for name in SECRET_VARIABLES if environ.get(name)]


def error_console(environ: Mapping[str, str], redactor: Redactor | None = None) -> Console:
    """Standard error, knowing at least the secrets of the environment."""
    return Console(sys.stderr, redactor or Redactor(environment_keys(environ)), colored(sys.stderr, environ))


def colored(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to use colours: on a terminal or with `FORCE_COLOR`, and never with `NO_COLOR`."""
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or (stream.isatty() and environ.get("TERM") != "dumb")
