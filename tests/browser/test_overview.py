"""The overview: what broke, the table of tests, and the ways from there to a test and back."""

import re

import pytest

pytestmark = pytest.mark.browser
FAILED = "Evals failed: 1\u00a0test broke since the baseline"
ROWS = "#tests tbody tr:not([hidden])"


def names(page) -> list[str]:
    return page.locator(f"{ROWS} th").all_inner_texts()


def all_tests(results) -> list:
    return [test for suite in results.suites for test in suite.tests]


def test_page_opens_with_verdict_and_broken_test_within_first_two_screens(look, compared):
    for file in (compared.alone, compared.page):
        page = look(file)
        assert page.locator("#overview:not([hidden])").count() == 1
        assert page.evaluate("TESTS.length") == 12
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


def test_table_is_sorted_and_filtered_by_result_text_tag_and_change(look, compared):
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
    changes = (*compared.head.comparison.regressed, *compared.head.comparison.fixed)
    changed = {change.name for change in changes}
    assert changed <= set(names(page)) < {test.name for test in tests}
    form.get_by_role("button", name="Reset").click()
    page.wait_for_function("(rows) => document.querySelectorAll(rows).length === 12", arg=ROWS)
    table = page.locator("#tests")
    head = table.get_by_role("columnheader", name="score", exact=True)
    for state, sign in (("ascending", 1), ("descending", -1)):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == state
        assert names(page) == [test.name for test in sorted(tests, key=lambda test: sign * test.score)]
    table.get_by_role("columnheader", name="test", exact=True).get_by_role("button").click()
    assert names(page) == sorted((test.name for test in tests), key=str.casefold)
    assert head.get_attribute("aria-sort") == "none"


def test_links_to_turns_and_the_back_button_restore_the_view(look, compared):
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


def test_link_opens_its_test_and_trial_or_reports_an_unknown_test(look, compared):
    page = look(compared.page, "#Retail%20assistant/Gives%20Gold%20members%20their%20sixty%20days/2")
    page.wait_for_selector("#test .turn")
    assert page.locator("#test h1").inner_text() == "Gives Gold members their sixty days"
    assert page.locator("#test h2").inner_text().startswith("Trial 2")
    assert "Gold" in page.title()
    page = look(compared.page, "#Retail%20assistant/No%20such%20test/1")
    assert page.get_by_text("This run has no test with the name in this link.").is_visible()
    assert page.locator("h1").inner_text() == FAILED


def test_link_to_a_section_jumps_at_once_and_labels_do_not_wrap_on_phones(look, compared):
    page = look(compared.page, "#_measures", width=320)
    assert 0 <= page.evaluate("document.getElementById('_measures').getBoundingClientRect().top") < 100
    lines = """() => [...document.querySelectorAll(".facts dt, #_gate td:nth-child(2)")].map((one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      return range.getClientRects().length;
    })"""
    assert set(page.evaluate(lines)) == {1}
