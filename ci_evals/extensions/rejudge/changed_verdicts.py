"""The verdicts that changed under another judge, and their agreement, for a terminal or a log."""

from collections.abc import Sequence
from fractions import Fraction

from ci_evals.domain import numbers
from ci_evals.domain.verdict import Outcome
from ci_evals.reports import sanitize
from ci_evals.reports.columns import table
from ci_evals.scoring.agreement.judges import Agreement, Twice, agreement, changes, in_words

_NAME_LIMIT = 50
_REASON_LIMIT = 120
_SHOWN = 20
"""Changed verdicts that are named unless all are asked for."""
_ENOUGH_FOR_A_WORD = 30
"""Verdicts from which on a kappa has its usual word."""
_HEADERS = ("test", "criterion", "trial", "before", "after", "the new reason")
_WORST_FIRST = {Outcome.FAILED: 0, Outcome.UNDECIDED: 1, Outcome.PASSED: 2}


def render(
    pairs: Sequence[Twice],
    judges: str,
    *,
    not_judged: int = 0,
    verbose: bool = False,
    width: int | None = None,
) -> str:
    """The whole text, ending in a newline.

    Args:
        pairs: The verdicts that were given again, in the order of the results.
        judges: Who judged, then and now, as a sentence.
        not_judged: How many verdicts the run ended too early for.
        verbose: Whether to name every changed verdict.
        width: Of the terminal, if there is one.
    """
    lines = [sanitize.log_line(judges, 300), _changed(pairs)]
    if not_judged:
        lines.append(f"{numbers.count(not_judged, 'verdict')} could not be given again: the run ended before")
    if pairs:
        lines.append(_agreed(agreement(pairs)))
    text = "\n".join(["Judged again", *(f"  {line}" for line in lines)]) + "\n"
    changed = _table([pair for pair in pairs if pair.changed], width, verbose=verbose)
    return f"{text}\n{changed}\n" if changed else text


def judges(before: Sequence[str | None], after: Sequence[str | None]) -> str:
    """The judges of all suites, then and now; None if nobody judged."""
    now, then = (", ".join(sorted({name for name in names if name})) for names in (after, before))
    if now == then:
        return f"by the same judge: {now}"
    return f"by {now}; before by {then}" if then else f"by {now}; before by nobody"


def _changed(pairs: Sequence[Twice]) -> str:
    found = changes(pairs)
    of = f"of {numbers.count(len(pairs), 'judged verdict')} changed"
    if not found:
        return f"none {of}"
    told = [f"{count:,} from {one} to {other}" for (one, other), count in found.most_common()]
    return f"{found.total():,} {of}: {', '.join(told)}"


def _agreed(found: Agreement) -> str:
    if found.share is None:
        return "agreement: unknown, since no verdict was decided both times"
    share = f"{numbers.score(float(100 * found.share))} %"
    told = f"agreement: {share} of the {numbers.count(found.decided, 'verdict')} decided both times"
    if found.kappa is None:
        return f"{told}; all alike, so Cohen's kappa has no value"
    told = f"{told}; Cohen's kappa {_two_decimals(found.kappa)} (0 is chance, 1 is full agreement)"
    # Of few verdicts kappa is too uncertain for a word.
    return f"{told}: {in_words(found.kappa)}" if found.decided >= _ENOUGH_FOR_A_WORD else told


def _two_decimals(kappa: Fraction) -> str:
    """Cut and never rounded up, as every number that may look better than it is."""
    return f"{(kappa * 100).__floor__() / 100:.2f}"


def _table(changed: Sequence[Twice], width: int | None, *, verbose: bool) -> str:
    """The changed verdicts: those that fail now first, in the order of the results."""
    several = len({pair.suite for pair in changed}) > 1
    ordered = sorted(changed, key=lambda pair: _WORST_FIRST[pair.after.outcome])
    shown = ordered if verbose else ordered[:_SHOWN]
    rows = [
        [
            sanitize.log_line(f"{pair.suite} › {pair.test}" if several else pair.test, _NAME_LIMIT),
            sanitize.log_line(pair.after.criterion, _NAME_LIMIT),
            str(pair.trial),
            str(pair.before.outcome),
            str(pair.after.outcome),
            sanitize.log_line(pair.after.reason, _REASON_LIMIT),
        ]
        for pair in shown
    ]
    if not rows:
        return ""
    lines = [table(_HEADERS, rows, width, names=(0, 1, 5), right=(2,))]
    if more := len(changed) - len(shown):
        lines.append(f"  and {more:,} more (set verbose to see all)")
    return "\n".join(lines)
