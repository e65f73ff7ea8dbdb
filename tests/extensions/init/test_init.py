"""`init` as its users start it: what it writes is right as it is."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from commands import ci_evals, read_files, read_results
from doc_pages import ROOT

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.support import documentation

pytestmark = pytest.mark.slow

TOOLS = Path(sys.executable).parent
SUITE, WORKFLOW = "evals/starter.yaml", ".github/workflows/evals.yml"
SCHEMA = "evals/.ci-evals.schema.json"
EXAMPLE = (ROOT / "examples/pull-request.yml").read_text()
ADAPTERS = [*AGENT_KINDS, "python", "command", "python:shop.desk:reply", "command: ./agent"]
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS)


@pytest.fixture
def repository(tmp_path):
    (tmp_path / ".git").mkdir()
    return tmp_path


def workflow(text):
    """YAML takes the key `on` for a boolean."""
    read = yaml.safe_load(text)
    return read | {"on": read.pop(True)}


def action_inputs(text):
    (step,) = [step for step in workflow(text)["jobs"]["evals"]["steps"] if step.get("id") == "evals"]
    return step["with"]


STARTED = ["--adapter=http", "--provider=offline", "--start=python3 agent.py --port 8000"]


def test_suite_names_the_schema_next_to_it_for_editors(repository):
    assert ci_evals("init", cwd=repository).returncode == 0
    first_line = "# yaml-language-server: $schema=.ci-evals.schema.json\n"
    assert (repository / SUITE).read_text().startswith(first_line)
    written = json.loads((repository / SCHEMA).read_text())
    assert written == json.loads(ci_evals("schema", cwd=repository).stdout)


@each_adapter
def test_starter_suite_is_valid_without_warnings(repository, adapter):
    assert ci_evals("init", f"--adapter={adapter}", cwd=repository).returncode == 0
    env = {"CI_EVALS_AGENT_KEY": "key-123456"}
    done = ci_evals("validate", "--strict", "evals/", cwd=repository, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"ok  {SUITE}: Starter: 4 tests")


def test_workflows_pass_actionlint_zizmor_and_the_schema_of_github(tmp_path):
    files = []
    for number, options in enumerate([*([f"--adapter={adapter}"] for adapter in ADAPTERS), STARTED]):
        repository = tmp_path / str(number)
        (repository / ".git").mkdir(parents=True)
        (repository / "requirements.txt").touch()
        ci_evals("init", *options, cwd=repository)
        files.append(repository / WORKFLOW)
    zizmor = ["zizmor", "--offline", "--quiet", "--config", ROOT / ".github/zizmor.yml"]
    for tool in (["check-jsonschema", "--builtin-schema", "vendor.github-workflows"], ["actionlint"], zizmor):
        command = [TOOLS / tool[0], *tool[1:], *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_workflow_equals_the_example_of_the_repository(repository):
    ci_evals("init", cwd=repository)
    text = (repository / WORKFLOW).read_text()
    ours, example = action_inputs(text), action_inputs(EXAMPLE)
    assert ours == example | {"suites": "evals/\n", "min-score": "80"}
    (shown,) = [step for step in workflow(EXAMPLE)["jobs"]["evals"]["steps"] if step.get("id") == "evals"]
    written = workflow(text)
    steps = written["jobs"]["evals"]["steps"]
    written["jobs"]["evals"]["steps"] = [shown if step.get("id") == "evals" else step for step in steps]
    assert written == workflow(EXAMPLE)
    pins = [re.findall(r"uses: (\S+@[0-9a-f]{40} # \S+)", part) for part in (text, EXAMPLE)]
    assert pins[0] == pins[1]


def test_workflow_runs_mutate_every_week_on_the_main_branch(repository):
    ci_evals("init", cwd=repository)
    written = workflow((repository / WORKFLOW).read_text())
    assert [entry["cron"].split()[-1] for entry in written["on"]["schedule"]] == ["1"]
    steps = written["jobs"]["evals"]["steps"]
    places = [place for place, step in enumerate(steps) if "mutate" in step.get("with", {}).get("args", "")]
    names = [step.get("name", step.get("id")) for step in steps]
    (place,) = places
    assert names.index("evals") < place < names.index("Keep all reports")
    assert steps[place]["with"] == {"args": "mutate results"}
    assert "github.event_name == 'schedule'" in steps[place]["if"]


BASE_URL, AGENT_KEY = {"base-url": "vars.AGENT_URL"}, {"agent-key": "secrets.AGENT_KEY"}
LLM_KEY = {"llm-key": "secrets.OPENAI_API_KEY"}
COMMON_INPUTS = {"suites", "parallel", "rounds", "regression", "weakened", "min-score"}


@pytest.mark.parametrize(
    ("adapter", "wanted"),
    [
        ("aui", AGENT_KEY | LLM_KEY),
        ("openai", BASE_URL | AGENT_KEY | LLM_KEY),
        ("http", BASE_URL | AGENT_KEY | LLM_KEY),
        *((adapter, BASE_URL | LLM_KEY) for adapter in ("adk", "ag-ui", "langgraph", "a2a", "rasa")),
        ("python", LLM_KEY),
        ("command", LLM_KEY),
        ("demo", {"provider": "offline"}),
    ],
)
def test_workflow_passes_only_the_inputs_that_the_adapter_needs(repository, adapter, wanted):
    done = ci_evals("init", f"--adapter={adapter}", cwd=repository)
    given = action_inputs((repository / WORKFLOW).read_text())
    assert given["weakened"] == "fail"
    assert given["regression"] == "significant"  # else a test could break and the build stay green
    given = {key: re.sub(r"^\$\{\{ (.+) \}\}$", r"\1", value) for key, value in given.items()}
    assert {key: given[key] for key in given if key not in COMMON_INPUTS} == wanted
    for name in ("AGENT_KEY", "OPENAI_API_KEY", "AGENT_URL"):
        assert (name in done.stdout) == any(name in value for value in wanted.values())


def test_started_agent_needs_no_address_and_no_key_in_the_workflow(repository):
    done = ci_evals("init", *STARTED, cwd=repository)
    suite = yaml.safe_load((repository / SUITE).read_text())
    assert suite["start"] == "cd .. && python3 agent.py --port 8000"
    text = (repository / WORKFLOW).read_text()
    given = action_inputs(text)
    assert "uses: org/aui-evals-action/run@v1" in text
    assert (given["provider"], {"base-url", "agent-key", "llm-key"} & {*given}) == ("offline", set())
    assert f"Run it:  ci-evals run {SUITE} --provider=offline" in done.stdout
    for name in ("secret", "OPENAI_API_KEY", "AGENT_URL", "--start"):
        assert name not in done.stdout
    assert run_steps(repository) == [], "there is no requirements.txt"


def run_steps(repository):
    """The commands that the workflow runs."""
    steps = workflow((repository / WORKFLOW).read_text())["jobs"]["evals"]["steps"]
    return [step["run"] for step in steps if "run" in step]


def test_workflow_installs_the_requirements_of_a_started_agent(repository):
    (repository / "requirements.txt").touch()
    ci_evals("init", *STARTED, cwd=repository)
    assert run_steps(repository) == ["pip install -r requirements.txt"]


def test_start_command_is_quoted_for_yaml_and_keeps_its_variables(repository):
    command = 'env MODE="a: b" ./serve # 1'
    ci_evals("init", "--adapter=http", f"--start={command}", cwd=repository)
    assert yaml.safe_load((repository / SUITE).read_text())["start"] == f"cd .. && {command}"
    (repository / SUITE).unlink()
    (repository / WORKFLOW).unlink()
    ci_evals("init", "--adapter=http", "--start=PORT=${PORT:-8000} ./serve", cwd=repository)
    done = ci_evals("validate", "--strict", "evals/", cwd=repository)
    assert (done.returncode, done.stderr) == (0, "")
    start = yaml.safe_load((repository / SUITE).read_text())["start"]
    assert start == "cd .. && PORT=$${PORT:-8000} ./serve"


def test_workflow_keeps_base_url_and_key_inputs_for_existing_suites(repository):
    """Their agent may be a deployed one."""
    ci_evals("init", "--adapter=http", cwd=repository)
    (repository / "evals/starter.yaml").rename(repository / "evals/deployed.yaml")
    (repository / WORKFLOW).unlink()
    ci_evals("init", *STARTED, cwd=repository)
    assert {"base-url", "agent-key"} <= action_inputs((repository / WORKFLOW).read_text()).keys()


@pytest.mark.parametrize(
    "name", ["zz\n      - run: id\n        env:\n          x: ", " a", "${{ github.token }}"]
)
def test_hostile_folder_names_are_not_written_into_the_workflow(repository, name):
    ci_evals("init", "--adapter=demo", cwd=repository)
    suite = (repository / SUITE).read_text()
    (repository / WORKFLOW).unlink()
    for folder in ("aa", name):
        (repository / folder).mkdir()
        (repository / folder / "suite.yaml").write_text(suite)
    (repository / SUITE).unlink()
    assert ci_evals("init", "--adapter=demo", cwd=repository).returncode == 0
    text = (repository / WORKFLOW).read_text()
    assert action_inputs(text)["suites"].split() == ["aa/"]
    assert f"{name}/" not in text


def test_provider_option_sets_provider_and_key_everywhere(repository):
    done = ci_evals("init", "--adapter=http", "--provider=anthropic", cwd=repository)
    given = action_inputs((repository / WORKFLOW).read_text())
    assert (given["provider"], given["llm-key"]) == ("anthropic", "${{ secrets.ANTHROPIC_API_KEY }}")
    run = f"ci-evals run {SUITE} --provider=anthropic"
    assert f"#   {run}\n" in (repository / SUITE).read_text()
    assert f"Export ANTHROPIC_API_KEY for judge and user, then:  {run}" in done.stdout
    assert "AGENT_KEY (if there is a key) and ANTHROPIC_API_KEY to the repository" in done.stdout
    assert "OPENAI" not in done.stdout


@pytest.mark.parametrize("adapter", ["demo", "python", "command"])
def test_starter_suite_passes_offline_for_demo_python_and_command(repository, adapter):
    done = ci_evals("init", f"--adapter={adapter}", cwd=repository)
    assert f"ci-evals run {SUITE} --provider=offline" in done.stdout
    played = ci_evals("run", SUITE, "--provider=offline", cwd=repository, env={"PATH": os.environ["PATH"]})
    assert played.returncode == 0, played.stdout + played.stderr
    results = read_results(repository)
    assert (results["score"], results["counts"]["tests"]) == (100, 4)


@pytest.mark.end_to_end
def test_init_prints_the_next_steps(repository):
    done = ci_evals("init", "--adapter=python", cwd=repository)
    written = [SUITE, WORKFLOW, SCHEMA, "agent_under_test.py"]
    assert done.stdout.splitlines()[1:5] == [f"  {name}" for name in written]
    assert re.findall(r"^  (\d)\. ", done.stdout, flags=re.MULTILINE) == ["1", "2", "3"]
    assert "\nNext:\n" in done.stdout


@pytest.mark.parametrize(
    ("adapter", "fields"),
    [
        ("aui", "agentId"),
        ("openai", "model and baseUrl"),
        ("http", "baseUrl and adapterOptions"),
        ("langgraph", "agentId and baseUrl"),
        ("ag-ui", "baseUrl"),
        ("a2a", "baseUrl"),
        ("adk", "agentId and baseUrl"),
        ("rasa", "baseUrl"),
    ],
)
def test_first_step_names_the_fields_that_the_adapter_requires(repository, adapter, fields):
    done = ci_evals("init", f"--adapter={adapter}", cwd=repository)
    assert re.search(rf"1\. In {SUITE}, set {fields}( \(if .*\))?, make the tests yours", done.stdout)
    written = yaml.safe_load((repository / SUITE).read_text())
    assert {*fields.split(" and ")} <= {*written}


def test_framework_agent_gets_tool_checks_but_no_hand_over_check(repository):
    """It reports hand-overs only once its options name the tools that make them."""
    done = ci_evals("init", "--adapter=python:shop:agent", cwd=repository)
    assert "Export OPENAI_API_KEY for judge and user" in done.stdout
    assert f"Without a model:  ci-evals run {SUITE} --provider=offline" in done.stdout
    suite = (repository / SUITE).read_text()
    assert "strict: tool_called\n" in suite
    assert "args: { order: A-1001 }" in suite
    assert "strict: escalated\n" not in suite


def test_next_steps_name_all_keys_and_the_repository(repository):
    (repository / "desk").mkdir()
    done = ci_evals("init", "--adapter=http", cwd=repository / "desk")
    assert f"\nNext, in {repository}:\n" in done.stdout
    assert "Without a model:  ci-evals run" in done.stdout
    assert "if it needs a key, also apiKey, and export AGENT_KEY" in done.stdout
    assert "Export OPENAI_API_KEY for judge and user" in done.stdout


@pytest.mark.parametrize("adapter", [name for name, agent in AGENT_KINDS.items() if agent.own_server])
def test_own_server_adapter_needs_no_key_but_rejects_empty_one(repository, adapter):
    ci_evals("init", f"--adapter={adapter}", cwd=repository)
    done = ci_evals("plan", SUITE, "--provider=offline", cwd=repository)
    assert (done.returncode, done.stderr) == (0, "")
    text = (repository / SUITE).read_text()
    line = text[: text.index("apiKey: ${AGENT_KEY:-}")].count("\n") + 1
    (repository / SUITE).write_text(text.replace("# apiKey:", "apiKey:"))
    done = ci_evals("run", SUITE, "--provider=offline", cwd=repository)
    assert done.returncode == 2
    assert f"{SUITE}:{line}:9: apiKey: is empty" in done.stderr


@pytest.mark.parametrize("there", [SUITE, WORKFLOW, "agent_under_test.py"])
def test_existing_files_are_not_overwritten_and_nothing_else_is_written(repository, there):
    (repository / there).parent.mkdir(parents=True, exist_ok=True)
    (repository / there).write_text("mine")
    done = ci_evals("init", "--adapter=python", cwd=repository)
    assert done.returncode == 2
    assert f"{there}': already there, and not overwritten" in done.stderr
    assert read_files(repository) == {there: b"mine"}


def test_failed_init_leaves_no_files(repository):
    (repository / ".github").write_text("no folder")
    done = ci_evals("init", cwd=repository)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in repository.iterdir()) == [".git", ".github"]


def test_default_branch_suite_folder_and_adapter_of_the_repository_are_used(repository):
    (repository / ".git/HEAD").write_text("ref: refs/heads/trunk\n")
    ci_evals("init", "--adapter=openai", cwd=repository)
    (repository / "evals").rename(repository / "checks")
    (repository / "checks/starter.yaml").rename(repository / "checks/desk.yaml")
    (repository / WORKFLOW).unlink()
    assert ci_evals("init", cwd=repository).returncode == 0
    text = (repository / WORKFLOW).read_text()
    assert workflow(text)["on"]["push"]["branches"] == ["trunk"]
    assert action_inputs(text)["suites"] == "checks/\n"
    assert "adapter: openai" in (repository / "checks/starter.yaml").read_text()


def test_branch_name_is_quoted_in_the_workflow(repository):
    (repository / ".git/HEAD").write_text("ref: refs/heads/#1:[x]\n")
    ci_evals("init", cwd=repository)
    assert workflow((repository / WORKFLOW).read_text())["on"]["push"]["branches"] == ["#1:[x]"]


def test_folder_argument_gets_the_suite_and_the_root_gets_the_workflow(repository):
    (repository / "desk").mkdir()
    done = ci_evals("init", "desk", "--adapter=demo", cwd=repository)
    assert done.returncode == 0
    assert set(read_files(repository)) == {f"desk/{SUITE}", f"desk/{SCHEMA}", WORKFLOW}
    assert action_inputs((repository / WORKFLOW).read_text())["suites"] == "desk/evals/\n"


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
def test_invalid_options_are_refused_and_nothing_is_written(repository, args, text):
    """In words, and nothing is written."""
    done = ci_evals("init", *args, cwd=repository)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr
    assert read_files(repository) == {}


def test_virtual_environment_of_the_repository_is_pointed_out(repository):
    (repository / ".venv").mkdir()
    (repository / ".venv/pyvenv.cfg").touch()
    python = ci_evals("init", "--adapter=python", cwd=repository).stdout
    assert "If the agent needs packages of .venv, install ci-evals there too" in python
    assert documentation.address("get-started#1-install") in python
