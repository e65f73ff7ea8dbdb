import json
import time

import builders as build
import pytest
from doc_pages import ROOT, code, table
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ci_evals.domain.answers import comparable, last_number, whole_number, words
from ci_evals.domain.checks import answer_matching
from ci_evals.domain.checks.strict import expected_answers
from ci_evals.domain.checks.strict.expected_answers import AnswerMatches
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.verdict import Cause, Outcome, Verdict

PAGE = (ROOT / "docs" / "answers.md").read_text()
EVALUATION = TypeAdapter(AnswerMatches)
PLAIN = ("bidirectional", "gaia", "exact", "contains", "fuzzy", "numeric")


def check(expected, match="gaia", **fields) -> AnswerMatches:
    fields = {"criterion": "c", "strict": "answer_matches", "expected": expected, "match": match} | fields
    return EVALUATION.validate_python(fields)


def decide(evaluation: AnswerMatches, *texts: str) -> Verdict:
    turns = tuple(build.turn(i, agent=text) for i, text in enumerate(texts, start=1))
    return evaluation.decide(Transcript(turns=turns, status=EndState.COMPLETED))


def matches(expected, answer, match="gaia", **fields) -> bool:
    return decide(check(expected, match, **fields), answer).outcome is Outcome.PASSED


def rows(mode: str) -> list[list[str]]:
    return table(f"{mode}: expected", PAGE)


def test_answer_check_of_the_docs_is_valid_and_survives_the_round_trip():
    for mode in (*PLAIN, "semantic"):
        evaluation = check("5", mode)
        assert EVALUATION.validate_python(evaluation.model_dump()) == evaluation
    example = json.loads(PAGE.split("```json\n")[1].split("```")[0])
    assert EVALUATION.validate_json(json.dumps(example)).expected == ("1927", "in 1927")


# The tables of the page


def test_match_modes_agree_with_documented_examples():
    for mode in ("gaia", "bidirectional", "exact", "contains"):
        for expected, answer, result in rows(mode):
            assert matches(code(expected), code(answer), mode) == (result == "yes"), (expected, answer)
    for expected, answer, threshold, alike, result in rows("fuzzy"):
        texts = code(expected), code(answer)
        assert matches(*texts, "fuzzy", threshold=float(code(threshold))) == (result == "yes"), texts
        assert expected_answers.shown(answer_matching.similarity(*texts)) == code(alike)
    for expected, answer, options, result in rows("numeric"):
        fields = json.loads(f"{{{code(options)}}}")
        matched = matches(code(expected), code(answer), "numeric", **fields)
        assert matched == (result == "yes"), (answer, fields)


# bidirectional: the examples and tests of the rule's own description


def test_words_are_compared_without_case_punctuation_or_extra_white_space():
    """Punctuation goes and white space is folded; letters of every script stay."""
    for text, normal in (
        *[("HELLO", "hello"), ("Hello, World!", "hello world"), ("Hello   World", "hello world")],
        ("The Answer is: 1,927!", "the answer is 1927"),
        ("  snake_case\n\tstays ", "snake_case stays"),
        ("a - b", "a  b"),  # white space is folded before punctuation goes
        *[("Émile Zola, Ω!", "émile zola ω"), ("E\u0301mile", "émile")],
        ("हिन्दी", "हिन्दी"),  # vowel signs are parts of letters
    ):
        assert words(text) == normal


def test_bidirectional_match_is_containment_of_words_in_either_direction():
    for expected, answer, right in (
        ("1927", "The answer is 1927 based on research", True),
        ("Albert Einstein developed the theory", "Einstein", True),
        *[("1927", "1927", True), ("1927", "The answer is 1927 because...", True)],
        ("Albert Einstein", "Albert Einstein", True),
        ("Albert Einstein", "Based on research, Albert Einstein invented...", True),
        *[("345", "345", True), ("345", "The calculation gives us 345", True)],
        ("1927", "Based on my research, the company was founded in 1927. \nThis information was found", True),
        *[("Einstein", "Albert Einstein", True), ("1927", "The year 1927", True), ("1927", "1928", False)],
        *[("1927", "", False), ("1927", " ?! ", False), ("1927", "- -", False)],
        ("Москва", "Берлин", False),  # nothing but punctuation to a rule that knows ASCII alone
    ):
        assert answer_matching.bidirectional(answer, expected) is right
        assert answer_matching.bidirectional(expected, answer) is right


