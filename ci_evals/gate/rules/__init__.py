"""The rules of the gate, in the order of reports."""

from ci_evals.domain.results.gate import CheckId
from ci_evals.gate.rule import Rule
from ci_evals.gate.rules.critical import Critical
from ci_evals.gate.rules.fail_fast import FailFast
from ci_evals.gate.rules.max_cost import MaxCost
from ci_evals.gate.rules.max_drop import MaxDrop
from ci_evals.gate.rules.max_errors import MaxErrors
from ci_evals.gate.rules.max_invalid_users import MaxInvalidUsers
from ci_evals.gate.rules.max_p95_latency import MaxP95Latency
from ci_evals.gate.rules.min_score import MinScore
from ci_evals.gate.rules.regression import NoRegression
from ci_evals.gate.rules.thresholds import Thresholds
from ci_evals.gate.rules.weakened import NotWeakened

RULES: tuple[type[Rule], ...] = (
    MinScore,
    Thresholds,
    Critical,
    MaxDrop,
    NoRegression,
    NotWeakened,
    MaxCost,
    MaxP95Latency,
    MaxErrors,
    MaxInvalidUsers,
    FailFast,
)
_BY_KIND = {rule.kind: rule for rule in RULES}


def rule_of(check: CheckId) -> type[Rule]:
    """Return the rule that a check is of."""
    return _BY_KIND[check.kind]
