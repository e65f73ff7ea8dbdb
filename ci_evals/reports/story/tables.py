"""The tables of a run: suites, groups, tests, trials, checks, agents, calls, latency.

A new column is one line here, and every report shows it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from statistics import median

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import SuiteComparison
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import ScoreGroup, SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import Latency, RoleUsage
from ci_evals.reports.story import certainty, changes, gate, phrases, test_words, verdict_words
from ci_evals.reports.story.failures import Became, FailedTest
from ci_evals.reports.story.outcome_labels import OUTCOMES, UNFINISHED, Tone
from ci_evals.reports.story.phrases import ROLES
from ci_evals.reports.story.table import BLANK, NO_COUNT, UNKNOWN, Column, Mark, Room, Table, table_of
from ci_evals.scoring import scores

_NAME = 60
"""Characters of a suite's name where there is little room."""


# Suites


@dataclass(frozen=True)
class SuiteRow:
    """A suite, and what became of it since the baseline."""

    suite: SuiteResult
    became: SuiteComparison | None
    tests: "tuple[TestRow, ...]" = ()

    @property
    def too_little(self) -> bool:
        """True if too little was decided for a score."""
        return certainty.too_little_decided(self.suite) is not None

    @property
    def score(self) -> str:
        """The exact score, or why there is none."""
        return certainty.too_little_decided(self.suite) or numbers.score(self.suite.score)

    @property
    def compared(self) -> SuiteComparison | None:
        """The comparison, if there is a change to show."""
        if self.became is None or self.became.delta is None or self.too_little:
            return None
        return self.became

    @property
    def base(self) -> float | None:
        """The baseline's score: of the compared tests, or of all where none was compared."""
        if self.became is None:
            return None
        return self.became.baseline_score if self.became.delta is None else self.became.base

    @property
    def worst(self) -> TestOutcome:
        """The worst outcome of its tests."""
        outcomes = {test.outcome for test in scores.deciding(self.suite.tests)}
        return next((outcome for outcome in _WORST if outcome in outcomes), TestOutcome.PASSED)


_WORST = (TestOutcome.FAILED, TestOutcome.ERROR, TestOutcome.UNDECIDED, TestOutcome.NOT_RUN)


def _suite_interval(row: SuiteRow) -> str:
    interval = row.suite.interval
    return numbers.interval(interval) if interval and not row.too_little else ""


def _compared_part(row: SuiteRow) -> str:
    """The score of the compared tests and their number, where they are not all."""
    found, tests = row.compared, row.suite.counts.deciding
    if found is None:
        return ""
    score = numbers.score(found.head)
    is_part = found.tests != tests or score != numbers.score(row.suite.score)
    return f"{score} ({found.tests} of {tests})" if is_part else ""


def _of_change(
    title: str, show: Callable[[SuiteComparison], str], *, unbroken: bool = False
) -> Column[SuiteRow]:
    """A column on a suite's comparison, empty where there is none."""
    return Column(
        title,
        unbroken=unbroken,
        says_nothing=frozenset({"", certainty.NOT_FALLEN}),
        show=lambda row: show(row.compared) if row.compared else "",
    )


def _change_interval(found: SuiteComparison) -> str:
    if not found.interval:
        return ""
    return numbers.change_interval(found.interval, found.base, found.head)


def _chance(found: SuiteComparison) -> str:
    return numbers.chance(found.p) if certainty.shows_p(found) else certainty.NOT_FALLEN


SUITE_COLUMNS: tuple[Column[SuiteRow], ...] = (
    Column("suite", words=True, limit=_NAME, show=lambda row: row.suite.name),
    Column("score", show=lambda row: numbers.NONE if row.too_little else numbers.score(row.suite.score)),
    Column("95 % interval", unbroken=True, says_nothing=BLANK, show=_suite_interval),
    Column("compared tests", unbroken=True, says_nothing=BLANK, show=_compared_part),
    Column(
        "baseline",
        says_nothing=BLANK,
        show=lambda row: "" if row.base is None else numbers.score(row.base),
    ),
    _of_change("change", lambda found: numbers.changed(found.base, found.head)),
    _of_change("95 % interval of the change", _change_interval, unbroken=True),
    _of_change("p", _chance),
    Column("tests passed", unbroken=True, show=lambda row: test_words.passed_of(row.suite.counts)),
)


