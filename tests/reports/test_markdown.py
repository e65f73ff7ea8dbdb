"""What the Markdown reports say in cases that the golden files do not show."""

import builders as build
import cases
import hostile

from ci_evals.domain.transcript import EndState, Integration
from ci_evals.reports import markdown


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
        assert "\n".join(sections) == markdown.summary(make())
        assert sections[0].startswith("## ")
        assert all(
            text.endswith("\n") and text.count("<details>") == text.count("</details>") for text in sections
        )


def test_the_suites_summary_links_to_its_tests():
    """By the name that the layout gave their files."""
    suite = build.suite_result("Refunds", build.test_result("A [test] (1)"))
    page = hostile.Page(markdown.suite_summary(build.results(suite), suite, ["A-test-(1)"]))
    assert page.links == ["A-test-%281%29.md"]
    assert "A [test] (1)" in page.text
