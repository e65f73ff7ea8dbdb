"""docs/get-started.md, followed step by step as a reader would."""

import re

import yaml
from commands import ci_evals
from papers import blocks, page
from test_endpoint_pages import plain, started

PAGE = page("get-started.md")


def test_from_nothing_to_a_run(tmp_path):
    """The starter suite of `init` plays against the page's agent, and every strict check passes."""
    (tmp_path / ".git").mkdir()
    assert ci_evals("init", "--adapter=http", cwd=tmp_path).returncode == 0
    suite = tmp_path / "evals/starter.yaml"
    suite.write_text(re.sub(r"^apiKey:.*\n", "", suite.read_text(), flags=re.MULTILINE))
    with started(PAGE, tmp_path) as command:
        port = re.search(r"127\.0\.0\.1\", (\d+)", (tmp_path / "agent.py").read_text())[1]
        ran = ci_evals(*command, cwd=tmp_path, env={"AGENT_URL": f"http://127.0.0.1:{port}"})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    printed = [plain(line) for line in ran.stdout.splitlines()]
    shown = next(block for block in blocks("text", PAGE) if block.startswith("Starter"))
    assert [line for line in shown.splitlines() if plain(line) not in printed] == []


def test_the_suite_shows_the_head_of_the_starter(tmp_path):
    """The keys to change are the starter's, with the same values."""
    (tmp_path / ".git").mkdir()
    ci_evals("init", "--adapter=http", cwd=tmp_path)
    starter = yaml.safe_load((tmp_path / "evals/starter.yaml").read_text())
    (shown,) = map(yaml.safe_load, blocks("yaml", PAGE))
    assert {key: starter[key] for key in shown} == shown
