"""The command `start`, for a suite in another folder."""

import subprocess
import sys

import pytest

from ci_evals.extension_support.start_command import moved


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
@pytest.mark.parametrize("command", ["pwd", "true & pwd", "false || pwd", "false; pwd"])
@pytest.mark.parametrize("suite", [".", "evals", "evals/more", "../elsewhere"])
def test_moved_start_command_still_runs_in_original_folder(tmp_path, command, suite):
    """All of it, whatever joins its parts, by a relative path."""
    run_in = tmp_path / "a 'shop' of $mine"
    folder = run_in / suite
    folder.mkdir(parents=True)
    start = moved(command, run_in, folder)
    assert str(tmp_path) not in start
    printed = subprocess.run(["/bin/sh", "-c", start], cwd=folder, capture_output=True, text=True, check=True)
    assert printed.stdout == f"{run_in}\n"


def test_start_command_of_the_same_folder_is_unchanged(tmp_path):
    (tmp_path / "link").symlink_to(".")
    assert moved("./serve; wait", tmp_path, tmp_path / "link") == "./serve; wait"
