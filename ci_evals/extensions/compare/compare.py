"""`compare` and `odds`: saved runs compared with each other, and with a gate."""

import json
import sys
from dataclasses import replace

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal.console import colored
from ci_evals.domain.results.run import Results
from ci_evals.extensions.compare.settings import CompareSettings, ComparisonFormat
from ci_evals.gate.decision import decide_change
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import BaselineResults, to_record, weakened_since
from ci_evals.reports import console
from ci_evals.reports.markdown import documents
from ci_evals.reports.story.story import story_of
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.comparison.reruns import level_of
from ci_evals.scoring.coverage import compared
from ci_evals.support import dataclass_json


def compare(settings: CompareSettings, context: RunContext) -> None:
    """Print the comparison and exit as the options say.

    Raises:
        UsageError: a file is not there or is none of ours, or an option cannot be read.
    """
    policy = Policy.from_options(vars(settings))
    redactor = context.hide()
    head, base = (
        SavedRun.open(path, redactor, earlier_version=True).results for path in (settings.head, settings.base)
    )
    policy.check_names(head.suites)
    comparer = RunComparer(head, base)
    less = weakened_since(head, policy, BaselineResults(base), saved=True)
    level = level_of(head.run)
    gate_decision = decide_change(GateInput(head, comparer, weakened=less, level=level), policy)
    decision = to_record(gate_decision)
    coverage = compared(head.coverage, comparer.pairs)
    comparison = replace(comparer.comparison(), level=level)
    result = replace(head, comparison=comparison, gate=decision, weakened=less, coverage=coverage)
    context.show(_text(result, settings.format, context), exact=True)
    sys.exit(decision.exit_code)


def _text(results: Results, form: ComparisonFormat, context: RunContext) -> str:
    match form:
        case ComparisonFormat.TEXT:
            return console.comparison(
                story_of(results), width=context.width, color=colored(sys.stdout, context.environ)
            )
        case ComparisonFormat.MARKDOWN:
            return documents.comparison(story_of(results))
        case ComparisonFormat.JSON:
            parts = {
                "gate": dataclass_json.to_value(results.gate),
                "comparison": dataclass_json.to_value(results.comparison),
                "weakened": dataclass_json.to_value(results.weakened),
            }
            # GitHub's runner obeys ##[command] anywhere in a line.
            return json.dumps(parts, indent=2).replace("##[", "#\\u0023[")
