import copy
import json
from datetime import date

import pytest
import yaml
from each_row import each_row
from hypothesis import example, given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.domain.errors import SuiteError
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import LoadedSuite, load
from ci_evals.planning.selection import Selection, plan


def make_test(**fields) -> dict:
    fields = {"turns": [{"user": "hi"}], "evaluations": [{"criterion": "The agent greets"}]} | fields
    return {"name": "one", "guidelines": "Be brief."} | fields


def make_suite(*tests: dict, **fields) -> dict:
    fields = {"tests": list(tests) or [make_test()]} | fields
    return {"name": "S", "agentId": "a", "apiKey": "key-123456"} | fields


def read(suite: dict, **reading) -> LoadedSuite:
    return load(json.dumps(suite), "s.json", Reading(**reading))


def problems(suite: dict, **reading) -> list[str]:
    """The problems as `path: message`."""
    with pytest.raises(SuiteError) as refused:
        read(suite, **reading)
    return [f"{problem.path}: {problem.message}" for problem in refused.value.problems]


def test_suite_with_every_field_of_the_original_format_is_read():
    evaluations = [
        {"criterion": "c", "weight": 2, "category": "tone", "aui_logic": ["R1"]},
        {"criterion": "c", "strict": "tool_not_used", "toolName": "T", "beforeTurn": 3},
        {"criterion": "c", "strict": "param_equals", "paramName": "p", "paramValue": 29.9},
    ]
    turns = [{"user": "hi", "timeout": 5, "expectation": "greets"}, {"user": "auto"}]
    user = {"plan": "Pro", "days": 3, "nested": {"a": [1]}}
    test = make_test(userInfo=user, systemPrompt="Be nice.", turns=turns, evaluations=evaluations)
    suite = read(make_suite(test | {"tags": ["billing"]}, model="m", judgeModel="j")).suite
    (test,) = suite.tests
    assert (suite.max_turns, suite.adapter, suite.judge_model) == (7, "aui", "j")
    assert [turn.timeout for turn in test.turns] == [5, 120]
    assert [type(e).__name__ for e in test.evaluations] == ["Judged", "ToolNotUsed", "ParamEquals"]
    assert test.evaluations[0].aui_logic == ("R1",)
    assert len(suite.turns_of(test)) == 7
    assert suite.turns_of(test)[-1].auto


def test_all_problems_are_reported_with_line_column_and_path():
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
    places = ["2:56: maxturns", "4:76: tests[0].turns[0].timeout"]
    places += ["6:37: tests[0].evaluations[0].strict", "7:8: tests[0].evaluations[1].toolName"]
    places += ["8:50: tests[0].evaluations[2].toolname"]
    messages = [
        "unknown key; did you mean 'maxTurns'?",
        "-1 is not greater than 0",
        "'tool_use' is not a strict type; did you mean 'tool_used'?",
        "is missing; tool_used needs it",
        "unknown key; did you mean 'toolName'?",
    ]
    lines = [f"evals/s.json:{place}: {message}" for place, message in zip(places, messages, strict=True)]
    assert str(refused.value).splitlines() == lines


def answer(**fields) -> dict:
    return {"strict": "answer_matches"} | fields


@each_row(("evaluation", "text"), [
    ({"weight": -1}, "weight: -1 is not greater than or equal to 0"),
    ({"weight": "2"}, 'weight: must be a number, found "2"'),
    ({"weight": True}, "weight: must be a number, found true"),
    ({"criterion": " "}, "criterion: must not be empty"),
    ({"toolName": "X"}, "toolName: a criterion without 'strict' has no such key"),
    ({"strict": 5}, "strict: must be the name of a strict type"),
    ({"strict": "tool_used", "toolName": 5}, "toolName: must be a string, found 5"),
    ({"strict": "tool_not_used", "toolName": "X", "beforeTurn": 0}, "beforeTurn: 0 is not greater"),
    ({"strict": "tool_not_used", "toolName": "X", "beforeTurn": 1.5}, "beforeTurn: must be a whole number"),
    ({"strict": "param_equals", "paramName": "p"}, "paramValue: is missing; param_equals needs it"),
    ({"strict": "regex", "pattern": "("}, "pattern: '(' is not a regular expression"),
    ({"strict": "contains", "text": "x", "turn": "lst"}, "turn: must be a reply's number (from 1), 'last'"),
    ({"strict": "contains", "text": "x", "turn": 0}, "turn: must be a reply's number"),
    ({"strict": "max_latency", "seconds": 0}, "seconds: 0 is not greater than 0"),
    (answer(), "expected: is missing; answer_matches needs it"),
    (answer(expected=5), "expected: must be a string or a list of strings; put a number"),
    (answer(expected=[]), "expected: needs at least one item"),
    (answer(expected=["a", " "]), "expected[1]: must not be empty"),
    (answer(expected="a", match="fuzy"), "match: 'fuzy' is not one of bidir"),
    (answer(expected="?!"), "expected: '?!' holds nothing that gaia compares"),
    (answer(expected=["5", "5 km"], match="numeric"), "expected: '5 km' is not a n"),
    (answer(expected="a", threshold=0.5), "threshold: belongs to match fuzzy and semantic, not to gaia"),
    (answer(expected="a", match="fuzzy", relTolerance=0.5),
     "relTolerance: belongs to match numeric, not to fuzzy"),
    (answer(expected="a", match="semantic", threshold=80), "threshold: 80 is not less than or equal to 1"),
    ({"aui_logic": "R1"}, 'aui_logic: must be a list, found "R1"'),
    ({"category": 3}, "category: must be a string, found 3"),
])  # fmt: skip
def test_invalid_evaluation_is_refused_once_at_its_key(evaluation, text):
    (problem,) = problems(make_suite(make_test(evaluations=[{"criterion": "c"} | evaluation])))
    assert problem.startswith(f"tests[0].evaluations[0].{text}")


