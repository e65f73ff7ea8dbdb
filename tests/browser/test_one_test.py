"""The view of one test: its verdicts and its conversation, and the baseline's beside it."""

import json
import re
import shlex
from itertools import product

import builders as build
import pytest

from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import EndState, Integration
from ci_evals.reports import numbers
from ci_evals.reports.facts import labels
from ci_evals.reports.page import address, embedded_data
from ci_evals.reports.page import page as pages
from ci_evals.reports.page.comparison_runs import ComparisonRuns
from ci_evals.scoring.comparison import divergence
from ci_evals.scoring.comparison.pairing import TestPair
from ci_evals.scoring.scores import Counting

pytestmark = pytest.mark.browser

OPENED = "([number, trial]) => opened?.number === number && opened.trial?.index === trial"
"""Whether a trial of a test is shown."""


@pytest.fixture
def written(tmp_path):
    """Writes a page of these tests, in one suite, and gives its path."""

    def write(*tests, change=str):
        file = tmp_path / "report.html"
        results = build.results(build.suite_result("Refunds", *tests))
        file.write_text(change("".join(pages.render(results))), "utf-8")
        return file

    return write


@pytest.fixture
def show(look, written):
    """Opens a page of one test, at this test."""

    def show(test, **options):
        results = build.results(build.suite_result("Refunds", test))
        page = look(written(test), at(results, test.name), **options)
        page.wait_for_selector("#test .turn")
        return page

    return show


def at(results: Results, test: str, *place, base: int | None = None) -> str:
    """The address of a place in the test of this name."""
    shown = next(shown for shown in embedded_data.tests_of(results, None) if shown.test.name == test)
    return address.of(shown, *place, base=base)


def test_a_verdict_leads_to_its_turn_and_back(look, compared):
    """The turn is marked, has the focus, and stands in the address; from it one gets to the verdict."""
    head = compared.head
    test, finding = next(
        (test, finding)
        for suite in head.suites
        for test in suite.tests
        for finding in test.trials[0].findings
        if finding.outcome == "failed" and finding.evidence
    )
    page = look(compared.page, at(head, test.name, 1))
    verdict = page.locator(".verdict.failed", has_text=finding.criterion)
    verdict.get_by_role("link", name=str(finding.evidence[0]), exact=True).click()
    page.wait_for_selector(".turn[aria-current]")
    assert page.evaluate("document.activeElement === document.querySelector('.turn[aria-current]')")
    assert page.evaluate("read(location.hash)") == {
        "number": page.evaluate("opened.number"),
        "trial": 1,
        "turn": finding.evidence[0],
        "base": None,
    }
    page.locator(".turn[aria-current]").get_by_role("button", name=finding.criterion).click()
    assert finding.criterion in page.evaluate("document.activeElement.innerText")


PARTINGS = """async (number) => {
  const { head, base } = await factsOf(number);
  const sides = [["t", head], ["b", base]].map(([side, { packs, test }]) =>
    Promise.all(test.trials.map((_, place) => turnsOf(side, number, packs, place))));
  const [here, there] = await Promise.all(sides);
  const told = (deeds) => (deeds ?? []).map(({ kind, name, value }) => ({ kind, name, value }));
  return here.map((mine) => there.map((theirs) => {
    const found = partingOf(mine, theirs);
    return found.untold ? null : { turn: found.turn, userDiffers: found.userDiffers,
      agentDiffers: found.agentDiffers ?? null, only: found.only ?? null,
      head: told(found.head), base: told(found.base), unknown: found.unknown ?? [] };
  }));
}"""
"""Where each trial of a test parts from each of the baseline, as the script finds it."""


