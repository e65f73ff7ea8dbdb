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
from plans import make_plan

from ci_evals.adapters.journal.journal import Journal
from ci_evals.adapters.journal.records import JOURNAL as NAME
from ci_evals.domain.errors import AgentAccessError, AgentError, LLMError, UsageError
from ci_evals.domain.plan import Plan
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.progress import RunResumed, TrialFinished
from ci_evals.domain.results.run import Origin, Results
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, Limits, RunFacts, evaluate
from ci_evals.job.job import Elsewhere
from ci_evals.ports import Completion
from ci_evals.runner import Options, Participants
from ci_evals.stop import Stop
from ci_evals.support import dataclass_json
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections

STRICT = [{"criterion": "says yes", "strict": "contains", "text": "yes"}]
PASS = fakes.judge_answer("pass", "Yes.")
PRICES = PriceTable.model_validate({"models": {"scripted": {"input": 1_000_000, "output": 1_000_000}}})
"""A dollar for each token."""


def some(count: int, loops: int = 1, **fields) -> Plan:
    one = {"turns": [{"user": "x"}], "maxTurns": 1, "evaluations": STRICT} | fields
    return make_plan(*({"name": f"t{index}"} | one for index in range(count)), loops=loops)


def job(plan: Plan, **fields) -> Job:
    return Job(**{"plan": plan, "policy": Policy(), "options": Options(), "redactor": Redactor()} | fields)


def says(text: str = "yes"):
    return fakes.ScriptedAgent((text,))


def by_name(heard: dict[str, object]):
    """An agent that answers by the test's name: a text, or an error; else yes."""
    return fakes.ScriptedAgent(lambda test, _: heard.get(test.name, "yes"))


def played(results: Results) -> list[str | None]:
    """How each planned trial ended, in the plan's order; None for those that were not run."""
    return [
        status
        for suite in results.suites
        for test in suite.tests
        for status in [trial.status.value for trial in test.trials] + [None] * test.not_run
    ]


async def halted(folder, plan, after: int, agent=None, **fields) -> Results:
    """A whole run; in the folder lies what it would have left if killed once so many trials had finished."""
    (folder / "whole").mkdir()
    journal, count = Journal(folder / "whole"), Counter()

    def listen(event):
        count.update([type(event)])
        if isinstance(event, TrialFinished) and count[TrialFinished] == after:
            shutil.copy(folder / "whole" / NAME, folder / NAME)

    whole = await evaluate(job(plan, journal=journal, **fields), Participants(agent or says()), listen=listen)
    journal.close()
    return whole


def alike(results: Results) -> dict:
    """What must not differ where a run was interrupted: all but times, and what was resumed."""
    data = dataclass_json.to_value(results)
    data["run"] = {
        name: value
        for name, value in data["run"].items()
        if name not in {"finishedAt", "durationSeconds", "resumed"}
    }
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
async def test_killed_run_resumes(tmp_path, after, parallel):
    """No finished trial is rerun, and the results are those of a run that was not killed."""
    plan, answers = some(4, loops=2), {"t1": "no", "t3": AgentError("gone")}
    options = Options(parallel=parallel, retries=0)
    whole = await halted(tmp_path, plan, after, by_name(answers), options=options)
    journal, agent, texts = Journal(tmp_path, resume=True), by_name(answers), []
    finished = len(journal.past.done)
    assert finished >= after
    results = await evaluate(
        job(plan, options=options, journal=journal), Participants(agent), listen=texts.append
    )
    assert alike(results) == alike(whole)
    assert len(agent.sessions) == 8 - finished
    assert texts[0] == RunResumed(finished, journal.past.header.started_at)
    journal.close()


async def test_a_run_that_had_ended_plays_nothing(tmp_path):
    """To take it up twice does no harm."""
    plan, journal = some(3), Journal(tmp_path)
    first = await evaluate(job(plan, journal=journal), Participants(says()))
    journal.close()
    journal, agent = Journal(tmp_path, resume=True), says("no")
    second = await evaluate(job(plan, journal=journal), Participants(agent))
    journal.close()
    assert alike(second) == alike(first)
    assert agent.sessions == []


