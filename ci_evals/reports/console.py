"""Results for a terminal or a log: the tables, then the news as the comment has it, and what failed."""

from collections.abc import Iterable, Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import Comparison, TestChange
from ci_evals.domain.results.suite import SuiteResult, TestOutcome
from ci_evals.reports import sanitize
from ci_evals.reports.columns import table, wrapped
from ci_evals.reports.story import certainty, changes, tables, verdict, wording
from ci_evals.reports.story.advice import MORE_LINES
from ci_evals.reports.story.failures import CONFIRMED, FailedCriterion, FailedTest
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.table import Room, Table
from ci_evals.reports.story.wording import (
    NO_REASON,
    OUTCOMES,
    ROLES,
    UNFINISHED,
    RunOutcome,
    Tone,
    capitalized,
    sentence,
)

_NAME, _TEXT, _VERDICT = 200, 600, 2_000
"""Characters of a name, of a text, and of the verdict."""
_GREEN, _RED, _YELLOW, _BOLD, _RESET = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
_COLORS = {Tone.GOOD: _GREEN, Tone.BAD: _RED, Tone.OPEN: _YELLOW}
_SIGNS = {Tone.GOOD: "✓", Tone.BAD: "✗", Tone.OPEN: "!"}
_NAMED = 3
"""Tests of a kind that a line names."""
_SHOWN = 20
"""Tests of a kind that are shown with their evidence."""


def render(story: Story, *, width: int | None = None, color: bool = False, verbose: bool = False) -> str:
    """Return the whole text, ending in a newline.

    Args:
        story: Of the run.
        width: Of the terminal; without one nothing is cut.
        color: Whether to paint it.
        verbose: Whether every failed criterion, every check and the whole comparison are shown.
    """
    console = _Console(story, width, color=color, verbose=verbose)
    if story.outcome is RunOutcome.SKIPPED:
        lines = [*console.origin(), story.numbers.text, *story.notices.notes]
        return console.text([console.verdict(lines)])
    details = [console.reliability(), console.comparison(), console.checks(), console.costs()]
    return console.text(
        [
            console.weakened(),
            *console.suites(),
            *console.arms(),
            *(details if verbose else []),
            console.verdict(console.news_lines()),
            *console.tests(),
            console.trial_errors(),
            console.what_to_do(),
            console.remarks(),
        ]
    )


def comparison(story: Story, *, width: int | None = None, color: bool = False) -> str:
    """Return the comparison with the baseline as a text of its own, with the gate's checks of it."""
    results = story.results
    console = _Console(story, width, color=color, verbose=False)
    lines = [*console.origin(), *console.reasons(), certainty.score_and_change(results)]
    ending = console.verdict(lines) if results.gate.checks else console.lines(lines)
    return console.text(
        [console.weakened(), *console.tests(), console.comparison(), console.checks(), ending]
    )


