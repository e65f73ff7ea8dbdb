"""The offline user: says what `userInfo` knows, agrees to proposals, and always comes to an end."""

from each_row import each_row

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
    return Test(
        name="a test",
        guidelines="Be brief.",
        turns=[{"user": "auto"}],
        evaluations=[{"criterion": "c"}],
        user_info=user_info,
    )


def talk(*lines):
    """Turns from alternate lines: user, agent, user, agent."""
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [
        Turn(index=index, user=user, agent=agent, user_source=UserSource.AUTO, latency_seconds=0)
        for index, (user, agent) in enumerate(pairs, start=1)
    ]


async def answer_to(agent, **user_info):
    return await ScriptedUser().next_message(customer(**user_info), talk("Hi.", agent))


async def test_scripted_user_greets_first_and_stops_without_question():
    assert await ScriptedUser().next_message(customer(), []) == OPENING
    assert STOP_MARKER in THANKS
    for reply in (
        "Your parcel is on its way.",
        "All done. Is there anything else I can help you with?",
        "You are welcome. Have a lovely day!",
        "",
    ):
        assert await answer_to(reply, order_number="HL-1") == THANKS


@each_row(("user_info", "question"), [
    ({"order_number": "HL-20418"}, "What is your order number?"),
    ({"orderNumber": "HL-20418"}, "Could you give me the order number, please?"),
    ({"order-number": "HL-20418"}, "Sorry, which one? Please tell me the Order Number?"),
    ({"order": {"number": "HL-20418"}}, "May we have your order number?"),
])  # fmt: skip
async def test_scripted_user_answers_question_with_matching_user_info_field(user_info, question):
    answer = await answer_to(question, **user_info)
    assert answer.startswith("My ")
    assert answer.endswith("HL-20418.")


async def test_longest_matching_name_in_the_last_question_is_answered():
    answer = await answer_to("What is your new address?", address="1 Mill Lane", new_address="7 Quay Street")
    assert answer == "My new address is 7 Quay Street."
    answer = await answer_to("Lost your card? Do not worry. What is your card number?", card_number=4512)
    assert answer == "My card number is 4512."
    answer = await answer_to(
        "Is 84.00 right, and what is your order number at example.com?", order_number="HL-1"
    )
    assert answer == "My order number is HL-1."


async def test_scripted_user_answers_with_value_or_says_unsure():
    for value, text in ((True, "yes"), (False, "no"), (12, "12"), (["red", "blue"], "red, blue")):
        assert await answer_to("What is your choice?", choice=value) == f"My choice is {text}."
    for value in (None, "", {"deep": {"deeper": 1}}, []):
        assert await answer_to("What is your postcode?", postcode=value) == UNSURE


@each_row("question", [
    "Shall I cancel order number HL-1 for you?",
    "Would you like me to email the label?",
    "That is 5 days from Monday. Is that correct?",
    "Are you still at home?",
])  # fmt: skip
async def test_scripted_user_agrees_to_proposals_and_yes_no_questions(question):
    assert await answer_to(question, order_number="HL-1", email="ida@example.com") == AGREEMENT


async def test_second_unanswerable_or_repeated_question_ends_the_conversation():
    for question in ("Is it black or white?", "Which shade would suit you?"):
        assert await answer_to(question) == UNSURE
        conversation = talk("Hi.", question, UNSURE, "And what size?")
        assert await ScriptedUser().next_message(customer(), conversation) == GIVING_UP
    conversation = talk("Hi.", "Shall I go on?", AGREEMENT, "Sorry. Shall I go on?")
    assert await ScriptedUser().next_message(customer(), conversation) == GIVING_UP