async def test_trials_taken_up_are_held_against_what_is_optimal_now(tmp_path):
    """They ended before their test named its shortest way: it is no part of what makes tests the same."""
    journal = Journal(tmp_path)
    first = await evaluate(job(some(1), journal=journal), Participants(says()))
    journal.close()
    journal = Journal(tmp_path, resume=True)
    second = await evaluate(job(some(1, optimalTools=["PAY"]), journal=journal), Participants(says()))
    journal.close()
    assert (first.process.missed, first.process.overhead) == (None, None)
    assert (second.process.missed, second.process.overhead) == (1, -1)
    assert second.suites[0].tests[0].optimal_tools == ("PAY",)


async def test_second_look_resumes_too(tmp_path):
    """Its trials stand in the journal as those of the first look do, and are told from them."""
    plan, answers = replace(some(4, loops=5), looks=(2, 5)), {"t0": "no"}
    fields = {"policy": Policy(min_score=75)}
    whole = await halted(tmp_path, plan, 13, by_name(answers), **fields)
    assert whole.run.rounds.played == 5
    journal, agent = Journal(tmp_path, resume=True), by_name(answers)
    results = await evaluate(job(plan, journal=journal, **fields), Participants(agent))
    journal.close()
    assert alike(results) == alike(whole)
    assert len(agent.sessions) == 20 - 13


async def test_an_interrupted_trial_is_played_again(tmp_path):
    """It had not finished."""
    plan, stop, journal = some(2), Stop(), Journal(tmp_path)

    class Interrupting(fakes.ScriptedAgent):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
            if session.test.name == "t1":
                await asyncio.sleep(0.05)  # the first trial is graded meanwhile
                stop.interrupt()
                await asyncio.sleep(0)
            return fakes.reply("yes")

    results = await evaluate(job(plan, journal=journal), Participants(Interrupting()), stop=stop)
    journal.close()
    assert played(results) == ["completed", "interrupted"]
    journal = Journal(tmp_path, resume=True)
    results = await evaluate(job(plan, journal=journal), Participants(says()))
    journal.close()
    assert played(results) == ["completed", "completed"]
    assert results.gate.exit_code == 0


async def test_trials_are_in_the_journal_before_they_are_reported(tmp_path):
    """Whoever reads that a trial has finished can rely on it."""
    journal = Journal(tmp_path)
    messages = []

    def listen(event):
        if isinstance(event, TrialFinished):
            messages.append(len((tmp_path / NAME).read_text().splitlines()) - 1)

    one = job(some(3), journal=journal)
    await evaluate(one, Participants(says()), listen=listen)
    journal.close()
    assert messages == [1, 2, 3]


class AdvancingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock a test puts forward."""

    ahead = 0.0

    def time(self):
        return super().time() + self.ahead


def test_a_run_whose_time_is_up_ends_in_order():
    """What had finished is reported, what is under way is cut off, the rest is not run: exit 3."""

    class Slow(fakes.ScriptedAgent):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
            if session.test.name != "t0":
                await asyncio.Event().wait()
            return fakes.reply("yes")

    def listen(event):
        if isinstance(event, TrialFinished):
            asyncio.get_running_loop().ahead += 100

    limited = job(some(3), limits=Limits(max_duration=50))
    with asyncio.Runner(loop_factory=AdvancingLoop) as runner:
        results = runner.run(evaluate(limited, Participants(Slow()), listen=listen))
    assert played(results) == ["completed", "interrupted", None]
    assert (results.gate.exit_code, results.run.status) == (3, "stopped")
    assert results.run.stopped_because == "the time limit is reached (max-duration=50)"
    error = results.suites[0].tests[1].trials[0].error
    assert error == "the run was ended meanwhile"


async def test_time_enough_changes_nothing():
    """And leaves no timer behind."""
    results = await evaluate(job(some(2), limits=Limits(max_duration=60)), Participants(says()))
    assert (played(results), results.gate.exit_code) == (["completed"] * 2, 0)


async def test_fail_fast_ends_with_what_failed():
    """The trials under way are played to their end, since they are paid for; exit 1, and the gate says it."""
    results = await evaluate(
        job(some(6), limits=Limits(fail_fast=True), options=Options(parallel=2)),
        Participants(by_name({"t1": "no"})),
    )
    assert played(results)[:2] == ["completed"] * 2
    assert played(results)[-2:] == [None, None]
    assert results.gate.exit_code == 1
    (check,) = [check for check in results.gate.checks if check.name == "fail-fast"]
    assert (check.passed, check.note) == (False, "a trial failed 'says yes' (fail-fast)")
    assert results.gate.reasons == ()


async def test_fail_fast_counts_even_where_the_score_would_hold():
    """Whoever asks for the first failure does not ask for a score."""
    one = job(some(10), limits=Limits(fail_fast=True), policy=Policy(min_score=0))
    results = await evaluate(one, Participants(by_name({"t9": "no"})))
    assert (played(results), results.gate.exit_code) == (["completed"] * 10, 1)


async def test_fail_fast_at_a_trial_that_broke_off_cannot_be_trusted():
    """Exit 3, as without it."""
    results = await evaluate(
        job(some(3), limits=Limits(fail_fast=True), options=Options(retries=0)),
        Participants(by_name({"t1": AgentError("gone")})),
    )
    assert (played(results), results.gate.exit_code) == (["completed", "failed", None], 3)
    assert "a trial is invalid: gone (fail-fast)" in results.gate.reasons[0]


async def test_fail_fast_goes_on_once_what_broke_off_can_be_played(tmp_path):
    """The same command with `--resume` would else end at the same trial for ever."""
    fields = {"limits": Limits(fail_fast=True), "options": Options(retries=0)}
    for agent, ended in ((by_name({"t1": AgentError("gone")}), 3), (says(), 0)):
        journal = Journal(tmp_path, resume=True)
        results = await evaluate(job(some(3), journal=journal, **fields), Participants(agent))
        journal.close()
        assert results.gate.exit_code == ended
    assert played(results) == ["completed"] * 3


async def test_fail_fast_resumes_at_a_trial_that_was_judged_in_part(tmp_path):
    """Of its two criteria one had a verdict when the judge was lost."""
    plan = some(3, evaluations=JUDGED)
    lost = fakes.ScriptedLLM([Completion(PASS), *[LLMError("down")] * 20])
    for judge, ended in ((lost, 3), (fakes.ScriptedLLM([PASS]), 0)):
        journal = Journal(tmp_path, resume=True)
        one = job(plan, journal=journal, limits=Limits(fail_fast=True))
        results = await evaluate(one, Participants(says(), judge_llm=judge))
        journal.close()
        assert results.gate.exit_code == ended
    assert played(results) == ["completed"] * 3


@pytest.mark.parametrize("seconds", [math.inf, math.nan])
def test_a_duration_without_end_is_refused(seconds):
    """It could not be told in the results."""
    with pytest.raises(UsageError, match=r"`max_duration=(inf|nan)`: it is not a limit"):
        Limits(max_duration=seconds)


async def test_fail_fast_looks_at_what_had_failed_before(tmp_path):
    """A run that was killed right after its first failure does not go on past it."""
    fields = {"limits": Limits(fail_fast=True)}
    await halted(tmp_path, some(4), 2, by_name({"t1": "no"}), **fields)
    journal, agent = Journal(tmp_path, resume=True), says()
    results = await evaluate(job(some(4), journal=journal, **fields), Participants(agent))
    journal.close()
    assert (played(results), results.gate.exit_code) == (["completed", "completed", None, None], 1)


async def test_run_stops_early_if_the_agent_is_down_and_resumes_only_what_broke(tmp_path):
    """Exit 3; when it is back, what broke off is rerun and nothing else is."""
    plan, limits = some(30), Limits(failures_in_row=5)
    answers = {f"t{index}": AgentError("refused") for index in range(3, 30)}
    journal = Journal(tmp_path)
    one = job(plan, limits=limits, journal=journal, options=Options(retries=0))
    results = await evaluate(one, Participants(by_name(answers)))
    journal.close()
    assert Counter(played(results)) == {"completed": 3, "failed": 6, None: 21}
    # The sixth had begun while the fifth was being graded.
    assert results.gate.exit_code == 3
    assert results.run.stopped_because == (
        "5 trials in a row errored or could not be judged; the last one: refused"
    )
    journal, agent = Journal(tmp_path, resume=True), says()
    results = await evaluate(job(plan, limits=limits, journal=journal), Participants(agent))
    journal.close()
    assert (len(agent.sessions), results.gate.exit_code) == (27, 0)


async def test_a_judge_that_is_gone_ends_the_run_too():
    """Each conversation costs, and none could be judged."""
    llm = fakes.ScriptedLLM([LLMError("down")] * 200)
    plan = some(30, evaluations=[{"criterion": "c"}])
    results = await evaluate(job(plan, limits=Limits(failures_in_row=5)), Participants(says(), judge_llm=llm))
    assert Counter(played(results))[None] >= 24
    assert "the last one: " in results.run.stopped_because
    assert "down" in results.run.stopped_because


async def test_failures_between_successes_end_nothing():
    """They are counted in the gate, as ever."""
    answers = {f"t{index}": AgentError("flaky") for index in range(0, 20, 2)}
    one = job(some(20), limits=Limits(failures_in_row=2), options=Options(retries=0))
    assert None not in played(await evaluate(one, Participants(by_name(answers))))


async def test_one_fault_that_hits_all_at_once_is_not_many_in_a_row():
    """As many as play at a time may fail together."""
    answers = {f"t{index}": AgentError("blip") for index in range(8)}
    options = Options(parallel=8, retries=0)
    one = job(some(30), limits=Limits(failures_in_row=2), options=options)
    assert Counter(played(await evaluate(one, Participants(by_name(answers)))))[None] > 0
    answers.popitem()
    assert None not in played(await evaluate(one, Participants(by_name(answers))))


class Costly:
    """A model whose every answer costs as many dollars as it has tokens."""

    model = "scripted"

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    async def complete(self, prompt):
        await asyncio.sleep(0)
        return Completion(PASS, input_tokens=self._tokens, output_tokens=0)


async def dear(plan: Plan, most: float, tokens: int = 1, **fields) -> Results:
    one = job(plan, policy=Policy(max_cost=most), prices=lambda: PRICES, **fields)
    return await evaluate(one, Participants(says(), judge_llm=Costly(tokens)))


JUDGED = [{"criterion": "c"}, {"criterion": "d"}]


@pytest.mark.parametrize("parallel", [1, 4, 25])
async def test_a_run_keeps_to_its_budget(parallel):
    """It begins no trial that the budget would not hold, judged by those that have finished: exit 3.

    Before the first has finished only a few begin, however many may play at a time.
    """
    results = await dear(some(30, evaluations=JUDGED), 21, options=Options(parallel=parallel))
    assert Counter(played(results)) == {"completed": 10, None: 20}
    assert results.usage.cost_usd == 20
    assert results.gate.exit_code == 3
    assert (
        "$20.0000 of $21 spent; another trial would exceed max-cost" in (results.run.stopped_because or "")
        or parallel > 1
    )


async def test_a_trial_that_breaks_the_budget_is_played_to_its_end():
    """It is paid for; nothing else begins, and the gate does not hold."""
    results = await dear(some(3, evaluations=JUDGED * 20), 5)
    assert played(results) == ["completed", None, None]
    assert results.usage.cost_usd == 40
    assert results.run.stopped_because.startswith("$40.0000 of $5 spent; ")
    assert ("max-cost", False) in [(check.name, check.passed) for check in results.gate.checks]


async def test_a_last_trial_that_breaks_the_budget_ends_nothing():
    """All was played: that is the gate's business alone, exit 1."""
    results = await dear(some(1, evaluations=JUDGED * 20), 5)
    assert (played(results), results.run.status, results.gate.exit_code) == (["completed"], "completed", 1)


