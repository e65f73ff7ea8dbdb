"""Saved conversations before another judge: what it is asked, what becomes of the results, how it may end."""

import asyncio
import json
from dataclasses import replace
from datetime import date, timedelta

import builders as build
import fakes
import pytest
import report_texts
from each_row import each_row

from ci_evals import run_suite
from ci_evals.adapters import prices as price_files
from ci_evals.domain.errors import AgentError, LLMAccessError, LLMError, UsageError
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.results.run import Origin, Results
from ci_evals.domain.results.usage import RoleUsage
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause, Outcome
from ci_evals.extension_support.rejudging import Rejudged, RejudgeJob, rejudge
from ci_evals.gate.policy import Policy
from ci_evals.grading.grade import NO_USER
from ci_evals.ports import Completion
from ci_evals.reports import report_files
from ci_evals.runner import Participants
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor

SECRET = "tenant-4711-blue"
PASS, FAIL = map(fakes.judge_answer, ("pass", "fail"))
PRICES = PriceTable(as_of=date(2026, 11, 22), models={"other": {"input": 1, "output": 0}})


def judge_saying(verdict: str, *, unless: str = "\0") -> fakes.ScriptedLLM:
    """A judge that says so of every criterion, and the opposite where it is shown the text `unless`."""
    other = {"pass": "fail", "fail": "pass"}[verdict]

    def answer(prompt):
        text = other if unless in prompt.text else verdict
        return fakes.judge_answer(text, f"I say {text}.")

    return fakes.ScriptedLLM(answer, model="other")


def suite(*tests: dict) -> dict:
    one = {
        "guidelines": "You want a refund.",
        "turns": [{"user": "hi"}],
        "maxTurns": 1,
        "evaluations": [
            {"criterion": "It is polite", "weight": 3, "category": "tone", "aui_logic": ["rule-1"]},
            {"criterion": "No forwarding", "strict": "not_escalated"},
            {"criterion": "It is brief"},
        ],
    }
    return {"name": "Refunds", "adapter": "demo", "tests": [one | {"name": "a"} | test for test in tests]}


def agent_reply(test, heard):
    """An agent for every way in which a conversation may end."""
    match test.name:
        case "hands over":
            return fakes.reply("A person will help.", workflows=("CONVERSATION_FORWARDING",))
        case "errs":
            return fakes.reply("Oops", error_response=True)
        case "breaks off" if len(heard) > 1:
            return AgentError("connection lost")
        case "never answers":
            return AgentError("no connection")
    return fakes.reply(f"You said {heard[-1]}, {SECRET}.")


MANY = suite(
    {"name": "talks", "turns": [{"user": "hi", "expectation": f"names {SECRET}"}], "maxTurns": 3},
    {"name": "stops", "turns": [{"user": "auto"}], "maxTurns": 4, "userInfo": {"id": "${TENANT}", "n": 1.5}},
    {"name": "hands over", "guidelines": "Ask for <b>a person</b>, ${TENANT}."},
    {"name": "errs"},
    {"name": "breaks off", "turns": [{"user": "1"}, {"user": "2"}], "maxTurns": 2},
    {"name": "never answers"},
    {"name": "strict alone", "evaluations": [{"criterion": "No forwarding", "strict": "not_escalated"}]},
)


def scripted_user(prompt):
    return "Thanks, bye ###STOP###" if prompt.text.count("You said") > 1 else "Go on"


async def run_with(what: dict, judge, loops: int = 1, script=agent_reply) -> Results:
    user = fakes.ScriptedLLM(scripted_user, "u")
    participants = Participants(fakes.ScriptedAgent(script), user_llm=user, judge_llm=judge)
    options = {"retries": 0, "loops": loops, "policy": Policy(max_errors=99), "judge_check": "off"}
    return saved(await run_suite(participants, what, **options))


def saved(results: Results) -> Results:
    return report_files.load(report_texts.results_json_text(results), "_results.json")


