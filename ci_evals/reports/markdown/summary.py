"""The run's summary: the sections of comment, step summary and `summary.md`, in the order of reading."""

from collections.abc import Iterable, Sequence

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.reports import sanitize
from ci_evals.reports.markdown import baseline, process
from ci_evals.reports.markdown.failures import failed, names
from ci_evals.reports.markdown.sections import (
    NO_CONTEXT,
    OPEN,
    Rank,
    Section,
    SummaryContext,
    folded,
    group,
    listing,
    section,
    table_text,
    tabled,
)
from ci_evals.reports.story import changes, tables, verdict, wording
from ci_evals.reports.story.advice import PartKind, StepPart
from ci_evals.reports.story.failures import News, TrialErrors
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.table import Room, Table
from ci_evals.reports.story.tables import SuiteRow
from ci_evals.reports.story.verdict import Trust
from ci_evals.reports.story.wording import (
    COMMIT,
    UNFINISHED,
    RunOutcome,
    capitalized,
    sentence,
    with_changes,
)

_SUITES = 15
"""Suites that the first table shows; the others are folded."""
_CAUSES = 100
"""Causes of errors that are listed."""
_HEADING = 200
"""Characters of the heading."""
_PASSED = frozenset({RunOutcome.PASSED, RunOutcome.UNCHECKED})
_WITHOUT_JUDGE = _PASSED | {RunOutcome.SKIPPED}
"""Outcomes below which the judge is not named."""


def sections(story: Story, context: SummaryContext = NO_CONTEXT) -> tuple[Section, ...]:
    """The parts of the summary in the order of reading, each with its importance."""
    results = story.results
    outcome = story.outcome
    if outcome is RunOutcome.SKIPPED:
        return present(_head(story, context, News()), *alerts(story), _foot(story, context, News()))
    news = story.change.news
    passed, unfinished = outcome in _PASSED, outcome in UNFINISHED
    sure = how_sure(story) if outcome is RunOutcome.FAILED else ()
    return present(
        _head(story, context, news),
        *alerts(story),
        None if unfinished else _what_to_do(story, context),
        None if passed else _suites(story),
        *(causes(story.errors, "Why there is no verdict") if unfinished else ()),
        _what_to_do(story, context) if unfinished else None,
        *what_failed(story, context, only_new=passed),
        *(() if passed else baseline.fixed(story)),
        None if passed else baseline.failed_before(story),
        *group("how sure this is", _sure_title(story, news), sure),
        *group("the details", _details_title(results), _details(story, news, context, passed=passed)),
        _foot(story, context, news),
    )


def present(*found: Section | None) -> tuple[Section, ...]:
    """Those that there are, and that say something."""
    return tuple(section for section in found if section and section.says_something)


def heading(story: Story, trust: Trust = Trust.OWN) -> str:
    """Sign and verdict."""
    outcome = story.outcome
    sign = outcome.value.sign
    if trust is not Trust.OWN and outcome in _PASSED:
        sign = RunOutcome.NO_VERDICT.value.sign
    return f"{sign} {sanitize.inline(story.verdict(trust), _HEADING)}"


def alerts(story: Story) -> tuple[Section, ...]:
    """Facts that a reader must know before the numbers."""
    origin = story.notices.origin
    never_left_out = [*([origin] if origin else []), *story.notices.checks_not_made, *story.judging.warnings]
    rows = _bullets(never_left_out, "⚠️ ")
    weakened = Section("what is required no longer", "", Rank.ALWAYS, _weakened(story), noun="fact")
    warnings = Section("the warnings", "", Rank.ALWAYS, rows, noun="warning")
    why = story.change.not_compared
    told = [*([why] if why else []), *story.notices.notes]
    notes = Section("the notes", "", Rank.TELLING, _bullets(told), noun="note")
    return (
        *([weakened] if weakened.rows else ()),
        *([warnings] if rows else ()),
        *(listing(notes) if notes.rows else ()),
    )


def _weakened(story: Story) -> tuple[str, ...]:
    """List the requirements that were dropped since the baseline, and the command that approves it."""
    found = story.notices.weakened
    if found is None:
        return ()
    heading, *others = [sanitize.inline(text, 600) for text in (found.heading, *found.items, found.approval)]
    rows = [f"- ⚠️ **{heading}**", *(f"  - {text}" for text in others if text)]
    if found.command:
        rows.append(f"  - To approve it, comment: {sanitize.code(found.command)}")
    return tuple(rows)


