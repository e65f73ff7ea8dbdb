"""Runs whose servers fail: every row of the tables in docs/reliability.md, measured."""

import asyncio
import importlib.util
import os
import re
import resource
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path

import faults
import pytest
from commands import ci_evals, read_files, start
from doc_pages import ROOT, code, table
from each_row import each_row
from faults import AGENT, HARMLESS, MODELS, Fault, FaultyServer, RequestKind

from ci_evals import load_suite
from ci_evals.adapters.journal.journal import Journal
from ci_evals.adapters.models.anthropic_llm import AnthropicLLM
from ci_evals.adapters.models.openai_llm import OpenAILLM
from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.adapters.processes.descendants import children_of
from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.agents.aui.agent import AuiAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.plan import Plan
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Outcome
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, Limits, evaluate
from ci_evals.planning.selection import Selection
from ci_evals.planning.selection import plan as plan_suites
from ci_evals.runner import Options, Participants, run
from ci_evals.scoring.scores import ScoreRule, Validity, validity
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor

PAGE = (ROOT / "docs/reliability.md").read_text()
SECONDS = 60.0
"""The time limit of an answer: one that comes is in time, however busy the machine is."""
UNANSWERED = dict.fromkeys([Fault.LATE, Fault.DRIP, Fault.LONG], 2.0)
"""The limits of answers that do not come."""
PATIENCE = 8.0
"""The same for many requests at a time."""

HEARS = {"criterion": "Hears", "strict": "contains", "text": "heard"}


def plan_of_turns(second: str, *evaluations: dict, seconds: float = SECONDS) -> Plan:
    """A test of two turns, the first of which is fixed."""
    test = {
        "name": "Greets", "guidelines": "You say hello.",
        "turns": [{"user": "Hello", "timeout": seconds}, {"user": second, "timeout": seconds}], "maxTurns": 2,
        "evaluations": [HEARS, *evaluations],
    }  # fmt: skip
    return plan_suites([load_suite({"name": "S", "tests": [test]})], Selection(), loops=1)


JUDGED = ({"criterion": "Kind"}, {"criterion": "Brief"})
TESTS = {AGENT: ("Goodbye",), MODELS: ("auto", *JUDGED)}
"""Arguments of `plan_of_turns` if a server of these places has faults."""
REQUESTS = {RequestKind.OPENING: 1, RequestKind.MESSAGE: 2, RequestKind.USER: 1, RequestKind.JUDGE: 2}
"""Requests of a trial that meets no fault."""


async def no_sleep(_seconds: float) -> None:
    await asyncio.sleep(0)


def agent_at(url: str, sleep=no_sleep, seconds: float = SECONDS) -> AuiAgent:
    settings = AgentSettings("agent-1", faults.AGENT_KEY, url)
    return AuiAgent(settings, limiter=RateLimiter(sleep=sleep), open_timeout=seconds)


def model_at(url: str, sleep=no_sleep, wire: str = "openai", seconds: float = SECONDS) -> SdkLLM:
    if wire == "openai":
        return OpenAILLM("m", faults.LLM_KEY, f"{url}/v1", seconds, limiter=RateLimiter(sleep=sleep))
    return AnthropicLLM("m", faults.LLM_KEY, url, seconds, limiter=RateLimiter(sleep=sleep))


@dataclass(frozen=True)
class FaultOutcome:
    trial: TrialResult
    stop: Stop
    place: RequestKind
    server: FaultyServer
    agent: FaultyServer

    @property
    def came_to(self) -> str:
        """In the words of the page."""
        if self.stop.outage:
            return "the run ends"
        if self.trial.status == "failed":
            return "failed"
        if self._undecided:
            return "undecided"
        if len(self.trial.attempts) > 1:
            return "retried"
        again = len(self.server.at(self.place)) > REQUESTS[self.place] or self.server.crashes
        return "sent again" if again else "no harm"

    @property
    def reason(self) -> str:
        return self.trial.error or next(iter(self._undecided), "")

    @property
    def _undecided(self) -> list[str]:
        return [result.reason for result in self.trial.findings if result.outcome is Outcome.UNDECIDED]


