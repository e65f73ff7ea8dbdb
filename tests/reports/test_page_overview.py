"""What one sees when the page opens: the verdict, what broke and since when, and the table of tests."""

import json
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from urllib.parse import unquote

import builders as build
import cases
import comment_cases
import hostile_text
import pytest
from each_row import each_row

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.process import Coverage, ProcessSummary, Reach, Times
from ci_evals.domain.results.run import Git, Results
from ci_evals.reports.page import embedded_data, page
from ci_evals.reports.page.overview import test_table
from ci_evals.reports.story.comparison_runs import ALONE, ComparisonRun, ComparisonRuns
from ci_evals.reports.story.failures import Became
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.reports.story.story import story_of

VOID = {"meta", "link", "input", "br", "hr", "img"}
RUNS = {**{name: cases.made(name) for name in cases.CASES}, "skipped": comment_cases.skipped()}


class Page(HTMLParser):
    """A page as a reader sees it: its tags, its links, its texts by the tags and ids around them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.rows: list[dict[str, str | None]] = []
        self._open: list[tuple[str, str | None]] = []
        self._texts: list[tuple[tuple[str | None, ...], str]] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        result = dict(attrs)
        self.tags.append(tag)
        if "href" in result:
            self.links.append(result["href"])
        if "id" in result:
            self.ids.append(result["id"])
        if "data-status" in result:
            self.rows.append(result)
        if tag not in VOID:
            self._open.append((tag, result.get("id")))

    def handle_endtag(self, tag):
        opened, _ = self._open.pop()
        assert opened == tag

    def handle_data(self, data):
        if not any(tag in {"script", "style"} for tag, _ in self._open):
            self._texts.append((tuple(name for opened in self._open for name in opened), data))

    def text(self, name: str | None = None) -> str:
        """The text of the elements of this tag or id, or of the whole page."""
        texts = [data for names, data in self._texts if name is None or name in names]
        return " ".join(" ".join(texts).split())


def page_of(results: Results, comparison_runs: ComparisonRuns = ALONE) -> Page:
    return Page("".join(page.render(story_of(results, comparison_runs))))


def results_with(outcome: RunOutcome) -> Results:
    """The results of a run with this outcome."""
    if outcome is RunOutcome.SKIPPED:
        return comment_cases.skipped()
    if outcome is RunOutcome.UNCHECKED:
        check = build.check(name="max-drop", required=5, seen=None, passed=None, note="there is no baseline")
        return build.results(gate=build.decision(check))
    if outcome is RunOutcome.PASSED:
        return build.results(gate=build.decision(passed=True, exit_code=0))
    exits = {RunOutcome.FAILED: 1, RunOutcome.NO_VERDICT: 3, RunOutcome.INTERRUPTED: 130}
    gate = build.decision(passed=False, exit_code=exits[outcome], reasons=("It is so.",))
    return build.results(gate=gate)


@each_row("outcome", RunOutcome)
def test_page_title_and_heading_show_the_verdict(outcome):
    results = results_with(outcome)
    result, words = page_of(results), story_of(results).verdict()
    assert result.text("h1") == words
    assert result.text("title").startswith(words)
    has_reasons = outcome in {RunOutcome.FAILED, RunOutcome.NO_VERDICT, RunOutcome.INTERRUPTED}
    assert ("It is so." in result.text()) == has_reasons


@each_row(("ref", "shown"), [
    ("refs/pull/12/merge", "Commit 5c6a5de Pull request 12 Suite file"),
    ("refs/heads/fix-refunds", "Commit 5c6a5de Branch fix-refunds Pull request 12"),
    ("refs/tags/v2", "Commit 5c6a5de Tag v2 Pull request 12"),
])  # fmt: skip
def test_page_head_names_commit_ref_and_pull_request(ref, shown):
    git = Git(commit=comment_cases.HEAD, ref=ref, pull_request=12)
    assert shown in page_of(replace(RUNS["good"], run=build.run_info(git=git))).text("_content")


def test_broken_test_shows_its_reason_quote_last_pass_and_first_failure():
    result = page_of(RUNS["proven"])
    items = result.text("_broken")
    assert "Broke since the baseline (2)" in items
    assert "Passed in the baseline, not judged now (1)" in items
    first = items[items.index("Refund in time") :]
    for part in (
        "100 → 0",
        "confirmed (p = 0.004)",
        "Last passed in the baseline, 2026-11-20 07:30 UTC.",
        "The refund workflow starts",
        "REFUND_REQUEST was never executed",
        "I want my money back for order 1042.",
    ):
        assert part in first
    assert "#Refunds/Refund%20in%20time/1/1" in result.links
    results = RUNS["proven"]
    before = build.run_info(id="earlier", started_at=build.STARTED_AT - timedelta(days=2))
    failed = build.results(*results.suites, run=before)
    sample = page_of(results, ComparisonRuns(others=(ComparisonRun.of(failed, "past"),))).text("_broken")
    assert "Failed in all 2 known runs, the first 2026-11-19 09:30 UTC." in sample


def test_page_lists_failures_without_baseline_with_their_reasons():
    result = page_of(RUNS["bad"])
    assert "ci-evals show --failed" in result.text("code")
    failures = result.text("_broken")
    assert failures.startswith("What failed Failed (2)")
    assert failures.index("Refund after the window") < failures.index("Exchange for another size")
    assert failures.count("In its second reply the agent blames the customer.") == 2
    assert "broke since" not in failures
    assert page_of(RUNS["good"]).text("_broken") == "What failed No test failed."


def test_page_explains_only_new_and_critical_failures_in_full():
    def suite(new: str):
        old, grave = cases.played("Old", "f"), cases.played("Grave", "f", critical=True)
        return build.results(build.suite_result("Refunds", cases.played("New", new), old, grave))

    stories = page_of(cases.against(suite("f"), suite("p"))).text("article")
    assert "New" in stories
    assert "Grave" in stories
    assert "Old" not in stories


@pytest.mark.parametrize("name", RUNS)
def test_page_is_deterministic_without_markdown_duplicate_ids_or_dead_links(name):
    results, baseline = RUNS[name], ComparisonRuns(baseline=RUNS["good"])
    result = page_of(results)
    words = set(result.text().replace(",", " ").replace(".", " ").split())
    assert not words & {"NaN", "nan", "None", "True", "False", "inf"}
    assert len(result.ids) == len(set(result.ids))
    shard = replace(results, run=replace(results.run, shard=build.shard(1, 2, (1,))))
    for text in (result.text(), page_of(shard).text()):  # no Markdown of sentences that several reports share
        assert [mark for mark in ("`", "**") if mark in text] == []
    first, second = ("".join(page.render(story_of(results, baseline))) for _ in range(2))
    assert first == second
    tests = {(one.suite, one.test.name): one.test for one in embedded_data.tests_of(story_of(results))}
    for link in result.links:
        if "/" in link:
            suite, test, *places = (unquote(part) for part in link[1:].split("/"))
            trial, turn, *_ = [*(int(place) for place in places if not place.startswith("vs")), 1, 1]
            known = tests[suite, test].trials
            assert not places or turn <= len(known[trial - 1].turns)
        else:
            assert link == "#" or link[1:] in result.ids


@each_row("text", [text for text in hostile_text.CORPUS if len(text) > 5])
def test_hostile_names_add_no_markup(text):
    tame, wild = page_of(run_with_text("tame")), "".join(page.render(story_of(run_with_text(text))))
    wild.encode()
    assert Page(wild).tags == tame.tags
    assert "\u202e" not in wild
    assert "\x1b" not in wild


def run_with_text(text):
    """A run in which all that is shown is this text."""
    finding = build.finding("failed", criterion=text, reason=text, category=text)
    turn = build.turn(user=text, agent=text)
    trial = build.trial_result(findings=(finding,), turns=(turn,))
    test = build.test_result(text, trials=(trial,), tags=(text,), difficulty=text)
    lost = build.trial_result(status="failed", error=text, findings=())
    other = build.test_result("other", trials=(lost,))
    return build.results(
        build.suite_result(text, test, other),
        run=build.run_info(warnings=(text,), baseline_note=text),
        gate=build.decision(passed=False, exit_code=3, reasons=(text,)),
        coverage=Coverage(traced_trials=1, logic=(reach(text, base_trials=2, compared_trials=0, trials=0),)),
    )


def test_run_without_suites_or_tests_has_a_page():
    nothing = replace(build.results(), suites=(), score=None)
    assert page_of(nothing).text("h1").startswith("Evals passed")
    empty = replace(build.suite_result(), tests=(), score=None)
    assert page_of(build.results(empty, counts=nothing.counts)).rows == []


def test_page_lists_failed_checks_first_and_explains_a_missing_comparison():
    table = page_of(RUNS["bad"]).text("_gate")
    assert "min-score failed at least 80 55.5" in table
    assert table.index("category:tone failed") < table.index("max-errors passed at most 0 0")
    assert "max-drop not checked at most 2 n/a there is no baseline" in table
    comparison = page_of(RUNS["incomparable"]).text("overview")
    assert "not compared with the baseline: the models of judge or simulated user changed" in comparison


def test_test_table_rows_have_filter_and_sort_attributes_and_marks_of_changes():
    results = RUNS["proven"]
    story = story_of(results)
    result = test_table.of(story, embedded_data.tests_of(story))
    rows = {row.view.name: row for row in result.rows}
    worse = rows["Refund in time"]
    assert (worse.outcome, worse.of.became) == ("failed", Became.BROKE)
    titles = result.table.titles
    cells = dict(zip(titles, result.table.rows[result.rows.index(worse)].cells, strict=True))
    assert (cells["baseline"], cells["change"]) == ("100.0", "−100.0")
    assert cells["failed criterion"] == "The refund workflow starts"
    assert worse.of.changed
    assert worse.order < min(row.order for row in result.rows if not row.of.became)
    assert [row.order for row in result.rows] == sorted(row.order for row in result.rows)
    assert worse.facets["categories"] == ["tone"]
    shown = page_of(results).rows
    assert len(shown) == len(result.rows)
    assert sum("changed" in (row["data-marks"] or "") for row in shown) == result.marked("changed")
    (_, _, statuses), *_ = result.filters
    assert [choice.value for choice in statuses] == ["failed", "undecided", "passed"]
    same = [cases.played("Refund in time", "pph"), cases.played("Lost parcel", "ppp")]
    base = cases.base_run(build.suite_result("Refunds", *same))
    head = build.results(build.suite_result("Refunds", same[0], cases.played("Lost parcel", "pph")))
    run = cases.against(head, base)
    story = story_of(run, ComparisonRuns(base))
    rows = test_table.of(story, embedded_data.tests_of(story)).rows
    assert {row.view.name: (row.of.base, row.of.changed) for row in rows} == {
        "Refund in time": (pytest.approx(83.33, abs=0.01), False),
        "Lost parcel": (100.0, True),
    }


def test_only_known_process_measures_are_shown():
    def measures(**fields) -> str:
        return page_of(build.results(process=ProcessSummary(**fields))).text("_measures")

    outcome_only = measures(completion_rate=1, success_rate=0.5)
    assert "or with the error that the test expects 100 %" in outcome_only
    assert "of all steps" not in outcome_only
    times = Times(agent=3, user=1, judge=0, other=0)
    traced = measures(traced_trials=2, steps_per_trial=2.5, redundancy_rate=0.021, times=times)
    assert "of all steps 3 %" in traced
    assert "Failed calls" not in traced
    assert "n/a" not in traced
    assert "3.0 s (75 %)" in traced
    assert "measure" not in page_of(RUNS["undecided"]).text("_measures").split()


def reach(name, **fields):
    return Reach(**({"kind": LogicKind.RULE, "name": name, "trials": 3, "tests": 1, "wanted": True} | fields))


def test_page_coverage_lists_lost_unused_and_new_logic():
    logic = (
        reach("gone", trials=4, tests=2, compared_trials=0, base_trials=2),
        reach("flaky", trials=0, compared_trials=0, base_trials=1, by_chance=0.75),
        reach("never", trials=0),
        reach("new", compared_trials=3, base_trials=0, wanted=False),
        reach("plain", compared_trials=3, base_trials=3),
    )
    results = replace(RUNS["bad"], coverage=Coverage(traced_trials=3, logic=logic))
    seen = page_of(results)
    text = seen.text("_coverage")
    assert "3 rules used (2 of 4 that criteria need)." in text
    titles = ("Used in the baseline, no longer in the same tests", "gone rule 4 2 2 → 0 yes")
    titles += ("Needed by a criterion, never used", "never rule")
    titles += ("Used now, not in the same tests of the baseline", "new rule", "Everything that was used")
    parts = [text.index(title) for title in titles]
    assert parts == sorted(parts)
    message = "this part of the agent's logic was used in the baseline and no longer in the same tests"
    assert f"{message}: rule gone." in seen.text("_broken")
    unknown = replace(RUNS["bad"], coverage=Coverage())
    assert page_of(unknown).text("_coverage") == ""


def test_page_addresses_are_encoded_as_browsers_encode_them():
    test = build.test_result("50 % / day? #1 (it's *so*) \ud83d é")
    shown = embedded_data.tests_of(story_of(build.results(build.suite_result("A/B", test))))[0]
    name = "50%20%25%20%2F%20day%3F%20%231%20(it's%20*so*)%20%EF%BF%BD%20%C3%A9"
    assert shown.address() == f"#A%2FB/{name}"
    assert shown.address(2, 3, base=1) == f"#A%2FB/{name}/2/3/vs1"


def test_page_index_lists_every_test():
    results = RUNS["proven"]
    text = "".join(page.render(story_of(results)))
    index = json.loads(text.split('id="index">')[1].split("</script>")[0])
    assert [(one["suite"], one["test"]) for one in index["tests"]] == [
        (shown.suite, shown.test.name) for shown in embedded_data.tests_of(story_of(results))
    ]