# gaia


def test_gaia_match_compares_numbers_lists_or_words_as_the_expected_answer_is():
    for expected, answer, right in (
        *[("1e3", "1000", True), ("-3", "$-3", True), ("3", "3 apples", False), ("17.0", "17", True)],
        *[("a,b", "a, b", True), ("a;b", "a,b", True), ("$5, $6", "$5,$6", True), ("$5, $6", "5,6", False)],
        *[("5, x", "$5, X", True), ("a,,b", "a,,b", True), ("a,b", ",", False), ("", "", False)],
        *[("!", "?", False), (",", ",", False), (" ; ", ";", False), ("nan", "NaN", True)],
        *[("nan", "3", False), ("Infinity", "infinity", True), ("Infinity", "no number", False)],
        ("3", "inf", False),
    ):
        assert answer_matching.gaia(answer, expected) is right


def test_final_answer_is_the_text_after_the_last_marker():
    for text, final in (
        *[("plain", "plain"), ("Thoughts.\nFINAL ANSWER: 5, 6", "5, 6")],
        *[("final answer: a FINAL ANSWER: b", "b"), ("**FINAL ANSWER:** `x`\n", "x")],
        *[("**Final Answer**: x", "x"), ("FINAL ANSWER:", "")],
        ("semifinal answer: x", "semifinal answer: x"),
    ):
        assert answer_matching.final_answer(text) == final


# numeric


def test_last_number_is_read_in_many_formats_and_expected_number_must_be_alone():
    for text, number in (
        *[("1,234.5", "1234.5"), ("1.234,5", "1234.5"), ("1,234", "1234"), ("1.234", "1.234")],
        *[("0,234", "0.234"), ("1.234.567", "1234567"), ("12,34,567", "1234567")],
        ("1'234’567.8", None),  # two kinds of apostrophe
        *[("1'234'567.8", "1234567.8"), ("1\u202f234,5", "1234.5"), ("1,2,3", "3"), ("1,234,56", "56")],
        *[("1.2.3", None), ("v1.2.3", None), ("-$5.50", "-5.5"), ("$-5", "-5"), ("5 -10", "-10")],
        *[("5-10", "10"), ("- 5", "5"), ("+7", "7"), ("x.5 and .5", "0.5"), ("H2O", None)],
        *[("covid-19", None), ("3rd of 5th", "5"), ("1.5E+3", "1500"), ("2 × 10^-2", "0.02")],
        *[("2 x 10^2", "200"), ("١٢", "12"), ("It ends at 7.", "7"), ("9" * 101, None), ("none", None)],
    ):
        result = last_number(text)
        assert (result and result.value) == (whole_number(number).value if number else None)
    for text in ("about 4", "4 km", "1,2,3", "1927.", "", "%", "four", "1/2"):
        assert whole_number(text) is None


@pytest.mark.slow  # it computes
@each_row("piece", ["1e9 ", "-$1 ", "1x10^99 ", "1.1 ", "-"])
def test_number_search_time_is_bounded_for_long_answers(piece):
    """Only the end of a very long one is looked at; an expected number is never long."""

    def seconds(times: int) -> float:
        started = time.process_time()
        assert last_number(piece * times + " 7") == last_number("7")
        assert whole_number("1" + " " * times + "x") is None
        assert whole_number("1," * times) is None
        return time.process_time() - started

    few = min(seconds(5_000) for _ in range(2))
    assert seconds(50_000) < 30 * few + 0.1


