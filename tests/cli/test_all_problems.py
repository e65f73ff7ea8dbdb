"""All errors of a suite are reported at once, including missing fields of its agent."""

from itertools import product

import pytest
from commands import ci_evals

pytestmark = pytest.mark.slow
VALID_TEST = """
tests:
  - name: x
    guidelines: Hello
    turns: [{user: hi}]
    evaluations: [{criterion: c, strict: not_escalated}]
"""


def named(field):
    return VALID_TEST.replace("name: x", f"name: x\n    {field}")


INVALID_SUITES = {
    "a wrong value": (named("maxTurns: 0"), "tests[0].maxTurns: 0 is not"),
    "a wrong kind": (VALID_TEST.replace("not_escalated", "not_esc"), "'not_esc' is not a strict type"),
    "an unknown key": (VALID_TEST + "colour: red\n", "colour"),
    "no tests": ("tests: []\n", "tests: "),
    "a name twice": (VALID_TEST + VALID_TEST.partition("tests:\n")[2], "already used"),
    "an unset variable": (VALID_TEST.replace("Hello", "${NOT_THERE}"), "NOT_THERE"),
    "an ended quarantine": (named("quarantine: {reason: r, until: '2020-01-01'}"), "ended on 2020-01-01"),
}
MISSING_FIELDS = {
    "both": ("", ["agentId: is missing", "apiKey: is missing"]),
    "the id": ("apiKey: a-key-of-some-length\n", ["agentId: is missing"]),
    "the key": ("agentId: a\n", ["apiKey: is missing"]),
    "an address": ("adapter: http\n", ["baseUrl: is missing"]),
    "a form of address": ("agentId: a\napiKey: a-key-xy\nbaseUrl: a.b\n", ["baseUrl: must begin with http"]),
    "nothing": ("adapter: demo\n", []),
}


@pytest.mark.parametrize("command", ["plan", "run", "validate"])
def test_missing_agent_fields_are_reported_with_other_errors(tmp_path, command):
    """Each kind of error with each thing that is missing, a suite each.

    For `validate` the key comes from the environment of the run.
    """
    suites = [*product(INVALID_SUITES.items(), MISSING_FIELDS.items())]
    for (fault, (body, _)), (lacks, (head, _)) in suites:
        (tmp_path / f"{fault}, {lacks}.yaml").write_text(f"name: {fault}, {lacks}\n{head}{body}")
    ran = ci_evals(command, ".", *([] if command == "validate" else ["--provider=offline"]), cwd=tmp_path)
    assert ran.returncode == 2
    for (fault, (_, problem)), (lacks, (_, missing)) in suites:
        lines = (ran.stdout + ran.stderr).splitlines()
        message = "\n".join(line for line in lines if f"{fault}, {lacks}.yaml:" in line)
        assert problem in message, (fault, lacks)
        for each in missing if command != "validate" or lacks == "the id" else ():
            assert message.count(f": {each}") == 1, message
        if not missing:
            assert "is missing" not in message


def test_invalid_value_is_not_also_reported_as_missing(tmp_path):
    (tmp_path / "suite.yaml").write_text(f"name: A\nagentId: 5\napiKey: ${{UNSET_KEY}}\n{VALID_TEST}")
    ran = ci_evals("plan", "suite.yaml", cwd=tmp_path)
    assert [ran.stderr.count(f": {key}: ") for key in ("agentId", "apiKey")] == [1, 1]
    (tmp_path / "suite.yaml").write_text(f"name: A\nadapter: 5\n{VALID_TEST}")
    assert "is missing" not in ci_evals("plan", "suite.yaml", cwd=tmp_path).stderr
