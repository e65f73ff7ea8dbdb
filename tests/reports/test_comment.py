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
from each_row import each_row

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


def failing(name: str, letter: str, reason: str):
    """A test of one trial that failed, or passed, with as much to say."""
    outcome = "passed" if letter == "p" else "failed"
    findings = tuple(
        build.finding(outcome, criterion=f"{number} {LONG}", reason=f"{name}: {reason}", evidence=(1,))
        for number in (1, 2)
    )
    turn = build.turn(user=LONG, agent=LONG)
    return build.test_result(name, trials=(build.trial_result(turns=(turn,), findings=findings),))


def compared(*names: str, tests: int, label: str = "Test {}") -> Results:
    """Suites of so many tests that passed in the baseline and fail now, with a gate that says no."""

    def suites(letter: str) -> list:
        result = []
        for number, name in enumerate(names):
            made = (failing(label.format(index), letter, f"{number} {LONG}") for index in range(tests))
            result.append(build.suite_result(name, *made, folder=f"suite-{number}/x"))
        return result

    run = build.results(*suites("f"), gate=build.decision(comment_check()), usage=cases.COSTLY)
    return cases.against(run, cases.base_run(*suites("p")), p=0.0001, smallest_p=0.0001)


def comment_check(name: str = "min-score", *, passed: bool = False, note: str | None = None):
    """A check of the gate."""
    return build.check(name=name, required=80, seen=12.5, passed=passed, note=note)


def many_checks() -> Results:
    """2,000 checks, half of which hold."""
    numbered = ((f"test:{number} {LONG}", number % 2 == 0) for number in range(2_000))
    checks = (comment_check(name, passed=passed, note=LONG) for name, passed in numbered)
    return replace(comment_cases.bad(), gate=build.decision(*checks))


def long_names() -> Results:
    """Names of 10,000 characters, of the kind that takes most bytes where it is made harmless."""
    names = (f"{number}{'|&#' * 3_400}" for number in range(20))
    return compared(*names, tests=3, label="{}" + "|&#" * 3_400)


def much_to_say() -> Results:
    """Reasons, warnings, models and lists without end."""
    run = comment_cases.bad()
    models = (f"{number}{'#' * 10_000}" for number in range(100))
    roles = tuple(RoleUsage(role="judge", model=model, calls=10**15) for model in models)
    names = tuple(TestName(suite="#" * 10_000, name=f"{number}") for number in range(1_000))
    result = replace(run.comparison, reasons=(LONG,) * 500, new=names, fixed=run.comparison.fixed * 500)
    reasons = tuple(f"{number} {LONG}" for number in range(400))
    return replace(
        run,
        comparison=result,
        gate=replace(run.gate, reasons=reasons, exit_code=3),
        usage=Usage(by_role=roles, unpriced=("#" * 10_000,) * 100),
        run=replace(run.run, warnings=reasons, id="#" * 60_000, baseline_note="#" * 60_000),
        tool=replace(run.tool, version="#" * 10_000),
    )


def huge_numbers() -> Results:
    """Numbers that only somebody else's file can hold."""
    run = comment_cases.bad()
    fields = {"required": 1e300, "seen": -1e300, "seen_if_undecided_failed": 1e300}
    checks = tuple(replace(check, **fields) for check in run.gate.checks)
    result = run.comparison
    whole = {"detectable": 1e300, "p": 1e300, "smallest_p": 1e300, "fewest_broken": 10**4_000}
    return replace(
        run,
        gate=replace(run.gate, checks=checks),
        comparison=replace(
            result,
            **whole,
            tests=10**4_000,
            head_efficiency=replace(result.head_efficiency, tokens_per_trial=1e300),
            suites=tuple(replace(suite, **whole) for suite in result.suites),
        ),
    )


@cache
def many_suites() -> Results:
    return compared(*(f"Suite {number}" for number in range(100)), tests=2)


