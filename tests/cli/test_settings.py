"""Settings of the run command, and options that were removed."""

from commands import ci_evals

from ci_evals.cli.app import program
from ci_evals.cli.settings.run_command import LAST, RunSettings


def test_run_settings_do_not_show_keys():
    keys = {"llm_key": "hidden-1", "agent_key": "hidden-2", "github_token": "hidden-4"}
    assert "hidden" not in repr(RunSettings(suites=[], agent_headers="x: hidden-3", **keys))


def test_option_with_optional_value_works_on_repeated_calls_in_one_process():
    """The options are made at the first call; the second one reads `--only-failed` in the same way."""
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
