"""The CI gate for conversational agents: plays test suites as conversations, judges them, and decides.

from ci_evals import create_aui_adapter, format_suite_result, load_suite, run_suite_sync

adapter = create_aui_adapter("AGENT_KEY", "LLM_KEY", "openai")
print(format_suite_result(run_suite_sync(adapter, load_suite("my-suite.json"))))
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ci_evals._version import __version__ as __version__

if TYPE_CHECKING:
    from ci_evals.library import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import the library when a part of it is first used: the help of the command must not wait for it."""
    if name == "__all__":
        members = vars(import_module("ci_evals.library")).items()
        public = {key for key, value in members if not (key.startswith("_") or isinstance(value, ModuleType))}
        return sorted(public | {"__version__"})
    if not name.startswith("_") and hasattr(library := import_module("ci_evals.library"), name):
        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