@each_row(("change", "problem"), [
    ({"tags": ["a", 5]}, "tags[1]: must be a string, found 5"),
    ({"tags": "a"}, 'tags: must be a list, found "a"'),
    ({"turns": []}, "turns: needs at least one item"),
    ({"turns": [{}]}, "turns[0].user: is missing"),
    ({"turns": "auto"}, 'turns: must be a list, found "auto"'),
    ({"evaluations": []}, "evaluations: needs at least one item"),
    ({"userInfo": []}, "userInfo: must be an object, found []"),
    ({"minScore": 101}, "minScore: 101 is not less than or equal to 100"),
    ({"loops": 0}, "loops: 0 is not greater than or equal to 1"),
    ({"loops": 10**9}, "loops: 1000000000 is not less than or equal to 1000"),
    ({"maxTurns": 10**9}, "maxTurns: 1000000000 is not less than or equal to 1000"),
    ({"optimalTools": []}, "optimalTools: needs at least one item"),
    ({"optimalTools": [" "]}, "optimalTools[0]: must not be empty"),
    ({"optimalTools": "PAY"}, 'optimalTools: must be a list, found "PAY"'),
    ({"critical": "yes"}, 'critical: must be true or false, found "yes"'),
    ({"evaluations": [{"criterion": "c", "weight": 0}]},
     "evaluations: all weights are 0, so nothing can be scored"),
    ({"turns": ["Hi"]}, 'turns[0]: must be an object, found "Hi"; write { user: … }'),
    ({"evaluations": ["Is kind"]},
     'evaluations[0]: must be an object, found "Is kind"; write { criterion: … }'),
    ({"tgas": []}, "tgas: unknown key; did you mean 'tags'?"),
    ({"evaluations": [{"criterion": "c", "stric": "escalated"}]},
     "evaluations[0].stric: unknown key; did you mean 'strict'?"),
])  # fmt: skip
def test_invalid_test_is_refused_with_one_message(change, problem):
    assert problems(make_suite(make_test(**change))) == [f"tests[0].{problem}"]


def test_suite_in_yaml_equals_the_same_in_json():
    text = f"name: S\nagentId: a\napiKey: key-123456\ntests: [{json.dumps(make_test())}]\n"
    assert load(text, "s.yaml", Reading()).suite == read(make_suite()).suite


def test_comment_keys_are_allowed_everywhere_and_kept_only_in_user_data():
    """`$schema` and `x-…` are comments on every level of the format."""
    turns = [{"user": "hi", "x-why": "greeting"}]
    evaluations = [{"criterion": "c", "x-ticket": "T-1"}]
    test = make_test(turns=turns, evaluations=evaluations, userInfo={"x-plan": "Pro"}, **{"x-note": 1})
    suite = read(make_suite(test, **{"$schema": "./suite.schema.json", "x-owner": "team"})).suite
    assert suite.tests[0].user_info == {"x-plan": "Pro"}


def test_short_secrets_secrets_in_names_and_unsent_fields_cause_warnings():
    loaded = read(make_suite(make_test(userInfo={"pin": "${PIN}"})), environ={"PIN": "1234"})
    (warning,) = loaded.warnings
    assert "tests[0].userInfo.pin: the value of PIN has fewer than 8 characters" in str(warning)
    # Two names that are redacted look the same; in the user's data a secret is as it should be.
    test = make_test(name="t ${A}", tags=["${A}"], userInfo={"name": "${A}", "category": "${A}"})
    loaded = read(make_suite(test), environ={"A": "value-of-a"})
    assert [warning.path for warning in loaded.warnings] == ["tests[0].name", "tests[0].tags[0]"]
    assert all("${env:A}" in warning.message for warning in loaded.warnings)
    loaded = read(make_suite(make_test(systemPrompt="Be nice."), model="m"))
    assert [warning.path for warning in loaded.warnings] == ["model", "tests[0].systemPrompt"]


