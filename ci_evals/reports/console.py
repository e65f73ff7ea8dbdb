"""Results for a terminal or a log: the tables, then the news as the comment has it, and what failed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.reports import sanitize
from ci_evals.reports.columns import table, wrapped
from ci_evals.reports.story import changes, tables
from ci_evals.reports.story.advice import MORE_LINES
from ci_evals.reports.story.failures import CONFIRMED, FailedCriterion, FailedTest, by_reasons
from ci_evals.reports.story.outcome_labels import OUTCOMES, RunOutcome, Tone
from ci_evals.reports.story.phrases import NO_REASON, capitalized, sentence
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.table import Room, Table
from ci_evals.reports.story.verdict import Kind

_NAME, _TEXT, _VERDICT = 200, 600, 2_000
"""Characters of a name, of a text, and of the verdict."""
_GREEN, _RED, _YELLOW, _BOLD, _RESET = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
_COLORS = {Tone.GOOD: _GREEN, Tone.BAD: _RED, Tone.OPEN: _YELLOW}
_SIGNS = {Tone.GOOD: "✓", Tone.BAD: "✗", Tone.OPEN: "!"}
_NAMED = 3
"""Tests of a kind that a line names."""
_FEW = 3
"""Failed criteria of a test that are all shown."""
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
    details = [console.reliability(), console.comparison(), console.checks(), *console.numbers()]
    return console.text(
        [
            console.weakened(),
            *console.suites(),
            console.titled(story.tables.agents),
            *console.studies(),
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
    console = _Console(story, width, color=color, verbose=False)
    lines = [*console.origin(), *console.reasons(), story.certainty.score_and_change]
    ending = console.verdict(lines) if story.tables.checks else console.lines(lines)
    return console.text(
        [console.weakened(), *console.tests(), console.comparison(), console.checks(), ending]
    )


class _Console:
    """The blocks of one text, which share the story and the look of the terminal."""

    def __init__(self, story: Story, width: int | None, *, color: bool, verbose: bool) -> None:
        self._story = story
        self._width, self._color, self._verbose = width, color, verbose

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
        story = self._story
        yield from self.origin()
        yield story.numbers.text
        if story.certainty.sentence:
            yield f"{story.certainty.sentence}."
        yield from self.reasons()
        if why := story.change.not_compared:
            yield why
        yield from (f"! {warning}" for warning in story.judging.warnings)
        yield from story.notices.notes
        if story.failed_checks:
            yield story.failed_checks

    def weakened(self) -> str:
        """The requirements that were dropped since the baseline."""
        found = self._story.notices.weakened
        return self.lines(found.sentences) if found else ""

    def reasons(self) -> Iterator[str]:
        """The reasons why there is no verdict, or a check was not made, that the verdict does not name."""
        verdict = self._story.verdict()
        yield from (sentence(capitalized(why)) for why in self._story.run.gate.reasons if why not in verdict)
        yield from self._story.notices.checks_not_made

    def suites(self) -> Iterator[str]:
        """A table of the tests of each suite."""
        for row in self._story.suites:
            # A name that ends in a colon would make a command of the runner with ours.
            title = sanitize.log(f"{sanitize.log_line(row.suite.name, _NAME)}: {row.score}")
            tests = [test for test in row.tests if self._story.listed.has(test.test)]
            lines = [self._painted(title, _BOLD), self._table(tables.tests("Tests", tests, Room.LITTLE))]
            if left := len(row.tests) - len(tests):
                lines.append(f"and {numbers.count(left, 'more test')}")
            yield "\n".join(lines)

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
        text = table(titles, cells, self._width, right=right)
        return f"{text}\n{self.lines([found.remark])}" if found.remark else text

    def tests(self) -> Iterator[str]:
        """The tests that failed and why, grouped by their change since the baseline."""
        brief = []
        for group in self._story.change.failed:
            if group.kind is Kind.FAILED_BEFORE and not self._verbose:
                brief.append(self._listed(group.title, [self._test_name(test) for test in group.tests]))
                continue
            shown: list[str] = []
            for test, first in by_reasons(group.tests[:_SHOWN]):
                shown += self._failed_test(test, None if self._verbose else first)
            more = len(group.tests) - _SHOWN
            rest = [f"and {numbers.count(more, 'more test')}"] if more > 0 else []
            yield "\n".join([sanitize.log_line(group.title, _NAME), *shown, *rest])
        brief += [
            self._listed(group.title, [self._changed(test) for test in group.tests])
            for group in self._story.change.changed
        ]
        yield "\n".join(brief)

    def _listed(self, title: str, names: Sequence[str]) -> str:
        listed = numbers.listed(names, len(names) if self._verbose else _NAMED)
        return f"{sanitize.log_line(title, _NAME)} ({len(names)}): {listed}"

    def _failed_test(self, test: FailedTest, first: FailedTest | None) -> Iterator[str]:
        """The lines on a test; `first`: another one that has its criteria and reasons already."""
        tone = OUTCOMES[test.outcome].tone
        # How likely chance would confirm it is for those who ask further.
        marks = (
            CONFIRMED if mark.startswith(CONFIRMED) and not self._verbose else mark for mark in test.remarks
        )
        remarks = ", ".join(remark for remark in (test.scores, *marks) if remark)
        yield f"{self._painted(_SIGNS[tone], _COLORS[tone])} {self._test_name(test)}" + (
            f" ({sanitize.log_line(remarks)})" if remarks else ""
        )
        if first:
            yield f"    same criteria and reasons as {self._test_name(first)}"
            return
        if early_end := test.early_end:
            yield f"    {sanitize.log_line(early_end, _TEXT)}"
        few = len(test.criteria) <= _FEW or self._verbose
        criteria = test.criteria if few else test.criteria[:1]
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
        name = f"{test.suite} › {test.name}" if self._story.several_suites else test.name
        return _name(name)

    def trial_errors(self) -> str:
        """The trials that broke off, and verdicts that could not be reached, each cause once."""
        lines = []
        for errors in self._story.errors:
            why = sanitize.log_line(errors.reason, _TEXT)
            lines.append(f"{self._painted('!', _YELLOW)} {errors.what}: {why}")
            if errors.by_suite:
                lines.append(f"    {sanitize.log_line(errors.by_suite, _TEXT)}")
            lines.append(f"    {numbers.listed([*map(_name, errors.tests)], _NAMED, 'test')}")
        return "\n".join(["Errors and undecided", *lines]) if lines else ""

    def what_to_do(self) -> str:
        """The next step where there is no verdict, or a failed one."""
        return sanitize.log_line(self._story.next_step.text)

    def remarks(self) -> str:
        """Trials, time and cost."""
        run = self._story.run
        lines = [run.effort, *run.unknown_costs]
        if cached := self._story.judging.cached_answers:
            lines.append(sentence(capitalized(cached)))
        if self._verbose and (odds := self._story.certainty.odds):
            lines.append(odds)
        return "\n".join(sanitize.log_line(line, _TEXT) for line in lines)

    def reliability(self) -> str:
        """The facts about judge and simulated user."""
        remarks = [f"{remark.topic}: {remark.text}" for remark in self._story.judging.remarks]
        return "\n".join(["Judge and simulated user", self.lines(remarks)]) if remarks else ""

    def studies(self) -> Iterator[str]:
        """The tables of studies that are worth a place here, each with its first rows."""
        judging = self._story.judging
        remarks = {remark.topic: remark.text for remark in judging.remarks}
        for content in judging.tables:
            if content.in_console:
                lines = [self.titled(replace(content, rows=content.rows[:_SHOWN]))]
                more = len(content.rows) - _SHOWN
                if more > 0:
                    lines.append(f"  and {more:,} more")
                if content.title in remarks:
                    lines.append(self.lines([remarks[content.title]]))
                yield "\n".join(lines)

    def comparison(self) -> str:
        """The comparison of the suites with the baseline, and what was not compared."""
        change, certainty = self._story.change, self._story.certainty
        lines = [
            f"{difference.title} ({len(difference.tests)}): "
            f"{numbers.listed([*map(_name, difference.tests)], _NAMED)}"
            for difference in change.differences
        ]
        lines += [*change.reasons, *certainty.decision]
        lines += [line for line in (change.pace, certainty.confirmed, certainty.small_print) if line]
        # If nothing was compared, the verdict says why.
        if not change.compared and not lines:
            return ""
        compared = sum(row.compared is not None for row in self._story.suites)
        table = [self._table(self._story.tables.suites)] if compared > 1 else []
        heading = [sanitize.log_line(change.baseline, _TEXT)] if change.baseline else []
        return "\n".join([*heading, *table, *([self.lines(lines)] if lines else [])])

    def checks(self) -> str:
        """A line for each check of the gate."""
        return self.titled(self._story.tables.checks)

    def numbers(self) -> Iterator[str]:
        """Remarks on suites, cost by role and model, and latency."""
        tables = self._story.tables
        exact = None if self._story.change.compared else tables.suites
        for shown in (exact, tables.counts, tables.usage, tables.latency):
            yield self.titled(shown)

    def titled(self, content: Table | None) -> str:
        """A table below its title; nothing without a table."""
        if content is None:
            return ""
        return f"{content.title}\n{self._table(content)}"

    def _painted(self, text: str, paint: str) -> str:
        return f"{paint}{text}{_RESET}" if self._color else text


def _name(name: str) -> str:
    return sanitize.log_line(name, _NAME)
