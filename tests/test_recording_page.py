"""docs/record-and-replay.md says what is so."""

import re
import shlex

import typer
from doc_pages import ROOT, blocks, code, table

from ci_evals.cli.app import app

PAGE = (ROOT / "docs/record-and-replay.md").read_text()
RUN = typer.main.get_command(app).commands["run"]


def test_recording_page_shows_replay_example_and_valid_commands():
    assert blocks("yaml", PAGE) == [(ROOT / "examples/replay.yml").read_text()]
    for command in blocks("sh", PAGE):
        program, name, *rest = shlex.split(command)
        assert (program, name) == ("ci-evals", "run")
        RUN.make_context(name, rest)


def test_recording_page_quotes_messages_word_for_word():
    folders = ("adapters/journal", "cli", "wiring")
    source = "".join(
        file.read_text() for folder in folders for file in (ROOT / "ci_evals" / folder).rglob("*.py")
    )
    plain = re.sub(r'"\s*f?"', "", source)  # texts that are written in several pieces
    plain = re.sub(r"`(\w+)=`", r"--\1", plain)  # as the command line spells settings
    for message, _ in table("message", PAGE):
        for part in re.split("…| to MODEL | 4 ", code(message)):
            words = part.removeprefix("the recording has no answer to this: ").strip(" ,()")
            assert words in plain, words
    assert "the recording has no answer to this: " in plain