def test_variable_values_become_secrets_and_unset_or_malformed_ones_are_refused():
    """`$${` is literal; a default and `${env:NAME}` are no secrets."""
    test = make_test(
        guidelines="$${NOT} ${TONE:-kind} ${EMPTY:-filled}",
        userInfo={"mail": "me@${HOST}", "region": "${env:REGION}"},
    )
    environ = {"AUI_KEY": "secret-key-1", "HOST": "mail.example", "REGION": "eu-central-1", "EMPTY": ""}
    loaded = read(make_suite(test, apiKey="${AUI_KEY}"), environ=environ)
    (test,) = loaded.suite.tests
    assert loaded.suite.api_key.get_secret_value() == "secret-key-1"
    assert test.guidelines == "${NOT} kind filled"
    assert test.user_info == {"mail": "me@mail.example", "region": "eu-central-1"}
    assert loaded.secrets == {"secret-key-1", "mail.example"}
    assert loaded.warnings == ()
    unset = "the environment variable NOPE is not set; set it, or write a default: ${NOPE:-…}"
    malformed = "is not a variable's name; write $${ for a literal ${"
    for reference, message in (("${NOPE}", unset), ("${A-B}", malformed)):
        problem = f"tests[0].guidelines: {reference}: {message}"
        assert problems(make_suite(make_test(guidelines=reference))) == [problem]


def test_untrusted_suite_with_endpoint_environment_or_function_is_refused():
    event = "in the event pull_request_target"
    suite = make_suite(make_test(guidelines="${HOME}"), baseUrl="https://evil.example")
    items = problems(suite, environ={"HOME": "/home/me"}, distrusted=event)
    assert [line.split(":")[0] for line in items] == ["tests[0].guidelines", "baseUrl"]
    assert all(event in line for line in items)
    assert read(make_suite(), distrusted="in the event workflow_run").suite.name == "S"
    check = {"criterion": "c", "strict": "python", "function": "checks:refunded"}
    suite = make_suite(make_test(evaluations=[check]))
    assert read(suite).suite.name == "S"
    (problem,) = problems(suite, distrusted=event)
    message = "a suite may not name a function to run in the event"
    assert problem.startswith(f"tests[0].evaluations[0].function: {message}")


def test_snake_case_key_is_refused():
    """In an event that is not trusted, `base_url` would else pass where `baseUrl` does not."""
    suite = make_suite(make_test(user_info={}), base_url="https://evil.example", adapter_options={"send": {}})
    for where in (None, "in the event pull_request_target"):
        assert problems(suite, distrusted=where) == [
            "tests[0].user_info: unknown key; did you mean 'userInfo'?",
            "base_url: unknown key; did you mean 'baseUrl'?",
            "adapter_options: unknown key; did you mean 'adapterOptions'?",
        ]


def test_problems_contain_no_secrets_and_are_short():
    (problem,) = problems(make_suite(adapter="${ADAPTER}"), environ={"ADAPTER": "sk-very-secret"})
    assert "sk-very-secret" not in problem
    assert "***" in problem
    misplaced = {"tests": {"apiKey": "sk-secret-1"}, "x" * 9999: 1, "apiKey": ["sk-secret-2"]}
    result = problems(make_suite() | misplaced)
    assert "sk-secret" not in " ".join(result)
    assert max(map(len, result)) < 700
    suite = make_suite(apiKey="sk-literal-key ${NOPE}", category="sk-literal-key")
    message = "".join(problems(suite, environ={}))
    assert "${NOPE}: the environment variable NOPE is not set" in message
    assert "sk-literal-key" not in message


@each_row("key", ["${AGENT_KEY}", "Bearer ${AGENT_KEY}", "${AGENT_KEY:-sk-literal-key}"])
def test_untrusted_suite_error_names_every_environment_reference(key):
    suite = make_suite(
        apiKey=key,
        adapter="openai",
        baseUrl="https://gateway.example/v1?key=${AGENT_KEY}",
        adapterOptions={"headers": {"Authorization": key}},
    )
    items = problems(suite, environ={}, distrusted="in the event issue_comment")
    named = [line for line in items if "${AGENT_KEY}: a suite may not read the environment" in line]
    paths = ["apiKey", "baseUrl", "adapterOptions.headers.Authorization"]
    assert [line.split(":")[0] for line in named] == paths
    assert "sk-literal-key" not in "".join(items)


