"""Other tools' files made suites: what is taken along, what is named, and what is refused."""

import json
import time

import pytest
import yaml
from each_row import each_row
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_evals.domain.checks import answer_matching
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.importers.formats import IMPORTERS
from ci_evals.extensions.importers.imported import suite_text
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load


def imported(kind, text, file):
    """The suite as our own reader has it, its text, and what was told."""
    found = IMPORTERS[kind].read(text, file)
    written = suite_text(found, kind, file, "suite.yaml")
    assert written == suite_text(IMPORTERS[kind].read(text, file), kind, file, "suite.yaml")
    suite = load(written, "suite.yaml", Reading(environ={"HOME": "/home/secret-user"})).suite
    return suite, yaml.load(written, yaml.CSafeLoader), found.notes


def refusal(kind, text, file):
    with pytest.raises(UsageError) as caught:
        suite_text(IMPORTERS[kind].read(text, file), kind, file, "suite.yaml")
    return str(caught.value)


# GAIA

QUESTION = {
    "task_id": "c61d22de",
    "Question": "How many ${HOME} are there?",
    "Level": 2,
    "Final answer": "3",
    "file_name": "",
    "Annotator Metadata": {"Steps": "1. Counted them: 3"},
}


def lines(*questions):
    return "\n".join(json.dumps(QUESTION | question) for question in questions) + "\n"


def test_a_question_is_a_test_of_one_line():
    """With the id, the level and the benchmark's own comparison."""
    suite, data, notes = imported("gaia", lines({}), "data/metadata.jsonl")
    (test,) = suite.tests
    assert (test.name, test.difficulty, test.tags, test.max_turns) == ("c61d22de", "level 2", ("level-2",), 1)
    assert [turn.user for turn in suite.turns_of(test)] == ["How many ${HOME} are there?"]
    (evaluation,) = test.evaluations
    assert (evaluation.strict, evaluation.expected, evaluation.match) == ("answer_matches", ("3",), "gaia")
    assert data["tests"][0]["x-id"] == "c61d22de"
    assert data["x-imported-from"] == {"format": "gaia", "file": "metadata.jsonl"}
    assert "Counted" not in json.dumps(data)
    assert notes == ["data/metadata.jsonl:1: Annotator Metadata: it has no counterpart"]


def test_questions_with_a_file_are_named():
    """The suite cannot send it, so whoever plays it must know."""
    suite, data, notes = imported("gaia", lines({"file_name": "a.xlsx"}), "metadata.jsonl")
    assert suite.tests[0].tags == ("level-2", "needs-file")
    assert data["tests"][0]["x-file"] == "a.xlsx"
    assert notes[1:] == ["1 of 1 questions need a file, which a suite cannot send (tag needs-file): c61d22de"]


def test_questions_without_an_answer_are_left_out():
    """Nothing could be decided, and the test split has none."""
    suite, _, notes = imported("gaia", lines({}, {"task_id": "2", "Final answer": "?"}), "metadata.jsonl")
    assert len(suite.tests) == 1
    assert notes[1:] == ["1 of 2 questions have no answer and are left out"]
    assert "this is the test split" in refusal("gaia", lines({"Final answer": "?"}), "metadata.jsonl")


def test_one_id_twice_makes_two_names():
    """Names are unique in a suite; ids are kept."""
    suite, data, _ = imported("gaia", lines({}, {}, {"task_id": "c61d22de (2)"}, {}), "m.jsonl")
    names = [test.name for test in suite.tests]
    assert names == ["c61d22de", "c61d22de (2)", "c61d22de (2) (2)", "c61d22de (3)"]
    assert [test["x-id"] for test in data["tests"]] == ["c61d22de"] * 2 + ["c61d22de (2)", "c61d22de"]


# promptfoo

CONFIG = """
prompts:
  - "You are the desk of {{shop}}. Answer: {{question}}"
defaultTest:
  vars: {shop: Harbour}
  assert:
    - {type: not-icontains, value: as an ai}
tests:
  - description: Opening hours
    vars: {question: 'When does {{shop}} open?', plan: pro}
    metadata: {tags: [hours], owner: desk}
    threshold: 0.8
    assert:
      - {type: contains, value: 9}
      - {type: icontains-any, value: ['nine.', 9am], weight: 3}
      - {type: contains-all, value: [open, daily]}
      - {type: regex, value: '\\d+'}
      - {type: starts-with, value: We}
      - {type: equals, value: Nine}
      - {type: not-equals, value: No idea}
      - {type: llm-rubric, value: 'Speaks of {{shop}}', metric: tone}
      - {type: not-llm-rubric, value: Is rude}
      - {type: factuality, value: Harbour opens at nine}
      - {type: is-refusal}
      - {type: latency, threshold: 1500}
      - {type: similar, value: At nine, threshold: 0.9}
      - {type: 'trajectory:tool-used', value: hours}
      - {type: not-trajectory:tool-used, value: [refund]}
      - type: assert-set
        assert: [{type: icontains, value: week}]
"""


