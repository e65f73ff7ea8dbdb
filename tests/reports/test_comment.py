"""The comment's text: within its budget whatever the results are, and never without what matters most."""

from dataclasses import dataclass
from functools import cache

import builders as build
import cases
import comment_cases
import hostile
import pytest
import whole_text

from ci_evals.domain.results.comparison import TestName
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.reports import console
from ci_evals.reports.markdown import comment, documents, summary
from ci_evals.reports.markdown.sections import Rank, Section, truncated
from ci_evals.reports.names import SUMMARY

URL = "https://github.com/acme/shop-agent/actions/runs/7041"
LONG = "The agent did not do what was asked, & said <why> at length | with #marks. " * 40


def failing(name: str, letter: str, reason: str = LONG, trials: int = 1):
    """A test that failed, or passed, in each trial, with as much to say."""
    outcome = "passed" if letter == "p" else "failed"
    findings = tuple(
        build.finding(outcome, criterion=f"{number} {LONG}", reason=reason, evidence=(1,))
        for number in (1, 2)
    )
    said = build.turn(user=LONG, agent=LONG)
    played = (build.trial_result(index, turns=(said,), findings=findings) for index in range(1, trials + 1))
    return build.test_result(name, trials=tuple(played))


def compared(*names: str, tests: int, label: str = "Test {}", letter: str = "f") -> Results:
    """Suites of so many tests that passed in the baseline and fail now, with a gate that says no."""

    def suites(drawing: str) -> list:
        return [
            build.suite_result(
                name,
                *(failing(label.format(place), drawing) for place in range(tests)),
                folder=f"suite-{number}/x",
            )
            for number, name in enumerate(names)
        ]

    run = build.results(*suites(letter), gate=build.decision(comment_check()), usage=cases.COSTLY)
    told = {"p": 0.0001, "smallest_p": 0.0001}
    return cases.against(run, cases.base_run(*suites("p")), **told)


def comment_check(name: str = "min-score", *, holds: bool = False, note: str | None = None):
    """A check of the gate."""
    return build.check(name=name, required=80, seen=12.5, holds=holds, note=note)


def five_suites() -> Results:
    """1,500 failing tests, each with much to say."""
    return compared(*(f"Suite {letter}" for letter in "ABCDE"), tests=300)


def many_suites() -> Results:
    """300 suites of two tests."""
    return compared(*(f"Suite {number}" for number in range(300)), tests=2)


def many_checks() -> Results:
    """2,000 checks, half of which hold."""
    checks = [
        comment_check(f"test:{number} {LONG}", holds=number % 2 == 0, note=LONG) for number in range(2_000)
    ]
    return comment_cases.bad().model_copy(update={"gate": build.decision(*checks)})


def long_names() -> Results:
    """Names of 10,000 characters, of the kind that takes most bytes where it is made harmless."""
    return compared(
        *(f"{number}{'|&#' * 3_400}" for number in range(20)), tests=3, label="{}" + "|&#" * 3_400
    )


def much_to_say() -> Results:
    """Reasons, warnings, models and lists without end."""
    run = comment_cases.bad()
    roles = tuple(
        RoleUsage(role="judge", model=f"{number}" + "#" * 10_000, calls=10**15) for number in range(300)
    )
    names = tuple(TestName(suite="#" * 10_000, name=f"{number}") for number in range(3_000))
    found = run.comparison.model_copy(
        update={"reasons": (LONG,) * 500, "new": names, "fixed": run.comparison.fixed * 500}
    )
    reasons = tuple(f"{number} {LONG}" for number in range(400))
    return run.model_copy(
        update={
            "comparison": found,
            "gate": run.gate.model_copy(update={"reasons": reasons, "exit_code": 3}),
            "usage": Usage(by_role=roles, unpriced=("#" * 10_000,) * 300),
            "run": run.run.model_copy(
                update={"warnings": reasons, "id": "#" * 60_000, "baseline_note": "#" * 60_000}
            ),
            "tool": run.tool.model_copy(update={"version": "#" * 10_000}),
        }
    )


def huge_numbers() -> Results:
    """What only somebody else's file can hold."""
    run = comment_cases.bad()
    checks = tuple(
        check.model_copy(update={"required": 1e300, "seen": -1e300, "seen_if_undecided_failed": 1e300})
        for check in run.gate.checks
    )
    found = run.comparison
    whole = {"detectable": 1e300, "p": 1e300, "smallest_p": 1e300, "fewest_broken": 10**4_000}
    return run.model_copy(
        update={
            "gate": run.gate.model_copy(update={"checks": checks}),
            "comparison": found.model_copy(
                update={
                    **whole,
                    "tests": 10**4_000,
                    "head_efficiency": found.head_efficiency.model_copy(update={"tokens_per_trial": 1e300}),
                    "suites": tuple(suite.model_copy(update=whole) for suite in found.suites),
                }
            ),
        }
    )


