import json
from datetime import date

import pytest
from each_row import each_row

from ci_evals.domain.errors import SuiteError
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import LoadedSuite, load


def a_test(**fields) -> dict:
    return {
        "name": "one",
        "guidelines": "Be brief.",
        "turns": [{"user": "hi"}],
        "evaluations": [{"criterion": "The agent greets"}],
    } | fields


def a_suite(*tests: dict, **fields) -> dict:
    return {"name": "S", "agentId": "a", "apiKey": "key-123456", "tests": list(tests) or [a_test()]} | fields


def read(suite: dict, **reading) -> LoadedSuite:
    return load(json.dumps(suite), "s.json", Reading(**reading))


def problems(suite: dict, **reading) -> list[str]:
    """The problems as `path: message`."""
    with pytest.raises(SuiteError) as refused:
        read(suite, **reading)
    return [f"{problem.path}: {problem.message}" for problem in refused.value.problems]


def test_a_suite_of_the_original_is_read_unchanged():
    """Every field of the format, and its defaults."""
    suite = read(
        a_suite(
            a_test(
                userInfo={"plan": "Pro", "days": 3, "nested": {"a": [1]}},
                systemPrompt="Be nice.",
                turns=[{"user": "hi", "timeout": 5, "expectation": "greets"}, {"user": "auto"}],
                evaluations=[
                    {"criterion": "c", "weight": 2, "category": "tone", "aui_logic": ["R1"]},
                    {"criterion": "c", "strict": "tool_not_used", "toolName": "T", "beforeTurn": 3},
                    {"criterion": "c", "strict": "param_equals", "paramName": "p", "paramValue": 29.9},
                ],
                tags=["billing"],
            ),
            model="m",
            judgeModel="j",
        )
    ).suite
    (test,) = suite.tests
    assert (suite.max_turns, suite.adapter, suite.judge_model) == (7, "aui", "j")
    assert [turn.timeout for turn in test.turns] == [5, 120]
    assert [type(e).__name__ for e in test.evaluations] == ["Judged", "ToolNotUsed", "ParamEquals"]
    assert test.evaluations[0].aui_logic == ("R1",)
    assert len(suite.turns_of(test)) == 7
    assert suite.turns_of(test)[-1].auto


def test_all_problems_are_reported_at_once_with_their_path():
    """File, line, column, path, what is wrong, and the nearest right name."""
    text = """{
  "name": "S", "agentId": "a", "apiKey": "key-123456", "maxturns": 3,
  "tests": [
    {"name": "one", "guidelines": "g", "turns": [{"user": "hi", "timeout": -1}],
     "evaluations": [
       {"criterion": "c", "strict": "tool_use", "toolName": "X"},
       {"criterion": "c", "strict": "tool_used"},
       {"criterion": "c", "strict": "tool_used", "toolname": "X", "toolName": "X"}
     ]}
  ]
}"""
    with pytest.raises(SuiteError) as refused:
        load(text, "evals/s.json", Reading())
    assert str(refused.value).splitlines() == [
        "evals/s.json:2:56: maxturns: unknown key; did you mean 'maxTurns'?",
        "evals/s.json:4:76: tests[0].turns[0].timeout: -1 is not greater than 0",
        (
            "evals/s.json:6:37: tests[0].evaluations[0].strict: 'tool_use' is not a strict type; "
            "did you mean 'tool_used'?"
        ),
        "evals/s.json:7:8: tests[0].evaluations[1].toolName: is missing; tool_used needs it",
        "evals/s.json:8:50: tests[0].evaluations[2].toolname: unknown key; did you mean 'toolName'?",
    ]


