"""Which agent a suite is played with: the one it names, unless the user names another."""

from dataclasses import dataclass, field, replace
from typing import Any

from ci_evals.domain.errors import Problem, SuiteError, UsageError
from ci_evals.domain.suite import Suite
from ci_evals.planning.parse import LoadedSuite


@dataclass(frozen=True)
class AgentChoice:
    """What the user says of the agent; None leaves it to the suite."""

    adapter: str | None = None
    agent_id: str | None = None
    agent_key: str | None = field(default=None, repr=False)
    base_url: str | None = None


def choose(loaded: LoadedSuite, choice: AgentChoice, *, without_key: bool = False) -> LoadedSuite:
    """The suite with the agent that it is to be played with.

    An id or an address of an agent takes a suite off the embedded demo agent; a key alone does not, as it may
    be set for all suites of a job. With `without_key` a suite without a key may pass: see `has_key`.

    Raises:
        SuiteError: an AUI agent is wanted, and neither suite nor user names its id or key.
        UsageError: the demo agent is asked for at an address of its own.
    """
    suite = loaded.suite
    elsewhere = bool(choice.agent_id or choice.base_url)
    adapter = choice.adapter or ("aui" if elsewhere and suite.adapter == "demo" else suite.adapter)
    if adapter == "demo" and choice.base_url:
        raise UsageError("--adapter=demo is the embedded agent, which has no --base-url; use --adapter=aui")
    changes: dict[str, Any] = {"adapter": adapter}
    changes |= {"agent_id": choice.agent_id} if choice.agent_id else {}
    changes |= {"api_key": choice.agent_key} if choice.agent_key else {}
    changes |= {"base_url": choice.base_url} if choice.base_url else {}
    chosen = Suite.model_validate(suite.model_dump() | changes)
    problems = [Problem(loaded.file, 1, 1, path, message) for path, message in _missing(chosen)]
    if problems and not (without_key and not has_key(chosen)):
        raise SuiteError(problems)
    return replace(loaded, suite=chosen)


def has_key(suite: Suite) -> bool:
    """Whether the suite has the key that its agent needs, if it needs one."""
    return suite.adapter != "aui" or bool(suite.api_key and suite.api_key.get_secret_value().strip())


def _missing(suite: Suite) -> list[tuple[str, str]]:
    """What an AUI agent cannot be reached without."""
    if suite.adapter != "aui":
        return []
    missing = []
    if suite.agent_id is None:
        missing.append(("agentId", "is missing; or name the agent by --agent-id"))
    if not has_key(suite):
        hint = 'write "${AUI_API_KEY}" there, or give --agent-key or CI_EVALS_AGENT_KEY'
        missing.append(("apiKey", f"is missing; {hint}"))
    return missing
