"""The probe `agent_state`: what the agent itself reports as its state at the end of a conversation."""

import fakes
import pytest
from adapters.test_recording import Folder
from planning.test_adapter_options import loaded
from plans import make_plan

from ci_evals.domain.errors import AgentError, SuiteError
from ci_evals.domain.world import MAX_PROBE_CHARACTERS
from ci_evals.extensions.spans.receiver import Receiver
from ci_evals.extensions.spans.traced_agent import TracedAgent
from ci_evals.extensions.worlds.world_steps import WorldSteps
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, evaluate
from ci_evals.planning.agent_choice import AgentChoice, choose
from ci_evals.runner import Options, Participants
from ci_evals.support import documentation
from ci_evals.support.redaction import Redactor

REFUNDED = {"criterion": "c", "strict": "state", "probe": "agent_state", "path": "$.refunded", "equals": 42}
TEST = {"name": "t", "turns": [{"user": "Refund it"}], "maxTurns": 1, "evaluations": [REFUNDED]}


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
    job = Job(make_plan(TEST | fields), Policy(), Options(), Redactor())
    results = await evaluate(job, Participants(agent))
    (trial,) = results.suites[0].tests[0].trials
    return trial


@pytest.mark.parametrize(("state", "outcome"), [({"refunded": 42}, "passed"), ({"refunded": 7}, "failed")])
async def test_state_check_reads_agent_state_before_session_closes(state, outcome):
    trial = await play_trial(Stateful(state))
    assert trial.findings[0].outcome == outcome
    assert trial.probes["agent_state"].value == state


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


async def test_agent_state_is_not_read_without_state_check():
    """Reading one may take a request, and judges would read it."""
    agent = Stateful({})
    trial = await play_trial(agent, evaluations=[{"criterion": "c", "strict": "contains", "text": "Done"}])
    assert (agent.reads, trial.probes) == (0, {})


async def test_failed_conversation_leaves_state_check_undecided():
    trial = await play_trial(Stateful({"refunded": 42}, [AgentError("gone")]))
    assert (trial.probes, trial.findings[0].outcome) == ({}, "undecided")


async def test_probe_named_agent_state_replaces_reported_state(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = Stateful({"refunded": 7})
    (tmp_path / "state.json").write_text('{"refunded": 42}')
    own = {"agent_state": {"file": {"path": "state.json", "format": "json"}}}
    job = Job(make_plan(TEST, probes=own), Policy(), Options(), Redactor())
    results = await evaluate(job, Participants(agent, world=WorldSteps({}, Redactor())))
    assert results.suites[0].tests[0].trials[0].findings[0].outcome == "passed"


@pytest.mark.parametrize("state", [{"refunded": 42}, AgentError("the server is gone")])
async def test_replay_has_recorded_agent_state_or_its_error(tmp_path, state):
    folder, plan = Folder(tmp_path / "recording"), make_plan(TEST)
    (first,) = await folder.record(plan, Participants(Stateful(state)))
    (again,) = await folder.replay(plan)
    assert again.probes == first.probes
    assert again.findings == first.findings


async def test_traced_agent_reports_state():
    receiver = Receiver("127.0.0.1", 0)
    await receiver.start()
    try:
        trial = await play_trial(TracedAgent(Stateful({"refunded": 42}), receiver, patience=0, quiet=0))
    finally:
        await receiver.end()
    assert trial.findings[0].outcome == "passed"


def test_agent_state_check_is_rejected_for_adapter_without_state():
    """With a probe of its own the suite is accepted."""
    test = {**TEST, "guidelines": "g"}
    suite = {"adapter": "openai", "model": "m", "baseUrl": "http://a", "tests": [test]}
    with pytest.raises(SuiteError) as error:
        choose(loaded(suite), AgentChoice())
    assert error.value.problems[0].message == (
        "check agent_state, but 'openai' agents report no state; "
        f"look it up with your own probe ({documentation.see('worlds')})"
    )
    own = {"agent_state": {"http": {"url": "http://shop/1"}}}
    assert choose(loaded(suite | {"probes": own}), AgentChoice())
