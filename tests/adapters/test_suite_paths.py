"""The files that a folder or a glob of suites stands for: one rule for both."""

import os

import pytest

from ci_evals.adapters import suite_paths
from ci_evals.adapters.suites import sources
from ci_evals.domain.errors import UsageError

RULES = ("evals", "evals/**/*.yaml", "evals/**", "**/*.yaml")


@pytest.fixture
def suites(tmp_path, monkeypatch):
    """A folder with two suites, and one elsewhere."""
    monkeypatch.chdir(tmp_path)
    for file in ("evals/a.yaml", "evals/deep/b.yaml", "shared/c.yaml"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path


def suite_files(name):
    return [path.as_posix() for path in suite_paths.files(name)]


def usage_error(name):
    with pytest.raises(UsageError) as caught:
        suite_files(name)
    return str(caught.value)


SCHEMA = '{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}'


def test_json_schema_in_a_folder_of_suites_is_skipped(suites):
    """Editors want it there. A suite that names its schema, or looks like one, is still a suite."""
    (suites / "evals/ci-evals.schema.json").write_text(SCHEMA)
    (suites / "evals/c.json").write_text('{"$schema": "ci-evals.schema.json"}')
    (suites / "evals/d.json").write_text(SCHEMA.replace("}", ', "tests": []}'))
    (suites / "evals/e.json").write_text(SCHEMA + "x")
    expected = ["evals/a.yaml", "evals/c.json", "evals/d.json", "evals/deep/b.yaml", "evals/e.json"]
    assert [source.file for source in sources("evals")] == expected


def test_path_with_only_json_schema_files_is_rejected_as_holding_no_suite(suites):
    (suites / "schemas").mkdir()
    (suites / "schemas/a.json").write_text(SCHEMA)
    for name in ("schemas", "schemas/a.json", "schemas/*.json"):
        with pytest.raises(UsageError, match=r"holds no suite: schemas/a\.json is a JSON Schema\."):
            sources(name)


@pytest.mark.parametrize(("link", "target", "more"), [
    ("evals/linked", "../shared", ["evals/linked/c.yaml"]),
    ("evals/deep/linked", "../../shared", ["evals/deep/linked/c.yaml"]),
    ("evals/c.yaml", "../shared/c.yaml", ["evals/c.yaml"]),
    ("evals/again", "deep", []),
    ("evals/self", ".", []),
    ("evals/deep/up", "..", []),
    ("evals/copy.yaml", "a.yaml", []),
])  # fmt: skip
def test_symbolic_links_are_followed_and_each_file_is_found_once(suites, link, target, more):
    (suites / link).symlink_to(target)
    expected = {"evals/a.yaml", "evals/deep/b.yaml", *more}
    for rule in RULES[:3]:
        files = suite_files(rule)
        assert {os.path.realpath(file) for file in files} == {os.path.realpath(file) for file in expected}
        assert (len(files), set(files)) == (2 + len(more), expected), rule


def test_files_behind_circular_folder_links_are_found_once(suites):
    for folder in ("evals", "shared"):
        for name in ("one", "two", "three"):
            (suites / folder / name).symlink_to("../shared" if name == "one" else "../evals")
    assert [len(suite_files(rule)) for rule in RULES] == [3] * len(RULES)


@pytest.mark.parametrize("link", ["evals/d.yaml", "evals/deep/d.yaml", "evals/deep/some-suites"])
def test_broken_link_or_irregular_file_among_suites_is_rejected_by_name(suites, link):
    (suites / link).symlink_to("nowhere")
    for rule in RULES:
        assert f"'{link}' is a broken link: a suite may be missing" in usage_error(rule), rule
    (suites / link).unlink()
    os.mkfifo(suites / "evals/pipe.yaml")
    for rule in RULES:
        assert "'evals/pipe.yaml' is not a regular file" in usage_error(rule), rule


def test_broken_link_without_suite_file_name_is_ignored(suites):
    """Data, an editor's lock, and what a folder leaves out anyway."""
    for link in ("evals/data.csv", "evals/.#a.yaml", "evals/_old.yaml"):
        (suites / link).symlink_to("nowhere")
    assert len(suite_files("evals")) == 2


@pytest.mark.parametrize(("pattern", "files"), [
    ("evals/*.yaml", ["evals/a.yaml"]),
    ("evals/**/b.yaml", ["evals/deep/b.yaml"]),
    ("**/deep/*.yaml", ["evals/deep/b.yaml"]),
    ("evals/**/[a-b].y?ml", ["evals/a.yaml", "evals/deep/b.yaml"]),
    ("./**/c.yaml", ["shared/c.yaml"]),
    ("**/.hidden/*.yaml", [".hidden/x.yaml"]),
    ("evals/*", ["evals/a.yaml"]),
])  # fmt: skip
def test_globs_match_as_in_a_shell(suites, pattern, files):
    """With `**` for any folders; what is hidden is matched only by name."""
    (suites / ".hidden").mkdir()
    (suites / ".hidden/x.yaml").touch()
    assert suite_files(pattern) == files
    absolute = str(suites / pattern.removeprefix("./"))
    assert suite_files(absolute) == [f"{suites}/{file}" for file in files]


def test_folder_reachable_by_too_many_link_paths_is_rejected(suites):
    folder = suites / "evals"
    for number in range(40):
        (folder / str(number)).mkdir()
        (folder / "a").symlink_to(str(number))
        (folder / "b").symlink_to(str(number))
        folder = folder / str(number)
    assert "in more than 100 ways" in usage_error("evals")
