"""The view of one test: its verdicts, its conversation, and that of the baseline beside it."""

import json
import re
import shlex
from dataclasses import replace

import builders as build
import pytest

from ci_evals.domain.actions import views_of
from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import EndState, Integration, ProbeResult, ToolCall
from ci_evals.reports.page import embedded_data
from ci_evals.reports.page import page as pages
from ci_evals.reports.story.story import story_of

pytestmark = pytest.mark.browser
OPENED = "([number, trial]) => opened?.number === number && opened.trial?.index === trial"
"""A trial of a test is shown."""


@pytest.fixture
def write_page(tmp_path):

    def write(test, change=str):
        file = tmp_path / "report.html"
        results = build.results(build.suite_result("Refunds", test))
        file.write_text(change("".join(pages.render(story_of(results)))), "utf-8")
        return file

    return write


@pytest.fixture
def show(look, write_page):

    def show(name="t", *, trial, **options):
        test = build.test_result(name, trials=(build.trial_result(**trial),))
        results = build.results(build.suite_result("Refunds", test))
        page = look(write_page(test), at(results, name), **options)
        page.wait_for_selector("#test .turn")
        return page

    return show


def at(results: Results, test: str, *place, base: int | None = None) -> str:
    shown = next(shown for shown in embedded_data.tests_of(story_of(results)) if shown.test.name == test)
    return shown.address(*place, base=base)


def test_probed_state_is_shown_with_failed_probe_as_unknown(show):
    probes = {
        "order <b>": ProbeResult(value=[{"status": "refunded"}]),
        "mail": ProbeResult(error="the http step got no answer from mail"),
        "none": ProbeResult(value=None),
    }
    state = show(trial={"turns": (build.turn(),), "probes": probes}).locator("#test .state")
    assert state.locator("h3").inner_text() == "State after the conversation"
    assert state.locator("dt").all_inner_texts() == ["order <b>", "mail", "none"]
    assert json.loads(state.locator("pre").first.inner_text()) == [{"status": "refunded"}]
    assert state.locator(".bad").all_inner_texts() == ["unknown: the http step got no answer from mail"]
    assert state.locator("pre").last.inner_text() == "null"


def test_tool_calls_are_shown_with_arguments_and_results_folded(show):
    calls = (
        ToolCall(name="look_up", arguments={"order": "<img src=x>"}, result={"paid": 42}, status="ok"),
        ToolCall(name="refund", arguments={"note": "x" * 900}, status="error", duration_ms=250, agent="pay"),
        ToolCall(name="close", not_captured="cut off"),
    )
    listed = show(trial={"turns": (build.turn(**views_of(calls)),)}).locator(".actions .action")
    texts = [re.sub(r"\s+", " ", text) for text in listed.all_inner_texts()]
    assert texts == [
        'look_up(order: "<img src=x>") ok Result',
        "refund error · 0.25 s · by pay Arguments",
        "close arguments unknown: cut off",
    ]
    listed.nth(1).get_by_text("Arguments", exact=True).click()
    assert '"note": "xxx' in listed.nth(1).locator("pre").inner_text()
    listed.nth(0).get_by_text("Result", exact=True).click()
    assert '"paid": 42' in listed.nth(0).locator("pre").inner_text()


def test_verdict_link_focuses_its_turn_and_sets_address_and_turn_links_back(look, compared):
    head = compared.head
    findings = [
        (test, one) for suite in head.suites for test in suite.tests for one in test.trials[0].findings
    ]
    test, finding = next((test, one) for test, one in findings if one.outcome == "failed" and one.evidence)
    page = look(compared.page, at(head, test.name, 1))
    verdict = page.locator(".verdict.failed", has_text=finding.criterion)
    verdict.get_by_role("link", name=str(finding.evidence[0]), exact=True).click()
    page.wait_for_selector(".turn[aria-current]")
    assert page.evaluate("document.activeElement === document.querySelector('.turn[aria-current]')")
    number, turn = page.evaluate("opened.number"), finding.evidence[0]
    address = {"number": number, "trial": 1, "turn": turn, "base": None}
    assert page.evaluate("parseAddress(location.hash)") == address
    page.locator(".turn[aria-current]").get_by_role("button", name=finding.criterion).click()
    assert finding.criterion in page.evaluate("document.activeElement.innerText")


