"""Suites written as text: what is read back is what was meant."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.extension_support.suite_writing import literal, write
from ci_evals.planning.documents.interpolate import Reading, interpolate
from ci_evals.planning.documents.reader import read
from ci_evals.support.text import whole

FILES = ("s.yaml", "s.json")
texts = st.text(max_size=30).map(whole) | st.sampled_from(
    [
        "yes",
        "1e5",
        "0x1F",
        "2026-05-04",
        "~",
        "- a",
        "a: b",
        "::error::x",
        " ##[group]",
        "\n\n  a\n",
        "a \nb\n\n",
        "<<",
    ]
)
values = st.recursive(
    texts
    | st.integers(-(10**12), 10**12)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("file", FILES)
@given(value=st.dictionaries(texts.filter(lambda key: key != "<<"), values, max_size=4))
def test_written_values_are_read_back(file, value):
    """Also what YAML would take for something else, and what no line may hold."""
    assert read(write(value, file), file).value == json.loads(json.dumps(value))


@pytest.mark.parametrize("file", FILES)
@given(text=st.text("${}:-aX", max_size=12))
def test_literal_text_is_filled_with_nothing(file, text):
    """Foreign text must not read the environment."""
    document = read(write(literal({"a": [text]}), file), file)
    filled = interpolate(document, Reading({"X": "secret-value", "a": "secret-value"}))
    assert (filled.value, filled.problems, filled.secrets) == ({"a": [text]}, [], set())


@given(text=texts)
def test_nothing_printed_is_a_command_to_the_runner(text):
    """A log line that begins with `::` is one."""
    lines = write({"name": text, "many": [f"a\n{text}\n::notice::b"]}, "s.yaml").splitlines()
    assert not [line for line in lines if line.lstrip().startswith(("::", "##["))]


def test_other_readers_of_yaml_see_the_same():
    """Editors and linters are no readers of ours."""
    value = {"a": "1e5", "b": "yes", "c": "12:30:45", "d": "line\nline\n"}
    assert yaml.safe_load(write(value, "s.yml", comment="What\n\nit is")) == value