def test_the_script_finds_the_partings_that_the_comparison_finds(look, compared, tmp_path):
    """Of every trial beside every one of the baseline: the turn, the deeds, and the user's part in it."""
    call = Integration(code="shop", status=200)
    talks = (
        (build.turn(1),),
        (build.turn(1), build.turn(2)),
        (build.turn(1, user="Hello?"), build.turn(2, workflows=("B", "A", "A"))),
        (build.turn(1, workflows=None, params=None, rules=None, integrations=None),),
        (build.turn(1, params={"a": {"x": 1, "y": [None, "é"]}, "b": " Undefined "}, rules=None),),
        (build.turn(1, params={"b": None, "a": {"y": [None, "é"], "x": 1.0}}, rules=("r",)),),
        (build.turn(1, params={"a": 1.5, "n": 12345678901234567891}, named_params=("n",)),),
        (build.turn(1, params=None, named_params=("n", "m"), integrations=(call, call)),),
        (build.turn(1, integrations=(call.model_copy(update={"status": None}),)),),
        (build.turn(1, params={"a": 10**21, "b": "\ufeff", "c": "\x1c undefined\x85"}),),
        (build.turn(1, params={"a": 1e21, "b": "", "d": "unde fined"}),),
        (),
    )
    made = build.results(
        build.suite_result(
            "S",
            build.test_result(
                trials=tuple(
                    build.trial_result(index=number, turns=talk) for number, talk in enumerate(talks, 1)
                )
            ),
        )
    )
    file = tmp_path / "report.html"
    file.write_text("".join(pages.render(made, ComparisonRuns(baseline=made))), "utf-8")
    ends = set()
    for page, head, base in (
        (look(file), made, made),
        (look(compared.page), compared.head, compared.base),
    ):
        for shown in embedded_data.tests_of(head, base):
            assert shown.base
            for mine, row in zip(shown.test.trials, page.evaluate(PARTINGS, shown.number), strict=True):
                for theirs, told in zip(shown.base.trials, row, strict=True):
                    wanted = divergence.between(mine, theirs)
                    without = {"head_trial", "base_trial"}
                    assert told == (wanted and wanted.model_dump(mode="json", by_alias=True, exclude=without))
                    ends.add(wanted and (wanted.only, wanted.turn, wanted.user_differs))
    assert len(ends) > 5


BESIDE = """async (told) => {
  for (const one of told) {
    const facts = await factsOf(one.number);
    const place = facts.head.test.trials.findIndex((trial) => trial.index === one.head);
    one.base = facts.base.test.trials[contrary(facts, place)].index;
  }
  return told;
}"""
"""Which trial of the baseline the script holds against one of this run."""


def test_the_script_holds_those_trials_against_each_other_that_the_comparison_does(look, tmp_path):
    """First one that came out the contrary, and one that broke off only where all did."""
    passed, failed = build.trial_result(), build.trial_result(findings=(build.finding("failed"),))
    broken_off = build.trial_result(status="failed", findings=())
    sides = [
        tuple(trial.model_copy(update={"index": number}) for number, trial in enumerate(trials, 1))
        for trials in product((passed, failed, broken_off), repeat=2)
    ]
    pairs = list(product(sides, repeat=2))
    head, base = (
        build.results(
            build.suite_result(
                "S",
                *(build.test_result(f"T{number}", trials=pair[side]) for number, pair in enumerate(pairs)),
            )
        )
        for side in (0, 1)
    )
    file = tmp_path / "report.html"
    file.write_text("".join(pages.render(head, ComparisonRuns(baseline=base))), "utf-8")
    wanted, counting = [], Counting(offline=False)
    for shown in embedded_data.tests_of(head, base):
        assert shown.base
        found = divergence.of_test(TestPair("S", shown.test, shown.base), counting, counting)
        assert found
        wanted.append({"number": shown.number, "head": found.head_trial, "base": found.base_trial})
    asked = [{"number": one["number"], "head": one["head"]} for one in wanted]
    assert look(file).evaluate(BESIDE, asked) == wanted


def test_the_worst_of_many_trials_is_shown(look, written):
    """A test that erred opens where it did, and hundreds of trials leave room for the conversation."""
    trials = [build.trial_result(index=number) for number in range(1, 301)]
    trials[199] = trials[199].model_copy(update={"status": EndState.FAILED})
    page = look(written(build.test_result(trials=tuple(trials))))
    page.evaluate("location.hash = addressOf(0)")
    page.wait_for_selector("#test .turn")
    assert page.evaluate("opened.trial.index") == 200
    room = page.get_by_role("navigation", name="Trials").bounding_box()
    link = page.locator(".trials [aria-current]").bounding_box()
    assert room
    assert link
    assert room["height"] < 300
    assert room["y"] < link["y"] < room["y"] + room["height"]


