"""The run's summary: the sections of comment, step summary and `summary.md`, in the order of reading."""

from dataclasses import dataclass

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import change, failed_tests, gate, highlights, judge, reliability, trial_errors
from ci_evals.reports.facts.labels import RunOutcome
from ci_evals.reports.facts.parts import PlainTable
from ci_evals.reports.markdown import baseline, failures, process, tables
from ci_evals.reports.markdown.failures import test_name
from ci_evals.reports.markdown.sections import OPEN, Rank, Section, folded, listing, section, tabled

_SUITES = 15
"""Suites that the first table shows; the others are folded."""
_CHECKS = 15
"""Failed checks that are shown at once."""
_ALL = {1: "its check holds", 2: "both checks hold"}


@dataclass(frozen=True)
class SummaryContext:
    """Facts about the run of a summary that do not come from its results."""

    run_url: str | None = None
    """The run that made the results: a trusted address."""
    commit: str | None = None
    """The commit that was tested: it replaces what the results claim."""
    foreign: bool = False
    """True if a fork's own workflow run wrote the results, so that they may say anything."""


NO_CONTEXT = SummaryContext()


def sections(results: Results, context: SummaryContext = NO_CONTEXT) -> tuple[Section, ...]:
    """The parts of the summary in the order of reading, each with its importance."""
    outcome = highlights.run_outcome(results)
    if outcome is RunOutcome.SKIPPED:
        return present(
            _head(results, context), baseline.line(results), *notes(results), foot(results, context)
        )
    comparison, newly = results.comparison, failed_tests.newly_failing(results)
    wrong = errors_and_undecided(results.suites)
    broken = outcome in {RunOutcome.NO_VERDICT, RunOutcome.INTERRUPTED}
    return present(
        _head(results, context),
        not_checked(results),
        *suites(results),
        baseline.line(results),
        *baseline.reasons(comparison),
        less_trusted(results),
        *notes(results),
        *(wrong if broken else ()),
        *failures.newly_failing(results, newly),
        *baseline.fixed(comparison),
        *baseline.suspects(comparison),
        process.lost(results),
        *flaky(results.suites),
        *of_gate(results),
        *failures.others(results, newly),
        *(() if broken else wrong),
        *judge_and_user(results),
        baseline.pace(comparison),
        *_details(results),
        foot(results, context),
    )


def present(*found: Section | None) -> tuple[Section, ...]:
    """Those that there are."""
    return tuple(section for section in found if section)


def suites(results: Results) -> tuple[Section, ...]:
    """The suites' table: of many those that came out worst, and the others folded."""
    pairs = list(zip(results.suites, change.of_suites(results), strict=True))
    if len(pairs) <= _SUITES + 1:
        return (Section("the suites' scores", tables.of_suites(pairs)),)
    worst = sorted(
        pairs,
        key=lambda pair: (
            pair[1].delta if pair[1] and pair[1].delta is not None else 0.0,
            -1.0 if pair[0].score is None else pair[0].score,
        ),
    )
    whole = tabled(Section("the suites' scores", "", noun="suite"), tables.of_suites(worst))
    return listing(whole, _SUITES)


def notes(results: Results) -> tuple[Section, ...]:
    """Notes on the numbers."""
    rows = tuple(f"- {sanitize.inline(note, 600)}" for note in highlights.notes(results))
    return listing(Section("the notes", "", Rank.TELLING, rows, noun="note")) if rows else ()


def not_checked(results: Results) -> Section | None:
    """The checks that were asked for and could not be made. It is never left out."""
    rows = tuple(f"- ⚠️ {sanitize.inline(warning, 600)}" for warning in gate.warnings(results))
    return Section("the checks that were not made", "", Rank.ALWAYS, rows, noun="warning") if rows else None


def less_trusted(results: Results) -> Section | None:
    """Warnings that judge or simulated user are less reliable. It is never left out, and short for that."""
    rows = tuple(f"- ⚠️ {sanitize.inline(warning, 600)}" for warning in reliability.warnings(results))
    return Section("what is to be trusted less", "", Rank.ALWAYS, rows, noun="warning") if rows else None


def judge_and_user(results: Results) -> tuple[Section, ...]:
    """The facts about judge and simulated user: a line for each topic, and its numbers folded."""
    found = reliability.remarks(results)
    if not found:
        return ()
    rows = tuple(f"- **{remark.topic}**: {sanitize.inline(remark.text, 900)}" for remark in found)
    remarks = Section(
        "judge and simulated user", "### Judge and simulated user", Rank.TELLING, rows, noun="line"
    )
    tables = [_grid(grid) for grid in reliability.tables(results) if not grid.in_remark]
    return (remarks, *tables)


def _grid(grid: PlainTable) -> Section:
    inner = Section(
        f"the numbers of: {grid.title}", "", Rank.LISTS if grid.long else Rank.DETAILS, noun="row"
    )
    return folded(sanitize.html_in_markdown(grid.title), tabled(inner, tables.of_facts(grid)))


