"""Lists of texts between commas in promptfoo's assertions: split as promptfoo 0.121 splits them."""

import json

import builders as build
import pytest
import yaml
from each_row import each_row

from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.verdict import Outcome
from ci_evals.extensions.importers.formats import IMPORTERS
from ci_evals.extensions.importers.imported import suite_text
from ci_evals.extensions.importers.promptfoo.values import UnmappedError, split_at_commas
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load


@each_row(("text", "parts"), [
    ("Acme,Globex", ["Acme", "Globex"]),
    (" Acme ,\tGlobex\n", ["Acme", "Globex"]),
    ("Acme", ["Acme"]),
    ("a b,c d", ["a b", "c d"]),
    (",,a,, ,b,", ["a", "b"]),
    ('"1,000",in stock', ["1,000", "in stock"]),
    ('"a" , "b"', ["a", "b"]),
    ('" a "', [" a "]),
    (r'"say \"hi\"",b', ['say "hi"', "b"]),
    ('"say ""hi""",b', ['say "hi"', "b"]),
    ('""""', ['"']),
    ('""""""', ['""']),
    (r'"a\\",b', ["a\\", "b"]),
    (r'"a\n",b', [r"a\n", "b"]),
    ('a"b,c"', ['a"b', 'c"']),
    ("'q,r'", ["'q", "r'"]),
    ('""', [""]),
    (",", []),
    ("", []),
    ("Zürich,東京", ["Zürich", "東京"]),
])  # fmt: skip
def test_list_text_is_split_at_commas_outside_quotes(text, parts):
    assert split_at_commas(text) == parts


@each_row("text", ['"a,b', '"a"x,b', 'a,"b', r'"a\",b', '"a" "b"', '"', 'a,"b"c'])
def test_malformed_quotes_in_promptfoo_list_raise_error(text):
    """promptfoo does the same."""
    with pytest.raises(UnmappedError):
        split_at_commas(text)


def test_very_long_list_text_is_split_or_refused():
    assert len(split_at_commas("a," * 50_000)) == 50_000
    with pytest.raises(UnmappedError):
        split_at_commas('"' + '\\"' * 100_000)


def test_contains_values_and_items_of_lists_are_not_split_at_commas():
    assert passes(imported({"type": "contains", "value": "Acme,Globex"})[0], "Acme,Globex") is True
    assert passes(imported({"type": "contains", "value": "Acme,Globex"})[0], "Acme") is False
    assert passes(imported({"type": "contains-any", "value": ["Acme,Globex"]})[0], "Acme") is False
    assert passes(imported({"type": "icontains", "value": "Acme,Globex"})[0], "Acme") is False


def imported(assertion, **variables):
    test = {"vars": {"question": "Which?"} | variables, "assert": [assertion]}
    tests = [test | {"options": {"disableVarExpansion": True}}]
    config = json.dumps({"prompts": ["{{question}}"], "tests": tests})
    result = IMPORTERS["promptfoo"].read(config, "c.json")
    written = suite_text(result, "promptfoo", "c.json", "s.yaml")
    assert yaml.load(written, yaml.CSafeLoader)["tests"]
    return list(load(written, "s.yaml", Reading()).suite.tests[0].evaluations), result.notes


def passes(evaluations, reply):
    """Return whether promptfoo would pass: all evaluations of an assertion do."""
    transcript = Transcript(turns=(build.turn(agent=reply),), status=EndState.COMPLETED)
    return all(one.decide(transcript).outcome is Outcome.PASSED for one in evaluations)


TEXT = "Acme,Globex"
LIST = ["Acme", "Globex"]


@each_row(("kind", "reply", "passed"), [
    ("contains-any", "We like Globex.", True),
    ("contains-any", "We like globex.", False),
    ("contains-any", "We like Acme,Globex.", True),
    ("icontains-any", "We like GLOBEX.", True),
    ("icontains-any", "We like none.", False),
    ("contains-all", "Acme and Globex", True),
    ("contains-all", "Acme and globex", False),
    ("contains-all", "Acme", False),
    ("icontains-all", "acme and GLOBEX", True),
    ("icontains-all", "acme", False),
    ("not-contains-any", "We like Acme.", False),
    ("not-contains-any", "We like Globex.", False),
    ("not-contains-any", "We like acme.", True),
    ("not-contains-any", "We like none.", True),
    ("not-icontains-any", "We like acme.", False),
    ("not-icontains-any", "We like GLOBEX.", False),
    ("not-icontains-any", "We like none.", True),
])  # fmt: skip
@each_row(("value", "variables"), [
    *((TEXT, {}), (LIST, {}), ('"Acme", "Globex"', {})),
    ("{{brands}}", {"brands": TEXT}),
    ("{{brands}}", {"brands": LIST}),
    ("{{first}},{{second}}", {"first": "Acme", "second": "Globex"}),
    (["{{first}}", "{{second}}"], {"first": "Acme", "second": "Globex"}),
])  # fmt: skip
def test_list_given_as_text_list_or_template_gives_same_verdict(kind, reply, passed, value, variables):
    evaluations, _ = imported({"type": kind, "value": value}, **variables)
    assert passes(evaluations, reply) is passed


@each_row("kind", ["contains-any", "icontains-all", "not-contains-any", "not-icontains-any"])
@each_row(("value", "reason"), [
    ("", "has a value that ci-evals does not support"),
    (",", "has no value"),
    ([], "has no value"),
    ('"",a', "holds an empty text"),
    (["", "a"], "has a value that ci-evals does not support"),
    ('"a,b', "has a list with a quote that is not closed"),
    ('"a"b', "has a list without a comma after a quote"),
    ("{{unknown}},a", "holds a template that cannot be filled: {{unknown}}"),
    ({"a": 1}, "has a value that ci-evals does not support"),
    (True, "has a value that ci-evals does not support"),
    (None, "has a value that ci-evals does not support"),
])  # fmt: skip
def test_unreadable_list_is_named_and_not_checked(kind, value, reason):
    evaluations, notes = imported({"type": kind, "value": value})
    assert [evaluation.criterion for evaluation in evaluations] == ["The agent answers"]
    assert any(f"'{kind}' {reason}" in note for note in notes)