class _Console:
    """The blocks of one text, which share the results and the look of the terminal."""

    def __init__(self, story: Story, width: int | None, *, color: bool, verbose: bool) -> None:
        self._story, self._results, self._news = story, story.results, story.change.news
        self._width, self._color, self._verbose = width, color, verbose
        self._unfinished = story.outcome in UNFINISHED

    def text(self, blocks: Iterable[str]) -> str:
        return wrapped("\n\n".join(block for block in blocks if block) + "\n", self._width)

    def verdict(self, lines: Iterable[str]) -> str:
        """The verdict in words, and lines below it."""
        tone = self._story.outcome.value.tone
        words = sanitize.log_line(self._story.verdict(), _VERDICT)
        return "\n".join([self._painted(f"{_SIGNS[tone]} {words}", _COLORS[tone] + _BOLD), self.lines(lines)])

    def lines(self, lines: Iterable[str]) -> str:
        return "\n".join(f"  {sanitize.log_line(line, _TEXT)}" for line in lines)

    def origin(self) -> list[str]:
        """The origin of the conversations, if they were not held in this run."""
        origin = self._story.notices.origin
        return [origin] if origin else []

    def news_lines(self) -> Iterator[str]:
        """The numbers of the run, how sure they are, and what limits them."""
        story, results = self._story, self._results
        yield from self.origin()
        yield story.numbers.text
        if results.score is not None:
            yield f"{story.certainty.sentence}."
        yield from self.reasons()
        if why := story.change.not_compared:
            yield why
        yield from (f"! {warning}" for warning in story.judging.warnings)
        yield from story.notices.notes
        if story.outcome is RunOutcome.FAILED:
            failing = story.other_failures
            yield from (sentence(capitalized(failure)) for failure in failing[:_NAMED])
            if (more := len(failing) - _NAMED) > 0:
                yield f"{numbers.count(more, 'more check')} failed {MORE_LINES}."

    def weakened(self) -> str:
        """The requirements that were dropped since the baseline."""
        found = self._story.notices.weakened
        return self.lines(found.sentences) if found else ""

    def reasons(self) -> Iterator[str]:
        """The reasons why there is no verdict, or a check was not made, that the verdict does not name."""
        verdict = self._story.verdict()
        yield from (sentence(capitalized(why)) for why in self._results.gate.reasons if why not in verdict)
        yield from self._story.notices.checks_not_made

    def suites(self) -> Iterator[str]:
        """A table of the tests of each suite."""
        for row in self._story.suites:
            suite = row.suite
            # A name that ends in a colon would make a command of the runner with ours.
            score = certainty.too_little_decided(suite) or numbers.score(suite.score)
            title = sanitize.log(f"{sanitize.log_line(suite.name, _NAME)}: {score}")
            more = self._spread(suite) if self._verbose else ""
            tests = [test for test in row.tests if self._story.listed.has(test.test)]
            left = len(suite.tests) - len(tests)
            yield "\n".join(
                [
                    self._painted(title, _BOLD) + more,
                    self._table(tables.tests("Tests", tests, Room.LITTLE)),
                    *([f"and {numbers.count(left, 'more test')}"] if left else []),
                ]
            )

    def _spread(self, suite: SuiteResult) -> str:
        """The interval of a suite's score, and the chance that one and all trials of a test pass."""
        interval = f" (95 % interval {numbers.interval(suite.interval)})" if suite.interval else ""
        most = max(suite.pass_hat_k, default=1)
        one, every = (numbers.percent(suite.pass_hat_k.get(k)) for k in (1, most))
        return interval + (f", trials passed: {one}, all {most} trials passed: {every}" if most > 1 else "")

    def _table(self, found: Table) -> str:
        """A table as wide as the terminal, whose marked cells are painted."""
        cells = []
        for row in found.rows:
            texts = [_name(cell) for cell in row.cells]
            for at, heading in enumerate(found.headings):
                if heading.marked and row.mark:
                    texts[at] = self._painted(texts[at], _COLORS[row.mark.tone])
            cells.append(texts)
        right = [at for at, heading in enumerate(found.headings) if not heading.words]
        titles = [_name(title) for title in found.titles]  # the names of agents are among them
        return table(titles, cells, self._width, right=right)

    def tests(self) -> Iterator[str]:
        """The tests that failed and why, grouped by their change since the baseline."""
        news, in_base = self._news, self._story.change.in_base
        for title, tests in (
            (self._story.change.broke_title, news.broke),
            # Without a verdict, the causes name these tests.
            (f"Passed {in_base}, not judged now", () if self._unfinished else news.unjudged),
            ("Failed", news.failed),
            (f"Failed {in_base} too, and worse now", news.worse),
            (f"Failed {in_base} too", news.failed_before if self._verbose else ()),
        ):
            if tests:
                shown = [line for test in tests[:_SHOWN] for line in self._failed_test(test)]
                more = len(tests) - _SHOWN
                rest = [f"and {numbers.count(more, 'more test')}"] if more > 0 else []
                yield "\n".join([sanitize.log_line(title, _NAME), *shown, *rest])
        changed = [
            (
                f"Failed {in_base} too",
                [self._test_name(test) for test in news.failed_before if not self._verbose],
            ),
            (f"Fixed {self._story.change.since}", [self._changed(test) for test in news.fixed]),
            ("Score dropped", [self._changed(test) for test in news.dropped]),
        ]
        lines = []
        for title, names in changed:
            if names:
                listed = numbers.listed(names, len(names) if self._verbose else _NAMED)
                lines.append(f"{sanitize.log_line(title, _NAME)} ({len(names)}): {listed}")
        yield "\n".join(lines)

    def _failed_test(self, test: FailedTest) -> Iterator[str]:
        tone = OUTCOMES[test.outcome].tone
        # How likely chance would confirm it is for those who ask further.
        marks = (
            CONFIRMED if mark.startswith(CONFIRMED) and not self._verbose else mark for mark in test.remarks
        )
        remarks = ", ".join(remark for remark in (test.scores, *marks) if remark)
        yield f"{self._painted(_SIGNS[tone], _COLORS[tone])} {self._test_name(test)}" + (
            f" ({sanitize.log_line(remarks)})" if remarks else ""
        )
        if early_end := test.early_end:
            yield f"    {sanitize.log_line(early_end, _TEXT)}"
        criteria = test.criteria if self._verbose else test.criteria[:1]
        for criterion in criteria:
            yield from self._criterion(criterion, test)
        if not criteria and test.first_reason:
            name, reason = test.first_reason
            failed = test.outcome is TestOutcome.FAILED
            yield self._failed_line(name) if failed else f"    {sanitize.log_line(name, _TEXT)}"
            yield f"      {sanitize.log_line(reason, _TEXT)}".rstrip()
        if more := len(test.criteria) - len(criteria):
            criteria_left = numbers.count(more, "more failed criterion", "more failed criteria")
            yield f"    {criteria_left} {MORE_LINES}"

    def _failed_line(self, name: str) -> str:
        """Return the line of a criterion that failed. Some end in a colon of their own."""
        cross = self._painted(_SIGNS[Tone.BAD], _RED)
        return f"    {cross} {sanitize.log_line(name, _TEXT)}".rstrip(": ") + ": failed"

    def _criterion(self, criterion: FailedCriterion, test: FailedTest) -> Iterator[str]:
        finding, warning = criterion.finding, test.warnings.get(criterion.finding.criterion)
        times = f" in {criterion.times} of {criterion.trials} trials" if criterion.trials > 1 else ""
        yield self._failed_line(finding.criterion) + times
        reason = finding.reason if self._verbose else sanitize.log_line(test.reason(finding), _TEXT)
        # Many a reason names its turns itself.
        turn = f"Turn {criterion.turn.index}: " if criterion.turn and "turn" not in reason else ""
        yield f"      {sanitize.log(turn + (sanitize.one_line(reason) or NO_REASON))}"
        if warning:
            yield f"      {self._painted('!', _YELLOW)} {sanitize.log_line(warning)}"

    def _changed(self, test: TestChange) -> str:
        confirmed = ", confirmed" if test.confirmed else ""
        return f"{self._test_name(test)} ({changes.scores(test)}{confirmed})"

    def _test_name(self, test: FailedTest | TestChange) -> str:
        name = f"{test.suite} › {test.name}" if len(self._results.suites) > 1 else test.name
        return _name(name)

    def trial_errors(self) -> str:
        """The trials that broke off, and verdicts that could not be reached, each cause once."""
        lines = []
        for errors in self._story.errors:
            why = sanitize.log_line(errors.reason, _TEXT)
            lines.append(f"{self._painted('!', _YELLOW)} {errors.what}: {why}")
            lines.append(f"    {numbers.listed([*map(_name, errors.tests)], _NAMED, 'test')}")
        return "\n".join(["Errors and undecided", *lines]) if lines else ""

    def what_to_do(self) -> str:
        """The next step where there is no verdict, or a failed one."""
        return sanitize.log_line(self._story.next_step.text)

    def remarks(self) -> str:
        """Trials, time and cost."""
        return "\n".join(sanitize.log_line(line, _TEXT) for line in self._remarks())

    def _remarks(self) -> Iterator[str]:
        results, counts = self._results, self._results.counts
        beside = sum(arm.counts.played_trials for arm in results.arms if not arm.gated)
        agents = "other agents" if changes.other_arms(results) else "the base agent"
        effort = [
            numbers.count(counts.played_trials + beside, "trial")
            + (f" ({beside:,} of {agents})" if beside else ""),
            numbers.duration(results.run.duration_seconds),
        ]
        effort += [numbers.money(results.usage.cost_usd)] if verdict.paid(results) else []
        effort += [numbers.count(counts.flaky, "flaky test")] if counts.flaky else []
        yield sentence(", ".join(effort))
        if unpriced := results.usage.unpriced:
            yield f"The cost is unknown: no price for {', '.join(unpriced)} (set prices)."
        for role in results.usage.by_role:
            if why := numbers.uncounted(role):
                yield f"The cost of {role.model or role.role} is unknown: {why}."
        if cached := self._story.judging.cached_answers:
            yield sentence(capitalized(cached))
        if self._verbose and (odds := self._story.certainty.odds):
            yield odds

    def reliability(self) -> str:
        """The facts about judge and simulated user."""
        remarks = [f"{remark.topic}: {remark.text}" for remark in self._story.judging.remarks]
        return "\n".join(["Judge and simulated user", self.lines(remarks)]) if remarks else ""

    def comparison(self) -> str:
        """The comparison of the suites with the baseline, and what was not compared."""
        found = self._results.comparison
        if found is None:
            return ""
        lines = [
            f"{difference.title} ({len(difference.tests)}): "
            f"{numbers.listed([*map(_name, difference.tests)], _NAMED)}"
            for difference in changes.differences(found)
        ]
        lines += changes.shown_reasons(found)
        lines += self._story.certainty.decision
        lines += [
            line for line in (changes.pace(found), certainty.trials_to_prove(found, self._results)) if line
        ]
        compared = sum(row.compared is not None for row in self._story.suites)
        body = [self._table(self._story.tables.suites)] if compared > 1 else []
        if lines:
            body.append(self.lines(lines))
        # If nothing was compared, the verdict says why.
        return "\n".join([self._baseline(found), *body]) if body or found.delta is not None else ""

    def _baseline(self, found: Comparison) -> str:
        if found.method == "both-sides":
            return sanitize.log_line(
                f"Compared with {changes.base_agent(self._results)}, played in this run", _TEXT
            )
        baseline = found.baseline
        commit = wording.commit_name(baseline)
        which = f"commit {commit}" if commit else f"run {baseline.run_id}"
        when = f"{wording.moment(baseline.at)}, {changes.age(self._results, found)}"
        return sanitize.log_line(f"Compared with the baseline: {which} of {when}", _TEXT)

    def arms(self) -> Iterator[str]:
        """The agents that were played side by side."""
        if agents := self._story.tables.agents:
            yield f"{agents.title}\n{self._table(agents)}"

    def checks(self) -> str:
        """A line for each check of the gate."""
        found = self._story.tables.checks
        return f"Checks\n{self._table(found)}" if found else ""

    def costs(self) -> str:
        """Cost by role and model, and the agent's latency, where they are known."""
        usage, latency = self._results.usage, self._results.latency
        costs = [
            f"{ROLES.get(role.role, role.role)} {role.model or ''}".rstrip()
            + f" {numbers.money(role.cost_usd)}"
            for role in usage.by_role
            if role.cost_usd is not None
        ]
        if costs and usage.prices_as_of:
            costs.append(f"prices of {usage.prices_as_of.isoformat()}")
        lines = [f"Cost: {', '.join(costs)}"] if costs else []
        if latency.median is not None:
            slow = numbers.latency(latency.p95)
            lines.append(f"Replies: median {numbers.latency(latency.median)}, 95 % within {slow}")
        return "\n".join(sanitize.log_line(line, _TEXT) for line in lines)

    def _painted(self, text: str, paint: str) -> str:
        return f"{paint}{text}{_RESET}" if self._color else text


def _name(name: str) -> str:
    return sanitize.log_line(name, _NAME)
