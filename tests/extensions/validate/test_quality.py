"""What `validate --strict` warns of, and what it leaves in peace."""

import json

import pytest
from each_row import each_row

from ci_evals.adapters.suites import bundled_names, sources
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load

STRICT = {"criterion": "The refund is started", "strict": "tool_used", "toolName": "REFUND_REQUEST"}
REFUSED = {"criterion": "No discount", "strict": "tool_not_used", "toolName": "DISCOUNT_OFFER"}
TONE = {"criterion": "The agent is friendly"}


def a_test(name="one", **fields):
    return {
        "name": name,
        "guidelines": "You are Ida and want your money back.",
        "turns": [{"user": "Hello"}],
        "evaluations": [STRICT, REFUSED, TONE],
        "tags": ["refunds"],
    } | fields


def warnings(*tests, **agent):
    suite = {"name": "S", "agentId": "a", "apiKey": "key-123456", "tests": list(tests)} | agent
    loaded = load(json.dumps(suite, indent=1), "s.json", Reading())
    return [f"{problem.path}: {problem.message}" for problem in weaknesses(loaded)]


def test_a_good_suite_has_no_weakness():
    """Nothing is said where nothing is wrong."""
    assert warnings(a_test(), a_test("two")) == []


@each_row("name", bundled_names())
def test_bundled_suites_are_examples(name):
    """Of suites without a weakness."""
    (source,) = sources(name)
    assert [str(problem) for problem in weaknesses(load(source.text, source.file, Reading()))] == []


CALLED = {"criterion": "It is refunded", "strict": "tool_called", "toolName": "refund"}
WITH_ARGS = CALLED | {"args": {"amount": 42}}
HTTP = {"send": {"body": "{{message}}"}, "reply": {"text": "$.text", "toolCalls": "$.calls"}}


@pytest.mark.parametrize(
    "agent",
    [
        {"adapter": "openai", "model": "m"},
        {"adapter": "http", "baseUrl": "http://127.0.0.1:1", "adapterOptions": HTTP},
        {"adapter": "python:a:b"},
        {"trace": "otlp"},
    ],
)
def test_a_tool_that_may_be_called_with_anything(agent):
    """For an agent that reports arguments, which a check with `args` elsewhere in the suite shows too."""
    elsewhere = [a_test("two", evaluations=[WITH_ARGS, REFUSED])] if "python:a:b" in agent.values() else []
    (warning,) = warnings(a_test(evaluations=[REFUSED, CALLED]), *elsewhere, **agent)
    assert warning.startswith(
        "tests[0].evaluations[1].toolName: a call of refund passes whatever its arguments"
    )
    assert "add 'args'" in warning
    (warning,) = warnings(a_test(evaluations=[STRICT, REFUSED]), *elsewhere, **agent)
    assert "use tool_called with 'args'" in warning
    param = {"criterion": "c", "strict": "param_equals", "paramName": "amount", "paramValue": 42}
    never = CALLED | {"times": 0}
    for enough in ([WITH_ARGS, REFUSED], [CALLED, param, REFUSED], [never, REFUSED]):
        assert warnings(a_test(evaluations=enough), *elsewhere, **agent) == []


def test_an_agent_that_reports_names_alone_or_a_tool_without_arguments():
    """Nothing more could be checked."""
    assert warnings(a_test(evaluations=[CALLED, REFUSED])) == []
    request = {"tools": [{"type": "function", "function": {"name": "refund"}}]}
    agent = {"adapter": "openai", "model": "m", "adapterOptions": {"request": request}}
    assert warnings(a_test(evaluations=[CALLED, REFUSED]), **agent) == []


def test_a_judge_alone():
    """Told once for a suite without any strict check, else at each test."""
    (warning,) = warnings(a_test(evaluations=[TONE]))
    assert warning.startswith("tests: no test has a strict check")
    (warning,) = warnings(a_test(), a_test("two", evaluations=[TONE]))
    assert warning.startswith("tests[1].evaluations: has no strict check")


def test_tags():
    """A test that no tag reaches, or a suite without tags."""
    assert warnings(a_test(), a_test("two", tags=[])) == [
        "tests[1]: has no tag: `tag=` never selects this test"
    ]
    (warning,) = warnings(a_test(tags=[]), a_test("two", tags=[]))
    assert warning.startswith("tests: no test has a tag")


def test_happy_paths_only():
    """Unless a name, a tag, a criterion or a check tells of something else."""
    happy = {"evaluations": [STRICT, TONE]}
    (warning,) = warnings(a_test(**happy), a_test("two", **happy))
    assert warning.startswith("tests: all tests are happy paths")
    assert warnings(a_test(**happy), a_test("Refuses a late refund", **happy)) == []
    assert warnings(a_test(**happy), a_test("two", tags=["edge-case"], **happy)) == []
    assert warnings(a_test(**happy), a_test("two")) == []


