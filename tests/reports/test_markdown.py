"""What the Markdown reports say in cases that the golden files do not show."""

import json

import builders as build
import cases
import hostile

from ci_evals.domain.transcript import EndState, Integration
from ci_evals.domain.verdict import Cause
from ci_evals.reports import layout, markdown


def report_of(*exchanges, **fields) -> str:
    """The report of a test of one trial with these exchanges."""
    trial = build.trial_result(exchanges=exchanges, **fields)
    return markdown.test_report(build.suite_result(), build.test_result(trials=(trial,)))


def test_no_trace_is_not_the_same_as_nothing_done():
    """A trace that never came is no evidence that the agent did nothing."""
    nothing = dict.fromkeys(("workflows", "params", "rules", "integrations"))
    assert "no trace came with this reply" in report_of(build.exchange(**nothing))
    assert "nothing: no workflow, parameter, rule or integration" in report_of(build.exchange())


def test_what_the_agent_did_stands_beside_its_reply():
    """Workflows, parameters, rules and integrations, and where the trace had to stand in for them."""
    text = report_of(
        build.exchange(
            workflows=("REFUND", "AUDIT"),
            workflows_derived=True,
            params={"reason": "too_small"},
            named_params=("amount",),
            rules=("R1",),
            integrations=(Integration(code="orders", status=503), Integration(code="faq", type="RAG")),
        )
    )
    assert "workflows (from the trace): `REFUND`, `AUDIT`" in text
    assert '`reason = "too_small"`, `amount (value not told)`' in text
    assert "rules: `R1` · integrations: `orders (503)`, `faq (RAG)`" in text


def test_raw_replies_are_folded_and_only_there_with_debug():
    """The whole reply as JSON, in a block that nothing in it can close."""
    text = report_of(build.exchange(raw={"text": "```\n</details>"}))
    assert "<summary>Raw reply</summary>\n\n```" in text
    assert hostile.Page(text).tags.count("details") == 2
    assert "Raw reply" not in report_of(build.exchange())


def test_every_attempt_is_told():
    """A trial that was played again says why."""
    lost, won = (
        cases.Attempt(status=EndState.FAILED, error="timed out"),
        cases.Attempt(status=EndState.COMPLETED),
    )
    assert "2 attempts: failed (timed out), then completed." in report_of(
        build.exchange(), attempts=(lost, won)
    )


def test_one_quotation_serves_criteria_that_fail_in_one_place():
    """The exchange that shows two failures is quoted once."""
    failures = [build.finding("failed", criterion=name, evidence=(1,)) for name in ("One", "Two")]
    test = build.test_result(trials=(build.trial_result(findings=failures),))
    text = markdown.summary(build.results(build.suite_result("Refunds", test)))
    assert text.count("I want my money back") == 1
    assert text.index("**One**") < text.index("**Two**") < text.index("I want my money back")


def test_the_summary_is_the_sum_of_its_sections():
    """Each section is Markdown of its own: whole folds, a line end, the verdict in the first."""
    for make in cases.CASES.values():
        sections = markdown.summary_sections(make())
        texts = [section.text for section in sections]
        assert "\n".join(texts) == markdown.summary(make())
        assert texts[0].startswith("## ")
        assert all(
            text.endswith("\n") and text.count("<details>") == text.count("</details>") for text in texts
        )


def test_every_section_of_the_summary_has_a_name():
    """In Markdown, by which a note can say what was left out; nothing in a name is live."""
    text = "@octocat [a](https://evil.example) :shipit: <b>"
    sections = markdown.summary_sections(hostile.poisoned(cases.bad(), text))
    for name, _ in sections:
        assert hostile.Page(name).tags == ["p"]
        assert not hostile.Page(name).live
    assert [section.name for section in markdown.summary_sections(cases.bad())] == [
        "the verdict",
        "the gate",
        "the suites' scores",
        "the failed test Refund after the window",
        "the failed test Exchange for another size",
        "the flaky tests",
        "all tests of Refunds",
        "all tests of Exchanges",
        "the run's facts",
    ]


def test_the_runs_id_can_be_copied():
    """As code it is not broken, as a commit's id in the text would be."""
    results = build.results(run=build.run_info(id="3aceb90018667fc1"))
    assert markdown.summary(results).count("<sub>Run `3aceb90018667fc1`, started") == 1


def failed_before_any_reply(provider: str):
    """A run of one trial that failed with both its verdicts undecided."""
    findings = (
        build.finding("undecided", cause=Cause.NO_EVIDENCE, reason="no reply had a trace"),
        build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge"),
    )
    trial = build.trial_result(status=EndState.FAILED, error="refused", exchanges=(), findings=findings)
    suite = build.suite_result("Refunds", build.test_result(trials=(trial,)))
    return build.results(suite, run=build.run_info(config={"provider": provider})), suite