@each_row(
    ("evaluation", "text"),
    [
        ({"weight": -1}, "weight: -1 is not greater than or equal to 0"),
        ({"weight": "2"}, 'weight: must be a number, found "2"'),
        ({"weight": True}, "weight: must be a number, found true"),
        ({"criterion": " "}, "criterion: must not be empty"),
        ({"toolName": "X"}, "toolName: a criterion without 'strict' has no such key"),
        ({"strict": 5}, "strict: must be the name of a strict type"),
        ({"strict": "tool_used", "toolName": 5}, "toolName: must be a string, found 5"),
        ({"strict": "tool_not_used", "toolName": "X", "beforeTurn": 0}, "beforeTurn: 0 is not greater"),
        (
            {"strict": "tool_not_used", "toolName": "X", "beforeTurn": 1.5},
            "beforeTurn: must be a whole number",
        ),
        ({"strict": "param_equals", "paramName": "p"}, "paramValue: is missing; param_equals needs it"),
        ({"strict": "regex", "pattern": "("}, "pattern: '(' is not a regular expression"),
        (
            {"strict": "contains", "text": "x", "turn": "lst"},
            "turn: must be a reply's number (from 1), 'last'",
        ),
        ({"strict": "contains", "text": "x", "turn": 0}, "turn: must be a reply's number"),
        ({"strict": "max_latency", "seconds": 0}, "seconds: 0 is not greater than 0"),
        ({"strict": "answer_matches"}, "expected: is missing; answer_matches needs it"),
        (
            {"strict": "answer_matches", "expected": 5},
            "expected: must be a string or a list of strings; put a number",
        ),
        ({"strict": "answer_matches", "expected": []}, "expected: needs at least one item"),
        ({"strict": "answer_matches", "expected": ["a", " "]}, "expected[1]: must not be empty"),
        ({"strict": "answer_matches", "expected": "a", "match": "fuzy"}, "match: 'fuzy' is not one of bidir"),
        ({"strict": "answer_matches", "expected": "?!"}, "expected: '?!' holds nothing that gaia compares"),
        (
            {"strict": "answer_matches", "expected": ["5", "5 km"], "match": "numeric"},
            "expected: '5 km' is not a n",
        ),
        (
            {"strict": "answer_matches", "expected": "a", "threshold": 0.5},
            "threshold: belongs to match fuzzy and semantic, not to gaia",
        ),
        (
            {"strict": "answer_matches", "expected": "a", "match": "fuzzy", "relTolerance": 0.5},
            "relTolerance: belongs to match numeric, not to fuzzy",
        ),
        (
            {"strict": "answer_matches", "expected": "a", "match": "semantic", "threshold": 80},
            "threshold: 80 is not less than or equal to 1",
        ),
        ({"aui_logic": "R1"}, 'aui_logic: must be a list, found "R1"'),
        ({"category": 3}, "category: must be a string, found 3"),
    ],
)
def test_a_faulty_evaluation(evaluation, text):
    """Each fault once, at its own key."""
    (problem,) = problems(a_suite(a_test(evaluations=[{"criterion": "c"} | evaluation])))
    assert problem.startswith(f"tests[0].evaluations[0].{text}")


@each_row(
    ("change", "value"),
    [
        ({"tags": ["a", 5]}, ["tests[0].tags[1]: must be a string, found 5"]),
        ({"tags": "a"}, ['tests[0].tags: must be a list, found "a"']),
        ({"turns": []}, ["tests[0].turns: needs at least one item"]),
        ({"turns": [{}]}, ["tests[0].turns[0].user: is missing"]),
        ({"turns": "auto"}, ['tests[0].turns: must be a list, found "auto"']),
        ({"evaluations": []}, ["tests[0].evaluations: needs at least one item"]),
        ({"userInfo": []}, ["tests[0].userInfo: must be an object, found []"]),
        ({"minScore": 101}, ["tests[0].minScore: 101 is not less than or equal to 100"]),
        ({"loops": 0}, ["tests[0].loops: 0 is not greater than or equal to 1"]),
        ({"loops": 10**9}, ["tests[0].loops: 1000000000 is not less than or equal to 1000"]),
        ({"maxTurns": 10**9}, ["tests[0].maxTurns: 1000000000 is not less than or equal to 1000"]),
        ({"optimalTools": []}, ["tests[0].optimalTools: needs at least one item"]),
        ({"optimalTools": [" "]}, ["tests[0].optimalTools[0]: must not be empty"]),
        ({"optimalTools": "PAY"}, ['tests[0].optimalTools: must be a list, found "PAY"']),
        ({"critical": "yes"}, ['tests[0].critical: must be true or false, found "yes"']),
        (
            {"evaluations": [{"criterion": "c", "weight": 0}]},
            ["tests[0].evaluations: all weights are 0, so nothing can be scored"],
        ),
        ({"turns": ["Hi"]}, ['tests[0].turns[0]: must be an object, found "Hi"; write { user: … }']),
        (
            {"evaluations": ["Is kind"]},
            ['tests[0].evaluations[0]: must be an object, found "Is kind"; write { criterion: … }'],
        ),
        ({"tgas": []}, ["tests[0].tgas: unknown key; did you mean 'tags'?"]),
        (
            {"evaluations": [{"criterion": "c", "stric": "escalated"}]},
            ["tests[0].evaluations[0].stric: unknown key; did you mean 'strict'?"],
        ),
    ],
)
def test_a_faulty_test(change, value):
    """What a test may not be."""
    assert problems(a_suite(a_test(**change))) == value


def test_two_tests_of_one_name():
    """Histories are matched by name."""
    assert problems(a_suite(a_test(), a_test())) == [
        "tests[1].name: the name 'one' is already used by tests[0]"
    ]


