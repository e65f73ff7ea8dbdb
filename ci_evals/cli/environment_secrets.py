"""The secrets in the environment of a command."""

from collections.abc import Collection, Mapping
from functools import cache
from urllib.parse import unquote

from ci_evals.domain.agents import lacks_secret
from ci_evals.extension_registry import provider_secrets, providers
from ci_evals.support import secrets

_OURS = (
    "LLM_API_KEY",
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
"""Variables that hold keys or tokens beside those of the providers of models."""

_HEADER_VARIABLES = ("CI_EVALS_AGENT_HEADERS", "INPUT_AGENT-HEADERS")
"""Lines of the form `NAME: VALUE`, whose values are keys."""


_OF_EVERY_JOB = (
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "INPUT_GITHUB-TOKEN",
    "CI_EVALS_GITHUB_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
)
"""Variables that hold, as a rule, the token which every job has; a fork's may only read."""
_PERSONAL = ("ghp_", "github_pat_", "gho_", "ghu_")
"""Prefixes of GitHub's tokens that are no job's own."""
_EXPORTER_VARIABLES = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")


@cache
def secret_variables() -> frozenset[str]:
    """Return the variables whose values are keys or tokens, whether this run uses them or not."""
    return provider_secrets().union(_OURS)


@cache
def _of_every_job() -> frozenset[str]:
    return frozenset(_OF_EVERY_JOB).union(*(row.job_tokens for row in providers().values()))


def keys_in(environ: Mapping[str, str]) -> list[str]:
    """Return the keys and tokens in the environment."""
    keys = [environ[name] for name in sorted(secret_variables()) if environ.get(name)]
    lines = [line for name in _HEADER_VARIABLES for line in environ.get(name, "").splitlines()]
    headers = [line.partition(":")[2].strip() for line in lines]
    headers += [unquote(value) for value in _exporter_headers(environ)]
    return [*keys, *headers, *(part for value in headers for part in value.split())]


def secret_of_job(environ: Mapping[str, str], options: Mapping[str, str | None]) -> str | None:
    """Return the name of a variable or an option that holds a secret; None if the job has none.

    The token that every job has does not count, nor do well-known dummies such as `none`.

    Args:
        environ: The environment.
        options: The options for keys by their names in messages, such as `` `llm_key=` ``.
    """
    for name, value in (*options.items(), *environ.items()):
        if value and _holds_secret(name, value):
            return name
    return None


def _holds_secret(name: str, value: str) -> bool:
    if name == "`against=`":
        options = [line.removeprefix("--").partition("=") for line in map(str.strip, value.splitlines())]
        return any(_holds_secret(_setting(option), text) for option, _, text in options)
    if name in _of_every_job() or name == "`github_token=`":
        return value.strip().startswith(_PERSONAL)
    if name in _HEADER_VARIABLES or name == "`agent_headers=`":
        headers = [line.partition(":") for line in value.splitlines()]
        return any(_is_secret_header(header, text) for header, _, text in headers)
    if name in _EXPORTER_VARIABLES:
        return any(_exporter_headers({name: value}))
    if name in secret_variables() or name in {"`llm_key=`", "`agent_key=`"}:
        return bool(value.strip()) and not secrets.is_dummy(value)
    return any(secrets.in_environment({name: value}))


def _setting(kebab: str) -> str:
    """Return the name in messages of an option, as `Option.setting` does."""
    return f"`{kebab.strip().replace('-', '_')}=`"


def _is_secret_header(name: str, value: str) -> bool:
    """Return whether a header holds a secret: by its name, unless it is blank, or by its looks."""
    words = value.split()
    if lacks_secret(name, "") and not lacks_secret(name, value):
        return bool(words) and not secrets.is_dummy(words[-1])
    return any(map(secrets.looks_made, words))


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
    known = {*secret_variables(), *public}
    return list(secrets.in_environment({name: environ[name] for name in environ if name not in known}))
