"""Checks are added to the text of a suite, which stays as its author wrote it."""

from dataclasses import replace

import pytest

from ci_evals import UsageError
from ci_evals.extensions.mutate.result import Suggestion
from ci_evals.extensions.mutate.suite_edit import with_evaluations, written_tests

CHECK = {"criterion": "Refunds", "strict": "tool_called", "toolName": "refund", "args": {"order": "4711"}}


def lines_added(text, file, test="One"):
    suggestion = Suggestion(suite=file, test=test, kinds=("call_dropped",), evaluation=CHECK)
    new = with_evaluations(text, file, [suggestion])
    old_lines, new_lines = text.splitlines(), new.splitlines()
    assert [line for line in new_lines if line in old_lines] == old_lines
    return [line for line in new_lines if line not in old_lines]


def test_yaml_comments_layout_and_flow_lists_are_kept():
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
    fields = [
        "- criterion: Refunds",
        "  strict: tool_called",
        "  toolName: refund",
        "  args:",
        "    order: '4711'",
    ]
    assert lines_added(text, "shop.yaml") == ["      " + field for field in fields]
    assert lines_added(text, "shop.yaml", "Two")[0] == "    - criterion: Refunds"
    text = "tests: [{name: One, evaluations: [{criterion: Friendly}]}] # all\n"
    suggestion = Suggestion(suite="s.yaml", test="One", kinds=("call_dropped",), evaluation=CHECK)
    new = with_evaluations(text, "s.yaml", [suggestion])
    assert new.startswith("tests: [{name: One, evaluations: [{criterion: Friendly}, {")
    assert new.endswith("}]}] # all\n")


def test_edit_of_json_suite_keeps_its_line_layout():
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
    fields = '"criterion": "Refunds", "strict": "tool_called", "toolName": "refund"'
    fields += ', "args": {"order": "4711"}'
    line = f"        {{ {fields} }}"
    suggestion = Suggestion(suite="s.json", test="One", kinds=("call_dropped",), evaluation=CHECK)
    new = with_evaluations(text, "s.json", [suggestion])
    assert f'        {{ "criterion": "Friendly" }},\n{line}\n      ]' in new
    new = with_evaluations(text, "s.json", [replace(suggestion, test="Two")])
    assert '          "criterion": "Friendly"\n        },\n        {\n' in new


def test_shared_evaluations_are_refused_and_personas_are_no_written_tests():
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
    text = "personas: {rude: {traits: [hostile]}}\ntests:\n  - {name: One, personas: [rude]}\n"
    assert written_tests(text, "shop.yaml") == {"One"}
