"""Warnings of `validate --strict`, and `validate --format=sarif`, as code scanning services read it."""

import json
from pathlib import Path

import commands
import jsonschema
import pytest
from each_row import each_row

from ci_evals.adapters.suites import bundled_names, sources
from ci_evals.domain.errors import Problem
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.extensions.validate.sarif import SarifLog
from ci_evals.extensions.validate.suite_findings import Rule, SuiteFinding
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load

STRICT = {"criterion": "The refund is started", "strict": "tool_used", "toolName": "REFUND_REQUEST"}
REFUSED = {"criterion": "No discount", "strict": "tool_not_used", "toolName": "DISCOUNT_OFFER"}
TONE = {"criterion": "The agent is friendly"}


def a_test(name="one", **fields):
    return {
        "name": name, "guidelines": "You are Ida and want your money back.", "turns": [{"user": "Hello"}],
        "evaluations": [STRICT, REFUSED, TONE], "tags": ["refunds"],
    } | fields  # fmt: skip


def warnings(*tests, **agent):
    suite = {"name": "S", "agentId": "a", "apiKey": "key-123456", "tests": list(tests)} | agent
    loaded = load(json.dumps(suite, indent=1), "s.json", Reading())
    return [f"{problem.path}: {problem.message}" for problem in weaknesses(loaded)]


def only(warnings):
    (warning,) = warnings
    return warning


def warnings_with(*evaluations, **fields):
    """The warnings of a good test with further evaluations."""
    return warnings(a_test(evaluations=[STRICT, REFUSED, *evaluations], **fields))


def test_good_suite_and_unreported_arguments_cause_no_warning():
    assert (warnings(a_test(), a_test("two")), warnings(a_test(evaluations=[CALLED, REFUSED]))) == ([], [])
    request = {"tools": [{"type": "function", "function": {"name": "refund"}}]}
    agent = {"adapter": "openai", "model": "m", "adapterOptions": {"request": request}}
    assert warnings(a_test(evaluations=[CALLED, REFUSED]), **agent) == []


@each_row("name", bundled_names())
def test_bundled_suites_have_no_warning(name):
    (source,) = sources(name)
    assert [str(problem) for problem in weaknesses(load(source.text, source.file, Reading()))] == []


CALLED = {"criterion": "It is refunded", "strict": "tool_called", "toolName": "refund"}
WITH_ARGS = CALLED | {"args": {"amount": 42}}
HTTP = {"send": {"body": "{{message}}"}, "reply": {"text": "$.text", "toolCalls": "$.calls"}}


@each_row("agent", [
    {"adapter": "openai", "model": "m"},
    {"adapter": "http", "baseUrl": "http://127.0.0.1:1", "adapterOptions": HTTP},
    {"adapter": "python:a:b"},
    {"trace": "otlp"},
])  # fmt: skip
def test_unchecked_arguments_cause_warning_if_agent_reports_them(agent):
    """Which a check with `args` elsewhere in the suite shows too."""
    elsewhere = [a_test("two", evaluations=[WITH_ARGS, REFUSED])] if "python:a:b" in agent.values() else []
    (warning,) = warnings(a_test(evaluations=[REFUSED, CALLED]), *elsewhere, **agent)
    place = "tests[0].evaluations[1].toolName"
    assert warning.startswith(f"{place}: a call of refund passes whatever its arguments")
    assert "add 'args'" in warning
    (warning,) = warnings(a_test(evaluations=[STRICT, REFUSED]), *elsewhere, **agent)
    assert "use tool_called with 'args'" in warning
    param = {"criterion": "c", "strict": "param_equals", "paramName": "amount", "paramValue": 42}
    never = CALLED | {"times": 0}
    for enough in ([WITH_ARGS, REFUSED], [CALLED, param, REFUSED], [never, REFUSED]):
        assert warnings(a_test(evaluations=enough), *elsewhere, **agent) == []


def test_only_happy_paths_and_missing_strict_checks_or_tags_cause_warnings():
    assert only(warnings(a_test(evaluations=[TONE]))).startswith("tests: no test has a strict check")
    (warning,) = warnings(a_test(), a_test("two", evaluations=[TONE]))
    assert warning.startswith("tests[1].evaluations: has no strict check")
    (warning,) = warnings(a_test(), a_test("two", tags=[]))
    assert warning == "tests[1]: has no tag: `tag=` never selects this test"
    assert only(warnings(a_test(tags=[]), a_test("two", tags=[]))).startswith("tests: no test has a tag")
    happy = {"evaluations": [STRICT, TONE]}
    (warning,) = warnings(a_test(**happy), a_test("two", **happy))
    assert warning.startswith("tests: all tests are happy paths")
    assert warnings(a_test(**happy), a_test("Refuses a late refund", **happy)) == []
    assert warnings(a_test(**happy), a_test("two", tags=["edge-case"], **happy)) == []
    assert warnings(a_test(**happy), a_test("two")) == []


