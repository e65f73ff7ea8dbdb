"""Every kind of evaluation in every form, for tests that none is missing anywhere."""

from ci_evals.domain.checks.matcher import KEYS

MATCHERS = {
    "number": 42, "text": "a", "null": None, "list": [1, {"min": 2}], "empty object": {},
    "object": {"street": "Main", "tags": ["x"]}, "equals": {"equals": 1}, "equals null": {"equals": None},
    "equals what looks like a condition": {"equals": {"min": 3}},
    "equals what looks like a misspelled condition": {"equals": {"one_of": [1], "gte": 2}},
    "equals an object with equals": {"equals": {"equals": {"oneOf": 1}}}, "contains": {"contains": {"id": 1}},
    "contains null": {"contains": None}, "regex": {"regex": "^A-[0-9]+$"},
    "min and max": {"min": 1, "max": 2.5}, "oneOf": {"oneOf": ["a", 2, None, {"max": 1}]},
    "oneOf and regex": {"oneOf": ["a"], "regex": "a"}, "exists": {"exists": True},
    "exists not": {"exists": False}, "answer": {"answer": "42"},
    "answer, with a tolerance": {"answer": {"match": "numeric", "expected": ["42"], "relTolerance": 0.1}},
    "answer, alike": {"answer": {"match": "fuzzy", "expected": "a", "threshold": 0.5}},
}  # fmt: skip
"""Every form of a matcher, as a suite writes it."""

CONDITIONS = {name: form for name, form in MATCHERS.items() if isinstance(form, dict) and KEYS & form.keys()}

LEVELS = [{"score": 0, "name": "a"}, {"score": 1, "name": "b", "description": "c"}]
SIMPLE = [
    {"strict": "escalated"},
    {"strict": "not_escalated"},
    {"strict": "escalated_due_to_error"},
    {"strict": "not_escalated_due_to_error"},
    {"strict": "tool_used", "toolName": "f"},
    {"strict": "tool_not_used", "toolName": "f", "beforeTurn": 2},
    {"strict": "param_exists", "paramName": "p"},
    {"strict": "param_not_exists", "paramName": "p"},
    {"strict": "rule_triggered", "ruleCode": "r"},
    {"strict": "rule_not_triggered", "ruleCode": "r"},
    {"strict": "integration_called", "integrationCode": "i"},
    {"strict": "contains", "text": "a", "turn": 2},
    {"strict": "not_contains", "text": "a", "turn": "any"},
    {"strict": "regex", "pattern": "a"},
    {"strict": "not_regex", "pattern": "a"},
    {"strict": "answer_matches", "expected": ["a", "b"], "match": "semantic", "threshold": 0.5},
    {"strict": "answer_matches", "expected": "3", "match": "numeric", "relTolerance": 0.5},
    {"strict": "max_agent_turns", "turns": 3},
    {"strict": "max_latency", "seconds": 1.5},
    {"strict": "tool_called", "toolName": "f", "times": 0, "status": "ok", "argsMode": "exact"},
    {"strict": "tool_called", "toolName": "f", "times": {"max": 3}},
    {"strict": "tool_sequence", "tools": ["a", {"name": "b"}], "mode": "superset"},
    {"strict": "max_tool_calls", "calls": 2, "toolName": "f"},
    {"strict": "not_disclosed", "text": "QRTV-4829-KXMD"},
    {"strict": "not_in_tool_calls", "text": "QRTV-4829-KXMD", "allowedTools": ["g"]},
    {"strict": "json_schema", "schema": {"type": "object", "oneOf": [{"minProperties": 1}]}, "turn": "any"},
    {"strict": "json_schema", "schema": "reply.json"},
    {"strict": "python", "function": "checks:refunded"},
    {},
    {"weight": 2, "category": "tone", "aui_logic": ["x"]},
    {"dimensions": ["correctness", {"name": "tone", "rubric": LEVELS}]},
    {"rubric": LEVELS, "passAt": 0.5},
    {"claims": "backed"},
]
"""Evaluations without matchers, in every form."""


def _with_matchers():
    for name, written in MATCHERS.items():
        yield f"args: {name}", {"strict": "tool_called", "toolName": "f", "args": {"a": written}}
        call = {"name": "f", "args": {"a": written}}
        yield f"sequence: {name}", {"strict": "tool_sequence", "tools": [call]}
        yield f"param: {name}", {"strict": "param_equals", "paramName": "p", "paramValue": written}
    for name, written in CONDITIONS.items():
        yield f"state: {name}", {"strict": "state", "probe": "order", "path": "$.a", **written}


EVALUATIONS = {str(form): form for form in SIMPLE} | dict(_with_matchers())
