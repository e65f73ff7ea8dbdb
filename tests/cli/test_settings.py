"""The options: declared once, and in step with what they set."""

from ci_evals.cli.app import program
from ci_evals.cli.settings.run_command import LAST, RunSettings


def test_keys_do_not_show():
    """Where a settings value is printed, in a traceback for one."""
    shown = repr(
        RunSettings(
            suites=[],
            llm_key="hidden-1",
            agent_key="hidden-2",
            agent_headers="x: hidden-3",
            github_token="hidden-4",
        )
    )
    assert "hidden" not in shown


def test_every_call_in_a_process_reads_an_option_without_a_value():
    """The options are made at the first call; the second one reads `--only-failed` in the same way."""
    command = program().commands["run"]
    for _ in range(2):
        context = command.make_context("run", ["suite.json", "--only-failed"])
        assert str(context.params["only_failed"]) == LAST
