"""Files that differ from the checkout's commit, without running a program that its settings name."""

import os
import subprocess

import pytest

from ci_evals.adapters.git.changes import Checkout, GitError, NoGitError

IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@example.org")


def git(folder, *arguments):
    subprocess.run(["git", "-C", folder, *IDENTITY, *arguments], check=True, capture_output=True)


def commit_all(folder, message, *, init=True):
    if init:
        git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", f"--message={message}")


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/prompt.md").write_text("Be kind.")
    (tmp_path / ".gitignore").write_text("ignored\n")
    commit_all(tmp_path, "1")
    return tmp_path


def install_programs(repository, folder, git_folder, *settings):
    """Let settings of the checkout in the folder name a program, which leaves a file if it runs."""
    program = repository / ".git/program"
    program.write_text(f"#!/bin/sh\ntouch '{repository}/.git/ran'\ncat\n")
    program.chmod(0o755)
    (git_folder / "info/attributes").write_text("* filter=own\n")
    for key in ("filter.own.clean", "filter.own.process", "core.fsmonitor", *settings):
        git(folder, "config", key, str(program))
    return program


def has_changes(repository, folder="."):
    return Checkout(repository / folder, os.environ).has_changes(besides=repository / "out [1]")


def test_changed_or_new_file_counts_as_change_unless_ignored_or_output(repository):
    """Seen from any folder; what is ignored is none, nor is what the run writes. Staged is not committed."""
    for folder in (".", "agent"):
        assert has_changes(repository, folder) is False
        for file, text, counts in (
            ("ignored", "x", False), ("out [1]/run/report.html", "x", False),
            ("agent/prompt.md", "Be kinder.", True), ("new", "x", True),
        ):  # fmt: skip
            (repository / file).parent.mkdir(parents=True, exist_ok=True)
            (repository / file).write_text(text)
            assert has_changes(repository, folder) is counts, file
            git(repository, "stash", "--quiet", "--include-untracked")
    git(repository, "rm", "--quiet", "--cached", "agent/prompt.md")
    assert has_changes(repository)


def test_programs_configured_in_repository_are_not_executed(repository):
    """Settings of a repository name filters, hooks and monitors of its own."""
    program = install_programs(repository, repository, repository / ".git", "filter.own.smudge")
    git(repository, "config", "filter.own.required", "true")
    git(repository, "config", "core.hooksPath", str(program.parent))
    (repository / ".git/post-index-change").symlink_to(program)
    (repository / "agent/prompt.md").write_text("Be firm.")  # as long as before
    assert has_changes(repository)
    assert not (repository / ".git/ran").exists()


@pytest.fixture
def submodule(repository, tmp_path_factory):
    """The folder of a submodule of the repository."""
    origin = tmp_path_factory.mktemp("origin")
    (origin / "rules.md").write_text("Refund all.")
    commit_all(origin, "1")
    added = ("submodule", "--quiet", "add", str(origin), "agent/rules")
    git(repository, "-c", "protocol.file.allow=always", *added)
    git(repository, "commit", "--quiet", "--message=2")
    return repository / "agent/rules"


def test_changes_of_a_submodule_count_unless_it_is_not_checked_out(repository, submodule):
    assert has_changes(repository) is False
    for file in ("rules.md", "new.md"):
        (submodule / file).write_text("Refund none.")
        assert has_changes(repository) is True, file
        git(submodule, "stash", "--quiet", "--include-untracked")
        assert has_changes(repository) is False
    git(submodule, "commit", "--quiet", "--allow-empty", "--message=2")
    assert has_changes(repository) is True
    git(repository, "submodule", "--quiet", "deinit", "--force", "--all")
    assert has_changes(repository) is False


def test_programs_configured_in_submodule_are_not_executed(repository, submodule):
    install_programs(repository, submodule, repository / ".git/modules/agent/rules")
    (submodule / "rules.md").write_text("Refund one.")  # as long as before
    assert has_changes(repository) is True
    assert not (repository / ".git/ran").exists()


def test_submodule_whose_worktree_is_elsewhere_raises_git_error(repository, submodule):
    """It is asked neither instead of that folder nor for ever."""
    git(submodule, "config", "core.worktree", str(repository))
    with pytest.raises(GitError, match="cannot say what changed in"):
        has_changes(repository)


def test_missing_git_or_repository_is_an_error(tmp_path, repository):
    with pytest.raises(NoGitError):
        Checkout(repository, {"PATH": "/nowhere"})
    with pytest.raises(GitError):
        Checkout(tmp_path.parent, os.environ)