def test_assertions_become_evaluations():
    """Each as what decides the same here."""
    suite, _, notes = imported("promptfoo", CONFIG, "promptfooconfig.yaml")
    (test,) = suite.tests
    found = [
        item.model_dump(exclude_defaults=True, exclude={"criterion", "aui_logic"})
        for item in test.evaluations
    ]
    assert found == [
        {"strict": "not_regex", "pattern": "(?i)as an ai"},
        {"strict": "contains", "text": "9"},
        {"strict": "regex", "pattern": r"(?i)nine\.|9am", "weight": 3},
        {"strict": "contains", "text": "open", "weight": 0.5},
        {"strict": "contains", "text": "daily", "weight": 0.5},
        {"strict": "regex", "pattern": r"\d+"},
        {"strict": "regex", "pattern": r"\AWe"},
        {"strict": "answer_matches", "expected": ("Nine",), "match": "exact"},
        {"strict": "not_regex", "pattern": r"\A\s*No idea\s*\Z"},
        {"category": "tone"},
        {},
        {},
        {},
        {"strict": "max_latency", "seconds": 1.5},
        {"strict": "answer_matches", "expected": ("At nine",), "match": "semantic", "threshold": 0.9},
        {"strict": "tool_used", "tool_name": "hours"},
        {"strict": "tool_not_used", "tool_name": "refund"},
        {"strict": "regex", "pattern": "(?i)week"},
    ]
    assert [item.criterion for item in test.evaluations[9:13]] == [
        "Speaks of Harbour",
        "It is not so that: Is rude",
        "What the agent says agrees with these facts: Harbour opens at nine",
        "The agent refuses what the user asks",
    ]
    texts = [note.partition(": ")[2] for note in notes]
    assert texts[2:] == [
        "tests[0]: its metadata (owner) is kept without any effect",
        (
            "prompts: prompts is left out: the agent has its own instructions "
            "('You are the desk of {{shop}}. Answer: {{question}}')"
        ),
    ]
    assert all("needs a trace" in note for note in texts[:2])


def test_a_prompt_of_one_line_is_the_users_line():
    """The question is what a user says; the instructions around it are the agent's own affair."""
    suite, data, _ = imported("promptfoo", CONFIG, "promptfooconfig.yaml")
    (test,) = suite.tests
    assert (test.name, test.tags, test.min_score) == ("Opening hours", ("hours",), 80)
    assert [turn.user for turn in suite.turns_of(test)] == ["When does Harbour open?"]
    assert test.user_info == {"shop": "Harbour", "plan": "pro"}
    assert data["tests"][0]["x-metadata"] == {"owner": "desk"}


TOOLS = [
    ("tool-used", {"name": "f", "min": 2}, {"strict": "tool_called", "toolName": "f", "times": {"min": 2}}),
    (
        "tool-used",
        {"pattern": "f", "max": 3},
        {"strict": "tool_called", "toolName": "f", "times": {"min": 1, "max": 3}},
    ),
    (
        "not-tool-used",
        {"name": "f"},
        {"strict": "tool_called", "toolName": "f", "times": {"min": 0, "max": 0}},
    ),
    (
        "not-tool-used",
        {"name": "f", "min": 0, "max": 2},
        {"strict": "tool_called", "toolName": "f", "times": {"min": 3}},
    ),
    ("tool-sequence", ["f", {"name": "g"}], {"strict": "tool_sequence", "tools": ["f", "g"]}),
    (
        "tool-sequence",
        {"mode": "exact", "steps": ["f", "g"]},
        {"strict": "tool_sequence", "tools": ["f", "g"], "mode": "strict"},
    ),
    (
        "tool-args-match",
        {"name": "f", "args": {"a": 42, "o": {"x": 1}, "l": [1, 2], "t": "now"}, "ignore": "t"},
        {
            "strict": "tool_called",
            "toolName": "f",
            "args": {"a": 42, "o": {"contains": {"x": 1}}, "l": {"equals": [1, 2]}},
        },
    ),
    (
        "not-tool-args-match",
        {"name": "f", "arguments": {"o": {"x": {"y": 1}}}, "mode": "exact"},
        {
            "strict": "tool_called",
            "toolName": "f",
            "args": {"o": {"equals": {"x": {"y": 1}}}},
            "argsMode": "exact",
            "times": 0,
        },
    ),
    ("step-count", {"type": "tool", "max": 4}, {"strict": "max_tool_calls", "calls": 4}),
    (
        "step-count",
        {"type": ["tool"], "name": "f", "min": 2, "max": 4},
        {"strict": "tool_called", "toolName": "f", "times": {"min": 2, "max": 4}},
    ),
]


@each_row(("kind", "value", "check"), TOOLS)
def test_assertions_on_tools(kind, value, check):
    """With counts, order and arguments, as promptfoo compares them."""
    assertion = {
        "type": f"{'not-' if kind.startswith('not-') else ''}trajectory:{kind.removeprefix('not-')}",
        "value": value,
    }
    config = {"prompts": ["{{q}}"], "tests": [{"vars": {"q": "Hi"}, "assert": [assertion]}]}
    _, data, _ = imported("promptfoo", json.dumps(config), "c.json")
    (found,) = data["tests"][0]["evaluations"]
    del found["criterion"]
    assert found == check


