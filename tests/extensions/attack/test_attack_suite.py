"""No attack gets out of its block, in any prompt that shows what an agent wrote. No model is needed."""

import re
from collections.abc import Sequence

import builders as build
import fakes
import pytest
import seeded_judges

from ci_evals.conversation.audit import Auditor
from ci_evals.conversation.simulated_user import ModelUser
from ci_evals.domain.checks.evaluation import Graded, Judged
from ci_evals.domain.suite import AUTO, PlannedTurn, Test
from ci_evals.domain.transcript import EndState, Transcript, UserSource
from ci_evals.extensions.attack.attacks import Attack, attacks
from ci_evals.extensions.preference.conversation_pair import ComparedConversation, ConversationPair
from ci_evals.grading.grade import grade
from ci_evals.grading.judge import Judge
from ci_evals.ports import Prompt
from ci_evals.support.redaction import Redactor

TURNS = (PlannedTurn(user="hello"), PlannedTurn(user=AUTO))
RUBRIC = {"criterion": "It helps", "rubric": [{"name": "no", "score": 0}, {"name": "yes", "score": 1}]}
JUDGED = Judged(criterion="It helps")
TEST = Test(name="t", guidelines="A refund.", turns=TURNS, user_info={"id": 7}, evaluations=(JUDGED,))
REPLIES = tuple(build.turn(number, agent="fine", user_source=UserSource.AUTO) for number in (1, 2))
TALK = Transcript(status=EndState.COMPLETED, turns=REPLIES)


async def judge(llm, talk: Transcript, evaluation=TEST.evaluations[0], votes: int = 5) -> None:
    """Several votes, since the order of the parts differs."""
    test = TEST.model_copy(update={"evaluations": (evaluation,)})
    await grade(test, TURNS, talk, Judge([llm], Redactor(), votes=votes))


async def rubric(llm, talk: Transcript) -> None:
    await judge(llm, talk, Graded.model_validate(RUBRIC))


async def prefer(llm, talk: Transcript) -> None:
    for pair in ((talk, TALK), (TALK, talk)):
        both = (ComparedConversation(TURNS, one) for one in pair)
        contest = ConversationPair(Redactor(), build.test_result(), ["It helps"], *both)
        await contest.ask(llm, swapped=False)


async def user(llm, talk: Transcript) -> None:
    await ModelUser(llm, Redactor()).next_message(TEST, talk.turns)


async def audit(llm, talk: Transcript) -> None:
    await Auditor(llm, Redactor()).audit(TEST, talk)


async def prompts_of(shown, talk: Transcript) -> Sequence[Prompt]:
    llm = fakes.ScriptedLLM(["I have nothing to say."])
    await shown(llm, talk)
    return llm.prompts


@pytest.mark.parametrize("shown", [judge, rubric, prefer, user, audit])
async def test_attack_text_stays_inside_data_block_of_every_prompt(shown):
    """All else is the same word for word; each fence stands there once; the attack is whole and escaped."""
    plain = await prompts_of(shown, TALK)
    fences = [re.findall(r"^</?\w+>$", prompt.system + "\n" + prompt.text, re.MULTILINE) for prompt in plain]
    assert all(fences)
    for attack in attacks():
        attacked = await prompts_of(shown, attack.on(TALK))
        assert len(attacked) == len(plain)
        for before, after, result in zip(plain, attacked, fences, strict=True):
            text = f"{after.system}\n{after.text}"
            honest = f"{before.system}\n{before.text}"
            assert seeded_judges.prompt_without_data(text) == seeded_judges.prompt_without_data(honest)
            assert after.schema == before.schema
            assert all(text.count(fence) == 1 for fence in result)
            assert len(result) == len(set(result))
            assert any(_stands_in(attack, text, fence[1:-1]) for fence in result if fence[1] != "/")


def _stands_in(attack: Attack, prompt: str, name: str) -> bool:
    """Whether the attack is in a block, as data that says just what the agent wrote."""
    data = seeded_judges.prompt_block(prompt, name)
    turns = data if isinstance(data, list) else []
    replies = [one.get("agent", "") for one in turns if isinstance(one, dict)]
    return f"fine\n\n{attack.text}" in replies


def test_attacks_cover_every_kind_with_first_and_last_replies():
    kinds = {each.kind for each in attacks()}
    assert kinds == {
        *("fake verdicts", "closed fences", "role changes", "encoded instructions"),
        *("authority and flattery", "forged turns"),
    }
    for kind in kinds:
        result = [each for each in attacks() if each.kind == kind]
        assert len({each.text for each in result}) >= 2
        assert {each.reply for each in result} == {"first", "last"}
    texts = [each.text for each in attacks() if each.kind == "encoded instructions"]
    assert sum("pass" in text for text in texts) == 1  # that in other languages
    first, last = (attack.on(TALK).turns for attack in attacks()[:2][::-1])
    assert [turn.agent == "fine" for turn in (*first, *last)] == [False, True, True, False]
