"""`init` as its users start it: what it writes is right as it is."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
import yaml
from commands import ci_evals, read_files, read_results
from doc_pages import ROOT
from each_row import each_row
from programs import run_captured

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.support import documentation

TOOLS = Path(sys.executable).parent
SUITE, WORKFLOW = "evals/starter.yaml", ".github/workflows/evals.yml"
SCHEMA = "evals/.ci-evals.schema.json"
EXAMPLE = (ROOT / "examples/pull-request.yml").read_text()
ADAPTERS = [*AGENT_KINDS, "python", "command", "python:shop.desk:reply", "command: ./agent"]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


@pytest.fixture
def command(repository, capsys):

    def run(*args, environ=None):
        capsys.readouterr()
        assert not invoke(args, RunContext(environ or {})), args
        return capsys.readouterr()

    return run


@pytest.fixture
def init(command):
    return lambda *options: command("init", *options).out


def refusal(*args):
    context = RunContext({})
    with pytest.raises(UsageError) as refused:
        invoke(args, context)
    return context.message(str(refused.value))


def remove(repository, *names):
    for name in names:
        (repository / name).unlink()


def workflow(text):
    """YAML takes the key `on` for a boolean."""
    read = yaml.safe_load(text)
    return read | {"on": read.pop(True)}


def action_inputs(text):
    (step,) = [step for step in workflow(text)["jobs"]["evals"]["steps"] if step.get("id") == "evals"]
    return step["with"]


def written_workflow(repository):
    return (repository / WORKFLOW).read_text()


STARTED = ["--adapter=http", "--provider=offline", "--start=python3 agent.py --port 8000"]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_starter_suite_is_valid_without_warnings(command, adapter):
    command("init", f"--adapter={adapter}")
    done = command("validate", "--strict", "evals/", environ={"CI_EVALS_AGENT_KEY": "key-123456"})
    assert (done.out.startswith(f"ok  {SUITE}: Starter: 4 tests"), done.err) == (True, "")


@pytest.mark.slow
def test_workflows_pass_actionlint_zizmor_and_the_schema_of_github(tmp_path):
    files = []
    for number, options in enumerate([*([f"--adapter={adapter}"] for adapter in ADAPTERS), STARTED]):
        repository = tmp_path / str(number)
        (repository / ".git").mkdir(parents=True)
        (repository / "requirements.txt").touch()
        invoke(["init", str(repository), *options], RunContext({}))
        files.append(repository / WORKFLOW)
    zizmor = ["zizmor", "--offline", "--quiet", "--config", ROOT / ".github/zizmor.yml"]
    for tool in (["check-jsonschema", "--builtin-schema", "vendor.github-workflows"], ["actionlint"], zizmor):
        done = run_captured([TOOLS / tool[0], *tool[1:], *files])
        assert done.returncode == 0, done.stdout + done.stderr


def test_workflow_equals_the_example_and_runs_mutate_every_week(repository, init):
    init()
    text = written_workflow(repository)
    ours, example = action_inputs(text), action_inputs(EXAMPLE)
    assert ours == example | {"suites": "evals/\n", "min-score": "80"}
    (shown,) = [step for step in workflow(EXAMPLE)["jobs"]["evals"]["steps"] if step.get("id") == "evals"]
    written = workflow(text)
    steps = written["jobs"]["evals"]["steps"]
    written["jobs"]["evals"]["steps"] = [shown if step.get("id") == "evals" else step for step in steps]
    assert written == workflow(EXAMPLE)
    pins = [re.findall(r"uses: (\S+@[0-9a-f]{40} # \S+)", part) for part in (text, EXAMPLE)]
    assert pins[0] == pins[1]
    assert [entry["cron"].split()[-1] for entry in written["on"]["schedule"]] == ["1"]
    (place,) = [at for at, step in enumerate(steps) if "mutate" in step.get("with", {}).get("args", "")]
    names = [step.get("name", step.get("id")) for step in steps]
    assert names.index("evals") < place < names.index("Keep all reports")
    assert steps[place]["with"] == {"args": "mutate results"}
    assert "github.event_name == 'schedule'" in steps[place]["if"]


BASE_URL, AGENT_KEY = {"base-url": "vars.AGENT_URL"}, {"agent-key": "secrets.AGENT_KEY"}
LLM_KEY = {"llm-key": "secrets.OPENAI_API_KEY"}
COMMON_INPUTS = {"suites", "parallel", "rounds", "regression", "weakened", "min-score"}


@pytest.mark.parametrize(
    ("adapter", "wanted", "fields"),
    [
        ("aui", AGENT_KEY | LLM_KEY, "agentId"),
        ("openai", BASE_URL | AGENT_KEY | LLM_KEY, "model and baseUrl"),
        ("http", BASE_URL | AGENT_KEY | LLM_KEY, "baseUrl and adapterOptions"),
        *((adapter, BASE_URL | LLM_KEY, "agentId and baseUrl") for adapter in ("adk", "langgraph")),
        *((adapter, BASE_URL | LLM_KEY, "baseUrl") for adapter in ("ag-ui", "a2a", "rasa")),
        ("python", LLM_KEY, None),
        ("command", LLM_KEY, None),
        ("demo", {"provider": "offline"}, None),
    ],
)
def test_workflow_has_the_inputs_and_first_step_the_fields_of_the_adapter(
    repository, init, adapter, wanted, fields
):
    shown = init(f"--adapter={adapter}")
    given = action_inputs(written_workflow(repository))
    # Else a test could break and the build stay green.
    assert (given["weakened"], given["regression"]) == ("fail", "significant")
    given = {key: re.sub(r"^\$\{\{ (.+) \}\}$", r"\1", value) for key, value in given.items()}
    assert {key: given[key] for key in given if key not in COMMON_INPUTS} == wanted
    for name in ("AGENT_KEY", "OPENAI_API_KEY", "AGENT_URL"):
        assert (name in shown) == any(name in value for value in wanted.values())
    if fields:
        assert re.search(rf"1\. In {SUITE}, set {fields}( \(if .*\))?, make the tests yours", shown)
        assert {*fields.split(" and ")} <= {*yaml.safe_load((repository / SUITE).read_text())}


def run_steps(repository):
    steps = workflow(written_workflow(repository))["jobs"]["evals"]["steps"]
    return [step["run"] for step in steps if "run" in step]


def test_workflow_of_started_agent_has_no_address_or_key_but_installs_requirements(repository, init):
    shown = init(*STARTED)
    suite = yaml.safe_load((repository / SUITE).read_text())
    assert suite["start"] == "cd .. && python3 agent.py --port 8000"
    given = action_inputs(written_workflow(repository))
    assert "uses: org/aui-evals-action/run@v1" in written_workflow(repository)
    assert (given["provider"], {"base-url", "agent-key", "llm-key"} & {*given}) == ("offline", set())
    assert f"Run it:  ci-evals run {SUITE} --provider=offline" in shown
    assert [name for name in ("secret", "OPENAI_API_KEY", "AGENT_URL", "--start") if name in shown] == []
    assert run_steps(repository) == [], "there is no requirements.txt"
    remove(repository, SUITE, WORKFLOW)
    (repository / "requirements.txt").touch()
    init(*STARTED)
    assert run_steps(repository) == ["pip install -r requirements.txt"]


def test_start_command_is_quoted_for_yaml_and_keeps_its_variables(repository, command):
    start = 'env MODE="a: b" ./serve # 1'
    command("init", "--adapter=http", f"--start={start}")
    assert yaml.safe_load((repository / SUITE).read_text())["start"] == f"cd .. && {start}"
    remove(repository, SUITE, WORKFLOW)
    command("init", "--adapter=http", "--start=PORT=${PORT:-8000} ./serve")
    assert command("validate", "--strict", "evals/").err == ""
    start = yaml.safe_load((repository / SUITE).read_text())["start"]
    assert start == "cd .. && PORT=$${PORT:-8000} ./serve"


def test_workflow_keeps_base_url_and_key_inputs_for_existing_suites(repository, init):
    """Their agent may be a deployed one."""
    init("--adapter=http")
    (repository / SUITE).rename(repository / "evals/deployed.yaml")
    remove(repository, WORKFLOW)
    init(*STARTED)
    assert {"base-url", "agent-key"} <= action_inputs(written_workflow(repository)).keys()


@pytest.mark.parametrize(
    "name", ["zz\n      - run: id\n        env:\n          x: ", " a", "${{ github.token }}"]
)
def test_hostile_folder_names_are_not_written_into_the_workflow(repository, init, name):
    init("--adapter=demo")
    suite = (repository / SUITE).read_text()
    for folder in ("aa", name):
        (repository / folder).mkdir()
        (repository / folder / "suite.yaml").write_text(suite)
    remove(repository, SUITE, WORKFLOW)
    init("--adapter=demo")
    text = written_workflow(repository)
    assert (action_inputs(text)["suites"].split(), f"{name}/" in text) == (["aa/"], False)


def test_provider_option_sets_provider_and_key_everywhere(repository, init):
    shown = init("--adapter=http", "--provider=anthropic")
    given = action_inputs(written_workflow(repository))
    assert (given["provider"], given["llm-key"]) == ("anthropic", "${{ secrets.ANTHROPIC_API_KEY }}")
    run = f"ci-evals run {SUITE} --provider=anthropic"
    assert f"#   {run}\n" in (repository / SUITE).read_text()
    assert f"Export ANTHROPIC_API_KEY for judge and user, then:  {run}" in shown
    assert "AGENT_KEY (if there is a key) and ANTHROPIC_API_KEY to the repository" in shown
    assert "OPENAI" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ["demo", "python", "command"])
def test_starter_suite_passes_offline_for_demo_python_and_command(repository, init, adapter):
    assert f"ci-evals run {SUITE} --provider=offline" in init(f"--adapter={adapter}")
    played = ci_evals("run", SUITE, "--provider=offline", cwd=repository, env={"PATH": os.environ["PATH"]})
    assert played.returncode == 0, played.stdout + played.stderr
    results = read_results(repository)
    assert (results["score"], results["counts"]["tests"]) == (100, 4)


@pytest.mark.slow
@pytest.mark.end_to_end
def test_init_prints_the_next_steps_and_suite_names_its_schema_for_editors(repository):
    done = ci_evals("init", "--adapter=python", cwd=repository)
    written = [SUITE, WORKFLOW, SCHEMA, "agent_under_test.py"]
    assert (done.returncode, done.stdout.splitlines()[1:5]) == (0, [f"  {name}" for name in written])
    assert re.findall(r"^  (\d)\. ", done.stdout, flags=re.MULTILINE) == ["1", "2", "3"]
    assert "\nNext:\n" in done.stdout
    first_line = "# yaml-language-server: $schema=.ci-evals.schema.json\n"
    assert (repository / SUITE).read_text().startswith(first_line)
    schema = json.loads(ci_evals("schema", cwd=repository).stdout)
    assert json.loads((repository / SCHEMA).read_text()) == schema


def test_framework_agent_gets_tool_checks_but_no_hand_over_check(repository, init):
    """It reports hand-overs only once its options name the tools that make them."""
    shown = init("--adapter=python:shop:agent")
    assert "Export OPENAI_API_KEY for judge and user" in shown
    assert f"Without a model:  ci-evals run {SUITE} --provider=offline" in shown
    suite = (repository / SUITE).read_text()
    texts = ("strict: tool_called\n", "args: { order: A-1001 }", "strict: escalated\n")
    assert [text in suite for text in texts] == [True, True, False]


def test_next_steps_name_all_keys_the_repository_and_its_virtual_environment(repository, init, monkeypatch):
    (repository / "desk").mkdir()
    monkeypatch.chdir("desk")
    shown = init("--adapter=http")
    assert f"\nNext, in {repository}:\n" in shown
    assert "Without a model:  ci-evals run" in shown
    assert "if it needs a key, also apiKey, and export AGENT_KEY" in shown
    assert "Export OPENAI_API_KEY for judge and user" in shown
    monkeypatch.chdir(repository)
    remove(repository, WORKFLOW, f"desk/{SUITE}", f"desk/{SCHEMA}")
    (repository / ".venv").mkdir()
    (repository / ".venv/pyvenv.cfg").touch()
    python = init("--adapter=python")
    assert "If the agent needs packages of .venv, install ci-evals there too" in python
    assert documentation.address("get-started#1-install") in python


@pytest.mark.parametrize("adapter", [name for name, agent in AGENT_KINDS.items() if agent.own_server])
def test_own_server_adapter_needs_no_key_but_rejects_empty_one(repository, command, adapter):
    command("init", f"--adapter={adapter}")
    assert command("plan", SUITE, "--provider=offline").err == ""
    text = (repository / SUITE).read_text()
    line = text[: text.index("apiKey: ${AGENT_KEY:-}")].count("\n") + 1
    (repository / SUITE).write_text(text.replace("# apiKey:", "apiKey:"))
    assert f"{SUITE}:{line}:9: apiKey: is empty" in refusal("run", SUITE, "--provider=offline")


@each_row("there", [SUITE, WORKFLOW, "agent_under_test.py"])
def test_existing_files_are_not_overwritten_and_nothing_else_is_written(repository, there):
    (repository / there).parent.mkdir(parents=True, exist_ok=True)
    (repository / there).write_text("mine")
    assert f"{there}': already there, and not overwritten" in refusal("init", "--adapter=python")
    assert read_files(repository) == {there: b"mine"}
    remove(repository, there)


@pytest.mark.slow
def test_failed_init_leaves_no_files(repository):
    (repository / ".github").write_text("no folder")
    done = ci_evals("init", cwd=repository)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert sorted(path.name for path in repository.iterdir()) == [".git", ".github"]


def test_branch_suite_folder_and_adapter_of_the_repository_are_used_and_quoted(repository, init):
    (repository / ".git/HEAD").write_text("ref: refs/heads/trunk\n")
    init("--adapter=openai")
    (repository / "evals").rename(repository / "checks")
    (repository / "checks/starter.yaml").rename(repository / "checks/desk.yaml")
    for branch in ("trunk", "#1:[x]"):
        remove(repository, WORKFLOW)
        (repository / ".git/HEAD").write_text(f"ref: refs/heads/{branch}\n")
        init()
        assert workflow(written_workflow(repository))["on"]["push"]["branches"] == [branch]
        assert action_inputs(written_workflow(repository))["suites"] == "checks/\n"
        assert "adapter: openai" in (repository / "checks/starter.yaml").read_text()
        remove(repository, "checks/starter.yaml")


def test_suite_is_written_to_folder_argument_and_root_workflow_plays_that_folder(repository, init):
    (repository / "desk").mkdir()
    init("desk", "--adapter=demo")
    assert set(read_files(repository)) == {f"desk/{SUITE}", f"desk/{SCHEMA}", WORKFLOW}
    assert action_inputs(written_workflow(repository))["suites"] == "desk/evals/\n"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--adapter=opnai"], "--adapter: 'opnai' is not an adapter; did you mean 'openai'?"),
        (["--adapter=python:shop"], "--adapter: 'python:shop' is not of the form python:module:attribute"),
        (["nowhere"], "'nowhere' is not a folder"),
        (["--start=./serve"], "--start: aui has no server to start. These have: openai, http,"),
        (["--adapter=python", "--start=./serve"], "--start: python has no server to start"),
        (["--adapter=http", "--start=cat <<EOF\nEOF"], "--start has more than one line"),
        (["--adapter=http", "--start="], "--start is empty. Give the command that serves your agent"),
    ],
)
def test_invalid_options_are_refused_and_nothing_is_written(repository, capsys, args, text):
    assert text in refusal("init", *args)
    assert (capsys.readouterr().out, read_files(repository)) == ("", {})