SCHEMA = {"type": "object", "required": ["refund"]}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (None, {}),
        (True, {}),
        (SCHEMA, SCHEMA),
        (json.dumps(SCHEMA), SCHEMA),
        ("type: object", {"type": "object"}),
    ],
)
def test_json_with_and_without_a_schema(value, schema):
    """Written as an object, as JSON or as YAML."""
    config = {
        "prompts": ["{{q}}"],
        "tests": [{"vars": {"q": "Hi"}, "assert": [{"type": "is-json", "value": value}]}],
    }
    suite, _, _ = imported("promptfoo", json.dumps(config), "c.json")
    (check,) = suite.tests[0].evaluations
    assert (check.strict, check.schema_, check.turn) == ("json_schema", schema, "last")


_TRAJECTORY = [
    ("tool-used", {"name": "search_*"}, "names tools by a pattern"),
    ("tool-used", "search_?", "names tools by a pattern"),
    ("tool-used", {"name": "f", "min": 0}, "is met by any number of calls"),
    ("tool-used", {"name": "f", "min": "2"}, "its min is not a number"),
    ("tool-used", {"min": 1}, "has a value that ci-evals does not support"),
    ("tool-used", [], "has no value"),
    ("tool-sequence", [], "has no steps"),
    ("tool-sequence", {"steps": ["f"], "mode": "loose"}, "has no counterpart"),
    ("tool-sequence", [{"name": "f", "type": "span"}], "is about steps that are not tool calls"),
    ("tool-args-match", {"name": "f"}, "has a value that ci-evals does not support"),
    (
        "tool-args-match",
        {"name": "f", "args": {"a": {"b": {"c": 1}}}},
        "compares objects within an argument in part",
    ),
    ("tool-args-match", {"name": "f", "args": {"a": 1}, "ignore": ["*_id"]}, "leaves arguments out in a way"),
    (
        "tool-args-match",
        {"name": "f", "args": {"a": 1}, "defaults": {"a": 1}},
        "leaves arguments out in a way",
    ),
    ("tool-args-match", {"name": "f", "args": {"a": 1}, "defaults": 7}, "leaves arguments out in a way"),
    (
        "tool-args-match",
        {"name": "f", "args": {"a": "{{ env.X }}"}},
        "holds a template that cannot be filled",
    ),
    ("step-count", {"type": "span", "max": 3}, "counts steps that are not tool calls"),
    ("step-count", {"type": "tool", "min": 3}, "asks for a minimum of calls of any tool"),
]
UNMAPPED = [
    *(
        ({"type": f"trajectory:{kind}", "value": value}, f"'trajectory:{kind}' {message}")
        for kind, value, message in _TRAJECTORY
    ),
    (
        {"type": "not-trajectory:tool-sequence", "value": ["f"]},
        "'not-trajectory:tool-sequence' has no counterpart",
    ),
    (
        {"type": "not-trajectory:tool-used", "value": {"name": "f", "min": 2, "max": 3}},
        "'not-trajectory:tool-used' forbids a range of counts",
    ),
    ({"type": "cost", "threshold": 0.1}, "'cost' has no counterpart: what the agent costs is not known here"),
    ({"type": "not-is-json"}, "'not-is-json' has no counterpart"),
    ({"type": "is-json", "value": {"type": "objct"}}, "'is-json' has a schema that ci-evals does not accept"),
    ({"type": "is-json", "value": "file://a.json"}, "'is-json' names a file, which is not read"),
    ({"type": "is-json", "value": "{"}, "'is-json' has a schema that cannot be read"),
    ({"type": "is-json", "value": 7}, "'is-json' has a value that ci-evals does not support"),
    ({"type": "javascript", "value": "output.length < 9"}, "'javascript' has no counterpart"),
    ({"type": "contains", "value": "file://x.txt"}, "'contains' names a file, which is not read"),
    ({"type": "contains", "value": "{{ env.X }}"}, "'contains' holds a template that cannot be filled"),
    ({"type": "regex", "value": "("}, "'regex' is not a regular expression in Python's syntax"),
    ({"type": "contains", "value": "a", "transform": "x"}, "'contains': no counterpart for its transform"),
    (
        {"type": "llm-rubric", "value": "a", "threshold": 0.7},
        "'llm-rubric': no counterpart for its threshold",
    ),
    ({"type": "not-contains-all", "value": ["a"]}, "'not-contains-all' has no counterpart"),
    (
        {"type": "contains", "value": "a", "weight": 10**400},
        "'contains' its weight is not a number from 0 to 1e+06",
    ),
    (
        {"type": "contains", "value": "a", "weight": -1},
        "'contains' its weight is not a number from 0 to 1e+06",
    ),
    ({"type": "equals", "value": {"a": 1}}, "'equals' has a value that ci-evals does not support"),
    ({"type": "assert-set", "threshold": 0.5, "assert": []}, "'assert-set' has no counterpart"),
    ({}, "None has no counterpart"),
    ("contains:x", "is no object"),
]


