"""Every problem of a suite at once, what it lacks to reach its agent included."""

from itertools import product

import pytest
from commands import ci_evals

pytestmark = pytest.mark.slow

GOOD_TEST = """
tests:
  - name: x
    guidelines: Hello
    turns: [{user: hi}]
    evaluations: [{criterion: c, strict: not_escalated}]
"""
FAULTS = {
    "a wrong value": (
        GOOD_TEST.replace("name: x", "name: x\n    maxTurns: 0"),
        "tests[0].maxTurns: 0 is not",
    ),
    "a wrong kind": (GOOD_TEST.replace("not_escalated", "not_esc"), "'not_esc' is not a strict type"),
    "an unknown key": (GOOD_TEST + "colour: red\n", "colour"),
    "no tests": ("tests: []\n", "tests: "),
    "a name twice": (GOOD_TEST + GOOD_TEST.partition("tests:\n")[2], "already used"),
    "an unset variable": (GOOD_TEST.replace("Hello", "${NOT_THERE}"), "NOT_THERE"),
    "an ended quarantine": (
        GOOD_TEST.replace("name: x", "name: x\n    quarantine: {reason: r, until: '2020-01-01'}"),
        "ended on 2020-01-01",
    ),
}
LACKS = {
    "both": ("", ["agentId: is missing", "apiKey: is missing"]),
    "the id": ("apiKey: a-key-of-some-length\n", ["agentId: is missing"]),
    "the key": ("agentId: a\n", ["apiKey: is missing"]),
    "an address": ("adapter: http\n", ["baseUrl: is missing"]),
    "a form of address": (
        "agentId: a\napiKey: a-key-of-some-length\nbaseUrl: shop.example\n",
        ["baseUrl: must begin with http"],
    ),
    "nothing": ("adapter: demo\n", []),
}


@pytest.mark.parametrize("command", ["plan", "run"])
def test_what_the_agent_lacks_is_reported_with_other_faults(tmp_path, command):
    """Nobody mends a file twice: each kind of fault with each thing that is missing, a suite each."""
    for (fault, (body, _)), (lacks, (head, _)) in product(FAULTS.items(), LACKS.items()):
        (tmp_path / f"{fault}, {lacks}.yaml").write_text(f"name: {fault}, {lacks}\n{head}{body}")
    ran = ci_evals(command, ".", "--provider=offline", cwd=tmp_path)
    assert ran.returncode == 2
    for (fault, (_, problem)), (lacks, (_, missing)) in product(FAULTS.items(), LACKS.items()):
        message = problems_of(f"{fault}, {lacks}.yaml", ran.stderr)
        assert problem in message, (fault, lacks)
        for each in missing:
            assert message.count(f": {each}") == 1, message
        if not missing:
            assert "is missing" not in message


def test_validate_reports_a_missing_id_with_other_faults(tmp_path):
    """Its key comes from the environment of the run; with a key, an id is missed."""
    for fault, (body, _) in FAULTS.items():
        (tmp_path / f"{fault}.yaml").write_text(f"name: {fault}\napiKey: a-key-of-some-length\n{body}")
    ran = ci_evals("validate", ".", cwd=tmp_path)
    assert ran.returncode == 2
    for fault, (_, problem) in FAULTS.items():
        message = problems_of(f"{fault}.yaml", ran.stderr + ran.stdout)
        assert problem in message
        assert "agentId: is missing" in message


def problems_of(file, output):
    """The lines on the problems of one file."""
    return "\n".join(line for line in output.splitlines() if f"{file}:" in line)


def test_a_wrong_value_is_not_missing_too(tmp_path):
    """One problem for each key; an adapter that nobody knows needs nothing."""
    (tmp_path / "suite.yaml").write_text(f"name: A\nagentId: 5\napiKey: ${{UNSET_KEY}}\n{GOOD_TEST}")
    ran = ci_evals("plan", "suite.yaml", cwd=tmp_path)
    assert [ran.stderr.count(f": {key}: ") for key in ("agentId", "apiKey")] == [1, 1]
    (tmp_path / "suite.yaml").write_text(f"name: A\nadapter: 5\n{GOOD_TEST}")
    assert "is missing" not in ci_evals("plan", "suite.yaml", cwd=tmp_path).stderr