def test_a_check_before_the_first_turn():
    """It looks at nothing."""
    check = {"criterion": "Not at once", "strict": "tool_not_used", "toolName": "REFUND", "beforeTurn": 1}
    (warning,) = warnings(a_test(evaluations=[STRICT, REFUSED, check]))
    assert warning.startswith("tests[0].evaluations[2].beforeTurn: is 1")
    assert warnings(a_test(evaluations=[STRICT, REFUSED, check | {"beforeTurn": 2}])) == []


@pytest.mark.parametrize(
    "criterion",
    [
        "The agent apologises and offers a refund",
        "The agent names the deadline; it offers a way out",
        "The agent is polite. It never blames the user",
        "The agent asks for the order and then confirms it",
        "The answer is right and the agent stays calm",
    ],
)
def test_a_criterion_that_asks_two_things(criterion):
    """A half fulfilled one can be judged either way."""
    (warning,) = warnings(a_test(evaluations=[STRICT, REFUSED, {"criterion": criterion}]))
    assert warning.startswith("tests[0].evaluations[2].criterion: asks two things at once")


@pytest.mark.parametrize(
    "criterion",
    [
        "The agent keeps a friendly and professional tone",
        "The agent names name and address of the shop",
        "The terms and conditions are quoted correctly",
        "The agent says correctly how many days are left afterwards (12 - 5 = 7)",
        "The agent does not promise paid leave in the first year, e.g. as a favour.",
    ],
)
def test_a_criterion_that_asks_one_thing(criterion):
    """Two nouns or two adjectives are one thing."""
    assert warnings(a_test(evaluations=[STRICT, REFUSED, {"criterion": criterion}])) == []


@pytest.mark.parametrize(
    "criterion",
    ["REFUND_REQUEST is started", "The refund workflow was executed", "The eligibility rule fires"],
)
def test_a_judge_asked_for_what_the_trace_shows(criterion):
    """A strict check costs nothing and does not err."""
    (warning,) = warnings(a_test(evaluations=[STRICT, REFUSED, {"criterion": criterion}]))
    assert "asks the judge what the trace shows" in warning


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        (
            {"guidelines": "The agent should refuse at first."},
            "tests[0].guidelines: say what the agent should do",
        ),
        (
            {"guidelines": "Ask for REFUND_REQUEST."},
            "tests[0].guidelines: give away the name that evaluations[0] looks for",
        ),
        (
            {
                "guidelines": "You ask for the capital. It is Canberra.",
                "evaluations": [
                    STRICT,
                    REFUSED,
                    {"criterion": "c", "strict": "contains", "text": "canberra", "turn": 1},
                ],
            },
            "tests[0].guidelines: give away the answer that evaluations[2] looks for",
        ),
        (
            {
                "turns": [{"user": "Is it Canberra?"}],
                "evaluations": [
                    STRICT,
                    REFUSED,
                    {"criterion": "c", "strict": "contains", "text": "Canberra", "turn": 1},
                ],
            },
            "tests[0].turns[0].user: gives away the answer",
        ),
    ],
)
def test_a_user_who_gives_the_answer_away(fields, value):
    """The agent would take it from him."""
    (found,) = warnings(a_test(**fields))
    assert found.startswith(value)


def test_a_workflow_that_is_optimal_and_forbidden():
    """Not where it is forbidden up to a turn alone."""
    late = REFUSED | {"toolName": "REFUND_REQUEST", "beforeTurn": 2}
    good = a_test(optimalTools=["REFUND_REQUEST"], evaluations=[STRICT, late, REFUSED, TONE])
    assert warnings(good, a_test("two", optimalTools=["REFUND_REQUEST", "DISCOUNT_OFFER"])) == [
        "tests[1].optimalTools[1]: names DISCOUNT_OFFER, which evaluations[1] forbids"
    ]


def test_questions_with_their_answers():
    """They have no happy path, and may name their choices; guidelines must not give the answer away."""
    quiz = {
        "turns": [{"user": "Is the capital Sydney or Canberra?"}],
        "maxTurns": 1,
        "evaluations": [{"criterion": "right", "strict": "answer_matches", "expected": "Canberra"}],
    }
    assert warnings(a_test(**quiz), a_test("two", **quiz)) == []
    (warning,) = warnings(a_test(**quiz, guidelines="It is Canberra."), a_test("two", **quiz))
    assert warning.startswith("tests[0].guidelines: give away the answer")


