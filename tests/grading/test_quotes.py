"""Whether a quote stands: what is folded, what is left out, and what is invented."""

from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.grading.quotes import is_empty, occurs

USER = "Hi! My order 1042 didn't arrive \u2013 can I get a refund?"
AGENT = (
    "**Sorry** to hear that.\n\n"
    "- We\u2019ll refund \u201cEUR 42\u201d within 5 days\u2026 thanks for `waiting`."
)
CONVERSATION = (USER, AGENT)


@each_row(
    "quote",
    [
        *("My order 1042 didn't arrive", "my ORDER  1042\ndidn\u2019t arrive - can I", "Sorry to hear that"),
        *("**Sorry** to hear", "We'll refund 'EUR 42' within 5 days", '"We\u2019ll refund"'),
        *("We'll refund ... within 5 days", "Sorry [...] refund \u2026 5 days"),
        *("5 days... thanks for waiting", "to hear that,", "My order 1042 \u2026"),
        USER,
        AGENT,
        *('We\\u2019ll refund \\"EUR 42\\"', "fo\u200br waiting"),
    ],
)
def test_quote_is_found_despite_other_typography(quote):
    """White space, quotation marks, dashes, case, emphasis and escapes of JSON are all one."""
    assert occurs(quote, CONVERSATION)


@each_row(
    "quote",
    [
        *("My order 1043 didn't arrive", "We will refund", "5 days ... refund", "within 5 days refund"),
        "My order ... Sorry",  # of two speakers
        *("e", "I ... a ... refund", "...", "\u2026 ! \u2026", "", " "),
    ],
)
def test_altered_or_too_short_quote_is_not_found(quote):
    assert not occurs(quote, CONVERSATION)


def test_short_quote_is_found_only_as_whole_reply_or_in_cjk_text_and_may_be_empty():
    assert occurs("No.", ["no", "x"])
    assert not occurs("no", ["I know that", "x"])
    assert occurs("\u9000\u6b3e", ["\u6211\u60f3\u8981\u9000\u6b3e\u3002"])
    assert not occurs("\u9000", ["\u6211\u60f3\u8981\u9000\u6b3e\u3002"])
    assert [is_empty(quote) for quote in (" \n", "**", "...")] == [True, True, False]


@given(st.text(min_size=1, max_size=80), st.data())
def test_any_long_enough_part_of_the_text_is_found(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    part = text[start : data.draw(st.integers(start + 1, len(text)))]
    if sum(char.isalnum() for char in part) >= 12 and "." not in part and "\\" not in part:
        assert occurs(part, [text])