HUGE = {
    "five suites": lambda: compared(*(f"Suite {letter}" for letter in "ABCDE"), tests=50),
    "many suites": many_suites, "many checks": many_checks, "long names": long_names,
    "much to say": much_to_say, "huge numbers": huge_numbers,
}  # fmt: skip


@dataclass(frozen=True)
class TruncatedComment:
    """A comment that has no room for all of its sections."""

    sections: tuple[Section, ...]
    text: str


@cache
def truncated_comment(name: str) -> TruncatedComment:
    """That of one of the huge results."""
    story = story_of(HUGE[name]())
    text = comment.render(story, comment_cases.CONTEXT)
    return TruncatedComment(summary.sections(story, comment_cases.CONTEXT), text)


@pytest.mark.parametrize("name", HUGE)
def test_huge_comment_stays_within_size_limit_and_keeps_required_sections(name):
    text, sections = truncated_comment(name).text, truncated_comment(name).sections
    assert len(text.encode()) <= comment.BUDGET
    assert text.count("<details>") == text.count("</details>")
    page = hostile_text.RenderedMarkdown(text)
    assert not page.live
    assert {link.partition("#")[0] for link in page.links} <= {URL, *SOURCES}
    required = [section for section in sections if section.rank is Rank.ALWAYS]
    assert sum(len(section.text.encode()) for section in required) <= comment.BUDGET / 2
    assert all(section.text in text for section in required if not section.opens)
    for budget in (900 * 1024, 3_000):
        assert len(truncated(sections, budget, "More is in summary.md.").encode()) <= budget


def test_truncated_comment_shows_as_many_failed_tests_as_fit_before_other_lists():
    text = truncated_comment("five suites").text
    assert 55_000 < len(text.encode()) <= comment.BUDGET
    assert text.startswith("## ❌ Evals failed: 250 tests broke since the baseline\n")
    assert text.count("\n**❌ Suite ") == 3
    assert text.count("\n- **❌ Suite ") > 50
    assert "| test |" not in text
    note = text.splitlines()[-1]
    assert "part of the rest of the tests that broke" in note
    assert f'The <a href="{URL}">job summary of the run</a> shows more, its <code>summary.md</code> ' in note
    assert "more tests\n\n</details>" in text
    for name in ("much to say", "many checks"):
        text = truncated_comment(name).text
        note = text.splitlines()[-1]
        assert "tests that broke" not in note
        assert "what failed before" not in note
        assert text.count("**❌ ") == 8


def test_comment_shows_worst_of_many_suites_outside_details_blocks():
    results = many_suites()
    first, *others = results.comparison.suites
    assert first.name == "Suite 0"
    better = (replace(first, delta=50.0), *others)
    results = replace(results, comparison=replace(results.comparison, suites=better))
    first = comment_cases.unfolded(comment.render(story_of(results), comment_cases.CONTEXT))
    assert "| Suite 1 |" in first
    assert "| Suite 0 |" not in first
    assert "and 85 more suites" in first
    assert "| Suite 0 |" in documents.summary(story_of(results))


@each_row("name", ["bad", "flaky", "no-baseline", "failed-example", "passed-example"])
def test_scores_outside_details_blocks_are_whole_numbers(name):
    text = comment.render(story_of(comment_cases.COMMENTS[name]()), comment_cases.CONTEXT)
    shown = comment_cases.unfolded(text)
    assert re.search(r"\d / 100", shown)
    assert not re.search(r"\d\.\d+ / 100|has \d+\.\d|[−+]\d+\.\d|\| \d+\.\d|\d\.\d → |→ \d+\.\d", shown)
    assert re.search(r"\| \d+\.\d", text)
    if limit := {"failed-example": 350, "passed-example": 70}.get(name):
        assert len(hostile_text.RenderedMarkdown(shown).text.split()) <= limit


