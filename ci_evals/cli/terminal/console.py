"""What the program says while it works: standard error, sanitised and without secrets."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from ci_evals.reports import sanitize
from ci_evals.support import secrets
from ci_evals.support.redaction import Redactor

PLEASE_REPORT = "This is a bug in ci-evals. Please report it with the lines above."

SECRET_VARIABLES = (
    "LLM_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CI_EVALS_LLM_KEY",
    "AGENT_KEY",
    "CI_EVALS_AGENT_KEY",
    "CI_EVALS_GITHUB_TOKEN",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "INPUT_GITHUB-TOKEN",
    "INPUT_LLM-KEY",
    "INPUT_AGENT-KEY",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
)
"""Variables whose values are keys or tokens, whether this run uses them or not."""

_HEADER_VARIABLES = ("CI_EVALS_AGENT_HEADERS", "INPUT_AGENT-HEADERS")
"""Lines of the form `NAME: VALUE`, whose values are keys."""


@dataclass(frozen=True)
class Console:
    """A stream for people. Every line goes through the redactor and the sanitiser."""

    stream: TextIO
    redactor: Redactor
    color: bool = False

    def say(self, text: str) -> None:
        """Writes `text`, line by line."""
        self._write(sanitize.log(self.redactor.text(text)))

    def command(self, line: str) -> None:
        """Writes a workflow command, which the sanitiser would break. What is foreign in it is clean."""
        self._write(self.redactor.text(line))

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # nobody listens any more; the reports are what counts
            self.stream.write(text + "\n")
            self.stream.flush()


def environment_keys(environ: Mapping[str, str]) -> list[str]:
    """The keys and tokens that stand in the environment."""
    keys = [environ[name] for name in SECRET_VARIABLES if environ.get(name)]
    lines = [line for name in _HEADER_VARIABLES for line in environ.get(name, "").splitlines()]
    headers = [line.partition(":")[2].strip() for line in lines]
    return [*keys, *headers, *(part for value in headers for part in value.split())]


def environment_values(environ: Mapping[str, str], taken: Collection[str] = ()) -> list[str]:
    """What else in the environment is a secret by its name and its looks, but for the variables `taken`.

    Those are what a suite says is no secret (`${env:NAME}`).
    """
    known = {*SECRET_VARIABLES, *taken}
    return list(secrets.in_environment({name: environ[name] for name in environ if name not in known}))


def colored(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to use colours: on a terminal or with `FORCE_COLOR`, and never with `NO_COLOR`."""
    if environ.get("NO_COLOR"):
        return False
    terminal = not stream.closed and stream.isatty()
    return bool(environ.get("FORCE_COLOR")) or (terminal and environ.get("TERM") != "dumb")