def test_test_with_300_trials_opens_at_its_errored_trial(look, write_page):
    trials = [build.trial_result(index=number) for number in range(1, 301)]
    trials[199] = replace(trials[199], status=EndState.FAILED)
    page = look(write_page(build.test_result(trials=tuple(trials))))
    page.evaluate("location.hash = addressOf(0)")
    page.wait_for_selector("#test .turn")
    assert page.evaluate("opened.trial.index") == 200
    room = page.get_by_role("navigation", name="Trials").bounding_box()
    link = page.locator(".trials [aria-current]").bounding_box()
    assert room["height"] < 300
    assert room["y"] < link["y"] < room["y"] + room["height"]


def test_baseline_is_shown_beside_the_trial_at_the_first_divergence(look, compared):
    head = compared.head
    changes = [(one.name, one.first_divergence) for one in head.comparison.regressed if one.first_divergence]
    name, divergence = next((name, one) for name, one in changes if one.turn and one.only is None)
    page = look(compared.page, at(head, name))
    bases = page.get_by_role("navigation", name="Compare with the baseline").get_by_role("link")
    bases.nth(divergence.base_trial).click()
    page.wait_for_selector(".both .diverges")
    assert f"in turn {divergence.turn}" in page.locator(".divergence-notice").inner_text()
    turn = page.locator(".turn.diverges")
    assert "First difference" in turn.inner_text()
    assert f"Turn {divergence.turn}" in turn.inner_text()
    for actions, mark in ((divergence.head, "only here"), (divergence.base, "only in the baseline")):
        marked = turn.locator(".differs", has_text=mark).all_inner_texts()
        assert len(marked) == len(actions)
        assert all(action.name in text for action, text in zip(actions, marked, strict=True))
    assert turn.evaluate("node => node === document.activeElement")
    assert page.evaluate("parseAddress(location.hash).base") == divergence.base_trial
    assert 0 <= turn.bounding_box()["y"] < 450


def test_keys_move_through_turns_trials_and_baseline_unless_switched_off(look, compared):
    head = compared.head
    test = next(test for suite in head.suites for test in suite.tests if len(test.trials[0].turns) > 1)
    page = look(compared.page)
    page.locator(f'#tests a[href="{at(head, test.name)}"]').focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#test .turn")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    trial = page.evaluate("opened.trial.index")
    for key, turn in (("j", 1), ("j", 2), ("k", 1)):
        page.keyboard.press(key)
        assert page.evaluate("parseAddress(location.hash).turn") == turn
        assert f"Turn {turn}" in page.evaluate("document.activeElement.innerText")
    forth, back, other = ("]", "[", trial + 1) if trial == 1 else ("[", "]", trial - 1)
    page.keyboard.press(forth)
    page.wait_for_function("(index) => opened.trial.index === index", arg=other)
    for key, held, index in (
        (back, {"ctrlKey": True, "altKey": True}, trial),  # as AltGr is told
        (forth, {"altKey": True}, other),  # as Option is
    ):
        page.evaluate("(key) => dispatchEvent(new KeyboardEvent('keydown', key))", {"key": key, **held})
        page.wait_for_function("(index) => opened.trial.index === index", arg=index)
    assert page.evaluate("document.activeElement.tagName") == "H2"
    page.keyboard.press("b")
    page.wait_for_selector(".both")
    page.keyboard.press("b")
    page.wait_for_selector(".turns:not(.both)")
    page.get_by_text("Keys", exact=True).click()
    page.get_by_label("Use letter and bracket keys").uncheck()
    page.evaluate("document.activeElement.blur()")
    before = page.evaluate("location.hash")
    page.keyboard.press("j")
    assert page.evaluate("location.hash") == before
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview:not([hidden])")
    assert page.evaluate("document.activeElement.hash") == at(head, test.name)


def test_last_of_tests_opened_in_quick_succession_is_shown(look, compared):
    page = look(compared.page)
    page.evaluate("TESTS.forEach((_, number) => openTest({ number, trial: 2, turn: 1, base: null }))")
    page.wait_for_function(OPENED, arg=[len(compared.head.suites[0].tests) - 1, 2])
    page.wait_for_timeout(50)
    assert page.locator("#test h1").inner_text() == compared.head.suites[0].tests[-1].name


def test_text_is_cut_at_a_whole_character(look, compared):
    # Half of a surrogate pair is no character.
    assert look(compared.page).evaluate("cut('x\\u{1f600}', 2)") == "x…"


