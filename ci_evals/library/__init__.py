"""The main job as functions, and the types that they take and return. The command line is built on it.

Each name that is imported here as itself is public: `from ci_evals import NAME` imports the same.
"""

# ruff: isort: skip_file

from ci_evals.domain.errors import (
    AgentAccessError as AgentAccessError,
    AgentError as AgentError,
    CiEvalsError as CiEvalsError,
    LLMAccessError as LLMAccessError,
    LLMAnswerError as LLMAnswerError,
    LLMError as LLMError,
    Problem as Problem,
    SuiteError as SuiteError,
    UsageError as UsageError,
)
from ci_evals.domain.suite import (
    GivenReply as GivenReply,
    PlannedTurn as PlannedTurn,
    Suite as Suite,
    Test as Test,
)
from ci_evals.domain.transcript import (
    Integration as Integration,
    Reply as Reply,
    Turn as Turn,
)
from ci_evals.library.runs import (
    compare_results as compare_results,
    create_adapter as create_adapter,
    create_aui_adapter as create_aui_adapter,
    format_suite_result as format_suite_result,
    format_test_result as format_test_result,
    load_results as load_results,
    run_suite as run_suite,
    run_suite_sync as run_suite_sync,
    write_reports as write_reports,
)
from ci_evals.library.suites import (
    bundled_suites as bundled_suites,
    demo_suites_path as demo_suites_path,
    load_suite as load_suite,
    package_root as package_root,
    quack_suites_path as quack_suites_path,
    suite_schema as suite_schema,
    validate_suite as validate_suite,
)
from ci_evals.ports import (
    LLM as LLM,
    Agent as Agent,
    Completion as Completion,
    Embedder as Embedder,
    Embeddings as Embeddings,
    Prompt as Prompt,
)
from ci_evals.domain.results.run import Results as Results
from ci_evals.planning.parse import LoadedSuite as LoadedSuite
from ci_evals.runner import Participants as Participants
from ci_evals.gate.policy import Policy as Policy
