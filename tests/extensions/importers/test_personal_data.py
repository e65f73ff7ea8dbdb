"""Personal data in real conversations: stand-ins of its form, the same throughout a file."""

from each_row import each_row

from ci_evals.domain.errors import Problem
from ci_evals.domain.transcript import ToolCall
from ci_evals.extension_support.drafting.conversation import RecordedConversation, recorded_turn
from ci_evals.extension_support.drafting.personal_data import StandIns, listed_for_review

PLACE = Problem("chats.jsonl", 1, 1, "", "")


def conversation(*turns, **user_info):
    return RecordedConversation("", PLACE, turns, user_info=user_info)


@each_row(("text", "expected"), [
    ("Write to ann.b+x@mail.example.org.", "Write to user1@example.com."),
    ("Call +49 170 1234567 now", "Call +49 555 0000001 now"),
    ("Call +491701234567 now", "Call +495550000001 now"),
    ("Call 0049 170 1234567 now", "Call 0049 555 0000001 now"),
    ("Call (212) 555-0187", "Call (555) 000-0001"),
    ("Call 0170 1234567", "Call 0555 0000001"),
    ("Card 4111 1111 1111 1111", "Card 4000 0000 0000 0010"),
    ("IBAN DE89 3704 0044 0532 0130 00 please", "IBAN DE09 0000 0000 0000 0000 01 please"),
    ("IBAN BE68 5390 0754 7034 from me", "IBAN BE27 0000 0000 0001 from me"),
])  # fmt: skip
def test_stand_in_keeps_separators_country_and_valid_check_digits(text, expected):
    assert StandIns(()).text(text) == expected


def test_orders_dates_and_numbers_with_wrong_check_digits_are_kept():
    numbers = ("order 1234567890", "on 2026-11-28 at 10:30", "v1.2.3")
    for text in (*numbers, "card 4111 1111 1111 1112", "DE00 3704 0044 0532 0130 00"):
        assert StandIns(()).text(text) == text


def test_same_personal_data_gets_same_stand_in_in_all_conversations():
    arguments = {"to": "ann@x.example", "card": 4111111111111111}
    call = ToolCall(name="pay", arguments=arguments, result={"phone": ["+491701234567"]})
    turn = recorded_turn(1, "I am ann lee, ann@x.example, +49 170 1234567", "Hi Ann", [call])
    first = conversation(turn, fullName="Ann Lee", contact={"phone": "7654321"})
    second = conversation(recorded_turn(1, "ANN again: ANN@x.example, 7654321", "ok", None))
    stand_ins = StandIns([first, second])
    one, other = map(stand_ins.conversation, (first, second))
    assert one.user_info == {"fullName": "Alex Robin", "contact": {"phone": "5550002"}}
    assert one.turns[0].user == "I am alex robin, user1@example.com, +49 555 0000001"
    assert one.turns[0].agent == "Hi Alex"
    [made] = one.turns[0].tool_calls
    assert made.arguments == {"to": "user1@example.com", "card": 4000000000000010}
    assert made.result == {"phone": ["+495550000001"]}
    assert other.turns[0].user == "ALEX again: user1@example.com, 5550002"


def test_stand_ins_are_listed_without_the_data_and_are_always_different():
    stand_ins = StandIns(())
    stand_ins.text("a@x.example and a@x.example, +49 170 1234567")
    assert listed_for_review(stand_ins.review()) == [
        "e-mail a…e is now user1@example.com (2 times)",
        "phone +…7 is now +49 555 0000001 (once)",
    ]
    names = [f"{letter}nna" for letter in "BCDFGHJKLMNP"]
    people = [conversation(recorded_turn(1, "hi", "hi", None), name=name) for name in [*names, "Alex"]]
    stand_ins = StandIns(people)
    made = [stand_ins.text(name) for name in names]
    assert len(set(made)) == len(names)
    assert "Alex" not in made
