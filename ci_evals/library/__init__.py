"""The main job as functions, and the types that they take and give. The command line is built on it."""

from ci_evals.domain.errors import (
    AgentAccessError,
    AgentError,
    CiEvalsError,
    LLMAccessError,
    LLMAnswerError,
    LLMError,
    Problem,
    SuiteError,
    UsageError,
)
from ci_evals.domain.results.run import Results
from ci_evals.domain.suite import PlannedTurn, Suite, Test
from ci_evals.domain.transcript import Integration, Reply, Turn
from ci_evals.library.runs import (
    compare_results,
    create_adapter,
    create_aui_adapter,
    format_suite_result,
    format_test_result,
    load_results,
    results_file,
    run_suite,
    run_suite_sync,
    write_reports,
)
from ci_evals.library.suites import (
    bundled_suites,
    demo_suites_path,
    load_suite,
    package_root,
    quack_suites_path,
    suite_schema,
    validate_suite,
)
from ci_evals.planning.parse import LoadedSuite
from ci_evals.ports import LLM, Agent, Completion, Embedder, Embeddings, Prompt
from ci_evals.runner import Participants
from ci_evals.scoring.gate.policy import Policy

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
    "results_file",
    "run_suite",
    "run_suite_sync",
    "suite_schema",
    "validate_suite",
    "write_reports",
]
