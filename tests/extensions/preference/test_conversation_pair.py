"""Two conversations before a judge: what it is shown, what it may answer, and how it can fail."""

import asyncio
import json

import builders as build
import fakes
from each_row import each_row

from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.suite import AUTO, PlannedTurn
from ci_evals.extensions.preference.conversation_pair import ComparedConversation, ConversationPair
from ci_evals.support.redaction import Redactor

GOOD = json.dumps({"reasoning": " It got there. ", "better": "first"})
SECRET = "tenant-4711-blue"


def conversation_pair(
    one="user: Refund! | agent: Done.", other="user: Refund! | agent: Maybe."
) -> ConversationPair:
    test = build.test_result(user_info={"order": 7}, guidelines=f"You want it back, {SECRET}.")
    turns = (PlannedTurn(user=AUTO, expectation="starts it"),)
    talks = (ComparedConversation(turns, build.transcript(text)) for text in (one, other))
    return ConversationPair(Redactor(values=[SECRET]), test, ["The refund is started"], *talks)


async def test_judge_is_shown_both_conversations_in_either_order_without_secrets():
    llm = fakes.ScriptedLLM([GOOD])
    result = conversation_pair()
    choices = await asyncio.gather(*(result.ask(llm, swapped=swapped) for swapped in (False, True)))
    straight, swapped = (prompt.text for prompt in llm.prompts)
    assert straight.index("Done.") < straight.index("Maybe.")
    assert swapped.index("Maybe.") < swapped.index("Done.")
    for text in (straight, swapped):
        for part in ("The refund is started", '"expected": "starts it"', '"order": 7'):
            assert part in text
        assert "weight" not in text
        assert SECRET not in text
    assert [tuple(choice) for choice in choices] == [("first", "It got there.")] * 2
    assert llm.prompts[0].schema["properties"]["better"]["enum"] == ["first", "second", "tie"]


@each_row(
    "answer",
    [
        "The first is better.",
        '{"reasoning": "r", "better": "both"}',
        '{"reasoning": " ", "better": "first"}',
        '{"reasoning": "...", "better": "first"}',
        '{"reasoning": "r", "better": "first", "better": "second"}',
        '{"reasoning": "r", "better": "first", "verdict": "pass"}',
        LLMAnswerError("it refused"),
    ],
)
async def test_unreadable_answer_is_requested_once_more(answer):
    assert (await conversation_pair().ask(fakes.ScriptedLLM([answer, GOOD]), swapped=False)).better == "first"
    llm = fakes.ScriptedLLM([answer])
    choice = await conversation_pair().ask(llm, swapped=False)
    assert choice.better is None
    assert choice.reason.endswith("(asked twice)")
    assert len({prompt.sample_id for prompt in llm.prompts}) == 2


async def test_unavailable_judge_is_not_requested_again():
    llm = fakes.ScriptedLLM([LLMError("no connection")])
    assert tuple(await conversation_pair().ask(llm, swapped=False)) == (None, "no connection")
    assert len(llm.prompts) == 1