@each_row(("assertion", "text"), UNMAPPED)
def test_parts_without_a_counterpart_are_named(assertion, text):
    """In the summary with its place, and in the test."""
    config = {"tests": [{"vars": {"question": "Hi"}, "assert": [assertion]}]}
    _, data, notes = imported("promptfoo", json.dumps(config, indent=1), "c.json")
    (note,) = notes
    assert note.startswith("c.json:")
    assert f"tests[0].assert[0]: {text}" in note
    assert text in data["tests"][0]["x-unmapped"][0].replace("$${", "${")
    assert data["tests"][0]["evaluations"]


def test_a_simulated_user_plays_on():
    """Instructions are guidelines; what he said before are fixed lines, which do not count as turns."""
    config = {
        "defaultTest": {"provider": {"id": "promptfoo:simulated-user", "config": {"maxTurns": 4}}},
        "tests": [
            {
                "vars": {
                    "instructions": "You want to pay by {{how}}.",
                    "how": "card",
                    "initialMessages": [
                        {"role": "user", "content": "I'd like to book"},
                        {"role": "assistant", "content": "How will you pay?"},
                        {"role": "user", "content": "By {{how}}"},
                    ],
                },
                "assert": [
                    {"type": "contains", "value": "booked"},
                    {"type": "not-contains", "value": "cash"},
                ],
            },
            {"vars": {"instructions": "file://a.txt"}},
        ],
    }
    suite, _, notes = imported("promptfoo", json.dumps(config), "c.json")
    (test,) = suite.tests
    assert test.guidelines == "You want to pay by card."
    assert [turn.user for turn in suite.turns_of(test)] == ["I'd like to book", "By card", *["auto"] * 4]
    assert [item.turn for item in test.evaluations] == ["any", "any"]
    assert test.user_info == {"how": "card"}
    assert "is left out; if your agent can be given a history" in notes[0]
    assert "tests[1]: its variable 'instructions' is another file, which is not read" in notes[1]
    assert "tests[1]: left out: its simulated user has no instructions in this file" in notes[2]


def test_variable_from_a_file_is_noted_and_never_sent():
    """Else the user would say the path of a file to the agent."""
    config = {
        "prompts": ["You are a helpful assistant. Answer: {{question}}"],
        "tests": [
            {"vars": {"question": "file://questions/*.txt"}},
            {"vars": {"question": "Hello", "context": "file://context.md"}},
        ],
    }
    suite, _, notes = imported("promptfoo", json.dumps(config), "c.json")
    (test,) = suite.tests
    assert (test.turns[0].user, test.user_info) == ("Hello", {})
    assert "tests[0]: its variable 'question' is another file, which is not read" in notes[0]
    assert "tests[0]: left out" in notes[1]
    assert "tests[1]: its variable 'context' is another file" in notes[2]


def test_steps_of_one_conversation_are_one_test():
    """Each step's assertions look at its own reply."""
    config = {
        "prompts": ['[{% for c in _conversation %}{% endfor %}{"role": "user", "content": "{{question}}"}]'],
        "tests": [
            {"vars": {"question": "Who founded it?"}, "assert": [{"type": "contains", "value": "Ada"}]},
            {"vars": {"question": "Where?"}, "assert": [{"type": "llm-rubric", "value": "Names a town"}]},
            {"vars": {"question": "Hello"}, "metadata": {"conversationId": "two"}},
        ],
    }
    suite, _, _ = imported("promptfoo", json.dumps(config), "c.json")
    first, second = suite.tests
    assert [turn.user for turn in suite.turns_of(first)] == ["Who founded it?", "Where?"]
    assert first.evaluations[0].turn == 1
    assert first.evaluations[1].criterion == "In reply 2: Names a town"
    assert [turn.user for turn in suite.turns_of(second)] == ["Hello"]


@each_row(
    ("prompts", "variables", "text"),
    [
        (["{{topic}}"], {"topic": "Bananas"}, ["Bananas"]),
        (["Write of {{topic}}"], {"topic": "bananas"}, ["Write of bananas"]),
        ("file://prompt.json", {"a": "Hi", "b": 1}, None),
        ("file://prompt.json", {"a": "Hi"}, ["Hi"]),
        (["Say {{ x | upper }}"], {"y": "z"}, None),
        (
            ['[{"role": "system", "content": "Be kind"}, {"role": "user", "content": "{{q}}"}]'],
            {"q": "A"},
            ["A"],
        ),
        ([], {"messages": [{"user": "A"}, {"assistant": "B"}], "question": "C"}, ["A", "C"]),
        (["{{question}}"], {"question": "auto"}, ["auto."]),
    ],
)
def test_the_users_line_is_found_or_the_test_is_left_out(prompts, variables, text):
    """Never guessed from what is not in the file."""
    config = {"prompts": prompts, "tests": [{"vars": variables}, {"vars": {"question": "Hello"}}]}
    suite, _, _ = imported("promptfoo", json.dumps(config), "c.json")
    found = [[turn.user for turn in suite.turns_of(test)] for test in suite.tests]
    assert [lines for lines in found if lines != ["Hello"]] == ([text] if text else [])


