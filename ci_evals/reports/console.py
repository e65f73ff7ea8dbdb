"""Results for a terminal or a log: the table, what failed, and the verdict last, where the eye is."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from ci_evals.domain.results.comparison import Comparison, TestChange
from ci_evals.domain.results.gate import CheckKind, GateCheck, Odds
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import (
    change,
    failed_tests,
    gate,
    highlights,
    judge,
    reliability,
    rows,
    trial_errors,
    verdicts,
)
from ci_evals.reports.facts.labels import OUTCOMES, RunOutcome, Tone

_NAME_LIMIT = 60
_REASON_LIMIT = 300
_GREEN, _RED, _YELLOW, _BOLD, _RESET = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
_COLORS = {Tone.GOOD: _GREEN, Tone.BAD: _RED, Tone.OPEN: _YELLOW}
_DECISIONS = {True: _GREEN, False: _RED, None: _YELLOW}
_CHECK_HEADERS = ("check", "required", "seen", "decision", "note")
_UNSEEN = {
    CheckKind.MAX_ERRORS: "errors",
    CheckKind.MAX_COST: "cost",
    CheckKind.MAX_P95_LATENCY: "latency",
}
"""Checks of which noise among the trials tells nothing."""
_NAMED = 3
"""Tests of a kind that a line names."""
_SHOWN = 20
"""Tests of a kind that are shown with their evidence."""


def render(results: Results, *, color: bool = False, verbose: bool = False) -> str:
    """The whole text, ending in a newline. `verbose` names every failed criterion with its reason."""
    if highlights.run_outcome(results) is RunOutcome.SKIPPED:
        return _text([_skipped(results, color=color)])
    blocks = [
        *_suites(results, color=color),
        _failed(results, color=color, verbose=verbose),
        _trial_errors(results, color=color),
        _reliability(results),
        _comparison(results, color=color),
        _gate(results, color=color),
        _verdict(results, color=color),
    ]
    return _text(blocks)


def comparison(results: Results, *, color: bool = False) -> str:
    """The comparison with the baseline as a text of its own, with the gate's checks of it."""
    lines = [
        *_origin(results),
        *results.gate.reasons,
        *gate.warnings(results),
        change.sentence(results),
    ]
    shown = [sanitize.log_line(line, 2 * _REASON_LIMIT) for line in lines]
    if results.gate.checks:
        shown = [_headline(results, color=color), *(f"  {line}" for line in shown)]
    blocks = [
        *(_changed_with_evidence(results, results.comparison, color=color) if results.comparison else []),
        _comparison(results, color=color, named=False),
        _gate(results, color=color),
        "\n".join(shown),
    ]
    return _text(blocks)


def odds(odds: Odds, checks: Sequence[GateCheck]) -> str:
    """The odds that another run fails each of these checks and the gate, and what they mean."""
    found: dict[object, deque[float]] = defaultdict(deque)
    for one in odds.checks:
        found[one.key].append(one.share)
    cells = [
        [
            sanitize.log_line(check.name, _NAME_LIMIT),
            gate.required(check),
            numbers.odds(found[check.key].popleft()) if found[check.key] else "not looked at",
        ]
        for check in checks
    ]
    cells.append(["the gate", "", numbers.odds(odds.share)])
    trials = numbers.count(odds.loops, "trial")
    floor = numbers.NONE if odds.floor is None else numbers.plain(odds.floor)
    lines = [
        sanitize.log_line(highlights.odds_sentence(odds)),
        f"The highest min-score that fewer than 5 % of such runs would miss: {floor}.",
        f"Runs are drawn from the noise of the recorded ones, with up to {trials} of each test."
        if odds.loops > 1
        else "Each test was played once, so how much one varies by itself is not known: how the tests differ "
        "stands for it, which is more rather than less. Several trials of each test tell better (--loops).",
    ]
    if left := [check for check in checks if check.key not in {one.key for one in odds.checks}]:
        lines.append(f"Not looked at: {', '.join(map(_left_out, left))}.")
    return _text([_table(("check", "required", "would fail"), cells), "\n".join(lines)])


def _left_out(check: GateCheck) -> str:
    """A check that noise is not told for, in words."""
    if gate.is_chance(check):
        return f"regression (up to {numbers.odds(check.required)} more by its own level)"
    return _UNSEEN.get(check.kind) or sanitize.log_line(check.name, _NAME_LIMIT)


def _text(blocks: Iterable[str]) -> str:
    return "\n\n".join(block for block in blocks if block) + "\n"


