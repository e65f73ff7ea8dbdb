"""The variables of the environment that code which a run starts may see."""

from collections.abc import Mapping

from ci_evals.extension_registry import knows_all_providers, provider_secrets
from ci_evals.support.secrets import is_secret_name

OF_THE_MACHINE = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "HOSTNAME", "LANG", "LC_ALL", "TMPDIR", "TMP", "TEMP",
    "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
})  # fmt: skip
"""Variables that each machine has of its own."""

_OURS = ("INPUT_", "CI_EVALS_", "ACTIONS_RUNTIME_")
_FILE_COMMANDS = frozenset({
    "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_STATE",
})  # fmt: skip
"""Files that the runner obeys: a program that knows them could make a step pass."""
_OF_THE_RUNNER = ("ACTIONS_",)
_OUR_KEYS = frozenset({"GITHUB_TOKEN", "LLM_API_KEY"})
_OF_THE_PLATFORM = frozenset({
    "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN",
    "CI_JOB_JWT", "CI_JOB_JWT_V2", "CI_BUILD_TOKEN", "CI_REPOSITORY_URL", "CI_REGISTRY_PASSWORD",
    "CI_DEPLOY_PASSWORD", "CI_DEPENDENCY_PROXY_PASSWORD",
})  # fmt: skip
"""Tokens of GitHub and GitLab, also in addresses."""
_OF_EXPORTERS = frozenset({"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"})
"""Keys of the backend that results are exported to."""


def environment_for_step(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program or function of a suite: without any key or token of ours.

    If an extension does not load, its providers' secrets are unknown: all variables named like secrets go.
    """
    hidden = provider_secrets() | _OF_EXPORTERS
    if not knows_all_providers():
        hidden |= frozenset(filter(is_secret_name, environ))
    return _without(hidden, environment_for_agent(environ))


def environment_for_agent(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an agent that is code, which may have a model provider's key of its own."""
    return _without(_OF_THE_PLATFORM, environment_for_model(environ))


def environment_for_model(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program that is a model, which has its own login."""
    return _without(_OUR_KEYS, environment_for_worker(environ), _OF_THE_RUNNER)


def environment_for_worker(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a part of the run on another machine, without our options and files."""
    return _without(_FILE_COMMANDS, environ, _OURS)


def _without(
    names: frozenset[str], environ: Mapping[str, str], prefixes: tuple[str, ...] = ()
) -> dict[str, str]:
    return {
        name: value for name, value in environ.items() if name not in names and not name.startswith(prefixes)
    }