def test_lists_of_values_are_unrolled():
    """As promptfoo does, unless it is told not to; and scenarios are every part with every test."""
    config = {
        "tests": [{"vars": {"question": ["A", "B"], "plan": ["x", "y"]}}],
        "scenarios": [
            {
                "config": [{"vars": {"plan": "x"}}, {"vars": {"plan": "y"}}],
                "tests": [{"vars": {"question": "C"}}],
            }
        ],
        "evaluateOptions": {"repeat": 3},
    }
    suite, _, _ = imported("promptfoo", json.dumps(config), "c.json")
    texts = [(test.turns[0].user, test.user_info["plan"]) for test in suite.tests]
    assert texts == [("A", "x"), ("A", "y"), ("B", "x"), ("B", "y"), ("C", "x"), ("C", "y")]
    assert {test.loops for test in suite.tests} == {3}


# DeepEval

GOLDEN = {
    "scenario": "You want a refund for a broken jug.",
    "turns": None,
    "expected_outcome": "The refund is started",
    "user_description": "Ida, in a hurry",
    "persona": {"name": "Ida", "characteristics": "In a hurry."},
    "context": ["Refunds take 5 days"],
    "name": "Broken jug",
    "comments": "seen twice",
    "additional_metadata": {"case": "17"},
    "custom_column_key_values": None,
    "expectations": {
        "model": None,
        "eval_mode": None,
        "must": ["Names the 5 days"],
        "must_not": ["Blames her"],
    },
}


def test_a_golden_is_a_scenario_to_play():
    """Who and what are guidelines, what should come of it are criteria."""
    suite, data, notes = imported("deepeval", json.dumps([GOLDEN]), "goldens.json")
    (test,) = suite.tests
    assert test.name == "Broken jug"
    assert test.guidelines == "You are Ida. In a hurry.\n\nYou want a refund for a broken jug."
    assert [turn.user for turn in suite.turns_of(test)] == ["auto"] * 7
    assert [(item.criterion, item.category) for item in test.evaluations] == [
        ("The refund is started", "outcome"),
        ("Names the 5 days", "must"),
        ("This does not happen: Blames her", "must-not"),
    ]
    assert data["tests"][0]["x-context"] == ["Refunds take 5 days"]
    assert data["tests"][0]["x-metadata"] == {"case": "17"}
    assert notes == [
        f"goldens.json:1: {name}: kept as {kept}, which has no effect"
        for name, kept in (
            ("context", "x-context"),
            ("comments", "x-comments"),
            ("additional_metadata", "x-metadata"),
        )
    ] + ["goldens.json:1: no counterpart for user_description"]


RECORDED = {
    "turns": [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi!", "toolsCalled": []},
        {"role": "user", "content": "Bye"},
    ],
    "chatbotRole": "A kind clerk",
    "expectedOutcome": "They part as friends",
    "mcpServers": [{"name": "x"}],
    "id": 4,
}


def test_other_parts_of_a_recorded_turn_are_kept_with_a_note():
    """Calls of tools, say, and what the agent said before the user did."""
    called = [{"name": " "}]
    turns = [
        {"role": "assistant", "content": "Welcome!"},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi!", "tools_called": called, "user_id": None},
    ]
    _, data, notes = imported("deepeval", json.dumps([{"turns": turns}]), "cases.json")
    (test,) = data["tests"]
    assert test["turns"] == [
        {"user": "Hello", "x-recorded-reply": "Hi!", "x-unmapped": {"tools_called": called}}
    ]
    assert test["x-unmapped"] == {"opening": "Welcome!"}
    assert notes == ["cases.json:1: no counterpart for opening, turns.tools_called"]


LOOK_UP = {"name": "look_up", "inputParameters": {"order": "A1", "user": {"id": 7}}, "output": "ok"}


def test_tools_of_a_recorded_conversation_are_wanted_again():
    """With the arguments that they were called with; what a golden expects comes before that."""
    turns = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi!", "toolsCalled": [LOOK_UP, {"name": "greet"}]},
    ]
    suite, data, notes = imported("deepeval", json.dumps([{"turns": turns}]), "cases.json")
    assert data["tests"][0]["evaluations"] == [
        {
            "criterion": "Calls the tools of the recorded conversation",
            "category": "tools",
            "strict": "tool_sequence",
            "tools": [{"name": "look_up", "args": {"order": "A1", "user": {"equals": {"id": 7}}}}, "greet"],
            "mode": "superset",
        }
    ]
    assert suite.tests[0].evaluations[0].tools[0].args["order"].equals == "A1"
    assert len(data["tests"][0]["turns"][0]["x-recorded-tool-calls"]) == 2
    assert notes == []
    record = {"scenario": "s", "expected_tools": [{"name": "greet"}], "turns": turns}
    _, data, _ = imported("deepeval", json.dumps([record]), "cases.json")
    assert [check.get("tools") for check in data["tests"][0]["evaluations"]] == [["greet"]]
    assert "must be a list of tools" in refusal(
        "deepeval", json.dumps([record | {"expected_tools": [7]}]), "c.json"
    )