def _suites(results: Results, *, color: bool) -> list[str]:
    blocks = []
    for suite in results.suites:
        cells = [_test_row(test, color=color) for test in suite.tests]
        interval = f" (95 % {numbers.interval(suite.interval)})" if suite.interval else ""
        name = sanitize.log_line(suite.name, 2 * _NAME_LIMIT)
        # A name that ends in a colon would make a command of the runner with ours.
        score = change.too_little_decided(suite) or f"{numbers.score(suite.score)}{interval}"
        title = sanitize.log(f"{name}: {score}{_repeated(suite)}")
        blocks.append(
            _painted(title, _BOLD, color=color) + "\n" + _table(("test", *rows.TEST_COLUMNS), cells)
        )
    return blocks


def _repeated(suite: SuiteResult) -> str:
    """The chance that one and all trials of a test pass, if tests have several."""
    most = max(suite.pass_hat_k, default=1)
    if most < 2:
        return ""
    one, every = (numbers.percent(suite.pass_hat_k.get(k)) for k in (1, most))
    return f", a trial passes: {one}, all of {most}: {every}"


def _test_row(test: TestResult, *, color: bool) -> list[str]:
    result, *others = rows.of_test(test)
    name = sanitize.log_line(test.name, _NAME_LIMIT)
    return [name, _painted(result, _COLORS[OUTCOMES[test.outcome].tone], color=color), *others]


def _failed(results: Results, *, color: bool, verbose: bool) -> str:
    lines, warnings = [], reliability.CriterionWarnings(results)
    for suite, test in highlights.tests_of(results, "failed"):
        failed = failed_tests.failed_criteria(test)
        warned = warnings.of_test(suite.name, test.name)
        where = f"{sanitize.log_line(suite.name, _NAME_LIMIT)} › " if len(results.suites) > 1 else ""
        lines.append(
            f"{_painted('✗', _RED, color=color)} {where}{sanitize.log_line(test.name, 2 * _NAME_LIMIT)}"
        )
        for criterion in failed if verbose else failed[:1]:
            times = f" (in {criterion.times} of {criterion.trials} trials)" if criterion.trials > 1 else ""
            lines.append(f"    {sanitize.log_line(criterion.finding.criterion, _REASON_LIMIT)}{times}")
            if warning := warned.get(criterion.finding.criterion):
                lines.append(f"      {_painted('!', _YELLOW, color=color)} {sanitize.log_line(warning)}")
            if verbose:
                reason = sanitize.one_line(criterion.finding.reason) or verdicts.NO_REASON
                lines.append(f"      {sanitize.log(reason)}")
            else:
                lines.append(f"      {sanitize.log_line(criterion.finding.reason, _REASON_LIMIT)}".rstrip())
        if len(failed) > 1 and not verbose:
            more = numbers.count(len(failed) - 1, "more criterion", "more criteria")
            lines.append(f"    and {more} failed (--verbose names them)")
    return "\n".join(["Failed", *lines]) if lines else ""


def _trial_errors(results: Results, *, color: bool) -> str:
    lines = []
    for errors in trial_errors.by_cause(results.suites):
        why = sanitize.log_line(errors.reason, _REASON_LIMIT)
        lines.append(f"{_painted('!', _YELLOW, color=color)} {errors.what}: {why}")
        names = [sanitize.log_line(name, _NAME_LIMIT) for name in errors.tests]
        lines.append(f"    {numbers.listed(names, _NAMED, 'test')}")
    return "\n".join(["Errors and undecided", *lines]) if lines else ""


def _reliability(results: Results) -> str:
    """The facts about judge and simulated user."""
    remarks = [
        sanitize.log_line(f"{remark.topic}: {remark.text}", 3 * _REASON_LIMIT)
        for remark in reliability.remarks(results)
    ]
    return "\n".join(["Judge and simulated user", *(f"  {line}" for line in remarks)]) if remarks else ""