def suite_rows(results: Results, became: Mapping[tuple[str, str], Became]) -> tuple[SuiteRow, ...]:
    """The suites in their order, each with its tests and what became of both.

    `became`: the tests whose outcome changed since the baseline, by suite and name.
    """
    changed = {}
    if comparison := results.comparison:
        for one in (*comparison.suspects, *comparison.fixed, *comparison.regressed):
            changed[one.suite, one.name] = one.base
    rows = []
    for suite, compared in zip(results.suites, changes.of_suites(results), strict=True):
        base_scores = compared.base_scores if compared and compared.delta is not None else ()
        tests = []
        for test, base in zip_longest(suite.tests, base_scores[: len(suite.tests)]):
            name = (suite.name, test.name)
            tests.append(TestRow(suite, test, became.get(name), changed.get(name, base)))
        rows.append(SuiteRow(suite, compared, tuple(tests)))
    return tuple(rows)


def suites(rows: Sequence[SuiteRow]) -> Table:
    """The exact scores of the suites and their changes."""
    return table_of("Scores of the suites", SUITE_COLUMNS, rows)


def suites_in_brief(rows: Sequence[SuiteRow], base: str) -> Table:
    """The suites in whole points, for a first look; `base` is the name of the baseline."""
    columns: tuple[Column[SuiteRow], ...] = (
        Column("", words=True, marked=True, show=_brief_outcome),
        Column("Suite", words=True, limit=_NAME, show=lambda row: row.suite.name),
        Column("Score", show=_brief_score),
        Column(base, limit=40, show=lambda row: numbers.points(row.base)),
        Column("Change", show=_brief_change),
        Column("Tests passed", show=lambda row: test_words.passed_of(row.suite.counts)),
    )
    if not any(row.became and row.became.delta is not None for row in rows):
        columns = tuple(column for column in columns if column.title not in {base, "Change"})
    remark = "; ".join(_why_no_score(row) for row in rows if row.too_little)
    return table_of("Suites", columns, rows, mark=lambda row: mark_of(row.worst), remark=remark)


def _why_no_score(row: SuiteRow) -> str:
    return f"{row.suite.name}: {row.score}"


def _brief_outcome(row: SuiteRow) -> str:
    """What its sign is about: `2 failed`, `errored`; nothing if all passed."""
    label = OUTCOMES[row.worst]
    if label.tone is Tone.OPEN:
        return label.words
    failed = sum(test.outcome is TestOutcome.FAILED for test in scores.deciding(row.suite.tests))
    return f"{failed:,} failed" if failed else ""


def _brief_score(row: SuiteRow) -> str:
    if row.too_little:
        return numbers.NONE
    score = numbers.points(row.suite.score)
    if row.compared and numbers.points(row.compared.head) != score:
        return f"{score} ({numbers.points(row.compared.head)} compared)"
    return score


def _brief_change(row: SuiteRow) -> str:
    if row.compared is None:
        return numbers.NONE
    return numbers.points_changed(row.compared.base, row.compared.head)


def suites_in_counts(found: Sequence[SuiteResult]) -> Table | None:
    """What is to be said of suites besides their scores; None where all passed in their only trial."""
    most = min((max(suite.pass_hat_k, default=1) for suite in found), default=1)
    columns: list[Column[SuiteResult]] = [
        Column("suite", words=True, limit=_NAME, show=lambda suite: suite.name),
        _count("undecided tests", lambda suite: suite.counts.undecided),
        _count("errored or undecided trials", lambda suite: suite.counts.errors),
        _count("excluded trials", lambda suite: suite.counts.invalid_users),
        _count("flaky tests", lambda suite: suite.counts.flaky),
    ]
    if most > 1:
        columns += [_all_passed("trials passed", 1), _all_passed(f"all {most} trials passed", most)]
    table = table_of("More on the suites", columns, found)
    return table if len(table.headings) > 1 else None


