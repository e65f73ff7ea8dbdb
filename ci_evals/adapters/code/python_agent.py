"""`python:module:attribute`: an agent out of the user's own Python, imported as `python -m` would."""

import difflib
import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ci_evals.adapters.code.about import About
from ci_evals.adapters.code.any_agent import agent_of
from ci_evals.adapters.code.foreign_code import CodeUsageError, words_of
from ci_evals.adapters.code.object_agent import CodeAgent
from ci_evals.domain.agents import PYTHON
from ci_evals.domain.errors import UsageError
from ci_evals.support.redaction import Redactor

_PAGE = "see docs/python-agent.md"


def load(adapter: str, about: About, folder: Path, redactor: Redactor | None = None) -> CodeAgent:
    """The agent that `python:module:attribute` names. Imports the module, with `folder` first on the path.

    A function is called for each message; a class is made an object once, with `adapterOptions` if it takes
    an argument, and an object is used as it is.

    Raises:
        UsageError: the module cannot be imported, or there is no agent of that name in it.
    """
    redactor = redactor or Redactor()
    module_name, _, attribute = adapter.removeprefix(PYTHON).partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    module = _module(module_name, adapter, folder, redactor)
    target = _attribute(module, attribute, adapter)
    if isinstance(target, type):
        target = _made(target, about, adapter, redactor)
    return agent_of(target, adapter, about, redactor, apart=True)


def _module(name: str, adapter: str, folder: Path, redactor: Redactor) -> ModuleType:
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            stem = name.removesuffix(".py")
            hint = f"a module is named without '.py': 'python:{stem}:…'; " if stem != name else ""
            raise UsageError(
                f"adapter {adapter!r}: there is no module {error.name!r}, neither in {str(folder)!r} nor "
                f"installed beside ci-evals; {hint}{_PAGE}"
            ) from None
        missing = f"; install {error.name!r} beside ci-evals, or bring it along: {_PAGE}"
        words = words_of(error).around(f"adapter {adapter!r}: {name!r} cannot be imported: ", missing)
        raise CodeUsageError(words, redactor) from error
    except (Exception, SystemExit) as error:
        words = words_of(error).around(f"adapter {adapter!r}: {name!r} cannot be imported: ")
        raise CodeUsageError(words, redactor) from error


def _attribute(module: ModuleType, path: str, adapter: str) -> Any:
    target: Any = module
    for name in path.split("."):
        try:
            target = getattr(target, name)
        except AttributeError:
            close = difflib.get_close_matches(name, [one for one in dir(target) if one[0] != "_"], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            where = getattr(module, "__file__", None) or "a folder without code"
            raise UsageError(
                f"adapter {adapter!r}: the module {module.__name__!r} ({where}) has no {path!r}{hint}"
            ) from None
    return target


def _made(kind: type, about: About, adapter: str, redactor: Redactor) -> Any:
    """An object of the class, made with the options where it asks for an argument."""
    try:
        return kind(dict(about.options)) if _wants_options(kind) else kind()
    except (Exception, SystemExit) as error:
        words = words_of(error).around(f"adapter {adapter!r}: {kind.__name__} could not be made: ")
        raise CodeUsageError(words, redactor) from error


def _wants_options(kind: type) -> bool:
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return False
    named = (p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    first = next(named, None)
    return first is not None and (first.default is first.empty or first.name == "options")
