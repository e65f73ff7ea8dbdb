"""The page in a browser: it opens, alone, and needs nothing."""

import pytest

pytestmark = pytest.mark.browser


def test_it_opens_without_a_complaint_or_a_request(look, compared):
    """Nothing is fetched, nothing is written to the console: of a compared run, and of one that is not."""
    for file in (compared.page, compared.alone):
        page = look(file)
        assert page.locator("#overview:not([hidden])").count() == 1
        assert page.evaluate("TESTS.length") == 12
