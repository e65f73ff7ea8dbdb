"""docs/get-started.md, followed step by step as a reader would."""

import shlex
import sys

import pytest
import yaml
from commands import ci_evals, read_results
from doc_pages import blocks, page, without_times
from page_files import free_port, write_files

pytestmark = pytest.mark.slow

PAGE = page("get-started.md")


def starter(folder):
    """The starter suite with what the page says to uncomment: tool calls, and their check."""
    (folder / ".git").mkdir()
    (command,) = [line for block in blocks("sh", PAGE) for line in block.splitlines() if " init " in line]
    assert ci_evals(*shlex.split(command)[1:], cwd=folder).returncode == 0
    suite = folder / "evals/starter.yaml"
    text = suite.read_text().replace("# toolCalls:", "toolCalls:")
    (check,) = [block for block in blocks("yaml", PAGE) if block.startswith("      - criterion")]
    commented = "".join(f"{line[:6]}# {line[6:]}" for line in check.splitlines(keepends=True))
    assert commented in text
    text = text.replace(commented, check)
    suite.write_text(text)
    return suite


def test_get_started_page_runs_as_shown_and_its_suite_and_test_are_valid(tmp_path):
    suite = starter(tmp_path)
    written = yaml.safe_load(suite.read_text())
    (shown,) = [yaml.safe_load(block) for block in blocks("yaml", PAGE) if block.startswith("baseUrl")]
    assert {key: written[key] for key in shown} == shown
    port = free_port()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(sys.executable)
    env = {"AGENT_URL": f"http://127.0.0.1:{port}", "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    (command,) = [line for block in blocks("sh", PAGE) for line in block.splitlines() if "run evals/" in line]
    write_files(PAGE, tmp_path, port)
    ran = ci_evals(*command.split()[1:], cwd=tmp_path, env=env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    printed = [without_times(line) for line in ran.stdout.splitlines()]
    shown = next(block for block in blocks("text", PAGE) if block.startswith("Starter"))
    assert [line for line in shown.splitlines() if without_times(line) not in printed] == []
    write_files(PAGE.replace('{"order": "A-1001"}', '{"order": "A-1002"}'), tmp_path, port)
    ci_evals(*command.split()[1:], cwd=tmp_path, env=env)
    tests = {test["name"]: test["trials"][0] for test in read_results(tmp_path)["suites"][0]["tests"]}
    outcomes = [finding["outcome"] for finding in tests["Answers an everyday question"]["findings"]]
    assert outcomes == ["passed", "failed", "undecided"]
    (shown,) = [block for block in blocks("yaml", PAGE) if block.startswith("tests:")]
    text = suite.read_text()
    suite.write_text(text[: text.index("tests:\n")] + shown)
    done = ci_evals("validate", "--strict", "evals/", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
