import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row

from ci_evals.domain.errors import SuiteError
from ci_evals.planning.documents.document import show
from ci_evals.planning.documents.reader import read


def locations(text: str, file: str) -> dict[str, tuple[int, int]]:
    document = read(text, file)
    document.locate(document)
    return {show(path): location for path, location in document.values.items()}


def test_values_of_json_and_yaml_are_located_by_line_and_column():
    text = '{\n\t"a": [1, {"b": "x"}],\n  "c": -2.5e3\n}'
    assert read(text, "s.json").value == {"a": [1, {"b": "x"}], "c": -2500.0}
    paths = ("", "a", "a[0]", "a[1]", "a[1].b", "c")
    in_json = ((1, 1), (2, 7), (2, 8), (2, 11), (2, 17), (3, 8))
    assert locations(text, "s.json") == dict(zip(paths, in_json, strict=True))
    in_yaml = ((1, 1), (2, 3), (2, 5), (3, 5), (3, 8), (4, 4))
    assert locations("a:\n  - 1\n  - b: x\nc: yes\n", "s.yml") == dict(zip(paths, in_yaml, strict=True))


@each_row(("scalar", "value"), [
    ("yes", "yes"),
    ("on", "on"),
    ("2026-05-04", "2026-05-04"),
    ("12:30", "12:30"),
    ("0o17", "0o17"),
    ("007", "007"),
    ("true", True),
    ("null", None),
    ("", None),
    ("12", 12),
    ("-1.5", -1.5),
    (".nan", ".nan"),
    ("'5'", "5"),
    ("=", "="),
])  # fmt: skip
def test_yaml_scalars_have_the_types_of_json(scalar, value):
    assert read(f"a: {scalar}", "s.yaml").value == {"a": value}


@each_row(
    ("text", "value"),
    [
        ("turns: [{ user: Are you open? }]", {"turns": [{"user": "Are you open?"}]}),
        ("[Are you open?, Why? I ask, a?b, '?c', http://x.example/?a=b]",
         ["Are you open?", "Why? I ask", "a?b", "?c", "http://x.example/?a=b"]),
        ("{a?: 1, ? b : 2, ? c, d: '?!'}", {"a?": 1, "b": 2, "c": None, "d": "?!"}),
        ("?a: ?b\nc: [ '?d' ] # or [?e]\nf: |\n  [?g]\n", {"?a": "?b", "c": ["?d"], "f": "[?g]\n"}),
        ("{user: Hi #1, # a note\n  next: a#b}", None),
        ("{user: Hi there, # a note\n  next: a#b}", {"user": "Hi there", "next": "a#b"}),
        ('{url: http://x.example:80/, time: 12:30, "a":1}',
         {"url": "http://x.example:80/", "time": "12:30", "a": 1}),
        ("a:\t1\nb:\t[x,\ty]\t# note\n", {"a": 1, "b": ["x", "y"]}),
        ("a: Are you\n  open?\nb: [Are you\n  open?]", {"a": "Are you open?", "b": ["Are you open?"]}),
        ("[-1, - , -a]", None),
        ("country: [no, yes, on, off, y]", {"country": ["no", "yes", "on", "off", "y"]}),
    ],
)  # fmt: skip
def test_question_marks_hashes_and_tabs_follow_yaml_1_2(text, value):
    if value is None:
        with pytest.raises(SuiteError, match="not YAML"):
            read(text, "s.yaml")
    else:
        assert read(text, "s.yaml").value == value


@each_row(("text", "output"), [
    ('{"a": 1,}', "s.json:1:"),
    ('{\n  "a": tru\n}', "s.json:2:8: not JSON"),
    ("", "the file is empty"),
    ('{"a": NaN}', "s.json:1:7: not JSON: NaN is not a number"),
    ('{"weight": -Infinity}', "-Infinity is not a number"),
    ("[" * 5000 + "]" * 5000, "nested too deeply"),
    ("[" * 100 + "]" * 100, "nested too deeply"),
])  # fmt: skip
def test_broken_json_is_refused_with_its_location(text, output):
    with pytest.raises(SuiteError, match=r"s\.json") as refused:
        read(text, "s.json")
    assert output in str(refused.value)


@each_row(("text", "output"), [
    ("a: [1", "s.yaml:1:4: not YAML: while parsing a flow sequence"),
    ("a: {b: 1\n", "; the bracket that opens here is never closed"),
    ('a: 1\nb: "\\d"', "s.yaml:2:5: not YAML: while parsing a quoted scalar, found unknown escape character"),
    ("a: 1\nb: @c", "found character that cannot start any token: '@'; indent with spaces"),
    ("a: 1\n\tb: 2", "s.yaml:2:1: not YAML"),
    ("a:\n  - b: 1\n   c: 2", "s.yaml:3:4: not YAML: while parsing a block collection"),
    ("a:\n  - b: 1\n   c: 2", "; indent this line like the one that it belongs to"),
    ('a: 1\nb: "x\nc: 2\nd: 3\n', "s.yaml:2:4: not YAML: while scanning a quoted scalar"),
    ('a: 1\nb: "x\nc: 2\n', "; the quote that opens here is never closed"),
    ("a: *nobody", "found undefined alias: '*nobody'"),
    ("? [1]\n: 2", "a key must be a string"),
    ("a: {{session}}", "a key must be a string; put '{{…}}' in quotes"),
    ("a: he says: no", "mapping values are not allowed in this context; quote text that contains ': '"),
    ("a: `b`", "quote text that starts with such a character"),
    ("", "the file is empty"),
    ("a: 1\n---\nb: 2", "expected a single document"),
    ("&a [*a]", "too deeply"),
    ("a: 1\nb: x\x07", 's.yaml:2:5: not YAML: the character U+0007 cannot stand here; write it as "\\u0007"'),
    ("a: \ud800", "the character U+D800 cannot stand here"),
])  # fmt: skip
def test_broken_yaml_is_refused_with_its_location(text, output):
    with pytest.raises(SuiteError) as refused:
        read(text, "s.yaml")
    assert output in str(refused.value)


