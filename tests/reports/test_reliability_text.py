"""What reports tell of judge and simulated user: wherever people look, and nothing where nothing is known."""

import html
import io
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import builders as build
import cases
import pytest
import reliability_cases as reliability
import report_texts
from each_row import each_row
from plans import make_plan

from ci_evals.adapters import prices
from ci_evals.cli.terminal import progress
from ci_evals.cli.terminal.console import Console
from ci_evals.domain import numbers
from ci_evals.domain.plan import Trial
from ci_evals.domain.progress import TrialFinished
from ci_evals.extensions.calibration.result import OldCalibration
from ci_evals.reports import console
from ci_evals.reports.annotations import Severity, annotations
from ci_evals.reports.markdown import comment, documents, summary
from ci_evals.reports.markdown.sections import truncated
from ci_evals.reports.names import JUNIT
from ci_evals.reports.story import failures
from ci_evals.reports.story.story import story_of
from ci_evals.support.redaction import Redactor

RUN = reliability.results_with_all_studies()
CONTEXT = comment.SummaryContext()
FLAG = "the judge's votes disagree on this one (60 % of pairs agree)"
LEFT_OUT = "3 trials excluded from every score"
DISAGREE = "The judge's votes disagree on 1 criterion"
EMPTY = "1 criterion measures nothing"


def report_texts_of(results) -> dict[str, str]:
    """All texts in which people look for the score of a run."""
    story, files = story_of(results), report_texts.files_of_run(results)
    return {
        "summary": documents.summary(story),
        "step summary": documents.step_summary(story, 900_000),
        "comment": comment.render(story, CONTEXT),
        "console": console.render(story),
        "page": files["report.html"].split("<script")[0],
        "suite": next(text for path, text in files.items() if "_summary.md" in path),
    }


TEXTS = report_texts_of(RUN)


def own_report(name: str) -> str:
    """The report of one test of the run."""
    suite = RUN.suites[0]
    test = next(test for test in suite.tests if test.name == name)
    return "".join(documents.test_report(story_of(RUN), suite, test))


@each_row("report", TEXTS)
def test_reliability_warnings_appear_in_every_report(report):
    text = TEXTS[report].replace("&#39;", "'").replace("&#x27;", "'")
    for warning in (LEFT_OUT, DISAGREE, EMPTY, "32 % of the judge's answers are from the cache"):
        assert warning in text


@pytest.mark.parametrize("name", ["good", "bad", "undecided", "invalid", "proven"])
def test_reliability_is_not_reported_without_evidence(name):
    for text in report_texts_of(cases.made(name)).values():
        assert "Krippendorff" not in text
        assert "from the cache" not in text
        assert "excluded from every" not in text
    known = story_of(cases.made(name)).judging
    assert (known.remarks, known.warnings, known.tables) == ((), (), ())


def test_short_comment_keeps_reliability_warnings():
    sections = summary.sections(story_of(RUN), CONTEXT)
    always = sum(len(section.text.encode()) + 1 for section in sections if section.rank == 0)
    text = truncated(sections, always + 600, "More is elsewhere.")
    assert LEFT_OUT in text
    assert DISAGREE in text
    assert "### Judge and simulated user" not in text
    assert "Left out here for lack of space" in text


def test_disagreeing_votes_are_flagged_in_every_report_but_only_in_their_test():
    trials = tuple(reliability.judged_trial(index, reliability.GRADED_FINDING) for index in (1, 2, 3))
    passed = build.test_result(reliability.TOO_LATE, trials=trials)
    base = cases.base_run(build.suite_result("Refunds", passed, **reliability.SUITE_MODELS))
    run = cases.against(RUN, base)
    assert [one.name for one in run.comparison.regressed] == [reliability.TOO_LATE]
    assert f"(⚠️ {FLAG})" in documents.comparison(story_of(run))
    assert f"(⚠️ {FLAG})" in documents.summary(story_of(run))
    assert FLAG in console.render(story_of(run))
    assert FLAG in console.comparison(story_of(run))
    files = report_texts.files_of_run(run)
    assert f"⚠️ {FLAG}" in next(text for path, text in files.items() if path.endswith("Refund-too-late.md"))
    assert f"! {FLAG}" in files[JUNIT]
    warnings = story_of(RUN).judging.of_criteria
    assert warnings.of("Refunds", reliability.TOO_LATE, reliability.KIND) == FLAG
    assert warnings.of("Refunds", reliability.IN_TIME, reliability.KIND) == ""
    assert warnings.of("Exchanges", reliability.TOO_LATE, reliability.KIND) == ""
    assert list(warnings.of_test("Refunds", reliability.IN_TIME)) == [reliability.CLEAR]