HUGE = {
    "five suites": five_suites,
    "many suites": many_suites,
    "many checks": many_checks,
    "long names": long_names,
    "much to say": much_to_say,
    "huge numbers": huge_numbers,
}


@dataclass(frozen=True)
class Drawn:
    """A comment that has no room for all of its sections."""

    sections: tuple[Section, ...]
    text: str


@cache
def drawn(name: str) -> Drawn:
    """That of one of the huge results."""
    results = HUGE[name]()
    return Drawn(
        summary.sections(results, comment_cases.CONTEXT), comment.render(results, comment_cases.CONTEXT)
    )


@pytest.mark.parametrize("name", HUGE)
def test_the_comment_stays_within_its_budget(name):
    """In whole sections, with every fold closed and nothing live in it."""
    text = drawn(name).text
    assert len(text.encode()) <= comment.BUDGET
    assert text.count("<details>") == text.count("</details>")
    page = hostile.Page(text)
    assert not page.live
    assert set(page.links) <= {URL}


@pytest.mark.parametrize("name", HUGE)
def test_what_must_never_be_missing_is_short_by_itself(name):
    """Verdict, scores, baseline and facts take half a comment at most, however large the results are."""
    always = [section for section in drawn(name).sections if section.rank is Rank.ALWAYS]
    assert sum(len(section.text.encode()) for section in always) <= comment.BUDGET / 2
    assert all(section.text in drawn(name).text for section in always)


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("budget", [900 * 1024, 3_000])
def test_any_budget_is_kept(name, budget):
    """The step summary's is what other steps have left of it."""
    assert len(truncated(drawn(name).sections, budget, "More is in summary.md.").encode()) <= budget


def test_the_step_summary_says_where_the_rest_is():
    """In the run's own folder; it has no link to itself."""
    whole = documents.step_summary(comment_cases.bad(), 900 * 1024)
    assert whole == documents.summary(comment_cases.bad())
    part = documents.step_summary(comment_cases.bad(), 6_000)
    assert len(part.encode()) <= 6_000
    assert part.endswith(". The <code>summary.md</code> of this run has everything.</sub>\n")
    assert documents.step_summary(comment_cases.bad(), -1) == ""


def test_of_1500_failing_tests_as_many_as_fit_are_told():
    """Three with their turns, many in a line, and no list of all tests; the note says what and where."""
    text = drawn("five suites").text
    assert len(text.encode()) > 55_000
    head = f"## ❌ ci-evals: the gate does not hold (min-score) · `{comment_cases.HEAD[:7]}`\n"
    assert text.startswith(head)
    assert text.count("#### ❌") == 3
    assert text.count("\n- **Suite ") > 50
    assert "All tests of" not in text
    note = text.splitlines()[-1]
    assert "part of the rest of the newly failing tests" in note
    assert f'The <a href="{URL}">job summary of the run</a> shows more, its <code>summary.md</code> ' in note
    assert "How much tests changed: 1,500 fell, 0 rose, 0 did not change" in text
    assert "more newly failing tests\n\n</details>" in text


def test_no_failed_test_gives_way_to_lists_of_other_things():
    """Reasons, notes, checks and what was fixed without end leave every failure its line."""
    for name in ("much to say", "many checks"):
        text = drawn(name).text
        note = text.splitlines()[-1]
        assert "newly failing" not in note
        assert "failed tests" not in note
        assert "<summary>4 more newly failing tests</summary>" in text


def test_of_many_suites_the_worst_are_open():
    """In one table, the others folded."""
    results = many_suites()
    better = tuple(
        suite.model_copy(update={"delta": 50.0}) if suite.name == "Suite 0" else suite
        for suite in results.comparison.suites
    )
    results = results.model_copy(
        update={"comparison": results.comparison.model_copy(update={"suites": better})}
    )
    first = comment.render(results, comment_cases.CONTEXT).partition("Baseline")[0]
    assert "| Suite 1 |" in first
    assert "| Suite 0 |" not in first
    assert "<summary>285 more suites</summary>" in documents.summary(results)
    assert "| Suite 0 |" in documents.summary(results)