def _comparison(results: Results, *, color: bool, named: bool = True) -> str:
    """The comparison of the suites and, if `named`, of the tests with the baseline."""
    comparison = results.comparison
    if comparison is None:
        return ""
    baseline = comparison.baseline
    commit = sanitize.one_line(baseline.commit or "")[: change.COMMIT]
    which = f"commit {commit}" if commit else f"run {sanitize.one_line(baseline.run_id, _NAME_LIMIT)}"
    title = (
        f"Against the baseline: {which} of {change.moment(baseline.at)}, {change.age(results, comparison)}"
    )
    lines = _changed_in_brief(results, comparison, color=color) if named else []
    for difference in change.differences(comparison):
        names = [sanitize.log_line(name, _NAME_LIMIT) for name in difference.tests]
        lines.append(f"{difference.title} ({len(names)}): {numbers.listed(names, _NAMED)}")
    lines += [sanitize.log_line(reason, _REASON_LIMIT) for reason in change.shown_reasons(comparison)]
    lines += [line for line in (change.pace(comparison), change.trials_to_prove(comparison, results)) if line]
    body = [*_suite_changes(results), *(f"  {line}" for line in lines)]
    # Where nothing was compared, the verdict says why.
    return "\n".join([sanitize.log_line(title), *body]) if body or comparison.delta is not None else ""


@dataclass(frozen=True)
class _ChangedTests:
    """Tests that came out differently than in the baseline."""

    title: str
    sign: str
    tone: Tone
    tests: Sequence[TestChange]
    note: str | None = None


def _changed_tests(results: Results, comparison: Comparison) -> tuple[_ChangedTests, ...]:
    failing, suspects = change.failing(comparison), change.suspects(comparison)
    # In some of those that passed in the baseline nothing may have failed.
    title = "passed in the baseline, not now" if change.newly_failing_outcomes(results) else "newly failing"
    lists = (
        _ChangedTests(title, "✗", Tone.BAD, failing, change.on_failing(failing)),
        _ChangedTests("suspects", "!", Tone.OPEN, suspects, change.on_suspects(suspects)),
        _ChangedTests("fixed", "✓", Tone.GOOD, comparison.fixed),
    )
    return tuple(one for one in lists if one.tests)


def _changed_in_brief(results: Results, comparison: Comparison, *, color: bool) -> list[str]:
    """The tests that came out differently, a line for each kind."""
    remarks = _remarks(results, comparison)
    lines = []
    for one in _changed_tests(results, comparison):
        head = _painted(f"{one.title} ({len(one.tests)})", _COLORS[one.tone], color=color)
        names = [
            f"{_test_name(test, comparison)} {change.scores(test)}{_remark(test, remarks)}"
            for test in one.tests
        ]
        lines.append(f"{head}: {numbers.listed(names, _NAMED)}")
        lines += [one.note] if one.note else []
    return lines


def _changed_with_evidence(results: Results, comparison: Comparison, *, color: bool) -> list[str]:
    """The same with the verdict that shows each to fail, now or in the baseline."""
    remarks = _remarks(results, comparison)
    blocks = []
    for one in _changed_tests(results, comparison):
        lines = [one.title.capitalize(), *([f"  {one.note}"] if one.note else [])]
        for test in one.tests[:_SHOWN]:
            name = sanitize.log_line(f"{test.suite} › {test.name}", 2 * _NAME_LIMIT)
            sign = _painted(one.sign, _COLORS[one.tone], color=color)
            lines.append(f"{sign} " + sanitize.log(f"{name}: {change.scores(test)}{_remark(test, remarks)}"))
            if test.evidence:
                lines.append(f"    {sanitize.log_line(test.evidence.criterion, _REASON_LIMIT)}")
                lines.append(f"      {sanitize.log_line(test.evidence.reason, _REASON_LIMIT)}".rstrip())
        if len(one.tests) > _SHOWN:
            lines.append(f"and {numbers.count(len(one.tests) - _SHOWN, 'more test')}")
        blocks.append("\n".join(lines))
    return blocks


def _remarks(results: Results, comparison: Comparison) -> dict[tuple[str, str], str]:
    """Remarks on newly failing tests: that nothing failed, or why a verdict is less reliable."""
    warnings, remarks = reliability.CriterionWarnings(results), change.newly_failing_outcomes(results)
    for test in comparison.regressed:
        key = (test.suite, test.name)
        if test.evidence and (warning := warnings.of(*key, test.evidence.criterion)):
            remarks[key] = f"{remarks[key]}, {warning}" if key in remarks else warning
    return remarks


def _remark(test: TestChange, remarks: Mapping[tuple[str, str], str]) -> str:
    found = [remarks.get((test.suite, test.name)), "confirmed" if test.confirmed else None]
    text = ", ".join(remark for remark in found if remark)
    return f" ({text})" if text else ""


def _test_name(test: TestChange, comparison: Comparison) -> str:
    many = len(comparison.suites) > 1
    return sanitize.log_line(f"{test.suite} › {test.name}" if many else test.name, _NAME_LIMIT)


