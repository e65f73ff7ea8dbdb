"""The score of the tool whose results were read, beside ours."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import ScoreSummary

_SHOWN = 10
"""Suites whose scores are shown."""
_SAME = 0.05
"""Points: what differs by less reads the same."""


def sentences(results: Results) -> Iterator[str]:
    """Yield the official score of the run or of each suite, and why ours differs, if it does."""
    if results.official:
        yield _sentence("", results)
        return
    own = [suite for suite in results.suites if suite.official]
    for suite in own[:_SHOWN]:
        yield _sentence(f" of {suite.name}", suite)
    if len(own) > _SHOWN:
        yield f"{len(own) - _SHOWN} more suites have official scores, in the JSON."


def _sentence(of: str, scored: ScoreSummary) -> str:
    official = scored.official
    if official is None:
        return ""
    if official.value is None:
        return f"No official score{of}: the tool computes no {official.name} of these results."
    value = f"{numbers.score(100 * official.value)} %"
    counted = f" of {official.of:,}" if official.of else ""  # some tools do not state it
    power = "^" if official.name.startswith("pass^") else "@"  # all of k trials, or one of them
    also = ", ".join(
        f"pass{power}{k} {numbers.score(100 * share)} %" for k, share in (official.pass_at_k or {}).items()
    )
    text = f"Official score{of}: {official.name} {value}{counted}" + (f" ({also})." if also else ".")
    differs = scored.score is None or abs(100 * official.value - scored.score) >= _SAME
    if not differs:
        return text
    return f"{text} Ours is {numbers.score(scored.score)}." + (f" {official.rule}" if official.rule else "")
