"""Parts of foreign files that have a wrong type are refused or named; one invalid test ends no import."""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
import yaml
from each_row import each_row

from ci_evals.domain.errors import UsageError
from ci_evals.extensions.importers.formats import IMPORTERS
from ci_evals.extensions.importers.imported import suite_text

Path = tuple[str | int, ...]


def imported(kind, file, text):
    result = IMPORTERS[kind].read(text, file)
    tests = json.loads(suite_text(result, kind, file, "suite.json"))["tests"]
    return tests, result.notes


@dataclass(frozen=True, eq=False)
class Sample:
    """A valid file of an importer."""

    kind: str
    file: str
    content: Any
    free: tuple[Path, ...] = ()
    """Parts that may hold anything, since they have no effect or are data."""
    valid: Mapping[Path, list[Any]] = field(default_factory=dict)
    """Values of other types that are as good."""


HOURS_ON_MONDAY = {"name": "hours", "args": {"day": "Monday"}, "mode": "exact"}
PROMPTFOO = {
    "description": "Help desk", "prompts": ["{{question}}"], "evaluateOptions": {"repeat": 2},
    "assertionTemplates": {"kind": {"type": "llm-rubric", "value": "Is kind"}},
    "defaultTest": {
        "vars": {"shop": "Harbour"}, "options": {"disableVarExpansion": True}, "metadata": {"tags": ["desk"]},
        "assert": [{"type": "not-icontains", "value": "as an ai"}],
    },
    "tests": [
        {
            "description": "Hours", "vars": {"question": "When does {{shop}} open?"}, "threshold": 0.8,
            "metadata": {"tags": ["hours"], "conversationId": "one"},
            "options": {"disableDefaultAsserts": False},
            "assert": [
                {"type": "contains", "value": "9 am", "weight": 2, "metric": "facts"},
                {"type": "contains-any", "value": ["9 am", "nine"]},
                {"type": "similar", "value": "At nine", "threshold": 0.9},
                {"type": "latency", "threshold": 1500}, {"type": "is-json", "value": {"type": "object"}},
                {"type": "trajectory:tool-used", "value": {"name": "hours", "min": 1, "max": 2}},
                {"type": "trajectory:tool-sequence", "value": {"mode": "exact", "steps": ["a", "b"]}},
                {"type": "trajectory:tool-args-match", "value": HOURS_ON_MONDAY},
                {"type": "trajectory:step-count", "value": {"type": "tool", "max": 4}},
                {"type": "assert-set", "assert": [{"type": "icontains", "value": "open"}]},
                {"$ref": "#/assertionTemplates/kind"},
            ],
        },
        {
            "provider": {"id": "promptfoo:simulated-user", "config": {"maxTurns": 3, "instructions": "Ask."}},
            "vars": {"initialMessages": [{"role": "user", "content": "Hi"}]},
            "assert": [{"type": "llm-rubric", "value": "Is kind"}],
        },
    ],
    "scenarios": [
        {
            "config": [{"vars": {"plan": "pro"}}],
            "tests": [{"vars": {"question": "Price?"}, "assert": [{"type": "contains", "value": "9"}]}],
        },
    ],
}  # fmt: skip
GOLDEN = {
    "name": "Broken jug", "scenario": "You want a refund.",
    "persona": {"name": "Ida", "characteristics": "In a hurry."}, "expected_outcome": "The refund is started",
    "chatbot_role": "A clerk", "expectations": {"must": ["Names the 5 days"], "must_not": ["Blames her"]},
    "expected_tools": [{"name": "refund", "input_parameters": {"order": "A1"}}],
    "turns": [
        {"role": "user", "content": "Hello", "user_id": "u"},
        {"role": "assistant", "content": "Hi!", "tools_called": [{"name": "greet"}]},
    ],
    "tags": ["refund"], "id": "4",
}  # fmt: skip
OPENAI_ROW = {
    "run_id": "r",
    "data_source_idx": 3,
    "item": {"input": [{"role": "user", "content": "Hi"}], "expected": ["Hello", "Hi there"]},
    "sample": {"outputs": [{"role": "assistant", "content": "Hello"}]},
    "grades": {"match": 1},
}
QUESTION = {"task_id": "q", "Question": "6 times 7?", "Level": 1, "Final answer": "42", "file_name": "a.txt"}
SAMPLES = [
    Sample(
        "promptfoo",
        "c.json",
        PROMPTFOO,
        free=(
            ("assertionTemplates", "kind", "type"),  # named where it is used
            ("defaultTest", "vars", "shop"),
            ("tests", 0, "vars", "question"),
            ("tests", 0, "assert", 7, "value", "args", "day"),
            ("scenarios", 0, "config", 0, "vars", "plan"),
            ("scenarios", 0, "tests", 0, "vars", "question"),
        ),
        valid={("tests", 1, "assert", 0, "value"): [["x", 7]]},
    ),
    Sample(
        "deepeval",
        "g.json",
        [GOLDEN],
        free=((0, "turns", 0, "user_id"), (0, "expected_tools", 0, "input_parameters", "order")),
        valid={(0, "expected_tools", 0): ["x"], (0, "turns", 1, "tools_called", 0): ["x"]},
    ),
    Sample(
        "deepeval",
        "g.jsonl",
        GOLDEN,
        free=(("turns", 0, "user_id"), ("expected_tools", 0, "input_parameters", "order")),
        valid={("expected_tools", 0): ["x"], ("turns", 1, "tools_called", 0): ["x"]},
    ),
    Sample(
        "openai-evals",
        "r.jsonl",
        OPENAI_ROW,
        free=(("run_id",), ("grades", "match"), ("sample", "outputs")),  # what another run made of it
        valid={("data_source_idx",): ["x"], ("item", "expected"): ["x", 7, [7]], ("item", "input"): ["x"]},
    ),
    Sample("gaia", "m.jsonl", QUESTION, valid={("Level",): ["x"]}),
]


