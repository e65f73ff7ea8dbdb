"""`schema`: the JSON Schemas of suites and results."""

import json

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.results.run import results_schema
from ci_evals.extension_registry import study_kinds
from ci_evals.planning.suite_keys import schema_with_added_keys


def schema(context: RunContext, *, results: bool) -> None:
    """Print a JSON Schema."""
    data = results_schema(study_kinds()) if results else schema_with_added_keys()
    context.show(json.dumps(data, indent=2), exact=True)
