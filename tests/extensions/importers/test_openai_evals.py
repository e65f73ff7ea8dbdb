"""OpenAI's hosted evals, as rows or promptfoo's file, become a suite. What is left out is named."""

import json

import pytest
import yaml

from ci_evals.domain.errors import UsageError
from ci_evals.extensions.importers.formats import IMPORTERS
from ci_evals.extensions.importers.imported import suite_text
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load

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


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def imported(text, file="eval_items_1.jsonl", kind="openai-evals"):
    """Return the suite, its data and the notes."""
    result = IMPORTERS[kind].read(text, file)
    written = suite_text(result, kind, file, "suite.yaml")
    return load(written, "suite.yaml", Reading()).suite, yaml.load(written, yaml.CSafeLoader), result.notes


def config(**fields):
    return json.dumps({"prompts": ["{{item.input}}"], **fields})


def test_repeated_item_becomes_one_test_and_its_other_fields_are_not_sent():
    suite, data, notes = imported(lines(ROWS))
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


def test_input_messages_become_user_turns_and_a_system_prompt():
    texts = [("system", "Be kind"), ("user", "Hi"), ("assistant", "Hello"), ("user", "May I return it?")]
    row = {"data_source_idx": 0, "item": {"input": [{"role": role, "content": text} for role, text in texts]}}
    suite, data, _ = imported(lines([row]))
    assert [turn.user for turn in suite.tests[0].turns] == ["Hi", "May I return it?"]
    assert data["tests"][0]["systemPrompt"] == "Be kind"
    odd = [{"role": {"a": 1}, "content": "x"}, {"role": "user", "content": "Hi"}]
    suite, _, _ = imported(lines([{"data_source_idx": 0, "item": {"input": odd}}]))
    assert [turn.user for turn in suite.tests[0].turns] == ["Hi"]


def test_item_without_a_user_message_is_left_out_and_named():
    _, data, notes = imported(lines([*ROWS, {"data_source_idx": 9, "item": {"image": "x.png"}}]))
    assert len(data["tests"]) == 2
    assert "eval_items_1.jsonl:5: item with image: names no user's line" in notes


@pytest.mark.parametrize(("text", "message"), [
    ('{"a": 1}\n', "must be rows of OpenAI's evals"),
    ('{"data_source_idx": 0, "item": {"image": "x"}}\n', "no item has a field that the user says"),
    ('{"item"', "eval_items_1.jsonl:1"),
    ("", "holds no records"),
])  # fmt: skip
def test_file_without_openai_rows_is_refused(text, message):
    with pytest.raises(UsageError, match=message):
        imported(text)


@pytest.mark.parametrize("kind", ["openai-evals", "promptfoo"])
def test_item_variable_supplies_the_user_message_but_no_user_info(kind):
    text = config(tests=[{"vars": {"item": {"input": "Hi there", "expected": "Hello"}}}])
    suite, _, notes = imported(text, "c.json", kind)
    assert suite.tests[0].turns[0].user == "Hi there"
    assert suite.tests[0].user_info == {}
    assert any("'item' is a row of data" in note for note in notes)


def test_prompt_text_around_user_message_is_left_out_with_note():
    prompts = ["You are a support agent. Answer: {{item.question}}"]
    tests = [{"vars": {"item": {"question": "Hi there"}}}]
    suite, _, notes = imported(config(prompts=prompts, tests=tests), "c.json")
    assert suite.tests[0].turns[0].user == "Hi there"
    assert any("You are a support agent" in note for note in notes)
    prompt = '[{"role": "system", "content": "You are Ann"}, {% for c in _conversation %}{% endfor %}'
    prompts = [prompt + '{"role": "user", "content": "{{question}}"}]']
    _, _, notes = imported(config(prompts=prompts, tests=[{"vars": {"question": "Hi"}}]), "c.json")
    assert any("prompts is left out: the agent has its own instructions" in note for note in notes)


def test_assertion_variables_are_kept_from_the_user_and_filled_into_rubrics():
    variables = {"input": "Hi", "expected": "Hello", "plan": "gold"}
    tests = [{"vars": variables, "assert": [{"type": "equals", "value": "{{expected}}"}]}]
    suite, _, notes = imported(config(prompts=["{{input}}"], tests=tests), "c.json")
    assert suite.tests[0].user_info == {"plan": "gold"}
    assert any("'expected' is for assertions, and the agent is not given it" in note for note in notes)
    rubric = {"type": "llm-rubric", "value": "{{sample.output_text}} must greet by {{item.expected}}"}
    text = config(tests=[{"vars": {"item": {"input": "Hi", "expected": "Hello"}}, "assert": [rubric]}])
    suite, _, _ = imported(text, "c.json")
    assert suite.tests[0].evaluations[0].criterion == "the reply must greet by Hello"
