"""The facts of simulated users: how many broke character, and how."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.simulated_user import UserChecks
from ci_evals.reports.story import advice
from ci_evals.reports.story.labels import spaced
from ci_evals.reports.story.table import Column, Table, table_of

TOPIC = "Simulated user"


def remarks(results: Results) -> Iterator[str]:
    """The number of conversations that were checked, and the rules that were broken."""
    if results.user_checks:
        yield _remark(results.user_checks)


def tables(results: Results) -> Iterator[Table]:
    """Broken rules by the number of conversations."""
    if results.user_checks:
        yield _table(results.user_checks)


def warnings(results: Results) -> Iterator[str]:
    """Warnings about excluded trials, and simulated users that no model checked."""
    checks = results.user_checks
    if checks is None:
        return
    if checks.invalid:
        yield (
            f"{numbers.count(checks.invalid, 'trial')} excluded from every score: the simulated user broke "
            f"character, and again in the retry. {advice.FIX_GUIDELINES}"
        )
    if checks.not_audited:
        talks = numbers.count(checks.not_audited, "conversation")
        yield f"{talks} could not be audited by a model: only rules checked the simulated user there."


def _remark(checks: UserChecks) -> str:
    looked = f"{numbers.count(checks.conversations, 'conversation')} checked"
    if checks.audited:
        looked += f", {checks.audited:,} by a model as well"
    broke = (
        f"{numbers.estimated_fault(checks.violation_rate)} of the simulated users broke character"
        if checks.violation_rate
        else ""
    )
    played = f"{numbers.count(checks.rerun, 'trial')} retried" if checks.rerun else ""
    left = f"{checks.invalid:,} excluded" if checks.invalid else ""
    broken = f"broken rules, by conversations: {_violations(checks)}" if checks.by_rule else ""
    if not broken and not broke:
        broken = "no rule was broken"
    return "; ".join(filter(None, [looked, broke, played, left, broken])) + "."


def _violations(checks: UserChecks) -> str:
    """`repeats 2, meta text 1`."""
    return ", ".join(f"{spaced(name)} {count:,}" for name, count in _by_rule(checks))


def _by_rule(checks: UserChecks) -> list[tuple[str, int]]:
    """Broken rules with the number of conversations, the commonest first."""
    return sorted(checks.by_rule.items(), key=lambda item: (-item[1], item[0]))


def _table(checks: UserChecks) -> Table:
    columns: tuple[Column[tuple[str, int]], ...] = (
        Column("rule", words=True, show=lambda rule: spaced(rule[0])),
        Column("conversations", show=lambda rule: f"{rule[1]:,}"),
        Column(
            "of those checked",
            show=lambda rule: numbers.fault(rule[1] / max(checks.conversations, rule[1], 1)),
        ),
    )
    return table_of("Rules that simulated users broke", columns, _by_rule(checks), in_remark=True)
