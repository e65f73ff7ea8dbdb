"""An agent by a plug-in: another package's factory, named by an entry point of the group `ci_evals.adapters`.

The factory is given a mapping with the keys of `config`, and gives back an agent as `any_agent` takes it.
"""

from typing import Any

from ci_evals.adapters.code import plugins
from ci_evals.adapters.code.about import About
from ci_evals.adapters.code.any_agent import agent_of
from ci_evals.adapters.code.foreign_code import CodeUsageError, words_of
from ci_evals.adapters.code.object_agent import CodeAgent
from ci_evals.domain.errors import UsageError
from ci_evals.support.redaction import Redactor


def config(about: About) -> dict[str, Any]:
    """What a factory is given."""
    return {
        "agentId": about.agent_id,
        "apiKey": about.api_key,
        "baseUrl": about.base_url,
        "model": about.model,
        "options": dict(about.options),
        "debug": about.debug,
    }


def load(name: str, about: About, redactor: Redactor | None = None) -> CodeAgent:
    """The agent of the plug-in of that name.

    Raises:
        UsageError: there is none, or two, or it gives no agent; the message names the package at fault.
    """
    redactor = redactor or Redactor()
    entry = plugins.named(name)
    who = f"adapter {name!r} of {plugins.packages(entry)}"
    try:
        factory = entry.load()
    except (Exception, SystemExit) as error:
        words = words_of(error).around(f"{who}: {entry.value!r} cannot be imported: ")
        raise CodeUsageError(words, redactor) from error
    if not callable(factory):
        raise UsageError(f"{who}: {entry.value!r} is no factory but of the type {type(factory).__name__}")
    try:
        agent = factory(config(about))
    except UsageError as error:
        raise UsageError(f"{who}: {error}") from error
    except (Exception, SystemExit) as error:
        words = words_of(error).around(f"{who}: its factory {entry.value!r} raised ")
        raise CodeUsageError(words, redactor) from error
    return agent_of(agent, who, about, redactor, apart=True)