async def run_with_fault(place: RequestKind, fault: Fault, *, lasts: bool) -> FaultOutcome:
    """The outcome of a run of one trial with a fault at the first request of a place, or at all of them."""
    draw = (faults.always if lasts else faults.once)(place, fault)
    draws = (draw, faults.none) if place in AGENT else (faults.none, draw)
    seconds = UNANSWERED.get(fault, SECONDS)
    async with faults.serving(draws[0]) as agent, faults.serving(draws[1]) as models:
        server = agent if place in AGENT else models
        astray = {Fault.NO_NAME: "http://agent.invalid", Fault.NO_TLS: server.url.replace("http:", "https:")}

        def at(here: RequestKind) -> str:
            own = agent if here in AGENT else models
            return astray.get(fault, server.url) if here is place else own.url

        async def sleep(_seconds: float) -> None:
            await asyncio.sleep(0)
            if not lasts:
                await server.start_listening()

        if fault is Fault.NOBODY:
            before = {RequestKind.MESSAGE: RequestKind.OPENING, RequestKind.JUDGE: RequestKind.USER}
            server.crashes_after = before.get(place)
            if server.crashes_after is None:
                server.crash()
        async with AsyncExitStack() as stack:
            participants, stop = Participants(agent_at(at(RequestKind.OPENING), sleep, seconds)), Stop()
            if place in MODELS:
                user = judge = model_at(at(RequestKind.USER), sleep, seconds=seconds)
                if at(RequestKind.JUDGE) != at(RequestKind.USER):
                    judge = model_at(at(RequestKind.JUDGE), sleep, seconds=seconds)
                for llm in {user, judge}:
                    stack.push_async_callback(llm.aclose)
                participants = replace(participants, user_llm=user, judge_llm=judge)
            plan = plan_of_turns(*TESTS[AGENT if place in AGENT else MODELS], seconds=seconds)
            (trial,) = await run(plan, lambda _: participants, Options(), Redactor(), stop=stop)
        assert stop.bug is None
        return FaultOutcome(trial, stop, place, server, agent)


async def measure_all() -> dict[tuple[RequestKind, Fault, bool], FaultOutcome]:
    at_a_time = asyncio.Semaphore(8)  # so that those that wait do so together
    result = {}

    async def measure(place: RequestKind, fault: Fault, lasts: bool) -> None:
        async with at_a_time:
            result[place, fault, lasts] = await run_with_fault(place, fault, lasts=lasts)

    async with asyncio.TaskGroup() as group:
        for place in RequestKind:
            for fault in Fault:
                for lasts in (True, False):
                    if possible(place, fault, lasts=lasts):
                        group.create_task(measure(place, fault, lasts))
    return result


def possible(place: RequestKind, fault: Fault, *, lasts: bool) -> bool:
    """A name that is not known is so from the first request on; only agents have conversations."""
    if fault in {Fault.NO_NAME, Fault.NO_TLS}:
        return lasts and place is not RequestKind.MESSAGE
    return fault is not Fault.FOREIGN or place is RequestKind.MESSAGE


@pytest.fixture(scope="module")
def runs():
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            patch.delenv(name)
        import_module(OpenAILLM.vendor.module)  # which takes seconds, and would hold up everything
        yield asyncio.run(measure_all())


def rows(heading: str) -> dict[str, list[str]]:
    return {name: cells for name, *cells in table(heading, PAGE)}


def pattern(cell: str) -> str:
    """The words of a message, with anything where it has a word in capitals or an ellipsis."""
    return re.sub(r"\b(?:[A-Z]{4,}|N)\b|…", ".+", re.escape(code(cell)))


TABLES = {AGENT: "an agent's server", MODELS: "a model's server"}


@each_row("fault", Fault)
@each_row("place", RequestKind)
def test_fault_has_documented_outcome_and_causes_no_false_pass(runs, place, fault):
    if not possible(place, fault, lasts=True):
        return
    places = AGENT if place in AGENT else MODELS
    cells = rows(TABLES[places])[fault]
    once, lasting = runs.get((place, fault, False)), runs[place, fault, True]
    assert cells[places.index(place)] == (once.came_to if once else "")
    assert re.match(pattern(cells[2]), lasting.reason), lasting.reason
    for lasts in (False, True):
        if not (one := runs.get((place, fault, lasts))):
            continue
        assert faults.contradictions([one.trial], one.agent) == []
        sound = one.came_to in {"sent again", "retried", "no harm"}
        assert (validity(one.trial, ScoreRule(offline=False)) is Validity.VALID) is sound
        assert sound or lasts or fault in {Fault.REFUSED, Fault.QUOTA}
        assert not sound or not lasts or fault in HARMLESS