def test_a_user_may_say_what_is_his_own():
    """An agent that repeats it has listened."""
    check = {"criterion": "The order is named", "strict": "contains", "text": "HL-20418", "turn": 1}
    fields = {"userInfo": {"order": "HL-20418"}, "turns": [{"user": "It is HL-20418."}]}
    assert warnings(a_test(evaluations=[STRICT, REFUSED, check], **fields)) == []


def test_a_text_check_of_a_conversation_that_ends_open():
    """Without a model it mostly has one turn, with one up to seven, and another reply is the last."""
    check = {"criterion": "The order is named", "strict": "contains", "text": "HL-20418"}
    (warning,) = warnings(a_test(evaluations=[STRICT, REFUSED, check]))
    assert warning == (
        "tests[0].evaluations[2]: contains checks the last reply, which is that of turn 1 or a later one, "
        'up to 7, since maxTurns adds auto turns; write "turn": 1 or "any", or in the test "maxTurns": 1'
    )
    evaluations = [STRICT, REFUSED, check]
    assert warnings(a_test(evaluations=evaluations, maxTurns=1)) == []
    assert warnings(a_test(evaluations=evaluations, turns=[{"user": "Hello"}, {"user": "auto"}])) == []
    for turn in (1, "any", "last"):
        assert warnings(a_test(evaluations=[STRICT, REFUSED, check | {"turn": turn}])) == []


def test_slips_in_checks():
    """Twice the same, without weight, or blind for all but the last reply."""
    again = STRICT | {"criterion": "In other words"}
    (warning,) = warnings(a_test(evaluations=[STRICT, REFUSED, again]))
    assert warning == "tests[0].evaluations[2]: asks the same as evaluations[0] of this test"
    (warning,) = warnings(
        a_test(evaluations=[STRICT, REFUSED, TONE, {"criterion": "the agent is  Friendly"}])
    )
    assert warning.endswith("asks the same as evaluations[2] of this test")
    (warning,) = warnings(a_test(evaluations=[STRICT, REFUSED, TONE | {"weight": 0}]))
    assert warning.startswith("tests[0].evaluations[2].weight: is 0")
    words = {"criterion": "No code", "strict": "not_regex", "pattern": "[A-Z]{9}"}
    (warning,) = warnings(a_test(evaluations=[STRICT, REFUSED, words]))
    assert warning.endswith('write "turn": "any"')
    assert warnings(a_test(evaluations=[STRICT, REFUSED, words | {"turn": "any"}])) == []
    assert warnings(a_test(evaluations=[STRICT, REFUSED, words], maxTurns=1)) == []


LEVELS = [
    {"score": 0.9, "name": "good", "description": "As it should be."},
    {"score": 0.2, "name": "bad", "description": "As it should not."},
]
BARE = [{"score": 1, "name": "good"}, {"score": 0, "name": "bad", "description": "As it should not."}]


def of_rubric(**fields):
    found = warnings(
        a_test(evaluations=[STRICT, REFUSED, {"criterion": "The plan is good and says why"} | fields])
    )
    return [text.removeprefix("tests[0].evaluations[2].") for text in found]


@each_row(
    ("fields", "value"),
    [
        ({"rubric": LEVELS}, None),
        ({"dimensions": ["clarity", {"name": "tact", "description": "d", "rubric": LEVELS}]}, None),
        ({"rubric": BARE}, "rubric[0]: has no description: the judge must guess"),
        (
            {"dimensions": [{"name": "clarity", "rubric": BARE}]},
            "dimensions[0].rubric[0]: has no description",
        ),
        (
            {"dimensions": [{"name": "tact"}], "rubric": LEVELS},
            "dimensions[0]: has no description: what 'tact' means is",
        ),
        ({"dimensions": ["clarity", {"name": "usefulness", "weight": 0}]}, "dimensions[1].weight: is 0"),
        (
            {"dimensions": [{"name": "clarity", "rubric": LEVELS}], "rubric": LEVELS},
            "rubric: is used by no dimension",
        ),
        (
            {"rubric": LEVELS, "passAt": 0.2},
            "passAt: is 0.2, which the worst levels come to: no conversation can fail",
        ),
        (
            {"rubric": LEVELS, "passAt": 0.95},
            "passAt: is 0.95, and the best levels come to 0.9: no conversation can pass",
        ),
        (
            {
                "dimensions": ["clarity", {"name": "tact", "description": "d", "rubric": LEVELS}],
                "passAt": 0.96,
            },
            "passAt: is 0.96, and the best levels come to 0.95",
        ),
    ],
)
def test_unclear_rubrics_are_reported(fields, value):
    """Levels and dimensions that leave the judge to guess, and thresholds that tell nothing apart."""
    found = of_rubric(**fields)
    assert len(found) == (value is not None)
    assert not value or found[0].startswith(value)
