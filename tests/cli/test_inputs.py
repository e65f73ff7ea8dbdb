"""The action's inputs become one call of the command line."""

from pathlib import Path

import pytest
from each_row import each_row

from ci_evals.cli.settings.inputs import check_unused, declared, read
from ci_evals.domain.errors import UsageError


def read_error(**inputs: str) -> str:
    with pytest.raises(UsageError) as caught:
        read({f"INPUT_{name.replace('_', '-').upper()}": value for name, value in inputs.items()})
    return str(caught.value)


def test_suites_input_is_split_into_trimmed_lines():
    """A YAML block ends in a newline, and people indent their lists; a dash makes no option of a suite."""
    inputs = read({"INPUT_SUITES": "evals/a.json\n\n  evals/b c.yaml  \r\ndemo:hr\n--no-gate\n"})
    assert inputs.arguments == ("evals/a.json", "evals/b c.yaml", "demo:hr", "--no-gate")
    for suites in ({}, {"suites": "\n \n"}):  # GitHub does not enforce `required: true`
        assert "input 'suites' is empty" in read_error(**suites)


def test_removed_or_unknown_input_is_rejected_with_replacement_or_suggestion():
    """GitHub only warns of an unknown one."""
    assert read_error(suites="demo:hr", confirm="3") == "input 'confirm' is gone: use rounds: auto."
    never = "the value 'never' of the input 'both-sides' is gone: leave against out."
    assert read_error(suites="demo:hr", both_sides="never") == never
    with pytest.raises(UsageError, match=r"^input 'confirm' is gone: use rounds: auto.$"):
        check_unused({"INPUT_CONFIRM": "3"})
    names = {"min-scor": "min-score", "min_score": "min-score", "suite": "suites", "llmkey": "llm-key"}
    for name, near in names.items():
        with pytest.raises(UsageError, match=rf"unknown input '{name}': did you mean '{near}'\?"):
            read({"INPUT_SUITES": "demo:hr", f"INPUT_{name.upper()}": "95"})
    assert len(read_error(min_scor="95", no_gate="yes").splitlines()) == 3
    assert "sk-secret" not in repr(read({"INPUT_SUITES": "demo:hr", "INPUT_LLM-KEY": "sk-secret"}))


@each_row(
    ("name", "value", "options"),
    [
        ("MIN-SCORE", "85", {"min_score": 85}),
        ("MIN-SCORE", "79.5", {"min_score": 79.5}),
        ("MAX-COST", "0.001", {"max_cost": 1e-3}),
        ("LOOPS", "1000", {"loops": 1000}),
        ("PR-NUMBER", "7", {"pr_number": 7}),
        ("PROVIDER", "offline", {"provider": "offline"}),
        ("THRESHOLDS", "suite:HR=90\ntag:safety=100\n", {"thresholds": "suite:HR=90\ntag:safety=100"}),
        ("TEST", "Refund, then cancel\n\n Cancel \n", {"test": ["Refund, then cancel", "Cancel"]}),
        ("AGENT-ID", "TRUE", {"agent_id": "TRUE"}),
        ("ARGS", "x", {}),  # `args` and `entrypoint` belong to every container action
        ("ENTRYPOINT", "/bin/sh", {}),
        *(("NO-GATE", value, {"no_gate": True}) for value in ("true", "True", "TRUE")),
        *(("NO-GATE", value, {"no_gate": False}) for value in ("false", "False", "FALSE")),
    ],
)
def test_inputs_become_options_of_their_type(name, value, options):
    assert read({"INPUT_SUITES": "demo:hr", f"INPUT_{name}": value, "PATH": "/usr/bin"}).options == options


def test_blank_inputs_count_as_unset_and_defaults_are_accepted_beside_args():
    """GitHub sends every input, those that nobody set as empty text or with their default, and the token."""
    inputs = {f"INPUT_{name.upper()}": " \n" for name in declared()}
    assert read(inputs | {"INPUT_SUITES": "demo:hr"}).options == {}
    inputs = {f"INPUT_{name.upper()}": default for name, default in declared().items()}
    own = {"INPUT_ARGS": "comment results", "INPUT_ENTRYPOINT": "/x", "INPUT_GITHUB-TOKEN": "ghs_1"}
    check_unused(inputs | own | {"INPUT_NO-GATE": "False", "INPUT_MIN-SCORE": " 80\n"})


@each_row(
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
        *(("no-gate", value, "true or false") for value in ("yes", "1", "on", "tRUE", "no")),
    ],
)
def test_invalid_input_is_rejected_with_allowed_values(name, value, allowed):
    message = f"input {name!r} is {value!r}: it must be {allowed}."
    assert read_error(suites="demo:hr", **{name: value}) == message


@pytest.mark.parametrize("name", ["output-dir", "junit", "record"])
@each_row("value", ["../out", "/tmp/x", "results/../../out", "away/out"])
def test_output_path_outside_workspace_is_rejected(tmp_path, monkeypatch, name, value):
    """It would be lost with the container, and the outputs would point nowhere."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    monkeypatch.chdir(workspace)
    if not (workspace / "away").is_symlink():
        (workspace / "away").symlink_to(tmp_path)
    with pytest.raises(UsageError) as caught:
        read({"INPUT_SUITES": "demo:hr", f"INPUT_{name.upper()}": value, "GITHUB_WORKSPACE": str(workspace)})
    assert f"input {name!r} is {value!r}: it is outside the workspace" in str(caught.value)


@each_row("value", ["out", ".", "a/../b", "{workspace}/out"])
def test_output_path_inside_workspace_is_accepted(tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    value = value.format(workspace=tmp_path)
    environ = {"INPUT_SUITES": "demo:hr", "INPUT_OUTPUT-DIR": value, "GITHUB_WORKSPACE": str(tmp_path)}
    assert read(environ).options == {"output_dir": Path(value)}


def unused_error(**inputs: str) -> str:
    with pytest.raises(UsageError) as caught:
        check_unused({f"INPUT_{name.replace('_', '-').upper()}": value for name, value in inputs.items()})
    return str(caught.value)


def test_input_without_effect_beside_args_is_rejected_by_name():
    """A gate that ignores `min-score: 99` would look strict. Values are not shown: they may be keys."""
    expected = "input 'min-score' has no effect with 'args': write --min-score=... there."
    assert unused_error(args="merge shards", min_score="99") == expected
    assert unused_error(no_gate="true").endswith("write --no-gate there.")
    assert unused_error(suites="demo:hr").endswith("name them there.")
    assert unused_error(shards="3").endswith("write --shards=... there.")
    message = unused_error(llm_key="sk-secret", min_score="1", comment_key="forks")
    assert (len(message.splitlines()), "sk-secret" in message) == (3, False)


def test_gate_input_calls_gate_command_and_excludes_inputs_of_run():
    inputs = read({"INPUT_GATE": "a.xml\n b/*.json\n", "INPUT_ARM": "gpt", "INPUT_LOOPS": "1"})
    assert (inputs.command, inputs.arguments) == ("gate", ("a.xml", "b/*.json"))
    assert inputs.options == {"arm": "gpt"}
    assert "'gate' and 'suites' are both set" in read_error(gate="a.xml", suites="demo:hr")
    assert "input 'loops' has no effect with 'gate'" in read_error(gate="a.xml", loops="3")
    assert "input 'arm' has no effect without 'gate'" in read_error(suites="demo:hr", arm="gpt")
