"""The package has the files of the repository, and locked versions satisfy the declared ranges."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from zipfile import ZipFile

import pytest
from doc_pages import ROOT, code, table
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from programs import run_captured

import ci_evals

LIBRARY = (ROOT / "docs/library.md").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements(group: str) -> list[Requirement]:
    """The ranges of one dependency group of pyproject.toml, those of the groups it includes with it."""
    result = []
    for entry in PYPROJECT["dependency-groups"][group]:
        result += requirements(entry["include-group"]) if isinstance(entry, dict) else [Requirement(entry)]
    return result


MOST_BYTES = 500_000
RUNTIME = [Requirement(entry) for entry in PYPROJECT["project"]["dependencies"]]


def locked(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", text, flags=re.MULTILINE))


@pytest.mark.slow
def test_wheel_contains_exactly_the_files_of_package_and_suites(tmp_path):
    """Modules, templates, prompts, data, suites, and the mark without which annotations are ignored."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    done = run_captured(command, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.iterdir()
    with ZipFile(file) as archive:
        there = {name for name in archive.namelist() if ".dist-info/" not in name}
    package, suites = (
        {file.relative_to(ROOT).as_posix() for file in (ROOT / folder).rglob("*") if file.is_file()}
        for folder in ("ci_evals", "suites")
    )
    wanted = package | {f"ci_evals/{name}" for name in suites}
    assert there == {name for name in wanted if "__pycache__" not in name}
    assert "ci_evals/py.typed" in there


def test_package_and_image_have_the_version_of_pyproject():
    version = PYPROJECT["project"]["version"]
    assert (ci_evals.__version__, metadata.version("ci-evals")) == (version, version)
    assert f'image.version="{version}"' in (ROOT / "Dockerfile").read_text()


def test_library_page_lists_every_public_name():
    for name in ci_evals.__all__:
        assert getattr(ci_evals, name)
    items = {code(name).split("(")[0] for name, _ in table("name in ci_evals", LIBRARY)}
    listed = {name for cell in items for name in re.split("`, `", cell)}
    assert listed == set(ci_evals.__all__) - {"__version__"}


DECLARED = {"dev": RUNTIME + requirements("dev"), "run": RUNTIME}
DECLARED |= {group: requirements(group) for group in ("build", "pip")}


@pytest.mark.parametrize("lock", DECLARED)
def test_locked_versions_satisfy_ranges_match_dev_and_have_hashes_but_no_urls(lock):
    """Whoever widens or raises a range runs `make lock`."""
    versions = locked(lock)
    for requirement in DECLARED[lock]:
        name = canonicalize_name(requirement.name)
        assert requirement.specifier.contains(versions.get(name, "0")), f"{requirement} in {lock}.txt"
    dev, text = locked("dev") | locked("pip"), (ROOT / "requirements" / f"{lock}.txt").read_text()
    assert {name: dev.get(name) for name in versions} == versions
    assert "://" not in text
    assert "--index-url" not in text
    for entry in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in entry, entry


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source archive")
def test_repository_has_no_large_file():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert files
    assert [str(file) for file in files if file.is_file() and file.stat().st_size > MOST_BYTES] == []