async def test_stop_reaches_trials_that_wait_for_the_first_costs():
    """Here no trial ever tells what it costs: each ends by a bug of ours."""

    class Broken(fakes.ScriptedAgent):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
            raise ZeroDivisionError

    one = job(some(9), policy=Policy(max_cost=1), options=Options(parallel=9))
    results = await evaluate(one, Participants(Broken()))
    assert (played(results), results.gate.exit_code) == ([None] * 9, 70)


async def test_costs_before_a_kill_count(tmp_path):
    """The budget is that of the run, not of the process."""
    plan = some(30, evaluations=JUDGED)
    fields = {"policy": Policy(max_cost=21), "prices": lambda: PRICES}
    journal, count = Journal(tmp_path), Counter()
    stop = Stop()

    def listen(event):
        count.update([type(event)])
        if count[TrialFinished] == 6:
            stop.interrupt()

    participants = Participants(says(), judge_llm=Costly(1))
    await evaluate(job(plan, journal=journal, **fields), participants, listen=listen, stop=stop)
    journal.close()
    results = await dear(plan, 21, journal=Journal(tmp_path, resume=True))
    assert Counter(played(results)) == {"completed": 10, None: 20}


async def test_a_budget_that_holds_all_changes_nothing():
    """To the cent."""
    results = await dear(some(10, evaluations=JUDGED), 20)
    assert (played(results), results.gate.exit_code) == (["completed"] * 10, 0)