def what_failed(
    story: Story, context: SummaryContext = NO_CONTEXT, *, only_new: bool = False
) -> tuple[Section, ...]:
    """The tests that broke, that could not be judged any more, and that fail without a counterpart."""
    news, comparison = story.change.news, story.results.comparison
    many, in_base = story.several_suites, story.change.in_base
    passed = f"Passed {in_base}, not judged now"
    compared = comparison is not None and comparison.delta is not None
    titles = (
        ("the tests that broke", story.change.broke_title, news.broke),
        ("the tests that were not judged", passed, () if story.outcome in UNFINISHED else news.unjudged),
        ("the tests that got worse", f"Failed {in_base} too, and worse now", news.worse),
        (
            "the failed tests",
            "New or changed tests that fail" if compared else "Failed",
            () if only_new else news.failed,
        ),
    )
    return tuple(
        found
        for name, title, tests in titles
        for found in failed(
            name, sanitize.inline(title, 80), tests, many=many, context=context, most=story.listed.most
        )
    )


def causes(found: Sequence[TrialErrors], title: str) -> tuple[Section, ...]:
    """Errors and undecided criteria by their cause."""
    rows = tuple(map(_cause, found[:_CAUSES]))
    unlisted = len(found) - len(rows)
    whole = Section(
        "errors and undecided", f"### {title}", Rank.TELLING, rows, noun="cause", unlisted=unlisted
    )
    return listing(whole) if rows else ()


def how_sure(story: Story) -> tuple[Section, ...]:
    """How sure the result is: intervals, what the run could have noticed, judge and simulated user."""
    results = story.results
    comparison = results.comparison
    # Why nothing was compared stands before the fold.
    score = None if story.certainty.too_little else story.certainty.exact_score
    sentences = [
        score,
        story.certainty.small_print,
        *story.certainty.decision,
        story.certainty.odds,
        sentence(cached) if (cached := story.judging.cached_answers) else None,
    ]
    text = "\n\n".join(sanitize.inline(one, 900) for one in sentences if one)
    remarks = [f"**{one.topic}**: {sanitize.inline(one.text, 900)}" for one in story.judging.remarks]
    return present(
        Section("the exact score", text, Rank.TELLING),
        exact_suites(story) if story.several_suites else None,
        baseline.line(story) if comparison else None,
        *baseline.reasons(comparison),
        baseline.confirmed(comparison),
        flaky(results.suites),
        Section("judge and simulated user", "\n\n".join(remarks), Rank.TELLING) if remarks else None,
    )


def exact_suites(story: Story) -> Section:
    """The suites with intervals and p."""
    section = Section("the suites' exact scores", "", Rank.DETAILS, noun="suite")
    return tabled(section, story.tables.suites)


def flaky(suites: Iterable[SuiteResult]) -> Section | None:
    """The tests whose trials disagree, in a line."""
    title, found = wording.flaky(suites)
    tests = [f"{sanitize.inline(test.name, 80)} ({passed})" for test, passed in found]
    text = f"**{title}**. {numbers.listed(tests, 2 * OPEN)}."
    return Section("the flaky tests", text, Rank.TELLING) if tests else None


def checks(story: Story) -> Section | None:
    """The gate's checks, those first that failed."""
    table = story.tables.checks
    if table is None:
        return None
    return tabled(Section("the checks", "**Checks**", Rank.DETAILS, noun="check"), table)


def facts_tables(story: Story) -> tuple[Section, ...]:
    """The agents that were played, and the numbers of judge and simulated user, folded."""
    agents = story.tables.agents
    grids = (*([agents] if agents else []), *story.judging.tables)
    return tuple(_grid(grid) for grid in grids if not grid.in_remark)


def run_facts(results: Results, *, alone: bool = False) -> Section:
    """The time, models and calls of the run; if it stands `alone`, also what the comment says elsewhere."""
    compared = not alone and results.comparison is not None
    text = section("foot", results=results, alone=alone, latency=None if compared else results.latency)
    return Section("the run's facts", text, Rank.DETAILS)


def _bullets(texts: Iterable[str], sign: str = "") -> tuple[str, ...]:
    return tuple(f"- {sign}{sanitize.inline(text, 600)}" for text in texts)