def test_numeric_tolerances_are_inclusive_and_wider_one_applies():
    both = {"tolerance": 1, "relTolerance": 0.1}
    assert matches("100", "110", "numeric", **both)
    assert matches("5", "6", "numeric", **both)
    assert not matches("100", "111", "numeric", **both)
    assert matches("-100", "-109", "numeric", relTolerance=0.1)
    assert not matches("0", "0.001", "numeric", relTolerance=0.5)
    assert matches("1e999", "1e999", "numeric", tolerance=0.5)


# Verdicts


def test_answer_of_the_selected_reply_is_compared_and_named_in_the_reason():
    right = decide(check(["Paris", "Lutetia"]), "Well.", "FINAL ANSWER: lutetia")
    assert right == Verdict.passed("reply 2 matches 'Lutetia' (gaia): 'lutetia'", 2)
    wrong = decide(check(["Rome", "Paris"]), "Well.", "Pari")
    assert wrong == Verdict.failed("reply 2 does not match 'Paris' (gaia; similarity 0.800): 'Pari'", 2)
    wrong = decide(check(["10", "1,930"], "numeric"), "In 1,927 or 1928?")
    assert wrong == Verdict.failed("reply 1 does not match '1,930' (numeric): '1928'", 1)
    replies = ("Rome", "Paris", "Bonn", "")
    assert decide(check("Paris", turn=2), *replies).outcome is Outcome.PASSED
    assert decide(check("Paris", turn="any"), *replies).evidence == (2,)
    reason = "reply 3 does not match 'Bon' (gaia; similarity 0.750): 'Bonn'"
    assert decide(check("Bon", turn="any"), *replies) == Verdict.failed(reason, 1, 2, 3, 4)
    assert decide(check("Paris"), *replies) == Verdict.failed("no answer in reply 4", 4)
    assert decide(check("5", "numeric", turn="any"), *replies).reason == "no number in any of 4 replies"
    missing = decide(check("Paris", turn=9), *replies)
    assert missing.cause is Cause.NO_EVIDENCE
    assert missing.reason == "there is no reply 9: the agent replied 4 times"
    assert decide(check("Paris")).cause is Cause.NO_EVIDENCE
    verdict = decide(check("Paris", "semantic"), "Paris")
    assert verdict.cause is Cause.NO_MODEL
    assert "embedding-model" in verdict.reason


# Properties

texts = st.text(max_size=40) | st.text("0123456789.,-+$% eE'\u00a0a×^;", max_size=20)


@given(texts, st.sampled_from(["", " ", "\n\t", "\u00a0"]))
def test_expected_answer_matches_itself_and_no_empty_answer(text, empty):
    for mode in PLAIN:
        try:
            evaluation = check(text, mode)
        except ValidationError:
            continue
        assert decide(evaluation, text).outcome is Outcome.PASSED, mode
    for matching in (answer_matching.bidirectional, answer_matching.gaia, answer_matching.exact):
        assert not matching(empty, text)
    assert not answer_matching.contains(empty, text)
    assert not answer_matching.fuzzy(empty, text, 0)
    assert not answer_matching.numeric(empty, text, 1e9, None)


@given(texts, texts)
def test_matching_of_arbitrary_texts_is_symmetric_and_raises_no_error(answer, expected):
    for mode in PLAIN:
        if expected.strip() and comparable(expected, mode):
            decide(check(expected, mode), answer, expected)
    answer_matching.gaia(answer, expected)
    assert not answer_matching.numeric(answer, "no number", None, None)
    for symmetric in (answer_matching.bidirectional, answer_matching.exact, answer_matching.similarity):
        assert symmetric(answer, expected) == symmetric(expected, answer)
    assert 0 <= answer_matching.similarity(answer, expected) <= 1


@given(st.integers(-(10**12), 10**12), st.integers(0, 4))
def test_english_and_continental_number_formats_are_equal(number, places):
    value = number / 10**places
    english = f"{value:,.{places}f}"
    continental = english.translate(str.maketrans(",.", ".,"))
    wanted = whole_number(f"{value:.{places}f}")
    assert last_number(f"It is {english}!").value == wanted.value
    if english.count(",") != 1 or places:  # 1.234 is read as a decimal
        assert places == 3 or last_number(f"It is {continental}!").value == wanted.value
