"""Options that are gone are refused with their successor: no gate is less strict without a word."""

import pytest
from commands import ci_evals


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--confirm=3", "--confirm is gone: use --rounds=auto."),
        ("--both-sides=worst-quarter", "--both-sides=worst-quarter is gone: use --rounds=auto."),
        ("--both-sides=never", "--both-sides=never is gone: leave --against out."),
        ("--agent-key-header=x", "--agent-key-header is gone: set adapterOptions.keyHeader in the suite."),
        ("--agent-id-in=none", "--agent-id-in is gone: set adapterOptions.agentIdIn in the suite."),
        (
            "--task-origin-type=x",
            "--task-origin-type is gone: set adapterOptions.taskOriginType in the suite.",
        ),
        ("--start-timeout=9", "--start-timeout is gone: set startTimeout in the suite."),
        ("--audit-model=m", "--audit-model is gone: set auditModel in the suite."),
        (
            "--max-failures-in-row=0",
            "--max-failures-in-row is gone: omit it, since ten broken trials in a row always end a run.",
        ),
    ],
)
def test_a_gone_option_is_refused_with_its_successor(tmp_path, option, sentence):
    """Before anything is played."""
    ran = ci_evals("run", "demo:hr", "--provider=offline", option, cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (2, "", f"error: {sentence}")
    assert not list(tmp_path.iterdir())
