"""Importing files of GAIA, promptfoo, DeepEval, OpenAI and CSV: mapped fields, notes and refusals."""

import json

import pytest
import yaml
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from processor_time import at_most

from ci_evals.domain.checks import answer_matching
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.importers.formats import IMPORTERS
from ci_evals.extensions.importers.imported import suite_text
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load


def imported(kind, text, file):
    """The suite as our own reader has it, its data, and the notes."""
    result = IMPORTERS[kind].read(text, file)
    written = suite_text(result, kind, file, "suite.yaml")
    assert written == suite_text(IMPORTERS[kind].read(text, file), kind, file, "suite.yaml")
    suite = load(written, "suite.yaml", Reading(environ={"HOME": "/home/secret-user"})).suite
    return suite, yaml.load(written, yaml.CSafeLoader), result.notes


def refusal(kind, text, file):
    with pytest.raises(UsageError) as caught:
        suite_text(IMPORTERS[kind].read(text, file), kind, file, "suite.yaml")
    return str(caught.value)


QUESTION = {
    "task_id": "c61d22de", "Question": "How many ${HOME} are there?", "Level": 2, "Final answer": "3",
    "file_name": "", "Annotator Metadata": {"Steps": "1. Counted them: 3"},
}  # fmt: skip


def lines(*questions):
    return "\n".join(json.dumps(QUESTION | question) for question in questions) + "\n"


def test_gaia_question_becomes_one_test_with_its_id_level_and_answer():
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


def test_gaia_files_are_tagged_repeated_ids_numbered_and_unanswered_left_out():
    suite, data, notes = imported("gaia", lines({"file_name": "a.xlsx"}), "metadata.jsonl")
    assert suite.tests[0].tags == ("level-2", "needs-file")
    assert data["tests"][0]["x-file"] == "a.xlsx"
    assert notes[1:] == ["1 of 1 questions need a file, which a suite cannot send (tag needs-file): c61d22de"]
    suite, _, notes = imported("gaia", lines({}, {"task_id": "2", "Final answer": "?"}), "metadata.jsonl")
    assert len(suite.tests) == 1
    assert notes[1:] == ["1 of 2 questions have no answer and are left out"]
    assert "this is the test split" in refusal("gaia", lines({"Final answer": "?"}), "metadata.jsonl")
    suite, data, _ = imported("gaia", lines({}, {}, {"task_id": "c61d22de (2)"}, {}), "m.jsonl")
    names = [test.name for test in suite.tests]
    assert names == ["c61d22de", "c61d22de (2)", "c61d22de (2) (2)", "c61d22de (3)"]
    assert [test["x-id"] for test in data["tests"]] == ["c61d22de"] * 2 + ["c61d22de (2)", "c61d22de"]


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


