"""The facts of a study of where the noise comes from."""

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.extensions.noise.result import SOURCES, Noise, Remedy
from ci_evals.reports.story.judging import StudyReport, other_judge
from ci_evals.reports.story.phrases import capitalized, sentence
from ci_evals.reports.story.table import BLANK, Column, Table, table_of

RANK = 20
"""Its place among the reports of all extensions."""

BEST = {
    "loops": "more trials of each test (--loops)",
    "votes": "more votes of the judge (--judge-votes)",
    "tests": "more tests",
}


def report(results: Results) -> StudyReport | None:
    """The share of each source in the noise, and what to spend on."""
    found = results.study(Noise)
    if found is None:
        return None
    return StudyReport(
        topic="Noise",
        remark=_remark(found) + other_judge(results, found.judge),
        tables=(_shares(found), _gains(found)),
    )


def _remark(found: Noise) -> str:
    shares = ", ".join(
        f"{SOURCES[part.source]} {numbers.estimated_share(part.share)}" for part in found.parts
    )
    told = (
        f"Of the noise between trials of one test: {shares}; from {numbers.count(found.plays, 'play')} and "
        f"{numbers.count(found.judgments, 'judgment')} on {numbers.count(found.tests, 'test')}"
    )
    if found.tests_left_out or found.left_out:
        told += (
            f", without {numbers.count(found.left_out, 'conversation')} that came to no score and "
            f"{numbers.count(found.tests_left_out, 'test')} with too few"
        )
    told += f", for {numbers.money(found.cost_usd)}." if found.cost_usd else "."
    if found.standard_error is not None:
        error = numbers.spread(found.standard_error)
        told += f" This noise gives the run's score a standard error of {error} points."
    if found.best:
        told += f" By this estimate the next dollar belongs in {BEST[found.best]}."
    return f"{told} {capitalized(sentence(found.why))}"


_Share = tuple[str, str, str]
"""The name of a source, its share, and its variance."""


def _shares(found: Noise) -> Table:
    columns: tuple[Column[_Share], ...] = (
        Column("source", words=True, show=lambda source: source[0]),
        Column("share", says_nothing=BLANK, show=lambda source: source[1]),
        Column("variance, square points", show=lambda source: source[2]),
    )
    sources = [
        (
            SOURCES[part.source],
            numbers.estimated_share(part.share),
            numbers.estimate(part.variance, numbers.spread),
        )
        for part in found.parts
    ]
    sources.append(("between the tests", "", numbers.estimate(found.between_tests, numbers.spread)))
    return table_of("Where the noise of a trial's score comes from", columns, sources)


def _gains(found: Noise) -> Table:
    columns: tuple[Column[Remedy], ...] = (
        Column(f"a {found.gains_per} in", words=True, show=lambda remedy: f"more {remedy}"),
        Column("for these tests", show=lambda remedy: numbers.gain(found.gains[remedy])),
        Column("for any tests", show=lambda remedy: numbers.gain(found.gains_in_general.get(remedy))),
    )
    return table_of(
        f"Square points that a {found.gains_per} takes off the variance of the run's score",
        columns,
        found.gains,
    )