def test_the_baseline_stands_beside_and_the_parting_is_shown(look, compared):
    """One click on the trial that passed; the turn where they part is marked, told, and in sight."""
    head = compared.head
    change = next(
        change
        for change in head.comparison.regressed
        if change.first_divergence and change.first_divergence.turn and change.first_divergence.only is None
    )
    page = look(compared.page, at(head, change.name))
    page.get_by_role("navigation", name="Baseline beside").get_by_role("link").nth(
        change.first_divergence.base_trial
    ).click()
    page.wait_for_selector(".both .parts")
    assert f"in turn {change.first_divergence.turn}" in page.locator(".told-parting").inner_text()
    parts = page.locator(".turn.parts")
    assert "They part here" in parts.inner_text()
    assert f"Turn {change.first_divergence.turn}" in parts.inner_text()
    for deeds, mark in (
        (change.first_divergence.head, "only here"),
        (change.first_divergence.base, "only in the baseline"),
    ):
        marked = parts.locator(".differs", has_text=mark).all_inner_texts()
        assert len(marked) == len(deeds)
        assert all(deed.name in text for deed, text in zip(deeds, marked, strict=True))
    assert parts.evaluate("node => node === document.activeElement")
    assert page.evaluate("read(location.hash).base") == change.first_divergence.base_trial
    box = parts.bounding_box()
    assert box
    assert 0 <= box["y"] < 450


def test_keys_alone_lead_through_a_test(look, compared):
    """Turns, trials, the baseline, and back to where the reader came from; unless the keys are off."""
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
        assert page.evaluate("read(location.hash).turn") == turn
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
    page.get_by_label("Letters and brackets work").uncheck()
    page.evaluate("document.activeElement.blur()")
    before = page.evaluate("location.hash")
    page.keyboard.press("j")
    assert page.evaluate("location.hash") == before
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview:not([hidden])")
    assert page.evaluate("document.activeElement.hash") == at(head, test.name)


def test_the_last_address_wins(look, compared):
    """However fast addresses follow each other, what is shown is what the last one names."""
    page = look(compared.page)
    page.evaluate("TESTS.forEach((_, number) => openTest({ number, trial: 2, turn: 1, base: null }))")
    page.wait_for_function(OPENED, arg=[len(compared.head.suites[0].tests) - 1, 2])
    page.wait_for_timeout(50)
    assert page.locator("#test h1").inner_text() == compared.head.suites[0].tests[-1].name


def test_a_narrow_phone_holds_the_longest_outcome(show):
    """Nothing reaches beyond the edge."""
    undecided = build.finding("undecided", kind="judged", cause="judge_error")
    page = show(build.test_result(trials=(build.trial_result(findings=(undecided,)),)), width=320)
    assert "undecided (a model gave no usable answer)" in page.locator("#test .verdict").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_no_trace_is_not_nothing_done(show):
    """What an agent did is told in the words of the other reports."""
    talk = (
        build.turn(1, workflows=None, params=None, rules=None, integrations=None),
        build.turn(2, params={"code": "a", "size": "undefined"}, user_source="auto"),
        build.turn(
            3,
            workflows=("REFUND",),
            workflows_derived=True,
            params={"code": "b", "size": None},
            named_params=("secret",),
            integrations=(
                Integration(code="shop", status=503, error="down"),
                Integration(code="faq", type="RAG"),
            ),
            error_response=True,
            handed_over=True,
            output_tokens=1200,
        ),
        build.turn(4, agent=" \u200b", params={"size": 3}),
        build.turn(5),
    )
    page = show(build.test_result(trials=(build.trial_result(turns=talk),)))
    told = [re.sub(r"\s+", " ", text) for text in page.locator(".did").all_inner_texts()]
    assert told == [
        "did no trace came with this reply",
        'parameters code = "a" size = "undefined"',
        (
            'workflows (from the trace) REFUND parameters code = "b" was "a" size = null'
            " secret (value not told) integrations shop status 503 error: down faq RAG · no HTTP status"
            " error response no detail escalation handed over to a person"
            " tokens untold read, 1,200 written"
        ),
        "parameters size = 3 new",
        "did nothing: no workflow, parameter, rule or integration",
    ]
    assert "(no text)" in page.locator(".message.agent").nth(3).inner_text()


def test_a_large_trace_waits_until_it_is_wanted(show):
    """It is written out when somebody opens it, its beginning first."""
    talk = (build.turn(trace={"lines": ["x" * 100] * 10_000}),)
    page = show(build.test_result(trials=(build.trial_result(turns=talk),)))
    assert page.locator(".raw pre").count() == 0
    page.get_by_text("Trace", exact=True).click()
    assert len(page.locator(".raw pre").inner_text()) < 25_000
    page.get_by_role("button", name=re.compile("Show all 1,")).click()
    assert len(page.locator(".raw pre").text_content() or "") > 1_000_000


