"""The action: its declaration, its documentation and the settings agree, and its door opens."""

import json
import re

import pytest
import world
import yaml
from commands import action
from doc_pages import ROOT, code, page, table
from github_runner import Step
from typer.main import get_command

from ci_evals.cli.app import app
from ci_evals.cli.settings.help import sections
from ci_evals.cli.settings.inputs import declared
from ci_evals.extension_registry import run_options

pytestmark = pytest.mark.slow

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


@pytest.fixture
def step(tmp_path):
    return Step(tmp_path)


def play(step, *arguments, **inputs):
    """`entrypoint.py` as the runner starts it; underscores in the names of inputs are dashes."""
    named = {name.replace("_", "-"): value for name, value in inputs.items()}
    return action(*arguments, cwd=step.workspace, env=step.variables(step.folder, named))


@pytest.mark.end_to_end
def test_action_inputs_have_defaults_and_texts_of_options_and_docs_list_outputs():
    """No input is required: a step has suites or, with `gate`, result files."""
    inputs, outputs = ACTION["inputs"], ACTION["outputs"]
    assert {name: entry.get("default", "") for name, entry in inputs.items()} == declared()
    assert all(entry["description"].endswith(".") for entry in (*inputs.values(), *outputs.values()))
    assert not [name for name, entry in inputs.items() if entry.get("required")]
    rows = re.findall(r"^\| `([\w-]+)` \| (.*?) \|", page("reference/options.md"), flags=re.MULTILINE)
    assert {name: code(default) for name, default in rows} == declared()
    assert [code(name) for name, _ in table("output", page("github-action.md"))] == list(outputs)
    described = {name: " ".join(entry["description"].split()) for name, entry in inputs.items()}
    assert described == descriptions()


def descriptions() -> dict[str, str]:
    """The text of each input that the options make; the command line has dashes before a name."""
    group = get_command(app)
    root = group.make_context("ci-evals", [], resilient_parsing=True)
    result = {}
    for command in ("gate", "run"):
        context = group.commands[command].make_context(command, [], root, resilient_parsing=True)
        options = sections(group.commands[command], context).values()
        for option in (one for group_of_options in options for one in group_of_options):
            words = [option.text, *option.details.split()]
            if option.metavar.islower() and "|" in option.metavar:
                words.append(f"One of {option.metavar.replace('|', ', ')}.")
            arguments = {"SUITE": "suites", "FILE": "gate"}
            name = arguments.get(option.name, option.input)
            result[name] = " ".join(words).replace("`", "").replace("--", "")
    del result["-h, --help"]
    for option in run_options():
        if not option.in_action:
            del result[option.name.replace("_", "-")]
    return result


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"min-scor": "95"}, "unknown input 'min-scor': did you mean 'min-score'?"),
        ({"suites": ""}, "input 'suites' is empty"),
        ({"min-score": "85%"}, "input 'min-score' is '85%': it must be a number from 0 to 100"),
        ({"pr-number": "seven"}, "input 'pr-number' is 'seven': it must be a whole number"),
        ({"output-dir": "../out"}, "input 'output-dir' is '../out': it is outside the workspace"),
    ],
)
def test_invalid_input_is_reported_once_before_anything_runs(step, inputs, message):
    """The annotation and the summary say so. GitHub does not enforce `required: true`."""
    done = play(step, **{"suites": "demo:hr", "provider": "offline"} | inputs)
    assert done.returncode == 2
    (error,) = done.stderr.splitlines()
    assert error.startswith("::error title=ci-evals::")
    assert message in error.replace("%25", "%")
    assert message in step.summary
    assert (list(step.workspace.iterdir()), set(step.outputs)) == ([], set(ACTION["outputs"]))
    results = [step.outputs[name] for name in ("passed", "result", "finished")]
    assert results == ["false", "invalid", "false"]


def test_invalid_args_and_inputs_next_to_args_are_rejected(step):
    """Such an input would be ignored, and the gate would seem to pass."""
    done = play(step, "merge", "--shards=three", "shards", args="merge --shards=three shards")
    assert done.returncode == 2
    (error,) = done.stderr.splitlines()
    assert error.startswith("::error title=ci-evals::Invalid value for '--shards': 'three'")
    done = play(step, "merge", "shards", args="merge shards", min_score="99")
    assert done.returncode == 2
    assert "input 'min-score' has no effect with 'args': write --min-score=... there" in done.stderr
    assert step.outputs["result"] == "invalid"
    assert "Evals did not run" in step.summary


@pytest.mark.end_to_end
def test_action_runs_suites_and_writes_reports_outputs_and_summary(step):
    done = play(step, suites="demo:hr\ndemo:retail\n", provider="offline", min_score="100", parallel="8")
    assert done.returncode == 0, done.stderr
    outputs = step.outputs
    assert set(outputs) == set(ACTION["outputs"])
    assert (outputs["result"], outputs["passed"], outputs["finished"]) == ("passed", "true", "true")
    assert int(outputs["tests"]) > 0
    for name in ("results-path", "junit-path", "summary-path", "report-path"):
        assert (step.workspace / outputs[name]).is_file(), name
    assert step.summary


def test_output_finished_is_false_if_time_limit_stops_run(step):
    done = play(step, suites="demo:hr", provider="offline", max_duration="0.001")
    assert (done.returncode, step.outputs["finished"]) == (3, "false")


def test_args_input_runs_other_command(step):
    """The runner hands over all inputs, with their defaults."""
    done = play(step, "list-suites", **declared() | {"args": "list-suites", "github-token": "ghs_1"})
    assert done.returncode == 0, done.stderr
    assert "demo:hr" in done.stdout


def test_help_in_action_names_ci_evals_and_writes_no_summary(step):
    done = play(step, "run", "--help")
    assert (done.returncode, done.stderr, step.summary) == (0, "", "")
    assert "ci-evals run" in done.stdout
    assert "entrypoint" not in done.stdout


@pytest.mark.parametrize(
    "link", ["results", "results/junit.xml", "results/HR-assistant", "results/report.html"]
)
def test_symlinked_output_is_rejected_before_agent_is_called(step, link):
    """A link in the checkout would lead what is written out of the workspace."""
    outside = step.folder / "outside"
    outside.mkdir()
    (outside / "kept").write_text("theirs")
    place = step.workspace / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside / "kept" if place.suffix else outside)
    with world.agent() as agent:
        suite = {"name": "HR assistant", "agentId": "a", "tests": [TEST]}
        (step.workspace / "suite.json").write_text(json.dumps(suite))
        done = play(step, suites="suite.json", provider="offline", base_url=agent.url, agent_key=agent.key)
        assert agent.heard == []
    assert done.returncode == 2, done.stdout + done.stderr
    assert link.partition("/")[0] in done.stderr
    assert {file.name: file.read_text() for file in outside.iterdir()} == {"kept": "theirs"}


TEST = {
    "name": "Greets", "guidelines": "You say hello.", "maxTurns": 1, "turns": [{"user": "Hello"}],
    "evaluations": [{"criterion": "No forwarding", "strict": "not_escalated"}],
}  # fmt: skip