def rejudge_job(judged: Results, **fields) -> RejudgeJob:
    fields = {"provider": "openai", "policy": Policy(max_errors=99), "redactor": Redactor()} | fields
    return RejudgeJob(judged, **fields)


async def rejudged_by(judged: Results, judge, stop: Stop | None = None, **fields) -> Rejudged:
    return await rejudge(rejudge_job(judged, **fields), fakes.Judges(judge), stop=stop)


def findings(results: Results, kind: str = "judged"):
    trials = [trial for s in results.suites for test in s.tests for trial in test.trials]
    return [finding for trial in trials for finding in trial.findings if finding.kind == kind]


@pytest.fixture(autouse=True)
def tenant(monkeypatch):
    monkeypatch.setenv("TENANT", SECRET)


async def test_new_judge_gets_the_prompts_of_the_first_judge_also_after_hand_over():
    judge, other = judge_saying("pass"), judge_saying("pass")
    judged = await run_with(MANY, judge)
    await rejudged_by(judged, other)
    assert (len(judge.prompts), sorted(other.prompts, key=repr)) == (10, sorted(judge.prompts, key=repr))
    ends = {trial.status for test in judged.suites[0].tests for trial in test.trials}
    assert ends == {"completed", "stopped", "escalated", "agent_error", "failed"}
    assert "closing_remark_of_the_user" in repr(judge.prompts)
    assert '"expected": "names ***"' in other.prompts[0].text
    assert SECRET not in repr(other.prompts)
    lines = {"turns": [{"user": "hi"}, {"user": "And now?"}], "maxTurns": 2, "mayEscalate": True}
    what = suite({"name": "hands over", "evaluations": [{"criterion": "It is polite"}]} | lines)
    judge, other = judge_saying("pass"), judge_saying("pass")
    judged = await run_with(what, judge)
    rejudged = (await rejudged_by(judged, other)).results
    assert other.prompts == judge.prompts
    assert "And now?" not in judge.prompts[0].text
    assert [one.verdict for one in findings(rejudged)] == [one.verdict for one in findings(judged)]


async def test_unjudgeable_trials_and_strict_verdicts_are_kept():
    (judged,) = (await run_with(suite({"name": "a"}, {"name": "b"}), judge_saying("pass"))).suites
    test, plain = judged.tests
    (trial,) = test.trials
    unplayed = tuple(finding.with_verdict(NO_USER) for finding in trial.findings)
    test = replace(test, trials=(replace(trial, findings=unplayed),))
    other = judge_saying("fail")
    results = build.results(replace(judged, tests=(test, plain)))
    rejudged = (await rejudged_by(results, other)).results
    causes = [finding.cause for finding in findings(rejudged)]
    assert (causes, len(other.prompts)) == ([Cause.NO_USER, Cause.NO_USER, None, None], 2)
    whole = await run_with(suite({}), judge_saying("fail"), loops=2)
    (first, second) = whole.suites[0].tests[0].trials
    cut = replace(second, status=EndState.INTERRUPTED)
    judged = with_trials(whole, first, cut)
    judge = judge_saying("pass")
    got = (await rejudged_by(judged, judge)).results
    assert len(judge.prompts) == 2
    kept = got.suites[0].tests[0].trials[1]
    assert (kept.findings, [usage.role for usage in kept.usage]) == (cut.findings, [])
    assert findings(got, "strict") == findings(judged, "strict")


OWN = {"id", "startedAt", "finishedAt", "durationSeconds", "folder", "config", "odds", "origin"}
OWN |= {"environment", "times"}
"""What tells a run that was judged again from one that was judged so at once."""


def comparable(value):
    match value:
        case dict():
            return {name: comparable(item) for name, item in value.items() if name not in OWN}
        case list():
            return [comparable(item) for item in value]
        case _:
            return value


