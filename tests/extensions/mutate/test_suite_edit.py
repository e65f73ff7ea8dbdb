"""Checks are added to the text of a suite, which stays as its author wrote it."""

from dataclasses import replace

import pytest

from ci_evals import UsageError
from ci_evals.extensions.mutate.result import Suggestion
from ci_evals.extensions.mutate.suite_edit import with_evaluations, written_tests

CHECK = {"criterion": "Refunds", "strict": "tool_called", "toolName": "refund", "args": {"order": "4711"}}


def added(text, file, test="One"):
    """The lines that are new."""
    suggestion = Suggestion(suite=file, test=test, kinds=("call_dropped",), evaluation=CHECK)
    new = with_evaluations(text, file, [suggestion])
    old_lines, new_lines = text.splitlines(), new.splitlines()
    assert [line for line in new_lines if line in old_lines] == old_lines
    return [line for line in new_lines if line not in old_lines]


def test_comments_and_layout_of_yaml_stay():
    text = """\
# Our shop
tests:
  - name: One   # the first
    turns: [{user: Hello}]
    evaluations:
      - criterion: Friendly  # as ever
      # a note
      - criterion: |
          Several
          lines

  - name: Two
    turns: [{user: Hello}]
    evaluations:
    - criterion: Friendly # at the end"""
    assert added(text, "shop.yaml") == [
        "      - criterion: Refunds",
        "        strict: tool_called",
        "        toolName: refund",
        "        args:",
        "          order: '4711'",
    ]
    assert added(text, "shop.yaml", "Two")[0] == "    - criterion: Refunds"


def test_json_on_one_line_and_on_several():
    text = """\
{
  "tests": [
    {
      "name": "One",
      "evaluations": [
        { "criterion": "Friendly" }
      ]
    },
    {
      "name": "Two",
      "evaluations": [
        {
          "criterion": "Friendly"
        }
      ]
    }
  ]
}
"""
    line = (
        '        { "criterion": "Refunds", "strict": "tool_called", "toolName": "refund", '
        '"args": {"order": "4711"} }'
    )
    suggestion = Suggestion(suite="s.json", test="One", kinds=("call_dropped",), evaluation=CHECK)
    new = with_evaluations(text, "s.json", [suggestion])
    assert f'        {{ "criterion": "Friendly" }},\n{line}\n      ]' in new
    second = replace(suggestion, test="Two")
    assert '          "criterion": "Friendly"\n        },\n        {\n' in with_evaluations(
        text, "s.json", [second]
    )


def test_a_list_in_brackets_is_continued():
    text = "tests: [{name: One, evaluations: [{criterion: Friendly}]}] # all\n"
    suggestion = Suggestion(suite="s.yaml", test="One", kinds=("call_dropped",), evaluation=CHECK)
    new = with_evaluations(text, "s.yaml", [suggestion])
    assert new.startswith("tests: [{name: One, evaluations: [{criterion: Friendly}, {")
    assert new.endswith("}]}] # all\n")


def test_a_layout_that_would_change_other_tests_is_refused():
    """Two tests that share their evaluations: what is added for one would be added for both."""
    text = """\
tests:
  - name: One
    evaluations: &all
      - criterion: Friendly
  - name: Two
    evaluations: *all
"""
    suggestion = Suggestion(suite="s.yaml", test="Two", kinds=("call_dropped",), evaluation=CHECK)
    with pytest.raises(UsageError, match="cannot be added to this layout"):
        with_evaluations(text, "s.yaml", [suggestion])


def test_tests_of_personas_are_not_written_in_the_file():
    text = "personas: {rude: {traits: [hostile]}}\ntests:\n  - {name: One, personas: [rude]}\n"
    assert written_tests(text, "shop.yaml") == {"One"}
