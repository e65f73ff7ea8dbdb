"""Results for a terminal or a log: the table, what failed, and the verdict last, where the eye is."""

from collections.abc import Sequence

from tabulate import tabulate

from ci_evals.domain.results import Results, TestResult
from ci_evals.reports import highlights, numbers, sanitize
from ci_evals.reports.highlights import OUTCOMES, Tone

_NAME_LIMIT = 60
_REASON_LIMIT = 300
_GREEN, _RED, _YELLOW, _BOLD, _RESET = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
_COLORS = {Tone.GOOD: _GREEN, Tone.BAD: _RED, Tone.OPEN: _YELLOW}
_TEST_HEADERS = ("test", "result", "score", "pass rate", "trials scored", "time")
_CHECK_HEADERS = ("check", "required", "seen", "decision", "note")


def render(results: Results, *, color: bool = False, verbose: bool = False) -> str:
    """The whole text, ending in a newline. `verbose` names every failed criterion with its reason."""
    blocks = [
        *_suites(results, color=color),
        _failed(results, color=color, verbose=verbose),
        _troubles(results, color=color),
        _gate(results, color=color),
        _verdict(results, color=color),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _suites(results: Results, *, color: bool) -> list[str]:
    blocks = []
    for suite in results.suites:
        rows = [
            [
                sanitize.log_line(test.name, _NAME_LIMIT),
                _painted(highlights.result(test), _COLORS[OUTCOMES[test.outcome].tone], color=color),
                numbers.score(test.score),
                numbers.percent(test.pass_rate),
                _trials(test),
                numbers.duration(sum(trial.duration_seconds for trial in test.trials)),
            ]
            for test in suite.tests
        ]
        interval = f" (95 % {numbers.interval(suite.interval)})" if suite.interval else ""
        title = f"{sanitize.log_line(suite.name, 2 * _NAME_LIMIT)}: {numbers.score(suite.score)}{interval}"
        blocks.append(_painted(title, _BOLD, color=color) + "\n" + _table(_TEST_HEADERS, rows))
    return blocks


def _trials(test: TestResult) -> str:
    planned = len(test.trials) + test.not_run
    return f"{sum(trial.scored for trial in test.trials)} of {planned}"


def _failed(results: Results, *, color: bool, verbose: bool) -> str:
    lines = []
    for suite, test in highlights.tests_of(results, "failed"):
        failed = highlights.failed_criteria(test)
        where = f"{sanitize.log_line(suite.name, _NAME_LIMIT)} › " if len(results.suites) > 1 else ""
        lines.append(
            f"{_painted('✗', _RED, color=color)} {where}{sanitize.log_line(test.name, 2 * _NAME_LIMIT)}"
        )
        for criterion in failed if verbose else failed[:1]:
            times = f" (in {criterion.times} of {criterion.trials} trials)" if criterion.trials > 1 else ""
            lines.append(f"    {sanitize.log_line(criterion.finding.criterion, _REASON_LIMIT)}{times}")
            if verbose:
                reason = sanitize.one_line(criterion.finding.reason) or "no reason was given"
                lines.append(f"      {sanitize.log(reason)}")
            else:
                lines.append(f"      {sanitize.log_line(criterion.finding.reason, _REASON_LIMIT)}".rstrip())
        if len(failed) > 1 and not verbose:
            more = numbers.count(len(failed) - 1, "more criterion", "more criteria")
            lines.append(f"    and {more} failed (--verbose names them)")
    return "\n".join(["Failed", *lines]) if lines else ""


def _troubles(results: Results, *, color: bool) -> str:
    lines = []
    for trouble in highlights.troubles(results.suites):
        why = sanitize.log_line(trouble.why, _REASON_LIMIT)
        lines.append(f"{_painted('!', _YELLOW, color=color)} {trouble.what}: {why}")
        named = "; ".join(sanitize.log_line(name, _NAME_LIMIT) for name in trouble.tests[:3])
        more = len(trouble.tests) - 3
        lines.append(f"    {named}" + (f"; and {numbers.count(more, 'more test')}" if more > 0 else ""))
    return "\n".join(["Errors and undecided", *lines]) if lines else ""


def _gate(results: Results, *, color: bool) -> str:
    rows = [
        [
            sanitize.log_line(check.name, _NAME_LIMIT),
            highlights.required(check),
            highlights.seen(check),
            _painted("holds", _GREEN, color=color)
            if check.holds
            else _painted("does not hold", _RED, color=color),
            sanitize.log_line(check.note or "", 2 * _NAME_LIMIT),
        ]
        for check in results.gate.checks
    ]
    # The last column is there only where a check has a note.
    width = len(_CHECK_HEADERS) - (not any(row[-1] for row in rows))
    return "Gate\n" + _table(_CHECK_HEADERS[:width], [row[:width] for row in rows]) if rows else ""


def _verdict(results: Results, *, color: bool) -> str:
    look = highlights.standing(results).value
    counts = results.counts
    facts = [
        f"{counts.passed} of {numbers.count(counts.tests, 'test')} passed",
        *([f"{counts.failed} failed"] if counts.failed else []),
        *([f"{counts.undecided} undecided"] if counts.undecided else []),
        numbers.count(counts.trials, "trial"),
        numbers.duration(results.run.duration_seconds),
        *([numbers.money(results.usage.cost_usd)] if results.usage.cost_usd is not None else []),
    ]
    score = numbers.score(results.score)
    interval = f" (95 % {numbers.interval(results.interval)})" if results.interval else ""
    said = look.words[0].upper() + look.words[1:]
    lines = [f"  {sanitize.log_line(note, 2 * _REASON_LIMIT)}" for note in highlights.notes(results)]
    head = _painted(f"{said}: score {score}{interval}", _COLORS[look.tone] + _BOLD, color=color)
    return "\n".join([head, f"  {', '.join(facts)}", *lines])


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True)
    return "\n".join(f"  {line}".rstrip() for line in table.split("\n"))


def _painted(text: str, paint: str, *, color: bool) -> str:
    return f"{paint}{text}{_RESET}" if color else text