async def test_rejudged_results_equal_run_with_the_new_judge():
    judged = await run_with(MANY, judge_saying("pass"), loops=2)
    expected = await run_with(MANY, judge_saying("fail", unless="brief"), loops=2)
    judge = judge_saying("fail", unless="brief")
    got = (await rejudged_by(judged, judge, judge_model="other", prices=price_files.bundled())).results
    data, wanted = (json.loads(report_texts.results_json_text(one)) for one in (got, expected))
    for one in (data, wanted):
        del one["run"]["digests"]["models"]  # models that are objects of a caller have no provider
    assert comparable(data) == comparable(wanted)
    assert got.score != judged.score
    assert report_texts.results_json_text(saved(got)) == report_texts.results_json_text(got)


async def test_rejudged_run_reports_the_original_run_as_its_origin():
    judged = await run_with(suite({}), judge_saying("pass"))
    todo = rejudge_job(judged, judge_model="other", config={"minScore": 90})
    later = judged.run.started_at + timedelta(days=3)
    got = (await rejudge(todo, fakes.Judges(judge_saying("pass")), now=lambda: later)).results
    assert got.run.id != judged.run.id
    assert (got.run.started_at, got.run.finished_at) == (later, later)
    assert got.suites[0].folder == f"Refunds/{later:%Y-%m-%dT%H-%M-%SZ}"
    origin = got.run.origin
    assert (origin.how, origin.run, origin.started_at) == ("rejudge", judged.run.id, judged.run.started_at)
    assert got.suites[0].judge_model == "other"
    assert got.run.config == judged.run.config | {"minScore": 90, "provider": "openai"}
    assert got.run.git == judged.run.git
    assert got.run.digests.models != judged.run.digests.models
    assert got.run.digests.user_prompt == judged.run.digests.user_prompt
    for how in ("replay", "rejudge"):
        first = Origin(how=how, run="first", started_at=judged.run.started_at - timedelta(days=9))
        again = rejudge_job(replace(judged, run=replace(judged.run, origin=first)))
        got = (await rejudge(again, fakes.Judges(judge_saying("pass")))).results.run.origin
        assert (got.how, got.run, got.started_at) == ("rejudge", "first", first.started_at)


def test_judge_models_come_from_options_then_run_then_provider():
    own = build.suite_result(judge_model="theirs")
    judged = build.results(own)
    assert who(rejudge_job(judged, judge_model="named"), own) == (("named",), 1)
    assert who(rejudge_job(judged), own) == (("theirs",), 1)
    assert who(rejudge_job(judged, provider="anthropic"), own) == (("claude-sonnet-5-5",), 1)
    assert who(rejudge_job(judged), build.suite_result(judge_model=None)) == (("gpt-6.1-terra",), 1)
    several = build.suite_result(judge_model="a", judge_panel=("a", "b"), judge_votes=5)
    assert who(rejudge_job(judged), several) == (("a", "b"), 5)
    assert who(rejudge_job(judged, judge_model="named"), several) == (("named",), 5)
    assert who(rejudge_job(judged, judge_panel=("c", "d")), several) == (("c", "d"), 3)
    assert who(rejudge_job(judged, judge_votes=7), several) == (("a", "b"), 7)


def who(job: RejudgeJob, suite) -> tuple[tuple[str, ...], int]:
    models = job.models_of(suite)
    return models.judges, models.votes


async def test_each_verdict_is_reported_before_and_after():
    judged = await run_with(suite({"name": "a"}, {"name": "b"}), judge_saying("pass", unless="brief"))
    result = await rejudged_by(judged, judge_saying("pass"))
    texts = [(v.test, v.after.criterion, v.before.outcome, v.after.outcome) for v in result.verdicts]
    before = {"It is polite": "passed", "It is brief": "failed"}
    assert texts == [(test, name, before[name], "passed") for test in ("a", "b") for name in before]
    assert result.not_judged == 0


async def test_rejudge_decides_criteria_that_had_no_judge():
    judged = await run_with(suite({}), None)
    assert {finding.cause for finding in findings(judged)} == {Cause.NO_JUDGE}
    got = (await rejudged_by(judged, judge_saying("pass"))).results
    assert (got.score, got.counts.errors) == (100, 0)


