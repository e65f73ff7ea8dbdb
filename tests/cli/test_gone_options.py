"""Options that are gone are refused with their successor: no gate is less strict without a word."""

import pytest
from commands import ci_evals


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--confirm=3", "--confirm is gone. Use --rounds=auto instead."),
        ("--both-sides=worst-quarter", "--both-sides=worst-quarter is gone. Use --rounds=auto instead."),
        ("--both-sides=never", "--both-sides=never is gone. Leave --against out instead."),
    ],
)
def test_a_gone_option_is_refused_with_its_successor(tmp_path, option, sentence):
    """Before anything is played."""
    for command in ("run", "plan"):
        ran = ci_evals(command, "demo:hr", "--provider=offline", option, cwd=tmp_path)
        assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (2, "", f"error: {sentence}")
    assert not list(tmp_path.iterdir())
