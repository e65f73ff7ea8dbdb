"""The CI gate for conversational agents: plays test suites as conversations, judges them, and decides.

from ci_evals import create_aui_adapter, format_suite_result, load_suite, run_suite_sync

adapter = create_aui_adapter("AGENT_KEY", "LLM_KEY", "openai")
print(format_suite_result(run_suite_sync(adapter, load_suite("my-suite.json"))))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ci_evals._version import __version__

if TYPE_CHECKING:
    from ci_evals.library import (
        LLM,
        Agent,
        AgentAccessError,
        AgentError,
        CiEvalsError,
        Completion,
        Embedder,
        Embeddings,
        Integration,
        LLMAccessError,
        LLMAnswerError,
        LLMError,
        LoadedSuite,
        Participants,
        PlannedTurn,
        Policy,
        Problem,
        Prompt,
        Reply,
        Results,
        Suite,
        SuiteError,
        Test,
        Turn,
        UsageError,
        bundled_suites,
        compare_results,
        create_adapter,
        create_aui_adapter,
        demo_suites_path,
        format_suite_result,
        format_test_result,
        load_results,
        load_suite,
        package_root,
        quack_suites_path,
        run_suite,
        run_suite_sync,
        suite_schema,
        validate_suite,
        write_reports,
    )

__all__ = [
    "LLM",
    "Agent",
    "AgentAccessError",
    "AgentError",
    "CiEvalsError",
    "Completion",
    "Embedder",
    "Embeddings",
    "Integration",
    "LLMAccessError",
    "LLMAnswerError",
    "LLMError",
    "LoadedSuite",
    "Participants",
    "PlannedTurn",
    "Policy",
    "Problem",
    "Prompt",
    "Reply",
    "Results",
    "Suite",
    "SuiteError",
    "Test",
    "Turn",
    "UsageError",
    "__version__",
    "bundled_suites",
    "compare_results",
    "create_adapter",
    "create_aui_adapter",
    "demo_suites_path",
    "format_suite_result",
    "format_test_result",
    "load_results",
    "load_suite",
    "package_root",
    "quack_suites_path",
    "run_suite",
    "run_suite_sync",
    "suite_schema",
    "validate_suite",
    "write_reports",
]


def __getattr__(name: str) -> Any:
    """Imports the library when a part of it is first asked for: `ci-evals --help` must not wait for it."""
    if name in __all__:
        return getattr(import_module("ci_evals.library"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
