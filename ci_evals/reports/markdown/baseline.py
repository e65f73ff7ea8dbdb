"""The changes since the baseline, in Markdown: which run it was, and what was not compared or fixed."""

from itertools import islice

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import TestChange
from ci_evals.reports import sanitize
from ci_evals.reports.markdown.failures import name_of, names
from ci_evals.reports.markdown.sections import Rank, Section, folded, listing
from ci_evals.reports.story import changes, listed_tests
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.verdict import Kind


def line(story: Story) -> Section | None:
    """The baseline's run, or why there is none; None if none was looked for."""
    text = sanitize.sentence(story.change.baseline, 500)
    return Section("the baseline", text) if text else None


def reasons(story: Story) -> tuple[Section, ...]:
    """The reasons why not all of it was compared."""
    rows = tuple(f"- {sanitize.inline(reason, 300)}" for reason in story.change.reasons)
    whole = Section("what was not compared", "Not compared:", Rank.TELLING, rows, noun="reason")
    return listing(whole) if rows else ()


def pace(story: Story) -> Section | None:
    """Cost and latency on both sides."""
    return Section("cost and latency", story.change.pace, Rank.DETAILS) if story.change.pace else None


def fixed(story: Story) -> tuple[Section, ...]:
    """The tests that pass again."""
    return tuple(
        found
        for group in story.change.changed
        if group.good
        for found in listing(
            Section(
                "the fixed tests",
                f"### {sanitize.inline(group.title, 80)}",
                Rank.TELLING,
                tuple(f"- ✅ {_became(test, story)}" for test in group.tests[: story.listed.most]),
                unlisted=len(group.tests[story.listed.most or len(group.tests) :]),
            )
        )
    )


def failed_before(story: Story) -> Section | None:
    """The tests that failed in the baseline too, and those that only fell, in a line."""
    lines = [
        f"**{sanitize.inline(group.title, 80)}**: {names([test.name for test in group.tests], 5)}."
        for group in story.change.failed
        if group.kind is Kind.FAILED_BEFORE
    ]
    for group in story.change.changed:
        if not group.good:
            listed = numbers.listed([_became(test, story) for test in group.tests], 5, "test")
            lines.append(f"**{group.title}**: {listed}.")
    return Section("what failed before", "\n\n".join(lines), Rank.TELLING) if lines else None


def lost(story: Story) -> Section | None:
    """The logic used in the baseline and no longer in the same tests; None if there is none."""
    text = sanitize.inline(story.process.lost)
    return Section("the logic that is no longer used", text, Rank.DETAILS) if text else None


def differing(story: Story) -> Section | None:
    """The tests that were not compared, folded."""
    found = story.change.differences
    if not found:
        return None
    counts = ", ".join(f"{len(one.tests)} {one.title}" for one in found)
    named = ((name, one.title) for one in found for name in one.tests)
    rows = tuple(
        f"- {sanitize.inline(name, 260)} ({title})" for name, title in islice(named, listed_tests.MOST_TESTS)
    )
    unlisted = sum(len(one.tests) for one in found) - len(rows)
    whole = Section("the tests not compared", "", Rank.LISTS, rows, unlisted=unlisted)
    return folded(f"Tests not compared: {counts}", whole)


def _became(test: TestChange, story: Story) -> str:
    name = name_of(test.suite, test.name, many=story.several_suites)
    return f"{name} ({changes.scores(test)})"
