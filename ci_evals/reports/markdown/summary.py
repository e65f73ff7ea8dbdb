"""The run's summary: the sections of comment, step summary and `summary.md`, in the order of reading."""

from collections.abc import Iterable, Sequence

from ci_evals.domain import numbers
from ci_evals.reports import sanitize
from ci_evals.reports.markdown import baseline
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
from ci_evals.reports.story import tables
from ci_evals.reports.story.failures import TrialErrors
from ci_evals.reports.story.next_step import PartKind, StepPart
from ci_evals.reports.story.outcome_labels import UNFINISHED, RunOutcome
from ci_evals.reports.story.phrases import COMMIT, capitalized, sentence, with_changes
from ci_evals.reports.story.run_facts import TESTED
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.table import Room, Table
from ci_evals.reports.story.tables import SuiteRow
from ci_evals.reports.story.verdict import FailedGroup, Kind, Trust

_SUITES = 15
"""Suites that the first table shows; the others are folded."""
_CAUSES = 100
"""Causes of errors that are listed."""
_HEADING = 200
"""Characters of the heading."""
_NAMES = {
    Kind.BROKE: "the tests that broke",
    Kind.UNJUDGED: "the tests that were not judged",
    Kind.WORSE: "the tests that got worse",
    Kind.FAILED: "the failed tests",
}
"""The groups of failed tests, as the note on what is left out names them."""
_PASSED = frozenset({RunOutcome.PASSED, RunOutcome.UNCHECKED})
_WITHOUT_JUDGE = _PASSED | {RunOutcome.SKIPPED}
"""Outcomes below which the judge is not named."""


