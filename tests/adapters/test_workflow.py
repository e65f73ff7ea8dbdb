"""The runner's command files, read back as the runner reads them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.adapters.github import workflow
from ci_evals.domain.errors import UsageError


def outputs(text: str) -> dict[str, str]:
    """What the runner takes out of an outputs file with heredocs."""
    found, lines = {}, iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        name, delimiter = line.split("<<", 1)
        value = []
        for inner in lines:
            if inner == delimiter:
                break
            value.append(inner)
        found[name] = "\n".join(value)
    return found


@pytest.mark.parametrize("value", ["", "true", "92.5", "a=b", "two\nlines", "x<<EOF\nEOF", "EOF", "ünï"])
def test_an_output_comes_back_as_it_was_written(tmp_path, value):
    """Empty, with line ends, with something like a heredoc in it."""
    path = tmp_path / "output"
    workflow.write_outputs(path, {"passed": value, "score": "1"})
    workflow.write_outputs(path, {"later": "x"})
    assert outputs(path.read_text()) == {"passed": value, "score": "1", "later": "x"}


def test_delimiters_cannot_be_guessed(tmp_path):
    """A value that knew the delimiter could set other outputs."""
    path = tmp_path / "output"
    workflow.write_outputs(path, {"a": "1", "b": "2"})
    delimiters = re.findall(r"<<(\S+)", path.read_text())
    assert len(set(delimiters)) == 2
    assert all(len(delimiter) > 32 for delimiter in delimiters)


def test_half_a_character_does_not_lose_the_outputs(tmp_path):
    """All outputs are written, the half as U+FFFD."""
    path = tmp_path / "output"
    workflow.write_outputs(path, {"a": "\ud83d", "b": "2"})
    assert outputs(path.read_text()) == {"a": "\ufffd", "b": "2"}


def test_a_summary_within_the_budget_is_whole(tmp_path):
    """Sections one after another, behind what is there already."""
    path = tmp_path / "summary"
    path.write_text("# Another step\n")
    workflow.append_summary(path, [("one", "## One\n"), ("two", "## Two\n")])
    assert path.read_text() == "# Another step\n## One\n\n## Two\n\n"


def test_a_summary_is_cut_between_sections(tmp_path):
    """The first ones stay whole; a note names those that are missing."""
    path = tmp_path / "summary"
    sections = [(f"part {number}", f"## {number}\n" + "ü" * 200 + "\n") for number in range(10)]
    workflow.append_summary(path, sections, budget=2_000)
    text = path.read_text()
    assert len(text.encode()) <= 2_000
    assert text.startswith("\n".join(section for _, section in sections[:4]))
    assert "## 4" not in text
    assert text.endswith(
        "\n\nLeft out here, for want of room: part 4; part 5; part 6; part 7; part 8; and 1 more. "
        "The summary.md of this run has everything.\n"
    )


def test_a_summary_never_goes_over_the_budget(tmp_path):
    """Over its limit the runner drops the whole summary, the part of other steps too."""
    path = tmp_path / "summary"
    for _ in range(5):
        workflow.append_summary(path, [("x", "x" * 700), ("y", "y" * 700)], budget=2_000)
    assert path.stat().st_size <= 2_000


def test_files_that_cannot_be_written_are_named(tmp_path):
    """With the reason."""
    with pytest.raises(UsageError, match=r"cannot write '.*missing/file': No such file"):
        workflow.write_outputs(tmp_path / "missing/file", {"a": "1"})


def test_masks_cover_each_line_of_a_secret():
    """The runner looks at its log line by line; blank lines would mask everything."""
    assert workflow.mask_lines(["{\n  secret-one\n}", "100% sure", "", " "]) == [
        "::add-mask::100%25 sure",
        "::add-mask::secret-one",
        "::add-mask::{%0A  secret-one%0A}",
    ]


@given(st.text())
def test_escaped_text_stays_within_its_command(text):
    """One line, and the runner's own unescaping gives back the text."""
    escaped = workflow.escape_data(text)
    assert not re.search(r"[\r\n]", escaped)
    assert escaped.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%") == text
