"""The secrets in the environment of a command."""

from collections.abc import Collection, Mapping
from urllib.parse import unquote

from ci_evals.support import secrets

SECRET_VARIABLES = (
    "LLM_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "COPILOT_GITHUB_TOKEN",
    "COPILOT_PROVIDER_API_KEY",
    "COPILOT_PROVIDER_BEARER_TOKEN",
    "CI_EVALS_LLM_KEY",
    "AGENT_KEY",
    "CI_EVALS_AGENT_KEY",
    "CI_EVALS_GITHUB_TOKEN",
    "CI_EVALS_GITLAB_TOKEN",
    "GITLAB_TOKEN",
    "CI_JOB_TOKEN",
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


_EXPORTER_VARIABLES = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")


def keys_in(environ: Mapping[str, str]) -> list[str]:
    """Return the keys and tokens in the environment."""
    keys = [environ[name] for name in SECRET_VARIABLES if environ.get(name)]
    lines = [line for name in _HEADER_VARIABLES for line in environ.get(name, "").splitlines()]
    headers = [line.partition(":")[2].strip() for line in lines]
    headers += [unquote(value) for value in _exporter_headers(environ)]
    return [*keys, *headers, *(part for value in headers for part in value.split())]


def _exporter_headers(environ: Mapping[str, str]) -> list[str]:
    """Return the values of headers that OpenTelemetry exporters send: `NAME=VALUE`, separated by commas."""
    lists = [environ.get(name, "") for name in _EXPORTER_VARIABLES]
    return [pair.partition("=")[2].strip() for text in lists for pair in text.split(",")]


def values_in(environ: Mapping[str, str], public: Collection[str] = ()) -> list[str]:
    """Return other secrets in the environment, by their names and values.

    Args:
        environ: The environment.
        public: Variables that a suite declares not secret (`${env:NAME}`).
    """
    known = {*SECRET_VARIABLES, *public}
    return list(secrets.in_environment({name: environ[name] for name in environ if name not in known}))
