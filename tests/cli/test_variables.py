"""Variables `CI_EVALS_…` that no option has are rejected or warned of."""

import pytest
from commands import action, ci_evals
from each_row import each_row

from ci_evals.cli.settings.plan_settings import PlanSettings
from ci_evals.cli.settings.table import lists_in
from ci_evals.cli.settings.variables import check_variables
from ci_evals.domain.errors import UsageError

KNOWN = {"MIN_SCORE", "MAX_COST", "AGENT_KEY", "REGRESSION", "GITHUB_TOKEN", "THRESHOLDS", "NO_GATE"}


@each_row(
    ("name", "meant"),
    [
        ("CI_EVALS_MIN_SCOR", "CI_EVALS_MIN_SCORE"),
        ("CI_EVALS_MINSCORE", "CI_EVALS_MIN_SCORE"),
        ("CI_EVALS_MIN-SCORE", "CI_EVALS_MIN_SCORE"),
        ("ci_evals_min_score", "CI_EVALS_MIN_SCORE"),
        ("CI_EVAL_MIN_SCORE", "CI_EVALS_MIN_SCORE"),
        ("CIEVALS_MIN_SCORE", "CI_EVALS_MIN_SCORE"),
        ("CI_EVALS__MIN_SCORE", "CI_EVALS_MIN_SCORE"),
        ("CI_EVALS_MAX_COSTS", "CI_EVALS_MAX_COST"),
        ("CI_EVALS_REGRESION", "CI_EVALS_REGRESSION"),
        ("CI_EVALS_TRESHOLDS", "CI_EVALS_THRESHOLDS"),
        ("CI_EVALS_AGENTKEY", "CI_EVALS_AGENT_KEY"),
    ],
)
def test_misspelled_variable_is_rejected_with_suggestion(name, meant):
    with pytest.raises(UsageError, match=f"^{name}: there is no such variable. Did you mean {meant}?"):
        check_variables({name: "95"}, KNOWN)
    assert check_variables({name: " "}, KNOWN) == ()  # an empty one sets nothing


@each_row(
    ("name", "warns"),
    [
        ("CI_EVALS_MIN_SCORE", False),
        ("CI_EVALS_AGENT_KEY", False),
        ("CI_EVALS_AGENT_KEY_2", True),
        ("CI_EVALS_AGENT_KEY_STAGING", True),
        ("CI_EVALS_VERSION", True),
        ("CI_EVALS_SLACK_CHANNEL", True),
        ("AGENT_KEY", False),
        ("MIN_SCOR", False),
        ("MY_CI_EVALS_MIN_SCOR", False),
        ("CI", False),
    ],
)
def test_unknown_variable_causes_warning_only_with_own_prefix(name, warns):
    """A suite may read it. One with our prefix is warned of."""
    warnings = check_variables({name: "x"}, KNOWN)
    assert bool(warnings) is warns
    assert all(warning.startswith(f"{name}: ") for warning in warnings)


def test_removed_variable_is_rejected_with_its_replacement():
    with pytest.raises(UsageError, match=r"^CI_EVALS_CONFIRM is gone: use --rounds=auto.$"):
        check_variables({"CI_EVALS_CONFIRM": "3"}, KNOWN)


def test_variable_of_list_option_has_a_value_per_line():
    environ = {"CI_EVALS_TEST": "Refund, then cancel\n\n Cancel \n", "CI_EVALS_TAG": "a b"}
    assert lists_in(environ, PlanSettings) == {"test": ["Refund, then cancel", "Cancel"]}
    assert lists_in({}, PlanSettings) == {}


@pytest.mark.end_to_end
def test_list_option_overrides_its_variable(tmp_path):
    environ = {"CI_EVALS_TEST": "Never tells a colleague's pay\nHands a harassment report to a person"}
    planned = ci_evals("plan", "demo:hr", "--provider=offline", cwd=tmp_path, env=environ).stdout
    assert "\n2 tests, " in planned
    option = "--test=Never tells a colleague's pay"
    planned = ci_evals("plan", "demo:hr", "--provider=offline", option, cwd=tmp_path, env=environ).stdout
    assert "\n1 test, " in planned


@pytest.mark.slow
def test_misspelled_variable_is_rejected_by_every_command_and_unknown_one_warned_of(tmp_path):
    for command in (
        ["run", "demo:hr", "--provider=offline"],
        ["plan", "demo:hr"],
        ["validate", "demo:hr"],
        ["gate", "none.xml"],
        ["merge", "none"],
        ["compare", "none", "none"],
    ):
        ran = ci_evals(*command, cwd=tmp_path, env={"CI_EVALS_MIN_SCOR": "95", "CI_EVALS_SLACK": "x"})
        text = "CI_EVALS_MIN_SCOR: there is no such variable. Did you mean CI_EVALS_MIN_SCORE?"
        assert (ran.returncode, text in ran.stderr) == (2, True), ran.stderr
    # `--day` is an option of `demo-agent`, `--xyz` of no command.
    ran = ci_evals("validate", "demo:hr", cwd=tmp_path, env={"CI_EVALS_DAY": "1", "CI_EVALS_XYZ": "1"})
    assert ran.returncode == 0, ran.stderr
    assert "CI_EVALS_DAY" not in ran.stderr
    assert "CI_EVALS_XYZ: no option has this variable, so it sets nothing" in ran.stderr
    for arguments in ([], ["validate", "demo:hr"]):
        env = {"INPUT_MIN-SCOR": "95", "INPUT_SUITES": "" if arguments else "demo:hr"}
        ran = action(*arguments, cwd=tmp_path, env=env)
        assert ran.returncode == 2
        assert "unknown input 'min-scor': did you mean 'min-score'?" in ran.stderr
