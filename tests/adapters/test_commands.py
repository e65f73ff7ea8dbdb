"""Workflow commands, read as the runner reads them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.adapters.github.workflow import command

UNESCAPED = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}


def parse_command(line: str) -> tuple[str, dict[str, str], str]:
    """Name, properties and message, as the runner takes them out of a line of the log."""
    (one,) = line.splitlines() or [line]
    name, result, message = re.fullmatch(r"::([\w-]+)(?: (.*?))?::(.*)", one, re.DOTALL).groups()
    properties = dict(part.split("=", 1) for part in (result or "").split(",") if part)
    return name, {key: _unescaped(value) for key, value in properties.items()}, _unescaped(message)


def _unescaped(text: str) -> str:
    return re.sub("%(?:0D|0A|3A|2C|25)", lambda found: UNESCAPED[found[0]], text)


def test_annotation_has_file_line_and_title_if_known():
    """The runner's toolkit writes it so. A line without a file is left out."""
    line = command("error", "It broke", file="evals/a.json", line=12, title="Failed")
    assert line == "::error file=evals/a.json,line=12,title=Failed::It broke"
    assert command("warning", "x", file=None, line=None) == "::warning::x"
    assert command("endgroup") == "::endgroup::"


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"), min_size=1))
def test_arbitrary_text_stays_in_its_field_of_workflow_command(message, title):
    """Line ends, colons and commas come back as they were, in the part that they were put into."""
    line = command("error", message, title=title, line=1)
    assert "\n" not in line
    assert "\r" not in line
    error = re.fullmatch(r"::error title=([^:,]*),line=1::(.*)", line, re.DOTALL)
    assert (_unescaped(error[1]), _unescaped(error[2])) == (title, message[:4096])


@pytest.mark.parametrize("message", ["x\n::set-output name=score::100", "x\r\n::error::owned"])
def test_message_cannot_contain_a_second_command(message):
    assert parse_command(command("notice", message)) == ("notice", {}, message)