def _head(story: Story, context: SummaryContext, news: News) -> Section:
    results = story.results
    trust = verdict.trust_of(results, context.commit, foreign=context.foreign)
    why = results.gate.reasons
    cut = len(story.verdict(trust)) > _HEADING
    reasons: tuple[str, ...]
    match story.outcome:
        case RunOutcome.SKIPPED:
            reasons = (results.run.stopped_because,) if cut and results.run.stopped_because else ()
        case RunOutcome.NO_VERDICT:
            reasons = tuple(sentence(capitalized(one)) for one in (why if cut else why[1:]))
        case _:
            reasons = tuple(sentence(f"Also: {failure}") for failure in story.other_failures)
    line = " ".join(filter(None, [_line(story, news), _links(context)]))
    sure = sanitize.inline(story.certainty.sentence) if news.broke else ""
    text = section("head", heading=heading(story, trust), line=line, sure=sure, reasons=reasons)
    return Section("the verdict", text)


def _line(story: Story, news: News) -> str:
    """The line of numbers below the heading."""
    shown = story.numbers
    if story.outcome in _PASSED:
        return _passing_line(story, news)
    if not shown.lead:
        return sanitize.inline(shown.text)
    gap = " " if shown.rest.startswith(" ") else ""
    return f"**{sanitize.inline(shown.lead)}**{gap}{sanitize.inline(shown.rest)}"


def _passing_line(story: Story, news: News) -> str:
    """The tests of a run that passed, with those that fail all the same, and those that were fixed."""
    base = sanitize.inline(story.change.in_base, 80)
    before, failed, fixed = (
        [test.name for test in tests] for tests in (news.failed_before, news.failed, news.fixed)
    )
    parts = [
        sanitize.inline(story.numbers.text.removesuffix(".")),
        f"{names(before)} {'fails' if len(before) == 1 else 'fail'} as {base}" if before else "",
        f"{names(failed)} {'fails' if len(failed) == 1 else 'fail'}" if failed else "",
    ]
    line = "; ".join(part for part in parts if part)
    return f"{line}. Fixed: {names(fixed)}." if fixed else f"{line}."


def _links(context: SummaryContext) -> str:
    url = context.run_url
    return f"[Report]({url}#artifacts) · [Run]({url})" if url else ""


def _suites(story: Story) -> Section | None:
    """The suites in whole points, those first that came out worst; None of a single one."""
    results, rows = story.results, list(story.suites)
    if len(rows) < 2:
        return None
    if len(rows) > _SUITES:
        rows.sort(key=lambda row: ((row.became.delta if row.became else None) or 0, row.suite.score or 0))
    base = capitalized(changes.base_name(results).removeprefix("the "))
    table = tables.suites_in_brief(rows[:_SUITES], base)
    more = len(rows) - _SUITES
    tail = f"and {numbers.count(more, 'more suite')}" if more > 0 else ""
    return tabled(Section("the suites' scores", "", tail=tail, noun="suite"), table)


def _what_to_do(story: Story, context: SummaryContext) -> Section | None:
    text = "".join(f"{part.gap}{_step_part(part, context)}" for part in story.next_step.parts)
    return Section("what to do", f"**What to do**:{text}", Rank.TELLING) if text else None


def _step_part(part: StepPart, context: SummaryContext) -> str:
    if part.kind is PartKind.COMMAND:
        return f"`{part.text}`"
    if part.kind is PartKind.REPORT and context.run_url:
        return f"[{part.text}]({context.run_url}#artifacts)"
    return sanitize.inline(part.text)


def _sure_title(story: Story, news: News) -> str:
    if news.broke:  # the line below the heading has it
        return "How sure is this? The numbers"
    return f"How sure is this? {sanitize.html_in_markdown(story.certainty.sentence)}"


def _details_title(results: Results) -> str:
    """The content of the fold of details."""
    tests = numbers.count(results.counts.tests, "test")
    parts = [
        f"All {tests}" if results.counts.tests > 1 else tests,
        "checks",
        *changes.cost_beside(results),
        "latency",
    ]
    return " · ".join(map(sanitize.html_in_markdown, parts))


