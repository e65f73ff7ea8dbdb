"""`compare` and `odds`: saved runs compared with each other, and with a gate."""

import json
import sys
from typing import Any

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import ComparisonFormat
from ci_evals.cli.settings.result_commands import CompareSettings, OddsSettings
from ci_evals.cli.terminal.console import colored
from ci_evals.domain.choices import Regression
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.gate.checks import GateInput, checks_of
from ci_evals.gate.decision import decide_change
from ci_evals.gate.odds import odds_of
from ci_evals.gate.policy import Policy
from ci_evals.gate.selectors import check_names, read_drops, read_thresholds
from ci_evals.job.conclude import to_record
from ci_evals.reports import console
from ci_evals.reports.facts.comparison import looks
from ci_evals.reports.markdown import documents
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.coverage import compared


def compare(settings: CompareSettings, context: RunContext) -> None:
    """Print the comparison and exit as the options say.

    Raises:
        UsageError: a file is not there or is none of ours, or an option cannot be read.
    """
    drop, drops = read_drops(settings.max_drop)
    redactor = context.hide()
    head, base = (SavedRun.open(path, redactor).results for path in (settings.head, settings.base))
    check_names("--max-drop", drops, head.suites)
    policy = Policy(max_drop=drop, max_drops=drops, regression=settings.regression)
    comparer = RunComparer(head, base)
    gate_decision = decide_change(GateInput(head, policy, comparer))
    decision = to_record(gate_decision)
    coverage = compared(head.coverage, comparer.pairs)
    result = head.model_copy(
        update={"comparison": comparer.comparison(), "gate": decision, "coverage": coverage}
    )
    context.show(_text(result, settings.format, context), exact=True)
    sys.exit(decision.exit_code)


def _text(results: Results, form: ComparisonFormat, context: RunContext) -> str:
    match form:
        case ComparisonFormat.TEXT:
            return console.comparison(
                results, width=context.width, color=colored(sys.stdout, context.environ)
            )
        case ComparisonFormat.MARKDOWN:
            return documents.comparison(results)
        case ComparisonFormat.JSON:
            parts = results.model_dump(mode="json", by_alias=True, include={"comparison", "gate"})
            # GitHub's runner obeys ##[command] anywhere in a line.
            return json.dumps(parts, indent=2).replace("##[", "#\\u0023[")


def odds(settings: OddsSettings, context: RunContext) -> None:
    """Print how often an unchanged agent would fail the gate.

    Raises:
        UsageError: the file is not there or is none of ours, an option cannot be read, or nothing was scored.
    """
    results = SavedRun.open(settings.results, context.hide()).results
    policy = _policy(settings, results.run.config)
    for warning in policy.warnings:
        context.console.say(f"warning: {warning}")
    # A recorded floor may be of a part that this run did not select; one that is asked for now must be there.
    check_names("--thresholds", policy.thresholds if settings.thresholds else (), results.suites)
    check_names("--max-drop", policy.max_drops if settings.max_drop else (), results.suites)
    checks = checks_of(GateInput(results, policy))
    estimate = odds_of(results, checks)
    if estimate is None:
        raise UsageError(
            f"{settings.results}: nothing was scored, so its noise is unknown. Name a run with scores."
        )
    context.show(console.odds(estimate, checks, looks.extent(results, estimate.loops), width=context.width))


def _policy(settings: OddsSettings, config: dict[str, Any]) -> Policy:
    """Return the gate of the saved run, changed by the options."""

    def value_of(name: str, key: str) -> Any:
        option = getattr(settings, name)
        return config.get(key) if option is None else option

    min_score, regression = value_of("min_score", "minScore"), value_of("regression", "regression")
    valid = isinstance(min_score, int | float) and 0 <= min_score <= 100
    drop, drops = read_drops(_str_or_none(value_of("max_drop", "maxDrop")))
    return Policy(
        # What a file tells is not believed where no option could say it.
        min_score=float(min_score) if valid else Policy.min_score,
        thresholds=read_thresholds(_str_or_none(value_of("thresholds", "thresholds"))),
        max_drop=drop,
        max_drops=drops,
        regression=Regression(regression) if regression in list(Regression) else Regression.OFF,
    )


def _str_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