@pytest.mark.parametrize("value", [None, [], "text", 5])
def test_a_file_that_is_no_suite(value):
    """Not even an object: one message."""
    with pytest.raises(SuiteError, match=r"s\.json:1:1: must be an object"):
        load(json.dumps(value), "s.json", Reading())


def test_comments_are_passed_over():
    """`$schema` and `x-…` on every level that is ours; in the user's data they are data."""
    test = a_test(
        **{"x-note": 1},
        turns=[{"user": "hi", "x-why": "greeting"}],
        evaluations=[{"criterion": "c", "x-ticket": "T-1"}],
        userInfo={"x-plan": "Pro"},
    )
    suite = read(a_suite(test, **{"$schema": "./suite.schema.json", "x-owner": "team"})).suite
    assert suite.tests[0].user_info == {"x-plan": "Pro"}


def test_yaml_is_the_same_suite():
    """A suite means the same in both formats."""
    text = """
name: S
agentId: a
apiKey: key-123456
tests:
  - name: one
    guidelines: Be brief.
    turns: [{user: hi}]
    evaluations: [{criterion: The agent greets}]
"""
    assert load(text, "s.yaml", Reading()).suite == read(a_suite()).suite


def test_references_are_replaced_and_remembered_as_secrets():
    """In any string value; `$${` is literal, a default is no secret, `${env:NAME}` is none either."""
    loaded = read(
        a_suite(
            a_test(
                guidelines="$${NOT} ${TONE:-kind} ${EMPTY:-filled}",
                userInfo={"mail": "me@${HOST}", "region": "${env:REGION}"},
            ),
            apiKey="${AUI_KEY}",
        ),
        environ={"AUI_KEY": "secret-key-1", "HOST": "mail.example", "REGION": "eu-central-1", "EMPTY": ""},
    )
    (test,) = loaded.suite.tests
    assert loaded.suite.api_key.get_secret_value() == "secret-key-1"
    assert test.guidelines == "${NOT} kind filled"
    assert test.user_info == {"mail": "me@mail.example", "region": "eu-central-1"}
    assert loaded.secrets == {"secret-key-1", "mail.example"}
    assert loaded.warnings == ()


def test_a_short_secret_is_warned_about():
    """It will not be redacted, and its owner should know."""
    loaded = read(a_suite(a_test(userInfo={"pin": "${PIN}"})), environ={"PIN": "1234"})
    (warning,) = loaded.warnings
    assert "tests[0].userInfo.pin: the value of PIN has fewer than 8 characters" in str(warning)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (
            "${NOPE}",
            "${NOPE}: the environment variable NOPE is not set; set it, or write a default: ${NOPE:-…}",
        ),
        ("${A-B}", "${A-B}: is not a variable's name; write $${ for a literal ${"),
    ],
)
def test_a_reference_to_nothing(text, output):
    """An error that names it."""
    assert problems(a_suite(a_test(guidelines=text))) == [f"tests[0].guidelines: {output}"]


def test_untrusted_suites_name_no_endpoint_and_read_no_environment():
    """In events where foreign code meets secrets."""
    suite = a_suite(a_test(guidelines="${HOME}"), baseUrl="https://evil.example")
    items = problems(suite, environ={"HOME": "/home/me"}, distrusted="in the event pull_request_target")
    assert [line.split(":")[0] for line in items] == ["tests[0].guidelines", "baseUrl"]
    assert all("in the event pull_request_target" in line for line in items)
    assert read(a_suite(), distrusted="in the event workflow_run").suite.name == "S"


def test_a_key_has_one_spelling():
    """What is refused as `baseUrl` cannot come in as `base_url`, and no key stands there twice."""
    suite = a_suite(a_test(user_info={}), base_url="https://evil.example", adapter_options={"send": {}})
    for where in (None, "in the event pull_request_target"):
        assert problems(suite, distrusted=where) == [
            "tests[0].user_info: unknown key; did you mean 'userInfo'?",
            "base_url: unknown key; did you mean 'baseUrl'?",
            "adapter_options: unknown key; did you mean 'adapterOptions'?",
        ]


def test_problems_never_show_a_secret():
    """A value from the environment in the wrong place is quoted without it."""
    (problem,) = problems(a_suite(adapter="${ADAPTER}"), environ={"ADAPTER": "sk-very-secret"})
    assert "sk-very-secret" not in problem
    assert "***" in problem


def test_a_key_in_the_wrong_place_is_not_shown():
    """Nor is a name of millions of characters."""
    problem_texts = problems(
        a_suite() | {"tests": {"apiKey": "sk-secret-1"}, "x" * 9999: 1, "apiKey": ["sk-secret-2"]}
    )
    assert "sk-secret" not in " ".join(problem_texts)
    assert max(map(len, problem_texts)) < 700


