"""Files appear whole or not at all, and only where they belong."""

import os
from pathlib import Path

import pytest
from each_row import each_row

from ci_evals.adapters import files
from ci_evals.domain.errors import UsageError


def read_all(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_files_are_written_with_their_folders_and_nothing_else(tmp_path):
    written = {"_results.json": "{}\n", "Refunds/2026/_summary.md": "# Ü 漢\n"}
    files.write_all(tmp_path / "results", written)
    assert read_all(tmp_path / "results") == written
    assert (tmp_path / "results/Refunds/2026/_summary.md").read_bytes() == "# Ü 漢\n".encode()


def test_file_is_replaced_atomically_or_left_unchanged(tmp_path):
    path = tmp_path / "summary.md"
    path.write_text("old and long")
    with path.open() as reader:
        files.write(path, "new")
        assert reader.read() == "old and long"
    assert read_all(tmp_path) == {"summary.md": "new"}
    with pytest.raises(UnicodeEncodeError):
        files.write(path, "x" * 100_000 + "\ud83d")
    assert read_all(tmp_path) == {"summary.md": "new"}


def test_file_written_in_parts_is_replaced_only_after_last_part(tmp_path):
    path = tmp_path / "_results.json"
    path.write_text("old")
    seen = []

    def parts():
        for part in ("{", '"a": 1', "}\n"):
            seen.append(path.read_text())
            yield part

    files.write(path, parts())
    assert (seen, read_all(tmp_path)) == (["old"] * 3, {"_results.json": '{"a": 1}\n'})


@each_row("end", [RuntimeError, KeyboardInterrupt])
def test_interrupted_write_in_parts_keeps_old_file(tmp_path, end):

    def parts():
        yield "x" * 100_000
        raise end

    (tmp_path / "b.md").write_text("old")
    with pytest.raises(end):
        files.write_all(tmp_path, {"a.md": ["first"], "b.md": parts(), "c.md": "third"})
    assert read_all(tmp_path) == {"a.md": "first", "b.md": "old"}


@each_row("name", ["../x", "a/../../x", "/etc/x", "", ".", "..", "a\\..\\x", "a\0b"])
def test_file_name_outside_output_root_is_rejected_and_nothing_is_written(tmp_path, name):
    with pytest.raises(UsageError, match="will not write"):
        files.write_all(tmp_path / "results", {"good.md": "x", name: "x"})
    assert not (tmp_path / "results").exists()


def test_link_out_of_the_root_is_rejected_as_a_folder_and_replaced_as_a_file(tmp_path):
    """A folder committed as a link must not make the action write elsewhere, nor a file what it points to."""
    outside, root = tmp_path / "outside", tmp_path / "results"
    outside.mkdir()
    root.mkdir()
    (root / "Refunds").symlink_to(outside)
    with pytest.raises(UsageError, match="a symbolic link leads out of"):
        files.write_all(root, {"Refunds/2026/_summary.md": "x"})
    assert read_all(outside) == {}
    (outside / "target").write_text("keep me")
    (root / "summary.md").symlink_to(outside / "target")
    files.write_all(root, {"summary.md": "new"})
    assert ((outside / "target").read_text(), (root / "summary.md").is_symlink()) == ("keep me", False)


def test_folder_link_within_root_is_followed_and_link_loop_is_rejected(tmp_path):
    """`latest` may point to another folder of the root."""
    (tmp_path / "2026").mkdir()
    (tmp_path / "latest").symlink_to(tmp_path / "2026")
    files.write_all(tmp_path, {"latest/summary.md": "x"})
    assert (tmp_path / "2026/summary.md").read_text() == "x"
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(UsageError, match=r"cannot write|leads out"):
        files.write_all(tmp_path, {"a/x": "x"})


def test_error_names_path_blocked_by_existing_file_or_folder_and_no_file_is_left(tmp_path):
    (tmp_path / "taken").write_text("I am a file")
    (tmp_path / "folder/sub").mkdir(parents=True)
    files.check_writable(tmp_path / "a/b")
    for path in ("taken/x.md", "folder"):
        with pytest.raises(UsageError, match=rf"cannot write '.*{path}'"):
            files.write_all(tmp_path, {path: "x"})
    root = tmp_path / "taken/results"
    with pytest.raises(UsageError, match=r"cannot write '.*taken.*': Not a directory"):
        files.write_all(root, {"x.md": "x"})
    with pytest.raises(UsageError, match=r"cannot write to the folder '.*taken/results': Not a directory"):
        files.check_writable(root)
    assert read_all(tmp_path) == {"taken": "I am a file"}


def test_written_files_belong_to_owner_of_workspace_and_are_readable_by_others(tmp_path):
    """In a container; else the next checkout on the same machine cannot clean them away."""
    # Only root, as in a container, may give files away; for others the owner is who runs the tests.
    owner = (1234, 1235) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    os.chown(workspace, *owner)
    files.write_all(workspace / "results", {"Refunds/_summary.md": "x"})
    for path in (workspace / "results").rglob("*"):
        assert (path.stat().st_uid, path.stat().st_gid) == owner
    assert (workspace / "results").stat().st_uid == owner[0]
    # A temporary file's private mode would keep the upload step from reading reports.
    umask = os.umask(0o022)
    try:
        files.write(tmp_path / "x", "x")
    finally:
        os.umask(umask)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o644
