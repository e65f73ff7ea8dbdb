"""The keys that a run lacks, and why in a pull request it may have none."""

from collections.abc import Mapping, Sequence

from ci_evals.cli.github import actions
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.agents import lacks_secret
from ci_evals.domain.plan import Plan
from ci_evals.extension_registry import providers
from ci_evals.planning.agent_choice import has_filled_headers, has_key
from ci_evals.planning.workload import of_plan
from ci_evals.wiring.providers import embedding_model, llm_key_of, runs_here

LLM_KEY, AGENT_KEY = "llm-key", "agent-key"
"""The inputs that hold them, as a workflow names them."""


def missing_keys(
    settings: RunSettings, planned: Plan, environ: Mapping[str, str], *, may_skip: bool
) -> tuple[str, ...]:
    """Return the keys that the plan needs and lacks. With `may_skip` blank headers count as missing."""
    work = of_plan(planned)
    embedder = embedding_model(settings.provider, settings.embedding_model) if work.embedder_calls else None
    needs_provider = work.needs_llm or (embedder is not None and not runs_here(embedder))
    needs_key = needs_provider and providers()[settings.provider].needs_key
    has_llm_key = not needs_key or any(llm_key_of(settings.provider, settings.llm_key, environ))
    keys = [] if has_llm_key else [LLM_KEY]
    suites = [item.suite for item in planned.suites]
    blank = may_skip and not (_are_filled(settings.agent_headers) and all(map(has_filled_headers, suites)))
    if blank or not all(map(has_key, suites)):
        keys.append(AGENT_KEY)
    return tuple(keys)


def explain_missing(github: GitHubJob) -> None:
    """Explain why a key is missing, so that nobody puts it into a file."""
    if github.event.without_secrets:
        actions.warn(
            f"{_no_secrets(github)}, and on-missing-secrets is fail. To test the pull request, push its "
            "branch to this repository once you have read it. Never put a key into a file",
            github.context,
        )


def why_skipped(github: GitHubJob, missing: Sequence[str]) -> str:
    """Return why the run is skipped."""
    are = "is" if len(missing) == 1 else "are"
    return f"{_no_secrets(github)} ({' and '.join(missing)} {are} missing)"


def _no_secrets(github: GitHubJob) -> str:
    return (
        "this fork has no secrets" if github.event.foreign else "Dependabot's pull requests have no secrets"
    )


def _are_filled(headers: str | None) -> bool:
    """Return whether no line of `--agent-headers` lacks the secret that it should carry."""
    lines = [line.partition(":") for line in (headers or "").splitlines()]
    return all(value.strip() and not lacks_secret(name, value) for name, colon, value in lines if colon)