def sections(story: Story, context: SummaryContext = NO_CONTEXT) -> tuple[Section, ...]:
    """The parts of the summary in the order of reading, each with its importance."""
    outcome = story.outcome
    if outcome is RunOutcome.SKIPPED:
        return present(_head(story, context), *alerts(story), _foot(story, context))
    passed, unfinished = outcome in _PASSED, outcome in UNFINISHED
    sure = how_sure(story) if outcome is RunOutcome.FAILED else ()
    return present(
        _head(story, context),
        *alerts(story),
        None if unfinished else _what_to_do(story, context),
        None if passed else _suites(story),
        _agents(story),
        *(causes(story.errors, "Why there is no verdict") if unfinished else ()),
        _what_to_do(story, context) if unfinished else None,
        *what_failed(story, context, only_new=passed),
        *(() if passed else baseline.fixed(story)),
        None if passed else baseline.failed_before(story),
        *group("how sure this is", _sure_title(story), sure),
        *group("the details", _details_title(story), _details(story, context, passed=passed)),
        _foot(story, context),
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
    hidden = {Kind.FAILED_BEFORE, Kind.FAILED} if only_new else {Kind.FAILED_BEFORE}
    groups = [group for group in story.change.failed if group.kind not in hidden]
    return tuple(section for group in groups for section in _failed(story, group, context))


def _failed(story: Story, group: FailedGroup, context: SummaryContext) -> tuple[Section, ...]:
    return failed(
        _NAMES[group.kind],
        sanitize.inline(group.title, 80),
        group.tests,
        many=story.several_suites,
        context=context,
        most=story.listed.most,
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
    certainty = story.certainty
    # Why nothing was compared stands before the fold.
    sentences = [
        None if certainty.too_little else certainty.exact_score,
        certainty.small_print,
        *certainty.decision,
        certainty.odds,
        sentence(cached) if (cached := story.judging.cached_answers) else None,
    ]
    text = "\n\n".join(sanitize.inline(one, 900) for one in sentences if one)
    remarks = [f"**{one.topic}**: {sanitize.inline(one.text, 900)}" for one in story.judging.remarks]
    confirmed = sanitize.inline(certainty.confirmed, 600)
    return present(
        Section("the exact score", text, Rank.TELLING),
        exact_suites(story) if story.several_suites else None,
        baseline.line(story) if story.run.baseline else None,
        *baseline.reasons(story),
        Section("the proven drops of tests", confirmed, Rank.TELLING) if confirmed else None,
        _flaky(story),
        Section("judge and simulated user", "\n\n".join(remarks), Rank.TELLING) if remarks else None,
    )


def exact_suites(story: Story) -> Section:
    """The suites with intervals and p."""
    section = Section("the suites' exact scores", "", Rank.DETAILS, noun="suite")
    return tabled(section, story.tables.suites)


def _flaky(story: Story) -> Section | None:
    title, found = story.flaky
    if not found:
        return None
    tests = [f"{sanitize.inline(test.name, 80)} ({passed})" for test, passed in found]
    return Section("the flaky tests", f"**{title}**. {numbers.listed(tests, OPEN, 'test')}.", Rank.TELLING)


def checks(story: Story) -> Section | None:
    """The checks of the gate."""
    found = story.tables.checks
    whole = Section("the checks", "**Checks**", Rank.DETAILS, noun="check")
    return tabled(whole, found) if found else None


def numbers_behind(story: Story) -> tuple[Section, ...]:
    """The numbers of judge and simulated user, folded."""
    return tuple(_grid(grid) for grid in story.judging.tables if not grid.in_remark)


def run_facts(story: Story, *, alone: bool = False) -> tuple[Section, ...]:
    """Calls, cost and latency, and what identifies the run.

    What was tested is left out unless it stands `alone`: the foot has it, as far as it is believed.
    """
    grids = [table for table in (story.tables.usage, story.tables.latency) if table]
    known = [fact for fact in story.run.facts if alone or fact[0] not in TESTED]
    shown = [
        f"{label.lower() if at else label} {sanitize.sentence(value, 200)}"
        for at, (label, value) in enumerate(known)
    ]
    unknown = " ".join(sanitize.inline(why, 400) for why in story.run.unknown_costs)
    text = "\n\n".join(filter(None, [unknown, f"<sub>{' · '.join(shown)}</sub>"]))
    facts = Section("the run's facts", text, Rank.DETAILS)
    sections = [
        tabled(Section(f"the numbers of: {grid.title}", f"**{grid.title}**", Rank.DETAILS, noun="row"), grid)
        for grid in grids
    ]
    return (*sections, facts)


def process_measures(story: Story) -> Section | None:
    """The measures of the process, folded; None if no trial has a trace."""
    process = story.process
    if not process.is_traced:
        return None
    parts = [sanitize.inline(note) for note in process.notes]
    if coverage := process.coverage:
        parts.append(f"Coverage of {coverage.parts}: {sanitize.inline(coverage.says)}")
        parts += [f"**{table.title}**\n\n{table_text(table)}" for table in coverage.open]
    inner = Section("the process", "", Rank.DETAILS, noun="measure", tail="\n\n".join(parts))
    return folded(process.measures.title, tabled(inner, process.measures))


def _bullets(texts: Iterable[str], sign: str = "") -> tuple[str, ...]:
    return tuple(f"- {sign}{sanitize.inline(text, 600)}" for text in texts)


def _head(story: Story, context: SummaryContext) -> Section:
    trust = story.trust(context.commit, foreign=context.foreign)
    why = story.run.gate.reasons
    cut = len(story.verdict(trust)) > _HEADING
    reasons: tuple[str, ...]
    match story.outcome:
        case RunOutcome.SKIPPED:
            because = story.run.info.stopped_because
            reasons = (because,) if cut and because else ()
        case RunOutcome.NO_VERDICT:
            reasons = tuple(sentence(capitalized(one)) for one in (why if cut else why[1:]))
        case _:
            reasons = (story.failed_checks,) if story.failed_checks else ()
    line = " ".join(filter(None, [_line(story), _links(context)]))
    tells = story.change.news.broke or story.outcome in UNFINISHED
    sure = sanitize.inline(story.certainty.sentence) if tells else ""
    text = section("head", heading=heading(story, trust), line=line, sure=sure, reasons=reasons)
    return Section("the verdict", text)


def _line(story: Story) -> str:
    shown = story.numbers
    if story.outcome in _PASSED:
        return _passing_line(story)
    if not shown.lead:
        return sanitize.inline(shown.text)
    gap = " " if shown.rest.startswith(" ") else ""
    return f"**{sanitize.inline(shown.lead)}**{gap}{sanitize.inline(shown.rest)}"


def _passing_line(story: Story) -> str:
    """The tests of a run that passed, with those that fail all the same, and those that were fixed."""
    base, news = sanitize.inline(story.change.in_base, 80), story.change.news
    before, failed, fixed = (
        [test.name for test in tests] for tests in (news.failed_before, news.failed, news.fixed)
    )
    parts = [
        sanitize.inline(story.numbers.text.removesuffix(".")),
        f"{names(before)} {'fails' if len(before) == 1 else 'fail'} as {base}" if before else "",
        f"{names(failed)} {'fails' if len(failed) == 1 else 'fail'}" if failed else "",
    ]
    sentences = ["; ".join(part for part in parts if part)]
    if fixed:
        sentences.append(f"Fixed: {names(fixed)}")
    if story.certainty.sentence and not news.broke:
        sentences.append(sanitize.inline(story.certainty.sentence))
    return " ".join(map(sentence, sentences))


def _links(context: SummaryContext) -> str:
    url = context.run_url
    return f"[Report]({url}#artifacts) · [Run]({url})" if url else ""


def _suites(story: Story) -> Section | None:
    """The suites in whole points, those first that came out worst; None of a single one."""
    rows = list(story.suites)
    if len(rows) < 2:
        return None
    if len(rows) > _SUITES:
        rows.sort(key=lambda row: ((row.became.delta if row.became else None) or 0, row.suite.score or 0))
    name = story.numbers.base_name
    base = capitalized(name.removeprefix("the ")) if name.startswith("the ") else name
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
        return f"[{part.text} of the artifacts]({context.run_url}#artifacts)"
    return sanitize.inline(part.text)


def _agents(story: Story) -> Section | None:
    found = story.tables.agents
    whole = Section("the agents", f"### {found.title}" if found else "", noun="agent")
    return tabled(whole, found) if found else None


def _sure_title(story: Story) -> str:
    if story.change.news.broke:  # the line below the heading has it
        return "How sure is this? The numbers"
    return f"How sure is this? {sanitize.html_in_markdown(story.certainty.sentence)}".rstrip()


def _details_title(story: Story) -> str:
    """The content of the fold of details."""
    latency = ["latency"] if story.tables.latency else []
    parts = (story.run.all_tests, "checks", *story.run.cost_beside, *latency)
    return " · ".join(map(sanitize.html_in_markdown, parts))


def _details(story: Story, context: SummaryContext, *, passed: bool) -> tuple[Section, ...]:
    """All tests, checks, cost, latency, and what else is known."""
    listed = story.listed
    sure = () if story.outcome is RunOutcome.FAILED else how_sure(story)
    allowed = [group for group in story.change.failed if passed and group.kind is Kind.FAILED]
    return present(
        *(_all_tests(story, row) for row in story.suites),
        _what_a_score_is(story),
        Section("the number of tests not listed", listed.note, Rank.DETAILS) if listed.note else None,
        checks(story),
        *(() if story.outcome in UNFINISHED else causes(story.errors, "Errors and undecided")),
        *(section for group in allowed for section in _failed(story, group, context)),
        *sure,
        baseline.lost(story),
        baseline.pace(story),
        _counts(story),
        *numbers_behind(story),
        *(_groups(row.suite.name, story) for row in story.suites),
        process_measures(story),
        baseline.differing(story),
        *run_facts(story),
    )


def _foot(story: Story, context: SummaryContext) -> Section:
    """Which commits these are, who judged, and by which version."""
    run, outcome = story.run, story.outcome
    # What a fork claims is not believed.
    commit = context.commit or (None if context.foreign else run.commit)
    base, against = run.baseline, ""
    if base and base.commit:
        branch = f" of {sanitize.inline(base.branch, 80)}" if base.branch else ""
        name = sanitize.code(base.commit[:COMMIT]) + with_changes(base)
        against = f"{'against' if commit else 'baseline'} {name}{branch}"
    judges = " and ".join(sanitize.code(name[:80]) for name in run.judges[:2])
    tested = sanitize.code(commit[:COMMIT]) + with_changes(run.info.git) if commit else ""
    parts = [
        " ".join(filter(None, [tested, against])),
        f"judge {judges}" if judges and outcome not in _WITHOUT_JUDGE else "",
        sanitize.inline(f"{run.tool.name} {run.tool.version}", 80),
    ]
    return Section("the commits", f"<sub>{' · '.join(part for part in parts if part)}</sub>")


def _cause(errors: TrialErrors) -> str:
    tests = numbers.listed([sanitize.inline(name, 80) for name in errors.tests], OPEN, "test")
    where = f". {sanitize.inline(errors.by_suite, 300)}" if errors.by_suite else ""
    return f"- **{errors.what}**: {sanitize.inline(errors.reason, 600)}{where} ({tests})"


def _counts(story: Story) -> Section | None:
    table = story.tables.counts
    return tabled(Section("more on the suites", "", Rank.DETAILS, noun="suite"), table) if table else None


def _all_tests(story: Story, row: SuiteRow) -> Section:
    name = row.suite.name
    title = f"#### {sanitize.inline(name, 100)}"
    rows = [test for test in row.tests if story.listed.has(test.test)]
    unlisted = len(row.tests) - len(rows)
    inner = Section(f"all tests of {sanitize.inline(name, 80)}", title, Rank.LISTS, unlisted=unlisted)
    return tabled(inner, tables.tests("Tests", rows, Room.LITTLE))


def _what_a_score_is(story: Story) -> Section | None:
    """The meaning of scores and passed tests; None for another tool's results, which have their own."""
    if not story.run.has_own_tests:
        return None
    text = (
        "<sub>A test's score is the share of its criteria that passed, by weight, over all trials. The test "
        "passes only if every criterion passes in every trial.</sub>"
    )
    return Section("the meaning of a score", text, Rank.DETAILS)


def _groups(suite: str, story: Story) -> Section | None:
    """A suite's scores by the groups that it has, folded."""
    found = [table for name, table in story.tables.groups if name == suite]
    text = "\n\n".join(map(titled, found))
    kinds = ", ".join(table.title.removeprefix("By ") for table in found)
    title = sanitize.html_in_markdown(f"{suite} by {kinds}")
    name = f"the groups of {sanitize.inline(suite, 80)}"
    return folded(title, Section(name, text, Rank.LISTS)) if text else None


def titled(table: Table) -> str:
    """A table below its title."""
    return f"**{table.title}**\n\n{table_text(table)}"


def _grid(grid: Table) -> Section:
    inner = Section(
        f"the numbers of: {grid.title}", "", Rank.LISTS if grid.long else Rank.DETAILS, noun="row"
    )
    return folded(sanitize.html_in_markdown(grid.title), tabled(inner, grid))
