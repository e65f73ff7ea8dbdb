"""What the page shows of judge and simulated user: quoted words, votes, grades, broken roles."""

import pytest
import reliability_cases
from test_accessibility import violations

from ci_evals.reports.page import page as pages
from ci_evals.reports.story.story import story_of

pytestmark = pytest.mark.browser
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
