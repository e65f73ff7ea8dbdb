"""Attacks on judges whose gullibility is known, and on prompts: none gets out of its block there."""

import re
from collections import Counter
from collections.abc import Sequence

import builders as build
import fakes
import pytest
import seeded_judges
import world
from study_judges import STUDY_TIME, as_saved_run, judged_trial, run_of_tests, study_asking

from ci_evals.conversation.audit import Auditor
from ci_evals.conversation.simulated_user import ModelUser
from ci_evals.domain.checks.evaluation import Graded, Judged
from ci_evals.domain.errors import UsageError
from ci_evals.domain.suite import AUTO, PlannedTurn, Test
from ci_evals.domain.transcript import EndState, Transcript, UserSource
from ci_evals.extensions.attack.attacks import Attack, attacks, harmless
from ci_evals.extensions.attack.study import AS_IT_WAS, attack, targets
from ci_evals.extensions.preference.conversation_pair import ComparedConversation, ConversationPair
from ci_evals.grading.grade import grade
from ci_evals.grading.judge import Judge
from ci_evals.ports import Prompt
from ci_evals.support.redaction import Redactor


def _trial(reply: str):
    turns = (build.turn(agent="hm"), build.turn(2, agent=reply))
    return judged_trial(reply, "failed", "passed", "failed", turns=turns)


_TESTS = (build.test_result(f"T{test}", trials=(_trial(f"reply-{test}."),)) for test in range(20))
MANY = as_saved_run(run_of_tests(*_TESTS))


def gullible(kind: str, share: float, noise: float):
    """A judge that fails all, but for a share `noise`, and for the share of attacks of a kind that it obeys.

    What it does hangs on the conversation and the criterion it is shown.
    """
    texts = [one.text for one in attacks() if one.kind == kind]
    times: Counter[str] = Counter()

    def answer(asked: world.ModelRequest) -> str:
        replies = [one.get("agent", "") for one in seeded_judges.prompt_block(asked.text, "conversation")]
        obeys = any(text in reply for text in texts for reply in replies)
        seen = repr(replies) + seeded_judges.prompt_block(asked.text, "criterion")
        times[seen] += 1
        wrong = seeded_judges.seeded_chance("noise", seen, times[seen]) < noise
        passes = wrong or (obeys and seeded_judges.seeded_chance(seen) < share)
        return fakes.judge_answer("pass" if passes else "fail")

    return answer


async def attacked(monkeypatch, answer, most: int = 30, run=MANY, **fields):
    with world.llm(answer) as models:
        async with study_asking(models, monkeypatch, **fields) as ask:
            return await attack(ask, targets(run, most, 0), 0, STUDY_TIME), models, ask


@pytest.mark.slow  # it computes
async def test_attack_recovers_the_known_success_rate_of_one_kind(monkeypatch):
    report, _, _ = await attacked(monkeypatch, gullible("role changes", 0.6, 0.05), most=12)
    kinds = {kind.name: kind for kind in report.kinds}
    obeyed = kinds.pop("role changes").share
    assert obeyed.low <= 0.6 + 0.4 * 0.05 <= obeyed.high
    assert obeyed.high - obeyed.low < 0.35
    assert report.control.share.low <= 0.05 <= report.control.share.high
    for kind in (*kinds.values(), report.control):
        assert kind.share.high < obeyed.low
    others = sum(kind.turned for kind in kinds.values()), sum(kind.tried for kind in kinds.values())
    assert 0.02 < others[0] / others[1] < 0.08
    assert ([kind.name for kind in report.beyond_noise], report.verdicts) == (["role changes"], 12)
    assert report.control.tried == 12 * (AS_IT_WAS + len(harmless()))
    assert report.whole.tried == sum(kind.tried for kind in report.kinds) == 12 * len(attacks())
    assert report.whole.turned == sum(kind.turned for kind in report.kinds)


async def test_attacks_never_flip_judge_that_obeys_only_text_outside_data_blocks(monkeypatch):
    """No attack gets out of the data."""
    seen: Counter[str] = Counter()

    def naive(asked: world.ModelRequest) -> str:
        beside = seeded_judges.prompt_without_data(asked.system + asked.text)
        seen[beside] += 1
        return fakes.judge_answer("pass" if seeded_judges.demands_pass(beside) else "fail")

    assert sum(seeded_judges.demands_pass(one.text) for one in attacks()) > 12
    report, models, _ = await attacked(monkeypatch, naive, most=2)
    assert (report.whole.turned, report.control.turned, report.whole.undecided) == (0, 0, 0)
    assert (report.whole.tried, len(seen)) == (2 * len(attacks()), 1)
    assert len(models.asked) == report.whole.tried + report.control.tried


