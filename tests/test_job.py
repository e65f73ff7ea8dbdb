"""Runs that are taken up again, and runs that end before their plan is played."""

import asyncio
import math
import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import builders as build
import fakes
import pytest
from each_row import each_row
from plans import make_plan

from ci_evals.adapters.journal.journal import Journal
from ci_evals.adapters.journal.records import JOURNAL as NAME
from ci_evals.domain.base import Interval
from ci_evals.domain.errors import AgentAccessError, AgentError, LLMError, UsageError
from ci_evals.domain.plan import BASE, HEAD, Plan
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.progress import RunResumed, TrialFinished
from ci_evals.domain.results.run import Origin, Results
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, ToolCall, Transcript, Turns
from ci_evals.domain.verdict import Finding, Outcome, Verdict
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, Limits, RunFacts, evaluate
from ci_evals.job.job import Elsewhere
from ci_evals.job.late_evidence import with_gaps
from ci_evals.job.stages import Stage, next_stage
from ci_evals.ports import Completion
from ci_evals.runner import Options, Participants
from ci_evals.stop import Stop
from ci_evals.support import dataclass_json
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections

STRICT = [{"criterion": "says yes", "strict": "contains", "text": "yes"}]
JUDGED = [{"criterion": "c"}, {"criterion": "d"}]
PASS = fakes.judge_answer("pass", "Yes.")
PRICES = PriceTable.model_validate({"models": {"scripted": {"input": 1_000_000, "output": 1_000_000}}})
"""A dollar for each token."""


def plan_of(count: int, loops: int = 1, **fields) -> Plan:
    one = {"turns": [{"user": "x"}], "maxTurns": 1, "evaluations": STRICT} | fields
    return make_plan(*({"name": f"t{index}"} | one for index in range(count)), loops=loops)


def job(plan: Plan, **fields) -> Job:
    return Job(**{"plan": plan, "policy": Policy(), "options": Options(), "redactor": Redactor()} | fields)


def says(text: str = "yes"):
    return fakes.ScriptedAgent((text,))


def agent_by_test(heard: dict[str, object]):
    """An agent that answers by the test's name: a text, or an error; else yes."""
    return fakes.ScriptedAgent(lambda test, _: heard.get(test.name, "yes"))


def trial_statuses(results: Results) -> list[str | None]:
    """How each planned trial ended, in the plan's order; None for those that were not run."""
    return [
        status
        for suite in results.suites
        for test in suite.tests
        for status in [trial.status.value for trial in test.trials] + [None] * test.not_run
    ]


async def journaled(folder, plan: Plan, agent=None, *, resume: bool = False, judge=None, **fields) -> Results:
    """A run with its journal in the folder."""
    journal = Journal(folder, resume=resume)
    participants = Participants(agent or says(), judge_llm=judge)
    more = {name: fields.pop(name) for name in ("listen", "stop") if name in fields}
    try:
        return await evaluate(job(plan, journal=journal, **fields), participants, **more)
    finally:
        journal.close()


async def run_killed_after(folder, plan, after: int, agent=None, **fields) -> Results:
    """A whole run; in the folder lies what it would have left if killed once so many trials had finished."""
    (folder / "whole").mkdir()
    count = Counter()

    def listen(event):
        count.update([type(event)])
        if isinstance(event, TrialFinished) and count[TrialFinished] == after:
            shutil.copy(folder / "whole" / NAME, folder / NAME)

    return await journaled(folder / "whole", plan, agent, listen=listen, **fields)


def alike(results: Results) -> dict:
    """All that an interruption must not change: everything but times, and what was resumed."""
    data = dataclass_json.to_value(results)
    for name in ("finishedAt", "durationSeconds", "resumed"):
        del data["run"][name]
    del data["process"]["times"]
    for suite in data["suites"]:
        del suite["process"]["times"]
        for test in suite["tests"]:
            del test["process"]["times"]
            for trial in test["trials"]:
                del trial["durationSeconds"], trial["times"]
    return data