def test_promptfoo_test_becomes_a_test_with_equivalent_evaluations():
    suite, data, notes = imported("promptfoo", CONFIG, "promptfooconfig.yaml")
    (test,) = suite.tests
    excluded = {"criterion", "aui_logic"}
    assert [item.model_dump(exclude_defaults=True, exclude=excluded) for item in test.evaluations] == [
        {"strict": "not_regex", "pattern": "(?i)as an ai"},
        {"strict": "contains", "text": "9"},
        {"strict": "regex", "pattern": r"(?i)nine\.|9am", "weight": 3},
        {"strict": "contains", "text": "open", "weight": 0.5},
        {"strict": "contains", "text": "daily", "weight": 0.5},
        {"strict": "regex", "pattern": r"\d+"},
        {"strict": "regex", "pattern": r"\AWe"},
        {"strict": "answer_matches", "expected": ("Nine",), "match": "exact"},
        {"strict": "not_regex", "pattern": r"\A\s*No idea\s*\Z"},
        *({"category": "tone"}, {}, {}, {}),
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
    prompt = "'You are the desk of {{shop}}. Answer: {{question}}'"
    texts = [note.partition(": ")[2] for note in notes]
    assert texts[2:] == [
        "tests[0]: its metadata (owner) is kept without any effect",
        f"prompts: prompts is left out: the agent has its own instructions ({prompt})",
    ]
    assert all("needs a trace" in note for note in texts[:2])
    assert (test.name, test.tags, test.min_score) == ("Opening hours", ("hours",), 80)
    assert [turn.user for turn in suite.turns_of(test)] == ["When does Harbour open?"]
    assert test.user_info == {"shop": "Harbour", "plan": "pro"}
    assert data["tests"][0]["x-metadata"] == {"owner": "desk"}


def one_assertion(kind, **fields):
    """Import one test with one assertion."""
    tests = [{"vars": {"question": "Hi"}, "assert": [{"type": kind, **fields}]}]
    return imported("promptfoo", json.dumps({"tests": tests}, indent=1), "c.json")


F, NAMED = {"name": "f"}, {"toolName": "f"}
FROM_2_TO_4, STRICT, NESTED = {"min": 2, "max": 4}, {"mode": "strict"}, {"o": {"x": {"y": 1}}}
ARGS = {"a": 42, "o": {"x": 1}, "l": [1, 2], "t": "now"}
READ_ARGS = {"a": 42, "o": {"contains": {"x": 1}}, "l": {"equals": [1, 2]}}
EXACT = {"args": {"o": {"equals": {"x": {"y": 1}}}}, "argsMode": "exact", "times": 0}


@each_row(("kind", "value", "strict", "fields"), [
    ("tool-used", F | {"min": 2}, "tool_called", {"toolName": "f", "times": {"min": 2}}),
    ("tool-used", {"pattern": "f", "max": 3}, "tool_called", NAMED | {"times": {"min": 1, "max": 3}}),
    ("not-tool-used", F, "tool_called", {"toolName": "f", "times": {"min": 0, "max": 0}}),
    ("not-tool-used", F | {"min": 0, "max": 2}, "tool_called", {"toolName": "f", "times": {"min": 3}}),
    ("tool-sequence", ["f", {"name": "g"}], "tool_sequence", {"tools": ["f", "g"]}),
    ("tool-sequence", {"mode": "exact", "steps": ["f"]}, "tool_sequence", {"tools": ["f"]} | STRICT),
    ("tool-args-match", F | {"args": ARGS, "ignore": "t"}, "tool_called", NAMED | {"args": READ_ARGS}),
    ("not-tool-args-match", F | {"arguments": NESTED, "mode": "exact"}, "tool_called", NAMED | EXACT),
    ("step-count", {"type": "tool", "max": 4}, "max_tool_calls", {"calls": 4}),
    ("step-count", F | {"type": ["tool"]} | FROM_2_TO_4, "tool_called", NAMED | {"times": FROM_2_TO_4}),
])  # fmt: skip
def test_promptfoo_trajectory_assertions_become_tool_checks(kind, value, strict, fields):
    prefix = "not-" if kind.startswith("not-") else ""
    _, data, _ = one_assertion(f"{prefix}trajectory:{kind.removeprefix('not-')}", value=value)
    (check,) = data["tests"][0]["evaluations"]
    del check["criterion"]
    assert check == {"strict": strict} | fields


SCHEMA = {"type": "object", "required": ["refund"]}


WRITTEN_SCHEMAS = [(None, {}), (True, {}), (SCHEMA, SCHEMA), (json.dumps(SCHEMA), SCHEMA)]


@each_row(("value", "schema"), [*WRITTEN_SCHEMAS, ("type: object", {"type": "object"})])
def test_promptfoo_is_json_reads_its_schema_as_object_json_or_yaml(value, schema):
    suite, _, _ = one_assertion("is-json", value=value)
    (check,) = suite.tests[0].evaluations
    assert (check.strict, check.schema_, check.turn) == ("json_schema", schema, "last")


UNSUPPORTED = "has a value that ci-evals does not support"
WEIGHT = "its weight is not a number from 0 to 1e+06"
ARGS_A = F | {"args": {"a": 1}}
UNMAPPED_TRAJECTORY = [
    ("tool-used", {"name": "search_*"}, "names tools by a pattern"),
    ("tool-used", "search_?", "names tools by a pattern"),
    ("tool-used", F | {"min": 0}, "is met by any number of calls"),
    ("tool-used", F | {"min": "2"}, "its min is not a number"),
    ("tool-used", {"min": 1}, UNSUPPORTED),
    ("tool-used", [], "has no value"),
    ("tool-sequence", [], "has no steps"),
    ("tool-sequence", {"steps": ["f"], "mode": "loose"}, "has no counterpart"),
    ("tool-sequence", [F | {"type": "span"}], "is about steps that are not tool calls"),
    ("tool-args-match", F, UNSUPPORTED),
    ("tool-args-match", F | {"args": {"a": {"b": {"c": 1}}}}, "compares objects within an argument in part"),
    ("tool-args-match", ARGS_A | {"ignore": ["*_id"]}, "leaves arguments out in a way"),
    ("tool-args-match", ARGS_A | {"defaults": {"a": 1}}, "leaves arguments out in a way"),
    ("tool-args-match", ARGS_A | {"defaults": 7}, "leaves arguments out in a way"),
    ("tool-args-match", F | {"args": {"a": "{{ env.X }}"}}, "holds a template that cannot be filled"),
    ("step-count", {"type": "span", "max": 3}, "counts steps that are not tool calls"),
    ("step-count", {"type": "tool", "min": 3}, "asks for a minimum of calls of any tool"),
]
UNMAPPED = [
    *((f"trajectory:{kind}", {"value": value}, f" {reason}") for kind, value, reason in UNMAPPED_TRAJECTORY),
    ("not-trajectory:tool-sequence", {"value": ["f"]}, " has no counterpart"),
    ("not-trajectory:tool-used", {"value": F | {"min": 2, "max": 3}}, " forbids a range of counts"),
    ("cost", {"threshold": 0.1}, " has no counterpart: what the agent costs is not known here"),
    ("not-is-json", {}, " has no counterpart"),
    ("is-json", {"value": {"type": "objct"}}, " has a schema that ci-evals does not accept"),
    ("is-json", {"value": "file://a.json"}, " names a file, which is not read"),
    ("is-json", {"value": "{"}, " has a schema that cannot be read"),
    ("is-json", {"value": 7}, f" {UNSUPPORTED}"),
    ("javascript", {"value": "output.length < 9"}, " has no counterpart"),
    ("contains", {"value": "file://x.txt"}, " names a file, which is not read"),
    ("contains", {"value": "{{ env.X }}"}, " holds a template that cannot be filled"),
    ("regex", {"value": "("}, " is not a regular expression in Python's syntax"),
    ("contains", {"value": "a", "transform": "x"}, ": no counterpart for its transform"),
    ("llm-rubric", {"value": "a", "threshold": 0.7}, ": no counterpart for its threshold"),
    ("not-contains-all", {"value": ["a"]}, " has no counterpart"),
    ("contains", {"value": "a", "weight": 10**400}, f" {WEIGHT}"),
    ("contains", {"value": "a", "weight": -1}, f" {WEIGHT}"),
    ("equals", {"value": {"a": 1}}, f" {UNSUPPORTED}"),
    ("assert-set", {"threshold": 0.5, "assert": []}, " has no counterpart"),
]


@each_row(("assertion", "reason"), [
    *(({"type": kind} | fields, f"'{kind}'{reason}") for kind, fields, reason in UNMAPPED),
    *(({}, "None has no counterpart"), ("contains:x", "is no object")),
])  # fmt: skip
def test_promptfoo_assertion_without_a_counterpart_is_named_in_notes_and_test(assertion, reason):
    config = {"tests": [{"vars": {"question": "Hi"}, "assert": [assertion]}]}
    _, data, notes = imported("promptfoo", json.dumps(config, indent=1), "c.json")
    (note,) = notes
    assert note.startswith("c.json:")
    assert f"tests[0].assert[0]: {reason}" in note
    assert reason in data["tests"][0]["x-unmapped"][0].replace("$${", "${")
    assert data["tests"][0]["evaluations"]


def test_promptfoo_simulated_user_gets_guidelines_and_only_its_variables():
    lines = [("user", "I'd like to book"), ("assistant", "How will you pay?"), ("user", "By {{how}}")]
    variables = {
        "instructions": "You want to pay by {{how}}.",
        "how": "card",
        "initialMessages": [{"role": role, "content": content} for role, content in lines],
    }
    checks = [{"type": "contains", "value": "booked"}, {"type": "not-contains", "value": "c"}]
    config = {
        "defaultTest": {"provider": {"id": "promptfoo:simulated-user", "config": {"maxTurns": 4}}},
        "tests": [{"vars": variables, "assert": checks}, {"vars": {"instructions": "file://a.txt"}}],
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
    variables = {"instructions": "You pay by {{how}}.", "how": "card", "name": "Ann"}
    variables |= {"rules": "Never give a refund", "system_message": "You are a bank's assistant"}
    test = {"provider": "promptfoo:simulated-user", "vars": variables}
    config = {"prompts": ["{{persona_of_bot}}\n{{rules}}"], "tests": [test]}
    suite, data, notes = imported("promptfoo", json.dumps(config), "c.json")
    assert suite.tests[0].user_info == {"how": "card", "name": "Ann"}
    assert "assistant" not in json.dumps(data["tests"][0] | {"x-unmapped": []})
    assert "variable 'rules' is for the agent's prompt" in "\n".join(notes)


def test_promptfoo_variable_from_file_is_noted_and_not_sent():
    questions = {"question": "file://questions/*.txt"}
    hello = {"question": "Hello", "context": "file://context.md"}
    prompts = ["You are a helpful assistant. Answer: {{question}}"]
    config = {"prompts": prompts, "tests": [{"vars": questions}, {"vars": hello}]}
    suite, _, notes = imported("promptfoo", json.dumps(config), "c.json")
    (test,) = suite.tests
    assert (test.turns[0].user, test.user_info) == ("Hello", {})
    assert "tests[0]: its variable 'question' is another file, which is not read" in notes[0]
    assert "tests[0]: left out" in notes[1]
    assert "tests[1]: its variable 'context' is another file" in notes[2]


@each_row(("prompts", "variables", "lines"), [
    (["{{topic}}"], {"topic": "Bananas"}, ["Bananas"]),
    (["Write of {{topic}}"], {"topic": "bananas"}, ["Write of bananas"]),
    ("file://prompt.json", {"a": "Hi", "b": 1}, None),
    ("file://prompt.json", {"a": "Hi"}, ["Hi"]),
    (["Say {{ x | upper }}"], {"y": "z"}, None),
    (['[{"role": "system", "content": "Hm"}, {"role": "user", "content": "{{q}}"}]'], {"q": "A"}, ["A"]),
    ([], {"messages": [{"user": "A"}, {"assistant": "B"}], "question": "C"}, ["A", "C"]),
    (["{{question}}"], {"question": "auto"}, ["auto."]),
])  # fmt: skip
def test_promptfoo_test_with_ambiguous_user_message_is_left_out(prompts, variables, lines):
    config = {"prompts": prompts, "tests": [{"vars": variables}, {"vars": {"question": "Hello"}}]}
    suite, _, _ = imported("promptfoo", json.dumps(config), "c.json")
    users = [[turn.user for turn in suite.turns_of(test)] for test in suite.tests]
    assert [each for each in users if each != ["Hello"]] == ([lines] if lines else [])


def test_promptfoo_steps_of_one_conversation_become_one_test():
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


def test_promptfoo_variable_lists_and_scenarios_become_a_test_per_combination():
    plans = [{"vars": {"plan": "x"}}, {"vars": {"plan": "y"}}]
    scenarios = [{"config": plans, "tests": [{"vars": {"question": "C"}}]}]
    tests = [{"vars": {"question": ["A", "B"], "plan": ["x", "y"]}}]
    config = {"tests": tests, "scenarios": scenarios, "evaluateOptions": {"repeat": 3}}
    suite, _, _ = imported("promptfoo", json.dumps(config), "c.json")
    texts = [(test.turns[0].user, test.user_info["plan"]) for test in suite.tests]
    assert texts == [("A", "x"), ("A", "y"), ("B", "x"), ("B", "y"), ("C", "x"), ("C", "y")]
    assert {test.loops for test in suite.tests} == {3}


MUST = {"model": None, "eval_mode": None, "must": ["Names the 5 days"], "must_not": ["Blames her"]}
GOLDEN = {
    "scenario": "You want a refund for a broken jug.", "turns": None,
    "expected_outcome": "The refund is started", "user_description": "Ida, in a hurry",
    "persona": {"name": "Ida", "characteristics": "In a hurry."}, "context": ["Refunds take 5 days"],
    "name": "Broken jug", "comments": "seen twice", "additional_metadata": {"case": "17"},
    "custom_column_key_values": None, "expectations": MUST,
}  # fmt: skip


def test_deepeval_golden_becomes_guidelines_and_criteria():
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
    kept = {"context": "x-context", "comments": "x-comments", "additional_metadata": "x-metadata"}
    assert notes == [
        *(f"goldens.json:1: {name}: kept as {key}, which has no effect" for name, key in kept.items()),
        "goldens.json:1: no counterpart for user_description",
    ]


RECORDED = {
    "turns": [
        {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!", "toolsCalled": []},
        {"role": "user", "content": "Bye"},
    ],
    "chatbotRole": "A kind clerk", "expectedOutcome": "They part as friends", "mcpServers": [{"name": "x"}],
    "id": 4,
}  # fmt: skip


LOOK_UP = {"name": "look_up", "inputParameters": {"order": "A1", "user": {"id": 7}}, "output": "ok"}


def test_tools_called_in_a_deepeval_conversation_become_a_tool_sequence_check():
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
    invalid = json.dumps([record | {"expected_tools": [7]}])
    assert "must be a list of tools" in refusal("deepeval", invalid, "c.json")


def test_deepeval_conversation_becomes_fixed_turns_with_replies_and_unmapped_parts():
    suite, data, notes = imported("deepeval", json.dumps({"testCases": [RECORDED]}), "cases.json")
    (test,) = suite.tests
    assert [turn.user for turn in suite.turns_of(test)] == ["Hello", "Bye"]
    assert data["tests"][0]["turns"][0] == {"user": "Hello", "x-recorded-reply": "Hi!"}
    assert data["tests"][0]["x-id"] == "4"
    criteria = ["They part as friends", "The agent stays in its role: A kind clerk"]
    assert [item.criterion for item in test.evaluations] == criteria
    assert notes == ["cases.json:1: no counterpart for mcp_servers"]
    called = [{"name": " "}]
    turns = [
        {"role": "assistant", "content": "Welcome!"},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi!", "tools_called": called, "user_id": None},
    ]
    _, data, notes = imported("deepeval", json.dumps([{"turns": turns}]), "cases.json")
    (test,) = data["tests"]
    turn = {"user": "Hello", "x-recorded-reply": "Hi!", "x-unmapped": {"tools_called": called}}
    assert (test["turns"], test["x-unmapped"]) == ([turn], {"opening": "Welcome!"})
    assert notes == ["cases.json:1: no counterpart for opening, turns.tools_called"]


def test_deepeval_json_json_lines_and_csv_give_the_same_suite():
    """Cells of a table hold JSON for what is no text, and the context is joined by bars."""
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


TABLE = """id;Name;user;turns;guidelines;expected;criterion;tags;Difficulty;max turns;user_info.Plan
a-1;Opening hours;When do you open?;;;"nine
9 am";The agent is friendly;hours, happy-path;easy;;
;;;"Hello
auto";You want a refund.;;"Starts the refund
Stays polite";;;4;Pro
"""


COMBINATIONS = json.dumps({"tests": [{"vars": {str(i): ["a"] * 10 for i in range(9)}}]})
LONG_VARS = {"question": "{{a}}" * 999, "a": "{{b}}" * 999, "b": "c" * 999}
LONG_TEXT = json.dumps({"tests": [{"vars": LONG_VARS}]})


@each_row(("kind", "text", "file", "output"), [
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
    ("promptfoo", "tests: [{vars: {q: a}, threshold: 7}]", "c.yaml", "threshold: 7 is not between 0 and 1"),
    ("promptfoo", "tests: []", "c.yaml", "c.yaml: contains nothing that can become a test"),
    ("promptfoo", "a: &a [x]\nb: !!python/object:x {}\ntests: []", "c.yaml", "is not supported"),
    ("promptfoo", COMBINATIONS, "c.json", "its variables have more than 10,000 combinations"),
    ("promptfoo", LONG_TEXT, "c.json",
     "a text has more than 200,000 characters once its variables are filled in"),
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
])  # fmt: skip
def test_invalid_file_is_refused_with_its_position(kind, text, file, output):
    assert output in refusal(kind, text, file)


KEYS = [
    *("Question", "Final answer", "Level", "tests", "vars", "assert", "type", "value", "weight", "threshold"),
    *("provider", "id", "config", "instructions", "question", "messages", "role", "content", "user", "tags"),
    *("metadata", "scenario", "turns", "expectations", "must", "input", "name", "prompts", "maxTurns"),
]
TEXTS = ["auto", "${HOME}", "{{a}}", "file://x", "promptfoo:simulated-user", "contains", "", "\u00e9\ud800"]
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(TEXTS)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@given(st.sampled_from(["gaia", "promptfoo", "deepeval", "openai-evals"]), ANY, st.booleans())
def test_any_json_becomes_a_suite_or_a_usage_error(kind, value, listed):
    if kind == "promptfoo" and listed:
        value = {"tests": [value]}
    text = json.dumps([value] if listed and kind != "promptfoo" else value)
    try:
        written = suite_text(IMPORTERS[kind].read(text, "f.json"), kind, "f.json", "suite.json")
    except UsageError:
        return
    suite = load(written, "suite.json", Reading({"HOME": "/home/secret-user"})).suite
    assert "/home/secret-user" not in str(suite)


@given(text=st.text(max_size=200))
@pytest.mark.parametrize(("kind", "file"), [("csv", "t.csv"), ("deepeval", "t.csv"), ("promptfoo", "c.yaml")])
def test_any_text_becomes_a_suite_or_a_usage_error(kind, file, text):
    messages = []
    for whole in (text, f"user,turns,scenario\n{text}"):
        try:
            suite_text(IMPORTERS[kind].read(whole, file), kind, file, "suite.yaml")
        except UsageError as error:
            messages.append(str(error))
    assert all(messages)


def test_table_of_60000_columns_is_read_in_linear_time():
    """Comparing each column with each would take minutes."""
    header = ",".join(f"user_info.c{number}" for number in range(60_000))
    with at_most(loops=6000):
        message = refusal("csv", f"{header},user_info.c7\nx\n", "t.csv")
    assert "the column 'user_info.c7' appears twice" in message


CSV_ROW = """id,name,user,expected,criterion,tags,difficulty,max_turns,owner,Cost centre
1,n,Hi,9 am,Is kind,a,easy,3,desk,12
"""
DEEPEVAL_GOLDEN = {
    "scenario": "s", "expectedOutcome": "o", "userDescription": "other",
    "persona": {"name": "Ann", "characteristics": "c", "mood": "bad"},
    "expectations": {"must": ["m"], "should": ["x"]}, "context": ["c"], "comments": "c",
    "additionalMetadata": {"a": 1}, "customColumnKeyValues": {"a": "1"}, "multimodal": True,
    "turns": [
        {"role": "user", "content": "Hi", "retrievalContext": ["r"]},
        {"role": "assistant", "content": "Hello", "toolsCalled": [{"title": "t"}]},
    ],
}  # fmt: skip
PROMPTFOO_TEXTS = ("env", "extensions", "derivedMetrics", "nunjucksFilters", "outputPath", "sharing")
STEP_TWO = {"vars": {"question": "And Sunday?"}, "metadata": {"conversationId": "a"}}
PROMPTFOO_CONFIG = {
    "description": "d", "prompts": ["{{system_message}} Use {{context}}.", "Be brief. {{question}}"],
    "providers": ["openai:gpt-5"], "targets": ["http"], "evaluateOptions": {"repeat": 2, "maxConcurrency": 4},
    **dict.fromkeys(PROMPTFOO_TEXTS, "x"),
    **{key: {"a": "x"} for key in ("tags", "redteam", "tracing", "commandLineOptions")},
    "scenarios": [{"description": "all of it", "config": [{"vars": {"question": "Q"}}], "tests": [{}]}],
    "tests": [
        {
            "vars": {"question": "Open?", "system_message": "Obey", "context": "c", "plan": "pro"},
            "provider": {"id": "openai:x", "label": "l"}, "options": {"transform": "t"},
            "assertScoringFunction": "f", "metadata": {"owner": "o", "conversationId": "a"},
            "assert": [{"type": "contains", "value": "a", "config": {}}],
        },
        STEP_TWO | {"description": "step two", "threshold": 0.5},
    ],
}  # fmt: skip
DEEPEVAL_NAMES = [
    *("persona.mood", "expectations.should", "user_description", "multimodal", "turns.retrievalContext"),
    *("turns.toolsCalled", "context", "comments", "additional_metadata", "custom_column_key_values"),
]
PROMPTFOO_NAMES = [
    *(*PROMPTFOO_TEXTS, "prompts", "providers", "targets", "evaluateOptions.maxConcurrency", "tags"),
    *("redteam", "tracing", "commandLineOptions", "no counterpart for its description", "'system_message'"),
    *("'context'", "provider 'openai:x'", "provider.label", "options.transform", "assertScoringFunction"),
    *("metadata (owner)", "its config", "a later step's description, threshold"),
]


@each_row(("kind", "text", "file", "names"), [
    ("gaia", lines({"file_name": "a", "Comment": "c"}), "m.jsonl", ["Annotator Metadata", "Comment"]),
    ("csv", CSV_ROW, "t.csv", ["'owner': kept as x-owner", "'Cost centre': kept as x-cost_centre"]),
    ("deepeval", json.dumps([DEEPEVAL_GOLDEN]), "g.json", DEEPEVAL_NAMES),
    ("promptfoo", json.dumps(PROMPTFOO_CONFIG), "c.json", PROMPTFOO_NAMES),
])  # fmt: skip
def test_every_field_that_is_not_imported_is_named(kind, text, file, names):
    _, _, notes = imported(kind, text, file)
    message = "\n".join(notes)
    assert [name for name in names if name not in message] == []


def test_csv_row_becomes_a_test_whose_answer_is_contained_unless_match_is_given():
    """Lines of a cell are several values; the delimiter is detected from the header."""
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
    suite, data, _ = imported("csv", "user,expected,match\nOpen?,9 am,\nOpen?,9 am,exact\nHi,,\n", "t.csv")
    reply = "We open at 9 am."
    modes = [test.evaluations[0].match for test in suite.tests[:2]]
    assert modes == ["contains", "exact"]
    assert answer_matching.contains(reply, "9 am")
    answers = {"criterion": "The agent answers", "strict": "regex", "pattern": r"\S"}
    assert data["tests"][2]["evaluations"] == [answers]


# `promptfoo import` of promptfoo 0.123.1 accepts this file.
ROWS = [
    {
        "run_id": run,
        "data_source_idx": number,
        "item": {"input": question, "expected": answer, "lang": "en"},
        "sample": {
            "model": model,
            "outputs": [{"role": "assistant", "content": reply}],
            "finish_reason": "stop",
            "token_usage": {"total_tokens": 12, "prompt_tokens": 8, "completion_tokens": 4},
        },
        "grades": {"Similarity-1": 1.0},
        "passes": {"Similarity-1": True},
    }
    for run, model in (("evalrun_1", "gpt-4.1"), ("evalrun_2", "gpt-5"))
    for number, (question, answer, reply) in enumerate(
        [("May I return it?", "30 days", "Within 30 days."), ("Do you ship to Spain?", "Yes", "Yes.")]
    )
]


def rows_text(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def openai(text, file="eval_items_1.jsonl", kind="openai-evals"):
    return imported(kind, text, file)


def config(**fields):
    return json.dumps({"prompts": ["{{item.input}}"], **fields})


def test_repeated_item_becomes_one_test_and_its_other_fields_are_not_sent():
    suite, data, notes = openai(rows_text(ROWS))
    assert [test.name for test in suite.tests] == ["May I return it?", "Do you ship to Spain?"]
    first = data["tests"][0]
    assert first["turns"] == [{"user": "May I return it?", "x-recorded-reply": "Within 30 days."}]
    assert first["x-id"] == "0"
    (check,) = first["evaluations"]
    assert (check["strict"], check["expected"], check["match"]) == ("answer_matches", "30 days", "contains")

    message = "\n".join(notes)
    assert "graders (Similarity-1)" in message
    assert "prompts and models are not in the rows" in message
    assert "item.lang: kept as x-item; the agent is not given it" in message
    assert "item.expected: is what the reply must contain" in message
    assert data["tests"][0]["x-item"] == {"lang": "en"}

    assert all(not test.user_info for test in suite.tests)
    assert "userInfo" not in str(data)


def test_input_messages_become_turns_and_item_without_user_message_is_left_out():
    texts = [("system", "Be kind"), ("user", "Hi"), ("assistant", "Hello"), ("user", "May I return it?")]
    row = {"data_source_idx": 0, "item": {"input": [{"role": role, "content": text} for role, text in texts]}}
    suite, data, _ = openai(rows_text([row]))
    assert [turn.user for turn in suite.tests[0].turns] == ["Hi", "May I return it?"]
    assert data["tests"][0]["systemPrompt"] == "Be kind"
    odd = [{"role": {"a": 1}, "content": "x"}, {"role": "user", "content": "Hi"}]
    suite, _, _ = openai(rows_text([{"data_source_idx": 0, "item": {"input": odd}}]))
    assert [turn.user for turn in suite.tests[0].turns] == ["Hi"]
    _, data, notes = openai(rows_text([*ROWS, {"data_source_idx": 9, "item": {"image": "x.png"}}]))
    assert len(data["tests"]) == 2
    assert "eval_items_1.jsonl:5: item with image: names no user's line" in notes


@pytest.mark.parametrize(("text", "message"), [
    ('{"a": 1}\n', "must be rows of OpenAI's evals"),
    ('{"data_source_idx": 0, "item": {"image": "x"}}\n', "no item has a field that the user says"),
    ('{"item"', "eval_items_1.jsonl:1"),
    ("", "holds no records"),
])  # fmt: skip
def test_file_without_openai_rows_is_refused_with_the_reason(text, message):
    with pytest.raises(UsageError, match=message):
        openai(text)


@pytest.mark.parametrize("kind", ["openai-evals", "promptfoo"])
def test_item_variable_supplies_the_user_message_but_no_user_info(kind):
    text = config(tests=[{"vars": {"item": {"input": "Hi there", "expected": "Hello"}}}])
    suite, _, notes = openai(text, "c.json", kind)
    assert suite.tests[0].turns[0].user == "Hi there"
    assert suite.tests[0].user_info == {}
    assert any("'item' is a row of data" in note for note in notes)


def test_prompt_text_around_user_message_is_left_out_with_note():
    prompts = ["You are a support agent. Answer: {{item.question}}"]
    tests = [{"vars": {"item": {"question": "Hi there"}}}]
    suite, _, notes = openai(config(prompts=prompts, tests=tests), "c.json")
    assert suite.tests[0].turns[0].user == "Hi there"
    assert any("You are a support agent" in note for note in notes)
    prompt = '[{"role": "system", "content": "You are Ann"}, {% for c in _conversation %}{% endfor %}'
    prompts = [prompt + '{"role": "user", "content": "{{question}}"}]']
    _, _, notes = openai(config(prompts=prompts, tests=[{"vars": {"question": "Hi"}}]), "c.json")
    assert any("prompts is left out: the agent has its own instructions" in note for note in notes)


def test_assertion_variables_are_not_in_user_info_but_are_filled_into_rubrics():
    variables = {"input": "Hi", "expected": "Hello", "plan": "gold"}
    tests = [{"vars": variables, "assert": [{"type": "equals", "value": "{{expected}}"}]}]
    suite, _, notes = openai(config(prompts=["{{input}}"], tests=tests), "c.json")
    assert suite.tests[0].user_info == {"plan": "gold"}
    assert any("'expected' is for assertions, and the agent is not given it" in note for note in notes)
    rubric = {"type": "llm-rubric", "value": "{{sample.output_text}} must greet by {{item.expected}}"}
    text = config(tests=[{"vars": {"item": {"input": "Hi", "expected": "Hello"}}, "assert": [rubric]}])
    suite, _, _ = openai(text, "c.json")
    assert suite.tests[0].evaluations[0].criterion == "the reply must greet by Hello"
