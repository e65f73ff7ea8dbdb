"""Warnings of `validate --strict`, probes of vacuous criteria, and SARIF as code scanning reads it."""

import json
from dataclasses import replace
from pathlib import Path

import builders as build
import commands
import fakes
import jsonschema
import pytest
import seeded_judges
import world
from each_row import each_row
from study_judges import STUDY_TIME, as_saved_run, judged_trial, study_asking

from ci_evals.adapters.suites import bundled_names, sources
from ci_evals.domain.errors import Problem, UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.suite import Suite
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Finding
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.extensions.validate.sarif import SarifLog
from ci_evals.extensions.validate.study import probe, questions_for
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
    """A check with `args` elsewhere in the suite shows that too."""
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


def test_pointless_repeated_or_weightless_checks_cause_warnings():
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


def test_answer_in_guidelines_causes_warning_but_not_in_a_user_message_that_asks():
    check = {"criterion": "right", "strict": "answer_matches", "expected": "Canberra"}
    quiz = {"turns": [{"user": "Is the capital Sydney or Canberra?"}], "maxTurns": 1, "evaluations": [check]}
    assert warnings(a_test(**quiz), a_test("two", **quiz)) == []
    (warning,) = warnings(a_test(**quiz, guidelines="It is Canberra."), a_test("two", **quiz))
    assert warning.startswith("tests[0].guidelines: give away the answer")
    check = {"criterion": "The order is named", "strict": "contains", "text": "HL-20418", "turn": 1}
    assert warnings_with(check, userInfo={"order": "HL-20418"}, turns=[{"user": "It is HL-20418."}]) == []


def test_check_of_the_last_reply_causes_warning_if_its_turn_is_uncertain():
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
def test_problems_are_printed_and_in_sarif_with_places_and_without_secrets(shop):
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
    assert [place_of(result)[0] for result in run["results"]] == ["evals/broken.yaml", "evals/torn.yaml"]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "missing.yaml" in note["message"]["text"]
    assert "missing.yaml" in error
    assert "Traceback" not in error


CRITERIA = ("Nothing is deleted", "The order {} is cancelled", "One in two are glad")


def criteria(test: int) -> list[str]:
    return [one.format(test) for one in CRITERIA]


def suite(name: str, tests: range, *more: dict) -> Suite:
    def test(number: int) -> dict:
        judged = ({"criterion": f"{one} ({number})"} for one in criteria(number))
        evaluations = [{"criterion": "No person is called", "strict": "not_escalated"}, *judged, *more]
        common = {"guidelines": "g", "turns": [{"user": "x"}]}
        return common | {"name": f"T{number}", "evaluations": evaluations}

    return Suite.model_validate({"name": name, "tests": [test(number) for number in tests]})


def played_suite(name: str, tests: range, trials: int = 2, **fields):
    """The run of such a suite: in each conversation the order of its own test is cancelled."""

    def test(number: int):
        texts = [f"{one} ({number})" for one in criteria(number)]
        judged = [build.finding(kind="judged", criterion=text, outcome="passed") for text in texts]
        common = {"findings": (build.finding(), *judged)} | fields
        indexes = range(1, trials + 1)
        return build.test_result(
            f"T{number}",
            guidelines=f"You want order {number} cancelled.",
            user_info={"order": number},
            trials=tuple(
                judged_trial(f"Order {number} is cancelled.", index=index, **common) for index in indexes
            ),
        )

    return build.suite_result(name, *map(test, tests))


def with_findings(run: Results, tests: range, *findings: Finding, keep: bool = True) -> Results:
    """The run, with these findings in all trials of some tests, after or in place of their own."""

    def changed(test: TestResult) -> TestResult:
        kept = [(*(trial.findings if keep else ()), *findings) for trial in test.trials]
        trials = (replace(trial, findings=some) for trial, some in zip(test.trials, kept, strict=True))
        return replace(test, trials=tuple(trials))

    (only,) = run.suites
    results = (changed(test) if number in tests else test for number, test in enumerate(only.tests))
    return build.results(replace(only, tests=tuple(results)))


def judge(asked: world.ModelRequest) -> str:
    """What must not happen passes; what must happen passes where it did; of the glad half pass."""
    criterion = seeded_judges.prompt_block(asked.text, "criterion")
    text = repr(seeded_judges.prompt_block(asked.text, "conversation"))
    if "deleted" in criterion:
        return fakes.judge_answer("pass")
    if "glad" in criterion:
        return fakes.judge_answer("pass" if seeded_judges.seeded_chance(criterion, text) < 0.5 else "fail")
    own = criterion.removeprefix("The order ").partition(" ")[0]
    return fakes.judge_answer("pass" if f"Order {own} is" in text else "fail")


async def probe_run(monkeypatch, run, suites, answer=judge, each=5, **fields):
    questions, _ = questions_for(as_saved_run(run), suites, each, 0)
    with world.llm(answer) as models:
        async with study_asking(models, monkeypatch, **fields) as ask:
            return questions, await probe(ask, questions, STUDY_TIME), models


