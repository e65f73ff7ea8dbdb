"""The offline user: says what `userInfo` knows, agrees to proposals, and always comes to an end."""

import pytest

from ci_evals.conversation.scripted_user import (
    AGREEMENT,
    GIVING_UP,
    OPENING,
    STOP_MARKER,
    THANKS,
    UNSURE,
    ScriptedUser,
)
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Turn, UserSource


def customer(**user_info):
    return Test.model_validate(
        {
            "name": "a test",
            "guidelines": "Be brief.",
            "turns": [{"user": "auto"}],
            "evaluations": [{"criterion": "c"}],
            "userInfo": user_info,
        }
    )


def talk(*lines):
    """Turns from alternate lines: user, agent, user, agent."""
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [
        Turn(index=index, user=user, agent=agent, user_source=UserSource.AUTO, latency_seconds=0)
        for index, (user, agent) in enumerate(pairs, start=1)
    ]


async def after(agent, **user_info):
    return await ScriptedUser().next_message(customer(**user_info), talk("Hi.", agent))


async def test_opens_plainly():
    """Before any reply there is nothing to go by."""
    assert await ScriptedUser().next_message(customer(), []) == OPENING


@pytest.mark.parametrize(
    "reply",
    [
        "Your parcel is on its way.",
        "All done. Is there anything else I can help you with?",
        "You are welcome. Have a lovely day!",
        "",
    ],
)
async def test_stops_when_nothing_is_asked(reply):
    """A closing, or an answer without a question, ends the conversation with thanks."""
    assert await after(reply, order_number="HL-1") == THANKS
    assert STOP_MARKER in THANKS


@pytest.mark.parametrize(
    ("user_info", "question"),
    [
        ({"order_number": "HL-20418"}, "What is your order number?"),
        ({"orderNumber": "HL-20418"}, "Could you give me the order number, please?"),
        ({"order-number": "HL-20418"}, "Sorry, which one? Please tell me the Order Number?"),
        ({"order": {"number": "HL-20418"}}, "May we have your order number?"),
    ],
)
async def test_answers_what_user_info_names(user_info, question):
    """Names are told apart into words, whatever way they are written, also one level down."""
    answer = await after(question, **user_info)
    assert answer.startswith("My ")
    assert answer.endswith("HL-20418.")


async def test_the_longest_name_wins():
    """`new_address` answers a question for the new address, though `address` would fit too."""
    answer = await after("What is your new address?", address="1 Mill Lane", new_address="7 Quay Street")
    assert answer == "My new address is 7 Quay Street."


async def test_only_the_last_question_counts():
    """An agent's rhetorical question before the real one is passed over."""
    answer = await after("Lost your card? Do not worry. What is your card number?", card_number=4512)
    assert answer == "My card number is 4512."


@pytest.mark.parametrize(
    "value", [None, "", {"deep": {"deeper": 1}}, []], ids=["null", "empty", "too deep", "empty list"]
)
async def test_unusable_value_is_answered_as_unknown(value):
    """Nothing is said in place of a value that is missing."""
    assert await after("What is your postcode?", postcode=value) == UNSURE


@pytest.mark.parametrize(
    ("value", "text"), [(True, "yes"), (False, "no"), (12, "12"), (["red", "blue"], "red, blue")]
)
async def test_values_of_every_kind_are_spoken(value, text):
    """Booleans and lists are said as a person says them."""
    assert await after("What is your choice?", choice=value) == f"My choice is {text}."


@pytest.mark.parametrize(
    "question",
    [
        "Shall I cancel order number HL-1 for you?",
        "Would you like me to email the label?",
        "That is 5 days from Monday. Is that correct?",
        "Are you still at home?",
    ],
)
async def test_agrees_to_proposals(question):
    """Proposals and yes-or-no questions get a yes, even where they mention something from `userInfo`."""
    assert await after(question, order_number="HL-1", email="ida@example.com") == AGREEMENT


@pytest.mark.parametrize("question", ["Is it black or white?", "Which shade would suit you?"])
async def test_does_not_know_is_said_once(question):
    """An open question that nothing answers gets a plea of ignorance, a second one the end."""
    assert await after(question) == UNSURE
    conversation = talk("Hi.", question, UNSURE, "And what size?")
    assert await ScriptedUser().next_message(customer(), conversation) == GIVING_UP


async def test_the_same_question_twice_is_the_end():
    """An agent that cannot take the answer is not told it again and again."""
    conversation = talk("Hi.", "Shall I go on?", AGREEMENT, "Sorry. Shall I go on?")
    assert await ScriptedUser().next_message(customer(), conversation) == GIVING_UP


async def test_numbers_and_addresses_do_not_break_a_question():
    """A full stop inside an amount or a name does not end the sentence."""
    answer = await after("Is 84.00 right, and what is your order number at example.com?", order_number="HL-1")
    assert answer == "My order number is HL-1."
