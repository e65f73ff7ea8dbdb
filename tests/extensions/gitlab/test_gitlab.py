"""On GitLab: the note on the merge request, and the baseline from the target branch's artifacts."""

from pathlib import Path

import gitlab_api
import pytest
import yaml
from commands import ci_evals, read_results
from doc_pages import ROOT
from werkzeug import Response

pytestmark = pytest.mark.slow

MARKER = "<!-- ci-evals comment: default -->"


@pytest.fixture
def gitlab():
    with gitlab_api.serving() as api:
        yield api


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The results of a run that passed, and of one that failed."""
    folder = tmp_path_factory.mktemp("played")
    for name, more in (("passed", []), ("failed", ["--max-p95-latency=0.000001"])):
        options = ["--test=Refuses", "--provider=offline", f"--output-dir={name}", *more]
        ci_evals("run", "demo:hr", *options, cwd=folder)
    return folder


def comment(gitlab, results: Path, **environ):
    return ci_evals("comment", str(results), cwd=results.parent, env=gitlab.environ(**environ))


def test_the_note_is_written_once_and_updated(gitlab, played):
    """By one account; what others quote stays theirs."""
    gitlab.add_note("Please look", {"id": 5})
    gitlab.add_note(f"{MARKER}\n\nmine now", {"id": 5})
    first = comment(gitlab, played / "failed")
    assert (first.returncode, "note on !7 created" in first.stderr + first.stdout) == (0, True)
    second = comment(gitlab, played / "passed")
    assert "note on !7 updated" in second.stderr + second.stdout
    same = comment(gitlab, played / "passed")
    assert "note on !7 unchanged" in same.stderr + same.stdout
    (own,) = [note for note in gitlab.notes if note["author"] == gitlab_api.BOT]
    assert own["body"].startswith(f"{MARKER}\n<!-- ci-evals pipeline: 500 -->")
    assert "Evals passed" in own["body"]
    assert len(gitlab.notes) == 3


def test_a_slow_pipeline_does_not_replace_a_newer_one(gitlab, played):
    """Pipelines are numbered in order."""
    gitlab.add_note(f"{MARKER}\n<!-- ci-evals pipeline: 501 -->\n\nnewer", gitlab_api.BOT)
    ran = comment(gitlab, played / "passed")
    assert "note on !7 stale" in ran.stderr + ran.stdout
    assert gitlab.notes[0]["body"].endswith("newer")


def test_of_two_notes_the_oldest_stays(gitlab, played):
    """As after two jobs that wrote at the same moment."""
    gitlab.add_note(f"{MARKER}\n\none")
    gitlab.add_note(f"{MARKER}\n\ntwo")
    comment(gitlab, played / "passed")
    assert [note["id"] for note in gitlab.notes] == [1000]


def test_note_deleted_meanwhile_is_created_again(gitlab, played):
    """A person may delete it while it is changed."""
    gitlab.add_note(f"{MARKER}\n\nold")
    gitlab.faults.append(("^PUT", gitlab_api.error_response(404, "404 Not found")))
    ran = comment(gitlab, played / "passed")
    assert ran.returncode == 0
    assert "Evals passed" in gitlab.notes[0]["body"]


REFUSALS = [
    (gitlab_api.error_response(401, "401 Unauthorized"), "CI_EVALS_GITLAB_TOKEN or GITLAB_TOKEN"),
    (gitlab_api.error_response(403, "403 Forbidden"), "scope api, role Reporter"),
    (gitlab_api.error_response(403, "403 Forbidden - The project is archived"), "or the project is archived"),
    (
        gitlab_api.error_response(403, "The discussion is locked"),
        "GitLab answered 403 (The discussion is locked)",
    ),
    (gitlab_api.error_response(404, "404 Merge Request Not Found"), "or the token may not see it"),
    (gitlab_api.error_response(500, "Internal error"), "the server has a problem; try again later"),
    (
        Response("<html>Bad gateway</html>", 502, content_type="text/html"),
        "GitLab answered 502: the server has",
    ),
    (gitlab_api.error_response(404, "404 Project Not Found"), "not found, or"),
    (gitlab_api.error_response(409, "Conflict"), "GitLab answered 409 (Conflict)"),
    (gitlab_api.error_response(422, "Note is too long"), "GitLab answered 422 (Note is too long)"),
    (Response("<html>Wrong door</html>", 200, content_type="text/html"), "something other than JSON"),
]


@pytest.mark.parametrize(("answer", "words"), REFUSALS, ids=[words for _, words in REFUSALS])
def test_refusal_by_gitlab_is_a_warning(gitlab, played, answer, words):
    """It says what to do and changes no exit code."""
    gitlab.faults.append(("^POST", answer))
    ran = comment(gitlab, played / "failed")
    assert ran.returncode == 0
    assert words in ran.stderr + ran.stdout
    assert gitlab_api.TOKEN not in ran.stderr + ran.stdout


def test_a_note_is_only_written_if_it_is_worth_one(gitlab, played):
    """As `--comment-on` has it for a pull request; one that is there is updated all the same."""
    environ = gitlab.environ()
    for name, lines, status in (
        ("passed", 0, "no note on !7: there is none to update, and none was wanted"),
        ("failed", 1, "note on !7 created"),
        ("passed", 1, "note on !7 updated"),
    ):
        ran = ci_evals("comment", name, "--comment-on=failure", cwd=played, env=environ)
        assert (ran.returncode, len(gitlab.notes)) == (0, lines)
        assert status in ran.stderr + ran.stdout


def test_a_server_that_is_busy_is_asked_again(gitlab, played):
    """After as long as it says."""
    gitlab.faults.append(("^GET /user", gitlab_api.error_response(429, "Retry later", retry_after="0")))
    ran = comment(gitlab, played / "passed")
    assert "note on !7 created" in ran.stderr + ran.stdout


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"token": None}, "no note was posted: there is no token for GitLab: set CI_EVALS_GITLAB_TOKEN"),
        ({"CI_MERGE_REQUEST_IID": ""}, "no note was posted: this pipeline is not one of a merge request"),
    ],
)
def test_without_a_token_or_a_merge_request_there_is_no_note(gitlab, played, environ, words):
    """The job's own token may not write notes."""
    ran = comment(gitlab, played / "passed", **environ)
    assert (ran.returncode, gitlab.notes) == (0, [])
    assert words in ran.stderr + ran.stdout


