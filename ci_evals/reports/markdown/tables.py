"""The tables of Markdown reports: suites, tests, trials, groups, gate checks."""

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from ci_evals.domain.results.comparison import SuiteComparison
from ci_evals.domain.results.gate import GateCheck
from ci_evals.domain.results.suite import ScoreGroup, SuiteResult, TestResult
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import change, gate, highlights, labels
from ci_evals.reports.facts.parts import PlainTable
from ci_evals.reports.markdown.sections import section, table

_NAME = 60
"""Characters of a suite's or a check's name: these tables stand where there is no room for more."""
SUITE_COLUMNS = (
    "score",
    "95 %",
    "compared tests",
    "baseline",
    "change",
    "95 % of change",
    "p",
    "tests passed",
)
GROUP_COLUMNS = ("score", "95 %", "tests", "passed", "failed", "undecided")


def of_suites(found: Sequence[tuple[SuiteResult, SuiteComparison | None]]) -> str:
    """Score, change and passed tests of each suite. Columns with nothing in them are left out."""
    rows = [[sanitize.cell(suite.name, _NAME), *scores(suite, became)] for suite, became in found]
    return table(["suite", *SUITE_COLUMNS], rows)


def of_counts(suites: Sequence[SuiteResult]) -> str | None:
    """What became of the suites' tests and, where trials were repeated, how likely they pass.

    None where all passed in their only trial.
    """
    most = min((max(suite.pass_hat_k, default=1) for suite in suites), default=1)
    chances = ["one trial passes", f"all of {most} pass"] if most > 1 else []
    counts = [
        (
            suite.counts.failed,
            suite.counts.undecided,
            suite.counts.errors,
            suite.counts.invalid_users,
            suite.counts.flaky,
        )
        for suite in suites
    ]
    if not chances and not any(map(any, counts)):
        return None
    rows = [
        [
            sanitize.cell(suite.name, _NAME),
            *map(str, found),
            *([numbers.percent(suite.pass_hat_k.get(k)) for k in (1, most)] if chances else []),
        ]
        for suite, found in zip(suites, counts, strict=True)
    ]
    return table(
        ["suite", "failed", "undecided", "unsound trials", "trials left out", "flaky", *chances], rows
    )


def of_checks(checks: Sequence[GateCheck]) -> str:
    """What each check of the gate asked and saw."""
    rows = [
        [
            sanitize.cell(check.name, 2 * _NAME),
            gate.required(check),
            gate.seen(check),
            sanitize.cell(check.note or "", 300),
        ]
        for check in checks
    ]
    return table(["check", "required", "seen", "note"], rows)


def of_grid(grid: PlainTable) -> str:
    """What is known of judge and simulated user, in numbers; columns with nothing in them are left out."""
    rows = [[sanitize.cell(row[place], 300) for place in grid.filled] for row in grid.rows]
    texts = [place > 0 and grid.headers[place] in grid.texts for place in grid.filled]
    return table([grid.headers[place] for place in grid.filled], rows, texts)


def of_tests(suite: SuiteResult) -> str:
    """What one needs of each test."""
    headers = ["test", "result", "score", "pass rate", "trials scored", "time"]
    return table(headers, [[sanitize.cell(test.name), *_test_cells(test)] for test in suite.tests])


def of_tests_in_full(suite: SuiteResult, stems: Sequence[str]) -> str:
    """The same with links to the tests' reports, and where trials were repeated what they say together."""
    names = [
        f"[{sanitize.cell(test.name)}]({quote(stem)}.md)"
        for stem, test in zip(stems, suite.tests, strict=True)
    ]
    most = max((len(highlights.pass_hat_k(test)) for test in suite.tests), default=0)
    if most < 2:
        headers = ["test", "result", "score", "pass rate", "trials scored", "time"]
        cells = [_test_cells(test) for test in suite.tests]
    else:
        spread = ["sd", "min to max"]
        headers = [
            "test",
            "result",
            "score",
            *spread,
            "pass rate",
            f"all of {most} pass",
            "trials scored",
            "time",
        ]
        cells = [_with_spread(test, most) for test in suite.tests]
    return table(headers, [[name, *row] for name, row in zip(names, cells, strict=True)])


def _test_cells(test: TestResult) -> list[str]:
    scored = sum(trial.scored for trial in test.trials)
    return [
        f"{labels.OUTCOMES[test.outcome].sign} {highlights.result(test)}",
        numbers.score(test.score),
        numbers.percent(test.pass_rate),
        f"{scored} of {len(test.trials) + test.not_run}",
        numbers.duration(sum(trial.duration_seconds for trial in test.trials)),
    ]


def _with_spread(test: TestResult, most: int) -> list[str]:
    result, score, rate, *rest = _test_cells(test)
    found = test.statistics
    return [
        result,
        score,
        numbers.spread(found.standard_deviation if found else None),
        numbers.extent(found.min, found.max, numbers.score) if found else numbers.NONE,
        rate,
        numbers.percent(highlights.pass_hat_k(test).get(most)),
        *rest,
    ]


def of_trials(test: TestResult) -> str:
    """How each trial of a test ended."""
    rows = [
        [
            str(trial.index),
            labels.spaced(trial.status),
            numbers.score(trial.score),
            highlights.tally(trial.findings),
            str(len(trial.turns)),
            numbers.duration(trial.duration_seconds),
        ]
        for trial in test.trials
    ]
    return table(["trial", "ended", "score", "verdicts", "turns", "time"], rows)


def groups(suite: SuiteResult) -> tuple[str, ...]:
    """A suite's scores by category, AUI Logic, tag and difficulty, each with a title."""
    return tuple(
        section("group", title=title, table=_group_table(header, found))
        for title, header, found in kinds_of_groups(suite)
    )


def kinds_of_groups(suite: SuiteResult) -> tuple[tuple[str, str, tuple[ScoreGroup, ...]], ...]:
    """The groups that a suite has, each kind with a title and what heads its names."""
    kinds = (
        ("By category", "category", suite.categories),
        ("By AUI Logic", "AUI logic", suite.aui_logic),
        ("By tag", "tag", suite.tags),
        ("By difficulty", "difficulty", suite.difficulties),
    )
    return tuple(kind for kind in kinds if kind[2])


def _group_table(header: str, groups: Iterable[ScoreGroup]) -> str:
    rows = [[sanitize.cell(group.name), *of_group(group)] for group in groups]
    return table([header, *GROUP_COLUMNS], rows)


def of_group(group: ScoreGroup) -> list[str]:
    """The numbers of a group in plain text, in the order of `GROUP_COLUMNS`."""
    return [
        numbers.score(group.score),
        numbers.interval(group.interval) if group.interval else "",
        str(group.tests),
        str(group.passed),
        str(group.failed),
        str(group.undecided),
    ]


def scores(suite: SuiteResult, became: SuiteComparison | None) -> list[str]:
    """The numbers of a suite in plain text, in the order of `SUITE_COLUMNS`; empty where there is none."""
    shown = [numbers.score(suite.score), numbers.interval(suite.interval) if suite.interval else ""]
    passed = f"{suite.counts.passed} of {suite.counts.tests}"
    if became is None or became.delta is None:
        return [*shown, "", "", "", "", "", passed]
    part = became.tests != suite.counts.tests or numbers.score(became.head) != numbers.score(suite.score)
    return [
        *shown,
        f"{numbers.score(became.head)} ({became.tests} of {suite.counts.tests})" if part else "",
        numbers.score(became.base),
        numbers.signed(became.delta),
        numbers.change_interval(became.interval) if became.interval else "",
        numbers.chance(became.p) if change.tells_p(became) else "",
        passed,
    ]
