"""Agents in Python, found by name: `python:module:attribute`, or the plug-in of another package.

A plug-in is a factory named by an entry point of the group `ci_evals.adapters`. It is given a mapping and
returns an agent, as `agent_of` takes it.
"""

import difflib
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ci_evals.agents import plugins
from ci_evals.agents.code.foreign_code import CodeUsageError, message_of, positional_parameters
from ci_evals.agents.python.agent import CodeAgent, FunctionAgent, ObjectAgent
from ci_evals.agents.settings import AgentSettings, CodeEnvironment
from ci_evals.domain.agents import PYTHON
from ci_evals.domain.errors import UsageError
from ci_evals.extension_registry import adapter_of, object_forms
from ci_evals.ports import Agent
from ci_evals.support.documentation import see
from ci_evals.support.redaction import Redactor

_FORMS = (
    "a function reply(message)",
    "an object with open_session and send_message or with spawn_session and send_message",
)
_PAGE = f"see {see('python-agent')}"


def build(adapter: str, settings: AgentSettings, redactor: Redactor, where: CodeEnvironment) -> Agent:
    """Return the agent of that name, loaded now, or when the process for agents in Python starts.

    Raises:
        UsageError: there is no such agent, or it cannot be used.
    """
    if where.host:
        return where.host().agent(adapter, settings)
    if adapter.startswith(PYTHON):
        _import_late_packages()
    return load(adapter, settings, Path.cwd(), redactor)


def _import_late_packages() -> None:
    """Once a folder of the user's is on the path, a `tabulate.py` in there would be taken for the package."""
    for name in ("aiohttp", "jinja2", "junit_xml", "rapidfuzz.distance", "svg", "tabulate", "yaml"):
        importlib.import_module(name)


def load(adapter: str, settings: AgentSettings, folder: Path, redactor: Redactor | None = None) -> CodeAgent:
    """The agent of a name, imported into this process; raise `UsageError` if that cannot be done."""
    if adapter.startswith(PYTHON):
        return load_python(adapter, settings, folder, redactor)
    return load_plugin(adapter, settings, redactor)


def load_python(
    adapter: str, settings: AgentSettings, folder: Path, redactor: Redactor | None = None
) -> CodeAgent:
    """The agent that `python:module:attribute` names. Imports the module, with `folder` first on the path.

    A function is called for each message; a class is made an object once, with `adapterOptions` if it takes
    an argument, and an object is used as it is. Raise `UsageError` if there is no such agent.
    """
    redactor = redactor or Redactor()
    module_name, _, attribute = adapter.removeprefix(PYTHON).partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    module = _module(module_name, adapter, folder, redactor)
    target = _attribute(module, attribute, adapter)
    if isinstance(target, type):
        target = _instance(target, settings, adapter, redactor)
    return agent_of(target, adapter, settings, redactor, apart=True)


def load_plugin(name: str, settings: AgentSettings, redactor: Redactor | None = None) -> CodeAgent:
    """The agent of the plug-in of that name; raise `UsageError` about the package if there is none."""
    redactor = redactor or Redactor()
    entry = plugins.named(name)
    origin = f"adapter {name!r} of {plugins.packages(entry)}"
    try:
        factory = entry.load()
    except (Exception, SystemExit) as error:
        raise _unusable(f"{origin}: {entry.value!r} cannot be imported: ", error, redactor) from error
    if not callable(factory):
        raise UsageError(
            f"{origin}: {entry.value!r} is not a factory but of the type {type(factory).__name__}"
        )
    config = {
        "agentId": settings.agent_id,
        "apiKey": settings.api_key,
        "baseUrl": settings.base_url,
        "model": settings.model,
        "options": dict(settings.options),
        "debug": settings.debug,
    }
    try:
        agent = factory(config)
    except UsageError as error:
        raise UsageError(f"{origin}: {error}") from error
    except (Exception, SystemExit) as error:
        raise _unusable(f"{origin}: its factory {entry.value!r} raised ", error, redactor) from error
    return agent_of(agent, origin, settings, redactor, apart=True)


