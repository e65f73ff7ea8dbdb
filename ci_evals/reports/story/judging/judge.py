"""The facts of the judge: its control questions, its grounds, and its cache."""

from collections.abc import Iterator, Sequence

from ci_evals.domain import numbers
from ci_evals.domain.results.judge import JudgeCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.verdict import Outcome

TOPIC = "Judge"
"""The topic of remarks on the verdicts themselves."""
_TAKEN = {None: "", "baseline": ", in the baseline", "cache": ", in the judge's cache"}


def remarks(results: Results) -> Iterator[str]:
    """Its control questions, and what its passes rest on."""
    if remark := " ".join(filter(None, [_checks(results.judge_checks), _grounds(results)])):
        yield remark


def passes_by_grounds(results: Results) -> tuple[int, int]:
    """The number of judged passes that rest on an absence, and of all that state their grounds."""
    findings = [
        finding
        for suite in results.suites
        for test in suite.tests
        for trial in test.trials
        for finding in trial.findings
        if finding.rests_on and finding.outcome is Outcome.PASSED
    ]
    return sum(finding.rests_on == "absence" for finding in findings), len(findings)


def _checks(found: Sequence[JudgeCheck]) -> str:
    """The judges' results on control questions."""
    return " ".join(
        f"{one.model} answered {one.right} of {numbers.count(one.asked, 'control question')} right on "
        f"{one.at:%Y-%m-%d}{_TAKEN[one.taken_from]} ({one.required} required): "
        f"{'passed' if one.passed else 'not passed'}."
        for one in found
    )


def _grounds(results: Results) -> str | None:
    """The grounds of judged passes; None if no verdict states them."""
    absence, passes = passes_by_grounds(results)
    if not passes:
        return None
    judged = numbers.count(passes, "judged pass", "judged passes")
    if not absence:
        return f"{judged}, each backed by quotes from the conversation."
    return (
        f"{judged}: {passes - absence:,} backed by quotes from the conversation, {absence:,} by what is "
        "absent from it."
    )


def cached(results: Results) -> str | None:
    """The share of the judge's answers that came from the cache; None if none did."""
    judges = [role for role in results.usage.by_role if role.role == "judge"]
    calls, known = sum(role.calls for role in judges), sum(role.cached for role in judges)
    if not known:
        return None
    return f"{numbers.fault(known / max(calls, known))} of the judge's answers are from the cache"
