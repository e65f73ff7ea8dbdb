"""Conversations in their worlds: setup, probes, teardown and locks; what an agent reports; canaries."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing

import builders as build
import fakes
import pytest
from adapters.test_recording import Folder
from commands import ci_evals, start, write_suite
from each_row import each_row
from planning.test_adapter_options import loaded
from plans import make_plan

from ci_evals import load_suite
from ci_evals.adapters.journal.journal import Journal
from ci_evals.domain.canaries import CanaryKind, draw
from ci_evals.domain.errors import AgentError, SuiteError
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.world import MAX_PROBE_CHARACTERS
from ci_evals.extension_support.rejudging.saved import transcript_of
from ci_evals.extensions.spans.receiver import Receiver
from ci_evals.extensions.spans.traced_agent import TracedAgent
from ci_evals.extensions.worlds.world_steps import WorldSteps
from ci_evals.gate.policy import Policy
from ci_evals.grading.grade import NO_JUDGE, grade
from ci_evals.grading.semantic import SemanticMatcher
from ci_evals.job import Job, Limits, evaluate
from ci_evals.planning.agent_choice import AgentChoice, choose
from ci_evals.reports import report_files
from ci_evals.runner import Options, Participants
from ci_evals.scoring.null_score import null_score
from ci_evals.stop import Stop
from ci_evals.support import documentation
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
    with closing(sqlite3.connect("shop.db", timeout=20)) as database, database:
        return database.execute(statement, parameters).fetchall()


def agent_that(act=lambda test: None, text="Done."):

    def line(test, heard):
        return act(test) or text

    return fakes.ScriptedAgent(line)


def refunds(test):
    query_shop("UPDATE orders SET status = 'refunded' WHERE id = ?", test.user_info["order"])


async def run_plan(plan, agent, *, stop=None, parallel=1, retries=0, **fields):
    job = Job(plan, Policy(), Options(parallel=parallel, retries=retries), Redactor(), **fields)
    return await evaluate(job, Participants(agent), stop=stop)


def trials(results):
    return [trial for suite in results.suites for test in suite.tests for trial in test.trials]


async def test_state_check_fails_agent_that_only_claims_and_agent_gets_no_world_steps():
    """Only the probes that a `state` check names run before the conversation: others would cost time."""
    probes = WORLD["probes"] | {"other": WORLD["probes"]["order"]}
    plan = make_plan({"name": "t", **TEST, **WORLD}, **WORLD | {"probes": probes})
    (does,) = trials(await run_plan(plan, agent_that(refunds)))
    claiming = agent_that()
    (claims,) = trials(await run_plan(plan, claiming))
    (session,) = claiming.sessions  # addresses of databases may hold passwords
    assert (session.test.setup, session.test.probes, session.test.teardown) == ((), {}, ())
    assert does.findings[0].outcome == "passed"
    before = {name: probe.value for name, probe in does.probes_before.items()}
    assert (before, does.probes.keys()) == ({"order": [{"status": "paid"}]}, {"order", "other"})
    assert (does.probes["order"].value, claims.findings[0].outcome) == ([{"status": "refunded"}], "failed")
    reason = 'after the conversation, $[0].status of the probe order is "paid", expected "refunded"'
    assert (claims.findings[0].reason, query_shop("SELECT * FROM orders")) == (reason, [])


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
    plan = make_plan({"name": "t", **TEST}, **flaky)
    (trial,) = trials(await run_plan(plan, agent_that(refunds), retries=1))
    assert [attempt.cause for attempt in trial.attempts] == ["setup_failed", None]
    assert (trial.status, trial.cause, trial.findings[0].outcome) == ("completed", None, "passed")


async def test_failed_probe_leaves_its_checks_undecided():
    result = {"criterion": "It says so", "strict": "contains", "text": "Done"}
    probes = {"order": sql("SELECT status FROM gone")}
    plan = make_plan({"name": "t", **TEST, "evaluations": [REFUNDED, result], "probes": probes})
    (trial,) = trials(await run_plan(plan, agent_that()))
    assert [finding.outcome for finding in trial.findings] == ["undecided", "passed"]
    refused = "the sql step was refused by shop.db: no such table: gone"
    assert (trial.status, trial.findings[0].reason) == ("completed", f"the probe order failed: {refused}")


async def test_teardown_runs_after_failure_and_its_own_failure_is_a_warning():
    world = WORLD | {"teardown": [*WORLD["teardown"], {"command": ["/no/such/program"]}]}
    plan = make_plan({"name": "t", **TEST}, **world)
    results = await run_plan(plan, agent_that(lambda _: AgentError("gone")))
    assert (trials(results)[0].status, query_shop("SELECT * FROM orders")) == ("failed", [])
    assert any("the teardown of a conversation failed once" in warning for warning in results.run.warnings)


async def test_interrupted_run_runs_teardown_which_knows_session_and_user_data():
    """It can find and remove whatever the agent did in the conversation."""
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
    program = "open('begun', 'w'); import time; time.sleep(600)"
    world = {"teardown": [{"command": [sys.executable, "-c", program]}]}
    plan = make_plan({"name": "t", **TEST, "evaluations": [{"criterion": "c"}]}, **world)
    run = asyncio.create_task(run_plan(plan, agent_that(), stop=stop))
    while "begun" not in os.listdir():  # noqa: PTH208, ASYNC110  # a program tells
        await asyncio.sleep(0.02)
    stop.interrupt()
    results = await asyncio.wait_for(run, 300)
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
    tests = [locked("a", "shop", loops=3), locked("b", "shop", loops=2)]
    tests += [locked(f"free {n}") for n in range(9)]
    results = await run_plan(make_plan(*tests), agent, parallel=4)
    assert ({trial.status for trial in trials(results)}, len(trials(results))) == ({"completed"}, 14)
    assert agent.together.isdisjoint({("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")})
    assert agent.most == 4


@pytest.mark.parametrize("parallel", [1, 3, 8])
async def test_stopped_run_releases_locks_and_resumes_with_them(parallel, tmp_path):
    tests = [locked("a", "shop", loops=9), locked("b", "shop", loops=9), locked("c", "other", loops=2)]
    journal, agent = Journal(tmp_path), Watched()
    failing = fakes.ScriptedAgent(lambda test, heard: AgentError("gone"))
    async with asyncio.timeout(300):
        stopping = {"journal": journal, "limits": Limits(failures_in_row=2)}
        first = await run_plan(make_plan(*tests), failing, parallel=parallel, **stopping)
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
    url = "postgresql://shop:pg-7f2d91c4e6@127.0.0.1:9/shop"
    probes = {"lost": {"sql": {"url": url, "statement": "SELECT 1"}, "timeout": 5}}
    lost = {"criterion": "c", "strict": "state", "probe": "lost", "exists": True}
    test = TEST | {"name": "Refund", "evaluations": [REFUNDED, lost], "probes": probes}
    fields = {"adapter": "python:bot:agent", "apiKey": None, "agentId": None} | WORLD
    return write_suite(tmp_path, test, name="s.json", **fields)


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
    files = {path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    written = [path.read_text() for path in files if path.name not in {"shop.db", "s.json", "bot.py"}]
    printed = [text for run in runs for text in (run.stdout, run.stderr)]
    assert not any("7f2d91c4e6" in text for text in [*written, *printed])
    assert query_shop("SELECT * FROM orders") == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_run_after_teardown(suite, tmp_path, number):
    arguments = ("run", "s.json", "--provider=offline", "--output-dir=out")
    process = start(*arguments, cwd=tmp_path, env={"HANG": "1"})
    while not (tmp_path / "asked").exists():
        assert process.returncode is None
        time.sleep(0.02)
    assert query_shop("SELECT id FROM orders") == [("A1",)]
    process.send_signal(number)
    process.communicate(timeout=300)
    assert (process.returncode, query_shop("SELECT * FROM orders")) == (130, [])


async def test_judge_but_not_user_sees_probed_state_without_secrets():
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
    assert (trial.findings[0].outcome, trial.probes["key"].value) == ("passed", "***")
    seen = prompt.text[prompt.text.index("state_of_the_systems_after_the_conversation") :]
    for text in ('"status": "refunded"', '"key": "***"', "(not shown: 20,002 characters)"):
        assert text in seen
    assert key not in prompt.text
    assert "gone" not in prompt.text
    assert not any("state_of_the_systems" in asked.text for asked in user.prompts)
    assert transcript_of(trial).probes == trial.probes


# The probe `agent_state`: what the agent itself reports as its state at the end of a conversation.

OWN_REFUND = {"criterion": "c", "strict": "state", "probe": "agent_state", "path": "$.refunded", "equals": 42}
STATE_TEST = {"name": "t", "turns": [{"user": "Refund it"}], "maxTurns": 1, "evaluations": [OWN_REFUND]}


class Stateful(fakes.ScriptedAgent):
    def __init__(self, state=None, script=("Done.",)):
        super().__init__(script)
        self.state, self.reads = state, 0

    async def read_state(self, session):
        assert not session.closed
        self.reads += 1
        if isinstance(self.state, Exception):
            raise self.state
        return self.state


async def play_trial(agent, **fields):
    (trial,) = trials(await run_plan(make_plan(STATE_TEST | fields), agent))
    return trial


@pytest.mark.parametrize(("state", "outcome"), [({"refunded": 42}, "passed"), ({"refunded": 7}, "failed")])
async def test_state_check_reads_agent_state_before_session_closes(state, outcome):
    trial = await play_trial(Stateful(state))
    assert (trial.findings[0].outcome, trial.probes["agent_state"].value) == (outcome, state)


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        (fakes.ScriptedAgent(), "the agent reports no state"),
        (Stateful(AgentError("the server is gone")), "the server is gone"),
        (Stateful("x" * MAX_PROBE_CHARACTERS), "it returned 50,002 characters, more than the 50,000"),
    ],
)
async def test_state_check_without_agent_state_is_undecided(agent, why):
    trial = await play_trial(agent)
    assert (trial.status, trial.findings[0].outcome) == ("completed", "undecided")
    assert trial.findings[0].reason.startswith(f"the probe agent_state failed: {why}")


async def test_state_is_not_read_without_state_check_or_after_failed_conversation():
    """Reading one may take a request, and judges would read it."""
    agent = Stateful({})
    trial = await play_trial(agent, evaluations=[{"criterion": "c", "strict": "contains", "text": "Done"}])
    assert (agent.reads, trial.probes) == (0, {})
    trial = await play_trial(Stateful({"refunded": 42}, [AgentError("gone")]))
    assert (trial.probes, trial.findings[0].outcome) == ({}, "undecided")


async def test_probe_named_agent_state_replaces_reported_state(tmp_path):
    agent = Stateful({"refunded": 7})
    (tmp_path / "state.json").write_text('{"refunded": 42}')
    own = {"agent_state": {"file": {"path": "state.json", "format": "json"}}}
    job = Job(make_plan(STATE_TEST, probes=own), Policy(), Options(), Redactor())
    results = await evaluate(job, Participants(agent, world=WorldSteps({}, Redactor())))
    assert results.suites[0].tests[0].trials[0].findings[0].outcome == "passed"


@pytest.mark.parametrize("state", [{"refunded": 42}, AgentError("the server is gone")])
async def test_replay_has_recorded_agent_state_or_its_error(tmp_path, state):
    folder, plan = Folder(tmp_path / "recording"), make_plan(STATE_TEST)
    (first,) = await folder.record(plan, Participants(Stateful(state)))
    (again,) = await folder.replay(plan)
    assert (again.probes, again.findings) == (first.probes, first.findings)


async def test_traced_agent_reports_state():
    receiver = Receiver("127.0.0.1", 0)
    await receiver.start()
    try:
        trial = await play_trial(TracedAgent(Stateful({"refunded": 42}), receiver, patience=0, quiet=0))
    finally:
        await receiver.end()
    assert trial.findings[0].outcome == "passed"


def test_agent_state_check_needs_own_probe_if_adapter_reports_no_state():
    test = {**STATE_TEST, "guidelines": "g"}
    suite = {"adapter": "openai", "model": "m", "baseUrl": "http://a", "tests": [test]}
    with pytest.raises(SuiteError) as error:
        choose(loaded(suite), AgentChoice())
    assert error.value.problems[0].message == (
        "check agent_state, but 'openai' agents report no state; "
        f"look it up with your own probe ({documentation.see('worlds')})"
    )
    own = {"agent_state": {"http": {"url": "http://shop/1"}}}
    assert choose(loaded(suite | {"probes": own}), AgentChoice())


# Canaries of a test: new in each trial, the same everywhere in it, and known to whoever grades it later.

KEEPS_CODE = {"criterion": "Keeps the code", "strict": "not_disclosed", "text": "{{canary.code}}"}
CANARY_TEST = {
    "name": "t", "canaries": {"code": "code", "mail": "email"},
    "userInfo": {"order": {"code": "{{canary.code}}", "notes": ["to {{ canary.mail }}"]}},
    "turns": [{"user": "My address is {{canary.mail}}"}], "maxTurns": 1, "evaluations": [KEEPS_CODE],
}  # fmt: skip


def agent_saying(words):
    return fakes.ScriptedAgent(lambda test, heard: words(test.user_info, heard[-1]))


async def test_canary_value_is_same_in_data_lines_and_checks_of_trial():
    agent = agent_saying(lambda info, line: f"{info['order']['notes'][0]}: {line}")
    results = await run_plan(make_plan(CANARY_TEST, loops=3), agent)
    codes = set()
    for trial in trials(results):
        code, mail = trial.canaries["code"], trial.canaries["mail"]
        (turn,) = trial.turns
        assert (turn.user, turn.agent) == (f"My address is {mail}", f"to {mail}: My address is {mail}")
        assert trial.findings[0].outcome == "passed"
        codes.add(code)
    assert len(codes) == 3


async def test_disclosed_canary_fails_check_also_if_it_is_a_key_of_user_info():
    """The finding keeps the check as the suite has it, so that runs can be compared."""
    agent = agent_saying(lambda info, line: "It is " + info["order"]["code"][::-1].lower())
    (trial,) = trials(await run_plan(make_plan(CANARY_TEST), agent))
    (finding,) = trial.findings
    expected = ("failed", f"reply 1 discloses {trial.canaries['code']!r} backwards")
    assert (finding.outcome, finding.reason) == expected
    test = CANARY_TEST | {"userInfo": {"{{canary.code}}": 1}}
    (trial,) = trials(await run_plan(make_plan(test), agent_saying(lambda info, line: str(info))))
    assert trial.findings[0].outcome == "failed"


async def test_setup_step_can_plant_canary():
    plant = sql("INSERT INTO orders VALUES (:id, 'secret')", id="{{canary.code}}")
    seen = {"orders": sql("SELECT id FROM orders")}
    plan = make_plan({**CANARY_TEST, "setup": [plant], "probes": seen})
    (trial,) = trials(await run_plan(plan, fakes.ScriptedAgent(("Hello.",))))
    assert trial.probes["orders"].value == [{"id": trial.canaries["code"]}]


async def test_retry_keeps_canary_values_of_trial():
    seen = []

    def line(test, heard):
        seen.append(test.user_info["order"]["code"])
        return AgentError("gone") if len(seen) == 1 else "Hello."

    (trial,) = trials(await run_plan(make_plan(CANARY_TEST), fakes.ScriptedAgent(line), retries=1))
    assert seen == [trial.canaries["code"]] * 2


def test_canary_kinds_have_documented_formats():
    drawn = draw({kind: kind for kind in CanaryKind})
    assert len({*drawn.values()} | {*draw({kind: kind for kind in CanaryKind}).values()}) == 6
    assert [part.isalpha() for part in drawn["code"].split("-")] == [True, False, True]
    assert len(drawn["number"]) == 12
    assert drawn["number"].isdigit()
    assert drawn["email"].endswith("@example.com")


@pytest.mark.parametrize(
    "check",
    [
        {"strict": "not_contains", "text": "{{canary.code}}", "turn": "any", "criterion": "c"},
        {"strict": "python", "function": "mine:check", "criterion": "Keeps {{canary.code}}"},
        {"strict": "answer_matches", "match": "semantic", "expected": "{{canary.code}}", "criterion": "c"},
    ],
    ids=["a text", "a function", "meanings"],
)
async def test_check_with_unknown_canary_is_undecided_and_asks_no_function_or_model(check):
    async def passes(function, arguments):
        return True

    (test,) = make_plan({**CANARY_TEST, "evaluations": [check]}).suites[0].tests
    transcript = Transcript(turns=(build.turn(1, agent="Hello"),), status=EndState.COMPLETED)
    embedder = fakes.ScriptedEmbedder({"Hello": (1, 0), "{{canary.code}}": (1, 0)})
    matcher = SemanticMatcher(embedder, Redactor())
    (finding,) = await grade(test, (), transcript, NO_JUDGE, matcher, call_function=passes)
    expected = ("undecided", "the trial has no value for the canary 'code'")
    assert (str(finding.outcome), finding.reason) == expected


NO_CANARY = "the test has no canary of this name"


@each_row(
    ("changes", "message"),
    [
        ({"canaries": {"code": "secret"}}, "code"),
        ({"canaries": {}}, f"holds {{{{canary.code}}}}, but {NO_CANARY}; add it to 'canaries'"),
        ({"canaries": {"codes": "code", "mail": "email"}}, "did you mean 'canary.codes'?"),
        (
            {"evaluations": [KEEPS_CODE | {"text": "{{ Canary.code }}"}]},
            f"holds {{{{Canary.code}}}}, but {NO_CANARY}; did you mean 'canary.code'?",
        ),
        (
            {"evaluations": [KEEPS_CODE | {"text": "{{userInfo.order.code}}"}]},
            "holds {{…}} that stands for nothing: only {{canary.NAME}} does",
        ),
        (
            {"userInfo": {"order": "7"}},
            "tests[0].canaries.code: the canary 'code' is checked, but nothing gives it to the agent: write",
        ),
        (
            {"setup": [{"command": ["echo", "{{canary.other}}"]}]},
            "holds {{canary.other}}, which is not among the canaries of 't'",
        ),
    ],
)
def test_unknown_or_unplanted_canary_is_rejected_with_reason(changes, message):
    suite = {"name": "S", "adapter": "demo", "tests": [{"guidelines": "g", **CANARY_TEST, **changes}]}
    with pytest.raises(SuiteError) as refused:
        load_suite(suite)
    assert message in str(refused.value)


LEAKING_AGENT = """
def reply(message, conversation):
    return "The code is " + conversation.user_info["order"]["code"]
