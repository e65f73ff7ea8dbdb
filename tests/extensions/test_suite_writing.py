"""Suites written as text are read back as they were meant, and their command `start` runs where it did."""

import json
import subprocess
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.extension_support.start_command import moved
from ci_evals.extension_support.suite_writing import literal, write
from ci_evals.planning.documents.interpolate import Reading, interpolate
from ci_evals.planning.documents.reader import read
from ci_evals.support.text import whole

FILES = ("s.yaml", "s.json")
ODD_TEXTS = ["yes", "1e5", "0x1F", "2026-05-04", "~", "- a", "a: b", "<<", "\n\n  a\n", "a \nb\n\n"]
texts = st.text(max_size=30).map(whole) | st.sampled_from([*ODD_TEXTS, "::error::x", " ##[group]"])
numbers = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    texts | numbers | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("file", FILES)
@given(value=st.dictionaries(texts.filter(lambda key: key != "<<"), values, max_size=4))
def test_written_suite_values_are_read_back_unchanged(file, value):
    assert read(write(value, file), file).value == json.loads(json.dumps(value))


@pytest.mark.parametrize("file", FILES)
@given(text=st.text("${}:-aX", max_size=12))
def test_variables_in_literal_text_are_not_filled_in(file, text):
    document = read(write(literal({"a": [text]}), file), file)
    filled = interpolate(document, Reading({"X": "secret-value", "a": "secret-value"}))
    assert (filled.value, filled.problems, filled.secrets) == ({"a": [text]}, [], set())


@given(text=texts)
def test_written_lines_are_never_commands_to_the_github_runner(text):
    lines = write({"name": text, "many": [f"a\n{text}\n::notice::b"]}, "s.yaml").splitlines()
    assert not [line for line in lines if line.lstrip().startswith(("::", "##["))]


def test_written_yaml_has_same_values_for_yaml_1_1_reader():
    value = {"a": "1e5", "b": "yes", "c": "12:30:45", "d": "line\nline\n"}
    assert yaml.safe_load(write(value, "s.yml", comment="What\n\nit is")) == value


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
@pytest.mark.parametrize("command", ["pwd", "true & pwd", "false || pwd", "false; pwd"])
@pytest.mark.parametrize("suite", [".", "evals", "evals/more", "../elsewhere"])
def test_moved_start_command_still_runs_in_original_folder(tmp_path, command, suite):
    """All of it, whatever joins its parts, by a relative path."""
    run_in = tmp_path / "a 'shop' of $mine"
    folder = run_in / suite
    folder.mkdir(parents=True)
    start = moved(command, run_in, folder)
    assert str(tmp_path) not in start
    printed = subprocess.run(["/bin/sh", "-c", start], cwd=folder, capture_output=True, text=True, check=True)
    assert printed.stdout == f"{run_in}\n"


def test_start_command_of_the_same_folder_is_unchanged(tmp_path):
    (tmp_path / "link").symlink_to(".")
    assert moved("./serve; wait", tmp_path, tmp_path / "link") == "./serve; wait"
