"""What is found out about a repository, from its files alone."""

import json

import pytest

from ci_evals.extensions.init.repository import look

SUITE = {"tests": [{"name": "a", "guidelines": "b", "turns": [], "evaluations": []}]}


def repository(folder, *files, **fields):
    (folder / ".git").mkdir()
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(SUITE | fields))
    return folder


@pytest.mark.parametrize(
    ("files", "branch"),
    [
        ({"refs/remotes/origin/HEAD": "ref: refs/remotes/origin/release/next\n"}, "release/next"),
        ({"refs/heads/master": "0", "refs/heads/topic": "0", "HEAD": "ref: refs/heads/topic\n"}, "master"),
        ({"packed-refs": "# pack\n00 refs/remotes/origin/trunk\n", "refs/heads/main": "0"}, "trunk"),
        ({"HEAD": "ref: refs/heads/begun\n"}, "begun"),
        ({"HEAD": "0123456789\n"}, "main"),
        ({}, "main"),
    ],
)
def test_default_branch_is_read_from_git(tmp_path, files, branch):
    """The remote's own word first, the branch one happens to be on last."""
    repository(tmp_path)
    for name, text in files.items():
        (tmp_path / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".git" / name).write_text(text)
    assert look(tmp_path).branch == branch


def test_branch_of_a_linked_worktree_is_read_from_its_repository(tmp_path):
    git, tree = tmp_path / "repo/.git", tmp_path / "tree"
    (git / "worktrees/tree").mkdir(parents=True)
    (git / "worktrees/tree/commondir").write_text("../..\n")
    (git / "refs/heads").mkdir(parents=True)
    (git / "refs/heads/develop").write_text("0")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {git}/worktrees/tree\n")
    assert look(tree).branch == "develop"


def test_repository_without_suites_uses_the_folder_evals(tmp_path):
    (tmp_path / "package.json").write_text('{"guidelines": "evaluations"}')
    result = look(repository(tmp_path, "node_modules/x/s.json", ".hidden/s.json", "a/b/c/d/e/f/s.json"))
    assert (result.root, result.home, result.others, result.adapter) == (tmp_path, "evals", (), None)
    for name in ("config/a.json", "b.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(SUITE))
    (tmp_path / "config/other.json").write_text("{}")
    result = look(tmp_path)
    assert (result.home, result.others, result.adapter) == ("evals", ("b.json", "config/a.json"), "aui")


def test_suites_found_in_repository_or_subfolder_decide_suite_folder_and_adapter(tmp_path):
    assert look(tmp_path).root == tmp_path
    result = look(repository(tmp_path, "tests/agent/a.json", "tests/agent/more/b.yaml", adapter="openai"))
    assert (result.home, result.others, result.adapter) == ("tests/agent", (), "openai")
    (tmp_path / "two").mkdir()
    result = look(repository(tmp_path / "two", "one/suites/a.json", "two/suites/a.json").joinpath("two"))
    assert (result.root, result.home, result.others) == (tmp_path / "two", "two/suites", ())