@each_row("opening", ["[", "- ", "? ", "{a: ", "- ? ", "!!seq ["])
def test_deeply_nested_yaml_is_refused(opening):
    """libyaml would recurse until it crashes the process."""
    for times in (62, 1_000_000):
        with pytest.raises(SuiteError, match=r"s\.yaml:1:[0-9]+: not YAML: nested too deeply"):
            read(opening * times, "s.yaml")
    assert read("[" * 61 + "]" * 61, "s.yaml").problems == []


YAML_1_2: dict[str, Any] = {
    "a: |\n  x\n   ": {"a": "x\n \n"},
    "a: |\n  x": {"a": "x\n"},
    "a: |+\n\n\nb: >-\n  c\n\n  d\n": {"a": "\n\n", "b": "c\nd"},
    "a: ! 12": None,
    "a: ! '12'": None,
    "a: &b\n  # note\n  ! 12": None,
    "a: [!, 12]": None,
    "a: &b:c d": None,
    "a: &b d\nc: *b": {"a": "d", "c": "d"},
    "[&a b, {?*a : c}]": None,
    "{ ?a: b }": None,
    "[?a]": None,
    "[?#a\n b]": None,
    "[?a: b, c]": None,
    "[\n?\u00a0a]": None,
    "[? a, ?\n b: c]": [{"a": None}, {"b": "c"}],
    "- ?a\n- ?b: c": ["?a", {"?b": "c"}],
    "? \n: 1": None,
    "{: 1}": None,
    "'': 1": {"": 1},
    "a: x\u0085b: 1": None,
    "a: 'x\u2028 y'": None,
    "# \u2029a: 1\nb: 1": None,
    'a: "\\u2028\\N"': {"a": "\u2028\x85"},
    "a: x\r\n  y\r\nb: 1\r\n": {"a": "x y", "b": 1},
    "!!int a": None,
    "a: !!int '0x1F'": None,
    "a: !!bool maybe": None,
    'a: !!float "12\\n"': None,
    "a: !!int '12'": {"a": 12},
    "a: !!str 12": {"a": "12"},
}
"""Texts that readers of YAML 1.1 read otherwise, with their value in 1.2, or None where they are refused."""


@each_row("text", YAML_1_2)
def test_yaml_test_suite_cases_are_read_as_yaml_1_2_or_refused(text):
    """Cases of the public yaml-test-suite."""
    assert read_or_refuse(text) == YAML_1_2[text]


def read_or_refuse(text: str) -> Any:
    try:
        document = read(text, "s.yaml")
    except SuiteError:
        return None
    return None if document.problems else document.value


WITHOUT_LIBYAML = """
import json, sys
sys.modules["yaml._yaml"] = None
import yaml
from test_document import YAML_1_2, read_or_refuse
assert not yaml.__with_libyaml__
print(json.dumps([read_or_refuse(text) for text in YAML_1_2]))
"""


def test_yaml_gives_same_result_without_libyaml():
    paths = os.pathsep.join(path for path in (str(Path(__file__).parent), *sys.path) if path)
    command, env = [sys.executable, "-c", WITHOUT_LIBYAML], os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [*YAML_1_2.values()]


def test_yaml_merge_keys_rank_below_own_keys_and_merge_only_mappings():
    text = """
x-base: &b {user: hi, timeout: 5}
x-more: &m {timeout: 9, expectation: greets}
turn:
  <<: [*b, *m]
  user: hello
"""
    document = read(text, "s.yaml")
    assert document.value["turn"] == {"user": "hello", "timeout": 5, "expectation": "greets"}
    assert document.values["turn", "timeout"] == (2, 32)
    assert document.problems == []
    with pytest.raises(SuiteError, match="<< must be a mapping"):
        read("a:\n  <<: 5\n", "s.yaml")
    with pytest.raises(SuiteError, match="a key must be a string"):
        read("a:\n  <<: {[1]: 2}\n", "s.yaml")


@pytest.mark.slow  # it computes
def test_yaml_that_grows_too_large_by_aliases_is_refused():
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
    )
    with pytest.raises(SuiteError, match="aliases"):
        read(text, "s.yaml")
    mapping = ", ".join(f"k{number}: 1" for number in range(1000))
    text = f"a: &a {{{mapping}}}\nb:\n  <<: [{', '.join(['*a'] * 100_000)}]\n"
    with pytest.raises(SuiteError, match="too large because of aliases"):
        read(text, "s.yaml")


def test_yaml_tags_and_duplicate_keys_are_refused():
    """JSON's parser would silently keep the last of two equal keys."""
    for text in ("a: !!python/object/apply:os.system [id]", "a: !x {b: 1}", "a: !x y"):
        (problem,) = read(text, "s.yaml").problems
        assert "the YAML tag" in problem.message
    for text, file in (('{"a": 1,\n "a": 2}', "s.json"), ("a: 1\na: 2\n", "s.yaml")):
        (problem,) = read(text, file).problems
        assert (problem.line, problem.path) == (2, "a")
        assert "given twice (first in line 1)" in problem.message


def test_lone_surrogate_in_a_suite_is_replaced():
    assert read(r'{"a": "\ud83d!", "b": "\ud83d\ude00"}', "s.json").value == {"a": "\ufffd!", "b": "😀"}