def text_of(sample, content):
    return json.dumps(content) + ("\n" if sample.file.endswith("l") else "")


def paths_in(value, path=()):
    if path:
        yield path
    listed = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else listed:
        yield from paths_in(inner, (*path, key))


def values_of_other_types(value):
    """Return values of other types. A number is a text too, and one text a list."""
    match value:
        case bool():
            return ["x", 7, ["x"], {"a": 1}]
        case int() | float():
            return ["x", ["x"], {"a": 1}, True]
        case str():
            return [["x", 7], {"a": 1}, True]
        case list():
            return [7, {"a": 1}, True, [7], [["x"]]]
    return [7, ["x"], True, "x"]


def with_value_at(content, path, value):
    content = copy.deepcopy(content)
    part = content
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    return content


@cache
def notes_of_valid_file(sample):
    """Return what is said of the valid file."""
    return imported(sample.kind, sample.file, text_of(sample, sample.content))[1]


MUTATIONS = [
    pytest.param(sample, path, id=f"{sample.file} {'.'.join(map(str, path))}")
    for sample in SAMPLES
    for path in paths_in(sample.content)
    if not any(path[: len(free)] == free for free in sample.free)
]


@pytest.mark.slow
@each_row(("sample", "path"), MUTATIONS)
def test_field_of_a_wrong_type_is_refused_or_named(sample, path):
    """Never dropped silently, which would leave a weaker test."""
    before = notes_of_valid_file(sample)
    value: Any = sample.content
    for step in path:
        value = value[step]
    for other in values_of_other_types(value):
        if other in sample.valid.get(path, []):
            continue
        try:
            text = text_of(sample, with_value_at(sample.content, path, other))
            _, notes = imported(sample.kind, sample.file, text)
        except UsageError as error:
            assert str(error).startswith(sample.file)  # noqa: PT017  # both ends are right
        else:
            assert set(notes) - set(before), f"{other!r} is not named"


CONTAINS = {"type": "contains", "value": "a"}


