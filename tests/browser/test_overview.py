"""The overview: what broke, the table of tests, and the ways from there to a test and back."""

import re

import pytest

pytestmark = pytest.mark.browser

FAILED = "Evals failed: 1\u00a0test broke since the baseline"
ROWS = "#tests tbody tr:not([hidden])"


def names(page) -> list[str]:
    """Of the tests that the table shows, in its order."""
    return page.locator(f"{ROWS} th").all_inner_texts()


def all_tests(results) -> list:
    return [test for suite in results.suites for test in suite.tests]


def test_it_says_first_what_broke(look, compared):
    """The verdict, and the test that fails since this run, on the first two screens."""
    page = look(compared.page)
    assert page.locator("h1").inner_text() == FAILED
    worst = compared.head.comparison.regressed[0]
    story = page.locator("#_broken .whole-test").first
    assert worst.name in story.inner_text()
    assert worst.evidence.reason in story.inner_text()
    assert "First failed in this run" in story.inner_text()
    assert story.bounding_box()["y"] < 2 * 900


def failed_first(results):
    """The order in which the page opens: the worst outcome first, and of one outcome what broke."""
    order = ("failed", "error", "undecided", "not_run", "passed")
    broke = {change.name for change in results.comparison.regressed}
    return sorted(all_tests(results), key=lambda test: (order.index(test.outcome), test.name not in broke))


def test_the_table_is_filtered(look, compared):
    """By result, by words, by mark; and whole again."""
    page = look(compared.page)
    form = page.locator("#filters")
    tests = failed_first(compared.head)
    assert names(page) == [test.name for test in tests]
    failed = [test.name for test in tests if test.outcome == "failed"]
    form.get_by_label("Result").select_option("failed")
    assert names(page) == failed
    form.get_by_label("Find").fill("GOLD")
    assert names(page) == ["Gives Gold members their sixty days"]
    assert form.get_by_role("status").get_by_text("1 of 12 tests shown").is_visible()
    form.get_by_label("Find").fill("no such test")
    assert names(page) == []
    form.get_by_role("button", name="Reset").click()
    page.wait_for_function("(rows) => document.querySelectorAll(rows).length === 12", arg=ROWS)
    form.get_by_label("Tag").select_option("loyalty")
    assert names(page) == [test.name for test in tests if "loyalty" in test.tags]
    form.get_by_label("Tag").select_option("")
    form.get_by_label("Changed outcome or score only").check()
    changed = {
        change.name
        for changes in (compared.head.comparison.regressed, compared.head.comparison.fixed)
        for change in changes
    }
    assert changed <= set(names(page)) < {test.name for test in tests}


def test_the_table_is_sorted(look, compared):
    """By numbers and by words, up and down; the state is told to those who listen."""
    page = look(compared.page)
    tests = failed_first(compared.head)
    table = page.locator("#tests")
    head = table.get_by_role("columnheader", name="score", exact=True)
    for state, sign in (("ascending", 1), ("descending", -1)):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == state
        assert names(page) == [test.name for test in sorted(tests, key=lambda test: sign * test.score)]
    table.get_by_role("columnheader", name="test", exact=True).get_by_role("button").click()
    assert names(page) == sorted((test.name for test in tests), key=str.casefold)
    assert head.get_attribute("aria-sort") == "none"


def test_links_and_the_back_button_lead_there_and_back(look, compared):
    """From the story to the turn it tells of, and by the browser's own buttons back and there again."""
    page = look(compared.page)
    story = page.locator("#_broken .whole-test").first
    link = story.get_by_role("link", name=re.compile("^turn")).first
    link.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    address = link.get_attribute("href")
    link.click()
    page.wait_for_selector(".turn[aria-current]")
    assert page.locator("#overview").is_hidden()
    assert page.evaluate("location.hash") == address
    page.go_back()
    page.wait_for_selector("#overview:not([hidden])")
    assert page.locator("#test").is_hidden()
    assert page.evaluate("scrollY") == before
    page.go_forward()
    page.wait_for_selector(".turn[aria-current]")
    assert page.evaluate("location.hash") == address


def test_a_shared_link_opens_what_it_names(look, compared):
    """A test, a trial, a turn; and says so where the run has none of that name."""
    page = look(compared.page, "#Retail%20assistant/Gives%20Gold%20members%20their%20sixty%20days/2")
    page.wait_for_selector("#test .turn")
    assert page.locator("#test h1").inner_text() == "Gives Gold members their sixty days"
    assert page.locator("#test h2").inner_text().startswith("Trial 2")
    assert "Gold" in page.title()
    page = look(compared.page, "#Retail%20assistant/No%20such%20test/1")
    assert page.get_by_text("This run has no test with the name in this link.").is_visible()
    assert page.locator("h1").inner_text() == FAILED


def test_a_link_to_a_section_is_there_at_once(look, compared):
    """Nothing glides past whoever opens one; and on a narrow phone no short word is broken."""
    page = look(compared.page, "#_measures", width=320)
    assert 0 <= page.evaluate("document.getElementById('_measures').getBoundingClientRect().top") < 100
    lines = """() => [...document.querySelectorAll(".facts dt, #_gate td:nth-child(2)")].map((one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      return range.getClientRects().length;
    })"""
    assert set(page.evaluate(lines)) == {1}
