"""The baseline in Markdown: which run it was, how the tests changed, and what both runs took."""

from itertools import islice

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import Comparison, TestChange
from ci_evals.reports import sanitize
from ci_evals.reports.markdown.failures import name_of, names
from ci_evals.reports.markdown.sections import Rank, Section, folded, listing
from ci_evals.reports.story import changes, wording
from ci_evals.reports.story.story import Story
from ci_evals.scoring.comparison.compare import SUSPECT


def line(story: Story) -> Section | None:
    """The baseline's run, or why there is none; None if none was looked for."""
    note = sanitize.sentence((story.results.run.baseline_note or "").rstrip("."), 300)
    text = changes.baseline(story.results, note, sanitize.code)
    return Section("the baseline", text) if text else None


def reasons(comparison: Comparison | None) -> tuple[Section, ...]:
    """The reasons why not all of it was compared."""
    found = changes.shown_reasons(comparison) if comparison else ()
    rows = tuple(f"- {sanitize.inline(reason, 300)}" for reason in found)
    whole = Section("what was not compared", "Not compared:", Rank.TELLING, rows, noun="reason")
    return listing(whole) if rows else ()


def pace(comparison: Comparison | None) -> Section | None:
    """Cost and latency on both sides."""
    text = changes.pace(comparison) if comparison else None
    return Section("cost and latency", text, Rank.DETAILS) if text else None


def fixed(story: Story) -> tuple[Section, ...]:
    """The tests that pass again."""
    news = story.change.news
    rows = tuple(f"- ✅ {_became(test, story)}" for test in news.fixed[: story.listed.most])
    title, unlisted = f"### Fixed {sanitize.inline(story.change.since, 80)}", len(news.fixed) - len(rows)
    whole = Section("the fixed tests", title, Rank.TELLING, rows, unlisted=unlisted)
    return listing(whole) if rows else ()


def failed_before(story: Story) -> Section | None:
    """The tests that failed in the baseline too, and those that only fell, in a line."""
    news = story.change.news
    base = sanitize.inline(story.change.in_base, 80)
    failed = names([test.name for test in news.failed_before], 5)
    dropped = numbers.listed([_became(test, story) for test in news.dropped], 5, "test")
    lines = [
        f"**Failed {base} too**: {failed}." if failed else "",
        f"**Dropped by {SUSPECT} points or more**: {dropped}." if dropped else "",
    ]
    text = "\n\n".join(line for line in lines if line)
    return Section("what failed before", text, Rank.TELLING) if text else None


def differing(comparison: Comparison | None) -> Section | None:
    """The tests that were not compared, folded."""
    found = changes.differences(comparison) if comparison else ()
    if not found:
        return None
    counts = ", ".join(f"{len(one.tests)} {one.title}" for one in found)
    named = ((name, one.title) for one in found for name in one.tests)
    rows = tuple(
        f"- {sanitize.inline(name, 260)} ({title})" for name, title in islice(named, wording.MOST_TESTS)
    )
    unlisted = sum(len(one.tests) for one in found) - len(rows)
    whole = Section("the tests not compared", "", Rank.LISTS, rows, unlisted=unlisted)
    return folded(f"Tests not compared: {counts}", whole)


def confirmed(comparison: Comparison | None) -> Section | None:
    """The tests whose own drop is larger than chance explains."""
    tests = [test for test in (comparison.suspects if comparison else ()) if test.confirmed]
    if not tests:
        return None
    shown = [f"*{sanitize.inline(test.name, 80)}* ({numbers.p_value(test.p)})" for test in tests[:5]]
    more = f" and {len(tests) - 5:,} more" if len(tests) > 5 else ""
    text = f"Larger than chance explains for a single test: {', '.join(shown)}{more}."
    return Section("the proven drops of tests", text, Rank.TELLING)


def _became(test: TestChange, story: Story) -> str:
    name = name_of(test.suite, test.name, many=story.several_suites)
    return f"{name} ({changes.scores(test)})"
