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


def the_action(text):
    (step,) = [step for step in workflow(text)["jobs"]["evals"]["steps"] if step.get("id") == "evals"]
    return step["with"]


STARTED = ["--adapter=http", "--provider=offline", "--start=python3 agent.py --port 8000"]


def test_the_suite_names_its_schema_for_editors(repository):
    """Next to it, as `ci-evals schema` prints it; no run takes it for a suite."""
    assert ci_evals("init", cwd=repository).returncode == 0
    assert (
        (repository / SUITE).read_text().startswith("# yaml-language-server: $schema=.ci-evals.schema.json\n")
    )
    written = json.loads((repository / SCHEMA).read_text())
    assert written == json.loads(ci_evals("schema", cwd=repository).stdout)


@each_adapter
def test_the_suite_is_valid_and_has_no_weakness(repository, adapter):
    """A starter that is warned of teaches nothing."""
    assert ci_evals("init", f"--adapter={adapter}", cwd=repository).returncode == 0
    done = ci_evals(
        "validate", "--strict", "evals/", cwd=repository, env={"CI_EVALS_AGENT_KEY": "key-123456"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"ok  {SUITE}: Starter: 4 tests")


def test_the_workflows_pass_the_linters(tmp_path):
    """As GitHub reads them, and as a security reviewer does."""
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


def test_the_workflow_is_the_example(repository):
    """One of them alone would be kept up to date: permissions, artifacts, pins."""
    ci_evals("init", cwd=repository)
    text = (repository / WORKFLOW).read_text()
    ours, example = the_action(text), the_action(EXAMPLE)
    assert ours == example | {"suites": "evals/\n", "min-score": "80"}
    (shown,) = [step for step in workflow(EXAMPLE)["jobs"]["evals"]["steps"] if step.get("id") == "evals"]
    written = workflow(text)
    steps = written["jobs"]["evals"]["steps"]
    written["jobs"]["evals"]["steps"] = [shown if step.get("id") == "evals" else step for step in steps]
    assert written == workflow(EXAMPLE)
    pins = [re.findall(r"uses: (\S+@[0-9a-f]{40} # \S+)", part) for part in (text, EXAMPLE)]
    assert pins[0] == pins[1]


def test_the_workflow_says_every_week_what_the_gate_would_notice(repository):
    """Of the run on the main branch, before the reports are kept; no key is handed over."""
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


@pytest.mark.parametrize(
    ("adapter", "wanted"),
    [
        ("aui", {"agent-key": "secrets.AGENT_KEY", "llm-key": "secrets.OPENAI_API_KEY"}),
        (
            "openai",
            {
                "base-url": "vars.AGENT_URL",
                "agent-key": "secrets.AGENT_KEY",
                "llm-key": "secrets.OPENAI_API_KEY",
            },
        ),
        (
            "http",
            {
                "base-url": "vars.AGENT_URL",
                "agent-key": "secrets.AGENT_KEY",
                "llm-key": "secrets.OPENAI_API_KEY",
            },
        ),
        ("adk", {"base-url": "vars.AGENT_URL", "llm-key": "secrets.OPENAI_API_KEY"}),
        ("ag-ui", {"base-url": "vars.AGENT_URL", "llm-key": "secrets.OPENAI_API_KEY"}),
        ("langgraph", {"base-url": "vars.AGENT_URL", "llm-key": "secrets.OPENAI_API_KEY"}),
        ("a2a", {"base-url": "vars.AGENT_URL", "llm-key": "secrets.OPENAI_API_KEY"}),
        ("rasa", {"base-url": "vars.AGENT_URL", "llm-key": "secrets.OPENAI_API_KEY"}),
        ("python", {"llm-key": "secrets.OPENAI_API_KEY"}),
        ("command", {"llm-key": "secrets.OPENAI_API_KEY"}),
        ("demo", {"provider": "offline"}),
    ],
)
def test_the_workflow_hands_over_what_the_agent_needs(repository, adapter, wanted):
    """And no secret more."""
    done = ci_evals("init", f"--adapter={adapter}", cwd=repository)
    given = the_action((repository / WORKFLOW).read_text())
    assert given["weakened"] == "fail"
    assert given["regression"] == "significant"  # else a test could break and the build stay green
    given = {key: re.sub(r"^\$\{\{ (.+) \}\}$", r"\1", value) for key, value in given.items()}
    assert {
        key: given[key]
        for key in given
        if key not in {"suites", "parallel", "rounds", "regression", "weakened", "min-score"}
    } == wanted
    for name in ("AGENT_KEY", "OPENAI_API_KEY", "AGENT_URL"):
        assert (name in done.stdout) == any(name in value for value in wanted.values())


def test_an_agent_that_runs_start_needs_no_address_and_no_key(repository):
    """Nothing in the workflow has to be deleted: what is tested is the pull request's own code."""
    done = ci_evals("init", *STARTED, cwd=repository)
    suite = yaml.safe_load((repository / SUITE).read_text())
    assert suite["start"] == "cd .. && python3 agent.py --port 8000"
    text = (repository / WORKFLOW).read_text()
    given = the_action(text)
    assert "uses: org/aui-evals-action/run@v1" in text
    assert (given["provider"], {"base-url", "agent-key", "llm-key"} & {*given}) == ("offline", set())
    assert f"Run it:  ci-evals run {SUITE} --provider=offline" in done.stdout
    for name in ("secret", "OPENAI_API_KEY", "AGENT_URL", "--start"):
        assert name not in done.stdout


@pytest.mark.parametrize("has_requirements", [True, False])
def test_the_packages_of_a_started_agent_are_installed(repository, has_requirements):
    if has_requirements:
        (repository / "requirements.txt").touch()
    ci_evals("init", *STARTED, cwd=repository)
    steps = workflow((repository / WORKFLOW).read_text())["jobs"]["evals"]["steps"]
    runs = [step["run"] for step in steps if "run" in step]
    assert runs == ["pip install -r requirements.txt"] * has_requirements


def test_a_command_is_quoted_where_yaml_would_read_it_otherwise(repository):
    command = 'env MODE="a: b" ./serve # 1'
    ci_evals("init", "--adapter=http", f"--start={command}", cwd=repository)
    assert yaml.safe_load((repository / SUITE).read_text())["start"] == f"cd .. && {command}"


def test_variables_of_a_command_are_left_to_its_shell(repository):
    ci_evals("init", "--adapter=http", "--start=PORT=${PORT:-8000} ./serve", cwd=repository)
    done = ci_evals("validate", "--strict", "evals/", cwd=repository)
    assert (done.returncode, done.stderr) == (0, "")
    start = yaml.safe_load((repository / SUITE).read_text())["start"]
    assert start == "cd .. && PORT=$${PORT:-8000} ./serve"


def test_suites_that_were_there_keep_their_address_and_key(repository):
    """Their agent may be a deployed one."""
    ci_evals("init", "--adapter=http", cwd=repository)
    (repository / "evals/starter.yaml").rename(repository / "evals/deployed.yaml")
    (repository / WORKFLOW).unlink()
    ci_evals("init", *STARTED, cwd=repository)
    assert {"base-url", "agent-key"} <= the_action((repository / WORKFLOW).read_text()).keys()


@pytest.mark.parametrize(
    "name", ["zz\n      - run: id\n        env:\n          x: ", " a", "${{ github.token }}"]
)
def test_no_folder_s_name_becomes_part_of_the_workflow(repository, name):
    """A repository's files may be anybody's: a name may look like a step or an expression."""
    ci_evals("init", "--adapter=demo", cwd=repository)
    suite = (repository / SUITE).read_text()
    (repository / WORKFLOW).unlink()
    for folder in ("aa", name):
        (repository / folder).mkdir()
        (repository / folder / "suite.yaml").write_text(suite)
    (repository / SUITE).unlink()
    assert ci_evals("init", "--adapter=demo", cwd=repository).returncode == 0
    text = (repository / WORKFLOW).read_text()
    assert the_action(text)["suites"].split() == ["aa/"]
    assert f"{name}/" not in text


def test_another_provider_is_named_with_its_key(repository):
    done = ci_evals("init", "--adapter=http", "--provider=anthropic", cwd=repository)
    given = the_action((repository / WORKFLOW).read_text())
    assert (given["provider"], given["llm-key"]) == ("anthropic", "${{ secrets.ANTHROPIC_API_KEY }}")
    run = f"ci-evals run {SUITE} --provider=anthropic"
    assert f"#   {run}\n" in (repository / SUITE).read_text()
    assert f"Export ANTHROPIC_API_KEY for judge and user, then:  {run}" in done.stdout
    assert "AGENT_KEY (if there is a key) and ANTHROPIC_API_KEY to the repository" in done.stdout
    assert "OPENAI" not in done.stdout


@pytest.mark.parametrize("adapter", ["demo", "python", "command"])
def test_what_needs_nothing_of_the_users_plays_at_once(repository, adapter):
    """Green, without key and network: the first thing that is typed must work."""
    done = ci_evals("init", f"--adapter={adapter}", cwd=repository)
    assert f"ci-evals run {SUITE} --provider=offline" in done.stdout
    played = ci_evals("run", SUITE, "--provider=offline", cwd=repository, env={"PATH": os.environ["PATH"]})
    assert played.returncode == 0, played.stdout + played.stderr
    results = read_results(repository)
    assert (results["score"], results["counts"]["tests"]) == (100, 4)


@pytest.mark.end_to_end
def test_init_prints_the_next_steps(repository):
    """Three of them."""
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
def test_the_first_step_names_what_has_to_be_set(repository, adapter, fields):
    """All fields that the adapter cannot do without."""
    done = ci_evals("init", f"--adapter={adapter}", cwd=repository)
    assert re.search(rf"1\. In {SUITE}, set {fields}( \(if .*\))?, make the tests yours", done.stdout)
    written = yaml.safe_load((repository / SUITE).read_text())
    assert {*fields.split(" and ")} <= {*written}


def test_an_agent_of_a_framework(repository):
    """It reports calls with arguments, but hand-overs only once it is told which tools make them."""
    done = ci_evals("init", "--adapter=python:shop:agent", cwd=repository)
    assert "Export OPENAI_API_KEY for judge and user" in done.stdout
    assert f"Without a model:  ci-evals run {SUITE} --provider=offline" in done.stdout
    suite = (repository / SUITE).read_text()
    assert "strict: tool_called\n" in suite
    assert "args: { order: A-1001 }" in suite
    assert "strict: escalated\n" not in suite


def test_the_steps_name_all_keys_and_where_they_are_taken(repository):
    """Paths are those from the root, wherever one stands; a model needs a key of its own."""
    (repository / "desk").mkdir()
    done = ci_evals("init", "--adapter=http", cwd=repository / "desk")
    assert f"\nNext, in {repository}:\n" in done.stdout
    assert "Without a model:  ci-evals run" in done.stdout
    assert "if it needs a key, also apiKey, and export AGENT_KEY" in done.stdout
    assert "Export OPENAI_API_KEY for judge and user" in done.stdout


@pytest.mark.parametrize("adapter", [name for name, agent in AGENT_KINDS.items() if agent.own_server])
def test_a_server_of_ones_own_is_asked_without_a_key(repository, adapter):
    """Most have none on one's own machine: a line to delete would be the first thing to fail."""
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
def test_what_is_there_is_not_written_over(repository, there):
    """And nothing else is written either."""
    (repository / there).parent.mkdir(parents=True, exist_ok=True)
    (repository / there).write_text("mine")
    done = ci_evals("init", "--adapter=python", cwd=repository)
    assert done.returncode == 2
    assert f"{there}': already there, and not overwritten" in done.stderr
    assert read_files(repository) == {there: b"mine"}


def test_half_of_it_is_never_left(repository):
    """Where the second file cannot be written, the first is taken back with its folder."""
    (repository / ".github").write_text("no folder")
    done = ci_evals("init", cwd=repository)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in repository.iterdir()) == [".git", ".github"]


