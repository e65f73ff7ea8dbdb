"""The facts of planted faults: tables and sentences."""

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.extensions.mutate.faults import KINDS
from ci_evals.extensions.mutate.result import FaultResult, IdleCriterion, Mutations, TestResult
from ci_evals.reports.story.judging import StudyReport
from ci_evals.reports.story.outcome_labels import Tone
from ci_evals.reports.story.table import NO_COUNT, Column, Room, Table, table_of

RANK = 60
"""Its place among the reports of all extensions."""

GATE_FAILS = "The gate fails this run even without faults, so it is unknown how many it takes."


def report(results: Results) -> StudyReport | None:
    """The report on planted faults, if there were any."""
    found = results.study(Mutations)
    if found is None or not found.planted:
        return None
    remark = f"{headline(found)} {null_agents(found)}"
    return StudyReport(topic="Planted faults", remark=remark, tables=(fault_table(found), test_table(found)))


def headline(found: Mutations) -> str:
    """Return how many faults were noticed, in a sentence."""
    share = numbers.score(100 * found.noticed / found.planted)
    text = f"This gate notices {found.noticed:,} of {found.planted:,} planted faults ({share} %)."
    return text if found.gate.passed else f"{text} {GATE_FAILS}"


def judge_questions(found: Mutations) -> str:
    """Return what a judge was asked, in a sentence; empty if nobody was."""
    if found.judge is None:
        return ""
    asked = numbers.count(found.judge.asked, "question")
    text = f"The judge was asked {asked} about faults that no strict check notices."
    if found.judge.not_asked:
        text += f" {found.judge.not_asked:,} more did not fit into --max-cost: not asked."
    return text


def null_agents(found: Mutations) -> str:
    """Return the scores of the agents that do nothing, in a sentence."""
    refuses, claims = found.null_agents.refuses, found.null_agents.claims
    if refuses is None or claims is None:
        return "No strict check says what an agent that does nothing would score."
    return (
        f"An agent that refuses everything would score {numbers.score(refuses)} of 100, and one that claims "
        f"that all is done {numbers.score(claims)}, by strict checks alone."
    )


def fault_table(found: Mutations) -> Table:
    """Return a row for each kind of fault that was planted."""

    def needed(fault: FaultResult) -> str:
        if not found.gate.passed:
            return numbers.NONE
        if fault.needed_share is None:
            return "never"
        return f"{numbers.plain(100 * fault.needed_share)} %"

    columns: tuple[Column[FaultResult], ...] = (
        Column("fault", words=True, show=lambda fault: fault.kind),
        Column("an agent that", words=True, room=Room.SOME, show=lambda fault: KINDS[fault.kind].title),
        Column("planted", show=lambda fault: f"{fault.planted:,}"),
        Column("noticed", show=lambda fault: f"{fault.noticed:,}"),
        Column("undecided", says_nothing=NO_COUNT, show=lambda fault: f"{fault.undecided:,}"),
        Column("not asked", says_nothing=NO_COUNT, show=lambda fault: f"{fault.not_asked:,}"),
        Column("gate fails from", unbroken=True, show=needed),
    )
    planted = [fault for fault in found.faults if fault.planted and fault.kind in KINDS]
    return table_of(
        "Planted faults", columns, planted, tone=lambda fault: None if fault.noticed else Tone.BAD
    )


def test_table(found: Mutations) -> Table:
    """Return a row for each test in which faults stay unnoticed."""
    columns: tuple[Column[TestResult], ...] = (
        Column("test", words=True, show=lambda test: test.name),
        Column("suite", words=True, show=lambda test: test.suite),
        Column("unnoticed faults", words=True, show=lambda test: ", ".join(test.unnoticed)),
    )
    return table_of("Tests in which faults stay unnoticed", columns, found.tests, long=True)


def criterion_table(found: Mutations) -> Table:
    """Return a row for each strict criterion that noticed nothing."""
    columns: tuple[Column[IdleCriterion], ...] = (
        Column("criterion", words=True, show=lambda one: one.criterion),
        Column("test", words=True, show=lambda one: one.test),
        Column("suite", words=True, show=lambda one: one.suite),
    )
    return table_of("Strict criteria that noticed no fault", columns, found.criteria, long=True)
