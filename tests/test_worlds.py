"""Conversations in their worlds: setup, probes and teardown, locks, and every way in which a run can end."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from contextlib import closing

import fakes
import pytest
from commands import ci_evals, start, write_suite
from plans import make_plan

from ci_evals.adapters.journal.journal import Journal
from ci_evals.domain.errors import AgentError
from ci_evals.extension_support.rejudging.saved import transcript_of
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, Limits, evaluate
from ci_evals.runner import Options, Participants
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor

SHOP = "sqlite:///shop.db"


def sql(statement, **parameters):
    return {"sql": {"url": SHOP, "statement": statement, "parameters": parameters}}


REFUNDED = {
    "criterion": "It is refunded", "strict": "state", "probe": "order", "path": "$[0].status",
    "equals": "refunded",
}  # fmt: skip
WORLD = {
    "setup": [
        sql("DELETE FROM orders WHERE id = :id", id="{{userInfo.order}}"),
        sql("INSERT INTO orders VALUES (:id, 'paid')", id="{{userInfo.order}}"),
    ],
    "probes": {"order": sql("SELECT status FROM orders WHERE id = :id", id="{{userInfo.order}}")},
    "teardown": [sql("DELETE FROM orders WHERE id = :id", id="{{userInfo.order}}")],
}
TEST = {
    "userInfo": {"order": "A1"}, "turns": [{"user": "Refund it"}], "maxTurns": 1, "evaluations": [REFUNDED],
}  # fmt: skip


@pytest.fixture(autouse=True)
def shop(tmp_path, monkeypatch):
    """An empty shop in the current folder."""
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as database, database:
        database.execute("CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT)")


def query_shop(statement, *parameters):
    """Do a statement as the agent would, and return its rows."""
    with closing(sqlite3.connect("shop.db", timeout=20)) as database, database:
        return database.execute(statement, parameters).fetchall()


def agent_that(act=lambda test: None, text="Done."):
    """An agent that acts on the world when it is asked."""

    def line(test, heard):
        return act(test) or text

    return fakes.ScriptedAgent(line)


def refunds(test):
    query_shop("UPDATE orders SET status = 'refunded' WHERE id = ?", test.user_info["order"])


async def run_plan(plan, agent, *, stop=None, parallel=1, retries=0, **fields):
    job = Job(
        plan=plan, policy=Policy(), options=Options(parallel=parallel, retries=retries), redactor=Redactor()
    )
    for name, value in fields.items():
        object.__setattr__(job, name, value)
    return await evaluate(job, Participants(agent), stop=stop)


def trials(results):
    return [trial for suite in results.suites for test in suite.tests for trial in test.trials]


async def test_state_check_ignores_agent_claims_and_probes_before_and_after():
    """Only the probes that a `state` check names run before the conversation: others would cost time."""
    probes = WORLD["probes"] | {"other": WORLD["probes"]["order"]}
    plan = make_plan({"name": "t", **TEST}, **WORLD | {"probes": probes})
    (does,) = trials(await run_plan(plan, agent_that(refunds)))
    (claims,) = trials(await run_plan(plan, agent_that()))
    assert does.findings[0].outcome == "passed"
    before = {name: probe.value for name, probe in does.probes_before.items()}
    assert before == {"order": [{"status": "paid"}]}
    assert does.probes.keys() == {"order", "other"}
    assert does.probes["order"].value == [{"status": "refunded"}]
    assert claims.findings[0].outcome == "failed"
    assert claims.findings[0].reason == (
        'after the conversation, $[0].status of the probe order is "paid", expected "refunded"'
    )
    assert query_shop("SELECT * FROM orders") == []


async def test_agent_gets_no_setup_probes_or_teardown():
    """Addresses of databases may hold passwords."""
    agent = agent_that()
    await run_plan(make_plan({"name": "t", **TEST, **WORLD}, **WORLD), agent)
    (session,) = agent.sessions
    assert (session.test.setup, session.test.probes, session.test.teardown) == ((), {}, ())


async def test_failed_setup_errors_trial_without_asking_agent_and_retry_runs_it_again():
    agent = agent_that()
    broken = WORLD | {"setup": [*WORLD["setup"], sql("INSERT INTO gone VALUES (1)")]}
    results = await run_plan(make_plan({"name": "t", **TEST}, **broken), agent, retries=1)
    (trial,) = trials(results)
    assert (trial.status, trial.cause) == ("failed", "setup_failed")
    assert trial.error == "setup[2]: the sql step was refused by shop.db: no such table: gone"
    assert [attempt.cause for attempt in trial.attempts] == ["setup_failed", "setup_failed"]
    assert trial.findings[0].outcome == "undecided"
    assert (agent.sessions, results.counts.errors, results.gate.passed) == ([], 1, False)
    assert query_shop("SELECT * FROM orders") == []
    once = {"command": ["sh", "-c", "test -e seen || { touch seen; exit 1; }"]}
    flaky = WORLD | {"setup": [*WORLD["setup"], once]}
    (trial,) = trials(
        await run_plan(make_plan({"name": "t", **TEST}, **flaky), agent_that(refunds), retries=1)
    )
    assert [attempt.cause for attempt in trial.attempts] == ["setup_failed", None]
    assert (trial.status, trial.cause, trial.findings[0].outcome) == ("completed", None, "passed")


async def test_failed_probe_leaves_its_checks_undecided():
    result = {"criterion": "It says so", "strict": "contains", "text": "Done"}
    probes = {"order": sql("SELECT status FROM gone")}
    plan = make_plan({"name": "t", **TEST, "evaluations": [REFUNDED, result], "probes": probes})
    (trial,) = trials(await run_plan(plan, agent_that()))
    assert [finding.outcome for finding in trial.findings] == ["undecided", "passed"]
    assert trial.findings[0].reason == (
        "the probe order failed: the sql step was refused by shop.db: no such table: gone"
    )
    assert trial.status == "completed"


async def test_teardown_runs_after_failure_and_its_own_failure_is_a_warning():
    world = WORLD | {"teardown": [*WORLD["teardown"], {"command": ["/no/such/program"]}]}
    results = await run_plan(
        make_plan({"name": "t", **TEST}, **world), agent_that(lambda _: AgentError("gone"))
    )
    assert trials(results)[0].status == "failed"
    assert query_shop("SELECT * FROM orders") == []
    assert any("the teardown of a conversation failed once" in warning for warning in results.run.warnings)


async def test_interrupted_run_runs_teardown_which_knows_session_and_user_data():
    """What the agent did in the conversation can be found and removed."""
    stop, asked = Stop(), asyncio.Event()

    class Hanging(fakes.ScriptedAgent):
        async def open_session(self, test):
            session = await super().open_session(test)
            session.id = "session-7"
            test.user_info["order"] = "somebody else's"
            return session

        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109  # as the port has it
            asked.set()
            await asyncio.sleep(600)

    insert = sql("INSERT INTO orders VALUES (:id, :o)", id="{{session.id}}", o="{{userInfo.order}}")
    world = WORLD | {"teardown": [*WORLD["teardown"], insert]}
    run = asyncio.create_task(run_plan(make_plan({"name": "t", **TEST}, **world), Hanging(), stop=stop))
    await asked.wait()
    assert query_shop("SELECT id FROM orders") == [("A1",)]
    stop.interrupt()
    results = await run
    (trial,) = trials(results)
    assert (trial.status, trial.probes) == ("interrupted", {})
    assert query_shop("SELECT * FROM orders") == [("session-7", "A1")]
    assert not any("teardown" in warning for warning in results.run.warnings)


async def test_hanging_teardown_of_interrupted_run_is_killed(monkeypatch):
    monkeypatch.setattr("ci_evals.conversation.in_world.TEARDOWN_SECONDS", 0.2)
    stop = Stop()
    world = {
        "teardown": [{"command": [sys.executable, "-c", "open('begun', 'w'); import time; time.sleep(600)"]}]
    }
    run = asyncio.create_task(
        run_plan(
            make_plan({"name": "t", **TEST, "evaluations": [{"criterion": "c"}]}, **world),
            agent_that(),
            stop=stop,
        )
    )
    while "begun" not in os.listdir():  # noqa: PTH208, ASYNC110  # a program tells
        await asyncio.sleep(0.02)
    stop.interrupt()
    results = await asyncio.wait_for(run, 30)
    assert "teardown[0]: was cut off" in "".join(results.run.warnings)


class Watched(fakes.ScriptedAgent):
    """Knows which conversations go on at the same time."""

    def __init__(self):
        super().__init__()
        self.now, self.together, self.most = [], set(), 0

    async def open_session(self, test):
        self.together |= {(other, test.name) for other in self.now}
        self.now.append(test.name)
        self.most = max(self.most, len(self.now))
        return await super().open_session(test)

    async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109  # as the port has it
        await asyncio.sleep(0.02)
        return await super().send_message(session, text, timeout=timeout)

    async def close(self, session):
        self.now.remove(session.test.name)
        await super().close(session)


def locked(name, lock=None, **fields):
    result = {"criterion": "It says so", "strict": "contains", "text": "Hello"}
    return {"name": name, **TEST, "evaluations": [result], "lock": lock, **fields}


async def test_trials_sharing_a_lock_run_one_at_a_time_without_blocking_others():
    agent = Watched()
    tests = [
        locked("a", "shop", loops=3),
        locked("b", "shop", loops=2),
        *(locked(f"free {n}") for n in range(9)),
    ]
    results = await run_plan(make_plan(*tests), agent, parallel=4)
    assert {trial.status for trial in trials(results)} == {"completed"}
    assert len(trials(results)) == 14
    assert agent.together.isdisjoint({("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")})
    assert agent.most == 4


@pytest.mark.parametrize("parallel", [1, 3, 8])
async def test_stopped_run_releases_locks_and_resumes_with_them(parallel, tmp_path):
    tests = [locked("a", "shop", loops=9), locked("b", "shop", loops=9), locked("c", "other", loops=2)]
    journal, agent = Journal(tmp_path), Watched()
    failing = fakes.ScriptedAgent(lambda test, heard: AgentError("gone"))
    async with asyncio.timeout(60):
        first = await run_plan(
            make_plan(*tests), failing, parallel=parallel, journal=journal, limits=Limits(failures_in_row=2)
        )
        journal.close()
        journal = Journal(tmp_path, resume=True)
        second = await run_plan(make_plan(*tests), agent, parallel=parallel, journal=journal)
    journal.close()
    assert len(trials(first)) < 20
    assert len(trials(second)) == 20
    assert agent.together.isdisjoint({("a", "a"), ("a", "b"), ("b", "a"), ("b", "b"), ("c", "c")})


AGENT = """
import sqlite3, os, time
class Agent:
    def open_session(self, test):
        return {"id": 1}
    def send_message(self, session, text):
        if os.environ.get("HANG"):
            open("asked", "w").close()
            time.sleep(600)
        if not os.environ.get("CLAIMS"):
            with sqlite3.connect("shop.db", timeout=20) as shop:
                shop.execute("UPDATE orders SET status = 'refunded'")
        return "I have refunded it. The password is pg-7f2d91c4e6"