def test_reliability_page_lists_every_fault_malformed_response_and_error():
    """Malformed responses are sent in tests/fuzz."""
    for places, heading in TABLES.items():
        faults_there = {f for f in Fault if any(possible(place, f, lasts=True) for place in places)}
        assert {*rows(heading)} == faults_there
    assert [*rows("around a run")] == [*TROUBLES]
    file = Path(__file__).parent / "fuzz/hostile_server.py"
    spec = importlib.util.spec_from_file_location("hostile_server", file)
    hostile = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hostile)
    kinds = (hostile.TOO_MUCH, hostile.BROKEN, hostile.LATE, hostile.UNREADABLE, hostile.READABLE)
    named = [cells[0].split("; ") for cells in rows("an answer that is").values()]
    assert named == [list(kind) for kind in kinds]


@dataclass(frozen=True)
class RunInTrouble:
    """A run of forty trials whose servers get into trouble in the middle of it."""

    folder: Path
    agent: FaultyServer
    models: FaultyServer

    async def played(self, *, resume: bool = False, revives: bool = False) -> Results:
        async def sleep(_seconds: float) -> None:
            await asyncio.sleep(0)
            if revives:
                await self.agent.start_listening()

        journal = Journal(self.folder, resume=resume)
        plan, limits = replace(plan_of_turns(*TESTS[MODELS]), loops=40), Limits(failures_in_row=10)
        job = Job(plan, Policy(), Options(parallel=4), Redactor(), limits=limits, journal=journal)
        llm = model_at(self.models.url, sleep)
        try:
            return await evaluate(job, Participants(agent_at(self.agent.url, sleep), llm, llm))
        finally:
            journal.close()
            await llm.aclose()

    def account(self, results: Results) -> int:
        """How many trials were played; each of the plan is in the results once, or counted as not run."""
        (test,) = results.suites[0].tests
        assert len({trial.index for trial in test.trials}) == len(test.trials) == 40 - test.not_run
        assert faults.contradictions(test.trials, self.agent) == []
        return len(test.trials)


async def run_troubled(
    folder: Path, trouble: Callable[[RunInTrouble], None], *, revives: bool = False
) -> int:
    """Lets trouble begin in mid-run, and the run go on when it is over; the exit code of the first part."""
    async with faults.serving() as agent, faults.serving() as models:
        run = RunInTrouble(folder, agent, models)
        trouble(run)
        broken_off = await run.played(revives=revives)
        played = run.account(broken_off)
        if revives:
            assert played == 40
            return broken_off.gate.exit_code
        assert 10 <= played < 40
        assert len(agent.at(RequestKind.MESSAGE)) <= 2 * played + 8
        assert sum(asked.fault is Fault.REFUSED for asked in agent.asked) <= 4
        agent.draw = models.draw = faults.none
        await agent.start_listening()
        kept = sum(not trial.needs_rerun for trial in broken_off.suites[0].tests[0].trials)
        before = len(agent.at(RequestKind.OPENING))
        whole = await run.played(resume=True)
        assert (run.account(whole), whole.gate.exit_code) == (40, 0)
        assert len(agent.at(RequestKind.OPENING)) - before == 40 - kept, "what had finished is rerun"
    return broken_off.gate.exit_code


def crash(run: RunInTrouble) -> None:
    run.agent.crashes_at = (RequestKind.MESSAGE, 41)


def reject_agent_key(run: RunInTrouble) -> None:
    run.agent.draw = faults.always(RequestKind.OPENING, Fault.REFUSED, since=21)


def exhaust_quota(run: RunInTrouble) -> None:
    run.models.draw = faults.always(RequestKind.JUDGE, Fault.QUOTA, since=42)


async def disk_is_full(folder: Path) -> int:
    process = start("run", "demo:hr", "--provider=offline", "--loops=2", cwd=folder)
    assert any(line.startswith("[1/") for line in process.stderr)  # it has begun
    (worker,) = children_of(process.pid)
    resource.prlimit(worker, resource.RLIMIT_FSIZE, (40_000, 40_000))
    out, err = process.communicate(timeout=300)
    assert err.count("journal.jsonl cannot be written (File too large): the run continues") == 1
    assert "There is no room for the reports" in err
    assert "The exit code is 3 whatever the verdict." in err
    assert "12 of 12 tests pass." in out
    assert not any(name.startswith("ci-evals-") for name in read_files(folder))
    kept = (folder / "results/journal.jsonl").read_bytes()
    assert kept.endswith(b"\n")
    again = ci_evals("run", "demo:hr", "--provider=offline", "--loops=2", "--resume=results", cwd=folder)
    assert again.returncode == 0
    assert f"{kept.count(b'result') and len(kept.splitlines()) - 1} of 24 trials had finished" in again.stderr
    return process.returncode