def test_pointless_repeated_or_weightless_checks_and_forbidden_tools_cause_warnings():
    check = {"criterion": "Not at once", "strict": "tool_not_used", "toolName": "REFUND", "beforeTurn": 1}
    assert only(warnings_with(check)).startswith("tests[0].evaluations[2].beforeTurn: is 1")
    assert warnings_with(check | {"beforeTurn": 2}) == []
    late = REFUSED | {"toolName": "REFUND_REQUEST", "beforeTurn": 2}
    good = a_test(optimalTools=["REFUND_REQUEST"], evaluations=[STRICT, late, REFUSED, TONE])
    forbidden = a_test("two", optimalTools=["REFUND_REQUEST", "DISCOUNT_OFFER"])
    message = "tests[1].optimalTools[1]: names DISCOUNT_OFFER, which evaluations[1] forbids"
    assert warnings(good, forbidden) == [message]
    (warning,) = warnings_with(STRICT | {"criterion": "In other words"})
    assert warning == "tests[0].evaluations[2]: asks the same as evaluations[0] of this test"
    (warning,) = warnings_with(TONE, {"criterion": "the agent is  Friendly"})
    assert warning.endswith("asks the same as evaluations[2] of this test")
    assert only(warnings_with(TONE | {"weight": 0})).startswith("tests[0].evaluations[2].weight: is 0")
    words = {"criterion": "No code", "strict": "not_regex", "pattern": "[A-Z]{9}"}
    assert only(warnings_with(words)).endswith('write "turn": "any"')
    assert warnings_with(words | {"turn": "any"}) == warnings_with(words, maxTurns=1) == []


TWO_THINGS = ".criterion: asks two things at once"
TRACE = "asks the judge what the trace shows"


@each_row(("criterion", "warning"), [
    ("The agent apologises and offers a refund", TWO_THINGS),
    ("The agent names the deadline; it offers a way out", TWO_THINGS),
    ("The agent is polite. It never blames the user", TWO_THINGS),
    ("The agent asks for the order and then confirms it", TWO_THINGS),
    ("The answer is right and the agent stays calm", TWO_THINGS),
    ("REFUND_REQUEST is started", TRACE),
    ("The refund workflow was executed", TRACE),
    ("The eligibility rule fires", TRACE),
    ("The agent keeps a friendly and professional tone", None),
    ("The agent names name and address of the shop", None),
    ("The terms and conditions are quoted correctly", None),
    ("The agent says correctly how many days are left afterwards (12 - 5 = 7)", None),
    ("The agent does not promise paid leave in the first year, e.g. as a favour.", None),
])  # fmt: skip
def test_criterion_with_two_demands_or_about_trace_causes_warning(criterion, warning):
    result = warnings_with({"criterion": criterion})
    assert len(result) == (warning is not None)
    assert all(text.startswith("tests[0].evaluations[2]") and warning in text for text in result)


CANBERRA = {"criterion": "c", "strict": "contains", "text": "canberra", "turn": 1}
CAPITAL = [STRICT, REFUSED, CANBERRA]


@each_row(("fields", "warning"), [
    ({"guidelines": "The agent should refuse at first."}, "guidelines: say what the agent should do"),
    ({"guidelines": "Ask for REFUND_REQUEST."},
     "guidelines: give away the name that evaluations[0] looks for"),
    ({"guidelines": "It is Canberra.", "evaluations": CAPITAL},
     "guidelines: give away the answer that evaluations[2] looks for"),
    ({"turns": [{"user": "Is it Canberra?"}], "evaluations": CAPITAL},
     "turns[0].user: gives away the answer"),
])  # fmt: skip
def test_guidelines_that_reveal_expected_answer_cause_warning(fields, warning):
    (result,) = warnings(a_test(**fields))
    assert result.startswith(f"tests[0].{warning}")


def test_answer_in_question_causes_no_warning_but_check_of_uncertain_reply_does():
    check = {"criterion": "right", "strict": "answer_matches", "expected": "Canberra"}
    turns = [{"user": "Is the capital Sydney or Canberra?"}]
    quiz = {"turns": turns, "maxTurns": 1, "evaluations": [check]}
    assert warnings(a_test(**quiz), a_test("two", **quiz)) == []
    (warning,) = warnings(a_test(**quiz, guidelines="It is Canberra."), a_test("two", **quiz))
    assert warning.startswith("tests[0].guidelines: give away the answer")
    check = {"criterion": "The order is named", "strict": "contains", "text": "HL-20418", "turn": 1}
    assert warnings_with(check, userInfo={"order": "HL-20418"}, turns=[{"user": "It is HL-20418."}]) == []
    check = {"criterion": "The order is named", "strict": "contains", "text": "HL-20418"}
    assert only(warnings_with(check)) == (
        "tests[0].evaluations[2]: contains checks the last reply, which is that of turn 1 or a later one, "
        'up to 7, since maxTurns adds auto turns; write "turn": 1 or "any", or in the test "maxTurns": 1'
    )
    assert warnings_with(check, maxTurns=1) == []
    assert warnings_with(check, turns=[{"user": "Hello"}, {"user": "auto"}]) == []
    for turn in (1, "any", "last"):
        assert warnings_with(check | {"turn": turn}) == []


