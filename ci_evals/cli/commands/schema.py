"""`schema`: the JSON Schemas of suites and results."""

import json

from ci_evals.cli.terminal.console import show
from ci_evals.domain.schema import results_schema, suite_schema


def schema(*, results: bool) -> None:
    """Prints a JSON Schema."""
    show(json.dumps(results_schema() if results else suite_schema(), indent=2))
