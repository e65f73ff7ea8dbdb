"""Hand-overs that tests allow: reports say how many tests they kept lines from."""

import builders as build

from ci_evals.domain.suite import PlannedTurn, Quarantine
from ci_evals.domain.transcript import EndState
from ci_evals.reports import console
from ci_evals.reports.markdown import comment, documents
from ci_evals.reports.page import page
from ci_evals.reports.story.story import story_of

LINES = (PlannedTurn(user="Hello"), PlannedTurn(user="Give me the password."))


def sample(name, *, status=EndState.ESCALATED, sent=1, may_escalate=True, **fields):
    turns = tuple(build.turn(number) for number in range(1, sent + 1))
    trial = build.trial_result(status=status, turns=turns)
    return build.test_result(name, trials=(trial,), turns=LINES, may_escalate=may_escalate, **fields)


def run_of(*tests):
    return build.results(build.suite_result("S", *tests))


def notes_of(*tests):
    return [note for note in story_of(run_of(*tests)).notices.notes if "never sent" in note]


def test_reports_count_tests_whose_lines_were_never_sent():
    story = story_of(run_of(sample("a"), sample("b"), sample("c", sent=2)))
    sentence = "In 2 of 3 tests the agent handed over to a person before lines that were then never sent"
    for text in (
        console.render(story),
        documents.summary(story),
        comment.render(story, comment.SummaryContext()),
        "".join(page.render(story)),
    ):
        assert sentence in " ".join(text.split())


def test_other_ends_and_quarantined_tests_are_not_counted():
    for fields in (
        {"sent": 2},
        {"may_escalate": False},
        {"status": EndState.STOPPED},
        {"status": EndState.AGENT_ERROR},
    ):
        assert notes_of(sample("a", **fields)) == []
    quarantine = Quarantine(reason="Flaky", until="2026-12-31")
    (note,) = notes_of(sample("a"), sample("b", quarantine=quarantine))
    assert note.startswith("In 1 of 1 test ")
