"""The options: declared once, and in step with what they set."""

from ci_evals.adapters.endpoints import aui_wire
from ci_evals.cli.settings.choices import Provider
from ci_evals.cli.settings.suite_commands import RunSettings
from ci_evals.domain.choices import AgentIdLocation
from ci_evals.wiring import PROVIDERS


def test_defaults_are_those_of_the_parts_they_set():
    """`--help` must not import the adapters, so they are written twice."""
    defaults = RunSettings(suites=[])
    assert defaults.agent_key_header == aui_wire.DEFAULT_KEY_HEADER
    assert defaults.task_origin_type == aui_wire.DEFAULT_TASK_ORIGIN_TYPE
    assert defaults.agent_id_in == AgentIdLocation.TOP


def test_choices_are_those_of_the_parts_they_choose():
    """Providers."""
    assert set(Provider) == set(PROVIDERS)


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
