"""What of a checkout can be read without git."""

import subprocess
from pathlib import Path

import pytest
from each_row import each_row

from ci_evals.adapters.git.checkout import Checkout, RemoteRepository, checkout_of, repository_of, tracks

HERE = RemoteRepository("github.com", "octo/agent")
THERE = RemoteRepository("github.com", "eve/agent")


@each_row(("url", "repository"), [
    ("https://github.com/octo/agent", HERE),
    ("https://x-access-token:secret@github.com/Octo/Agent.git", HERE),
    ("git@github.com:octo/agent.git", HERE),
    ("ssh://git@github.com:22/octo/agent", HERE),
    ("https://github.com/eve/agent", THERE),
    ("https://github.com/octo", None),
    ("/srv/git/octo/agent", None),
    ("", None),
    ("https://[", None),
])  # fmt: skip
def test_repository_is_read_from_its_remote_address(url, repository):
    assert repository_of(url) == repository


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path) -> Path:
    """A clone as actions/checkout leaves it, with a branch that is fetched and tracked."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "remote", "add", "origin", "https://github.com/octo/agent")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=One")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    return folder


def test_commit_is_read_from_branch_detached_head_and_packed_refs_if_readable(clone):
    commit = git(clone, "rev-parse", "HEAD")
    on_main = Checkout(clone, commit, "main", commit, HERE)
    (clone / "evals").mkdir()
    assert checkout_of(clone / "evals") == on_main
    git(clone, "pack-refs", "--all")
    assert checkout_of(clone) == on_main
    git(clone, "commit", "--quiet", "--allow-empty", "--message=Two")
    result = checkout_of(clone)
    assert (result.commit, result.branch_at_origin) == (git(clone, "rev-parse", "HEAD"), commit)
    git(clone, "checkout", "--quiet", "--detach", commit)
    assert checkout_of(clone) == Checkout(clone, commit, origin=HERE)
    # A HEAD of another kind, a ref that leads out of the folder, a second address of origin.
    (clone / ".git/HEAD").write_text("ref: refs/../../secret")
    assert checkout_of(clone) == Checkout(clone, origin=HERE)
    (clone / ".git/HEAD").write_text("\0 no commit")
    git_config = clone / ".git/config"
    git_config.write_text(git_config.read_text() + "\turl = https://github.com/eve/agent\n")
    assert checkout_of(clone) == Checkout(clone)


def test_innermost_checkout_or_worktree_is_read(clone, tmp_path):
    commit = git(clone, "rev-parse", "HEAD")
    git(clone, "worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "tree"))
    assert checkout_of(tmp_path / "tree") == Checkout(tmp_path / "tree", commit, "topic", None, HERE)
    nested = clone / "pr"
    nested.mkdir()
    git(nested, "init", "--quiet")
    assert checkout_of(nested / "evals") == Checkout(nested, branch="main")
    assert checkout_of(tmp_path) is None


@pytest.mark.parametrize("hashes", ["sha1", "sha256"])
def test_commit_and_tracked_files_are_read_for_both_hash_kinds(tmp_path, hashes):
    """In the repository itself and in a worktree of it; a HEAD may lead through another name."""
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "--quiet", f"--object-format={hashes}")
    for name in ("known", "results/known", "unknown"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    git(root, "add", "known", "results")
    git(root, "commit", "--quiet", "--message=One")
    git(root, "worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"))
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(root, "symbolic-ref", "HEAD", "refs/heads/alias")
    commit, names = git(root, "rev-parse", "main"), ("known", "results/known", "unknown", "results")
    for folder in (root, tmp_path / "tree"):
        for version in ("2", "4"):
            git(folder, "update-index", "--index-version", version)
            assert checkout_of(folder).commit == commit
            assert [tracks(folder / name) for name in names] == [True, True, False, False], version
    assert not tracks(tmp_path / "known")