def test_comment_names_verified_commit_and_marks_results_of_fork_or_other_commit():
    claimed, short = comment_cases.bad(), comment_cases.HEAD[:7]

    def rendered(results: Results = claimed, **context) -> str:
        return comment.render(story_of(results), comment.SummaryContext(**context))

    def foot(text: str) -> str:
        return text.rpartition("<sub>")[2]

    assert foot(documents.summary(story_of(claimed))).startswith(f"`{short}` against `3aceb90` of main · ")
    assert foot(rendered(commit="b" * 40)).startswith("`bbbbbbb` against ")
    assert short not in rendered(commit="b" * 40)
    assert short not in rendered(foreign=True)
    merged = replace(claimed.run, git=replace(claimed.run.git, head_commit=None))
    assert foot(rendered(replace(claimed, run=merged))).startswith("`0000000` against ")
    good = comment_cases.good()
    assert rendered(good).partition("\n")[0] == "## ✅ Evals passed: 99 / 100, 4 points above main"
    fork, other = rendered(good, foreign=True), rendered(good, commit="b" * 40)
    assert fork.startswith("## ⚠️ Evals passed (reported by the fork, unverified): 99")
    assert other.startswith("## ⚠️ Evals passed (results of another commit): 99")


def test_skip_reason_is_shown_in_full_in_comment_and_console():
    skipped = comment_cases.skipped()
    reason = f"the pull request comes from a fork: {'secrets are missing ' * 20}at the end"
    story = story_of(replace(skipped, run=replace(skipped.run, stopped_because=reason)))
    for text in (comment.render(story, comment_cases.CONTEXT), console.render(story)):
        assert "secrets are missing at the end" in text


def test_comment_on_invalid_suite_is_bounded_and_inert_and_says_if_it_is_cut():
    for reason in ("`" * 100_000, "@octocat fixes #1 </details> https://evil.example\n" * 5_000, ""):
        text = comment.refused(reason, comment_cases.CONTEXT)
        assert text.startswith("## ⚠️ Evals did not run\n")
        assert len(text.encode()) <= comment.BUDGET
        page = hostile_text.RenderedMarkdown(text)
        assert not page.live
        assert page.links == [URL]
        assert ("(cut; the log of the run has it whole)" in text) == bool(reason)
    text = comment.refused("no suite", comment.SummaryContext())
    assert text.endswith("\nFix this and push again: no test was run.\n")


def test_only_lines_of_suite_files_and_the_given_run_url_become_links():
    def links(results: Results, context=comment_cases.CONTEXT) -> list[str]:
        return hostile_text.RenderedMarkdown(comment.render(story_of(results), context)).links

    def links_to(file: str) -> list[str]:
        run = comment_cases.failed_example()
        suites = tuple(replace(suite, file=file) for suite in run.suites)
        return [link for link in links(replace(run, suites=suites)) if not link.startswith(URL)]

    source = comment_cases.CONTEXT.source_url
    assert links_to("evals/refunds.yaml") == [f"{source}/evals/refunds.yaml#L{line}" for line in (31, 14)]
    assert links_to("./a b>)#?.yaml")[0] == f"{source}/a%20b%3E%29%23%3F.yaml#L31"
    for file in ("/etc/passwd", "../other/x.yaml", "a/../../x.yaml", "demo:hr", "C:\\evals\\x.yaml"):
        assert links_to(file) == []
    escaped = "https://ghe.example/a?b=%22c%22&d"
    given = comment.SummaryContext(run_url='https://ghe.example/a?b="c"&d')
    assert links(comment_cases.good(), given) == [f"{escaped}#artifacts", escaped]
    assert links(comment_cases.good(), comment.SummaryContext()) == []


def test_step_summary_and_comment_equal_summary_file_or_refer_to_it_if_truncated():
    story = story_of(comment_cases.bad())
    assert documents.step_summary(story, 900 * 1024) == documents.summary(story)
    part = documents.step_summary(story, 6_000)
    assert len(part.encode()) <= 6_000
    assert part.endswith(". The <code>summary.md</code> of this run has everything.</sub>\n")
    assert documents.step_summary(story, -1) == ""
    results = comment_cases.good()
    text = comment.render(story_of(results), comment.SummaryContext())
    assert text == documents.summary(story_of(results)) == report_texts.files_of_run(results)[SUMMARY]
    assert "Left out" not in text
