"""The tests that fail, in Markdown: whole, or in a line each."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import quote

from ci_evals.reports import sanitize
from ci_evals.reports.markdown.sections import Rank, Section, SummaryContext, listing, section
from ci_evals.reports.story.failures import FailedTest, by_reasons
from ci_evals.reports.story.outcome_labels import OUTCOMES
from ci_evals.reports.story.phrases import NO_REASON, joined

_CRITERIA = 3
"""Failed criteria of a test that are shown; its own report has all."""
_QUOTED = 2
"""Turns of a test that are quoted."""
_FEW = 3
"""Failures that are shown at once, each with those that failed for the same reasons."""
_MOST = 10
"""Failures that are shown at once at most."""
_NAME = 80
"""Characters of what an agent names."""
_BRIEF = 160
"""Characters of a reason in the list of those that are not shown whole."""


def failed(
    name: str,
    title: str,
    tests: Sequence[FailedTest],
    *,
    many: bool,
    context: SummaryContext,
    most: int | None = None,
) -> tuple[Section, ...]:
    """A section on tests that fail: the first with reasons and turns, the others folded.

    Those beyond `most`, if it is given, are only counted.
    """
    if not tests:
        return ()
    shown = tuple(by_reasons(tests[:most]))
    rows: list[str] = []
    firsts: list[int] = []
    for test, first in shown:
        if first is None:
            firsts.append(len(rows))
            rows.append(_whole(test, many=many, context=context))
        else:
            gap = "\n" if firsts[-1] == len(rows) - 1 else ""
            heading = _heading(test, many=many, context=context)
            same = sanitize.inline(first.name, _NAME)
            rows.append(f"{gap}- {heading}; same criteria and reasons as *{same}*")
    whole = Section(
        name,
        f"### {title}",
        Rank.FAILING,
        rows=tuple(rows),
        brief=tuple(_brief(test, many=many, context=context) for test, _ in shown),
        unlisted=len(tests) - len(shown),
    )
    few = firsts[_FEW] if len(firsts) > _FEW else len(rows)
    return listing(whole, min(few, _MOST), Rank.REST)


def name_of(suite: str, test: str, *, many: bool, url: str | None = None) -> str:
    """The name of a test, with its suite's if there are `many`, and a link to its line in the suite."""
    name = sanitize.inline(test, 160)
    name = f"[{name}]({url})" if url else name
    return f"{sanitize.inline(suite, 100)} › {name}" if many else name


def names(tests: Sequence[str], shown: int = 3) -> str:
    """The first names, set off from the sentence around them, and how many more there are."""
    listed = [f"*{sanitize.inline(name, _NAME)}*" for name in tests[:shown]]
    more = len(tests) - len(listed)
    if more > 0:
        return f"{', '.join(listed)} and {more:,} more"
    return joined(listed)


def _url(failed: FailedTest, context: SummaryContext) -> str | None:
    """The address of the test's line at the tested commit; None if the file may not be in the repository."""
    if not (context.source_url and failed.file and failed.test):
        return None
    path = PurePosixPath(failed.file)
    if path.is_absolute() or ".." in path.parts or "\\" in failed.file or ":" in failed.file:
        return None
    return f"{context.source_url}/{quote(str(path), errors='replace')}#L{failed.test.line}"


def _whole(failed: FailedTest, *, many: bool, context: SummaryContext) -> str:
    criteria = failed.criteria[:_CRITERIA]
    where = failed.change.first_divergence if failed.change else None
    differs = where is not None and (where.turn is not None or where.agent_differs is not None)
    divergence = ""
    if differs:
        plain = replace(failed, base=sanitize.inline(failed.base, _NAME))
        divergence = plain.divergence(lambda name: sanitize.code(name[:_NAME]))
    text = section(
        "failure",
        heading=_heading(failed, many=many, context=context),
        early_end=failed.early_end,
        criteria=criteria,
        reason=failed.reason,
        more=len(failed.criteria[_CRITERIA:]),
        evidence=failed.change.evidence if failed.change else None,
        warnings=failed.warnings,
        quotations=failed.quotations(criteria)[:_QUOTED],
        divergence=divergence,
    )
    return f"\n{text}"


def _brief(failed: FailedTest, *, many: bool, context: SummaryContext) -> str:
    line = f"- {_heading(failed, many=many, context=context)}"
    if failed.first_reason is None:
        return line
    criterion, reason = (sanitize.inline(text, _BRIEF) for text in failed.first_reason)
    warning = failed.warnings.get(failed.first_reason[0])
    warned = f" (⚠️ {sanitize.inline(warning, _BRIEF)})" if warning else ""
    return f"{line}. *{criterion}*: {reason or NO_REASON}{warned}"


def _heading(failed: FailedTest, *, many: bool, context: SummaryContext) -> str:
    """Sign, name, scores, and what is special about the test."""
    label, test = OUTCOMES[failed.outcome], failed.test
    name = name_of(failed.suite, failed.name, many=many, url=_url(failed, context))
    facts = [
        failed.scores,
        failed.trials_passed,
        label.words if label.words != "failed" else "",
    ]
    # In brackets: a colon behind a name that ends in one more would make a picture of it.
    shown = ", ".join(filter(None, facts))
    critical = ": critical" if test and test.critical else ""
    critical += ", so this alone fails the run" if failed.fails_run else ""
    return f"**{label.sign} {name}**{f' ({shown})' if shown else ''}{critical}"