def test_duplicate_name_non_object_and_schema_path_without_a_file_are_refused():
    duplicate = "tests[1].name: the name 'one' is already used by tests[0]"
    assert problems(make_suite(make_test(), make_test())) == [duplicate]
    for value in (None, [], "text", 5):
        with pytest.raises(SuiteError, match=r"s\.json:1:1: must be an object"):
            load(json.dumps(value), "s.json", Reading())
    check = {"criterion": "c", "strict": "json_schema", "schema": "a.json"}
    (problem,) = problems(make_suite(make_test(evaluations=[check])))
    message = "'a.json' is a path, but this suite was not read from a file"
    assert problem.startswith(f"tests[0].evaluations[0].schema: {message}")


def test_quarantine_needs_a_reason_and_a_day_and_is_refused_from_the_day_after():
    fields = {"reason": "flaky sandbox", "until": "2026-11-30", "owner": "Ann"}
    suite = make_suite(make_test(quarantine=fields))
    quarantine = read(suite, today=date(2026, 11, 30)).suite.tests[0].quarantine
    assert (quarantine.reason, quarantine.owner) == ("flaky sandbox", "Ann")
    assert quarantine.until == date(2026, 11, 30)
    (problem,) = problems(suite, today=date(2026, 12, 1))
    assert problem.startswith("tests[0].quarantine.until: the quarantine of 'one' ended on 2026-11-30. Fix ")
    for until in ("soon", "2026-02-30", 20261130, None, "2026-11-30T10:00:00"):
        (problem,) = problems(make_suite(make_test(quarantine={"reason": "flaky", "until": until})))
        assert problem.startswith("tests[0].quarantine.until: must be a day such as 2026-12-31, found ")
    wrong = problems(make_suite(make_test(quarantine={"reason": " ", "untill": "2026-11-30"})))
    paths = {problem.partition(":")[0].removeprefix("tests[0].quarantine.") for problem in wrong}
    assert paths == {"reason", "until", "untill"}
    text = json.dumps(make_suite(make_test(quarantine={"reason": "r", "until": "@", "x-ticket": 7})))
    unquoted = load(text.replace('"@"', "2026-11-30"), "s.yaml", Reading())
    assert unquoted.suite.tests[0].quarantine.until == date(2026, 11, 30)


VALID = {
    "name": "S", "agentId": "a", "apiKey": "key-123456",
    "tests": [
        {
            "name": "one", "guidelines": "g", "userInfo": {"plan": "Pro"},
            "turns": [{"user": "hi", "timeout": 5}],
            "evaluations": [
                {"criterion": "c", "weight": 2, "aui_logic": ["R"]},
                {"criterion": "d", "strict": "contains", "text": "x", "turn": 1},
                {"criterion": "e", "strict": "param_equals", "paramName": "p", "paramValue": {"a": [1]}},
            ],
            "tags": ["t"],
        },
    ],
}  # fmt: skip
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    plain | st.sampled_from(["auto", "${A}", "escalated"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def paths_in(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths_in(inner, (*path, key))


PATHS = [path for path in paths_in(VALID) if path]


def changed(path, value):
    suite = copy.deepcopy(VALID)
    here = suite
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return suite


def read_and_plan(text: str, file: str) -> None:
    try:
        loaded = load(text, file, Reading(environ={"A": "value-of-a"}))
    except SuiteError as error:
        refused = error
    else:
        plan([loaded], Selection(), 2)
        return
    assert refused.problems
    assert all(p.line >= 1 and p.column >= 1 and p.message for p in refused.problems)


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(st.sampled_from(PATHS), values)
@example(("tests", 0, "userInfo", "plan"), float("inf"))
@example(("tests", 0, "evaluations", 0, "weight"), float("nan"))
@example(("tests", 0, "evaluations", 0, "strict"), {"a": 1})
@example(path=("tests", 0, "evaluations", 1, "turn"), value=True)
@example(path=("maxTurns",), value=10**9)
def test_any_value_at_any_path_is_planned_or_refused_with_a_location(path, value):
    suite = changed(path, value)
    read_and_plan(json.dumps(suite), "s.json")
    read_and_plan(yaml.safe_dump(suite), "s.yaml")


@settings(max_examples=examples(200))
@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
@example("9" * 5000)
@example('{"a": 1e999}')
@example("- 1e999999")
@example("!!python/object:os.system x")
@example("!!binary x")
@example("%TAG ! x\n")
def test_any_text_is_planned_or_refused_with_a_location(text):
    read_and_plan(text, "s.json")
    read_and_plan(text, "s.yaml")