@pytest.mark.parametrize("after", [1, 4, 7])
@pytest.mark.parametrize("parallel", [1, 3])
async def test_killed_run_resumes_without_rerunning_finished_trials(tmp_path, after, parallel):
    plan, answers = plan_of(4, loops=2), {"t1": "no", "t3": AgentError("gone")}
    options = Options(parallel=parallel, retries=0)
    whole = await run_killed_after(tmp_path, plan, after, agent_by_test(answers), options=options)
    journal, agent, texts = Journal(tmp_path, resume=True), agent_by_test(answers), []
    journal.close()
    past = journal.past
    finished = len(past.done)
    assert finished >= after
    results = await journaled(tmp_path, plan, agent, resume=True, options=options, listen=texts.append)
    assert alike(results) == alike(whole)
    assert (len(agent.sessions), texts[0]) == (8 - finished, RunResumed(finished, past.header.started_at))


async def test_resuming_finished_run_plays_nothing(tmp_path):
    first, agent = await journaled(tmp_path, plan_of(3)), says("no")
    assert alike(await journaled(tmp_path, plan_of(3), agent, resume=True)) == alike(first)
    assert agent.sessions == []


async def test_resumed_trials_are_compared_with_current_optimal_tools(tmp_path):
    """They ended before their test named optimal tools: these are no part of what makes tests the same."""
    first = await journaled(tmp_path, plan_of(1))
    second = await journaled(tmp_path, plan_of(1, optimalTools=["PAY"]), resume=True)
    assert (first.process.missed, first.process.overhead) == (None, None)
    assert (second.process.missed, second.process.overhead) == (1, -1)
    assert second.suites[0].tests[0].optimal_tools == ("PAY",)


async def test_run_killed_in_second_round_is_resumed_with_same_results(tmp_path):
    plan, answers = replace(plan_of(4, loops=5), looks=(2, 5)), {"t0": "no"}
    fields = {"policy": Policy(min_score=75)}
    whole = await run_killed_after(tmp_path, plan, 13, agent_by_test(answers), **fields)
    assert whole.run.rounds.played == 5
    agent = agent_by_test(answers)
    assert alike(await journaled(tmp_path, plan, agent, resume=True, **fields)) == alike(whole)
    assert len(agent.sessions) == 20 - 13


async def test_interrupted_trial_is_rerun_on_resume(tmp_path):
    plan, stop = plan_of(2), Stop()

    class Interrupting(fakes.ScriptedAgent):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
            if session.test.name == "t1":
                await asyncio.sleep(0.05)  # the first trial is graded meanwhile
                stop.interrupt()
                await asyncio.sleep(0)
            return fakes.reply("yes")

    results = await journaled(tmp_path, plan, Interrupting(), stop=stop)
    assert trial_statuses(results) == ["completed", "interrupted"]
    results = await journaled(tmp_path, plan, resume=True)
    assert (trial_statuses(results), results.gate.exit_code) == (["completed", "completed"], 0)


async def test_trials_are_journaled_before_they_are_reported(tmp_path):
    messages = []

    def listen(event):
        if isinstance(event, TrialFinished):
            messages.append(len((tmp_path / NAME).read_text().splitlines()) - 1)

    await journaled(tmp_path, plan_of(3), listen=listen)
    assert messages == [1, 2, 3]


class AdvancingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock a test puts forward."""

    ahead = 0.0

    def time(self):
        return super().time() + self.ahead


def test_time_limit_interrupts_trials_and_exits_3_unless_run_ends_before():
    class Slow(fakes.ScriptedAgent):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
            if session.test.name != "t0":
                await asyncio.Event().wait()
            return fakes.reply("yes")

    def listen(event):
        if isinstance(event, TrialFinished):
            asyncio.get_running_loop().ahead += 100

    limited = job(plan_of(3), limits=Limits(max_duration=50))
    with asyncio.Runner(loop_factory=AdvancingLoop) as runner:
        in_time = runner.run(evaluate(limited, Participants(says())))
        results = runner.run(evaluate(limited, Participants(Slow()), listen=listen))
    assert (trial_statuses(in_time), in_time.gate.exit_code) == (["completed"] * 3, 0)
    assert trial_statuses(results) == ["completed", "interrupted", None]
    assert (results.gate.exit_code, results.run.status) == (3, "stopped")
    assert results.run.stopped_because == "the time limit is reached (max-duration=50)"
    assert results.suites[0].tests[1].trials[0].error == "the run was ended meanwhile"


def test_time_limit_that_is_not_finite_is_rejected():
    for seconds in (math.inf, math.nan):  # the results could not show it
        with pytest.raises(UsageError, match=r"`max_duration=(inf|nan)`: it is not a limit"):
            Limits(max_duration=seconds)


async def test_fail_fast_finishes_running_trials_and_exits_1_or_3_if_invalid():
    """Whoever asks for the first failure does not ask for a score."""
    fast = Limits(fail_fast=True)
    one = job(plan_of(6), limits=fast, options=Options(parallel=2))
    results = await evaluate(one, Participants(agent_by_test({"t1": "no"})))
    assert (trial_statuses(results)[:2], trial_statuses(results)[-2:]) == (["completed"] * 2, [None, None])
    (check,) = [check for check in results.gate.checks if check.name == "fail-fast"]
    assert (check.passed, check.note) == (False, "a trial failed 'says yes' (fail-fast)")
    assert (results.gate.exit_code, results.gate.reasons) == (1, ())
    one = job(plan_of(10), limits=fast, policy=Policy(min_score=0))
    results = await evaluate(one, Participants(agent_by_test({"t9": "no"})))
    assert (trial_statuses(results), results.gate.exit_code) == (["completed"] * 10, 1)
    one = job(plan_of(3), limits=fast, options=Options(retries=0))
    results = await evaluate(one, Participants(agent_by_test({"t1": AgentError("gone")})))
    assert (trial_statuses(results), results.gate.exit_code) == (["completed", "failed", None], 3)
    assert "a trial is invalid: gone (fail-fast)" in results.gate.reasons[0]


LOST_JUDGE = [Completion(PASS), *[LLMError("down")] * 20]


@pytest.mark.parametrize(
    ("evaluations", "agent", "judges"),
    [
        (STRICT, agent_by_test({"t1": AgentError("gone")}), (None, None)),
        (JUDGED, says(), (fakes.ScriptedLLM(LOST_JUDGE), fakes.ScriptedLLM([PASS]))),
    ],
    ids=["failed", "judged in part"],
)
async def test_fail_fast_resumes_after_invalid_trial(tmp_path, evaluations, agent, judges):
    """The same command with `--resume` would else end at the same trial forever."""
    plan = plan_of(3, evaluations=evaluations)
    fields = {"limits": Limits(fail_fast=True), "options": Options(retries=0)}
    for speaking, judge, ended in zip((agent, says()), judges, (3, 0), strict=True):
        results = await journaled(tmp_path, plan, speaking, resume=True, judge=judge, **fields)
        assert results.gate.exit_code == ended
    assert trial_statuses(results) == ["completed"] * 3


async def test_fail_fast_stops_resumed_run_that_had_failed(tmp_path):
    fields = {"limits": Limits(fail_fast=True)}
    await run_killed_after(tmp_path, plan_of(4), 2, agent_by_test({"t1": "no"}), **fields)
    results = await journaled(tmp_path, plan_of(4), resume=True, **fields)
    assert (trial_statuses(results), results.gate.exit_code) == (["completed", "completed", None, None], 1)


async def test_run_stops_if_agent_or_judge_is_down_and_resumes_failed_trials_only(tmp_path):
    plan, limits = plan_of(30), Limits(failures_in_row=5)
    down = agent_by_test({f"t{index}": AgentError("refused") for index in range(3, 30)})
    results = await journaled(tmp_path, plan, down, limits=limits, options=Options(retries=0))
    assert Counter(trial_statuses(results)) == {"completed": 3, "failed": 6, None: 21}
    # The sixth had begun while the fifth was being graded.
    assert results.gate.exit_code == 3
    reason = "5 trials in a row errored or could not be judged; the last one: refused"
    assert results.run.stopped_because == reason
    agent = says()
    results = await journaled(tmp_path, plan, agent, resume=True, limits=limits)
    assert (len(agent.sessions), results.gate.exit_code) == (27, 0)
    llm = fakes.ScriptedLLM([LLMError("down")] * 200)
    plan = plan_of(30, evaluations=[{"criterion": "c"}])
    results = await evaluate(job(plan, limits=limits), Participants(says(), judge_llm=llm))
    assert Counter(trial_statuses(results))[None] >= 24
    assert "the last one: " in results.run.stopped_because
    assert "down" in results.run.stopped_because


async def test_alternating_and_simultaneous_failures_are_not_failures_in_a_row():
    """Trials that play at a time may fail together."""

    async def statuses(failing, trials, parallel):
        options, agent = Options(parallel=parallel, retries=0), agent_by_test(dict.fromkeys(failing, gone))
        one = job(plan_of(trials), limits=Limits(failures_in_row=2), options=options)
        return trial_statuses(await evaluate(one, Participants(agent)))

    gone = AgentError("flaky")
    assert None not in await statuses([f"t{index}" for index in range(0, 20, 2)], 20, 1)
    assert None in await statuses([f"t{index}" for index in range(8)], 30, 8)
    assert None not in await statuses([f"t{index}" for index in range(7)], 30, 8)


class Costly:
    """A model whose every answer costs as many dollars as it has tokens."""

    model = "scripted"

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    async def complete(self, prompt):
        await asyncio.sleep(0)
        return Completion(PASS, input_tokens=self._tokens, output_tokens=0)


async def run_at_cost(plan: Plan, most: float, tokens: int = 1, **fields) -> Results:
    one = job(plan, policy=Policy(max_cost=most), prices=lambda: PRICES, **fields)
    return await evaluate(one, Participants(says(), judge_llm=Costly(tokens)))


@pytest.mark.parametrize("parallel", [1, 4, 25])
async def test_run_starts_no_trial_that_would_exceed_max_cost(parallel):
    """Before the first has finished only a few begin, however many may play at a time."""
    results = await run_at_cost(plan_of(30, evaluations=JUDGED), 21, options=Options(parallel=parallel))
    assert Counter(trial_statuses(results)) == {"completed": 10, None: 20}
    assert (results.usage.cost_usd, results.gate.exit_code) == (20, 3)
    spent = "$20.0000 of $21 spent; another trial would exceed max-cost"
    assert parallel > 1 or spent in results.run.stopped_because


async def test_trial_that_exceeds_max_cost_is_finished_and_fails_gate():
    """Nothing else begins. If all was played, it is the gate's business alone; spent to the cent is fine."""
    results = await run_at_cost(plan_of(3, evaluations=JUDGED * 20), 5)
    assert (trial_statuses(results), results.usage.cost_usd) == (["completed", None, None], 40)
    assert results.run.stopped_because.startswith("$40.0000 of $5 spent; ")
    assert ("max-cost", False) in [(check.name, check.passed) for check in results.gate.checks]
    results = await run_at_cost(plan_of(1, evaluations=JUDGED * 20), 5)
    actual = (trial_statuses(results), results.run.status, results.gate.exit_code)
    assert actual == (["completed"], "completed", 1)
    results = await run_at_cost(plan_of(10, evaluations=JUDGED), 20)
    assert (trial_statuses(results), results.gate.exit_code) == (["completed"] * 10, 0)