def _all_passed(title: str, trials: int) -> Column[SuiteResult]:
    return Column(title, show=lambda suite: numbers.percent(suite.pass_hat_k.get(trials)))


def _count(title: str, number: Callable[[SuiteResult], int]) -> Column[SuiteResult]:
    return Column(title, says_nothing=NO_COUNT, show=lambda suite: str(number(suite)))


# Groups of tests


GROUP_COLUMNS: tuple[Column[ScoreGroup], ...] = (
    Column("score", show=lambda group: numbers.score(group.score)),
    Column(
        "95 % interval",
        unbroken=True,
        says_nothing=BLANK,
        show=lambda group: numbers.interval(group.interval) if group.interval else "",
    ),
    Column("tests", show=lambda group: str(group.tests)),
    Column("passed", show=lambda group: str(group.passed)),
    Column("failed", says_nothing=NO_COUNT, show=lambda group: str(group.failed)),
    Column("undecided", says_nothing=NO_COUNT, show=lambda group: str(group.undecided)),
)


def groups(suite: SuiteResult) -> tuple[Table, ...]:
    """The scores by category, AUI Logic, tag and difficulty, as far as the suite has them."""
    kinds = (
        ("By category", "category", suite.categories),
        ("By AUI Logic", "AUI logic", suite.aui_logic),
        ("By tag", "tag", suite.tags),
        ("By difficulty", "difficulty", suite.difficulties),
    )
    tables = []
    for title, header, members in kinds:
        if members:
            name: Column[ScoreGroup] = Column(header, words=True, limit=160, show=lambda group: group.name)
            tables.append(table_of(title, (name, *GROUP_COLUMNS), members))
    return tuple(tables)


# Tests


@dataclass(frozen=True)
class TestRow:
    """A test, and what became of it since the baseline."""

    suite: SuiteResult
    test: TestResult
    became: Became | None = None
    base: float | None = None
    """The baseline's score, if the two were compared."""
    suite_shown: str = ""
    """The name of its suite, where the table has tests of several."""

    @property
    def failed_criterion(self) -> str:
        """The criterion that failed most; may be empty."""
        failed = FailedTest("", "", self.test).criteria
        return failed[0].finding.criterion if failed else ""

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The categories of its criteria."""
        findings = (finding for trial in self.test.trials for finding in trial.findings)
        return tuple(dict.fromkeys(finding.category for finding in findings if finding.category))

    @property
    def delta(self) -> float | None:
        """The change of its score in points; None if there is none, or the test errored."""
        if self.base is None or self.test.score is None or self.test.outcome is TestOutcome.ERROR:
            return None
        return self.test.score - self.base

    @property
    def changed(self) -> bool:
        """True if the score or the outcome differs from the baseline's."""
        return bool(self.became) or bool(self.delta and abs(self.delta) > 1e-9)

    @cached_property
    def reply(self) -> float | None:
        """The median latency of its replies in seconds."""
        latencies = [seconds for trial in self.test.trials for seconds in trial.turns.latencies]
        return median(latencies) or None if latencies else None

    @property
    def seconds(self) -> float:
        """The time that its trials took together."""
        return sum(trial.duration_seconds for trial in self.test.trials)

    @property
    def spread(self) -> bool:
        """True if several of its trials were scored, so that they have a spread."""
        return len(test_words.pass_hat_k(self.test)) > 1


def _test_score(row: TestRow) -> str:
    return numbers.NONE if row.test.outcome is TestOutcome.ERROR else numbers.score(row.test.score)


def _deviation(row: TestRow) -> str:
    statistics = row.test.statistics
    return numbers.spread(statistics.standard_deviation) if statistics and row.spread else ""


def _extent(row: TestRow) -> str:
    statistics = row.test.statistics
    if not statistics or not row.spread:
        return ""
    return numbers.extent(statistics.min, statistics.max, numbers.score)


def _all_pass(row: TestRow) -> str:
    chances = test_words.pass_hat_k(row.test)
    return numbers.percent(chances[max(chances)]) if row.spread else ""


