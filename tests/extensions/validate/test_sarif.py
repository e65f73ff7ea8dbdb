"""What `validate --format=sarif` prints, as code scanning services read it."""

import json
from functools import cache
from pathlib import Path

import commands
import jsonschema
import pytest

from ci_evals.domain.errors import Problem
from ci_evals.extensions.validate.sarif import SarifLog
from ci_evals.extensions.validate.suite_findings import Rule, SuiteFinding

SCHEMA = Path(__file__).parents[2] / "reports/schemas/sarif-2.1.0.json"
BROKEN = """name: Shop
agentId: a
apiKey: ${SHOP_KEY:-}
tests:
  - name: Refunds
    guidelines: You want a refund.
    turns: [{ user: Refund order seven }]
    evaluations:
      - { criterion: It refunds, strict: tool_caled, toolName: refund }
"""
WEAK = """name: Shop
adapter: demo
minScore: 0.8
tests:
  - name: Refunds
    guidelines: You want a refund.
    turns: [{ user: Refund order seven }]
    evaluations: [{ criterion: It is kind and helps }]
"""


@cache
def validator():
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))


def valid(log):
    """The only run of a log that the published schema accepts."""
    validator().validate(log)
    (run,) = log["runs"]
    return run


def place(result):
    """The file, line and column of a result."""
    (location,) = result["locations"]
    where = location["physicalLocation"]
    region = where["region"]
    return where["artifactLocation"]["uri"], region["startLine"], region["startColumn"]


def rendered(*findings, folder="/shop", root="/shop", **more):
    return valid(SarifLog(findings, Path(folder), Path(root), **more).render())


def problem(file="evals/shop.yaml", message="is wrong"):
    return SuiteFinding(Rule.INVALID, Problem(file, 7, 3, "tests[0]", message))


def test_a_finding_has_its_rule_and_its_place():
    run = rendered(problem())
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (result["ruleId"], rule["id"], result["level"]) == ("invalid-suite", "invalid-suite", "error")
    assert result["message"]["text"] == "tests[0]: is wrong."
    assert place(result) == ("evals/shop.yaml", 7, 3)


@pytest.mark.parametrize(
    ("folder", "file", "uri"),
    [
        ("/shop/sub", "evals/a.yaml", "sub/evals/a.yaml"),
        ("/shop/sub", "../evals/a.yaml", "evals/a.yaml"),
        ("/shop", "/shop/evals/a.yaml", "evals/a.yaml"),
        ("/shop", "evals/Größe 1 #2%.yaml", "evals/Gr%C3%B6%C3%9Fe%201%20%232%25.yaml"),
        ("/shop", "a:b.yaml", "a%3Ab.yaml"),
    ],
)
def test_a_file_is_relative_to_the_root_of_the_repository(folder, file, uri):
    (result,) = rendered(problem(file), folder=folder)["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": uri, "uriBaseId": "%SRCROOT%"}


def test_a_file_outside_of_the_repository_has_its_whole_address():
    (result,) = rendered(problem("../else where/a.yaml"))["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "file:///else%20where/a.yaml"}


def test_a_bundled_suite_is_no_file_of_the_users():
    (result,) = rendered(problem("demo:hr"))["results"]
    assert result["locations"] == [
        {"logicalLocations": [{"fullyQualifiedName": "demo:hr", "kind": "module"}]}
    ]


def test_hostile_text_is_one_bounded_line():
    (result,) = rendered(problem(message="\x1b[31mred\n::error::" + "x" * 90_000))["results"]
    text = result["message"]["text"]
    assert "\x1b" not in text
    assert "\n" not in text
    assert len(text) < 5_000


@pytest.fixture
def shop(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/broken.yaml").write_text(BROKEN)
    (tmp_path / "evals/weak.yaml").write_text(WEAK)
    return tmp_path


def validate(folder, *args, env=None):
    """The exit code, the run that was printed, and standard error."""
    done = commands.ci_evals("validate", "--format=sarif", *args, cwd=folder, env=env or {})
    return done.returncode, valid(json.loads(done.stdout)), done.stderr


@pytest.mark.slow
def test_problems_and_warnings_are_printed_with_their_places(shop):
    """With the exit codes of the plain form, and nothing else on standard output."""
    code, run, error = validate(shop, "--strict", "evals/weak.yaml")
    assert code == 0
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 0}]
    found = [(result["ruleId"], *place(result)) for result in run["results"]]
    assert found[0] == ("suite-warning", "evals/weak.yaml", 3, 11)
    assert ("weak-suite", "evals/weak.yaml", 8, 32) in found
    assert any("no test has a tag: --tag and" in result["message"]["text"] for result in run["results"])
    assert "ok  evals/weak.yaml" in error
    code, run, error = validate(shop, "evals/broken.yaml")
    assert code == 2
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 2}]
    (result,) = run["results"]
    assert (result["ruleId"], *place(result)) == ("invalid-suite", "evals/broken.yaml", 9, 42)
    assert "tool_caled" in result["message"]["text"]
    assert "error: evals/broken.yaml:9:42" in error


@pytest.mark.slow
@pytest.mark.end_to_end
def test_all_suites_are_in_one_log_and_what_has_no_place_is_a_notification(shop):
    """A file that is missing, one that is no YAML, one in another folder, and one that is fine."""
    (shop / "evals/torn.yaml").write_text("name: [\n")
    (shop / "sub").mkdir()
    suites = ["../evals/broken.yaml", "../evals/torn.yaml", "../evals/weak.yaml", "missing.yaml"]
    code, run, error = validate(shop / "sub", *suites)
    assert code == 2
    files = [place(result)[0] for result in run["results"]]
    assert files == ["evals/broken.yaml", "evals/torn.yaml"]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "missing.yaml" in note["message"]["text"]
    assert "missing.yaml" in error
    assert "Traceback" not in error


@pytest.mark.slow
def test_no_secret_is_printed_and_annotations_go_elsewhere(shop):
    """In a job of GitHub Actions its commands would make the log no JSON."""
    (shop / "evals/broken.yaml").write_text(BROKEN.replace("tool_caled", "${SHOP_KEY}"))
    env = {"SHOP_KEY": "key-of-the-shop-123", "GITHUB_ACTIONS": "true"}
    code, run, error = validate(shop, "evals/broken.yaml", env=env)
    assert code == 2
    assert "key-of-the-shop" not in json.dumps(run)
    assert "::error" in error