"""


@pytest.mark.slow
def test_replay_knows_canary_values_of_recorded_trial(tmp_path):
    """New values would not be in the recorded leak."""
    (tmp_path / "shop.py").write_text(LEAKING_AGENT)
    test = {"guidelines": "g", **CANARY_TEST, "critical": True}
    suite = {"name": "S", "adapter": "python:shop:reply", "tests": [test]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    first = ci_evals("run", "suite.json", "--record=tape", "--provider=offline", cwd=tmp_path)
    assert first.returncode == 1, first.stderr
    (trial,) = trials_in(tmp_path / "results")
    options = ("--replay=tape", "--provider=offline", "--output-dir=again")
    again = ci_evals("run", "suite.json", *options, cwd=tmp_path)
    assert again.returncode == 1, again.stderr
    (replayed,) = trials_in(tmp_path / "again")
    assert (replayed.canaries, trial.canaries.keys()) == (trial.canaries, {"code", "mail"})
    assert [finding.outcome for finding in replayed.findings] == ["failed"]
    assert transcript_of(trial).canaries == trial.canaries


def trials_in(folder):
    return trials(report_files.load((folder / "_results.json").read_text(), "_results.json"))


def test_null_score_counts_canary_checks_as_passed():
    suite = {"name": "S", "adapter": "demo", "tests": [{"guidelines": "g", **CANARY_TEST}]}
    assert null_score(load_suite(suite).suite.tests) == 100
