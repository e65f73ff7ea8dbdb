"""docs/real-conversations.md: its example becomes the test that it shows, and its text is read."""

import json

from doc_pages import blocks, code, page, table

from ci_evals.cli.run_context import RunContext
from ci_evals.extensions.importers.conversations.formats import CONVERSATION_FORMATS
from ci_evals.extensions.importers.importing import import_suite
from ci_evals.extensions.importers.settings import ImportSettings

PAGE = page("real-conversations.md")


def test_imported_conversation_becomes_documented_test(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [conversation], [test] = blocks("json", PAGE), blocks("yaml", PAGE)
    (tmp_path / "chats.jsonl").write_text(json.dumps(json.loads(conversation)))
    settings = ImportSettings(
        format="transcript",
        file=tmp_path.joinpath("chats.jsonl").relative_to(tmp_path),
        output=tmp_path / "s.yaml",
    )
    import_suite(settings, RunContext({}))
    assert (tmp_path / "s.yaml").read_text().partition("tests:\n")[2] == test
    assert blocks("text", PAGE)[1] in capsys.readouterr().err


def test_documented_plain_text_is_two_conversations_and_every_format_is_listed(tmp_path):
    source = tmp_path / "chat.txt"
    source.write_text(blocks("text", PAGE)[0])
    import_suite(ImportSettings(format="transcript", file=source, output=tmp_path / "s.yaml"), RunContext({}))
    assert (tmp_path / "s.yaml").read_text().count("- name:") == 2
    assert [code(cell) for cell, _ in table("format", PAGE)] == [*CONVERSATION_FORMATS]
