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
    """After a run that has failed."""
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


def changed(results, cost=0.0, **of_run):
    usage = results["usage"] | {"costUsd": cost}
    return results | {"usage": usage, "run": results["run"] | of_run}


@pytest.mark.parametrize("code", [130, 70, -9, 3, 2, 0])
@pytest.mark.parametrize("left", ["nothing", "unfinished results", "unreadable results"])
async def test_a_run_that_ends_badly_is_charged_all_that_was_left(left, code, folder, results):
    """Nobody knows what it has spent, unless it was refused before it played."""
    written = {
        "nothing": None,
        "unfinished results": changed(results, status="unfinished"),
        "unreadable results": {"run": 1},
    }
    commands = Commands(folder / "results", code, written[left])
    tools = toolbox(folder, commands)
    with pytest.raises(CiEvalsError) as told:
        await run(tools)
    assert "Obey" not in str(told.value)
    if code == 2 and left == "nothing":
        with pytest.raises(CiEvalsError):
            await run(tools)
        assert commands.most == [1.0, 1.0]
        return
    with pytest.raises(CiEvalsError, match=REFUSED):
        await run(tools)
    assert commands.most == [1.0]


async def test_a_finished_run_is_charged_its_cost(folder, results):
    """The rest of the budget holds for the next run."""
    commands = Commands(folder / "results", 1, changed(results, 0.25, id="one"))
    tools = toolbox(folder, commands)
    await run(tools)
    commands.results = changed(results, 0.3, id="two")
    await run(tools)
    assert commands.most == [1.0, 0.75]
    with pytest.raises(CiEvalsError, match=r"Refused: \$0.4500 of \$1 are left"):
        await run(tools)


async def test_a_finished_run_of_unknown_cost_is_charged_all_that_was_left(folder, results):
    """Its results are returned all the same."""
    commands = Commands(folder / "results", 1, changed(results, None))
    tools = toolbox(folder, commands)
    answer = await run(tools)
    assert answer.facts["verdict"] == "failed"
    with pytest.raises(CiEvalsError, match=REFUSED):
        await run(tools)


async def test_a_run_of_unknown_estimate_is_refused_if_nothing_is_left(folder, results):
    """Its first trials begin before their cost is known."""
    commands = Commands(folder / "results", 70, None, ESTIMATE | {"dollars": None})
    tools = toolbox(folder, commands)
    for expected in (r"\(exit code 70\)", REFUSED):
        with pytest.raises(CiEvalsError, match=expected):
            await run(tools)
    assert commands.most == [1.0]


async def test_an_answer_lists_so_many_calls_of_a_turn_and_counts_the_others(folder, results):
    """Their names are chosen by the agent."""
    turn = results["suites"][0]["tests"][0]["trials"][0]["turns"][0]
    turn["toolCalls"] = [{"name": "look", "status": "ok"}] * 60
    commands = Commands(folder / "results", 1, results)
    tools = toolbox(folder, commands)
    await run(tools)
    answer = await tools.call("explain", {"tests": ["Greets"]})
    (shown,) = answer.facts["tests"][0]["trials"][0]["turns"]
    assert (len(shown["tools"]), shown["moreTools"]) == (50, 10)


@pytest.mark.parametrize(("most", "code"), [(1, 2), (2, 1)])
async def test_a_run_of_more_trials_than_allowed_is_refused_by_what_plays_it(most, code, folder):
    """Its suites may have changed since they were counted."""
    options = {"suites": ["evals"], "provider": "offline", "quiet": True}
    ended = await Children().call("run", ["evals"], options, most)
    assert ended.code == code, ended.stderr
    assert ("have changed since the estimate" in ended.stderr) == (code == 2)
    assert (folder / "results/_results.json").exists() == (code == 1)
