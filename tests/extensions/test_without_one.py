"""Extensions live in folders of their own: without these and their lines, all else works as before."""

import json
import os
from functools import reduce
from itertools import chain, combinations, count
from math import comb
from pathlib import Path

import pytest
import reliability_cases
import report_texts
from commands import ci_evals as command

import ci_evals
from ci_evals.extension_registry import GROUP, installed, study_kinds

PACKAGE = Path(ci_evals.__file__).parent
WORK = """
import importlib, pkgutil, sys
from pathlib import Path

# The fork server has imported the checkout's package; here another is imported, from the given folder.
for name in [*sys.modules]:
    if name.partition(".")[0] in {"ci_evals", "fork_server", "report_texts"}:
        del sys.modules[name]

import ci_evals
from ci_evals import UsageError, load_results
from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.extension_registry import installed
from ci_evals.reports.markdown import documents
from ci_evals.reports.story.story import story_of
from report_texts import results_json_text

assert Path(ci_evals.__file__).is_relative_to(sys.argv[1])
for module in pkgutil.walk_packages(ci_evals.__path__, "ci_evals."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
run = ["run", "suite.yaml", "--provider=offline", "--no-gate", "--quiet"]
commands = [["--help"], ["schema", "--results"], run]
if "report" in installed().names():
    commands.append(["report", "saved"])
def code_of(command, environ):
    try:
        return invoke(command, RunContext(environ))
    except SystemExit as end:
        return end.code

for command in commands:
    code = code_of(command, {})
    assert not code, (command, code)
# No run goes on without what it was asked for. One set that lacks an extension shows this of it.
refused = {
    "spans": (["suite.yaml", "--otlp"], "no installed extension can receive spans"),
    "worlds": (["world.yaml"], "no installed extension does the steps of a world"),
}
for name in refused.keys() & sys.argv[2:]:
    options, why = refused[name]
    try:
        invoke(["run", *options, "--provider=offline"], RunContext({}))
    except UsageError as error:
        assert why in str(error)
    else:
        raise AssertionError(f"it ran without {name}")
# Nor does one pass that is to be compared, and cannot find its baseline.
if "gitlab" in sys.argv[2:]:
    for options, expected in (([], 0), (["--max-drop=5"], 3), (["--max-drop=5", "--baseline=none"], 0)):
        job = {"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "7"}
        command = ["run", "suite.yaml", "--provider=offline", "--agent-in-process", *options]
        code = code_of(command, job)
        reasons = load_results(Path("results")).gate.reasons
        assert (code, "not installed" in str(reasons)) == (expected, expected == 3), (options, code, reasons)
saved = load_results(Path("saved"))
Path("again.json").write_text(results_json_text(saved))
Path("summary.md").write_text(documents.summary(story_of(saved)))
Path("names").write_text("\\n".join(installed().names()))
"""
SUITE = """
name: Refunds
adapter: python:agent:reply
tests:
  - name: Refund
    guidelines: You want a refund.
    turns: [{user: My parcel came damaged.}]
    evaluations: [{criterion: It answers, strict: contains, text: parcel}]
"""
IN_A_WORLD = SUITE.replace("tests:", "setup: [{file: {path: agent.py, format: text}}]\ntests:")


def deletions():
    """Sets of extensions: of each two there is a set that has the one and lacks the other.

    So no extension needs another, and the rest needs none, which as many runs as extensions would show too.
    """
    names = installed().names()
    size = next(size for size in count(1) if comb(size, size // 2) >= len(names))
    members = dict(zip(names, combinations(range(size), size // 2), strict=False))
    return [[name for name in names if number in members[name]] for number in range(size)]


@pytest.fixture(params=deletions(), ids=" ".join)
def deleted(request, tmp_path):
    """A package without the folders and the lines of some extensions, and the names of these.

    With them go those names that no earlier set has.
    """
    names = request.param
    earlier = {*chain(*deletions()[: deletions().index(names)])}
    root = tmp_path / "package"
    for package in ("ci_evals", "ci_evals/extensions"):  # links, which share what is compiled
        (root / package).mkdir(parents=True)
        for path in (PACKAGE.parent / package).iterdir():
            if path.name not in {"extensions", "__pycache__", *names}:
                (root / package / path.name).symlink_to(path)
    (root / "suites").symlink_to(PACKAGE.parent / "suites")
    kept = [f"{name} = ci_evals.extensions.{name}" for name in installed().names() if name not in names]
    facts = root / "ci_evals-0.1.0.dist-info"  # the lines, as an installation leaves them beside the package
    facts.mkdir()
    (facts / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *kept]))
    return root, names, [name for name in names if name not in earlier]


@pytest.mark.slow
def test_commands_run_and_saved_runs_keep_their_data_with_extensions_deleted(deleted, tmp_path):
    """All other modules import, commands work, and a saved run keeps what it has of the extensions."""
    root, names, new = deleted
    trusted = reliability_cases.results_with_all_studies()
    saved = tmp_path / "saved/_results.json"
    saved.parent.mkdir()
    saved.write_text(report_texts.results_json_text(trusted))
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "world.yaml").write_text(IN_A_WORLD)
    (tmp_path / "agent.py").write_text("def reply(message): return message")
    (tmp_path / "work.py").write_text(WORK)
    # First on the path, before the checkout that the tests are of.
    path = os.pathsep.join([str(root), str(Path(__file__).parents[1] / "support")])
    ran = command(str(root), *new, cwd=tmp_path, env={"PYTHONPATH": path}, program=str(tmp_path / "work.py"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "was not loaded" not in ran.stderr
    others = [other for other in installed().names() if other not in names]
    assert (tmp_path / "names").read_text().split() == others
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(saved.read_text())
    summary = (tmp_path / "summary.md").read_text()
    for report in installed().parts("report"):
        topic = report.report(trusted).topic
        assert (f"**{topic}**" in summary) is not (report.__name__.split(".")[2] in names)


def test_invalid_study_is_refused_and_unknown_one_kept_unless_nested_too_deeply(tmp_path):
    def load(changed):
        (tmp_path / "_results.json").write_text(json.dumps(changed))
        return json.loads(report_texts.results_json_text(ci_evals.load_results(tmp_path)))

    data = json.loads(report_texts.results_json_text(reliability_cases.results_with_all_studies()))
    assert data["studies"].keys() == study_kinds().keys() - {"oldCalibration"}
    noise = {"parts": [data["studies"]["noise"]["parts"][0] | {"source": "weather"}]}
    with pytest.raises(ci_evals.UsageError, match=r"studies\.noise\.parts\[0\]\.source: "):
        load(data | {"studies": data["studies"] | {"noise": data["studies"]["noise"] | noise}})
    data["studies"]["weather"] = {"sun": [1, {"rain": None}], "wind": "half \ud800 a pair"}
    again = load(data)
    assert again["studies"]["weather"] == {"sun": [1, {"rain": None}], "wind": "half \ufffd a pair"}
    assert {**again, "studies": None} == {**data, "studies": None}
    data["studies"]["weather"] = reduce(lambda deep, _: [deep], range(100), None)
    with pytest.raises(ci_evals.UsageError, match=r"studies\.weather.*nested too deeply"):
        load(data)
