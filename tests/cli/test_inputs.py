"""The action's inputs become one call of the command line."""

from pathlib import Path

import pytest

from ci_evals.cli.settings.inputs import check_unused, declared, read
from ci_evals.domain.errors import UsageError


def refused(**inputs: str) -> str:
    with pytest.raises(UsageError) as caught:
        read({f"INPUT_{name.replace('_', '-').upper()}": value for name, value in inputs.items()})
    return str(caught.value)


def test_suites_are_lines_without_blanks():
    """A YAML block leaves a newline at the end, and people indent and space their lists."""
    invocation = read({"INPUT_SUITES": "evals/a.json\n\n  evals/b c.yaml  \r\ndemo:hr\n"})
    assert invocation.arguments == ("evals/a.json", "evals/b c.yaml", "demo:hr")


def test_a_suite_cannot_become_an_option():
    """What stands in the list is a suite, even where it begins with a dash."""
    assert read({"INPUT_SUITES": "--no-gate"}).arguments == ("--no-gate",)


def test_a_gone_input_is_refused_with_its_successor():
    """Ignored, the gate would only look as strict as before; also where the step has `args`."""
    assert refused(suites="demo:hr", confirm="3") == "input 'confirm' is gone: use rounds: auto."
    never = "the value 'never' of the input 'both-sides' is gone: leave against out."
    assert refused(suites="demo:hr", both_sides="never") == never
    with pytest.raises(UsageError, match=r"^input 'confirm' is gone: use rounds: auto.$"):
        check_unused({"INPUT_CONFIRM": "3"})


def test_inputs_become_options():
    """The dash of an input's name is an underscore in the field's; lines inside a value stay."""
    inputs = read(
        {
            "INPUT_SUITES": "demo:hr",
            "INPUT_MIN-SCORE": "85",
            "INPUT_THRESHOLDS": "suite:HR=90\ntag:safety=100\n",
            "PATH": "/usr/bin",
        }
    )
    assert inputs.options == {
        "min_score": 85,
        "thresholds": "suite:HR=90\ntag:safety=100",
    }


def test_names_of_tests_are_lines():
    """A name may have a comma and blanks."""
    inputs = read({"INPUT_SUITES": "demo:hr", "INPUT_TEST": "Refund, then cancel\n\n Cancel \n"})
    assert inputs.options == {"test": ["Refund, then cancel", "Cancel"]}


def test_an_empty_input_means_its_default():
    """GitHub sends every input, those that nobody set as empty text."""
    inputs = {f"INPUT_{name.upper()}": " \n" for name in declared()}
    assert read(inputs | {"INPUT_SUITES": "demo:hr"}).options == {}


@pytest.mark.parametrize("value", ["true", "True", "TRUE", "false", "False", "FALSE"])
def test_booleans_are_githubs(value):
    """The six spellings that GitHub's own actions take."""
    options = read({"INPUT_SUITES": "demo:hr", "INPUT_NO-GATE": value}).options
    assert options == {"no_gate": value.lower() == "true"}


@pytest.mark.parametrize("value", ["yes", "1", "on", "tRUE", "no"])
def test_other_booleans_are_refused(value):
    """A gate is not switched off by a guess."""
    assert f"input 'no-gate' is {value!r}: it must be true or false" in refused(
        suites="demo:hr", no_gate=value
    )


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("min-score", "85%", "a number from 0 to 100"),
        ("min-score", "101", "a number from 0 to 100"),
        ("max-cost", "nan", "a number, 0 or more"),
        ("max-cost", "$5", "a number, 0 or more"),
        ("loops", "0", "a whole number from 1 to 1000"),
        ("retries", "-1", "a whole number, 0 or more"),
        ("pr-number", "seven", "a whole number, 1 or more"),
        ("regression", "Any", "one of off, any, significant"),
        ("provider", "aui", "one of openai, anthropic, claude-code, copilot, offline"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(name, value, allowed):
    """By the name that the user knows it by, and with the value, which may come out of an expression."""
    with pytest.raises(UsageError) as caught:
        read({"INPUT_SUITES": "demo:hr", f"INPUT_{name.upper()}": value})
    assert str(caught.value) == f"input {name!r} is {value!r}: it must be {allowed}."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("min-score", 79.5),
        ("max-cost", 1e-3),
        ("loops", 1000),
        ("pr-number", 7),
        ("provider", "offline"),
    ],
)
def test_a_right_value_passes(name, value):
    """As it is."""
    options = read({"INPUT_SUITES": "demo:hr", f"INPUT_{name.upper()}": str(value)}).options
    assert options == {name.replace("-", "_"): value}


