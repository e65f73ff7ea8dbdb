"""Texts for users say it as a native engineer would: no word that `language` bans."""

import re

from doc_pages import ROOT
from each_row import each_row
from language import PATTERNS, messages, violations

from ci_evals import bundled_suites, load_suite

DOCS = [
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "AGENTS.md", "SECURITY.md",
    "skills/ci-evals/SKILL.md", *sorted((ROOT / "docs").rglob("*.md")),
]  # fmt: skip
FILES = ["action.yml", *sorted((ROOT / "examples").glob("*.yml"))]
GOLDEN = sorted((ROOT / "tests/reports/golden").rglob("*.md"))

BANNED = [
    "The gate holds: score 94", "the run cannot be trusted", "a trial that is played anew",
    "how each number is reckoned", "verdicts that hang less on chance",
    "baselines that pull requests are held against", "the simulated user broke its role in turn 2",
    "this conversation parts from the baseline", "the floor, where there is none", "Most unsound trials",
    "the suite's own, in place of the option", "its trial is played again", "Least score of this test",
    "turns: wants a list, found 5", "GitHub answered with something else than JSON", "the licence afterwards",
    "threads of its own", "shown beside the score", "answer: must be a text, found 5",
    "two steps missed, in all.", "the share that passes, as the judge has it", "labels of nothing in the run",
    "the commit, where the environment tells it", "A workflow that ran for the reply before goes on",
]  # fmt: skip
FINE = [
    "hangs on Linux", "No key, no account, no network", "the exchange rate",
    "Compare the score with the baseline", "how many trials", "a checkout of your own branch",
    "a tie in all pairs", "the text of the comment",
]  # fmt: skip


@each_row("text", BANNED)
def test_banned_wording_is_found_across_lines_and_cases(text):
    assert violations(text.replace(" ", "\n", 1).upper())


def test_wording_check_accepts_plain_text_and_has_a_hint_for_each_pattern():
    assert {text: violations(text) for text in FINE if violations(text)} == {}
    assert all(PATTERNS.values())


def test_wording_check_reads_messages_with_gaps_and_skips_docstrings(tmp_path):
    file = tmp_path / "module.py"
    file.write_text('"""Doc."""\nNAME = "one"\nraise E(f"{x} is {y!r}" " two")\n')
    assert list(messages(file))[:2] == ["one", "… is … two"]


@each_row("path", [*DOCS, *FILES], ids=str)
def test_documents_use_plain_wording(path):
    assert violations((ROOT / path).read_text()) == []


@each_row("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_reports_use_plain_wording(path):
    """Also what is put together only in a report. One of its suites is on exchanges of goods."""
    assert violations(re.sub("exchange", "swap", path.read_text(), flags=re.IGNORECASE)) == []


def test_messages_suite_descriptions_and_templates_use_plain_wording():
    """Templates are those of reports and starters; what a model is asked is measured in other ways."""
    for name in bundled_suites():
        assert violations(load_suite(name).suite.description or "") == []
    modules = sorted((ROOT / "ci_evals").rglob("*.py"))
    assert len(modules) > 200
    texts = {module.relative_to(ROOT).as_posix(): set(messages(module)) for module in modules}
    banned = {text: violated for text in set.union(*texts.values()) if (violated := violations(text))}
    result = {name: [banned[text] for text in items & banned.keys()] for name, items in texts.items()}
    assert {name: items for name, items in result.items() if items} == {}
    templates = [file for file in (ROOT / "ci_evals").rglob("*.j2") if file.parent.name != "prompts"]
    assert len(templates) > 20
    result = {file.name: violations(file.read_text()) for file in templates}
    assert {name: items for name, items in result.items() if items} == {}