def test_large_numbers_are_told_as_they_are(show):
    """An id of many digits in a parameter or a trace is not rounded to what the script counts with."""
    number = 12345678901234567891
    talk = (
        build.turn(params={"order": number, "part": 0.1234567890123456789}, trace=[number, {"x": 10**400}]),
    )
    page = show(build.test_result(trials=(build.trial_result(turns=talk),)))
    assert page.locator(".deed code").all_inner_texts() == [f"order = {number}", "part = 0.12345678901234568"]
    page.get_by_text("Trace", exact=True).click()
    assert json.loads(page.locator(".raw pre").inner_text()) == [number, {"x": 10**400}]


def test_a_link_leads_to_where_the_reader_has_been(look, compared):
    """Also a second time, when the address has that place already."""
    page = look(compared.page)
    page.evaluate("location.hash = addressOf(0, 1, 1)")
    page.wait_for_selector(".turn[aria-current]")
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' }); document.activeElement.blur()")
    page.locator(".turn h4 a").first.click()
    assert page.evaluate("document.activeElement === document.querySelector('.turn')")
    page.go_back()
    page.wait_for_selector("#overview:not([hidden])")


def test_what_is_copied_is_what_was_said(show):
    """As text without what cannot be seen; and a command that a shell reads as it was meant."""
    name = "Isn't it $(late)\u202e, `really`?"
    talk = (build.turn(agent="First line\nsecond \u200bline", workflows=("REFUND",)),)
    page = show(
        build.test_result(name=name, trials=(build.trial_result(turns=talk),)),
        permissions=["clipboard-read", "clipboard-write"],
    )
    page.get_by_role("button", name="Copy the command").click()
    page.get_by_text("Copied: command to play this test again.").wait_for()
    command = page.evaluate("navigator.clipboard.readText()")
    assert shlex.split(command) == ["ci-evals", "run", "evals/refunds.json", "--test=Isn't it $(late)"]
    page.get_by_role("button", name="Copy the conversation").click()
    page.get_by_text("Copied: conversation.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == (
        "# Refunds › Isn't it $(late), `really`?, trial 1\n\n"
        "**1 · User** (fixed)\n\n> I want my money back.\n\n"
        "**1 · Agent** after 1.25 s · workflows: REFUND\n\n> First line\n> second line\n"
    )


def test_numbers_and_words_are_those_of_the_other_reports(look, compared):
    """The script tells what the Markdown reports tell."""
    page = look(compared.page)
    shares = [number / 7 for number in range(0, 700, 13)] + [0, 100, 29.3, 79.96, 1e-9]
    told = page.evaluate("(all) => all.map(scoreText)", shares)
    assert told == [numbers.score(number) for number in shares]
    seconds = [0, 0.0001, 0.0123, 0.1, 1.234, 9.94, 9.96, 59.4, 59.6, 61, 3599, 3601, 86_400]
    assert page.evaluate("(all) => all.map(durationText)", seconds) == [*map(numbers.duration, seconds)]
    assert page.evaluate("(all) => all.map(latencyText)", seconds) == [*map(numbers.latency, seconds)]
    parts = [-1, -0.126, 0, 0.004, 0.5, 2]
    assert page.evaluate("(all) => all.map(excessText)", parts) == [*map(numbers.excess, parts)]
    dollars = [0, 0.00001, 0.0312, 0.5, 12.3]
    assert page.evaluate("(all) => all.map(moneyText)", dollars) == [*map(numbers.money, dollars)]
    grades = [0, 1, 2 / 3, 0.29, 0.999]
    assert page.evaluate("(all) => all.map(gradeText)", grades) == [*map(numbers.grade, grades)]
    assert page.evaluate("CAUSES") == {cause.value: words for cause, words in labels.CAUSES.items()}
    assert page.evaluate("cut('x\\u{1f600}', 2)") == "x…"
    assert page.evaluate("OUTCOMES") == {name: look.words for name, look in labels.OUTCOMES.items()}


def test_what_cannot_be_read_is_said(look, written):
    """Damaged data and an old browser are told in words, and the way back is there."""
    cut = written(build.test_result(), change=lambda text: text.replace(' id="t0">', ' id="t0">AAAA'))
    page = look(cut, "#Refunds/Refund%20for%20a%20cancelled%20order")
    page.get_by_text("The data of this test cannot be read").wait_for()
    assert page.get_by_role("link", name="All tests").is_visible()
    page.evaluate("delete window.DecompressionStream; openTest({ number: 0, trial: null })")
    page.get_by_text("This browser cannot unpack the conversations").wait_for()