def remark_of(topic: str, results) -> str:
    (text,) = [remark.text for remark in story_of(results).judging.remarks if remark.topic == topic]
    return text


def test_outdated_calibration_and_judge_unfit_to_gate_are_reported_with_reasons():
    old = OldCalibration(at=reliability.STUDY_TIME, why="another judge: the prompt changed")
    sentence = "The one of 2026-11-20 says nothing of this run: another judge: the prompt changed."
    assert remark_of("Calibration", reliability.results_with_all_studies(studies=(old,))) == sentence
    whole, *_ = reliability.CALIBRATION.parts
    barred = replace(whole, may_gate=False, why="kappa may be below 0.4")
    study = replace(reliability.CALIBRATION, parts=(barred,))
    warnings = story_of(reliability.results_with_all_studies(studies=(study,))).judging.warnings
    assert "Compared with people, this judge should not gate: kappa may be below 0.4." in warnings


def test_study_names_its_judge_only_if_it_differs_from_run_judge():
    other = replace(reliability.JUDGE, models=("gpt-next",))
    run = reliability.results_with_all_studies(studies=(replace(reliability.ATTACKS, judge=other),))
    sentence = " Judged by gpt-next, which is another judge: the model changed."
    assert remark_of("Attacks", run).endswith(sentence)
    same = replace(reliability.JUDGE, prompt="prefer")
    run = reliability.results_with_all_studies(studies=(replace(reliability.PREFERENCE, judge=same),))
    run = replace(run, run=replace(run.run, config={"provider": same.provider}))
    assert "Judged by" not in remark_of("Preference", run)


NUMBERS = {
    "votes": "87 % (78 % to 94 %) agree, Krippendorff's alpha 0.71 (0.55 to 0.83), on 40 verdicts",
    "effective votes": "3 votes are worth at least 1.2 (1.1 to 1.4) independent ones",
    "votes on levels": "ordinal alpha 0.64 (0.43 to 0.79)",
    "users that broke character": "42 % (12 % to 79 %) of the simulated users broke character",
    "kappa of two people": "0.83 (0.69 to 0.93)",
    "labels that were counted": "38 of 42",
    "labels left out": "5 labels that cannot tell, 1 verdict on which people are even, 2 labels that",
    "what noise left out": "without 2 conversations that came to no score and 1 test with too few",
    "cost of noise": "$0.31",
    "standard error": "a standard error of 2.3 points",
    "variance of a source": "120.4 (60.0 to 200.0)",
    "variance between tests": "310.5 (100.0 to 800.0)",
    "gain for these tests": "12.2",
    "gain for any tests": "23.9",
    "sign test": "p = 0.34 over the tests",
    "bias of place": "70 % (52 % to 84 %)",
    "control of attacks": "1 of 10 became a pass, 10 % (1 % to 40 %)",
    "undecided under attack": "7",
    "undecided under probing": "6",
}
"""What stands for each number of judge and simulated user, where it could be overlooked."""


@each_row("report", ["summary", "page", "step summary", "suite"])
def test_every_reliability_number_is_in_each_report(report):
    text = html.unescape(re.sub("<[^>]+>", "|", TEXTS[report])).replace("\\$", "$")
    shown = {name: re.search(rf"(?<![\d.]){re.escape(number)}", text) for name, number in NUMBERS.items()}
    assert [name for name, match in shown.items() if match is None] == []


@each_row(("estimate", "text"), [
    (None, "n/a"),
    (reliability.estimate(0.5), "50 %"),
    (reliability.estimate(0.5, 0.25, 0.75), "50 % (25 % to 75 %)"),
    (reliability.estimate(1, 1, 1), "100 %"),
    (reliability.estimate(0.5, 0.7, 0.7), "50 % (70 %)"),
])  # fmt: skip
def test_interval_is_shown_only_if_it_differs_from_estimate(estimate, text):
    assert numbers.estimated_share(estimate) == text