def test_checks_that_do_not_hold_are_seen_without_unfolding():
    """Those that hold are behind a line."""
    text = comment.render(comment_cases.bad(), comment_cases.CONTEXT)
    head, _, held = text.partition("### Gate: ")[2].partition(
        "<details>\n<summary>4 checks of the gate hold</summary>"
    )
    assert "| regression | p above 0.05 | p below 0.001 |" in head
    assert "| max-cost |" not in head
    assert "| max-cost |" in held


def test_the_commit_is_the_one_that_is_known():
    """Not what the results claim: a fork's may claim anything. A pull request is known by its own commit."""
    claimed, short = comment_cases.bad(), comment_cases.HEAD[:7]

    def headline(text: str) -> str:
        return text.partition("\n")[0]

    assert headline(documents.summary(claimed)).endswith(f" · `{short}`")
    told = comment.render(claimed, comment.SummaryContext(commit="b" * 40))
    assert headline(told).endswith(" · `bbbbbbb`")
    assert short not in told
    assert short not in comment.render(claimed, comment.SummaryContext(foreign=True))
    merged = claimed.run.git.model_copy(update={"head_commit": None})
    merged = claimed.model_copy(update={"run": claimed.run.model_copy(update={"git": merged})})
    assert headline(comment.render(merged, comment.SummaryContext())).endswith(" · `0000000`")


def test_numbers_of_a_fork_are_called_so():
    """One plain line under the verdict."""
    own, foreign = (
        comment.render(comment_cases.good(), comment.SummaryContext(foreign=given)) for given in (False, True)
    )
    line = "These numbers come from the pull request's own workflow run, whose code the fork controls."
    assert line not in own
    assert foreign.count(line) == 1
    assert foreign.index(line) < foreign.index("| suite")


def test_where_there_are_no_numbers_none_are_called_a_forks():
    """A run that was skipped has none."""
    text = comment.render(comment_cases.skipped(), comment.SummaryContext(foreign=True))
    assert "These numbers" not in text
    assert "The pull request comes from a fork, so GitHub gives it no secrets: " in text


def test_a_long_reason_to_skip_is_not_cut_in_the_headline():
    """It is a sentence of its own there."""
    skipped = comment_cases.skipped()
    why = f"the pull request comes from a fork: {'secrets are missing ' * 20}at the end"
    run = skipped.run.model_copy(update={"stopped_because": why})
    for text in (
        comment.render(skipped.model_copy(update={"run": run}), comment_cases.CONTEXT),
        console.render(skipped.model_copy(update={"run": run})),
    ):
        assert "secrets are missing at the end." in text
        assert "…" not in text


def test_a_refusal_is_inert_and_short():
    """Whatever stood in the suite that could not be read, however much of it."""
    for reason in ("`" * 100_000, "@octocat fixes #1 </details> https://evil.example\n" * 5_000, ""):
        text = comment.refused(reason, comment_cases.CONTEXT)
        assert text.startswith(f"## ⚠️ ci-evals: nothing was run · `{comment_cases.HEAD[:7]}`\n")
        assert len(text.encode()) <= comment.BUDGET
        page = hostile.Page(text)
        assert not page.live
        assert page.links == [URL]
        assert ("(cut; the log of the run has it whole)" in text) == bool(reason)
    assert comment.refused("no suite", comment.SummaryContext()).startswith(
        "## ⚠️ ci-evals: nothing was run\n"
    )
    assert "What stood here before was of an earlier commit." in comment.refused(
        "no suite", comment.SummaryContext()
    )


def test_only_the_address_that_is_given_becomes_a_link():
    """It is escaped all the same."""
    text = comment.render(
        comment_cases.good(), comment.SummaryContext(run_url='https://ghe.example/a?b="c"&d')
    )
    assert hostile.Page(text).links == ['https://ghe.example/a?b="c"&d']
    assert hostile.Page(comment.render(comment_cases.good(), comment.SummaryContext())).links == []


def test_all_is_told_where_there_is_room():
    """The comment of an ordinary run is its summary.md, with a link and the commit."""
    results = comment_cases.good()
    text = comment.render(results, comment.SummaryContext())
    assert text == documents.summary(results) == whole_text.files(results)[SUMMARY]
    assert "Left out" not in text


def test_a_good_run_is_short():
    """Verdict, one table, and what is to be unfolded: nothing that failed is open."""
    text = comment.render(comment_cases.good(), comment_cases.CONTEXT)
    unfolded = "".join(part.rpartition("</details>")[2] for part in text.split("<details>"))
    assert "####" not in unfolded
    assert "> **User**" not in unfolded
    assert unfolded.count("|:--") == 1
    assert len(unfolded) < 2_600