def _details(story: Story, news: News, context: SummaryContext, *, passed: bool) -> tuple[Section, ...]:
    """All tests, checks, cost, latency, and what else is known."""
    results = story.results
    many, listed = story.several_suites, story.listed
    sure = () if story.outcome is RunOutcome.FAILED else how_sure(story)
    allowed = (
        failed("the failed tests", "Failed", news.failed, many=many, context=context, most=story.listed.most)
        if passed
        else ()
    )
    return present(
        *(_all_tests(story, row) for row in story.suites),
        _what_a_score_is(results),
        Section("the number of tests not listed", listed.note, Rank.DETAILS) if listed.note else None,
        checks(story),
        *(() if story.outcome in UNFINISHED else causes(story.errors, "Errors and undecided")),
        *allowed,
        *sure,
        process.lost(results),
        baseline.pace(results.comparison),
        _counts(results.suites),
        *facts_tables(story),
        *(_groups(suite) for suite in results.suites),
        process.measures(results),
        baseline.differing(results.comparison),
        run_facts(results),
    )


def _commit(results: Results, context: SummaryContext) -> str | None:
    """The commit that was tested, of a pull request its own. What a fork claims is not believed."""
    claimed = None if context.foreign else results.run.git.head_commit or results.run.git.commit
    return context.commit or claimed


def _foot(story: Story, context: SummaryContext, news: News) -> Section:
    """Which commits these are, who judged, and by which version."""
    results = story.results
    commit, comparison = _commit(results, context), results.comparison
    base = comparison.baseline if comparison and comparison.baseline.commit else None
    against = ""
    if base and base.commit:
        branch = f" of {sanitize.inline(base.branch, 80)}" if base.branch else ""
        name = sanitize.code(base.commit[:COMMIT]) + with_changes(base)
        against = f"{'against' if commit else 'baseline'} {name}{branch}"
    judges = dict.fromkeys(judge for suite in results.suites for judge in suite.models.judges)
    shown = " and ".join(sanitize.code(name[:80]) for name in list(judges)[:2])
    outcome = story.outcome
    tested = sanitize.code(commit[:COMMIT]) + with_changes(results.run.git) if commit else ""
    parts = [
        " ".join(filter(None, [tested, against])),
        sanitize.inline(story.certainty.sentence) if outcome in _PASSED and not news.broke else "",
        f"judge {shown}" if shown and outcome not in _WITHOUT_JUDGE else "",
        sanitize.inline(f"{results.tool.name} {results.tool.version}", 80),
    ]
    return Section("the commits", f"<sub>{' · '.join(part for part in parts if part)}</sub>")


def _cause(errors: TrialErrors) -> str:
    tests = numbers.listed([sanitize.inline(name, 80) for name in errors.tests], OPEN, "test")
    return f"- **{errors.what}**: {sanitize.inline(errors.reason, 600)} ({tests})"


def _counts(found: tuple[SuiteResult, ...]) -> Section | None:
    table = tables.suites_in_counts(found)
    return tabled(Section("more on the suites", "", Rank.DETAILS, noun="suite"), table) if table else None


def _all_tests(story: Story, row: SuiteRow) -> Section:
    name = row.suite.name
    title = f"#### {sanitize.inline(name, 100)}" if story.several_suites else ""
    rows = [test for test in row.tests if story.listed.has(test.test)]
    unlisted = len(row.tests) - len(rows)
    inner = Section(f"all tests of {sanitize.inline(name, 80)}", title, Rank.LISTS, unlisted=unlisted)
    return tabled(inner, tables.tests("Tests", rows, Room.LITTLE))


def _what_a_score_is(results: Results) -> Section | None:
    """The meaning of scores and passed tests; None for another tool's results, which have their own."""
    if any(suite.of_other_tool for suite in results.suites):
        return None
    text = (
        "<sub>A test's score is the share of its criteria that passed, by weight, over all trials. The test "
        "passes only if every criterion passes in every trial.</sub>"
    )
    return Section("the meaning of a score", text, Rank.DETAILS)


def _groups(suite: SuiteResult) -> Section | None:
    """A suite's scores by the groups that it has, folded."""
    found = tables.groups(suite)
    text = "\n\n".join(map(titled, found))
    kinds = ", ".join(table.title.removeprefix("By ") for table in found)
    title = sanitize.html_in_markdown(f"{suite.name} by {kinds}")
    name = f"the groups of {sanitize.inline(suite.name, 80)}"
    return folded(title, Section(name, text, Rank.LISTS)) if text else None


def titled(table: Table) -> str:
    """A table below its title."""
    return f"**{table.title}**\n\n{table_text(table)}"


def _grid(grid: Table) -> Section:
    inner = Section(
        f"the numbers of: {grid.title}", "", Rank.LISTS if grid.long else Rank.DETAILS, noun="row"
    )
    return folded(sanitize.html_in_markdown(grid.title), tabled(inner, grid))
