"""The comment's text: within its budget whatever the results are, and never without what matters most."""

import re
from dataclasses import dataclass, replace
from functools import cache

import builders as build
import cases
import comment_cases
import hostile_text
import pytest
import report_texts

from ci_evals.domain.results.comparison import TestName
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.reports import console
from ci_evals.reports.markdown import comment, documents, summary
from ci_evals.reports.markdown.sections import Rank, Section, truncated
from ci_evals.reports.names import SUMMARY
from ci_evals.reports.story.story import story_of

URL = "https://github.com/acme/shop-agent/actions/runs/7041"
SOURCES = [f"{comment_cases.CONTEXT.source_url}/evals/{name}" for name in ("refunds.json", "refunds.yaml")]
SOURCES += [f"{comment_cases.CONTEXT.source_url}/evals/{name}.yaml" for name in ("delivery", "handover")]
LONG = "The agent did not do what was asked, & said <why> at length | with #marks. " * 40


def failing(name: str, letter: str, reason: str = LONG, trials: int = 1):
    """A test that failed, or passed, in each trial, with as much to say."""
    outcome = "passed" if letter == "p" else "failed"
    findings = tuple(
        build.finding(outcome, criterion=f"{number} {LONG}", reason=f"{name}: {reason}", evidence=(1,))
        for number in (1, 2)
    )
    turn = build.turn(user=LONG, agent=LONG)
    played = (build.trial_result(index, turns=(turn,), findings=findings) for index in range(1, trials + 1))
    return build.test_result(name, trials=tuple(played))


def compared(*names: str, tests: int, label: str = "Test {}", letter: str = "f") -> Results:
    """Suites of so many tests that passed in the baseline and fail now, with a gate that says no."""

    def suites(drawing: str) -> list:
        return [
            build.suite_result(
                name,
                *(failing(label.format(place), drawing, f"{number} {LONG}") for place in range(tests)),
                folder=f"suite-{number}/x",
            )
            for number, name in enumerate(names)
        ]

    run = build.results(*suites(letter), gate=build.decision(comment_check()), usage=cases.COSTLY)
    fields = {"p": 0.0001, "smallest_p": 0.0001}
    return cases.against(run, cases.base_run(*suites("p")), **fields)


def comment_check(name: str = "min-score", *, passed: bool = False, note: str | None = None):
    """A check of the gate."""
    return build.check(name=name, required=80, seen=12.5, passed=passed, note=note)


def five_suites() -> Results:
    """1,500 failing tests, each with much to say."""
    return compared(*(f"Suite {letter}" for letter in "ABCDE"), tests=300)


def many_suites() -> Results:
    """300 suites of two tests."""
    return compared(*(f"Suite {number}" for number in range(300)), tests=2)


def many_checks() -> Results:
    """2,000 checks, half of which hold."""
    checks = [
        comment_check(f"test:{number} {LONG}", passed=number % 2 == 0, note=LONG) for number in range(2_000)
    ]
    return replace(comment_cases.bad(), gate=build.decision(*checks))


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
    found = replace(run.comparison, reasons=(LONG,) * 500, new=names, fixed=run.comparison.fixed * 500)
    reasons = tuple(f"{number} {LONG}" for number in range(400))
    return replace(
        run,
        comparison=found,
        gate=replace(run.gate, reasons=reasons, exit_code=3),
        usage=Usage(by_role=roles, unpriced=("#" * 10_000,) * 300),
        run=replace(run.run, warnings=reasons, id="#" * 60_000, baseline_note="#" * 60_000),
        tool=replace(run.tool, version="#" * 10_000),
    )


