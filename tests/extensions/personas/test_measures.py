"""Each trait can be told from none by a rule or a count."""

import pytest
from doc_pages import code, page, table
from each_row import each_row
from scripted_users import AGENT, FACTS, KNOWN, PLAIN, WITH_TRAIT, played

from ci_evals.conversation.user_checks import violations
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource
from ci_evals.extensions.personas import measures
from ci_evals.extensions.personas.measures import CHECKS, Message, Played, shows
from ci_evals.extensions.personas.traits import TRAITS, instructions


def rate(trait: str, conversations) -> str:
    known = [verdict for one in conversations if (verdict := shows(trait, played(one))) is not None]
    return f"{sum(known)} of {len(known)}"


def test_every_trait_has_a_check():
    assert CHECKS.keys() == TRAITS.keys() == WITH_TRAIT.keys()


@each_row("trait", TRAITS)
def test_rates_with_and_without_a_trait_are_those_of_the_page(trait):
    rows = {code(name): cells for name, *cells in table("shown by", page("personas.md"))}
    _, with_trait, without = rows[trait]
    assert with_trait == rate(trait, WITH_TRAIT[trait])
    assert without == rate(trait, PLAIN)
    shown, of = map(int, with_trait.split(" of "))
    assert shown == of
    shown_without, _ = map(int, without.split(" of "))
    assert shown_without == 0


def test_nobody_pushes_back_against_an_agent_that_refuses_nothing():
    assert shows("pushes_back", Played([Message("But why?", "Here is your money.")])) is None


def test_one_fact_cannot_be_told_from_two_if_there_is_only_one():
    assert shows("one_fact_at_a_time", Played([Message("48127")], ("48127",))) is None


def test_articles_of_a_few_words_are_not_counted():
    assert shows("second_language", Played([Message("Refund, please.")])) is None


def test_conversation_without_a_message_of_the_user_shows_nothing():
    assert {shows(trait, Played([])) for trait in TRAITS} == {None}


@pytest.mark.parametrize("word", ["teh", "adress", "recieve", "ordr", "nubmer", "refnud"])
def test_misspelled_word_is_counted(word):
    assert measures.typos_per_hundred(Played([Message(word)])) == 100


@each_row("word", ["lamps", "Ida", "refunded", "48127", "ida@example.com", "ok", "Straße"])
def test_names_numbers_and_other_forms_are_no_typing_errors(word):
    """Of words that nobody could know, a few are counted all the same: rates matter, not single words."""
    assert measures.typos_per_hundred(Played([Message(word)], FACTS, f"{KNOWN} Ida")) == 0


def broken_rules(guidelines: str, messages, replies=AGENT) -> list[str]:
    test = Test.model_validate(
        {
            "name": "Refund",
            "guidelines": guidelines,
            "userInfo": {"orderNumber": FACTS[0], "email": FACTS[1]},
            "turns": [{"user": "auto"}],
            "evaluations": [{"criterion": "The agent offers a voucher"}],
        }
    )
    turns = tuple(
        Turn(
            index=number, user=text, user_source=UserSource.AUTO, agent=replies[number - 1], latency_seconds=1
        )
        for number, text in enumerate(messages, start=1)
    )
    found = violations(test, Transcript(turns=turns, status=EndState.COMPLETED))
    return [violation.rule for violation in found]


@each_row("trait", TRAITS)
def test_user_with_a_trait_stays_broken_rules(trait):
    """Rude, terse, hostile: what the traits ask for is no violation."""
    guidelines = f"{KNOWN}\n\n{instructions((trait,))}"
    assert [broken_rules(guidelines, one) for one in WITH_TRAIT[trait]] == [[], [], []]


def test_hostile_user_may_insist_in_the_same_words():
    insisting = ("I demand the money now.", "It is 48127.", "I demand the money now.")
    silent = ("I see.", "Your order came on Monday.", "Your order is here.")
    assert broken_rules(KNOWN, insisting, silent) == ["repeats"]
    assert broken_rules(f"{KNOWN}\n\n{instructions(('hostile',))}", insisting, silent) == []


@each_row("trait", TRAITS)
def test_user_with_a_trait_can_still_break_character(trait):
    guidelines = f"{KNOWN}\n\n{instructions((trait,))}"
    assert broken_rules(guidelines, ["As a simulated user, I want a refund."]) == ["meta"]