def test_fields_that_the_wire_does_not_have_are_warned_about():
    """`model` and `systemPrompt` are accepted and not sent."""
    loaded = read(a_suite(a_test(systemPrompt="Be nice."), model="m"))
    assert [warning.path for warning in loaded.warnings] == ["model", "tests[0].systemPrompt"]


def test_a_secret_in_a_name_is_warned_about():
    """Two names that are taken out look the same; in the user's data it is as it should be."""
    test = a_test(name="t ${A}", tags=["${A}"], userInfo={"name": "${A}", "category": "${A}"})
    loaded = read(a_suite(test), environ={"A": "value-of-a"})
    assert [warning.path for warning in loaded.warnings] == ["tests[0].name", "tests[0].tags[0]"]
    assert all("${env:A}" in warning.message for warning in loaded.warnings)


@pytest.mark.parametrize("key", ["${AGENT_KEY}", "Bearer ${AGENT_KEY}", "${AGENT_KEY:-sk-literal-key}"])
def test_a_refused_key_is_called_by_its_variable(key):
    """A variable's name is no secret; the default beside it may be one."""
    suite = a_suite(
        apiKey=key,
        adapter="openai",
        baseUrl="https://gateway.example/v1?key=${AGENT_KEY}",
        adapterOptions={"headers": {"Authorization": key}},
    )
    items = problems(suite, environ={}, distrusted="in the event issue_comment")
    named = [line for line in items if "${AGENT_KEY}: a suite may not read the environment" in line]
    assert [line.split(":")[0] for line in named] == [
        "apiKey",
        "baseUrl",
        "adapterOptions.headers.Authorization",
    ]
    assert "sk-literal-key" not in "".join(items)


def test_a_key_beside_a_refused_reference_is_not_shown():
    """Only the reference is no secret."""
    suite = a_suite(apiKey="sk-literal-key ${NOPE}", category="sk-literal-key")
    message = "".join(problems(suite, environ={}))
    assert "${NOPE}: the environment variable NOPE is not set" in message
    assert "sk-literal-key" not in message


def test_untrusted_suites_name_no_function():
    """A check that is code would run in the job that has the secrets."""
    check = {"criterion": "c", "strict": "python", "function": "checks:refunded"}
    suite = a_suite(a_test(evaluations=[check]))
    assert read(suite).suite.name == "S"
    (problem,) = problems(suite, distrusted="in the event pull_request_target")
    assert problem.startswith(
        "tests[0].evaluations[0].function: a suite may not name a function to run in the event"
    )


def test_a_schema_of_a_suite_in_no_file():
    """There is nothing that its path could be beside."""
    check = {"criterion": "c", "strict": "json_schema", "schema": "a.json"}
    (problem,) = problems(a_suite(a_test(evaluations=[check])))
    assert problem.startswith(
        "tests[0].evaluations[0].schema: 'a.json' is a path, but this suite was not read from a file"
    )


def test_a_quarantine_that_has_ended_is_a_problem_with_its_place():
    """It counts through its last day; the place is that of the day."""
    suite = a_suite(a_test(quarantine={"reason": "flaky sandbox", "until": "2026-11-30", "owner": "Ann"}))
    quarantine = read(suite, today=date(2026, 11, 30)).suite.tests[0].quarantine
    assert (quarantine.reason, quarantine.until, quarantine.owner) == (
        "flaky sandbox",
        date(2026, 11, 30),
        "Ann",
    )
    (problem,) = problems(suite, today=date(2026, 12, 1))
    assert problem.startswith("tests[0].quarantine.until: the quarantine of 'one' ended on 2026-11-30. Fix ")


@pytest.mark.parametrize("until", ["soon", "2026-02-30", 20261130, None, "2026-11-30T10:00:00"])
def test_a_quarantine_needs_a_day_and_a_reason(until):
    """One without an end would be a deleted test that still costs money."""
    (problem,) = problems(a_suite(a_test(quarantine={"reason": "flaky", "until": until})))
    assert problem.startswith("tests[0].quarantine.until: must be a day such as 2026-12-31, found ")
    wrong = problems(a_suite(a_test(quarantine={"reason": " ", "untill": "2026-11-30"})))
    paths = {problem.partition(":")[0].removeprefix("tests[0].quarantine.") for problem in wrong}
    assert paths == {"reason", "until", "untill"}


def test_a_day_of_yaml_needs_no_quotes():
    """As people write it."""
    text = json.dumps(a_suite(a_test(quarantine={"reason": "r", "until": "@", "x-ticket": 7})))
    loaded = load(text.replace('"@"', "2026-11-30"), "s.yaml", Reading())
    assert loaded.suite.tests[0].quarantine.until == date(2026, 11, 30)