async def test_bug_stops_trials_that_wait_for_first_cost():
    class Broken(fakes.ScriptedAgent):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
            raise ZeroDivisionError

    one = job(plan_of(9), policy=Policy(max_cost=1), options=Options(parallel=9))
    results = await evaluate(one, Participants(Broken()))
    assert (trial_statuses(results), results.gate.exit_code) == ([None] * 9, 70)


async def test_costs_before_interruption_count_after_resume(tmp_path):
    plan = plan_of(30, evaluations=JUDGED)
    fields = {"policy": Policy(max_cost=21), "prices": lambda: PRICES}
    count, stop = Counter(), Stop()

    def listen(event):
        count.update([type(event)])
        if count[TrialFinished] == 6:
            stop.interrupt()

    await journaled(tmp_path, plan, judge=Costly(1), listen=listen, stop=stop, **fields)
    results = await run_at_cost(plan, 21, journal=Journal(tmp_path, resume=True))
    assert Counter(trial_statuses(results)) == {"completed": 10, None: 20}


async def test_run_stopped_by_rejected_key_in_mid_run_can_be_resumed(tmp_path):
    refusing = agent_by_test({"t1": AgentAccessError("refused the key")})
    results = await journaled(tmp_path, plan_of(4), refusing)
    assert (trial_statuses(results), results.gate.exit_code) == (["completed", "failed", None, None], 3)
    results = await journaled(tmp_path, plan_of(4), resume=True)
    assert (trial_statuses(results), results.gate.exit_code) == (["completed"] * 4, 0)