def agent_of(
    target: Any, name: str, settings: AgentSettings, redactor: Redactor | None = None, *, apart: bool = False
) -> CodeAgent:
    """The agent that an object is: one an extension knows, one with methods, of four methods, or a function.

    Calls nothing of it. Raise `UsageError` if it is none, or cannot be called as it will be.
    """
    target = adapter_of(target, name, settings) or target
    if _has(target, "open_session", "send_message"):
        return ObjectAgent(target, name, settings, redactor=redactor, apart=apart)
    if _has(target, "spawn_session", "send_message"):
        from ci_evals.agents.python.four_methods import FourMethodAgent  # noqa: PLC0415  # 0.2 s, for few

        return FourMethodAgent(target, name, settings, redactor=redactor, apart=apart)
    if callable(target) and not isinstance(target, type):
        return FunctionAgent(target, name, settings, redactor=redactor, apart=apart)
    is_class = isinstance(target, type)
    kind = f"the class {target.__name__}" if is_class else f"of the type {type(target).__name__}"
    camel = [method for method in ("openSession", "spawnSession", "sendMessage") if hasattr(target, method)]
    hint = f" (found {', '.join(camel)}: in Python names are spelled as in send_message)" if camel else ""
    *forms, last = [*_FORMS, *object_forms()]
    raise UsageError(f"{name} is not an agent but {kind}; an agent is {', '.join(forms)}, or {last}{hint}")


def _has(target: Any, *methods: str) -> bool:
    return not isinstance(target, type) and all(callable(getattr(target, name, None)) for name in methods)


def _unusable(before: str, error: BaseException, redactor: Redactor, after: str = "") -> CodeUsageError:
    return CodeUsageError(message_of(error).around(before, after), redactor)


def _module(name: str, adapter: str, folder: Path, redactor: Redactor) -> ModuleType:
    importlib.invalidate_caches()
    failure = f"adapter {adapter!r}: {name!r} cannot be imported: "
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            stem = name.removesuffix(".py")
            hint = f"a module is named without '.py': 'python:{stem}:…'; " if stem != name else ""
            raise UsageError(
                f"adapter {adapter!r}: there is no module {error.name!r}, neither in {str(folder)!r} nor "
                f"installed next to ci-evals; {hint}{_PAGE}"
            ) from None
        missing = f"; install {error.name!r} next to ci-evals, or bring it along: {_PAGE}"
        raise _unusable(failure, error, redactor, missing) from error
    except (Exception, SystemExit) as error:
        runs = isinstance(error, RuntimeError) and "event loop" in str(error)
        hint = "; put what runs the agent below `if __name__ == '__main__':`" if runs else ""
        raise _unusable(failure, error, redactor, hint) from error


def _attribute(module: ModuleType, path: str, adapter: str) -> Any:
    target: Any = module
    for name in path.split("."):
        try:
            target = getattr(target, name)
        except AttributeError:
            public = [attribute for attribute in dir(target) if attribute[0] != "_"]
            close = difflib.get_close_matches(name, public, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            file = getattr(module, "__file__", None) or "a folder without code"
            raise UsageError(
                f"adapter {adapter!r}: the module {module.__name__!r} ({file}) has no {path!r}{hint}"
            ) from None
    return target


def _instance(kind: type, settings: AgentSettings, adapter: str, redactor: Redactor) -> Any:
    """An object of the class, made with the options if it takes an argument."""
    try:
        return kind(dict(settings.options)) if _wants_options(kind) else kind()
    except (Exception, SystemExit) as error:
        raise _unusable(
            f"adapter {adapter!r}: {kind.__name__} could not be made: ", error, redactor
        ) from error


def _wants_options(kind: type) -> bool:
    first = positional_parameters(kind)[:1]
    return any(parameter.default is parameter.empty or parameter.name == "options" for parameter in first)