async def folder_is_removed(folder: Path) -> int:
    process = start("run", "demo:hr", "--provider=offline", "--loops=5", cwd=folder)
    for line in process.stderr:
        if line.startswith("[3/"):
            break
    shutil.rmtree(folder / "results")
    _, err = process.communicate(timeout=300)
    assert "journal.jsonl cannot be written (it was removed): the run continues" in err
    assert {"_results.json", "summary.md", "junit.xml"} <= set(read_files(folder / "results"))
    return process.returncode


async def nobody_reads(folder: Path) -> int:
    process = start("run", "demo:hr", "--test=Refuses", "--provider=offline", cwd=folder)
    process.stdout.close()
    process.stderr.close()
    code = process.wait(300)
    assert {"_results.json", "summary.md", "junit.xml"} <= set(read_files(folder / "results"))
    return code


TROUBLES = {
    "nobody listens any more": partial(run_troubled, trouble=crash),
    "the agent's server dies and comes back": partial(run_troubled, trouble=crash, revives=True),
    "the agent's key is refused in mid-run": partial(run_troubled, trouble=reject_agent_key),
    "the model's quota is used up in mid-run": partial(run_troubled, trouble=exhaust_quota),
    "the disk is full": disk_is_full,
    "the output folder is removed": folder_is_removed,
    "standard output and standard error are closed": nobody_reads,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TROUBLES)
def test_error_outside_trials_has_exit_code_of_reliability_page(tmp_path, name):
    assert str(asyncio.run(TROUBLES[name](tmp_path))) == rows("around a run")[name][1]


def too_late(trial: TrialResult) -> bool:
    reasons = [result.reason for result in trial.findings if result.outcome is Outcome.UNDECIDED]
    return any(f"within {PATIENCE:g} s" in reason for reason in [trial.error or "", *reasons])


MIXED = [fault for fault in Fault if fault not in {*faults.UNDELIVERED, Fault.REFUSED, Fault.QUOTA}]
"""All that do not end the run, and may come at any request."""
LONG = [pytest.param(1_000, wire, marks=pytest.mark.endurance) for wire in ("openai", "anthropic")]


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "wire"), [(200, "openai"), *LONG])
async def test_every_trial_is_accounted_for_if_a_tenth_of_requests_fail(trials, wire):
    draw = faults.mixed(trials, 0.1, MIXED)
    async with faults.serving(draw) as agent, faults.serving(draw) as models:

        async def sleep(_seconds: float) -> None:
            await asyncio.sleep(0)
            await agent.start_listening()

        agent.crashes_at = (RequestKind.MESSAGE, trials)  # in the middle of it
        plan = replace(plan_of_turns("auto", *JUDGED, seconds=PATIENCE), loops=trials)
        llm = model_at(models.url, sleep, wire, PATIENCE)
        participants = Participants(agent_at(agent.url, sleep, PATIENCE), llm, llm)
        job, stop = Job(plan, Policy(), Options(parallel=50), Redactor()), Stop()
        results = await evaluate(job, participants, stop=stop)
        await llm.aclose()
    assert stop.bug is None
    (test,) = results.suites[0].tests
    assert [trial.index for trial in test.trials] == list(range(1, trials + 1))
    assert (results.counts.trials, faults.contradictions(test.trials, agent)) == (trials, [])
    for trial in test.trials:
        assert trial.status == trial.attempts[-1].status == ("failed" if trial.error else "completed")
        assert len(trial.attempts) <= 2
        assert all(attempt.error for attempt in trial.attempts[:-1])
        assert [bool(result.reason) for result in trial.findings] == [True] * 3
    bad = [trial for trial in test.trials if validity(trial, ScoreRule(offline=False)) is Validity.ERRORED]
    assert (results.counts.errors, results.gate.exit_code) == (len(bad), 3)
    in_time = [trial for trial in bad if not too_late(trial)]  # how many are late depends on the machine
    assert 0 < len(in_time) < trials / 2
    met = Counter(asked.fault for server in (agent, models) for asked in server.asked)
    assert set(MIXED) | {None} == set(met)
    assert 0.08 < 1 - met[None] / met.total() < 0.12
