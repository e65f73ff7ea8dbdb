"""The pages by keyboard, with a screen reader, on a phone, on paper, without JavaScript; sheets; studies."""

from pathlib import Path

import builders as build
import labeled_runs
import pytest
import reliability_cases
from axe_playwright_python.sync_playwright import Axe
from hostile_text import CORPUS

from ci_evals.extensions.calibration import items, sheet, sheet_reading
from ci_evals.reports.page import page as pages
from ci_evals.reports.story.story import story_of

pytestmark = pytest.mark.browser
TEST = "#Retail%20assistant/Gives%20Gold%20members%20their%20sixty%20days"
VIEWS = ("", TEST, f"{TEST}/1/vs1")
"""The overview, a test, and a test beside the baseline."""
ALL = {"rules": {"target-size": {"enabled": True}}}
"""Every rule of axe, and one of WCAG 2.2 AA that it leaves out unless asked."""
COLORS = {"runOnly": ["color-contrast"]}
SHAPES = {"rules": {"target-size": {"enabled": True}, "color-contrast": {"enabled": False}}}
FOCUS = """() => {
  const style = getComputedStyle(document.activeElement);
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const box = document.activeElement.getBoundingClientRect();
  const inSight = box.bottom > 0 && box.top < innerHeight && box.width > 0;
  return [document.activeElement.outerHTML.slice(0, 100), outlined, inSight];
}"""


UNFOLD = """() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  const more = "tbody tr:nth-child(n+7), .turn:nth-child(n+4)";
  for (const one of document.querySelectorAll(more)) one.remove();
}"""
"""Unfolds all and removes repeated rows: axe looks at every letter."""


def ready(page, view: str):
    page.wait_for_selector("#test .turn" if view else "#overview:not([hidden]) #filters:not([hidden])")
    page.evaluate(UNFOLD)
    return page


def violations(page, options: dict) -> list[str]:
    result = Axe().run(page, options={"resultTypes": ["violations"], **options})
    assert result.response["passes"]
    nodes = [(rule["id"], node) for rule in result.response["violations"] for node in rule["nodes"]]
    return [f"{rule}: {node['target']}: {node['failureSummary']}" for rule, node in nodes]


@pytest.mark.parametrize("view", VIEWS)
def test_report_page_is_accessible_in_both_color_schemes_and_320_pixels_wide(look, compared, view):
    """Colors do not depend on the width, nor shapes on the scheme; a test alone has nothing more."""
    page = ready(look(compared.page, view), view)
    assert violations(page, ALL) == []
    if view == TEST:
        return
    page.emulate_media(color_scheme="dark")
    assert violations(page, COLORS) == []
    page.set_viewport_size({"width": 320, "height": 844})
    assert violations(page, SHAPES) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_accessibility_check_finds_missing_text_and_low_contrast(look, tmp_path):
    file = tmp_path / "page.html"
    wrong = '<h1 style="color: #777; background: #888">Words</h1><img src="data:,">'
    file.write_text(f'<!doctype html><html lang="en"><title>Page</title><main>{wrong}</main></html>')
    page = look(file)
    assert {one.split(":")[0] for one in violations(page, ALL)} == {"image-alt", "color-contrast"}


def test_tab_reaches_every_control_with_visible_focus(look, compared):
    page = look(compared.page, reduced_motion="reduce")
    for view, steps in (("", 40), (TEST, 25)):
        page.evaluate("(view) => { location.hash = view; }", view)
        if view:
            ready(page, view)
        page.evaluate("document.activeElement.blur()")
        for step in range(steps):
            page.keyboard.press("Tab")
            element, outlined, in_sight = page.evaluate(FOCUS)
            assert (outlined, in_sight) == (True, True), element
            assert step or "skip" in element or view


def test_skip_link_keeps_the_address_and_focuses_content_as_escape_does(look, compared):
    page, focused = ready(look(compared.page, TEST), TEST), "document.activeElement.id"
    address = page.evaluate("location.hash")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(focused) == "_content"
    assert page.evaluate("location.hash") == address
    assert page.locator("#test .turn").first.is_visible()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview:not([hidden])")
    assert page.evaluate(focused) == "_content"


