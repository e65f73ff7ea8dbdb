"""The tables of Markdown reports: suites, tests, trials, groups, gate checks."""

from collections.abc import Sequence
from urllib.parse import quote

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import SuiteComparison
from ci_evals.domain.results.gate import GateCheck
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.reports import sanitize
from ci_evals.reports.facts import highlights, labels, rows
from ci_evals.reports.facts.judging.parts import PlainTable
from ci_evals.reports.markdown.sections import table

_DECISIONS = {True: "✅", False: "❌", None: "⚠️"}
_NAME = 60
"""Characters of a suite's or a check's name: these tables stand where there is no room for more."""


def of_suites(found: Sequence[tuple[SuiteResult, SuiteComparison | None]]) -> str:
    """Score, change and passed tests of each suite. Columns with nothing in them are left out."""
    cells = [[sanitize.cell(suite.name, _NAME), *rows.of_suite(suite, became)] for suite, became in found]
    return table(["suite", *rows.SUITE_COLUMNS], cells)


def of_suites_in_brief(found: Sequence[tuple[SuiteResult, SuiteComparison | None]], base: str) -> str:
    """The same for a first look. `base`: the baseline's name."""
    compared = any(became and became.delta is not None for _, became in found)
    cells = []
    for suite, became in found:
        row = rows.of_suite_in_brief(suite, became)
        label = labels.OUTCOMES[row.outcome]
        sign = f"{label.sign} {label.words}" if label.tone is labels.Tone.OPEN else label.sign
        changes = [row.base, row.change] if compared else []
        cells.append([sign, sanitize.cell(suite.name, _NAME), row.score, *changes, row.tests])
    changes = [sanitize.cell(base, 40), "Change"] if compared else []
    texts = [True, True, *[False] * (2 + len(changes))]
    return table(["", "Suite", "Score", *changes, "Tests passed"], cells, texts)


def of_counts(suites: Sequence[SuiteResult]) -> str | None:
    """Outcomes of the suites' tests and, if trials were repeated, the chance that they pass.

    None where all passed in their only trial.
    """
    most = min((max(suite.pass_hat_k, default=1) for suite in suites), default=1)
    chances = ["trials passed", f"all {most} trials passed"] if most > 1 else []
    counts = [
        (
            suite.counts.undecided,
            suite.counts.errors,
            suite.counts.invalid_users,
            suite.counts.flaky,
        )
        for suite in suites
    ]
    if not chances and not any(map(any, counts)):
        return None
    cells = [
        [
            sanitize.cell(suite.name, _NAME),
            *map(str, found),
            *([numbers.percent(suite.pass_hat_k.get(k)) for k in (1, most)] if chances else []),
        ]
        for suite, found in zip(suites, counts, strict=True)
    ]
    headers = ["undecided tests", "errored or undecided trials", "excluded trials", "flaky tests"]
    return table(["suite", *headers, *chances], cells)


def of_checks(checks: Sequence[GateCheck], *, verdict: bool) -> str:
    """The decision of each check, its requirement and the value it saw. Without a verdict none has passed."""
    cells = []
    for check in checks:
        required, seen, note = rows.of_check(check)
        if seen == check.note:  # of a critical check: text of a results file, which may be anybody's
            seen = sanitize.cell(seen, 300)
        name, sign = sanitize.cell(check.name, 2 * _NAME), _DECISIONS[check.passed]
        if check.passed and not verdict:
            sign = "–"
        cells.append([f"{sign} {name}", required, seen, sanitize.cell(note, 300)])
    return table(["check", *rows.CHECK_COLUMNS], cells)


def of_facts(facts: PlainTable) -> str:
    """A table of facts; columns with nothing in them are left out."""
    cells = [[sanitize.cell(row[index], 300) for index in facts.filled] for row in facts.rows]
    texts = [index > 0 and facts.headers[index] in facts.texts for index in facts.filled]
    return table([sanitize.cell(facts.headers[index], _NAME) for index in facts.filled], cells, texts)


def of_tests(tests: Sequence[TestResult]) -> str:
    """The result of a test and of its trials."""
    cells = [[sanitize.cell(test.name), *_test_cells(test)] for test in tests]
    return table(["test", *rows.TEST_COLUMNS], cells)


def of_tests_in_full(suite: SuiteResult, stems: Sequence[str]) -> str:
    """A table of the tests with links to their reports and, if trials were repeated, their spread."""
    names = [
        f"[{sanitize.cell(test.name)}]({quote(stem)}.md)"
        for stem, test in zip(stems, suite.tests, strict=True)
    ]
    most = max((len(highlights.pass_hat_k(test)) for test in suite.tests), default=0)
    result, score, *others = rows.TEST_COLUMNS
    if most < 2:
        columns = [*rows.TEST_COLUMNS]
        cells = [_test_cells(test) for test in suite.tests]
    else:
        columns = [result, score, "sd", "min to max", f"all {most} trials passed", *others]
        cells = [_with_spread(test, most) for test in suite.tests]
    return table(["test", *columns], [[name, *row] for name, row in zip(names, cells, strict=True)])


def _test_cells(test: TestResult) -> list[str]:
    result, *others = rows.of_test(test)
    return [f"{labels.OUTCOMES[test.outcome].sign} {result}", *others]


def _with_spread(test: TestResult, most: int) -> list[str]:
    result, score, *others = _test_cells(test)
    statistics = test.statistics
    return [
        result,
        score,
        numbers.spread(statistics.standard_deviation if statistics else None),
        numbers.extent(statistics.min, statistics.max, numbers.score) if statistics else numbers.NONE,
        numbers.percent(highlights.pass_hat_k(test).get(most)),
        *others,
    ]


def of_trials(test: TestResult) -> str:
    """The end state of each trial of a test."""
    cells = [[str(trial.index), *rows.of_trial(trial)] for trial in test.trials]
    return table(["trial", *rows.TRIAL_COLUMNS], cells)


def groups(suite: SuiteResult) -> tuple[str, ...]:
    """A suite's scores by category, AUI Logic, tag and difficulty, each with a title."""
    texts = []
    for title, header, found in rows.groups_of(suite):
        cells = [[sanitize.cell(group.name), *rows.of_group(group)] for group in found]
        texts.append(f"**{title}**\n\n{table([header, *rows.GROUP_COLUMNS], cells)}")
    return tuple(texts)