async def test_criterion_is_vacuous_only_if_all_of_many_probes_pass(monkeypatch):
    run = build.results(played_suite("A", range(12)))
    result, report, models = await probe_run(monkeypatch, run, [suite("A", range(12))])
    vacuous = [one.criterion for one in report.vacuous if "deleted" in one.criterion]
    assert vacuous == [f"Nothing is deleted ({test})" for test in range(12)]
    assert not any("cancelled" in one.criterion for one in report.vacuous)
    assert len(report.vacuous) - 12 == sum("glad" in one.criterion for one in report.vacuous) <= 2
    glad = [one for one in report.criteria if "glad" in one.criterion]
    assert sum(one.share.low <= 0.5 <= one.share.high for one in glad) >= 10
    assert {one.tried for one in report.criteria} == {5}
    vacuous = [question.indexes for question, one in zip(result, report.criteria, strict=True) if one.vacuous]
    assert (vacuous[:2], len(models.asked)) == ([(0, 0, 1), (0, 1, 1)], 12 * 3 * 5)
    run = build.results(played_suite("A", range(3), trials=1))
    _, report, _ = await probe_run(monkeypatch, run, [suite("A", range(3))])
    assert {one.tried for one in report.criteria} == {2}
    assert not report.vacuous
    run = build.results(played_suite("A", range(6)))
    answer = fakes.judge_answer("cannot_tell")
    _, report, _ = await probe_run(monkeypatch, run, [suite("A", range(6))], lambda _: answer, parallel=2)
    assert {(one.tried, one.share, one.vacuous) for one in report.criteria} == {(0, None, False)}
    assert {one.undecided for one in report.criteria} == {5}


async def test_criterion_is_probed_with_user_data_of_other_tests_its_own_suite_first(monkeypatch):
    run = build.results(played_suite("A", range(12)))
    _, _, models = await probe_run(monkeypatch, run, [suite("A", range(1))])
    asked = [one.text for one in models.asked if "The order 0 is cancelled" in one.text]
    orders = [seeded_judges.prompt_block(text, "background")["user_info"]["order"] for text in asked]
    assert (0 in orders, len(set(orders))) == (False, 5)
    for order, text in zip(orders, asked, strict=True):
        assert seeded_judges.prompt_block(text, "conversation")[0]["agent"] == f"Order {order} is cancelled."
        wanted = seeded_judges.prompt_block(text, "background")["guidelines"]
        assert wanted == f"You want order {order} cancelled."
    run = build.results(played_suite("A", range(3), trials=1), played_suite("B", range(20, 30), trials=1))
    questions, _ = questions_for(as_saved_run(run), [suite("A", range(3))], 5, 0)
    for question in questions:
        assert [other.suite for other in question.others] == ["A", "A", "B", "B", "B"]
        assert question.test not in {other.test.name for other in question.others[:2]}
    polite = {"criterion": "It is polite"}
    shared = build.finding(kind="judged", **polite)
    run = with_findings(build.results(played_suite("A", range(6))), range(4), shared)
    questions, unknown = questions_for(as_saved_run(run), [suite("A", range(6), polite)], 5, 0)
    probes = [one for one in questions if one.evaluation.criterion == "It is polite"]
    assert [one.test for one in probes] == ["T0", "T1", "T2", "T3"]
    assert ({other.test.name for one in probes for other in one.others}, unknown) == ({"T4", "T5"}, 2)


async def test_rubric_criterion_counts_as_passed_in_probe_from_its_pass_at_grade(monkeypatch):
    levels = [{"name": "no", "score": 0}, {"name": "some", "score": 0.6}, {"name": "yes", "score": 1}]
    graded = {"criterion": "It is done", "rubric": levels, "passAt": 0.6}
    graded_too = graded | {"criterion": "It is well done", "passAt": 0.9}
    findings = [build.finding(kind="judged", criterion=one["criterion"]) for one in (graded, graded_too)]
    run = with_findings(build.results(played_suite("A", range(6))), range(1), *findings, keep=False)

    def answer(asked: world.ModelRequest) -> str:
        (name,) = [one["dimension"] for one in seeded_judges.prompt_block(asked.text, "rubric")]
        level = {"dimension": name, "reason": "So.", "evidence": [], "level": "some"}
        answer = {"reasoning": "So.", "dimensions": [level], "rests_on": "absence", "looked_at": [1]}
        return json.dumps(answer)

    _, report, _ = await probe_run(monkeypatch, run, [suite("A", range(1), graded, graded_too)], answer)
    numbers = [(one.criterion, one.passed, one.tried, one.vacuous) for one in report.criteria]
    assert numbers == [("It is done", 5, 5, True), ("It is well done", 0, 5, False)]


@each_row(("run", "message"), [
    (build.results(played_suite("Other", range(3))), "holds no judged criterion of these suites"),
    (build.results(played_suite("A", range(1))), "holds no conversations of other tests"),
    (build.results(played_suite("A", range(3), turns=())), "no finished conversation to judge again"),
    (build.results(played_suite("A", range(3), status=EndState.FAILED)), "no finished conversation"),
    (build.results(), "it has no judged verdict to judge again"),
])  # fmt: skip
def test_results_without_anything_to_probe_are_refused_with_the_reason(run, message):
    with pytest.raises(UsageError, match=message):
        questions_for(as_saved_run(run), [suite("A", range(3))], 5, 0)