@each_row(("test", "reason"), [
    ({"assert": "contains"}, "must be a list of assertions, found 'contains'"),
    ({"assert": CONTAINS}, "must be a list of assertions, found an object"),
    ({"assert": True}, "must be a list of assertions, found true"),
    ({"assert": ["contains"]}, "is no object"),
    ({"assert": [None]}, "is no object"),
    ({"assert": [{"value": "a"}]}, "None has no counterpart"),
    ({"assert": [CONTAINS | {"type": ["contains"]}]}, "has no counterpart"),
    ({"assert": [[CONTAINS]]}, "is no object"),
    ({"assert": [{"type": "assert-set", "assert": "contains"}]}, "'assert-set' has no"),
    ({"vars": "question"}, "'question' is another file, which is not read"),
    ({"vars": 7}, "must be an object, found 7"),
    ({"vars": {"question": "Hi", "assert": [CONTAINS]}}, "has 'assert' among its variables"),
])  # fmt: skip
def test_malformed_promptfoo_test_is_left_out_or_named(test, reason):
    tests = [{"vars": {"question": "Hi"}} | test, {"vars": {"question": "Bye"}, "assert": []}]
    result, notes = imported("promptfoo", "c.json", json.dumps({"prompts": ["{{question}}"], "tests": tests}))
    assert result[-1]["turns"] == [{"user": "Bye"}]
    assert any(reason in note and note.startswith("c.json:1:") for note in notes)


MALFORMED_DEFAULTS = [{"assert": "contains"}, {"assert": {"type": "contains"}}, {"vars": 7}, {"options": 7}]


@each_row("default", ["contains", 7, ["x"], *MALFORMED_DEFAULTS])
def test_malformed_promptfoo_default_test_is_refused_or_named(default):
    config = {"defaultTest": default, "tests": [{"vars": {"question": "Hi"}}]}
    try:
        _, notes = imported("promptfoo", "c.json", json.dumps(config))
    except UsageError as error:
        assert "c.json:1:" in str(error)  # noqa: PT017  # both ends are right
        assert "defaultTest" in str(error)  # noqa: PT017
    else:
        assert any("defaultTest" in note and note.endswith("(left out)") for note in notes)


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


HI_TURNS = [{"role": "user", "content": "Hi"}]
HI = {"vars": {"question": "Hi"}}
HI_GOLDEN = {"turns": HI_TURNS}
HI_CELL = {"turns": json.dumps(HI_TURNS)}
HI_QUESTION = QUESTION | {"Question": "Hi"}
HI_ITEM, IDEAL_ITEM = {"item": {"input": "Hi"}}, {"item": {"input": "a", "ideal": {"b": 1}}}
HI_TABLE = 'scenario,turns\na,{\nb,"[{""role"": ""user"", ""content"": ""Hi""}]"\n'
DOT_QUESTION = QUESTION | {"Final answer": "."}
TWO_SPELLINGS = {"scenario": "a", "expectedOutcome": "b", "expected_outcome": "c"}
LONG = {"vars": {"question": "{{a}}" * 999, "a": "{{b}}" * 999, "b": "c" * 999}}
INVALID_PROMPTFOO = [
    ({"vars": {"question": " "}}, "c.yaml:4:3: tests[0]: left out: the user's message is empty"),
    (5, "c.yaml:4:3: tests[0]: must be an object, found 5"),
    (HI | {"threshold": 7}, "threshold: 7 is not between 0 and 1"),
    (LONG, "c.yaml:4:3: tests[0]: a text has more than 200,000 characters"),
    ({"vars": {str(i): ["a"] * 10 for i in range(9)}}, "combinations"),
    ({"vars": {"question": "x" * 300_000}}, "c.yaml:4:3: "),
    (
        {"vars": {"question": "Hi {{city}}"}},
        "the user's message has a template that cannot be filled: {{city}}",
    ),
]


def promptfoo_yaml(*tests):
    return yaml.dump({"prompts": ["{{question}}"], "tests": list(tests)}, Dumper=yaml.CSafeDumper)