def with_trials(results: Results, *trials) -> Results:
    (only,) = results.suites
    test = replace(only.tests[0], trials=trials)
    return replace(results, suites=(replace(only, tests=(test,)),))


async def test_rejudged_stopped_run_stays_stopped_and_exits_3():
    judged = await run_with(suite({}), judge_saying("pass"))
    info = replace(judged.run, status="stopped", stopped_because="out of time")
    got = (await rejudged_by(replace(judged, run=info), judge_saying("pass"))).results
    assert got.gate.reasons == ("the saved run was stopped: out of time",)
    assert (got.gate.exit_code, got.run.status) == (3, "stopped")


async def test_model_family_warning_is_kept_only_if_the_new_judge_is_of_that_family():
    akin = "judge and agent are from the same model family: gpt-6 judges gpt-5 (GPT); models tend to …"
    judged = await run_with(suite({}), judge_saying("pass"))
    info = replace(judged.run, warnings=(akin, "something else"))
    judged = replace(judged, run=info)
    for model, warnings in (("claude-opus-5-5", ("something else",)), ("gpt-7", (akin, "something else"))):
        got = await rejudged_by(judged, judge_saying("pass"), judge_model=model)
        assert got.results.run.warnings == warnings


async def test_notes_on_rate_limits_become_warnings_of_the_rejudged_run():
    todo = rejudge_job(await run_with(suite({}), judge_saying("pass")))
    result = await rejudge(todo, fakes.Judges(judge_saying("pass"), notes=("limited 37 times",)))
    assert result.results.run.warnings == ("limited 37 times",)


async def test_rejudge_keeps_simulated_user_cost_and_replaces_judge_cost():
    judged = await run_with(suite({}), judge_saying("pass"))
    judge = RoleUsage(role="judge", model="before", calls=9, input_tokens=90, cost_usd=7)
    spent = (RoleUsage(role="user", model="u", calls=4, input_tokens=40, cost_usd=0.5), judge)
    usage = replace(judged.usage, by_role=spent, unpriced=(), prices_as_of=date(2026, 1, 1))
    got = (await rejudged_by(replace(judged, usage=usage), judge_saying("pass"), prices=PRICES)).results.usage
    costs = [(one.role, one.model, one.calls, one.cost_usd) for one in got.by_role]
    assert costs == [("judge", "other", 2, pytest.approx(0.0002)), ("user", "u", 4, 0.5)]
    assert got.cost_usd == pytest.approx(0.5002)
    assert (got.calls, got.tokens.input, got.prices_as_of) == (6, 240, date(2026, 1, 1))


async def test_parallel_limits_concurrent_trials():
    now = most = 0

    class Slow:
        model = "other"

        async def complete(self, _):
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1
            return Completion(PASS)

    await rejudged_by(await run_with(suite({}), judge_saying("pass"), loops=5), Slow(), parallel=2)
    assert most == 4  # two criteria each


async def test_interruption_keeps_given_verdicts():
    judged = await run_with(suite({}), judge_saying("pass"), loops=3)
    stop, asked = Stop(), []

    class Slow:
        model = "other"

        async def complete(self, prompt):
            asked.append(prompt)
            if len(asked) == 4:
                await asyncio.sleep(0.01)
                stop.interrupt()
                await asyncio.Event().wait()
            return Completion(FAIL)

    result = await rejudged_by(judged, Slow(), stop)
    outcomes = [finding.outcome for finding in findings(result.results)]
    assert outcomes == [Outcome.FAILED] * 3 + [Outcome.UNDECIDED] * 3
    assert findings(result.results)[-1].reason == "the run was interrupted before the judge had answered"
    assert (result.results.gate.exit_code, result.results.run.status) == (130, "interrupted")
    assert (result.not_judged, len(result.verdicts)) == (3, 3)


