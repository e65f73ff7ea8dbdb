"""The tests that fail, in Markdown: whole, or in a line each."""

from collections.abc import Sequence
from dataclasses import replace

from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import change, divergence, failed_tests, highlights, labels
from ci_evals.reports.facts.failed_tests import CONFIRMED, FailedTest
from ci_evals.reports.facts.labels import RunOutcome
from ci_evals.reports.facts.verdicts import NO_REASON
from ci_evals.reports.markdown.sections import Rank, Section, folded, listing, section

_CRITERIA = 3
"""Failed criteria of a test that are shown; its own report has all."""
_QUOTED = 2
"""Turns of a test that are quoted."""
_FEW = 3
"""Failures that are shown at once."""
_NAME = 80
"""Characters of what an agent names."""
_BRIEF = 160
"""Characters of a reason in the list of those that are not shown whole."""


def newly_failing(results: Results, tests: Sequence[FailedTest]) -> tuple[Section, ...]:
    """The section on newly failing tests."""
    if not tests:
        return ()
    title, remark = failed_tests.title_of_newly_failing(results, tests)
    noun = "of these tests" if change.newly_failing_outcomes(results) else "newly failing test"
    many = results.comparison is not None and len(results.comparison.suites) > 1
    whole = _section("the newly failing tests", f"### {title}\n\n{remark}", tests, noun, many=many)
    return listing(whole, _FEW, Rank.REST)


def others(results: Results, shown: Sequence[FailedTest] = ()) -> tuple[Section, ...]:
    """The section on the failed tests that are not among `shown`, the newly failing ones.

    If the gate passes it is folded: what the gate allows is not what a reader must see first.
    """
    tests = failed_tests.others(results, shown)
    if not tests:
        return ()
    title = numbers.count(len(tests), "more failed test" if shown else "failed test")
    remark = failed_tests.on_others(tests) if shown else ""
    whole = _section("the failed tests", remark, tests, "failed test", many=len(results.suites) > 1)
    if highlights.run_outcome(results) in {RunOutcome.PASSED, RunOutcome.UNCHECKED}:
        allowed = title if shown else f"{title} that the gate allows"
        return (folded(allowed, replace(whole, rank=Rank.REST)),)
    return listing(replace(whole, head=f"### {title}\n\n{remark}"), _FEW, Rank.REST)


def test_name(suite: str, test: str, *, many: bool) -> str:
    """The name of a test, with its suite's if there are `many`."""
    name = sanitize.inline(test, 160)
    return f"{sanitize.inline(suite, 100)} › {name}" if many else name


def _section(name: str, head: str, tests: Sequence[FailedTest], noun: str, *, many: bool) -> Section:
    return Section(
        name,
        head,
        Rank.FAILING,
        rows=tuple(_whole(failed, many=many) for failed in tests),
        brief=tuple(_brief(failed, many=many) for failed in tests),
        noun=noun,
    )


def _whole(failed: FailedTest, *, many: bool) -> str:
    criteria = failed.criteria[:_CRITERIA]
    remarks = _remarks(failed)
    where = failed.change.first_divergence if failed.change else None
    text = section(
        "failure",
        test=test_name(failed.suite, failed.name, many=many),
        sign=labels.OUTCOMES[failed.outcome].sign,
        scores=_scores(failed),
        remarks=remarks.replace("**c", "**C", 1) if remarks[:1] == "*" else remarks[:1].upper() + remarks[1:],
        criteria=criteria,
        more=len(failed.criteria[_CRITERIA:]),
        evidence=failed.change.evidence if failed.change else None,
        warnings=failed.warnings,
        quotations=failed.quotations(criteria)[:_QUOTED],
        divergence=divergence.sentence(where, lambda name: sanitize.code(name[:_NAME])) if where else "",
    )
    return f"\n{text}"


def _brief(failed: FailedTest, *, many: bool) -> str:
    remarks = _remarks(failed)
    name = test_name(failed.suite, failed.name, many=many)
    line = f"- **{name}**{_scores(failed)}" + (f", {remarks}" if remarks else "")
    if failed.first_reason is None:
        return line
    criterion, reason = (sanitize.inline(text, _BRIEF) for text in failed.first_reason)
    warning = failed.warnings.get(failed.first_reason[0])
    warned = f" (⚠️ {sanitize.inline(warning, _BRIEF)})" if warning else ""
    return f"{line}. “{criterion}”: {reason or NO_REASON}{warned}"


def _scores(failed: FailedTest) -> str:
    # In brackets: a colon behind a name that ends in one more would make a picture of it.
    return f" ({failed.scores})" if failed.scores else ""


def _remarks(failed: FailedTest) -> str:
    return ", ".join(failed.remarks).replace(CONFIRMED, f"**{CONFIRMED}**", 1)