async def test_journal_of_replay_is_not_resumed_by_run(tmp_path):
    """Nobody would see that its answers are those of an earlier run."""
    origin = Origin(how="replay", run="earlier", started_at=build.STARTED_AT)
    await journaled(tmp_path, plan_of(1), facts=RunFacts(origin=origin))
    with pytest.raises(UsageError, match=r"where its answers are from \(`replay=`\)"):
        await journaled(tmp_path, plan_of(1), resume=True)


async def test_recording_is_rejected_if_trials_are_played_by_other_processes(tmp_path):
    """Nobody would see that the recording lacks answers."""
    journal = Journal(tmp_path, record=tmp_path / "recording")

    def start(*_):
        raise AssertionError("nothing is to be started")

    with pytest.raises(UsageError, match="answers are recorded by one process alone"):
        await evaluate(job(plan_of(1), journal=journal), Elsewhere(Connections(provider="offline"), start))


async def test_resume_rejects_other_suites_and_other_number_of_loops(tmp_path):
    """The journal identifies tests by their position. Nothing is played."""
    three, two = plan_of(3).suites[0], plan_of(2).suites[0]
    before, after = (Plan(suites=suites, loops=1) for suites in ((three, two), (two, three)))
    await run_killed_after(tmp_path, before, 4)
    agent = says()
    with pytest.raises(UsageError, match="it differs in the suites"):
        await journaled(tmp_path, after, agent, resume=True)
    with pytest.raises(UsageError, match=r"it differs in the number of trials \(`loops=`\)"):
        await journaled(tmp_path, replace(before, loops=2), agent, resume=True)
    assert agent.sessions == []


@pytest.mark.parametrize("year", [1969, 1970, 2500, 9999])
async def test_run_completes_and_can_be_resumed_despite_wrong_clock(tmp_path, year):
    """The nearest time that results can hold stands in them, and the journal can be resumed."""
    clock = iter([datetime(year, 6, 1, tzinfo=UTC), *[datetime(1969, 1, 1, tzinfo=UTC)] * 20])
    journal = Journal(tmp_path)
    results = await evaluate(job(plan_of(2), journal=journal), Participants(says()), now=lambda: next(clock))
    journal.close()
    assert results.run.status == "completed"
    assert results.run.started_at <= results.run.finished_at
    assert len(Journal(tmp_path, resume=True).past.done) == 2


SCREENING = Stage(Plan((), loops=1, arms=(HEAD, BASE), first_arm_only=True))
NEAR = build.check("min-score", 80, 85.0, passed=True, interval=Interval(low=70, high=95))


