"""The options: declared once, and in step with what they set."""

from ci_evals.cli.settings.run_command import RunSettings


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