async def test_a_refused_key_in_mid_run_is_an_outage(tmp_path):
    """With the right key the run goes on where it was."""
    plan, journal = some(4), Journal(tmp_path)
    one = job(plan, journal=journal)
    results = await evaluate(one, Participants(by_name({"t1": AgentAccessError("refused the key")})))
    journal.close()
    assert (played(results), results.gate.exit_code) == (["completed", "failed", None, None], 3)
    journal = Journal(tmp_path, resume=True)
    results = await evaluate(job(plan, journal=journal), Participants(says()))
    journal.close()
    assert (played(results), results.gate.exit_code) == (["completed"] * 4, 0)


async def test_a_replay_does_not_go_on_as_a_run(tmp_path):
    """Its answers are those of an earlier one, and nobody would see that any more."""
    journal = Journal(tmp_path)
    origin = Origin(how="replay", run="earlier", started_at=build.STARTED_AT)
    await evaluate(job(some(1), journal=journal, facts=RunFacts(origin=origin)), Participants(says()))
    journal.close()
    with pytest.raises(UsageError, match=r"where its answers are from \(`replay=`\)"):
        await evaluate(job(some(1), journal=Journal(tmp_path, resume=True)), Participants(says()))


async def test_a_test_that_moved_to_another_suite_is_another_plan(tmp_path):
    """The journal tells tests by their places: one would be given what another one came to."""
    three, two = some(3).suites[0], some(2).suites[0]
    before, after = (Plan(suites=suites, loops=1) for suites in ((three, two), (two, three)))
    await halted(tmp_path, before, 4)
    with pytest.raises(UsageError, match="it differs in the suites"):
        await evaluate(job(after, journal=Journal(tmp_path, resume=True)), Participants(says()))


async def test_another_plan_does_not_go_on(tmp_path):
    """Nothing is played."""
    await halted(tmp_path, some(4), 2)
    agent = says()
    with pytest.raises(UsageError, match=r"it differs in the number of trials \(`loops=`\)"):
        await evaluate(job(some(4, loops=2), journal=Journal(tmp_path, resume=True)), Participants(agent))
    assert agent.sessions == []


@pytest.mark.parametrize("year", [1969, 1970, 2500, 9999])
async def test_a_wrong_clock_ends_no_run(tmp_path, year):
    """The nearest time that results can hold stands in them, and the journal can be resumed."""
    clock = iter([datetime(year, 6, 1, tzinfo=UTC), *[datetime(1969, 1, 1, tzinfo=UTC)] * 20])
    journal = Journal(tmp_path)
    results = await evaluate(job(some(2), journal=journal), Participants(says()), now=lambda: next(clock))
    journal.close()
    assert results.run.status == "completed"
    assert results.run.started_at <= results.run.finished_at
    assert len(Journal(tmp_path, resume=True).past.done) == 2


async def test_a_recorded_run_is_not_resumed_by_other_processes(tmp_path):
    """Their answers would be missing, and a replay would have results that are not of its answers."""
    journal = Journal(tmp_path, record=tmp_path / "recording")

    def start(*_):
        raise AssertionError("nothing is to be started")

    with pytest.raises(UsageError, match="answers are recorded by one process alone"):
        await evaluate(job(some(1), journal=journal), Elsewhere(Connections(provider="offline"), start))