def test_longest_outcome_fits_a_narrow_phone(show):
    undecided = build.finding("undecided", kind="judged", cause="judge_error")
    page = show(trial={"findings": (undecided,)}, width=320)
    assert "undecided (a model gave no usable answer)" in page.locator("#test .verdict").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_actions_of_each_turn_are_shown_and_missing_trace_differs_from_no_actions(show):
    called = (Integration(code="shop", status=503, error="down"), Integration(code="faq", type="RAG"))
    third = {"workflows": ("REFUND",), "workflows_derived": True, "params": {"code": "b", "size": None}}
    third |= {"named_params": ("secret",), "integrations": called, "output_tokens": 1200}
    talk = (
        build.turn(1, workflows=None, params=None, rules=None, integrations=None),
        build.turn(2, params={"code": "a", "size": "undefined"}, user_source="auto"),
        build.turn(3, **third, error_response=True, handed_over=True),
        build.turn(4, agent=" \u200b", params={"size": 3}),
        build.turn(5),
    )
    page = show(trial={"turns": talk})
    texts = [re.sub(r"\s+", " ", text) for text in page.locator(".actions").all_inner_texts()]
    known = 'workflows (from the trace) REFUND parameters code = "b" was "a" size = null'
    known += " secret (value not reported) integrations shop status 503 error: down faq RAG · no HTTP status"
    known += " error response no detail escalation handed over to a person tokens unknown input, 1,200 output"
    nothing = "did nothing: no workflow, parameter, rule or integration"
    first = ["did this reply has no trace", 'parameters code = "a" size = "undefined"']
    assert texts == [*first, known, "parameters size = 3 new", nothing]
    assert "(no text)" in page.locator(".message.agent").nth(3).inner_text()


def test_large_trace_is_rendered_only_when_opened_and_in_full_only_on_request(show):
    page = show(trial={"turns": (build.turn(trace={"lines": ["x" * 100] * 10_000}),)})
    assert page.locator(".raw pre").count() == 0
    page.get_by_text("Trace", exact=True).click()
    assert len(page.locator(".raw pre").inner_text()) < 25_000
    page.get_by_role("button", name=re.compile("Show all 1,")).click()
    assert len(page.locator(".raw pre").text_content() or "") > 1_000_000


def test_large_integers_are_shown_exactly_in_parameters_and_trace(show):
    number = 12345678901234567891
    params = {"order": number, "part": 0.1234567890123456789}
    page = show(trial={"turns": (build.turn(params=params, trace=[number, {"x": 10**400}]),)})
    texts = [f"order = {number}", "part = 0.12345678901234568"]
    assert page.locator(".action code").all_inner_texts() == texts
    page.get_by_text("Trace", exact=True).click()
    assert json.loads(page.locator(".raw pre").inner_text()) == [number, {"x": 10**400}]


def test_link_to_the_current_turn_moves_focus_again(look, compared):
    page = look(compared.page)
    page.evaluate("location.hash = addressOf(0, 1, 1)")
    page.wait_for_selector(".turn[aria-current]")
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' }); document.activeElement.blur()")
    page.locator(".turn h4 a").first.click()
    assert page.evaluate("document.activeElement === document.querySelector('.turn')")
    page.go_back()
    page.wait_for_selector("#overview:not([hidden])")


def test_conversation_and_rerun_command_are_copied_without_invisible_characters(show):
    name = "Isn't it $(late)\u202e, `really`?"
    talk = (build.turn(agent="First line\nsecond \u200bline", workflows=("REFUND",)),)
    page = show(name, trial={"turns": talk}, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the command").click()
    page.get_by_text("Copied: command to rerun this test.").wait_for()
    command = page.evaluate("navigator.clipboard.readText()")
    option = "--test=Isn't it $(late), `really`?"
    assert shlex.split(command) == ["ci-evals", "run", "evals/refunds.json", option]
    page.get_by_role("button", name="Copy the conversation").click()
    page.get_by_text("Copied: conversation.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == (
        "# Refunds › Isn't it $(late), `really`?, trial 1\n\n"
        "**1 · User** (fixed)\n\n> I want my money back.\n\n"
        "**1 · Agent** after 1.25 s · workflows: REFUND\n\n> First line\n> second line\n"
    )


def test_damaged_data_and_an_old_browser_show_a_message(look, write_page):
    cut = write_page(build.test_result(), change=lambda text: text.replace(' id="t0">', ' id="t0">AAAA'))
    page = look(cut, "#Refunds/Refund%20for%20a%20cancelled%20order")
    page.get_by_text("The data of this test cannot be read").wait_for()
    assert page.get_by_role("link", name="All tests").is_visible()
    page.evaluate("delete window.DecompressionStream; openTest({ number: 0, trial: null })")
    page.get_by_text("This browser cannot decompress the conversations").wait_for()
