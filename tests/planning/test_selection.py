import json

import pytest
from each_row import each_row

from ci_evals.domain.errors import UsageError
from ci_evals.planning import workload
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.planning.paths import touches
from ci_evals.planning.selection import Selection, plan


def loaded(*tests: dict, environ=None, **suite):
    plain = {"name": "t", "guidelines": "g", "turns": [{"user": "hi"}], "evaluations": [{"criterion": "c"}]}
    tests = [plain | test for test in tests]
    text = json.dumps({"name": "S", "agentId": "a", "apiKey": "key-123456", "tests": tests} | suite)
    return load(text, "s.json", Reading(environ=environ or {}))


TESTS = loaded(
    {"name": "Refund in time", "tags": ["refund", "smoke"]},
    {"name": "Refund too late", "tags": ["refund"]},
    {"name": "Cancel", "tags": ["smoke"]},
)


@each_row(("names", "tags", "chosen"), [
    (None, None, ["Refund in time", "Refund too late", "Cancel"]),
    ("refund", None, ["Refund in time", "Refund too late"]),
    ("late, cancel", None, ["Refund too late", "Cancel"]),
    (None, "smoke", ["Refund in time", "Cancel"]),
    (None, "smoke,nothing", ["Refund in time", "Cancel"]),
    ("refund", "smoke", ["Refund in time"]),
    ("", "", ["Refund in time", "Refund too late", "Cancel"]),
])  # fmt: skip
def test_tests_are_selected_by_name_part_and_tag(names, tags, chosen):
    (suite,) = plan([TESTS], Selection.of(names, tags), 1).suites
    assert [test.name for test in suite.tests] == chosen


@each_row(("names", "chosen"), [
    ("Refund", ["Refund"]),
    ("refund", ["Refund", "Refund, then cancel"]),
    ("ref", ["Refund", "Refund, then cancel"]),
    ("Refund, then cancel", ["Refund, then cancel"]),
    (["Refund, then cancel", "Cancel"], ["Refund, then cancel", "Cancel"]),
    ("Refund, then cancel\nRefund", ["Refund", "Refund, then cancel"]),
    ("then, fund", ["Refund", "Refund, then cancel"]),
    ([], ["Refund", "Refund, then cancel", "Cancel"]),
])  # fmt: skip
def test_whole_name_selects_only_that_test(names, chosen):
    tests = loaded({"name": "Refund"}, {"name": "Refund, then cancel"}, {"name": "Cancel"})
    (suite,) = plan([tests], Selection.of(names, None), 1).suites
    assert [test.name for test in suite.tests] == chosen


def test_empty_or_unmatched_selection_is_refused():
    for names, tags in ((",", None), (None, " , "), (" ", None)):
        with pytest.raises(UsageError, match="contains no name"):
            Selection.of(names, tags)
    with pytest.raises(UsageError, match=r"'Refund in time', .*Tags: refund, smoke"):
        plan([TESTS], Selection.of("reffund", None), 1)


def test_trials_are_planned_suite_by_suite_and_test_by_test():
    planned = plan([loaded({"name": "a", "loops": 1}, {"name": "b"}), TESTS], Selection(), 2)
    order = [(trial.suite, trial.test, trial.index) for trial in planned.trials]
    assert order[:5] == [(0, 0, 1), (0, 1, 1), (0, 1, 2), (1, 0, 1), (1, 0, 2)]


def test_workload_counts_tests_trials_turns_and_calls():
    strict = {"criterion": "d", "strict": "escalated"}
    test = {"name": "a", "maxTurns": 3, "evaluations": [{"criterion": "c"}, strict]}
    suite = loaded(test, {"name": "b", "turns": [{"user": "x"}] * 6}, maxTurns=4)
    work = workload.of_plan(plan([suite], Selection(), 2))
    assert (work.tests, work.trials, work.turns, work.user_calls) == (2, 4, 18, 4)
    assert (work.strict, work.judge_calls) == (2, 4)
    assert (work.agent_calls, work.user_calls, work.judge_calls) == (22, 4, 4)
    assert work.needs_llm


def test_plan_without_generated_turns_or_judged_criteria_needs_no_llm():
    suite = loaded({"maxTurns": 1, "evaluations": [{"criterion": "d", "strict": "escalated"}]})
    assert not workload.of_plan(plan([suite], Selection(), 1)).needs_llm