def test_theme_follows_the_system_until_the_reader_chooses(look, compared):
    page = look(compared.page, color_scheme="dark")
    dark = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((part) => part < 60)"
    assert page.evaluate(dark)
    page.get_by_role("button", name="Theme: auto").click()
    assert not page.evaluate(dark)
    page.reload()
    assert not page.evaluate(dark)
    page.get_by_role("button", name="Theme: light").click()
    page.get_by_role("button", name="Theme: dark").click()
    assert page.evaluate(dark)
    page.emulate_media(color_scheme="light")
    assert not page.evaluate(dark)


def test_print_shows_everything_without_controls_and_cut_off_text(look, compared):
    page = look(compared.page, width=720)
    sizes = """() => [document.body, ...document.querySelectorAll(".small, .note, .because, .traits")]
      .map((one) => parseFloat(getComputedStyle(one).fontSize))"""
    wide = """() => [...document.querySelectorAll("main *")].filter((one) =>
      one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1)
      .map((one) => one.outerHTML.slice(0, 200))"""
    for view in VIEWS:
        page.evaluate("(view) => { location.hash = view; }", view)
        page.wait_for_selector(".both" if "vs" in view else "#test .turn" if view else "#filters")
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(wide) == []
        assert page.locator(".tools, .copy, #filters").filter(visible=True).count() == 0
        folded = "details.passed:not([open]), #overview details:not(.numbers, [open])"
        assert page.locator(folded).count() == 0
        text, *notes = page.evaluate(sizes)
        assert max(notes) <= text
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.emulate_media(media="screen")
    assert len(page.pdf()) > 10_000


def test_page_without_javascript_shows_verdict_gate_charts_and_tests(look, compared):
    page = look(compared.page, java_script_enabled=False)
    assert page.get_by_role("heading", name="Evals failed: 1 test broke").is_visible()
    assert page.locator("#_gate tbody tr").count() == len(compared.head.gate.checks)
    assert page.locator("#tests tbody tr").filter(visible=True).count() == 12
    assert page.locator("figure svg").first.is_visible()
    assert "Opening a test needs JavaScript" in page.locator("noscript").text_content()
    assert page.locator("#filters").is_hidden()


SCRIPT = "</script><script>document.title = 'owned'</script>"
HOSTILE = [*CORPUS, *labeled_runs.FORMULAS, SCRIPT, "a\nb;=1\n- c"]


def write_page(folder: Path, texts: list[str]) -> Path:
    trials = []
    for number, text in enumerate(texts, start=1):
        turns = (build.turn(1, user=text, agent=f"{number} {text}"),)
        findings = (build.finding(kind="judged", criterion=f"{text} {number}"),)
        trials.append(build.trial_result(number, turns=turns, findings=findings))
    result = items.items(build.results(build.suite_result("S", build.test_result(trials=tuple(trials)))))
    for name, text in sheet.files_of(items.sample(result, 100, 0)).items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder / sheet.PAGE


def test_labels_set_by_keyboard_survive_reload_and_are_saved_without_a_request(browser, tmp_path):
    page_file = write_page(tmp_path, HOSTILE)
    with browser.new_context(accept_downloads=True) as context:
        page = context.new_page()
        events = []
        page.on("console", lambda result: events.append(result.text))
        page.on("pageerror", lambda error: events.append(str(error)))
        page.on("request", lambda asked: events.append(asked.url))
        page.goto(page_file.as_uri())
        events.remove(page_file.as_uri())
        page.set_default_timeout(10_000)
        count = len(HOSTILE)
        assert page.locator("#progress").text_content() == f"0 of {count} labeled"
        page.keyboard.press("p")
        assert page.locator("#place").text_content() == f"Item 2 of {count}"
        page.locator("#note").press_sequentially("=pf")
        page.locator("[data-label='cannot tell']").focus()
        page.keyboard.press("Enter")
        page.locator("#labeller").fill("Ada Ü; =1")
        for _ in range(50):  # a browser writes down what a page keeps when it has the time
            page.reload()
            events.remove(page_file.as_uri())
            if "0 of" not in page.locator("#progress").text_content():
                break
            page.wait_for_timeout(50)
        assert page.locator("#progress").text_content() == f"2 of {count} labeled"
        assert page.locator("#place").text_content() == f"Item 3 of {count}"
        page.keyboard.press("b")
        assert page.locator("[aria-pressed=true]").text_content() == "Cannot tell"
        with page.expect_download() as saved:
            page.locator("#save").press("Enter")
        assert saved.value.suggested_filename == "Ada-Ü-1.csv"
        file = tmp_path / "saved.csv"
        saved.value.save_as(file)
        assert page.title() == f"Sheet of {count} to label"
        assert [event for event in events if not event.startswith("blob:")] == []
    empty = labeled_runs.read_sheet((tmp_path / sheet.SHEET).read_bytes().decode())
    rows = labeled_runs.read_sheet(file.read_bytes().decode())
    labels = [(row["label"], row["note"]) for row in rows[:3]]
    assert labels == [("pass", ""), ("cannot tell", "'=pf"), ("", "")]
    blank = {"label": "", "note": "", "labeller": ""}
    assert [row | blank for row in rows] == empty
    assert [label.passed for label in sheet_reading.read([file])] == [True, None]