async def test_refused_key_stops_rejudge():
    judge = fakes.ScriptedLLM([LLMAccessError("OpenAI refused the key")])
    result = await rejudged_by(await run_with(suite({}), judge_saying("pass"), loops=5), judge)
    assert (len(judge.prompts), result.results.gate.exit_code) == (2, 3)
    assert result.results.gate.reasons[0] == "the run stopped early: OpenAI refused the key"
    assert {finding.outcome for finding in findings(result.results)} == {Outcome.UNDECIDED}
    assert (result.not_judged, len(result.verdicts)) == (8, 2)
    judge = judge_saying("pass")

    async def check():
        raise LLMAccessError("OpenAI refused the key")

    todo = rejudge_job(await run_with(suite({}), judge_saying("pass")))
    result = await rejudge(todo, fakes.Judges(judge, check))
    assert judge.prompts == []
    assert result.results.gate.reasons[0] == "the run stopped early: OpenAI refused the key"


async def test_ten_unjudged_trials_in_a_row_stop_rejudge():
    judge = fakes.ScriptedLLM([*[LLMError("down")] * 18, *[PASS] * 2, LLMError("down")])
    result = await rejudged_by(await run_with(suite({}), judge_saying("pass"), loops=40), judge)
    assert len(judge.prompts) == 18 + 2 + 20
    reason = "in 10 trials in a row nothing could be judged, in the last one since down"
    assert result.results.run.stopped_because == reason


async def test_internal_error_keeps_given_verdicts():
    judge = fakes.ScriptedLLM([*[FAIL] * 2, RuntimeError("a bug")])
    stop = Stop()
    result = await rejudged_by(await run_with(suite({}), judge_saying("pass"), loops=3), judge, stop)
    assert isinstance(stop.bug, RuntimeError)
    assert result.results.gate.exit_code == 70
    assert [finding.outcome for finding in findings(result.results)][:2] == [Outcome.FAILED] * 2


async def test_max_cost_stops_before_next_trial_and_needs_price():
    judge = fakes.ScriptedLLM([Completion(PASS, cost_usd=0.1)], model="other")
    policy = Policy(max_cost=0.65, max_errors=99)
    judged = await run_with(suite({}), judge_saying("pass"), loops=9)
    result = await rejudged_by(judged, judge, policy=policy, prices=PRICES, judge_model="other")
    assert (len(judge.prompts), result.results.usage.cost_usd) == (6, pytest.approx(0.6))
    assert "$0.6000 of $" in result.results.gate.reasons[0]
    with pytest.raises(UsageError, match="there is no price for gpt-x"):
        await rejudged_by(judged, judge, policy=policy, prices=PRICES, judge_model="gpt-x")


async def test_secrets_in_judge_answers_are_redacted():
    key = "sk-the-key-of-the-judge"
    judge = fakes.ScriptedLLM([fakes.judge_answer("fail", f"By {key}.")])
    judged = await run_with(suite({}), judge_saying("pass"))
    result = await rejudged_by(judged, judge, redactor=Redactor([key]))
    assert key not in report_texts.results_json_text(result.results) + repr(result.verdicts)


EMPTY_CRITERION = "is not valid in saved results: criterion"


@each_row(
    ("spoil", "message"),
    [
        (lambda trial: trial["turns"][0].update(index=7), "are not numbered from 1"),
        (lambda trial: trial["findings"][0].update(criterion=" "), EMPTY_CRITERION),
        (lambda trial: trial.update(findings=[]), "it has no judged verdict to judge again"),
    ],
)
async def test_invalid_saved_trials_are_refused_before_the_judge_is_asked(spoil, message):
    data = json.loads(report_texts.results_json_text(await run_with(suite({}), judge_saying("pass"))))
    spoil(data["suites"][0]["tests"][0]["trials"][0])
    judge = judge_saying("pass")
    with pytest.raises(UsageError, match=message):
        await rejudged_by(report_files.load(json.dumps(data), "_results.json"), judge)
    assert judge.prompts == []