def _detail(title: str, show: Callable[[TestRow], str]) -> Column[TestRow]:
    """A column of words that the page shows on request."""
    return Column(title, words=True, extra=True, says_nothing=BLANK, room=Room.MUCH, show=show)


TEST_COLUMNS: tuple[Column[TestRow], ...] = (
    Column("test", words=True, limit=160, show=lambda row: row.test.name),
    Column("result", words=True, marked=True, show=lambda row: test_words.test_result(row.test)),
    Column("suite", words=True, says_nothing=BLANK, room=Room.MUCH, show=lambda row: row.suite_shown),
    Column("score", show=_test_score, key=lambda row: row.test.score),
    Column(
        "baseline",
        says_nothing=BLANK,
        show=lambda row: "" if row.base is None else numbers.score(row.base),
        key=lambda row: row.base,
    ),
    Column(
        "change",
        says_nothing=BLANK,
        show=lambda row: "" if row.delta is None else numbers.changed(row.base, row.test.score),
        key=lambda row: row.delta,
    ),
    Column(
        "trials passed",
        show=lambda row: test_words.trial_counts(row.test),
        key=lambda row: row.test.pass_rate,
    ),
    Column(
        "failed criterion",
        words=True,
        limit=160,
        says_nothing=BLANK,
        room=Room.MUCH,
        show=lambda row: row.failed_criterion,
    ),
    Column("sd", extra=True, says_nothing=BLANK, room=Room.SOME, show=_deviation),
    Column("min to max", extra=True, unbroken=True, says_nothing=BLANK, room=Room.SOME, show=_extent),
    Column("all trials passed", extra=True, says_nothing=BLANK, room=Room.SOME, show=_all_pass),
    _detail("difficulty", lambda row: row.test.difficulty or ""),
    _detail("tags", lambda row: ", ".join(row.test.tags)),
    _detail("categories", lambda row: ", ".join(row.categories)),
    Column(
        "median reply",
        extra=True,
        room=Room.MUCH,
        says_nothing=UNKNOWN,
        show=lambda row: numbers.latency(row.reply),
        key=lambda row: row.reply,
    ),
    Column(
        "total time",
        extra=True,
        says_nothing=frozenset({numbers.duration(0)}),
        show=lambda row: numbers.duration(row.seconds),
        key=lambda row: row.seconds,
    ),
)


def tests(title: str, rows: Sequence[TestRow], room: Room) -> Table:
    """The results of tests."""
    return table_of(title, TEST_COLUMNS, rows, room=room, mark=lambda row: mark_of(row.test.outcome))


def mark_of(outcome: TestOutcome) -> Mark:
    """The sign of an outcome."""
    label = OUTCOMES[outcome]
    return Mark(label.sign, label.tone)


# Trials


TRIAL_COLUMNS: tuple[Column[TrialResult], ...] = (
    Column("trial", show=lambda trial: str(trial.index)),
    Column("ended", words=True, show=lambda trial: phrases.spaced(trial.status)),
    Column("score", show=lambda trial: numbers.score(trial.score)),
    Column("verdicts", words=True, show=lambda trial: verdict_words.tally(trial.findings)),
    Column("turns", show=lambda trial: str(len(trial.turns))),
    Column("time", show=lambda trial: numbers.duration(trial.duration_seconds)),
)


def trials(test: TestResult) -> Table:
    """The trials of a test."""
    return table_of("Trials", TRIAL_COLUMNS, test.trials)


# Checks of the gate


_CHECK_MARKS = {
    True: Mark("✅", Tone.GOOD),
    False: Mark("❌", Tone.BAD),
    None: Mark("⚠️", Tone.OPEN),
}
_MET_SO_FAR = Mark("–", Tone.OPEN)


def _names_trials(check: GateCheck) -> bool:
    """True of a critical test's check, whose note says what was seen better than a number would."""
    return check.kind is CheckKind.CRITICAL and check.seen is not None and bool(check.note)


def _seen(check: GateCheck) -> str:
    return (check.note or "") if _names_trials(check) else gate.seen(check)