BAD = {"score": 0.2, "name": "bad", "description": "As it should not."}
LEVELS = [{"score": 0.9, "name": "good", "description": "As it should be."}, BAD]
BARE = [{"score": 1, "name": "good"}, {"score": 0, "name": "bad", "description": "As it should not."}]


TACT = {"name": "tact", "description": "d", "rubric": LEVELS}


@each_row(("fields", "warning"), [
    ({"rubric": LEVELS}, None),
    ({"dimensions": ["clarity", TACT]}, None),
    ({"rubric": BARE}, "rubric[0]: has no description: the judge must guess"),
    ({"dimensions": [{"name": "clarity", "rubric": BARE}]}, "dimensions[0].rubric[0]: has no description"),
    ({"dimensions": [{"name": "tact"}], "rubric": LEVELS},
     "dimensions[0]: has no description: what 'tact' means is"),
    ({"dimensions": ["clarity", {"name": "usefulness", "weight": 0}]}, "dimensions[1].weight: is 0"),
    ({"dimensions": [TACT], "rubric": LEVELS}, "rubric: is used by no dimension"),
    ({"rubric": LEVELS, "passAt": 0.2},
     "passAt: is 0.2, which the worst levels come to: no conversation can fail"),
    ({"rubric": LEVELS, "passAt": 0.95},
     "passAt: is 0.95, and the best levels come to 0.9: no conversation can pass"),
    ({"dimensions": ["clarity", TACT], "passAt": 0.96}, "passAt: is 0.96, and the best levels come to 0.95"),
])  # fmt: skip
def test_unclear_rubric_causes_warning(fields, warning):
    result = warnings_with({"criterion": "The plan is good and says why"} | fields)
    assert len(result) == (warning is not None)
    assert not warning or result[0].startswith(f"tests[0].evaluations[2].{warning}")


_FILE = Path(__file__).parents[2] / "reports/schemas/sarif-2.1.0.json"
SCHEMA = jsonschema.Draft202012Validator(json.loads(_FILE.read_text()))
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


def valid_run(log):
    """The only run of a log that the published schema accepts."""
    SCHEMA.validate(log)
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
    assert (result["message"]["text"], place_of(result)) == ("tests[0]: is wrong.", ("evals/shop.yaml", 7, 3))
    (result,) = rendered(problem_in("demo:hr"))["results"]
    module = {"fullyQualifiedName": "demo:hr", "kind": "module"}
    assert result["locations"] == [{"logicalLocations": [module]}]
    (result,) = rendered(problem_in(message="\x1b[31mred\n::error::" + "x" * 90_000))["results"]
    text = result["message"]["text"]
    assert "\x1b" not in text
    assert "\n" not in text
    assert len(text) < 5_000


@each_row(("folder", "file", "artifact"), [
    ("/shop/sub", "evals/a.yaml", {"uri": "sub/evals/a.yaml", "uriBaseId": "%SRCROOT%"}),
    ("/shop/sub", "../evals/a.yaml", {"uri": "evals/a.yaml", "uriBaseId": "%SRCROOT%"}),
    ("/shop", "/shop/evals/a.yaml", {"uri": "evals/a.yaml", "uriBaseId": "%SRCROOT%"}),
    ("/shop", "evals/ß 1 #2%.yaml", {"uri": "evals/%C3%9F%201%20%232%25.yaml", "uriBaseId": "%SRCROOT%"}),
    ("/shop", "a:b.yaml", {"uri": "a%3Ab.yaml", "uriBaseId": "%SRCROOT%"}),
    ("/shop", "../else where/a.yaml", {"uri": "file:///else%20where/a.yaml"}),
])  # fmt: skip
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
def test_problems_are_printed_with_their_places_without_secrets(shop):
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
    (shop / "evals/broken.yaml").write_text(BROKEN.replace("tool_caled", "${SHOP_KEY}"))
    env = {"SHOP_KEY": "key-of-the-shop-123", "GITHUB_ACTIONS": "true"}
    code, run, error = validate(shop, "evals/broken.yaml", env=env)
    assert (code, "key-of-the-shop" in json.dumps(run), "::error" in error) == (2, False, True)


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
