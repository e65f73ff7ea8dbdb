"""The files that a folder or a glob of suites stands for: one rule for both."""

import os

import pytest

from ci_evals.adapters import suite_paths
from ci_evals.adapters.suites import sources
from ci_evals.domain.errors import UsageError

RULES = ("evals", "evals/**/*.yaml", "evals/**", "**/*.yaml")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with two suites, and one elsewhere."""
    monkeypatch.chdir(tmp_path)
    for file in ("evals/a.yaml", "evals/deep/b.yaml", "shared/c.yaml"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path


def found(name):
    return [path.as_posix() for path in suite_paths.files(name)]


def refused(name):
    with pytest.raises(UsageError) as caught:
        found(name)
    return str(caught.value)


SCHEMA = '{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}'


def test_a_json_schema_among_suites_is_not_one(place):
    """Editors want it there. A suite that names its schema, or looks like one, is still a suite."""
    (place / "evals/ci-evals.schema.json").write_text(SCHEMA)
    (place / "evals/c.json").write_text('{"$schema": "ci-evals.schema.json"}')
    (place / "evals/d.json").write_text(SCHEMA.replace("}", ', "tests": []}'))
    (place / "evals/e.json").write_text(SCHEMA + "x")
    expected = ["evals/a.yaml", "evals/c.json", "evals/d.json", "evals/deep/b.yaml", "evals/e.json"]
    assert [source.file for source in sources("evals")] == expected


@pytest.mark.parametrize("name", ["schemas", "schemas/a.json", "schemas/*.json"])
def test_a_json_schema_alone_is_an_error(place, name):
    (place / "schemas").mkdir()
    (place / "schemas/a.json").write_text(SCHEMA)
    with pytest.raises(UsageError, match=r"holds no suite: schemas/a\.json is a JSON Schema\."):
        sources(name)


@pytest.mark.parametrize("rule", RULES[:3])
@pytest.mark.parametrize(
    ("link", "target", "more"),
    [
        ("evals/linked", "../shared", ["evals/linked/c.yaml"]),
        ("evals/deep/linked", "../../shared", ["evals/deep/linked/c.yaml"]),
        ("evals/c.yaml", "../shared/c.yaml", ["evals/c.yaml"]),
        ("evals/again", "deep", []),
        ("evals/self", ".", []),
        ("evals/deep/up", "..", []),
        ("evals/copy.yaml", "a.yaml", []),
    ],
)
def test_links_are_followed_and_loops_end(place, rule, link, target, more):
    """Each file is found once, under its own path if the folder has it."""
    (place / link).symlink_to(target)
    files = found(rule)
    assert {os.path.realpath(file) for file in files} == {
        os.path.realpath(file) for file in ("evals/a.yaml", "evals/deep/b.yaml", *more)
    }
    assert len(files) == 2 + len(more)
    assert {"evals/a.yaml", "evals/deep/b.yaml", *more} == set(files)


@pytest.mark.parametrize("rule", RULES)
def test_loops_that_cross_end(place, rule):
    """Two folders that lead to each other, and each to itself."""
    for folder in ("evals", "shared"):
        for name in ("one", "two", "three"):
            (place / folder / name).symlink_to("../shared" if name == "one" else "../evals")
    assert len(found(rule)) == 3


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("link", ["evals/d.yaml", "evals/deep/d.yaml", "evals/deep/some-suites"])
def test_a_broken_link_is_refused_and_named(place, rule, link):
    """A suite may be missing."""
    (place / link).symlink_to("nowhere")
    assert f"'{link}' is a broken link: a suite may be missing" in refused(rule)


@pytest.mark.parametrize("link", ["evals/data.csv", "evals/.#a.yaml", "evals/_old.yaml"])
def test_a_broken_link_of_something_else_does_not_matter(place, link):
    """Data, an editor's lock, and what a folder leaves out anyway."""
    (place / link).symlink_to("nowhere")
    assert len(found("evals")) == 2


@pytest.mark.parametrize("rule", RULES)
def test_irregular_file_is_refused_by_name(place, rule):
    """Likewise."""
    os.mkfifo(place / "evals/pipe.yaml")
    assert "'evals/pipe.yaml' is not a regular file" in refused(rule)


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("evals/*.yaml", ["evals/a.yaml"]),
        ("evals/**/b.yaml", ["evals/deep/b.yaml"]),
        ("**/deep/*.yaml", ["evals/deep/b.yaml"]),
        ("evals/**/[a-b].y?ml", ["evals/a.yaml", "evals/deep/b.yaml"]),
        ("./**/c.yaml", ["shared/c.yaml"]),
        ("**/.hidden/*.yaml", [".hidden/x.yaml"]),
        ("evals/*", ["evals/a.yaml"]),
    ],
)
def test_globs_match_as_in_a_shell(place, pattern, files):
    """With `**` for any folders; what is hidden is matched only by name."""
    (place / ".hidden").mkdir()
    (place / ".hidden/x.yaml").touch()
    assert found(pattern) == files
    absolute = str(place / pattern.removeprefix("./"))
    assert found(absolute) == [f"{place}/{file}" for file in files]


def test_a_folder_without_end_is_refused(place):
    """Links can make more paths than anybody waits for."""
    folder = place / "evals"
    for number in range(40):
        (folder / str(number)).mkdir()
        (folder / "a").symlink_to(str(number))
        (folder / "b").symlink_to(str(number))
        folder = folder / str(number)
    assert "in more than 100 ways" in refused("evals")