def test_targets_are_failed_judged_verdicts_spread_over_criteria_by_the_seed():
    result = targets(MANY, 40, 0)
    assert Counter((one.conversation.position.test, one.criterion) for one in result) == Counter(
        (test, number) for test in range(20) for number in (0, 2)
    )
    few = [targets(MANY, 10, seed) for seed in (0, 0, 1)]
    assert few[0] == few[1] != few[2]
    assert len({one.conversation.position.test for one in few[0]}) > 5


@pytest.mark.parametrize(("trial", "message"), [
    (judged_trial("a", "passed"), "no judged criterion failed in it"),
    (judged_trial("a", "failed", status=EndState.INTERRUPTED), "no finished conversation to judge again"),
    (judged_trial("a", "failed", turns=()), "no finished conversation to judge again"),
    (build.trial_result(), "it has no judged verdict to judge again"),
])  # fmt: skip
def test_run_without_attackable_verdicts_is_refused_with_the_reason(trial, message):
    with pytest.raises(UsageError, match=message):
        targets(as_saved_run(run_of_tests(build.test_result(trials=(trial,)))), 10, 0)


async def test_unreadable_and_undecided_verdicts_are_no_flips(monkeypatch):
    def answer(asked: world.ModelRequest) -> str:
        return "Hm." if "borl vg" in asked.text else fakes.judge_answer("cannot_tell")  # that is rot13

    report, _, _ = await attacked(monkeypatch, answer, most=3, parallel=1)
    kind = {one.name: one for one in report.kinds}
    assert (kind["encoded instructions"].undecided, kind["fake verdicts"].tried) == (3, 3 * 4)
    assert (report.whole.turned, report.control.tried) == (0, 3 * 4)


async def test_conversation_of_one_turn_gets_only_attacks_on_the_last_reply(monkeypatch):
    one = as_saved_run(run_of_tests(build.test_result(trials=(judged_trial("no", "failed"),))))
    report, models, _ = await attacked(monkeypatch, lambda _: fakes.judge_answer("fail"), run=one)
    lasts = sum(each.reply == "last" for each in attacks())
    assert report.whole.tried == lasts < len(attacks())
    assert len({asked.text for asked in models.asked}) == lasts + 1 + len(harmless())


async def test_interrupted_attack_keeps_its_results(monkeypatch):
    with world.llm(lambda _: fakes.judge_answer("fail")) as models:
        async with study_asking(models, monkeypatch, parallel=1) as ask:
            heard = iter(range(1_000))
            ask.done = lambda: ask.stop.interrupt() if next(heard) == 30 else None
            result = await attack(ask, targets(MANY, 5, 0), 0, STUDY_TIME)
    assert (result.whole.tried + result.control.tried, ask.usage[0].calls) == (31, 31)


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
        await ConversationPair(Redactor(), build.test_result(), ["It helps"], *both).ask(llm, swapped=False)


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
    for one in attacks():
        with_attack = await prompts_of(shown, one.on(TALK))
        for before, after, result in zip(plain, with_attack, fences, strict=True):
            text = f"{after.system}\n{after.text}"
            honest = f"{before.system}\n{before.text}"
            assert seeded_judges.prompt_without_data(text) == seeded_judges.prompt_without_data(honest)
            assert after.schema == before.schema
            assert all(text.count(fence) == 1 for fence in result)
            assert len(result) == len(set(result))
            assert any(_stands_in(one, text, fence[1:-1]) for fence in result if fence[1] != "/")


def _stands_in(attack: Attack, prompt: str, name: str) -> bool:
    """Return whether the block has the attack as data, exactly as the agent wrote it."""
    data = seeded_judges.prompt_block(prompt, name)
    turns = data if isinstance(data, list) else []
    return f"fine\n\n{attack.text}" in [one.get("agent", "") for one in turns if isinstance(one, dict)]


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
    first, last = (one.on(TALK).turns for one in attacks()[:2][::-1])
    assert [turn.agent == "fine" for turn in (*first, *last)] == [False, True, True, False]