@pytest.mark.parametrize("name", ["output-dir", "junit", "record"])
@pytest.mark.parametrize("value", ["../out", "/tmp/x", "results/../../out", "away/out"])
def test_output_that_leaves_the_workspace_is_refused(tmp_path, monkeypatch, name, value):
    """It would be lost with the container, and the outputs would point nowhere."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    (workspace / "away").symlink_to(tmp_path)
    with pytest.raises(UsageError) as caught:
        read(
            {
                "INPUT_SUITES": "demo:hr",
                f"INPUT_{name.upper()}": value,
                "GITHUB_WORKSPACE": str(workspace),
            }
        )
    assert f"input {name!r} is {value!r}: it is outside the workspace" in str(caught.value)


@pytest.mark.parametrize("value", ["out", ".", "a/../b", "{workspace}/out"])
def test_output_within_the_workspace_passes(tmp_path, monkeypatch, value):
    """GitHub turns a path of the workspace into that of the container."""
    monkeypatch.chdir(tmp_path)
    value = value.format(workspace=tmp_path)
    environ = {
        "INPUT_SUITES": "demo:hr",
        "INPUT_OUTPUT-DIR": value,
        "GITHUB_WORKSPACE": str(tmp_path),
    }
    assert read(environ).options == {"output_dir": Path(value)}


def unused(**inputs: str) -> str:
    with pytest.raises(UsageError) as caught:
        check_unused({f"INPUT_{name.replace('_', '-').upper()}": value for name, value in inputs.items()})
    return str(caught.value)


def test_an_input_beside_arguments_is_refused():
    """A gate that ignores `min-score: 99` would look as if it held."""
    expected = "input 'min-score' has no effect with 'args': write --min-score=... there."
    assert unused(args="merge shards", min_score="99") == expected


def test_input_beside_arguments_is_named_as_written():
    """Switches have no value, suites no name; what another command takes is no input at all."""
    assert unused(no_gate="true").endswith("write --no-gate there.")
    assert unused(suites="demo:hr").endswith("name them there.")
    assert unused(shards="3").endswith("write --shards=... there.")


def test_every_input_beside_arguments_is_named():
    """And no value, which may be a key."""
    message = unused(llm_key="sk-secret", min_score="1", comment_key="forks")
    assert len(message.splitlines()) == 3
    assert "sk-secret" not in message


def test_inputs_that_say_nothing_may_stand_beside_arguments():
    """GitHub hands over every declared one: empty, or with its default, and the token."""
    inputs = {f"INPUT_{name.upper()}": default for name, default in declared().items()}
    own = {"INPUT_ARGS": "comment results", "INPUT_ENTRYPOINT": "/x", "INPUT_GITHUB-TOKEN": "ghs_1"}
    check_unused(inputs | own | {"INPUT_NO-GATE": "False", "INPUT_MIN-SCORE": " 80\n"})


def test_true_is_a_word_where_no_boolean_is_asked_for():
    """An agent may be called TRUE."""
    assert read({"INPUT_SUITES": "demo:hr", "INPUT_AGENT-ID": "TRUE"}).options == {"agent_id": "TRUE"}


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
    assert read(environ).options == {}


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


def test_result_files_are_gated_in_place_of_suites():
    """One glob a line, with the options of that command."""
    inputs = read({"INPUT_GATE": "a.xml\n b/*.json\n", "INPUT_ARM": "gpt", "INPUT_LOOPS": "1"})
    assert (inputs.command, inputs.arguments, inputs.options) == (
        "gate",
        ("a.xml", "b/*.json"),
        {"arm": "gpt"},
    )


def test_suites_and_result_files_take_a_step_each():
    """And an input of the one is not lost in a step of the other."""
    assert "'gate' and 'suites' are both set" in refused(gate="a.xml", suites="demo:hr")
    assert "input 'loops' has no effect with 'gate'" in refused(gate="a.xml", loops="3")
    assert "input 'arm' has no effect without 'gate'" in refused(suites="demo:hr", arm="gpt")