def test_disagreement_warning_is_short_and_advises_another_judge():
    low = replace(reliability.AGREEMENT.criteria[0], name="The agent " * 40, test="T" * 300)
    whole = replace(reliability.AGREEMENT.whole, low=True)
    many = replace(reliability.AGREEMENT, criteria=(low,) * 20, whole=whole)
    items = story_of(reliability.results_with_all_studies(vote_agreement=many)).judging.warnings
    disagree = next(one for one in items if "disagree" in one)
    assert "disagree on 20 criteria of 20" in disagree
    assert "…” in TTT" in disagree
    assert "; and 18 more. Overall only 87 % (78 % to 94 %) agree: another judge" in disagree
    assert max(map(len, items)) < 560


def test_junit_skips_test_whose_trials_are_all_excluded():
    root = ET.fromstring(report_texts.files_of_run(RUN)[JUNIT])
    cases_by_name = {case.get("name"): case for case in root.iter("testcase")}
    skipped = cases_by_name[reliability.LOST].find("skipped")
    assert skipped.get("message").startswith("2 trials excluded: ")
    assert cases_by_name[reliability.TOO_LATE].find("failure") is not None


def test_less_reliable_criteria_are_annotated_as_warnings_at_their_lines():
    result = [one for one in annotations(story_of(RUN)) if one.title.startswith("Less reliable")]
    assert [(one.severity, one.line) for one in result] == [(Severity.WARNING, 12), (Severity.WARNING, 31)]
    assert FLAG in result[1].message


def test_test_report_shows_dimensions_of_grade_and_reason_of_each_vote():
    report = own_report(reliability.IN_TIME)
    assert "Graded 0.75 of 1; passed from 0.7 on." in report
    assert re.search(r"\| correctness \| right\s+\|\s+1\.00 \|\s+2 \| The amount is right\.", report)
    assert "The day is named &#124; late." in report
    report = own_report(reliability.TOO_LATE)
    assert "3 votes: 1 passed, 2 failed" in report
    assert "- ✅ passed, `gpt-5-mini`, rests on turn 1" in report
    assert "> You could have read that on our page." in report


def test_suite_report_covers_only_its_own_judge_and_user():
    trials = (reliability.judged_trial(1, reliability.GRADED_FINDING),)
    tests = {"Exchanges": [build.test_result("Wrong size", trials=trials)]}
    tests["Refunds"] = reliability.sample_tests()
    suites = (build.suite_result(name, *own, **reliability.SUITE_MODELS) for name, own in tests.items())
    known = {"vote_agreement": reliability.AGREEMENT, "user_checks": reliability.USER_CHECKS}
    files = report_texts.files_of_run(build.results(*suites, **known))
    own, other = (
        next(text for path, text in files.items() if path.startswith(name) and path.endswith("_summary.md"))
        for name in ("Exchanges", "Refunds")
    )
    assert "excluded" not in own
    assert "1 by a model as well; 0 % (0 % to 80 %) of the simulated users broke character." in own
    assert "3 trials excluded from every score" in other
    assert "meta text 3, repeats 3" in other


def test_excluded_trial_is_reported_and_logged_with_turn_where_user_broke_character():
    message = own_report(reliability.LOST)
    assert "- repeats in turn 2: it says again what it said in turn 1" in message
    assert "> As an AI language model" in message
    assert "meta text on leaving" in message
    (errors, *_) = failures.errors_by_cause(RUN.suites)
    assert (errors.what, errors.reason, errors.tests) == (
        "3 trials excluded, since the simulated user broke character",
        "repeats, meta text",
        (reliability.TOO_LATE, reliability.LOST),
    )
    log = io.StringIO()
    plan = make_plan({"name": reliability.LOST})
    watch = progress.lines(plan, Console(log, Redactor()), prices.bundled)
    watch(TrialFinished(Trial(0, 0, 1), reliability.excluded_trial()))
    assert log.getvalue().startswith("[1/1] S › Lost parcel  not scored (excluded)  2 turns")
    assert "the simulated user broke character in turn 2 (repeats)" in log.getvalue()
