"""The action's inputs become one call of the command line."""

import pytest

from ci_evals.cli.inputs import declared, read
from ci_evals.domain.errors import UsageError


def refused(**inputs: str) -> str:
    with pytest.raises(UsageError) as caught:
        read({f"INPUT_{name.replace('_', '-').upper()}": value for name, value in inputs.items()})
    return str(caught.value)


def test_suites_are_lines_without_blanks():
    """A YAML block leaves a newline at the end, and people indent and space their lists."""
    invocation = read({"INPUT_SUITES": "evals/a.json\n\n  evals/b c.yaml  \r\ndemo:hr\n"})
    assert invocation.arguments == ("run", "--", "evals/a.json", "evals/b c.yaml", "demo:hr")


def test_a_suite_cannot_become_an_option():
    """What stands in the list is a suite, even where it begins with a dash."""
    assert read({"INPUT_SUITES": "--no-gate"}).arguments == ("run", "--", "--no-gate")


def test_inputs_become_variables():
    """The dash of an input's name is an underscore in the variable's; lines inside a value stay."""
    invocation = read(
        {
            "INPUT_SUITES": "demo:hr",
            "INPUT_MIN-SCORE": "85",
            "INPUT_THRESHOLDS": "suite:HR=90\ntag:safety=100\n",
            "PATH": "/usr/bin",
        }
    )
    assert invocation.variables == {
        "CI_EVALS_MIN_SCORE": "85",
        "CI_EVALS_THRESHOLDS": "suite:HR=90\ntag:safety=100",
    }


def test_an_empty_input_means_its_default():
    """GitHub sends every input, those that nobody set as empty text."""
    inputs = {f"INPUT_{name.upper()}": " \n" for name in declared()}
    assert read(inputs | {"INPUT_SUITES": "demo:hr"}).variables == {}


@pytest.mark.parametrize("value", ["true", "True", "TRUE", "false", "False", "FALSE"])
def test_booleans_are_githubs(value):
    """The six spellings that GitHub's own actions take."""
    variables = read({"INPUT_SUITES": "demo:hr", "INPUT_NO-GATE": value}).variables
    assert variables == {"CI_EVALS_NO_GATE": value.lower()}


@pytest.mark.parametrize("value", ["yes", "1", "on", "tRUE", "no"])
def test_other_booleans_are_refused(value):
    """A gate is not switched off by a guess."""
    assert f"input 'no-gate' must be 'true' or 'false', not {value!r}" in refused(
        suites="demo:hr", no_gate=value
    )


def test_true_is_a_word_where_no_boolean_is_asked_for():
    """An agent may be called TRUE."""
    assert read({"INPUT_SUITES": "demo:hr", "INPUT_AGENT-ID": "TRUE"}).variables == {
        "CI_EVALS_AGENT_ID": "TRUE"
    }


@pytest.mark.parametrize(
    ("name", "near"),
    [("min-scor", "min-score"), ("min_score", "min-score"), ("suite", "suites"), ("llmkey", "llm-key")],
)
def test_an_unknown_input_is_refused_with_the_nearest_name(name, near):
    """GitHub only warns of it, so it would go unnoticed."""
    with pytest.raises(UsageError, match=rf"unknown input '{name}': did you mean '{near}'\?"):
        read({"INPUT_SUITES": "demo:hr", f"INPUT_{name.upper()}": "95"})


def test_the_runners_own_inputs_pass():
    """`args` and `entrypoint` belong to every container action."""
    environ = {"INPUT_SUITES": "demo:hr", "INPUT_ARGS": "x", "INPUT_ENTRYPOINT": "/bin/sh"}
    assert read(environ).variables == {}


def test_missing_suites_are_refused():
    """`required: true` in action.yml is not enforced by GitHub."""
    assert "input 'suites' is empty" in refused()
    assert "input 'suites' is empty" in refused(suites="\n \n")


def test_all_problems_come_at_once():
    """One push, one answer."""
    assert len(refused(min_scor="95", no_gate="yes").splitlines()) == 3


def test_values_do_not_show():
    """An invocation may hold keys."""
    assert "sk-secret" not in repr(read({"INPUT_SUITES": "demo:hr", "INPUT_LLM-KEY": "sk-secret"}))
