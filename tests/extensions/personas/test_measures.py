"""Each trait can be told from none by a rule or a count."""

import builders as build
from doc_pages import code, page, table
from each_row import each_row
from scripted_users import AGENT, FACTS, KNOWN, PLAIN, WITH_TRAIT, played

from ci_evals.conversation.user_checks import violations
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, Transcript, UserSource
from ci_evals.extensions.personas import measures
from ci_evals.extensions.personas.measures import CHECKS, Message, Played, shows
from ci_evals.extensions.personas.traits import TRAITS, instructions


def rate(trait: str, conversations) -> str:
    known = [verdict for one in conversations if (verdict := shows(trait, played(one))) is not None]
    return f"{sum(known)} of {len(known)}"


def test_every_trait_has_check_and_examples():
    assert CHECKS.keys() == TRAITS.keys() == WITH_TRAIT.keys()


@each_row("trait", TRAITS)
def test_trait_detection_rates_match_docs_page(trait):
    rows = {code(name): cells for name, *cells in table("shown by", page("personas.md"))}
    _, with_trait, without = rows[trait]
    assert (with_trait, without) == (rate(trait, WITH_TRAIT[trait]), rate(trait, PLAIN))
    shown, of = with_trait.split(" of ")
    assert (shown, without.split(" of ")[0]) == (of, "0")


def test_trait_is_not_measured_without_occasion_to_show_it():
    assert shows("pushes_back", Played([Message("But why?", "Here is your money.")])) is None
    assert shows("one_fact_at_a_time", Played([Message("48127")], ("48127",))) is None
    assert shows("second_language", Played([Message("Refund, please.")])) is None
    assert {shows(trait, Played([])) for trait in TRAITS} == {None}


def test_typo_measure_counts_misspellings_but_not_names_and_inflections():
    for word in ("teh", "adress", "recieve", "ordr", "nubmer", "refnud"):
        assert measures.typos_per_hundred(Played([Message(word)])) == 100, word
    for word in ("lamps", "Ida", "refunded", "48127", "ida@example.com", "ok", "Straße"):
        assert measures.typos_per_hundred(Played([Message(word)], FACTS, f"{KNOWN} Ida")) == 0, word


def broken_rules(guidelines: str, messages, replies=AGENT) -> list[str]:
    fields = {"name": "Refund", "guidelines": guidelines, "turns": [{"user": "auto"}]}
    fields |= {"userInfo": {"orderNumber": FACTS[0], "email": FACTS[1]}}
    test = Test.model_validate(fields | {"evaluations": [{"criterion": "The agent offers a voucher"}]})
    pairs, auto = enumerate(zip(messages, replies, strict=False), start=1), UserSource.AUTO
    turns = [build.turn(number, user=text, agent=reply, user_source=auto) for number, (text, reply) in pairs]
    transcript = Transcript(turns=tuple(turns), status=EndState.COMPLETED)
    return [violation.rule for violation in violations(test, transcript)]


@each_row("trait", TRAITS)
def test_persona_trait_is_allowed_but_breaking_character_is_a_violation(trait):
    guidelines = f"{KNOWN}\n\n{instructions((trait,))}"
    assert [broken_rules(guidelines, one) for one in WITH_TRAIT[trait]] == [[], [], []]
    assert broken_rules(guidelines, ["As a simulated user, I want a refund."]) == ["meta"]


def test_repeated_message_is_a_violation_except_for_hostile_trait():
    insisting = ("I demand the money now.", "It is 48127.", "I demand the money now.")
    silent = ("I see.", "Your order came on Monday.", "Your order is here.")
    assert broken_rules(KNOWN, insisting, silent) == ["repeats"]
    assert broken_rules(f"{KNOWN}\n\n{instructions(('hostile',))}", insisting, silent) == []
