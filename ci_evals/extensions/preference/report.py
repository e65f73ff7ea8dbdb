"""The facts of a study of which of two runs is better."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.extensions.preference.result import Preference, Preferred
from ci_evals.reports.story.judging import StudyReport, other_judge
from ci_evals.reports.story.table import BLANK, Column, Table, table_of

RANK = 30
"""Its place among the reports of all extensions."""

_NAME = 80
"""Characters of a run's name."""


def report(results: Results) -> StudyReport | None:
    """The share of pairs in which this run is preferred, by test."""
    found = results.study(Preference)
    if found is None:
        return None
    return StudyReport(
        topic="Preference",
        remark=_remark(found) + other_judge(results, found.judge, own_prompt=True),
        tables=(_table(found),),
        warnings=tuple(_warnings(found)),
    )


def _warnings(found: Preference) -> Iterator[str]:
    if found.place_sways:
        yield (
            "The judge that compared the two runs is biased by position: it preferred the conversation shown "
            f"first in {numbers.estimated_share(found.first)} of its answers, not in 50 %. Answers that "
            "follow the position count as ties."
        )


def _remark(found: Preference) -> str:
    commit = f"commit {found.other_commit[:7]}" if found.other_commit else f"run {found.other[:_NAME]}"
    ties = numbers.count(found.ties, "tie")
    wins, losses = numbers.count(found.wins, "win"), numbers.count(found.losses, "loss", "losses")
    pairs = numbers.count(found.pairs, "pair")
    told = f"Against {commit}, of {pairs} of conversations: {wins}, {losses}, {ties}"
    if found.undecided:
        told += f", {found.undecided:,} undecided"
    if found.share:
        told += f"; this run is preferred in {numbers.estimated_share(found.share)}, ties counted half"
    if found.p is not None:
        told += f", {numbers.p_value(found.p)} over the tests"
    told += "."
    if found.first:
        first = numbers.estimated_share(found.first)
        told += f" The conversation shown first was preferred in {first}; without bias it would be 50 %."
    if found.swapped:
        told += f" In {numbers.count(found.swapped, 'pair')} the answer followed the position."
    return told


_COLUMNS: tuple[Column[Preferred], ...] = (
    Column("test", words=True, show=lambda one: one.test),
    Column("wins", show=lambda one: f"{one.wins:,}"),
    Column("losses", show=lambda one: f"{one.losses:,}"),
    Column("ties", show=lambda one: f"{one.ties:,}"),
    Column(
        "a reason",
        words=True,
        says_nothing=BLANK,
        show=lambda one: one.reasons[0] if one.reasons else "",
    ),
)


def _table(found: Preference) -> Table:
    title = "Which of the two runs is preferred, by test"
    return table_of(title, _COLUMNS, found.tests, long=True)