def test_a_failed_trial_is_told_once():
    """That it failed, and not each verdict that therefore could not be reached."""
    results, suite = failed_before_any_reply("openai")
    for text in (markdown.summary(results), markdown.suite_summary(results, suite, ["x"])):
        assert "**1 trial failed**: refused" in text
        assert "verdict undecided" not in text
        assert "No judge was configured" not in text


def test_offline_every_judged_criterion_is_named_undecided():
    """Also those of failed trials: without a judge they would be undecided in any case."""
    results, suite = failed_before_any_reply("offline")
    for text in (markdown.summary(results), markdown.suite_summary(results, suite, ["x"])):
        assert "No judge was configured: 1 judged criterion is undecided." in text


def test_the_suites_summary_links_to_its_tests():
    """By the name that the layout gave their files."""
    suite = build.suite_result("Refunds", build.test_result("A [test] (1)"))
    page = hostile.Page(markdown.suite_summary(build.results(suite), suite, ["A-test-(1)"]))
    assert page.links == ["A-test-%281%29.md"]
    assert "A [test] (1)" in page.text


def test_the_summary_tells_of_the_baseline_right_after_the_gate():
    """The most important first: what fails now, before all that failed; what was not compared, far below."""
    assert [section.name for section in markdown.summary_sections(cases.proven())] == [
        "the verdict",
        "the gate",
        "the comparison with the baseline",
        "the newly failing tests",
        "the fixed tests",
        "the suites' scores",
        "the failed test Refund in time",
        "the failed test Wrong size",
        "the flaky tests",
        "errors and undecided",
        "the tests not compared",
        "all tests of Refunds",
        "all tests of Exchanges",
        "the run's facts",
    ]


def test_an_exchange_is_quoted_once():
    """A newly failing test that is shown among the failed ones refers to it; alone it shows it itself."""
    results = cases.proven()
    names = ("the newly failing tests", "the failed test Refund in time")
    sections = {name: text for name, text in markdown.summary_sections(results) if name in names}
    newly, failed = (sections[name] for name in names)
    assert "REFUND\\_REQUEST was never executed (with the exchange below)" in newly
    assert "I want my money back for order 1042" not in newly
    assert "I want my money back for order 1042" in failed
    assert "I want my money back for order 1042" in markdown.comparison(results)


def test_nobody_is_called_worse_by_chance():
    """A suspect is one until it is confirmed, and no report speaks of a regression of its own accord."""
    for make in cases.COMPARED.values():
        sections = markdown.summary_sections(make())
        assert not [name for name, text in sections[2:] if "regress" in text]
    text = markdown.summary(cases.proven())
    assert "**Refunds › Refund in time**: 100.0 → 0.0, **confirmed** (p = 0.004)" in text
    assert text.count("**confirmed**") == 1


def test_long_lists_end_with_how_many_more():
    """A summary is read by people."""
    head = [cases.played(f"Test {number}", "f") for number in range(50)]
    base = [cases.played(f"Test {number}", "p") for number in range(50)]
    run = build.results(build.suite_result("Refunds", *head))
    run = cases.against(run, cases.base_run(build.suite_result("Refunds", *base)))
    (newly,) = [text for name, text in markdown.summary_sections(run) if name == "the newly failing tests"]
    assert "### 50 newly failing tests" in newly
    assert newly.count("→") == 20
    assert newly.endswith("- and 30 more tests\n")
    assert "- and 30 more tests\n" in markdown.comparison(run)


def test_a_comparison_without_checks_gives_no_verdict():
    """`compare` without options asks for nothing."""
    told = markdown.comparison(cases.confirmed().model_copy(update={"gate": build.decision()}))
    assert told.startswith("## ci-evals: against the baseline\n\nScore 90.0 (66.9 to 97.1), baseline 95.8")
    assert "### Gate" not in told


def test_a_run_without_a_baseline_or_new_fields_still_has_its_reports():
    """A results file of an earlier version lacks statistics, comparison, odds, latency."""
    made = layout.dump(cases.confirmed())
    older = json.loads(made)
    for name in ("comparison", "odds", "latency", "passAtK", "passHatK", "interval"):
        del older[name]
    del older["run"]["confirmation"], older["usage"]["pricesAsOf"], older["usage"]["unpriced"]
    for suite in older["suites"]:
        for name in ("passAtK", "passHatK", "interval"):
            del suite[name]
        for test in suite["tests"]:
            del test["statistics"]
    results = layout.load(json.dumps(older), "_results.json")
    files = layout.files(results)
    assert "score 90.0" in files[layout.SUMMARY]
    assert "baseline" not in files[layout.SUMMARY]
    assert "all of" not in files["Refunds/2026-11-21T09-30-00Z/_summary.md"]