def digest(*tests, **suite) -> str:
    return plan([loaded(*tests, **suite)], Selection(), 1).suites[0].test_digests[0]


def test_digest_of_test_changes_only_with_settings_that_affect_results():
    same = digest({})
    assert digest({"tags": ["x"], "critical": True, "minScore": 5}) == same
    assert digest({"optimalTools": ["REFUND_REQUEST"]}) == same
    assert digest({}, apiKey="another-key", name="Other") == same
    assert digest({"turns": [{"user": "hi"}] + [{"user": "auto"}] * 6}) == same
    assert digest({}, model="another-model", agentId="another", adapter="python:a:b") == same
    assert digest({"guidelines": "other"}) != same
    assert digest({"evaluations": [{"criterion": "c", "weight": 2}]}) != same
    assert digest({"maxTurns": 3}) != same
    secret = [digest({"guidelines": "${A}"}, environ={"A": value}) for value in ("secret-one", "secret-two")]
    assert secret[0] == secret[1]


SECRETS = {"CANARY": "canary-4471", "OTHER": "other-9035", "CODE": "code-1207"}


def leak_check(text: str, environ=SECRETS, **test):
    """The digests of a criterion against a leak, of its test's definition, and of the test."""
    check = {"criterion": "No leak", "strict": "not_contains", "text": text}
    planned = plan([loaded({"evaluations": [check]} | test, environ=environ)], Selection(), 1)
    (definition,) = planned.definitions[0].tests
    return definition.criteria[0].digest, definition.content, planned.suites[0].test_digests[0]


@each_row("text", ["${OTHER}", "***", "${env:CANARY}", "***${CANARY}", "${CANARY}${OTHER}"])
def test_digests_depend_on_names_of_secrets_not_on_their_values(text):
    same = leak_check("${CANARY}")
    assert all(one != other for one, other in zip(leak_check(text), same, strict=True))
    assert leak_check("${CANARY}", SECRETS | {"CANARY": "canary-7120"}) == same


def test_digest_changes_with_place_of_secret_and_is_the_same_in_masked_recording():
    """A recording is masked: its variables are not set, and their names are known."""
    assert leak_check("${CODE} ***") != leak_check("*** ${CODE}")
    one, other = (leak_check("x", turns=[{"user": f"My code: ${{{name}}}"}]) for name in ("CODE", "OTHER"))
    assert one[0] == other[0]
    assert one[1] != other[1]
    assert one[2] != other[2]
    check = {"criterion": "No leak", "strict": "not_contains", "text": "${CANARY}"}
    test = {"name": "t", "guidelines": "g", "turns": [{"user": "hi"}], "evaluations": [check]}
    text = json.dumps({"name": "S", "agentId": "a", "apiKey": "key-123456", "tests": [test]})
    masked = plan([load(text, "s.json", Reading(masked=True))], Selection(), 1)
    assert masked.suites[0].test_digests[0] == leak_check("${CANARY}")[2]


@each_row(("pattern", "taken", "left"), [
    ("src/agent/**", ["src/agent/a.py", "src/agent/tools/b.py", "src/agent"],
     ["src/agents/a.py", "src/a.py"]),
    ("src/agent", ["src/agent", "src/agent/tools/b.py"], ["src/agent.py", "lib/src/agent/a.py"]),
    ("./src/agent/", ["src/agent/a.py"], ["src/agent2/a.py"]),
    ("prompts/*.md", ["prompts/judge.md"], ["prompts/old/judge.md", "prompts/judge.txt", "prompts/judgeXmd"]),
    ("**/*.py", ["a.py", "src/deep/a.py"], ["a.pyc", "src/a.js"]),
    ("src/**/b.py", ["src/b.py", "src/x/y/b.py"], ["src/xb.py", "b.py"]),
    ("v?.txt", ["v1.txt"], ["v10.txt", "v/.txt"]),
    ("a+(b).py", ["a+(b).py"], ["aab.py"]),
    ("**", ["any/thing", "odd\nname"], []),
])  # fmt: skip
def test_path_pattern_matches_only_expected_files(pattern, taken, left):
    assert [file for file in [*taken, *left] if touches([pattern], [file])] == taken


def test_paths_match_if_any_file_matches_any_pattern():
    assert touches(["docs/**", "src/**"], ["README.md", "src/a.py"])
    assert not touches(["docs/**"], [])
