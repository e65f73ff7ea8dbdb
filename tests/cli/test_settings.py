"""Settings of the run command, its option `--shard`, and options that were removed."""

import plans
import pytest
from commands import ci_evals

from ci_evals.cli.app import program
from ci_evals.cli.run.sharding import for_shard, part_of
from ci_evals.cli.settings.choices import CommentMode
from ci_evals.cli.settings.run_command import LAST, RunSettings
from ci_evals.domain.errors import UsageError


def test_repr_of_run_settings_shows_no_keys():
    keys = {"llm_key": "hidden-1", "agent_key": "hidden-2", "github_token": "hidden-4"}
    assert "hidden" not in repr(RunSettings(suites=[], agent_headers="x: hidden-3", **keys))


def test_bare_only_failed_option_is_read_alike_on_repeated_calls():
    """The options are made at the first call."""
    command = program().commands["run"]
    for _ in range(2):
        context = command.make_context("run", ["suite.json", "--only-failed"])
        assert str(context.params["only_failed"]) == LAST


# Each removed option is rejected with its replacement: no gate silently gets less strict.
REMOVED_OPTIONS = {
    "--confirm=3": "--confirm is gone: use --rounds=auto.",
    "--both-sides=worst-quarter": "--both-sides=worst-quarter is gone: use --rounds=auto.",
    "--both-sides=never": "--both-sides=never is gone: leave --against out.",
    "--agent-key-header=x": "--agent-key-header is gone: set adapterOptions.keyHeader in the suite.",
    "--agent-id-in=none": "--agent-id-in is gone: set adapterOptions.agentIdIn in the suite.",
    "--task-origin-type=x": "--task-origin-type is gone: set adapterOptions.taskOriginType in the suite.",
    "--start-timeout=9": "--start-timeout is gone: set startTimeout in the suite.",
    "--audit-model=m": "--audit-model is gone: set auditModel in the suite.",
    "--max-failures-in-row=0": "--max-failures-in-row is gone: omit it, since ten broken trials in a row "
    "always end a run.",
}


def test_removed_options_are_rejected_with_their_replacement(tmp_path):
    for option, sentence in REMOVED_OPTIONS.items():
        ran = ci_evals("run", "demo:hr", "--provider=offline", option, cwd=tmp_path)
        assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (2, "", f"error: {sentence}")
        assert not list(tmp_path.iterdir())


PLAN = plans.make_plan({"name": "a"}, {"name": "b"})


def run_settings(**options) -> RunSettings:
    return RunSettings(suites=["s.json"], **options)


def test_shard_option_selects_part_and_invalid_one_is_rejected():
    assert (part_of(run_settings(), PLAN), str(part_of(run_settings(shard="2/2"), PLAN))) == (None, "2/2")
    for shard, message in (
        ("", "`shard=`: '' is not a shard"),
        ("3/2", "`shard=`: '3/2' is not a shard"),
        ("1/3", "`shard=1/3`: the plan has 2 tests; ask for at most 2 parts"),
    ):
        with pytest.raises(UsageError) as refused:
            part_of(run_settings(shard=shard), PLAN)
        assert str(refused.value).startswith(message)


def test_shard_looks_for_no_baseline_and_does_not_comment_unless_set():
    alone = for_shard(run_settings(shard="1/2", check=True))
    assert (alone.baseline, alone.comment, alone.check) == ("none", CommentMode.NEVER, False)
    report = run_settings(shard="1/2", baseline="auto", comment=CommentMode.ALWAYS)
    assert (for_shard(report), for_shard(run_settings())) == (report, run_settings())