def test_elsewhere_the_platform_has_to_be_there(played):
    """Printing needs none."""
    ran = ci_evals("comment", "passed", "--platform=gitlab", cwd=played)
    assert (ran.returncode, "this is no job of GitLab" in ran.stderr) == (2, True)
    shown = ci_evals("comment", "passed", "--platform=gitlab", "--dry-run", cwd=played)
    assert (shown.returncode, "Evals passed" in shown.stdout) == (0, True)


def run(gitlab, folder, *options, **environ):
    options = ["--test=Refuses", "--provider=offline", *options]
    return ci_evals("run", "demo:hr", *options, cwd=folder, env=gitlab.environ(**environ))


def results(played, name="passed") -> bytes:
    return (played / name / "_results.json").read_bytes()


def test_the_baseline_is_the_target_branchs_newest_pipeline(gitlab, played, tmp_path):
    """Whether it passed or not. Unfinished pipelines, other branches and other jobs are passed over."""
    gitlab.add_pipeline(1, results(played))
    gitlab.add_pipeline(2, results(played, "failed"), status="failed")
    gitlab.add_pipeline(3, results(played), ref="topic")
    gitlab.add_pipeline(4, results(played), job="other")
    gitlab.add_pipeline(5, None)
    gitlab.add_pipeline(6, results(played), status="running")
    ran = run(gitlab, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"commit {2:040x}"[:14] in ran.stdout + ran.stderr
    assert read_results(tmp_path)["comparison"]["comparable"]


def test_the_jobs_own_token_finds_what_passed(gitlab, played, tmp_path):
    """It can list no pipelines."""
    gitlab.add_pipeline(1, results(played))
    gitlab.add_pipeline(2, results(played, "failed"), status="failed")
    ran = run(gitlab, tmp_path, token=None)
    assert "the newest pipeline of main that passed" in ran.stdout + ran.stderr
    assert read_results(tmp_path)["comparison"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "none of the last 0 finished pipelines of main has 'results/_results.json'"),
        (gitlab_api.error_response(403, "403 Forbidden"), "the token lacks a right"),
        (Response("<html>", 200), "something other than JSON"),
    ],
)
def test_without_a_baseline_the_run_says_why(gitlab, tmp_path, answer, words):
    """And if one is required there is no verdict."""
    if answer is not None:
        gitlab.faults += [("pipelines", answer), ("pipelines", answer)]
    ran = run(gitlab, tmp_path)
    assert ran.returncode == 0
    assert words in " ".join((ran.stdout + ran.stderr).split())
    required = run(gitlab, tmp_path, "--baseline=required", "--max-drop=5")
    assert required.returncode == 3


def test_results_that_are_too_large_are_no_baseline(gitlab, tmp_path):
    """Anything may stand among artifacts."""
    gitlab.add_pipeline(1, b"{" + b" " * 1000)
    ran = run(gitlab, tmp_path)
    assert ran.returncode == 0
    assert "baseline" in ran.stdout + ran.stderr


def test_a_baseline_that_gitlab_cannot_give_is_no_baseline(gitlab, tmp_path):
    """It is asked again, and then the run goes without: its verdict is that of its own gate."""
    gitlab.faults += [("pipelines", gitlab_api.error_response(503, "Busy", retry_after="0"))] * 20
    ran = run(gitlab, tmp_path)
    assert ran.returncode == 0
    assert "GitLab answered 503 (Busy): the server has a problem" in " ".join(
        (ran.stdout + ran.stderr).split()
    )
    assert 1 < len(gitlab.requests) < 10


def test_the_component_runs_what_there_is():
    """Its inputs have descriptions or defaults, its commands exist, and the note's key is the job's."""
    spec, job = yaml.safe_load_all((ROOT / "templates/ci-evals.yml").read_text())
    assert set(spec["spec"]["inputs"]) == {"suites", "options", "job", "stage", "image"}
    (evals,) = job.values()
    assert evals["image"]["entrypoint"] == [""]
    assert evals["artifacts"]["when"] == "always"
    assert "ci-evals comment results/ --platform=gitlab" in evals["after_script"][0]
