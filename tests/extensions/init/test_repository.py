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
def test_the_default_branch_is_read_from_git(tmp_path, files, branch):
    """The remote's own word first, the branch one happens to be on last."""
    repository(tmp_path)
    for name, text in files.items():
        (tmp_path / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".git" / name).write_text(text)
    assert look(tmp_path).branch == branch


def test_a_working_tree_of_its_own_has_the_branches_elsewhere(tmp_path):
    """`.git` is a file there."""
    git, tree = tmp_path / "repo/.git", tmp_path / "tree"
    (git / "worktrees/tree").mkdir(parents=True)
    (git / "worktrees/tree/commondir").write_text("../..\n")
    (git / "refs/heads").mkdir(parents=True)
    (git / "refs/heads/develop").write_text("0")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {git}/worktrees/tree\n")
    assert look(tree).branch == "develop"


def test_without_suites_there_is_a_place_for_them(tmp_path):
    """And no adapter to go by."""
    (tmp_path / "package.json").write_text('{"guidelines": "evaluations"}')
    found = look(repository(tmp_path, "node_modules/x/s.json", ".hidden/s.json", "a/b/c/d/e/f/s.json"))
    assert (found.root, found.home, found.others, found.adapter) == (tmp_path, "evals", (), None)


def test_the_folder_of_the_suites_is_found(tmp_path):
    """With the adapter that they all name."""
    found = look(repository(tmp_path, "tests/agent/a.json", "tests/agent/more/b.yaml", adapter="openai"))
    assert (found.home, found.others, found.adapter) == ("tests/agent", (), "openai")


def test_folder_with_files_that_are_no_suites_is_not_used_for_suites(tmp_path):
    """The action would take them for suites."""
    repository(tmp_path, "config/a.json", "b.json")
    (tmp_path / "config/other.json").write_text("{}")
    found = look(tmp_path)
    assert (found.home, found.others, found.adapter) == ("evals", ("b.json", "config/a.json"), "aui")


def test_a_folder_in_the_repository_has_suites_of_its_own(tmp_path):
    """Paths are those from the root, where workflows are."""
    repository(tmp_path, "one/suites/a.json", "two/suites/a.json")
    found = look(tmp_path / "two")
    assert (found.root, found.home, found.others) == (tmp_path, "two/suites", ())


def test_no_repository_is_one_too(tmp_path):
    """It can become one later."""
    assert look(tmp_path).root == tmp_path
