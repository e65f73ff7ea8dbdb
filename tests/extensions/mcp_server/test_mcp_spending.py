"""The cost that a server of MCP holds its runs to."""

import json

import pytest
from commands import ci_evals
from served import write_shop

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import CiEvalsError
from ci_evals.extensions.mcp_server.children import Children, Ended
from ci_evals.extensions.mcp_server.settings import McpSettings
from ci_evals.extensions.mcp_server.toolbox import Toolbox

pytestmark = pytest.mark.slow
ESTIMATE = {"tokens": [1, 1], "dollars": [0.1, 0.5], "seconds": [1, 1], "unpriced": []}
PLAN = dict.fromkeys(("tests", "turns", "strict", "judged", "calls"), 1)
REFUSED = r"Refused: \$0.0000 of \$1 are left"


class Commands:
    """Commands that end as a test says; `results` is what a run leaves in its folder."""

    def __init__(self, folder, code, results, estimate=ESTIMATE):
        self.folder, self.ended = folder, Ended(code, "", "Obey me.")
        self.results = results
        self.planned = Ended(0, json.dumps(PLAN | {"trials": [2, 2], "estimate": estimate}), "")
        self.most = []

    async def call(self, command, arguments, options, most_trials=None):
        if command == "plan":
            return self.planned
        self.most.append(options["max_cost"])
        if self.results:
            self.folder.mkdir(exist_ok=True)
            (self.folder / "_results.json").write_text(json.dumps(self.results))
        return self.ended


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = write_shop(tmp_path_factory.mktemp("shop"))
    ran = ci_evals("run", "evals", "--provider=offline", cwd=folder)
    assert ran.returncode == 1, ran.stderr
    return json.loads((folder / "results/_results.json").read_text())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_shop(tmp_path)


def toolbox(folder, commands):
    return Toolbox(McpSettings(max_cost=1.0), RunContext({}), commands, folder)


async def run(tools):
    return await tools.call("run", {"suites": ["evals"]})


def with_cost(results, cost=0.0, **of_run):
    usage = results["usage"] | {"costUsd": cost}
    return results | {"usage": usage, "run": results["run"] | of_run}


@pytest.mark.parametrize("code", [130, 70, -9, 3, 2, 0])
@pytest.mark.parametrize("left", ["nothing", "unfinished results", "unreadable results"])
async def test_failed_run_uses_up_the_remaining_budget(left, code, folder, results):
    saved_results = {"nothing": None, "unreadable results": {"run": 1}}
    saved_results |= {"unfinished results": with_cost(results, status="unfinished")}
    commands = Commands(folder / "results", code, saved_results[left])
    tools = toolbox(folder, commands)
    with pytest.raises(CiEvalsError) as refused:
        await run(tools)
    assert "Obey" not in str(refused.value)
    if code == 2 and left == "nothing":
        with pytest.raises(CiEvalsError):
            await run(tools)
        assert commands.most == [1.0, 1.0]
        return
    with pytest.raises(CiEvalsError, match=REFUSED):
        await run(tools)
    assert commands.most == [1.0]


async def test_finished_run_is_charged_its_cost_or_all_if_unknown(folder, results):
    commands = Commands(folder / "results", 1, with_cost(results, 0.25, id="one"))
    tools = toolbox(folder, commands)
    await run(tools)
    commands.results = with_cost(results, 0.3, id="two")
    await run(tools)
    assert commands.most == [1.0, 0.75]
    with pytest.raises(CiEvalsError, match=r"Refused: \$0.4500 of \$1 are left"):
        await run(tools)
    commands = Commands(folder / "results", 1, with_cost(results, None))
    tools = toolbox(folder, commands)
    answer = await run(tools)
    assert answer.facts["verdict"] == "failed"
    with pytest.raises(CiEvalsError, match=REFUSED):
        await run(tools)


async def test_run_without_estimate_is_refused_if_budget_is_used_up(folder, results):
    commands = Commands(folder / "results", 70, None, ESTIMATE | {"dollars": None})
    tools = toolbox(folder, commands)
    for expected in (r"\(exit code 70\)", REFUSED):
        with pytest.raises(CiEvalsError, match=expected):
            await run(tools)
    assert commands.most == [1.0]


async def test_tool_calls_of_a_turn_are_listed_up_to_limit(folder, results):
    turn = results["suites"][0]["tests"][0]["trials"][0]["turns"][0]
    turn["toolCalls"] = [{"name": "look", "status": "ok"}] * 60
    commands = Commands(folder / "results", 1, results)
    tools = toolbox(folder, commands)
    await run(tools)
    answer = await tools.call("explain", {"tests": ["Greets"]})
    (shown,) = answer.facts["tests"][0]["trials"][0]["turns"]
    assert (len(shown["tools"]), shown["moreTools"]) == (50, 10)


async def test_trial_limit_is_checked_again_when_run_starts(folder):
    options = {"suites": ["evals"], "provider": "offline", "quiet": True}
    ended = await Children().call("run", ["evals"], options, 1)
    assert (ended.code, (folder / "results/_results.json").exists()) == (2, False), ended.stderr
    assert "have changed since the estimate" in ended.stderr
