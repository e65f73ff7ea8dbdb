"""Examples for other CI services: the page shows them, their commands exist, and a run knows the commit."""

import json
import re
import shlex

import pytest
import typer
from commands import ci_evals
from doc_pages import ROOT, blocks, page

from ci_evals.cli.app import app

FILES = sorted((ROOT / "examples/other-ci").iterdir())
COMMANDS = typer.main.get_command(app)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SERVICES = {
    "azure-pipelines.yml": {"TF_BUILD": "True", "BUILD_SOURCEVERSION": COMMIT, "CI": "true"},
    "Jenkinsfile": {"JENKINS_URL": "https://ci.example/", "GIT_COMMIT": COMMIT, "CI": "true"},
    "circleci.yml": {"CIRCLECI": "true", "CIRCLE_SHA1": COMMIT, "CI": "true"},
    "buildkite.yml": {"BUILDKITE": "true", "BUILDKITE_COMMIT": COMMIT, "CI": "true"},
}
"""What each service gives a job, as far as it matters."""


def command(file):
    """The arguments of ci-evals in an example, without the substitution that adds the baseline."""
    text = re.sub(r"\\\n\s*", "", file.read_text())
    words = re.search(r"(?:ci-evals|action:1) (run [^'\n$]*)", text)[1]
    return shlex.split(words)


def test_other_ci_page_shows_every_example():
    shown = blocks("yaml", page("other-ci.md")) + blocks("groovy", page("other-ci.md"))
    assert sorted(shown) == sorted(file.read_text() for file in FILES)
    assert {file.name for file in FILES} == SERVICES.keys()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_other_ci_example_has_valid_command(file):
    name, *rest = command(file)
    assert COMMANDS.commands[name].make_context(name, rest).params["min_score"] == 85


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_other_ci_example_passes_on_the_commit(file, tmp_path):
    (tmp_path / "evals").symlink_to(ROOT / "suites/demo")
    name, _, *options = command(file)
    variables = SERVICES[file.name]
    run = ci_evals(
        name, "demo:hr", "--test=Refuses", "--provider=offline", *options, cwd=tmp_path, env=variables
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (commit,) = {value for value in variables.values() if value == COMMIT}
    journal = (tmp_path / "results/journal.jsonl").read_text().splitlines()
    assert json.loads(journal[0])["context"]["commit"] == commit
    assert "::" not in run.stdout
    if "docker run" in file.read_text():
        (passed_on,) = variables.keys() & set(re.findall(r"--env (\w+)", file.read_text())) - {"CI"}
        assert passed_on.endswith(("VERSION", "COMMIT"))
