"""Each study lives in its folder: without that and its line in the registry, all else works as before."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import reliability_cases
import whole_text
from commands import CLEAN

import ci_evals
from ci_evals.study_registry import STUDIES, study_kinds, study_reports

PACKAGE = Path(ci_evals.__file__).parent
TESTS = Path(__file__).parents[1]
IMPORT_ALL = """
import importlib, pkgutil, ci_evals
for module in pkgutil.walk_packages(ci_evals.__path__, "ci_evals."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
AGENT = "def reply(message): return 'Your order is on its way.'\n"
SUITE = {
    "name": "Orders",
    "adapter": "python:agent:reply",
    "tests": [
        {
            "name": "status",
            "guidelines": "Ask for an order.",
            "turns": [{"user": "Where is it?"}],
            "evaluations": [{"criterion": "It answers", "strict": "contains", "text": "on its way"}],
        }
    ],
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package, with its suites."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, root / "ci_evals", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "suites").symlink_to(PACKAGE.parent / "suites")
    return root


@pytest.fixture(params=STUDIES)
def deleted(request, package, tmp_path):
    """A package without the folder and the line of one study, and the name of the study."""
    root = tmp_path / "package"
    shutil.copytree(package, root, symlinks=True)
    shutil.rmtree(root / "ci_evals/studies" / request.param)
    registry = root / "ci_evals/study_registry.py"
    line = f'    "{request.param}",\n'
    assert registry.read_text().count(line) == 1
    registry.write_text(registry.read_text().replace(line, ""))
    return root, request.param


def python(root, *args, cwd):
    """What Python prints with the package of this folder."""
    # First on the path, before the checkout that the tests are of.
    env = CLEAN | {"PYTHONPATH": os.pathsep.join([str(root), str(TESTS)]), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, *args], cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_everything_else_works_without_a_study(deleted, tmp_path):
    """All other modules import, a run and its report work, and a run keeps what it held of the study."""
    root, study = deleted
    python(root, "-c", IMPORT_ALL, cwd=tmp_path)

    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    python(root, "-m", "ci_evals", "validate", "suite.json", cwd=tmp_path)
    python(root, "-m", "ci_evals", "run", "suite.json", "--provider=offline", cwd=tmp_path)
    python(root, "-m", "ci_evals", "report", "results", cwd=tmp_path)

    saved = tmp_path / "saved/_results.json"
    saved.parent.mkdir()
    saved.write_text(whole_text.dump(reliability_cases.trusted()))
    python(root, "-m", "ci_evals", "report", "saved", cwd=tmp_path)
    summary = (tmp_path / "saved/summary.md").read_text()
    topics = {
        name: report.topic
        for name, report in zip(STUDIES, study_reports(reliability_cases.trusted()), strict=True)
    }
    assert {name for name, topic in topics.items() if f"**{topic}**" in summary} == {*STUDIES} - {study}

    code = "import sys; from ci_evals import load_results; from whole_text import dump; "
    again = python(root, "-c", code + "print(dump(load_results(sys.argv[1])))", "saved", cwd=tmp_path)
    assert json.loads(again) == json.loads(saved.read_text())


def test_a_study_that_cannot_be_read_is_refused_by_who_knows_it(tmp_path):
    """With where in the file it is wrong."""
    data = json.loads(whole_text.dump(reliability_cases.trusted()))
    assert data["studies"].keys() == study_kinds().keys() - {"oldCalibration"}
    data["studies"]["noise"]["parts"][0]["source"] = "weather"
    (tmp_path / "_results.json").write_text(json.dumps(data))
    with pytest.raises(ci_evals.UsageError, match=r"studies\.noise\.parts\[0\]\.source: "):
        ci_evals.load_results(tmp_path)


def test_a_study_that_nobody_knows_is_kept(tmp_path):
    """As it is, unless it is nested too deeply to be written again."""
    data = json.loads(whole_text.dump(reliability_cases.trusted()))
    data["studies"]["weather"] = {"sun": [1, {"rain": None}], "wind": "half \ud800 a pair"}
    (tmp_path / "_results.json").write_text(json.dumps(data))
    again = json.loads(whole_text.dump(ci_evals.load_results(tmp_path)))
    assert again["studies"]["weather"] == {"sun": [1, {"rain": None}], "wind": "half \ufffd a pair"}
    assert {**again, "studies": None} == {**data, "studies": None}
    deep = None
    for _ in range(100):
        deep = [deep]
    data["studies"]["weather"] = deep
    (tmp_path / "_results.json").write_text(json.dumps(data))
    with pytest.raises(ci_evals.UsageError, match=r"studies\.weather.*nested too deeply"):
        ci_evals.load_results(tmp_path)
