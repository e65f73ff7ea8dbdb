"""The page with a screen reader, by keyboard, on a phone, on paper, and without JavaScript."""

import pytest
from axe_playwright_python.sync_playwright import Axe

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
def test_report_page_is_accessible(look, compared, view):
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


def test_tab_reaches_all_controls_with_visible_focus_and_skip_link_keeps_the_address(look, compared):
    page, focused = look(compared.page, reduced_motion="reduce"), "document.activeElement.id"
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