def test_a_recorded_conversation_is_played_again():
    """Its user's lines, that is; what the agent said then is kept beside them."""
    suite, data, notes = imported("deepeval", json.dumps({"testCases": [RECORDED]}), "cases.json")
    (test,) = suite.tests
    assert [turn.user for turn in suite.turns_of(test)] == ["Hello", "Bye"]
    assert data["tests"][0]["turns"][0] == {"user": "Hello", "x-recorded-reply": "Hi!"}
    assert data["tests"][0]["x-id"] == "4"
    assert [item.criterion for item in test.evaluations] == [
        "They part as friends",
        "The agent stays in its role: A kind clerk",
    ]
    assert notes == ["cases.json:1: no counterpart for mcp_servers"]


def test_all_of_deepevals_endings_say_the_same():
    """What is no text is JSON in the cells of a table, and the context cut by bars."""
    golden = {key: value for key, value in GOLDEN.items() if key != "persona"}
    golden |= {"turns": RECORDED["turns"], "context": ["a", "b"]}
    cells = {
        key: "|".join(value) if key == "context" else value if isinstance(value, str) else json.dumps(value)
        for key, value in golden.items()
        if value is not None
    }
    row = ",".join('"' + cell.replace('"', '""') + '"' for cell in cells.values())
    table = f"{','.join(cells)}\r\n{row}\r\n"
    forms = {"g.json": json.dumps([golden]), "g.jsonl": json.dumps(golden), "g.csv": table}
    suites = [imported("deepeval", text, file)[0] for file, text in forms.items()]
    assert suites[0] == suites[1] == suites[2]


# CSV

TABLE = """id;Name;user;turns;guidelines;expected;criterion;tags;Difficulty;max turns;user_info.Plan
a-1;Opening hours;When do you open?;;;"nine
9 am";The agent is friendly;hours, happy-path;easy;;
;;;"Hello
auto";You want a refund.;;"Starts the refund
Stays polite";;;4;Pro
"""


def test_a_row_is_a_test():
    """Lines of a cell are several of its kind; the delimiter is seen from the header."""
    suite, data, _ = imported("csv", TABLE, "tests.csv")
    first, second = suite.tests
    assert (first.name, first.tags, first.difficulty) == ("Opening hours", ("hours", "happy-path"), "easy")
    assert [turn.user for turn in suite.turns_of(first)] == ["When do you open?"]
    assert first.evaluations[0].expected == ("nine", "9 am")
    assert data["tests"][0]["x-id"] == "a-1"
    assert (second.name, second.guidelines) == ("You want a refund.", "You want a refund.")
    assert [turn.user for turn in suite.turns_of(second)] == ["Hello", "auto", "auto", "auto"]
    assert [item.criterion for item in second.evaluations] == ["Starts the refund", "Stays polite"]
    assert second.user_info == {"Plan": "Pro"}


# Whatever the file holds