def test_labeling_page_is_accessible_in_both_color_schemes(look, tmp_path):
    page = look(write_page(tmp_path, HOSTILE[::3]), width=400)
    assert page.locator("details[open] li").count() > 5
    page.locator("[data-label=fail]").click()
    page.locator("#back").click()
    assert violations(page, ALL) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, COLORS) == []


FAILED, EXCLUDED = "#Refunds/Refund%20too%20late/1", "#Refunds/Refund%20too%20late/3"
GRADED = "#Refunds/Refund%20in%20time/1"
SPANS = """([text, quote]) => spansOf(text, quote).map(([from, to]) => text.slice(from, to))"""


@pytest.fixture
def open_page(look, tmp_path):
    file = tmp_path / "report.html"
    file.write_text("".join(pages.render(story_of(reliability_cases.results_with_all_studies()))), "utf-8")
    return lambda at="": look(file, at)


def test_quotes_votes_grades_and_violations_are_shown_at_their_turns(open_page):
    page = open_page(FAILED)
    page.wait_for_selector("#test .turn")
    assert page.locator(".turn mark").all_inner_texts() == [
        "The refund of **89.00 EUR** is on its way",
        "You could have read that on our page.",
    ]
    verdict = page.locator(".verdict.failed")
    assert "the judge's votes disagree on this one (60 % of pairs agree)" in verdict.inner_text()
    verdict.get_by_text("3 votes: 1 passed, 2 failed").click()
    models = ["claude-haiku-4-5", "gpt-5-mini", "claude-haiku-4-5"]
    assert verdict.locator(".votes code").all_inner_texts() == models
    verdict.locator(".words a").first.click()
    page.wait_for_function("() => opened.at === 2")
    page.evaluate("(at) => { location.hash = at; }", EXCLUDED)
    page.get_by_role("heading", name="Trial 3: excluded").wait_for()
    violation = page.locator(".turn").nth(1).locator(".violation").inner_text()
    assert violation.endswith("I sent the jacket back nine days ago")
    assert page.locator("#trial > .violation").inner_text().startswith("The simulated user broke character")
    page.evaluate("(at) => { location.hash = at; }", GRADED)
    page.get_by_text("Graded 0.75 of 1; passed from 0.7 on.").wait_for()
    cells = page.locator("#test .verdict .table td").all_inner_texts()
    assert cells[:4] == ["right", "1.00", "2", "The amount is right."]
    texts = ["Within  five - “sure” **days**", 'within five \u2013 "Sure" ... days']
    assert page.evaluate(SPANS, texts) == ["Within  five - “sure”", "days"]
    assert page.evaluate(SPANS, ["a.b", "a+b"]) == []


def test_views_of_judge_and_simulated_user_are_accessible(open_page):
    page = open_page()
    for at in ("", GRADED, EXCLUDED):
        page.evaluate("(at) => { location.hash = at; }", at)
        page.wait_for_selector("#test .turn" if at else "#_trust")
        page.set_viewport_size({"width": 320, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        page.emulate_media(color_scheme="dark" if at == EXCLUDED else "light")
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert violations(page, {}) == []
