"""The page on the state of the world: its agent, its suite and its commands, as they stand there."""

import re
import shlex
import signal

import pytest
from commands import ci_evals, read_results, start
from doc_pages import blocks, page

from ci_evals.domain.world import KINDS, FileRead, HttpCall, SqlQuery, Step

pytestmark = pytest.mark.slow

PAGE = page("worlds.md")


@pytest.fixture
def folder(tmp_path):
    (agent,), (suite,) = blocks("python", PAGE), blocks("yaml", PAGE)
    (tmp_path / "agent.py").write_text(agent)
    (tmp_path / "refunds.yaml").write_text(suite)
    return tmp_path


def test_commands_of_worlds_page_pass_and_fail_as_shown(folder):
    shell = blocks("sh", PAGE)[0]
    reason = re.search(r"# fails: (.+)", shell)[1]
    arguments = ["run", "refunds.yaml", "--provider=offline"]
    assert shell.count(f"ci-evals {' '.join(arguments)} ") == 2
    passed = ci_evals(*arguments, cwd=folder)
    failed = ci_evals(*arguments, cwd=folder, env={"ONLY_CLAIMS": "1"})
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert failed.returncode == 1
    (trial,) = read_results(folder)["suites"][0]["tests"][0]["trials"]
    assert [finding["reason"] for finding in trial["findings"] if finding["outcome"] == "failed"] == [reason]


def test_demo_agent_of_worlds_page_that_only_claims_fails(folder):
    served, played = map(shlex.split, blocks("sh", PAGE)[1].splitlines())
    (address,) = [word for word in played if word.startswith("--base-url=")]
    port = re.search(
        r"--port .*?default:\s+(\d+)", ci_evals("demo-agent", "--help", cwd=folder).stdout, re.DOTALL
    )
    assert address == f"--base-url=http://127.0.0.1:{port[1]}"
    agent = start(*served[1:], "--port=0", cwd=folder, env={})
    try:
        url = re.search(r"http://127\.0\.0\.1:\d+", agent.stdout.readline())[0]
        arguments = [word for word in played[1:] if word != address]
        ci_evals(*arguments, f"--base-url={url}", cwd=folder)
    finally:
        agent.send_signal(signal.SIGTERM)
        agent.communicate(timeout=300)
    trials = [test["trials"][0] for test in read_results(folder)["suites"][0]["tests"]]
    reasons = [
        each["reason"] for trial in trials for each in trial["findings"] if each["outcome"] == "failed"
    ]
    assert reasons
    assert all("is absent, expected" in reason for reason in reasons)


def test_worlds_page_lists_every_step_field():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE))
    assert [*rows] == [*KINDS] == [name for name in Step.model_fields if name != "timeout"]
    for kind, model in (("http", HttpCall), ("sql", SqlQuery), ("file", FileRead)):
        names = {info.alias or name for name, info in model.model_fields.items()}
        assert names <= {*re.findall(r"`(\w+)`", rows[kind])}