def _suite_changes(results: Results) -> list[str]:
    """A table of the suites, where there are several."""
    cells = [
        [
            sanitize.log_line(found.name, _NAME_LIMIT),
            numbers.score(found.head),
            numbers.score(found.base),
            numbers.signed(found.delta),
            numbers.change_interval(found.interval),
            numbers.chance(found.p) if change.shows_p(found) else "",
        ]
        for found in change.of_suites(results)
        if found and found.delta is not None
    ]
    headers = ("suite", change.score_column(results), "baseline", "change", "95 %", "p")
    return [_table(headers, cells)] if len(cells) > 1 else []


def _gate(results: Results, *, color: bool) -> str:
    cells = []
    for check in gate.in_order(results):
        required, seen, note = rows.of_check(check)
        decision = _painted(gate.decision(check), _DECISIONS[check.holds], color=color)
        name = sanitize.log_line(check.name, _NAME_LIMIT)
        cells.append([name, required, seen, decision, sanitize.log_line(note, 2 * _NAME_LIMIT)])
    # The last column is there only where a check has a note.
    width = len(_CHECK_HEADERS) - (not any(row[-1] for row in cells))
    return "Gate\n" + _table(_CHECK_HEADERS[:width], [row[:width] for row in cells]) if cells else ""


def _verdict(results: Results, *, color: bool) -> str:
    score = f": score {numbers.score(results.score)}"
    interval = f" (95 % {numbers.interval(results.interval)})" if results.interval else ""
    if too_little := change.too_little_decided(results):
        score, interval = f": {too_little}", ""
    sentence = [change.sentence(results)] if results.comparison else []
    if from_cache := judge.cached(results):
        sentence = [f"{sentence[0]} {from_cache}."] if sentence else []
        interval += f"; {from_cache}"
    lines = [
        *_origin(results),
        *results.gate.reasons,
        *gate.warnings(results),
        *sentence,
        ", ".join(highlights.counts(results)),
        *_costs_and_latency(results),
        *reliability.warnings(results),
        *highlights.notes(results),
    ]
    head = _headline(results, "" if sentence else score + interval, color=color)
    return "\n".join([head, *(f"  {sanitize.log_line(line, 2 * _REASON_LIMIT)}" for line in lines)])


def _skipped(results: Results, *, color: bool) -> str:
    """All that there is to say where nothing was played: why."""
    why = highlights.why_skipped(results)
    played = f"{numbers.count(results.counts.tests, 'test')}, none of them played"
    lines = [*_origin(results), *([why] if why else []), played, *highlights.notes(results)]
    shown = [f"  {sanitize.log_line(line, 2 * _REASON_LIMIT)}" for line in lines]
    return "\n".join([_headline(results, color=color), *shown])


def _origin(results: Results) -> list[str]:
    """The source of the conversations, if they were not held in this run."""
    origin = highlights.origin(results.run)
    return [origin] if origin else []


def _headline(results: Results, more: str = "", *, color: bool) -> str:
    """The verdict in one line."""
    label = highlights.run_outcome(results).value
    words = sanitize.log_line(highlights.verdict(results), 2 * _NAME_LIMIT)
    return _painted(words[0].upper() + words[1:] + more, _COLORS[label.tone] + _BOLD, color=color)


def _costs_and_latency(results: Results) -> list[str]:
    """Cost by role and model, and the agent's latency, where they are known."""
    usage, latency = results.usage, results.latency
    costs = [
        f"{role.role} {role.model or ''}".rstrip() + f" {numbers.money(role.cost_usd)}"
        for role in usage.by_role
        if role.cost_usd is not None
    ]
    if costs and usage.prices_as_of:
        costs.append(f"prices of {usage.prices_as_of.isoformat()}")
    costs += [
        f"cost of {role.model or role.role} unknown ({why})"
        for role in usage.by_role
        if (why := numbers.uncounted(role))
    ]
    if usage.unpriced:
        costs.append(f"no price for {', '.join(usage.unpriced)}")
    lines = [f"cost: {', '.join(costs)}"] if costs else []
    if latency.median is not None:
        slow = numbers.latency(latency.p95)
        lines.append(f"replies: median {numbers.latency(latency.median)}, 95 % within {slow}")
    return lines


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True)
    return "\n".join(f"  {line}".rstrip() for line in table.split("\n"))


def _painted(text: str, paint: str, *, color: bool) -> str:
    return f"{paint}{text}{_RESET}" if color else text