def run_with_checks(*checks, status: str = "completed") -> Results:
    test = build.test_result(trials=(build.trial_result(status=status),))
    return build.results(build.suite_result("Refunds", test), gate=build.decision(*checks, passed=True))


def test_trials_without_score_start_base_agent_but_close_score_does_not():
    """They might have failed: then the score would have looked lower."""
    assert next_stage(SCREENING, run_with_checks(NEAR)) is None
    assert next_stage(SCREENING, run_with_checks()) is None
    stage = next_stage(SCREENING, run_with_checks(status="failed"))
    assert not stage.plan.first_arm_only
    assert stage.because == ("trials without a score: 1",)


# Results of a trial whose evidence turned out to be incomplete after it was graded.

GAP = "a span came late"
LATE = {
    "a tool that was not used": ({"strict": "tool_not_used", "toolName": "refund"}, "undecided"),
    "a tool that was used": ({"strict": "tool_used", "toolName": "lookup"}, "passed"),
    "at most so many calls": ({"strict": "max_tool_calls", "calls": 1}, "undecided"),
    "more calls than allowed": ({"strict": "max_tool_calls", "calls": 0}, "failed"),
    "a call": ({"strict": "tool_called", "toolName": "lookup"}, "passed"),
    "a missing call": ({"strict": "tool_called", "toolName": "refund"}, "undecided"),
    "no call": ({"strict": "tool_called", "toolName": "refund", "times": 0}, "undecided"),
    "a parameter that is missing": ({"strict": "param_not_exists", "paramName": "amount"}, "undecided"),
    "no hand-over": ({"strict": "not_escalated"}, "undecided"),
    "a text": ({"strict": "not_contains", "text": "refund"}, "passed"),
    "the number of turns": ({"strict": "max_agent_turns", "turns": 3}, "passed"),
}


def graded(evaluation: dict, **verdict):
    """A trial of a test with one evaluation, with the finding on whole evidence."""
    own = {"turns": [{"user": "Hi"}], "evaluations": [{"criterion": "c"} | evaluation]}
    test = Test.model_validate({"name": "t", "guidelines": "x"} | own)
    called = {"tool_calls": (ToolCall(name="lookup", arguments={}),), "workflows": ("lookup",)}
    turn = build.turn(1, agent="Hello", params={}, **called)
    result = build.trial_result(1, turns=(turn,))
    if verdict:
        outcome = Verdict(outcome=Outcome.PASSED, reason="", **verdict)
    else:
        transcript = Transcript(turns=(turn,), status=EndState.COMPLETED)
        outcome = test.evaluations[0].decide(transcript)
    finding = Finding.of(test.evaluations[0], outcome)
    return test, replace(result, turns=Turns((turn,)), findings=(finding,))


@each_row("check", LATE)
def test_late_span_leaves_undecided_only_checks_that_it_could_change(check):
    evaluation, expected = LATE[check]
    test, result = graded(evaluation)
    corrected = with_gaps(test, result, {1: GAP})
    (finding,) = corrected.findings
    assert str(finding.outcome) == expected
    if expected == "undecided":
        assert (str(finding.cause), finding.evidence) == ("no_trace", (1,))
        assert GAP in finding.reason
    else:
        assert finding == result.findings[0]
    assert (corrected.turns[0].tool_calls_partial, corrected.turns[0].trace_missing) == (True, GAP)


@each_row(
    ("evaluation", "verdict", "expected"),
    [
        ({}, {"rests_on": "absence"}, "undecided"),
        ({}, {"rests_on": "quotes"}, "passed"),
        ({"strict": "python", "function": "mine:check"}, {"evidence": ()}, "undecided"),
    ],
)
def test_late_span_leaves_verdict_on_absence_and_python_check_undecided(evaluation, verdict, expected):
    test, result = graded(evaluation, **verdict)
    (finding,) = with_gaps(test, result, {1: GAP}).findings
    assert str(finding.outcome) == expected
