"""The runner's command files and workflow commands, read back as the runner reads them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.adapters.github import workflow
from ci_evals.adapters.github.workflow import command
from ci_evals.domain.errors import UsageError


def read_outputs(text: str) -> dict[str, str]:
    """Outputs as the runner reads them from a file with heredocs."""
    result, lines = {}, iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        name, delimiter = line.split("<<", 1)
        value = []
        for inner in lines:
            if inner == delimiter:
                break
            value.append(inner)
        result[name] = "\n".join(value)
    return result


VALUES = ["", "true", "92.5", "a=b", "two\nlines", "x<<EOF\nEOF", "EOF", "ünï"]


def test_outputs_are_read_back_as_written_with_unguessable_delimiters(tmp_path):
    for number, (value, expected) in enumerate([*zip(VALUES, VALUES, strict=True), ("\ud83d", "\ufffd")]):
        path = tmp_path / str(number)
        workflow.write_outputs(path, {"passed": value, "score": "1"})
        workflow.write_outputs(path, {"later": "x"})
        assert read_outputs(path.read_text()) == {"passed": expected, "score": "1", "later": "x"}
    # A value that knew the delimiter could set other outputs.
    path = tmp_path / "output"
    workflow.write_outputs(path, {"a": "1", "b": "2"})
    delimiters = re.findall(r"<<(\S+)", path.read_text())
    assert len(set(delimiters)) == 2
    assert all(len(delimiter) > 32 for delimiter in delimiters)
    with pytest.raises(UsageError, match=r"cannot write '.*missing/file': No such file"):
        workflow.write_outputs(tmp_path / "missing/file", {"a": "1"})


def test_step_summary_is_appended_and_its_room_is_the_rest_of_the_runner_limit(tmp_path):
    """Other steps of the job write to the same page; what cannot be written in UTF-8 does not lose it.

    Over its limit the runner drops the whole summary, the part of other commands too.
    """
    path = tmp_path / "summary"
    assert workflow.summary_room(path) == workflow.SUMMARY_BYTES == 900 * 1024
    path.write_text("# Another step\n")
    workflow.append_summary(path, "## One ü \ud83d\n")
    assert path.read_text() == "# Another step\n## One ü \ufffd\n"
    path.unlink()
    workflow.append_summary(path, "ü" * 100)
    assert workflow.summary_room(path) == 900 * 1024 - 200
    workflow.append_summary(path, "x" * 1024 * 1024)
    assert workflow.summary_room(path) < 0


def test_each_line_of_a_secret_is_masked():
    """The runner looks at its log line by line; blank lines would mask everything."""
    assert workflow.mask_lines(["{\n  secret-one\n}", "100% sure", "", " "]) == [
        "::add-mask::100%25 sure",
        "::add-mask::secret-one",
        "::add-mask::{%0A  secret-one%0A}",
    ]


@given(st.text())
def test_escaped_text_is_one_line_and_can_be_unescaped(text):
    escaped = workflow.escape_data(text)
    assert not re.search(r"[\r\n]", escaped)
    assert escaped.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%") == text


UNESCAPED = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}


def unescaped(text: str) -> str:
    return re.sub("%(?:0D|0A|3A|2C|25)", lambda match: UNESCAPED[match[0]], text)


def parse_command(line: str) -> tuple[str, dict[str, str], str]:
    """Name, properties and message, as the runner takes them out of a line of the log."""
    (one,) = line.splitlines() or [line]
    name, result, message = re.fullmatch(r"::([\w-]+)(?: (.*?))?::(.*)", one, re.DOTALL).groups()
    properties = dict(part.split("=", 1) for part in (result or "").split(",") if part)
    return name, {key: unescaped(value) for key, value in properties.items()}, unescaped(message)


def test_annotation_has_file_line_and_title_if_known_and_no_second_command():
    line = command("error", "It broke", file="evals/a.json", line=12, title="Failed")
    assert line == "::error file=evals/a.json,line=12,title=Failed::It broke"
    assert command("warning", "x", file=None, line=None) == "::warning::x"
    assert command("endgroup") == "::endgroup::"
    for message in ("x\n::set-output name=score::100", "x\r\n::error::owned"):
        assert parse_command(command("notice", message)) == ("notice", {}, message)


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"), min_size=1))
def test_arbitrary_text_stays_in_its_field_of_workflow_command(message, title):
    line = command("error", message, title=title, line=1)
    assert not {"\n", "\r"} & set(line)
    error = re.fullmatch(r"::error title=([^:,]*),line=1::(.*)", line, re.DOTALL)
    assert (unescaped(error[1]), unescaped(error[2])) == (title, message[:4096])
