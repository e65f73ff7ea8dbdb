"""What `validate --format=sarif` prints, as code scanning services read it."""

import json
from functools import cache
from pathlib import Path

import commands
import jsonschema
import pytest
from each_row import each_row

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


def valid_run(log):
    """The only run of a log that the published schema accepts."""
    validator().validate(log)
    (run,) = log["runs"]
    return run


def place_of(result):
    (location,) = result["locations"]
    where = location["physicalLocation"]
    region = where["region"]
    return where["artifactLocation"]["uri"], region["startLine"], region["startColumn"]


def rendered(*findings, folder="/shop", root="/shop", **more):
    return valid_run(SarifLog(findings, Path(folder), Path(root), **more).render())


def problem_in(file="evals/shop.yaml", message="is wrong"):
    return SuiteFinding(Rule.INVALID, Problem(file, 7, 3, "tests[0]", message))


def test_sarif_finding_has_rule_location_and_sanitized_text():
    run = rendered(problem_in())
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (result["ruleId"], rule["id"], result["level"]) == ("invalid-suite", "invalid-suite", "error")
    assert result["message"]["text"] == "tests[0]: is wrong."
    assert place_of(result) == ("evals/shop.yaml", 7, 3)
    (result,) = rendered(problem_in("demo:hr"))["results"]
    module = {"fullyQualifiedName": "demo:hr", "kind": "module"}
    assert result["locations"] == [{"logicalLocations": [module]}]
    (result,) = rendered(problem_in(message="\x1b[31mred\n::error::" + "x" * 90_000))["results"]
    text = result["message"]["text"]
    assert "\x1b" not in text
    assert "\n" not in text
    assert len(text) < 5_000


@each_row(
    ("folder", "file", "artifact"),
    [
        ("/shop/sub", "evals/a.yaml", {"uri": "sub/evals/a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("/shop/sub", "../evals/a.yaml", {"uri": "evals/a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("/shop", "/shop/evals/a.yaml", {"uri": "evals/a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("/shop", "evals/ß 1 #2%.yaml", {"uri": "evals/%C3%9F%201%20%232%25.yaml", "uriBaseId": "%SRCROOT%"}),
        ("/shop", "a:b.yaml", {"uri": "a%3Ab.yaml", "uriBaseId": "%SRCROOT%"}),
        ("/shop", "../else where/a.yaml", {"uri": "file:///else%20where/a.yaml"}),
    ],
)
def test_sarif_file_uri_is_relative_to_repository_or_absolute(folder, file, artifact):
    (result,) = rendered(problem_in(file), folder=folder)["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"] == artifact


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
    return done.returncode, valid_run(json.loads(done.stdout)), done.stderr


@pytest.mark.slow
def test_problems_and_warnings_are_printed_with_their_places(shop):
    code, run, error = validate(shop, "--strict", "evals/weak.yaml")
    assert (code, run["invocations"]) == (0, [{"executionSuccessful": True, "exitCode": 0}])
    outcome = [(result["ruleId"], *place_of(result)) for result in run["results"]]
    assert outcome[0] == ("suite-warning", "evals/weak.yaml", 3, 11)
    assert ("weak-suite", "evals/weak.yaml", 8, 32) in outcome
    assert any("no test has a tag: --tag and" in result["message"]["text"] for result in run["results"])
    assert "ok  evals/weak.yaml" in error
    code, run, error = validate(shop, "evals/broken.yaml")
    assert (code, run["invocations"]) == (2, [{"executionSuccessful": False, "exitCode": 2}])
    (result,) = run["results"]
    assert (result["ruleId"], *place_of(result)) == ("invalid-suite", "evals/broken.yaml", 9, 42)
    assert "tool_caled" in result["message"]["text"]
    assert "error: evals/broken.yaml:9:42" in error


@pytest.mark.slow
@pytest.mark.end_to_end
def test_problems_of_all_suites_are_in_one_log_with_notifications(shop):
    (shop / "evals/torn.yaml").write_text("name: [\n")
    (shop / "sub").mkdir()
    suites = ["../evals/broken.yaml", "../evals/torn.yaml", "../evals/weak.yaml", "missing.yaml"]
    code, run, error = validate(shop / "sub", *suites)
    assert code == 2
    files = [place_of(result)[0] for result in run["results"]]
    assert files == ["evals/broken.yaml", "evals/torn.yaml"]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "missing.yaml" in note["message"]["text"]
    assert "missing.yaml" in error
    assert "Traceback" not in error


@pytest.mark.slow
def test_secrets_are_redacted_and_annotations_go_to_stderr(shop):
    (shop / "evals/broken.yaml").write_text(BROKEN.replace("tool_caled", "${SHOP_KEY}"))
    env = {"SHOP_KEY": "key-of-the-shop-123", "GITHUB_ACTIONS": "true"}
    code, run, error = validate(shop, "evals/broken.yaml", env=env)
    assert code == 2
    assert "key-of-the-shop" not in json.dumps(run)
    assert "::error" in error