REFUSED = [
    ("gaia", "{}\n", "m.jsonl", "m.jsonl:1:1: Question: is missing"),
    ("gaia", '{"Question": "a"\n', "m.jsonl", "m.jsonl:1:17: not JSON"),
    ("gaia", lines({}) + "[]\n", "m.jsonl", "m.jsonl:2:1: must be one JSON object a line"),
    ("gaia", lines({}) + '{"a": 1, "a": 2}', "m.jsonl", "m.jsonl:2:10: a: key given twice"),
    ("gaia", lines({"Question": ["a"]}), "m.jsonl", "Question: must be a string, found a list"),
    ("gaia", "", "m.jsonl", "m.jsonl:1:1: the file holds no records"),
    ("gaia", lines({"Final answer": "."}), "m.jsonl", "m.jsonl: its content is not a valid suite"),
    ("gaia", '{"a":' * 5000, "m.jsonl", "m.jsonl:1"),
    ("promptfoo", "- a\n", "c.yaml", "c.yaml:1:1: must be promptfoo's configuration"),
    ("promptfoo", "tests:\n  - 5\n", "c.yaml", "c.yaml:2:5: tests[0]: must be an object"),
    (
        "promptfoo",
        "tests: [{vars: {question: a}, threshold: 7}]",
        "c.yaml",
        "threshold: 7 is not between 0 and 1",
    ),
    ("promptfoo", "tests: []", "c.yaml", "c.yaml: contains nothing that can become a test"),
    ("promptfoo", "a: &a [x]\nb: !!python/object:x {}\ntests: []", "c.yaml", "is not supported"),
    (
        "promptfoo",
        json.dumps({"tests": [{"vars": {str(i): ["a"] * 10 for i in range(9)}}]}),
        "c.json",
        "its variables have more than 10,000 combinations",
    ),
    (
        "promptfoo",
        json.dumps({"tests": [{"vars": {"question": "{{a}}" * 999, "a": "{{b}}" * 999, "b": "c" * 999}}]}),
        "c.json",
        "a text has more than 200,000 characters once its variables are filled in",
    ),
    ("deepeval", "{}", "g.json", "must be a list of objects, or an object with 'goldens'"),
    ("deepeval", '[{"input": "a"}]', "g.json", "is a single question, not a conversation"),
    ("deepeval", '[{"name": "a"}]', "g.json", "'scenario' or 'turns'"),
    ("deepeval", '[{"turns": [{"role": "tool", "content": "a"}]}]', "g.json", "turns[0] needs a role"),
    ("deepeval", "scenario,turns\na,{", "g.csv", "g.csv:2:1: turns: the cell 'turns' holds no JSON"),
    ("csv", "user,expektation\na,b", "t.csv", "t.csv:1:1: unknown column 'expektation'"),
    ("csv", "question,owner\na,b", "t.csv", "unknown column 'question'; did you mean 'user'?"),
    ("csv", "user,answer\na,b", "t.csv", "unknown column 'answer'; did you mean 'expected'?"),
    ("csv", "usr\na", "t.csv", "did you mean 'user'?"),
    ("csv", "zzzz\na", "t.csv", "available: id, name, user, turns, guidelines, expected"),
    ("csv", "user,user\na,b", "t.csv", "t.csv:1:1: the column 'user' appears twice"),
    ("csv", "user\na,b", "t.csv", "t.csv:2:1: the row has 2 cells, the header 1"),
    ("csv", 'user\n"a', "t.csv", "not CSV"),
    ("csv", "name,tags\na,b", "t.csv", "the row is empty"),
    ("csv", "user,max_turns\na,many", "t.csv", "max_turns: 'many' is not a number of turns"),
    ("csv", "user,expected,match\na,b,nearly", "t.csv", "'nearly' is not one of"),
    ("csv", "user\n" + "a" * 200_000, "t.csv", "not CSV: field larger than field limit"),
]


@each_row(("kind", "text", "file", "output"), REFUSED)
def test_a_file_that_is_none_is_refused_with_the_place(kind, text, file, output):
    """And with what would be right."""
    assert output in refusal(kind, text, file)


KEYS = [
    "Question",
    "Final answer",
    "Level",
    "tests",
    "vars",
    "assert",
    "type",
    "value",
    "weight",
    "threshold",
]
KEYS += [
    "provider",
    "id",
    "config",
    "instructions",
    "question",
    "messages",
    "role",
    "content",
    "user",
    "tags",
]
KEYS += ["metadata", "scenario", "turns", "expectations", "must", "input", "name", "prompts", "maxTurns"]
TEXTS = ["auto", "${HOME}", "{{a}}", "file://x", "promptfoo:simulated-user", "contains", "", "\u00e9\ud800"]
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(TEXTS)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(["gaia", "promptfoo", "deepeval", "openai-evals"]), value=ANY, listed=st.booleans()
)
def test_no_json_breaks_a_reader(kind, value, listed):
    """It becomes a suite or is refused in words."""
    if kind == "promptfoo" and listed:
        value = {"tests": [value]}
    text = json.dumps([value] if listed and kind != "promptfoo" else value)
    try:
        written = suite_text(IMPORTERS[kind].read(text, "f.json"), kind, "f.json", "suite.json")
    except UsageError:
        return
    assert "/home/secret-user" not in str(
        load(written, "suite.json", Reading({"HOME": "/home/secret-user"})).suite
    )


@given(text=st.text(max_size=200))
@pytest.mark.parametrize(("kind", "file"), [("csv", "t.csv"), ("deepeval", "t.csv"), ("promptfoo", "c.yaml")])
def test_no_text_breaks_a_reader(kind, file, text):
    """Whoever wrote it."""
    messages = []
    for whole in (text, f"user,turns,scenario\n{text}"):
        try:
            suite_text(IMPORTERS[kind].read(whole, file), kind, file, "suite.yaml")
        except UsageError as error:
            messages.append(str(error))
    assert all(messages)


def test_a_table_of_very_many_columns_is_refused_in_a_moment():
    """No file makes its reader slow: columns are looked at once each."""
    started = time.process_time()
    header = ",".join(f"user_info.c{number}" for number in range(60_000))
    assert "the column 'user_info.c7' appears twice" in refusal("csv", f"{header},user_info.c7\nx\n", "t.csv")
    assert time.process_time() - started < 20  # where each is compared with each: minutes


# Nothing is lost without a word