@each_row(("kind", "file", "text", "reason"), [
    *(("promptfoo", "c.yaml", promptfoo_yaml(test, HI), reason) for test, reason in INVALID_PROMPTFOO),
    ("csv", "t.csv", "user,expected\na,b,c\nHi,b\n", "t.csv:2:1: the row has 3 cells, the header 2"),
    ("csv", "t.csv", "user,match,expected\na,nearly,b\nHi,,b\n", "t.csv:2:1: the test 'a' is not valid: "),
    ("csv", "t.csv", "user,max_turns\na,many\nHi,1\n",
     "t.csv:2:1: max_turns: max_turns: 'many' is not a number"),
    ("csv", "t.csv", "user,tags\n,b\nHi,\n", "t.csv:2:1: user: the row is empty"),
    ("deepeval", "g.json", json.dumps([{"name": "a"}, HI_GOLDEN]), "g.json:1:2: [0].scenario: is missing"),
    ("deepeval", "g.json", json.dumps([5, HI_GOLDEN]), "g.json:1:2: [0]: must be an object, found 5"),
    ("deepeval", "g.jsonl", lines({"turns": "{"}, HI_CELL),
     "g.jsonl:1:11: turns: the text of 'turns' holds no JSON"),
    ("deepeval", "g.jsonl", lines({"turns": '"a"'}, HI_CELL), "must be a list of turns"),
    ("deepeval", "g.csv", HI_TABLE, "g.csv:2:1: turns: the cell 'turns' holds no JSON"),
    ("deepeval", "g.jsonl", lines(TWO_SPELLINGS, HI_CELL),
     "'expected_outcome' given twice, in two spellings"),
    ("gaia", "m.jsonl", lines({"task_id": "a"}, HI_QUESTION), "m.jsonl:1:1: Question: is missing"),
    ("gaia", "m.jsonl", lines(DOT_QUESTION, HI_QUESTION), "m.jsonl:1:1: the test 'q' is not valid: "),
    ("openai-evals", "r.jsonl", lines({"a": 1}, HI_ITEM),
     "r.jsonl:1:1: item: must be rows of OpenAI's evals"),
    ("openai-evals", "r.jsonl", lines(IDEAL_ITEM, HI_ITEM),
     "its 'ideal' must be a string, a number or a list"),
])  # fmt: skip
def test_invalid_test_is_left_out_with_its_position_and_the_others_are_imported(kind, file, text, reason):
    suite = IMPORTERS[kind].read(text, file)
    tests = json.loads(suite_text(suite, kind, file, "suite.json"))["tests"]
    assert [test["turns"][0]["user"] for test in tests] == ["Hi"]
    (note,) = suite.left_out
    assert reason in note
    assert note in suite.notes


TURNS_AS_TEXT = json.dumps([GOLDEN | {"turns": json.dumps(GOLDEN["turns"])}])
TWO_KEYS = json.dumps({"goldens": [], "conversational_goldens": [GOLDEN]})
ITEM_WITH_TWO_ANSWERS = {"item": {"input": "Hi", "ideal": ["a", 7]}}


def turns(test):
    return [turn["user"] for turn in test["turns"]]


def name(test):
    return str(test["name"])


def expected(test):
    return test["evaluations"][0]["expected"]


@each_row(("kind", "file", "text", "part", "value"), [
    ("csv", "t.csv", 'user,expected\n"a\nb\n\nc",d\n', turns, ["a\nb\n\nc"]),
    ("csv", "t.csv", 'user,turns\n"a\nb","c\nd"\n', turns, ["a\nb", "c", "d"]),
    ("csv", "t.csv", "\n\r\nuser\na\n", turns, ["a"]),
    ("csv", "t.csv", "user,expected\na,b,,\n", expected, "b"),
    ("gaia", "m.jsonl", "\n\r\n" + lines(QUESTION), name, "q"),
    ("deepeval", "g.json", TURNS_AS_TEXT, turns, ["Hello"]),
    ("deepeval", "g.json", TWO_KEYS, name, "Broken jug"),
    ("openai-evals", "r.jsonl", lines(HI_ITEM), turns, ["Hi"]),
    ("openai-evals", "r.jsonl", lines(ITEM_WITH_TWO_ANSWERS), expected, ["a", "7"]),
])  # fmt: skip
def test_common_variants_of_each_format_are_accepted(kind, file, text, part, value):
    (test,), _ = imported(kind, file, text)
    assert part(test) == value


def test_deepeval_tests_under_several_keys_are_all_read():
    golden = {"scenario": "b", "expected_outcome": "c"}
    text = json.dumps({"goldens": [GOLDEN], "testCases": [golden], "alias": "x"})
    tests, notes = imported("deepeval", "g.json", text)
    assert [test["name"] for test in tests] == ["Broken jug", "b"]
    assert "g.json:1:1: no counterpart for alias" in notes


def test_row_shorter_than_the_header_is_read_with_a_note():
    tests, notes = imported("csv", "t.csv", "user,name,expected\na\nb,c,d\n")
    assert [test["turns"][0]["user"] for test in tests] == ["a", "b"]
    assert notes == ["t.csv:2:1: the row has 1 cells, the header 3: nothing is read for 'name', 'expected'"]