def huge_numbers() -> Results:
    """What only somebody else's file can hold."""
    run = comment_cases.bad()
    checks = tuple(
        replace(check, required=1e300, seen=-1e300, seen_if_undecided_failed=1e300)
        for check in run.gate.checks
    )
    found = run.comparison
    whole = {"detectable": 1e300, "p": 1e300, "smallest_p": 1e300, "fewest_broken": 10**4_000}
    return replace(
        run,
        gate=replace(run.gate, checks=checks),
        comparison=replace(
            found,
            **whole,
            tests=10**4_000,
            head_efficiency=replace(found.head_efficiency, tokens_per_trial=1e300),
            suites=tuple(replace(suite, **whole) for suite in found.suites),
        ),
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
    story = story_of(HUGE[name]())
    return Drawn(summary.sections(story, comment_cases.CONTEXT), comment.render(story, comment_cases.CONTEXT))


@pytest.mark.parametrize("name", HUGE)
def test_the_comment_stays_within_its_budget(name):
    """In whole sections, with every fold closed and nothing live in it."""
    text = drawn(name).text
    assert len(text.encode()) <= comment.BUDGET
    assert text.count("<details>") == text.count("</details>")
    page = hostile_text.RenderedMarkdown(text)
    assert not page.live
    assert {link.partition("#")[0] for link in page.links} <= {URL, *SOURCES}


@pytest.mark.parametrize("name", HUGE)
def test_required_sections_take_half_a_comment_at_most(name):
    """Verdict, scores, baseline and facts take half a comment at most, however large the results are.

    A fold is there if something in it has room.
    """
    always = [section for section in drawn(name).sections if section.rank is Rank.ALWAYS]
    assert sum(len(section.text.encode()) for section in always) <= comment.BUDGET / 2
    assert all(section.text in drawn(name).text for section in always if not section.opens)


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("budget", [900 * 1024, 3_000])
def test_any_budget_is_kept(name, budget):
    """The step summary's is what other steps have left of it."""
    assert len(truncated(drawn(name).sections, budget, "More is in summary.md.").encode()) <= budget


def test_the_step_summary_says_where_the_rest_is():
    """In the run's own folder; it has no link to itself."""
    whole = documents.step_summary(story_of(comment_cases.bad()), 900 * 1024)
    assert whole == documents.summary(story_of(comment_cases.bad()))
    part = documents.step_summary(story_of(comment_cases.bad()), 6_000)
    assert len(part.encode()) <= 6_000
    assert part.endswith(". The <code>summary.md</code> of this run has everything.</sub>\n")
    assert documents.step_summary(story_of(comment_cases.bad()), -1) == ""


def test_as_many_of_1500_failing_tests_as_fit_are_shown():
    """Three with their turns, many in a line, and no list of all tests; the note says what and where."""
    text = drawn("five suites").text
    assert len(text.encode()) > 55_000
    assert text.startswith("## ❌ Evals failed: 1,500 tests broke since the baseline\n")
    assert text.count("\n**❌ Suite ") == 3
    assert text.count("\n- **❌ Suite ") > 50
    assert "| test |" not in text
    note = text.splitlines()[-1]
    assert "part of the rest of the tests that broke" in note
    assert f'The <a href="{URL}">job summary of the run</a> shows more, its <code>summary.md</code> ' in note
    assert "more tests\n\n</details>" in text


def test_no_failed_test_gives_way_to_lists_of_other_things():
    """Reasons, notes, checks and what was fixed without end leave every failure its line."""
    for name in ("much to say", "many checks"):
        text = drawn(name).text
        note = text.splitlines()[-1]
        assert "tests that broke" not in note
        assert "what failed before" not in note
        assert text.count("**❌ ") == 8


def test_worst_of_many_suites_are_shown_without_unfolding():
    """In one table; the exact one has all of them."""
    results = many_suites()
    better = tuple(
        replace(suite, delta=50.0) if suite.name == "Suite 0" else suite
        for suite in results.comparison.suites
    )
    results = replace(results, comparison=replace(results.comparison, suites=better))
    first = comment_cases.unfolded(comment.render(story_of(results), comment_cases.CONTEXT))
    assert "| Suite 1 |" in first
    assert "| Suite 0 |" not in first
    assert "and 285 more suites" in first
    assert "| Suite 0 |" in documents.summary(story_of(results))


@pytest.mark.parametrize(
    "story",
    [
        comment_cases.bad,
        comment_cases.flaky,
        comment_cases.no_baseline,
        comment_cases.failed_example,
        comment_cases.passed_example,
    ],
)
def test_scores_have_whole_points_outside_of_the_folds(story):
    """In the heading, the numbers and the table; the fold has the decimals."""
    text = comment.render(story_of(story()), comment_cases.CONTEXT)
    shown = comment_cases.unfolded(text)
    assert re.search(r"\d / 100", shown)
    assert not re.search(r"\d\.\d+ / 100|has \d+\.\d|[−+]\d+\.\d|\| \d+\.\d|\d\.\d → |→ \d+\.\d", shown)
    assert re.search(r"\| \d+\.\d", text)


@pytest.mark.parametrize(("name", "most"), [("failed-example", 350), ("passed-example", 70)])
def test_a_comment_is_read_in_seconds(name, most):
    """Of at most so many words before a fold is opened."""
    text = comment.render(story_of(comment_cases.COMMENTS[name]()), comment_cases.CONTEXT)
    words = hostile_text.RenderedMarkdown(comment_cases.unfolded(text)).text.split()
    assert len(words) <= most


def test_each_test_that_broke_links_to_its_line():
    """In the suite's file at the tested commit, if the repository can have such a file."""

    def links(file: str) -> list[str]:
        run = comment_cases.failed_example()
        suites = tuple(replace(suite, file=file) for suite in run.suites)
        text = comment.render(story_of(replace(run, suites=suites)), comment_cases.CONTEXT)
        return [link for link in hostile_text.RenderedMarkdown(text).links if not link.startswith(URL)]

    source = comment_cases.CONTEXT.source_url
    assert links("evals/refunds.yaml") == [f"{source}/evals/refunds.yaml#L{line}" for line in (31, 14)]
    assert links("./a b>)#?.yaml")[0] == f"{source}/a%20b%3E%29%23%3F.yaml#L31"
    for file in ("/etc/passwd", "../other/x.yaml", "a/../../x.yaml", "demo:hr", "C:\\evals\\x.yaml"):
        assert links(file) == []


def test_the_commit_is_the_one_that_is_known():
    """Not what the results claim: a fork's may claim anything. A pull request is known by its own commit."""
    claimed, short = comment_cases.bad(), comment_cases.HEAD[:7]

    def foot(text: str) -> str:
        return text.rpartition("<sub>")[2]

    assert foot(documents.summary(story_of(claimed))).startswith(f"`{short}` against `3aceb90` of main · ")
    result = comment.render(story_of(claimed), comment.SummaryContext(commit="b" * 40))
    assert foot(result).startswith("`bbbbbbb` against ")
    assert short not in result
    assert short not in comment.render(story_of(claimed), comment.SummaryContext(foreign=True))
    merged = replace(claimed.run.git, head_commit=None)
    merged = replace(claimed, run=replace(claimed.run, git=merged))
    assert foot(comment.render(story_of(merged), comment.SummaryContext())).startswith("`0000000` against ")


def test_numbers_of_a_fork_or_of_another_commit_are_called_so_in_the_heading():
    """With a sign that is not green."""

    def heading(**known) -> str:
        return comment.render(story_of(comment_cases.good()), comment.SummaryContext(**known)).partition(
            "\n"
        )[0]

    assert heading() == "## ✅ Evals passed: 99 / 100, 4 points above main"
    assert heading(foreign=True).startswith("## ⚠️ Evals passed (reported by the fork, unverified): 99")
    assert heading(commit="b" * 40).startswith("## ⚠️ Evals passed (results of another commit): 99")


def test_a_long_reason_to_skip_is_not_cut_in_the_headline():
    """It is a sentence of its own there."""
    skipped = comment_cases.skipped()
    why = f"the pull request comes from a fork: {'secrets are missing ' * 20}at the end"
    run = replace(skipped.run, stopped_because=why)
    for text in (
        comment.render(story_of(replace(skipped, run=run)), comment_cases.CONTEXT),
        console.render(story_of(replace(skipped, run=run))),
    ):
        assert "secrets are missing at the end" in text


def test_comment_on_a_refused_suite_has_nothing_live_and_stays_short():
    """Whatever stood in the suite that could not be read, however much of it."""
    for reason in ("`" * 100_000, "@octocat fixes #1 </details> https://evil.example\n" * 5_000, ""):
        text = comment.refused(reason, comment_cases.CONTEXT)
        assert text.startswith("## ⚠️ Evals did not run\n")
        assert len(text.encode()) <= comment.BUDGET
        page = hostile_text.RenderedMarkdown(text)
        assert not page.live
        assert page.links == [URL]
        assert ("(cut; the log of the run has it whole)" in text) == bool(reason)
    assert comment.refused("no suite", comment.SummaryContext()).endswith(
        "\nFix this and push again: no test was run.\n"
    )


def test_only_the_address_that_is_given_becomes_a_link():
    """It is escaped all the same."""
    text = comment.render(
        story_of(comment_cases.good()), comment.SummaryContext(run_url='https://ghe.example/a?b="c"&d')
    )
    assert hostile_text.RenderedMarkdown(text).links == [
        "https://ghe.example/a?b=%22c%22&d#artifacts",
        "https://ghe.example/a?b=%22c%22&d",
    ]
    assert (
        hostile_text.RenderedMarkdown(
            comment.render(story_of(comment_cases.good()), comment.SummaryContext())
        ).links
        == []
    )


def test_comment_with_enough_room_is_the_summary_file():
    """The comment of an ordinary run is its summary.md, with a link and the commit."""
    results = comment_cases.good()
    text = comment.render(story_of(results), comment.SummaryContext())
    assert text == documents.summary(story_of(results)) == report_texts.files_of_run(results)[SUMMARY]
    assert "Left out" not in text