def of_gate(results: Results) -> tuple[Section, ...]:
    """The checks that do not hold, those that were not made, and those that hold, folded."""
    checks = gate.in_order(results)
    broken, unchecked, passed = (
        [one for one in checks if one.holds is state] for state in (False, None, True)
    )
    out: tuple[Section, ...] = ()
    if broken:
        which = f"{len(broken)} of {numbers.count(len(checks), 'check')}"
        head = f"### Gate: {which} {'does' if len(broken) == 1 else 'do'} not hold"
        whole = Section("the gate", head, Rank.FAILING, noun="check")
        out = listing(tabled(whole, tables.of_checks(broken)), _CHECKS)
    if unchecked:
        which = f"{len(unchecked)} of {numbers.count(len(checks), 'check')}"
        head = f"### Gate: {which} {'was' if len(unchecked) == 1 else 'were'} not made"
        whole = Section("the checks that were not made", head, Rank.FAILING, noun="check")
        out = (*out, *listing(tabled(whole, tables.of_checks(unchecked)), _CHECKS))
    if passed:
        if broken or unchecked:
            title = (
                f"{numbers.count(len(passed), 'check')} of the gate {'holds' if len(passed) == 1 else 'hold'}"
            )
        else:
            title = f"Gate: {_ALL.get(len(passed), f'all {len(passed):,} checks hold')}"
        inner = Section("the checks that hold", "", Rank.DETAILS, noun="check")
        out = (*out, folded(title, tabled(inner, tables.of_checks(passed))))
    return out


def flaky(found: tuple[SuiteResult, ...]) -> tuple[Section, ...]:
    """The tests whose trials disagree."""
    rows = tuple(
        f"- {test_name(suite.name, test.name, many=len(found) > 1)} ({highlights.passes(test)} passed)"
        for suite in found
        for test in suite.tests
        if test.flaky
    )
    if not rows:
        return ()
    head = f"**{numbers.count(len(rows), 'flaky test')}**, some of whose trials passed and others did not:"
    return listing(Section("the flaky tests", head, Rank.TELLING, rows, noun="flaky test"))


def errors_and_undecided(found: tuple[SuiteResult, ...]) -> tuple[Section, ...]:
    """Errors and undecided verdicts by their cause."""
    rows = tuple(_error_line(errors) for errors in trial_errors.by_cause(found))
    whole = Section("errors and undecided", "### Errors and undecided", Rank.TELLING, rows, noun="cause")
    return listing(whole) if rows else ()


def groups(suite: SuiteResult) -> Section | None:
    """A suite's scores by category, AUI Logic, tag and difficulty, folded."""
    text = "\n\n".join(tables.groups(suite))
    title = sanitize.html_in_markdown(f"{suite.name} by category, AUI Logic, tag, difficulty")
    name = f"the groups of {sanitize.inline(suite.name, 80)}"
    return folded(title, Section(name, text, Rank.LISTS)) if text else None


def _head(results: Results, context: SummaryContext) -> Section:
    outcome = highlights.run_outcome(results)
    text = section(
        "head",
        results=results,
        label=outcome.value,
        skipped=outcome is RunOutcome.SKIPPED,
        cached=judge.cached(results),
        commit=_commit(results, context),
        foreign=context.foreign,
    )
    return Section("the verdict", text)


def _commit(results: Results, context: SummaryContext) -> str | None:
    """The commit that was tested, of a pull request its own. What a fork claims is not believed."""
    claimed = None if context.foreign else results.run.git.head_commit or results.run.git.commit
    return context.commit or claimed


def foot(results: Results, context: SummaryContext | None = None) -> Section:
    """The time, commit, tool and models of the run. With a context, the headline has the commit already."""
    commit = None if context else _commit(results, NO_CONTEXT)
    text = section("foot", results=results, commit=commit, run_url=context.run_url if context else None)
    return Section("the run's facts", text)


def _error_line(errors: trial_errors.TrialErrors) -> str:
    tests = numbers.listed([sanitize.inline(name, 80) for name in errors.tests], OPEN, "test")
    return f"- **{errors.what}**: {sanitize.inline(errors.reason, 600)}\n  ({tests})"


def _details(results: Results) -> tuple[Section, ...]:
    """The details, folded."""
    many = len(results.suites) > 1
    return present(
        baseline.histogram(results.comparison),
        _counts(results.suites),
        *(_all_tests(suite, many=many) for suite in results.suites),
        *(groups(suite) for suite in results.suites),
        process.measures(results),
        baseline.differing(results.comparison),
    )


def _counts(found: tuple[SuiteResult, ...]) -> Section | None:
    text = tables.of_counts(found)
    inner = Section("more on the suites", "", Rank.DETAILS, noun="suite")
    return folded("More on the suites", tabled(inner, text)) if text else None


def _all_tests(suite: SuiteResult, *, many: bool) -> Section:
    title = sanitize.html_in_markdown(f"All tests of {suite.name}" if many else "All tests")
    inner = Section(f"all tests of {sanitize.inline(suite.name, 80)}", "", Rank.LISTS)
    return folded(title, tabled(inner, tables.of_tests(suite)))
