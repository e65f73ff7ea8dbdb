"""Runs whose trials workers play: the results of one process, whatever becomes of the workers."""

import asyncio
import json
import os
import re
import time
from collections import Counter
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from itertools import pairwise

import endpoints
import pytest
from commands import ci_evals
from plans import make_plan
from process_cluster import LoopCluster, ProcessCluster
from test_job import alike
from world import Fault

from ci_evals.adapters.journal.journal import Journal
from ci_evals.domain.errors import UsageError
from ci_evals.domain.progress import TrialFinished, TurnPlayed
from ci_evals.extensions.ray_cluster import player, worker
from ci_evals.extensions.ray_cluster.on_ray import reach
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, Limits, evaluate
from ci_evals.job.job import Elsewhere
from ci_evals.runner import Options
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections

pytestmark = pytest.mark.usefixtures("environment")
SAYS_YES = [{"criterion": "says yes", "strict": "contains", "text": "yes"}]
OFFLINE = {"provider": "offline", "environ": {"COLOR": "green"}}


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """Workers in this process change it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())


def plan_of(url, count=6, loops=2, **fields):
    common = {"evaluations": SAYS_YES} | fields
    tests = ({"name": f"t{n}", "turns": [{"user": f"t{n}"}, {"user": "more"}]} | common for n in range(count))
    return make_plan(*tests, loops=loops, adapter="openai", baseUrl=url, apiKey=endpoints.KEY, model="m")


def job_of(plan, **fields):
    options = Options(parallel=4, retries=0)
    return Job(**{"plan": plan, "policy": Policy(), "options": options, "redactor": Redactor()} | fields)


def on_cluster(cluster, connections=None):
    return Elsewhere(connections or Connections(**OFFLINE), partial(player.played_on, cluster))


def answer_request(asked):
    match asked.texts:
        case ["t1", *_]:
            return endpoints.completion("no")
        case ["t2"]:
            return Fault(400, '{"error": {"message": "no such test"}}')
    return endpoints.completion("yes")


def conversations_begun(agent):
    return Counter(asked.texts[0] for asked in agent.asked if len(asked.texts) == 1)


@asynccontextmanager
async def cluster_of(processors=2, kind=LoopCluster):
    cluster = kind(processors)
    try:
        yield cluster
    finally:
        await cluster.close()


def listener(after, do):
    """Does something once so many trials have finished."""
    heard = Counter()

    def listen(event):
        heard.update([type(event)])
        if isinstance(event, TrialFinished) and heard[TrialFinished] == after:
            do()

    listen.heard = heard
    return listen


async def test_results_equal_those_of_one_process(tmp_path):
    listen = listener(0, None)
    with endpoints.serving(answer_request) as agent:
        alone = await evaluate(job_of(plan_of(agent.url)), Connections(**OFFLINE))
        journal = Journal(tmp_path)
        async with cluster_of() as cluster:
            job = job_of(plan_of(agent.url), journal=journal)
            together = await evaluate(job, on_cluster(cluster), listen=listen)
        journal.close()
    assert (together.counts.trials, comparable_lines(together)) == (12, comparable_lines(alone))
    assert (listen.heard[TrialFinished], listen.heard[TurnPlayed]) == (12, 20)
    assert (len(Journal(tmp_path, resume=True).past.done), len(cluster.workers)) == (12, 2)


async def test_trials_of_lost_or_frozen_workers_are_played_by_others(monkeypatch):
    with endpoints.serving(answer_request) as agent:
        alone = await evaluate(job_of(plan_of(agent.url, loops=6)), Connections(**OFFLINE))
        agent.asked.clear()
        async with cluster_of(kind=ProcessCluster) as cluster:
            kill = listener(5, lambda workers=cluster.workers: workers[0].end())
            together = await evaluate(job_of(plan_of(agent.url, loops=6)), on_cluster(cluster), listen=kill)
    assert comparable_lines(together) == comparable_lines(alone)
    assert any("1 worker was lost" in warning for warning in together.run.warnings)
    assert kill.heard[TrialFinished] == 36
    assert 36 <= conversations_begun(agent).total() <= 36 + 4
    assert len(cluster.workers) == 3
    monkeypatch.setattr(player, "SILENCE_SECONDS", 1.0)
    monkeypatch.setattr(worker, "_SILENCE_SECONDS", 0.2)
    with endpoints.serving(answer_request) as agent:
        async with cluster_of() as cluster:
            freeze = listener(3, lambda workers=cluster.workers: setattr(workers[0], "frozen", True))
            results = await evaluate(job_of(plan_of(agent.url)), on_cluster(cluster), listen=freeze)
    assert (results.run.status, results.counts.trials, freeze.heard[TrialFinished]) == ("completed", 12, 12)


async def test_dead_workers_refused_key_or_fail_fast_stop_the_run():
    def fatal(asked):
        if asked.texts == ["t4"]:
            time.sleep(0.2)
            for worker in cluster.workers:
                worker.end()
        return answer_request(asked)

    with endpoints.serving(fatal) as agent:
        async with cluster_of(1) as cluster:
            job = job_of(plan_of(agent.url), options=Options(retries=0))
            results = await evaluate(job, on_cluster(cluster))
    assert results.run.status != "completed"
    assert "3 workers of the cluster were lost while they played the test 't4'" in results.run.stopped_because
    with endpoints.serving(answer_request) as agent:
        async with cluster_of(1) as cluster:

            def kill():
                cluster.broken = True
                cluster.workers[0].end()

            job = job_of(plan_of(agent.url))
            results = await evaluate(job, on_cluster(cluster), listen=listener(3, kill))
    assert "the cluster has no workers left: no processor is free" in results.run.stopped_because
    async with cluster_of() as cluster:
        cluster.broken = True
        with pytest.raises(UsageError, match=r"`cluster=some`: no processor is free"):
            await evaluate(job_of(plan_of("http://127.0.0.1:9")), on_cluster(cluster))
    with endpoints.serving(answer_request) as agent:
        async with cluster_of() as cluster:
            job = job_of(plan_of(agent.url), limits=Limits(fail_fast=True))
            results = await evaluate(job, on_cluster(cluster))
            assert "fail-fast" in results.run.stopped_because
            agent.key = "another"
            refused = await evaluate(job_of(plan_of(agent.url)), on_cluster(cluster))
    assert "key" in refused.run.stopped_because
    assert refused.counts.trials < 12


async def test_interruption_reaches_all_workers():
    stop = Stop()

    def slow(asked):
        if len(asked.texts) == 2:
            asyncio.run_coroutine_threadsafe(interrupt(), loop)
            time.sleep(1)
        return endpoints.completion("yes")

    async def interrupt():
        stop.interrupt()

    loop = asyncio.get_running_loop()
    with endpoints.serving(slow) as agent:
        async with cluster_of() as cluster:
            results = await evaluate(job_of(plan_of(agent.url)), on_cluster(cluster), stop=stop)
    trials = [trial for test in results.suites[0].tests for trial in test.trials]
    assert trials
    assert {trial.status.value for trial in trials} == {"interrupted"}
    assert max(len(trial.turns) for trial in trials) == 1
    assert all(trial.error == "the run was interrupted" for trial in trials)


async def test_lock_and_rate_limit_hold_across_workers():
    talking = most = 0

    def counted(asked):
        nonlocal talking, most
        talking += 1
        most = max(most, talking)
        time.sleep(0.05)
        talking -= 1
        return endpoints.completion("yes")

    with endpoints.serving(counted) as agent:
        async with cluster_of() as cluster:
            job = job_of(plan_of(agent.url, count=4, lock="desk"))
            results = await evaluate(job, on_cluster(cluster))
    assert (results.counts.trials, most) == (8, 1)
    refused = 0

    def limited(asked):
        nonlocal refused
        if conversations_begun(agent).total() == 2 and not refused:
            refused += 1
            return Fault(429, "{}", {"Retry-After": "2"})
        times.append(time.monotonic())
        return endpoints.completion("yes")

    times = []
    with endpoints.serving(limited) as agent:
        async with cluster_of() as cluster:
            results = await evaluate(job_of(plan_of(agent.url)), on_cluster(cluster))
    assert results.counts.trials == 12
    assert max(later - earlier for earlier, later in pairwise(times)) > 1.5
    assert any("limited the rate once (429)" in warning for warning in results.run.warnings)
    times = []

    def limited(_):
        times.append(time.monotonic())
        if len(times) == 1:
            loop.call_soon_threadsafe(loop.call_later, 0.3, cluster.workers[0].end)
            return Fault(429, "{}", {"Retry-After": "2"})
        return endpoints.completion("yes")

    loop = asyncio.get_running_loop()
    with endpoints.serving(limited) as agent:
        async with cluster_of(1) as cluster:
            job = job_of(plan_of(agent.url), options=Options(parallel=1, retries=0))
            results = await evaluate(job, on_cluster(cluster))
    assert (results.counts.trials, len(cluster.workers)) == (12, 2)
    assert times[1] - times[0] > 1.8


async def test_environment_of_run_reaches_agents_of_workers(tmp_path):
    code = "import os\nprint('painted')\ndef reply(message):\n    return 'yes ' + os.environ['COLOR']\n"
    (tmp_path / "colors.py").write_text(code)
    test = {"name": "t", "turns": [{"user": "Hi"}], "evaluations": SAYS_YES}
    plan = make_plan(test, loops=4, adapter="python:colors:reply")
    log = tmp_path / "agent.log"
    environ = {"COLOR": "green", "PATH": "/nowhere"}
    async with cluster_of(kind=ProcessCluster) as cluster:
        connections = Connections(provider="offline", environ=environ, agent_log=log)
        results = await evaluate(job_of(plan), on_cluster(cluster, connections))
    trials = results.suites[0].tests[0].trials
    assert {turn.agent for trial in trials for turn in trial.turns} == {"yes green"}
    assert "==> worker 1 <==" in log.read_text()
    assert "painted" in log.read_text()


@pytest.mark.parametrize(("options", "message"), [
    ((), "--cluster needs the package ray: pip install 'ci-evals[ray]'"),
    (("--record=kept",), "--cluster, --record: answers are recorded by one process"),
    (("--judge-cache=kept",), "--cluster, --judge-cache: workers have no folder in common"),
    (("--agent-in-process",), "--cluster, --agent-in-process: the agent would run in the workers"),
    (("--otlp",), "--cluster, --otlp: spans are received by one process"),
    (("--cluster=ray://head",), "--cluster=ray://head: give `ray` to use all processors"),
    (("--cluster=ray://head:1", "--start=serve", "--base-url=http://127.0.0.1:9"),
     "--cluster, --start: workers on other machines cannot reach an agent that is started here"),
])  # fmt: skip
def test_options_that_cluster_does_not_support_are_refused_with_the_reason(tmp_path, options, message):
    if not options and find_spec("ray"):
        pytest.skip("Ray is installed here")
    test = {"name": "t", "guidelines": "g", "turns": [{"user": "Hi"}], "evaluations": SAYS_YES}
    suite = {"name": "S", "adapter": "openai", "model": "m", "baseUrl": "http://127.0.0.1:9", "tests": [test]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    ran = ci_evals("run", "suite.json", "--provider=offline", "--cluster=ray", *options, cwd=tmp_path)
    assert (ran.returncode, message in ran.stderr, "Traceback" in ran.stderr) == (2, True, False)


def test_unreachable_cluster_address_is_usage_error():
    with pytest.raises(UsageError, match=r"`cluster=ray://127.0.0.1:9`: cannot be reached: .*client server"):
        reach("ray://127.0.0.1:9")


def comparable_lines(results):
    """What two runs have in common, line by line."""
    data = alike(results)
    for name in ("id", "startedAt", "warnings"):
        data["run"].pop(name, None)
    return json.dumps(without_times(data), indent=1).splitlines()


def without_times(value):
    match value:
        case dict():
            times = re.compile("seconds|latency|latencies|folder", re.IGNORECASE)
            kept = {name: one for name, one in value.items() if not times.search(str(name))}
            return {name: without_times(one) for name, one in kept.items()}
        case list() | tuple():
            return [without_times(one) for one in value]
    return value