CHECK_COLUMNS: tuple[Column[GateCheck], ...] = (
    Column("check", words=True, limit=2 * _NAME, show=gate.check_name),
    Column("result", words=True, marked=True, show=gate.decision),
    Column("required", words=True, show=gate.required),
    Column("seen", words=True, show=_seen),
    Column(
        "note",
        words=True,
        says_nothing=BLANK,
        show=lambda check: "" if _names_trials(check) else check.note or "",
    ),
)


def checks(results: Results) -> Table | None:
    """The checks of the gate, first those that failed; None if there are none.

    Without a verdict no check has passed: what it requires was met as far as is known.
    """
    found = gate.in_order(results)
    if not found:
        return None
    columns = CHECK_COLUMNS
    marks = _CHECK_MARKS
    if gate.run_outcome(results) in UNFINISHED:
        marks = _CHECK_MARKS | {True: _MET_SO_FAR}
        columns = tuple(
            Column("result", words=True, marked=True, show=_so_far) if one.title == "result" else one
            for one in CHECK_COLUMNS
        )
    return table_of(
        "Checks of the gate",
        columns,
        found,
        mark=lambda check: marks[check.passed],
        tone=lambda check: marks[check.passed].tone,
        remark=_left_out(results) if marks is not _CHECK_MARKS else "",
    )


def _left_out(results: Results) -> str:
    """What the numbers of a run without a verdict leave out, in a sentence; empty if nothing."""
    lost = sum(not (trial.counts or trial.excluded) for test in results.tests for trial in test.trials)
    if not lost:
        return ""
    trials = numbers.count(lost, "trial")
    return f"{trials} that errored {'is' if lost == 1 else 'are'} left out of the scores."


def _so_far(check: GateCheck) -> str:
    return "met, as far as known" if check.passed else gate.decision(check)


# Calls, tokens, cost and latency


def _cost(role: RoleUsage) -> str:
    if why := numbers.uncounted(role):
        return f"unknown: {why}"
    return "no price known" if role.cost_usd is None else numbers.money(role.cost_usd)


USAGE_COLUMNS: tuple[Column[RoleUsage], ...] = (
    Column("role", words=True, show=lambda role: ROLES[role.role]),
    Column("model", words=True, says_nothing=BLANK, show=lambda role: role.model or ""),
    Column("calls", show=lambda role: f"{role.calls:,}"),
    Column("input tokens", show=lambda role: numbers.tokens(role.input_tokens)),
    Column("output tokens", show=lambda role: numbers.tokens(role.output_tokens)),
    Column("cost", show=_cost),
)


def usage(results: Results) -> Table | None:
    """Calls, tokens and cost by role and model; None if no model was called."""
    if not results.usage.by_role:
        return None
    prices = results.usage.prices_as_of
    of = f", prices of {prices.isoformat()}" if prices else ""
    return table_of(f"Tokens and cost by role and model{of}", USAGE_COLUMNS, results.usage.by_role)


LATENCY_COLUMNS: tuple[Column[tuple[str, Latency]], ...] = (
    Column("run", words=True, show=lambda run: run[0]),
    Column("replies", show=lambda run: f"{run[1].replies:,}"),
    Column("median", show=lambda run: numbers.latency(run[1].median)),
    Column("p95", show=lambda run: numbers.latency(run[1].p95)),
    Column("slowest", show=lambda run: numbers.latency(run[1].slowest)),
    Column(
        "first words, median",
        says_nothing=UNKNOWN,
        show=lambda run: numbers.latency(run[1].first_token_median),
    ),
    Column(
        "first words, p95", says_nothing=UNKNOWN, show=lambda run: numbers.latency(run[1].first_token_p95)
    ),
)


def latency(results: Results, baseline: Results | None) -> Table | None:
    """The latency of the agent's replies, of this run and of the baseline; None if none was measured."""
    runs = [("this run", results.latency)]
    if baseline:
        runs.append(("baseline", baseline.latency))
    known = [(name, found) for name, found in runs if found.replies]
    return table_of("Latency of the agent's replies", LATENCY_COLUMNS, known) if known else None