def test_what_the_repository_tells_is_used(repository):
    """Its default branch, the folder of its suites, their adapter."""
    (repository / ".git/HEAD").write_text("ref: refs/heads/trunk\n")
    ci_evals("init", "--adapter=openai", cwd=repository)
    (repository / "evals").rename(repository / "checks")
    (repository / "checks/starter.yaml").rename(repository / "checks/desk.yaml")
    (repository / WORKFLOW).unlink()
    assert ci_evals("init", cwd=repository).returncode == 0
    text = (repository / WORKFLOW).read_text()
    assert workflow(text)["on"]["push"]["branches"] == ["trunk"]
    assert the_action(text)["suites"] == "checks/\n"
    assert "adapter: openai" in (repository / "checks/starter.yaml").read_text()


def test_a_strange_branch_is_quoted(repository):
    """It is a pattern and YAML at once."""
    (repository / ".git/HEAD").write_text("ref: refs/heads/#1:[x]\n")
    ci_evals("init", cwd=repository)
    assert workflow((repository / WORKFLOW).read_text())["on"]["push"]["branches"] == ["#1:[x]"]


def test_a_folder_of_the_repository(repository):
    """Workflows are at the root, suites where they belong."""
    (repository / "desk").mkdir()
    done = ci_evals("init", "desk", "--adapter=demo", cwd=repository)
    assert done.returncode == 0
    assert set(read_files(repository)) == {f"desk/{SUITE}", f"desk/{SCHEMA}", WORKFLOW}
    assert the_action((repository / WORKFLOW).read_text())["suites"] == "desk/evals/\n"


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
def test_impossible_values_are_refused(repository, args, text):
    """In words, and nothing is written."""
    done = ci_evals("init", *args, cwd=repository)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr
    assert read_files(repository) == {}


def test_an_environment_of_the_repository_is_named(repository):
    """An agent that is imported sees the packages of ci-evals, not those of the repository's environment."""
    (repository / ".venv").mkdir()
    (repository / ".venv/pyvenv.cfg").touch()
    python = ci_evals("init", "--adapter=python", cwd=repository).stdout
    assert "If the agent needs packages of .venv, install ci-evals there too" in python
    assert documentation.address("get-started#1-install") in python