EVERYTHING = {
    "gaia": ("m.jsonl", lines({"file_name": "a.xlsx", "Comment": "c"}), ["Annotator Metadata", "Comment"]),
    "csv": (
        "t.csv",
        (
            "id,name,user,expected,criterion,tags,difficulty,max_turns,owner,Cost centre\n"
            "1,n,Hi,9 am,Is kind,a,easy,3,desk,12\n"
        ),
        ["'owner': kept as x-owner", "'Cost centre': kept as x-cost_centre"],
    ),
    "deepeval": (
        "g.json",
        json.dumps(
            [
                {
                    "scenario": "s",
                    "expectedOutcome": "o",
                    "userDescription": "other",
                    "persona": {"name": "Ann", "characteristics": "c", "mood": "bad"},
                    "expectations": {"must": ["m"], "should": ["x"]},
                    "context": ["c"],
                    "comments": "c",
                    "additionalMetadata": {"a": 1},
                    "customColumnKeyValues": {"a": "1"},
                    "multimodal": True,
                    "turns": [
                        {"role": "user", "content": "Hi", "retrievalContext": ["r"]},
                        {"role": "assistant", "content": "Hello", "toolsCalled": [{"title": "t"}]},
                    ],
                }
            ]
        ),
        [
            *(
                "persona.mood",
                "expectations.should",
                "user_description",
                "multimodal",
                "turns.retrievalContext",
            ),
            *("turns.toolsCalled", "context", "comments", "additional_metadata", "custom_column_key_values"),
        ],
    ),
    "promptfoo": (
        "c.json",
        json.dumps(
            {
                "description": "d",
                "prompts": ["{{system_message}} Use {{context}}.", "Be brief. {{question}}"],
                "providers": ["openai:gpt-5"],
                "targets": ["http"],
                "evaluateOptions": {"repeat": 2, "maxConcurrency": 4},
                **dict.fromkeys(
                    ("env", "extensions", "derivedMetrics", "nunjucksFilters", "outputPath", "sharing"), "x"
                ),
                **{key: {"a": "x"} for key in ("tags", "redteam", "tracing", "commandLineOptions")},
                "scenarios": [
                    {"description": "all of it", "config": [{"vars": {"question": "Q"}}], "tests": [{}]}
                ],
                "tests": [
                    {
                        "vars": {
                            "question": "Open?",
                            "system_message": "Obey",
                            "context": "c",
                            "plan": "pro",
                        },
                        "provider": {"id": "openai:x", "label": "l"},
                        "options": {"transform": "t"},
                        "assertScoringFunction": "f",
                        "metadata": {"owner": "o", "conversationId": "a"},
                        "assert": [{"type": "contains", "value": "a", "config": {}}],
                    },
                    {
                        "vars": {"question": "And Sunday?"},
                        "description": "step two",
                        "threshold": 0.5,
                        "metadata": {"conversationId": "a"},
                    },
                ],
            }
        ),
        [
            *(
                "prompts",
                "providers",
                "targets",
                "evaluateOptions.maxConcurrency",
                "env",
                "extensions",
                "tags",
            ),
            *("derivedMetrics", "nunjucksFilters", "outputPath", "sharing", "redteam", "tracing"),
            *("commandLineOptions", "no counterpart for its description", "'system_message'", "'context'"),
            *("provider 'openai:x'", "provider.label", "options.transform", "assertScoringFunction"),
            *("metadata (owner)", "its config", "a later step's description, threshold"),
        ],
    ),
}


@pytest.mark.parametrize("kind", EVERYTHING)
def test_every_field_that_is_not_taken_over_is_named(kind):
    file, text, left = EVERYTHING[kind]
    _, _, notes = imported(kind, text, file)
    message = "\n".join(notes)
    assert [name for name in left if name not in message] == []


def test_simulated_user_does_not_learn_what_the_agent_is():
    """Variables of the prompt, and those that are called like one, are none of the user's data."""
    config = {
        "prompts": ["{{persona_of_bot}}\n{{rules}}"],
        "tests": [
            {
                "provider": "promptfoo:simulated-user",
                "vars": {
                    "instructions": "You pay by {{how}}.",
                    "how": "card",
                    "rules": "Never give a refund",
                    "system_message": "You are a bank's assistant",
                    "name": "Ann",
                },
            }
        ],
    }
    suite, data, notes = imported("promptfoo", json.dumps(config), "c.json")
    assert suite.tests[0].user_info == {"how": "card", "name": "Ann"}
    assert "assistant" not in json.dumps(data["tests"][0] | {"x-unmapped": []})
    assert "variable 'rules' is for the agent's prompt" in "\n".join(notes)


def test_a_tables_answer_may_stand_in_a_sentence():
    """As people write tables; and a test without a check asks for what any agent can be held to."""
    suite, data, _ = imported("csv", "user,expected,match\nOpen?,9 am,\nOpen?,9 am,exact\nHi,,\n", "t.csv")
    reply = "We open at 9 am."
    modes = [test.evaluations[0].match for test in suite.tests[:2]]
    assert modes == ["contains", "exact"]
    assert answer_matching.contains(reply, "9 am")
    assert data["tests"][2]["evaluations"] == [
        {"criterion": "The agent answers", "strict": "regex", "pattern": r"\S"}
    ]