agent = Agent()
"""


@pytest.fixture
def suite(tmp_path):
    """A suite on disk with an agent that is code, and a secret in an address."""
    (tmp_path / "bot.py").write_text(AGENT)
    secret = {
        "sql": {"url": "postgresql://shop:pg-7f2d91c4e6@127.0.0.1:9/shop", "statement": "SELECT 1"},
        "timeout": 5,
    }
    test = TEST | {
        "name": "Refund",
        "evaluations": [REFUNDED, {"criterion": "c", "strict": "state", "probe": "lost", "exists": True}],
        "probes": {"lost": secret},
    }
    return write_suite(
        tmp_path, test, name="s.json", adapter="python:bot:agent", apiKey=None, agentId=None, **WORLD
    )


def read_results_of(folder):
    return json.loads((folder / "_results.json").read_text())


@pytest.mark.slow
def test_probes_are_in_results_and_replay_without_secrets_and_claim_fails(suite, tmp_path):
    def play(*options, **env):
        return ci_evals("run", "s.json", "--provider=offline", *options, cwd=tmp_path, env=env)

    runs = [play("--record=rec", "--output-dir=out"), play("--replay=rec", "--output-dir=again")]
    for folder in ("out", "again"):
        (trial,) = read_results_of(tmp_path / folder)["suites"][0]["tests"][0]["trials"]
        assert trial["probes"]["order"] == {"value": [{"status": "refunded"}], "error": None}
        assert "refused" in trial["probes"]["lost"]["error"]
        assert [finding["outcome"] for finding in trial["findings"]] == ["passed", "undecided"]
    runs.append(play("--output-dir=claims", CLAIMS="1"))
    assert runs[-1].returncode == 3  # the other check is undecided
    (trial,) = read_results_of(tmp_path / "claims")["suites"][0]["tests"][0]["trials"]
    assert trial["findings"][0]["outcome"] == "failed"
    written = [
        path.read_text()
        for path in tmp_path.rglob("*")
        if path.is_file() and path.name not in {"shop.db", "s.json", "bot.py"} and path.suffix != ".pyc"
    ]
    printed = [text for run in runs for text in (run.stdout, run.stderr)]
    assert not any("7f2d91c4e6" in text for text in [*written, *printed])
    assert query_shop("SELECT * FROM orders") == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_run_after_teardown(suite, tmp_path, number):
    process = start(
        "run", "s.json", "--provider=offline", "--output-dir=out", cwd=tmp_path, env={"HANG": "1"}
    )
    while not (tmp_path / "asked").exists():
        assert process.returncode is None
        os.sched_yield()
    assert query_shop("SELECT id FROM orders") == [("A1",)]
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode == 130
    assert query_shop("SELECT * FROM orders") == []


async def test_judge_sees_probed_state_without_secrets():
    """The simulated user does not see it."""
    quoted = fakes.judge_answer("pass", "The row says so.", (2, '"status": "refunded"'))
    judge, user = fakes.ScriptedLLM([quoted]), fakes.ScriptedLLM(["More", "###STOP###"])
    key = "shop-key-4f81aa02"
    probes = {
        "order": WORLD["probes"]["order"],
        "key": {"command": ["echo", key]},
        "lost": sql("SELECT status FROM gone"),
        "large": {"command": [sys.executable, "-c", "print('x' * 20_000)"]},
    }
    test = {"name": "t", **TEST, "maxTurns": 2, "evaluations": [{"criterion": "It is refunded"}]}
    job = Job(make_plan(test, **WORLD | {"probes": probes}), Policy(), Options(), Redactor(values=[key]))
    (trial,) = trials(await evaluate(job, Participants(agent_that(refunds), user, judge)))
    (prompt,) = judge.prompts
    assert trial.findings[0].outcome == "passed"
    assert trial.probes["key"].value == "***"
    seen = prompt.text[prompt.text.index("state_of_the_systems_after_the_conversation") :]
    for text in ('"status": "refunded"', '"key": "***"', "(not shown: 20,002 characters)"):
        assert text in seen
    assert key not in prompt.text
    assert "gone" not in prompt.text
    assert not any("state_of_the_systems" in asked.text for asked in user.prompts)
    assert transcript_of(trial).probes == trial.probes
