"""What counts as a change, and where `--watch` is refused."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import OutputFormat
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.watch.watching import watch, watched_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/suite.yaml").write_text("name: One")
    return tmp_path


def watched(*suites, **options):
    settings = RunSettings(suites=[*suites], watch=True, **options)
    return watched_files(settings, RunContext({**os.environ}))


def changes(files, change):
    before = files.look()
    change()
    return [path.relative_to(Path.cwd()).as_posix() for path in files.changed(before, files.look())]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("evals/suite.yaml", True),
        ("evals/more/prompt.md", True),
        ("evals/.suite.yaml.swp", False),
        ("evals/suite.yaml~", False),
        ("evals/.git/index", False),
        ("evals/__pycache__/agent.pyc", False),
        ("evals/results/report.html", False),
        ("agent.py", False),
    ],
)
@pytest.mark.parametrize("suite", ["evals", "evals/suite.yaml", "evals/*.yaml"])
def test_only_source_files_next_to_a_suite_are_watched(folder, suite, name, counts):
    files = watched(suite, output_dir=Path("evals/results"))

    def write():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("name: Another")

    assert changes(files, write) == [name] * counts


def test_removed_or_replaced_file_counts_as_change(folder):
    files = watched("evals")
    Path("new").write_text("name: One")
    facts = Path("evals/suite.yaml").stat()
    os.utime("new", ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert changes(files, lambda: Path("new").rename("evals/suite.yaml")) == ["evals/suite.yaml"]
    assert changes(files, Path("evals/suite.yaml").unlink) == ["evals/suite.yaml"]
    assert changes(files, lambda: None) == []


def test_git_ignored_files_are_skipped_and_watch_path_replaces_defaults(folder):
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    Path(".gitignore").write_text("*.db\nmine.yaml\n")
    files = watched("evals")

    def write():
        for name in ("shop.db", "mine.yaml", "prompt.md"):
            Path("evals", name).write_text("1")

    assert changes(files, write) == ["evals/mine.yaml", "evals/prompt.md"]
    Path("agent").mkdir()
    Path("agent/agent.py").touch()
    files = watched("evals", watch_path=["agent", "evals/suite.yaml"])
    assert sorted(path.name for path in files.look()) == ["agent.py", "suite.yaml"]


REFUSED = {
    "`watch=`: CI runs once": ({"suites": ["evals"]}, {"CI": "true"}),
    "`watch=`: bundled suites do not change": ({"suites": ["demo:hr"]}, {}),
    "`watch_path=`: 'agnet' does not exist": ({"suites": ["evals"], "watch_path": ["agnet"]}, {}),
    "`watch=`: 'evalz' does not exist": ({"suites": ["evalz/*.yaml"]}, {}),
    "`watch=`, `format=json`: ": ({"suites": ["evals"], "output_format": OutputFormat.JSON}, {}),
    "`watch=`, `resume=`: ": ({"suites": ["evals"], "resume": Path("results")}, {}),
}


def test_watch_with_incompatible_options_or_events_is_refused(folder):
    for message, (given, environ) in REFUSED.items():
        settings = replace(RunSettings(suites=[], watch=True), **given)
        with pytest.raises(UsageError, match=f"^{re.escape(message)}"):
            watch(settings, RunContext(environ))
